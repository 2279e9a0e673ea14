//! The wall clock of the time in which switches were not recorded, and the idle time.
//!
//! Measured shares are exact and stay as they are. For the rest, a thread's part of the wall clock for each nanosecond of
//! its active time is taken from its measured time; else from looks, which found how many threads were active at once;
//! else threads are taken to be active independently of each other. What nobody takes is idle.

use iowhy_core::profile::State;

use super::account::{Account, BLOCKED, LOOK_BLOCKED, LOOK_RUNNING, QUEUED};
use super::clock::Clock;
use super::rows::Book;
use super::stacks::Stacks;

/// Wall time per active time: a numerator and a denominator.
#[derive(Clone, Copy, Debug, Default)]
struct Ratio(f64, f64);

impl Ratio {
    fn add(&mut self, other: Ratio) {
        self.0 += other.0;
        self.1 += other.1;
    }

    fn value(self) -> Option<f64> {
        (self.1 > 0.0).then(|| (self.0 / self.1).clamp(0.0, 1.0))
    }
}

/// Measured: running, queued, asleep on the path. Looks: running, asleep on the path.
#[derive(Clone, Copy, Debug, Default)]
struct Ratios {
    measured: [Ratio; 3],
    looks: [Ratio; 2],
}

impl Ratios {
    fn new(a: &Account, stacks: &Stacks<'_>) -> Ratios {
        let mut r = Ratios::default();
        r.measured[0] = Ratio(a.running.wall_ns, a.running.time_ns as f64);
        for ((stack, kind), t) in &a.tallies {
            let time = Ratio(t.wall_ns, t.time_ns as f64);
            let count = Ratio(t.wall_ns, t.events as f64);
            match *kind {
                QUEUED => r.measured[1].add(time),
                k if k >= BLOCKED && stacks.on_path(*stack) => r.measured[2].add(time),
                LOOK_RUNNING => r.looks[0].add(count),
                LOOK_BLOCKED if stacks.on_path(*stack) => r.looks[1].add(count),
                _ => {}
            }
        }
        r
    }

    fn add(&mut self, other: &Ratios) {
        self.measured.iter_mut().zip(other.measured).for_each(|(a, b)| a.add(b));
        self.looks.iter_mut().zip(other.looks).for_each(|(a, b)| a.add(b));
    }

    fn sum(of: &[Ratio]) -> Ratio {
        of.iter().fold(Ratio::default(), |mut sum, r| {
            sum.add(*r);
            sum
        })
    }

    /// The nearest thing that is known about this state of this thread.
    fn value(&self, state: State, all: &Ratios, otherwise: f64) -> f64 {
        let (m, l) = match state {
            State::Running => (0, 0),
            State::Queued => (1, 0),
            State::Blocked => (2, 1),
        };
        self.measured[m]
            .value()
            .or_else(|| Ratios::sum(&self.measured).value())
            .or_else(|| self.looks[l].value())
            .or_else(|| Ratios::sum(&self.looks).value())
            .or_else(|| Ratios::sum(&all.measured).value())
            .or_else(|| Ratios::sum(&all.looks).value())
            .unwrap_or(otherwise)
    }
}

/// Gives the rows their parts of the wall clock that were not measured, and returns the idle time.
pub(super) fn share(books: &mut [Book], accounts: &[Account], stacks: &Stacks<'_>, clock: &Clock) -> f64 {
    let wall = clock.wall_ns() as f64;
    let ratios: Vec<Ratios> = accounts.iter().map(|a| Ratios::new(a, stacks)).collect();
    let mut all = Ratios::default();
    ratios.iter().for_each(|r| all.add(r));
    let active = |state, stack| state != State::Blocked || stacks.on_path(stack);
    let otherwise = independent(books, wall, &active);
    let mut measured = 0.0;
    let (mut gaps, mut moved) = (0.0, 0.0);
    for (book, ratio) in books.iter_mut().zip(&ratios) {
        for ((state, stack), row) in book.iter_mut() {
            if active(*state, *stack) {
                row.gap_wall_ns = row.gap_ns * ratio.value(*state, &all, otherwise);
                row.moved_wall_ns = row.moved_ns * ratio.value(State::Running, &all, otherwise);
            }
            measured += row.wall_ns;
            gaps += row.gap_wall_ns;
            moved += row.moved_wall_ns;
        }
    }
    // What is neither measured as active nor as idle is room for the gaps; queueing comes out of idle time.
    let idle = (clock.idle_ns() as f64).min(wall);
    let room = (wall - measured - idle).max(0.0);
    let scale_gaps = if gaps > room { room / gaps } else { 1.0 };
    let room = (wall - measured - gaps * scale_gaps).max(0.0);
    let scale_moved = if moved > room { room / moved } else { 1.0 };
    // Rounding may leave the measured shares a hair above the whole.
    let scale = if measured > wall && measured > 0.0 { wall / measured } else { 1.0 };
    let mut sum = 0.0;
    for row in books.iter_mut().flat_map(|b| b.values_mut()) {
        row.wall_ns *= scale;
        row.gap_wall_ns *= scale_gaps;
        row.moved_wall_ns *= scale_moved;
        sum += row.wall_ns + row.gap_wall_ns + row.moved_wall_ns;
    }
    (wall - sum).max(0.0)
}

/// Wall time per active time if threads are active independently: with active shares `a`, somebody is active for
/// `1 - product(1 - a)` of the time.
fn independent(books: &[Book], wall: f64, active: &dyn Fn(State, u32) -> bool) -> f64 {
    if wall <= 0.0 {
        return 0.0;
    }
    let (mut nobody, mut sum) = (1.0, 0.0);
    for book in books {
        let time: f64 = book
            .iter()
            .filter(|((state, stack), _)| active(*state, *stack))
            .map(|(_, r)| r.measured_ns + r.gap_ns + r.moved_ns)
            .sum();
        let share = time / wall;
        nobody *= 1.0 - share.clamp(0.0, 1.0);
        sum += share;
    }
    if sum > 0.0 { (1.0 - nobody) / sum } else { 0.0 }
}
