//! Stacks with their times as folded lines, the input of flame-graph programs: `thread;frame;...;frame microseconds`.
//!
//! Frames run from the outermost to the innermost, user first, kernel frames with the suffix `_[k]`. A stack that did
//! not run ends in a frame `waiting: WHAT`, so that busy and waiting time never share a leaf. Invariant: the counts sum
//! to the thread time in microseconds, to half of one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iowhy_core::profile::{Profile, StackTime, State, SymbolId};
use iowhy_diagnose::classify::Wait;

/// The folded lines of a profile, sorted. `waits_for` says what a sleeping stack waits for.
pub fn lines(profile: &Profile, waits_for: &dyn Fn(&StackTime) -> Option<Wait>) -> String {
    let mut lines: BTreeMap<String, f64> = BTreeMap::new();
    for stack in &profile.stacks {
        *lines.entry(line(profile, stack, waits_for)).or_default() += stack.time_ns / 1000.0;
    }
    let mut text = String::new();
    // Each count is the difference of rounded running sums: no error adds up, and the total is right.
    let (mut sum, mut written) = (0.0, 0.0_f64);
    for (frames, micros) in lines {
        sum += micros;
        let count = (f64::round(sum) - written).max(0.0);
        if count > 0.0 {
            written += count;
            let _ = writeln!(text, "{frames} {count:.0}");
        }
    }
    text
}

/// The innermost frame of a stack that waits; `None`: it runs.
pub fn waiting(state: State, wait: Option<Wait>) -> Option<String> {
    match state {
        State::Running => None,
        State::Queued => Some("waiting: a CPU".to_owned()),
        State::Blocked => Some(format!("waiting: {}", wait.unwrap_or(Wait::Unknown).words())),
    }
}

fn line(profile: &Profile, stack: &StackTime, waits_for: &dyn Fn(&StackTime) -> Option<Wait>) -> String {
    let name = profile.threads.get(stack.thread as usize).map_or("", |thread| thread.name.as_str());
    let mut frames = vec![frame(if name.is_empty() { "[no name]" } else { name })];
    let name_of = |id: &SymbolId| {
        let name = profile.symbols.get(*id as usize).map_or("", |symbol| symbol.name.as_str());
        frame(if name.is_empty() { "[unknown]" } else { name })
    };
    frames.extend(stack.user.iter().rev().map(name_of));
    frames.extend(stack.kernel.iter().rev().map(|id| format!("{}_[k]", name_of(id))));
    if !stack.known {
        frames.push("[stack not seen]".to_owned());
    }
    frames.extend(waiting(stack.state, waits_for(stack)));
    frames.join(";")
}

/// A name as a frame: what separates frames or lines may not occur in it.
fn frame(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_control() { ':' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::watch::synthetic;
    use iowhy_core::profile::{Symbol, Thread};
    use proptest::prelude::*;

    fn sum(text: &str) -> f64 {
        text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
    }

    #[test]
    fn frames_run_outermost_first_and_waiting_is_a_leaf_of_its_own() {
        let (profile, _) = synthetic::sync_loop();
        let text = lines(&profile, &|_| Some(Wait::DataWriteback));
        assert!(
            text.contains(
                "writer;main;save_order;commit;fdatasync;__x64_sys_fdatasync_[k];folio_wait_writeback_[k];"
            ),
            "{text}"
        );
        assert!(text.lines().any(|l| l.contains("waiting: dirty data being written back ")), "{text}");
        assert!(text.lines().any(|l| l.starts_with("writer;main;encode ")), "{text}");
        assert!((sum(&text) - profile.thread_ns() as f64 / 1000.0).abs() <= 0.5, "{text}");
    }

    #[test]
    fn names_cannot_break_the_format() {
        let stack = StackTime {
            thread: 0,
            state: State::Running,
            kernel: vec![],
            user: vec![0, 1, 99],
            known: true,
            time_ns: 5000.0,
            wall_ns: 5000.0,
            events: 1,
            seen_ns: 5000.0,
            requests: None,
        };
        let profile = Profile {
            threads: vec![Thread { name: "a;b\nc".to_owned(), ..Thread::default() }],
            stacks: vec![stack.clone(), StackTime { thread: 7, known: false, ..stack }],
            symbols: vec![
                Symbol { name: "operator new(a; b)".to_owned(), ..Symbol::default() },
                Symbol { name: String::new(), ..Symbol::default() },
            ],
            ..Profile::default()
        };
        let text = lines(&profile, &|_| None);
        assert_eq!(
            text,
            "[no name];[unknown];[unknown];operator new(a: b);[stack not seen] 5\n\
             a:b:c;[unknown];[unknown];operator new(a: b) 5\n"
        );
    }

    proptest! {
        #[test]
        fn counts_sum_to_the_thread_time(times in prop::collection::vec((0.0f64..5e6, 0u8..3, 0u32..5), 0..60)) {
            let stacks: Vec<StackTime> = times.iter().map(|&(time_ns, state, symbol)| StackTime {
                thread: 0,
                state: [State::Running, State::Queued, State::Blocked][usize::from(state)],
                kernel: vec![symbol],
                user: vec![],
                known: true,
                time_ns,
                wall_ns: 0.0,
                events: 1,
                seen_ns: time_ns,
                requests: None,
            }).collect();
            let whole: f64 = times.iter().map(|t| t.0 / 1000.0).sum();
            let text = lines(&Profile { stacks, ..Profile::default() }, &|_| None);
            prop_assert!((sum(&text) - whole).abs() <= 0.5 + 1e-6);
        }
    }
}
