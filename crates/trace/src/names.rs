//! The names of objects, where a trace has some: files, devices.
//!
//! Invariant: bounded, see [`MAX_NAMES`] and [`MAX_BYTES`]. A name that finds no room still gets a number of its own
//! (its hash), so that requests are never mixed up.

use std::collections::HashMap;

use crate::hash;
use rustc_hash::FxHashMap;

/// The most names that are kept.
pub(crate) const MAX_NAMES: usize = 1 << 20;

/// The most bytes of names that are kept.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// Names by number. Numbers of names that the table gave itself count from 0 in order of appearance.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: FxHashMap<u64, Box<str>>,
    numbers: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    refused: u64,
}

impl Names {
    /// The name of an object.
    pub fn get(&self, object: u64) -> Option<&str> {
        self.texts.get(&object).map(AsRef::as_ref)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// How many found no room.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// All names with their numbers, by number.
    pub fn list(&self) -> Vec<(u64, &str)> {
        let mut all: Vec<(u64, &str)> = self.texts.iter().map(|(id, name)| (*id, name.as_ref())).collect();
        all.sort_unstable();
        all
    }

    /// Gives a number a name; a number keeps its first one.
    pub fn put(&mut self, object: u64, name: &[u8]) {
        if self.texts.contains_key(&object) {
            return;
        }
        if self.texts.len() >= MAX_NAMES || self.bytes + name.len() > MAX_BYTES {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        self.bytes += name.len();
        self.texts.insert(object, String::from_utf8_lossy(name).into());
    }

    /// The number of a name: the one it has, or the next. Do not mix with [`Names::put`] of numbers of your own.
    pub(crate) fn number(&mut self, name: &[u8]) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        // Twice the bytes: the text and the key.
        if self.texts.len() >= MAX_NAMES || self.bytes + 2 * name.len() > MAX_BYTES {
            self.refused = self.refused.saturating_add(1);
            // The topmost bit keeps it apart from the numbers that count.
            return hash::of_name(name) | 1 << 63;
        }
        let number = self.texts.len() as u64;
        self.bytes += 2 * name.len();
        self.texts.insert(number, String::from_utf8_lossy(name).into());
        self.numbers.insert(name.into(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_from_nought_and_keep_their_numbers() {
        let mut names = Names::default();
        assert_eq!([names.number(b"/a"), names.number(b"/b"), names.number(b"/a")], [0, 1, 0]);
        assert_eq!((names.get(1), names.get(2), names.len()), (Some("/b"), None, 2));
    }

    #[test]
    fn a_full_table_gives_numbers_without_names() {
        let mut names = Names { bytes: MAX_BYTES - 3, ..Names::default() };
        assert_eq!(names.number(b"a"), 0);
        let big = names.number(b"b");
        assert!(big > 1 << 62 && names.number(b"b") == big && names.get(big).is_none());
        assert_eq!(names.refused(), 2);
        names.put(77, b"cc");
        assert_eq!((names.get(77), names.refused()), (None, 3));
    }
}
