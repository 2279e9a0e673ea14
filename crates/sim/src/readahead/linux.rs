//! The on-demand window of Linux since 2.6.23 (Fengguang Wu): it grows while reads follow one another, and the next window is
//! requested when the reader reaches a mark inside the current one. Rules and factors as in mm/readahead.c.

use std::ops::Range;

use super::{Advice, MAX_STREAMS, ReadAhead};
use rustc_hash::FxHashMap;

/// One open file: the present window, and how much of its end is a lead.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: u64,
    size: u64,
    lead: u64,
    /// One behind the last block that was read.
    next: u64,
}

/// All open files.
#[derive(Debug)]
pub(super) struct OnDemand {
    most: u64,
    windows: FxHashMap<u64, Window>,
}

impl OnDemand {
    pub(super) fn new(most: u64) -> Self {
        OnDemand { most, windows: FxHashMap::default() }
    }

    /// `get_init_ra_size`.
    fn first_size(&self, asked: u64) -> u64 {
        let size = asked.min(self.most).next_power_of_two();
        if size <= self.most / 32 {
            size * 4
        } else if size <= self.most / 4 {
            size * 2
        } else {
            self.most
        }
    }

    /// `get_next_ra_size`.
    fn next_size(&self, size: u64) -> u64 {
        if size < self.most / 16 {
            size.saturating_mul(4)
        } else if size <= self.most / 2 {
            size.saturating_mul(2)
        } else {
            self.most
        }
    }
}

impl ReadAhead for OnDemand {
    fn access(&mut self, stream: u64, asked: Range<u64>, missing: bool, limit: u64) -> Advice {
        if self.windows.len() > MAX_STREAMS {
            self.windows.clear();
        }
        let known = self.windows.contains_key(&stream);
        let mut window = self.windows.get(&stream).copied().unwrap_or_default();
        let count = asked.end.saturating_sub(asked.start).max(1);
        let mut advice = Advice { fetch_end: asked.end, ahead: 0..0 };
        let mark = window.start + window.size.saturating_sub(window.lead);
        let end = window.start + window.size;
        if window.size > 0 && (asked.contains(&mark) || asked.contains(&end) || asked.start == end) {
            // The reader has come to the mark, or to the end: the next window.
            window.start = end;
            window.size = self.next_size(window.size);
            window.lead = window.size;
            advice.ahead = window.start..(window.start + window.size).min(limit);
        } else if missing {
            // A new file is read from its start more often than not; else only what follows counts as a sequence.
            let sequential = !known || asked.start == window.next || asked.start + 1 == window.next;
            if sequential {
                window.start = asked.start;
                window.size = self.first_size(count);
                window.lead = if window.size > count { window.size - count } else { window.size };
                advice.fetch_end = asked.end.max(window.start + window.size).min(limit.max(asked.end));
            }
        }
        window.next = asked.end;
        self.windows.insert(stream, window);
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks fetched by each access of a reader of one block at a time, who finds cached what was fetched.
    fn fetches(most: u64, blocks: u64) -> Vec<u64> {
        let mut machine = OnDemand::new(most);
        let mut cached = 0;
        (0..blocks)
            .map(|block| {
                let missing = block >= cached;
                let advice = machine.access(1, block..block + 1, missing, u64::MAX);
                let before = cached;
                if missing {
                    cached = advice.fetch_end;
                }
                if !advice.ahead.is_empty() {
                    assert_eq!(advice.ahead.start, cached, "no gap and no overlap");
                    cached = advice.ahead.end;
                }
                cached - before
            })
            .collect()
    }

    #[test]
    fn the_window_of_a_reader_of_pages_grows_as_documented() {
        // 128 KiB of 4 KiB pages: windows of 4, 8, 16, 32, 32 pages.
        let fetched: Vec<u64> = fetches(32, 92).into_iter().filter(|n| *n > 0).collect();
        assert_eq!(fetched[..5], [4, 8, 16, 32, 32]);
    }

    #[test]
    fn random_reads_fetch_what_they_ask_for() {
        let mut machine = OnDemand::new(32);
        for start in [100u64, 7, 5000, 321, 64] {
            let advice = machine.access(1, start..start + 1, true, u64::MAX);
            assert!(start == 100 || advice == Advice { fetch_end: start + 1, ahead: 0..0 });
        }
    }

    #[test]
    fn nothing_is_read_behind_the_end_of_the_file() {
        let mut machine = OnDemand::new(32);
        for block in 0..10 {
            let advice = machine.access(1, block..block + 1, true, 10);
            assert!(advice.fetch_end <= 10 && advice.ahead.end <= 10);
        }
    }
}
