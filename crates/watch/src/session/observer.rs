//! Watches threads of iowhy itself from a thread that is not watched: the cross-check of its own measurements.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread::JoinHandle;

use iowhy_core::problem::Problem;
use iowhy_core::profile::{End, Profile, Tier};
use rustix::pipe::{PipeFlags, pipe_with};

use super::event_loop::{EventLoop, Roots, Target};
use super::{Options, Watched};
use crate::child::Adoption;
use crate::perf;

/// Name of the watching thread.
pub(super) const EVENT_LOOP_NAME: &str = "iowhy-watch";

/// A running watch of threads of this process and of the threads that those start. System calls are not traced.
#[derive(Debug)]
pub struct Observer {
    /// Dropped to end the watch.
    stop: OwnedFd,
    event_loop: JoinHandle<Watched>,
}

impl Observer {
    /// Starts watching, with a clock of every CPU that ticks once in `clock_period_ns`. Returns when everything is open, so that what the caller does next is seen. Call it before the
    /// threads do what is to be watched, from a thread that may itself be one of them.
    ///
    /// # Errors
    /// No thread or pipe can be made, or no thread is named.
    pub fn start<F>(tids: &[u32], tier: Tier, clock_period_ns: u64, on_path: F) -> Result<Observer, Problem>
    where
        F: Fn(&[&str]) -> bool + Send + 'static,
    {
        if tids.is_empty() {
            return Err(Problem::failed("no thread to watch is named"));
        }
        let failed = |what: &str, e: std::io::Error| {
            Problem::failed(format!("cannot watch our own threads: {what}: {e}"))
        };
        let (ended, stop) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed("pipe", e.into()))?;
        let (ready, is_ready) = mpsc::channel();
        let tids = tids.to_vec();
        let event_loop = std::thread::Builder::new()
            .name(EVENT_LOOP_NAME.to_owned())
            .spawn(move || {
                let options = Options {
                    on_path: &on_path,
                    tier,
                    count_calls: false,
                    record_calls: false,
                    keep_events: false,
                    begun: &|| {},
                };
                let rights = perf::Rights { clock_period_ns, ..perf::rights().at_most(tier) };
                let mut event_loop = EventLoop::new(&options, rights);
                event_loop.open(&Roots::Own(&tids));
                event_loop.begin();
                // The caller waits on the other side, or has given up.
                let _ = ready.send(());
                let mut adoption = Adoption::none();
                let target = Target { pidfd: None, signals: None, stop: Some(ended.as_fd()) };
                while !event_loop.stopped() {
                    event_loop.turn(&target, &mut adoption);
                }
                event_loop.close(End::Running, None, &mut adoption)
            })
            .map_err(|e| failed("thread", e))?;
        // An error means that the thread ended early; `stop` tells.
        let _ = is_ready.recv();
        Ok(Observer { stop, event_loop })
    }

    /// Ends the watch.
    ///
    /// # Errors
    /// The watching thread failed.
    pub fn stop(self) -> Result<Profile, Problem> {
        drop(self.stop);
        let ended = self.event_loop.join();
        let ended = ended.map_err(|_| Problem::failed("the thread that watched our own threads failed"))?;
        Ok(ended.profile)
    }
}
