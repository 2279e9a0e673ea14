//! The directory of a scratch tree: one on the file system of the program's files.
//!
//! It holds the files and directories whose names were seen. Never a system directory, never that of an inherited file (a log
//! on stdout), and none if no name was seen: the start directory may be on another file system.

use iowhy_core::profile::FileUse;

use super::calls_per_file::SMALL_BYTES;
use iowhy_diagnose::findings::Facts;
use iowhy_diagnose::findings::names::is_its_own;

/// Nothing is made below these, but for the one that holds users' files.
const SYSTEM: [&str; 14] = [
    "/proc", "/sys", "/dev", "/run", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc",
    "/boot", "/nix",
];

const SHARED: &str = "/dev/shm";

/// Where the tree is made, and the file system that it must be on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) parent: String,
    /// `st_dev`.
    pub(super) file_system: u64,
}

/// The place.
///
/// # Errors
/// It is not known, as the end of a sentence.
pub(super) fn place(facts: &Facts<'_>) -> Result<Place, String> {
    let small = |f: &&FileUse| f.kind == "regular" && f.size_bytes.is_none_or(|size| size <= SMALL_BYTES);
    let own = || facts.profile.files.iter().filter(|f| is_its_own(f));
    let regular = own().filter(small).filter_map(|f| Some((folder_of(&f.path)?, f.device_number)));
    let listed = own().filter(|f| f.kind == "directory").map(|f| (f.path.as_str(), f.device_number));
    let met: Vec<(&str, Option<u64>)> =
        regular.chain(listed).filter(|(folder, _)| may_be_written(folder)).collect();
    let mut seen: Vec<&str> = met.iter().map(|(folder, _)| *folder).collect();
    seen.sort_unstable();
    // Folders far apart: the one with most of them.
    let most = || seen.iter().max_by_key(|folder| (seen.iter().filter(|f| f == folder).count(), **folder));
    let common = common(&seen).filter(|common| may_be_written(common));
    let parent = common
        .or_else(|| most().map(|folder| (*folder).to_owned()))
        .ok_or_else(|| "no name of the small files was seen, so their file system is not known".to_owned())?;
    let mut systems: Vec<Option<u64>> = met.iter().map(|(_, device)| *device).collect();
    systems.sort_unstable();
    systems.dedup();
    match systems.as_slice() {
        [Some(file_system)] => Ok(Place { parent, file_system: *file_system }),
        [] | [None, ..] => {
            Err("the file system of the small files is not known: profile the program again".to_owned())
        }
        _ => Err("the small files are on several file systems, and a scratch tree is on one".to_owned()),
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
    use iowhy_diagnose::findings::synthetic::Run;

    fn parent_of(paths: &[(&str, &str)]) -> Result<String, String> {
        let mut run = Run::new(1.0);
        for (path, kind) in paths {
            run = run.file(300, |f| {
                (f.path, f.kind, f.device_number) = ((*path).to_owned(), (*kind).to_owned(), Some(7));
            });
        }
        let found = run.with(|p| p.directory = Some("/home/me".to_owned())).facts(place);
        found.map(|place| {
            assert_eq!(place.file_system, 7);
            place.parent
        })
    }

    #[test]
    fn it_is_the_directory_above_the_files_and_folders_that_were_met() {
        let known = [("/data/tree/d1/f7", "regular"), ("/data/tree/d2", "directory"), ("?", "unknown")];
        assert_eq!(parent_of(&known).as_deref(), Ok("/data/tree"));
        assert_eq!(parent_of(&known[..1]).as_deref(), Ok("/data/tree/d1"));
        // Libraries are no files of the program, and files far apart have no directory in common.
        let apart = [
            ("/usr/lib/x/a.so", "regular"),
            ("/data/a/1", "regular"),
            ("/data/b/1", "regular"),
            ("/srv/1", "regular"),
        ];
        assert_eq!(parent_of(&apart).as_deref(), Ok("/srv"));
        assert_eq!(parent_of(&apart[..3]).as_deref(), Ok("/data/b"));
    }

    #[test]
    fn without_names_it_is_nowhere_and_never_in_the_systems_own() {
        let nothing = [
            ("?", "unknown"),
            ("/etc/passwd", "regular"),
            ("/data/x (deleted)", "regular"),
            ("/proc/7/stat", "regular"),
        ];
        assert!(parent_of(&nothing).unwrap_err().contains("not known"));
        assert_eq!(parent_of(&[("/usrdata/x", "regular")]).as_deref(), Ok("/usrdata"));
        assert_eq!(parent_of(&[("/dev/shm/x/y", "regular")]).as_deref(), Ok("/dev/shm/x"));
    }

    #[test]
    fn a_log_that_the_caller_opened_is_no_file_of_the_program() {
        let log = |f: &mut FileUse| {
            (f.path, f.inherited, f.device_number) = ("/dev/shm/run/log".to_owned(), true, Some(8));
        };
        let alone = Run::new(1.0).file(100, log);
        assert!(alone.facts(place).unwrap_err().contains("not known"));
        let with_a_file = alone.file(100, |f| (f.path, f.device_number) = ("/data/t/1".to_owned(), Some(7)));
        let found = with_a_file.facts(place).unwrap();
        assert_eq!(found, Place { parent: "/data/t".to_owned(), file_system: 7 });
    }

    #[test]
    fn several_file_systems_or_an_unknown_one_are_no_place() {
        let two = |second: Option<u64>| {
            let at = |path: &'static str, device| {
                move |f: &mut FileUse| (f.path, f.device_number) = (path.to_owned(), device)
            };
            Run::new(1.0).file(1, at("/data/t/1", Some(7))).file(1, at("/data/t/m/1", second)).facts(place)
        };
        assert!(two(Some(7)).is_ok());
        assert!(two(Some(8)).unwrap_err().contains("several file systems"));
        assert!(two(None).unwrap_err().contains("not known"));
    }
}
