//! The whole command, as a user runs it: the binary's exit code, stdout, stderr, JSON and what it leaves behind.
//!
//! One program for all subjects, so that it is linked once and tests that need a quiet machine can ask for it.
//! Invariants: no absolute times; every test passes as root and as an ordinary user whose only writable place is
//! `$TMPDIR`; what a machine cannot show is skipped aloud (`skipped: REASON` on stderr).
//!
//! `IOWHY_BIN` names another binary to test; `IOWHY_UPDATE=1` rewrites the expected screens.

mod bad_input;
mod behaviour;
mod bench_ranks;
mod callers;
#[path = "../cases_binary/mod.rs"]
mod cases_binary;
mod classic;
mod common;
mod compare;
mod compare_programs;
mod contract;
mod destroy_data;
mod doctor;
mod doctor_served;
mod doctor_try;
mod export;
mod hidden;
mod history;
mod hostile;
mod launchers;
mod live;
mod mrc;
mod old_records;
mod outputs;
mod path_endings;
mod prediction;
mod profile_files;
mod program_advice;
mod prove;
mod prove_files;
mod prove_groups;
mod ranks;
mod record;
mod replay;
mod report;
mod run_as;
mod run_as_files;
mod schema;
mod scripted;
mod served;
mod servers;
mod signals;
mod sim;
mod stripe;
mod stripe_lab;
mod tails;
mod trace;
mod traps;
mod tree;
mod truth;
mod watch;
mod watch_harm;
mod watch_record;
mod whole_machine;
