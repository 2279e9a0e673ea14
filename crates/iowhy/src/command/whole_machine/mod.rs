//! `iowhy --all`: watches the whole machine for a while, and says who waits for what, and who causes it.

mod live;

use std::path::Path;

use iowhy_core::machine::MachineProfile;
use iowhy_core::problem::Problem;
use iowhy_diagnose::classify::Classifier;
use iowhy_diagnose::machine::{account, verdict};
use iowhy_linux::block::sysfs::Sysfs;
use iowhy_linux::control_group::{GroupWatch, limits_of};
use iowhy_watch::machine::watch_machine;

use crate::cli::{MachineArgs, OutputArgs, PathArgs};
use crate::container;
use crate::ending::Ending;
use crate::observation::invocation;
use crate::output::{self, Outputs};
use crate::progress::Countdown;
use crate::record::watch::Invocation;
use crate::record::whole_machine::{GroupRecord, WholeMachineRecord};
use crate::screen;
use iowhy_view::document::Detail;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; outputs that cannot be written.
pub fn run(args: &MachineArgs, path: &PathArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let name = args.given().unwrap_or("--all");
    let others = PathArgs { time: None, ..path.clone() };
    if let Some(other) = others.first_given() {
        let subject = args.subject();
        return Err(Problem::refused(format!("{other} has no meaning with `{name}`")).hint(format!(
            "`sudo iowhy {subject} --time 10s` watches the machine; `iowhy [OPTIONS] PATH` measures a path"
        )));
    }
    if args.live {
        live::refuse_without_terminal(&args.subject())?;
    }
    let container = args.container.as_deref().map(container::group).transpose()?;
    let group = args.cgroup.as_deref().or(container.as_deref()).map(group).transpose()?;
    let outputs = Outputs::open(options)?;
    let mut accounts = Accounts::new(group);
    let record = if args.live {
        live::watch(accounts, path.time, args.max_overhead)?
    } else {
        let limit = args.time(path.time);
        let profile = {
            let _countdown = Countdown::start(Some(limit), "watching the whole machine", outputs.quiet());
            watch_machine(limit, args.max_overhead, accounts.group.as_ref())?
        };
        accounts.record(profile)
    };
    outputs.warn(&record.warnings);
    let screen = screen::text(&screen::whole_machine::chapter(&record, Detail::Screen), output::width());
    outputs.finish(&screen, &record).map(|()| Ending::done())
}

/// The group of an option, as it is when the watch begins.
fn group(path: &Path) -> Result<GroupWatch, Problem> {
    GroupWatch::begin(path).ok_or_else(|| {
        Problem::refused(format!("`--cgroup {}` is no control group of this machine", path.display()))
            .hint("`cat /proc/PID/cgroup` prints the group of a process; `systemd-cgls` lists all")
    })
}

/// Makes records of what was seen: what that takes is made once.
struct Accounts {
    classifier: Classifier,
    group: Option<GroupWatch>,
    sysfs: Sysfs,
    invocation: Invocation,
}

impl Accounts {
    fn new(group: Option<GroupWatch>) -> Accounts {
        let invocation = invocation(String::new(), None);
        Accounts { classifier: Classifier::new(), group, sysfs: Sysfs::new(), invocation }
    }

    fn record(&mut self, profile: MachineProfile) -> WholeMachineRecord {
        let group = self.group();
        let is_meant = |subject: u32| match &group {
            Some(group) => profile.subjects.get(subject as usize).is_some_and(|subject| group.holds(subject)),
            None => true,
        };
        let account = account(&profile, &self.classifier, &is_meant);
        let verdict = verdict(&profile, &account, &is_meant);
        let first = account.waiters.first().and_then(|waiter| profile.subjects.get(waiter.subject as usize));
        let name = |number: &str| self.device_name(number);
        let limits = first.map(|subject| limits_of(subject.pid, &name)).unwrap_or_default();
        WholeMachineRecord::new(profile, account, verdict, group, limits, self.invocation.clone())
    }

    /// An interval goes by of which no record is wanted: the group's counters go on.
    fn skip(&mut self) {
        self.group();
    }

    fn group(&mut self) -> Option<GroupRecord> {
        let Accounts { group, sysfs, .. } = self;
        let seen = group.as_mut()?.seen(&|number| sysfs.name_of(number));
        Some(GroupRecord::new(seen))
    }

    fn device_name(&self, number: &str) -> Option<String> {
        self.sysfs.name_of(number)
    }
}
