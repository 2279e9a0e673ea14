//! Fixed lists of requests, from a trace or a layout.
//!
//! Invariant: the order of each list is kept, and every request is made once.

use std::sync::Arc;

use crate::access::Request;

/// A list for each thread of a cell.
#[derive(Debug)]
pub struct RequestLists {
    lists: Vec<Vec<Request>>,
    /// When the requests of the first list are planned, from the start; `None`: as soon as the ones before are answered.
    instants_ns: Option<Arc<[u64]>>,
}

impl RequestLists {
    /// Threads that each make the requests of their list, the next one as soon as one is answered.
    pub fn closed(lists: Vec<Vec<Request>>) -> RequestLists {
        RequestLists { lists, instants_ns: None }
    }

    /// One thread whose requests each have an instant, in nanoseconds from the start; none is before the one before it.
    pub fn open(requests: Vec<(u64, Request)>) -> RequestLists {
        let mut last = 0;
        let instants: Vec<u64> = requests
            .iter()
            .map(|(at_ns, _)| {
                last = (*at_ns).max(last);
                last
            })
            .collect();
        let list = requests.into_iter().map(|(_, request)| request).collect();
        RequestLists { lists: vec![list], instants_ns: Some(instants.into()) }
    }

    /// The requests of a thread.
    pub fn for_thread(&self, thread: usize) -> &[Request] {
        self.lists.get(thread).map_or(&[], Vec::as_slice)
    }

    /// When they are planned.
    pub(crate) fn instants(&self) -> Option<Arc<[u64]>> {
        self.instants_ns.clone()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.lists.iter().flatten().map(|request| request.bytes as u64).sum()
    }

    /// Share of their bytes that were requested before.
    pub fn repeated(&self) -> f64 {
        let mut ranges: Vec<(u64, u64)> = self
            .lists
            .iter()
            .flatten()
            .map(|r| (r.offset, r.offset.saturating_add(r.bytes as u64)))
            .collect();
        ranges.sort_unstable();
        let (mut distinct, mut seen_to) = (0u64, 0u64);
        for (start, end) in ranges {
            distinct += end.saturating_sub(start.max(seen_to));
            seen_to = seen_to.max(end);
        }
        match self.bytes() {
            0 => 0.0,
            all => 1.0 - distinct as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset: u64, bytes: usize) -> Request {
        Request { offset, bytes, write: false }
    }

    #[test]
    fn repeats_are_bytes_that_were_asked_for_before() {
        let listed = RequestLists::closed(vec![vec![read(0, 100), read(50, 100)], vec![read(200, 200)]]);
        assert_eq!((listed.bytes(), listed.repeated()), (400, 0.125));
        assert_eq!(RequestLists::closed(Vec::new()).repeated(), 0.0);
        assert!(listed.for_thread(7).is_empty());
    }

    #[test]
    fn instants_never_run_backwards() {
        let listed = RequestLists::open(vec![(5, read(0, 1)), (3, read(1, 1)), (9, read(2, 1))]);
        assert_eq!(listed.instants().unwrap().as_ref(), [5, 5, 9]);
    }
}
