//! Trace files of other tools, read and written as requests.
//!
//! [`open`] finds out what a file is and gives a [`Trace`] that streams [`Request`]s in batches; [`mod@write`] turns requests
//! into files; [`survey`] sums a trace up. Memory is bounded whatever a file holds, what was lost on the way is counted
//! by reason, and no input makes it panic. What may not enter: simulation, printing, time that is not the trace's own.
//!
//! [`Request`]: iowhy_core::request::Request
#![forbid(unsafe_code)]

mod binary;
mod detect;
mod error;
mod fit;
mod format;
mod hash;
mod input;
mod losses;
mod names;
mod number;
mod op_code;
mod open;
mod ordered;
mod reader;
pub mod survey;
mod text;
pub mod write;

pub use error::{Place, TraceError};
pub use format::{Format, Kind};
pub use input::Compression;
pub use losses::{Loss, Losses};
pub use names::Names;
pub use open::{CUT_OFF, Trace, from_reader, open};
pub use reader::{BlockAction, Options, Reader};
