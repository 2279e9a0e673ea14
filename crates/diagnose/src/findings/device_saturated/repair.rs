//! `device-saturated`: the device is asked for less, as by a format that is so many times smaller, or by reading only the
//! columns or ranges that are needed. What can be left out is not seen: the user says how much, and the replay shows
//! whether the time goes with it. Of each thread the first requests stay, so that they follow each other as before, and what
//! was written is made durable as before.

use iowhy_core::replay::{Action, Op, Plan};

use crate::repair::order::{self, Order};
use crate::repair::{Repaired, RunFacts, Sizes, done};

/// Direct requests stay at whole blocks.
const PAGE: u64 = 4096;

pub(super) const CHOICES: &[(&str, Sizes)] = &[
    ("half of the bytes", Sizes { subsample: 2, ..Sizes::USUAL }),
    ("a quarter", Sizes { subsample: 4, ..Sizes::USUAL }),
    ("a sixteenth", Sizes { subsample: 16, ..Sizes::USUAL }),
];

pub(super) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    let sizes = &run_facts.sizes;
    let n = sizes.subsample.max(1);
    if plan.moving_calls().is_none_or(|calls| calls < u64::from(n)) {
        return Err(format!("too few calls per thread were recorded to replay 1/{n} of them"));
    }
    let mut less = plan.clone();
    less.threads = plan.threads.iter().map(|thread| beginning(plan, thread, u64::from(n))).collect();
    for (at, file) in less.files.iter_mut().enumerate() {
        let of = |a: &&Action| a.file as usize == at && order::has_place(a.op);
        let actions: Vec<&Action> = less.threads.iter().flatten().filter(of).collect();
        // Passes follow each other as the requests do.
        if file.shift_bytes > 0 && order::order(&actions) == Order::Sequential {
            let (shift, _) = order::shift(&actions, file.size_bytes);
            file.shift_bytes = if file.direct { shift.next_multiple_of(PAGE) } else { shift };
        }
    }
    done(less, format!("1/{n} of the bytes, as if the data were smaller"))
}

/// The first requests of a thread, with one byte in `n`, and what makes them durable. What goes to a sink is not data of a device.
fn beginning(plan: &Plan, thread: &[Action], n: u64) -> Vec<Action> {
    let bytes = |a: &Action| a.bytes.saturating_mul(u64::from(a.count));
    let all = thread.iter().filter(|a| plan.moves_data(a)).fold(0u64, |sum, a| sum.saturating_add(bytes(a)));
    let mut left = all.div_ceil(n);
    // Files that were written since they were made durable.
    let mut pending: Vec<u32> = Vec::new();
    let mut kept = Vec::new();
    for action in thread {
        if plan.moves_data(action) {
            let count = left.div_ceil(action.bytes.max(1)).min(u64::from(action.count)) as u32;
            if count > 0 {
                left = left.saturating_sub(action.bytes.saturating_mul(u64::from(count)));
                if action.op == Op::Write && !pending.contains(&action.file) {
                    pending.push(action.file);
                }
                kept.push(Action { count, ..*action });
            }
            continue;
        }
        let syncs = action.op.is_sync();
        if left > 0 || (syncs && pending.contains(&action.file)) {
            if syncs {
                pending.retain(|file| *file != action.file);
            }
            kept.push(*action);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::{PlanFile, Role};

    use super::*;

    const SYNC: Op = Op::Fsync { metadata: false };

    fn less(thread: Vec<Action>, n: u32) -> Plan {
        let file =
            PlanFile { size_bytes: 1 << 30, shift_bytes: 1 << 20, ..PlanFile::new("/data", Role::User) };
        let plan = Plan { files: vec![file], threads: vec![thread], passes: 9, ..Plan::default() };
        repaired(
            &plan,
            &RunFacts { sizes: Sizes { subsample: n, ..Sizes::default() }, ..RunFacts::default() },
        )
        .unwrap()
        .plan
    }

    #[test]
    fn half_of_the_bytes_are_made_durable_all_the_same() {
        let write = Action { count: 64, stride: 4096, ..Action::one(Op::Write, 0, 0, 4096, 0.0) };
        let sync = Action::one(SYNC, 0, 0, 0, 0.0);
        let now = less(vec![write, sync], 2);
        assert_eq!(
            now.threads[0].iter().map(|a| (a.op, a.count)).collect::<Vec<_>>(),
            [(Op::Write, 32), (SYNC, 1)]
        );
        assert_eq!(now.files[0].shift_bytes, 32 * 4096, "the next pass goes on where this one ends");
        // Each of two files is.
        let two = [write, Action { file: 1, ..write }, sync, Action { file: 1, ..sync }];
        let plan = Plan::default();
        let of_two = beginning(&plan, &two, 1);
        assert_eq!(of_two, two);
        let left: Vec<(Op, u32)> =
            beginning(&plan, &[two, two].concat(), 2).iter().map(|a| (a.op, a.file)).collect();
        assert_eq!(left, [(Op::Write, 0), (Op::Write, 1), (SYNC, 0), (SYNC, 1)]);
        // Syncs of what is not written go with it.
        let each = |at: u64| [Action::one(Op::Write, 0, at * 100, 100, 0.0), sync];
        assert_eq!(less((0..10u64).flat_map(each).collect(), 5).threads[0].len(), 4);
    }

    #[test]
    fn bytes_count_and_not_requests() {
        let read = |bytes| Action { count: 10, ..Action::one(Op::Read { fresh: false }, 0, 0, bytes, 0.0) };
        let now = less(vec![read(1 << 20), read(4096)], 2);
        assert_eq!(
            now.threads[0].iter().map(|a| a.count).collect::<Vec<_>>(),
            [6],
            "half of 10 MiB and 40 KiB"
        );
    }

    #[test]
    fn bytes_that_are_thrown_away_are_no_data_of_a_device() {
        let read = |at: u64| Action::one(Op::Read { fresh: false }, 0, at, 1 << 20, 0.0);
        let write = |at: u64| Action::one(Op::Write, 1, at, 1 << 20, 0.0);
        let files = vec![PlanFile::new("/data", Role::User), PlanFile::new("/dev/null", Role::Sink)];
        // As a window of dd that begins with a write.
        let thread = (0..4u64).flat_map(|i| [write(i << 20), read(i << 20)]).collect();
        let plan = Plan { files, threads: vec![thread], ..Plan::default() };
        assert_eq!(plan.moving_calls(), Some(4));
        let kept: Vec<Op> = beginning(&plan, &plan.threads[0], 4).iter().map(|a| a.op).collect();
        assert_eq!(kept, [Op::Write, Op::Read { fresh: false }]);
    }
}
