//! Calls in their order: all of them where that was asked for, else windows as far as there is credit for them.

use iowhy_core::profile::Limitation;

use crate::calls::{CallLog, CallRecord, Credit};
use crate::in_kernel::{ALL, FULL, InKernel};
use iowhy_linux::clock::monotonic_ns;

/// While a window is open, records are fetched this often: the kernel's buffer holds more than the credit that may come
/// together.
const PACE_NS: u64 = 50_000_000;

/// The windows of a watch.
pub(super) struct Recording {
    log: CallLog,
    /// `None`: every call is recorded.
    credit: Option<Credit>,
    /// Whether a window is open.
    open: bool,
    next_ns: u64,
    /// Calls that were recorded.
    calls: u64,
    failed: Option<Limitation>,
    /// Why page faults are not recorded, though every call is.
    without_faults: Option<Limitation>,
}

impl Recording {
    /// The recording of a run that begins now. `loads`: with loading its program.
    pub(super) fn new(now: u64, loads: bool, seed: u64) -> Recording {
        Recording {
            log: CallLog::new(now, loads),
            credit: Some(Credit::new(now, seed)),
            open: false,
            next_ns: now,
            calls: 0,
            failed: None,
            without_faults: None,
        }
    }

    /// The recording of every call of a run that begins now.
    pub(super) fn of_all(now: u64, seed: u64) -> Recording {
        Recording { log: CallLog::of_all(now), credit: None, ..Recording::new(now, false, seed) }
    }

    /// The same, with the longest calls kept.
    pub(super) fn keeping_slowest(mut self) -> Recording {
        self.log.keep_slowest();
        self
    }

    /// When [`Recording::step`] wants to be called.
    pub(super) fn deadline_ns(&self) -> u64 {
        if self.failed.is_some() { u64::MAX } else { self.next_ns }
    }

    /// Opens, reads or closes a window, whichever is due.
    pub(super) fn step(&mut self, now: u64, observer: &mut InKernel) {
        if now < self.deadline_ns() {
            return;
        }
        let done = if self.open { self.read(observer) } else { self.open(observer) };
        if let Err(why) = done {
            self.fail(&why);
        }
    }

    fn fail(&mut self, why: &str) {
        self.failed = Some(Limitation {
            id: "call-records".to_owned(),
            sentence: format!("the order and durations of system calls are not recorded: {why}"),
            fix: None,
        });
    }

    fn open(&mut self, observer: &mut InKernel) -> Result<(), String> {
        let calls = self.credit.as_mut().map_or(ALL, |credit| credit.calls(monotonic_ns()));
        observer.open_window(calls)?;
        if self.credit.is_none()
            && let Err(why) = observer.record_faults()
        {
            self.without_faults = Some(Limitation {
                id: "call-records".to_owned(),
                sentence: format!("the pages that the program touches in mappings are not recorded: {why}"),
                fix: None,
            });
        }
        let now = monotonic_ns();
        if self.credit.is_some() {
            self.log.begin(now);
        }
        self.open = true;
        self.next_ns = now + PACE_NS;
        Ok(())
    }

    fn read(&mut self, observer: &mut InKernel) -> Result<(), String> {
        let left = self.take(observer)?;
        let now = monotonic_ns();
        self.next_ns = now + PACE_NS;
        let Some(credit) = &mut self.credit else {
            // The kernel counts what is missing from now on.
            return if self.log.is_full() { observer.allow_records(FULL) } else { Ok(()) };
        };
        let credit = credit.calls(now);
        if left == 0 || credit == 0 {
            self.close(observer)?;
            if let Some(credit) = &mut self.credit {
                self.next_ns = credit.next_window_ns(monotonic_ns());
            }
            return Ok(());
        }
        observer.allow_records(credit)
    }

    /// Takes what was recorded. Returns how many more calls will be.
    fn take(&mut self, observer: &mut InKernel) -> Result<u32, String> {
        let Recording { log, calls, .. } = self;
        let before = *calls;
        let left = observer.take_records(&mut |record: &CallRecord| {
            *calls += u64::from(!record.is_fault());
            log.take(record);
        });
        if let Some(credit) = &mut self.credit {
            credit.spend(self.calls - before);
        }
        left
    }

    fn close(&mut self, observer: &mut InKernel) -> Result<(), String> {
        observer.close_window()?;
        self.take(observer)?;
        self.log.end();
        self.open = false;
        Ok(())
    }

    /// Ends the recording: the log, and the number of recorded calls.
    pub(super) fn finish(
        mut self,
        observer: &mut InKernel,
        limitations: &mut Vec<Limitation>,
    ) -> (CallLog, u64) {
        // A record of every call stays open: what recording costs is measured with it.
        let done = match self.credit {
            Some(_) if self.open => self.close(observer),
            None if self.open => self.take(observer).map(|_| ()),
            _ => Ok(()),
        };
        if let Err(why) = done {
            self.fail(&why);
        }
        limitations.extend(self.failed.into_iter().chain(self.without_faults));
        (self.log, self.calls)
    }
}
