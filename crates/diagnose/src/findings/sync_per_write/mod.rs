//! The rule `sync-per-write`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{Side, share_of};
use super::gain::SavedTime;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Repairs, Rule, WORTH_SAVING, loops, say};
use crate::account::{Entry, Sum};
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule = Rule {
    id: FindingId::SyncPerWrite,
    claim: "each record is made durable separately",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::one(repair::repaired),
};

/// More writes than this for one sync are a batch already.
const BATCHED: f64 = 32.0;
/// More bytes than this for one sync are a batch already: their transfer takes longer than making them durable.
const BATCHED_BYTES: f64 = 1_048_576.0;
/// Below this, writing a batch back takes hardly longer than writing one record back.
const SMALL_WRITEBACK_BYTES: f64 = 65_536.0;
/// Fewer syncs than this may belong to the start and the end of a program.
const HABIT: f64 = 20.0;
/// Records of up to this many bytes share a page with others.
const SHARED_PAGE_BYTES: f64 = 2048.0;
/// What goes at the most: a batch of a thousand records.
const BATCH: f64 = 0.999;
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
        saved_time: None,
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
/// reads of it. The part of these that a batch spares; `None` where no names are taken away about as often as data is made
/// durable. A new file for each record is another matter: its name stays.
fn with_each_transaction(facts: &Facts<'_>, syncs: f64) -> Option<SavedTime> {
    const OFTEN: f64 = 0.2;
    const ENOUGH: f64 = 20.0;
    let removed = facts.counted_calls(&["unlink", "unlinkat", "ftruncate"])?;
    if syncs < ENOUGH || removed < OFTEN * syncs {
        return None;
    }
    let names = |e: &Entry| {
        matches!(
            e.class.operation,
            Operation::Names | Operation::Open | Operation::Close | Operation::Stat | Operation::Descriptor
        ) && e.wall_ns > 0.0
    };
    let transfer = |e: &Entry| {
        matches!(e.class.operation, Operation::Read | Operation::Write)
            && e.wall_ns > 0.0
            && e.class.layer != Layer::Copy
    };
    let of_names = facts.saved_without(|e| f64::from(names(e))).part(Range::new(0.0, 0.9, BATCH));
    Some(of_names.and(facts.saved_without(|e| f64::from(transfer(e))).part(Range::new(0.0, 0.8, BATCH))))
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
    let around = if habit.within_writes { None } else { with_each_transaction(facts, habit.syncs.likely) };
    Draft {
        id: FindingId::SyncPerWrite,
        cost_ns: habit.time.wall_ns,
        saved_time: Some(saved_time(facts, &habit, &split, around)),
        sentence: sentence(facts, &habit),
        evidence: evidence(facts, &habit, &split, around),
        advice: advice(facts, habit.within_writes, &split, habit.syncs.likely),
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
        subject(habit.counted_writes, habit.writes() / habit.syncs.likely),
        say::count(habit.syncs.likely),
        habit.call(),
    )
}

/// How the program makes its data durable.
struct Habit {
    /// Share of the writes that are synchronous by the open flags of their file.
    opened: Option<f64>,
    /// Whether the writes themselves wait for durability.
    within_writes: bool,
    counted: Option<Range>,
    counted_writes: Option<f64>,
    /// Syncs and synchronous writes.
    syncs: Range,
    bytes_each: Option<f64>,
    /// The time of the calls that wait for durability.
    time: Sum,
}

impl Habit {
    fn seen(facts: &Facts<'_>) -> Habit {
        let opened = share_of(facts.tally(Side::Write).synchronous).map(|s| s.likely);
        let synchronous = opened.unwrap_or_else(|| f64::from(flushes_within_writes(facts)));
        let within_writes = synchronous >= MOSTLY;
        let counted = facts.syncs();
        // Writes to files, where every call was counted with its file: replies to clients are made durable by nobody.
        let storage = facts.calls_are_counted_by_file(Side::Write).then(|| facts.tally(Side::Write));
        let counted_writes = storage.map(|s| s.calls as f64).or_else(|| facts.calls(Side::Write));
        let syncs = match counted {
            Some(syncs) if !within_writes => syncs,
            other => {
                let inside = storage.map(|s| s.synchronous.hits as f64);
                let writes = inside.unwrap_or_else(|| synchronous * counted_writes.unwrap_or(0.0));
                Range::exact(other.map_or(0.0, |s| s.likely) + writes)
            }
        };
        let bytes = storage.map(|s| s.bytes as f64).or_else(|| facts.bytes(Side::Write));
        Habit {
            opened,
            within_writes,
            counted,
            counted_writes,
            syncs,
            bytes_each: bytes.map(|bytes| bytes / syncs.likely),
            time: facts.account.sum(|e| makes_durable(e, within_writes)),
        }
    }

    /// A few syncs are no habit, unless they are what the run does; and large batches are none.
    fn is_one(&self, facts: &Facts<'_>) -> bool {
        if self.time.wall_ns <= 0.0 || self.syncs.likely < 2.0 {
            return false;
        }
        let often = self.syncs.low >= HABIT || self.time.wall_ns >= MOSTLY * facts.account.wall_ns;
        let large = self.bytes_each.is_some_and(|bytes| bytes >= BATCHED_BYTES);
        often && self.writes() / self.syncs.likely <= BATCHED && !large
    }

    fn writes(&self) -> f64 {
        self.counted_writes.unwrap_or(0.0)
    }

    /// Whether each sync was counted. Else their number is inferred from sleeps, and is not printed.
    fn is_counted(&self) -> bool {
        self.syncs.low == self.syncs.high
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

fn saved_time(facts: &Facts<'_>, habit: &Habit, split: &Split, around: Option<SavedTime>) -> SavedTime {
    let syncs = facts.saved_without(|e| f64::from(makes_durable(e, habit.within_writes)));
    let saved = batched(syncs, split.data, habit.bytes_each);
    let saved = around.map_or(saved, |around| saved.and(around));
    // The loop asks for durability half of the time; and after each sleep it begins with cold caches.
    let calls = habit.writes() + if habit.within_writes { 0.0 } else { habit.syncs.likely };
    saved.and(loops::around(facts, calls, habit.time.time_ns, Range::new(0.0, 0.5, 0.9)))
}

fn evidence(facts: &Facts<'_>, habit: &Habit, split: &Split, around: Option<SavedTime>) -> Vec<String> {
    let (call, syncs) = (habit.call(), habit.syncs);
    let mut evidence = if habit.is_counted() {
        vec![
            writes_in_words(call, syncs.likely, habit.counted_writes.zip(habit.bytes_each)),
            format!("a {call} takes {}: {}", say::time(habit.time.time_ns / syncs.likely), split.words()),
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
            "each transaction also creates, truncates or removes files: {} of wall time in the gain",
            say::percent(facts.wall_share(around.0.likely))
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

/// How much of the write-back a batch saves.
fn data_part(bytes_each: Option<f64>) -> Range {
    match bytes_each {
        // Several records share a page: a batch of a hundred is written back in about the time of one.
        Some(bytes) if bytes <= SHARED_PAGE_BYTES => Range::new(0.45, 0.97, BATCH),
        // One request whatever it carries: batching saves at least half of it.
        Some(bytes) if bytes <= SMALL_WRITEBACK_BYTES => Range::new(0.45, 0.9, BATCH),
        // Many bytes take as long as before.
        Some(_) => Range::new(0.0, 0.1, 0.5),
        None => Range::new(0.0, 0.5, BATCH),
    }
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

/// Time saved by larger batches: flushes and commits go with the syncs, of the data write-back a part.
fn batched(syncs: SavedTime, data_of_cost: f64, bytes_each: Option<f64>) -> SavedTime {
    syncs
        .part(Range::new(0.9, 0.99, BATCH).times(Range::exact(1.0 - data_of_cost)))
        .and(syncs.part(data_part(bytes_each).times(Range::exact(data_of_cost))))
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
