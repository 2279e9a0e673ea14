//! The rules that find a limit, one function each: its claim, the evidence it asks for, the thresholds.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::layer::Layer;
use iowhy_core::model::StackModel;
use iowhy_core::units;

use crate::per_request::{
    busy_ns, bytes_per_second, estimate, mean_pages, paired_estimate, requests_per_second, wait_ns,
};
use crate::words::percent;

/// A ratio nearer than this share to its threshold does not decide, however narrow its interval.
pub const CLEARANCE: f64 = 0.02;

/// All CPUs count as busy from here.
const CPUS_BUSY: f64 = 0.95;
/// One thread counts as busy from here.
const THREAD_BUSY: f64 = 0.90;
/// What a second thread must add.
const SECOND_THREAD_GAIN: f64 = 1.20;
/// What a deep queue must add for depth to be the limit.
const DEPTH_GAIN: f64 = 1.50;
/// What a deeper queue may add at most for the device to be the limit.
const DEVICE_GAIN: f64 = 1.10;
/// Waiting dominates from this share of thread time.
pub(super) const WAIT_DOMINATES: f64 = 0.50;
/// Share of busy time that is copying.
const COPY_SHARE: f64 = 0.70;
/// Share of the user-memory copy rate.
const COPY_RATE: f64 = 0.75;

/// What a rule found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ruling {
    /// Its claim holds, on this evidence.
    Holds(Vec<String>),
    /// Its claim does not hold, because of this.
    Fails(String),
    /// This is too near the threshold.
    Near(String),
    /// This was not measured.
    Missing(String),
}

/// Where an interval lies to a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Above,
    Below,
    Near,
}

pub(super) fn place(e: &Estimate, threshold: f64) -> Place {
    if e.low > threshold && e.value > threshold * (1.0 + CLEARANCE) {
        Place::Above
    } else if e.high < threshold && e.value < threshold * (1.0 - CLEARANCE) {
        Place::Below
    } else {
        Place::Near
    }
}

/// Joins conditions that must all hold: one that fails decides, then one that is near.
fn all(conditions: Vec<(bool, Place, String)>) -> Ruling {
    let satisfied = |above: bool, p: Place| p == if above { Place::Above } else { Place::Below };
    if let Some(c) = conditions.iter().find(|c| c.1 != Place::Near && !satisfied(c.0, c.1)) {
        return Ruling::Fails(c.2.clone());
    }
    if let Some(c) = conditions.iter().find(|c| c.1 == Place::Near) {
        return Ruling::Near(c.2.clone());
    }
    Ruling::Holds(conditions.into_iter().map(|c| c.2).collect())
}

fn missing(what: &str) -> Ruling {
    Ruling::Missing(what.to_owned())
}

/// Throughput of `b` over `a` within rounds.
fn gain(a: &CellRun, b: &CellRun) -> Option<Estimate> {
    paired_estimate(a, b, Unit::Ratio, |x, y| bytes_per_second(y) / bytes_per_second(x))
}

/// Waiting as a share of thread time.
pub(super) fn wait_share(run: &CellRun) -> Option<Estimate> {
    estimate(run, Unit::Ratio, |s| wait_ns(s) / s.ns_per_request())
}

fn share_of_wall(run: &CellRun, time_ns: impl Fn(&Sample) -> f64) -> Option<Estimate> {
    estimate(run, Unit::Ratio, |s| time_ns(s) / s.wall_ns.max(1) as f64)
}

/// Claim: all CPUs are busy. Evidence: CPU time of our threads and, where it is seen, of kernel threads is at least
/// 95 % of wall time on all CPUs we may use.
pub(super) fn cpu(run: Option<&CellRun>, cpus: usize) -> Ruling {
    let used = run.and_then(|r| share_of_wall(r, |s| (s.cpu_ns + s.kernel_thread_ns.unwrap_or(0)) as f64));
    let Some(used) = used.filter(|_| cpus > 0) else {
        return missing("at least 3 rounds of the cell itself");
    };
    let n = cpus as f64;
    let of_all = Estimate { value: used.value / n, low: used.low / n, high: used.high / n, ..used };
    let fact = format!("CPU time is {} of wall time on {cpus} CPUs", percent(of_all.value));
    all(vec![(true, place(&of_all, CPUS_BUSY), fact)])
}

/// Claim: one thread's CPU is the limit. Evidence: the thread is on the CPU at least 90 % of wall time, and a second
/// thread adds more than 20 %.
pub(super) fn one_thread(one: Option<&CellRun>, two: Option<&CellRun>) -> Ruling {
    let Some((one, busy)) = one.and_then(|r| Some((r, share_of_wall(r, |s| s.cpu_ns as f64)?))) else {
        return missing("at least 3 rounds of the cell itself");
    };
    let fact = format!("one thread is on the CPU for {} of wall time", percent(busy.value));
    let condition = (true, place(&busy, THREAD_BUSY), fact);
    if condition.1 == Place::Below {
        return all(vec![condition]);
    }
    let Some(gain) = two.and_then(|two| gain(one, two)) else {
        return missing("the same cell with two threads");
    };
    let fact = format!("a second thread gives {:.2} times the throughput", gain.value);
    all(vec![condition, (true, place(&gain, SECOND_THREAD_GAIN), fact)])
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
    let Some((many, gain)) = many.and_then(|m| Some((m, gain(few, m)?))) else {
        return missing("the same cell with more requests in flight");
    };
    let per_request = estimate(few, Unit::Nanoseconds, Sample::ns_per_request).map_or(0.0, |e| e.value);
    let rate = |run| estimate(run, Unit::PerSecond, requests_per_second).map_or(0.0, |e| e.value);
    let waiting = format!("{} of {} a request is waiting", percent(wait.value), units::time(per_request));
    let gained = format!(
        "more in flight gives {:.2} times the requests ({} against {})",
        gain.value,
        units::count_rate(rate(many)),
        units::count_rate(rate(few))
    );
    all(vec![(true, place(&wait, WAIT_DOMINATES), waiting), (above, place(&gain, threshold), gained)])
}

/// Claim: copying bytes is the limit. Evidence: the fitted copy cost is at least 70 % of the CPU time of a large
/// cached read, and the read reaches at least 75 % of the rate of a copy in user memory.
pub(super) fn copy_bandwidth(
    large: Option<&CellRun>,
    model: Option<&StackModel>,
    memcpy: Option<Estimate>,
) -> Ruling {
    let Some(large) = large else { return missing("cached reads of 1 MiB") };
    let Some(model) = model else { return missing("the ladder, for the cost of the copy") };
    let bytes = large.workload.block_bytes;
    let copy_ns = model.cost(Layer::Copy).of(mean_pages(bytes, model.page_bytes), bytes as f64);
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
        percent(share.value),
        units::Bytes(bytes)
    );
    let reached = format!(
        "it reaches {}, {} of a copy in user memory ({})",
        units::rate_bytes(rate.value),
        percent(of_memcpy.value),
        units::rate_bytes(memcpy.value)
    );
    all(vec![(true, place(&share, COPY_SHARE), copying), (true, place(&of_memcpy, COPY_RATE), reached)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_interval_and_the_value_must_be_clear_of_the_threshold() {
        let at = |low, value, high| place(&Estimate { value, low, high, unit: Unit::Ratio, n: 9 }, 1.0);
        assert_eq!(at(1.05, 1.10, 1.20), Place::Above);
        assert_eq!(at(0.99, 1.10, 1.20), Place::Near, "the low end is under it");
        assert_eq!(at(1.005, 1.01, 1.02), Place::Near, "too close");
        assert_eq!(at(0.80, 0.90, 0.95), Place::Below);
        assert_eq!(at(0.80, 0.90, 1.01), Place::Near, "the high end is over it");
        assert_eq!(at(0.98, 0.985, 0.99), Place::Near, "too close");
    }
}
