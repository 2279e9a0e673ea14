//! Call sites: which function of the program asked for what costs time.

use std::collections::HashMap;

use iowhy_core::profile::{Profile, StackTime, State, Symbol, SymbolId};

use super::{Entry, Sum};
use crate::classify::{Class, Operation};

/// One place in the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Name of the threads; threads of one name are one site.
    pub thread: String,
    /// The innermost function that is not part of the system's own or a standard library; an address where it has no name.
    pub function: String,
    /// The file it is in.
    pub object: String,
    /// The functions that led to it, innermost first, as far as one way there is that of more than half of the time.
    pub callers: Vec<Caller>,
    /// The part of the time that came by all of them.
    pub callers_share: f64,
    /// What was asked for there.
    pub operation: Operation,
    /// Time in that operation, waits included.
    pub sum: Sum,
    /// The same by thread and meaning: what a reader needs to say how sure the sum is.
    pub entries: Vec<Entry>,
}

/// A function that led to a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its name.
    pub function: String,
    /// The file it is in.
    pub object: Option<String>,
}

/// Most callers of a site.
const MAX_CALLERS: usize = 32;
/// A caller leads to more than this part of a site's time: of two ways to a site only one can.
const MOST: f64 = 0.5;

/// Beginnings of the names of files that programs call the kernel through.
const SYSTEM_FILES: [&str; 11] = [
    "libc.so",
    "libc-",
    "libc.musl",
    "libpthread",
    "ld-",
    "ld.so",
    "libdl",
    "librt.so",
    "librt-",
    "linux-vdso",
    // Node.js' own library.
    "node:",
];

/// Beginnings of the names of functions of standard libraries that are linked into the program itself: of Rust and C++.
const STANDARD: [&str; 6] = ["std::", "core::", "alloc::", "<std::", "<core::", "<alloc::"];
/// The same of Go, and the function that every stack of a Go program begins with.
const STANDARD_IN_GO: [&str; 9] =
    ["runtime.", "internal/", "syscall.", "os.", "io.", "io/", "bufio.", "net.", "golang.org/x/sys/"];
const START_IN_GO: &str = "runtime.goexit";

/// Whether a user function is the program's own, and can be named: not of the C library, the loader, the vDSO, or
/// memory without a file.
fn is_own(symbol: &Symbol) -> bool {
    symbol.object.as_deref().is_some_and(is_of_program)
}

/// The file of a function without a name, if it is the program's own: such a function is called `[file]`.
fn unnamed_file(symbol: &Symbol) -> Option<&str> {
    let file = symbol.name.strip_prefix('[')?.strip_suffix(']')?;
    let not_a_file = ["anonymous", "heap", "stack", "vdso", "vsyscall", "kernel"];
    (symbol.object.is_none() && is_of_program(file) && !not_a_file.contains(&file)).then_some(file)
}

fn is_of_program(object: &str) -> bool {
    // Anonymous memory is called `//anon`, `[heap]`, `[stack]`, `[vdso]`, `anon_inode:...`.
    if object.is_empty()
        || object.starts_with(['[', ' '])
        || object.starts_with("//")
        || object.starts_with("anon_")
    {
        return false;
    }
    let file = object.rsplit('/').next().unwrap_or(object);
    !SYSTEM_FILES.iter().any(|system| file.starts_with(system))
}

/// Sums of a site by thread, meaning, and whether it was on a CPU.
type Booked = HashMap<(u32, Class, bool), Sum>;

/// Sums as entries, greatest time first.
pub(super) fn sorted(sums: Booked) -> Vec<Entry> {
    let mut entries: Vec<Entry> = sums
        .into_iter()
        .map(|((thread, class, busy), sum)| Entry {
            thread,
            class,
            busy,
            time_ns: sum.time_ns,
            wall_ns: sum.wall_ns,
            events: sum.events,
            delay: sum.delay,
        })
        .collect();
    entries.sort_by(|a, b| {
        b.time_ns
            .total_cmp(&a.time_ns)
            .then_with(|| (a.thread, a.class, a.busy).cmp(&(b.thread, b.class, b.busy)))
    });
    entries
}

/// What a function is, by its name and its file.
#[derive(Clone, Copy, Debug, Default)]
struct What {
    /// Of the program, not of the system.
    own: bool,
    /// Of a standard library within the program, and of Go's.
    standard: bool,
    standard_in_go: bool,
    /// Where every stack of a Go program begins.
    start_in_go: bool,
    /// Of a script.
    script: bool,
    /// It has a name of the program's, and not only the file or the address that it is at.
    named: bool,
}

/// Where every program begins, before its `main`.
const START: &str = "_start";

fn what(symbol: &Symbol) -> What {
    let of = |beginnings: &[&str]| beginnings.iter().any(|beginning| symbol.name.starts_with(beginning));
    What {
        own: is_own(symbol),
        standard: of(&STANDARD),
        standard_in_go: of(&STANDARD_IN_GO),
        start_in_go: of(&[START_IN_GO]),
        script: symbol.made_at_run_time,
        named: !symbol.name.starts_with(['[', '0']) && symbol.name != START,
    }
}

/// Sums by site while an account is made.
pub(super) struct Sites<'a> {
    profile: &'a Profile,
    /// Functions of a script come before those of what interprets it.
    of_scripts: bool,
    /// By symbol.
    what: Vec<What>,
    /// Time by files of the program whose function, next to the call, has no name.
    unnamed: HashMap<&'a str, f64>,
    sums: HashMap<(&'a str, SymbolId, Operation), AtSite>,
}

/// What is known of a site.
#[derive(Default)]
struct AtSite {
    booked: Booked,
    /// Time by the functions that led there.
    paths: HashMap<Vec<SymbolId>, f64>,
}

impl<'a> Sites<'a> {
    pub(super) fn new(profile: &'a Profile, of_scripts: bool) -> Sites<'a> {
        let what = profile.symbols.iter().map(what).collect();
        Sites { profile, of_scripts, what, unnamed: HashMap::new(), sums: HashMap::new() }
    }

    /// Adds a stack, if it leads to a function of the program.
    pub(super) fn add(&mut self, stack: &'a StackTime, class: Class) {
        if let Some(file) = self.unnamed(stack) {
            *self.unnamed.entry(file).or_default() += stack.time_ns;
        }
        let own = self.own_functions(stack);
        let Some((site, callers)) = own.split_first() else { return };
        let path: Vec<SymbolId> = callers.iter().filter(|id| self.what(**id).named).copied().collect();
        let thread = self.profile.threads.get(stack.thread as usize).map_or("", |t| t.name.as_str());
        let at = self.sums.entry((thread, *site, class.operation)).or_default();
        let busy = stack.state == State::Running;
        let sum = at.booked.entry((stack.thread, class, busy)).or_default();
        sum.add(stack.time_ns, stack.wall_ns, stack.events);
        *at.paths.entry(path).or_default() += stack.time_ns;
    }

    /// The file of the program's innermost function in a stack, where that has no name.
    fn unnamed(&self, stack: &StackTime) -> Option<&'a str> {
        for id in &stack.user {
            let file = self.profile.symbols.get(*id as usize).and_then(unnamed_file);
            if file.is_some() || self.what(*id).own {
                return file;
            }
        }
        None
    }

    /// The file of the program whose unnamed functions have most time, with that time.
    pub(super) fn most_unnamed(&self) -> Option<(String, f64)> {
        let most = self.unnamed.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        most.map(|(file, time)| ((*file).to_owned(), *time))
    }

    fn what(&self, id: SymbolId) -> What {
        self.what.get(id as usize).copied().unwrap_or_default()
    }

    /// The functions of the program in a stack, innermost first: the one that asked, and who led to it. Each is there once, however deep it
    /// calls itself.
    fn own_functions(&self, stack: &StackTime) -> Vec<SymbolId> {
        let in_go = stack.user.last().is_some_and(|id| self.what(*id).start_in_go);
        let mut own: Vec<SymbolId> = Vec::new();
        for id in stack.user.iter().filter(|id| self.what(**id).own) {
            if !own.contains(id) {
                own.push(*id);
            }
        }
        let standard = |what: What| what.standard || (in_go && what.standard_in_go);
        let keep: &dyn Fn(What) -> bool = if self.of_scripts && own.iter().any(|id| self.what(*id).script) {
            &|what| what.script
        } else if own.iter().any(|id| !standard(self.what(*id))) {
            &|what| !standard(what)
        } else {
            // Where a standard library calls by itself (a thread of its own), that is who calls.
            &|_| true
        };
        own.retain(|id| keep(self.what(*id)));
        own
    }

    /// The way that most of a site's time came, and the part of it that came that way.
    fn callers(&self, at: &AtSite) -> (Vec<Caller>, f64) {
        let all: f64 = at.paths.values().sum();
        let mut paths: Vec<(&[SymbolId], f64)> =
            at.paths.iter().map(|(path, time)| (path.as_slice(), *time)).collect();
        let (mut callers, mut share) = (Vec::new(), 1.0);
        for step in 0..MAX_CALLERS {
            let mut times: HashMap<SymbolId, f64> = HashMap::new();
            for (path, time) in &paths {
                if let Some(id) = path.get(step) {
                    *times.entry(*id).or_default() += time;
                }
            }
            let greatest = times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
            let Some((id, time)) = greatest.filter(|(_, time)| *time > MOST * all) else { break };
            let Some(symbol) = self.profile.symbols.get(id as usize) else { break };
            callers.push(Caller { function: symbol.name.clone(), object: symbol.object.clone() });
            share = time / all;
            paths.retain(|(path, _)| path.get(step) == Some(&id));
        }
        (callers, share)
    }

    /// The sites, greatest thread time first.
    pub(super) fn sorted(mut self) -> Vec<Site> {
        let sums = std::mem::take(&mut self.sums);
        let mut sites: Vec<Site> = sums
            .into_iter()
            .filter_map(|((thread, id, operation), at)| {
                let symbol = self.profile.symbols.get(id as usize)?;
                let (callers, callers_share) = self.callers(&at);
                let entries = sorted(at.booked);
                let mut sum = Sum::default();
                entries.iter().for_each(|e| sum.add(e.time_ns, e.wall_ns, e.events));
                Some(Site {
                    thread: thread.to_owned(),
                    function: symbol.name.clone(),
                    object: symbol.object.clone().unwrap_or_default(),
                    callers,
                    callers_share,
                    operation,
                    sum,
                    entries,
                })
            })
            .collect();
        sites.sort_by(|a, b| {
            b.sum.time_ns.total_cmp(&a.sum.time_ns).then_with(|| {
                (&a.thread, &a.function, &a.object, a.operation).cmp(&(
                    &b.thread,
                    &b.function,
                    &b.object,
                    b.operation,
                ))
            })
        });
        sites
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_memory_without_a_file_are_not_the_program() {
        let own = |object: Option<&str>| {
            is_own(&Symbol { name: "f".to_owned(), object: object.map(str::to_owned), ..Symbol::default() })
        };
        for object in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/libc-2.31.so",
            "/lib64/ld-linux-x86-64.so.2",
            "/lib/ld-musl-x86_64.so.1",
            "/lib/libpthread-2.31.so",
            "[vdso]",
            "[heap]",
            "//anon",
            "",
        ] {
            assert!(!own(Some(object)), "{object}");
        }
        assert!(!own(None));
        for object in ["/usr/bin/dd", "/usr/lib/libsqlite3.so.0", "/opt/ldap/slapd", "/usr/lib/libcurl.so.4"]
        {
            assert!(own(Some(object)), "{object}");
        }
    }
}
