//! What fio and iowhy tell each other: job files in and out, latencies in the classes of fio's JSON.
//!
//! fio stays the load generator with every knob. The common part of its job files is carried out here, the rest is named;
//! and what was measured here can be checked by fio. What may not enter: measuring, the command line.

mod bins;
mod export;
mod import;
mod job;
mod json;

pub use export::job_of;
pub use import::{Imported, import};
pub use job::{Section, read};
pub use json::json;
