//! System calls seen in short bursts: counts and times by call, and what was done to which file.
//!
//! One burst is [`CallTracer::begin`] with the descriptors that are open, [`CallTracer::event`] for every record,
//! [`CallTracer::settle`] now and then so that new descriptors get their paths, and [`CallTracer::end`]. When to do it
//! is for [`Planner`] to say. What may not enter: the kernel, `/proc`, meaning.
//!
//! What cannot be known this way is left out, not guessed: offsets that are in the program's memory, requests
//! submitted through io_uring (only io_uring_enter itself is counted), and paths of files that were closed before
//! anybody could ask (they are the entry with the path [`UNKNOWN`]).

mod descriptors;
mod errno;
mod intervals;
mod log;
mod planner;
mod shape;
mod tracer;
mod uses;

pub use descriptors::OpenFile;
pub use planner::{Costs, Plan, Planner};
pub use tracer::{CallTracer, Tally};
pub use uses::{OTHERS, UNKNOWN};

#[cfg(test)]
mod tests;
