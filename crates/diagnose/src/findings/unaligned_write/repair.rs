//! `unaligned-write`: whole blocks are written instead of parts. The program must know the rest of each block (it keeps it,
//! or pads its records): bytes beside those it writes now are written as well.

use iowhy_core::replay::{Op, Plan};

use crate::repair::{Repaired, RunFacts, done, each, with_threads};

const BLOCK: u64 = 4096;

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    let partial = |a: &iowhy_core::replay::Action| {
        a.op == Op::Write && !(a.offset.is_multiple_of(BLOCK) && a.bytes.is_multiple_of(BLOCK))
    };
    if !plan.any(partial) {
        return Err("no write of a part of a block was seen".to_owned());
    }
    let repaired = with_threads(plan, |actions| {
        each(actions)
            .map(|mut a| {
                if partial(&a) {
                    let end = (a.offset + a.bytes).next_multiple_of(BLOCK);
                    a.offset -= a.offset % BLOCK;
                    a.bytes = end - a.offset;
                }
                a
            })
            .collect()
    });
    done(repaired, "whole blocks")
}
