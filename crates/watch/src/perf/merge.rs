//! Puts the records of all rings into the order of their times. It knows where a record keeps its time, and no more.
//! A record gets its time before it can be seen in its ring: what is not older than the start of the drain before this one
//! waits for the next.
//! Invariant: nothing is lost or doubled; memory is bounded by twice what the rings hold; grown buffers are reused.

use std::os::fd::BorrowedFd;

use perf_event_open_sys::bindings::PERF_RECORD_SAMPLE;

use super::ring::Ring;
use crate::records::Source;

impl Source for Ring {
    fn take(&mut self, out: &mut Vec<u64>) {
        Ring::take(self, out);
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.leader())
    }
}

/// Words of a record's trailer: task, time, CPU, id.
pub(crate) const TRAILER: usize = 4;

/// Records between the rings and the consumer.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    words: Vec<u64>,
    index: Vec<Entry>,
    /// The other halves of the two buffers: what is kept back moves there.
    spare_words: Vec<u64>,
    spare_index: Vec<Entry>,
    /// Start of the drain before.
    previous_ns: u64,
    /// Records that made no sense; the rest of what came with them cannot be read.
    pub(crate) malformed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    time_ns: u64,
    start: usize,
    words: usize,
}

/// Length of the record that begins here, in words; `None` if that cannot be.
pub(crate) fn length(words: &[u64]) -> Option<usize> {
    let size = (words.first()? >> HEADER_SIZE_SHIFT) as usize & 0xffff;
    (size >= 8 && size.is_multiple_of(8) && size / 8 <= words.len()).then_some(size / 8)
}

/// The header is a u32 of type, a u16 of flags and a u16 of size, in the byte order of the machine.
#[cfg(target_endian = "little")]
const HEADER_SIZE_SHIFT: u32 = 48;
#[cfg(target_endian = "big")]
const HEADER_SIZE_SHIFT: u32 = 0;

/// Type of a record.
pub(crate) fn kind(header: u64) -> u32 {
    if cfg!(target_endian = "little") { header as u32 } else { (header >> 32) as u32 }
}

/// Flags of a record.
pub(crate) fn flags(header: u64) -> u32 {
    (if cfg!(target_endian = "little") { header >> 32 } else { header >> 16 }) as u32 & 0xffff
}

/// When the record was made. A sample begins with id, task, time, CPU; any other record ends with the trailer.
fn time(record: &[u64]) -> Option<u64> {
    let header = *record.first()?;
    let place =
        if kind(header) == PERF_RECORD_SAMPLE { 3 } else { (record.len() - 1).checked_sub(TRAILER)? + 2 };
    record.get(place).copied()
}

impl Merger {
    /// Takes what is new from all sources and hands on, oldest first, all that is older than the start of the drain
    /// before; with `all`, everything. `now_ns` is the time before the sources are looked at.
    pub(crate) fn drain<'s>(
        &mut self,
        sources: impl IntoIterator<Item = &'s mut (dyn Source + 's)>,
        now_ns: u64,
        all: bool,
        mut sink: impl FnMut(u64, &[u64]),
    ) {
        for source in sources {
            let from = self.words.len();
            source.take(&mut self.words);
            self.enter(from);
        }
        // Stable: records of one time keep the order of their ring. What is nearly in order is sorted fast.
        self.index.sort_by_key(|e| e.time_ns);
        let ready =
            if all { self.index.len() } else { self.index.partition_point(|e| e.time_ns < self.previous_ns) };
        for entry in &self.index[..ready] {
            sink(entry.time_ns, &self.words[entry.start..entry.start + entry.words]);
        }
        for entry in &self.index[ready..] {
            let start = self.spare_words.len();
            self.spare_words.extend_from_slice(&self.words[entry.start..entry.start + entry.words]);
            self.spare_index.push(Entry { start, ..*entry });
        }
        self.words.clear();
        self.index.clear();
        std::mem::swap(&mut self.words, &mut self.spare_words);
        std::mem::swap(&mut self.index, &mut self.spare_index);
        self.previous_ns = now_ns;
    }

    /// Enters the records from this word on into the index.
    fn enter(&mut self, mut start: usize) {
        while start < self.words.len() {
            let Some(words) = length(&self.words[start..]) else {
                self.malformed += 1;
                self.words.truncate(start);
                return;
            };
            match time(&self.words[start..start + words]) {
                Some(time_ns) => self.index.push(Entry { time_ns, start, words }),
                None => self.malformed += 1,
            }
            start += words;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dynamic<S: Source>(sources: &mut [S]) -> impl Iterator<Item = &mut dyn Source> {
        sources.iter_mut().map(|source| source as &mut dyn Source)
    }

    /// A false ring: records with their times, each seen only from a certain drain on.
    struct Tape {
        records: Vec<(u64, Vec<u64>)>,
        now: u64,
    }

    impl Source for Tape {
        fn take(&mut self, out: &mut Vec<u64>) {
            let split = self.records.partition_point(|(seen, _)| *seen <= self.now);
            for (_, record) in self.records.drain(..split) {
                out.extend(record);
            }
        }
    }

    /// A switch record: header and trailer; the task word carries a serial number.
    fn record(time: u64, serial: u64) -> Vec<u64> {
        vec![14 | (40 << HEADER_SIZE_SHIFT), serial, time, 0, 0]
    }

    proptest! {
        #[test]
        fn order_holds_over_rings_and_drains_and_nothing_is_lost(
            rings in prop::collection::vec(prop::collection::vec((0u64..20, 0u64..5), 0..60), 1..5),
            step in 6u64..40,
        ) {
            // Each record is seen at most 5 after its time, less than the time between two drains.
            let mut serial = 0;
            let mut end = 0;
            let mut tapes: Vec<Tape> = rings
                .iter()
                .map(|gaps| {
                    let (mut time, mut seen) = (0, 0);
                    let records = gaps.iter().map(|(gap, delay)| {
                        time += gap;
                        seen = seen.max(time + delay);
                        end = end.max(seen);
                        serial += 1;
                        (seen, record(time, serial))
                    }).collect();
                    Tape { records, now: 0 }
                })
                .collect();
            let mut merger = Merger::default();
            let mut out: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            loop {
                now += step;
                tapes.iter_mut().for_each(|t| t.now = now);
                let all = now > end;
                merger.drain(dynamic(&mut tapes), now, all, |time, words| out.push((time, words[1])));
                if all {
                    break;
                }
            }
            prop_assert!(out.windows(2).all(|w| w[0].0 <= w[1].0));
            let mut serials: Vec<u64> = out.iter().map(|(_, serial)| *serial).collect();
            serials.sort_unstable();
            prop_assert_eq!(serials, (1..=serial).collect::<Vec<_>>());
            prop_assert_eq!(merger.malformed, 0);
            prop_assert!(merger.words.is_empty() && merger.index.is_empty());
        }

        #[test]
        fn random_words_are_survived(words in prop::collection::vec(any::<u64>(), 0..200), all: bool) {
            struct Noise(Vec<u64>);
            impl Source for Noise {
                fn take(&mut self, out: &mut Vec<u64>) {
                    out.append(&mut self.0);
                }
            }
            let mut merger = Merger::default();
            merger.drain(dynamic(&mut [Noise(words)]), 1, all, |_, record| assert!(!record.is_empty()));
            merger.drain(dynamic::<Noise>(&mut []), 2, true, |_, _| ());
            prop_assert!(merger.words.is_empty());
        }
    }

    #[test]
    fn what_is_young_is_kept_back_once() {
        let mut merger = Merger::default();
        let mut seen = Vec::new();
        let mut tape = [Tape { records: vec![(0, record(5, 1)), (0, record(15, 2))], now: 0 }];
        merger.drain(dynamic(&mut tape), 10, false, |t, _| seen.push(t));
        assert!(seen.is_empty(), "{seen:?}");
        merger.drain(dynamic(&mut tape), 20, false, |t, _| seen.push(t));
        assert_eq!(seen, [5]);
        merger.drain(dynamic(&mut tape), 30, false, |t, _| seen.push(t));
        assert_eq!(seen, [5, 15]);
    }

    #[test]
    fn a_broken_record_ends_its_batch_and_is_counted() {
        struct Batch(Vec<u64>);
        impl Source for Batch {
            fn take(&mut self, out: &mut Vec<u64>) {
                out.append(&mut self.0);
            }
        }
        let mut merger = Merger::default();
        let mut words = record(5, 1);
        words.push(14);
        words.extend(record(6, 2));
        let mut seen = Vec::new();
        merger.drain(dynamic(&mut [Batch(words), Batch(record(3, 3))]), 10, true, |t, _| seen.push(t));
        assert_eq!(seen, [3, 5]);
        assert_eq!(merger.malformed, 1);
    }
}
