//! Where a tree of ours is like the program's: a directory of the same file system.
//!
//! The directory that holds the files and folders that were met by chance; else the directory that the program was started
//! in. Never one of the system's own.

use iowhy_core::profile::FileUse;

use super::SMALL_BYTES;
use crate::finding::Facts;

/// Nothing is made below these, but for the one that holds users' files.
const SYSTEM: [&str; 14] = [
    "/proc", "/sys", "/dev", "/run", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc",
    "/boot", "/nix",
];

const SHARED: &str = "/dev/shm";

/// The directory.
pub(super) fn parent(facts: &Facts<'_>) -> Result<String, String> {
    let small = |f: &&FileUse| {
        f.kind == "regular" && !f.mapped && f.size_bytes.is_none_or(|size| size <= SMALL_BYTES)
    };
    let regular = facts.profile.files.iter().filter(small).filter_map(|f| folder_of(&f.path));
    let listed = facts.profile.files.iter().filter(|f| f.kind == "directory").map(|f| f.path.as_str());
    let mut seen: Vec<&str> = regular.chain(listed).filter(|folder| may_be_written(folder)).collect();
    seen.sort_unstable();
    if let Some(common) = common(&seen).filter(|common| may_be_written(common)) {
        return Ok(common);
    }
    // Folders far apart: the one with most of them.
    let most = seen.iter().max_by_key(|folder| (seen.iter().filter(|f| f == folder).count(), **folder));
    if let Some(folder) = most {
        return Ok((*folder).to_owned());
    }
    match facts.profile.directory.as_deref() {
        Some(folder) if may_be_written(folder) => Ok(folder.to_owned()),
        Some(folder) => Err(format!(
            "none of the small files was met by name, and in `{folder}`, where the program was started, nothing is made"
        )),
        None => {
            Err("none of the small files was met by name: on which file system they lie is not known"
                .to_owned())
        }
    }
}

fn folder_of(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/')?;
    (path.starts_with('/') && !name.ends_with(" (deleted)")).then_some(folder)
}

/// Whether it is a directory of users: below the root, and not the system's.
fn may_be_written(folder: &str) -> bool {
    let below = |system: &&str| {
        folder.strip_prefix(*system).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let users = folder == SHARED || folder.strip_prefix(SHARED).is_some_and(|rest| rest.starts_with('/'));
    folder.starts_with('/')
        && folder.len() > 1
        && !folder.ends_with(" (deleted)")
        && (users || !SYSTEM.iter().any(below))
}

/// The directory above all of these; `None` where that is the root.
fn common(folders: &[&str]) -> Option<String> {
    let (first, last) = (folders.first()?, folders.last()?);
    let same = first.split('/').zip(last.split('/')).take_while(|(a, b)| a == b).map(|(a, _)| a);
    let common = same.collect::<Vec<_>>().join("/");
    // A directory just below the root holds all kinds of things, often other file systems.
    let deep = common.matches('/').count() >= 2 || folders.iter().all(|f| *f == common);
    (deep && !common.is_empty()).then_some(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::synthetic::Run;

    fn parent_of(paths: &[(&str, &str)], directory: Option<&str>) -> Result<String, String> {
        let mut run = Run::new(1.0);
        for (path, kind) in paths {
            run = run.file(300, |f| (f.path, f.kind) = ((*path).to_owned(), (*kind).to_owned()));
        }
        run.with(|p| p.directory = directory.map(str::to_owned)).facts(parent)
    }

    #[test]
    fn it_is_the_directory_above_the_files_and_folders_that_were_met() {
        let known = [("/data/tree/d1/f7", "regular"), ("/data/tree/d2", "directory"), ("?", "unknown")];
        assert_eq!(parent_of(&known, Some("/home/me")).as_deref(), Ok("/data/tree"));
        assert_eq!(parent_of(&known[..1], None).as_deref(), Ok("/data/tree/d1"));
        // Libraries are no files of the program, and files far apart have no directory in common.
        let apart = [
            ("/usr/lib/x/a.so", "regular"),
            ("/data/a/1", "regular"),
            ("/data/b/1", "regular"),
            ("/srv/1", "regular"),
        ];
        assert_eq!(parent_of(&apart, None).as_deref(), Ok("/srv"));
        assert_eq!(parent_of(&apart[..3], None).as_deref(), Ok("/data/b"));
    }

    #[test]
    fn without_names_it_is_where_the_program_was_started_and_never_the_systems() {
        let nothing = [("?", "unknown"), ("/etc/passwd", "regular"), ("/data/x (deleted)", "regular")];
        assert_eq!(parent_of(&nothing, Some("/home/me")).as_deref(), Ok("/home/me"));
        for directory in ["/", "/usr/share", "/proc/7", "/usr"] {
            assert!(parent_of(&nothing, Some(directory)).unwrap_err().contains(directory));
        }
        assert_eq!(parent_of(&nothing, Some("/usrdata")).as_deref(), Ok("/usrdata"));
        assert_eq!(parent_of(&nothing, Some("/dev/shm/x")).as_deref(), Ok("/dev/shm/x"));
        assert!(parent_of(&nothing, None).unwrap_err().contains("not known"));
    }
}
