//! The program under watch as a process: started as a shell would start it, or found running; waited for, reaped.
//! Invariant: nothing here slows or stops the program. It waits once, before its first instruction, and from then on it does
//! not depend on iowhy: if iowhy is killed, it runs on.

mod adopt;
mod exec;
mod existing;
mod find;
mod start;

pub use adopt::{Adoption, Reaped};
pub use existing::Existing;
pub use find::{Refusal, find};
pub use start::{Child, Usage};

#[cfg(test)]
mod tests;
