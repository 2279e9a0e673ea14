//! A map from function names to values: exact names, and prefixes written `ext4_*`.
//!
//! An exact name beats every prefix, a longer prefix beats a shorter one. Look-up is one hash and one walk down a
//! trie; nothing is allocated. What may not enter: what the values mean.

use std::collections::HashMap;

/// Names and prefixes with a value each.
#[derive(Clone, Debug)]
pub(crate) struct Patterns<T> {
    exact: HashMap<Box<str>, T>,
    nodes: Vec<Node<T>>,
}

/// A node of the trie: the children are few, so a list is searched faster than a table.
#[derive(Clone, Debug)]
struct Node<T> {
    children: Vec<(u8, u32)>,
    value: Option<T>,
}

impl<T> Default for Patterns<T> {
    fn default() -> Self {
        Patterns { exact: HashMap::new(), nodes: vec![Node { children: Vec::new(), value: None }] }
    }
}

impl<T: Copy> Patterns<T> {
    /// Adds a name, or a prefix where it ends in `*`. What was there before is replaced and handed back.
    pub(crate) fn insert(&mut self, pattern: &str, value: T) -> Option<T> {
        let Some(prefix) = pattern.strip_suffix('*') else {
            return self.exact.insert(pattern.into(), value);
        };
        let mut at = 0;
        for byte in prefix.bytes() {
            at = match self.nodes[at].children.iter().find(|(b, _)| *b == byte) {
                Some((_, next)) => *next as usize,
                None => {
                    let next = self.nodes.len();
                    self.nodes.push(Node { children: Vec::new(), value: None });
                    self.nodes[at].children.push((byte, next as u32));
                    next
                }
            };
        }
        self.nodes[at].value.replace(value)
    }

    /// The value of the exact name alone.
    pub(crate) fn exact(&self, name: &str) -> Option<T> {
        self.exact.get(name).copied()
    }

    /// What the functions of a pattern would have without it: the value of the longest prefix that is shorter.
    pub(crate) fn get_without(&self, pattern: &str) -> Option<T> {
        let (name, below) = match pattern.strip_suffix('*') {
            Some(prefix) => (prefix, prefix.len().checked_sub(1)?),
            None => (pattern, pattern.len()),
        };
        self.longest_prefix(&name[..below])
    }

    /// The value of the exact name, else of the longest prefix.
    pub(crate) fn get(&self, name: &str) -> Option<T> {
        self.exact(name).or_else(|| self.longest_prefix(name))
    }

    fn longest_prefix(&self, name: &str) -> Option<T> {
        let mut node = &self.nodes[0];
        let mut best = node.value;
        for byte in name.bytes() {
            let Some((_, next)) = node.children.iter().find(|(b, _)| *b == byte) else { break };
            node = &self.nodes[*next as usize];
            best = node.value.or(best);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exact_beats_prefix_and_long_beats_short() {
        let mut p = Patterns::default();
        for (pattern, value) in [("ext4_*", 1), ("ext4_file_*", 2), ("ext4_file_read_iter", 3), ("a", 4)] {
            assert_eq!(p.insert(pattern, value), None);
        }
        let got =
            ["ext4_map", "ext4_file_write", "ext4_file_read_iter", "ext4", "a", "ab", ""].map(|n| p.get(n));
        assert_eq!(got, [Some(1), Some(2), Some(3), None, Some(4), None, None]);
        assert_eq!(p.insert("ext4_*", 9), Some(1));
    }

    proptest! {
        #[test]
        fn agrees_with_a_linear_search(
            patterns in prop::collection::hash_map("[ab_]{0,4}\\*?", 0u32..100, 0..12),
            name in "[ab_]{0,6}",
        ) {
            let mut map = Patterns::default();
            for (pattern, value) in &patterns {
                map.insert(pattern, *value);
            }
            let slow = patterns.get(&name).copied().or_else(|| {
                patterns
                    .iter()
                    .filter_map(|(p, v)| p.strip_suffix('*').filter(|p| name.starts_with(p)).map(|p| (p.len(), *v)))
                    .max_by_key(|(length, _)| *length)
                    .map(|(_, v)| v)
            });
            prop_assert_eq!(map.get(&name), slow);
        }
    }
}
