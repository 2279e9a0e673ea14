//! The program's own code that unpacks compressed bytes: of the same bytes it is the same work again.
//!
//! Samples tell how much of the code unpacks, by the names of its functions; recorded calls tell after reads of which files the program's
//! own time is. Both are needed: what is read once may be packed, and what is read again may not.

use std::collections::HashMap;

use iowhy_core::profile::{SampledShare, StepKind};

use super::super::{Facts, loops};
use super::Again;

/// What of the own code unpacks bytes that were read before.
pub(super) struct Unpacking {
    /// Samples of the own code, and those in functions that unpack.
    pub(super) samples: SampledShare,
    /// The part of the unpacked bytes that were read before, 0 to 1.
    again: f64,
}

impl Unpacking {
    /// `None`: nothing unpacks, or it is not known of which files.
    pub(super) fn of(facts: &Facts<'_>, files: &[Again<'_>]) -> Option<Unpacking> {
        let samples = loops::unpacking(facts.profile);
        let again = again_after_reads(facts, files).filter(|again| *again > 0.0 && samples.hits > 0)?;
        Some(Unpacking { samples, again })
    }

    /// The part of the own code that goes with the repeats, by the samples, 0 to 1.
    pub(super) fn part(&self) -> f64 {
        self.again * self.samples.value().unwrap_or(0.0)
    }

    /// The same by the lower end of the samples' 95 % interval.
    pub(super) fn certain_part(&self) -> f64 {
        self.again * self.samples.interval().map_or(0.0, |(low, _)| low)
    }
}

/// Of the recorded time between a thread's calls, the part that follows a read of bytes that were read before: by how much of each file
/// is read again. `None` where no time after a call was recorded.
fn again_after_reads(facts: &Facts<'_>, files: &[Again<'_>]) -> Option<f64> {
    let parts: HashMap<&str, f64> = files.iter().map(|f| (f.file.path.as_str(), f.part())).collect();
    let pattern = &facts.profile.pattern;
    let of_files: Vec<f64> =
        pattern.files.iter().map(|f| parts.get(f.path.as_str()).copied().unwrap_or(0.0)).collect();
    let (mut all_ns, mut again_ns) = (0.0, 0.0);
    for stretch in &pattern.stretches {
        let mut before: HashMap<u32, f64> = HashMap::new();
        for step in &stretch.steps {
            let file = step.file.filter(|_| step.kind == StepKind::Read);
            let part = file.and_then(|file| of_files.get(file as usize)).copied().unwrap_or(0.0);
            // What came before a thread's first call is not in the stretch. Calls of a run follow each other.
            let calls = f64::from(step.count.max(1));
            let gap_ns = step.gap_ns as f64 / calls;
            if let Some(before) = before.insert(step.thread, part) {
                all_ns += gap_ns;
                again_ns += gap_ns * before;
            }
            all_ns += gap_ns * (calls - 1.0);
            again_ns += gap_ns * (calls - 1.0) * part;
        }
    }
    (all_ns > 0.0).then(|| again_ns / all_ns)
}
