//! The rule `reads-of-holes`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::FileUse;

use super::facts::{Side, entering};
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

/// A file was written whole, up to what marks leave open.
const NEARLY_ALL: f64 = 0.95;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let files: Vec<Sparse<'_>> = facts.storage_files().filter_map(Sparse::of).collect();
    let read: f64 = facts.storage_files().map(|f| f.reads.bytes as f64).sum();
    let of_holes = files.iter().map(|f| f.bytes).sum::<f64>() / read.max(1.0);
    let most = files.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes)).filter(|_| of_holes >= MOSTLY)?;
    let filled: Vec<(&Sparse<'_>, &FileUse)> =
        files.iter().filter_map(|f| Some((f, f.filled_copy(facts)?))).collect();
    let written: f64 = facts.storage_files().map(|f| f.writes.bytes as f64).sum();
    let of_written = filled.iter().map(|(f, _)| f.holes).sum::<f64>() / written.max(1.0);
    // Reads of pipes and sockets are of no holes.
    let files_part = |side, part: f64| facts.storage_part(side).map_or(0.0, |(_, of_files)| part * of_files);
    let parts = Parts {
        read: files_part(Side::Read, of_holes),
        written: files_part(Side::Write, of_written.min(1.0)),
    };
    let calls = |side, part| part * facts.part_of_calls(side).unwrap_or(0.0);
    let entries = calls(Side::Read, parts.read) + calls(Side::Write, parts.written);
    let within_calls = loops::within_calls(facts);
    let weight = |e: &Entry| match e {
        _ if entering(e) => entries,
        _ => parts.at_most(e).max(entries * within_calls(e)),
    };
    let cost_ns = facts.account.entries.iter().map(|e| weight(e) * e.wall_ns).sum();
    let mut evidence = vec![
        format!(
            "`{}`: {} long, of which {} are holes; {} of it were read",
            most.file.path,
            say::bytes(most.size),
            say::bytes(most.holes),
            say::bytes(most.file.reads.bytes as f64)
        ),
        format!(
            "reading holes takes {} of wall time by their part of the bytes: the kernel makes the zeros and copies them",
            say::percent(facts.wall_share(
                facts.account.entries.iter().map(|e| parts.of_reads(e) * e.wall_ns).sum::<f64>()
            ))
        ),
    ];
    if let Some((sparse, copy)) = filled.first() {
        evidence.push(format!(
            "`{}` is as long and was written whole: {} of it are such zeros, which take room and are written to the device",
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
            "Most of what is read are holes: {} of {}, zeros that no disk holds",
            say::bytes(of_holes * read),
            say::bytes(read)
        ),
        evidence,
        advice: "Ask the file system which parts hold data (lseek with SEEK_DATA and SEEK_HOLE, or FIEMAP), and read only these. A copy keeps \
                 its holes with cp --sparse=always, dd conv=sparse, rsync --sparse, tar --sparse or qemu-img convert; of these cp and tar also \
                 leave the holes unread."
            .to_owned(),
    }
    .finding_by_account(facts, prediction)
}

/// The parts of what is done that are about holes, 0 to 1.
struct Parts {
    read: f64,
    written: f64,
}

impl Parts {
    /// Of the reads; a device is not asked for holes.
    fn of_reads(&self, e: &Entry) -> f64 {
        self.read * f64::from(e.busy && e.class.operation == Operation::Read)
    }

    /// With the work of writing the zeros.
    fn at_least(&self, e: &Entry) -> f64 {
        self.of_reads(e).max(self.written * f64::from(e.busy && e.class.operation == Operation::Write))
    }

    /// With what waits for the zeros to be written.
    fn at_most(&self, e: &Entry) -> f64 {
        let writes = matches!(e.class.operation, Operation::Write | Operation::Sync);
        self.of_reads(e).max(self.written * f64::from(writes))
    }
}

/// A file of which holes were read, in bytes.
struct Sparse<'a> {
    file: &'a FileUse,
    size: f64,
    holes: f64,
    /// Read of its holes, at least, each time counted.
    bytes: f64,
}

impl<'a> Sparse<'a> {
    /// `None` where no hole was certainly read: all of its data may be in what was read. Of a file that the program also writes, nobody knows
    /// where the holes were before.
    fn of(file: &'a FileUse) -> Option<Sparse<'a>> {
        let size = file.size_bytes.filter(|_| file.hole_bytes > 0 && file.writes.calls == 0)?;
        let data = size.checked_sub(file.hole_bytes)?;
        let distinct = file.reads.distinct_bytes.min(size).min(file.reads.bytes);
        let once = distinct.checked_sub(data).filter(|bytes| *bytes > 0)? as f64;
        let bytes = once / distinct as f64 * file.reads.bytes as f64;
        Some(Sparse { file, size: size as f64, holes: file.hole_bytes as f64, bytes })
    }

    /// A file that has its length, was written whole, and so has data where this one has holes.
    fn filled_copy<'b>(&self, facts: &Facts<'b>) -> Option<&'b FileUse> {
        let as_long = |f: &&FileUse| f.size_bytes.is_some_and(|size| size as f64 == self.size);
        let whole = |f: &&FileUse| f.writes.distinct_bytes as f64 >= NEARLY_ALL * self.size;
        facts.profile.files.iter().find(|f| f.kind == "regular" && as_long(f) && whole(f))
    }
}
