//! Scripted machines: one whose disk a backup and a database share, and one where nobody waits.

use iowhy_core::environment::Environment;
use iowhy_core::machine::{
    Caused, Cost, Device, DeviceUser, MachineProfile, Stalls, Subject, TimedShare, Wait,
};
use iowhy_core::profile::{Course, CourseStep, DeviceStep};
use iowhy_diagnose::classify::Classifier;
use iowhy_diagnose::machine::{account, verdict};

use crate::record::watch::Invocation;
use crate::record::whole_machine::WholeMachineRecord;

const SECOND: u64 = 1_000_000_000;

fn stack(names: &str) -> Vec<String> {
    names.split(' ').map(str::to_owned).collect()
}

pub(crate) fn profile(waits: Vec<Wait>) -> MachineProfile {
    let subject =
        |pid: u32, name: &str| Subject { pid, name: name.to_owned(), kernel: pid == 0, ..Subject::default() };
    let runs = |of: Subject, cpu_ms: u64, queued_ms: u64| Subject {
        cpu_ns: cpu_ms * 1_000_000,
        queued_ns: queued_ms * 1_000_000,
        ..of
    };
    let user = |subject, requests, bytes| DeviceUser { subject, requests, bytes, ..DeviceUser::default() };
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
            runs(subject(2211, "backup"), 1900, 40),
            runs(subject(1873, "postgres"), 600, 210),
            subject(0, "jbd2/nvme0n1p2-8"),
            subject(990, "cron"),
            subject(991, "a name of 15 ch"),
            runs(subject(3005, "cc1"), 7000, 1200),
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
            in_flight_ns: 30 * SECOND,
            busy_ns: 98 * SECOND / 10,
            users: vec![user(4, 1300, 5 << 20), user(0, 40_000, 5 << 30), user(2, 200, 70 << 20)],
            ..Device::default()
        }],
        waits,
        cost: Cost {
            own_cpu_ns: 90_000_000,
            waits: 5200,
            observer: Some(TimedShare {
                share: 0.0031,
                interval: Some([0.0022, 0.0047]),
                samples: 10,
                sample_ns: 20_000_000,
            }),
            observer_unknown: None,
        },
        ..MachineProfile::default()
    }
}

pub(crate) fn wait(subject: u32, stack: u32, seconds: f64, caused: &[(u32, f64)]) -> Wait {
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

pub(crate) fn record(profile: MachineProfile) -> WholeMachineRecord {
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

/// The backup begins after four seconds, and stands still once.
fn course() -> Course {
    let mut course = Course::default();
    for n in 1..=100_u64 {
        let (requests, bytes) = match n {
            1..=40 => (400 + n % 7, 12 << 20),
            61..=63 => (0, 0),
            _ => (600 + n % 5, 80 << 20),
        };
        let waited_ns = if requests == 0 { 97_000_000 } else { 70_000_000 };
        course.push(CourseStep {
            end_ns: n * SECOND / 10,
            stalls: Some([waited_ns, 60_000_000, 0, 3_000_000]),
            devices: vec![DeviceStep {
                name: "nvme0n1".to_owned(),
                stacked: false,
                counts: [requests, bytes, 0, 0, requests, requests * 5_000_000, 98_000_000],
            }],
            ..CourseStep::default()
        });
    }
    course
}

pub(crate) fn busy() -> WholeMachineRecord {
    let busy = record(profile(vec![
        wait(1, 0, 6.1, &[(0, 4.9), (2, 0.4)]),
        wait(1, 1, 2.4, &[(0, 2.0)]),
        wait(0, 0, 3.2, &[(1, 0.3)]),
        wait(3, 0, 0.2, &[(0, 0.2)]),
        wait(4, 0, 0.1, &[]),
    ]));
    busy.with_course(Some(course()))
}

/// Nobody waits, and the device does nothing.
pub(crate) fn idle() -> WholeMachineRecord {
    let mut idle = profile(Vec::new());
    (idle.counted, idle.computed) = (Some(Stalls::default()), Stalls::default());
    idle.devices.clear();
    record(idle)
}
