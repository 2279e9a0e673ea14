//! Requests under way, found by device and first sector, with a bound on their number: the oldest go first.

use std::collections::{BTreeMap, VecDeque};

type Key = ((u32, u32), u64);

/// A bounded table of requests.
#[derive(Debug)]
pub(super) struct Outstanding<T> {
    /// With the number of the turn in which each was put.
    entries: BTreeMap<Key, (u64, T)>,
    /// Keys in the order of their turns. A turn that is not that of the entry is stale.
    order: VecDeque<(u64, Key)>,
    turn: u64,
    limit: usize,
}

impl<T> Outstanding<T> {
    /// An empty table of at most `limit` requests.
    pub(super) fn new(limit: usize) -> Self {
        Outstanding { entries: BTreeMap::new(), order: VecDeque::new(), turn: 0, limit: limit.max(1) }
    }

    /// Remembers a request. Returns those that are forgotten for it, because their ends were not seen: the one with the same
    /// key, which may have been issued again, and the oldest beyond the limit.
    pub(super) fn put(&mut self, device: (u32, u32), sector: u64, value: T) -> (Option<T>, Vec<T>) {
        let key = (device, sector);
        self.turn += 1;
        let same = self.entries.insert(key, (self.turn, value)).map(|(_, value)| value);
        let mut oldest_ones = Vec::new();
        self.order.push_back((self.turn, key));
        while self.entries.len() > self.limit
            && let Some((turn, oldest)) = self.order.pop_front()
        {
            if self.entries.get(&oldest).is_some_and(|entry| entry.0 == turn) {
                oldest_ones.extend(self.entries.remove(&oldest).map(|(_, value)| value));
            }
        }
        if self.order.len() > 2 * self.limit {
            let entries = &self.entries;
            self.order.retain(|(turn, key)| entries.get(key).is_some_and(|entry| entry.0 == *turn));
        }
        (same, oldest_ones)
    }

    /// The request with this key.
    pub(super) fn get_mut(&mut self, device: (u32, u32), sector: u64) -> Option<&mut T> {
        self.entries.get_mut(&(device, sector)).map(|(_, value)| value)
    }

    /// Takes out the request with this key.
    pub(super) fn take(&mut self, device: (u32, u32), sector: u64) -> Option<T> {
        self.entries.remove(&(device, sector)).map(|(_, value)| value)
    }

    /// Takes out a request that begins between these sectors, both excluded.
    pub(super) fn take_between(&mut self, device: (u32, u32), after: u64, before: u64) -> Option<T> {
        let first = after.checked_add(1).filter(|first| *first < before)?;
        let key = *self.entries.range((device, first)..(device, before)).next()?.0;
        self.entries.remove(&key).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_memory_stays_bounded() {
        let mut table = Outstanding::new(4);
        for i in 0..100_u64 {
            let (same, oldest_ones) = table.put((8, 0), i, i);
            assert_eq!((same, oldest_ones), (None, i.checked_sub(4).into_iter().collect()));
            assert!(table.entries.len() <= 4 && table.order.len() <= 8);
        }
        assert_eq!(table.take((8, 0), 95), None);
        assert_eq!(table.take((8, 0), 96), Some(96));
        assert_eq!(table.take((8, 1), 97), None, "another device");
        assert_eq!(table.take((8, 0), 96), None, "taken once");
    }

    #[test]
    fn requests_inside_another_are_found() {
        let mut table = Outstanding::new(9);
        for sector in [8, 16, 24] {
            table.put((8, 0), sector, sector);
        }
        let mut inside = || table.take_between((8, 0), 8, 24);
        assert_eq!((inside(), inside()), (Some(16), None));
        assert_eq!(table.take_between((8, 1), 0, u64::MAX), None);
        assert_eq!(table.take_between((8, 0), u64::MAX, u64::MAX), None);
    }

    #[test]
    fn the_same_key_again_replaces_and_is_as_young_as_its_last_turn() {
        let mut table = Outstanding::new(2);
        table.put((8, 0), 1, 'a');
        table.put((8, 0), 2, 'b');
        assert_eq!(table.put((8, 0), 1, 'c'), (Some('a'), vec![]));
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
