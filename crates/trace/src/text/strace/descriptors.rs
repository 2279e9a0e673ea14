//! Which descriptor of which process is which file, and where in it the next read begins.
//!
//! Processes that share a table (threads) share it here; a fork copies the table, and both sides share the position, as
//! the kernel has it. Invariant: bounded, see [`MAX_ENTRIES`] and [`MAX_FILES`].

use std::collections::HashMap;

use rustc_hash::FxHashMap;

/// Descriptors in all tables together.
const MAX_ENTRIES: usize = 1 << 20;

/// Files whose end is remembered for appending writes.
const MAX_FILES: usize = 1 << 20;

/// Maximum processes at a time; further ones share one table.
const MAX_PROCESSES: usize = 1 << 16;

/// An open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) object: u64,
    pub(super) offset: u64,
    pub(super) append: bool,
    /// Opened with O_SYNC or O_DSYNC.
    pub(super) sync: bool,
}

/// Kind of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// An index into `Descriptors::files`, and whether an execve closes it.
    File { place: usize, close_on_exec: bool },
    /// A pipe, a socket, a timer.
    Elsewhere,
}

/// A look-up of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    File(usize),
    Elsewhere,
    /// It was opened before the trace began, or its opening is not in the trace.
    No,
}

#[derive(Clone, Debug, Default)]
struct Table {
    entries: HashMap<i32, Entry>,
    processes: usize,
}

/// The tables of all processes.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    tables: Vec<Table>,
    free_tables: Vec<usize>,
    of_process: FxHashMap<u32, usize>,
    /// Open files with the number of descriptors that lead to them.
    files: Vec<(Open, usize)>,
    free_files: Vec<usize>,
    entries: usize,
    ends: FxHashMap<u64, u64>,
    /// The table of processes that found no room.
    crowd: Option<usize>,
}

impl Descriptors {
    fn table(&mut self, pid: u32) -> usize {
        if let Some(table) = self.of_process.get(&pid) {
            return *table;
        }
        if self.of_process.len() >= MAX_PROCESSES {
            return match self.crowd {
                Some(crowd) => crowd,
                None => {
                    self.tables.push(Table::default());
                    *self.crowd.insert(self.tables.len() - 1)
                }
            };
        }
        let table = self.free_tables.pop().unwrap_or_else(|| {
            self.tables.push(Table::default());
            self.tables.len() - 1
        });
        self.tables[table] = Table { entries: HashMap::new(), processes: 1 };
        self.of_process.insert(pid, table);
        table
    }

    /// Whether the process was seen.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.of_process.contains_key(&pid)
    }

    /// A process was made. `shared`: both use one table from now on. False: the tables are full, it begins with nothing.
    pub(super) fn child(&mut self, parent: u32, child: u32, shared: bool) -> bool {
        if parent == child || self.knows(child) {
            return true;
        }
        let table = self.table(parent);
        if self.of_process.len() >= MAX_PROCESSES {
            return false;
        }
        if shared {
            self.tables[table].processes += 1;
            self.of_process.insert(child, table);
            return true;
        }
        let copied = self.tables[table].entries.clone();
        if self.entries + copied.len() > MAX_ENTRIES {
            self.table(child);
            return false;
        }
        for entry in copied.values() {
            if let Entry::File { place, .. } = entry {
                self.files[*place].1 += 1;
            }
        }
        self.entries += copied.len();
        let own = self.table(child);
        self.tables[own].entries = copied;
        true
    }

    /// A process has ended.
    pub(super) fn end(&mut self, pid: u32) {
        let Some(table) = self.of_process.remove(&pid) else { return };
        self.tables[table].processes = self.tables[table].processes.saturating_sub(1);
        if self.tables[table].processes > 0 {
            return;
        }
        let entries = std::mem::take(&mut self.tables[table].entries);
        for entry in entries.into_values() {
            self.entries -= 1;
            self.release(entry);
        }
        self.free_tables.push(table);
    }

    /// A process runs another program: descriptors that are marked so are closed.
    pub(super) fn exec(&mut self, pid: u32) {
        let table = self.table(pid);
        let closing: Vec<i32> = self.tables[table]
            .entries
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::File { close_on_exec: true, .. }))
            .map(|(fd, _)| *fd)
            .collect();
        for fd in closing {
            self.close(pid, fd);
        }
    }

    fn release(&mut self, entry: Entry) {
        if let Entry::File { place, .. } = entry {
            self.files[place].1 -= 1;
            if self.files[place].1 == 0 {
                self.free_files.push(place);
            }
        }
    }

    fn put(&mut self, pid: u32, fd: i32, entry: Entry) -> bool {
        let table = self.table(pid);
        if self.entries >= MAX_ENTRIES && !self.tables[table].entries.contains_key(&fd) {
            self.release(entry);
            return false;
        }
        match self.tables[table].entries.insert(fd, entry) {
            Some(before) => self.release(before),
            None => self.entries += 1,
        }
        true
    }

    /// A descriptor leads to a file from now on. False: the tables are full.
    pub(super) fn open(&mut self, pid: u32, fd: i32, open: Open, close_on_exec: bool) -> bool {
        let place = self.free_files.pop().unwrap_or_else(|| {
            self.files.push((open, 0));
            self.files.len() - 1
        });
        self.files[place] = (open, 1);
        self.put(pid, fd, Entry::File { place, close_on_exec })
    }

    /// A descriptor leads to no file.
    pub(super) fn elsewhere(&mut self, pid: u32, fd: i32) {
        self.put(pid, fd, Entry::Elsewhere);
    }

    /// Duplicates a descriptor.
    pub(super) fn duplicate(&mut self, pid: u32, from: i32, to: i32, close_on_exec: bool) {
        if from == to {
            return;
        }
        let table = self.table(pid);
        match self.tables[table].entries.get(&from).copied() {
            Some(Entry::File { place, .. }) => {
                self.files[place].1 += 1;
                self.put(pid, to, Entry::File { place, close_on_exec });
            }
            Some(Entry::Elsewhere) => self.elsewhere(pid, to),
            None => {
                self.close(pid, to);
            }
        }
    }

    /// Target of a descriptor.
    pub(super) fn get(&mut self, pid: u32, fd: i32) -> Known {
        let table = self.table(pid);
        match self.tables[table].entries.get(&fd) {
            Some(Entry::File { place, .. }) => Known::File(*place),
            Some(Entry::Elsewhere) => Known::Elsewhere,
            None => Known::No,
        }
    }

    /// The open file at an index from [`Descriptors::get`].
    pub(super) fn file(&mut self, place: usize) -> &mut Open {
        &mut self.files[place].0
    }

    /// Closes a descriptor; returns its file, if it was one.
    pub(super) fn close(&mut self, pid: u32, fd: i32) -> Option<Open> {
        let table = self.table(pid);
        let entry = self.tables[table].entries.remove(&fd)?;
        self.entries -= 1;
        let open = match entry {
            Entry::File { place, .. } => Some(self.files[place].0),
            Entry::Elsewhere => None,
        };
        self.release(entry);
        open
    }

    /// The largest offset of a file that was seen so far.
    pub(super) fn end_of(&self, object: u64) -> u64 {
        self.ends.get(&object).copied().unwrap_or(0)
    }

    /// Remembers how far a file reaches.
    pub(super) fn reaches(&mut self, object: u64, end: u64) {
        if self.ends.len() < MAX_FILES || self.ends.contains_key(&object) {
            let known = self.ends.entry(object).or_default();
            *known = (*known).max(end);
        }
    }

    /// A file was cut to this length.
    pub(super) fn cut(&mut self, object: u64, end: u64) {
        if let Some(known) = self.ends.get_mut(&object) {
            *known = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(object: u64) -> Open {
        Open { object, ..Open::default() }
    }

    #[test]
    fn positions_are_shared_by_duplicates_forks_and_threads() {
        let mut d = Descriptors::default();
        assert!(d.open(1, 3, file(7), true));
        d.duplicate(1, 3, 4, false);
        assert!(d.child(1, 2, false) && d.child(1, 9, true));
        let Known::File(place) = d.get(2, 4) else { panic!() };
        d.file(place).offset = 100;
        for (pid, fd) in [(1, 3), (1, 4), (2, 3), (9, 3)] {
            let Known::File(place) = d.get(pid, fd) else { panic!() };
            assert_eq!(d.file(place).offset, 100);
        }
        // The thread closes for both, the fork for itself.
        assert_eq!(d.close(9, 3).unwrap().object, 7);
        assert_eq!(d.get(1, 3), Known::No);
        d.exec(2);
        assert_eq!(d.get(2, 3), Known::No);
        assert!(matches!(d.get(2, 4), Known::File(_)));
        for pid in [1, 2, 9] {
            d.end(pid);
        }
        assert_eq!((d.entries, d.free_files.len(), d.of_process.len()), (0, d.files.len(), 0));
    }

    #[test]
    fn reuse_of_a_number_replaces_what_was_there() {
        let mut d = Descriptors::default();
        d.open(1, 3, file(7), false);
        d.elsewhere(1, 3);
        assert_eq!(d.get(1, 3), Known::Elsewhere);
        d.open(1, 3, file(8), false);
        d.duplicate(1, 5, 3, false);
        assert_eq!((d.get(1, 3), d.entries), (Known::No, 0));
        d.reaches(8, 50);
        d.reaches(8, 10);
        assert_eq!(d.end_of(8), 50);
        d.cut(8, 0);
        assert_eq!(d.end_of(8), 0);
    }
}
