//! The phases of the lab: each a file with its boots and what must hold of their answers.

mod copying;
mod failures;
mod ladder;
mod layers;
mod read_ahead;
mod scsi;
mod stripe;

use super::answers::{Answer, Answers};
use super::boot::Boot;
use super::check::Checks;

/// A subject.
pub(super) struct Phase {
    /// What it is called.
    pub(super) name: &'static str,
    /// What is run.
    pub(super) boots: fn() -> Vec<Boot>,
    /// What must hold.
    pub(super) judge: fn(&Answers, &mut Checks),
}

/// All phases, those with the longest boots first: they are begun in this order.
pub(super) const ALL: &[Phase] = &[
    layers::PHASE,
    copying::PHASE,
    ladder::PHASE,
    failures::PHASE,
    scsi::PHASE,
    stripe::PHASE,
    read_ahead::PHASE,
];

/// A program of the guest ended well.
fn ended_well(checks: &mut Checks, name: &str, run: Answer<'_>) {
    let said = run.stderr().lines().next().unwrap_or("");
    let how = match run.exit() {
        Some(0) => String::new(),
        Some(code) => format!("exit code {code}: {said}"),
        None => "it was not run, or killed".to_owned(),
    };
    checks.holds(&format!("{name}: ends well"), run.exit() == Some(0), how);
}
