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
    /// What was asked for there.
    pub operation: Operation,
    /// Time in that operation, waits included.
    pub sum: Sum,
    /// The same by thread and meaning: what a reader needs to say how sure the sum is.
    pub entries: Vec<Entry>,
}

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

fn is_standard(symbol: &Symbol, in_go: bool) -> bool {
    let of = |beginnings: &[&str]| beginnings.iter().any(|beginning| symbol.name.starts_with(beginning));
    of(&STANDARD) || (in_go && of(&STANDARD_IN_GO))
}

/// Whether a user function is the program's own, and can be named: not of the C library, the loader, the vDSO, or
/// memory without a file.
fn is_own(symbol: &Symbol) -> bool {
    let Some(object) = symbol.object.as_deref() else { return false };
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

/// Sums by site while an account is made.
#[derive(Default)]
pub(super) struct Sites<'a> {
    sums: HashMap<(&'a str, SymbolId, Operation), (&'a Symbol, Booked)>,
}

impl<'a> Sites<'a> {
    /// Adds a stack, if it leads to a function of the program. `of_script`: functions of a script come before those of what interprets it.
    pub(super) fn add(&mut self, profile: &'a Profile, stack: &StackTime, class: Class, of_script: bool) {
        let symbols = stack.user.iter().filter_map(|id| Some((*id, profile.symbols.get(*id as usize)?)));
        let in_go = symbols.clone().next_back().is_some_and(|(_, last)| last.name.starts_with(START_IN_GO));
        let own = symbols.filter(|(_, symbol)| is_own(symbol));
        let script = own.clone().find(|(_, symbol)| of_script && symbol.made_at_run_time);
        // Where a standard library calls by itself (a thread of its own), that is who calls.
        let first =
            || own.clone().find(|(_, symbol)| !is_standard(symbol, in_go)).or_else(|| own.clone().next());
        let own = script.or_else(first);
        let Some((id, symbol)) = own else { return };
        let thread = profile.threads.get(stack.thread as usize).map_or("", |t| t.name.as_str());
        let (_, booked) =
            self.sums.entry((thread, id, class.operation)).or_insert_with(|| (symbol, Booked::new()));
        let busy = stack.state == State::Running;
        let sum = booked.entry((stack.thread, class, busy)).or_default();
        sum.add(stack.time_ns, stack.wall_ns, stack.events);
    }

    /// The sites, greatest thread time first.
    pub(super) fn sorted(self) -> Vec<Site> {
        let mut sites: Vec<Site> = self
            .sums
            .into_iter()
            .map(|((thread, _, operation), (symbol, booked))| {
                let entries = sorted(booked);
                let mut sum = Sum::default();
                entries.iter().for_each(|e| sum.add(e.time_ns, e.wall_ns, e.events));
                Site {
                    thread: thread.to_owned(),
                    function: symbol.name.clone(),
                    object: symbol.object.clone().unwrap_or_default(),
                    operation,
                    sum,
                    entries,
                }
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
