//! Threads that begin together, or not at all: one that cannot be started must not leave the others waiting for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Opens when all have come, unless it was shut before.
#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    missing: usize,
    shut: bool,
}

impl Gate {
    pub(super) fn new(threads: usize) -> Gate {
        Gate { state: Mutex::new(State { missing: threads, shut: false }), changed: Condvar::new() }
    }

    /// Waits for the others; whether they have come.
    pub(super) fn pass(&self) -> bool {
        let mut state = self.state();
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 {
            self.changed.notify_all();
        }
        let waits = |state: &mut State| state.missing > 0 && !state.shut;
        let state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        !state.shut
    }

    /// Nobody passes any more; who waits goes.
    pub(super) fn shut(&self) {
        self.state().shut = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that may panic is done with it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pass_or_none() {
        let passed = |threads: usize, come: usize, shut: bool| -> Vec<bool> {
            let gate = Gate::new(threads);
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..come).map(|_| scope.spawn(|| gate.pass())).collect();
                if shut {
                    gate.shut();
                }
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        };
        assert_eq!(passed(4, 4, false), [true; 4]);
        assert_eq!(passed(5, 3, true), [false; 3]);
        assert_eq!(passed(1, 1, false), [true]);
    }
}
