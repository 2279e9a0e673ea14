//! Prepares one case, brings it into the state in which a run begins, and builds its commands.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use iowhy_core::problem::Problem;

use crate::case::{Case, Condition, Need, Setup, Variant};
use crate::files;
use crate::skip::Skip;
use crate::surroundings::Surroundings;

/// A prepared case. Dropping it ends other processes and undoes everything outside the folder; the folder's
/// files stay, to be used again.
#[derive(Debug)]
pub struct Stage {
    case: &'static Case,
    dir: PathBuf,
    own_binary: PathBuf,
    python: String,
    surroundings: Surroundings,
    others: Vec<Child>,
}

impl Stage {
    /// Prepares a case in a folder, which is made if it is missing. `own_binary` is the `iowhy-cases` binary.
    ///
    /// # Errors
    /// The machine cannot run the case, or preparing failed.
    pub fn new(case: &'static Case, dir: &Path, own_binary: &Path) -> Result<Stage, Skip> {
        std::fs::create_dir_all(dir)
            .map_err(|e| Problem::failed(format!("cannot make `{}`: {e}", dir.display())))?;
        let dir = dir
            .canonicalize()
            .map_err(|e| Problem::failed(format!("cannot find `{}`: {e}", dir.display())))?;
        let python = interpreter();
        for need in case.needs {
            if let Some(lack) = lack(*need, &dir, python.as_deref()) {
                return Err(Skip::Unavailable(lack));
            }
        }
        files::clear_aside(&dir);
        for setup in case.setup {
            files::set_up(*setup, &dir)?;
        }
        let surroundings = Surroundings::make(case.condition, &dir)?;
        let own_binary = own_binary.to_path_buf();
        let python = python.unwrap_or_default();
        let stage = Stage { case, dir, own_binary, python, surroundings, others: Vec::new() };
        for setup in case.setup {
            if let Setup::Run(words) = setup {
                run(&stage.spell(words))?;
            }
        }
        Ok(stage)
    }

    /// Brings files and conditions into the state in which a run of the variant begins.
    ///
    /// # Errors
    /// A file cannot be brought into its state; another process does not start.
    pub fn before(&mut self, variant: Variant) -> Result<(), Problem> {
        self.after();
        for step in self.case.before {
            files::before(*step, &self.dir)?;
        }
        self.surroundings.before()?;
        take_memory();
        if let (Condition::OtherProcess(count, words), Variant::Slow) = (self.case.condition, variant) {
            let words = self.spell(words);
            let Some((program, arguments)) = words.split_first() else { return Ok(()) };
            for _ in 0..count {
                let child = Command::new(program)
                    .args(arguments)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .spawn()
                    .map_err(|e| Problem::failed(format!("cannot start another process: {e}")))?;
                self.others.push(child);
            }
        }
        Ok(())
    }

    /// Ends the other processes.
    pub fn after(&mut self) {
        for mut child in self.others.drain(..) {
            // It may have ended by itself; then there is nothing to end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The command of a variant; empty where there is none.
    pub fn command(&self, variant: Variant) -> Vec<String> {
        self.spell(self.case.words(variant))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn spell(&self, words: &[&str]) -> Vec<String> {
        let own = self.own_binary.display().to_string();
        let mut spelled = Vec::new();
        for word in words {
            if *word == "{program}" {
                spelled.extend([own.clone(), "program".to_owned()]);
                continue;
            }
            let mut word = word
                .replace("{program}", &format!("{own} program"))
                .replace("{python}", &self.python)
                .replace("{scripts}", &files::sources().join("python").display().to_string())
                .replace("{bin}", &self.dir.join("bin").display().to_string())
                .replace("{dir}", &self.dir.display().to_string());
            for (name, value) in self.surroundings.names() {
                word = word.replace(name, &value);
            }
            spelled.push(word);
        }
        spelled
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.after();
    }
}

/// Takes memory and gives it back, so that the kernel has it at hand. The host of a virtual machine may take free memory away
/// after a moment and hand it out anew at a cost: a program that fills the page cache took 0.6 to 0.8 s after one that used
/// little of it, and 0.4 s after itself (256 MiB read eight times, Firecracker with free page reporting).
fn take_memory() {
    const BYTES: usize = 320 << 20;
    let mut memory = vec![0u8; BYTES];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
}

/// Runs a command that prepares.
fn run(words: &[String]) -> Result<(), Problem> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let failed = |why: &str| Problem::failed(format!("`{}` failed: {why}", words.join(" ")));
    let told = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let told = told.map_err(|e| failed(&e.to_string()))?;
    if told.status.success() { Ok(()) } else { Err(failed(String::from_utf8_lossy(&told.stderr).trim())) }
}

/// Whether the search path has a program of that name.
fn is_a_command(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// The interpreter itself: `python3` may be a script that looks for it, at a cost.
fn interpreter() -> Option<String> {
    let told = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    let path = String::from_utf8(told.stdout).ok()?.trim().to_owned();
    (told.status.success() && !path.is_empty()).then_some(path)
}

/// Why a need is not met.
fn lack(need: Need, dir: &Path, python: Option<&str>) -> Option<String> {
    let runs = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|o| o.status.success())
    };
    let (met, reason) = match need {
        Need::Command(name) => return (!is_a_command(name)).then(|| format!("no command `{name}`")),
        Need::Compiler => (runs("cc", &["--version"]), "no C compiler `cc`"),
        Need::Python => (python.is_some(), "no `python3`"),
        Need::Sqlite => (
            python.is_some_and(|p| runs(p, &["-c", "import sqlite3"])),
            "no `python3` with the module sqlite3",
        ),
        Need::Root => (rustix::process::geteuid().is_root(), "the case needs root"),
        Need::Direct => (takes_direct(dir), "the folder's file system takes no O_DIRECT"),
        Need::SeveralCpus => {
            (std::thread::available_parallelism().is_ok_and(|n| n.get() > 1), "needs more than one CPU")
        }
    };
    (!met).then(|| reason.to_owned())
}

fn takes_direct(dir: &Path) -> bool {
    use rustix::fs::{Mode, OFlags};
    let path = dir.join(".direct");
    let opened = rustix::fs::open(
        &path,
        OFlags::CREATE | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o600),
    );
    // Left behind it would do no harm.
    let _ = std::fs::remove_file(&path);
    opened.is_ok()
}
