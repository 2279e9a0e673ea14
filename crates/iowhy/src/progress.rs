//! Progress on stderr, when it is a terminal: what is being done, how far, and how long it will still take.

use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iowhy_core::text::visible;

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
        // What does not fit is cut off: a line that wraps cannot be taken away again.
        let bar_width = if narrow() { 8 } else { 24 };
        let template = format!("{{bar:{bar_width}}} {{percent:>3}} %  {{wide_msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar }
    }

    /// Shows where we stand; `remaining` is the caller's own estimate.
    pub fn at(&self, share: f64, remaining: Duration, doing: &str) {
        self.bar.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
        self.bar.set_message(format!("{} s left  {}", remaining.as_secs_f64().ceil() as u64, visible(doing)));
    }

    /// Takes the line away while something else is printed.
    pub fn aside(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

/// Whether the terminal has less room than the long bar and most messages need.
fn narrow() -> bool {
    const ENOUGH: u16 = 72;
    rustix::termios::tcgetwinsize(std::io::stderr()).is_ok_and(|size| (1..ENOUGH).contains(&size.ws_col))
}

impl Drop for Progress {
    /// Removes the line, so that whatever is printed next starts on a clean one.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A progress line that runs by itself while the caller waits for something else that takes a known time.
#[derive(Debug)]
pub struct Countdown {
    /// Dropped to stop it.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(200);

impl Countdown {
    /// Starts it; nothing happens where nobody could see it. Without a limit it says once how to end, also to a program: that
    /// can wait for the line.
    pub fn start(limit: Option<Duration>, doing: &str, quiet: bool) -> Countdown {
        let nothing = Countdown { stop: None, thread: None };
        if quiet {
            return nothing;
        }
        let Some(limit) = limit.filter(|limit| !limit.is_zero()) else {
            anstream::eprintln!("{doing}; Ctrl-C ends it and prints the report");
            return nothing;
        };
        if !std::io::stderr().is_terminal() {
            return nothing;
        }
        let (stop, stopped) = mpsc::channel();
        let doing = doing.to_owned();
        let run = move || {
            let line = Progress::new(false);
            let begun = Instant::now();
            loop {
                let spent = begun.elapsed();
                let share = spent.as_secs_f64() / limit.as_secs_f64();
                line.at(share, limit.saturating_sub(spent), &doing);
                if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        // Without a thread there is no line; what is watched is seen all the same.
        match std::thread::Builder::new().name("progress".to_owned()).spawn(run) {
            Ok(thread) => Countdown { stop: Some(stop), thread: Some(thread) },
            Err(_) => nothing,
        }
    }
}

impl Drop for Countdown {
    /// Removes the line before anything else is printed.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked over anything that matters here.
            let _ = thread.join();
        }
    }
}
