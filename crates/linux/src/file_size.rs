//! The limit on file sizes (RLIMIT_FSIZE, `ulimit -f`): a write beyond it fails with EFBIG.
//!
//! Non-goal: checking before a write. Invariant: an error of another kind is passed through unchanged.

use std::io;

use iowhy_core::problem::Problem;
use rustix::process::{Resource, getrlimit};

/// Adds the cause and the fix where a write failed for this limit, or for the largest file that the file system takes.
pub fn explained(problem: Problem, error: &io::Error) -> Problem {
    if error.raw_os_error() != Some(libc::EFBIG) {
        return problem;
    }
    match getrlimit(Resource::Fsize).current {
        Some(limit) => problem.hint(format!(
            "this shell limits files to {limit} bytes (RLIMIT_FSIZE): lift the limit with `ulimit -f unlimited`"
        )),
        None => problem.hint("the file system takes no file that large: name a place on another one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_too_large_gets_a_hint() {
        let hint = |code| {
            let error = io::Error::from_raw_os_error(code);
            explained(Problem::failed(format!("cannot write `x`: {error}")), &error).hint
        };
        assert_eq!(hint(libc::ENOSPC), None);
        let hint = hint(libc::EFBIG).expect("a cause and a fix");
        assert!(hint.contains("ulimit -f unlimited") || hint.contains("file system"), "{hint}");
    }
}
