//! Screens of scripted machines at several widths; the expected ones stand beside those of the binary.

use iowhy_core::machine::{Cost, DeviceUser, MachineProfile, OverheadExceeded, Stalls, TimedShare, Wait};
use iowhy_core::profile::{GroupLimit, Limited};
use iowhy_view::terminal::table::visible_width;

use super::machine_tests::{busy, idle, profile, record, wait};
use super::tables::{Column, nobody_else, processes};
use super::*;
use crate::screen::for_tests::{self, assert_expected};

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
fn what_happened_over_time_is_told_in_lines_and_drawn_on_a_page() {
    let record = busy();
    let text = plain(&record, 120);
    assert!(text.contains("all devices: to 4.00 s reads 120 MiB/s; to 10.0 s reads 760 MiB/s"), "{text}");
    assert!(
        text.contains("no request ended for 300 ms at 6.00 s (tasks waited for I/O 97 % of it"),
        "{text}"
    );
    let over_time = chapter(&record, Detail::Page).sections.into_iter().find(|s| s.title == "Over time");
    let is_chart = |part: &Part| matches!(part, Part::Chart(_));
    assert!(over_time.is_some_and(|section| section.parts.iter().any(is_chart)));
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
    let gone = GroupRecord { path: "a/b".to_owned(), is_gone: true, ..GroupRecord::default() };
    assert!(group_lines(&gone).concat().contains("it was removed"), "no limit is not known to be none");
}

#[test]
fn a_name_that_a_program_chose_is_no_control_code() {
    let mut wild = profile(vec![wait(1, 0, 6.1, &[])]);
    wild.subjects[1].name = "\u{1b}[2J\n".to_owned();
    assert!(!plain(&record(wild), 100).contains('\u{1b}'));
}

/// The names of processes in the order of a key.
fn order(record: &WholeMachineRecord, key: Column) -> Vec<&str> {
    let name = |subject: u32| record.profile.subjects[subject as usize].name.as_str();
    processes(record, key).iter().map(|process| name(process.subject)).collect()
}

#[test]
fn each_key_has_its_own_order_and_all_hold_everybody() {
    let busy = busy();
    let first = |key| order(&busy, key)[..2].to_vec();
    assert_eq!(first(Column::Time), ["postgres", "backup"]);
    assert_eq!(first(Column::Bytes), ["backup", "jbd2/nvme0n1p2-8"]);
    assert_eq!(first(Column::Cpu), ["cc1", "backup"]);
    assert_eq!(first(Column::Queued), ["cc1", "postgres"]);
    let everybody = |key| {
        let mut names = order(&busy, key);
        names.sort_unstable();
        names
    };
    assert!(Column::KEYS.iter().all(|key| everybody(*key) == everybody(Column::Time)));
    assert_eq!(everybody(Column::Time).len(), 6);
}

#[test]
fn only_processes_of_the_group_are_told_where_one_is_asked_about() {
    let mut record = busy();
    record.profile.subjects[5].groups = vec!["build/a".to_owned()];
    record.group = Some(GroupRecord { path: "build".to_owned(), ..GroupRecord::default() });
    assert_eq!(order(&record, Column::Cpu), ["cc1"]);
}

#[test]
fn the_account_of_a_process_holds_its_waits_causes_requests_and_limits() {
    let record = busy();
    let text =
        |subject, limits: &[GroupLimit]| for_tests::plain(&process::chapter(&record, subject, limits), 100);
    let limit =
        GroupLimit { of: Limited::Disk, set_by: "/a".to_owned(), words: "nvme0n1: 9 reads/s".to_owned() };
    for (width, name) in [(100, "machine-process-100.txt"), (80, "machine-process-80.txt")] {
        let chapter = process::chapter(&record, 1, std::slice::from_ref(&limit));
        let text = for_tests::plain(&chapter, width);
        assert!(text.lines().all(|line| visible_width(line) <= width), "{text}");
        assert_expected(name, &text);
    }
    let kernel = text(2, &[]);
    assert!(kernel.contains("works for others; it delays others for 400 ms"), "{kernel}");
    assert!(!kernel.contains("attach"), "a thread of the kernel is nothing to attach to: {kernel}");
    let quiet = text(5, &[]);
    assert!(quiet.contains("cc1 (3005) did not wait for I/O or memory") && quiet.contains("7.00 s on CPUs"));
}

#[test]
fn what_watching_cost_is_counted_or_sampled_or_not_known() {
    let told = |observer: Option<TimedShare>, unknown: Option<&str>| {
        let cost = Cost {
            own_cpu_ns: 100_000_000,
            waits: 7,
            observer,
            observer_unknown: unknown.map(str::to_owned),
        };
        words::cost(&record(MachineProfile { cost, ..profile(Vec::new()) }))
    };
    let sampled =
        TimedShare { share: 0.012, interval: Some([0.0066, 0.0177]), samples: 6, sample_ns: 20_000_000 };
    assert_eq!(
        told(Some(sampled), None),
        "7 waits told; of all CPU time 0.50 % in iowhy and 1.20 % in its programs in the kernel (95 % interval 0.66 % to \
         1.77 %, 6 samples of 20.0 ms)"
    );
    let one = TimedShare { interval: None, samples: 1, ..sampled };
    assert!(told(Some(one), None).ends_with("1.20 % in its programs in the kernel (1 sample of 20.0 ms)"));
    let short = "what its programs in the kernel took is not known (no sample ended in this time)";
    assert!(told(None, None).ends_with(short));
    assert!(told(None, Some("Operation not permitted")).ends_with("is not known (Operation not permitted)"));
}

#[test]
fn a_watch_that_ended_itself_says_so_first() {
    let exceeded =
        OverheadExceeded { own_share: 0.021, observer_share: Some(0.0512), samples: 3, limit: 0.07 };
    let profile = MachineProfile { overhead_exceeded: Some(exceeded), ..profile(Vec::new()) };
    let record = record(profile);
    assert!(about(&record).ends_with(", ended by --max-overhead"), "{}", about(&record));
    let [warning] = &record.warnings[..] else { panic!("{:?}", record.warnings) };
    let told =
        "2.10 % were in iowhy and 5.12 % in its programs in the kernel (3 samples), more than the 7 % of";
    assert!(warning.message.contains(told), "{warning:?}");
    let unknown = OverheadExceeded { observer_share: None, samples: 0, ..exceeded };
    // `--live` learns of it after the account that it showed last, or has it there already.
    let live = |record: WholeMachineRecord| {
        let live = WholeMachineRecord { watched_ns: Some(9_000_000_000), ..record };
        live.overhead_exceeded(Some(unknown))
    };
    assert_eq!(live(record.clone()).warnings, record.warnings);
    let learnt = live(busy());
    assert!(
        about(&learnt).ends_with("the last shown of 9.00 s, ended by --max-overhead"),
        "{}",
        about(&learnt)
    );
    let message = &learnt.warnings.last().expect("a warning").message;
    assert!(message.contains("an unknown part in its programs in the kernel, more than"), "{message}");
    assert_eq!(learnt.profile.overhead_exceeded, Some(unknown));
}
