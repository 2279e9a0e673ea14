//! `iowhy --all`: watches the whole machine for a while, and says who waits for what, and who causes it.

use std::path::Path;

use iowhy_core::machine::{MachineProfile, Subject};
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
        return Err(Problem::refused(format!("{other} has no meaning with `{name}`")).hint(format!(
            "`sudo iowhy {name} --time 10s` watches the whole machine; `iowhy [OPTIONS] PATH` measures a path"
        )));
    }
    let container = args.container.as_deref().map(container::group).transpose()?;
    let group = args.cgroup.as_deref().or(container.as_deref()).map(group).transpose()?;
    let outputs = Outputs::open(options)?;
    let limit = args.time(path.time);
    let profile = {
        let _countdown = Countdown::start(Some(limit), "watching the whole machine", outputs.quiet());
        watch_machine(limit)?
    };
    let record = record(profile, group);
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

fn record(profile: MachineProfile, group: Option<GroupWatch>) -> WholeMachineRecord {
    let is_in = |group: &GroupWatch, subject: &Subject| {
        subject.groups.iter().any(|path| Path::new(path).starts_with(group.path()))
    };
    let inside = |subject: u32| match &group {
        Some(group) => profile.subjects.get(subject as usize).is_some_and(|subject| is_in(group, subject)),
        None => true,
    };
    let account = account(&profile, &Classifier::new(), &inside);
    let verdict = verdict(&profile, &account, &inside);
    let sysfs = Sysfs::new();
    let name = |number: &str| sysfs.name_of(number);
    let group = group.map(|group| GroupRecord::new(group.end(&name)));
    let first = account.waiters.first().and_then(|waiter| profile.subjects.get(waiter.subject as usize));
    let limits = first.map(|subject| limits_of(subject.pid, &name)).unwrap_or_default();
    WholeMachineRecord::new(profile, account, verdict, group, limits, invocation(String::new(), None))
}
