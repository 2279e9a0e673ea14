//! Time in calls by kind: reads, writes, syncs, and the other calls on files.

use iowhy_core::replay::Op;
use iowhy_core::units::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds in calls of each kind, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Reads, with page faults on mapped files.
    pub reads_ns: f64,
    /// Writes.
    pub writes_ns: f64,
    /// fsync and fdatasync.
    pub syncs_ns: f64,
    /// Opens, seeks, advice and memory mappings.
    pub metadata_ns: f64,
}

/// Times of the counted rounds of one plan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds<'a> {
    /// I/O time, round by round.
    pub(crate) io_ns: &'a [f64],
    /// Time in calls by kind, round by round.
    pub(crate) parts: &'a [Parts],
}

impl Parts {
    /// The part of a kind of call.
    pub(crate) fn of(&mut self, op: Op) -> &mut f64 {
        match op {
            Op::Read { .. } | Op::TouchPages | Op::TouchLines | Op::MapReadUnmap { .. } => &mut self.reads_ns,
            Op::Write => &mut self.writes_ns,
            Op::Fsync { .. } | Op::SyncDirectory | Op::SyncFileRange => &mut self.syncs_ns,
            _ => &mut self.metadata_ns,
        }
    }

    /// All of it.
    pub(crate) fn sum_ns(&self) -> f64 {
        self.reads_ns + self.writes_ns + self.syncs_ns + self.metadata_ns
    }

    /// Each part multiplied by a factor.
    pub(crate) fn times(&self, factor: f64) -> Parts {
        Parts {
            reads_ns: self.reads_ns * factor,
            writes_ns: self.writes_ns * factor,
            syncs_ns: self.syncs_ns * factor,
            metadata_ns: self.metadata_ns * factor,
        }
    }

    /// The sums of both.
    pub(crate) fn plus(&self, more: &Parts) -> Parts {
        Parts {
            reads_ns: self.reads_ns + more.reads_ns,
            writes_ns: self.writes_ns + more.writes_ns,
            syncs_ns: self.syncs_ns + more.syncs_ns,
            metadata_ns: self.metadata_ns + more.metadata_ns,
        }
    }

    /// The kind that differs most from that of the recorded run (`self`), in words; `None`: none took any time.
    pub(crate) fn most_different(&self, replayed: &Parts) -> Option<String> {
        let named = |parts: &Parts| {
            [
                ("reads", parts.reads_ns),
                ("writes", parts.writes_ns),
                ("syncs", parts.syncs_ns),
                ("metadata calls", parts.metadata_ns),
            ]
        };
        let both = named(self).into_iter().zip(named(replayed));
        let apart = |((_, was), (_, now)): &((&str, f64), (&str, f64))| (now - was).abs();
        let ((what, was), (_, now)) = both.max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
        (was + now > 0.0)
            .then(|| format!("the {what} differ most: {} recorded, {} replayed", time(was), time(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_differs_most_is_named() {
        let was = Parts { reads_ns: 1e6, syncs_ns: 5e6, ..Parts::default() };
        let now = Parts { reads_ns: 2e6, syncs_ns: 9e6, ..Parts::default() };
        assert_eq!(
            was.most_different(&now).as_deref(),
            Some("the syncs differ most: 5.00 ms recorded, 9.00 ms replayed")
        );
        assert_eq!(Parts::default().most_different(&Parts::default()), None);
    }
}
