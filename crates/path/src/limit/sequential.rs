//! The rules for sequential reads: an ordinary reader goes through the cache, where read-ahead decides how much is in
//! flight, so it is compared with direct reads that keep the device busy by themselves.
//!
//! Invariant: the two are different requests, so only their bytes per second are compared, and the words say what is
//! compared; what more requests in flight bring is taken from direct reads alone.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::units;

use super::fact::Fact;
use super::rules::{
    self, Condition, DEPTH_GAIN, DEVICE_GAIN, MOSTLY, Ruling, Side, all, gain, on_cpu, side, wait_share,
};
use crate::per_request::{bytes_per_second, estimate, rounds};

/// From this share of the direct reads' rate on, the device is what most of the time goes to.
const KEEPS_UP: f64 = 1.0 / DEPTH_GAIN;
/// Below this share, direct reads are faster beyond doubt. What lies between the two is the depth's where read-ahead keeps less in flight, and an
/// interval that holds only one of the two ends still has an answer.
const FALLS_BEHIND: f64 = 1.0 / DEVICE_GAIN;
/// Bytes under way over those that direct reads need.
const ENOUGH: f64 = 1.0;

/// What sequential reads were measured in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams<'a> {
    /// Through the cache, one thread.
    pub(super) cold: Option<&'a CellRun>,
    /// The same with two threads.
    pub(super) cold_threads: Option<&'a CellRun>,
    /// Direct, one in flight.
    pub(super) direct: Option<&'a CellRun>,
    /// The same request, several in flight.
    pub(super) deep: Option<&'a CellRun>,
}

impl Streams<'_> {
    /// Claim: one thread's CPU is the limit. Evidence: as for any thread; or the thread is on the CPU for more than
    /// half of its time, and a second thread adds more than 20 %: the device gives more.
    pub(super) fn one_thread(&self) -> Ruling {
        let by_itself = rules::one_thread(self.cold, self.cold_threads);
        match (by_itself, self.mostly_busy()) {
            (held @ Ruling::Holds(_), _) | (_, Some(held @ Ruling::Holds(_))) => held,
            (near @ Ruling::Near(_), _) => near,
            (by_itself, mostly) => mostly.unwrap_or(by_itself),
        }
    }

    /// `None` without the cells.
    fn mostly_busy(&self) -> Option<Ruling> {
        let (cold, two) = (self.cold?, self.cold_threads?);
        let (busy, on_cpu) = on_cpu(cold)?;
        let gain = gain(cold, two)?;
        Some(all(vec![Condition::share(true, &busy, MOSTLY, on_cpu), rules::second_thread(&gain)]))
    }

    /// Claim: read-ahead keeps too little in flight. Evidence: the thread mostly waits, direct reads with several in flight are more than 10 %
    /// faster, and read-ahead has fewer bytes under way than they need, where the device's counters tell.
    pub(super) fn depth(&self) -> Ruling {
        let Some(cold) = self.cold else { return rules::depth(self.direct, self.deep) };
        let Some((reach, reached)) = self.reach() else { return missing_direct() };
        let Some(wait) = wait_share(cold) else { return missing_direct() };
        let mut conditions =
            vec![rules::waiting(cold, &wait), Condition::share(false, &reach, FALLS_BEHIND, reached)];
        conditions
            .extend(self.supply().map(|(supply, fact)| Condition::factor(false, &supply, ENOUGH, fact)));
        match (all(conditions), self.direct_alone()) {
            (Ruling::Holds(mut evidence), Some(fact)) => {
                evidence.push(fact);
                Ruling::Holds(evidence)
            }
            (ruling, _) => ruling,
        }
    }

    /// Claim: the device is saturated. Evidence: the thread mostly waits, read-ahead has as many bytes under way as direct reads need, or reaches
    /// two thirds of their rate, and those with several in flight are not more than 10 % faster than with one.
    pub(super) fn device(&self) -> Ruling {
        let Some(cold) = self.cold else { return rules::device(self.direct, self.deep) };
        let Some((reach, reached)) = self.reach() else { return missing_direct() };
        let Some(wait) = wait_share(cold) else { return missing_direct() };
        let waits = all(vec![rules::waiting(cold, &wait)]);
        if !matches!(waits, Ruling::Holds(_)) {
            return waits;
        }
        let supplied =
            self.supply().map(|(supply, fact)| all(vec![Condition::factor(true, &supply, ENOUGH, fact)]));
        let busy = match supplied {
            Some(Ruling::Holds(mut evidence)) => {
                evidence.push(reached);
                Ruling::Holds(evidence)
            }
            _ => all(vec![Condition::share(true, &reach, KEEPS_UP, reached)]),
        };
        let Ruling::Holds(mut evidence) = busy else { return busy };
        match rules::device(self.direct, self.deep) {
            Ruling::Holds(saturated) => {
                evidence.extend(saturated);
                Ruling::Holds(evidence)
            }
            // The device still gives more at the greatest depth that was tried.
            Ruling::Fails(fact) if self.deeper_is_faster() => {
                let still = "direct sequential reads with still more in flight, for ";
                Ruling::Missing(fact.short().preceded_by(still))
            }
            other => other,
        }
    }

    /// Bytes that read-ahead has under way, by the device's counters, over those of the direct reads that get the most from the device: with
    /// several in flight if these are faster, else with one. `None` without counters.
    fn supply(&self) -> Option<(Estimate, Fact)> {
        let (cold, one, deep) = (self.cold?, self.direct?, self.deep?);
        let best = if self.deeper_is_faster() { deep } else { one };
        let w = &best.workload;
        let needed = w.block_bytes as f64 * (w.depth * w.threads).max(1) as f64;
        rounds(cold).all(|s| bytes_under_way(s).is_some()).then_some(())?;
        let supply = estimate(cold, Unit::Ratio, |s| bytes_under_way(s).unwrap_or(0.0) / needed)?;
        let words = format!(
            "read-ahead keeps {} of the bytes in flight that direct reads keep, {} x {}",
            units::share(&supply),
            units::Bytes(w.block_bytes),
            w.depth,
        );
        Some((supply, Fact::new(words, &[&supply])))
    }

    fn deeper_is_faster(&self) -> bool {
        let gain = self.direct.zip(self.deep).and_then(|(one, deep)| gain(one, deep));
        gain.is_some_and(|gain| side(&gain, DEVICE_GAIN) == Side::Above)
    }

    /// Bytes per second through the cache over those of direct reads with several in flight, and the same in words.
    fn reach(&self) -> Option<(Estimate, Fact)> {
        let (cold, deep) = (self.cold?, self.deep?);
        let reach = Estimate { unit: Unit::Ratio, ..gain(deep, cold)? };
        let (through, direct) = (rate(cold)?, rate(deep)?);
        let words = format!("read-ahead reaches {} of direct reads", units::share(&reach));
        let rates = format!(
            "{} through the cache: {}; {} direct, {} in flight: {}",
            units::Bytes(cold.workload.block_bytes),
            units::estimate(&through),
            units::Bytes(deep.workload.block_bytes),
            deep.workload.depth,
            units::estimate(&direct),
        );
        Some((reach, Fact::new(words, &[&reach]).detail(rates, &[&through, &direct])))
    }

    /// What depth brings to direct reads.
    fn direct_alone(&self) -> Option<Fact> {
        let (one, deep) = (self.direct?, self.deep?);
        let (slow, fast) = (rate(one)?, rate(deep)?);
        let words = format!(
            "direct reads of {} alone: {} with {} in flight, {} with {}",
            units::Bytes(one.workload.block_bytes),
            units::estimate(&slow),
            one.workload.depth,
            units::estimate(&fast),
            deep.workload.depth,
        );
        Some(Fact::new(words, &[&slow, &fast]))
    }
}

fn rate(run: &CellRun) -> Option<Estimate> {
    estimate(run, Unit::BytesPerSecond, bytes_per_second)
}

/// Mean bytes under way at the device in a round, by its counters: requests under way (Little's law) times their size.
fn bytes_under_way(s: &Sample) -> Option<f64> {
    let requests = s.device_requests.filter(|&n| n > 0)?;
    let under_way = s.device_request_ns? as f64 / s.wall_ns.max(1) as f64;
    Some(under_way * s.device_bytes? as f64 / requests as f64)
}

fn missing_direct() -> Ruling {
    rules::missing("direct sequential reads with several in flight, in the rounds of the cold ones")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Evidence, limits};
    use crate::synthetic::Rounds;
    use iowhy_core::limit::{Limit, LimitId};
    use iowhy_core::workload::{CacheState, Method, Workload};

    const MIB: f64 = 1_048_576.0;

    /// A thread that moves `rate` MiB/s and is on the CPU for `busy` of its time.
    fn stream(block_bytes: u64, depth: usize, threads: usize, rate: f64, busy: f64) -> CellRun {
        noisy_stream(block_bytes, (depth, threads), rate, busy, 0.0)
    }

    /// Whose rounds differ by this share at most.
    fn noisy_stream(
        block_bytes: u64,
        (depth, threads): (usize, usize),
        rate: f64,
        busy: f64,
        noise: f64,
    ) -> CellRun {
        let state = if block_bytes == 1 << 20 { CacheState::Direct } else { CacheState::Cold };
        let mut w = Workload::reads(Method::Pread, state, block_bytes, 1 << 30);
        (w.depth, w.threads) = (depth, threads);
        let thread_ns = block_bytes as f64 * 1e9 / (rate * MIB) * threads as f64;
        Rounds::new(w).busy(thread_ns * busy).wait(thread_ns * (1.0 - busy)).noise(noise).build()
    }

    /// MiB/s: cold by one and two threads, direct with one and several in flight.
    fn ask(cold: (f64, f64), cold_busy: f64, direct: (f64, f64)) -> Limit {
        ask_noisy(cold, cold_busy, direct, 0.0)
    }

    fn ask_noisy(cold: (f64, f64), cold_busy: f64, direct: (f64, f64), noise: f64) -> Limit {
        let cells = [
            noisy_stream(128 << 10, (1, 1), cold.0, cold_busy, noise),
            noisy_stream(128 << 10, (1, 2), cold.1, cold_busy, noise),
            stream(1 << 20, 1, 1, direct.0, 0.05),
            stream(1 << 20, 4, 1, direct.1, 0.05),
        ];
        let [cold, two, one, deep] = cells.each_ref();
        limits(&Evidence {
            cpus: 4,
            cold_sequential: Some(cold),
            cold_sequential_threads: Some(two),
            direct_sequential: Some(one),
            direct_sequential_deep: Some(deep),
            ..Evidence::default()
        })
        .sequential
    }

    #[test]
    fn read_ahead_that_keeps_up_with_a_device_that_gives_no_more_is_the_device() {
        let found = ask((768.0, 768.0), 0.3, (792.0, 800.0));
        assert_eq!(found.id, LimitId::Device, "{found:?}");
        let lines = [
            "read-ahead reaches 96.00 % [96.00, 96.00] of direct reads, n = 9 rounds",
            "128 KiB through the cache: 768.0 MiB/s ±0 %; 1 MiB direct, 4 in flight: 800.0 MiB/s ±0 %",
            "95.00 % [95.00, 95.00] of 1.263 ms ±0 % a request is waiting",
            "more in flight gives 1.010 [1.010, 1.010] times the throughput for requests of 1 MiB",
            "4 in flight: 800.0 MiB/s ±0 %, 800.0 /s ±0 %",
            "1 in flight: 792.0 MiB/s ±0 %, 792.0 /s ±0 %",
        ];
        assert_eq!(found.evidence, lines);
    }

    #[test]
    fn different_requests_are_no_evidence_of_what_depth_brings() {
        let (small, large) = (stream(128 << 10, 1, 1, 400.0, 0.1), stream(1 << 20, 4, 1, 800.0, 0.1));
        assert!(matches!(rules::depth(Some(&small), Some(&large)), Ruling::Missing(_)));
        assert!(matches!(rules::device(Some(&small), Some(&large)), Ruling::Missing(_)));
    }

    #[test]
    fn a_reader_that_waits_while_direct_reads_are_faster_is_limited_by_queue_depth() {
        // Whether several large requests are needed for it or one is enough.
        for one in [600.0, 800.0] {
            let found = ask((160.0, 300.0), 0.06, (one, 800.0));
            assert_eq!(found.id, LimitId::Depth, "{found:?}");
            assert!(found.sentence.contains("read-ahead keeps too few requests in flight"), "{found:?}");
            assert!(found.evidence[1].contains("reaches 20.00 % [20.00, 20.00]"), "{found:?}");
            assert!(found.evidence[2].contains("cache: 160.0 MiB/s ±0 %; 1 MiB direct"), "{found:?}");
            let alone = format!(
                "direct reads of 1 MiB alone: {one:.1} MiB/s ±0 % with 1 in flight, 800.0 MiB/s ±0 % with 4"
            );
            assert_eq!(found.evidence[3], alone);
        }
    }

    #[test]
    fn a_reader_on_the_cpu_while_direct_reads_are_faster_is_one_thread() {
        let found = ask((1000.0, 1900.0), 0.75, (1500.0, 3000.0));
        assert_eq!(found.id, LimitId::OneThread, "{found:?}");
        let alone = ask((1000.0, 1020.0), 0.75, (1500.0, 3000.0));
        assert_eq!(alone.id, LimitId::Unknown, "a second thread adds nothing: {alone:?}");
    }

    #[test]
    fn a_device_that_still_gives_more_to_more_in_flight_is_not_called_saturated() {
        let found = ask((1900.0, 1900.0), 0.3, (1000.0, 2000.0));
        assert_eq!(found.id, LimitId::Unknown, "{found:?}");
        assert!(found.evidence.iter().any(|e| e.contains("still more in flight")), "{found:?}");
    }

    #[test]
    fn depth_and_device_overlap_so_that_no_rate_is_on_a_border() {
        // On the CPU for most of its time, and nothing from a second thread: neither.
        assert_eq!(ask((800.0, 900.0), 0.8, (1000.0, 1000.0)).id, LimitId::Unknown);
        assert_eq!(ask((800.0, 1000.0), 0.8, (1000.0, 1000.0)).id, LimitId::OneThread);
        let rates = [
            (600.0, LimitId::Depth),
            (780.0, LimitId::Depth),
            (900.0, LimitId::Device),
            (950.0, LimitId::Device),
        ];
        for (rate, limit) in rates {
            let found = ask((rate, rate), 0.3, (1000.0, 1000.0));
            assert_eq!(found.id, limit, "{found:?}");
            let said = format!("read-ahead reaches {:.2} %", rate / 10.0);
            assert!(found.evidence.iter().any(|fact| fact.contains(&said)), "{found:?}");
        }
        // An interval that holds both ends tells nothing.
        let unknown = ask_noisy((750.0, 750.0), 0.3, (1000.0, 1000.0), 0.9);
        assert_eq!(unknown.id, LimitId::Unknown, "{unknown:?}");
        assert!(unknown.evidence[0].contains("near"), "{unknown:?}");
    }

    #[test]
    fn read_ahead_with_more_in_flight_than_direct_reads_need_is_never_short_of_depth() {
        let block = 128.0 * 1024.0;
        let found = |rate: f64, bytes_under_way: f64| {
            let mut w = Workload::reads(Method::Pread, CacheState::Cold, 128 << 10, 1 << 30);
            (w.depth, w.threads) = (1, 1);
            let ns = block * 1e9 / (rate * MIB);
            // One device request for each request: under way for as long as Little's law asks.
            let cold =
                Rounds::new(w).busy(ns * 0.2).wait(ns * 0.8).device(1.0, block, ns * bytes_under_way / block);
            let cells =
                [cold.build(), stream(1 << 20, 1, 1, 1000.0, 0.05), stream(1 << 20, 4, 1, 1000.0, 0.05)];
            let [cold, one, deep] = cells.each_ref();
            limits(&Evidence {
                cpus: 4,
                cold_sequential: Some(cold),
                direct_sequential: Some(one),
                direct_sequential_deep: Some(deep),
                ..Evidence::default()
            })
            .sequential
        };
        for rate in [500.0, 700.0, 950.0] {
            let supplied = found(rate, 8.0 * MIB);
            assert_eq!(supplied.id, LimitId::Device, "{supplied:?}");
            let said = "read-ahead keeps 800.0 % [800.0, 800.0] of the bytes in flight that direct reads keep, 1 MiB x 1";
            assert!(supplied.evidence.iter().any(|fact| fact.starts_with(said)), "{supplied:?}");
        }
        let short = [(500.0, LimitId::Depth), (700.0, LimitId::Depth), (950.0, LimitId::Device)];
        for (rate, limit) in short {
            assert_eq!(found(rate, 0.25 * MIB).id, limit, "{rate}");
        }
    }
}
