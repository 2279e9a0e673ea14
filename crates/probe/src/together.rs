//! Measures a plan in step with other processes: all of them run all rounds, and begin and end each slice together.
//!
//! Non-goal: how they find each other. Invariant: the order of slices is a function of plan and seed alone, and nobody prepares a slice
//! while another process still measures the one before.

use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::schedule;

use crate::campaign::{Cell, CellState, Outcome, Progress};
use crate::interrupt;
use crate::runner::Gate;

/// Processes that measure the same plan.
pub trait Together: Gate {
    /// Called before each slice. Whether this process takes part in it; else it waits while others run it.
    fn begin(&mut self, cell: usize, round: u32) -> bool;

    /// Returns when all processes have ended the slice.
    ///
    /// # Errors
    /// As [`Gate::open`].
    fn end(&mut self) -> Result<(), Problem>;
}

/// Measures a plan. Starts of samples are those of their threads, by [`Clock::real`](crate::clock::Clock::real).
///
/// # Errors
/// The first cell that fails, here or in another process: the others would wait for it.
pub fn run(
    cells: &[Cell<'_>],
    (rounds, seed): (u32, u64),
    together: &mut dyn Together,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome, Problem> {
    let begun = Instant::now();
    let mut states: Vec<CellState> = cells.iter().map(CellState::new).collect();
    let slices = rounds as usize * cells.len();
    for round in 0..rounds {
        for (position, index) in schedule::interleave(cells.len(), round, seed).into_iter().enumerate() {
            let cell = &cells[index];
            let share = (round as usize * cells.len() + position) as f64 / slices as f64;
            let remaining = match share > 0.0 {
                true => begun.elapsed().mul_f64((1.0 - share) / share),
                false => Duration::ZERO,
            };
            progress(Progress { share, remaining, cell: &cell.key });
            if together.begin(index, round) {
                states[index].slice(cell, round, begun, None, Some(&mut *together));
                if let Some(failure) = states[index].runs.iter().find_map(|run| run.failure.as_ref()) {
                    return Err(Problem::failed(format!("cell {}: {failure}", cell.key)));
                }
            } else {
                together.open()?;
            }
            together.end()?;
        }
    }
    let cells = states.into_iter().map(CellState::finish).collect();
    Ok(Outcome { cells, rounds, interrupted: interrupt::requested() })
}

#[cfg(test)]
mod tests {
    use iowhy_core::workload::{CacheState, Method, Workload};

    use super::*;
    use crate::runner::Bounds;
    use crate::script::Script;
    use crate::target::Target;

    /// Writes down what it is told; closes at one meeting.
    #[derive(Default)]
    struct Diary {
        told: Vec<String>,
        sits_out: Option<usize>,
        closes_after: Option<usize>,
        opened: usize,
    }

    impl Gate for Diary {
        fn open(&mut self) -> Result<(), Problem> {
            self.told.push("open".to_owned());
            match self.closes_after.is_some_and(|last| self.opened >= last) {
                true => Err(Problem::failed("rank 1 is gone")),
                false => Ok(()),
            }
        }

        fn opened(&mut self) {
            self.opened += 1;
            self.told.push("opened".to_owned());
        }
    }

    impl Together for Diary {
        fn begin(&mut self, cell: usize, round: u32) -> bool {
            self.told.push(format!("begin {cell} in {round}"));
            self.sits_out != Some(cell)
        }

        fn end(&mut self) -> Result<(), Problem> {
            self.told.push("end".to_owned());
            Ok(())
        }
    }

    fn measured(diary: &mut Diary) -> Result<Outcome, Problem> {
        let target = Target::scripted(Script::from_spec("scripted").unwrap());
        let workload = Workload::reads(Method::Pread, CacheState::Warm, 4096, 1 << 20);
        let cells = ["a", "b"].map(|key| Cell {
            key: key.to_owned(),
            arms: vec![(workload.clone(), &target)],
            bounds: Bounds { wall: Duration::from_millis(2), requests_per_thread: u64::MAX },
            listed: None,
            group: None,
            request_bytes: None,
        });
        run(&cells, (4, 7), diary, &mut |_| {})
    }

    #[test]
    fn every_slice_begins_at_the_gate_and_ends_together() {
        let mut diary = Diary::default();
        let outcome = measured(&mut diary).unwrap();
        assert!(outcome.cells.iter().all(|runs| runs[0].samples.len() == 4));
        let mut cells = Vec::new();
        for slice in diary.told.chunks(4) {
            assert_eq!(slice[1..], ["open", "opened", "end"]);
            cells.push(slice[0].clone());
        }
        // Each round has each cell once, in the same order for everybody with this seed.
        let mut sorted = cells.clone();
        sorted.sort();
        let all: Vec<String> =
            (0..2).flat_map(|cell| (0..4).map(move |round| format!("begin {cell} in {round}"))).collect();
        assert_eq!(sorted, all);
        let mut again = Diary::default();
        measured(&mut again).unwrap();
        assert_eq!(again.told, diary.told);
        // Who sits out meets the others as often, in the same order.
        let mut out = Diary { sits_out: Some(1), ..Diary::default() };
        let outcome = measured(&mut out).unwrap();
        assert_eq!(outcome.cells.iter().map(|runs| runs[0].samples.len()).collect::<Vec<_>>(), [4, 0]);
        let met =
            |diary: &Diary| diary.told.iter().filter(|told| *told != "opened").cloned().collect::<Vec<_>>();
        assert_eq!(met(&out), met(&diary));
    }

    #[test]
    fn a_gate_that_closes_ends_the_run_without_a_request() {
        let mut diary = Diary { closes_after: Some(3), ..Diary::default() };
        let problem = measured(&mut diary).unwrap_err();
        assert!(problem.message.contains("rank 1 is gone"), "{problem}");
        assert_eq!(diary.opened, 3);
        assert_eq!(diary.told.iter().filter(|told| *told == "end").count(), 3);
    }
}
