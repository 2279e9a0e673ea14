//! Keys that mean nothing on a machine: what the machine is made of has no use for them. Whoever set one should hear of it.

use crate::machine::{DeviceKind, JoinKind, KEYS, LayoutKind, Machine, ReadAheadKind, UNLIMITED, WriteMode};
use crate::workload::Method;

impl Machine {
    /// Why a key has no effect on this machine under requests of this method, in words that follow "has no effect: "; `None`
    /// where it has one, or could have.
    pub fn without_effect(&self, path: &str, method: Method) -> Option<String> {
        let (layer, name) = path.split_once('.').unwrap_or(("", path));
        let no_cache = self.cache.bytes == 0 || method == Method::Direct;
        let cacheless =
            || if self.cache.bytes == 0 { "there is no cache" } else { "`method=direct` passes it by" };
        if let Some(owners) = owners(path) {
            let present = match layer {
                "device" => self.device.kind.id(),
                "layout" => self.layout.kind.id(),
                _ => self.volume.kind.id(),
            };
            return (!owners.split(", ").any(|owner| owner.eq_ignore_ascii_case(present)))
                .then(|| format!("it belongs to {owners}, and `{layer}.kind` is `{present}`"));
        }
        let mapped = matches!(method, Method::Mapped | Method::Mlock);
        let words = match (layer, name) {
            ("device", "bytes") if self.device.kind == DeviceKind::Rotating => {
                "a rotating disk has the size that its geometry gives"
            }
            ("lookup" | "insert", _) if no_cache => cacheless(),
            ("cache", "bytes") if method == Method::Direct && self.cache.bytes > 0 => cacheless(),
            // These also say where files begin, and whether there is a cache.
            ("cache", "block_bytes" | "io_bytes" | "bytes") => return None,
            ("cache", _) if no_cache => cacheless(),
            ("cache", "policy") if self.cache.bytes == UNLIMITED => "nothing ever leaves an unlimited cache",
            ("cache", "background_bytes" | "dirty_bytes") if self.cache.write == WriteMode::Through => {
                "`cache.write` is `through`"
            }
            ("pool", _) if no_cache => cacheless(),
            ("pool", "policy") if self.pool.buffers == 0 => "`pool.buffers` is 0",
            ("readahead", "bytes") if self.read_ahead.kind == ReadAheadKind::None => {
                "`readahead.kind` is `none`"
            }
            // The driver's works below the cache.
            ("readahead", _) if self.read_ahead.kind == ReadAheadKind::Driver => return None,
            ("readahead", _) if no_cache => cacheless(),
            ("readahead", _) if mapped => "faults read their clusters only",
            ("mapping", "fault_bytes") if !mapped => "only `method=mapped` and `method=mlock` fault",
            ("mapping", _) if !mapped && (self.pool.buffers == 0 || no_cache) => {
                "nothing is mapped: there is no pool, and the method does not fault"
            }
            ("copy", _) if method != Method::Read => "only `method=read` copies",
            _ => return None,
        };
        Some(words.to_owned())
    }
}

/// The kinds that a key belongs to, where it does not belong to all: what stands before the colon of its description.
fn owners(path: &str) -> Option<&'static str> {
    let key = KEYS.iter().find(|key| key.path == path)?;
    let (owners, _) = key.about.split_once(": ")?;
    let known = |owner: &str| {
        let is = |id: &str| owner.eq_ignore_ascii_case(id);
        DeviceKind::ALL.iter().any(|kind| is(kind.id()))
            || LayoutKind::ALL.iter().any(|kind| is(kind.id()))
            || JoinKind::ALL.iter().any(|kind| is(kind.id()))
    };
    owners.split(", ").all(known).then_some(owners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Value;

    fn machine(settings: &[(&str, &str)]) -> Machine {
        let mut machine = Machine::default();
        for (path, value) in settings {
            machine.set(path, &Value::Text((*value).to_owned())).unwrap();
        }
        machine
    }

    #[test]
    fn keys_of_other_kinds_say_whose_they_are() {
        let ssd = machine(&[("device.model", "nvme-tlc"), ("cache.bytes", "1m")]);
        let of = |path| ssd.without_effect(path, Method::Read);
        assert_eq!(of("device.rpm").unwrap(), "it belongs to rotating, and `device.kind` is `ssd`");
        assert_eq!(of("volume.interleave").unwrap(), "it belongs to stripe, and `volume.kind` is `single`");
        assert_eq!(of("layout.group_sectors").unwrap(), "it belongs to FFS, and `layout.kind` is `raw`");
        for path in ["device.read_ns", "device.units", "device.iops", "device.bytes", "cache.policy"] {
            assert_eq!(of(path), None, "{path}");
        }
        let disk = machine(&[("device.model", "st32171w")]);
        assert!(disk.without_effect("device.bytes", Method::Read).is_some());
        assert!(disk.without_effect("device.read_ns", Method::Read).is_some());
        assert_eq!(disk.without_effect("device.rpm", Method::Read), None);
    }

    #[test]
    fn what_the_rest_of_the_machine_leaves_without_use() {
        let bare = machine(&[("device.model", "nvme-tlc")]);
        for path in
            ["cache.policy", "lookup.per_call_ns", "pool.policy", "readahead.bytes", "mapping.per_page_ns"]
        {
            assert!(bare.without_effect(path, Method::Read).is_some(), "{path}");
        }
        assert_eq!(bare.without_effect("cache.bytes", Method::Read), None);
        let full = machine(&[
            ("device.model", "nvme-tlc"),
            ("cache.bytes", "1m"),
            ("readahead.kind", "linux"),
            ("cache.write", "through"),
        ]);
        assert_eq!(full.without_effect("readahead.bytes", Method::Read), None);
        assert!(full.without_effect("readahead.bytes", Method::Mapped).is_some());
        assert!(full.without_effect("copy.per_byte_ns", Method::Direct).is_some());
        assert!(full.without_effect("cache.dirty_bytes", Method::Read).is_some());
        assert_eq!(full.without_effect("mapping.fault_bytes", Method::Mlock), None);
    }
}
