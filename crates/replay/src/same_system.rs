//! Whether what a replay makes lies where the program's files lay: on a file system of another kind it measures that one.
//!
//! The caller asks the kernel. What may not enter: I/O.

use std::path::Path;

use iowhy_core::replay::{Plan, Role};

use super::AsWas;

/// The plan, if everything that it makes is made on the file system of the files that it stands for. `of_directory`: the
/// `st_dev` of a directory now.
///
/// # Errors
/// It is another file system, or one of the two is not known, in words that end a sentence.
pub(crate) fn checked(as_was: AsWas, of_directory: impl Fn(&str) -> Option<u64>) -> Result<AsWas, String> {
    let tree = as_was.plan.tree.iter().map(|tree| (tree.parent.as_str(), tree.file_system));
    for (directory, then) in tree.chain(made(&as_was.plan)) {
        let now = of_directory(directory);
        match (then, now) {
            (Some(then), Some(now)) if then == now => {}
            (Some(_), Some(_)) => {
                return Err(format!(
                    "`{directory}` is on another file system than the program's files were: files made there would \
                     measure that one. Run the program where the files are, or mount that file system there again"
                ));
            }
            (Some(_), None) => {
                return Err(format!(
                    "`{directory}`, where the replay would make its files, cannot be looked at: put it back, or watch \
                     the program again"
                ));
            }
            (None, _) => {
                return Err(format!(
                    "on which file system the program's files in `{directory}` were is not known: watch the program again"
                ));
            }
        }
    }
    Ok(as_was)
}

/// Directories of scratch files, with the file system of the files whose place they take.
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

    fn with(plan: Plan) -> AsWas {
        AsWas { plan, scale: 1.0, program_io_ns: 1.0, recording: 0.0, notes: Vec::new() }
    }

    fn tree(file_system: Option<u64>) -> AsWas {
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

    fn scratch(role: Role, file_system: Option<u64>) -> AsWas {
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
            assert!(checked(make(Some(7)), |_| None).unwrap_err().contains("cannot be looked at"));
        }
    }

    #[test]
    fn what_is_only_read_is_asked_for_by_its_own_identity() {
        assert!(checked(scratch(Role::User, None), |_| None).is_ok());
        assert!(checked(scratch(Role::Sink, None), |_| None).is_ok());
    }
}
