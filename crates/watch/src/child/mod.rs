//! The program under watch as a process: started as a shell would start it, or found running; waited for, reaped.
//!
//! What may not enter: events and what they mean. Nothing here slows or stops the program: it waits once, before its
//! first instruction, and from then on it does not depend on us. Should we be killed, it runs on.

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
