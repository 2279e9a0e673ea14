//! Puts requests that come in the order of their ends back into the order of their beginnings, within a window.
//!
//! Invariant: at most [`WINDOW`] requests wait here. One that began longer ago than that comes late and is counted as
//! time running backwards by whoever checks.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use iowhy_core::request::Request;

use crate::error::TraceError;
use crate::format::Kind;
use crate::losses::Losses;
use crate::names::Names;
use crate::reader::Reader;

/// Requests that wait at most.
pub(crate) const WINDOW: usize = 4096;

struct Waiting {
    order: (u64, u64),
    request: Request,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

/// A reader whose requests are put in order.
pub(crate) struct Ordered<R> {
    inner: R,
    waiting: BinaryHeap<Reverse<Waiting>>,
    staged: Vec<Request>,
    count: u64,
    ended: bool,
}

impl<R: Reader> Ordered<R> {
    pub(crate) fn new(inner: R) -> Self {
        Ordered { inner, waiting: BinaryHeap::new(), staged: Vec::new(), count: 0, ended: false }
    }
}

impl<R: Reader> Reader for Ordered<R> {
    fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        let begin = into.len();
        while into.len() - begin < most {
            if self.waiting.len() <= WINDOW && !self.ended {
                self.staged.clear();
                let filled = self.inner.fill(&mut self.staged, WINDOW);
                self.ended = !matches!(filled, Ok(1..));
                for request in self.staged.drain(..) {
                    self.count += 1;
                    self.waiting.push(Reverse(Waiting { order: (request.time_ns, self.count), request }));
                }
                // What came before an error still comes out, the error first.
                filled?;
                continue;
            }
            match self.waiting.pop() {
                Some(Reverse(first)) => into.push(first.request),
                None => break,
            }
        }
        Ok(into.len() - begin)
    }

    fn names(&self) -> &Names {
        self.inner.names()
    }

    fn losses(&self) -> &Losses {
        self.inner.losses()
    }

    fn kind(&self) -> Option<Kind> {
        self.inner.kind()
    }

    fn level_known(&self) -> bool {
        self.inner.level_known()
    }

    fn has_times(&self) -> bool {
        self.inner.has_times()
    }

    fn has_sizes(&self) -> bool {
        self.inner.has_sizes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives fixed times in small portions.
    struct Fixed {
        times: std::vec::IntoIter<u64>,
        losses: Losses,
        names: Names,
    }

    impl Reader for Fixed {
        fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
            let begin = into.len();
            into.extend(
                self.times
                    .by_ref()
                    .take(most.min(7))
                    .map(|time_ns| Request { time_ns, ..Request::default() }),
            );
            Ok(into.len() - begin)
        }

        fn names(&self) -> &Names {
            &self.names
        }

        fn losses(&self) -> &Losses {
            &self.losses
        }
    }

    #[test]
    fn requests_come_out_in_order_and_none_is_lost() {
        let times: Vec<u64> = (0..20_000u64).map(|i| i * 10 + (i * 7919 % 1000)).collect();
        let fixed =
            Fixed { times: times.clone().into_iter(), losses: Losses::default(), names: Names::default() };
        let mut ordered = Ordered::new(fixed);
        let mut out = Vec::new();
        while ordered.fill(&mut out, 999).unwrap() > 0 {}
        let out: Vec<u64> = out.iter().map(|r| r.time_ns).collect();
        let mut sorted = times;
        sorted.sort_unstable();
        assert_eq!(out, sorted);
    }
}
