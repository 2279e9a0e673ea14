//! The verdict on a repair, from the times of its replay and of the baseline.
//!
//! The saved I/O time is put into the account of the run, where what is not I/O stays: that gain is measured. With the program's
//! own loop around removed calls it is another figure, which is modelled.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::Gain;
use iowhy_core::profile::SampledShare;
use iowhy_core::stats::{self, verdict_of_ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fidelity::fidelity;
use crate::parts::Rounds;
use crate::plan::Baseline;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::{Facts, OwnCode};

/// Smallest relative gain that matters.
const MIN_GAIN: f64 = 0.05;

/// The verdict of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ProofVerdict")]
pub enum Verdict {
    /// Faster by an amount that matters.
    Proven,
    /// At best faster by less than matters.
    NotConfirmed,
    /// Slower by an amount that matters.
    Contradicted,
    /// The interval allows several of these, or the baseline does not reproduce the run.
    Inconclusive,
}

impl Verdict {
    /// As printed.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Proven => "proven",
            Verdict::NotConfirmed => "not confirmed",
            Verdict::Contradicted => "contradicted",
            Verdict::Inconclusive => "inconclusive",
        }
    }

    pub(crate) fn of_gain(gain: &Estimate) -> Verdict {
        match verdict_of_ratio(&gain.reciprocal(1.0, Unit::Ratio), MIN_GAIN) {
            stats::Verdict::Improved => Verdict::Proven,
            stats::Verdict::Regressed => Verdict::Contradicted,
            stats::Verdict::WithinNoise => Verdict::NotConfirmed,
            stats::Verdict::Inconclusive => Verdict::Inconclusive,
        }
    }
}

/// Times of a repair and its baseline, and what the repair leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement<'a> {
    pub(crate) baseline: &'a Baseline,
    /// Times of the baseline.
    pub(crate) unchanged: Rounds<'a>,
    /// I/O time of the repair, round by round.
    pub(crate) repaired_ns: &'a [f64],
    /// Share of calls that the repair removes.
    pub(crate) removed_share: f64,
    /// Share of the I/O time that the repair leaves as it is.
    pub(crate) unaffected_share: f64,
    /// How many times faster calls are that the repair leaves as they are, at least 1.
    pub(crate) staying_faster: f64,
    pub(crate) seed: u64,
}

/// Old wall time of the whole run over new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gains {
    /// By what the replays save in calls.
    pub(crate) measured: Estimate,
    /// With the program's own time around removed calls, which no replay shows; where calls are removed.
    pub(crate) modelled: Option<Estimate>,
}

/// The gains; `None` with too few rounds.
///
/// Profiling overhead is in neither time. The interval adds by squares: noise of the rounds; the replay's error (the saving
/// relative to the baseline replay, as the program's time less the repaired replay, and as the difference of both replays);
/// sampling error of the I/O share, where that was not recorded; where it was, the difference of the two figures for the time beside
/// the calls; what the replay may contain of the program's own code; and, where it is modelled, the program's own time, of which what stays may
/// be as much faster as calls that stay.
pub(crate) fn gains(facts: &Facts<'_>, measurement: &Measurement<'_>) -> Option<Gains> {
    let Measurement { baseline, unchanged, repaired_ns, removed_share, unaffected_share, .. } = *measurement;
    let seed = measurement.seed;
    let ratio = stats::paired_ratio(repaired_ns, unchanged.io_ns, seed)?;
    let wall = baseline.program_wall_ns(facts);
    // The share of the account is of the wall clock, so the I/O time is at most that.
    let io = baseline.io_ns(stats::median(unchanged.io_ns)?).min(wall);
    if wall <= 0.0 || io <= 0.0 {
        return None;
    }
    let fidelity = fidelity(baseline, &unchanged, seed)?.value;
    // Saved share of the I/O if the replay's error is spread evenly, in repaired calls only, and in the other calls only.
    let relative = 1.0 - ratio.value;
    let readings = [relative, 1.0 - ratio.value * fidelity, (relative * fidelity).min(relative.max(1.0))];
    let least_read = readings.into_iter().fold(f64::INFINITY, f64::min);
    let most_read = readings.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let saved_io = |ratio: f64| io * (1.0 - ratio) * (1.0 - unaffected_share);
    let likely = saved_io(ratio.value);
    let known = baseline.recording.is_some() && baseline.plan.threads.len() == 1;
    let (fewer, more) = if known { (0.0, 0.0) } else { sampling_error_ns(facts, wall, io) };
    // A slower repair loses more where there is more I/O.
    let sampling = [-fewer * likely / io, more * likely / io];
    let touching = baseline.io_bounds_ns().map(|bound| (bound.min(wall) - io) * likely / io);
    let recording = baseline.recording.map_or([0.0; 2], |r| r.error_ns(wall - io));
    let less = [
        recording[0],
        likely - saved_io(ratio.high),
        likely - saved_io(1.0 - least_read),
        -sampling[0].min(sampling[1]),
        -touching[0].min(touching[1]),
    ];
    let more = [
        recording[1],
        saved_io(ratio.low) - likely,
        saved_io(1.0 - most_read) - likely,
        sampling[0].max(sampling[1]),
        touching[0].max(touching[1]),
    ];
    let by_squares = |parts: &[f64], last: f64| {
        parts.iter().chain([&last]).map(|part| part.max(0.0).powi(2)).sum::<f64>().sqrt()
    };
    let estimate = |own: OwnCode, removed_share: f64| {
        let gain = |saved: f64| gain_of_saving(facts, wall, saved, removed_share);
        // Between the ends nothing is known: their geometric mean has the least largest factor of error.
        let value = (gain(likely + own.least_ns) * gain(likely + own.most_ns)).sqrt();
        let saved = likely + own.seen_ns;
        Estimate {
            value,
            low: gain(saved - by_squares(&less, own.seen_ns - own.least_ns)).min(value),
            high: gain(saved + by_squares(&more, own.most_ns - own.seen_ns)).max(value),
            unit: Unit::Ratio,
            n: ratio.n,
        }
    };
    let modelled = (removed_share > 0.0).then(|| {
        let own = own_code(facts, measurement, io - baseline.program_io_ns);
        estimate(own, removed_share)
    });
    Some(Gains { measured: estimate(OwnCode::default(), 0.0), modelled })
}

/// The program's own code that goes with this share of the calls: no more than what was recorded between them, and without what is in the
/// replay. At most, what stays is as much faster as calls that stay.
fn own_code(facts: &Facts<'_>, measurement: &Measurement<'_>, in_replay_ns: f64) -> OwnCode {
    let Measurement { baseline, removed_share, staying_faster, .. } = *measurement;
    let OwnCode { least_ns, seen_ns, most_ns } = OwnCode::new(facts);
    let between = baseline.between_calls_ns().unwrap_or(f64::INFINITY);
    let rest = |ns: f64| (removed_share * ns.min(between) - in_replay_ns.max(0.0)).max(0.0);
    let stays_ns = (1.0 - removed_share) * most_ns.min(between);
    OwnCode {
        least_ns: rest(least_ns),
        seen_ns: rest(seen_ns),
        most_ns: rest(most_ns)
            + removed_share * baseline.goes_along_ns
            + stays_ns * (1.0 - 1.0 / staying_faster.max(1.0)),
    }
}

/// Interrupts shrink with the run; where calls are removed, they are in [`OwnCode`].
fn gain_of_saving(facts: &Facts<'_>, wall: f64, saved: f64, removed_share: f64) -> f64 {
    let interrupts = facts.account.sum(|e| e.busy && e.class.operation == Operation::Interrupt).wall_ns;
    let shrinking = if removed_share > 0.0 { 0.0 } else { interrupts.min(0.5 * wall) };
    let with_interrupts = saved + shrinking * (saved / (wall - shrinking)).clamp(0.0, 1.0);
    wall / (wall - with_interrupts).max(wall / Gain::MAX)
}

/// How much less and how much more of the wall time may be I/O (95 %, Wilson, by the samples of CPU time). Sleeps count as
/// known; what is not I/O counts as CPU time as far as there is any.
fn sampling_error_ns(facts: &Facts<'_>, wall: f64, io: f64) -> (f64, f64) {
    let busy = facts.account.sum(|e| e.busy);
    if busy.wall_ns <= 0.0 {
        return (0.0, 0.0);
    }
    let rest = ((wall - io) / busy.wall_ns).clamp(0.0, 1.0);
    let seen = SampledShare { hits: (rest * busy.events as f64).round() as u64, n: busy.events };
    let Some((low, high)) = seen.interval() else { return (0.0, 0.0) };
    ((high - rest).max(0.0) * busy.wall_ns, (rest - low).max(0.0) * busy.wall_ns)
}
