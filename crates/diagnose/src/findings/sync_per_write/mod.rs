//! The rule `sync-per-write`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{Side, Syncs, share_of};
use super::removable::Removable;
use super::report::Draft;
use super::{Facts, Repairs, Rule, WORTH_SAVING, loops, say};
use crate::account::{Entry, Sum};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::SyncPerWrite,
    claim: "each record is made durable separately",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { choices: repair::CHOICES, ..Repairs::of_calls(repair::repaired) },
};

/// More writes than this for one sync are a batch already.
const BATCHED: f64 = 32.0;
/// More bytes than this for one sync are a batch already: their transfer takes longer than making them durable.
const BATCHED_BYTES: f64 = 1_048_576.0;
/// Fewer syncs than this may belong to the start and the end of a program.
const HABIT: f64 = 20.0;
/// Writes on descriptors with O_SYNC or O_DSYNC are the habit from this share on.
const MOSTLY: f64 = 0.5;
/// Where the journal takes this part, fdatasync is worth mentioning.
const JOURNAL_PART: f64 = 0.2;

/// Whether writes wait for flushes of the device's cache, and mostly for that and for their data: no write does unless
/// the file was opened with O_SYNC or O_DSYNC.
fn flushes_within_writes(facts: &Facts<'_>) -> bool {
    let all = facts.account.sum(|e| !e.busy && e.class.operation == Operation::Write).wall_ns;
    let wait = |wait| facts.waiting(Operation::Write, wait).wall_ns;
    let flushing = wait(Wait::CacheFlush);
    flushing > 0.0 && flushing + wait(Wait::DataWriteback) >= MOSTLY * all
}

/// Where it was not seen what the program sleeps in, or how often it syncs: by the devices' own count of flushes against
/// the program's writes. It is everybody's count, so it must be about one for each write, and no gain is foretold.
fn by_counters(facts: &Facts<'_>) -> Option<Finding> {
    const ENOUGH: f64 = 20.0;
    // A look now and then: the time in syncs may be twice that, with the CPU time of them.
    const SEEN: f64 = 0.25;
    let durable = |e: &Entry| match e.class.operation {
        Operation::Sync => e.wall_ns > 0.0,
        Operation::Unknown => {
            matches!(e.class.wait, Some(Wait::DataWriteback | Wait::CacheFlush | Wait::Journal))
        }
        _ => false,
    };
    let syncing_ns = facts.account.sum(durable).wall_ns;
    if facts.idle_unexplained() < MOSTLY && facts.wall_share(syncing_ns) < SEEN {
        return None;
    }
    let writes = facts.profile.io.write_calls? as f64;
    let device = facts.profile.devices.iter().max_by_key(|d| d.flushes)?;
    let flushes = device.flushes as f64;
    let part_of_writes = 1.0 / 1.5 <= flushes / writes.max(1.0) && flushes <= 2.5 * writes;
    let large = facts.bytes(Side::Write).is_some_and(|bytes| bytes / writes >= BATCHED_BYTES);
    if writes < ENOUGH || !part_of_writes || large {
        return None;
    }
    let cost_ns =
        ((device.flush_ns + device.write_ns) as f64).min(facts.account.idle_wall_ns).max(syncing_ns);
    let known = if syncing_ns > 0.0 {
        format!(
            "{} of wall time waits for durability; the number of syncs is unknown",
            say::percent(facts.wall_share(syncing_ns))
        )
    } else {
        format!("{} of wall time is sleep with unknown cause", say::percent(facts.idle_unexplained()))
    };
    Draft {
        id: FindingId::SyncPerWrite,
        cost_ns,
        removable: None,
        sentence: format!(
            "About one cache flush of {} per write: records seem to be made durable one at a time",
            device.name
        ),
        evidence: vec![
            format!(
                "{} flushes of {} ({} in total, including other processes) for {} writes of the program",
                say::count(flushes),
                device.name,
                say::time(device.flush_ns as f64),
                say::count(writes)
            ),
            known,
        ],
        advice: "Make a batch of records durable together: one fdatasync for every 100 records (group commit; in SQLite \
                 one transaction around many statements). For certainty and a prediction, allow kernel stacks: the end of the report says how."
            .into(),
    }
    .finding(facts)
}

/// What else goes with each transaction: a journal that is created and taken away around each sync, with the writes and
/// reads of it. `None` where no names are taken away about as often as data is made durable. A new file for each record is
/// another matter: its name stays.
fn with_each_transaction(facts: &Facts<'_>, syncs: f64) -> Option<fn(&Entry) -> bool> {
    const OFTEN: f64 = 0.2;
    const ENOUGH: f64 = 20.0;
    fn names(e: &Entry) -> bool {
        matches!(
            e.class.operation,
            Operation::Names | Operation::Open | Operation::Close | Operation::Stat | Operation::Descriptor
        ) && e.wall_ns > 0.0
    }
    fn transfer(e: &Entry) -> bool {
        matches!(e.class.operation, Operation::Read | Operation::Write)
            && e.wall_ns > 0.0
            && e.class.layer != Layer::Copy
    }
    let removed = facts.counted_calls(&["unlink", "unlinkat", "ftruncate"])?;
    if syncs < ENOUGH || removed < OFTEN * syncs {
        return None;
    }
    Some(|e| names(e) || transfer(e))
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let habit = Habit::seen(facts);
    let number_unknown = habit.counted.is_none() && !habit.within_writes;
    if (number_unknown || habit.time.wall_ns < WORTH_SAVING * facts.account.wall_ns)
        && let Some(found) = by_counters(facts)
    {
        return Some(found);
    }
    if !habit.is_one(facts) {
        return None;
    }
    let split = Split::new(facts, &habit);
    let around = if habit.within_writes { None } else { with_each_transaction(facts, habit.syncs) };
    Draft {
        id: FindingId::SyncPerWrite,
        cost_ns: habit.time.wall_ns,
        removable: Some(removable(facts, &habit, around)),
        sentence: sentence(facts, &habit),
        evidence: evidence(facts, &habit, &split, around),
        advice: advice(facts, habit.within_writes, &split, habit.syncs),
    }
    .finding(facts)
}

fn sentence(facts: &Facts<'_>, habit: &Habit) -> String {
    let share = say::percent(facts.wall_share(habit.time.wall_ns));
    if !habit.is_counted() {
        return format!(
            "{}s take {share} of wall time: small changes are made durable separately",
            habit.call()
        );
    }
    format!(
        "{} made durable separately: {} {}s take {share} of wall time",
        subject(habit.counted_writes, habit.writes() / habit.syncs),
        say::count(habit.syncs),
        habit.call(),
    )
}

/// How the program makes its data durable.
struct Habit {
    /// Share of the writes that are synchronous by the open flags of their file.
    opened: Option<f64>,
    /// Whether the writes themselves wait for durability.
    within_writes: bool,
    counted: Option<Syncs>,
    counted_writes: Option<f64>,
    /// Syncs and synchronous writes.
    syncs: f64,
    bytes_each: Option<f64>,
    /// The time of the calls that wait for durability.
    time: Sum,
}

impl Habit {
    fn seen(facts: &Facts<'_>) -> Habit {
        let opened = share_of(facts.tally(Side::Write).synchronous).map(|s| s.value);
        let synchronous = opened.unwrap_or_else(|| f64::from(flushes_within_writes(facts)));
        let within_writes = synchronous >= MOSTLY;
        let counted = facts.syncs();
        // Writes to files, where every call was counted with its file: replies to clients are made durable by nobody.
        let storage = facts.calls_are_counted_by_file(Side::Write).then(|| facts.tally(Side::Write));
        let counted_writes = storage.map(|s| s.calls as f64).or_else(|| facts.calls(Side::Write));
        let syncs = match counted {
            Some(syncs) if !within_writes => syncs.number,
            other => {
                let inside = storage.map(|s| s.synchronous.hits as f64);
                let writes = inside.unwrap_or_else(|| synchronous * counted_writes.unwrap_or(0.0));
                other.map_or(0.0, |s| s.number) + writes
            }
        };
        let bytes = storage.map(|s| s.bytes as f64).or_else(|| facts.bytes(Side::Write));
        Habit {
            opened,
            within_writes,
            counted,
            counted_writes,
            syncs,
            bytes_each: bytes.map(|bytes| bytes / syncs),
            time: facts.account.sum(|e| makes_durable(e, within_writes)),
        }
    }

    /// A few syncs are no habit, unless they are what the run does; and large batches are none.
    fn is_one(&self, facts: &Facts<'_>) -> bool {
        if self.time.wall_ns <= 0.0 || self.syncs < 2.0 {
            return false;
        }
        let often = self.syncs >= HABIT || self.time.wall_ns >= MOSTLY * facts.account.wall_ns;
        let large = self.bytes_each.is_some_and(|bytes| bytes >= BATCHED_BYTES);
        often && self.writes() / self.syncs <= BATCHED && !large
    }

    fn writes(&self) -> f64 {
        self.counted_writes.unwrap_or(0.0)
    }

    /// Whether each sync was counted. Else their number is inferred from sleeps, and is not printed.
    fn is_counted(&self) -> bool {
        self.within_writes || self.counted.is_some_and(|syncs| syncs.counted)
    }

    /// The call that waits, in words.
    fn call(&self) -> &'static str {
        if self.within_writes { "synchronous write" } else { "sync" }
    }
}

/// A synchronous write is that as a whole: its sleeps, its turns in the queues and the CPU time of its way down. Only
/// the copy into the cache stays when it is made durable later.
fn makes_durable(e: &Entry, within_writes: bool) -> bool {
    match e.class.operation {
        Operation::Sync => e.wall_ns > 0.0,
        Operation::Write => within_writes && e.wall_ns > 0.0 && e.class.layer != Layer::Copy,
        _ => false,
    }
}

/// The syncs, what goes with each transaction, and the samples in the functions of calls.
fn removable(facts: &Facts<'_>, habit: &Habit, around: Option<fn(&Entry) -> bool>) -> Removable {
    let within_calls = loops::within_calls(facts);
    facts.removable(|e| {
        let goes = makes_durable(e, habit.within_writes) || around.is_some_and(|around| around(e));
        within_calls(e).max(f64::from(goes))
    })
}

fn evidence(
    facts: &Facts<'_>,
    habit: &Habit,
    split: &Split,
    around: Option<fn(&Entry) -> bool>,
) -> Vec<String> {
    let (call, syncs) = (habit.call(), habit.syncs);
    let mut evidence = if habit.is_counted() {
        vec![
            writes_in_words(call, syncs, habit.counted_writes.zip(habit.bytes_each)),
            format!("a {call} takes {}: {}", say::time(habit.time.time_ns / syncs), split.words()),
        ]
    } else {
        vec![format!("their time: {}; they were not counted", split.words())]
    };
    if habit.within_writes && habit.opened.is_none() {
        evidence.push(
            "the open flags are unknown; only a file opened with O_SYNC or O_DSYNC waits for a flush in a write"
                .to_owned(),
        );
    }
    if let Some(around) = around {
        evidence.push(format!(
            "each transaction also creates, truncates or removes files: {} of wall time with their reads and writes",
            say::percent(facts.wall_share(facts.account.sum(around).wall_ns))
        ));
    }
    evidence
}

/// Whether fsync was seen; not seen calls may well be fsync.
fn uses_fsync(facts: &Facts<'_>) -> bool {
    let calls = facts.profile.calls.as_ref();
    calls.is_none_or(|c| c.calls.iter().any(|c| c.name == "fsync" && c.succeeded() > 0))
}

/// Whether about every sync is for another file.
fn many_files(facts: &Facts<'_>, syncs: f64) -> bool {
    facts
        .counted_calls(&["open", "openat", "creat"])
        .is_some_and(|opens| opens >= 0.5 * syncs && syncs >= 20.0)
}

/// Parts of the time of the syncs, 0 to 1.
struct Split {
    data: f64,
    flush: f64,
    journal: f64,
    queued: f64,
}

impl Split {
    fn new(facts: &Facts<'_>, habit: &Habit) -> Split {
        let part = |pick: &dyn Fn(&Entry) -> bool| {
            let sum = facts.account.sum(|e| makes_durable(e, habit.within_writes) && pick(e));
            sum.wall_ns / habit.time.wall_ns
        };
        Split {
            data: part(&|e| matches!(e.class.wait, Some(Wait::DataWriteback | Wait::DeviceWrite))),
            flush: part(&|e| e.class.wait == Some(Wait::CacheFlush)),
            journal: part(&|e| matches!(e.class.wait, Some(Wait::Journal | Wait::JournalSpace))),
            queued: part(&|e| e.class.layer == Layer::CpuQueue),
        }
    }

    fn words(&self) -> String {
        let rest = (1.0 - self.data - self.flush - self.journal).max(0.0);
        format!(
            "{} data write-back, {} device cache flush, {} journal commit, {} CPU and other",
            say::percent(self.data),
            say::percent(self.flush),
            say::percent(self.journal),
            say::percent(rest)
        )
    }
}

fn advice(facts: &Facts<'_>, within_writes: bool, split: &Split, syncs: f64) -> String {
    let mut advice = if within_writes {
        "Open the file without O_SYNC or O_DSYNC, write a batch of records and call fdatasync once for it"
    } else {
        "Make a batch of records durable together: one fdatasync for every 100 records or every few milliseconds \
         (group commit; in SQLite one transaction around many statements)"
    }
    .to_owned();
    advice.push_str(match uses_fsync(facts) {
        true if split.journal >= JOURNAL_PART => {
            "; fdatasync instead of fsync, and space preallocated with fallocate, avoid most journal commits."
        }
        _ => ".",
    });
    if many_files(facts, syncs) {
        advice.push_str(" For many new files: write them all first, then sync them (or call syncfs once).");
    }
    if split.queued > 0.2 {
        advice.push_str(" Part of this time is queueing for a CPU.");
    }
    advice
}

/// What the sentence says about the writes of a sync.
fn subject(writes: Option<f64>, writes_each: f64) -> String {
    match writes {
        Some(_) if (0.5..1.5).contains(&writes_each) => "Each write is".to_owned(),
        Some(_) if writes_each >= 1.5 => format!("Each batch of {} writes is", say::count(writes_each)),
        // Fewer writes than syncs (mapped memory), or an unknown number.
        _ => "Each small change is".to_owned(),
    }
}

fn writes_in_words(call: &str, syncs: f64, writes: Option<(f64, f64)>) -> String {
    match writes {
        Some((writes, bytes_each)) => {
            let each = say::count(writes / syncs);
            format!(
                "{} {call}s for {} writes: {each} {} per {call}, {}",
                say::count(syncs),
                say::count(writes),
                if each == "1" { "write" } else { "writes" },
                say::bytes(bytes_each)
            )
        }
        None => format!("{} {call}s; the bytes per {call} are unknown", say::count(syncs)),
    }
}
