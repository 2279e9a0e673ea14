//! Why a case does not run.

use iowhy_core::problem::Problem;

/// Why a case does not run.
#[derive(Debug)]
pub enum Skip {
    /// The machine cannot run the case; the reason in words.
    Unavailable(String),
    /// Something went wrong.
    Problem(Problem),
}

impl From<Problem> for Skip {
    fn from(problem: Problem) -> Self {
        Skip::Problem(problem)
    }
}
