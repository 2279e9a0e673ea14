//! The process that carries a replay out inside a control group: this binary once more, with a word that is no option and
//! stands in no help, because nobody but `iowhy prove` has a use for it.

use std::process::Command;

use iowhy_core::problem::Problem;
use iowhy_replay::carry_out;

/// The word.
const WORD: &str = "--serve-replay";

/// The command of such a process.
pub(super) fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(WORD);
    command
}

/// Carries a replay out, where this process was started for it; `None`: it was not.
pub fn serve() -> Option<Result<(), Problem>> {
    let mut words = std::env::args_os().skip(1);
    let asked = words.next().is_some_and(|word| word == WORD) && words.next().is_none();
    asked.then(carry_out::serve)
}
