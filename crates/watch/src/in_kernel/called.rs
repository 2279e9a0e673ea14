//! A call that took longer than its limit, as the kernel tells it (`struct call_event` of `bpf/tails.h`).

use super::facts::words;
use crate::calls::FileKey;
use crate::records::{bytes, text};

/// Words (of 8 bytes) of the event, and its identity.
const EVENT: usize = 14;
const IDENTITY: u64 = 0xffff_ffff << 32 | 9;

/// A call that has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) entered_ns: u64,
    pub(crate) at_ns: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) number: u32,
    pub(crate) queued_ns: u64,
    pub(crate) slept_ns: u64,
    /// How often it fell asleep.
    pub(crate) sleeps: u64,
    /// What it returned; below 0: the error.
    pub(crate) value: i64,
    pub(crate) file: Option<FileKey>,
    pub(crate) task: String,
}

impl Called {
    pub(crate) fn time_ns(&self) -> u64 {
        self.at_ns - self.entered_ns
    }

    /// `None`: the record is of something else.
    pub(super) fn read(record: &[u64]) -> Option<Called> {
        let [_, identity, task, at_ns, _, entered_ns, queued_ns, slept_ns, counts, value, file @ ..] = record
        else {
            return None;
        };
        if *identity != IDENTITY || record.len() != EVENT || at_ns < entered_ns {
            return None;
        }
        let ([pid, tid], [sleeps, number]) = (words(*task), words(*counts));
        let [inode, device_and_type, name @ ..] = file else { return None };
        Some(Called {
            entered_ns: *entered_ns,
            at_ns: *at_ns,
            pid,
            tid,
            number,
            queued_ns: *queued_ns,
            slept_ns: *slept_ns,
            sleeps: u64::from(sleeps),
            value: value.cast_signed(),
            file: (*inode != 0 || *device_and_type != 0).then_some(FileKey([*inode, *device_and_type])),
            task: text(bytes(name)).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_as_the_kernel_writes_it() {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let name = u64::from_ne_bytes(*b"fsyncer\0");
        let mut record = vec![9, IDENTITY, pair(10, 11), 5000, pair(1, 0), 1000, 30, 3900, pair(2, 74)];
        record.extend([0, 77, pair(5, 0x8000), name, 0]);
        let called = Called::read(&record).unwrap();
        assert_eq!((called.time_ns(), called.pid, called.tid, called.number), (4000, 10, 11, 74));
        assert_eq!((called.queued_ns, called.slept_ns, called.sleeps, called.value), (30, 3900, 2, 0));
        assert_eq!(called.file, Some(FileKey([77, pair(5, 0x8000)])));
        assert_eq!(called.task, "fsyncer");
        assert!(Called::read(&record[..13]).is_none() && Called::read(&[]).is_none());
        record[5] = 6000;
        assert!(Called::read(&record).is_none(), "it ends before it begins");
    }
}
