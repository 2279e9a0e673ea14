//! A radix tree with 64 children a node, as the page cache of Linux has had it since 2.5: six bits of the number a level.

use super::Find;

/// Bits of a level.
const BITS: u32 = 6;
const CHILDREN: usize = 1 << BITS;
/// No child.
const NONE: u32 = u32::MAX;

/// What is found, with a cache line of its own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Leaf {
    key: u64,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Radix {
    nodes: Vec<[u32; CHILDREN]>,
    leaves: Vec<Leaf>,
    /// Levels of nodes above the leaves.
    levels: u32,
}

impl Radix {
    /// A tree of the keys, each at its place in the list.
    pub(super) fn new(keys: &[u64]) -> Radix {
        let most = keys.iter().copied().max().unwrap_or(0);
        let levels = (64 - most.leading_zeros()).div_ceil(BITS).max(1);
        let mut tree = Radix { nodes: vec![[NONE; CHILDREN]], leaves: Vec::new(), levels };
        for key in keys {
            tree.leaves.push(Leaf { key: *key });
            let leaf = (tree.leaves.len() - 1) as u32;
            let mut at = 0;
            for level in (1..levels).rev() {
                let slot = slot(*key, level);
                if tree.nodes[at][slot] == NONE {
                    tree.nodes.push([NONE; CHILDREN]);
                    tree.nodes[at][slot] = (tree.nodes.len() - 1) as u32;
                }
                at = tree.nodes[at][slot] as usize;
            }
            tree.nodes[at][slot(*key, 0)] = leaf;
        }
        tree
    }
}

fn slot(key: u64, level: u32) -> usize {
    (key >> (level * BITS)) as usize % CHILDREN
}

impl Find for Radix {
    fn find(&mut self, key: u64) -> bool {
        if self.levels * BITS < 64 && key >> (self.levels * BITS) != 0 {
            return false;
        }
        let mut at = 0;
        for level in (1..self.levels).rev() {
            match self.nodes.get(at as usize) {
                Some(node) => at = node[slot(key, level)],
                None => return false,
            }
        }
        let leaf = self.nodes.get(at as usize).map_or(NONE, |node| node[slot(key, 0)]);
        self.leaves.get(leaf as usize).is_some_and(|leaf| leaf.key == key)
    }
}
