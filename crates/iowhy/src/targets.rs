//! The targets of a command: found or made, and announced where the run destroys their data.

use std::time::{Duration, Instant};

use iowhy_core::environment::TargetKind;
use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_probe::environment;
use iowhy_probe::target::{self, Needs, Target};

use crate::output;
use crate::progress::Progress;

/// Finds or makes a target, with progress while a scratch file is filled.
pub(crate) fn resolve(spec: &str, needs: &Needs, progress: &Progress) -> Result<Target, Problem> {
    let begun = Instant::now();
    target::resolve(spec, needs, &mut |done, total| {
        let share = done as f64 / total.max(1) as f64;
        let spent = begun.elapsed().as_secs_f64();
        let remaining = if share > 0.0 { spent / share - spent } else { 0.0 };
        progress.at(share, Duration::from_secs_f64(remaining.max(0.0)), "writing the scratch file");
    })
}

/// Says on stderr what this run is about to destroy, also with `--quiet`: name, kind, size, model, what is on it. Called before
/// anything is written.
pub(crate) fn announce_destruction(targets: &[&Target], progress: &Progress) {
    for target in targets.iter().flat_map(|target| target.data_targets()) {
        let facts = &target.facts;
        let Some(content) = &facts.overwritten else { continue };
        let (kind, model, unused) = match facts.kind {
            TargetKind::BlockDevice => {
                let model = environment::environment(target).device_model;
                let model = model.map(|model| format!(", {model}")).unwrap_or_default();
                ("block device", model, "not mounted, not in use, ")
            }
            _ => ("file", String::new(), ""),
        };
        let text = format!(
            "this run writes over `{}` ({kind}, {}{model}), and its data is lost; on it: {unused}{content}",
            facts.name,
            Bytes(facts.size_bytes),
        );
        progress.aside(|| output::announce(&text));
    }
}
