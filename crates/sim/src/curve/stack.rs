//! LRU stack distances, exactly and in one pass (Mattson et al. 1970; Olken 1981): how many distinct blocks were used since
//! the last use of this one, itself included. A cache hits exactly the references whose distance is at most its room, so one
//! pass gives the curve of all sizes.
//!
//! Each block owns one bit, at the position of its last use; the distance is the number of bits from there on. Bits are
//! counted by four levels of small groups, each entry of which holds the count of those before it in its group: asking is one
//! load a level, changing is a subtraction from the rest of a group, and neither has a branch. When positions run out, the
//! bits are moved together. Memory is about 5 bytes for each distinct block, whatever the length of the trace.

/// Bits in a word; positions in each group of the levels above: 32 words, then 16 of the level below.
const WORD: usize = 64;
const FIRST: usize = WORD * 32;
const SECOND: usize = FIRST * 16;
const THIRD: usize = SECOND * 16;
const FOURTH: usize = THIRD * 16;

/// Positions at least, and positions for each distinct block: compaction is amortised over the references.
const MIN_POSITIONS: usize = 1 << 14;
const POSITIONS_EACH: usize = 5;
/// References read ahead.
const AHEAD: usize = 32;

/// Not used yet.
const NONE: u32 = u32::MAX;

/// The distance of a first use.
pub const COLD: u32 = 0;

/// The LRU stack.
#[derive(Debug, Default)]
pub struct Stack {
    /// Position of the last use, by dense number.
    last: Vec<u32>,
    /// One bit a position: it is the last use of some block.
    bits: Vec<u64>,
    /// Bits of a first group before each of its words. Entries behind the present word mean nothing yet, here and above.
    first: Vec<[u16; 32]>,
    /// Bits of a second group before each of its first groups; and so on.
    second: Vec<[u16; 16]>,
    third: Vec<[u32; 16]>,
    fourth: Vec<[u32; 16]>,
    /// Bits before each fourth group.
    top: Vec<u32>,
    /// The next position.
    now: usize,
    /// Blocks on the stack.
    held: u32,
}

impl Stack {
    /// An empty stack.
    pub fn new() -> Self {
        Stack::default()
    }

    /// One use of a block with a dense number: its distance, from 1 up, or [`COLD`] for the first.
    #[inline]
    pub fn distance(&mut self, id: u32) -> u32 {
        if self.now == self.bits.len() * WORD {
            self.move_together();
        }
        let at = id as usize;
        if at >= self.last.len() {
            self.last.resize((at + 1).next_power_of_two(), NONE);
        }
        let before = std::mem::replace(&mut self.last[at], self.now as u32);
        let distance = if before == NONE {
            self.held += 1;
            COLD
        } else {
            let distance = self.held - self.below(before as usize);
            self.unset(before as usize);
            distance
        };
        self.bits[self.now / WORD] |= 1 << (self.now % WORD);
        self.now += 1;
        if self.now.is_multiple_of(WORD) {
            self.begin_word();
        }
        distance
    }

    /// Uses in order; `tell` gets the distance of each.
    pub fn distances(&mut self, ids: &[u32], mut tell: impl FnMut(u32)) {
        let mut found = [0; AHEAD];
        for few in ids.chunks(AHEAD) {
            self.read_ahead(few);
            for (distance, id) in found.iter_mut().zip(few) {
                *distance = self.distance(*id);
            }
            // Apart, because the caller's counting waits for memory of its own.
            found[..few.len()].iter().for_each(|distance| tell(*distance));
        }
    }

    /// Reads what the distances of these blocks will need into the processor's cache, so that the waits for memory overlap.
    #[inline]
    fn read_ahead(&self, ids: &[u32]) {
        let mut seen = 0;
        for id in ids {
            let last = self.last.get(*id as usize).copied().unwrap_or(NONE) as usize;
            let word = self.bits.get(last / WORD).copied().unwrap_or(0);
            seen ^= word as u32
                ^ self.first.get(last / FIRST).map_or(0, |group| u32::from(group[last / WORD % 32]));
        }
        std::hint::black_box(seen);
    }

    /// Takes a block off the stack, as if it had never been used.
    pub fn forget(&mut self, id: u32) {
        let Some(last) = self.last.get_mut(id as usize) else { return };
        let before = std::mem::replace(last, NONE);
        if before != NONE {
            self.unset(before as usize);
            self.held -= 1;
        }
    }

    /// Bits below a position.
    #[inline]
    fn below(&self, position: usize) -> u32 {
        let bits = self.bits[position / WORD] & ((1 << (position % WORD)) - 1);
        bits.count_ones()
            + u32::from(self.first[position / FIRST][position / WORD % 32])
            + u32::from(self.second[position / SECOND][position / FIRST % 16])
            + self.third[position / THIRD][position / SECOND % 16]
            + self.fourth[position / FOURTH][position / THIRD % 16]
            + self.top[position / FOURTH]
    }

    #[inline]
    fn unset(&mut self, position: usize) {
        self.bits[position / WORD] &= !(1 << (position % WORD));
        // Entries that mean nothing yet may go below zero: they are set when their turn comes.
        let (word, first) = (position / WORD % 32, position / FIRST % 16);
        for (i, count) in self.first[position / FIRST].iter_mut().enumerate() {
            *count = count.wrapping_sub(u16::from(i > word));
        }
        for (i, count) in self.second[position / SECOND].iter_mut().enumerate() {
            *count = count.wrapping_sub(u16::from(i > first));
        }
        let (second, third) = (position / SECOND % 16, position / THIRD % 16);
        for (i, count) in self.third[position / THIRD].iter_mut().enumerate() {
            *count = count.wrapping_sub(u32::from(i > second));
        }
        for (i, count) in self.fourth[position / FOURTH].iter_mut().enumerate() {
            *count = count.wrapping_sub(u32::from(i > third));
        }
        for count in &mut self.top[position / FOURTH + 1..] {
            *count = count.wrapping_sub(1);
        }
    }

    /// Sets the entries of the word that begins at the present position, which may begin groups as well.
    fn begin_word(&mut self) {
        let (now, last) = (self.now, self.now - 1);
        if now == self.bits.len() * WORD {
            return;
        }
        let count =
            u32::from(self.first[last / FIRST][last / WORD % 32]) + self.bits[last / WORD].count_ones();
        // A group has at most 2048 or 32,768 bits.
        self.first[now / FIRST][now / WORD % 32] = if now.is_multiple_of(FIRST) { 0 } else { count as u16 };
        if !now.is_multiple_of(FIRST) {
            return;
        }
        let count = count + u32::from(self.second[last / SECOND][last / FIRST % 16]);
        self.second[now / SECOND][now / FIRST % 16] =
            if now.is_multiple_of(SECOND) { 0 } else { count as u16 };
        if !now.is_multiple_of(SECOND) {
            return;
        }
        let count = count + self.third[last / THIRD][last / SECOND % 16];
        self.third[now / THIRD][now / SECOND % 16] = if now.is_multiple_of(THIRD) { 0 } else { count };
        if !now.is_multiple_of(THIRD) {
            return;
        }
        let count = count + self.fourth[last / FOURTH][last / THIRD % 16];
        self.fourth[now / FOURTH][now / THIRD % 16] = if now.is_multiple_of(FOURTH) { 0 } else { count };
        if now.is_multiple_of(FOURTH) {
            self.top[now / FOURTH] = self.top[last / FOURTH] + count;
        }
    }

    /// Moves all bits together at the beginning, and makes room behind them.
    #[cold]
    fn move_together(&mut self) {
        let mut below = Vec::with_capacity(self.bits.len());
        let mut count = 0u32;
        for word in &self.bits {
            below.push(count);
            count += word.count_ones();
        }
        for last in self.last.iter_mut().filter(|last| **last != NONE) {
            let (word, bit) = (*last as usize / WORD, *last % WORD as u32);
            *last = below[word] + (self.bits[word] & ((1 << bit) - 1)).count_ones();
        }
        let held = self.held as usize;
        // Positions are of 32 bits, the last of which means none: there are at most 2^30 blocks.
        let most = u32::MAX as usize / WORD;
        let words = (held.saturating_mul(POSITIONS_EACH).max(MIN_POSITIONS) / WORD).min(most);
        self.bits.clear();
        self.bits.resize(words, 0);
        self.bits[..held / WORD].fill(u64::MAX);
        if !held.is_multiple_of(WORD) {
            self.bits[held / WORD] = (1 << (held % WORD)) - 1;
        }
        self.now = held;
        // As if every bit were set: right up to the present word, and of no meaning behind it.
        let groups = |size: usize| (words * WORD).div_ceil(size);
        self.first = vec![std::array::from_fn(|i| (i * WORD) as u16); groups(FIRST)];
        self.second = vec![std::array::from_fn(|i| (i * FIRST) as u16); groups(SECOND)];
        self.third = vec![std::array::from_fn(|i| (i * SECOND) as u32); groups(THIRD)];
        self.fourth = vec![std::array::from_fn(|i| (i * THIRD) as u32); groups(FOURTH)];
        self.top = (0..groups(FOURTH)).map(|i| (i * FOURTH) as u32).collect();
    }

    /// Blocks on the stack.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> u64 {
        let groups = size_of_val(self.first.as_slice()) + size_of_val(self.second.as_slice());
        let upper =
            size_of_val(self.third.as_slice()) + size_of_val(self.fourth.as_slice()) + self.top.len() * 4;
        (self.last.capacity() * 4 + self.bits.capacity() * 8 + groups + upper) as u64
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;
    use proptest::prelude::*;

    use super::*;

    /// The definition: a list, the newest in front.
    fn slow(list: &mut Vec<u32>, id: u32) -> u32 {
        let at = list.iter().position(|i| *i == id);
        if let Some(at) = at {
            list.remove(at);
        }
        list.insert(0, id);
        at.map_or(COLD, |at| at as u32 + 1)
    }

    proptest! {
        #[test]
        fn distances_are_those_of_the_definition(
            steps in prop::collection::vec((0u8..20, prop_oneof![0u32..4, 0u32..50, 0u32..400]), 0..1500),
        ) {
            let (mut stack, mut list) = (Stack::new(), Vec::new());
            for (step, id) in steps {
                if step == 0 {
                    stack.forget(id);
                    list.retain(|i| *i != id);
                } else {
                    prop_assert_eq!(stack.distance(id), slow(&mut list, id));
                }
                prop_assert_eq!(stack.held() as usize, list.len());
            }
        }
    }

    #[test]
    fn nothing_changes_when_positions_run_out_many_times() {
        let mut rng = Rng::new(11);
        let (mut stack, mut list) = (Stack::new(), Vec::new());
        for round in 0..MIN_POSITIONS * 3 {
            let id = (rng.below(60) * rng.below(10)) as u32 + if round % 997 == 0 { 600 } else { 0 };
            assert_eq!(stack.distance(id), slow(&mut list, id));
        }
    }

    #[test]
    fn a_loop_has_one_distance() {
        let mut stack = Stack::new();
        let ids: Vec<u32> = (0..70_000).map(|i| i % 7000).collect();
        let mut seen = std::collections::BTreeMap::new();
        stack.distances(&ids, |distance| *seen.entry(distance).or_insert(0) += 1);
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(COLD, 7000), (7000, 63_000)]);
        assert!(stack.memory_bytes() < 7000 * 20);
    }

    #[test]
    fn every_level_is_carried() {
        // More positions than a group of the highest level has, so that all levels pass their ends.
        let blocks = (FOURTH / POSITIONS_EACH + FOURTH / 10) as u32;
        let mut stack = Stack::new();
        let ids: Vec<u32> = (0..blocks).collect();
        let mut wrong = 0;
        for round in 0..6 {
            stack.distances(&ids, |distance| {
                wrong += u32::from(distance != if round == 0 { COLD } else { blocks })
            });
        }
        assert_eq!(wrong, 0);
        assert!(stack.memory_bytes() <= u64::from(blocks) * 10);
    }
}
