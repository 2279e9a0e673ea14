//! `many-small-files`: one packed file of the same bytes, read or written in calls of 64 KiB. The program finds each former
//! file in what it read before, as with an archive; who wants one of them alone reads more than it.

use iowhy_core::replay::{Action, OnFile, Op, Plan, PlanFile, PlanTree, Role};
use iowhy_core::units::count;

use super::MANY_LOOKS;
use crate::repair::{Repaired, RunFacts, coalesce, done};

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    let Some(tree) = &plan.tree else {
        return Err("the briefly open files are not part of the replay".to_owned());
    };
    if tree.life.iter().any(|touch| touch.what == OnFile::Examine && touch.each >= MANY_LOOKS) {
        return Err("which names are looked up is not recorded".to_owned());
    }
    let (reads, makes) = (tree.does(OnFile::Read), tree.does(OnFile::Write));
    let copies = tree.does(OnFile::Copy);
    if tree.bytes == 0 || !(reads || makes || copies) {
        return Err("no file is read or written, so nothing can be packed".to_owned());
    }
    let mut packed = Plan { passes: plan.passes, depth: 1, ..Plan::default() };
    let mut moves = Vec::new();
    for (wanted, role, what) in [
        (reads || copies, Role::ScratchFull, Op::Read { fresh: false }),
        (makes || copies, Role::ScratchEmpty, Op::Write),
    ] {
        if wanted {
            moves.push((what, packed.files.len() as u32));
            packed.files.push(file(tree, role));
        }
    }
    let mut begin = 0;
    for thread in &plan.threads {
        let files: u64 = thread.iter().map(|a| u64::from(a.count)).sum();
        let think_ns: f64 = thread.iter().map(|a| a.think_ns * f64::from(a.count)).sum();
        let bytes = files * tree.bytes;
        packed.threads.push(calls(begin, bytes, &moves, think_ns));
        begin += bytes;
    }
    let how = match (reads || copies, makes || copies) {
        (true, true) => "copied",
        (true, false) => "read",
        _ => "written",
    };
    done(packed, format!("one packed file instead of {}, {how} in calls of 64 KiB", count(tree.files)))
}

fn file(tree: &PlanTree, role: Role) -> PlanFile {
    PlanFile {
        size_bytes: tree.all_bytes(),
        state: tree.state,
        ..PlanFile::new(format!("{}/packed", tree.parent), role)
    }
}

/// Calls of one thread over its part of the packed file; where there are two files, piece by piece.
fn calls(begin: u64, bytes: u64, moves: &[(Op, u32)], think_ns: f64) -> Vec<Action> {
    let pieces = bytes.div_ceil(coalesce::BYTES);
    let think_ns = think_ns / (pieces * moves.len() as u64).max(1) as f64;
    let mut actions = Vec::new();
    for piece in 0..pieces {
        let place = piece * coalesce::BYTES;
        let length = coalesce::BYTES.min(bytes - place);
        actions.extend(
            moves.iter().map(|(what, file)| Action::one(*what, *file, begin + place, length, think_ns)),
        );
    }
    actions
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::{State, Touch};

    use super::*;

    #[test]
    fn where_names_are_looked_at_most_of_all_nothing_is_packed() {
        let plan = |looks| {
            let touch = |what, each| Touch { what, bytes: 70, each };
            let life =
                vec![touch(OnFile::Examine, looks), touch(OnFile::Open, 1.0), touch(OnFile::Read, 2.0)];
            let parent = "/data".to_owned();
            let (file_system, state) = (None, State::Warm);
            let tree = PlanTree {
                parent,
                file_system,
                files: 100,
                folders: 4,
                bytes: 70,
                state,
                statx: false,
                life,
            };
            Plan { tree: Some(tree), passes: 1, ..Plan::default() }
        };
        let why = repaired(&plan(300.0), &RunFacts::default()).unwrap_err();
        assert!(why.contains("is not recorded"), "{why}");
        assert!(repaired(&plan(2.0), &RunFacts::default()).is_ok());
    }
}
