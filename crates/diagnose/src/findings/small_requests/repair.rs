//! `small-requests`: calls that follow each other become calls of 64 KiB. The program gets the same bytes in the same
//! order, from a buffer of its I/O library. A sync ends what is collected.

use iowhy_core::replay::{Plan, Role};
use iowhy_core::units::Bytes;

use crate::repair::coalesce::merge;
use crate::repair::{Repaired, RunFacts, Sizes, buffers, done, read_ahead, with_threads};

/// A request whose time per byte no device reduces much further.
const LONG_BYTES: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// A pass of so many buffers may leave a part of one out.
const MANY: u64 = 4;

pub(super) const CHOICES: &[(&str, Sizes)] = &[
    ("16 KiB", Sizes { request_bytes: 16 << 10, ..Sizes::USUAL }),
    ("64 KiB", Sizes { request_bytes: 64 << 10, ..Sizes::USUAL }),
    ("1 MiB", Sizes { request_bytes: 1 << 20, ..Sizes::USUAL }),
];

pub(super) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    merged(plan, &run_facts.sizes)
}

fn merged(plan: &Plan, sizes: &Sizes) -> Result<Repaired, String> {
    let most = sizes.request_bytes.max(1);
    let mut merged = with_threads(plan, |actions| merge(actions, most));
    buffers::taken_anew(&mut merged);
    // Each pass begins where the first does in a buffer, or at least in a page.
    for file in merged.files.iter_mut().filter(|f| f.shift_bytes > 0) {
        let whole = if file.shift_bytes >= MANY * most { most } else { PAGE };
        file.shift_bytes = file.shift_bytes.next_multiple_of(whole);
    }
    let (before, after) = (plan.calls(), merged.calls());
    if after as f64 > 0.9 * before as f64 {
        return Err("the calls do not follow each other, so nothing can be merged".to_owned());
    }
    done(merged, format!("calls that follow each other merged to {}", Bytes(most)))
}

pub(super) fn others(plan: &Plan, run_facts: &RunFacts) -> Vec<Repaired> {
    let mut others = Vec::new();
    if run_facts.sizes != Sizes::default() {
        return others;
    }
    if plan.files.iter().any(|f| f.direct && f.role == Role::User) {
        others.extend(merged(plan, &Sizes { request_bytes: LONG_BYTES, ..run_facts.sizes }));
    }
    others.extend(read_ahead::instead(plan, run_facts));
    others
}
