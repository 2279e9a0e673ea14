//! The files for programs that show profiles: folded stacks, the Firefox Profiler's format, Perfetto's. They are opened before the
//! program runs. A name that ends in `.gz` is compressed.

mod timeline;

use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use iowhy_core::finding::Finding;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Profile;
use iowhy_core::units;
use iowhy_core::warning::Warning;
use iowhy_view::timeline::{firefox, perfetto};
use iowhy_watch::event_log::EventLog;

use crate::analyzer::Analyzer;
use crate::cli::SightArgs;
use crate::flamegraph;
use crate::output::{first_of, spare_inputs};
use crate::pending::Pending;

const BUFFER_BYTES: usize = 64 << 10;

/// A file that will be written at the end.
#[derive(Debug)]
struct File {
    pending: Pending,
    compressed: bool,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct ProfileFiles {
    flamegraph: Option<File>,
    firefox: Option<File>,
    perfetto: Option<File>,
}

/// What was seen of a run, and what was found.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) profile: &'a Profile,
    /// Absent where it was not kept.
    pub(crate) events: Option<&'a EventLog>,
    pub(crate) findings: &'a [Finding],
}

impl ProfileFiles {
    /// Opens what the options ask for.
    ///
    /// # Errors
    /// Refusals that name the option: stdout, an input, a file that cannot be written.
    pub(crate) fn open(args: &SightArgs) -> Result<ProfileFiles, Problem> {
        let inputs: Vec<&Path> = args.model.as_deref().into_iter().collect();
        let open = |option: &str, path: &Path| {
            if path.as_os_str() == "-" {
                return Err(Problem::refused(format!("`{option} -`: stdout is not free for it"))
                    .hint(format!("name a file: `{option} FILE`")));
            }
            spare_inputs(option, path, &inputs)?;
            let compressed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
            Ok(File { pending: Pending::open(option, path)?, compressed })
        };
        let [flamegraph, firefox, perfetto] =
            args.profile_files().map(|(option, path)| path.map(|path| open(option, path)).transpose());
        Ok(ProfileFiles { flamegraph: flamegraph?, firefox: firefox?, perfetto: perfetto? })
    }

    /// Whether what has a time of its own is to be kept for them.
    pub(crate) fn want_events(&self) -> bool {
        self.firefox.is_some() || self.perfetto.is_some()
    }

    /// What the user must know at once: that a file holds less than the run.
    pub(crate) fn warning(&self, shown: Shown<'_>) -> Option<Warning> {
        if !self.want_events() {
            return None;
        }
        let recorded = shown.events.is_some_and(|events| events.intervals.iter().any(|i| i.state.is_some()));
        if !recorded {
            let message = "--profile and --perfetto show states by time, and none were recorded: the files hold names, notes and \
                           findings";
            return Some(
                Warning::new("no-states-by-time", message)
                    .next("`iowhy doctor` names the setting or right that is missing"),
            );
        }
        let full_ns = shown.events?.full_ns?;
        let message = format!(
            "--profile and --perfetto hold the first {} of {}: there was no room for more",
            units::time(full_ns as f64),
            units::time(shown.profile.wall_ns as f64)
        );
        Some(
            Warning::new("profile-file-full", message)
                .next("profile a shorter part of the run: `iowhy attach PID --time 10s`"),
        )
    }

    /// That none of them is written, because no more than the run time is known.
    pub(crate) fn unwritten(&self) -> Option<Warning> {
        let given = [
            ("--flamegraph", &self.flamegraph),
            ("--profile", &self.firefox),
            ("--perfetto", &self.perfetto),
        ];
        let given: Vec<&str> =
            given.into_iter().filter_map(|(option, file)| file.as_ref().map(|_| option)).collect();
        let message = format!("{}: nothing is written, because only the run time is known", given.join(", "));
        (!given.is_empty()).then(|| Warning::new("no-profile", message))
    }

    /// Writes all of them. A failure of one does not cost the others.
    ///
    /// # Errors
    /// The first failure; others are said on stderr.
    pub(crate) fn write(self, shown: Shown<'_>, analyzer: &Analyzer, subject: &str) -> Result<(), Problem> {
        let mut failed = Vec::new();
        let mut file = |file: Option<File>, content: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
            failed.extend(file.and_then(|file| file.write(content).err()));
        };
        file(self.flamegraph, &|out| {
            let meaning = analyzer.meanings(shown.profile);
            out.write_all(flamegraph::lines(shown.profile, &|stack| meaning(stack).wait).as_bytes())
        });
        if self.firefox.is_some() || self.perfetto.is_some() {
            let timeline = timeline::made(shown, analyzer, subject);
            file(self.firefox, &|out| firefox::write(&timeline, out));
            file(self.perfetto, &|out| perfetto::write(&timeline, out));
        }
        first_of(failed)
    }
}

impl File {
    fn write(self, content: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> Result<(), Problem> {
        let bytes = if self.compressed {
            // A writer of JSON hands on single digits.
            let encoder = GzEncoder::new(Vec::new(), Compression::default());
            let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, encoder);
            content(&mut buffer)
                .and_then(|()| buffer.into_inner().map_err(IntoInnerError::into_error)?.finish())
        } else {
            let mut bytes = Vec::new();
            content(&mut bytes).map(|()| bytes)
        };
        let bytes =
            bytes.map_err(|error| Problem::failed(format!("a profile cannot be written: {error}")))?;
        self.pending.write(&bytes)
    }
}
