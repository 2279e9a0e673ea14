//! The tests whose behaviour depends on rights, once more as an ordinary user: rights are half of what they test. The
//! rest runs so in `nightly` alone. As an ordinary user there is nothing to repeat.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::programs::{self, Kind, Program};
use crate::steps::{Ending, Run, is_root};

/// Which tests are run once more.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Which {
    /// Those that meet the kernel's permissions.
    AboutRights,
    /// The others.
    Others,
}

/// Unit tests that meet permissions: those of the crates that talk to the kernel.
const UNITS: [&str; 5] = ["linux", "probe", "watch", "replay", "diagnose stacks"];
/// Files of end-to-end tests whose results do not depend on rights. A file that is not named here, a new one too, is run.
const NOT_ABOUT_RIGHTS: [&str; 13] = [
    "classic",
    "compare",
    "compare_programs",
    "export",
    "hostile",
    "mrc",
    "old_records",
    "report",
    "scripted",
    "sim",
    "stripe",
    "trace",
    "traps",
];
/// Packages and files whose tests work in the build folder, which belongs to root.
const NEED_THE_BUILD_FOLDER: [&str; 3] = ["cases ", "iowhy findings", "iowhy prove_traps"];
/// The program of all end-to-end tests.
pub(crate) const END_TO_END: &str = "iowhy command";

const NOBODY: [&str; 6] = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];

/// Runs them as nobody, from copies that an ordinary user can read.
pub(crate) fn run(run: &mut Run, which: Which) -> Ending {
    if !is_root() {
        println!("   everything above ran as an ordinary user");
        return Ending::Passed;
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return Ending::Skipped("setpriv (util-linux) is not installed".to_owned());
    }
    let programs = match programs::build(run) {
        Ok(programs) => programs,
        Err(why) => return Ending::Failed(why),
    };
    let wanted: Vec<&Program> = programs.iter().filter(|program| is_wanted(program, which)).collect();
    let folder = match PublicCopy::new(&wanted, &run.root) {
        Ok(folder) => folder,
        Err(error) => return Ending::Failed(format!("no copy for an ordinary user: {error}")),
    };
    let mut failures = String::new();
    for (program, copy) in wanted.iter().zip(&folder.programs) {
        let mut command = folder.as_nobody(copy);
        if program.name == END_TO_END {
            let names = folder.as_nobody(copy).args(["--list", "--format", "terse"]).output();
            let names = names.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
            command.arg("--exact").args(chosen(&names, which));
        }
        if let Err(what) = programs::run_one(run, &program.name, &mut command, false) {
            failures.push_str(&what);
        }
    }
    if failures.is_empty() { Ending::Passed } else { Ending::Failed(failures) }
}

fn is_wanted(program: &Program, which: Which) -> bool {
    let name = program.name.as_str();
    // xtask's own tests read the source tree, which an ordinary user may not be able to.
    if name == "xtask" || NEED_THE_BUILD_FOLDER.iter().any(|start| name.starts_with(start)) {
        return false;
    }
    if name == END_TO_END {
        return true;
    }
    let about_rights = UNITS.contains(&name) && (program.kind == Kind::Unit || name.contains(' '));
    about_rights == (which == Which::AboutRights)
}

/// The names of the end-to-end tests that are asked for, from the harness's list.
fn chosen(list: &str, which: Which) -> Vec<&str> {
    let other = |name: &str| NOT_ABOUT_RIGHTS.contains(&name.split("::").next().unwrap_or(""));
    list.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|name| other(name) == (which == Which::Others))
        .collect()
}

/// Copies of the test programs where an ordinary user can run them, removed with this.
struct PublicCopy {
    root: PathBuf,
    scratch: PathBuf,
    iowhy: PathBuf,
    programs: Vec<PathBuf>,
}

impl PublicCopy {
    fn new(programs: &[&Program], root: &Path) -> std::io::Result<PublicCopy> {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("iowhy-test-{}", std::process::id()));
        let scratch = folder.join("scratch");
        std::fs::create_dir_all(&scratch)?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))?;
        std::fs::set_permissions(&scratch, std::fs::Permissions::from_mode(0o777))?;
        let iowhy = folder.join("iowhy");
        let mut made = PublicCopy { root: folder, scratch, iowhy, programs: Vec::new() };
        let copy = |from: &Path, to: &Path| -> std::io::Result<()> {
            std::fs::copy(from, to)?;
            std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o755))
        };
        copy(&programs::binary(root), &made.iowhy)?;
        for (index, program) in programs.iter().enumerate() {
            let to = made.root.join(format!("test-{index}"));
            copy(&program.executable, &to)?;
            made.programs.push(to);
        }
        Ok(made)
    }

    fn as_nobody(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(NOBODY)
            .arg(program)
            .env("IOWHY_BIN", &self.iowhy)
            .env("TMPDIR", &self.scratch)
            .env("HOME", &self.scratch)
            .current_dir(&self.scratch);
        command
    }
}

impl Drop for PublicCopy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.root) {
            eprintln!("cannot remove {}: {error}", self.root.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_to_end_test_is_in_one_of_the_two() {
        let list =
            "watch_record::a: test\nrecord::b: test\nscripted::c: test\nstripe_lab::d: test\n\n4 tests";
        assert_eq!(chosen(list, Which::AboutRights), ["watch_record::a", "record::b", "stripe_lab::d"]);
        assert_eq!(chosen(list, Which::Others), ["scripted::c"]);
    }

    #[test]
    fn files_without_rights_exist() {
        let folder = crate::root().join("crates/iowhy/tests/command");
        for name in NOT_ABOUT_RIGHTS {
            assert!(folder.join(format!("{name}.rs")).exists() || folder.join(name).exists(), "{name}");
        }
    }
}
