//! The program's own code that decompresses: of the same bytes it is the same work again.
//!
//! Samples tell how much of the code decompresses, by the names of its functions; recorded calls tell after reads of which files the time between
//! calls is. What is read once may be compressed, and what is read again may not, and time between calls may be sleep: so of each no more is
//! taken than must be in both.

use std::collections::HashMap;

use iowhy_core::profile::{SampledShare, StepKind};

use super::super::{Facts, loops};
use super::Again;

/// What of the own code decompresses bytes that were read before.
pub(super) struct Decompression {
    /// Samples of the own code, and those in functions that decompress.
    pub(super) samples: SampledShare,
    /// The part of the own code that follows reads of bytes that were read before, at least, 0 to 1.
    again: f64,
}

impl Decompression {
    /// `None`: nothing must decompress the same bytes again.
    pub(super) fn of(facts: &Facts<'_>) -> Option<Decompression> {
        let samples = loops::decompression(facts.profile);
        let again = without_sleeps(facts, again_after_reads(facts)?);
        let found = Decompression { samples, again };
        (found.part() > 0.0).then_some(found)
    }

    /// The part of the own code that goes with the repeats at least, by the samples, 0 to 1.
    pub(super) fn part(&self) -> f64 {
        self.in_both(self.samples.value().unwrap_or(0.0))
    }

    /// The same by the lower end of the samples' 95 % interval.
    pub(super) fn certain_part(&self) -> f64 {
        self.in_both(self.samples.interval().map_or(0.0, |(low, _)| low))
    }

    fn in_both(&self, decompresses: f64) -> f64 {
        (decompresses + self.again - 1.0).max(0.0)
    }
}

/// Of the recorded time between a thread's calls, the part that follows a read of bytes that were read before: by how much of each file
/// is read again for certain. `None` where no time after a call was recorded.
fn again_after_reads(facts: &Facts<'_>) -> Option<f64> {
    let mut parts: HashMap<&str, f64> = HashMap::new();
    for file in facts.storage_files() {
        let part = Again::of(file).map_or(0.0, |again| again.of_streams());
        // A path that led to several files: any of them.
        parts.entry(&file.path).and_modify(|least| *least = least.min(part)).or_insert(part);
    }
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

/// The part of the time awake, at least: which of the time between calls is sleep, is not known, so all sleeps are taken out of this part.
fn without_sleeps(facts: &Facts<'_>, part: f64) -> f64 {
    let (mut asleep, mut all) = (0.0, 0.0);
    for thread in &facts.profile.threads {
        asleep += thread.blocked_ns as f64;
        all += thread.lifetime_ns as f64;
    }
    let asleep = if all > 0.0 { (asleep / all).clamp(0.0, 1.0) } else { 0.0 };
    if asleep < part { (part - asleep) / (1.0 - asleep) } else { 0.0 }
}
