//! The rule `rewritten-files`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{CallCount, FileUse};

use super::facts::{OPEN_CALLS, PAGE_BYTES, RENAME_CALLS, Side, entering, frees_blocks};
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

/// Fewer versions tell no habit.
const MIN_VERSIONS: f64 = 4.0;

/// A file was written whole, up to what marks leave open.
const NEARLY_ALL: f64 = 0.9;

/// Of the opens of a file that is overwritten in place, at least this part wrote a version of its final size: a file that grows from
/// nothing has half of it on average.
const OF_OPENS: f64 = 0.4;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let files: Vec<Versions<'_>> =
        facts.storage_files().filter(|f| f.kind == "regular").filter_map(Versions::of).collect();
    let replaced: u64 = files.iter().map(|f| f.file.replaced).sum();
    // A scratch file that is removed each time holds other bytes each time; one that replaces another holds that one's.
    let renamed = calls(facts, &RENAME_CALLS) >= MOSTLY * replaced as f64;
    let files: Vec<Versions<'_>> = files.into_iter().filter(|f| f.file.replaced == 0 || renamed).collect();
    let written: f64 = facts.storage_files().map(|f| f.writes.bytes as f64).sum();
    let gone = files.iter().map(|f| f.gone).sum::<f64>();
    let of_written = gone / written.max(1.0);
    let most = files.iter().max_by(|a, b| a.gone.total_cmp(&b.gone)).filter(|_| of_written >= MOSTLY)?;
    // Writes to pipes and sockets replace nothing.
    let (_, of_files) = facts.storage_part(Side::Write)?;
    let versions: f64 = files.iter().map(|f| f.times).sum();
    let read =
        files.iter().map(|f| f.gone / f.file.writes.bytes as f64 * f.file.reads.bytes as f64).sum::<f64>();
    let all_read = facts.storage_bytes(Side::Read).unwrap_or(0.0).max(1.0);
    let parts = Parts {
        written: of_written * of_files,
        read: (read / all_read).min(1.0),
        opened: (versions / calls(facts, &OPEN_CALLS).max(1.0)).min(1.0),
    };
    let entries = parts.written * facts.part_of_calls(Side::Write).unwrap_or(0.0);
    let within_calls = loops::within_calls(facts);
    let weight = |e: &Entry| match e {
        _ if entering(e) => entries,
        _ => parts.by_bytes(e).max(entries * within_calls(e)),
    };
    let cost_ns = facts.account.entries.iter().map(|e| weight(e) * e.wall_ns).sum();
    let mut evidence = vec![
        format!(
            "`{}`: written whole {} times at least, {} each on average, {}",
            most.file.path,
            say::count(most.times),
            say::bytes(most.file.writes.bytes as f64 / most.times),
            if most.file.replaced > 0 { "as a new file that replaces the one before" } else { "in place" }
        ),
        format!(
            "writing, syncing and freeing these bytes takes {} of wall time by their part of all bytes written",
            say::percent(facts.wall_share(
                facts.account.entries.iter().map(|e| parts.by_bytes(e) * e.wall_ns).sum::<f64>()
            ))
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
            "Files are written whole again and again: {} written, of which {} are gone at the end",
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

/// Calls of these names that succeeded.
fn calls(facts: &Facts<'_>, names: &[&str]) -> f64 {
    let counted = facts.profile.calls.iter().flat_map(|sample| &sample.calls);
    counted.filter(|c| names.contains(&c.name.as_str())).map(CallCount::succeeded).sum::<u64>() as f64
}

/// The parts of what is done that are about versions that are gone at the end, 0 to 1.
struct Parts {
    written: f64,
    /// To make the next version of them.
    read: f64,
    opened: f64,
}

impl Parts {
    /// By their bytes: written, waited for, and freed.
    fn by_bytes(&self, e: &Entry) -> f64 {
        let bytes = matches!(e.class.operation, Operation::Write | Operation::Sync) || frees_blocks(e);
        self.written * f64::from(bytes)
    }

    /// Syncs stay: of a journal there may be as many, and how long they take is not in proportion.
    fn at_least(&self, e: &Entry) -> f64 {
        let busy = e.busy && e.class.operation == Operation::Write;
        self.written * f64::from(busy || frees_blocks(e))
    }

    /// With their names, what is read to make the next of them, and the memory that it is made in.
    fn at_most(&self, e: &Entry) -> f64 {
        let named = matches!(e.class.operation, Operation::Open | Operation::Close | Operation::Names);
        let made = e.busy && e.class.operation == Operation::Fault;
        let read = self.read * f64::from(e.class.operation == Operation::Read);
        let memory = self.written * f64::from(made);
        self.by_bytes(e).max(self.opened * f64::from(named)).max(memory).max(read)
    }
}

/// A file that was written whole several times.
struct Versions<'a> {
    file: &'a FileUse,
    times: f64,
    /// Bytes written that no file has at the end, at least.
    gone: f64,
}

impl<'a> Versions<'a> {
    /// `None` where it may not have been, and where a version is one block, which is written as a whole whatever changes.
    fn of(file: &'a FileUse) -> Option<Versions<'a>> {
        let bytes = file.writes.bytes as f64;
        let versions = if file.replaced > 0 {
            let times = file.replaced as f64 + 1.0;
            // A file that grows from nothing is twice as large at the end as on average.
            Versions { file, times, gone: bytes * (1.0 - 2.0 / times).max(0.0) }
        } else {
            let whole = file.writes.distinct_bytes as f64;
            let times = bytes / whole.max(1.0);
            let opens = file.opens as f64;
            let each_wrote_all = (OF_OPENS * opens..=opens / NEARLY_ALL).contains(&times)
                && file.size_bytes.is_some_and(|size| whole >= NEARLY_ALL * size as f64);
            Versions { file, times, gone: if each_wrote_all { bytes - whole } else { 0.0 } }
        };
        let worth = versions.times >= MIN_VERSIONS && versions.gone > 0.0;
        (worth && bytes / versions.times > PAGE_BYTES).then_some(versions)
    }
}
