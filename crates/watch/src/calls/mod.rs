//! System calls seen in short bursts: counts and times by call, and what was done to which file. Pure: it reads neither a
//! clock nor `/proc`. [`Planner`] decides when a burst begins and ends.
//! What cannot be known is left out, not guessed: offsets in the program's memory, requests submitted through io_uring, and
//! paths of files that were closed before anybody could ask (the entry with the path [`UNKNOWN`]).

mod descriptors;
mod errno;
mod intervals;
mod log;
mod planner;
mod shape;
mod tracer;
mod uses;

pub use descriptors::OpenFile;
pub(crate) use errno::errno_name;
pub use planner::{Costs, Plan, Planner};
pub(crate) use shape::{Direction, End, Place, Shape};
pub use tracer::{CallTracer, Tally};
pub use uses::{OTHERS, UNKNOWN};

#[cfg(test)]
mod tests;
