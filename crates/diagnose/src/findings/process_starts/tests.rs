//! Tests of the rule `process-starts`.

use iowhy_core::profile::{Process, Symbol, Thread};

use super::*;
use crate::findings::synthetic::{Run, slow_and_repaired};

/// Both processes of a [`shell`] are active at the same time, so that each instant is shared: 0.75 of the run for 0.85 of CPU time.
const SHARED: f64 = 0.75 / 0.85;

/// A shell (process 1) that starts `count` processes of a program, which exist for this part of the run in sum.
fn shell(count: u64, lifetimes: f64) -> Run {
    Run::new(4.0)
        .busy_sampled(Operation::Process, Layer::Memory, 0.05, 200)
        .busy(Operation::User, Layer::Program, 0.05)
        .second_thread(|run| {
            run.busy(Operation::Process, Layer::Memory, 0.2).busy(Operation::Fault, Layer::Memory, 0.15).busy(
                Operation::User,
                Layer::Program,
                0.4,
            )
        })
        .stack(&["copy_process", "kernel_clone", "__do_sys_vfork"], State::Running, 0.05, 200)
        .stack(&["_dl_relocate_object"], State::Running, 0.2, 800)
        .stack(&["main"], State::Running, 0.2, 800)
        .with(|p| {
            let lifetime_ns = (4e9 * lifetimes) as u64;
            p.threads = vec![
                Thread {
                    pid: 1,
                    tid: 1,
                    name: "sh".into(),
                    count: 1,
                    lifetime_ns: 4_000_000_000,
                    ..Thread::default()
                },
                Thread { pid: 2, tid: 2, name: "git".into(), count, lifetime_ns, ..Thread::default() },
            ];
            p.processes = vec![
                Process { pid: 1, name: "sh".into(), count: 1, ..Process::default() },
                Process { pid: 2, name: "git".into(), count, ..Process::default() },
            ];
            // The builder makes kernel stacks of the first thread.
            for stack in &mut p.stacks[1..] {
                stack.user = std::mem::take(&mut stack.kernel);
                stack.thread = 1;
            }
            p.symbols[3].object = Some("ld-linux-x86-64.so.2".into());
        })
}

#[test]
fn a_loop_over_a_program_is_named_and_workers_side_by_side_are_not() {
    let found = slow_and_repaired(FindingId::ProcessStarts, &shell(400, 1.0), &shell(4, 4.0));
    let words = "Starting and ending processes takes 53 % of wall time: 400 were `git`";
    assert_eq!(found.sentence, words);
    assert!(found.evidence[0].contains("the dynamic linker: 18 % ("), "{found:?}");
    // All that these processes do may go, 0.75 of 0.85, and what the shell takes to make them.
    assert!(found.gain.is_none() && found.gain_rest_unchanged.is_some_and(|bound| bound > 3.0), "{found:?}");
    assert!(found.evidence[2].starts_with("all that these processes do takes 70 %"), "{found:?}");
    assert!((found.share / SHARED - 0.55 * 399.0 / 400.0 - 0.05 * 399.0 / 401.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn a_start_is_the_first_of_its_name_once() {
    let share = |count, lifetimes| shell(count, lifetimes).facts(judge).map_or(0.0, |found| found.share);
    assert_eq!(share(1, 1.0), 0.0);
    assert!(share(2, 1.0) > share(2, 1.5) && share(2, 2.0) == 0.0);
    // Two at a time, all along.
    assert!((share(400, 2.0) / SHARED - 0.55 * 398.0 / 400.0 - 0.05 * 398.0 / 401.0).abs() < 1e-9);
}

#[test]
fn the_end_of_one_great_process_beside_small_ones_is_no_start_of_theirs() {
    let run = shell(400, 1.0).with(|p| {
        // What the first process does is no fork: it frees its memory.
        p.symbols[1].name = "do_exit".into();
    });
    let (with, without) = (shell(400, 1.0).facts(judge).unwrap(), run.facts(judge).unwrap());
    assert!(
        ((with.share - without.share) / SHARED - 0.05 * 399.0 / 401.0).abs() < 1e-9,
        "{with:?} {without:?}"
    );
}

#[test]
fn dynamic_linkers_are_known_by_the_names_of_the_abis() {
    let links = |object: &str, name: &str| {
        let run = Run::new(1.0).stack(&["f"], State::Running, 0.1, 1).with(|p| {
            p.symbols[0] = Symbol {
                name: name.into(),
                object: Some(object.to_owned()).filter(|o| !o.is_empty()),
                ..Symbol::default()
            };
            p.stacks[0].user = std::mem::take(&mut p.stacks[0].kernel);
        });
        is_linking(&run.profile, &run.profile.stacks[0])
    };
    for object in [
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
        "ld64.so.2",
        "ld-musl-x86_64.so.1",
        "ld.so.1",
        "ld-2.31.so",
    ] {
        assert!(links(object, "_dl_start") && links("", &format!("[{object}]")), "{object}");
    }
    for object in ["libc.so.6", "ld", "ldconfig", "libld-linux.so", "ldd-tool"] {
        assert!(!links(object, "main") && !links("", &format!("[{object}]")), "{object}");
    }
}
