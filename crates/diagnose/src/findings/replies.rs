//! Replies of a server, and their rate without a cause: what a gain in wall time says nothing about, because a server runs for as long
//! as it is watched.
//!
//! A reply is a write to a connection that the program accepted: the other end is a client, also where that is watched as well.
//! A thread that a cause delays and that uses sockets answers. Of its time between two replies a part goes with the cause, and so does
//! what it waits for other threads that the cause delays. The rate grows as that time gets shorter, up to what the CPUs can do
//! (asymptotic bounds of a closed queueing network). Supposed: peers send again as soon as they are answered, and take as long for it.
//! What may not enter: names of servers, how much of a cause a change removes.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::{Gain, Prediction, Replies, ReplyLimit, ReplyRate};
use iowhy_core::layer::Layer;
use iowhy_core::profile::Connections;

use super::facts::{ENOUGH_LOOKS, sampling_error};
use super::{Facts, say};
use crate::account::Entry;
use crate::classify::{Operation, Wait};

/// Equal parts of a watch whose rates tell how much the pace of the program varies.
const PARTS: usize = 8;
/// 97.5 % quantile of Student's t with [`PARTS`] - 1 degrees of freedom.
const STUDENT: f64 = 2.365;

/// Writes to connections of which nobody knows the side, over those to accepted ones, up to which these are told as all replies.
const MAX_UNKNOWN: f64 = 0.05;

/// Thread time of the threads that answer, over the whole watch and without the observer's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Answering {
    /// All of it.
    life_ns: f64,
    /// The longest life of one of them.
    span_ns: f64,
    /// Waiting for a socket.
    idle_ns: f64,
    /// What goes with the cause: asleep, and on a CPU.
    going_wait_ns: f64,
    going_busy_ns: f64,
    /// Waiting for another thread or process that the cause delays: at least, and likely.
    locks_ns: [f64; 2],
    /// CPU time of all threads that goes with the cause.
    going_cpu_ns: f64,
    /// How far the CPU time that goes may lie below and above what the samples say, relative to it.
    sampling: (f64, f64),
    /// Sleeps and samples that go.
    events: u64,
}

/// What is not known is taken to be.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// Least gain.
    Least,
    /// Likely.
    Likely,
    /// Most gain.
    Most,
}

/// Of one thread, or pool of threads.
#[derive(Clone, Copy, Debug, Default)]
struct OfThread {
    life_ns: f64,
    idle_ns: f64,
    going_wait_ns: f64,
    going_busy_ns: f64,
    at_device_ns: f64,
    locks_ns: f64,
    events: u64,
    uses_sockets: bool,
}

impl OfThread {
    fn add(&mut self, e: &Entry, part: f64) {
        let socket = matches!(e.class.wait, Some(Wait::Socket | Wait::Poll));
        self.uses_sockets |= socket || matches!(e.class.operation, Operation::Socket | Operation::Poll);
        if e.class.layer == Layer::Observer {
            return;
        }
        self.life_ns += e.time_ns;
        self.idle_ns += if socket { e.time_ns } else { 0.0 };
        self.locks_ns += if e.class.wait == Some(Wait::Futex) { e.time_ns } else { 0.0 };
        let going_ns = part * e.time_ns;
        if e.busy {
            self.going_busy_ns += going_ns;
        } else {
            self.going_wait_ns += going_ns;
            let at_device = matches!(e.class.layer, Layer::Device | Layer::Block);
            self.at_device_ns += if at_device { going_ns } else { 0.0 };
        }
        if going_ns > 0.0 {
            self.events = self.events.saturating_add(e.events);
        }
    }

    fn going_ns(&self) -> f64 {
        self.going_wait_ns + self.going_busy_ns
    }
}

impl Answering {
    /// Of these entries the weighted part goes. The program's own code stays: a reply takes as much of it. `None`: no thread of which a
    /// part goes uses sockets.
    pub(super) fn new(
        facts: &Facts<'_>,
        entries: &[Entry],
        weight: &dyn Fn(&Entry) -> f64,
    ) -> Option<Answering> {
        let threads = entries.iter().map(|e| e.thread as usize + 1).max().unwrap_or(0);
        let mut times = vec![OfThread::default(); threads];
        let (mut samples, mut all_samples) = (0_u64, 0_u64);
        let part = |e: &Entry| {
            let own = matches!(e.class.operation, Operation::User | Operation::Interrupt);
            Some(weight(e)).filter(|part| part.is_finite() && !own).unwrap_or(0.0).clamp(0.0, 1.0)
        };
        for e in entries {
            let part = part(e);
            times[e.thread as usize].add(e, part);
            if e.busy {
                all_samples = all_samples.saturating_add(e.events);
                samples = samples.saturating_add(if part > 0.0 { e.events } else { 0 });
            }
        }
        let mut all = Answering { sampling: sampling_error(samples, all_samples), ..Answering::default() };
        // Not of `entries`: queueing that goes with CPU time is none.
        let on_cpu = facts.account.entries.iter().filter(|e| e.busy);
        all.going_cpu_ns = on_cpu.map(|e| part(e) * e.time_ns).sum();
        let (mut at_device_ns, mut locks_ns, mut beside_ns) = (0.0, 0.0, 0.0);
        for (thread, time) in times.iter().enumerate() {
            if time.going_ns() <= 0.0 || !time.uses_sockets {
                continue;
            }
            let count = facts.profile.threads.get(thread).map_or(1, |t| t.count.max(1)) as f64;
            all.life_ns += time.life_ns;
            all.span_ns = all.span_ns.max(time.life_ns / count);
            all.idle_ns += time.idle_ns;
            all.going_wait_ns += time.going_wait_ns;
            all.going_busy_ns += time.going_busy_ns;
            all.events = all.events.saturating_add(time.events);
            at_device_ns += time.at_device_ns;
            locks_ns += time.locks_ns;
            beside_ns += facts.account.locks_beside_requests_ns.get(thread).copied().unwrap_or(0.0);
        }
        let requests = [beside_ns / locks_ns, at_device_ns / all.going_wait_ns];
        let anyway = facts.device_busy_share().unwrap_or(0.0);
        all.locks_ns = locks_delayed(requests, anyway).map(|part| part * locks_ns);
        (all.life_ns > 0.0).then_some(all)
    }

    /// The rate of replies. `saved`: the calibrated prediction of a change, and the wall time that the cause takes. `None`: too few
    /// calls on accepted connections are no request loop.
    pub(super) fn replies(&self, facts: &Facts<'_>, saved: Option<(&Prediction, f64)>) -> Option<Replies> {
        let mut replies = Replies {
            calls: None,
            per_second: None,
            connections: None,
            idle_share: (self.idle_ns / self.life_ns).clamp(0.0, 1.0),
            without_cause: None,
            with_change: None,
            not_known: None,
        };
        let Connections { accepted, other, unknown } = match connections(facts) {
            Ok(connections) => connections,
            Err(why) => {
                replies.not_known = Some(why.to_owned());
                // Without counts a socket proves nothing: whoever listens is a server.
                return facts.profile.processes.iter().any(|process| process.listens).then_some(replies);
            }
        };
        if unknown.write_calls as f64 > MAX_UNKNOWN * accepted.write_calls as f64 {
            let all = accepted.write_calls + other.write_calls + unknown.write_calls;
            replies.not_known = Some(format!(
                "{} of {} writes to sockets went to connections that were opened and closed between two looks, and whether the \
                 program accepted them was not seen",
                say::count(unknown.write_calls as f64),
                say::count(all as f64)
            ));
            return (unknown.read_calls.min(unknown.write_calls) >= ENOUGH_LOOKS).then_some(replies);
        }
        if accepted.read_calls.min(accepted.write_calls) < ENOUGH_LOOKS {
            return None;
        }
        let per_second = accepted.write_calls as f64 / (facts.profile.wall_ns as f64 / 1e9);
        (replies.calls, replies.per_second) = (Some(accepted.write_calls), Some(per_second));
        replies.connections = Some(accepted.sockets);
        // More threads than connections: some wait for work.
        let life_ns = self.life_ns.min(accepted.sockets.max(1) as f64 * self.span_ns);
        let rate = |parts| self.rate(facts, life_ns, per_second, parts);
        replies.without_cause = rate([1.0; 3]);
        replies.with_change = saved.and_then(|(prediction, cost_ns)| {
            let Estimate { value, low, high, .. } = prediction.remaining;
            rate([high, value, low].map(|left| ((prediction.wall_ns - left) / cost_ns).clamp(0.0, 1.0)))
        });
        if replies.without_cause.is_none() {
            replies.not_known =
                Some("without this cause nearly nothing is left of the time between replies".to_owned());
        }
        Some(replies)
    }

    /// The rate where these parts of the cause go: at least, likely, at most.
    fn rate(&self, facts: &Facts<'_>, life_ns: f64, per_second: f64, parts: [f64; 3]) -> Option<ReplyRate> {
        let [least, likely, most] = parts;
        let of = |part, case| {
            let threads = Gain::at_most(life_ns, part * self.shorter_ns(case));
            let cpus = self.by_cpus(facts, part, case);
            match (threads, cpus) {
                (None, None) => None,
                (Some(threads), Some(cpus)) if cpus < threads => Some((cpus, ReplyLimit::Cpus)),
                (Some(threads), _) => Some((threads, ReplyLimit::Threads)),
                (None, Some(cpus)) => Some((cpus, ReplyLimit::Cpus)),
            }
        };
        let (value, limit) = of(likely, Case::Likely)?;
        let (low, _) = of(least, Case::Least)?;
        let (high, _) = of(most, Case::Most)?;
        // Independent errors of a product: their logarithms add by squares.
        let pace = pace(facts).ln();
        let wider = |ratio: f64| ratio.ln().hypot(pace).exp();
        let low = value / wider(value / low.min(value));
        let high = value * wider(high.max(value) / value);
        let [value, low, high] = [value, low, high].map(|gain| gain * per_second);
        let per_second = Estimate { value, low, high, unit: Unit::PerSecond, n: self.events };
        Some(ReplyRate { per_second, limit })
    }

    /// Thread time of the answering threads that goes with all of the cause.
    fn shorter_ns(&self, case: Case) -> f64 {
        let [least, likely] = self.locks_ns;
        let locks_ns = if matches!(case, Case::Least) { least } else { likely };
        self.going_wait_ns + self.going_busy_ns * self.sampled(case) + locks_ns
    }

    fn sampled(&self, case: Case) -> f64 {
        match case {
            Case::Least => 1.0 - self.sampling.0,
            Case::Likely => 1.0,
            Case::Most => 1.0 + self.sampling.1,
        }
    }

    /// How many times the present rate the CPUs can do. Other processes' CPU time grows with the replies, as that of clients on this
    /// machine does; at most, none of it does. `None`: no CPU time was seen.
    fn by_cpus(&self, facts: &Facts<'_>, part: f64, case: Case) -> Option<f64> {
        let pressure = &facts.profile.pressure;
        let ran_ns: f64 = facts.profile.threads.iter().map(|t| t.running_ns as f64).sum();
        let own_ns = ran_ns - part * self.going_cpu_ns * self.sampled(case);
        if own_ns <= 0.0 || pressure.cpus == 0 {
            return None;
        }
        let all_ns = pressure.cpus as f64 * self.span_ns;
        let others_ns = pressure.others_cpu_share.unwrap_or(0.0) * all_ns;
        let gain = match case {
            Case::Most => (all_ns - others_ns) / own_ns,
            Case::Least | Case::Likely => all_ns / (own_ns + others_ns),
        };
        let limited = pressure.cpu_limit.map_or(f64::INFINITY, |cpus| cpus * self.span_ns / own_ns);
        Some(gain.min(limited).max(1.0))
    }
}

/// Factor by which the rate of one watch may differ from that of another as long as it (95 %), by batch means: rates of equal parts of this
/// watch differ by all that changes more slowly than a part. What is slower than the watch is in no interval. 1: not every part has a
/// step of the course, or there is none, and the interval says nothing of the pace.
fn pace(facts: &Facts<'_>) -> f64 {
    let Some(course) = &facts.profile.course else { return 1.0 };
    let whole_ns = course.ends_ns.last().copied().unwrap_or(0);
    let mut parts = [(0.0, 0.0); PARTS];
    for ((end_ns, length_ns), writes) in course.ends_ns.iter().zip(course.lengths_ns()).zip(&course.writes) {
        let middle = (end_ns - length_ns / 2) as f64 / whole_ns.max(1) as f64;
        let (all_writes, all_ns) = &mut parts[((middle * PARTS as f64) as usize).min(PARTS - 1)];
        *all_writes += *writes as f64;
        *all_ns += length_ns as f64;
    }
    let rates = parts.map(|(writes, ns)| writes / ns);
    let mean = rates.iter().sum::<f64>() / PARTS as f64;
    if !(mean.is_finite() && mean > 0.0) {
        return 1.0;
    }
    let variance = rates.iter().map(|rate| (rate / mean - 1.0).powi(2)).sum::<f64>() / (PARTS - 1) as f64;
    // Both watches vary.
    1.0 + STUDENT * (2.0 * variance / PARTS as f64).sqrt()
}

/// The part of the waits for other threads that the cause is behind, at least and likely. `[locks, going]`: the parts of these waits, and of
/// the waits that go, beside which a request of the program was under way. `anyway`: the part of all time in which one was.
fn locks_delayed([locks, going]: [f64; 2], anyway: f64) -> [f64; 2] {
    if !(locks > 0.0 && going > 0.0) {
        return [0.0; 2];
    }
    // Locks that have nothing to do with it have requests beside them for as long as any other time.
    let least = if going > anyway { (locks - anyway) / (going - anyway) } else { 0.0 };
    let likely = (locks / going).min(1.0);
    [least.clamp(0.0, likely), likely]
}

/// Calls on sockets by side, where every call was counted.
fn connections(facts: &Facts<'_>) -> Result<Connections, &'static str> {
    let complete = facts.profile.calls.as_ref().is_some_and(|calls| calls.complete);
    facts.profile.connections.filter(|_| complete).ok_or("system calls were not counted")
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::{CallCounts, Course, Process, Profile, SocketUse, Thread};

    use super::*;
    use crate::findings::synthetic::Run;

    fn calls(sockets: u64, calls: u64) -> SocketUse {
        SocketUse { sockets, read_calls: calls, write_calls: calls }
    }

    /// 10 s with 10,000 replies on so many connections, and as many on the clients' ends of them; threads of this CPU time.
    fn counted(run: Run, sockets: u64, running_s: &[f64]) -> Run {
        run.with(|p| {
            p.calls = Some(CallCounts { complete: true, ..CallCounts::default() });
            let [accepted, other] = [calls(sockets, 10_000); 2];
            p.connections = Some(Connections { accepted, other, ..Connections::default() });
            let ns = |s: &f64| (s * 1e9) as u64;
            p.threads = running_s
                .iter()
                .map(|s| Thread { count: 1, lifetime_ns: p.wall_ns, running_ns: ns(s), ..Thread::default() })
                .collect();
        })
    }

    fn syncs(e: &Entry) -> f64 {
        f64::from(e.class.operation == Operation::Sync)
    }

    fn replies(run: &Run) -> Option<Replies> {
        run.facts(|f| f.removable(syncs).answering.and_then(|answering| answering.replies(f, None)))
    }

    fn rate(run: &Run) -> ReplyRate {
        replies(run).unwrap().without_cause.unwrap()
    }

    /// One thread: half of its time it syncs, a quarter it waits for clients.
    fn event_loop(run: Run) -> Run {
        run.wait(Operation::Sync, Wait::CacheFlush, 0.5).wait(Operation::Poll, Wait::Poll, 0.25).busy(
            Operation::User,
            Layer::Program,
            0.25,
        )
    }

    #[test]
    fn a_turn_of_half_the_length_is_twice_the_rate() {
        let run = counted(event_loop(Run::new(10.0)), 50, &[2.5]);
        let found = replies(&run).unwrap();
        assert_eq!(
            (found.calls, found.per_second, found.connections),
            (Some(10_000), Some(1000.0), Some(50))
        );
        assert!((found.idle_share - 0.25).abs() < 1e-9);
        let ReplyRate { per_second, limit } = found.without_cause.unwrap();
        assert_eq!((per_second.value, per_second.low, per_second.high), (2000.0, 2000.0, 2000.0));
        assert_eq!((limit, per_second.n), (ReplyLimit::Threads, 1000));
    }

    #[test]
    fn a_pace_that_varies_makes_the_interval_wider() {
        let run = counted(event_loop(Run::new(10.0)), 50, &[2.5]);
        let with_writes = |writes: &[u64]| {
            let course = Course {
                ends_ns: (1..=writes.len() as u64)
                    .map(|n| n * 10_000_000_000 / writes.len() as u64)
                    .collect(),
                writes: writes.to_vec(),
                ..Course::default()
            };
            rate(&run.clone().with(|p| p.course = Some(course))).per_second
        };
        let even = with_writes(&[100; 40]);
        assert!((even.low - 2000.0).abs() < 1e-6 && (even.high - 2000.0).abs() < 1e-6, "{even:?}");
        // Steps alternate within each part: their means are the same.
        let fast = with_writes(&[50, 150].repeat(32));
        assert!((fast.high - 2000.0).abs() < 1e-6, "{fast:?}");
        // The same counts, one half of the watch after the other: parts of 50 and 150 have a deviation of 53 %.
        let slow = with_writes(&[[50; 32], [150; 32]].concat());
        let factor = 1.0 + STUDENT * (2.0 * (8.0 * 0.25 / 7.0) / 8.0_f64).sqrt();
        assert!((slow.value - 2000.0).abs() < 1e-6, "{slow:?}");
        assert!(
            (slow.high / 2000.0 - factor).abs() < 1e-9 && (2000.0 / slow.low - factor).abs() < 1e-9,
            "{slow:?}"
        );
        // Too few steps to tell.
        let few = with_writes(&[50, 150]);
        assert!((few.high - 2000.0).abs() < 1e-6, "{few:?}");
    }

    #[test]
    fn no_rate_exceeds_what_the_cpus_can_do() {
        // 2 CPUs: 2.5 s of 20 s are the program's, 14 s are the clients'.
        let run =
            counted(event_loop(Run::new(10.0)), 50, &[2.5]).with(|p| p.pressure.others_cpu_share = Some(0.7));
        let ReplyRate { per_second, limit } = rate(&run);
        assert_eq!(limit, ReplyLimit::Cpus);
        assert!((per_second.value - 1000.0 * 20.0 / 16.5).abs() < 1e-6, "{per_second:?}");
        // If that CPU time is not the clients', 6 s are left for replies: the turn is the limit.
        assert!((per_second.high - 2000.0).abs() < 1e-6, "{per_second:?}");
        // Queueing that goes with the syncs was no CPU time.
        let crowded = Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, 0.2)
            .busy(Operation::Sync, Layer::Block, 0.1)
            .queued_in(Operation::Sync, 0.4)
            .wait(Operation::Poll, Wait::Poll, 0.1)
            .busy(Operation::User, Layer::Program, 0.2);
        let crowded = counted(crowded, 50, &[3.0]).with(|p| p.pressure.others_cpu_share = Some(0.8));
        assert!(
            (rate(&crowded).per_second.value - 1000.0 * 20.0 / 18.0).abs() < 1e-6,
            "{:?}",
            rate(&crowded)
        );
        let limited = run.with(|p| p.pressure.cpu_limit = Some(0.3));
        assert!((rate(&limited).per_second.value - 1200.0).abs() < 1e-6);
    }

    #[test]
    fn clients_that_each_have_a_thread_wait_for_their_own_syncs() {
        // Beside a thread that syncs another one may run: the wall clock would promise more.
        let one =
            |run: Run| {
                run.wait(Operation::Sync, Wait::CacheFlush, 0.3)
                    .wait(Operation::Socket, Wait::Socket, 0.6)
                    .busy(Operation::User, Layer::Program, 0.1)
            };
        let run = (1..8).fold(one(Run::new(10.0)), |run, _| run.second_thread(one));
        let run = counted(run, 8, &[1.0; 8]);
        assert!((rate(&run).per_second.value - 1000.0 / 0.7).abs() < 1e-6);
        // Four of these threads have no client: what they wait for is no turn of anybody.
        let run = counted(run, 4, &[1.0; 8]);
        assert!((rate(&run).per_second.value - 1000.0 / (1.0 - 0.6)).abs() < 1e-6);
    }

    #[test]
    fn threads_that_wait_for_one_that_syncs_wait_for_the_sync() {
        let leader =
            |run: Run| {
                run.wait(Operation::Sync, Wait::CacheFlush, 0.25)
                    .wait(Operation::Futex, Wait::Futex, 0.25)
                    .wait(Operation::Socket, Wait::Socket, 0.5)
            };
        let run = counted(leader(Run::new(10.0)).second_thread(leader), 2, &[0.1; 2]);
        let with_beside = |beside_ns: Vec<f64>| {
            run.facts(|f| {
                let mut account = f.account.clone();
                account.locks_beside_requests_ns = beside_ns;
                let f = Facts { account: &account, ..*f };
                let answering = f.removable(syncs).answering.unwrap();
                answering.replies(&f, None).unwrap().without_cause.unwrap().per_second.value
            })
        };
        assert!((with_beside(vec![]) - 1000.0 / 0.75).abs() < 1e-6, "nothing is known of the locks");
        assert!((with_beside(vec![2.5e9; 2]) - 2000.0).abs() < 1e-6, "a request was under way all the time");
    }

    #[test]
    fn requests_beside_locks_are_compared_with_those_beside_syncs() {
        // No request, none beside syncs, and as many as at any time.
        assert_eq!(locks_delayed([0.0, 0.5], 0.1), [0.0; 2]);
        assert_eq!(locks_delayed([f64::NAN, 0.5], 0.1), [0.0; 2]);
        assert_eq!(locks_delayed([0.2, 0.8], 0.2), [0.0, 0.25]);
        assert_eq!(locks_delayed([0.5, 0.5], 0.9), [0.0, 1.0]);
        let [least, likely] = locks_delayed([0.5, 0.8], 0.2);
        assert!((least - 0.5).abs() < 1e-9 && (likely - 0.625).abs() < 1e-9);
    }

    #[test]
    fn only_threads_that_sync_and_use_sockets_answer() {
        let helper = Run::new(10.0)
            .busy(Operation::Socket, Layer::Elsewhere, 0.5)
            .second_thread(|run| run.wait(Operation::Sync, Wait::CacheFlush, 1.0));
        assert_eq!(replies(&counted(helper, 5, &[5.0, 0.0])), None, "a helper syncs");
        let few = |p: &mut Profile| p.connections.as_mut().unwrap().accepted.read_calls = 19;
        assert_eq!(replies(&counted(event_loop(Run::new(10.0)), 50, &[2.5]).with(few)), None);
    }

    #[test]
    fn no_count_is_told_where_the_sides_are_not_known() {
        let uncounted = event_loop(Run::new(10.0));
        assert_eq!(replies(&uncounted), None, "a socket proves nothing");
        let listens = |p: &mut Profile| p.processes.push(Process { listens: true, ..Process::default() });
        let found = replies(&uncounted.with(listens)).unwrap();
        assert_eq!((found.calls, found.without_cause), (None, None));
        assert!(found.not_known.unwrap().contains("not counted"));
        let closed = |n| move |p: &mut Profile| p.connections.as_mut().unwrap().unknown = calls(n, n);
        let with = |n| replies(&counted(event_loop(Run::new(10.0)), 50, &[2.5]).with(closed(n))).unwrap();
        assert_eq!(with(500).calls, Some(10_000));
        let found = with(501);
        assert_eq!((found.calls, found.per_second, found.without_cause), (None, None, None));
        assert!(found.not_known.unwrap().starts_with("501 of 20,501 writes"));
    }

    #[test]
    fn a_client_answers_nobody() {
        let client = |p: &mut Profile| {
            let other = calls(50, 10_000);
            p.connections = Some(Connections { other, ..Connections::default() });
        };
        assert_eq!(replies(&counted(event_loop(Run::new(10.0)), 50, &[2.5]).with(client)), None);
    }

    #[test]
    fn a_change_that_leaves_a_part_of_the_syncs_gains_less() {
        let run = counted(event_loop(Run::new(10.0)), 50, &[2.5]);
        let remaining = Estimate { value: 6e9, low: 5e9, high: 7e9, unit: Unit::Nanoseconds, n: 9 };
        let prediction = Prediction {
            how: "one fdatasync for 100 records".into(),
            remaining,
            wall_ns: 10e9,
            repeated: None,
            choices: Vec::new(),
            notes: Vec::new(),
        };
        let found = run.facts(|f| {
            let removable = f.removable(syncs);
            removable.answering.unwrap().replies(f, Some((&prediction, removable.booked_ns))).unwrap()
        });
        let rate = found.with_change.unwrap().per_second;
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(
            near(rate.value, 1e4 / 6.0) && near(rate.low, 1e4 / 7.0) && near(rate.high, 2000.0),
            "{rate:?}"
        );
    }
}
