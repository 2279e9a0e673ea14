//! Whether names that are looked at were looked at before. What tells a name from another is a hash of its path, of 48 bits, which the observer in the kernel
//! makes (`bpf/names.h`).

use std::collections::HashMap;

use iowhy_core::profile::Looks;

use super::CallRecord;
use crate::calls::Shape;

/// Names that are told apart, some 8 MiB of them. Those beyond count as looked at for the first time.
const MAX_NAMES: usize = 1 << 18;

/// The names of a record.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Whether there was none at the last look, by what tells a name from another.
    known: HashMap<u64, bool>,
    looks: Looks,
}

impl Names {
    /// Takes a call. One that opened something, and one whose name could not be read, is no look at a name.
    pub(super) fn look(&mut self, record: &CallRecord) {
        let missing = record.value < 0;
        let looks = match Shape::from_number(i64::from(record.number)) {
            Shape::LookUp { .. } => true,
            Shape::Open { path: Some(_) } => missing,
            _ => false,
        };
        if !looks || record.position == 0 {
            return;
        }
        let full = self.known.len() >= MAX_NAMES;
        let again = match self.known.get_mut(&record.position) {
            Some(was) => std::mem::replace(was, missing) == missing,
            None => {
                if !full {
                    self.known.insert(record.position, missing);
                }
                false
            }
        };
        self.looks.calls += 1;
        self.looks.again += u64::from(again);
    }

    /// How many looks there were; `None`: none.
    pub(super) fn looks(&self) -> Option<Looks> {
        (self.looks.calls > 0).then_some(self.looks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_looked_at_before_with_the_same_outcome_is_told() {
        let mut names = Names::default();
        let call = |number: libc::c_long, name: u64, value: i64| CallRecord {
            number: number as u32,
            position: name,
            value,
            ..CallRecord::default()
        };
        let none = -i64::from(libc::ENOENT);
        for (number, name, value) in [
            (libc::SYS_newfstatat, 7, 0),
            (libc::SYS_statx, 7, 0),
            (libc::SYS_newfstatat, 8, none),
            // It came, and went.
            (libc::SYS_newfstatat, 8, 0),
            (libc::SYS_openat, 8, none),
            (libc::SYS_faccessat, 8, none),
        ] {
            names.look(&call(number, name, value));
        }
        assert_eq!(names.looks(), Some(Looks { calls: 6, again: 2 }));
        // What was opened, what has no name, and what has a position.
        for (number, name, value) in
            [(libc::SYS_openat, 7, 3), (libc::SYS_newfstatat, 0, 0), (libc::SYS_pread64, 7, 10)]
        {
            names.look(&call(number, name, value));
        }
        assert_eq!(names.looks(), Some(Looks { calls: 6, again: 2 }));
    }

    #[test]
    fn memory_for_names_is_bounded() {
        let mut names = Names::default();
        for name in 1..=2 * MAX_NAMES as u64 {
            let number = libc::SYS_newfstatat as u32;
            names.look(&CallRecord { number, position: name, ..CallRecord::default() });
        }
        assert_eq!((names.known.len(), names.looks.again), (MAX_NAMES, 0));
    }
}
