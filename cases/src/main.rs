//! `iowhy-cases list`, `iowhy-cases run NAME slow|repaired DIR`, and the Rust programs themselves.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use iowhy_cases::served::{Manner, Served};
use iowhy_cases::{Skip, Stage, Variant, catalogue, program};
use iowhy_core::problem::Problem;

const USAGE: &str = "\
usage: iowhy-cases list                          every case: name, cause, what it does
       iowhy-cases run NAME slow|repaired DIR [TOOL ARG...]
                                                 prepares it in DIR (on a disk) and runs one variant, under a
                                                 tool if one is given, such as `iowhy --`
       iowhy-cases program KIND ARG...           a program alone, as the catalogue calls it
       iowhy-cases beside KIND FILE CMD ARG...
                                                 runs a command while another process runs `program KIND FILE`, which
                                                 ends with this one
       iowhy-cases serve DIR READ_US NAMES_US sync|async CMD ARG...
                                                 runs a command while DIR is a FUSE file system of this process, whose
                                                 answers take these times; below `unshare --mount` nobody else sees it";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["list"] => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        ["run", name, "slow", dir, tool @ ..] => run(name, Variant::Slow, Path::new(dir), tool),
        ["run", name, "repaired", dir, tool @ ..] => run(name, Variant::Repaired, Path::new(dir), tool),
        ["program", rest @ ..] => program::run(rest).map(|()| ExitCode::SUCCESS),
        ["beside", kind, file, command @ ..] => beside(kind, file, command),
        ["serve", dir, read_us, names_us, reads, command @ ..] => {
            serve(Path::new(dir), [read_us, names_us], reads, command)
        }
        _ => Err(Problem::refused("this is no command of iowhy-cases").hint(USAGE)),
    };
    done.unwrap_or_else(|problem| {
        eprintln!("error: {problem}");
        if let Some(hint) = &problem.hint {
            eprintln!("{hint}");
        }
        ExitCode::from(problem.exit_code())
    })
}

fn list() {
    for case in catalogue::all() {
        let cause = case.cause.map_or("-", |id| id.id());
        let also: String = case.also.iter().map(|id| format!(" + {}", id.id())).collect();
        println!("{:26} {:20} {}", case.name, format!("{cause}{also}"), case.what);
    }
}

fn serve(dir: &Path, times_us: [&str; 2], reads: &str, command: &[&str]) -> Result<ExitCode, Problem> {
    let number = |text: &str| {
        let parsed = text.parse().map(Duration::from_micros);
        parsed.map_err(|_| Problem::refused(format!("`{text}` is no number of microseconds")).hint(USAGE))
    };
    let manner =
        Manner { read: number(times_us[0])?, names: number(times_us[1])?, async_reads: reads == "async" };
    let _served = Served::mount(dir, manner).map_err(Problem::failed)?;
    follow(command)
}

fn beside(kind: &str, file: &str, command: &[&str]) -> Result<ExitCode, Problem> {
    let own = std::env::current_exe().map_err(|e| Problem::failed(format!("cannot find myself: {e}")))?;
    let started = Command::new(own).args(["program", kind, file]).stdout(Stdio::null()).spawn();
    let mut other = started.map_err(|e| Problem::failed(format!("cannot start `{kind}`: {e}")))?;
    let ended = follow(command);
    // It is a child that was not yet waited for: its number is still its own.
    let _ = other.kill();
    let _ = other.wait();
    ended
}

/// Runs a command to its end.
fn follow(command: &[&str]) -> Result<ExitCode, Problem> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Problem::refused("no command is named").hint(USAGE));
    };
    let status = Command::new(program)
        .args(arguments)
        .status()
        .map_err(|e| Problem::failed(format!("cannot run `{program}`: {e}")))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn run(name: &str, variant: Variant, dir: &Path, tool: &[&str]) -> Result<ExitCode, Problem> {
    let case = catalogue::find(name).ok_or_else(|| {
        Problem::refused(format!("no case is called `{name}`")).hint("`iowhy-cases list` names them")
    })?;
    let own = std::env::current_exe().map_err(|e| Problem::failed(format!("cannot find myself: {e}")))?;
    let mut stage = match Stage::new(case, dir, &own) {
        Ok(stage) => stage,
        Err(Skip::Unavailable(reason)) => {
            eprintln!("skipped: {reason}");
            return Ok(ExitCode::SUCCESS);
        }
        Err(Skip::Problem(problem)) => return Err(problem),
    };
    stage.before(variant)?;
    let words = stage.command(variant);
    if words.is_empty() {
        return Err(Problem::refused(format!("`{name}` has no {} variant: it is innocent", variant.word())));
    }
    let words: Vec<String> = tool.iter().map(|&word| word.to_owned()).chain(words).collect();
    let Some((program, arguments)) = words.split_first() else { return Ok(ExitCode::SUCCESS) };
    eprintln!("{}", words.join(" "));
    let start = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .status()
        .map_err(|e| Problem::failed(format!("cannot run `{program}`: {e}")))?;
    eprintln!("{name} {}: {:.3} s", variant.word(), start.elapsed().as_secs_f64());
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
