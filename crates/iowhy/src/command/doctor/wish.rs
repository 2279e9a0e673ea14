//! `--try KEY=VALUE`: checks the wanted value against the present one and against what the kernel offers.

use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key, Reading};
use iowhy_core::units;
use iowhy_diagnose::setting::TRIED;
use iowhy_probe::setting::{self, Storage};

use super::ROOT;

/// A wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// Of several devices this one alone.
    pub(super) device: Option<String>,
    pub(super) key: Key,
    pub(super) value: String,
}

impl Wish {
    /// Reads it.
    ///
    /// # Errors
    /// A refusal for what is no `KEY=VALUE` or `DEVICE/KEY=VALUE`, and for settings that are not known or not tried.
    pub(super) fn parse(text: &str) -> Result<Wish, Problem> {
        let known = TRIED.map(Key::id).join(", ");
        let Some((name, value)) =
            text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty())
        else {
            return Err(Problem::refused(format!("`--try {text}` is no KEY=VALUE"))
                .hint(format!("for example `--try read_ahead_kb=512`; KEY is one of {known}")));
        };
        let (device, name) = match name.rsplit_once('/') {
            Some((device, name)) => (Some(device.trim_start_matches("/dev/").to_owned()), name),
            None => (None, name),
        };
        let key = match Key::from_id(name) {
            Some(key) if TRIED.contains(&key) => key,
            Some(Key::Mitigations) => return Err(at_boot(text)),
            Some(_) => {
                return Err(Problem::refused(format!("`--try {text}`: `{name}` is shown, but cannot be tried")).hint(
                    "measure it by hand: `iowhy --json before.json PATH`, change it, `iowhy --json after.json PATH`, \
                     `iowhy compare before.json after.json`",
                ));
            }
            None => {
                return Err(Problem::refused(format!("`--try {text}`: there is no setting `{name}`"))
                    .hint(format!("KEY is one of {known}")));
            }
        };
        if device.is_some() && key.group() != Group::Queue {
            return Err(Problem::refused(format!("`--try {text}`: `{name}` is no setting of a device"))
                .hint(format!("leave the device away: `--try {name}={value}`")));
        }
        Ok(Wish { device, key, value: value.trim().to_owned() })
    }

    /// What is set now where the wish is for: a reading for each device, mount or group of CPUs.
    ///
    /// # Errors
    /// A refusal for a path without a device, without the one that is named, or without that setting.
    pub(super) fn present(&self, place: &Storage, path: &str) -> Result<Vec<Reading>, Problem> {
        let leaves = &place.devices.leaves;
        if matches!(self.key.group(), Group::Queue | Group::Memory) && leaves.is_empty() {
            let why = place.devices.reason.as_deref().unwrap_or("no block device was found");
            return Err(Problem::refused(format!(
                "`{path}` has no block device under it that `{}` could touch: {why}",
                self.key.id()
            ))
            .hint("name a directory, a file or a device on a disk"));
        }
        if self.key.group() == Group::FileSystem && place.mount.is_none() {
            return Err(Problem::refused(format!(
                "`{path}` is a device, and `{}` is of a mount",
                self.key.id()
            ))
            .hint("name the directory where it is mounted"));
        }
        let root = std::path::Path::new(ROOT);
        let found = match &self.device {
            Some(device) if leaves.contains(device) || place.devices.stack.as_ref() == Some(device) => {
                vec![setting::read_queue(root, device, self.key)]
            }
            Some(device) => {
                return Err(Problem::refused(format!("`{path}` does not stand on `{device}`")).hint(
                    format!(
                        "it stands on {}: `--try {}/{}={}`",
                        leaves.join(", "),
                        leaves.first().map_or("", String::as_str),
                        self.key.id(),
                        self.value
                    ),
                ));
            }
            None => setting::read_each(root, place, self.key),
        };
        match found.iter().find(|reading| reading.value.is_none()) {
            None if !found.is_empty() => Ok(found),
            lacking => {
                let why = lacking.and_then(|reading| reading.limitation.clone());
                let why = why.unwrap_or_else(|| "it was not found".to_owned());
                Err(Problem::refused(format!("`{}` is not there to be tried: {why}", self.key.id()))
                    .hint("`iowhy doctor` shows what this path has"))
            }
        }
    }

    /// The value as it is written for the kernel. Where some have it already the others get it.
    ///
    /// # Errors
    /// A refusal for what is not offered, is no number in range, or is set already everywhere.
    pub(super) fn value_for(&self, readings: &[Reading]) -> Result<String, Problem> {
        let id = self.key.id();
        let named = format!("`--try {id}={}`", self.value);
        let value = match self.key {
            Key::Scheduler | Key::Thp | Key::Governor | Key::AccessTime | Key::LazyTime => {
                let lacking = readings.iter().find(|reading| !reading.offered.contains(&self.value));
                if let Some(reading) = lacking {
                    return Err(not_offered(&named, reading));
                }
                self.value.clone()
            }
            Key::DirtyBytes | Key::DirtyBackgroundBytes => {
                let bytes = units::parse_bytes("--try", &self.value)?;
                in_range(&named, bytes, &range(self.key))?.to_string()
            }
            _ => {
                let number = self.value.parse().map_err(|_| no_number(&named, &range(self.key)))?;
                in_range(&named, number, &range(self.key))?.to_string()
            }
        };
        if readings.iter().all(|reading| reading.value.as_ref() == Some(&value)) {
            return Err(Problem::refused(format!(
                "{named}: it is {value} already, and there is nothing to compare"
            ))
            .hint("name another value"));
        }
        Ok(value)
    }
}

/// What only a start of the machine can change.
fn at_boot(text: &str) -> Problem {
    Problem::refused(format!(
        "`--try {text}`: the kernel settles mitigations when it starts, and nothing changes them later"
    ))
    .hint(
        "measure them over two boots: `iowhy --json before.json PATH`, add `mitigations=off` to the kernel's command line \
         (unsafe: other programs may then read secrets out of the CPU), boot, `iowhy --json after.json PATH`, `iowhy compare \
         before.json after.json`, and take it out again",
    )
}

fn not_offered(named: &str, reading: &Reading) -> Problem {
    let of = match &reading.subject {
        Some(subject) if reading.key != Key::Thp => format!(" for {subject}"),
        _ => String::new(),
    };
    let (who, hint) = match reading.key {
        Key::Scheduler => ("this kernel offers", "another scheduler may need its module: `modprobe bfq`"),
        Key::Governor => {
            ("this kernel offers", "another governor may need its module: `modprobe cpufreq_ondemand`")
        }
        Key::Thp => ("this kernel offers", "name one of them"),
        _ => ("a mount knows", "name one of them"),
    };
    Problem::refused(format!("{named}: {who} {}{of}", reading.offered.join(", "))).hint(hint)
}

/// What the kernel takes: limits of block/blk-sysfs.c, block/blk-wbt.c and mm/page-writeback.c. The kernel has the last
/// word where the device sets the upper end.
fn range(key: Key) -> std::ops::RangeInclusive<u64> {
    // Two pages: "the minimum value allowed for dirty_bytes" (admin-guide/sysctl/vm).
    let two_pages = 2 * rustix::param::page_size() as u64;
    match key {
        Key::Iostats => 0..=1,
        Key::Nomerges => 0..=2,
        Key::Requests => 4..=u64::from(u32::MAX),
        Key::ReadAhead => 0..=u64::from(u32::MAX),
        Key::WritebackThrottle => 0..=60_000_000,
        Key::DirtyRatio | Key::DirtyBackgroundRatio => 1..=100,
        Key::DirtyBytes => two_pages..=i64::MAX as u64,
        _ => 1..=i64::MAX as u64,
    }
}

fn in_range(named: &str, number: u64, range: &std::ops::RangeInclusive<u64>) -> Result<u64, Problem> {
    if range.contains(&number) { Ok(number) } else { Err(no_number(named, range)) }
}

fn no_number(named: &str, range: &std::ops::RangeInclusive<u64>) -> Problem {
    let words = match (range.start(), *range.end()) {
        (low, high) if high >= u64::from(u32::MAX) => format!("a whole number from {low} on"),
        (low, high) => format!("a whole number from {low} to {high}"),
    };
    Problem::refused(format!("{named}: the kernel takes {words}")).hint("name such a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, reading: &Reading) -> String {
        Wish::parse(text).unwrap().value_for(std::slice::from_ref(reading)).unwrap_err().message
    }

    #[test]
    fn what_is_no_wish_or_for_nothing_known_is_refused_with_the_list() {
        for text in ["", "=", "scheduler", "scheduler=", "=none"] {
            assert!(Wish::parse(text).unwrap_err().hint.unwrap().contains("read_ahead_kb"), "{text}");
        }
        let unknown = Wish::parse("elevator=none").unwrap_err();
        assert!(
            unknown.message.contains("elevator")
                && unknown.hint.unwrap().contains("scheduler, read_ahead_kb")
        );
        assert!(Wish::parse("swappiness=0").unwrap_err().hint.unwrap().contains("compare"));
        assert!(Wish::parse("mitigations=off").unwrap_err().hint.unwrap().contains("`mitigations=off`"));
        assert!(Wish::parse("vda/thp=never").unwrap_err().hint.unwrap().contains("--try thp=never"));
        let one = Wish::parse("/dev/vda/nomerges=2").unwrap();
        assert_eq!((one.device.as_deref(), one.key), (Some("vda"), Key::Nomerges));
    }

    #[test]
    fn values_are_compared_with_what_is_offered() {
        let scheduler =
            Reading { offered: vec!["none".into(), "bfq".into()], ..Reading::new(Key::Scheduler, "none") };
        assert!(refusal("scheduler=cfq", &scheduler).contains("offers none, bfq"));
        assert!(refusal("scheduler=none", &scheduler).contains("already"));
        assert_eq!(Wish::parse("scheduler=bfq").unwrap().value_for(&[scheduler]).unwrap(), "bfq");
        let of = |key: Key, value: &str| Reading::new(key, value);
        assert!(refusal("nomerges=3", &of(Key::Nomerges, "0")).contains("from 0 to 2"));
        assert!(refusal("iostats=yes", &of(Key::Iostats, "1")).contains("from 0 to 1"));
        assert!(refusal("nr_requests=2", &of(Key::Requests, "64")).contains("from 4 on"));
        assert!(refusal("wbt_lat_usec=-1", &of(Key::WritebackThrottle, "0")).contains("whole number"));
        assert!(refusal("dirty_bytes=1", &of(Key::DirtyBytes, "0")).contains("whole number"));
        assert!(refusal("read_ahead_kb=0128", &of(Key::ReadAhead, "128")).contains("already"));
        let bytes = Wish::parse("dirty_bytes=16m").unwrap();
        assert_eq!(bytes.value_for(&[of(Key::DirtyBytes, "0")]).unwrap(), (16u64 << 20).to_string());
    }

    #[test]
    fn of_several_those_that_have_it_already_do_not_stand_in_the_way() {
        let of = |value: &str| Reading::new(Key::ReadAhead, value);
        let wish = Wish::parse("read_ahead_kb=256").unwrap();
        assert_eq!(wish.value_for(&[of("128"), of("256")]).unwrap(), "256");
        assert!(wish.value_for(&[of("256"), of("256")]).unwrap_err().message.contains("already"));
        let offers = |offered: &[&str]| Reading {
            offered: offered.iter().map(|&o| o.to_owned()).collect(),
            subject: Some("sdb".into()),
            ..Reading::new(Key::Scheduler, "none")
        };
        let refused =
            Wish::parse("scheduler=bfq").unwrap().value_for(&[offers(&["none", "bfq"]), offers(&["none"])]);
        assert!(refused.unwrap_err().message.contains("offers none for sdb"));
    }

    #[test]
    fn a_path_without_a_device_or_with_another_is_refused() {
        let mut place = Storage::default();
        place.devices.reason = Some("its bytes live in memory".into());
        let wish = Wish::parse("read_ahead_kb=0").unwrap();
        assert!(wish.present(&place, "/shm").unwrap_err().message.contains("live in memory"));
        place.devices.leaves = vec!["no-such-a".into(), "no-such-b".into()];
        assert!(wish.present(&place, "/data").unwrap_err().message.contains("read_ahead_kb"));
        let other = Wish::parse("no-such-c/read_ahead_kb=0").unwrap().present(&place, "/data").unwrap_err();
        assert!(other.message.contains("no-such-c") && other.hint.unwrap().contains("no-such-a, no-such-b"));
        assert!(
            Wish::parse("atime=noatime")
                .unwrap()
                .present(&place, "/dev/x")
                .unwrap_err()
                .message
                .contains("mount")
        );
    }
}
