//! The CPUs: first come, first served, no preemption. With as many CPUs as requests there is no queue.

/// When each CPU is free.
#[derive(Debug)]
pub(super) struct Processor {
    free_ns: Vec<u64>,
    pub(super) busy_ns: u64,
}

impl Processor {
    /// Number of CPUs; 0: as many as requests.
    pub(super) fn new(count: u64) -> Self {
        Processor { free_ns: vec![0; count as usize], busy_ns: 0 }
    }

    /// Whether there is no queue.
    pub(super) fn unlimited(&self) -> bool {
        self.free_ns.is_empty()
    }

    /// Works for `ns` from now on, or as soon as a CPU is free: how long that is waited for, and the end.
    pub(super) fn work(&mut self, now_ns: u64, ns: u64) -> (u64, u64) {
        self.busy_ns = self.busy_ns.saturating_add(ns);
        let Some(cpu) = self.free_ns.iter_mut().min() else { return (0, now_ns.saturating_add(ns)) };
        if ns == 0 {
            return (0, now_ns);
        }
        let begin = now_ns.max(*cpu);
        *cpu = begin.saturating_add(ns);
        (begin - now_ns, *cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_serve_three_in_turn() {
        let mut cpus = Processor::new(2);
        assert_eq!((cpus.work(0, 10), cpus.work(0, 10), cpus.work(5, 10)), ((0, 10), (0, 10), (5, 20)));
        assert_eq!(cpus.work(100, 1), (0, 101));
        let mut all = Processor::new(0);
        assert!(all.unlimited());
        assert_eq!((all.work(0, 10), all.work(0, 10)), ((0, 10), (0, 10)));
        assert_eq!((cpus.busy_ns, all.busy_ns), (31, 20));
    }
}
