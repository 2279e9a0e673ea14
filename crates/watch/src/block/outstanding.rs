//! Requests under way, found by device and first sector, with a bound on their number: the oldest go first.

use std::collections::{HashMap, VecDeque};

type Key = ((u32, u32), u64);

/// A bounded table of requests.
#[derive(Debug)]
pub(super) struct Outstanding<T> {
    /// With the number of the turn in which each was put.
    entries: HashMap<Key, (u64, T)>,
    /// Keys in the order of their turns. A turn that is not that of the entry is stale.
    order: VecDeque<(u64, Key)>,
    turn: u64,
    limit: usize,
}

impl<T> Outstanding<T> {
    /// An empty table of at most `limit` requests.
    pub(super) fn new(limit: usize) -> Self {
        Outstanding { entries: HashMap::new(), order: VecDeque::new(), turn: 0, limit: limit.max(1) }
    }

    /// Remembers a request. One with the same key is forgotten: its end was not seen.
    pub(super) fn put(&mut self, device: (u32, u32), sector: u64, value: T) {
        let key = (device, sector);
        self.turn += 1;
        self.entries.insert(key, (self.turn, value));
        self.order.push_back((self.turn, key));
        while self.entries.len() > self.limit
            && let Some((turn, oldest)) = self.order.pop_front()
        {
            if self.entries.get(&oldest).is_some_and(|entry| entry.0 == turn) {
                self.entries.remove(&oldest);
            }
        }
        if self.order.len() > 2 * self.limit {
            let entries = &self.entries;
            self.order.retain(|(turn, key)| entries.get(key).is_some_and(|entry| entry.0 == *turn));
        }
    }

    /// Takes out the request with this key.
    pub(super) fn take(&mut self, device: (u32, u32), sector: u64) -> Option<T> {
        self.entries.remove(&(device, sector)).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_memory_stays_bounded() {
        let mut table = Outstanding::new(4);
        for i in 0..100_u64 {
            table.put((8, 0), i, i);
            assert!(table.entries.len() <= 4 && table.order.len() <= 8);
        }
        assert_eq!(table.take((8, 0), 95), None);
        assert_eq!(table.take((8, 0), 96), Some(96));
        assert_eq!(table.take((8, 1), 97), None, "another device");
        assert_eq!(table.take((8, 0), 96), None, "taken once");
    }

    #[test]
    fn the_same_key_again_replaces_and_is_as_young_as_its_last_turn() {
        let mut table = Outstanding::new(2);
        table.put((8, 0), 1, 'a');
        table.put((8, 0), 2, 'b');
        table.put((8, 0), 1, 'c');
        table.put((8, 0), 3, 'd');
        assert_eq!(table.take((8, 0), 1), Some('c'));
        assert_eq!(table.take((8, 0), 2), None);
        let mut busy = Outstanding::new(4);
        for i in 0..1000_u64 {
            busy.put((8, 0), 7, i);
            assert!(busy.order.len() <= 8);
        }
    }
}
