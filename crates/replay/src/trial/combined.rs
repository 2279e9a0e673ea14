//! Gain of all repairs where small files have a baseline of their own: what each replay saves of the run is added up.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::{FindingId, Gain};
use iowhy_core::replay::Plan;
use iowhy_diagnose::findings::{Changed, changed};

use crate::proof::{FindingProof, Together};
use crate::verdict::Verdict;

/// Adds the proven gain of the small files to that of the calls: of all their repairs in one replay (`of_calls`), or of the
/// best repair. Without two gains to add: `of_calls`.
pub(super) fn with_files(
    of_calls: Option<Together>,
    findings: &[FindingProof],
    calls: &Plan,
) -> Option<Together> {
    // Then the calls include opening and removing files, those of the small files too.
    if calls.any(|a| a.op.makes_file()) {
        return of_calls;
    }
    let proven = |f: &&FindingProof| f.verdict == Verdict::Proven;
    let of_files = |f: &&FindingProof| f.baseline.is_some() && changed(f.id) == Changed::SmallFiles;
    let files = findings.iter().filter(proven).find(of_files);
    let gain = |f: &FindingProof| f.measured.as_ref().map_or(0.0, |m| m.value);
    let best = findings
        .iter()
        .filter(proven)
        .filter(|f| f.baseline.is_none() && f.id != FindingId::DeviceSaturated)
        .max_by(|a, b| gain(a).total_cmp(&gain(b)))
        .map(|f| (vec![f.id], f.how.clone().unwrap_or_default(), f.measured));
    let all = of_calls.as_ref().filter(|t| t.verdict == Verdict::Proven);
    let calls = all.map(|t| (t.ids.clone(), t.how.clone(), t.measured)).or(best);
    let (Some(files), Some((mut ids, how, Some(of_calls_gain)))) = (files, calls) else { return of_calls };
    let Some(of_files_gain) = files.measured else { return of_calls };
    let measured = both(&of_calls_gain, &of_files_gain);
    ids.push(files.id);
    Some(Together {
        ids,
        how: format!("{how}; {}", files.how.as_deref().unwrap_or_default()),
        measured: Some(measured),
        modelled: None,
        verdict: Verdict::of_gain(&measured),
        reason: Some("replayed apart, and the savings added up".to_owned()),
        io_ns: Vec::new(),
    })
}

/// The gain of two savings of one run that do not overlap.
fn both(a: &Estimate, b: &Estimate) -> Estimate {
    let saved = |gain: f64| 1.0 - 1.0 / gain.max(f64::MIN_POSITIVE);
    let gain = |a: f64, b: f64| 1.0 / (1.0 - saved(a) - saved(b)).max(1.0 / Gain::MAX);
    Estimate {
        value: gain(a.value, b.value),
        low: gain(a.low, b.low),
        high: gain(a.high, b.high),
        unit: Unit::Ratio,
        n: a.n.min(b.n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::BaselineReplay;

    fn gain(value: f64) -> Option<Estimate> {
        Some(Estimate { value, low: value * 0.9, high: value * 1.1, unit: Unit::Ratio, n: 9 })
    }

    fn proved(id: FindingId, value: f64, verdict: Verdict, of_files: bool) -> FindingProof {
        let replay = BaselineReplay {
            fidelity: None,
            reproduces: true,
            program_io_s: 1.0,
            scale: 1.0,
            calls: 1,
            io_ns: vec![],
            recorded: None,
            replayed: vec![],
            notes: vec![],
            plan: iowhy_core::replay::Plan::default(),
        };
        FindingProof {
            id,
            predicted: None,
            measured: gain(value),
            modelled: None,
            verdict,
            how: Some(format!("repaired {}", id.id())),
            reason: None,
            failed: false,
            io_ns: vec![],
            others: vec![],
            baseline: of_files.then_some(replay),
        }
    }

    #[test]
    fn what_two_replays_save_is_added() {
        let files = proved(FindingId::ManySmallFiles, 2.0, Verdict::Proven, true);
        let seek = proved(FindingId::StdioSeek, 1.6, Verdict::Proven, false);
        let calls = Plan::default();
        let both = with_files(None, &[files.clone(), seek.clone()], &calls).unwrap();
        // Half of the run, and three eighths of it: an eighth is left.
        assert!((both.measured.unwrap().value - 8.0).abs() < 1e-9, "{both:?}");
        assert_eq!(both.ids, [FindingId::StdioSeek, FindingId::ManySmallFiles]);
        assert_eq!(both.verdict, Verdict::Proven);
        assert!(both.reason.is_some_and(|why| why.contains("added")));
        // Together they never exceed the run.
        let much = proved(FindingId::StdioSeek, 3.0, Verdict::Proven, false);
        let most = with_files(None, &[files.clone(), much], &calls).unwrap().measured.unwrap();
        assert_eq!((most.value, most.high), (Gain::MAX, Gain::MAX));
        // Opening and removing files is in both.
        let renew =
            iowhy_core::replay::Action::one(iowhy_core::replay::Op::MakeFile { stays: false }, 0, 0, 0, 0.0);
        let journals = Plan { threads: vec![vec![renew]], ..Plan::default() };
        assert_eq!(with_files(None, &[files.clone(), seek.clone()], &journals), None);
        let less = proved(FindingId::DeviceSaturated, 2.0, Verdict::Proven, false);
        assert_eq!(with_files(None, &[files.clone(), less], &calls), None, "other bytes");
        // What is not proven is not added.
        let not = proved(FindingId::StdioSeek, 1.6, Verdict::Inconclusive, false);
        assert_eq!(with_files(None, &[files.clone(), not], &calls), None);
        assert_eq!(with_files(None, &[seek], &calls), None);
        assert_eq!(with_files(None, &[files], &calls), None);
    }

    #[test]
    fn what_was_tried_together_counts_before_the_best_alone() {
        let of_calls = Together {
            ids: vec![FindingId::SmallRequests, FindingId::SyncPerWrite],
            how: "both".to_owned(),
            measured: gain(1.25),
            modelled: None,
            verdict: Verdict::Proven,
            reason: None,
            io_ns: vec![1.0],
        };
        let files = proved(FindingId::ManySmallFiles, 2.0, Verdict::Proven, true);
        let calls = Plan::default();
        let all = with_files(Some(of_calls.clone()), std::slice::from_ref(&files), &calls).unwrap();
        assert_eq!((all.ids.len(), all.how.as_str()), (3, "both; repaired many-small-files"));
        assert!((all.measured.unwrap().value - 1.0 / 0.3).abs() < 1e-9);
        let alone = with_files(Some(of_calls.clone()), &[], &calls);
        assert_eq!(alone, Some(of_calls));
    }
}
