//! `iowhy -- CMD ARG...`: runs a program, watches it, and says where its time went.
//!
//! The program keeps its stdin, stdout, stderr and its exit code; the report goes to stderr or a file. What goes wrong
//! with the report never changes what the program did: it is said, and the program's code still comes.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use iowhy_core::problem::{Problem, Severity};
use iowhy_core::profile::End;
use iowhy_watch::session::Subject;

use crate::cli::{OutputArgs, PathArgs, WatchArgs};
use crate::command::Ending;
use crate::command::observation::{Observation, command_line};
use crate::output::{Report, complain};
use crate::render;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals, all before the program runs.
pub fn run(args: &WatchArgs, main_job: &PathArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let [program, arguments @ ..] = args.program.as_slice() else {
        return Err(Problem::refused("nothing to run stands after `--`")
            .hint("name a program: `iowhy -- CMD ARG...`; for the main job leave out `--`"));
    };
    if let Some(name) = main_job.first_given() {
        return Err(Problem::refused(format!(
            "{name} belongs to the main job, which is not run with `-- CMD`"
        ))
        .hint("run them apart: `iowhy [OPTIONS] [PATH]` measures a path, `iowhy -- CMD` watches a program"));
    }
    let found = find(program);
    if let Found::No(problem, code) = found {
        complain(&problem);
        return Ok(Ending::Program(code));
    }
    let report = Report::open(args.output.as_deref(), args.sight.folded.as_deref(), options)?;
    let observation = Observation::prepare(&args.sight)?;
    let subject = Subject::Command { program: program.clone(), arguments: arguments.to_vec() };
    let profile = match observation.watch(&subject) {
        Ok(profile) => profile,
        // What is there and yet does not start cannot be executed: a bad interpreter, a foreign format.
        Err(problem) if problem.severity == Severity::Refused => {
            complain(&problem);
            return Ok(Ending::Program(NOT_EXECUTABLE));
        }
        Err(problem) => return Err(problem),
    };
    let code = exit_code(profile.end);
    let (record, folded) = observation.finish(profile, command_line(args.program.iter().cloned()));
    report.warn(&record.warnings);
    let screen = render::watch::screen(&record, report.width());
    let written = [folded, report.finish(&screen, &record)];
    let failed: Vec<Problem> = written.into_iter().filter_map(Result::err).collect();
    failed.iter().for_each(complain);
    Ok(Ending::Program(if failed.is_empty() || code != 0 { code } else { 1 }))
}

/// As a shell: the program is there, but cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// As a shell: there is no such program.
const NOT_FOUND: u8 = 127;

/// The exit code that a shell would show: that of the program, or 128 and the signal that killed it.
fn exit_code(end: End) -> u8 {
    match end {
        End::Code(code) => code.rem_euclid(256) as u8,
        End::Signal(signal) => 128u8.wrapping_add(signal.rem_euclid(128) as u8),
        // Watching ended before the program did: there is no code to pass on, and it was not seen to succeed.
        End::Running | End::Gone => 1,
    }
}

/// Whether there is a program to run.
enum Found {
    Yes,
    /// Why not, and the exit code that says so.
    No(Problem, u8),
}

/// Looks a program up as a shell does, before any output is opened for it.
fn find(program: &OsString) -> Found {
    let shown = program.to_string_lossy();
    let path = Path::new(program);
    let has_slash = shown.contains('/');
    let candidates: Vec<_> = if has_slash {
        vec![path.to_owned()]
    } else {
        search_path().into_iter().map(|directory| directory.join(path)).collect()
    };
    // A path that ends in a directory is not a program, and an empty name is none.
    let present: Vec<_> = candidates.iter().filter(|_| !program.is_empty()).filter(|c| c.exists()).collect();
    if present.iter().any(|candidate| is_executable(candidate)) {
        return Found::Yes;
    }
    match present.first() {
        Some(there) if there.is_dir() && has_slash => Found::No(
            Problem::refused(format!("cannot run `{shown}`: it is a directory"))
                .hint(format!("name a program; to measure the path under it: `iowhy {shown}`")),
            NOT_EXECUTABLE,
        ),
        Some(there) if !there.is_dir() => Found::No(
            Problem::refused(format!("cannot run `{}`: you may not execute it", there.display()))
                .hint(format!("`chmod +x {}` allows it; a script runs as `iowhy -- sh {shown}` too", there.display())),
            NOT_EXECUTABLE,
        ),
        _ if has_slash => Found::No(
            Problem::refused(format!("cannot run `{shown}`: there is no such file"))
                .hint("look at the spelling and the present directory"),
            NOT_FOUND,
        ),
        _ => Found::No(
            Problem::refused(format!("cannot run `{shown}`: no directory of PATH holds such a program"))
                .hint("name it with its path, such as `./program`; a command of the shell runs as `iowhy -- sh -c '...'`"),
            NOT_FOUND,
        ),
    }
}

/// The directories that programs are looked for in; those of the C library where PATH is not set.
fn search_path() -> Vec<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    // An empty entry means the present directory.
    let here = |entry: std::path::PathBuf| if entry.as_os_str().is_empty() { ".".into() } else { entry };
    std::env::split_paths(&path).map(here).collect()
}

/// Whether a file is a program that we may execute.
fn is_executable(path: &Path) -> bool {
    let file = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    file && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Whether a word that is no path is the name of a program in PATH: then `iowhy -- WORD` was probably meant.
pub fn is_program(word: &str) -> bool {
    let plain = !word.is_empty() && !word.contains('/') && !Path::new(word).exists();
    plain && search_path().iter().any(|directory| is_executable(&directory.join(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(exit_code(End::Code(0)), 0);
        assert_eq!(exit_code(End::Code(255)), 255);
        assert_eq!(exit_code(End::Signal(9)), 137);
        assert_eq!(exit_code(End::Signal(15)), 143);
        assert_eq!(exit_code(End::Running), 1);
        assert_eq!(exit_code(End::Code(-1)), 255);
        assert_eq!(exit_code(End::Signal(-1)), 255);
    }

    #[test]
    fn a_program_is_looked_up_as_a_shell_does() {
        let code = |name: &str| match find(&name.into()) {
            Found::Yes => 0,
            Found::No(_, code) => code,
        };
        assert_eq!(code("sh"), 0);
        assert_eq!(code("/bin/sh"), 0);
        assert_eq!(code("no-such-program-anywhere"), 127);
        assert_eq!(code("./no/such/file"), 127);
        assert_eq!(code(""), 127);
        assert_eq!(code("/"), 126);
        assert_eq!(code("/etc/passwd"), 126);
        assert!(is_program("sh") && !is_program("/bin/sh") && !is_program("no-such-program-anywhere"));
    }
}
