//! `device-saturated`: the device is asked for less, as by a format that is so many times smaller, or by reading only the
//! columns or ranges that are needed. What can be left out is not seen: the user says how much, and the replay shows
//! whether the time goes with it. The calls that stay are the first of each pass, so that they follow each other as before.

use iowhy_core::replay::Plan;

use super::super::room::beginning;
use super::{Repaired, Sizes, done, moves};

/// One call in so many stays where nobody says otherwise.
pub(super) const ONE_IN: u32 = 2;

pub(super) fn repaired(plan: &Plan, sizes: &Sizes) -> Result<Repaired, String> {
    let n = sizes.one_in.max(1);
    let fewest = plan
        .threads
        .iter()
        .map(|thread| thread.iter().filter(|a| moves(a.what)).map(|a| u64::from(a.count)).sum::<u64>())
        .min();
    if fewest.is_none_or(|calls| calls < u64::from(n)) {
        return Err(format!("too few calls of each thread were seen to leave out all but one in {n}"));
    }
    done(
        beginning(plan, 1.0 / f64::from(n)),
        format!("one request in {n}, as if the data were so much smaller"),
    )
}
