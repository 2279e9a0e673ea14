//! The rule `waiting-elsewhere`. Its page of the manual:
#![doc = include_str!("waiting-elsewhere.md")]

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::Tier;

use super::{Facts, Rule, say};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule =
    Rule { id: FindingId::WaitingElsewhere, manual: include_str!("waiting-elsewhere.md"), judge };

/// Nobody was active for this share of the wall time.
const IDLE: f64 = 0.5;

/// Making data durable is worth a word from this share of the wall time on.
const MUCH_SYNCING: f64 = 0.1;

/// Waits off the path, in words, and what to look at.
const KINDS: [(Wait, &str, &str); 8] = [
    (
        Wait::Pipe,
        "the other end of a pipe",
        "Watch the program at the other end of the pipe: iowhy attach PID.",
    ),
    (Wait::Socket, "the network or a local socket", "Look at the server or the peer that it waits for."),
    (
        Wait::Timer,
        "a timer: it sleeps on purpose",
        "Look for sleep, rate limits and retry pauses in the program.",
    ),
    (
        Wait::Futex,
        "another thread of its own",
        "Look at what the thread that holds the lock, or makes the work, does.",
    ),
    (Wait::Child, "a child process", "The children were watched as well: their part is in the account."),
    (Wait::Poll, "events (poll, select, epoll)", "It is idle until somebody sends work; look at who should."),
    (Wait::Terminal, "input from a terminal", "It waits for somebody to type."),
    (Wait::Unknown, "something that could not be told", "Run as root, so that kernel stacks can be seen."),
];

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let account = facts.account;
    // Of threads that sleep on purpose, nearly always one is runnable for a moment: that is no work of the others.
    let asleep = account.idle_wall_ns + facts.queueing().excess_ns;
    let share = facts.wall_share(asleep);
    if share < IDLE {
        return None;
    }
    let mut waits: Vec<_> =
        KINDS.iter().map(|k| (k, account.wait(k.0))).filter(|(_, s)| s.time_ns > 0.0).collect();
    waits.sort_by(|a, b| b.1.time_ns.total_cmp(&a.1.time_ns));
    let (words, advice) = waits
        .first()
        .map_or(("something that was not seen", KINDS[7].2), |((_, words, advice), _)| (*words, *advice));
    // Where kernel stacks are seen already, more rights would not show more.
    let unseen = advice == KINDS[7].2 && facts.profile.sight.tier >= Tier::Stacks;
    let advice =
        if unseen { "Watch for longer: what it sleeps in was not seen in so short a time." } else { advice };
    let mut evidence: Vec<String> = waits
        .iter()
        .take(3)
        .map(|((_, words, _), sum)| {
            let seen = match (facts.sleeps_are_counted(), sum.events) {
                (true, 1) => "in 1 sleep".to_owned(),
                (true, n) => format!("in {} sleeps", say::count(n as f64)),
                (false, 1) => "seen in 1 look".to_owned(),
                (false, n) => format!("seen in {} looks", say::count(n as f64)),
            };
            format!("{} of thread time asleep on {words}, {seen}", say::time(sum.time_ns))
        })
        .collect();
    let active = (account.wall_ns - asleep).max(0.0);
    if asleep > account.idle_wall_ns {
        let queued = account.layer(Layer::CpuQueue).time_ns;
        evidence.push(format!(
            "each thread is runnable without a CPU for {} of its time, on average",
            say::percent(queued / account.thread_ns.max(1.0))
        ));
    }
    evidence.push(format!("some thread ran, or waited on the path to the disk, for {}", say::time(active)));
    // Of what nobody knows what it is for, nobody can say that it is not for storage.
    let untold = waits.first().is_none_or(|((wait, ..), _)| *wait == Wait::Unknown);
    let syncing = facts.wall_share(account.operation(Operation::Sync).wall_ns);
    let sentence = if untold {
        format!(
            "The program waits {} of the wall time, mostly for {words}: whether it is storage is not known",
            say::percent(share)
        )
    } else if syncing >= MUCH_SYNCING {
        format!(
            "The program waits {} of the wall time for something other than storage, mostly for {words}; making data \
             durable takes {} besides",
            say::percent(share),
            say::percent(syncing)
        )
    } else {
        format!(
            "The program waits {} of the wall time, and not for storage: mostly for {words}",
            say::percent(share)
        )
    };
    Some(Finding {
        id: FindingId::WaitingElsewhere,
        share,
        sentence,
        evidence,
        advice: advice.into(),
        gain: None,
        undecided: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::synthetic::{Run, slow_and_repaired};

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
        assert!(unknown[0].sentence.contains("whether it is storage is not known"), "{unknown:?}");
        assert!(!unknown[0].sentence.contains("not for storage"));
        // Looks are not sleeps: no number of sleeps where only looks were taken.
        assert!(unknown[0].evidence[0].contains("looks"), "{unknown:?}");
    }

    #[test]
    fn every_wait_off_the_path_has_words() {
        for (wait, words, _) in KINDS {
            assert!(!wait.on_path());
            assert!(run(0.9, wait).findings()[0].sentence.contains(words));
        }
    }
}
