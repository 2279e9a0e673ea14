//! The trace file of a command: opened with its options, read with progress, and what a reader must know of it.

use std::time::Instant;

use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;
use iowhy_trace::{Options, Trace};

use crate::cli::TraceInputArgs;
use crate::progress::Progress;

/// Opens the trace of the options.
///
/// # Errors
/// An unknown format or step; see [`iowhy_trace::open`].
pub(crate) fn open(args: &TraceInputArgs) -> Result<Trace, Problem> {
    iowhy_trace::open(&args.file, &reading(args))
}

/// The options of a trace as its reader takes them.
fn reading(args: &TraceInputArgs) -> Options {
    Options { format: args.format, columns: args.columns.clone(), action: args.action }
}

/// Shows how far a file was read, if anybody can see it.
pub(crate) struct Meter {
    line: Progress,
    begun: Instant,
}

impl Meter {
    pub(crate) fn new(quiet: bool) -> Meter {
        Meter { line: Progress::new(quiet), begun: Instant::now() }
    }

    pub(crate) fn at(&self, trace: &Trace) {
        if let Some(share) = trace.share_read().filter(|share| *share > 0.0) {
            self.line.at(share, self.begun.elapsed().mul_f64((1.0 - share) / share), trace.name());
        }
    }
}

/// What a reader must know before using the trace.
pub(crate) fn warnings(trace: &Trace) -> Vec<Warning> {
    let mut list = Vec::new();
    if trace.losses().count(iowhy_trace::CUT_OFF) > 0 {
        list.push(
            Warning::new("cut-off", format!("`{}` is cut off: only its beginning was read", trace.name()))
                .next("copy or download it again; `gzip -t` and `zstd -t` check a file"),
        );
    }
    let refused: u64 = trace
        .losses()
        .list()
        .iter()
        .filter(|loss| loss.reason.contains("left out"))
        .map(|loss| loss.count)
        .sum();
    if refused > trace.requests() {
        list.push(
            Warning::new(
                "more-lost-than-read",
                "more was left out than was read: perhaps the format is another one",
            )
            .next("`iowhy trace head` shows what was read; `--format` names another format"),
        );
    }
    list
}
