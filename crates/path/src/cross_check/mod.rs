//! The cross-check: the account of a request compared with stack samples of the same requests, made while extra slices of
//! its cell were profiled. Neither knows of the other. A part disagrees where both intervals are apart by a tenth of the request.
//!
//! CPU time: share of the clock samples (Wilson's interval) times the CPU time of a request, which the scheduler counts.
//! Waiting: the sum of all sleeps; waiting whose operation was not seen widens the upper end.

mod part;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::profile::{Profile, SampledShare, Thread, Tier};
use iowhy_core::stats;
use iowhy_core::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::costs::Layers;
use crate::per_request::{busy_ns, median, rounds, undisturbed_ns};
use iowhy_diagnose::account::Account;
use iowhy_diagnose::classify::Operation;

use self::part::{Part, belongs, parts};

/// A difference below this part of the request is of no consequence.
const NOTABLE_SHARE: f64 = 0.10;
/// A part without samples that is fitted below this part of the request is left out.
const NOTHING_SHARE: f64 = 1e-3;
/// With fewer samples the check is inconclusive.
const MIN_SAMPLES: u64 = 30;
/// CPU time for one request may differ so much between the profiled slices and the measured ones.
const SAME_PACE: f64 = 0.15;
/// Share of the profile in which sleeps were recorded, above which all count as seen.
const ALL_SEEN: f64 = 0.999;

/// The profile of a cell's requests, in totals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The tier that was used.
    pub tier: Tier,
    /// Clock samples in the requests.
    pub samples: u64,
    busy: BTreeMap<Layer, u64>,
    interrupts: u64,
    waits: BTreeMap<Layer, Waited>,
    /// Waiting whose operation was not seen: in a request, or before and after them.
    unplaced_ns: f64,
    sleeps_all_seen: bool,
}

/// Sleeps with one meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Waited {
    time_ns: f64,
    sleeps: u64,
}

/// Sums what belongs to the requests of a cell. `measuring` picks the measuring threads.
pub fn observed(
    profile: &Profile,
    account: &Account,
    workload: &Workload,
    measuring: impl Fn(&Thread) -> bool,
) -> Observed {
    let mut seen = Observed {
        tier: profile.sight.tier,
        sleeps_all_seen: profile.observer.switch_duty >= ALL_SEEN && profile.observer.lost == 0,
        ..Observed::default()
    };
    for entry in &account.entries {
        let thread = profile.threads.get(entry.thread as usize);
        if !thread.is_some_and(&measuring) || !belongs(workload, entry.class.operation) {
            continue;
        }
        if entry.busy {
            seen.samples += entry.events;
            if entry.class.operation == Operation::Interrupt {
                seen.interrupts += entry.events;
            } else {
                *seen.busy.entry(entry.class.layer).or_default() += entry.events;
            }
        } else if entry.class.operation == Operation::Unknown {
            seen.unplaced_ns += entry.time_ns;
        } else {
            let waited = seen.waits.entry(entry.class.layer).or_default();
            waited.time_ns += entry.time_ns;
            waited.sleeps += entry.events;
        }
    }
    seen
}

/// Fit and samples of one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCheck {
    /// The tier that was used.
    pub tier: Tier,
    /// Clock samples in the requests.
    pub samples: u64,
    /// Requests that were profiled.
    pub requests: u64,
    /// Thread time of one profiled request.
    pub time_ns: f64,
    /// Part by part. What was seen sums to about `time_ns`: sleeps and CPU time come from different counters.
    pub layers: Vec<PartCheck>,
    /// Over all parts.
    pub verdict: Verdict,
    /// Why it is inconclusive, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Fit and samples of one part of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartCheck {
    /// The layers, joined by `+`; `-wait` behind time off the CPU.
    pub id: String,
    /// By the fit; absent where it has no cost for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitted: Option<Fitted>,
    /// By the profile, in nanoseconds. `n`: the clock samples it is a share of, or the requests whose sleeps are summed.
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
    /// Their intervals overlap, or they differ by less than a tenth of the request (without its wait for a CPU).
    Agrees,
    /// Their intervals do not overlap, and they differ by a tenth of the request or more.
    Disagrees,
    /// Too little was seen, so that a difference of a tenth of the request could hide; or the requests were not those
    /// that the costs were fitted on.
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
    let watched = together(watched)?;
    let sample = watched.samples.first()?;
    let time_ns = sample.ns_per_request();
    let fit = Fit {
        point: layers.ledger.as_ref().filter(|ledger| ledger.total_ns() > 0.0)?,
        draws: &layers.draws,
        rounds: rounds(measured).count(),
        whole_ns: time_ns,
    };
    let (cpu_ns, requests) = (busy_ns(sample), sample.requests);
    let mut layers: Vec<PartCheck> = Vec::new();
    let table = parts(&watched.workload);
    for part in table {
        let estimate = seen.part(part, cpu_ns, requests);
        let fitted = part.fitted.then(|| fit.part(part));
        // A request that stands without a CPU is not longer for it, unless that wait is part of what is compared.
        let whole_ns = if part.wait.contains(&Layer::CpuQueue) { time_ns } else { undisturbed_ns(sample) };
        push(&mut layers, part.id, fitted, (estimate, seen.events(part)), part.why, whole_ns);
    }
    let interrupts_in_a_part = table.iter().any(|p| p.interrupts);
    if !interrupts_in_a_part && seen.interrupts > 0 {
        let estimate = seen.busy_estimate(seen.interrupts, cpu_ns);
        push(&mut layers, "interrupts", None, (estimate, seen.interrupts), Some(INTERRUPTS), time_ns);
    }
    for layer in Layer::ALL {
        let samples = seen.busy.get(&layer).copied().unwrap_or(0);
        if samples > 0 && !table.iter().any(|p| p.busy.contains(&layer)) {
            let estimate = seen.busy_estimate(samples, cpu_ns);
            push(&mut layers, layer.id(), None, (estimate, samples), None, time_ns);
        }
        if let Some(waited) = seen.waits.get(&layer)
            && !table.iter().any(|p| p.wait.contains(&layer))
        {
            let estimate = seen.wait_estimate(&[layer], requests);
            push(
                &mut layers,
                &format!("{}-wait", layer.id()),
                None,
                (estimate, waited.sleeps),
                None,
                time_ns,
            );
        }
    }
    if seen.samples == 0 {
        // Shares of nothing are no numbers.
        layers.clear();
    }
    let other_pace = other_pace(cpu_ns, measured);
    if other_pace.is_some() {
        let fitted = layers.iter_mut().filter(|part| part.fitted.is_some());
        fitted.for_each(|part| part.result = Agreement::Inconclusive);
    }
    let (verdict, reason) = verdict(&layers, seen, other_pace);
    Some(CrossCheck { tier: seen.tier, samples: seen.samples, requests, time_ns, layers, verdict, reason })
}

const INTERRUPTS: &str = "interrupts are work of other processes; the fit has no cost for them";

fn push(
    layers: &mut Vec<PartCheck>,
    id: &str,
    fitted: Option<Fitted>,
    (seen, events): (Estimate, u64),
    why: Option<&str>,
    time_ns: f64,
) {
    let result = fitted.map_or(Agreement::NotFitted, |fitted| agreement(&fitted, &seen, time_ns));
    let nothing = seen.value == 0.0 && fitted.is_none_or(|f| f.high_ns < NOTHING_SHARE * time_ns);
    if !nothing {
        layers.push(PartCheck {
            id: id.to_owned(),
            fitted,
            seen,
            events,
            result,
            why: why.map(str::to_owned),
        });
    }
}

/// Whether fit and samples of a part of a request of `time_ns` agree.
fn agreement(fitted: &Fitted, seen: &Estimate, time_ns: f64) -> Agreement {
    let notable = NOTABLE_SHARE * time_ns;
    let apart = fitted.high_ns < seen.low || seen.high < fitted.low_ns;
    let difference = (fitted.value_ns - seen.value).abs();
    if apart && difference >= notable {
        return Agreement::Disagrees;
    }
    // The sum of the arms that face each other: what could hide between the two.
    let hidden = if seen.value >= fitted.value_ns {
        (seen.value - seen.low) + (fitted.high_ns - fitted.value_ns)
    } else {
        (seen.high - seen.value) + (fitted.value_ns - fitted.low_ns)
    };
    if hidden > notable && difference + hidden > notable {
        Agreement::Inconclusive
    } else {
        Agreement::Agrees
    }
}

/// Why costs that were fitted at another pace explain nothing here, where that is so.
fn other_pace(cpu_ns: f64, measured: &CellRun) -> Option<String> {
    let unwatched = median(measured, busy_ns).filter(|ns| *ns > 0.0)?;
    let factor = cpu_ns / unwatched;
    ((factor - 1.0).abs() > SAME_PACE).then(|| {
        format!(
            "a profiled request took {factor:.2}x the CPU time of an unprofiled one: another load, or profiling overhead"
        )
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

impl Observed {
    /// Samples or sleeps in a part.
    fn events(&self, part: &Part) -> u64 {
        let interrupts = if part.interrupts { self.interrupts } else { 0 };
        let busy: u64 = part.busy.iter().filter_map(|l| self.busy.get(l)).sum();
        busy + interrupts + part.wait.iter().filter_map(|l| self.waits.get(l)).map(|w| w.sleeps).sum::<u64>()
    }

    fn part(&self, part: &Part, cpu_ns: f64, requests: u64) -> Estimate {
        if part.wait.is_empty() {
            self.busy_estimate(self.events(part), cpu_ns)
        } else {
            let mut estimate = self.wait_estimate(part.wait, requests);
            if part.wait.contains(&Layer::CpuQueue) {
                estimate.high += self.unplaced_ns / requests.max(1) as f64;
            }
            estimate
        }
    }

    /// A share of the samples, as CPU time of one request.
    fn busy_estimate(&self, samples: u64, cpu_ns: f64) -> Estimate {
        let share = SampledShare { hits: samples, n: self.samples };
        let (low, high) = share.interval().unwrap_or((0.0, 1.0));
        // At the ends the formula is exact but for rounding.
        let (low, high) =
            (if samples == 0 { 0.0 } else { low }, if samples == self.samples { 1.0 } else { high });
        Estimate {
            value: share.value().unwrap_or(0.0) * cpu_ns,
            low: low * cpu_ns,
            high: high * cpu_ns,
            unit: Unit::Nanoseconds,
            n: self.samples,
        }
    }

    /// Sleeps of these layers, for one request. Where only some were recorded, their time has the relative standard
    /// error `sqrt(2 / n)`: a sum of `n` terms of an exponential law, `n` itself of Poisson's.
    fn wait_estimate(&self, layers: &[Layer], requests: u64) -> Estimate {
        let mut sum = Waited::default();
        for waited in layers.iter().filter_map(|l| self.waits.get(l)) {
            sum.time_ns += waited.time_ns;
            sum.sleeps += waited.sleeps;
        }
        let value = sum.time_ns / requests.max(1) as f64;
        let arm =
            if self.sleeps_all_seen { 0.0 } else { 1.96 * value * (2.0 / sum.sleeps.max(1) as f64).sqrt() };
        Estimate {
            value,
            low: (value - arm).max(0.0),
            high: value + arm,
            unit: Unit::Nanoseconds,
            n: requests,
        }
    }
}

/// The account of the measured cell, for a request of the profiled ones: its shares of their time.
struct Fit<'a> {
    point: &'a Ledger,
    draws: &'a [Ledger],
    rounds: usize,
    whole_ns: f64,
}

impl Fit<'_> {
    fn part(&self, part: &Part) -> Fitted {
        let of = |ledger: &Ledger| {
            let busy: f64 = part.busy.iter().map(|l| ledger.get(*l).busy_ns).sum();
            let wait: f64 = part.wait.iter().map(|l| ledger.get(*l).wait_ns).sum();
            (busy + wait) / ledger.total_ns() * self.whole_ns
        };
        let value_ns = of(self.point);
        // Layers of one draw are summed, not the ends of their intervals.
        let estimate =
            stats::interval(value_ns, self.draws.iter().map(of).collect(), self.rounds, Unit::Nanoseconds);
        let (low_ns, high_ns) = estimate.map_or((value_ns, value_ns), |e| (e.low, e.high));
        Fitted { value_ns, low_ns, high_ns }
    }
}

/// The run with all its rounds as one, because the profile covers them as a whole. `None` without a completed request.
fn together(run: &CellRun) -> Option<CellRun> {
    let mut all = Sample::default();
    let counted = |f: fn(&Sample) -> Option<u64>| run.samples.iter().map(f).sum::<Option<u64>>();
    for s in &run.samples {
        all.requests += s.requests;
        all.claimed_bytes += s.claimed_bytes;
        all.wall_ns += s.wall_ns;
        all.thread_ns += s.thread_ns;
        all.cpu_ns += s.cpu_ns;
        all.run_delay_ns += s.run_delay_ns;
    }
    all.device_bytes = counted(|s| s.device_bytes);
    all.device_requests = counted(|s| s.device_requests);
    all.device_request_ns = counted(|s| s.device_request_ns);
    all.stack_request_ns = counted(|s| s.stack_request_ns);
    (all.requests > 0).then(|| CellRun { samples: vec![all], ..run.clone() })
}
