//! The rule `rewritten-files`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{CallCount, FileUse};

use super::facts::{
    OPEN_CALLS, PAGE_BYTES, REMOVE_CALLS, RENAME_CALLS, Side, effort, entering, frees_blocks,
};
use super::needless::Needless;
use super::report::Draft;
use super::{Facts, Repairs, Rule, loops, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::RewrittenFiles,
    claim: "the same file is written whole again and again",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("what changes from one version of the file to the next is not recorded"),
};

/// From this part of the bytes written on, most are gone at the end.
const MOSTLY: f64 = 0.5;

/// Fewer versions tell no habit (chosen).
const MIN_VERSIONS: f64 = 4.0;

/// A file was written whole, up to what marks leave open (chosen).
const NEARLY_ALL: f64 = 0.9;

/// Of the opens of a file that is overwritten in place, at least this part wrote a version of its final size: a file that grows from
/// nothing has half of it on average.
const OF_OPENS: f64 = 0.4;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let files: Vec<Versions<'_>> =
        facts.storage_files().filter(|f| f.kind == "regular").filter_map(Versions::of).collect();
    let replaced: f64 = files.iter().map(|f| f.file.replaced as f64).sum();
    let moved = are_moved(facts, replaced);
    let files: Vec<Versions<'_>> = files.into_iter().filter(|f| f.file.replaced == 0 || moved).collect();
    let all = |part: &dyn Fn(&FileUse) -> f64| facts.storage_files().map(part).sum::<f64>().max(1.0);
    let of = |part: &dyn Fn(&Versions<'_>) -> f64| files.iter().map(part).sum::<f64>();
    let (written, gone) = (all(&|f| f.writes.bytes as f64), of(&|f| f.gone));
    let of_written = gone / written;
    let most = files.iter().max_by(|a, b| a.gone.total_cmp(&b.gone)).filter(|_| of_written >= MOSTLY)?;
    // Reads and writes of pipes and sockets are of no file.
    let part_of_files = |side| facts.storage_part(side).map(|(_, of_files)| of_files);
    let (of_writes, of_reads) = (part_of_files(Side::Write)?, part_of_files(Side::Read).unwrap_or(0.0));
    let calls_part = of(&|f| f.part() * f.file.writes.calls as f64) / all(&|f| f.writes.calls as f64);
    let parts = Parts {
        written: of_writes * of_written,
        worked: of_writes
            * (of(&|f| f.part() * effort(&f.file.writes)) / all(&|f| effort(&f.writes))).min(of_written),
        read: of_reads * of(&|f| f.part() * f.file.reads.bytes as f64) / all(&|f| f.reads.bytes as f64),
        opened: (of(&|f| f.times) / calls(facts, &OPEN_CALLS).max(1.0)).min(1.0),
    };
    let entries = of_writes * calls_part * facts.part_of_calls(Side::Write).unwrap_or(0.0);
    let within_calls = loops::within_calls(facts);
    let weight = |e: &Entry| match e {
        _ if entering(e) => entries,
        _ => parts.by_bytes(e).max(entries * within_calls(e)),
    };
    let cost_ns = facts.wall_ns_of(weight);
    let mut evidence = vec![
        format!(
            "`{}`: written whole {} times at least, {} each on average, {}",
            most.file.path,
            say::count(most.times),
            say::bytes(most.gone / (most.times - 1.0)),
            if most.file.replaced > 0 {
                "as new files of which the earlier ones no longer exist"
            } else {
                "in place"
            }
        ),
        format!(
            "writing, syncing and freeing them takes {} of wall time, by their part of all calls, pages and bytes written",
            say::percent(facts.wall_share(facts.wall_ns_of(|e| parts.by_bytes(e))))
        ),
    ];
    let own = facts.wall_share(facts.account.sum(|e| e.busy && e.class.operation == Operation::User).wall_ns);
    evidence.push(format!(
        "the program's own code takes {} of wall time: what of it makes whole versions is not seen",
        say::percent(own)
    ));
    let needless = Needless {
        how: "each file written whole once",
        notes: vec!["what is written in place of the versions is not in it".to_owned()],
        of_all_calls: entries,
        // It may all make the versions.
        of_own_code: parts.written,
    };
    let prediction = needless.prediction(facts, |e| parts.at_least(e), |e| parts.at_most(e));
    Draft {
        id: FindingId::RewrittenFiles,
        cost_ns,
        removable: Some(facts.removable(weight)),
        sentence: format!(
            "Files are written whole again and again: {} written, of which at least {} are gone at the end",
            say::bytes(written),
            say::bytes(gone)
        ),
        evidence,
        advice: "If little changes from one version to the next, append each change to a journal and write the whole file at the end, or when \
                 the journal is long; or keep the records where one can be updated in place (pwrite, an embedded database). If only the last \
                 state counts, write it after a number of changes or of seconds. Where one process is started for each change, give it all changes \
                 at once. What a crash may lose is what is not yet written."
            .to_owned(),
    }
    .finding_by_account(facts, prediction)
}

/// Whether most of so many files that no longer exist were replaced by a move of another one. A scratch file that is removed each time holds other bytes
/// each time.
fn are_moved(facts: &Facts<'_>, replaced: f64) -> bool {
    let not_removed = replaced - calls(facts, &REMOVE_CALLS);
    calls(facts, &RENAME_CALLS).min(not_removed) >= MOSTLY * replaced
}

/// Calls of these names that succeeded.
fn calls(facts: &Facts<'_>, names: &[&str]) -> f64 {
    let counted = facts.profile.calls.iter().flat_map(|sample| &sample.calls);
    counted.filter(|c| names.contains(&c.name.as_str())).map(|c| CallCount::succeeded(c) as f64).sum()
}

/// The parts of what is done that are about versions that are gone at the end, 0 to 1.
struct Parts {
    /// Of the bytes written.
    written: f64,
    /// Of the work of writing, at least.
    worked: f64,
    /// Of the bytes read: to make the next version of them.
    read: f64,
    /// Of the files opened.
    opened: f64,
}

impl Parts {
    /// Written, waited for, and freed.
    fn by_bytes(&self, e: &Entry) -> f64 {
        let bytes = matches!(e.class.operation, Operation::Write | Operation::Sync) || frees_blocks(e);
        let busy = e.busy && e.class.operation == Operation::Write;
        if busy { self.worked } else { self.written * f64::from(bytes) }
    }

    /// Syncs stay: of a journal there may be as many, and how long they take is not in proportion.
    fn at_least(&self, e: &Entry) -> f64 {
        let busy = e.busy && e.class.operation == Operation::Write;
        if busy { self.worked } else { self.written * f64::from(frees_blocks(e)) }
    }

    /// With their names, what is read to make the next of them, and the memory that it is made in.
    fn at_most(&self, e: &Entry) -> f64 {
        let named = matches!(e.class.operation, Operation::Open | Operation::Close | Operation::Names);
        let made = e.busy && matches!(e.class.operation, Operation::Fault | Operation::Write);
        let read = self.read * f64::from(e.class.operation == Operation::Read);
        let memory = self.written * f64::from(made);
        self.by_bytes(e).max(self.opened * f64::from(named)).max(memory).max(read)
    }
}

/// A file that was written whole several times.
struct Versions<'a> {
    file: &'a FileUse,
    /// At least.
    times: f64,
    /// Bytes written that no file has at the end, at least.
    gone: f64,
}

impl<'a> Versions<'a> {
    /// `None` if it may not have been written whole several times, and where a version is one block, which is written as a whole whatever changes.
    fn of(file: &'a FileUse) -> Option<Versions<'a>> {
        let bytes = file.writes.bytes as f64;
        let (times, gone, each) = if file.replaced > 0 {
            let (replaced, gone) = (file.replaced as f64, (file.replaced_bytes as f64).min(bytes));
            (replaced + 1.0, gone, gone / replaced)
        } else {
            let whole = file.writes.distinct_bytes as f64;
            let times = bytes / whole.max(1.0);
            let opens = file.opens as f64;
            let each_wrote_all = (OF_OPENS * opens..=opens / NEARLY_ALL).contains(&times)
                && file.size_bytes.is_some_and(|size| size > 0 && whole >= NEARLY_ALL * size as f64)
                // A scratch file is read each time.
                && (file.reads.bytes as f64) < MOSTLY * bytes;
            (times, if each_wrote_all { bytes - whole } else { 0.0 }, bytes / times.max(1.0))
        };
        (times >= MIN_VERSIONS && gone > 0.0 && each > PAGE_BYTES).then_some(Versions { file, times, gone })
    }

    /// The part of what was written to it that is gone.
    fn part(&self) -> f64 {
        self.gone / (self.file.writes.bytes as f64).max(1.0)
    }
}
