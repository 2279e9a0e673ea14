//! A kernel profile of a program's own threads by function, as gprof prints it: flat, and callers and callees of one
//! function. From samples of stacks: self is where the clock hit, total is every sample that the function was on the stack of.
//!
//! Non-goal: calls. Samples do not count them, so costs are per request. Pure arithmetic.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::profile::{Profile, SampledShare, StackTime, State, Thread};

/// Samples in user mode.
const USER: &str = "user";

/// A function's part of the samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name; `USER` for the program's own code.
    pub name: String,
    /// Samples that hit it.
    pub own: SampledShare,
    /// Samples that hit it or what it called.
    pub total: SampledShare,
}

/// Functions called by one, and those that call it, with the samples that passed from one to the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallersAndCallees {
    /// Callers, the heaviest first.
    pub callers: Vec<(String, SampledShare)>,
    /// Callees, the heaviest first.
    pub callees: Vec<(String, SampledShare)>,
}

fn samples<'a>(
    profile: &'a Profile,
    measured: &'a dyn Fn(&Thread) -> bool,
) -> impl Iterator<Item = &'a StackTime> + 'a {
    profile.stacks.iter().filter(move |stack| {
        let thread = profile.threads.get(stack.thread as usize);
        stack.state == State::Running && stack.known && thread.is_some_and(measured)
    })
}

/// Functions by their own samples, the heaviest first.
pub fn flat(profile: &Profile, measured: &dyn Fn(&Thread) -> bool) -> Vec<Function> {
    let (mut own, mut total): (BTreeMap<&str, u64>, BTreeMap<&str, u64>) = Default::default();
    let mut n = 0;
    for stack in samples(profile, measured) {
        n += stack.events;
        let names: Vec<&str> = profile.kernel_names(stack).collect();
        *own.entry(names.first().copied().unwrap_or(USER)).or_default() += stack.events;
        // A function that calls itself is on the stack twice, and counts once.
        let on: BTreeSet<&str> =
            if names.is_empty() { BTreeSet::from([USER]) } else { names.into_iter().collect() };
        for name in on {
            *total.entry(name).or_default() += stack.events;
        }
    }
    let mut functions: Vec<Function> = total
        .into_iter()
        .map(|(name, hits)| Function {
            name: name.to_owned(),
            own: SampledShare { hits: own.get(name).copied().unwrap_or(0), n },
            total: SampledShare { hits, n },
        })
        .collect();
    functions.sort_by_key(|function| {
        (std::cmp::Reverse(function.own.hits), std::cmp::Reverse(function.total.hits))
    });
    functions
}

/// Who calls a function, and whom it calls.
pub fn around(profile: &Profile, measured: &dyn Fn(&Thread) -> bool, name: &str) -> CallersAndCallees {
    let (mut callers, mut callees): (BTreeMap<&str, u64>, BTreeMap<&str, u64>) = Default::default();
    let mut n = 0;
    for stack in samples(profile, measured) {
        n += stack.events;
        let names: Vec<&str> = profile.kernel_names(stack).collect();
        if let Some(at) = names.iter().position(|other| *other == name) {
            if let Some(callee) = at.checked_sub(1).and_then(|below| names.get(below)) {
                *callees.entry(callee).or_default() += stack.events;
            }
            if let Some(caller) = names.get(at + 1) {
                *callers.entry(caller).or_default() += stack.events;
            }
        }
    }
    let sorted = |found: BTreeMap<&str, u64>| {
        let mut list: Vec<(String, SampledShare)> =
            found.into_iter().map(|(name, hits)| (name.to_owned(), SampledShare { hits, n })).collect();
        list.sort_by_key(|(_, share)| std::cmp::Reverse(share.hits));
        list
    };
    CallersAndCallees { callers: sorted(callers), callees: sorted(callees) }
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::Symbol;

    use super::*;

    /// Stacks, innermost first, with their samples.
    fn profile(stacks: &[(&[u32], u64)]) -> Profile {
        let symbol = |name: &str| Symbol { name: name.to_owned(), ..Symbol::default() };
        Profile {
            threads: vec![Thread::default()],
            symbols: ["copy", "filemap_read", "vfs_read", "look_up"].map(symbol).to_vec(),
            stacks: stacks
                .iter()
                .map(|(kernel, events)| StackTime {
                    thread: 0,
                    state: State::Running,
                    kernel: kernel.to_vec(),
                    user: Vec::new(),
                    known: true,
                    time_ns: *events as f64,
                    wall_ns: 0.0,
                    events: *events,
                    seen_ns: *events as f64,
                    requests: None,
                })
                .collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn self_times_sum_to_all_samples_and_totals_hold_what_was_called() {
        let seen = profile(&[(&[0, 1, 2], 60), (&[3, 1, 2], 20), (&[1, 2], 10), (&[], 10)]);
        let functions = flat(&seen, &|_| true);
        let of = |name: &str| {
            let found = functions.iter().find(|f| f.name == name).unwrap();
            (found.own.hits, found.total.hits)
        };
        assert_eq!(functions[0].name, "copy");
        assert_eq!(
            [of("copy"), of("filemap_read"), of("vfs_read"), of(USER)],
            [(60, 60), (10, 90), (0, 90), (10, 10)]
        );
        assert_eq!(functions.iter().map(|f| f.own.hits).sum::<u64>(), 100);
        assert!(functions.iter().all(|f| f.own.n == 100 && f.own.hits <= f.total.hits));
        let near = around(&seen, &|_| true, "filemap_read");
        assert_eq!(near.callers, [("vfs_read".to_owned(), SampledShare { hits: 90, n: 100 })]);
        assert_eq!(
            near.callees.iter().map(|(name, s)| (name.as_str(), s.hits)).collect::<Vec<_>>(),
            [("copy", 60), ("look_up", 20)]
        );
    }

    #[test]
    fn a_function_that_calls_itself_counts_once_and_other_threads_do_not() {
        let seen = profile(&[(&[1, 1, 2], 5)]);
        assert_eq!(flat(&seen, &|_| true).iter().map(|f| f.total.hits).collect::<Vec<_>>(), [5, 5]);
        assert_eq!(flat(&seen, &|_| false), []);
        assert_eq!(around(&seen, &|_| true, "nothing"), CallersAndCallees::default());
    }
}
