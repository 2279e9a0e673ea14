//! The rule `reads-of-holes`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::FileUse;

use super::facts::{ENOUGH_LOOKS, Side, effort, entering};
use super::needless::Needless;
use super::report::Draft;
use super::{Facts, Repairs, Rule, loops, say};
use crate::account::Entry;
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::ReadsOfHoles,
    claim: "most of what is read are holes of sparse files",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none("what the program makes of the zeros is not recorded"),
};

/// From this part of the bytes read on, most are of holes.
const MOSTLY: f64 = 0.5;

/// A file was written whole, up to what marks leave open (chosen).
const NEARLY_ALL: f64 = 0.95;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let files: Vec<Sparse<'_>> = facts.storage_files().filter_map(Sparse::of).collect();
    let read: f64 = facts.storage_files().map(|f| f.reads.bytes as f64).sum();
    let of_holes = files.iter().map(|f| f.bytes).sum::<f64>() / read.max(1.0);
    let most = files.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes)).filter(|_| of_holes >= MOSTLY)?;
    let filled = filled_copies(facts, &files);
    let all = |part: &dyn Fn(&FileUse) -> f64| facts.storage_files().map(part).sum::<f64>().max(1.0);
    let of = |part: &dyn Fn(&Sparse<'_>) -> f64| files.iter().map(part).sum::<f64>();
    let of_copies = |part: &dyn Fn(&FileUse) -> f64| {
        filled.iter().map(|(f, copy)| f.holes / f.size * part(copy)).sum::<f64>()
    };
    // Reads and writes of pipes and sockets are of no holes.
    let part_of_files = |side| facts.storage_part(side).map_or(0.0, |(_, of_files)| of_files);
    let (of_reads, of_writes) = (part_of_files(Side::Read), part_of_files(Side::Write));
    let of_written = of_copies(&|f| f.writes.bytes as f64) / all(&|f| f.writes.bytes as f64);
    let parts = Parts {
        read: of_reads * of_holes,
        reading: of_reads
            * (of(&|f| f.part() * effort(&f.file.reads)) / all(&|f| effort(&f.reads))).min(of_holes),
        written: of_writes * of_written,
        writing: of_writes
            * (of_copies(&|f| effort(&f.writes)) / all(&|f| effort(&f.writes))).min(of_written),
    };
    let calls = |side, part: f64| part * facts.part_of_calls(side).unwrap_or(0.0);
    let read_calls = of(&|f| f.part() * f.file.reads.calls as f64) / all(&|f| f.reads.calls as f64);
    let written_calls = of_copies(&|f| f.writes.calls as f64) / all(&|f| f.writes.calls as f64);
    let entries = calls(Side::Read, of_reads * read_calls) + calls(Side::Write, of_writes * written_calls);
    let within_calls = loops::within_calls(facts);
    let weight = |e: &Entry| match e {
        _ if entering(e) => entries,
        _ => parts.about(e).max(entries * within_calls(e)),
    };
    let cost_ns = facts.wall_ns_of(weight);
    let mut evidence = vec![
        format!(
            "`{}`: {} long, of which {} are holes; {} of it were read",
            most.file.path,
            say::bytes(most.size),
            say::bytes(most.holes),
            say::bytes(most.file.reads.bytes as f64)
        ),
        format!(
            "reading holes takes {} of wall time, by their part of the calls and pages: the kernel makes zeros and copies them",
            say::percent(facts.wall_share(facts.wall_ns_of(|e| parts.of_reads(e))))
        ),
    ];
    if let Some((sparse, copy)) = filled.first() {
        evidence.push(format!(
            "`{}` is as long and was written whole: if it is a copy, {} of it are such zeros, which take room and have to be written back",
            copy.path,
            say::bytes(sparse.holes)
        ));
    }
    let needless = Needless {
        how: "only the parts that hold data",
        notes: vec!["asking where data is (two lseek for each part) is not in it".to_owned()],
        of_all_calls: entries,
        // It may all work on the bytes.
        of_own_code: parts.read,
    };
    let prediction = needless.prediction(facts, |e| parts.at_least(e), |e| parts.at_most(e));
    Draft {
        id: FindingId::ReadsOfHoles,
        cost_ns,
        removable: Some(facts.removable(weight)),
        sentence: format!(
            "Most of the bytes read are holes of sparse files: at least {} of {}",
            say::bytes(of_holes * read),
            say::bytes(read)
        ),
        evidence,
        advice: "Ask the file system which parts hold data (lseek with SEEK_DATA and SEEK_HOLE), and read only these. A copy keeps its holes \
                 with cp --sparse=always, dd conv=sparse, rsync --sparse, tar --sparse or qemu-img convert; dd and rsync still read them."
            .to_owned(),
    }
    .finding_by_account(facts, prediction)
}

/// The parts of what is done that are about holes, 0 to 1.
struct Parts {
    /// Of the bytes read, and of the work of reading, at least.
    read: f64,
    reading: f64,
    /// Of the bytes written, and of the work of writing, at least.
    written: f64,
    writing: f64,
}

impl Parts {
    /// Of the reads; a device is not asked for holes.
    fn of_reads(&self, e: &Entry) -> f64 {
        self.reading * f64::from(e.busy && e.class.operation == Operation::Read)
    }

    /// With the work of writing the zeros.
    fn at_least(&self, e: &Entry) -> f64 {
        self.of_reads(e).max(self.writing * f64::from(e.busy && e.class.operation == Operation::Write))
    }

    /// With what waits for the zeros to be written.
    fn about(&self, e: &Entry) -> f64 {
        let waits = !e.busy && e.class.operation == Operation::Write || e.class.operation == Operation::Sync;
        self.at_least(e).max(self.written * f64::from(waits))
    }

    /// All by the bytes.
    fn at_most(&self, e: &Entry) -> f64 {
        let busy = |operation| f64::from(e.busy && e.class.operation == operation);
        self.about(e).max(self.read * busy(Operation::Read)).max(self.written * busy(Operation::Write))
    }
}

/// A file of which holes were read, in bytes.
struct Sparse<'a> {
    file: &'a FileUse,
    size: f64,
    holes: f64,
    /// Read of its holes, at least.
    bytes: f64,
}

impl<'a> Sparse<'a> {
    /// `None` where no hole was certainly read: all of its data may be in what was read. Of a file that the program also writes, nobody knows
    /// where the holes were before. How much of it was read is known by the marks that reads covered; too few tell nothing.
    fn of(file: &'a FileUse) -> Option<Sparse<'a>> {
        let size = file.size_bytes.filter(|_| file.hole_bytes > 0 && file.writes.calls == 0)?;
        let data = size.checked_sub(file.hole_bytes)?;
        let (_, most_repeated) =
            file.reads.repeated.interval().filter(|_| file.reads.repeated.n >= ENOUGH_LOOKS)?;
        let read = file.reads.bytes as f64;
        let distinct = (file.reads.distinct_bytes.min(size) as f64).min((1.0 - most_repeated) * read);
        let bytes = distinct - data as f64;
        (bytes > 0.0).then_some(Sparse { file, size: size as f64, holes: file.hole_bytes as f64, bytes })
    }

    /// The part of what was read of it.
    fn part(&self) -> f64 {
        self.bytes / (self.file.reads.bytes as f64).max(1.0)
    }
}

/// For each sparse file another one of its length that was written whole, so that it has data where the first has holes. Each is taken once.
fn filled_copies<'b, 'f>(
    facts: &'b Facts<'_>,
    files: &'f [Sparse<'_>],
) -> Vec<(&'f Sparse<'f>, &'b FileUse)> {
    let mut left: Vec<&FileUse> = facts
        .storage_files()
        .filter(|f| {
            f.kind == "regular"
                && f.size_bytes.is_some_and(|size| f.writes.distinct_bytes as f64 >= NEARLY_ALL * size as f64)
        })
        .collect();
    let mut copies = Vec::new();
    for sparse in files {
        if let Some(at) =
            left.iter().position(|f| f.size_bytes.is_some_and(|size| size as f64 == sparse.size))
        {
            copies.push((sparse, left.swap_remove(at)));
        }
    }
    copies
}
