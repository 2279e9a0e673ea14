//! What queueing for a CPU costs a program whose threads sleep on purpose.
//!
//! Of many threads that each sleep for 20 ms and then run for 20 us, some are nearly always runnable, and the wall clock is
//! shared out among the active threads only: most of it is booked to their queueing. Yet without it each thread would be as
//! much faster as its own queueing is long, which may be one per cent. A sleep on a timer waits for no other thread, so
//! that such queueing delays nobody else.
//!
//! What may not enter: who crowds the CPUs.

use std::collections::HashSet;

use iowhy_core::layer::Layer;

use super::Facts;
use crate::account::Entry;
use crate::classify::Wait;

/// A thread that sleeps on a timer for so much of its time sleeps on purpose.
const ON_PURPOSE: f64 = 0.5;

/// The part of the queueing that the run is longer for.
#[derive(Clone, Debug, Default)]
pub(super) struct Queueing {
    sleepers: HashSet<u32>,
    /// Of the wall time booked to the queueing of sleepers.
    part: f64,
    /// Wall time booked to it beyond that part.
    pub(super) excess_ns: f64,
}

impl Queueing {
    /// The part of an entry's wall time that is queueing which makes the run longer; 0 of what is no queueing.
    pub(super) fn weight(&self, e: &Entry) -> f64 {
        match (e.class.layer == Layer::CpuQueue, self.sleepers.contains(&e.thread)) {
            (false, _) => 0.0,
            (true, false) => 1.0,
            (true, true) => self.part,
        }
    }
}

impl Facts<'_> {
    /// Tells the queueing that costs from that which only fills the time of sleepers.
    pub(super) fn queueing(&self) -> Queueing {
        let entries = &self.account.entries;
        let threads = entries.iter().map(|e| e.thread as usize + 1).max().unwrap_or(0);
        // Thread time, on a timer, and in the queue.
        let mut times = vec![[0.0_f64; 3]; threads];
        for e in entries {
            let [all, timer, queued] = &mut times[e.thread as usize];
            *all += e.time_ns;
            *timer += if e.class.wait == Some(Wait::Timer) { e.time_ns } else { 0.0 };
            *queued += if e.class.layer == Layer::CpuQueue { e.time_ns } else { 0.0 };
        }
        let sleeps = |times: &[f64; 3]| times[0] > 0.0 && times[1] >= ON_PURPOSE * times[0];
        let of_sleepers = times.iter().filter(|t| sleeps(t));
        let (all, queued) = of_sleepers.fold((0.0, 0.0), |(all, queued), t| (all + t[0], queued + t[2]));
        let sleepers: HashSet<u32> = (0..threads as u32).filter(|t| sleeps(&times[*t as usize])).collect();
        let in_queue = |e: &Entry| e.class.layer == Layer::CpuQueue && sleepers.contains(&e.thread);
        let booked = self.account.sum(in_queue).wall_ns;
        let costs = if all > 0.0 { (queued / all * self.account.wall_ns).min(booked) } else { 0.0 };
        let part = if booked > 0.0 { costs / booked } else { 1.0 };
        Queueing { sleepers, part, excess_ns: booked - costs }
    }

    /// Wall time in which threads were runnable without a CPU, as far as the run is longer for it.
    pub(super) fn queueing_ns(&self) -> f64 {
        let queueing = self.queueing();
        self.wall_ns_of(|e| queueing.weight(e))
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::finding::FindingId;

    use super::*;
    use crate::classify::Operation;
    use crate::findings::judge;
    use crate::findings::synthetic::Run;

    /// Looks at 70 threads that sleep for all but one hundredth of the run, which they are queued for. One of them is queued
    /// for 70 % of the wall time, and the CPUs belong to others.
    fn with_sleepers<T>(wait: Wait, look: impl FnOnce(&Facts<'_>) -> T) -> T {
        let one = |run: Run| run.wait(Operation::Unknown, wait, 0.99).queued_in(Operation::Unknown, 0.01);
        let run = (1..70).fold(one(Run::new(10.0)), |run, _| run.second_thread(one));
        let run = run.with(|p| p.pressure.others_cpu_share = Some(0.9));
        run.facts(|f| {
            let mut account = f.account.clone();
            let booked = account.layer(Layer::CpuQueue).wall_ns;
            let queued = account.entries.iter_mut().filter(|e| e.class.layer == Layer::CpuQueue);
            queued.for_each(|e| e.wall_ns *= 7e9 / booked);
            account.idle_wall_ns = 3e9;
            look(&Facts { account: &account, ..*f })
        })
    }

    #[test]
    fn threads_that_sleep_on_purpose_do_not_wait_for_a_cpu() {
        with_sleepers(Wait::Timer, |f| {
            let (queueing, costs) = (f.queueing(), f.queueing_ns());
            assert!((costs - 0.01 * 10e9).abs() < 1e6, "{costs}");
            assert!((queueing.excess_ns + costs - 7e9).abs() < 1e6);
            let found = judge(f);
            assert!(found.iter().all(|f| f.id != FindingId::NoisyNeighbour), "{found:?}");
            assert_eq!(found[0].id, FindingId::WaitingElsewhere, "{found:?}");
            assert!(found[0].sentence.contains("intended sleep"), "{found:?}");
            assert!((found[0].share - 0.99).abs() < 1e-6, "{found:?}");
        });
    }

    #[test]
    fn threads_that_wait_for_each_other_do() {
        // Whoever queues keeps the next one waiting: all of it is on the way to the end.
        with_sleepers(Wait::Futex, |f| {
            assert!((f.queueing_ns() - 7e9).abs() < 1.0 && f.queueing().excess_ns == 0.0);
            assert!(judge(f).iter().any(|f| f.id == FindingId::NoisyNeighbour));
        });
    }

    #[test]
    fn one_that_computes_beside_sleepers_does_too() {
        let run = Run::new(10.0)
            .wait(Operation::Unknown, Wait::Timer, 0.99)
            .queued(0.01)
            .second_thread(|run| run.queued(0.5).busy(Operation::User, Layer::Program, 0.5));
        run.facts(|f| {
            let queueing = f.queueing();
            let weights: Vec<f64> = f.account.entries.iter().map(|e| queueing.weight(e)).collect();
            assert_eq!((weights[0], weights[2], weights[3]), (0.0, 1.0, 0.0));
        });
    }
}
