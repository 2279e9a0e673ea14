//! Whether names that are looked up were looked up before. What tells a name from another is a hash of its path, which the observer in the
//! kernel makes (`bpf/names.h`).

use std::collections::HashMap;

use iowhy_core::profile::Lookups;

use super::CallRecord;
use crate::calls::Shape;

/// Names that are told apart, some 8 MiB of them. Those beyond count as looked up for the first time.
const MAX_NAMES: usize = 1 << 18;

/// The names of a record.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Whether there was none at the last look-up, by what tells a name from another.
    known: HashMap<u64, bool>,
    lookups: Lookups,
}

impl Names {
    /// Takes a call. One that opened something, and one whose name could not be read, is no look-up.
    pub(super) fn take(&mut self, record: &CallRecord) {
        let missing = record.value < 0;
        let looks_up = match Shape::from_number(i64::from(record.number)) {
            Shape::LookUp { .. } => true,
            Shape::Open { path: Some(_) } => missing,
            _ => false,
        };
        if !looks_up || record.position == 0 {
            return;
        }
        self.lookups.calls += 1;
        if let Some(was) = self.known.get_mut(&record.position) {
            self.lookups.repeated += u64::from(std::mem::replace(was, missing) == missing);
        } else if self.known.len() < MAX_NAMES {
            self.known.insert(record.position, missing);
        } else {
            self.lookups.beyond += 1;
        }
    }

    /// How many look-ups there were; `None`: none.
    pub(super) fn lookups(&self) -> Option<Lookups> {
        (self.lookups.calls > 0).then_some(self.lookups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_looked_up_before_with_the_same_outcome_is_told() {
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
            names.take(&call(number, name, value));
        }
        assert_eq!(names.lookups(), Some(Lookups { calls: 6, repeated: 2, beyond: 0 }));
        // What was opened, what has no name, and what has a position.
        for (number, name, value) in
            [(libc::SYS_openat, 7, 3), (libc::SYS_newfstatat, 0, 0), (libc::SYS_pread64, 7, 10)]
        {
            names.take(&call(number, name, value));
        }
        assert_eq!(names.lookups(), Some(Lookups { calls: 6, repeated: 2, beyond: 0 }));
    }

    #[test]
    fn memory_for_names_is_bounded() {
        let mut names = Names::default();
        for name in 1..=2 * MAX_NAMES as u64 {
            let number = libc::SYS_newfstatat as u32;
            names.take(&CallRecord { number, position: name, ..CallRecord::default() });
        }
        let Lookups { repeated, beyond, .. } = names.lookups;
        assert_eq!((names.known.len(), repeated, beyond), (MAX_NAMES, 0, MAX_NAMES as u64));
    }
}
