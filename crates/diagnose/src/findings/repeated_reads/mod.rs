//! The rule `repeated-reads`. Its page of the manual:
#![doc = include_str!("page.md")]

mod decompression;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::FileUse;

use self::decompression::Decompression;
use super::facts::{Side, entering};
use super::needless::Needless;
use super::report::Draft;
use super::{Facts, Repairs, Rule, loops, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::RepeatedReads,
    claim: "the same bytes are read from the cache again and again",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("what the program would keep of the bytes is not recorded"),
};

/// From this part of the bytes on, a byte is read twice on average.
const MOSTLY: f64 = 0.5;

/// File systems of the kernel whose files have the size of a page.
const MADE_AT_EACH_READ: [&str; 2] = ["sysfs", "configfs"];

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let files: Vec<Again<'_>> = facts.storage_files().filter_map(Again::of).collect();
    let read: f64 = facts.storage_files().map(|f| f.reads.bytes as f64).sum();
    let again = files.iter().map(|f| f.again).sum::<f64>() / read.max(1.0);
    let most = files.iter().max_by(|a, b| a.again.total_cmp(&b.again)).filter(|_| again >= MOSTLY)?;
    // Reads of pipes and sockets repeat nothing.
    let (_, of_files) = facts.storage_part(Side::Read)?;
    let part = again * of_files;
    let reading = |e: &Entry| e.busy && e.class.operation == Operation::Read;
    let entries = part * facts.part_of_calls(Side::Read).unwrap_or(0.0);
    let within_calls = loops::within_calls(facts);
    let decompression = Decompression::of(facts);
    let decompressed = decompression.as_ref().map_or(0.0, Decompression::part);
    let weight = |e: &Entry| match e {
        _ if reading(e) => part,
        _ if entering(e) => entries,
        _ => (entries * within_calls(e)).max(decompressed * f64::from(loops::is_own(e))),
    };
    let cost_ns = facts.wall_ns_of(weight);
    let sum = facts.account.sum(reading);
    let mut evidence = vec![
        format!(
            "`{}`: {} were read of {} there are, {} times each byte",
            most.file.path,
            say::bytes(most.file.reads.bytes as f64),
            say::bytes(most.holds),
            say::count(most.times())
        ),
        format!(
            "reading takes {} of CPU time, {} of wall time; {} of the bytes were read before",
            say::time(sum.time_ns),
            say::percent(facts.wall_share(sum.wall_ns)),
            say::percent(again)
        ),
    ];
    evidence.push(own_code(facts, decompression.as_ref()));
    if most.file.opens > 1 {
        evidence.push(format!("it was opened {} times", say::count(most.file.opens as f64)));
    }
    let needless = Needless {
        how: "each byte read once",
        notes: notes(decompression.as_ref()),
        of_all_calls: entries,
        // It may all work on the bytes, and what it makes of them may be kept.
        of_own_code: part,
    };
    // At most, the one record is read of all that was read to find it: which of the bytes are needed is not seen.
    let certain = decompression.as_ref().map_or(0.0, Decompression::certain_part);
    let least = |e: &Entry| (part * f64::from(reading(e))).max(certain * f64::from(loops::is_own(e)));
    let prediction = needless.prediction(facts, least, |e| of_files * f64::from(reading(e)));
    Draft {
        id: FindingId::RepeatedReads,
        cost_ns,
        removable: Some(facts.removable(weight)),
        sentence: format!(
            "The same bytes are read from the cache again and again: {} for {} of different ones",
            say::bytes(read),
            say::bytes(read * (1.0 - again))
        ),
        evidence,
        advice: "Keep what was read, or what was made of it, in memory for as long as the file does not change (fstat: size and time). Of a \
                 file that grows, remember where reading ended and go on from there. Of an archive or an index, keep the directory and read \
                 the one record (pread). A compressed stream has no place to begin but its first byte: go through it once, in the order of the places, or \
                 keep it in blocks (bgzip, seekable zstd). Of a database, give its own cache more memory. Where one process is started for each item, give it \
                 all items at once."
            .to_owned(),
    }
    .finding_by_account(facts, prediction)
}

/// What is known of the program's own code.
fn own_code(facts: &Facts<'_>, decompression: Option<&Decompression>) -> String {
    let own = facts.account.sum(|e| e.busy && e.class.operation == Operation::User).wall_ns;
    let takes = format!("the program's own code takes {} of wall time", say::percent(facts.wall_share(own)));
    match decompression.map(|decompression| decompression.samples) {
        None => format!("{takes}: what of it works on the same bytes again is not seen"),
        Some(samples) => {
            let (low, high) = samples.interval().unwrap_or((0.0, 1.0));
            format!(
                "{takes}, of that {} to {} is decompression ({} of {} samples): the same bytes are the same work again; what else works on \
                 them again is not seen",
                say::percent(low),
                say::percent(high),
                say::count(samples.hits as f64),
                say::count(samples.n as f64)
            )
        }
    }
}

fn notes(decompression: Option<&Decompression>) -> Vec<String> {
    let mut notes = vec!["what keeps the bytes is not in it".to_owned()];
    if decompression.is_some() {
        notes.insert(0, "decompressing the same bytes again goes at both ends".to_owned());
    }
    notes
}

/// What was read of a file beyond what it holds.
struct Again<'a> {
    file: &'a FileUse,
    holds: f64,
    again: f64,
}

impl<'a> Again<'a> {
    /// `None` where nothing was certainly read twice. A file that was cut off later held more than its size now: what the marks show as
    /// distinct counts as well. What was written over is new. Files that the kernel makes at each read have no size, or that of a page whatever they hold.
    fn of(file: &'a FileUse) -> Option<Again<'a>> {
        let size = file.size_bytes.filter(|size| *size > 0)?;
        let written_over = file.writes.bytes.saturating_sub(file.writes.distinct_bytes);
        let holds = size.max(file.reads.distinct_bytes).saturating_add(written_over) as f64;
        let again = file.reads.bytes as f64 - holds;
        let made = file.file_system.as_deref().is_some_and(|name| MADE_AT_EACH_READ.contains(&name));
        (again > 0.0 && !made).then_some(Again { file, holds, again })
    }

    /// Of what was read of it in streams, 0 to 1, at least: reads that do not go on where the one before ended may be of a buffer, of which
    /// the program takes another part each time.
    fn of_streams(&self) -> f64 {
        let again = self.again / (self.file.reads.bytes as f64).max(1.0);
        (again + self.file.reads.sequential.value().unwrap_or(0.0) - 1.0).max(0.0)
    }

    fn times(&self) -> f64 {
        self.file.reads.bytes as f64 / self.holds
    }
}
