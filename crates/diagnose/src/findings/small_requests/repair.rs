//! `small-requests`: calls that follow each other become calls of 64 KiB. The program gets the same bytes in the same
//! order, from a buffer of its I/O library. A sync ends what is collected.

use iowhy_core::replay::Plan;
use iowhy_core::units::Bytes;

use crate::repair::coalesce::merge;
use crate::repair::{Beside, Repaired, Sizes, buffers, done, with_threads};

const PAGE: u64 = 4096;
/// A pass of so many buffers may leave a part of one out.
const MANY: u64 = 4;

pub(in crate::findings) fn repaired(plan: &Plan, beside: &Beside) -> Result<Repaired, String> {
    merged(plan, &beside.sizes)
}

pub(in crate::findings) fn merged(plan: &Plan, sizes: &Sizes) -> Result<Repaired, String> {
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
        return Err("the calls do not follow each other: there is nothing to merge".to_owned());
    }
    done(merged, format!("calls that follow each other merged to {}", Bytes(most)))
}
