//! Where results go. Every output is opened before anything is measured, so that a long run is not lost to a typing
//! error; stdout carries the result, stderr everything else.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;
use iowhy_probe::target::Target;
use serde::Serialize;

use crate::cli::OutputArgs;

/// A file that will be written at the end. If it did not exist before and nothing was written, it is removed again.
#[derive(Debug)]
pub struct Pending {
    option: String,
    path: PathBuf,
    file: File,
    made: bool,
    written: bool,
}

impl Pending {
    /// Opens the file for writing without touching what is in it.
    ///
    /// # Errors
    /// A refusal that names the option and the path; also for a block device, which an output would destroy.
    pub fn open(option: &str, path: &Path) -> Result<Pending, Problem> {
        let named = || format!("`{option} {}`", path.display());
        if std::fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device()) {
            return Err(Problem::refused(format!(
                "{} is a block device: an output would destroy it",
                named()
            ))
            .hint(format!("name a file, or `{option} -` for stdout")));
        }
        let made = !path.exists();
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(|error| {
                Problem::refused(format!("cannot write {}: {error}", named()))
                    .hint("name a file in a directory that you may write to")
            })?;
        Ok(Pending { option: option.to_owned(), path: path.to_owned(), file, made, written: false })
    }

    /// Makes sure that the output is none of the targets.
    ///
    /// # Errors
    /// A refusal that names both.
    pub fn spare(&self, targets: &[&Target]) -> Result<(), Problem> {
        let Ok(own) = self.file.metadata() else { return Ok(()) };
        let same = |target: &&&Target| {
            target.identity().is_some_and(|id| (id.device, id.inode) == (own.dev(), own.ino()))
        };
        // What was made a moment ago cannot hold anything, but it cannot be a target either.
        match targets.iter().find(same).filter(|_| own.is_file()) {
            Some(target) => Err(Problem::refused(format!(
                "`{} {}` is the target `{}` itself: the output would overwrite it",
                self.option,
                self.path.display(),
                target.facts.name
            ))
            .hint("name another file")),
            None => Ok(()),
        }
    }

    /// Replaces the content.
    ///
    /// # Errors
    /// A failure that names the path, e.g. on a full disk.
    pub fn write(mut self, content: &[u8]) -> Result<(), Problem> {
        let regular = self.file.metadata().is_ok_and(|m| m.is_file());
        let result = (if regular { self.file.set_len(0) } else { Ok(()) })
            .and_then(|()| self.file.write_all(content))
            .and_then(|()| self.file.flush());
        self.written = result.is_ok();
        result.map_err(|error| Problem::failed(format!("cannot write `{}`: {error}", self.path.display())))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.made && !self.written {
            // Best effort: an empty file that we made and do not need. There is nobody to tell when it stays.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The outputs of a command.
#[derive(Debug)]
pub struct Outputs {
    json: Json,
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
        Ok(Outputs { json, quiet: args.quiet })
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

    /// Prints warnings on stderr, unless quiet.
    pub fn warn(&self, warnings: &[Warning]) {
        if self.quiet {
            return;
        }
        for warning in warnings {
            anstream::eprintln!("warning: {}", warning.message);
            if let Some(next) = &warning.next {
                anstream::eprintln!("  next: {next}");
            }
        }
    }

    /// Prints the screen (unless stdout is taken by JSON) and writes the JSON.
    ///
    /// # Errors
    /// A failure when an output cannot be written. A reader that closed the pipe is not one.
    pub fn finish(self, screen: &str, record: &impl Serialize) -> Result<(), Problem> {
        match self.json {
            Json::Stdout => return print(&to_json(record)?),
            Json::File(pending) => pending.write(to_json(record)?.as_bytes())?,
            Json::No => {}
        }
        print(screen)
    }
}

/// Columns of the terminal that stdout is, or enough for every column where it is none.
pub fn width() -> usize {
    const WHEN_NO_TERMINAL: usize = 120;
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => WHEN_NO_TERMINAL,
    }
}

fn to_json(record: &impl Serialize) -> Result<String, Problem> {
    let mut text = serde_json::to_string(record)
        .map_err(|error| Problem::failed(format!("the record cannot be written as JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

/// Prints to stdout, colour codes removed where nobody wants them.
///
/// # Errors
/// A failure when stdout cannot be written (a full disk); a closed pipe is fine.
pub fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = anstream::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Problem::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
