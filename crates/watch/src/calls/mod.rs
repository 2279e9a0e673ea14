//! System calls as the observer in the kernel records them: what each means (`Shape`), and calls in their order as a
//! replay needs them (`CallLog`). Pure: it reads neither a clock nor `/proc`.
//! What cannot be known is left out, not guessed: offsets in the program's memory. Requests through io_uring are no calls.

mod credit;
mod errno;
mod file_key;
mod log;
mod packed;
mod shape;
mod whole;

pub(crate) use credit::Credit;
pub(crate) use errno::errno_name;
pub(crate) use file_key::FileKey;
pub(crate) use log::{CallLog, CallRecord, Durations};
pub(crate) use shape::{Direction, End, PathAt, Place, Shape, file_argument, open_flags, portable_flags};

/// Path of all files whose path is not known.
pub(crate) const UNKNOWN: &str = "?";
/// Path of all files beyond the bound.
pub(crate) const OTHERS: &str = "others";
