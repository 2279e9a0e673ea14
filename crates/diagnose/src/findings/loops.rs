//! The program's own loop around its calls, which goes with calls that are removed.
//!
//! Fewer calls are fewer turns, unless the loop works on each piece, which is unknown: the interval begins at 0. The likely
//! value falls with the own time of a turn. At most all of it goes, up to [`LOOP_NS`] per call, because kernel entry empties
//! CPU buffers and caches that the loop fills again.

use iowhy_core::layer::Layer;

use super::range::Range;
use super::{Facts, SavedTime};
use crate::account::Entry;
use crate::classify::Operation;

/// A program with less own time between two calls mostly loops around them. This constant and the next were fitted to the cases
/// on one CPU; a profile holds no measurement of them.
const LOOP_NS: f64 = 3000.0;
/// Own time between two calls of which half is likely to go with the calls.
const HALF_LOOP_NS: f64 = 400.0;
/// A turn of an interpreter takes this multiple.
const INTERPRETED: f64 = 5.0;
/// CPU time of an interpreter\'s start per page fault: CPython 3.11 of Debian 12 starts in 7 to 9 ms with 820 faults, another
/// build in 20 ms with 1,950.
const START_NS_A_FAULT: f64 = 10_000.0;
/// Further faults are not those of the start.
const MAX_START_FAULTS: f64 = 2000.0;
/// The largest part of the own time that counts as start.
const MAX_START_SHARE: f64 = 0.5;
/// Prefixes of process names.
const INTERPRETERS: [&str; 8] = ["python", "perl", "ruby", "node", "php", "lua", "tclsh", "Rscript"];

/// CPU time in the program's own code.
pub fn own_ns(facts: &Facts<'_>) -> f64 {
    facts.account.sum(|e| e.busy && e.class.operation == Operation::User).time_ns
}

/// Time saved outside of the calls if `removed_share` of `calls` goes; `removed_ns` is the time of these calls. Nothing if either is
/// unknown.
pub fn around(facts: &Facts<'_>, calls: f64, removed_ns: f64, removed_share: Range) -> SavedTime {
    let own_ns = own_ns(facts);
    if calls < 1.0 || own_ns <= 0.0 || removed_ns <= 0.0 {
        return SavedTime::default();
    }
    let turn = if interpreted(facts) { INTERPRETED } else { 1.0 };
    let in_loop = 1.0 - (start_ns(facts) / own_ns).min(MAX_START_SHARE);
    let each = own_ns / calls / turn;
    let likely = in_loop * (turn * removed_ns / own_ns).min(1.0) / (1.0 + (each / HALF_LOOP_NS).powi(2));
    let most = (LOOP_NS / each.max(1.0)).min(1.0);
    facts
        .saved_without(|e| {
            f64::from(e.busy && matches!(e.class.operation, Operation::User | Operation::Interrupt))
        })
        .part(Range::new(0.0, likely, most))
        .part(removed_share.at_most(1.0))
}

/// CPU time of an interpreter's start, which belongs to no loop; 0 for other programs.
pub fn start_ns(facts: &Facts<'_>) -> f64 {
    let faults = facts.profile.io.minor_faults.unwrap_or(0) as f64;
    if interpreted(facts) { faults.min(MAX_START_FAULTS) * START_NS_A_FAULT } else { 0.0 }
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
