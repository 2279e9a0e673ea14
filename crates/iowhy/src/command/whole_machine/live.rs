//! `--live`: a new account each second, drawn on the terminal until a key, a signal or the time ends it. The observer is attached once; each
//! account is what it told since the one before.

use std::time::Duration;

use iowhy_core::machine::MachineProfile;
use iowhy_core::problem::Problem;
use iowhy_core::profile::GroupLimit;
use iowhy_linux::clock::monotonic_ns;
use iowhy_linux::control_group::limits_of;
use iowhy_watch::machine::MachineWatch;

use super::Accounts;
use crate::live::{Action, FullScreen, Shown, View, is_possible};
use crate::record::whole_machine::WholeMachineRecord;

/// An account is of so long.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Watches until somebody leaves, or for so long. Gives the account that was shown last.
pub(super) fn watch(
    accounts: Accounts,
    limit: Option<Duration>,
    max_overhead: f64,
) -> Result<WholeMachineRecord, Problem> {
    let watch = MachineWatch::begin(max_overhead, accounts.group.as_ref())?;
    if !watch.hears_signals() {
        return Err(Problem::failed("signals cannot be heard, so that the terminal would not be set back")
            .hint("`sudo iowhy --all --time 10s` needs no terminal"));
    }
    let begin_ns = monotonic_ns();
    let limit_ns = limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let mut live = Live {
        watch,
        accounts,
        view: View::default(),
        shown: None,
        limits: Vec::new(),
        begin_ns,
        interval_ends_ns: begin_ns + INTERVAL_NS,
    };
    let mut screen = FullScreen::enter()?;
    live.run(&mut screen, begin_ns.saturating_add(limit_ns))?;
    drop(screen);
    live.last()
}

/// The refusal where it cannot be drawn.
pub(super) fn refuse_without_terminal(subject: &str) -> Result<(), Problem> {
    is_possible().map_err(|why| {
        Problem::refused(format!("`{subject} --live` draws on a terminal, and {why}")).hint(format!(
            "`sudo iowhy {subject} --time 10s` prints one account as text; `--json FILE` for programs"
        ))
    })
}

struct Live {
    watch: MachineWatch,
    accounts: Accounts,
    view: View,
    shown: Option<WholeMachineRecord>,
    limits: Vec<GroupLimit>,
    begin_ns: u64,
    interval_ends_ns: u64,
}

impl Live {
    fn run(&mut self, screen: &mut FullScreen, end_ns: u64) -> Result<(), Problem> {
        let mut is_stale = true;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= self.interval_ends_ns {
                let profile = self.next_interval()?;
                self.show(profile);
                is_stale = true;
            }
            if now_ns >= end_ns || self.watch.overhead_exceeded().is_some() {
                return Ok(());
            }
            if is_stale || screen.has_resized() {
                let shown = Shown {
                    record: self.shown.as_ref(),
                    limits: &self.limits,
                    watched_ns: now_ns.saturating_sub(self.begin_ns),
                };
                screen.draw(&shown, &mut self.view)?;
            }
            if self.watch.turn(Some(screen.input()), self.interval_ends_ns.min(end_ns))? {
                return Ok(());
            }
            let keys = screen.keys()?;
            is_stale = !keys.is_empty();
            for key in keys {
                match self.view.press(key, self.shown.as_ref()) {
                    Action::Nothing => {}
                    Action::Leave => return Ok(()),
                    Action::Suspend => {
                        self.watch.pause();
                        screen.suspend()?;
                        self.watch.pause();
                        // Nobody took what the observer told meanwhile: that is no account.
                        self.next_interval()?;
                        self.accounts.skip();
                    }
                }
                self.look_at_limits();
            }
        }
    }

    fn next_interval(&mut self) -> Result<MachineProfile, Problem> {
        let profile = self.watch.take_interval()?;
        self.interval_ends_ns = monotonic_ns() + INTERVAL_NS;
        Ok(profile)
    }

    fn show(&mut self, profile: MachineProfile) {
        if self.view.paused {
            return self.accounts.skip();
        }
        self.shown = Some(self.accounts.record(profile));
        self.look_at_limits();
    }

    /// Of the process that is open.
    fn look_at_limits(&mut self) {
        let pid = self.view.opened.as_ref().map_or(0, |who| who.pid);
        self.limits = limits_of(pid, &|number| self.accounts.device_name(number));
    }

    /// The account that was shown last; of one that is left before its first second, what there is.
    fn last(mut self) -> Result<WholeMachineRecord, Problem> {
        let record = match self.shown.take() {
            Some(record) => record,
            None => {
                let profile = self.next_interval()?;
                self.accounts.record(profile)
            }
        };
        let watched_ns = Some(monotonic_ns().saturating_sub(self.begin_ns));
        let record = record.overhead_exceeded(self.watch.overhead_exceeded());
        Ok(WholeMachineRecord { watched_ns, ..record }.with_course(self.watch.finish()))
    }
}
