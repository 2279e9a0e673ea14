//! Which program of the table has the time of a finding: by the process that spent it, the library that made its calls, and
//! the files that it wrote.
//!
//! Invariant: a name counts as a whole. `tartan` is not `tar`, and a file that was only read says nothing about its reader.

use std::collections::BTreeMap;

use iowhy_core::finding::FindingId;
use iowhy_core::profile::{FileUse, Process, Profile};

use super::table::{self, Advice, Program, Recognised, Side};
use crate::account::{Account, Entry};
use crate::classify::Operation;

/// Part of a finding's time that one program must have.
const MOSTLY: f64 = 0.5;

/// Calls that pay for a finding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    operations: &'static [Operation],
}

impl Work {
    /// `None`: the finding names no fault in the program's own calls.
    pub(super) fn for_finding(id: FindingId) -> Option<Work> {
        use FindingId as F;
        use Operation as O;
        let operations: &'static [O] = match id {
            F::SyncPerWrite => &[O::Sync, O::Write],
            F::SmallRequests
            | F::StdioSeek
            | F::CopyBound
            | F::InodeLock
            | F::UnalignedWrite
            | F::QueueDepthOne => &[O::Read, O::Write],
            F::NoReadahead | F::ReadaheadWaste | F::CacheThrash => &[O::Read, O::Fault],
            F::DeviceSaturated => &[O::Read, O::Write, O::Fault, O::Sync],
            F::RepeatedReads => &[O::Read],
            F::ReadsOfHoles => &[O::Read, O::Write],
            F::DirtyThrottle => &[O::Write],
            F::FreshBuffers => &[O::Fault, O::Map, O::Read],
            F::MmapFaults | F::MappedOverNetwork => &[O::Fault],
            F::MmapLock => &[O::Fault, O::Map],
            F::FileLock => &[O::Descriptor, O::Read, O::Write],
            F::ReplacedFiles => &[O::Open, O::Close, O::Names],
            F::RewrittenFiles => &[O::Write, O::Sync],
            F::ManySmallFiles | F::FailedLookups | F::RemoteMetadata => {
                &[O::Open, O::Close, O::Stat, O::Names]
            }
            F::CopyUp => &[O::CopyUp],
            F::ProcessStarts => &[O::Process, O::Map, O::Fault],
            F::ServerBound => &[O::Read, O::Write, O::Open, O::Close, O::Stat, O::Names, O::Fault, O::Sync],
            F::MemoryPressure => Operation::ALL,
            F::NoisyNeighbour | F::Throttled | F::CpuBound | F::WaitingElsewhere | F::Healthy => return None,
        };
        Some(Work { operations })
    }

    /// All that a program does.
    pub(super) const ALL: Work = Work { operations: Operation::ALL };

    fn has(self, entry: &Entry) -> bool {
        self.operations.contains(&entry.class.operation)
    }
}

/// The processes of one executable that have most of a finding's time.
pub(super) struct Owner<'a> {
    profile: &'a Profile,
    /// Its process with the most time.
    process: &'a Process,
    /// Time of its calls by the function that made them: object and name.
    callers: BTreeMap<(&'a str, &'a str), f64>,
    /// Time of its reads and of its writes.
    reads_ns: f64,
    writes_ns: f64,
}

impl<'a> Owner<'a> {
    /// `None`: no executable has most of the time.
    pub(super) fn find(profile: &'a Profile, account: &'a Account, work: Work) -> Option<Owner<'a>> {
        // By the first process of each executable.
        let mut times: BTreeMap<usize, f64> = BTreeMap::new();
        let firsts: Vec<Option<usize>> = profile.threads.iter().map(|t| first(profile, t.pid)).collect();
        let of = |entry: &Entry| firsts.get(entry.thread as usize).copied().flatten();
        for entry in account.entries.iter().filter(|e| work.has(e) && e.wall_ns > 0.0) {
            if let Some(process) = of(entry) {
                *times.entry(process).or_default() += entry.wall_ns;
            }
        }
        let all: f64 = times.values().sum();
        // The earliest process of those with the same time.
        let most = times.iter().rev().max_by(|a, b| a.1.total_cmp(b.1));
        let index = match most {
            Some((index, ns)) if *ns >= MOSTLY * all => *index,
            Some(_) => return None,
            None => only(profile)?,
        };
        let own = |entry: &&Entry| of(entry) == Some(index) && work.has(entry);
        let mut callers = BTreeMap::new();
        for site in &account.sites {
            let ns: f64 = site.entries.iter().filter(own).map(|e| e.time_ns).sum();
            if ns > 0.0 {
                *callers.entry((site.object.as_str(), site.function.as_str())).or_default() += ns;
            }
        }
        let side = |operation| {
            account
                .entries
                .iter()
                .filter(|e| of(e) == Some(index) && e.class.operation == operation)
                .map(|e| e.time_ns)
                .sum()
        };
        Some(Owner {
            profile,
            process: &profile.processes[index],
            callers,
            reads_ns: side(Operation::Read),
            writes_ns: side(Operation::Write),
        })
    }

    /// Programs that it is, the most specific first, with the fact that says so: a library that makes the calls, its own
    /// executable, its files, the run-time system. In the order of the table where two have facts of one kind.
    pub(super) fn recognised(&self) -> Vec<(&'static Program, String)> {
        let programs = table::programs();
        let by = |fact: &dyn Fn(&'static Program) -> Option<String>| -> Vec<(&'static Program, String)> {
            programs.iter().filter_map(|program| Some((program, fact(program)?))).collect()
        };
        let mut found = by(&|program| self.library(&program.recognised));
        found.extend(by(&|program| self.file_system(&program.recognised)));
        found.extend(by(&|p| self.executable(&p.recognised.executables).filter(|_| !p.recognised.run_time)));
        found.extend(by(&|program| self.file(&program.recognised)));
        found.extend(by(&|p| self.executable(&p.recognised.executables).filter(|_| p.recognised.run_time)));
        found
    }

    /// How this run-time system is started so that functions of its scripts have names.
    pub(super) fn names(&self) -> Option<&'static str> {
        let program = table::programs()
            .iter()
            .find(|p| p.recognised.run_time && self.executable(&p.recognised.executables).is_some())?;
        program.recognised.names.as_deref()
    }

    /// Whether a change acts on what this run did.
    pub(super) fn fits(&self, advice: &Advice) -> bool {
        let side = match advice.side {
            Some(Side::Read) => self.reads_ns >= self.writes_ns,
            Some(Side::Write) => self.writes_ns > self.reads_ns,
            None => true,
        };
        let met = |patterns: &[String]| self.profile.files.iter().any(|file| is_one_of(file, patterns));
        let lists = !advice.directories || self.lists_directories();
        side && lists
            && (advice.with_files.is_empty() || met(&advice.with_files))
            && !met(&advice.without_files)
    }

    /// Whether most opens are of directories to list: a directory takes two calls or more. Unknown is no.
    fn lists_directories(&self) -> bool {
        let Some(calls) = &self.profile.calls else { return false };
        let count = |names: &[&str]| -> u64 {
            calls.calls.iter().filter(|call| names.contains(&call.name.as_str())).map(|c| c.succeeded()).sum()
        };
        let listings = count(&["getdents64", "getdents"]);
        listings > 0 && listings >= count(&["open", "openat", "openat2"])
    }

    fn executable(&self, names: &[String]) -> Option<String> {
        let path = self.process.program.as_deref().map(base_name);
        // A file of several programs has one of their names; the process has its own.
        let seen = [path, Some(self.process.name.as_str())];
        let name = seen.into_iter().flatten().find(|seen| names.iter().any(|name| is_version_of(seen, name)));
        name.map(|name| format!("executable `{name}`"))
    }

    fn library(&self, recognised: &Recognised) -> Option<String> {
        let matches = |(object, function): (&str, &str)| {
            let library = base_name(object);
            if recognised.libraries.iter().any(|pattern| fits(pattern, library)) {
                return Some(format!("library `{library}`"));
            }
            let known = recognised.functions.iter().any(|pattern| fits(pattern, function));
            known.then(|| format!("function `{function}`"))
        };
        let all: f64 = self.callers.values().sum();
        let of_it = self.callers.iter().filter_map(|(caller, ns)| Some((matches(*caller)?, *ns)));
        let of_it: Vec<(String, f64)> = of_it.collect();
        let sum: f64 = of_it.iter().map(|(_, ns)| ns).sum();
        if sum <= 0.0 || sum < MOSTLY * all {
            return None;
        }
        of_it.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(fact, _)| fact)
    }

    fn file(&self, recognised: &Recognised) -> Option<String> {
        if !recognised.within.is_empty() && self.executable(&recognised.within).is_none() {
            return None;
        }
        if let Some(library) = self.loaded(&recognised.loaded) {
            return Some(format!("library `{library}`"));
        }
        let written = |file: &&FileUse| {
            let by_it = is_one_of(file, &recognised.files) || self.is_companion(file, &recognised.companions);
            by_it && (file.writes.calls > 0 || file.syncs > 0)
        };
        let mapped = |file: &&FileUse| file.mapped && is_one_of(file, &recognised.mapped_files);
        let file = self.profile.files.iter().find(|file| written(file) || mapped(file))?;
        Some(format!("file `{}`", base_name(&file.path)))
    }

    /// A library of these that the process has a function of on a stack.
    fn loaded(&self, patterns: &[String]) -> Option<&str> {
        if patterns.is_empty() {
            return None;
        }
        let own = |thread: u32| {
            let thread = self.profile.threads.get(thread as usize);
            thread.is_some_and(|thread| thread.pid == self.process.pid)
        };
        let frames =
            self.profile.stacks.iter().filter(|stack| own(stack.thread)).flat_map(|stack| &stack.user);
        let symbols = frames.filter_map(|id| self.profile.symbols.get(*id as usize));
        let mut libraries = symbols.filter_map(|symbol| symbol.object.as_deref()).map(base_name);
        libraries.find(|library| patterns.iter().any(|pattern| fits(pattern, library)))
    }

    /// Whether the file of the same name without one of these ends was used too.
    fn is_companion(&self, file: &FileUse, ends: &[String]) -> bool {
        ends.iter().any(|end| {
            let of = file.path.strip_suffix(end.as_str());
            of.is_some_and(|of| self.profile.files.iter().any(|other| other.path == of))
        })
    }

    fn file_system(&self, recognised: &Recognised) -> Option<String> {
        let types = &recognised.file_systems;
        let mount = |file: &FileUse| {
            let point = file.mount_point.as_deref()?;
            self.profile
                .served
                .iter()
                .find(|mount| mount.point == point && types.contains(&mount.file_system))
        };
        // The files that moved most bytes come first.
        let file = self.profile.files.iter().find(|file| file.mount_point.is_some())?;
        mount(file).map(|mount| format!("file system `{}`", mount.file_system))
    }
}

/// The first process of the executable that a process runs.
fn first(profile: &Profile, pid: u32) -> Option<usize> {
    let process = profile.processes.iter().find(|process| process.pid == pid)?;
    profile.processes.iter().position(|other| executable(other) == executable(process))
}

/// The process of a run in which all run the same executable.
fn only(profile: &Profile) -> Option<usize> {
    let first = profile.processes.first()?;
    profile.processes.iter().all(|other| executable(other) == executable(first)).then_some(0)
}

fn executable(process: &Process) -> &str {
    process.program.as_deref().map_or(process.name.as_str(), base_name)
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_one_of(file: &FileUse, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| match pattern.contains('/') {
        true => fits(pattern, &file.path),
        false => fits(pattern, base_name(&file.path)),
    })
}

/// `python3.11` is `python` of a version; `pythonista` is another program.
pub(super) fn is_version_of(seen: &str, name: &str) -> bool {
    let version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    seen.strip_prefix(name).is_some_and(version)
}

/// Whether a name fits a pattern in which `*` stands for any text.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            ends.into_iter().any(|at| fits(rest, &tail[at..]))
        }),
    }
}
