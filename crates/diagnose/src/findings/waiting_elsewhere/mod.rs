//! The rule `waiting-elsewhere`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::Tier;

use super::{Facts, Repairs, Rule, repairs, say};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::WaitingElsewhere,
    claim: "waiting for something other than storage",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repairs::no_fault),
};

/// Nobody was active for this share of the wall time.
const IDLE: f64 = 0.5;

/// Making data durable is worth a word from this share of the wall time on.
const MUCH_SYNCING: f64 = 0.1;

/// Waits off the path, in words, and what to look at.
const KINDS: [(Wait, &str, &str); 8] = [
    (
        Wait::Pipe,
        "the other end of a pipe",
        "Profile the program at the other end of the pipe: iowhy attach PID.",
    ),
    (Wait::Socket, "the network or a local socket", "Look at the server or peer that it waits for."),
    (Wait::Timer, "a timer (intended sleep)", "Look for sleep, rate limits and retry pauses in the program."),
    (
        Wait::Futex,
        "another thread of its own",
        "Look at the thread that holds the lock or produces the work.",
    ),
    (Wait::Child, "a child process", "The children were profiled too: their time is in the account."),
    (Wait::Poll, "events (poll, select, epoll)", "It is idle until work arrives; look at the sender."),
    (Wait::Terminal, "input from a terminal", "It waits for a user to type."),
    (Wait::Unknown, "an unknown cause", "Run as root to see kernel stacks."),
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
        .map_or(("an unobserved cause", KINDS[7].2), |((_, words, advice), _)| (*words, *advice));
    // Where kernel stacks are seen already, more rights would not show more.
    let unseen = advice == KINDS[7].2 && facts.profile.sight.tier >= Tier::T1;
    let advice = if unseen {
        "Profile for longer: the cause of the sleep was not observed in so short a \
                     time."
    } else {
        advice
    };
    let mut evidence: Vec<String> = waits
        .iter()
        .take(3)
        .map(|((_, words, _), sum)| {
            let seen = match (facts.sleeps_are_counted(), sum.events) {
                (true, 1) => "in 1 sleep".to_owned(),
                (true, n) => format!("in {} sleeps", say::count(n as f64)),
                (false, 1) => "seen in 1 sample".to_owned(),
                (false, n) => format!("seen in {} samples", say::count(n as f64)),
            };
            format!("{} of thread time asleep on {words}, {seen}", say::time(sum.time_ns))
        })
        .collect();
    let active = (account.wall_ns - asleep).max(0.0);
    if asleep > account.idle_wall_ns {
        let queued = account.layer(Layer::CpuQueue).time_ns;
        evidence.push(format!(
            "each thread is runnable without a CPU for {} of its time on average",
            say::percent(queued / account.thread_ns.max(1.0))
        ));
    }
    evidence.push(format!("at least one thread ran or waited for storage for {}", say::time(active)));
    // Of what nobody knows what it is for, nobody can say that it is not for storage.
    let untold = waits.first().is_none_or(|((wait, ..), _)| *wait == Wait::Unknown);
    let syncing = facts.wall_share(account.operation(Operation::Sync).wall_ns);
    let sentence = if untold {
        format!(
            "The program waits {} of wall time, mostly for {words}; it may be storage",
            say::percent(share)
        )
    } else if syncing >= MUCH_SYNCING {
        format!(
            "The program waits {} of wall time, not for storage but mostly for {words}; syncs take another {}",
            say::percent(share),
            say::percent(syncing)
        )
    } else {
        format!(
            "The program waits {} of wall time, not for storage but mostly for {words}",
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
