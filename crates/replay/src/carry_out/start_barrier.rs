//! A barrier that can be cancelled: threads start together or not at all, also where one of them cannot be started.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(super) struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    missing: usize,
    cancelled: bool,
}

impl StartBarrier {
    pub(super) fn new(threads: usize) -> StartBarrier {
        StartBarrier {
            state: Mutex::new(State { missing: threads, cancelled: false }),
            changed: Condvar::new(),
        }
    }

    /// Waits for all threads; `false` if it was cancelled.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state();
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 {
            self.changed.notify_all();
        }
        let waits = |state: &mut State| state.missing > 0 && !state.cancelled;
        let state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        !state.cancelled
    }

    /// Wakes waiting threads and lets none start.
    pub(super) fn cancel(&self) {
        self.state().cancelled = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_start_or_none() {
        let started = |threads: usize, come: usize, cancel: bool| -> Vec<bool> {
            let barrier = StartBarrier::new(threads);
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..come).map(|_| scope.spawn(|| barrier.wait())).collect();
                if cancel {
                    barrier.cancel();
                }
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        };
        assert_eq!(started(4, 4, false), [true; 4]);
        assert_eq!(started(5, 3, true), [false; 3]);
        assert_eq!(started(1, 1, false), [true]);
    }
}
