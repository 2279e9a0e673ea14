//! A plan in the place it belongs to: this process, or a helper process inside the control groups that limited the program.

use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::replay::{Placed, PlacedGroup, Plan};
use iowhy_linux::control_group::ControlGroups;

use super::cgroup_helper::{CgroupHelper, HelperCommand};
use super::local::{LocalReplay, RunOutcome};

/// A plan that is ready to run.
#[derive(Debug)]
pub enum Replay {
    /// In this process.
    Local(Box<LocalReplay>),
    /// In a helper process inside other control groups.
    InCgroup(CgroupHelper),
}

impl Replay {
    /// Prepares a plan where it is to run.
    ///
    /// # Errors
    /// As [`LocalReplay::prepare`]; a group is gone or may not be entered; iowhy is inside a group that the plan must not be
    /// in.
    pub fn prepare(plan: Plan, helper: HelperCommand<'_>) -> Result<Replay, Problem> {
        let groups = match &plan.placed {
            Some(placed) => groups_to_enter(placed, &ControlGroups::of_process(None).hierarchies())?,
            None => Vec::new(),
        };
        if groups.is_empty() {
            return LocalReplay::prepare(plan).map(|replay| Replay::Local(Box::new(replay)));
        }
        CgroupHelper::start(&groups, &plan, helper).map(Replay::InCgroup)
    }

    /// As [`LocalReplay::start_behind`]. A helper's runs start at the plan's own offsets.
    pub fn start_behind(&self, share: f64) {
        if let Replay::Local(replay) = self {
            replay.start_behind(share);
        }
    }

    /// As [`LocalReplay::run`].
    ///
    /// # Errors
    /// As there; the helper ended early.
    pub fn run(&mut self) -> Result<RunOutcome, Problem> {
        match self {
            Replay::Local(replay) => replay.run(),
            Replay::InCgroup(helper) => helper.run(),
        }
    }
}

/// The groups that iowhy is not in yet. `current`: the directories that it is in, by hierarchy, innermost first.
fn groups_to_enter<'a>(
    placed: &'a Placed,
    current: &[impl AsRef<[PathBuf]>],
) -> Result<Vec<&'a PlacedGroup>, Problem> {
    let within = |group: &str| current.iter().flat_map(AsRef::as_ref).any(|dir| dir == Path::new(group));
    if let Some(group) = placed.outside.iter().find(|group| within(group)) {
        let above = Path::new(group).parent().unwrap_or(Path::new("/"));
        return Err(Problem::refused(format!(
            "iowhy runs inside the control group `{group}`, so no replay can be without its limit"
        ))
        .hint(format!(
            "run it outside: `sudo sh -c 'echo $$ > {}/cgroup.procs && exec iowhy prove RECORD'`",
            above.display()
        )));
    }
    let innermost = |group: &str| {
        current.iter().filter_map(|dirs| dirs.as_ref().first()).any(|dir| dir == Path::new(group))
    };
    Ok(placed.inside.iter().filter(|group| !innermost(&group.directory)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_groups_are_not_entered_and_groups_above_cannot_be_left() {
        let current = [vec![PathBuf::from("/cg/memory/a/b"), PathBuf::from("/cg/memory/a")], Vec::new()];
        let group = |directory: &str| PlacedGroup { directory: directory.to_owned(), limits: Vec::new() };
        let inside = vec![group("/cg/memory/a/b"), group("/cg/blkio/x"), group("/cg/memory/a")];
        let entered = Placed { inside, outside: vec!["/cg/memory/other".to_owned()] };
        let left = groups_to_enter(&entered, &current).unwrap();
        assert_eq!(
            left.iter().map(|g| g.directory.as_str()).collect::<Vec<_>>(),
            ["/cg/blkio/x", "/cg/memory/a"]
        );
        for held in ["/cg/memory/a", "/cg/memory/a/b"] {
            let problem =
                groups_to_enter(&Placed { inside: Vec::new(), outside: vec![held.to_owned()] }, &current)
                    .unwrap_err();
            assert!(problem.exit_code() == 2 && problem.message.contains(held), "{problem}");
            assert!(problem.hint.is_some_and(|hint| hint.contains("/cgroup.procs && exec iowhy prove")));
        }
    }
}
