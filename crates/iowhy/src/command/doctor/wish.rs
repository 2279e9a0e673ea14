//! `--try KEY=VALUE`: what is wished for, held against what there is and what the kernel offers.

use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key, Reading};
use iowhy_core::units;
use iowhy_explain::setting::TRIED;
use iowhy_probe::setting::{self, Place};

use super::ROOT;

/// A wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) key: Key,
    pub(super) value: String,
}

impl Wish {
    /// Reads it.
    ///
    /// # Errors
    /// A refusal for what is no `KEY=VALUE`, and for settings that are not known or not tried.
    pub(super) fn parse(text: &str) -> Result<Wish, Problem> {
        let known = TRIED.map(Key::id).join(", ");
        let Some((key, value)) =
            text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty())
        else {
            return Err(Problem::refused(format!("`--try {text}` is no KEY=VALUE"))
                .hint(format!("for example `--try read_ahead_kb=512`; KEY is one of {known}")));
        };
        let key = match Key::from_id(key) {
            Some(key) if TRIED.contains(&key) => key,
            Some(_) => {
                return Err(Problem::refused(format!("`--try {text}`: `{key}` is shown, but cannot be tried")).hint(
                    "measure it by hand: `iowhy --json before.json PATH`, change it, `iowhy --json after.json PATH`, \
                     `iowhy compare before.json after.json`",
                ));
            }
            None => {
                return Err(Problem::refused(format!("`--try {text}`: there is no setting `{key}`"))
                    .hint(format!("KEY is one of {known}")));
            }
        };
        Ok(Wish { key, value: value.trim().to_owned() })
    }

    /// What is set now where the wish is for: one device, or the machine.
    ///
    /// # Errors
    /// A refusal for a path without a device, with several, or without that setting.
    pub(super) fn present(&self, place: &Place, path: &str) -> Result<Reading, Problem> {
        let of_queue = self.key.group() == Group::Queue;
        if self.key != Key::Thp && place.devices.leaves.is_empty() {
            let why = place.devices.reason.as_deref().unwrap_or("no block device was found");
            return Err(Problem::refused(format!(
                "`{path}` has no block device under it that `{}` could touch: {why}",
                self.key.id()
            ))
            .hint("name a directory, a file or a device on a disk"));
        }
        let mut found = setting::read_one(std::path::Path::new(ROOT), place, self.key);
        let several = |reading: &Reading| reading.subject.as_deref().is_some_and(|names| names.contains(' '));
        if of_queue && (found.len() > 1 || found.iter().any(several)) {
            return Err(Problem::refused(format!(
                "`{path}` stands on several devices ({}), and `--try` changes one",
                place.devices.leaves.join(", ")
            ))
            .hint("name one of them, such as `/dev/sda`"));
        }
        let reading = found.pop().filter(|_| found.is_empty());
        let lack = reading.as_ref().and_then(|reading| reading.lack.clone());
        reading.filter(|reading| reading.value.is_some()).ok_or_else(|| {
            let why = lack.unwrap_or_else(|| "it was not found".to_owned());
            Problem::refused(format!("`{}` is not there to be tried: {why}", self.key.id()))
                .hint("`iowhy doctor` shows what this path has")
        })
    }

    /// The value as it is written for the kernel.
    ///
    /// # Errors
    /// A refusal for what is not offered, is no number in range, or is set already.
    pub(super) fn value_for(&self, reading: &Reading) -> Result<String, Problem> {
        let id = self.key.id();
        let named = format!("`--try {id}={}`", self.value);
        let value = match self.key {
            Key::Scheduler | Key::Thp if !reading.offered.contains(&self.value) => {
                return Err(Problem::refused(format!(
                    "{named}: this kernel offers {}",
                    reading.offered.join(", ")
                ))
                .hint("another scheduler may need its module: `modprobe bfq`"));
            }
            Key::Scheduler | Key::Thp => self.value.clone(),
            Key::DirtyBytes | Key::DirtyBackgroundBytes => {
                let bytes = units::parse_bytes("--try", &self.value)?;
                in_range(&named, bytes, &range(self.key))?.to_string()
            }
            _ => {
                let number = self.value.parse().map_err(|_| no_number(&named, &range(self.key)))?;
                in_range(&named, number, &range(self.key))?.to_string()
            }
        };
        if reading.value.as_ref() == Some(&value) {
            return Err(Problem::refused(format!(
                "{named}: it is {value} already, and there is nothing to compare"
            ))
            .hint("name another value"));
        }
        Ok(value)
    }
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
        Wish::parse(text).unwrap().value_for(reading).unwrap_err().message
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
        assert!(Wish::parse("governor=performance").unwrap_err().hint.unwrap().contains("compare"));
    }

    #[test]
    fn values_are_held_against_what_is_offered() {
        let scheduler =
            Reading { offered: vec!["none".into(), "bfq".into()], ..Reading::of(Key::Scheduler, "none") };
        assert!(refusal("scheduler=cfq", &scheduler).contains("offers none, bfq"));
        assert!(refusal("scheduler=none", &scheduler).contains("already"));
        assert_eq!(Wish::parse("scheduler=bfq").unwrap().value_for(&scheduler).unwrap(), "bfq");
        let of = |key: Key, value: &str| Reading::of(key, value);
        assert!(refusal("nomerges=3", &of(Key::Nomerges, "0")).contains("from 0 to 2"));
        assert!(refusal("iostats=yes", &of(Key::Iostats, "1")).contains("from 0 to 1"));
        assert!(refusal("nr_requests=2", &of(Key::Requests, "64")).contains("from 4 on"));
        assert!(refusal("wbt_lat_usec=-1", &of(Key::WritebackThrottle, "0")).contains("whole number"));
        assert!(refusal("dirty_bytes=1", &of(Key::DirtyBytes, "0")).contains("whole number"));
        assert!(refusal("read_ahead_kb=0128", &of(Key::ReadAhead, "128")).contains("already"));
        let bytes = Wish::parse("dirty_bytes=16m").unwrap();
        assert_eq!(bytes.value_for(&of(Key::DirtyBytes, "0")).unwrap(), (16u64 << 20).to_string());
    }

    #[test]
    fn a_path_without_a_device_or_with_several_is_refused() {
        let mut place = Place::default();
        place.devices.reason = Some("its bytes live in memory".into());
        let wish = Wish::parse("read_ahead_kb=0").unwrap();
        assert!(wish.present(&place, "/shm").unwrap_err().message.contains("live in memory"));
        place.devices.leaves = vec!["no-such-a".into(), "no-such-b".into()];
        assert!(wish.present(&place, "/data").unwrap_err().message.contains("no-such-a, no-such-b"));
        place.devices.leaves.pop();
        assert!(wish.present(&place, "/data").unwrap_err().message.contains("read_ahead_kb"));
    }
}
