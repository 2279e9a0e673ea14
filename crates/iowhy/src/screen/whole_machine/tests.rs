//! Screens of scripted machines at several widths; the expected ones stand beside those of the binary.

use iowhy_core::environment::Environment;
use iowhy_core::machine::{Caused, Device, DeviceUser, MachineProfile, Stalls, Subject, Wait};
use iowhy_core::profile::{GroupLimit, Limited};
use iowhy_diagnose::classify::Classifier;
use iowhy_diagnose::machine::{account, verdict};
use iowhy_view::terminal::table::visible_width;

use super::*;
use crate::record::watch::Invocation;
use crate::record::whole_machine::GroupRecord;
use crate::screen::for_tests::{self, assert_expected};

const SECOND: u64 = 1_000_000_000;

fn stack(names: &str) -> Vec<String> {
    names.split(' ').map(str::to_owned).collect()
}

fn profile(waits: Vec<Wait>) -> MachineProfile {
    let subject =
        |pid: u32, name: &str| Subject { pid, name: name.to_owned(), kernel: pid == 0, ..Subject::default() };
    let read = "io_schedule folio_wait_bit_common filemap_get_pages filemap_read vfs_read ksys_read __x64_sys_pread64";
    let commit = "schedule jbd2_log_wait_commit ext4_fsync_journal ext4_sync_file do_fsync __x64_sys_fsync";
    MachineProfile {
        wall_ns: 10 * SECOND,
        cpus: 2,
        counted: Some(Stalls {
            io_some_ns: 7.2e9,
            io_full_ns: 6.5e9,
            cpu_some_ns: 0.3e9,
            memory_some_ns: 0.0,
            memory_full_ns: 0.0,
        }),
        computed: Stalls {
            io_some_ns: 7.1e9,
            io_full_ns: 6.4e9,
            cpu_some_ns: 0.2e9,
            memory_some_ns: 0.0,
            memory_full_ns: 0.0,
        },
        subjects: vec![
            subject(2211, "backup"),
            subject(1873, "postgres"),
            subject(0, "jbd2/nvme0n1p2-8"),
            subject(990, "cron"),
            subject(991, "a name of 15 ch"),
        ],
        stacks: vec![stack(read), stack(commit)],
        devices: vec![Device {
            name: "nvme0n1".to_owned(),
            mounts: vec!["/".to_owned(), "/srv/a/very/long/mount/point".to_owned()],
            reads: 41_000,
            writes: 2_000,
            read_bytes: 5 << 30,
            written_bytes: 80 << 20,
            queue_ns: SECOND,
            service_ns: 30 * SECOND,
            busy_ns: 98 * SECOND / 10,
            users: vec![DeviceUser { subject: 4, requests: 1300, ..DeviceUser::default() }],
            ..Device::default()
        }],
        waits,
        ..MachineProfile::default()
    }
}

fn wait(subject: u32, stack: u32, seconds: f64, caused: &[(u32, f64)]) -> Wait {
    Wait {
        subject,
        stack: Some(stack),
        device: Some(0),
        count: 1300,
        time_ns: (seconds * 1e9) as u64,
        longest_ns: 212_000_000,
        caused: caused.iter().map(|(subject, s)| Caused { subject: *subject, time_ns: s * 1e9 }).collect(),
        ..Wait::default()
    }
}

fn record(profile: MachineProfile) -> WholeMachineRecord {
    let all = |_| true;
    let account = account(&profile, &Classifier::new(), &all);
    let verdict = verdict(&profile, &account, &all);
    let environment = Environment {
        kernel: "6.18.44".to_owned(),
        cpus: 2,
        memory_bytes: 8 << 30,
        ..Environment::default()
    };
    WholeMachineRecord::new(
        profile,
        account,
        verdict,
        None,
        Vec::new(),
        Invocation { environment, ..Invocation::default() },
    )
}

fn busy() -> WholeMachineRecord {
    record(profile(vec![
        wait(1, 0, 6.1, &[(0, 4.9), (2, 0.4)]),
        wait(1, 1, 2.4, &[(0, 2.0)]),
        wait(0, 0, 3.2, &[(1, 0.3)]),
        wait(3, 0, 0.2, &[(0, 0.2)]),
        wait(4, 0, 0.1, &[]),
    ]))
}

/// Nobody waits, and the device does nothing.
fn idle() -> WholeMachineRecord {
    let mut idle = profile(Vec::new());
    (idle.counted, idle.computed) = (Some(Stalls::default()), Stalls::default());
    idle.devices.clear();
    record(idle)
}

fn plain(record: &WholeMachineRecord, width: usize) -> String {
    for_tests::plain(&chapter(record, Detail::Screen), width)
}

#[test]
fn screens_are_as_expected() {
    for width in [80, 100] {
        assert_expected(&format!("machine-busy-{width}.txt"), &plain(&busy(), width));
    }
    assert_expected("machine-idle-100.txt", &plain(&idle(), 100));
}

#[test]
fn a_screen_has_at_most_40_lines_and_fits_the_width() {
    for record in [busy(), idle()] {
        for width in [60, 80, 100, 120] {
            let text = plain(&record, width);
            assert!(text.lines().all(|line| visible_width(line) <= width), "{width}: {text}");
            assert!(width < 80 || text.lines().count() <= 40, "{width}: {text}");
        }
    }
}

#[test]
fn an_idle_machine_blames_nobody() {
    let text = plain(&idle(), 100);
    assert!(text.contains("Idle: no process waited"), "{text}");
    assert!(!text.contains("causes") && !text.contains("backup"), "{text}");
}

#[test]
fn no_wait_was_seen_is_said_where_something_may_be_missing() {
    let mut missing = profile(Vec::new());
    (missing.counted, missing.computed) = (Some(Stalls::default()), Stalls::default());
    missing.lost.pooled = 7;
    let record = record(missing);
    let text = plain(&record, 100);
    assert!(text.contains("No wait for I/O or memory was seen") && !text.contains("Idle"), "{text}");
    assert!(record.warnings.iter().any(|w| w.message.contains("share an entry")), "{:?}", record.warnings);
}

#[test]
fn itself_is_said_only_where_its_requests_were_at_the_device() {
    let cause = |change: &dyn Fn(&mut MachineProfile)| {
        let mut alone = profile(vec![wait(1, 0, 6.0, &[])]);
        change(&mut alone);
        let record = record(alone);
        nobody_else(&record, &record.account.waiters[0])
    };
    let is_there = |profile: &mut MachineProfile| {
        profile.devices[0].users.push(DeviceUser { subject: 1, requests: 9, ..DeviceUser::default() });
    };
    assert_eq!(cause(&is_there), "itself");
    assert_eq!(cause(&|_| ()), "-");
    let nowhere = |p: &mut MachineProfile| p.waits[0].device = None;
    let both = |p: &mut MachineProfile| {
        is_there(p);
        nowhere(p);
    };
    assert_eq!(cause(&both), "-");
    let lost = |p: &mut MachineProfile| {
        is_there(p);
        p.lost.requests = 1;
    };
    assert_eq!(cause(&lost), "-");
}

#[test]
fn what_others_cause_together_is_said_and_not_called_little() {
    let words = |causes: &[(u32, f64)]| words::verdict(&record(profile(vec![wait(1, 0, 10.0, causes)])));
    assert!(words(&[(0, 1.0)]).ends_with("others hardly cause that"), "{}", words(&[(0, 1.0)]));
    let several = words(&[(0, 1.8), (2, 1.0), (3, 1.8)]);
    assert!(several.contains("others cause 46 % of that: backup (2211) 18 %, cron (990) 18 %"), "{several}");
    // The kernel's own threads are no culprits.
    let kernel = words(&[(2, 9.0)]);
    assert!(kernel.starts_with("postgres (1873)") && kernel.contains("others cause 90 %"), "{kernel}");
    let mut nowhere = profile(vec![wait(1, 0, 10.0, &[])]);
    nowhere.waits[0].device = None;
    let nowhere = words::verdict(&record(nowhere));
    assert!(!nowhere.contains("hardly"), "{nowhere}");
}

#[test]
fn a_memory_limit_is_named_only_where_the_group_has_reached_it() {
    let mut stalled = profile(vec![Wait { reclaim: true, device: None, ..wait(1, 0, 6.0, &[]) }]);
    stalled.counted = None;
    let mut record = record(stalled);
    let limit = |set_by: &str, words: &str| GroupLimit {
        of: Limited::Memory,
        set_by: set_by.to_owned(),
        words: words.to_owned(),
    };
    let group = |limit_events| GroupRecord {
        path: "a/b".to_owned(),
        limits: vec![limit("/sys/fs/cgroup/a", "of its parent"), limit("/sys/fs/cgroup/a/b", "its own")],
        memory_limit_events: Some(limit_events),
        ..GroupRecord::default()
    };
    record.group = Some(group(0));
    assert!(words::verdict(&record).ends_with("`memory`"), "{}", words::verdict(&record));
    record.group = Some(group(3));
    assert!(words::verdict(&record).ends_with("`memory`: its own"), "{}", words::verdict(&record));
}

#[test]
fn a_name_that_a_program_chose_is_no_control_code() {
    let mut wild = profile(vec![wait(1, 0, 6.1, &[])]);
    wild.subjects[1].name = "\u{1b}[2J\n".to_owned();
    assert!(!plain(&record(wild), 100).contains('\u{1b}'));
}
