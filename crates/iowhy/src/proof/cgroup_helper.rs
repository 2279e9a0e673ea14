//! The process that replays inside a control group: this binary with a word that is no documented option.

use std::process::Command;

use iowhy_core::problem::Problem;
use iowhy_replay::carry_out;

const WORD: &str = "--serve-replay";

pub(crate) fn command() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(WORD);
    command
}

/// Serves a replay if this process was started for it, else `None`.
pub fn serve() -> Option<Result<(), Problem>> {
    let mut words = std::env::args_os().skip(1);
    let asked = words.next().is_some_and(|word| word == WORD) && words.next().is_none();
    asked.then(carry_out::serve)
}
