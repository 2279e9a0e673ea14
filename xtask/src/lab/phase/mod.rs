//! The phases of the lab: each a file with its boots and what must hold of their answers.

mod copying;
mod disks;
mod encryption;
mod failures;
mod interleave;
mod kernels;
mod ladder;
mod layers;
mod paced;
mod read_ahead;
mod repeat;
mod scsi;
mod settings;
mod stacked;
mod stripe;
mod targets;
mod watched;

use super::answers::{Answer, Answers, Cell, LAYERS};
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
    kernels::PHASE,
    paced::PHASE,
    copying::PHASE,
    ladder::PHASE,
    encryption::PHASE,
    failures::PHASE,
    targets::PHASE,
    interleave::PHASE,
    stacked::PHASE,
    scsi::PHASE,
    settings::PHASE,
    stripe::PHASE,
    disks::PHASE,
    read_ahead::PHASE,
    repeat::PHASE,
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

/// Of two runs the second has `put_in` more in one layer, and nothing else changed.
fn moved(
    checks: &mut Checks,
    name: &str,
    (before, after): (Answer<'_>, Answer<'_>),
    key: &str,
    layer: &str,
    (put_in, tolerance): (Option<f64>, f64),
) {
    let (a, b) = (before.cell(key), after.cell(key));
    let difference = |of: &dyn Fn(Cell<'_>) -> Option<f64>| Some(of(b)? - of(a)?);
    checks.near(&format!("{name}: in the time"), difference(&|cell| cell.time()), put_in, tolerance);
    checks.near(&format!("{name}: in `{layer}`"), difference(&|cell| cell.layer(layer)), put_in, tolerance);
    for other in LAYERS.iter().filter(|id| **id != layer) {
        let moved = difference(&|cell| cell.layer(other));
        if moved != Some(0.0) {
            checks.small(&format!("{name}: not in `{other}`"), moved, put_in, tolerance);
        }
    }
    checks.near(&format!("{name}: layers sum to the whole"), b.sum(), b.time(), 1e-6);
}
