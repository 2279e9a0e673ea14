//! Result of measuring one cell: raw samples per round, and the verified cache state.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::workload::{CacheState, Workload};

/// Totals of one round of one cell: the raw material of every estimate. Times are sums over the cell's threads
/// unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Round it was taken in; samples of one round may be compared as a pair.
    pub round: u32,
    /// Start, counted from the start of the measurement.
    pub start_ns: u64,
    /// Requests completed.
    pub requests: u64,
    /// Bytes that the requests claim to have moved.
    pub claimed_bytes: u64,
    /// Bytes of the same stream that were read just before and do not count: two windows of read-ahead a thread. The kernel may have read the
    /// next window by then, which the requests that count find in the page cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lead_bytes: u64,
    /// Wall time from the common start to the last thread's end.
    pub wall_ns: u64,
    /// Wall time from the common start to the first thread's end.
    pub first_done_ns: u64,
    /// Latencies of the requests, summed.
    #[serde(default)]
    pub latency_sum_ns: u64,
    /// Thread time: for each thread its own elapsed time, summed.
    pub thread_ns: u64,
    /// CPU time of the measuring threads.
    pub cpu_ns: u64,
    /// Of which in user mode (the kernel's own split, coarser than `cpu_ns`).
    pub cpu_user_ns: u64,
    /// Time runnable but without a CPU.
    pub run_delay_ns: u64,
    /// CPU time of kernel threads over the round, where it can be seen.
    pub kernel_thread_ns: Option<u64>,
    /// Bytes the devices under the target moved in the direction of the cell, exactly at start and end.
    pub device_bytes: Option<u64>,
    /// Requests those devices completed in that direction.
    pub device_requests: Option<u64>,
    /// Sum over those requests of the time from request allocation to completion (1 ms grain over the round).
    pub device_request_ns: Option<u64>,
    /// Sum over the requests to a stacked device (dm, md) under the target of their time from entry to completion, below
    /// included (grain: 1 ms, or the kernel's clock tick where the stack counts in ticks); `None` without such a stack.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stack_request_ns: Option<u64>,
    /// Share of the region that was in the cache before, 0 to 1.
    pub resident_before: Option<f64>,
    /// Share after.
    pub resident_after: Option<f64>,
    /// Major faults of the measuring threads.
    pub major_faults: u64,
    /// Minor faults of the measuring threads.
    pub minor_faults: u64,
    /// Context switches that waited.
    pub voluntary_switches: u64,
    /// Context switches that were forced.
    pub involuntary_switches: u64,
    /// Time of one-off preparation inside the method (mapping, registering), not part of `thread_ns`.
    pub setup_ns: u64,
    /// Open loop: sum of lateness against the plan.
    pub lateness_ns: u64,
    /// Requests that the kernel first refused (RWF_NOWAIT: not in the cache).
    pub refused: u64,
    /// Latencies of this round in four classes an octave, as (lower end in ns, requests): see
    /// [`Histogram::quarters`]. Empty in records of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_quarters: Vec<(u64, u64)>,
    /// Traffic of each member of a stripe, or of each device under a volume of several; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberTotals>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Traffic of one member of a stripe, or of one device under a volume, in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberTotals {
    /// Requests that were sent to it, after splitting; `None` where the kernel splits them.
    pub requests: Option<u64>,
    /// Bytes of those.
    pub bytes: Option<u64>,
    /// Requests that the devices under this member alone completed; `None` where they serve others of the members too.
    pub device_requests: Option<u64>,
    /// Bytes of those.
    pub device_bytes: Option<u64>,
    /// Time in which those devices had at least one request in flight (their sum).
    pub device_busy_ns: Option<u64>,
}

impl Sample {
    /// Thread time per completed request, the quantity that layers are split from.
    pub fn ns_per_request(&self) -> f64 {
        self.thread_ns as f64 / self.requests.max(1) as f64
    }

    /// Adds a later part of the same round by the same threads: times and counts are sums. Round, start and cache state
    /// stay those of the first part; members are left to the caller.
    pub fn add(&mut self, later: &Sample) {
        for (sum, part) in [
            (&mut self.requests, later.requests),
            (&mut self.claimed_bytes, later.claimed_bytes),
            (&mut self.lead_bytes, later.lead_bytes),
            (&mut self.wall_ns, later.wall_ns),
            (&mut self.first_done_ns, later.first_done_ns),
            (&mut self.latency_sum_ns, later.latency_sum_ns),
            (&mut self.thread_ns, later.thread_ns),
            (&mut self.cpu_ns, later.cpu_ns),
            (&mut self.cpu_user_ns, later.cpu_user_ns),
            (&mut self.run_delay_ns, later.run_delay_ns),
            (&mut self.major_faults, later.major_faults),
            (&mut self.minor_faults, later.minor_faults),
            (&mut self.voluntary_switches, later.voluntary_switches),
            (&mut self.involuntary_switches, later.involuntary_switches),
            (&mut self.setup_ns, later.setup_ns),
            (&mut self.lateness_ns, later.lateness_ns),
            (&mut self.refused, later.refused),
        ] {
            *sum = sum.saturating_add(part);
        }
        for (sum, part) in [
            (&mut self.kernel_thread_ns, later.kernel_thread_ns),
            (&mut self.device_bytes, later.device_bytes),
            (&mut self.device_requests, later.device_requests),
            (&mut self.device_request_ns, later.device_request_ns),
            (&mut self.stack_request_ns, later.stack_request_ns),
        ] {
            *sum = match (*sum, part) {
                (Some(sum), Some(part)) => Some(sum.saturating_add(part)),
                (sum, part) => sum.or(part),
            };
        }
        for &(low_ns, count) in &later.latency_quarters {
            match self.latency_quarters.binary_search_by_key(&low_ns, |class| class.0) {
                Ok(at) => self.latency_quarters[at].1 += count,
                Err(at) => self.latency_quarters.insert(at, (low_ns, count)),
            }
        }
    }
}

/// How a claimed cache state stood up to verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum StateCheck {
    /// Verified before and after.
    Verified,
    /// Nothing to verify: no page cache is involved.
    NotApplicable,
    /// The state differed; the cell must not be reported as claimed.
    Violated {
        /// The observed state, in words.
        reason: String,
    },
    /// It could not be seen.
    Inconclusive {
        /// Why, and the remedy.
        reason: String,
    },
}

/// Page cache of a round, for [`StateCheck::judge`].
#[derive(Clone, Debug, PartialEq)]
pub struct StateEvidence {
    /// Share of the region in the cache before the first request, 0 to 1; `None` when it could not be seen.
    pub before: Option<f64>,
    /// Share after the last.
    pub after: Option<f64>,
    /// Why it could not be seen, in words; used when `before` or `after` is `None`.
    pub blind_reason: Option<String>,
    /// Length of the region.
    pub region_bytes: u64,
    /// Bytes the requests claim to have moved.
    pub claimed_bytes: u64,
    /// Share of the requests for a block that was requested before in the same round, 0 to 1: such a request finds
    /// the block in the cache.
    pub repeated: f64,
}

impl StateCheck {
    /// Tolerance of the claim: 1 % of the region, of the requests, or of the claimed bytes. It leaves room for
    /// the odd page that another process touched; an effect of 1 % on a mean is below what a cell resolves.
    pub const TOLERANCE: f64 = 0.01;

    /// Whether the cache state of a round was as claimed.
    ///
    /// - `cold`: at most 1 % of the region was in the cache before, and at most 1 % of the requests repeated a block.
    /// - `warm`: at least 99 % of the region was in the cache before, and after.
    /// - `direct`: the cached bytes grew by no more than 1 % of the claimed bytes. When the region was so full
    ///   before that growth could not show, a silent fall-back to the cache could not either: unknown.
    /// - `none`: nothing to verify.
    ///
    /// A violation that can be seen from one side is one even if the other side could not be seen.
    pub fn judge(claim: CacheState, evidence: &StateEvidence) -> StateCheck {
        match claim {
            CacheState::None => StateCheck::NotApplicable,
            CacheState::Cold => evidence.judge_cold(),
            CacheState::Warm => evidence.judge_warm(),
            CacheState::Direct => evidence.judge_direct(),
        }
    }

    /// The verdict over several rounds: one violated round spoils the cell, one unseen round leaves it open. No
    /// round at all is nothing to verify.
    pub fn worst(checks: impl IntoIterator<Item = StateCheck>) -> StateCheck {
        let gravity = |check: &StateCheck| match check {
            StateCheck::NotApplicable => 0,
            StateCheck::Verified => 1,
            StateCheck::Inconclusive { .. } => 2,
            StateCheck::Violated { .. } => 3,
        };
        let worse = |a: StateCheck, b: StateCheck| if gravity(&b) > gravity(&a) { b } else { a };
        checks.into_iter().fold(StateCheck::NotApplicable, worse)
    }
}

impl StateEvidence {
    fn judge_cold(&self) -> StateCheck {
        if self.repeated > StateCheck::TOLERANCE {
            return violated(format!(
                "{} of the requests asked for a block that the same round had already read into the cache",
                per_cent(self.repeated)
            ));
        }
        match self.before {
            Some(before) if before > StateCheck::TOLERANCE => violated(format!(
                "{} of the region was in the cache before the first request",
                per_cent(before)
            )),
            Some(_) => StateCheck::Verified,
            None => self.unseen(),
        }
    }

    fn judge_warm(&self) -> StateCheck {
        let missing = |share: Option<f64>| share.filter(|&share| share < 1.0 - StateCheck::TOLERANCE);
        if let Some(before) = missing(self.before) {
            return violated(format!(
                "only {} of the region was in the cache before the first request",
                per_cent(before)
            ));
        }
        if let Some(after) = missing(self.after) {
            return violated(format!(
                "only {} of the region was still in the cache after the last request: it does not fit, or memory is \
                 short",
                per_cent(after)
            ));
        }
        if self.before.and(self.after).is_some() { StateCheck::Verified } else { self.unseen() }
    }

    fn judge_direct(&self) -> StateCheck {
        let (Some(before), Some(after)) = (self.before, self.after) else { return self.unseen() };
        let allowed = StateCheck::TOLERANCE * self.claimed_bytes as f64;
        let grown = (after - before) * self.region_bytes as f64;
        // One page in a rounded share must not convict a round of a few requests.
        if grown > allowed.max(PAGE_BYTES) {
            return violated(format!(
                "the cache grew by {} of the region during direct requests: they went through the cache",
                per_cent(after - before)
            ));
        }
        if self.claimed_bytes > 0 && (1.0 - before) < StateCheck::TOLERANCE {
            return StateCheck::Inconclusive {
                reason: format!(
                    "{} of the region was in the cache before, so requests that silently went through it would not \
                     show; evict the region first",
                    per_cent(before)
                ),
            };
        }
        StateCheck::Verified
    }

    fn unseen(&self) -> StateCheck {
        let reason = self.blind_reason.clone();
        StateCheck::Inconclusive {
            reason: reason.unwrap_or_else(|| "the page cache was not looked at".into()),
        }
    }
}

/// The common page size: the grain of a residency.
const PAGE_BYTES: f64 = 4096.0;

fn violated(reason: String) -> StateCheck {
    StateCheck::Violated { reason }
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// All that was measured for one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellRun {
    /// The workload.
    pub workload: Workload,
    /// A short stable key, unique in the record.
    pub key: String,
    /// One sample a round.
    pub samples: Vec<Sample>,
    /// Latency of every request over all rounds.
    pub latency: Histogram,
    /// How the claimed cache state stood up.
    pub state_check: StateCheck,
    /// Options of the method that the kernel refused, in words (`IOPOLL: EOPNOTSUPP`).
    pub dropped: Vec<String>,
    /// Why the cell failed, when it did; samples before the failure are kept.
    pub failure: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn seen(before: f64, after: f64) -> StateEvidence {
        StateEvidence {
            before: Some(before),
            after: Some(after),
            blind_reason: None,
            region_bytes: 100 * MIB,
            claimed_bytes: 100 * MIB,
            repeated: 0.0,
        }
    }

    fn is_violated(claim: CacheState, evidence: &StateEvidence) -> bool {
        matches!(StateCheck::judge(claim, evidence), StateCheck::Violated { .. })
    }

    fn is_unclear(claim: CacheState, evidence: &StateEvidence) -> bool {
        matches!(StateCheck::judge(claim, evidence), StateCheck::Inconclusive { .. })
    }

    #[test]
    fn cold_means_nothing_there_before_whatever_is_there_after() {
        assert_eq!(StateCheck::judge(CacheState::Cold, &seen(0.0, 1.0)), StateCheck::Verified);
        assert_eq!(StateCheck::judge(CacheState::Cold, &seen(0.01, 0.5)), StateCheck::Verified);
        assert!(is_violated(CacheState::Cold, &seen(0.02, 1.0)));
    }

    #[test]
    fn a_region_that_is_read_again_is_not_cold() {
        let repeated = |repeated| StateEvidence { repeated, ..seen(0.0, 1.0) };
        assert!(is_violated(CacheState::Cold, &repeated(0.15)));
        assert_eq!(StateCheck::judge(CacheState::Cold, &repeated(0.01)), StateCheck::Verified);
        let blind = StateEvidence { before: None, ..repeated(0.15) };
        assert!(is_violated(CacheState::Cold, &blind), "known from the plan alone");
    }

    #[test]
    fn warm_means_all_there_before_and_after() {
        assert_eq!(StateCheck::judge(CacheState::Warm, &seen(0.99, 1.0)), StateCheck::Verified);
        assert!(is_violated(CacheState::Warm, &seen(0.98, 1.0)));
        assert!(is_violated(CacheState::Warm, &seen(1.0, 0.9)));
        assert!(is_violated(CacheState::Warm, &StateEvidence { after: None, ..seen(0.5, 0.0) }));
        assert!(is_unclear(CacheState::Warm, &StateEvidence { after: None, ..seen(1.0, 0.0) }));
    }

    #[test]
    fn direct_must_not_fill_the_cache() {
        assert_eq!(StateCheck::judge(CacheState::Direct, &seen(0.0, 0.0)), StateCheck::Verified);
        assert_eq!(StateCheck::judge(CacheState::Direct, &seen(0.5, 0.2)), StateCheck::Verified);
        assert!(is_violated(CacheState::Direct, &seen(0.0, 1.0)));
        assert!(is_unclear(CacheState::Direct, &seen(1.0, 1.0)));
        // Growth is compared with the requested bytes, not with a region that is mostly left alone.
        let few = StateEvidence { claimed_bytes: MIB, ..seen(0.0, 0.005) };
        assert!(is_violated(CacheState::Direct, &few));
        let one_page = StateEvidence { claimed_bytes: 4096, ..seen(0.0, 4096.0 / (100 * MIB) as f64) };
        assert_eq!(StateCheck::judge(CacheState::Direct, &one_page), StateCheck::Verified);
    }

    #[test]
    fn what_could_not_be_seen_carries_its_reason_and_what_claims_nothing_needs_none() {
        let blind = StateEvidence {
            before: None,
            after: None,
            blind_reason: Some("not the owner".into()),
            ..seen(0.0, 0.0)
        };
        for claim in [CacheState::Cold, CacheState::Warm, CacheState::Direct] {
            assert_eq!(
                StateCheck::judge(claim, &blind),
                StateCheck::Inconclusive { reason: "not the owner".into() }
            );
        }
        assert_eq!(StateCheck::judge(CacheState::None, &blind), StateCheck::NotApplicable);
    }

    #[test]
    fn one_bad_round_spoils_the_cell_and_one_unseen_round_leaves_it_open() {
        let unseen = || StateCheck::Inconclusive { reason: "why".into() };
        let bad = || violated("how".into());
        assert_eq!(StateCheck::worst([]), StateCheck::NotApplicable);
        assert_eq!(StateCheck::worst([StateCheck::Verified, StateCheck::Verified]), StateCheck::Verified);
        assert_eq!(StateCheck::worst([StateCheck::Verified, unseen(), StateCheck::Verified]), unseen());
        assert_eq!(StateCheck::worst([unseen(), bad(), StateCheck::Verified]), bad());
    }
}
