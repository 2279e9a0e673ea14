//! Plans that prove or refute an advice: the run as it was, the run with one finding repaired, and what the times of both say.
//!
//! The plan of the run as it was is made from the calls that bursts saw in their order ([`as_was`]), or from the faults on
//! mapped files where those are the run; many small files have a plan of their own ([`small_files`]). Each repair is a function from a plan to a plan ([`repair`], one a file). Whether
//! the replay is like the run at all is judged before any repair is believed ([`verdict`]). Pure functions; what may not
//! enter: I/O, a clock, the carrying out.

mod calls;
pub mod carry_out;
mod faults;
mod joined;
mod length;
mod placed;
pub mod proof;
mod room;
mod same_system;
mod shape;
mod small_files;
#[cfg(test)]
mod tests;
pub mod trial;
pub mod verdict;
pub mod what_if;

use iowhy_core::layer::Layer;
use iowhy_core::replay::Plan;

use iowhy_diagnose::account::Entry;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;

/// A plan of all arms takes about so long a run.
pub const ARM_NS: f64 = 3e8;
/// No arm of the run as it was is planned to take longer.
const LONGEST_ARM_NS: f64 = 1.2e9;
/// More passes than this are not made of one stretch.
const MOST_PASSES: u32 = 5000;
/// What a replay may write in one run.
const MOST_WRITTEN_BYTES: u64 = 512 << 20;

/// The run as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct AsWas {
    /// The calls.
    pub plan: Plan,
    /// The program made so many calls of these kinds for each call of the plan, its passes counted.
    pub scale: f64,
    /// Wall time of the program in what the plan replays, in all of the run.
    pub program_io_ns: f64,
    /// Part of the program's time that recording took, 0 to 1, by the watcher's own estimate.
    pub recording: f64,
    /// What is not in the plan though the program did it, in words.
    pub notes: Vec<String>,
}

/// Less of it is not worth a word.
const LEAST_SAID: f64 = 0.02;
/// No more than this part of a run is taken for what watching cost: the cost of each record is an estimate.
const MOST_RECORDING: f64 = 0.15;

impl AsWas {
    /// What the program took in the calls without being watched, as a replay does not have that either.
    pub fn unwatched_io_ns(&self) -> f64 {
        self.program_io_ns * (1.0 - self.recording.clamp(0.0, MOST_RECORDING))
    }
}

/// The plan of the run as it was.
///
/// # Errors
/// Why there can be none, in words that end a sentence.
pub fn as_was(facts: &Facts<'_>) -> Result<AsWas, String> {
    let mut found = calls_as_they_were(facts)?;
    placed::place(facts, &mut found);
    found.recording = recording(facts);
    if found.recording >= LEAST_SAID {
        found.notes.push(format!(
            "of the program's time about {:.0} % is left out, which watching took by its own estimate",
            100.0 * found.recording.min(MOST_RECORDING)
        ));
    }
    Ok(found)
}

/// Part of the run that recording took: it is CPU time of whichever threads ran.
pub(crate) fn recording(facts: &Facts<'_>) -> f64 {
    let ran: u64 = facts.profile.threads.iter().map(|t| t.running_ns).sum();
    let ran = (ran as f64).max(facts.account.wall_ns);
    if ran > 0.0 { (facts.profile.observer.in_program_ns / ran).clamp(0.0, 1.0) } else { 0.0 }
}

fn calls_as_they_were(facts: &Facts<'_>) -> Result<AsWas, String> {
    let wall = |operations: &[Operation]| wall_ns(facts, operations);
    let mapped = wall(&[Operation::Fault, Operation::Map]);
    let calls = wall(&[Operation::Read, Operation::Write, Operation::Sync]);
    if wall(&[Operation::Ring, Operation::Aio]) > calls + mapped {
        return shape::as_was(facts);
    }
    if mapped > calls
        && let Some(found) = faults::as_was(facts)?
    {
        return Ok(found);
    }
    calls::as_was(facts)
}

/// Wall time of these operations, with the queueing for a CPU that is shared out in proportion: where the thread queued
/// says little of what for.
fn wall_ns(facts: &Facts<'_>, operations: &[Operation]) -> f64 {
    let queued = |e: &Entry| e.class.layer == Layer::CpuQueue;
    let of = facts.account.sum(|e| operations.contains(&e.class.operation) && !queued(e)).wall_ns;
    of * with_queueing(facts)
}

/// How many times longer the run was for queueing for a CPU.
fn with_queueing(facts: &Facts<'_>) -> f64 {
    let queue = facts.account.sum(|e| e.class.layer == Layer::CpuQueue).wall_ns;
    let active = facts.account.wall_ns - facts.account.idle_wall_ns;
    if queue > 0.0 && active > queue { active / (active - queue) } else { 1.0 }
}

/// Passes that make a plan take about [`ARM_NS`] where one takes `pass_ns`.
fn passes(pass_ns: f64, most: f64) -> u32 {
    passes_of(ARM_NS, pass_ns, most)
}

/// Passes that make a plan take about `arm_ns`.
fn passes_of(arm_ns: f64, pass_ns: f64, most: f64) -> u32 {
    let wanted = (arm_ns / pass_ns.max(1.0)).ceil();
    wanted.clamp(1.0, most.clamp(1.0, f64::from(MOST_PASSES))) as u32
}
