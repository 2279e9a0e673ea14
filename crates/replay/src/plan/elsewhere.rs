//! A plan on another file system: scratch files of the same sizes, in a directory there, take the place of the program's files.
//!
//! What a scratch file cannot show is a note: the age and the fragments of a file, its bytes, and limits of control groups.

use std::path::Path;

use iowhy_core::replay::{Plan, Role, State};
use iowhy_core::units::Bytes;

use super::baseline::Baseline;
use super::duration::Bounds;

const PAGE: u64 = 4096;

/// The same calls on scratch files in a directory. `in_memory`: its file system has no device behind it.
///
/// # Errors
/// The calls need more of a file than its scratch file has, as the end of a sentence.
pub(crate) fn in_directory(
    baseline: &Baseline,
    directory: &str,
    in_memory: bool,
) -> Result<Baseline, String> {
    let mut there = Baseline { notes: Vec::new(), ..baseline.clone() };
    let Plan { files, tree, placed, .. } = &mut there.plan;
    if placed.take().is_some() {
        there.notes.push("without the limits of the program's control groups".to_owned());
    }
    if let Some(tree) = tree {
        (tree.parent, tree.file_system) = (directory.to_owned(), None);
        tree.state = if in_memory { State::Warm } else { tree.state };
    }
    let mut was_cold = false;
    for (at, file) in files.iter_mut().enumerate().filter(|(_, file)| file.role != Role::Sink) {
        let name = Path::new(&file.path).file_name().and_then(|name| name.to_str()).unwrap_or("file");
        if file.role == Role::User {
            let size = file.size_bytes.next_multiple_of(PAGE).min(Bounds::PROOF.filled_bytes);
            if size < file.size_bytes {
                let used = baseline.plan.actions().filter(|action| action.file as usize == at);
                let end = used.map(|a| a.at(0).max(a.at(a.count.max(1) - 1)).saturating_add(a.bytes)).max();
                if !in_memory && file.state == State::Cold && end.unwrap_or(0) > size {
                    return Err(format!(
                        "`{}` is read from the device up to {}, and a scratch file has at most {}: what is read twice would be in \
                         the page cache",
                        file.path,
                        Bytes(end.unwrap_or(0)),
                        Bytes(size)
                    ));
                }
                there.notes.push(format!(
                    "`{}` has {} and its scratch file {}: reads behind that begin anew at its start",
                    file.path,
                    Bytes(file.size_bytes),
                    Bytes(size)
                ));
            }
            (file.role, file.identity, file.size_bytes) = (Role::ScratchFull, None, size);
        }
        file.path = Path::new(directory).join(name).to_string_lossy().into_owned();
        file.file_system = None;
        was_cold |= file.state == State::Cold;
        file.state = if in_memory { State::Warm } else { file.state };
    }
    if was_cold && in_memory {
        there.notes.push("in memory: what was read from a device is cached there".to_owned());
    }
    Ok(there)
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::FileIdentity;
    use iowhy_core::replay::{Action, Op, Placed, PlanFile};

    use super::*;

    fn baseline(files: Vec<PlanFile>) -> Baseline {
        let read =
            Action { count: 9, stride: 4096, ..Action::one(Op::Read { fresh: false }, 0, 0, 4096, 5.0) };
        let plan = Plan {
            files,
            threads: vec![vec![read]],
            passes: 3,
            placed: Some(Placed::default()),
            ..Plan::default()
        };
        Baseline {
            plan,
            scale: 2.0,
            program_io_ns: 1e9,
            recorded: None,
            recording: None,
            touching_ns: 0.0,
            goes_along_ns: 0.0,
            notes: vec!["of the place where it ran".to_owned()],
        }
    }

    #[test]
    fn the_calls_are_the_same_and_the_files_are_scratch_files_of_the_same_sizes() {
        let user = PlanFile {
            identity: Some(FileIdentity::default()),
            file_system: Some(7),
            size_bytes: 10_000,
            state: State::Cold,
            ..PlanFile::new("/data/table", Role::User)
        };
        let sink = PlanFile::new("/dev/null", Role::Sink);
        let log = PlanFile { file_system: Some(7), ..PlanFile::new("/data/log", Role::ScratchEmpty) };
        let was = baseline(vec![user.clone(), sink.clone(), log]);
        let there = in_directory(&was, "/mnt", false).unwrap();
        assert_eq!((&there.plan.threads, there.plan.passes), (&was.plan.threads, 3));
        assert!(
            there.plan.placed.is_none()
                && there.notes == ["without the limits of the program's control groups"]
        );
        let paths: Vec<&str> = there.plan.files.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["/mnt/table", "/dev/null", "/mnt/log"]);
        let [table, null, log] = there.plan.files.as_slice() else { panic!("three files") };
        assert_eq!((table.role, table.size_bytes, table.state), (Role::ScratchFull, 12_288, State::Cold));
        assert!(table.identity.is_none() && table.file_system.is_none() && log.file_system.is_none());
        assert_eq!((null, log.role), (&sink, Role::ScratchEmpty));
        // Memory cannot be cold, and a large file is not made whole.
        let large = PlanFile { size_bytes: 1 << 40, ..user };
        let there = in_directory(&baseline(vec![large.clone()]), "/dev/shm", true).unwrap();
        assert_eq!((there.plan.files[0].state, there.plan.files[0].size_bytes), (State::Warm, 512 << 20));
        assert!(
            there.notes[1].contains("1 TiB") && there.notes[2].starts_with("in memory"),
            "{:?}",
            there.notes
        );
        // Reads behind the end of a cold scratch file would find what was read before.
        let mut far = baseline(vec![large]);
        far.plan.threads[0][0].offset = 1 << 30;
        let refused = in_directory(&far, "/mnt", false).unwrap_err();
        assert!(refused.contains("up to 1.00 GiB") && refused.contains("page cache"), "{refused}");
        assert!(in_directory(&far, "/dev/shm", true).is_ok());
    }
}
