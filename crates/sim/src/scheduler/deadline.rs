//! Like Linux `deadline`: by sector, reads before writes, but no command waits past its deadline. The figures are the defaults
//! of Linux `mq-deadline` (block/mq-deadline.c): reads 500 ms, writes 5 s, writes are passed over twice at most, batches
//! of 16.

use std::collections::{BTreeMap, VecDeque};

use super::{Scheduler, Waiting};

const EXPIRES_NS: [u64; 2] = [500_000_000, 5_000_000_000];
const WRITES_STARVED: u32 = 2;
const BATCH: u32 = 16;

/// One direction: by sector, and by age.
#[derive(Debug, Default)]
struct Direction {
    sorted: BTreeMap<(u64, u64), Waiting>,
    /// Deadline and key, oldest first; entries that were served are dropped when they come up.
    aged: VecDeque<(u64, (u64, u64))>,
}

impl Direction {
    fn oldest(&mut self) -> Option<(u64, (u64, u64))> {
        while let Some(&(deadline, key)) = self.aged.front() {
            if self.sorted.contains_key(&key) {
                return Some((deadline, key));
            }
            self.aged.pop_front();
        }
        None
    }
}

/// Two directions, and where the present batch stands.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    directions: [Direction; 2],
    arrivals: u64,
    batch_of: usize,
    batch_left: u32,
    passed_over: u32,
}

impl Scheduler for Deadline {
    fn push(&mut self, now_ns: u64, waiting: Waiting) {
        self.arrivals += 1;
        let which = usize::from(waiting.write);
        let key = (waiting.sector, self.arrivals);
        let direction = &mut self.directions[which];
        direction.aged.push_back((now_ns.saturating_add(EXPIRES_NS[which]), key));
        direction.sorted.insert(key, waiting);
    }

    fn pop(&mut self, now_ns: u64, sector: u64) -> Option<Waiting> {
        let [reads, writes] = [0, 1].map(|which| !self.directions[which].sorted.is_empty());
        let going_on = self.batch_left > 0 && !self.directions[self.batch_of].sorted.is_empty();
        if !going_on {
            let which = match (reads, writes) {
                (false, false) => return None,
                (true, true) if self.passed_over < WRITES_STARVED => {
                    self.passed_over += 1;
                    0
                }
                (true, false) => 0,
                _ => {
                    self.passed_over = 0;
                    1
                }
            };
            (self.batch_of, self.batch_left) = (which, BATCH);
        }
        let direction = &mut self.directions[self.batch_of];
        let expired = direction.oldest().filter(|(deadline, _)| !going_on && *deadline <= now_ns);
        let key = match expired {
            Some((_, key)) => key,
            None => {
                let ahead = direction.sorted.range((sector, 0)..).next().map(|(key, _)| *key);
                ahead.or_else(|| direction.sorted.keys().next().copied())?
            }
        };
        self.batch_left -= 1;
        direction.sorted.remove(&key)
    }

    fn len(&self) -> usize {
        self.directions.iter().map(|direction| direction.sorted.len()).sum()
    }
}
