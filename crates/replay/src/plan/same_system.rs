//! Whether scratch files are on the file system of the program's files: elsewhere a replay measures another one. The caller
//! asks the kernel.

use std::path::Path;

use iowhy_core::replay::{Plan, Role};

use super::baseline::Baseline;

/// The plan, if its scratch files are on the file system of the files that they replace. `of_directory`: `st_dev` of a
/// directory now.
///
/// # Errors
/// It is another file system, or one of the two is unknown, as the end of a sentence.
pub(crate) fn checked(
    baseline: Baseline,
    of_directory: impl Fn(&str) -> Option<u64>,
) -> Result<Baseline, String> {
    let tree = baseline.plan.tree.iter().map(|tree| (tree.parent.as_str(), tree.file_system));
    for (directory, then) in tree.chain(made(&baseline.plan)) {
        let now = of_directory(directory);
        match (then, now) {
            (Some(then), Some(now)) if then == now => {}
            (Some(_), Some(_)) => {
                return Err(format!(
                    "`{directory}` is on another file system than the program's files were, so a replay there would \
                     measure that one: run the program again, or mount that file system there again"
                ));
            }
            (Some(_), None) => {
                return Err(format!(
                    "`{directory}`, the place of the scratch files, cannot be examined: put it back, or profile the \
                     program again"
                ));
            }
            (None, _) => {
                return Err(format!(
                    "the file system of the program's files in `{directory}` is not known: profile the program again"
                ));
            }
        }
    }
    Ok(baseline)
}

/// Directories of scratch files, with the file system of the files that they replace.
fn made(plan: &Plan) -> impl Iterator<Item = (&str, Option<u64>)> {
    let scratch = |role| matches!(role, Role::ScratchEmpty | Role::ScratchFull);
    plan.files.iter().filter(move |file| scratch(file.role)).map(|file| {
        let parent = Path::new(&file.path).parent().and_then(Path::to_str).filter(|dir| !dir.is_empty());
        (parent.unwrap_or("."), file.file_system)
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::{PlanFile, PlanTree, State};

    use super::*;

    fn with(plan: Plan) -> Baseline {
        Baseline {
            plan,
            scale: 1.0,
            program_io_ns: 1.0,
            recorded: None,
            recording: None,
            touching_ns: 0.0,
            goes_along_ns: 0.0,
            notes: Vec::new(),
        }
    }

    fn tree(file_system: Option<u64>) -> Baseline {
        let tree = PlanTree {
            parent: "/data/t".into(),
            file_system,
            files: 1,
            folders: 1,
            bytes: 1,
            state: State::Warm,
            statx: false,
            life: Vec::new(),
        };
        with(Plan { tree: Some(tree), ..Plan::default() })
    }

    fn scratch(role: Role, file_system: Option<u64>) -> Baseline {
        let file = PlanFile { file_system, ..PlanFile::new("/data/t/x", role) };
        with(Plan { files: vec![file], ..Plan::default() })
    }

    #[test]
    fn what_is_made_elsewhere_or_nobody_knows_where_is_not_replayed() {
        let seven = |directory: &str| (directory == "/data/t").then_some(7);
        for make in [tree, |fs| scratch(Role::ScratchEmpty, fs), |fs| scratch(Role::ScratchFull, fs)] {
            assert!(checked(make(Some(7)), seven).is_ok());
            assert!(checked(make(Some(8)), seven).unwrap_err().contains("another file system"));
            assert!(checked(make(None), seven).unwrap_err().contains("not known"));
            assert!(checked(make(Some(7)), |_| None).unwrap_err().contains("cannot be examined"));
        }
    }

    #[test]
    fn what_is_only_read_is_asked_for_by_its_own_identity() {
        assert!(checked(scratch(Role::User, None), |_| None).is_ok());
        assert!(checked(scratch(Role::Sink, None), |_| None).is_ok());
    }
}
