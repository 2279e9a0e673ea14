//! The facade: joins the spokes into commands, defines the record, renders results. The binary is a thin shell
//! around [`command`].
//!
//! What may not enter: system calls that measure (probe), arithmetic that explains (explain).
#![forbid(unsafe_code)]

pub mod analyzer;
mod calibration;
pub mod cli;
pub mod command;
mod container;
mod cross_check;
pub mod ending;
pub mod fio;
pub mod flamegraph;
mod live;
mod machine;
mod measurement;
mod observation;
pub mod output;
pub mod pending;
pub mod plan;
mod prediction;
mod profile_files;
pub mod progress;
pub mod proof;
pub mod rank;
pub mod record;
mod record_file;
mod recorded_run;
mod rendezvous;
pub mod report;
mod ruler;
pub mod run_as;
pub mod screen;
pub mod shell;
mod simulation;
pub mod store;
mod targets;
mod trace_file;
