//! The longest calls of those that were recorded, with their times. Bounded.

use std::cmp::Reverse;

use iowhy_linux::syscalls;

use super::CallRecord;
use crate::calls::FileKey;
use crate::event_log::{MAX_CALLS, SlowCall};

/// The longest calls so far, among others that came after the last selection.
#[derive(Debug, Default)]
pub(super) struct Slowest {
    calls: Vec<CallRecord>,
    /// Calls that are shorter are none of the longest.
    least_ns: u64,
}

fn time_ns(call: &CallRecord) -> u64 {
    call.returned_ns.saturating_sub(call.entered_ns)
}

impl Slowest {
    /// Takes a call that returned.
    pub(super) fn take(&mut self, call: &CallRecord) {
        if time_ns(call) < self.least_ns {
            return;
        }
        self.calls.push(*call);
        if self.calls.len() >= 2 * MAX_CALLS {
            self.select();
        }
    }

    /// Of equally long ones the first ones stay.
    fn select(&mut self) {
        self.calls.sort_by_key(|call| (Reverse(time_ns(call)), call.entered_ns));
        self.calls.truncate(MAX_CALLS);
        self.least_ns = self.calls.last().map_or(0, time_ns);
    }

    /// The longest calls, in order of time. Calls whose number has no name are left out.
    pub(super) fn finish(mut self, path: impl Fn(FileKey) -> Option<String>) -> Vec<SlowCall> {
        self.select();
        self.calls.sort_by_key(|call| (call.entered_ns, call.tid));
        let named = |call: &CallRecord| {
            Some(SlowCall {
                tid: call.tid,
                name: syscalls::name(i64::from(call.number))?,
                path: call.file.and_then(&path),
                begin_ns: call.entered_ns,
                end_ns: call.returned_ns,
                value: call.value,
            })
        };
        self.calls.iter().filter_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_calls_stay_however_many_come_and_in_whatever_order() {
        for backwards in [false, true] {
            let mut slowest = Slowest::default();
            let calls = 5 * MAX_CALLS as u64;
            for i in 0..calls {
                let length = if backwards { calls - i } else { i + 1 };
                let (entered_ns, returned_ns) = (i * 10_000, i * 10_000 + length);
                slowest.take(&CallRecord { entered_ns, returned_ns, ..CallRecord::default() });
            }
            let kept = slowest.finish(|_| None);
            assert_eq!(kept.len(), MAX_CALLS);
            assert!(kept.iter().all(|call| call.end_ns - call.begin_ns > calls - MAX_CALLS as u64));
            assert!(kept.windows(2).all(|two| two[0].begin_ns < two[1].begin_ns), "in order of time");
            assert_eq!(kept[0].name, "read");
        }
    }
}
