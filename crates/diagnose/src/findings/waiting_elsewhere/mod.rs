//! The rule `waiting-elsewhere`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;
use iowhy_core::profile::Tier;
use iowhy_core::units;

use super::facts::Side;
use super::{Facts, Repairs, Rule, repairs, say};
use crate::account::{Entry, Peer, Sleep, Sum, WallClock};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::WaitingElsewhere,
    claim: "waiting for something other than storage",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none(repairs::NO_FAULT),
};

/// Nobody was active for this share of the wall time.
const IDLE: f64 = 0.5;

/// A sleep that takes less of the wall time than this is not named.
const NAMED: f64 = 0.01;

/// Part of the sleep off the path from which on it is what a server does.
const MOSTLY: f64 = 0.5;

/// Making data durable is worth a word from this share of the wall time on.
const MUCH_SYNCING: f64 = 0.1;

/// Sleeps off the path, in words, and what to look at.
const KINDS: [(Sleep, &str, &str); 11] = [
    (
        only(Wait::Pipe),
        "the other end of a pipe",
        "Profile the program at the other end of the pipe: iowhy attach PID.",
    ),
    (only(Wait::Socket), "the network or a local socket", "Look at the server or peer that it waits for."),
    (
        only(Wait::Timer),
        "a timer (intended sleep)",
        "Look for sleep, rate limits and retry pauses in the program.",
    ),
    (
        futex(Peer::Thread),
        "another thread of its own",
        "Look at the thread that holds the lock or produces the work.",
    ),
    (
        futex(Peer::Process),
        "another process (a lock in shared memory)",
        "Look at the process that holds the lock: iowhy attach PID.",
    ),
    (
        futex(Peer::Semaphore),
        "another process (a semaphore or message queue)",
        "Look at the process that posts the semaphore or sends the message: iowhy attach PID.",
    ),
    (only(Wait::Signal), "a signal", "A shell waits so for its children, which were profiled too."),
    (only(Wait::Child), "a child process", "The children were profiled too: their time is in the account."),
    (only(Wait::Poll), "events (poll, select, epoll)", "It is idle until work arrives; look at the sender."),
    (only(Wait::Terminal), "input from a terminal", "It waits for a user to type."),
    (only(Wait::Unknown), "an unknown cause", "Run as root to see kernel stacks."),
];

const fn only(wait: Wait) -> Sleep {
    Sleep { wait, peer: None }
}

const fn futex(peer: Peer) -> Sleep {
    Sleep { wait: Wait::Futex, peer: Some(peer) }
}

/// Words and advice of a sleep that was not seen.
const UNSEEN: (&str, &str) = ("an unobserved cause", KINDS[KINDS.len() - 1].2);

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let account = facts.account;
    // Of threads that sleep on purpose, nearly always one is runnable for a moment: that is no work of the others.
    let asleep = account.idle_wall_ns + facts.queueing().excess_ns;
    let share = facts.wall_share(asleep);
    if share < IDLE {
        return None;
    }
    let clock = WallClock::new(facts.profile, account);
    let sleeps = clock.waits(facts.profile, account, |e| e.class.wait.is_some_and(|wait| !wait.on_path()));
    // Threads that idle throughout take none of the idle time where others slept as well.
    let waits: Vec<_> = sleeps
        .into_iter()
        .filter(|(_, sum)| facts.wall_share(sum.wall_ns) >= NAMED)
        .filter_map(|(sleep, sum)| Some((KINDS.iter().find(|kind| kind.0 == sleep)?, sum)))
        .collect();
    let (words, advice) = waits.first().map_or(UNSEEN, |((_, words, advice), _)| (*words, *advice));
    // Where kernel stacks are seen already, more rights would not show more.
    let unseen = advice == UNSEEN.1 && facts.profile.sight.tier >= Tier::Stacks;
    let advice = if unseen {
        "Profile for longer: the cause of the sleep was not observed in so short a time."
    } else {
        advice
    };
    let mut evidence: Vec<String> =
        waits.iter().take(3).map(|((_, words, _), sum)| asleep_on(facts, words, *sum)).collect();
    let idle_threads = clock.idle_threads(facts.profile);
    if idle_threads > 0 {
        evidence.push(units::counted(idle_threads, "thread idles throughout", "threads idle throughout"));
    }
    let active = (account.wall_ns - asleep).max(0.0);
    if asleep > account.idle_wall_ns {
        let queued = account.layer(Layer::CpuQueue).time_ns;
        evidence.push(format!(
            "each thread is runnable without a CPU for {} of its time on average",
            say::percent(queued / account.thread_ns.max(1.0))
        ));
    }
    evidence.push(format!("at least one thread ran or waited for storage for {}", say::time(active)));
    let (sentence, advice) = match requests(facts, &clock) {
        Some(Requests::None) => (
            format!("Idle: no requests arrived for {} of wall time", say::percent(share)),
            "Profile it while it serves requests.",
        ),
        Some(Requests::Some) => {
            (format!("The program waits {} of wall time for requests", say::percent(share)), advice)
        }
        None => (sentence(facts, share, words, waits.first().map(|((sleep, ..), _)| sleep.wait)), advice),
    };
    Some(Finding {
        id: FindingId::WaitingElsewhere,
        share,
        sentence,
        evidence,
        advice: advice.into(),
        gain: None,
        gain_rest_unchanged: None,
        in_program: None,
        prediction: None,
        not_calibrated: None,
        replies: None,
        undecided: false,
    })
}

/// A line of evidence: time asleep on one thing.
fn asleep_on(facts: &Facts<'_>, words: &str, sum: Sum) -> String {
    let seen = match (facts.sleeps_are_counted(), sum.events) {
        (true, 1) => "in 1 sleep".to_owned(),
        (true, n) => format!("in {} sleeps", say::count(n as f64)),
        (false, 1) => "seen in 1 sample".to_owned(),
        (false, n) => format!("seen in {} samples", say::count(n as f64)),
    };
    format!("{} of thread time asleep on {words}, {seen}", say::time(sum.time_ns))
}

/// The sentence of a run that waits mostly for `wait`, called `words`.
fn sentence(facts: &Facts<'_>, share: f64, words: &str, wait: Option<Wait>) -> String {
    let waits = format!("The program waits {} of wall time", say::percent(share));
    // Of what nobody knows what it is for, nobody can say that it is not for storage.
    if wait.is_none_or(|wait| wait == Wait::Unknown) {
        return format!("{waits}, mostly for {words}; it may be storage");
    }
    let syncing = facts.wall_share(facts.account.operation(Operation::Sync).wall_ns);
    let syncs = if syncing >= MUCH_SYNCING {
        format!("; syncs take another {}", say::percent(syncing))
    } else {
        String::new()
    };
    format!("{waits}, not for storage but mostly for {words}{syncs}")
}

/// Whether a server had anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    /// Every call was counted by file, and none read from a socket.
    None,
    /// Some came, or that cannot be told.
    Some,
}

/// What a server that waits for requests got. `None`: no process listens, or the threads that are not idle throughout wait
/// for something else.
fn requests(facts: &Facts<'_>, clock: &WallClock) -> Option<Requests> {
    if !facts.profile.processes.iter().any(|process| process.listens) {
        return None;
    }
    let for_requests = |e: &Entry| matches!(e.class.wait, Some(Wait::Poll | Wait::Socket));
    let wall = |pick: &dyn Fn(&Entry) -> bool| -> f64 {
        facts.account.entries.iter().filter(|e| pick(e)).map(|e| clock.wall_ns(e)).sum()
    };
    let asleep = wall(&|e| e.class.wait.is_some_and(|wait| !wait.on_path()));
    if wall(&for_requests) < MOSTLY * asleep {
        return None;
    }
    let sockets = facts.profile.files.iter().filter(|file| file.kind == "socket");
    let read: u64 = sockets.map(|file| file.reads.bytes).sum();
    let counted = facts.calls_are_counted_by_file(Side::Read);
    let calls = facts.profile.calls.iter().flat_map(|calls| &calls.calls);
    let accepted = calls.filter(|call| call.name.starts_with("accept")).any(|call| call.succeeded() > 0);
    Some(if counted && read == 0 && !accepted { Requests::None } else { Requests::Some })
}
