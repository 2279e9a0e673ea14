//! The wall clock, and how each instant of it is shared among the threads that are active in it.
//!
//! A virtual clock V runs at `1 / k` of the speed of the wall clock while `k` threads are active. The part of the wall
//! clock that belongs to a thread that was active from `a` to `b` is `V(b) - V(a)`: one subtraction for each interval,
//! however many threads there are. While nobody is active V stands and the time is idle.

/// The clock. Invariant: V's shares over all threads, and the idle time, and the unwatched time sum to the wall time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start_ns: u64,
    now_ns: u64,
    virtual_ns: f64,
    active: u64,
    idle_ns: u64,
    /// Whether switches are recorded: without them nobody knows who is active.
    watching: bool,
}

impl Clock {
    pub(super) fn new(start_ns: u64, watching: bool) -> Clock {
        Clock { start_ns, now_ns: start_ns, virtual_ns: 0.0, active: 0, idle_ns: 0, watching }
    }

    /// Goes on to this time. A time that has passed already counts as now: time never runs back.
    #[inline]
    pub(super) fn advance(&mut self, time_ns: u64) -> u64 {
        if time_ns > self.now_ns {
            let passed = time_ns - self.now_ns;
            self.now_ns = time_ns;
            if self.watching {
                if self.active > 0 {
                    self.virtual_ns += passed as f64 / self.active as f64;
                } else {
                    self.idle_ns += passed;
                }
            }
        }
        self.now_ns
    }

    pub(super) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// V at this instant.
    #[inline]
    pub(super) fn virtual_ns(&self) -> f64 {
        self.virtual_ns
    }

    /// A thread becomes active, or ceases to be.
    #[inline]
    pub(super) fn count(&mut self, active: bool) {
        self.active = if active { self.active + 1 } else { self.active.saturating_sub(1) };
    }

    pub(super) fn set_watching(&mut self, watching: bool) {
        self.watching = watching;
    }

    pub(super) fn is_watching(&self) -> bool {
        self.watching
    }

    pub(super) fn idle_ns(&self) -> u64 {
        self.idle_ns
    }

    pub(super) fn wall_ns(&self) -> u64 {
        self.now_ns - self.start_ns
    }
}
