//! Every key of a machine, `layer.key`: the same in files, for `--set` and for `--sweep`. One table, one setter.

use iowhy_core::model::Cost;
use iowhy_core::nearest::did_you_mean;
use iowhy_core::problem::Problem;
use iowhy_core::units;

use super::{Choice, DeviceConfig, Machine, SchedulerConfig, UNLIMITED, Zone};

/// A value as a file or an option gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number, 0 or more.
    Int(u64),
    /// Any other number.
    Float(f64),
    /// A word, or a number with a unit.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A list of lists of numbers: zones.
    Rows(Vec<Vec<f64>>),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Rows(_) => f.write_str("[[...]]"),
        }
    }
}

/// A key and what it means.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// `layer.key`.
    pub path: &'static str,
    /// In one line. Kinds before a colon are those that the key belongs to; with others it has no effect.
    pub about: &'static str,
}

const fn key(path: &'static str, about: &'static str) -> Key {
    Key { path, about }
}

/// All keys. Costs stand once, as `per_call_ns`; `per_page_ns` and `per_byte_ns` go beside it.
pub const KEYS: &[Key] = &[
    key("name", "name of the machine"),
    key("about", "what it is, and where its figures come from"),
    key("cpu.count", "CPUs; 0: as many as requests"),
    key("cpu.page_bytes", "page that costs are counted in"),
    key("call", "entering and leaving the kernel, for each request"),
    key("filesystem", "the file system's own code, for each request"),
    key("lookup", "the cache's own work, for each request, page and byte"),
    key("insert", "putting a fetched block into the cache"),
    key("copy", "moving bytes between kernel and program"),
    key("mapping", "mapping a buffer of the pool, or the pages of a fault"),
    key("block", "building and handing down one block request"),
    key("mapping.fault_bytes", "bytes that one fault on a mapped file reads"),
    key("cache.bytes", "size of the cache; 0: none, `unlimited`"),
    key("cache.block_bytes", "bytes of a block"),
    key("cache.policy", "which block leaves"),
    key("cache.io_bytes", "largest read of the cache from the volume"),
    key("cache.write", "when written blocks go out: back (later), through (at once)"),
    key("cache.background_bytes", "dirty bytes at which write-back starts"),
    key("cache.dirty_bytes", "dirty bytes at which writers wait"),
    key("pool.buffers", "mapped buffers over the cache; 0: no pool"),
    key("pool.policy", "which buffer leaves"),
    key("readahead.kind", "none, driver, fixed, linux, bsd"),
    key("readahead.bytes", "its largest window, or its fixed size"),
    key("layout.kind", "raw, extent, ffs"),
    key("layout.group_sectors", "FFS: sectors of a cylinder group"),
    key("layout.block_bytes", "FFS: bytes of a block"),
    key("layout.fragment_bytes", "FFS: bytes of a fragment"),
    key("layout.bytes_per_inode", "FFS: bytes per inode"),
    key("layout.entry_bytes", "FFS: bytes of a directory entry"),
    key("layout.access_times", "FFS: whether a file that was read has its inode written, later"),
    key("volume.kind", "single, stripe, mirror, concat"),
    key("volume.interleave", "stripe: sectors of 512 bytes per chunk"),
    key("volume.merge", "stripe: pieces that follow one another on a device become one"),
    key("scheduler.order", "fcfs, clook, deadline"),
    key("scheduler.depth", "commands that a device holds at once; 1: not tagged"),
    key("bus.bytes_per_second", "speed of the bus that all devices share; 0: no time"),
    key("bus.command_ns", "arbitration and messages of one command"),
    key("device.model", "a shipped model; keys beside it change it"),
    key("device.count", "how many devices"),
    key("device.kind", "rotating, ssd, cloud, null"),
    key("device.bytes", "size of one device (rotating: 0, the geometry gives it)"),
    key("device.rpm", "rotating: revolutions per minute"),
    key("device.heads", "rotating: surfaces"),
    key("device.zones", "rotating: [[last cylinder, sectors of a track, track skew, cylinder skew], ...]"),
    key("device.seek_a_ms", "rotating: seek over d cylinders is a + b * sqrt(d) + c * d"),
    key("device.seek_b_ms", "rotating: see seek_a_ms"),
    key("device.seek_c_ms", "rotating: see seek_a_ms"),
    key("device.seek_track_ms", "rotating: seek over one cylinder; 0: by the formula"),
    key("device.head_switch_ms", "rotating: switching heads"),
    key("device.sector_interleave", "rotating: 1 or more; 2 is the 1:2 of 1989"),
    key("device.command_ms", "rotating: overhead of a command that goes to the platter"),
    key("device.hit_command_ms", "rotating: overhead of a read that the buffer holds"),
    key("device.buffer_segments", "rotating: segments of the buffer"),
    key("device.buffer_sectors", "rotating: sectors of a segment"),
    key("device.buffer_read_ahead", "rotating: whether the drive reads on after a read"),
    key("device.read_ns", "ssd: access time of a read"),
    key("device.write_ns", "ssd: access time of a write"),
    key("device.spread", "ssd: access times are fixed or exponential"),
    key("device.unit_bytes_per_second", "ssd: speed of one unit; 0: no time"),
    key("device.units", "ssd, cloud: requests served side by side"),
    key("device.iops", "ssd, cloud: requests a second at most; 0: no limit"),
    key(
        "device.batch_ns",
        "ssd: what requests in flight share once: with n of them, each begins this over n later than by `iops`",
    ),
    key("device.bytes_per_second", "ssd, cloud: bytes a second at most; 0: no limit"),
    key("device.base_ns", "cloud: time of a request that no limit delays"),
    key("device.iops_burst", "cloud: tokens of the requests' bucket"),
    key("device.bytes_burst", "cloud: tokens of the bytes' bucket"),
    key("device.request_bytes", "cloud: bytes that count as one request; 0: each request counts once"),
];

const COSTS: [&str; 3] = ["per_call_ns", "per_page_ns", "per_byte_ns"];

/// Every path that can be set.
pub(super) fn paths() -> Vec<String> {
    KEYS.iter()
        .flat_map(|key| match key.path {
            "name" | "about" => vec![key.path.to_owned()],
            path if !path.contains('.') => COSTS.iter().map(|cost| format!("{path}.{cost}")).collect(),
            path => vec![path.to_owned()],
        })
        .collect()
}

/// A place in a machine, and how its value is read.
enum Slot<'a> {
    Words(&'a mut String),
    Count(&'a mut u64),
    Bytes(&'a mut u64),
    Time(&'a mut u64),
    Number(&'a mut f64),
    Flag(&'a mut bool),
    Choice(&'a mut dyn Choice),
    Zones(&'a mut Vec<Zone>),
    Two(&'a mut u64, &'a mut f64),
    Both(&'a mut u64, &'a mut u64),
    NumberTwice(&'a mut f64, &'a mut f64),
}

impl Machine {
    /// Sets one key.
    ///
    /// # Errors
    /// An unknown key, with the nearest known one; a value that it cannot take.
    pub fn set(&mut self, path: &str, value: &Value) -> Result<(), Problem> {
        if path == "device.model" {
            let Value::Text(name) = value else {
                return Err(wrong(path, value, "is the name of a shipped model"));
            };
            self.device = model_of(name)?;
            for member in &mut self.members {
                member.device = self.device.clone();
            }
            return Ok(());
        }
        match self.slot(path) {
            Some(slot) => {
                fill(path, slot, value)?;
                // What is set takes the place of what was measured.
                match path.split('.').next() {
                    Some("copy" | "lookup") => self.copy_by_size.clear(),
                    Some("block") => self.write_block = None,
                    _ => {}
                }
                // What is said of the device is said of all of them.
                self.set_members(path, value)
            }
            None => Err(unknown(path, "key").hint(format!(
                "{}`iowhy sim --machine keys` lists all",
                did_you_mean(path, paths().iter().map(String::as_str))
            ))),
        }
    }

    /// The same key of every member, and of what serves writes.
    fn set_members(&mut self, path: &str, value: &Value) -> Result<(), Problem> {
        if let Some(name) = path.strip_prefix("device.").filter(|name| *name != "count") {
            for device in self.members.iter_mut().map(|member| &mut member.device) {
                if let Some(slot) = device_slot(device, name) {
                    fill(path, slot, value)?;
                }
            }
            let all = std::iter::once(&mut self.device).chain(self.members.iter_mut().map(|m| &mut m.device));
            for device in all.filter_map(|device| device.write.as_deref_mut()) {
                if let Some(slot) = device_slot(device, name) {
                    fill(path, slot, value)?;
                }
            }
        }
        if let Some(name) = path.strip_prefix("scheduler.") {
            for member in &mut self.members {
                if let Some(slot) = scheduler_slot(&mut member.scheduler, name) {
                    fill(path, slot, value)?;
                }
            }
        }
        Ok(())
    }

    fn slot(&mut self, path: &str) -> Option<Slot<'_>> {
        use Slot::*;
        let (layer, name) = path.split_once('.').unwrap_or(("", path));
        let cost = match layer {
            "call" => Some(&mut self.call),
            "filesystem" => Some(&mut self.filesystem),
            "lookup" => Some(&mut self.lookup),
            "insert" => Some(&mut self.insert),
            "copy" => Some(&mut self.copy),
            "mapping" if name != "fault_bytes" => Some(&mut self.mapping),
            "block" => Some(&mut self.block),
            _ => None,
        };
        if let Some(cost) = cost {
            return cost_slot(cost, name);
        }
        Some(match path {
            "name" => Words(&mut self.name),
            "about" => Words(&mut self.about),
            "cpu.count" => Count(&mut self.cpus),
            "cpu.page_bytes" => Bytes(&mut self.page_bytes),
            "mapping.fault_bytes" => Bytes(&mut self.fault_bytes),
            "cache.bytes" => Bytes(&mut self.cache.bytes),
            "cache.block_bytes" => Bytes(&mut self.cache.block_bytes),
            "cache.policy" => Choice(&mut self.cache.policy),
            "cache.io_bytes" => Bytes(&mut self.cache.io_bytes),
            "cache.write" => Choice(&mut self.cache.write),
            "cache.background_bytes" => Bytes(&mut self.cache.background_bytes),
            "cache.dirty_bytes" => Bytes(&mut self.cache.dirty_bytes),
            "pool.buffers" => Count(&mut self.pool.buffers),
            "pool.policy" => Choice(&mut self.pool.policy),
            "readahead.kind" => Choice(&mut self.read_ahead.kind),
            "readahead.bytes" => Bytes(&mut self.read_ahead.bytes),
            "layout.kind" => Choice(&mut self.layout.kind),
            "layout.group_sectors" => Count(&mut self.layout.group_sectors),
            "layout.block_bytes" => Bytes(&mut self.layout.block_bytes),
            "layout.fragment_bytes" => Bytes(&mut self.layout.fragment_bytes),
            "layout.bytes_per_inode" => Bytes(&mut self.layout.bytes_per_inode),
            "layout.entry_bytes" => Bytes(&mut self.layout.entry_bytes),
            "layout.access_times" => Flag(&mut self.layout.access_times),
            "volume.kind" => Choice(&mut self.volume.kind),
            "volume.interleave" => Count(&mut self.volume.interleave),
            "volume.merge" => Flag(&mut self.volume.merge),
            "bus.bytes_per_second" => Bytes(&mut self.bus.bytes_per_second),
            "bus.command_ns" => Time(&mut self.bus.command_ns),
            _ if layer == "scheduler" => return scheduler_slot(&mut self.scheduler, name),
            _ => return device_slot(&mut self.device, path.strip_prefix("device.")?),
        })
    }
}

fn cost_slot<'a>(cost: &'a mut Cost, name: &str) -> Option<Slot<'a>> {
    Some(Slot::Number(match name {
        "per_call_ns" => &mut cost.per_call_ns,
        "per_page_ns" => &mut cost.per_page_ns,
        "per_byte_ns" => &mut cost.per_byte_ns,
        _ => return None,
    }))
}

fn scheduler_slot<'a>(scheduler: &'a mut SchedulerConfig, name: &str) -> Option<Slot<'a>> {
    match name {
        "order" => Some(Slot::Choice(&mut scheduler.order)),
        "depth" => Some(Slot::Count(&mut scheduler.depth)),
        _ => None,
    }
}

fn device_slot<'a>(device: &'a mut DeviceConfig, name: &str) -> Option<Slot<'a>> {
    use Slot::*;
    let disk = &mut device.rotating;
    Some(match name {
        "count" => Count(&mut device.count),
        "kind" => Choice(&mut device.kind),
        "bytes" => Bytes(&mut device.bytes),
        "rpm" => Number(&mut disk.rpm),
        "heads" => Count(&mut disk.heads),
        "zones" => Zones(&mut disk.zones),
        "seek_a_ms" => Number(&mut disk.seek_a_ms),
        "seek_b_ms" => Number(&mut disk.seek_b_ms),
        "seek_c_ms" => Number(&mut disk.seek_c_ms),
        "seek_track_ms" => Number(&mut disk.seek_track_ms),
        "head_switch_ms" => Number(&mut disk.head_switch_ms),
        "sector_interleave" => Count(&mut disk.sector_interleave),
        "command_ms" => Number(&mut disk.command_ms),
        "hit_command_ms" => Number(&mut disk.hit_command_ms),
        "buffer_segments" => Count(&mut disk.buffer_segments),
        "buffer_sectors" => Count(&mut disk.buffer_sectors),
        "buffer_read_ahead" => Flag(&mut disk.buffer_read_ahead),
        "read_ns" => Time(&mut device.ssd.read_ns),
        "write_ns" => Time(&mut device.ssd.write_ns),
        "spread" => Choice(&mut device.ssd.spread),
        "unit_bytes_per_second" => Bytes(&mut device.ssd.unit_bytes_per_second),
        "units" => Both(&mut device.ssd.units, &mut device.cloud.units),
        "iops" => NumberTwice(&mut device.ssd.iops, &mut device.cloud.iops),
        "batch_ns" => Time(&mut device.ssd.batch_ns),
        "bytes_per_second" => Two(&mut device.ssd.bytes_per_second, &mut device.cloud.bytes_per_second),
        "base_ns" => Time(&mut device.cloud.base_ns),
        "iops_burst" => Number(&mut device.cloud.iops_burst),
        "bytes_burst" => Number(&mut device.cloud.bytes_burst),
        "request_bytes" => Bytes(&mut device.cloud.request_bytes),
        _ => return None,
    })
}

/// The device section of a shipped model. The number of devices stays 1.
fn model_of(name: &str) -> Result<DeviceConfig, Problem> {
    let models: Vec<&str> = super::shipped::models().iter().map(|model| model.name).collect();
    let Some(found) = super::shipped::models().iter().find(|model| model.name == name) else {
        return Err(unknown(name, "device model").hint(format!(
            "{}there are {}",
            did_you_mean(name, models.iter().copied()),
            models.join(", ")
        )));
    };
    let mut machine = Machine::from_toml(found.text, name)?;
    name.clone_into(&mut machine.device.model);
    Ok(machine.device)
}

fn fill(path: &str, slot: Slot<'_>, value: &Value) -> Result<(), Problem> {
    match slot {
        Slot::Words(place) => *place = value.to_string(),
        Slot::Count(place) => *place = count(path, value)?,
        Slot::Bytes(place) => *place = bytes(path, value)?,
        Slot::Both(one, other) => {
            *one = count(path, value)?;
            *other = *one;
        }
        Slot::Two(whole, number) => {
            *whole = bytes(path, value)?;
            *number = *whole as f64;
        }
        Slot::Time(place) => *place = time(path, value)?,
        Slot::Number(place) => *place = number(path, value)?,
        Slot::NumberTwice(one, other) => {
            *one = number(path, value)?;
            *other = *one;
        }
        Slot::Flag(place) => {
            *place = match value {
                Value::Flag(flag) => *flag,
                Value::Int(0) => false,
                Value::Int(1) => true,
                Value::Text(text) if ["true", "yes", "on", "1"].contains(&text.as_str()) => true,
                Value::Text(text) if ["false", "no", "off", "0"].contains(&text.as_str()) => false,
                _ => return Err(wrong(path, value, "is true or false")),
            }
        }
        Slot::Choice(place) => {
            let ids = place.ids();
            if !place.choose(&value.to_string()) {
                return Err(wrong(path, value, &format!("is one of {}", ids.join(", "))));
            }
        }
        Slot::Zones(place) => *place = zones(path, value)?,
    }
    Ok(())
}

fn count(path: &str, value: &Value) -> Result<u64, Problem> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Text(text) => {
            text.trim().parse().map_err(|_| wrong(path, value, "is a whole number, 0 or more"))
        }
        _ => Err(wrong(path, value, "is a whole number, 0 or more")),
    }
}

fn bytes(path: &str, value: &Value) -> Result<u64, Problem> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Text(text) if text == "unlimited" => Ok(UNLIMITED),
        Value::Text(text) => units::parse_bytes(path, text),
        _ => Err(wrong(path, value, "is a size such as 4096, `8k`, `32MiB`, `unlimited`")),
    }
}

fn time(path: &str, value: &Value) -> Result<u64, Problem> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Text(text) => match text.trim().parse() {
            // A bare number is in the unit of the key's name.
            Ok(ns) => Ok(ns),
            Err(_) => Ok(u64::try_from(units::parse_duration(path, text)?.as_nanos()).unwrap_or(u64::MAX)),
        },
        _ => Err(wrong(path, value, "is a time: whole nanoseconds, or text such as `80us`")),
    }
}

fn number(path: &str, value: &Value) -> Result<f64, Problem> {
    let number = match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Text(text) => text.trim().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    };
    // Beyond this no sum of times stays exact; NaN fails the comparison.
    if (0.0..=1e15).contains(&number) {
        Ok(number)
    } else {
        Err(wrong(path, value, "is a number from 0 to 1e15"))
    }
}

fn zones(path: &str, value: &Value) -> Result<Vec<Zone>, Problem> {
    let shape =
        "is a list of [last cylinder, sectors of a track, track skew, cylinder skew], in whole numbers";
    let Value::Rows(rows) = value else { return Err(wrong(path, value, shape)) };
    rows.iter()
        .map(|row| {
            let whole = row.iter().all(|n| (0.0..=1e9).contains(n) && n.fract() == 0.0);
            match row.as_slice() {
                [last, sectors, track, cylinder] if whole => Ok(Zone {
                    last_cylinder: *last as u64,
                    sectors: *sectors as u64,
                    track_skew: *track as u64,
                    cylinder_skew: *cylinder as u64,
                }),
                _ => Err(wrong(path, value, shape)),
            }
        })
        .collect()
}

fn wrong(path: &str, value: &Value, shape: &str) -> Problem {
    Problem::refused(format!("`{path}` cannot be `{value}`")).hint(format!("`{path}` {shape}"))
}

fn unknown(path: &str, what: &str) -> Problem {
    Problem::refused(format!("there is no {what} `{path}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_key_can_be_set_and_nothing_else() {
        for path in paths() {
            let mut machine = Machine::default();
            assert!(path == "device.model" || machine.slot(&path).is_some(), "{path}");
        }
        let mut machine = Machine::default();
        for path in ["", "cache", "cache.byte", "device.", "call.per_call", "layout.kind.x"] {
            assert!(machine.set(path, &Value::Int(1)).is_err(), "{path}");
        }
    }

    #[test]
    fn an_unknown_key_gets_the_nearest_one() {
        let problem = Machine::default().set("volume.interleaf", &Value::Int(8)).unwrap_err();
        assert_eq!(problem.message, "there is no key `volume.interleaf`");
        assert!(problem.hint.unwrap().contains("did you mean `volume.interleave`?"));
        let problem = Machine::default().set("device.model", &Value::Text("st32171".into())).unwrap_err();
        assert!(problem.hint.unwrap().contains("did you mean `st32171w`?"));
    }

    #[test]
    fn values_are_read_with_their_units() {
        let mut m = Machine::default();
        let text = |t: &str| Value::Text(t.to_owned());
        m.set("cache.bytes", &text("8m")).unwrap();
        m.set("device.read_ns", &text("80us")).unwrap();
        m.set("bus.command_ns", &text("1500")).unwrap();
        m.set("scheduler.order", &text("clook")).unwrap();
        m.set("copy.per_byte_ns", &text("0.25")).unwrap();
        m.set("volume.merge", &text("yes")).unwrap();
        assert_eq!((m.cache.bytes, m.device.ssd.read_ns, m.bus.command_ns), (8 << 20, 80_000, 1500));
        assert_eq!(
            (m.scheduler.order, m.copy.per_byte_ns, m.volume.merge),
            (super::super::Order::Clook, 0.25, true)
        );
        for (path, bad) in [
            ("cache.bytes", "-1"),
            ("cache.bytes", "99999999999e"),
            ("scheduler.order", "lifo"),
            ("copy.per_byte_ns", "nan"),
            ("copy.per_byte_ns", "-1"),
            ("device.count", "1.5"),
            ("volume.merge", "maybe"),
            ("device.zones", "1"),
        ] {
            let problem = m.set(path, &text(bad)).unwrap_err();
            assert!(problem.hint.is_some() && problem.message.contains(bad), "{problem}");
        }
    }
}
