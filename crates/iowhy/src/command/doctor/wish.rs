//! `--try KEY=VALUE`: checks the wanted value against the present one and against what the kernel offers.

use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key, Reading};
use iowhy_core::units;
use iowhy_probe::setting::{self, Storage};

use super::ROOT;
use crate::cli::Wish;

impl Wish {
    /// What is set now where the wish is for: a reading for each device, mount or group of CPUs.
    ///
    /// # Errors
    /// A refusal for a path without a device, without the one that is named, or without that setting.
    pub(super) fn present(&self, place: &Storage, path: &str) -> Result<Vec<Reading>, Problem> {
        let root = std::path::Path::new(ROOT);
        let leaves = &place.devices.leaves;
        // A served file system has a read-ahead of its own.
        let of_mount = || self.key == Key::ReadAhead && !setting::read_each(root, place, self.key).is_empty();
        if matches!(self.key.group(), Group::Queue | Group::Memory) && leaves.is_empty() && !of_mount() {
            let why = place.devices.reason.as_deref().unwrap_or("no block device was found");
            return Err(Problem::refused(format!(
                "`{path}` has no block device under it that `{}` could touch: {why}",
                self.key.id()
            ))
            .hint("name a directory, a file or a device on a disk"));
        }
        let crypt = &place.devices.crypt;
        if self.key.group() == Group::Encryption && crypt.is_empty() {
            return Err(Problem::refused(format!(
                "`{path}` has no device under it that dm-crypt encrypts, as `{}` needs",
                self.key.id()
            ))
            .hint("`iowhy doctor` shows what this path has"));
        }
        // Devices that have such a setting, and that may be named.
        let devices = if self.key.group() == Group::Encryption { crypt } else { leaves };
        if self.key.group() == Group::FileSystem && place.mount.is_none() {
            return Err(Problem::refused(format!(
                "`{path}` is a device, and `{}` is of a mount",
                self.key.id()
            ))
            .hint("name the directory where it is mounted"));
        }
        let found = match &self.device {
            Some(device)
                if devices.contains(device)
                    || self.key.group() == Group::Queue && place.devices.stack.as_ref() == Some(device) =>
            {
                vec![setting::read_device(root, device, self.key)]
            }
            Some(device) => {
                let (id, value) = (self.key.id(), &self.value);
                let hint = match devices.first() {
                    Some(first) => {
                        format!("it stands on {}: `--try {first}/{id}={value}`", devices.join(", "))
                    }
                    None => format!("leave the device away: `--try {id}={value}`"),
                };
                return Err(Problem::refused(format!("`{path}` does not stand on `{device}`")).hint(hint));
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
        Key::Iostats
        | Key::NoReadWorkqueue
        | Key::NoWriteWorkqueue
        | Key::SameCpuCrypt
        | Key::SubmitFromCryptCpus => 0..=1,
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

    fn parsed(text: &str) -> Wish {
        Wish::parse("--try", text).unwrap()
    }

    fn refusal(text: &str, reading: &Reading) -> String {
        parsed(text).value_for(std::slice::from_ref(reading)).unwrap_err().message
    }

    #[test]
    fn values_are_compared_with_what_is_offered() {
        let scheduler =
            Reading { offered: vec!["none".into(), "bfq".into()], ..Reading::new(Key::Scheduler, "none") };
        assert!(refusal("scheduler=cfq", &scheduler).contains("offers none, bfq"));
        assert!(refusal("scheduler=none", &scheduler).contains("already"));
        assert_eq!(parsed("scheduler=bfq").value_for(&[scheduler]).unwrap(), "bfq");
        let of = |key: Key, value: &str| Reading::new(key, value);
        assert!(refusal("nomerges=3", &of(Key::Nomerges, "0")).contains("from 0 to 2"));
        assert!(refusal("iostats=yes", &of(Key::Iostats, "1")).contains("from 0 to 1"));
        assert!(refusal("nr_requests=2", &of(Key::Requests, "64")).contains("from 4 on"));
        assert!(refusal("wbt_lat_usec=-1", &of(Key::WritebackThrottle, "0")).contains("whole number"));
        assert!(refusal("dirty_bytes=1", &of(Key::DirtyBytes, "0")).contains("whole number"));
        assert!(refusal("read_ahead_kb=0128", &of(Key::ReadAhead, "128")).contains("already"));
        let bytes = parsed("dirty_bytes=16m");
        assert_eq!(bytes.value_for(&[of(Key::DirtyBytes, "0")]).unwrap(), (16u64 << 20).to_string());
    }

    #[test]
    fn of_several_those_that_have_it_already_do_not_stand_in_the_way() {
        let of = |value: &str| Reading::new(Key::ReadAhead, value);
        let wish = parsed("read_ahead_kb=256");
        assert_eq!(wish.value_for(&[of("128"), of("256")]).unwrap(), "256");
        assert!(wish.value_for(&[of("256"), of("256")]).unwrap_err().message.contains("already"));
        let offers = |offered: &[&str]| Reading {
            offered: offered.iter().map(|&o| o.to_owned()).collect(),
            subject: Some("sdb".into()),
            ..Reading::new(Key::Scheduler, "none")
        };
        let refused = parsed("scheduler=bfq").value_for(&[offers(&["none", "bfq"]), offers(&["none"])]);
        assert!(refused.unwrap_err().message.contains("offers none for sdb"));
    }

    #[test]
    fn a_path_without_a_device_or_with_another_is_refused() {
        let mut place = Storage::default();
        place.devices.reason = Some("its bytes live in memory".into());
        let wish = parsed("read_ahead_kb=0");
        assert!(wish.present(&place, "/shm").unwrap_err().message.contains("live in memory"));
        place.devices.leaves = vec!["no-such-a".into(), "no-such-b".into()];
        assert!(wish.present(&place, "/data").unwrap_err().message.contains("read_ahead_kb"));
        let other = parsed("no-such-c/read_ahead_kb=0").present(&place, "/data").unwrap_err();
        assert!(other.message.contains("no-such-c") && other.hint.unwrap().contains("no-such-a, no-such-b"));
        assert!(
            parsed("no_read_workqueue=1").present(&place, "/data").unwrap_err().message.contains("dm-crypt")
        );
        assert!(parsed("atime=noatime").present(&place, "/dev/x").unwrap_err().message.contains("mount"));
    }
}
