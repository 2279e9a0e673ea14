//! Progress on stderr, when it is a terminal: what is being done, how far, and how long it will still take.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress line, or nothing at all when stderr is no terminal or `--quiet` was given.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

/// The line's resolution: thousandths.
const STEPS: u64 = 1000;

impl Progress {
    /// A line that shows itself only where somebody can see it.
    pub fn new(quiet: bool) -> Progress {
        let target = if quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(10)
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar }
    }

    /// Shows where we stand; `remaining` is the caller's own estimate.
    pub fn at(&self, share: f64, remaining: Duration, doing: &str) {
        self.bar.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_message(format!("{} s left  {doing}", remaining.as_secs_f64().ceil() as u64));
    }
}

impl Drop for Progress {
    /// Removes the line, so that whatever is printed next starts on a clean one.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
