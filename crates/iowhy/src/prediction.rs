//! Calibrated predictions right after a watch: a window of the program's calls repeated on this machine, as the user of this run.

use std::time::Duration;

use iowhy_core::finding::{FindingId, Prediction};
use iowhy_core::model::StackModel;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Profile;
use iowhy_diagnose::findings::Facts;
use iowhy_probe::interrupt;
use iowhy_replay::trial::{self, Calibration, Predicted};

use crate::analyzer::{Analyzer, Explained};
use crate::progress::Progress;
use crate::proof::cgroup_helper;
use crate::run_as;

/// Time for all findings together.
const TIME: Duration = Duration::from_secs(4);
/// Seed of order and intervals: the same in every run.
const SEED: u64 = 1;

/// Whether calls are repeated, and whether the program still runs then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calibrate {
    /// They are not.
    No,
    /// The program has ended.
    Ended,
    /// It may still run.
    Live,
}

/// The same explanation with calibrated gains, or the reason why a finding has none.
pub(crate) fn calibrated(
    analyzer: &Analyzer,
    profile: &Profile,
    model: Option<&StackModel>,
    explained: Explained,
    calibrate: Calibrate,
    quiet: bool,
) -> Explained {
    if calibrate == Calibrate::No || !explained.findings.iter().any(|f| f.id.is_repairable()) {
        return explained;
    }
    let predicted = match run_as::files() {
        Ok(_files) => {
            interrupt::install();
            let line = Progress::new(quiet);
            let facts = Facts::new(profile, &explained.account, model);
            let calibration = Calibration {
                facts: &facts,
                findings: &explained.findings,
                time: TIME,
                live: calibrate == Calibrate::Live,
                seed: SEED,
            };
            trial::predict(&calibration, &cgroup_helper::command, &mut |share, left, arm| {
                line.at(share, left, arm)
            })
        }
        Err(problem) => refused(&explained, &problem),
    };
    let known = |(id, prediction): &Predicted| Some((*id, prediction.as_ref().ok()?.clone()));
    let predictions: Vec<(FindingId, Prediction)> = predicted.iter().filter_map(known).collect();
    let mut explained = analyzer.predicted(profile, model, explained, &predictions);
    for finding in &mut explained.findings {
        let of = predicted.iter().find(|(id, _)| *id == finding.id);
        finding.not_calibrated = of.and_then(|(_, prediction)| prediction.as_ref().err().cloned());
    }
    explained
}

fn refused(explained: &Explained, problem: &Problem) -> Vec<Predicted> {
    let repairable = explained.findings.iter().filter(|f| f.id.is_repairable());
    repairable.map(|f| (f.id, Err(problem.message.clone()))).collect()
}
