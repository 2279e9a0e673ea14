//! One file per command: from options to a finished record. Each reads top to bottom as the story of the command.

mod analysis;
pub mod bench;
pub mod path;
mod shared;

/// How a command ended when it did not end with a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Exit code 0.
    Done,
    /// Something was measured, and something failed, was not what it claims, or was interrupted: exit code 1.
    SomethingFailed,
}
