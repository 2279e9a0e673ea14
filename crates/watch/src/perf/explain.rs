//! Why something may not be recorded, and the command that changes it. Reads settings; decides nothing.

use std::io::{self, BufRead, BufReader};

use iowhy_core::problem::Problem;
use iowhy_core::profile::{Limitation, Tier};

use crate::in_kernel::Refused;

/// The settings that decide. What cannot be read is `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    paranoid: Option<i32>,
    kptr_restrict: Option<i32>,
    capabilities: u64,
    seccomp: bool,
    container: bool,
    program: Option<String>,
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;

/// All that the highest tier needs, for `setcap`.
const CAPABILITIES: &str = "cap_bpf,cap_perfmon,cap_syslog,cap_sys_ptrace,cap_dac_read_search=ep";

impl Setting {
    pub(super) fn read() -> Self {
        let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse().ok();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = |key: &str| status.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
        Setting {
            paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
            kptr_restrict: number("/proc/sys/kernel/kptr_restrict"),
            capabilities: line("CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0),
            seccomp: line("Seccomp:").is_some_and(|mode| mode != "0"),
            container: ["/.dockerenv", "/run/.containerenv"].iter().any(|p| std::path::Path::new(p).exists()),
            program: std::env::current_exe().ok().map(|p| p.display().to_string()),
        }
    }

    /// Not even switches of our own tasks.
    pub(super) fn no_events(&self, error: &io::Error) -> Limitation {
        let absent = self.paranoid.is_none();
        let (why, fix) = match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EPERM) if self.seccomp || self.container => self.seccomp_refuses(),
            Some(libc::ENOSYS) if absent => ("this kernel has no perf events".to_owned(), None),
            _ => self.refusal(error, 2, self.sysctl(1)),
        };
        limitation("switches", format!("no record of when threads sleep and run: {why}"), fix)
    }

    pub(super) fn no_stacks(&self, error: &io::Error) -> Limitation {
        let (why, fix) = self.refusal(error, 1, self.sysctl(1));
        limitation("kernel-stacks", format!("no kernel stacks: {why}"), fix)
    }

    /// Stacks may be taken, but their addresses cannot be named.
    pub(super) fn no_names(&self) -> Limitation {
        let restrict = match self.kptr_restrict {
            Some(n) => format!("kernel.kptr_restrict is {n}"),
            None => "/proc/kallsyms shows no addresses".to_owned(),
        };
        let fix = match self.kptr_restrict {
            // The second level hides them from everybody; the first shows them to CAP_SYSLOG.
            Some(2..) => "sudo sysctl kernel.kptr_restrict=1   (and run as root)".to_owned(),
            _ if self.has(CAP_SYSLOG) => "sudo sysctl kernel.kptr_restrict=0".to_owned(),
            _ => self.setcap(),
        };
        limitation(
            "kernel-stacks",
            format!("no kernel stacks: the kernel hides its addresses ({restrict})"),
            Some(fix),
        )
    }

    pub(super) fn no_clock(&self, error: &io::Error) -> Limitation {
        let (why, fix) = self.refusal(error, 0, self.setcap());
        limitation("cpu-clock", format!("no clock on every CPU: {why}"), fix)
    }

    pub(super) fn no_observer(&self, refused: &Refused) -> Limitation {
        let fix = (*refused == Refused::NotPermitted).then(|| self.setcap());
        limitation("observer", format!("calls and block requests are not counted: {refused}"), fix)
    }

    fn has(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 != 0
    }

    /// Words for a refusal where `kernel.perf_event_paranoid` must be `enough` or less.
    fn refusal(&self, error: &io::Error, enough: i32, fix: String) -> (String, Option<String>) {
        match error.raw_os_error() {
            // The kernel itself says EACCES; a container's filter answers EPERM before the kernel is asked.
            Some(libc::EPERM) if self.container => self.seccomp_refuses(),
            Some(libc::EACCES | libc::EPERM) if self.paranoid.is_none_or(|p| p > enough) => {
                if self.has(CAP_PERFMON) || self.has(CAP_SYS_ADMIN) {
                    self.seccomp_refuses()
                } else {
                    self.paranoid_refuses(enough, fix)
                }
            }
            Some(libc::EACCES | libc::EPERM) => self.seccomp_refuses(),
            _ => (format!("perf_event_open: {error}"), None),
        }
    }

    fn paranoid_refuses(&self, enough: i32, fix: String) -> (String, Option<String>) {
        let why = match self.paranoid {
            Some(paranoid) if paranoid > enough => format!("kernel.perf_event_paranoid is {paranoid}"),
            _ => "the kernel refuses".to_owned(),
        };
        (why, Some(fix))
    }

    fn seccomp_refuses(&self) -> (String, Option<String>) {
        if self.container {
            let fix = "docker run --cap-add PERFMON --cap-add SYSLOG ...".to_owned();
            ("the container forbids perf_event_open".to_owned(), Some(fix))
        } else if self.seccomp {
            ("a seccomp filter forbids perf_event_open".to_owned(), None)
        } else {
            ("a security module forbids perf_event_open".to_owned(), None)
        }
    }

    fn sysctl(&self, level: i32) -> String {
        format!("sudo sysctl kernel.perf_event_paranoid={level}")
    }

    fn setcap(&self) -> String {
        format!("sudo setcap {CAPABILITIES} {}", self.program.as_deref().unwrap_or("iowhy"))
    }
}

fn limitation(id: &str, sentence: String, fix: Option<String>) -> Limitation {
    Limitation { id: id.into(), sentence, fix }
}

/// Whether `/proc/kallsyms` shows us addresses: a kernel that hides them shows zeros.
pub(super) fn kernel_names_are_shown() -> bool {
    // The first symbols may truly lie at zero (per-CPU variables), hence more than one.
    const ENOUGH: usize = 10_000;
    let Ok(file) = std::fs::File::open("/proc/kallsyms") else { return false };
    BufReader::new(file)
        .lines()
        .take(ENOUGH)
        .map_while(Result::ok)
        .any(|line| line.split(' ').next().is_some_and(|address| address.bytes().any(|b| b != b'0')))
}

/// The problem of a subject of which nothing may be recorded.
pub(super) fn nothing_allowed(limitations: &[Limitation]) -> Problem {
    let limitation = limitations.iter().find(|l| l.id == "switches");
    let problem = Problem::failed(match limitation {
        Some(limitation) => limitation.sentence.clone(),
        None => "no record of when threads sleep and run".to_owned(),
    });
    match limitation.and_then(|l| l.fix.clone()) {
        Some(fix) if fix.contains("sysctl ") => {
            problem.hint(format!("`sudo iowhy ...`; or `{fix}`, which holds for every user of this machine"))
        }
        Some(fix) => problem.hint(fix),
        None => problem,
    }
}

/// Raises the limit on open files of the parent shell, and so of iowhy, whose own limit is at its maximum already.
pub(super) fn more_files(needed: u64) -> String {
    format!("sudo prlimit --pid $$ --nofile={needed}")
}

/// The problem of a subject that could not be recorded although our own tasks can.
pub(super) fn cannot_record(tids: &[u32], error: &io::Error, tier: Tier) -> Problem {
    let who = match tids {
        [one] => format!("thread {one}"),
        [first, ..] => format!("thread {first} and {} more", tids.len() - 1),
        [] => "no threads".to_owned(),
    };
    let problem = Problem::failed(format!("cannot record {who}: {error}"));
    match error.raw_os_error() {
        Some(libc::ESRCH) => Problem::failed(format!("cannot record {who}: no such thread")),
        Some(libc::EACCES | libc::EPERM) => problem.hint("sudo iowhy ..."),
        Some(libc::EMFILE) => problem.hint(more_files(4096)),
        // The locked memory of an unprivileged user, shared with all other recorders of that user.
        _ if tier < Tier::Clock => problem.hint("sudo sysctl kernel.perf_event_mlock_kb=2048"),
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn a_refusal_names_the_present_setting_and_the_command() {
        let setting = Setting { paranoid: Some(2), program: Some("/bin/iowhy".into()), ..Setting::default() };
        let stacks = setting.no_stacks(&error(libc::EACCES));
        assert_eq!(stacks.sentence, "no kernel stacks: kernel.perf_event_paranoid is 2");
        assert_eq!(stacks.fix.as_deref(), Some("sudo sysctl kernel.perf_event_paranoid=1"));
        let clock = setting.no_clock(&error(libc::EACCES));
        assert!(
            clock.fix.is_some_and(
                |f| f.starts_with("sudo setcap cap_bpf,cap_perfmon") && f.ends_with(" /bin/iowhy")
            )
        );
    }

    #[test]
    fn where_nothing_may_be_recorded_sudo_comes_before_a_setting_of_the_machine() {
        let setting = Setting { paranoid: Some(3), ..Setting::default() };
        let hint = nothing_allowed(&[setting.no_events(&error(libc::EACCES))]).hint.unwrap_or_default();
        assert!(
            hint.starts_with("`sudo iowhy ...`") && hint.ends_with("every user of this machine"),
            "{hint}"
        );
    }

    #[test]
    fn a_container_is_told_what_to_add() {
        let setting = Setting { paranoid: Some(-1), container: true, seccomp: true, ..Setting::default() };
        for limitation in [setting.no_events(&error(libc::EPERM)), setting.no_stacks(&error(libc::EPERM))] {
            assert!(limitation.sentence.contains("container"), "{}", limitation.sentence);
            assert!(limitation.fix.is_some_and(|f| f.contains("--cap-add PERFMON")));
        }
    }

    #[test]
    fn a_kernel_without_events_promises_no_fix() {
        let limitation = Setting::default().no_events(&error(libc::ENOSYS));
        assert!(limitation.sentence.contains("no perf events") && limitation.fix.is_none());
    }

    #[test]
    fn only_a_right_that_is_missing_can_be_given() {
        let setting = Setting::default();
        let fix = |refused| setting.no_observer(&refused).fix;
        assert!(fix(Refused::NotPermitted).is_some_and(|f| f.starts_with("sudo setcap cap_bpf,")));
        assert_eq!(fix(Refused::NoTypes), None);
    }

    #[test]
    fn hidden_addresses_need_another_command_than_refused_events() {
        let setting = Setting { kptr_restrict: Some(2), ..Setting::default() };
        assert!(setting.no_names().fix.is_some_and(|f| f.contains("kptr_restrict")));
    }
}
