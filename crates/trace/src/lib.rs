//! Trace files of other tools, read and written as requests.
//!
//! [`open()`] detects the format of a file and gives a [`Trace`] that streams [`Request`]s in batches; [`mod@write`] turns requests
//! into files; [`survey`] sums a trace up. Memory is bounded for any file, losses are counted
//! by reason, and no input makes it panic.
//!
//! [`Request`]: iowhy_core::request::Request
#![forbid(unsafe_code)]

mod binary;
mod columns;
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

pub use columns::ColumnSpec;
pub use error::{Position, TraceError};
pub use format::{Format, Kind};
pub use input::Compression;
pub use losses::{Loss, Losses};
pub use names::Names;
pub use open::{CUT_OFF, Trace, from_reader, open};
pub use reader::{BlockAction, Options, Reader};
