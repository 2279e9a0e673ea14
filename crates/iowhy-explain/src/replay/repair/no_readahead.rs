//! `no-readahead`: the hint against read-ahead is taken away; direct reads go through the page cache; what is gone through
//! from the end is gone through from the front. The same bytes come, in the last case in another order.

use iowhy_core::replay::{Advice, Do, Plan, State};

use super::{Repaired, done, each, with_threads};
use crate::replay::order::{self, Order};

pub(super) fn repaired(plan: &Plan) -> Result<Repaired, String> {
    let mut repaired = plan.clone();
    let mut how = Vec::new();
    for file in &mut repaired.files {
        if file.advice == Advice::Random {
            let mapped = plan.any(|a| a.what == Do::Look);
            file.advice = if mapped { Advice::Sequential } else { Advice::Normal };
            how.push(if mapped { "MADV_SEQUENTIAL" } else { "without the hint against read-ahead" });
        }
        if file.direct {
            file.direct = false;
            file.state = State::Cold;
            how.push("through the page cache");
        }
    }
    let backwards = (0..plan.files.len() as u32).any(|file| {
        let of: Vec<_> = plan.actions().filter(|a| a.file == file && order::has_place(a.what)).collect();
        of.iter().map(|a| a.count).sum::<u32>() > 2 && order::order(&of) == Order::Backward
    });
    if backwards {
        repaired = with_threads(&repaired, |actions| {
            let mut turned: Vec<_> = each(actions).collect();
            turned.reverse();
            turned
        });
        // The passes go backwards as well, and their places are taken from the front.
        for file in &mut repaired.files {
            let back = file.size_bytes.saturating_sub(file.shift_bytes);
            file.shift_bytes = if back < file.size_bytes { back } else { file.shift_bytes };
        }
        how.push("from front to end");
    }
    if how.is_empty() {
        return Err("no hint against read-ahead is in force in the calls that were seen".to_owned());
    }
    how.dedup();
    done(repaired, how.join(", "))
}
