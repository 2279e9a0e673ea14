//! A splay tree, top-down (D. Sleator and R. Tarjan, Self-adjusting binary search trees, J. ACM 32, 1985): every look-up brings
//! what it found to the root, so that a sequential look-up finds its key near the top and a random one walks far.

use super::Find;

/// No node.
const NONE: u32 = u32::MAX;

/// A node with a cache line of its own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node {
    key: u64,
    left: u32,
    right: u32,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Splay {
    /// The last one is the header of [`Splay::splay`], and no key.
    nodes: Vec<Node>,
    root: u32,
}

impl Splay {
    /// A balanced tree of the keys, each at its place in the list.
    pub(super) fn new(keys: &[u64]) -> Splay {
        let mut nodes: Vec<Node> =
            keys.iter().map(|key| Node { key: *key, left: NONE, right: NONE }).collect();
        let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
        order.sort_unstable_by_key(|index| keys[*index as usize]);
        let root = balanced(&mut nodes, &order);
        nodes.push(Node { key: 0, left: NONE, right: NONE });
        Splay { nodes, root }
    }

    fn node(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }

    /// Brings the key, or the last node on the way to it, to the root.
    fn splay(&mut self, key: u64) {
        let header = (self.nodes.len() - 1) as u32;
        self.node(header).left = NONE;
        self.node(header).right = NONE;
        let (mut low, mut high, mut top) = (header, header, self.root);
        loop {
            let here = self.nodes[top as usize];
            if key < here.key {
                let mut next = here.left;
                if next == NONE {
                    break;
                }
                let below = self.nodes[next as usize];
                if key < below.key {
                    // Rotate right.
                    self.node(top).left = below.right;
                    self.node(next).right = top;
                    top = next;
                    next = below.left;
                    if next == NONE {
                        break;
                    }
                }
                self.node(high).left = top;
                high = top;
                top = next;
            } else if key > here.key {
                let mut next = here.right;
                if next == NONE {
                    break;
                }
                let below = self.nodes[next as usize];
                if key > below.key {
                    // Rotate left.
                    self.node(top).right = below.left;
                    self.node(next).left = top;
                    top = next;
                    next = below.right;
                    if next == NONE {
                        break;
                    }
                }
                self.node(low).right = top;
                low = top;
                top = next;
            } else {
                break;
            }
        }
        let found = self.nodes[top as usize];
        self.node(low).right = found.left;
        self.node(high).left = found.right;
        let sides = self.nodes[header as usize];
        self.node(top).left = sides.right;
        self.node(top).right = sides.left;
        self.root = top;
    }
}

/// Links what stands in order into a balanced tree, and returns its root. As deep as the logarithm of their number.
fn balanced(nodes: &mut [Node], order: &[u32]) -> u32 {
    if order.is_empty() {
        return NONE;
    }
    let middle = order.len() / 2;
    let left = balanced(nodes, &order[..middle]);
    let right = balanced(nodes, &order[middle + 1..]);
    let root = order[middle];
    nodes[root as usize].left = left;
    nodes[root as usize].right = right;
    root
}

impl Find for Splay {
    fn find(&mut self, key: u64) -> bool {
        if self.root == NONE {
            return false;
        }
        self.splay(key);
        self.nodes[self.root as usize].key == key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_at_the_root_and_no_key_is_lost() {
        let keys: Vec<u64> = (0..1000).map(|k| k * 7919 % 1009).collect();
        let mut tree = Splay::new(&keys);
        for key in keys.iter().chain(keys.iter().rev()) {
            assert!(tree.find(*key));
            assert_eq!(tree.nodes[tree.root as usize].key, *key);
        }
        let (mut open, mut seen) = (vec![tree.root], 0);
        while let Some(index) = open.pop() {
            if index != NONE {
                seen += 1;
                let node = tree.nodes[index as usize];
                open.extend([node.left, node.right]);
            }
        }
        assert_eq!(seen, keys.len());
    }
}
