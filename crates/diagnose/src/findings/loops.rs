//! What goes with calls that are spared though it lies outside of them: the program's own loop around them.
//!
//! Fewer calls are fewer turns of the loop, unless it works on each piece, which is not seen. So the interval begins at
//! nothing. The likely value falls with the own time of a turn, to half at [`HALF_LOOP_NS`], and where the own time is more
//! than what is spared. The most is that all of it goes, up to [`LOOP_NS`] for each call: entering the kernel empties
//! buffers and caches of the CPU that the code outside then fills again. Interrupts come with time, whatever runs: at most
//! they go in the same part. What may not enter: which calls are spared and why.

use iowhy_core::layer::Layer;

use super::range::Range;
use super::{Facts, Savings};
use crate::account::Entry;
use crate::classify::Operation;

/// A program that spends no more of its own time than this between two calls mostly loops around them.
const LOOP_NS: f64 = 3000.0;
/// Own time between two calls of which half is likely to go with the calls: entering the kernel, counting, checking.
const HALF_LOOP_NS: f64 = 400.0;
/// So many times as long takes a turn of an interpreter, with its objects and its checks.
const INTERPRETED: f64 = 5.0;
/// Own CPU time of an interpreter's start for each page fault that it takes for the first time on some page: CPython 3.11 of
/// Debian 12 starts in 7 to 9 ms with 820 faults, one that was built otherwise in 20 ms with 1,950.
const START_NS_A_FAULT: f64 = 10_000.0;
/// More faults than this are not of a start.
const MOST_START_FAULTS: f64 = 2000.0;
/// No more than this part of the own time is taken for the start.
const MOST_START: f64 = 0.5;
/// Names of interpreters, as the names of processes begin.
const INTERPRETERS: [&str; 8] = ["python", "perl", "ruby", "node", "php", "lua", "tclsh", "Rscript"];

/// CPU time in the program's own code.
pub fn own_ns(facts: &Facts<'_>) -> f64 {
    facts.account.sum(|e| e.busy && e.class.operation == Operation::User).time_ns
}

/// What is saved outside of the calls when the part `spared` of `calls` system calls is not made; `spared_ns` is the
/// time that these calls took. Nothing where either is not known.
pub fn around(facts: &Facts<'_>, calls: f64, spared_ns: f64, spared: Range) -> Savings {
    let own_ns = own_ns(facts);
    if calls < 1.0 || own_ns <= 0.0 || spared_ns <= 0.0 {
        return Savings::default();
    }
    let turn = if interpreted(facts) { INTERPRETED } else { 1.0 };
    let in_loop = 1.0 - (start_ns(facts) / own_ns).min(MOST_START);
    let each = own_ns / calls / turn;
    let likely = in_loop * (turn * spared_ns / own_ns).min(1.0) / (1.0 + (each / HALF_LOOP_NS).powi(2));
    let most = (LOOP_NS / each.max(1.0)).min(1.0);
    facts
        .saved_without(|e| {
            f64::from(e.busy && matches!(e.class.operation, Operation::User | Operation::Interrupt))
        })
        .part(Range::new(0.0, likely, most))
        .part(spared.at_most(1.0))
}

/// Own CPU time until an interpreter begins with the program, which is no part of any loop; nothing of other programs.
pub fn start_ns(facts: &Facts<'_>) -> f64 {
    let faults = facts.profile.io.minor_faults.unwrap_or(0) as f64;
    if interpreted(facts) { faults.min(MOST_START_FAULTS) * START_NS_A_FAULT } else { 0.0 }
}

/// Whether most of the run is an interpreter's.
pub fn interpreted(facts: &Facts<'_>) -> bool {
    let is = |name: &str| INTERPRETERS.iter().any(|i| name.starts_with(i));
    let time = |pick: &dyn Fn(&str) -> bool| -> u64 {
        facts.profile.threads.iter().filter(|t| pick(&t.name)).map(|t| t.running_ns).sum()
    };
    2 * time(&is) > time(&|_| true)
}

/// Entering and leaving the kernel where it was not yet seen for what: each call has the same part of it.
pub(super) fn entering(e: &Entry) -> bool {
    e.busy
        && e.class.operation == Operation::Unknown
        && matches!(e.class.layer, Layer::Call | Layer::Unexplained)
}
