//! Which descriptor of which process is which open file description (open(2)), with position and flags, during one burst.
//! Duplicates and forked children share a description, and with it the position.

use std::collections::{HashMap, HashSet};

use iowhy_core::profile::CallPattern;

use super::uses::{FileId, Files, Sink, UNKNOWN, has_offsets};

/// An open descriptor as `/proc/PID/fd` and `/proc/PID/fdinfo` show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenFile {
    /// Its number.
    pub descriptor: i32,
    /// Path, or what the link says (`pipe:[123]`).
    pub path: String,
    /// As in `FileUse::kind`.
    pub kind: String,
    /// Flags as in open(2), from `fdinfo`.
    pub flags: u32,
    /// Position, from `fdinfo`.
    pub position: Option<u64>,
}

/// Index of a description.
pub(super) type DescriptionId = usize;

/// What happened last through a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Unknown,
    Open,
    Seek,
    /// A transfer; whether it was a read or write at the position (index of the direction).
    Moved(Option<usize>),
}

/// A path that was learnt during the burst, and through which descriptor.
#[derive(Debug)]
struct Named {
    path: String,
    kind: String,
    pid: u32,
    descriptor: i32,
    at_ns: u64,
}

/// One open description.
#[derive(Debug)]
pub(super) struct Description {
    references: u32,
    pub(super) sink: Sink,
    kind: String,
    named: Option<Named>,
    pub(super) flags: Option<u32>,
    pub(super) position: Option<u64>,
    /// Where the last read and the last write ended.
    pub(super) ends: [Option<u64>; 2],
    pub(super) last: Last,
    /// Its number among all descriptions of the burst.
    pub(super) serial: u32,
}

/// A description that is no more: what it was.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) serial: u32,
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) flags: Option<u32>,
}

impl Description {
    fn new(sink: Sink, kind: &str, flags: Option<u32>, position: Option<u64>, last: Last) -> Self {
        let kind = kind.to_owned();
        Description {
            references: 0,
            sink,
            kind,
            named: None,
            flags,
            position,
            ends: [None; 2],
            last,
            serial: 0,
        }
    }

    /// Whether it has offsets, as far as is known.
    pub(super) fn has_offsets(&self) -> bool {
        has_offsets(&self.kind)
    }

    /// Whether one of these flags is set; `None` where flags are not known.
    pub(super) fn has(&self, flag: i32) -> Option<bool> {
        self.flags.map(|flags| flags & flag as u32 != 0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    description: DescriptionId,
    close_on_exec: bool,
}

/// The descriptor tables of all processes in one burst.
#[derive(Debug, Default)]
pub(super) struct Tables {
    tables: HashMap<u32, HashMap<i32, Slot>>,
    /// Processes that share the table of another (CLONE_FILES).
    shared: HashMap<u32, u32>,
    /// Tables made for a child that may turn out to be a thread.
    doubtful: HashSet<u32>,
    descriptions: Vec<Option<Description>>,
    free: Vec<DescriptionId>,
    unresolved: Vec<(u32, i32, DescriptionId)>,
    made: u32,
    ended: Vec<Ended>,
}

impl Tables {
    /// The tables at the start of a burst. Descriptors with the same path, flags and position above 0 are taken as
    /// one description: most often they are, by inheritance or `2>&1`.
    pub(super) fn from_snapshot(snapshot: &[(u32, Vec<OpenFile>)], files: &mut Files) -> Self {
        let mut tables = Tables::default();
        let mut known: HashMap<(FileId, u32, u64), DescriptionId> = HashMap::new();
        for (pid, open) in snapshot {
            tables.tables.entry(*pid).or_default();
            for file in open {
                let id = files.find(&file.path, &file.kind);
                let flags = file.flags & !(libc::O_CLOEXEC as u32);
                let twin = file.position.filter(|at| *at > 0).map(|at| (id, flags, at));
                let description = twin.and_then(|key| known.get(&key).copied()).unwrap_or_else(|| {
                    let sink = Sink::File(id);
                    let new = Description::new(sink, &file.kind, Some(flags), file.position, Last::Unknown);
                    tables.keep(new)
                });
                if let Some(key) = twin {
                    known.insert(key, description);
                }
                let close_on_exec = file.flags & libc::O_CLOEXEC as u32 != 0;
                tables.set(*pid, file.descriptor, description, close_on_exec, 0, files);
            }
        }
        tables
    }

    fn keep(&mut self, mut description: Description) -> DescriptionId {
        description.serial = self.made;
        self.made = self.made.saturating_add(1);
        match self.free.pop() {
            Some(id) => {
                self.descriptions[id] = Some(description);
                id
            }
            None => {
                self.descriptions.push(Some(description));
                self.descriptions.len() - 1
            }
        }
    }

    fn owner(&self, pid: u32) -> u32 {
        self.shared.get(&pid).copied().unwrap_or(pid)
    }

    /// Whether this process has a table.
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.tables.contains_key(&self.owner(pid))
    }

    /// The description, while it exists.
    pub(super) fn get(&mut self, id: DescriptionId) -> Option<&mut Description> {
        self.descriptions.get_mut(id).and_then(Option::as_mut)
    }

    /// The description behind a descriptor. One that was never seen gets a new one, of which nothing is known yet.
    pub(super) fn find(&mut self, pid: u32, descriptor: i32, files: &mut Files) -> DescriptionId {
        match self.slot(pid, descriptor) {
            Some(slot) => slot.description,
            None => self.open(pid, descriptor, "unknown", None, None, files),
        }
    }

    /// The description behind a descriptor, if one was seen there.
    pub(super) fn opened(&self, pid: u32, descriptor: i32) -> Option<DescriptionId> {
        self.slot(pid, descriptor).map(|slot| slot.description)
    }

    fn slot(&self, pid: u32, descriptor: i32) -> Option<Slot> {
        self.tables.get(&self.owner(pid)).and_then(|table| table.get(&descriptor)).copied()
    }

    /// A new description whose path is not known yet. `opened` at this time; `None`: it was there before.
    pub(super) fn open(
        &mut self,
        pid: u32,
        descriptor: i32,
        kind: &str,
        flags: Option<u32>,
        opened: Option<u64>,
        files: &mut Files,
    ) -> DescriptionId {
        let (position, last) = if opened.is_some() { (Some(0), Last::Open) } else { (None, Last::Unknown) };
        let sink = Sink::Local(Box::default());
        let description = self.keep(Description::new(sink, kind, flags, position, last));
        let close_on_exec = flags.is_some_and(|flags| flags & libc::O_CLOEXEC as u32 != 0);
        self.set(pid, descriptor, description, close_on_exec, opened.unwrap_or(0), files);
        self.unresolved.push((pid, descriptor, description));
        description
    }

    /// The descriptor refers to this description from now on.
    pub(super) fn set(
        &mut self,
        pid: u32,
        descriptor: i32,
        description: DescriptionId,
        close_on_exec: bool,
        time_ns: u64,
        files: &mut Files,
    ) {
        self.hold(description);
        self.close(pid, descriptor, time_ns, files);
        let owner = self.owner(pid);
        self.tables.entry(owner).or_default().insert(descriptor, Slot { description, close_on_exec });
    }

    /// Changes whether exec closes a descriptor.
    pub(super) fn set_close_on_exec(&mut self, pid: u32, descriptor: i32, value: bool) {
        let owner = self.owner(pid);
        if let Some(slot) = self.tables.get_mut(&owner).and_then(|t| t.get_mut(&descriptor)) {
            slot.close_on_exec = value;
        }
    }

    /// One reference more, so that the description outlives its descriptor while a call is under way.
    pub(super) fn hold(&mut self, id: DescriptionId) {
        if let Some(description) = self.get(id) {
            description.references += 1;
        }
    }

    /// One reference less. The last one settles what was done through it.
    pub(super) fn release(&mut self, id: DescriptionId, files: &mut Files) {
        let Some(description) = self.get(id) else { return };
        description.references = description.references.saturating_sub(1);
        if description.references == 0
            && let Some(description) = self.descriptions[id].take()
        {
            self.free.push(id);
            self.note_end(&description, files);
            settle(description, files);
        }
    }

    /// The descriptor was closed at this time or a little later. A path that was read through it after that may be
    /// that of another file, and is not believed.
    pub(super) fn close(&mut self, pid: u32, descriptor: i32, time_ns: u64, files: &mut Files) {
        let owner = self.owner(pid);
        let Some(slot) = self.tables.get_mut(&owner).and_then(|table| table.remove(&descriptor)) else {
            return;
        };
        if let Some(description) = self.get(slot.description) {
            description.named.take_if(|named| {
                named.pid == owner && named.descriptor == descriptor && named.at_ns >= time_ns
            });
        }
        self.release(slot.description, files);
    }

    /// Closes all descriptors of a process that `which` names.
    pub(super) fn close_where(
        &mut self,
        pid: u32,
        time_ns: u64,
        files: &mut Files,
        which: impl Fn(i32, bool) -> bool,
    ) {
        let Some(table) = self.tables.get(&self.owner(pid)) else { return };
        let mut closed: Vec<i32> =
            table.iter().filter(|(d, s)| which(**d, s.close_on_exec)).map(|(d, _)| *d).collect();
        closed.sort_unstable();
        for descriptor in closed {
            self.close(pid, descriptor, time_ns, files);
        }
    }

    /// The process executed another program: it has a table of its own now, without what exec closes.
    pub(super) fn execute(&mut self, pid: u32, time_ns: u64, files: &mut Files) {
        if let Some(owner) = self.shared.remove(&pid) {
            self.copy(owner, pid);
        }
        self.close_where(pid, time_ns, files, |_, close_on_exec| close_on_exec);
    }

    /// The process ended.
    pub(super) fn end(&mut self, pid: u32, time_ns: u64, files: &mut Files) {
        if self.shared.remove(&pid).is_none() && !self.shared.values().any(|owner| *owner == pid) {
            self.close_where(pid, time_ns, files, |_, _| true);
            self.tables.remove(&pid);
        }
    }

    /// A child was made. `share`: it uses the parent's table. `doubtful`: it may be a thread, which has no table.
    pub(super) fn fork(&mut self, parent: u32, child: u32, share: bool, doubtful: bool) {
        if parent == child || self.knows(child) {
            return;
        }
        let owner = self.owner(parent);
        if share {
            self.shared.insert(child, owner);
            return;
        }
        self.copy(owner, child);
        if doubtful {
            self.doubtful.insert(child);
        }
    }

    fn copy(&mut self, from: u32, to: u32) {
        let table = self.tables.get(&from).cloned().unwrap_or_default();
        for slot in table.values() {
            self.hold(slot.description);
        }
        self.tables.insert(to, table);
    }

    /// This thread belongs to this process: a table made for it in doubt goes.
    pub(super) fn thread(&mut self, pid: u32, tid: u32, files: &mut Files) {
        if pid != tid && self.doubtful.remove(&tid) {
            self.close_where(tid, 0, files, |_, _| true);
            self.tables.remove(&tid);
        }
    }

    /// Asks for the paths of at most `most` descriptions that have none yet and are still open.
    pub(super) fn resolve(
        &mut self,
        now_ns: u64,
        most: usize,
        ask: &mut dyn FnMut(u32, i32) -> Option<OpenFile>,
    ) {
        let mut left = most;
        let mut waiting = std::mem::take(&mut self.unresolved);
        waiting.retain(|(pid, descriptor, id)| {
            if self.slot(*pid, *descriptor).is_none_or(|slot| slot.description != *id) {
                return false;
            }
            if left == 0 {
                return true;
            }
            left -= 1;
            let owner = self.owner(*pid);
            if let (Some(file), Some(description)) = (ask(*pid, *descriptor), self.get(*id)) {
                let flags = file.flags & !(libc::O_CLOEXEC as u32);
                description.flags = description.flags.or(Some(flags));
                description.named = Some(Named {
                    path: file.path,
                    kind: file.kind,
                    pid: owner,
                    descriptor: *descriptor,
                    at_ns: now_ns,
                });
            }
            false
        });
        self.unresolved = waiting;
    }

    /// The burst ended: settles what is still open. Returns what all descriptions of the burst were.
    pub(super) fn finish(mut self, files: &mut Files) -> Vec<Ended> {
        for description in std::mem::take(&mut self.descriptions).into_iter().flatten() {
            self.note_end(&description, files);
            settle(description, files);
        }
        self.ended
    }

    /// Bounded by the steps of a stretch: only those that were made first are referred to.
    fn note_end(&mut self, description: &Description, files: &Files) {
        if self.ended.len() >= 2 * CallPattern::MAX_STRETCH_STEPS {
            return;
        }
        let (path, kind) = match (&description.sink, &description.named) {
            (Sink::File(id), _) => files.name(*id),
            (Sink::Local(_), Some(named)) => (named.path.as_str(), named.kind.as_str()),
            (Sink::Local(_), None) => (UNKNOWN, description.kind.as_str()),
        };
        let (path, kind) = (path.to_owned(), kind.to_owned());
        self.ended.push(Ended { serial: description.serial, path, kind, flags: description.flags });
    }
}

/// Adds what was done through a description to its file.
fn settle(description: Description, files: &mut Files) {
    let Description { sink, named, kind, .. } = description;
    if let Sink::Local(local) = sink {
        match named {
            Some(named) => files.settle(*local, &named.path, &named.kind),
            None => files.settle(*local, UNKNOWN, &kind),
        }
    }
}
