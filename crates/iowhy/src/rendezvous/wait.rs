//! Time and signals of a rendezvous, passed in: a test has a clock of its own that runs ahead.

use std::time::Duration;

use iowhy_linux::clock;
use iowhy_probe::interrupt;

/// What a process sees of the world.
pub(crate) trait World: Sync {
    /// The wall clock, in nanoseconds since 1970.
    fn unix_ns(&self) -> i64;
    /// A clock that is never set.
    fn monotonic_ns(&self) -> u64;
    fn sleep(&self, time: Duration);
    /// Whether a signal asks to stop.
    fn interrupted(&self) -> bool;
}

/// The world as it is.
pub(crate) struct Real;

impl World for Real {
    fn unix_ns(&self) -> i64 {
        i64::try_from(clock::unix_ns(clock::monotonic_ns())).unwrap_or(i64::MAX)
    }

    fn monotonic_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn interrupted(&self) -> bool {
        interrupt::requested()
    }
}

/// Waiting by looking: often at first, and for as long as a limit allows.
pub(super) struct Wait<'w> {
    world: &'w dyn World,
    began_ns: u64,
    limit: Duration,
    looked_ns: u64,
}

const MIN_PAUSE: Duration = Duration::from_micros(200);
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at whether the others live.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl<'w> Wait<'w> {
    pub(super) fn new(world: &'w dyn World, limit: Duration) -> Wait<'w> {
        let now = world.monotonic_ns();
        Wait { world, began_ns: now, limit, looked_ns: now }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    fn spent(&self) -> Duration {
        Duration::from_nanos(self.world.monotonic_ns().saturating_sub(self.began_ns))
    }

    pub(super) fn is_over(&self) -> bool {
        self.spent() >= self.limit
    }

    /// Whether it is time to look at what costs more than a name that is not there.
    pub(super) fn is_time_to_look(&mut self) -> bool {
        let now = self.world.monotonic_ns();
        let is_time = Duration::from_nanos(now.saturating_sub(self.looked_ns)) >= LOOK_EVERY;
        if is_time {
            self.looked_ns = now;
        }
        is_time
    }

    pub(super) fn sleep(&self) {
        self.world.sleep((self.spent() / 16).clamp(MIN_PAUSE, MAX_PAUSE));
    }
}
