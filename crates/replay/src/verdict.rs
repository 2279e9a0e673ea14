//! From the times of a replay to one word on an advice.
//!
//! The replay of the run as it was is held against the program first: its time in the calls, scaled to the whole run, over
//! what the account of the run holds ([`fidelity`]). Then the ratio of repaired to unrepaired time, taken within rounds, is
//! put into the account: what is not I/O stays, and of the program's own loop around calls that are spared goes what the
//! prediction takes to go. What may not enter: measuring.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::finding::Gain;
use iowhy_core::profile::SampledShare;
use iowhy_core::stats::{self, Verdict, verdict_of_ratio};
use serde::{Deserialize, Serialize};

use super::AsWas;
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::{Facts, Range, around};

/// A gain of less than this is not worth anybody's attention.
pub const THRESHOLD: f64 = 0.05;
/// The replay must take the program's time within this part of it, or nothing that it says is believed. A wide interval
/// does not help: what was not reproduced was not reproduced.
pub const FAITHFUL: f64 = 0.35;

/// What became of an advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The repaired run is surely faster, by an amount that matters.
    Proven,
    /// If it is faster at all, then by less than matters.
    NotConfirmed,
    /// The repaired run is surely slower.
    Contradicted,
    /// Neither could be shown.
    CannotTell,
}

impl Word {
    /// As it is printed.
    pub fn words(self) -> &'static str {
        match self {
            Word::Proven => "proven",
            Word::NotConfirmed => "not confirmed",
            Word::Contradicted => "contradicted",
            Word::CannotTell => "cannot tell",
        }
    }
}

/// Time of the replay of the unchanged run over that of the program, in the calls that are replayed; 1 is the same.
/// `io_ns` holds the times of the rounds.
pub fn fidelity(as_was: &AsWas, io_ns: &[f64], seed: u64) -> Option<Estimate> {
    let unwatched = as_was.unwatched_io_ns();
    if unwatched <= 0.0 {
        return None;
    }
    let scaled: Vec<f64> = io_ns.iter().map(|ns| ns * as_was.scale / unwatched).collect();
    stats::bootstrap_median(&scaled, seed, Unit::Ratio)
}

/// Whether a replay with this fidelity is like the program.
pub fn is_faithful(fidelity: &Estimate) -> bool {
    (1.0 / (1.0 + FAITHFUL)..=1.0 + FAITHFUL).contains(&fidelity.value)
}

/// What the measured arms give for the whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Old wall time over new.
    pub gain: Estimate,
    /// The word.
    pub word: Word,
}

/// The gain of the whole run from the times of both arms, round by round. `spared`: the part of the calls that the repair
/// does not make. `kept`: the part of the run that it leaves as it was.
///
/// Time that recording took in the calls is in neither run. The interval holds, as errors of their own (added by squares):
/// the noise of the rounds; that the replay is not quite the program (what is saved is taken in relation to the replay of the run
/// as it was; as the program's time less that of the repaired replay; and as the difference of the two replays: where these
/// differ, all are in); the own code that goes with calls; and the looks at the run from which it is known what of it is I/O.
pub fn measured(
    facts: &Facts<'_>,
    as_was: &AsWas,
    io_ns: (&[f64], &[f64]),
    spared: f64,
    kept: f64,
    seed: u64,
) -> Option<Measured> {
    let ratio = stats::paired_ratio(io_ns.1, io_ns.0, seed)?;
    // Not more than the run held besides: the account's share is of the wall clock.
    let watched_io = as_was.program_io_ns.min(facts.account.wall_ns);
    let io = as_was.unwatched_io_ns().min(watched_io);
    let wall = facts.account.wall_ns - (watched_io - io);
    if wall <= 0.0 || io <= 0.0 {
        return None;
    }
    let fidelity = fidelity(as_was, io_ns.0, seed)?.value;
    // Saved parts of the I/O, as if the replay differed from the program in equal parts everywhere, in what is repaired
    // only, and in what is not repaired only.
    let relative = 1.0 - ratio.value;
    let readings = [relative, 1.0 - ratio.value * fidelity, (relative * fidelity).min(relative.max(1.0))];
    let least_read = readings.into_iter().fold(f64::INFINITY, f64::min);
    let most_read = readings.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let calls = as_was.scale * as_was.plan.calls() as f64 * f64::from(as_was.plan.passes.max(1));
    let saved_io = |ratio: f64| io * (1.0 - ratio) * (1.0 - kept);
    let own = if spared > 0.0 {
        around(facts, calls, saved_io(ratio.value).max(0.0), Range::exact(spared)).0
    } else {
        Range::default()
    };
    // Interrupts come with time, whatever runs; where calls are spared they are counted there.
    let interrupts = facts.account.sum(|e| e.busy && e.class.operation == Operation::Interrupt).wall_ns;
    let shrinking = if spared > 0.0 { 0.0 } else { interrupts.min(0.5 * wall) };
    let with_interrupts = |saved: f64| saved + shrinking * (saved / (wall - shrinking)).clamp(0.0, 1.0);
    let least = wall / Gain::MAX;
    let gain = |saved: f64| wall / (wall - with_interrupts(saved)).max(least);
    let likely = saved_io(ratio.value);
    let (fewer, more) = looks(facts, wall, io);
    // A repair that is slower loses more where there is more I/O.
    let with_looks = [-fewer * likely / io, more * likely / io];
    let less = [
        likely - saved_io(ratio.high),
        likely - saved_io(1.0 - least_read),
        own.likely - own.low,
        -with_looks[0].min(with_looks[1]),
    ];
    let more = [
        saved_io(ratio.low) - likely,
        saved_io(1.0 - most_read) - likely,
        own.high - own.likely,
        with_looks[0].max(with_looks[1]),
    ];
    let by_squares = |parts: [f64; 4]| parts.iter().map(|p| p.max(0.0).powi(2)).sum::<f64>().sqrt();
    let saved = likely + own.likely;
    let value = gain(saved);
    let gain = Estimate {
        value,
        low: gain(saved - by_squares(less)).min(value),
        high: gain(saved + by_squares(more)).max(value),
        unit: Unit::Ratio,
        n: ratio.n,
    };
    Some(Measured { gain, word: word(&gain) })
}

/// How much less, and how much more, of the run than it seems may be I/O, in nanoseconds of its wall clock: what is not I/O
/// was seen in so many of the samples of its CPU time (95 %, Wilson). Sleeps are taken for known; what is not I/O is taken
/// for CPU time as far as there is any.
fn looks(facts: &Facts<'_>, wall: f64, io: f64) -> (f64, f64) {
    let busy = facts.account.sum(|e| e.busy);
    if busy.wall_ns <= 0.0 {
        return (0.0, 0.0);
    }
    let rest = ((wall - io) / busy.wall_ns).clamp(0.0, 1.0);
    let seen = SampledShare { hits: (rest * busy.events as f64).round() as u64, n: busy.events };
    let Some((low, high)) = seen.interval() else { return (0.0, 0.0) };
    ((high - rest).max(0.0) * busy.wall_ns, (rest - low).max(0.0) * busy.wall_ns)
}

/// The word on a gain.
pub fn word(gain: &Estimate) -> Word {
    match verdict_of_ratio(&gain.reciprocal(1.0, Unit::Ratio), THRESHOLD) {
        Verdict::Improved => Word::Proven,
        Verdict::Regressed => Word::Contradicted,
        Verdict::WithinNoise => Word::NotConfirmed,
        Verdict::CannotTell => Word::CannotTell,
    }
}
