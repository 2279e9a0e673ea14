//! The rules that find a limit, one function each: its claim, the evidence it asks for, the thresholds.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::Layer;
use iowhy_core::model::StackModel;
use iowhy_core::units;

use super::fact::Fact;
use crate::per_request::{
    busy_ns, bytes_per_second, estimate, mean_pages, paired_estimate, requests_per_second, undisturbed_ns,
    wait_ns,
};
use crate::reconcile::{Account, ReconcileContext, reconcile};
use iowhy_core::units::percent;

/// A ratio nearer than this share to its threshold does not decide, however narrow its interval.
pub const CLEARANCE: f64 = 0.02;

/// All CPUs count as busy from here.
const CPUS_BUSY: f64 = 0.95;
/// One thread counts as busy from here.
const THREAD_BUSY: f64 = 0.90;
/// What a second thread must add.
pub(super) const SECOND_THREAD_GAIN: f64 = 1.20;
/// What a deep queue must add for depth to be the limit.
pub(super) const DEPTH_GAIN: f64 = 1.50;
/// What a deeper queue may add at most for the device to be the limit.
pub(super) const DEVICE_GAIN: f64 = 1.10;
/// Waiting, or being on the CPU, dominates from this share of a thread's time.
pub(super) const MOSTLY: f64 = 0.50;
/// Threads that wait longer than this share of their time for a CPU share the CPUs with others.
const CPUS_SHARED: f64 = 0.05;
/// Part of a device's bytes that another program moved, from which a cell says nothing about the device's limit.
const FOREIGN_SHARE: f64 = 0.25;
/// Share of busy time that is copying.
const COPY_SHARE: f64 = 0.70;
/// Share of the user-memory copy rate.
const COPY_RATE: f64 = 0.75;

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ruling {
    /// Its claim holds, on this evidence.
    Holds(Vec<Fact>),
    /// Its claim does not hold, because of this.
    Fails(Fact),
    /// This is too near the threshold.
    Near(Near),
    /// This was not measured.
    Missing(Fact),
}

/// A ratio too near its threshold.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Near {
    /// The ratio and its threshold in words.
    pub(super) fact: Fact,
    /// What is missing for a decision.
    pub(super) needs: String,
    /// Whether a narrower interval can decide it.
    pub(super) open: bool,
}

/// Where an interval lies to a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    Below,
    Near,
}

pub(super) fn side(e: &Estimate, threshold: f64) -> Side {
    if e.low > threshold && e.value > threshold * (1.0 + CLEARANCE) {
        Side::Above
    } else if e.high < threshold && e.value < threshold * (1.0 - CLEARANCE) {
        Side::Below
    } else {
        Side::Near
    }
}

/// A ratio that must lie on one side of its threshold.
pub(super) struct Condition {
    above: bool,
    side: Side,
    fact: Fact,
    /// The threshold in words, as it belongs behind a fact that is too near to it.
    threshold: String,
    /// What is missing for a decision.
    needs: String,
    /// Whether a narrower interval can decide.
    open: bool,
}

impl Condition {
    /// A share of a whole.
    pub(super) fn share(above: bool, share: &Estimate, threshold: f64, fact: Fact) -> Condition {
        Condition::new(above, share, threshold, percent(threshold), fact)
    }

    /// A factor between two rates.
    pub(super) fn factor(above: bool, factor: &Estimate, threshold: f64, fact: Fact) -> Condition {
        Condition::new(above, factor, threshold, format!("{threshold:.2}"), fact)
    }

    fn new(above: bool, e: &Estimate, threshold: f64, words: String, fact: Fact) -> Condition {
        // An interval on one side can still be too near: the threshold is as wide as the clearance.
        let threshold_words = if e.low <= threshold && threshold <= e.high {
            format!(", threshold {words}")
        } else {
            format!(", threshold {words} ±{}", percent(CLEARANCE))
        };
        // The value may still move as long as the interval reaches beyond the neighbourhood of the threshold.
        let near = threshold * 2.0 * CLEARANCE;
        let open = e.low < threshold - near || e.high > threshold + near;
        let distance = (e.value - threshold).abs();
        let arm = if e.value > threshold { e.value - e.low } else { e.high - e.value };
        let needs = match distance > threshold * CLEARANCE {
            _ if !open => format!("equal within {}", percent(2.0 * CLEARANCE)),
            // A tenth on top: an interval that ends on the threshold does not decide.
            true => format!("interval {:.1}x too wide", arm / distance * 1.1),
            false => "interval too wide".to_owned(),
        };
        Condition { above, side: side(e, threshold), fact, threshold: threshold_words, needs, open }
    }

    fn near(&self) -> Near {
        let fact = self.fact.clone().followed_by(&self.threshold);
        Near { fact, needs: self.needs.clone(), open: self.open }
    }

    fn holds(&self) -> bool {
        self.side == if self.above { Side::Above } else { Side::Below }
    }
}

/// Joins conditions that must all hold: one that fails decides, then one that is near.
pub(super) fn all(conditions: Vec<Condition>) -> Ruling {
    if let Some(c) = conditions.iter().find(|c| c.side != Side::Near && !c.holds()) {
        return Ruling::Fails(c.fact.clone());
    }
    if let Some(c) = conditions.iter().find(|c| c.side == Side::Near) {
        return Ruling::Near(c.near());
    }
    Ruling::Holds(conditions.into_iter().map(|c| c.fact).collect())
}

pub(super) fn missing(what: &str) -> Ruling {
    Ruling::Missing(Fact::new(what, &[]))
}

/// Throughput of `b` over `a` within rounds.
pub(super) fn gain(a: &CellRun, b: &CellRun) -> Option<Estimate> {
    paired_estimate(a, b, Unit::Ratio, |x, y| bytes_per_second(y) / bytes_per_second(x))
}

/// Waiting as a share of thread time.
pub(super) fn wait_share(run: &CellRun) -> Option<Estimate> {
    estimate(run, Unit::Ratio, |s| wait_ns(s) / s.ns_per_request())
}

/// The same with the time that threads stood without a CPU left out: what it would be on an idle machine.
fn undisturbed_gain(a: &CellRun, b: &CellRun) -> Option<Estimate> {
    let rate = |s: &Sample| bytes_per_second(s) * s.ns_per_request() / undisturbed_ns(s);
    paired_estimate(a, b, Unit::Ratio, |x, y| rate(y) / rate(x))
}

/// Time on the CPU as a share of the time in which the threads had or needed none: other programs do not count. With
/// the share in words.
pub(super) fn on_cpu(run: &CellRun) -> Option<(Estimate, Fact)> {
    let busy = estimate(run, Unit::Ratio, |s| busy_ns(s) / undisturbed_ns(s).max(f64::MIN_POSITIVE))?;
    let words = format!("one thread is on the CPU for {} of its time", units::share(&busy));
    Some((busy, Fact::new(words, &[&busy])))
}

/// Which of these cells stood longest without a CPU, in words, when that is too long for a fair verdict. Cells with
/// more threads than CPUs stand in their own way and are left out.
pub(super) fn cpus_shared(cells: &[Option<&CellRun>], cpus: usize) -> Option<Fact> {
    let delay =
        |run: &CellRun| estimate(run, Unit::Ratio, |s| s.run_delay_ns as f64 / s.thread_ns.max(1) as f64);
    let (run, share) = cells
        .iter()
        .flatten()
        .filter(|run| run.workload.threads <= cpus)
        .filter_map(|run| Some((run, delay(run)?)))
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    (share.value > CPUS_SHARED).then(|| {
        let words =
            format!("{} had to wait for a CPU for {} of its thread time", run.key, units::share(&share));
        Fact::new(words, &[&share])
    })
}

/// The cells in which another program moved a large part of the devices' bytes, in words. Exact counts.
pub(super) fn device_shared(cells: &[Option<&CellRun>], context: &ReconcileContext<'_>) -> Vec<Fact> {
    let foreign = |run: &&CellRun| {
        let held = reconcile(run, context);
        let (Account::AnotherProgram { excess_bytes }, Some(moved)) = (held.account, held.device_bytes)
        else {
            return None;
        };
        let words = format!(
            "{}: the device moved {}, {} of it for another program",
            run.key,
            units::Bytes(moved),
            units::Bytes(excess_bytes)
        );
        (excess_bytes as f64 >= FOREIGN_SHARE * moved as f64).then(|| Fact::new(words, &[]))
    };
    cells.iter().flatten().filter_map(foreign).collect()
}

fn share_of_wall(run: &CellRun, time_ns: impl Fn(&Sample) -> f64) -> Option<Estimate> {
    estimate(run, Unit::Ratio, |s| time_ns(s) / s.wall_ns.max(1) as f64)
}

/// Claim: all CPUs are busy. Evidence: CPU time of the measuring threads and, where it is seen, of kernel threads is at least
/// 95 % of wall time on all CPUs we may use.
pub(super) fn cpu(run: Option<&CellRun>, cpus: usize) -> Ruling {
    let used = run.and_then(|r| share_of_wall(r, |s| (s.cpu_ns + s.kernel_thread_ns.unwrap_or(0)) as f64));
    let Some(used) = used.filter(|_| cpus > 0) else {
        return missing("at least 3 rounds of the cell itself");
    };
    let n = cpus as f64;
    let of_all = Estimate { value: used.value / n, low: used.low / n, high: used.high / n, ..used };
    let words = format!("CPU time is {} of wall time on {cpus} CPUs", units::share(&of_all));
    all(vec![Condition::share(true, &of_all, CPUS_BUSY, Fact::new(words, &[&of_all]))])
}

/// Claim: one thread's CPU is the limit. Evidence: the thread is on the CPU at least 90 % of the time in which it had
/// or needed none, and a second thread adds more than 20 %.
pub(super) fn one_thread(one: Option<&CellRun>, two: Option<&CellRun>) -> Ruling {
    busy_and_gain(one, two, gain)
}

/// The same for cached reads, where nothing but other programs keeps a thread from a CPU: the gain is judged without
/// that time. Where the threads outnumber the CPUs they keep each other from it, and it counts.
pub(super) fn one_thread_cached(one: Option<&CellRun>, two: Option<&CellRun>, cpus: usize) -> Ruling {
    let enough = two.is_none_or(|two| two.workload.threads <= cpus);
    busy_and_gain(one, two, if enough { undisturbed_gain } else { gain })
}

fn busy_and_gain(
    one: Option<&CellRun>,
    two: Option<&CellRun>,
    gain: fn(&CellRun, &CellRun) -> Option<Estimate>,
) -> Ruling {
    let Some((one, (busy, fact))) = one.and_then(|r| Some((r, on_cpu(r)?))) else {
        return missing("at least 3 rounds of the cell itself");
    };
    let condition = Condition::share(true, &busy, THREAD_BUSY, fact);
    if condition.side == Side::Below {
        return all(vec![condition]);
    }
    let Some(gain) = two.and_then(|two| gain(one, two)) else {
        return missing("the same cell with two threads");
    };
    all(vec![condition, second_thread(&gain)])
}

/// That a second thread adds throughput.
pub(super) fn second_thread(gain: &Estimate) -> Condition {
    let words = format!("a second thread gives {} times the throughput", units::factor(gain));
    Condition::factor(true, gain, SECOND_THREAD_GAIN, Fact::new(words, &[gain]))
}

/// Claim: too few requests in flight. Evidence: with one in flight the thread mostly waits (at least 50 %), and a
/// deep queue gives more than 1.5 times the throughput.
pub(super) fn depth(one: Option<&CellRun>, deep: Option<&CellRun>) -> Ruling {
    waiting_and_gain(one, deep, true, DEPTH_GAIN)
}

/// Claim: the device is saturated. Evidence: the thread mostly waits (at least 50 %), and more requests in flight
/// add less than 10 %.
pub(super) fn device(few: Option<&CellRun>, many: Option<&CellRun>) -> Ruling {
    waiting_and_gain(few, many, false, DEVICE_GAIN)
}

fn waiting_and_gain(few: Option<&CellRun>, many: Option<&CellRun>, above: bool, threshold: f64) -> Ruling {
    let Some((few, wait)) = few.and_then(|r| Some((r, wait_share(r)?))) else {
        return missing("at least 3 rounds with fewer requests in flight");
    };
    // Another request may be faster for other reasons.
    let same = many.filter(|m| m.workload.block_bytes == few.workload.block_bytes);
    let Some((many, gain)) = same.and_then(|m| Some((m, gain(few, m)?))) else {
        return missing("the same cell with more requests in flight");
    };
    let words = format!(
        "more in flight gives {} times the throughput for requests of {}",
        units::factor(&gain),
        units::Bytes(few.workload.block_bytes)
    );
    let gained = with_rates(with_rates(Fact::new(words, &[&gain]), many), few);
    all(vec![waiting(few, &wait), Condition::factor(above, &gain, threshold, gained)])
}

/// Adds what the cell reaches.
fn with_rates(fact: Fact, run: &CellRun) -> Fact {
    let bytes = estimate(run, Unit::BytesPerSecond, bytes_per_second);
    let requests = estimate(run, Unit::PerSecond, requests_per_second);
    let (Some(bytes), Some(requests)) = (bytes, requests) else { return fact };
    let rates = format!("{}, {}", units::estimate(&bytes), units::estimate(&requests));
    fact.detail(format!("{} in flight: {rates}", run.workload.depth), &[&bytes, &requests])
}

/// That the thread mostly waits, with this share of its time.
pub(super) fn waiting(run: &CellRun, wait: &Estimate) -> Condition {
    let share = units::share(wait);
    let fact = match estimate(run, Unit::Nanoseconds, Sample::ns_per_request) {
        Some(time) => {
            let words = format!("{share} of {} a request is waiting", units::estimate(&time));
            Fact::new(words, &[wait, &time])
        }
        None => Fact::new(format!("{share} of a request is waiting"), &[wait]),
    };
    Condition::share(true, wait, MOSTLY, fact)
}

/// Claim: copying bytes is the limit. Evidence: the fitted copy cost is at least 70 % of the CPU time of a large
/// cached read, and the read reaches at least 75 % of the rate of a copy in user memory.
pub(super) fn copy_bandwidth(
    large: Option<&CellRun>,
    model: Option<&StackModel>,
    memcpy: Option<Estimate>,
) -> Ruling {
    let Some(large) = large else { return missing("cached reads of 1 MiB") };
    let Some(model) = model else { return missing("the cached calibration cells, for the cost of the copy") };
    let bytes = large.workload.block_bytes;
    let copy_ns = model.cost(Layer::Copy).total_ns(mean_pages(bytes, model.page_bytes), bytes as f64);
    let share = estimate(large, Unit::Ratio, |s| copy_ns / busy_ns(s).max(f64::MIN_POSITIVE));
    let rate = estimate(large, Unit::BytesPerSecond, bytes_per_second);
    let (Some(share), Some(rate)) = (share, rate) else {
        return missing("at least 3 rounds of cached reads of 1 MiB");
    };
    let Some(memcpy) = memcpy.filter(|m| m.value > 0.0) else {
        return missing("the rate of a copy in user memory");
    };
    let of_memcpy = Estimate {
        value: rate.value / memcpy.value,
        low: rate.low / memcpy.high,
        high: rate.high / memcpy.low,
        unit: Unit::Ratio,
        n: rate.n,
    };
    let copying = format!(
        "copying is {} of the CPU time of a cached read of {}",
        units::share(&share),
        units::Bytes(bytes)
    );
    let reached = format!("it reaches {} of the rate of a copy in user memory", units::share(&of_memcpy));
    let rates = format!("{} against {}", units::estimate(&rate), units::estimate(&memcpy));
    let reached = Fact::new(reached, &[&of_memcpy]).detail(rates, &[&rate, &memcpy]);
    all(vec![
        Condition::share(true, &share, COPY_SHARE, Fact::new(copying, &[&share])),
        Condition::share(true, &of_memcpy, COPY_RATE, reached),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_interval_and_the_value_must_be_clear_of_the_threshold() {
        let at = |low, value, high| side(&Estimate { value, low, high, unit: Unit::Ratio, n: 9 }, 1.0);
        assert_eq!(at(1.05, 1.10, 1.20), Side::Above);
        assert_eq!(at(0.99, 1.10, 1.20), Side::Near, "the low end is under it");
        assert_eq!(at(1.005, 1.01, 1.02), Side::Near, "too close");
        assert_eq!(at(0.80, 0.90, 0.95), Side::Below);
        assert_eq!(at(0.80, 0.90, 1.01), Side::Near, "the high end is over it");
        assert_eq!(at(0.98, 0.985, 0.99), Side::Near, "too close");
    }
}
