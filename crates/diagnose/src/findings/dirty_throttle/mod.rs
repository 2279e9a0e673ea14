//! The rule `dirty-throttle`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};

use super::report::Draft;
use super::{Facts, Repairs, Rule, say};
use crate::classify::Wait;
use crate::repair::{can_stay_dirty, memory_bytes, written_bytes};

pub(super) const RULE: Rule = Rule {
    id: FindingId::DirtyThrottle,
    claim: "the kernel pauses the writer until dirty pages are written back",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { others: repair::others, ..Repairs::of_calls(repair::repaired) },
};

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let pauses = facts.account.wait(Wait::DirtyThrottle);
    if pauses.wall_ns <= 0.0 {
        return None;
    }
    let (written, memory) = (written_bytes(facts.profile), memory_bytes(facts.profile));
    let fits = can_stay_dirty(facts.profile);
    // Where the bytes do not fit in memory the device's write rate is the limit, and waiting elsewhere gains nothing
    // that could be foretold.
    let removable = fits.then(|| facts.removable(|e| f64::from(e.class.wait == Some(Wait::DirtyThrottle))));
    let share = say::percent(facts.wall_share(pauses.wall_ns));
    let mut evidence =
        vec![format!("{}: {share} of wall time", facts.waits_in_words(pauses, "pause", "pauses"))];
    if let Some(device) = facts.device() {
        evidence.push(format!(
            "{} wrote {} meanwhile at {}, busy {} of wall time",
            device.name,
            say::bytes(device.written_bytes as f64),
            say::rate(device.written_bytes as f64, facts.account.wall_ns),
            say::percent(facts.device_busy_share().unwrap_or(0.0))
        ));
    }
    if let Some((written, memory)) = written.zip(memory) {
        evidence.push(format!(
            "the program wrote {}; memory size: {}",
            say::bytes(written),
            say::bytes(memory)
        ));
    }
    let advice = if fits {
        "The bytes fit in memory: raise the dirty limits (sysctl vm.dirty_background_ratio=20 vm.dirty_ratio=60), \
         if losing more seconds of data in a crash is acceptable; or start write-back early with \
         sync_file_range(SYNC_FILE_RANGE_WRITE) so that it overlaps with the work."
    } else {
        "The device writes more slowly than the program produces: write fewer bytes (compress, omit temporary \
         files or put them on tmpfs), or use a faster device. Starting write-back early \
         (sync_file_range(SYNC_FILE_RANGE_WRITE), vm.dirty_background_bytes) helps only as far as the device was idle."
    };
    Draft {
        id: FindingId::DirtyThrottle,
        cost_ns: pauses.wall_ns,
        removable,
        sentence: format!(
            "The kernel pauses the writer for {share} of wall time until dirty pages are written back"
        ),
        evidence,
        advice: advice.into(),
    }
    .finding(facts)
}
