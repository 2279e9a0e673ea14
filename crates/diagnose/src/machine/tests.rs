//! Accounts of scripted machines.

use iowhy_core::machine::{Caused, Device, MachineProfile, Stalls, Subject, Wait};

use super::*;

const SECOND: u64 = 1_000_000_000;
const ALL: Meant<'_> = &|_| true;

/// Innermost first, as the kernel gives them.
fn stack(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn subject(pid: u32, name: &str) -> Subject {
    Subject { pid, name: name.to_owned(), kernel: pid == 0, ..Subject::default() }
}

fn machine(waits: Vec<Wait>) -> MachineProfile {
    MachineProfile {
        wall_ns: 10 * SECOND,
        cpus: 2,
        subjects: vec![subject(10, "backup"), subject(20, "server"), subject(0, "jbd2/vda-8")],
        stacks: vec![
            stack(&[
                "io_schedule",
                "folio_wait_bit_common",
                "filemap_get_pages",
                "filemap_read",
                "vfs_read",
                "ksys_read",
                "__x64_sys_pread64",
                "do_syscall_64",
            ]),
            stack(&[
                "schedule",
                "rwsem_down_write_slowpath",
                "down_write",
                "ext4_buffered_write_iter",
                "vfs_write",
                "ksys_write",
                "__x64_sys_write",
                "do_syscall_64",
            ]),
            stack(&["schedule", "do_nanosleep", "hrtimer_nanosleep", "__x64_sys_nanosleep", "do_syscall_64"]),
        ],
        devices: vec![Device { name: "vda".to_owned(), ..Device::default() }],
        waits,
        ..MachineProfile::default()
    }
}

fn wait(subject: u32, stack: u32, seconds: u64, caused: &[(u32, u64)]) -> Wait {
    let caused = caused
        .iter()
        .map(|(subject, s)| Caused { subject: *subject, time_ns: (s * SECOND) as f64 })
        .collect();
    let device = (stack == 0).then_some(0);
    Wait {
        subject,
        stack: Some(stack),
        device,
        count: 1,
        time_ns: seconds * SECOND,
        caused,
        ..Wait::default()
    }
}

fn told(machine: &MachineProfile) -> (MachineAccount, Verdict) {
    let account = account(machine, &Classifier::new(), ALL);
    let verdict = verdict(machine, &account, ALL);
    (account, verdict)
}

#[test]
fn the_backup_that_fills_the_queue_is_named_and_not_the_server_that_waits() {
    let machine = machine(vec![wait(1, 0, 8, &[(0, 6)]), wait(0, 0, 2, &[(1, 1)])]);
    let (account, verdict) = told(&machine);
    assert_eq!((account.waited_ns, account.waiters[0].subject), (10e9, 1));
    assert_eq!(account.waiters[0].layers, [LayerPart { layer: Layer::Device, time_ns: 8e9 }]);
    assert_eq!((account.culprits[0].subject, account.culprits[0].time_ns), (0, 6e9));
    assert_eq!(account.culprits[0].victims, [Part { of: 1, time_ns: 6e9 }]);
    assert_eq!(verdict, Verdict::Culprit { subject: 0, device: Some(0), share: 0.6, victim: 1 });
}

#[test]
fn a_process_alone_at_its_device_blames_nobody() {
    let (account, verdict) = told(&machine(vec![wait(1, 0, 8, &[])]));
    assert!(account.culprits.is_empty());
    let alone = |held| Verdict::Alone {
        subject: 1,
        device: Some(0),
        layer: Layer::Device,
        share: 1.0,
        caused: 0.0,
        held,
    };
    assert_eq!(verdict, alone(false));
}

#[test]
fn requests_are_held_back_only_where_none_was_at_the_device_meanwhile() {
    let held = |without: u64, lost: u64| {
        let waits = Wait { without_requests_ns: (without * SECOND) as f64, ..wait(1, 0, 8, &[]) };
        let mut machine = machine(vec![waits]);
        machine.lost.requests = lost;
        match told(&machine).1 {
            Verdict::Alone { held, .. } => held,
            other => panic!("{other:?}"),
        }
    };
    assert!(held(7, 0));
    // Eight threads that wait for one request of a second: the device had it all the time.
    assert!(!held(0, 0) && !held(3, 0));
    assert!(!held(7, 1), "what was there is not known");
}

#[test]
fn a_thread_of_the_kernel_is_no_culprit() {
    let machine = machine(vec![wait(1, 0, 8, &[(2, 7)])]);
    let (account, verdict) = told(&machine);
    assert_eq!(account.culprits[0].subject, 2, "its part is shown");
    let Verdict::Alone { subject: 1, caused, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!(caused, 7.0 / 8.0);
}

#[test]
fn sleeping_on_purpose_is_no_wait_and_an_idle_machine_blames_nobody() {
    let mut machine = machine(vec![wait(1, 2, 9, &[]), wait(2, 0, 5, &[])]);
    let (account, verdict) = told(&machine);
    assert_eq!(
        (account.waited_ns, account.kernel_waited_ns, verdict),
        (0.0, 5e9, Verdict::Idle { proven: false })
    );
    machine.counted = Some(Stalls { cpu_some_ns: 4e9, ..Stalls::default() });
    machine.subjects[1].queued_ns = 3 * SECOND;
    assert_eq!(told(&machine).1, Verdict::CpuBound { share: 0.4 });
}

#[test]
fn nobody_waited_is_said_only_where_the_kernel_says_so_and_nothing_is_missing() {
    let idle = |change: &dyn Fn(&mut MachineProfile), meant: Meant<'_>| {
        let mut machine = machine(vec![wait(1, 2, 9, &[])]);
        machine.counted = Some(Stalls { io_some_ns: 0.05e9, ..Stalls::default() });
        change(&mut machine);
        verdict(&machine, &account(&machine, &Classifier::new(), meant), meant)
    };
    let (proven, seen) = (Verdict::Idle { proven: true }, Verdict::Idle { proven: false });
    assert_eq!(idle(&|_| (), ALL), proven);
    assert_eq!(idle(&|m| m.counted = None, ALL), seen);
    let stalled = |m: &mut MachineProfile| m.counted.as_mut().unwrap().memory_some_ns = 0.2e9;
    assert_eq!(idle(&stalled, ALL), seen);
    assert_eq!(idle(&|m| m.lost.pooled = 1, ALL), seen);
    assert_eq!(idle(&|m| m.lost.events = 1, ALL), seen);
    // A process whose group is not known may be one of those who are meant.
    let first: Meant<'_> = &|subject| subject == 0;
    assert_eq!(idle(&|_| (), first), seen);
    assert_eq!(idle(&|m| m.subjects[1].groups.push("/other".to_owned()), first), proven);
}

#[test]
fn who_gave_a_lock_back_caused_the_wait_for_it() {
    let held = Wait { ended_by: Some(0), ..wait(1, 1, 4, &[]) };
    let (account, verdict) = told(&machine(vec![held]));
    assert_eq!(account.waiters[0].caused_by, [Part { of: 0, time_ns: 4e9 }]);
    assert_eq!(verdict, Verdict::Culprit { subject: 0, device: None, share: 1.0, victim: 1 });
}

#[test]
fn of_a_group_only_its_own_waits_count_and_anybody_may_cause_them() {
    let machine = machine(vec![wait(1, 0, 8, &[(0, 6)]), wait(0, 0, 2, &[(1, 1)])]);
    let account = account(&machine, &Classifier::new(), &|subject| subject == 1);
    assert_eq!((account.waited_ns, account.waiters.len(), account.culprits[0].subject), (8e9, 1, 0));
}
