//! Belady's MIN (1966): evicts the block whose next use is farthest away. No policy that keeps what it has just fetched can miss less. It needs
//! the future, so it runs over a whole list of next uses and is no [`BlockCache`](super::BlockCache).
//!
//! The cache is a set of moments: block `b`, to be used again at reference `t`, is there exactly if bit `t` is set. So a
//! look-up is one bit, the victim is the highest bit, and no block is ever looked up by its number.

/// [`next_uses`] of a block that is not used again.
pub const NEVER: u32 = u32::MAX;

/// Turns a list of dense block numbers into the list of next uses, in place: entry `t` becomes the index of the next
/// reference to the same block, or [`NEVER`]. `distinct` is one more than the highest number.
///
/// `None` when there are too many references for indices of 32 bits, or a number is not below `distinct`.
pub fn next_uses(mut ids: Vec<u32>, distinct: u32) -> Option<Vec<u32>> {
    if ids.len() >= NEVER as usize {
        return None;
    }
    let mut next = vec![NEVER; distinct as usize];
    for (at, id) in ids.iter_mut().enumerate().rev() {
        let seen = next.get_mut(*id as usize)?;
        *id = std::mem::replace(seen, at as u32);
    }
    Some(ids)
}

/// Misses of this list in a cache with room for `capacity` blocks, at least one. `next` comes from [`next_uses`].
pub fn misses(next: &[u32], room: u64) -> u64 {
    misses_of_sizes(next, None, room).0
}

/// The same with the bytes that each reference moves: how many miss, and their bytes. Sizes do not influence who leaves.
pub fn misses_of_sizes(next: &[u32], bytes: Option<&[u64]>, room: u64) -> (u64, u64) {
    let room = room.max(1);
    let mut held = Moments::new(next.len());
    // Those that are there but not used again. They leave first.
    let mut idle = 0;
    let mut misses = 0;
    let mut missed_bytes: u64 = 0;
    for (at, &again) in next.iter().enumerate() {
        if !held.clear(at) {
            misses += 1;
            let bytes = bytes.and_then(|bytes| bytes.get(at)).copied().unwrap_or(0);
            missed_bytes = missed_bytes.saturating_add(bytes);
            if held.count + idle >= room {
                if idle > 0 {
                    idle -= 1;
                } else if let Some(last) = held.highest() {
                    held.clear(last);
                }
            }
        }
        match again {
            NEVER => idle += 1,
            again => held.set(again as usize),
        }
    }
    (misses, missed_bytes)
}

/// A set of moments that knows its highest: bits in words, and above each level one that says which words are not empty.
#[derive(Debug)]
struct Moments {
    /// The bits themselves first; the last level is one word.
    levels: Vec<Vec<u64>>,
    count: u64,
}

impl Moments {
    fn new(moments: usize) -> Self {
        let mut levels = Vec::new();
        let mut bits = moments.max(1);
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0u64; words]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        Moments { levels, count: 0 }
    }

    #[inline]
    fn set(&mut self, moment: usize) {
        let mut at = moment;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            let filled = *word != 0;
            *word |= 1 << (at % 64);
            if filled {
                break;
            }
            at /= 64;
        }
        self.count += 1;
    }

    /// Takes a moment out; false when it was not in.
    #[inline]
    fn clear(&mut self, moment: usize) -> bool {
        if self.levels[0][moment / 64] >> (moment % 64) & 1 == 0 {
            return false;
        }
        let mut at = moment;
        for level in &mut self.levels {
            let word = &mut level[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
        self.count -= 1;
        true
    }

    #[inline]
    fn highest(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * 64 + word.ilog2() as usize;
        }
        Some(at)
    }
}

/// Bytes of memory of a run beside the list of next uses.
pub fn memory_bytes(references: u64) -> u64 {
    references / 8 + references / 8 / 63 + 64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The definition: keep a set, look for the one used again last.
    fn slow(ids: &[u32], room: usize) -> u64 {
        let again = |at: usize, id: u32| {
            ids[at + 1..].iter().position(|i| *i == id).map_or(usize::MAX, |d| at + 1 + d)
        };
        let mut held: HashMap<u32, usize> = HashMap::new();
        let mut misses = 0;
        for (at, &id) in ids.iter().enumerate() {
            let hit = held.remove(&id).is_some();
            misses += u64::from(!hit);
            if !hit
                && held.len() == room
                && let Some(last) = held.iter().max_by_key(|(id, next)| (**next, **id)).map(|(id, _)| *id)
            {
                held.remove(&last);
            }
            held.insert(id, again(at, id));
        }
        misses
    }

    #[test]
    fn the_example_of_the_textbook() {
        // Silberschatz, Galvin, Gagne: 20 references, three frames, nine faults.
        let ids = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
        let next = next_uses(ids.to_vec(), 8).unwrap();
        assert_eq!(misses(&next, 3), 9);
        assert_eq!(misses(&next, 100), 6);
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(next_uses(vec![0, 3], 3), None);
        assert_eq!(next_uses(vec![], 0), Some(vec![]));
        assert_eq!(misses(&[], 5), 0);
    }

    proptest! {
        #[test]
        fn as_many_misses_as_by_definition(ids in prop::collection::vec(0u32..40, 0..400), room in 1usize..30) {
            let next = next_uses(ids.clone(), 40).unwrap();
            prop_assert_eq!(misses(&next, room as u64), slow(&ids, room));
        }
    }
}
