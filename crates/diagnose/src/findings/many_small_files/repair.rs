//! `many-small-files`: one packed file of the same bytes, read or written in calls of 64 KiB. The program finds each former
//! file in what it read before, as with an archive; who wants one of them alone reads more than it. Where names are looked at far more often
//! than files are opened, each is looked at once instead, and each folder listed once.

use iowhy_core::replay::{Action, OnFile, Op, Plan, PlanFile, PlanTree, Role};
use iowhy_core::units::count;

use crate::repair::{Repaired, RunFacts, coalesce, done};

/// From so many looks for each open on, what is opened does not matter. Chosen: handling a file takes one to three (its name, its descriptor,
/// a failing one on the way).
pub(super) const MANY_LOOKS: f64 = 10.0;

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    let Some(tree) = &plan.tree else {
        return Err("the briefly open files are not part of the replay".to_owned());
    };
    if tree.life.iter().any(|touch| touch.what == OnFile::Examine && touch.each >= MANY_LOOKS) {
        return looked_at_once(plan, tree);
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

fn looked_at_once(plan: &Plan, tree: &PlanTree) -> Result<Repaired, String> {
    let mut tree = tree.clone();
    let folders_each = tree.folders as f64 / tree.files.max(1) as f64;
    for touch in &mut tree.life {
        match touch.what {
            OnFile::Examine => touch.each = 1.0,
            OnFile::List => touch.each = touch.each.min(folders_each),
            _ => {}
        }
    }
    done(Plan { tree: Some(tree), ..plan.clone() }, "each name is looked at once")
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
    fn names_are_looked_at_once_and_what_is_in_the_files_stays() {
        let touch = |what, each| Touch { what, bytes: 0, each };
        let life = vec![
            touch(OnFile::List, 0.5),
            touch(OnFile::Examine, 300.0),
            touch(OnFile::Open, 1.0),
            touch(OnFile::Close, 1.0),
        ];
        let tree = PlanTree {
            parent: "/data".to_owned(),
            file_system: None,
            files: 100,
            folders: 4,
            bytes: 70,
            state: State::Warm,
            statx: false,
            life,
        };
        let was = Plan { tree: Some(tree), passes: 3, ..Plan::default() };
        let now = repaired(&was, &RunFacts::default()).unwrap();
        assert_eq!((now.plan.passes, now.how.as_str()), (3, "each name is looked at once"));
        let each: Vec<f64> = now.plan.tree.unwrap().life.iter().map(|touch| touch.each).collect();
        assert_eq!(each, [0.04, 1.0, 1.0, 1.0]);
    }
}
