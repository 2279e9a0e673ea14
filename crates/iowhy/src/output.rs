//! Where results go. Every output is opened before anything is measured, so that a long run is not lost to a typing
//! error; stdout carries the result, stderr everything else.

use std::borrow::Cow;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use iowhy_core::problem::Problem;
use iowhy_core::text::{self, visible};
use iowhy_core::warning::Warning;
use iowhy_linux::file_size;
use iowhy_probe::target::Target;
use serde::Serialize;

use crate::cli::{ColorWhen, OutputArgs};
use crate::pending::Pending;
use crate::store;
use iowhy_view::terminal::wrap::fold;
pub use iowhy_view::terminal::{marks, width};

/// The outputs of a command.
#[derive(Debug)]
pub struct Outputs {
    json: Json,
    kept: Option<Pending>,
    quiet: bool,
}

#[derive(Debug)]
enum Json {
    No,
    Stdout,
    File(Pending),
}

impl Outputs {
    /// Opens what the options ask for.
    ///
    /// # Errors
    /// A refusal when the JSON file cannot be written.
    pub fn open(args: &OutputArgs) -> Result<Outputs, Problem> {
        let json = match &args.json {
            None => Json::No,
            Some(path) if path.as_os_str() == "-" => Json::Stdout,
            Some(path) => Json::File(Pending::open("--json", path)?),
        };
        let kept = args.save_as.as_deref().map(store::keep).transpose()?;
        Ok(Outputs { json, kept, quiet: args.quiet })
    }

    /// Makes sure that no output is one of the targets.
    ///
    /// # Errors
    /// See [`Pending::spare`].
    pub fn spare(&self, targets: &[&Target]) -> Result<(), Problem> {
        match &self.json {
            Json::File(pending) => pending.spare(targets),
            Json::No | Json::Stdout => Ok(()),
        }
    }

    /// Whether stderr should carry progress.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// As [`Outputs::open`], for a command that reads files: none of them may be an output.
    ///
    /// # Errors
    /// Those of [`Outputs::open`], and a refusal that names the output and the input that it would overwrite.
    pub fn open_apart(args: &OutputArgs, inputs: &[&Path]) -> Result<Outputs, Problem> {
        if let Some(json) = args.json.as_deref().filter(|path| path.as_os_str() != "-") {
            spare_inputs("--json", json, inputs)?;
        }
        Outputs::open(args)
    }

    /// Prints warnings on stderr, unless quiet.
    pub fn warn(&self, warnings: &[Warning]) {
        if !self.quiet {
            print_warnings(warnings);
        }
    }

    /// Prints the screen (unless stdout is taken by JSON) and writes the JSON. One that fails does not stop the other; a
    /// result that stdout does not take is printed to stderr.
    ///
    /// # Errors
    /// The first failure; others are said on stderr. A reader that closed the pipe is not one.
    pub fn finish(self, screen: &str, record: &impl Serialize) -> Result<(), Problem> {
        let (to_stdout, file) = match self.json {
            Json::Stdout => (true, None),
            Json::File(pending) => (false, Some(pending)),
            Json::No => (false, None),
        };
        let files: Vec<Pending> = self.kept.into_iter().chain(file).collect();
        let json = if to_stdout || !files.is_empty() { to_json(record)? } else { String::new() };
        let mut failed: Vec<Problem> =
            files.into_iter().filter_map(|pending| pending.write(json.as_bytes()).err()).collect();
        let shown = if to_stdout { print_data(&json) } else { print(screen) };
        if let Err(problem) = shown {
            let rescued = print_to_stderr(screen).is_ok();
            failed.push(if rescued { instead(problem) } else { problem });
        }
        first_of(failed)
    }
}

/// The outputs of `iowhy -- CMD`: stdout is the program's, so the report goes to stderr or to a file of its own.
#[derive(Debug)]
pub struct Report {
    json: Option<Pending>,
    kept: Option<Pending>,
    text: Option<Pending>,
    quiet: bool,
    color: ColorWhen,
}

impl Report {
    /// Opens what the options ask for. `profiles`, with their options, are only compared with the others; `subject` is the program,
    /// whose runs are kept under one name.
    ///
    /// # Errors
    /// A refusal when an output cannot be written, is stdout, or is named twice.
    pub fn open(
        text: Option<&Path>,
        profiles: &[(&str, Option<&Path>)],
        options: &OutputArgs,
        subject: &str,
    ) -> Result<Report, Problem> {
        let json = options.json.as_deref();
        for (option, path) in [("--json", json), ("--output", text)] {
            if path.is_some_and(|path| path.as_os_str() == "-") {
                return Err(Problem::refused(format!(
                    "`{option} -`: stdout belongs to the program that is run"
                ))
                .hint(format!("name a file: `{option} FILE`")));
            }
        }
        all_different(&[&[("--json", json), ("--output", text)][..], profiles].concat())?;
        Ok(Report {
            json: json.map(|path| Pending::open("--json", path)).transpose()?,
            kept: options.save_as.as_deref().map(|name| store::keep_run(name, subject)).transpose()?,
            text: text.map(|path| Pending::open("--output", path)).transpose()?,
            quiet: options.quiet,
            color: options.color,
        })
    }

    /// Whether stderr should carry progress.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// Columns for the screen.
    pub fn width(&self) -> usize {
        const WHEN_NO_TERMINAL: usize = 100;
        match (&self.text, rustix::termios::tcgetwinsize(io::stderr())) {
            (None, Ok(size)) if size.ws_col > 0 => usize::from(size.ws_col),
            _ => WHEN_NO_TERMINAL,
        }
    }

    /// Prints warnings on stderr, unless quiet.
    pub fn warn(&self, warnings: &[Warning]) {
        if !self.quiet {
            print_warnings(warnings);
        }
    }

    /// Writes the report and the JSON. One that fails does not stop the other; a report that its file does not take is
    /// printed to stderr: the run that it tells of cannot be repeated.
    ///
    /// # Errors
    /// The first failure after which something is lost; all others are said on stderr.
    pub fn finish(self, screen: &str, record: &impl Serialize) -> Result<(), Problem> {
        let mut failed = Vec::new();
        match self.text {
            Some(pending) => {
                let plain = match self.color {
                    ColorWhen::Always => screen.to_owned(),
                    _ => anstream::adapter::strip_str(&text::screen(screen)).to_string(),
                };
                match pending.keep(plain.as_bytes()) {
                    Ok(elsewhere) => failed.extend(elsewhere),
                    Err(problem) => match print_to_stderr(screen) {
                        Ok(()) => complain(&instead(problem)),
                        Err(_) => failed.push(problem),
                    },
                }
            }
            None => failed.extend(print_to_stderr(screen).err()),
        }
        let files: Vec<Pending> = self.json.into_iter().chain(self.kept).collect();
        if !files.is_empty() {
            match to_json(record) {
                Ok(json) => {
                    failed.extend(files.into_iter().filter_map(|file| file.write(json.as_bytes()).err()));
                }
                Err(problem) => failed.push(problem),
            }
        }
        first_of(failed)
    }
}

/// The first problem; the others are said on stderr.
///
/// # Errors
/// That problem, if there is any.
pub(crate) fn first_of(failed: Vec<Problem>) -> Result<(), Problem> {
    let mut failed = failed.into_iter();
    let first = failed.next();
    failed.for_each(|problem| complain(&problem));
    first.map_or(Ok(()), Err)
}

/// A result that could not be written, and is on stderr.
fn instead(mut problem: Problem) -> Problem {
    problem.message.push_str("; the result is printed here instead");
    problem
}

/// For a command that makes no record: options that would write one are refused.
///
/// # Errors
/// A refusal that names the option.
pub fn no_record(options: &OutputArgs, command: &str, hint: &str) -> Result<(), Problem> {
    let given = [("--json", options.json.is_some()), ("--save-as", options.save_as.is_some())];
    match given.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            Err(Problem::refused(format!("`{option}`: `{command}` reads records, and makes none"))
                .hint(hint.to_owned()))
        }
        None => Ok(()),
    }
}

/// Makes sure that an output is none of the files that are read; `-` among them is stdin.
///
/// # Errors
/// A refusal that names both.
pub fn spare_inputs(option: &str, output: &Path, inputs: &[&Path]) -> Result<(), Problem> {
    match inputs.iter().find(|input| same_file(input, output)) {
        Some(input) => {
            let input = if input.as_os_str() == "-" {
                "the file at stdin".to_owned()
            } else {
                format!("the input `{}`", input.display())
            };
            Err(Problem::refused(format!(
                "`{option} {}` is {input} itself: the output would overwrite it",
                output.display()
            ))
            .hint("name another file"))
        }
        None => Ok(()),
    }
}

/// Whether an input (`-` is stdin) or an output and another output are one file: by whatever links, or not made yet.
/// Devices such as /dev/null and pipes keep nothing that could be lost, and are never the same.
fn same_file(one: &Path, output: &Path) -> bool {
    let stdin = || {
        let status = rustix::fs::fstat(io::stdin()).ok()?;
        let regular = rustix::fs::FileType::from_raw_mode(status.st_mode).is_file();
        regular.then_some((status.st_dev, status.st_ino))
    };
    let identity = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        found.is_file().then(|| (found.dev(), found.ino()))
    };
    let of_one = if one.as_os_str() == "-" { stdin() } else { identity(one) };
    if let (Some(one), Some(output)) = (of_one, identity(output)) {
        return one == output;
    }
    // What is not there yet has a name and a directory.
    let place = |path: &Path| {
        if path.as_os_str() == "-" || path.exists() {
            return None;
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((parent.canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    place(one).is_some_and(|one| place(output) == Some(one))
}

/// Makes sure that no two outputs are the same file.
///
/// # Errors
/// A refusal that names both options.
pub fn all_different(outputs: &[(&str, Option<&Path>)]) -> Result<(), Problem> {
    for (i, (option, path)) in outputs.iter().enumerate() {
        let same = |other: &&(&str, Option<&Path>)| match (other.1, *path) {
            (Some(other), Some(path)) => other == path || same_file(other, path),
            _ => false,
        };
        if let Some((other, _)) = outputs[..i].iter().find(same) {
            return Err(Problem::refused(format!("`{other}` and `{option}` name the same file"))
                .hint("name two files"));
        }
    }
    Ok(())
}

/// Prints a problem on stderr: cause, then the fix.
pub fn complain(problem: &Problem) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    say(&format!("{red}error:{red:#} {}", visible(&problem.message)));
    if let Some(hint) = &problem.hint {
        complain_hint(hint);
    }
}

/// Prints a fix on stderr.
pub fn complain_hint(hint: &str) {
    let cyan = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
    say(&format!("{cyan}hint:{cyan:#} {}", visible(hint)));
}

/// Prints a fact on stderr.
pub fn note(fact: &str) {
    say(&visible(fact));
}

/// Prints what is about to be destroyed on stderr.
pub fn announce(destruction: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    say(&format!("{red}destroying:{red:#} {}", visible(destruction)));
}

/// Prints the message of the command line's parser on stderr.
pub fn complain_usage(message: &str) {
    let lines: Vec<_> = message.trim_end().lines().map(visible).collect();
    say(&lines.join("\n"));
}

/// Prints warnings on stderr.
pub fn print_warnings(warnings: &[Warning]) {
    for warning in warnings {
        say(&format!("warning: {}", visible(&warning.message)));
        if let Some(next) = &warning.next {
            say(&format!("  next: {}", visible(next)));
        }
    }
}

/// A line on stderr, broken at words where that is a terminal. When that fails there is nobody left to tell: the exit code still does.
fn say(line: &str) {
    let line = match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => Cow::Owned(
            line.split('\n').map(|line| fold(line, size.ws_col.into())).collect::<Vec<_>>().join("\n"),
        ),
        _ => Cow::Borrowed(line),
    };
    let _ = writeln!(anstream::stderr(), "{line}");
}

fn to_json(record: &impl Serialize) -> Result<String, Problem> {
    let mut text = serde_json::to_string(record)
        .map_err(|error| Problem::failed(format!("the record cannot be written as JSON: {error}")))?;
    text.push('\n');
    Ok(text::json(text))
}

/// Prints a screen to stderr. A reader that went away is fine.
fn print_to_stderr(screen: &str) -> Result<(), Problem> {
    let mut stderr = anstream::stderr();
    match stderr.write_all(text::screen(screen).as_bytes()).and_then(|()| stderr.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let problem = Problem::failed(format!("cannot write to stderr: {error}"));
            Err(file_size::explained(problem, &error))
        }
        _ => Ok(()),
    }
}

/// Prints data for other programs to stdout as it is; whoever makes it escapes what acts on a terminal.
///
/// # Errors
/// As [`print()`].
pub fn print_data(text: &str) -> Result<(), Problem> {
    to_stdout(text)
}

/// Prints a screen to stdout. Line ends and colours pass (colours not where nobody wants them); what else acts on a terminal is
/// escaped.
///
/// # Errors
/// A failure when stdout cannot be written (a full disk); a closed pipe is fine.
pub fn print(text: &str) -> Result<(), Problem> {
    to_stdout(&text::screen(text))
}

fn to_stdout(text: &str) -> Result<(), Problem> {
    let mut stdout = anstream::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let problem = Problem::failed(format!("cannot write to stdout: {error}"));
            Err(file_size::explained(problem, &error))
        }
        _ => Ok(()),
    }
}
