//! LRU stack distances, exactly and in one pass (Mattson et al. 1970; Olken 1981): how many distinct blocks were used since
//! the last use of this one, itself included. A cache hits exactly the references whose distance is at most its room, so one
//! pass gives the curve of all sizes.
//!
//! Each block owns one bit, at the position of its last use; the distance is the number of bits from there on. Bits are
//! counted in cells of a few words, and cells in a Fenwick tree, so that both stay in the processor's cache. When positions
//! run out, the bits are moved together. Memory is about 5 bytes for each distinct block, whatever the length of the trace.

/// Words of 64 bits in a cell.
const CELL_WORDS: usize = 4;
const CELL_BITS: usize = CELL_WORDS * 64;
/// Positions at least, and positions for each distinct block: moving together costs each block once in so many references.
const LEAST_POSITIONS: usize = 1 << 14;
const POSITIONS_EACH: usize = 6;
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
    /// Fenwick tree over the counts of cells that are behind the present one; entry `i` belongs to cell `i - 1`.
    tree: Vec<u32>,
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
        if self.now == self.bits.len() * 64 {
            self.move_together();
        }
        let at = id as usize;
        if at >= self.last.len() {
            self.last.resize((at + 1).next_power_of_two(), NONE);
        }
        let before = self.last[at];
        self.last[at] = self.now as u32;
        let distance = if before == NONE {
            self.held += 1;
            COLD
        } else {
            let distance = self.held - self.below(before as usize);
            self.unset(before as usize);
            distance
        };
        self.bits[self.now / 64] |= 1 << (self.now % 64);
        self.now += 1;
        if self.now.is_multiple_of(CELL_BITS) {
            self.close_cell();
        }
        distance
    }

    /// Uses in order; `tell` gets the distance of each.
    pub fn distances(&mut self, ids: &[u32], mut tell: impl FnMut(u32)) {
        for few in ids.chunks(AHEAD) {
            let mut seen = 0;
            for id in few {
                seen ^= self.last.get(*id as usize).copied().unwrap_or(0);
            }
            std::hint::black_box(seen);
            for id in few {
                tell(self.distance(*id));
            }
        }
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
        let cell = position / CELL_BITS;
        let mut count = 0;
        let mut node = cell;
        while node > 0 {
            count += self.tree[node];
            node &= node - 1;
        }
        let words = &self.bits[cell * CELL_WORDS..(cell + 1) * CELL_WORDS];
        let (word, bit) = (position / 64 % CELL_WORDS, position % 64);
        for (i, bits) in words.iter().enumerate() {
            // All, none, or those below: without a branch.
            let mask = match i.cmp(&word) {
                std::cmp::Ordering::Less => u64::MAX,
                std::cmp::Ordering::Equal => (1 << bit) - 1,
                std::cmp::Ordering::Greater => 0,
            };
            count += (bits & mask).count_ones();
        }
        count
    }

    #[inline]
    fn unset(&mut self, position: usize) {
        self.bits[position / 64] &= !(1 << (position % 64));
        let cell = position / CELL_BITS;
        if cell < self.now / CELL_BITS {
            let mut node = cell + 1;
            while node < self.tree.len() {
                // Each of them counts this bit.
                self.tree[node] -= 1;
                node += node & node.wrapping_neg();
            }
        }
    }

    /// Counts the cell that was just filled.
    fn close_cell(&mut self) {
        let cell = self.now / CELL_BITS - 1;
        let count: u32 =
            self.bits[cell * CELL_WORDS..(cell + 1) * CELL_WORDS].iter().map(|w| w.count_ones()).sum();
        let mut node = cell + 1;
        while node < self.tree.len() {
            self.tree[node] += count;
            node += node & node.wrapping_neg();
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
            let (word, bit) = (*last as usize / 64, *last % 64);
            *last = below[word] + (self.bits[word] & ((1 << bit) - 1)).count_ones();
        }
        let held = self.held as usize;
        // Positions are of 32 bits, the last of which means none: there are at most 2^30 blocks.
        let wanted = (held * POSITIONS_EACH).clamp(LEAST_POSITIONS, u32::MAX as usize - CELL_BITS);
        let cells = wanted.div_ceil(CELL_BITS);
        self.bits.clear();
        self.bits.resize(cells * CELL_WORDS, 0);
        self.bits[..held / 64].fill(u64::MAX);
        if !held.is_multiple_of(64) {
            self.bits[held / 64] = (1 << (held % 64)) - 1;
        }
        self.now = held;
        self.tree.clear();
        self.tree.resize(cells + 1, 0);
        for cell in 0..held / CELL_BITS {
            self.tree[cell + 1] = CELL_BITS as u32;
        }
        for node in 1..self.tree.len() {
            let up = node + (node & node.wrapping_neg());
            if up < self.tree.len() {
                self.tree[up] += self.tree[node];
            }
        }
    }

    /// Blocks on the stack.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> u64 {
        (self.last.capacity() * 4 + self.bits.capacity() * 8 + self.tree.capacity() * 4) as u64
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
        for round in 0..LEAST_POSITIONS * 3 {
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
}
