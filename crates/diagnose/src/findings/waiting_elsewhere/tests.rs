//! Tests of the rule `waiting-elsewhere`.

use super::*;
use crate::findings::synthetic::{Run, access, slow_and_repaired};

fn run(asleep: f64, wait: Wait) -> Run {
    Run::new(10.0).wait(Operation::Read, wait, asleep).busy(Operation::User, Layer::Program, 1.0 - asleep)
}

#[test]
fn sleeping_on_a_pipe_is_named_and_computing_not() {
    let slow = run(0.8, Wait::Pipe);
    slow_and_repaired(FindingId::WaitingElsewhere, &slow, &run(0.1, Wait::Pipe));
}

#[test]
fn what_could_not_be_told_is_not_said_to_be_elsewhere() {
    let unknown = run(0.9, Wait::Unknown).findings();
    assert!(unknown[0].sentence.contains("it may be storage"), "{unknown:?}");
    assert!(!unknown[0].sentence.contains("not for storage"));
    // Looks are not sleeps: no number of sleeps where only looks were taken.
    assert!(unknown[0].evidence[0].contains("samples"), "{unknown:?}");
}

#[test]
fn every_wait_off_the_path_has_words() {
    for (sleep, words, _) in KINDS {
        assert!(!sleep.wait.on_path());
        // The one thread of a process has no other to wait for.
        let run = match sleep.peer {
            Some(Peer::Thread) => run(0.9, sleep.wait).second_thread(|run| run.queued(0.01)),
            // The stack decides.
            Some(Peer::Semaphore) => continue,
            Some(Peer::Process) | None => run(0.9, sleep.wait),
        };
        let found = run.findings();
        assert!(found[0].sentence.contains(words), "{found:?}");
    }
}

/// A server that sleeps for events with helpers that sleep on futexes for the whole run.
fn server(listens: bool) -> Run {
    let helper = |run: Run| run.sleeps(Operation::Futex, Wait::Futex, 1.0, 1);
    let main =
        Run::new(10.0).wait(Operation::Poll, Wait::Poll, 0.99).busy(Operation::User, Layer::Program, 0.01);
    let run = (0..4).fold(main, |run, _| run.second_thread(helper)).calls(&[("epoll_wait", 100)]);
    run.with(|p| {
        p.observer.switch_duty = 1.0;
        let process = iowhy_core::profile::Process { count: 1, listens, ..Default::default() };
        p.processes = vec![process];
        let thread = |sleeps| iowhy_core::profile::Thread {
            count: 1,
            lifetime_ns: p.wall_ns,
            sleeps,
            ..Default::default()
        };
        p.threads = [1000, 1, 1, 1, 1].map(thread).to_vec();
    })
}

fn sentence(run: &Run) -> String {
    run.findings()[0].sentence.clone()
}

#[test]
fn an_idle_server_waits_for_requests_and_not_for_its_helpers() {
    assert_eq!(sentence(&server(true)), "Idle: no requests arrived for 99 % of wall time");
    assert!(server(true).findings()[0].evidence.iter().any(|line| line == "4 threads idle throughout"));
    assert!(sentence(&server(false)).ends_with("mostly for events (poll, select, epoll)"));
    let socket = |bytes| iowhy_core::profile::FileUse {
        kind: "socket".into(),
        reads: access(1, bytes, 0),
        ..Default::default()
    };
    for busy in [
        server(true).with(|p| p.files = vec![socket(7)]),
        server(true).calls(&[("accept4", 1)]),
        // Nobody counted.
        server(true).with(|p| p.calls = None),
    ] {
        assert_eq!(sentence(&busy), "The program waits 99 % of wall time for requests");
    }
}
