//! Trace files of other tools, read and written as requests.
//!
//! What may not enter: simulation, printing, time that is not the trace's own.
#![forbid(unsafe_code)]
