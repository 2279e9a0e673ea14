//! The facade: joins the spokes into commands, defines the record, renders results. The binary is a thin shell
//! around [`command`].
//!
//! What may not enter: system calls that measure (probe), arithmetic that explains (explain).
#![forbid(unsafe_code)]

pub mod analyzer;
pub mod calibration;
pub mod cli;
pub mod command;
pub mod cross_check;
pub mod ending;
pub mod fio;
pub mod flamegraph;
pub mod machine;
pub mod measurement;
pub mod nearest;
pub mod observation;
pub mod output;
pub mod pending;
pub mod plan;
pub mod progress;
pub mod proof;
pub mod record;
pub mod record_file;
pub mod report;
pub mod ruler;
pub mod run_as;
pub mod screen;
pub mod shell;
pub mod simulation;
pub mod store;
pub mod targets;
pub mod trace_file;
