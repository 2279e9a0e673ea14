//! The rule `sync-per-write`. Its page of the manual:
#![doc = include_str!("sync-per-write.md")]

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::facts::{Side, share_of};
use super::gain::Savings;
use super::range::Range;
use super::report::Draft;
use super::{Facts, Rule, WORTH_SAVING, loops, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

pub(super) const RULE: Rule =
    Rule { id: FindingId::SyncPerWrite, manual: include_str!("sync-per-write.md"), judge };

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
            "{} of the wall time was seen to wait for data to be made durable, but not how often",
            say::percent(facts.wall_share(syncing_ns))
        )
    } else {
        format!(
            "{} of the wall time is sleep of which it was not seen what for",
            say::percent(facts.idle_unexplained())
        )
    };
    Draft {
        id: FindingId::SyncPerWrite,
        cost_ns,
        savings: None,
        sentence: format!(
            "About one flush of the cache of {} goes with each write: records seem to be made durable one by one",
            device.name
        ),
        evidence: vec![
            format!(
                "{} flushes of {} ({} in all, those of other programs included) for {} writes of the program",
                say::count(flushes),
                device.name,
                say::time(device.flush_ns as f64),
                say::count(writes)
            ),
            known,
        ],
        advice: "Make a batch of records durable together: one fdatasync for every 100 records (group commit; in SQLite \
                 one transaction around many statements). To be sure, and for a prediction, let kernel stacks be seen: \
                 the end of the report says how."
            .into(),
    }
    .finding(facts)
}

/// What else goes with each transaction: a journal that is created and taken away around each sync, with the writes and
/// reads of it. The part of these that a batch spares; `None` where no names are taken away about as often as data is made
/// durable. A new file for each record is another matter: its name stays.
fn with_each_transaction(facts: &Facts<'_>, syncs: f64) -> Option<Savings> {
    const OFTEN: f64 = 0.2;
    const ENOUGH: f64 = 20.0;
    let removed = facts.scaled_calls(&["unlink", "unlinkat", "ftruncate"])?.likely;
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

/// Whether it is this rule's cause that writes are small and wait one by one: then they are none of other rules'
/// business. Reads are.
pub(super) fn claims_writes(facts: &Facts<'_>) -> bool {
    judge(facts).is_some()
}

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let opened = share_of(facts.tally(Side::Write).synchronous).map(|s| s.likely);
    let synchronous = opened.unwrap_or_else(|| f64::from(flushes_within_writes(facts)));
    let within_writes = synchronous >= MOSTLY;
    // A synchronous write is that as a whole: its sleeps, its turns in the queues and the CPU time of its way down. Only
    // the copy into the cache stays when it is made durable later.
    let cost = |e: &Entry| match e.class.operation {
        Operation::Sync => e.wall_ns > 0.0,
        Operation::Write => within_writes && e.wall_ns > 0.0 && e.class.layer != Layer::Copy,
        _ => false,
    };
    let sum = facts.account.sum(cost);
    let counted = facts.syncs();
    let number_unknown = counted.is_none() && !within_writes;
    if (number_unknown || sum.wall_ns < WORTH_SAVING * facts.account.wall_ns)
        && let Some(found) = by_counters(facts)
    {
        return Some(found);
    }
    let counted_writes = facts.calls(Side::Write).map(|w| w.likely);
    let writes = counted_writes.unwrap_or(0.0);
    let syncs = match counted {
        Some(syncs) if !within_writes => syncs,
        other => Range::exact(other.map_or(0.0, |s| s.likely) + synchronous * writes),
    };
    if sum.wall_ns <= 0.0 || syncs.likely < 2.0 {
        return None;
    }
    // A few syncs are no habit, unless they are what the run does.
    if syncs.low < HABIT && sum.wall_ns < MOSTLY * facts.account.wall_ns {
        return None;
    }
    let writes_each = writes / syncs.likely;
    let large = facts.bytes(Side::Write).is_some_and(|bytes| bytes / syncs.likely >= BATCHED_BYTES);
    if writes_each > BATCHED || large {
        return None;
    }

    let data = |e: &Entry| cost(e) && matches!(e.class.wait, Some(Wait::DataWriteback | Wait::DeviceWrite));
    let bytes_each = facts.bytes(Side::Write).map(|b| b / syncs.likely);
    // A write-back of few bytes is one request whatever it carries: batching saves at least half of it. One of many
    // bytes takes as long as before.
    let data_part = match bytes_each {
        // Several share a page: a batch of a hundred is written back in about the time of one.
        Some(bytes) if bytes <= SHARED_PAGE_BYTES => Range::new(0.45, 0.97, BATCH),
        Some(bytes) if bytes <= SMALL_WRITEBACK_BYTES => Range::new(0.45, 0.9, BATCH),
        Some(_) => Range::new(0.0, 0.1, 0.5),
        None => Range::new(0.0, 0.5, BATCH),
    };
    let whole = facts.saved_without(|e| f64::from(cost(e)));
    let data_wall = facts.account.sum(data).wall_ns;
    let data_of_cost = data_wall / sum.wall_ns;
    let savings: Savings = whole
        .part(Range::new(0.9, 0.99, BATCH).times(Range::exact(1.0 - data_of_cost)))
        .and(whole.part(data_part.times(Range::exact(data_of_cost))));

    let around = if within_writes { None } else { with_each_transaction(facts, syncs.likely) };
    let savings = around.map_or(savings, |around| savings.and(around));
    // The loop asks for durability half of the time; and after each sleep it begins with cold caches.
    let calls = writes + if within_writes { 0.0 } else { syncs.likely };
    let savings = savings.and(loops::around(facts, calls, sum.time_ns, Range::new(0.0, 0.5, 0.9)));

    let part =
        |pick: &dyn Fn(&Entry) -> bool| facts.account.sum(|e| cost(e) && pick(e)).wall_ns / sum.wall_ns;
    let flush = part(&|e| e.class.wait == Some(Wait::CacheFlush));
    let journal = part(&|e| matches!(e.class.wait, Some(Wait::Journal | Wait::JournalSpace)));
    let rest = (1.0 - data_of_cost - flush - journal).max(0.0);
    let queued = part(&|e| e.class.layer == Layer::CpuQueue);
    let call = if within_writes { "synchronous write" } else { "sync" };
    let mut evidence = vec![
        match counted_writes.zip(bytes_each) {
            Some((writes, bytes)) => format!(
                "{} {call}s for {} writes: {} to each, with {}",
                say::counted(syncs),
                say::count(writes),
                say::count(writes_each),
                say::bytes(bytes)
            ),
            None => format!("{} {call}s; how much was written for each was not seen", say::counted(syncs)),
        },
        format!(
            "a {call} takes {}{}: {} writing the data back, {} flushing the device's cache, {} committing the journal, \
             {} CPU time and other",
            if syncs.high - syncs.low > 0.05 * syncs.likely { "about " } else { "" },
            say::time(sum.time_ns / syncs.likely),
            say::percent(data_of_cost),
            say::percent(flush),
            say::percent(journal),
            say::percent(rest)
        ),
    ];
    if within_writes && opened.is_none() {
        evidence.push(
            "how the file was opened was not seen; a write waits for a flush only on a file opened with O_SYNC or O_DSYNC"
                .to_owned(),
        );
    }
    if let Some(around) = around {
        evidence.push(format!(
            "files are created, truncated or taken away with each transaction, and go with it: {} of the wall time is \
             counted in the gain",
            say::percent(facts.wall_share(around.0.likely))
        ));
    }
    let mut advice = if within_writes {
        "Open the file without O_SYNC or O_DSYNC, write a batch of records and call fdatasync once for it"
            .to_owned()
    } else {
        "Make a batch of records durable together: one fdatasync for every 100 records or every few milliseconds \
         (group commit; in SQLite one transaction around many statements)"
            .to_owned()
    };
    advice.push_str(match uses_fsync(facts) {
        true if journal >= JOURNAL_PART => {
            "; fdatasync in place of fsync, and room reserved with fallocate, spare much of the journal's part."
        }
        _ => ".",
    });
    if many_files(facts, syncs.likely) {
        advice.push_str(" For many new files: write them all first, then sync them (or call syncfs once).");
    }
    if queued > 0.2 {
        advice.push_str(" Part of this time no CPU was free.");
    }
    Draft {
        id: FindingId::SyncPerWrite,
        cost_ns: sum.wall_ns,
        savings: Some(savings),
        sentence: format!(
            "{} made durable by itself: {} {call}s take {} of the time",
            match counted_writes {
                Some(_) if (0.5..1.5).contains(&writes_each) => "Each write is".to_owned(),
                Some(_) if writes_each >= 1.5 =>
                    format!("Each batch of {} writes is", say::count(writes_each)),
                // Fewer writes than syncs (mapped memory), or their number was not seen.
                _ => "Each little change is".to_owned(),
            },
            if syncs.high - syncs.low > 0.05 * syncs.likely {
                say::counted(syncs)
            } else {
                say::count(syncs.likely)
            },
            say::percent(facts.wall_share(sum.wall_ns))
        ),
        evidence,
        advice,
    }
    .finding(facts)
}

/// Whether fsync was seen; not seen calls may well be fsync.
fn uses_fsync(facts: &Facts<'_>) -> bool {
    let calls = facts.profile.calls.as_ref();
    calls.is_none_or(|c| c.calls.iter().any(|c| c.name == "fsync" && c.succeeded() > 0))
}

/// Whether about every sync is for another file.
fn many_files(facts: &Facts<'_>, syncs: f64) -> bool {
    facts
        .scaled_calls(&["open", "openat", "creat"])
        .is_some_and(|opens| opens.likely >= 0.5 * syncs && syncs >= 20.0)
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::Tier;

    use super::*;
    use crate::finding::synthetic::{Run, access, looked, slow_and_repaired};

    /// 10,000 records of 4 KiB; half a millisecond each to make durable, if each is.
    fn records(syncs: u64) -> Run {
        let part = syncs as f64 / 10_000.0;
        Run::new(5.0 * part + 5.0)
            .wait(Operation::Sync, Wait::DataWriteback, 0.2 * part)
            .wait(Operation::Sync, Wait::CacheFlush, 0.15 * part)
            .wait(Operation::Sync, Wait::Journal, 0.15 * part)
            .busy(Operation::User, Layer::Program, 1.0 - 0.5 * part)
            .io((0, 0), (10_000, 40_960_000))
            .calls(&[("write", 10_000), ("fsync", syncs)])
    }

    #[test]
    fn a_sync_for_each_record_is_named_and_for_each_hundred_not() {
        let found = slow_and_repaired(FindingId::SyncPerWrite, &records(10_000), &records(100));
        // By hand: of 5 s, 3 s are flush and journal, of which 99 % go, and 2 s data, of which 90 % go.
        let gain = found.gain.unwrap();
        assert!((gain.predicted - 10.0 / (10.0 - 2.97 - 1.8)).abs() < 0.01, "{gain:?}");
        assert!((gain.low - 10.0 / (10.0 - 2.7 - 0.9)).abs() < 0.01, "{gain:?}");
        assert!(
            found.evidence[1].contains("40 % writing the data back, 30 % flushing"),
            "{:?}",
            found.evidence
        );
        assert!(found.advice.contains("fdatasync in place of fsync"));
    }

    #[test]
    fn synchronous_descriptors_count_too() {
        let run = Run::new(10.0)
            .wait(Operation::Write, Wait::DataWriteback, 0.4)
            .wait(Operation::Write, Wait::CacheFlush, 0.4)
            .busy(Operation::User, Layer::Program, 0.2)
            .io((0, 0), (10_000, 5_120_000))
            .file(5_120_000, |f| {
                f.writes = access(100, 51_200, 100);
                f.writes.synchronous = looked(100, 100);
            });
        assert_eq!(run.ids(), [FindingId::SyncPerWrite]);
        assert!(run.findings()[0].advice.contains("O_DSYNC"));
    }

    #[test]
    fn a_synchronous_write_counts_as_a_whole() {
        // Most of it was not seen as waiting for the device: CPU time, queueing and another lock.
        let run = |synchronous| {
            Run::new(10.0)
                .wait(Operation::Write, Wait::CacheFlush, 0.2)
                .wait(Operation::Write, Wait::InodeLock, 0.3)
                .busy(Operation::Write, Layer::Filesystem, 0.3)
                .queued_in(Operation::Write, 0.15)
                .busy(Operation::Write, Layer::Copy, 0.01)
                .busy(Operation::User, Layer::Program, 0.04)
                .io((0, 0), (10_000, 5_120_000))
                .file(5_120_000, |f| {
                    f.writes = access(100, 51_200, 100);
                    f.writes.synchronous = looked(synchronous, 100);
                })
        };
        let found = &run(100).findings()[0];
        assert_eq!(found.id, FindingId::SyncPerWrite);
        assert!(found.gain.unwrap().predicted > 10.0 && (found.share - 0.95).abs() < 1e-6, "{found:?}");
        assert!(!run(0).ids().contains(&FindingId::SyncPerWrite));
    }

    #[test]
    fn writes_that_wait_for_flushes_are_synchronous_though_no_call_was_traced() {
        let run = Run::new(10.0)
            .wait(Operation::Write, Wait::CacheFlush, 0.8)
            .busy(Operation::User, Layer::Program, 0.2)
            .io((0, 0), (1000, 512_000));
        assert_eq!(run.ids(), [FindingId::SyncPerWrite]);
        assert!(run.findings()[0].evidence.iter().any(|e| e.contains("was not seen")));
    }

    #[test]
    fn a_journal_of_its_own_for_each_transaction_goes_with_it() {
        let run = |unlinks| {
            Run::new(10.0)
                .wait(Operation::Sync, Wait::CacheFlush, 0.6)
                .busy(Operation::Names, Layer::Filesystem, 0.2)
                .busy(Operation::Open, Layer::Filesystem, 0.15)
                .busy(Operation::User, Layer::Program, 0.05)
                .io((0, 0), (4000, 4_096_000))
                .calls(&[("pwrite64", 4000), ("fdatasync", 3000), ("openat", 1000), ("unlink", unlinks)])
                .findings()
                .into_iter()
                .find(|f| f.id == FindingId::SyncPerWrite)
                .and_then(|f| f.gain)
                .unwrap()
        };
        let (with, without) = (run(1000), run(0));
        assert!(with.predicted > 8.0 && with.high > 15.0, "{with:?}");
        assert!(without.high < 3.0, "{without:?}");
    }

    #[test]
    fn where_sleeps_are_dark_the_flushes_of_the_device_tell() {
        let run = |flushes| {
            Run::new(10.0)
                .wait(Operation::Unknown, Wait::Unknown, 0.9)
                .busy(Operation::User, Layer::Program, 0.1)
                .io((0, 0), (1000, 512_000))
                .device(0.8, 1.0, |d| {
                    (d.flushes, d.flush_ns, d.write_ns) = (flushes, 4_000_000_000, 3_000_000_000)
                })
        };
        let found = run(1005).findings();
        assert_eq!((found[0].id, found[0].gain), (FindingId::SyncPerWrite, None));
        assert!(!run(20).ids().contains(&FindingId::SyncPerWrite));
        assert!(!run(50_000).ids().contains(&FindingId::SyncPerWrite));
    }

    #[test]
    fn where_threads_are_only_looked_at_the_flushes_of_the_device_count_the_syncs() {
        // Eight looks found the program in a sync; that is no number of syncs.
        let run = |bytes, flushes| {
            let mut run = Run::new(10.0)
                .wait(Operation::Sync, Wait::CacheFlush, 0.4)
                .wait(Operation::Unknown, Wait::DataWriteback, 0.2)
                .busy(Operation::Unknown, Layer::Unexplained, 0.4)
                .io((0, 0), (1000, bytes))
                .device(0.8, 1.0, |d| d.flushes = flushes);
            run.profile.sight.tier = Tier::None;
            run
        };
        let found = run(512_000, 1005).findings();
        assert_eq!((found[0].id, found[0].gain), (FindingId::SyncPerWrite, None));
        assert!(
            found[0].evidence[1].starts_with("60 % of the wall time was seen to wait for data"),
            "{found:?}"
        );
        for other in [run(512_000, 20), run(512_000, 0), run(1000 << 24, 1005)] {
            assert!(!other.ids().contains(&FindingId::SyncPerWrite), "{:?}", other.findings());
        }
    }

    #[test]
    fn large_writes_with_a_sync_each_wait_for_their_bytes() {
        let run = Run::new(10.0)
            .wait(Operation::Sync, Wait::DataWriteback, 0.9)
            .busy(Operation::User, Layer::Program, 0.1)
            .io((0, 0), (100, 100 << 24))
            .calls(&[("write", 100), ("fsync", 100)]);
        assert!(!run.ids().contains(&FindingId::SyncPerWrite), "{:?}", run.findings());
    }

    #[test]
    fn without_traced_calls_the_sleeps_are_counted() {
        let mut run = Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, 0.8)
            .busy(Operation::User, Layer::Program, 0.2)
            .io((0, 0), (1000, 4_096_000));
        run.profile.sight.tier = Tier::Stacks;
        assert_eq!(run.ids(), [FindingId::SyncPerWrite]);
    }
}
