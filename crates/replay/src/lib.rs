//! Proves a finding: replays a recorded run with and without its repair, and judges the times.
//!
//! [`plan`] makes the baseline, [`carry_out`] runs plans, [`trial`] measures them in rounds, [`verdict`] judges; [`elsewhere`]
//! is the same run on other file systems. The repairs are in `iowhy_diagnose`, beside their findings.

pub mod carry_out;
pub mod elsewhere;
mod fidelity;
pub mod parts;
pub mod plan;
pub mod proof;
mod run_facts;
mod staying;
pub mod trial;
pub mod verdict;
