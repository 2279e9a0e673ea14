//! Address spaces: which object is mapped where, per process. Filled from map events, copied on fork, cleared on exec.

use std::collections::HashMap;
use std::rc::Rc;

/// Most mappings of one process that are kept.
const MAX_MAPPINGS: usize = 4096;
/// Most processes of which mappings are kept.
const MAX_SPACES: usize = 16_384;

/// A piece of an object in an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset in the object of `start`.
    pub(crate) offset: u64,
    /// Index of the object.
    pub(crate) object: u32,
}

/// One address space. Children share it until one of them maps something.
#[derive(Clone, Debug, Default)]
struct Space {
    /// Sorted by start, without overlap.
    mappings: Rc<Vec<Mapping>>,
    /// Changes whenever an address may mean something else than before.
    generation: u64,
}

/// All address spaces, by process.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    spaces: HashMap<u32, Space>,
    generations: u64,
}

impl Spaces {
    fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    /// A number that stands for the whole meaning of the process's addresses; 0 when nothing is known of it.
    pub(crate) fn generation(&self, pid: u32) -> u64 {
        self.spaces.get(&pid).map_or(0, |s| s.generation)
    }

    /// Puts a mapping over whatever was there.
    pub(crate) fn map(&mut self, pid: u32, new: Mapping) {
        if new.start >= new.end || (self.spaces.len() >= MAX_SPACES && !self.spaces.contains_key(&pid)) {
            return;
        }
        let generation = self.next_generation();
        let space = self.spaces.entry(pid).or_default();
        space.generation = generation;
        let mappings = Rc::make_mut(&mut space.mappings);
        if mappings.len() >= MAX_MAPPINGS {
            return;
        }
        let first = mappings.partition_point(|m| m.end <= new.start);
        let last = mappings.partition_point(|m| m.start < new.end);
        let mut pieces = Vec::with_capacity(3);
        // What the new one leaves of those it covers: at most a head of the first and a tail of the last.
        if let Some(m) = mappings.get(first).filter(|m| first < last && m.start < new.start) {
            pieces.push(Mapping { end: new.start, ..*m });
        }
        pieces.push(new);
        if let Some(m) = last
            .checked_sub(1)
            .filter(|l| *l >= first)
            .and_then(|l| mappings.get(l))
            .filter(|m| m.end > new.end)
        {
            pieces.push(Mapping { start: new.end, offset: m.offset.saturating_add(new.end - m.start), ..*m });
        }
        mappings.splice(first..last.max(first), pieces);
    }

    /// A child begins with its parent's mappings.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        match self.spaces.get(&parent).cloned() {
            Some(space) if self.spaces.len() < MAX_SPACES => {
                self.spaces.insert(child, space);
            }
            _ => {
                self.spaces.remove(&child);
            }
        }
    }

    /// The process executed another program, or ended: nothing is mapped any more.
    pub(crate) fn clear(&mut self, pid: u32) {
        self.spaces.remove(&pid);
    }

    /// What is mapped at an address: the object and the offset in it.
    pub(crate) fn find(&self, pid: u32, address: u64) -> Option<(u32, u64)> {
        let mappings = &self.spaces.get(&pid)?.mappings;
        let m = mappings.get(mappings.partition_point(|m| m.end <= address))?;
        (m.start <= address).then(|| (m.object, m.offset.saturating_add(address - m.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: u64, end: u64, object: u32) -> Mapping {
        Mapping { start, end, offset: start, object }
    }

    #[test]
    fn a_new_mapping_covers_the_old_and_leaves_its_ends() {
        let mut s = Spaces::default();
        s.map(1, at(100, 200, 1));
        s.map(1, at(300, 400, 2));
        s.map(1, at(150, 350, 3));
        for (address, found) in [
            (99, None),
            (100, Some((1, 100))),
            (149, Some((1, 149))),
            (150, Some((3, 150))),
            (349, Some((3, 349))),
            (350, Some((2, 350))),
            (400, None),
        ] {
            assert_eq!(s.find(1, address), found, "{address}");
        }
        s.map(1, at(160, 170, 4));
        assert_eq!(s.find(1, 165), Some((4, 165)));
        assert_eq!(s.find(1, 170), Some((3, 170)));
    }

    #[test]
    fn a_child_has_its_parents_mappings_until_it_executes() {
        let mut s = Spaces::default();
        s.map(1, at(100, 200, 1));
        s.fork(1, 2);
        assert_eq!(s.generation(1), s.generation(2));
        s.map(2, at(500, 600, 2));
        assert_eq!((s.find(1, 550), s.find(2, 550)), (None, Some((2, 550))));
        assert_ne!(s.generation(1), s.generation(2));
        s.clear(2);
        assert_eq!((s.find(2, 150), s.find(1, 150)), (None, Some((1, 150))));
    }
}
