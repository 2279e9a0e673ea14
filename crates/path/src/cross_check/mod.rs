//! The cross-check: the account of a request compared with stack samples of the same requests, made while extra slices of
//! its cell were profiled. Neither knows of the other. A test of equivalence: account and samples agree on a part where the
//! 95 % interval of their difference lies within 5 % of the request, and disagree where it lies outside.
//!
//! Totals are exact: samples are shares of the CPU time, sleeps shares of the waiting, of a request that was not profiled.

mod observed;
mod part;
mod split;
#[cfg(test)]
mod tests;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::profile::Tier;
use iowhy_core::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::costs::Layers;
use crate::per_request::{busy_ns, median, rounds, undisturbed_ns};

pub use self::observed::{Observed, observed};
use self::part::{Part, Seen, parts};
pub use self::split::split;

/// A difference below this part of the request is of no consequence.
pub(crate) const MARGIN: f64 = 0.05;
/// A part that neither has is left out below this part of the request.
const NOTHING_SHARE: f64 = 1e-3;
/// With fewer samples the check is inconclusive.
const MIN_SAMPLES: u64 = 30;
/// CPU time for one request may differ so much between the profiled slices and the measured ones, what recording took left out:
/// other work than this was then done, on a machine that is as fast.
const SAME_PACE: f64 = 0.30;

/// Fit and samples of one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCheck {
    /// The tier that was used.
    pub tier: Tier,
    /// Clock samples in the requests.
    pub samples: u64,
    /// Requests that were profiled.
    pub requests: u64,
    /// Thread time of one request that was not profiled, without its wait for a CPU. What was seen of all parts sums to it.
    pub time_ns: f64,
    /// Part by part.
    pub layers: Vec<PartCheck>,
    /// Whether the profiled requests did what the measured ones do, and there are enough samples of them.
    #[serde(skip)]
    pub of_these_requests: bool,
    /// Over all parts.
    pub verdict: Verdict,
    /// Why it is inconclusive, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl CrossCheck {
    /// Whether samples may split the account. Where a sum differs they may: what a request takes is measured, and only the
    /// prediction of the cells is wrong. Where account and samples draw a boundary elsewhere, both stay as they are.
    pub fn may_split(&self) -> bool {
        let boundary = |part: &PartCheck| part.result == Agreement::Disagrees && part.id != part::BUSY_ID;
        self.of_these_requests && !self.layers.iter().any(boundary)
    }

    /// Whether more samples may decide a part of it.
    pub fn is_undecided(&self) -> bool {
        let of_samples = |part: &PartCheck| {
            let fit = part.fitted.map_or(0.0, |f| f.high_ns - f.low_ns);
            part.result == Agreement::Inconclusive && part.seen.high - part.seen.low > fit / 2.0
        };
        self.samples < MIN_SAMPLES || self.layers.iter().any(of_samples)
    }
}

/// Fit and samples of one part of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartCheck {
    /// The layers, joined by `+`; `-wait` behind time off the CPU.
    pub id: String,
    /// By the fit; absent where it has no cost for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitted: Option<Fitted>,
    /// By the profile, in nanoseconds. `n`: the clock samples or sleeps that it is a share of.
    pub seen: Estimate,
    /// Clock samples or sleeps that were seen in it.
    pub events: u64,
    /// Whether they agree.
    pub result: Agreement,
    /// Why layers are compared as a sum, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A fitted time and the ends of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fitted {
    /// Nanoseconds for one request.
    pub value_ns: f64,
    /// Lower end of the 95 % interval.
    pub low_ns: f64,
    /// Upper end of the 95 % interval.
    pub high_ns: f64,
}

/// Fit against samples, for one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The 95 % interval of their difference lies within 5 % of the request (without its wait for a CPU).
    Agrees,
    /// It lies outside.
    Disagrees,
    /// It does neither; or the requests were not those that the costs were measured on.
    Inconclusive,
    /// The fit has no cost for it.
    NotFitted,
}

/// Fit against samples, for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Agreement")]
pub enum Verdict {
    /// No part disagrees, and each could have.
    Confirmed,
    /// At least one part disagrees.
    Disagrees,
    /// Nothing disagrees, but a part is inconclusive.
    Inconclusive,
}

impl Verdict {
    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Disagrees => "disagrees",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// Compares fit and samples of the profiled slices. `measured` is the cell without profiling, and `layers` its account.
/// `None` when no profiled request was completed, or there is no account.
pub fn compare(
    seen: &Observed,
    watched: &CellRun,
    measured: &CellRun,
    layers: &Layers,
) -> Option<CrossCheck> {
    let requests: u64 = watched.samples.iter().map(|sample| sample.requests).sum();
    let cpu_ns = median(measured, busy_ns)?;
    // The rest of the median, not the median of the rests: parts sum to the whole.
    let whole = Whole { cpu_ns, wait_ns: (median(measured, undisturbed_ns)? - cpu_ns).max(0.0) };
    let fit = Fit {
        point: layers.ledger.as_ref().filter(|ledger| ledger.total_ns() > 0.0)?,
        draws: &layers.draws,
        rounds: rounds(measured).count(),
        whole_ns: whole.time_ns(),
    };
    if requests == 0 {
        return None;
    }
    // Costs that were fitted on reads say nothing of writes.
    let fitted = layers.own_cells || !watched.workload.direction.writes();
    let table = parts(&watched.workload);
    let mut layers: Vec<PartCheck> = Vec::new();
    // Shares of nothing are no numbers.
    for part in table.iter().filter(|_| seen.samples > 0) {
        let (estimate, events) = whole.seen(seen, part, table);
        let fitted = fitted.then(|| fit.part(part));
        let nothing =
            estimate.value == 0.0 && fitted.is_none_or(|f| f.high_ns < NOTHING_SHARE * whole.time_ns());
        if !nothing && estimate.n > 0 {
            layers.push(PartCheck {
                id: part.id.to_owned(),
                fitted,
                seen: estimate,
                events,
                result: fitted.map_or(Agreement::NotFitted, |f| agreement(&f, &estimate, whole.time_ns())),
                why: part.why.map(str::to_owned),
            });
        }
    }
    let other_pace = seen.pace(watched, whole.cpu_ns).and_then(other_pace);
    if other_pace.is_some() {
        let fitted = layers.iter_mut().filter(|part| part.fitted.is_some());
        fitted.for_each(|part| part.result = Agreement::Inconclusive);
    }
    let same_pace = other_pace.is_none();
    let (verdict, reason) = verdict(&layers, seen, other_pace);
    Some(CrossCheck {
        tier: seen.tier,
        samples: seen.samples,
        requests,
        time_ns: whole.time_ns(),
        layers,
        of_these_requests: same_pace && seen.samples >= MIN_SAMPLES,
        verdict,
        reason,
    })
}

/// Exact times of one request that was not profiled.
#[derive(Clone, Copy, Debug)]
struct Whole {
    cpu_ns: f64,
    wait_ns: f64,
}

impl Whole {
    /// CPU time and waiting.
    fn time_ns(&self) -> f64 {
        self.cpu_ns + self.wait_ns
    }

    /// What was seen of a part, and by how many samples or sleeps.
    fn seen(&self, seen: &Observed, part: &Part, table: &[Part]) -> (Estimate, u64) {
        let in_layers = |layers: &[Layer]| -> u64 { layers.iter().filter_map(|l| seen.busy.get(l)).sum() };
        let samples = match part.seen {
            Seen::Waits => {
                return (seen.wait_estimate(part.fitted, self.wait_ns), seen.sleeps(part.fitted));
            }
            Seen::Layers(layers) => in_layers(layers),
            Seen::Rest => {
                let others = table.iter().filter(|other| !matches!(other.seen, Seen::Rest | Seen::Waits));
                seen.samples - others.map(|other| self.seen(seen, other, table).1).sum::<u64>()
            }
        };
        (seen.busy_estimate(samples, self.cpu_ns), samples)
    }
}

/// Whether fit and samples of a part of a request of `time_ns` agree.
fn agreement(fitted: &Fitted, seen: &Estimate, time_ns: f64) -> Agreement {
    let difference = (fitted.value_ns - seen.value).abs();
    // The arms that face each other. Rounds and samples are independent, so that their squares add.
    let arms = if seen.value >= fitted.value_ns {
        (seen.value - seen.low, fitted.high_ns - fitted.value_ns)
    } else {
        (seen.high - seen.value, fitted.value_ns - fitted.low_ns)
    };
    let facing = arms.0.max(0.0).hypot(arms.1.max(0.0));
    let margin = MARGIN * time_ns;
    if difference - facing > margin {
        Agreement::Disagrees
    } else if difference + facing <= margin {
        Agreement::Agrees
    } else {
        Agreement::Inconclusive
    }
}

/// Why costs that were measured at another pace explain nothing here, where that is so.
fn other_pace(factor: f64) -> Option<String> {
    ((factor - 1.0).abs() > SAME_PACE).then(|| {
        format!("a profiled request took {factor:.2}x the CPU time of an unprofiled one, without what recording took")
    })
}

/// The verdict, and why it is inconclusive.
fn verdict(layers: &[PartCheck], seen: &Observed, other_pace: Option<String>) -> (Verdict, Option<String>) {
    if seen.samples < MIN_SAMPLES {
        let reason = format!("only {} clock samples are in the requests", seen.samples);
        return (Verdict::Inconclusive, Some(reason));
    }
    if other_pace.is_some() {
        return (Verdict::Inconclusive, other_pace);
    }
    let of = |result: Agreement| layers.iter().filter(|l| l.result == result).collect::<Vec<_>>();
    if !of(Agreement::Disagrees).is_empty() {
        return (Verdict::Disagrees, None);
    }
    let open = of(Agreement::Inconclusive);
    if !open.is_empty() {
        let names = open.iter().map(|l| l.id.as_str()).collect::<Vec<_>>().join(", ");
        return (Verdict::Inconclusive, Some(format!("the intervals of {names} are too wide")));
    }
    if of(Agreement::Agrees).is_empty() {
        return (Verdict::Inconclusive, Some("the fit has no cost for these requests".to_owned()));
    }
    (Verdict::Confirmed, None)
}

/// The account of the measured cell: its shares of the time of a request.
struct Fit<'a> {
    point: &'a Ledger,
    draws: &'a [Ledger],
    rounds: usize,
    whole_ns: f64,
}

impl Fit<'_> {
    fn part(&self, part: &Part) -> Fitted {
        let of = |ledger: &Ledger| {
            let one = |layer: &Layer| match part.seen {
                Seen::Waits => ledger.get(*layer).wait_ns,
                _ => ledger.get(*layer).busy_ns,
            };
            let whole = ledger.total_ns() - ledger.get(Layer::CpuQueue).wait_ns;
            part.fitted.iter().map(one).sum::<f64>() / whole * self.whole_ns
        };
        let value_ns = of(self.point);
        // Layers of one draw are summed, not the ends of their intervals.
        let estimate =
            stats::interval(value_ns, self.draws.iter().map(of).collect(), self.rounds, Unit::Nanoseconds);
        let (low_ns, high_ns) = estimate.map_or((value_ns, value_ns), |e| (e.low, e.high));
        Fitted { value_ns, low_ns, high_ns }
    }
}
