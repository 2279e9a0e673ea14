//! Access to a scripted machine: requests take the script's costs in virtual time. Every later stage is exactly testable
//! against it, because the true costs are the model's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use iowhy_core::layer::{Layer, LayerTime};
use iowhy_core::rng::Rng;
use iowhy_core::workload::Workload;
use rustix::io::Errno;

use crate::access::{Access, Completion, Failure, Request};
use crate::clock::Clock;
use crate::script::cost::Charge;
use crate::script::device::Servers;
use crate::script::{Script, ScriptedTarget};

/// A thread's access to the scripted machine.
#[derive(Debug)]
pub struct Scripted {
    script: Arc<Script>,
    workload: Workload,
    clock: Clock,
    servers: Servers,
    rng: Rng,
    /// Cost of a request of the last size and direction.
    known: Option<(usize, bool, Rc<Charge>)>,
    /// Requests begun so far.
    begun: u64,
    /// Busy time below one nanosecond that the clock could not take yet.
    carry_ns: f64,
    /// Bytes of the last read-ahead request that nobody has read yet.
    ahead_bytes: u64,
    /// By end, then by number: what was begun first is reaped first.
    in_flight: BinaryHeap<Reverse<InFlight>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    end_ns: u64,
    number: u64,
    slot: usize,
    bytes: usize,
}

impl Scripted {
    /// Binds the script to a workload and a virtual clock. A method, state or direction that the model has no
    /// opinion on fails with ENOSYS at the first request, as does a clock that is not virtual.
    pub fn new(script: &Arc<Script>, workload: &Workload, clock: &Clock) -> Self {
        let opening = script.opened.fetch_add(1, Ordering::Relaxed);
        Scripted {
            servers: Servers::new(script.model.device_parallelism, workload.threads),
            rng: Rng::new(Rng::new(script.seed ^ opening.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64()),
            script: Arc::clone(script),
            workload: workload.clone(),
            clock: clock.clone(),
            known: None,
            begun: 0,
            carry_ns: 0.0,
            ahead_bytes: 0,
            in_flight: BinaryHeap::new(),
        }
    }

    /// Spends a request's busy time and hands it to the device; returns its end and its bytes.
    pub(in crate::method) fn begin(&mut self, request: Request) -> Result<(u64, usize), Failure> {
        let io = |call, errno| Failure::Io { call, offset: request.offset, errno };
        let number = self.begun;
        self.begun += 1;
        if self.script.fail_at == Some(number) {
            return Err(io("scripted request", Errno::IO));
        }
        let charge =
            self.charge(request).ok_or(io("scripted request (no opinion in the model)", Errno::NOSYS))?;
        let Clock::Virtual(time) = &self.clock else {
            return Err(io("scripted request (the clock is not virtual)", Errno::NOSYS));
        };

        let (mut busy_ns, mut service_ns, mut flush_ns) = (self.carry_ns, 0.0, 0.0);
        let quirks = Arc::clone(&self.script.quirks);
        let mut ledger = charge.ledger.clone();
        let copy = self.script.model.cost(Layer::Copy).per_byte_ns;
        quirks.charge(&self.workload, request.bytes as u64, copy, &mut ledger);
        let slowdown = quirks.slowdown();
        for LayerTime { id, busy_ns: busy, wait_ns: wait } in ledger.entries().iter().copied() {
            let factor = factor(&mut self.rng, self.script.noise) * slowdown;
            busy_ns += busy * factor;
            match id {
                Layer::Device => service_ns += wait * factor,
                _ => flush_ns += wait * factor,
            }
        }
        self.carry_ns = busy_ns.fract();
        time.run(busy_ns as u64);

        let now_ns = time.now_ns.get();
        let mut end_ns = now_ns;
        if service_ns > 0.0 {
            let served = self.servers.serve(now_ns as f64, service_ns);
            end_ns = served.end_ns.round() as u64;
            let requests = if charge.read_ahead { self.ahead(request.bytes) } else { 1 };
            self.script.device.moved(
                request.write,
                request.bytes,
                requests,
                end_ns - now_ns,
                served.newly_busy_ns,
            );
        }
        if flush_ns > 0.0 {
            let flush_ns = flush_ns.round() as u64;
            end_ns += flush_ns;
            self.script.device.flushed(flush_ns);
        }
        quirks.pass(end_ns - now_ns + busy_ns as u64);
        Ok((end_ns, self.arriving(request)))
    }

    /// Cost of a request, from memory when the last one was alike.
    fn charge(&mut self, request: Request) -> Option<Rc<Charge>> {
        match &self.known {
            Some((bytes, write, charge)) if (*bytes, *write) == (request.bytes, request.write) => {
                Some(Rc::clone(charge))
            }
            _ => {
                let charge =
                    Rc::new(self.script.charge(self.workload.method, self.workload.state, request)?);
                self.known = Some((request.bytes, request.write, Rc::clone(&charge)));
                Some(charge)
            }
        }
    }

    /// Device requests that reading `bytes` more begins when each brings a read-ahead window.
    fn ahead(&mut self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        let window = self.script.model.read_ahead_bytes.max(bytes).max(1);
        let begins = bytes.saturating_sub(self.ahead_bytes).div_ceil(window);
        self.ahead_bytes = self.ahead_bytes + begins * window - bytes;
        begins
    }

    /// Bytes that a request moves: a file and memory end, /dev/null gives nothing, /dev/zero never ends.
    fn arriving(&self, request: Request) -> usize {
        let left = self.script.size_bytes.saturating_sub(request.offset);
        match (self.script.target, request.write) {
            (ScriptedTarget::NullDevice, false) => 0,
            (ScriptedTarget::File | ScriptedTarget::Memory, false) => {
                request.bytes.min(usize::try_from(left).unwrap_or(usize::MAX))
            }
            _ => request.bytes,
        }
    }

    fn sleep_until(&self, end_ns: u64) {
        if let Some(time) = self.clock.virtual_time_of() {
            time.sleep_until(end_ns);
        }
    }
}

/// A noise factor of mean 1: 1 plus a relative deviation from the sum of twelve uniform numbers (Irwin-Hall: standard
/// deviation 1, the same on every machine because it needs no logarithm). Never negative.
fn factor(rng: &mut Rng, noise: f64) -> f64 {
    if noise == 0.0 {
        return 1.0;
    }
    let deviation = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
    (1.0 + noise * deviation).max(0.0)
}

impl Access for Scripted {
    fn capacity(&self) -> usize {
        if self.workload.method.asynchronous() { self.workload.depth.max(1) } else { 1 }
    }

    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure> {
        let number = self.begun;
        let (end_ns, bytes) = self.begin(request)?;
        if !self.workload.method.asynchronous() {
            self.sleep_until(end_ns);
        }
        self.in_flight.push(Reverse(InFlight { end_ns, number, slot, bytes }));
        Ok(())
    }

    fn reap(&mut self, at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure> {
        let mut reaped = 0;
        while let Some(Reverse(next)) = self.in_flight.peek().copied() {
            if next.end_ns > self.clock.now_ns() {
                if reaped >= at_least {
                    break;
                }
                self.sleep_until(next.end_ns);
            }
            self.in_flight.pop();
            done.push(Completion { slot: next.slot, bytes: next.bytes });
            reaped += 1;
        }
        Ok(())
    }

    fn data(&self, _slot: usize) -> Option<&[u8]> {
        None
    }

    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        let (end_ns, bytes) = self.begin(request)?;
        self.sleep_until(end_ns);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA, Part, StackModel};
    use iowhy_core::workload::{CacheState, Method};

    use super::*;

    const READ: Request = Request { offset: 0, bytes: 4096, write: false };

    /// Whole numbers throughout; the device serves 4 requests of 1000 ns at once and nothing else costs anything
    /// unless `busy_ns` says so.
    fn machine(busy_ns: f64) -> StackModel {
        let per_call = |ns| LayerCost::exact(Cost { per_call_ns: ns, ..Cost::default() });
        StackModel {
            schema: MODEL_SCHEMA,
            name: "test".into(),
            page_bytes: 4096,
            device_parallelism: 4.0,
            read_ahead_bytes: 16_384,
            layers: BTreeMap::from([(Layer::Call, per_call(busy_ns)), (Layer::Device, per_call(1000.0))]),
            parts: BTreeMap::from([(Part::Vfs, per_call(7.0))]),
        }
    }

    fn open(script: &Arc<Script>, method: Method, state: CacheState, depth: usize) -> (Scripted, Clock) {
        let clock = Clock::virtual_time();
        let workload = Workload { depth, ..Workload::reads(method, state, 4096, 1 << 20) };
        (Scripted::new(script, &workload, &clock), clock)
    }

    /// Keeps the access full until `requests` have ended; returns the sum of their latencies.
    fn closed_loop(access: &mut Scripted, clock: &Clock, requests: usize) -> u64 {
        let mut begun_ns = vec![0; access.capacity()];
        let mut free: Vec<usize> = (0..access.capacity()).collect();
        let (mut submitted, mut ended, mut latency_ns) = (0, 0, 0);
        let mut done = Vec::new();
        while ended < requests {
            while submitted < requests
                && let Some(slot) = free.pop()
            {
                begun_ns[slot] = clock.now_ns();
                access.submit(slot, READ).unwrap();
                submitted += 1;
            }
            access.reap(1, &mut done).unwrap();
            for completion in done.drain(..) {
                assert_eq!(completion.bytes, READ.bytes);
                latency_ns += clock.now_ns() - begun_ns[completion.slot];
                free.push(completion.slot);
                ended += 1;
            }
        }
        latency_ns
    }

    #[test]
    fn parallel_servers_end_in_the_known_time_and_obey_littles_law() {
        for (depth, requests, makespan_ns, latency_ns) in [
            (1, 10, 10_000, 10_000),
            (4, 100, 25_000, 100_000),
            // In flight: 8 for 24 rounds of 1000 ns, 4 for the last one; the integral is the sum of latencies.
            (8, 100, 25_000, 8 * 24_000 + 4 * 1000),
            (64, 3, 1000, 3000),
        ] {
            let script = Arc::new(Script::new(machine(0.0)));
            let (mut access, clock) = open(&script, Method::Uring, CacheState::Direct, depth);
            assert_eq!(closed_loop(&mut access, &clock, requests), latency_ns, "depth {depth}");
            assert_eq!((clock.now_ns(), clock.thread_cpu_ns()), (makespan_ns, 0));
            let device = script.device_counters();
            assert_eq!((device.read_requests, device.read_bytes), (requests as u64, 4096 * requests as u64));
            assert_eq!((device.read_ns, device.busy_ns), (latency_ns, makespan_ns));
            assert_eq!((device.write_bytes, device.flush_requests), (0, 0));
        }
    }

    #[test]
    fn at_depth_one_a_request_takes_its_ledger_and_the_device_idles_meanwhile() {
        let script = Arc::new(Script::new(machine(250.0)));
        let (mut access, clock) = open(&script, Method::Direct, CacheState::Direct, 8);
        assert_eq!(access.capacity(), 1, "a synchronous method keeps one request in flight");
        for _ in 0..10 {
            assert_eq!(access.perform(READ), Ok(4096));
        }
        assert_eq!((clock.now_ns(), clock.thread_cpu_ns()), (12_500, 2500));
        assert_eq!(script.device_counters().busy_ns, 10_000);
        let mut done = Vec::new();
        access.submit(0, READ).unwrap();
        assert_eq!(clock.now_ns(), 13_750, "carried out in submit");
        access.reap(1, &mut done).unwrap();
        assert_eq!((clock.now_ns(), done.len()), (13_750, 1));
    }

    #[test]
    fn one_thread_that_is_always_busy_hides_the_device() {
        // 16 in flight, 4 at once of 1000 ns: the device could end one every 250 ns, the CPU begins one every 300.
        let script = Arc::new(Script::new(machine(300.0)));
        let (mut access, clock) = open(&script, Method::Uring, CacheState::Direct, 16);
        closed_loop(&mut access, &clock, 1000);
        assert_eq!(clock.thread_cpu_ns(), 300_000);
        assert_eq!(clock.now_ns(), 301_000, "only the last request is waited for");
    }

    #[test]
    fn cold_reads_move_one_device_request_a_window_and_warm_ones_none() {
        let script = Arc::new(Script::new(machine(0.0)));
        let (mut access, clock) = open(&script, Method::Pread, CacheState::Cold, 1);
        for block in 0..9 {
            access.perform(Request { offset: block * 4096, ..READ }).unwrap();
        }
        let cold = script.device_counters();
        assert_eq!(
            (cold.read_bytes, cold.read_requests),
            (9 * 4096, 3),
            "two windows of four, and one begun"
        );
        assert_eq!(clock.now_ns(), 9 * 250, "each block waits its share of a window");
        let (mut access, _) = open(&script, Method::Pread, CacheState::Warm, 1);
        access.perform(READ).unwrap();
        assert_eq!(script.device_counters(), cold);
        let (mut access, _) = open(&script, Method::Pread, CacheState::Cold, 1);
        access.perform(Request { bytes: 65_536, ..READ }).unwrap();
        assert_eq!(
            script.device_counters().read_requests,
            4,
            "a block larger than the window is one request"
        );
    }

    #[test]
    fn fractions_of_a_nanosecond_are_kept_until_they_count() {
        let script = Arc::new(Script::new(machine(0.25)));
        let (mut access, clock) = open(&script, Method::Pread, CacheState::Warm, 1);
        for _ in 0..1001 {
            access.perform(READ).unwrap();
        }
        assert_eq!(clock.thread_cpu_ns(), 250);
    }

    #[test]
    fn noise_is_seeded_differs_between_openings_and_keeps_the_mean() {
        let run = |seed| {
            let mut script = Script::new(machine(1000.0));
            (script.noise, script.seed) = (0.1, seed);
            let script = Arc::new(script);
            [0, 1].map(|_| {
                let (mut access, clock) = open(&script, Method::Pread, CacheState::Warm, 1);
                (0..10_000).for_each(|_| assert_eq!(access.perform(READ), Ok(4096)));
                clock.now_ns()
            })
        };
        let [first, second] = run(3);
        assert_eq!(run(3), [first, second]);
        assert_ne!(first, second);
        assert_ne!(run(4), [first, second]);
        // The mean of 10,000 draws deviates by 0.1 %; eight deviations.
        for total_ns in [first, second] {
            assert!((9_920_000..=10_080_000).contains(&total_ns), "{total_ns}");
        }
    }

    #[test]
    fn failures_come_where_they_were_ordered_and_where_the_model_is_silent() {
        let mut script = Script::new(machine(1.0));
        script.fail_at = Some(2);
        let script = Arc::new(script);
        for _thread in 0..2 {
            let (mut access, _) = open(&script, Method::Pread, CacheState::Warm, 1);
            let ended: Vec<bool> = (0..4).map(|_| access.perform(READ).is_ok()).collect();
            assert_eq!(ended, [true, true, false, true]);
        }
        let silent = Arc::new(Script::new(machine(1.0)));
        let (mut access, _) = open(&silent, Method::Sendfile, CacheState::Warm, 1);
        assert!(matches!(access.perform(READ), Err(Failure::Io { errno: Errno::NOSYS, .. })));
        let (mut access, _) = open(&silent, Method::Pwrite, CacheState::None, 1);
        assert!(matches!(
            access.perform(Request { write: true, ..READ }),
            Err(Failure::Io { errno: Errno::NOSYS, .. })
        ));
        let workload = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20);
        let mut access = Scripted::new(&silent, &workload, &Clock::Monotonic);
        assert!(matches!(access.perform(READ), Err(Failure::Io { errno: Errno::NOSYS, .. })));
    }

    #[test]
    fn targets_end_where_real_ones_do() {
        let mut script = Script::new(machine(1.0));
        script.size_bytes = 5000;
        let bytes = |target, offset| {
            let script = Arc::new(script.on_target(target));
            let (mut access, _) = open(&script, Method::Pread, CacheState::Warm, 1);
            access.perform(Request { offset, ..READ }).unwrap()
        };
        assert_eq!([0, 4096, 8192].map(|offset| bytes(ScriptedTarget::File, offset)), [4096, 904, 0]);
        assert_eq!([0, 8192].map(|offset| bytes(ScriptedTarget::NullDevice, offset)), [0, 0]);
        assert_eq!([0, 8192].map(|offset| bytes(ScriptedTarget::ZeroDevice, offset)), [4096, 4096]);
    }
}
