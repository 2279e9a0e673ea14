//! The facade: joins the spokes into commands, defines the record, renders results. The binary is a thin shell
//! around [`command`].
//!
//! What may not enter: system calls that measure (probe), arithmetic that explains (explain).
#![forbid(unsafe_code)]

pub mod analyzer;
pub mod cli;
pub mod command;
pub mod fio;
pub mod flamegraph;
pub mod nearest;
pub mod output;
pub mod pending;
pub mod plan;
pub mod progress;
pub mod record;
pub mod report;
pub mod run_as;
pub mod screen;
pub mod shell;
pub mod store;
