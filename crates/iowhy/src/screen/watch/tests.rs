//! Screens of known programs, as they are seen at several widths; the expected ones stand beside those of the binary.

use super::*;
use crate::analyzer::{Analyzer, Explained};
use crate::record::watch::{Invocation, record, synthetic};
use crate::screen::figures::*;
use crate::screen::for_tests::{self, assert_expected};
use iowhy_core::environment::Environment;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::profile::{Access, FileUse, Profile, State};
use iowhy_view::terminal::table::visible_width;
use iowhy_view::terminal::wrap::cut_path;
use iowhy_view::terminal::wrap::{cut, wrap};
use proptest::prelude::*;

fn of((profile, explained): (Profile, Explained), subject: &str) -> WatchRecord {
    let environment = Environment {
        kernel: "6.18.44".to_owned(),
        cpus: 2,
        memory_bytes: 8 << 30,
        ..Environment::default()
    };
    let invocation = Invocation { subject: subject.to_owned(), environment, ..Invocation::default() };
    record(profile, explained, &Analyzer::new(), invocation)
}

fn plain(record: &WatchRecord, width: usize) -> String {
    for_tests::plain(&chapter(record, Detail::Screen), width)
}

#[test]
fn screens_are_as_expected() {
    let sync = of(synthetic::sync_loop(), "./ingest --records 3804 /srv/db");
    for width in [80, 100, 120] {
        assert_expected(&format!("watch-sync-{width}.txt"), &plain(&sync, width));
    }
    let pipeline = of(synthetic::pipeline(), "process 100 collect");
    assert_expected("watch-pipeline-100.txt", &plain(&pipeline, 100));
    assert_expected("watch-nothing-100.txt", &plain(&of(synthetic::nothing(), "true"), 100));
}

#[test]
fn operations_have_the_word_of_the_record_on_the_screen() {
    for profile in [synthetic::sync_loop(), synthetic::pipeline()] {
        let run = of(profile, "x");
        let screen = plain(&run, 120);
        let shown = |word: &str| screen.lines().any(|line| line.split_whitespace().any(|w| w == word));
        let mut words = run.operations.iter().filter(|o| o.wall_s >= 0.05 * run.wall_s).map(|o| &o.id);
        assert!(words.all(|word| shown(word)), "{screen}");
        assert!(shown("user"), "{screen}");
        assert!(["own code", "not seen  "].iter().all(|other| !screen.contains(other)), "{screen}");
    }
}

#[test]
fn the_heading_says_as_whom_it_ran_where_that_was_decided() {
    let mut run = of(synthetic::sync_loop(), "x");
    assert!(!plain(&run, 100).contains("uid"));
    run.ran_as = Some(RanAs { uid: 1000, gid: 1000, name: Some("alice".to_owned()) });
    for width in [60, 100] {
        assert!(plain(&run, width).contains("as user alice (uid 1000)"), "{width}");
    }
}

#[test]
fn a_screen_fits_whatever_the_width_and_always_says_what_is_unexplained() {
    for run in [synthetic::sync_loop(), synthetic::pipeline(), synthetic::nothing()] {
        let r = of(run, &"a very long command line ".repeat(20));
        for width in [40, 60, 80, 100, 120, 500] {
            let text = plain(&r, width);
            for line in text.lines() {
                assert!(visible_width(line) <= width.min(120), "{width}: {line}");
            }
            assert!(r.layers.is_empty() || text.contains("? unexplained"), "{text}");
        }
        // One finding and all else fit 40 lines; each finding after the first has a heading, evidence and advice of its own.
        let further = r.findings.len().saturating_sub(1);
        assert!(plain(&r, 100).lines().count() <= 40 + 8 * further, "{}", plain(&r, 100));
    }
}

#[test]
fn nothing_the_program_chose_reaches_the_terminal_as_a_control_code() {
    let (mut profile, explained) = synthetic::sync_loop();
    profile.files[0].path = "/tmp/\u{1b}[2J\nname".to_owned();
    profile.symbols.iter_mut().for_each(|s| s.name.push('\u{7}'));
    profile.threads[0].name = "\u{1b}]0;x".to_owned();
    let text = plain(&of((profile, explained), "evil\u{1b}[2J"), 100);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn files_without_a_name_are_a_note_and_pipes_come_after_files() {
    let (mut profile, explained) = synthetic::sync_loop();
    let named = profile.files[0].clone();
    let moved = |bytes| Access { calls: 9, bytes, ..Access::default() };
    let other = |path: &str, kind: &str, bytes| FileUse {
        path: path.to_owned(),
        kind: kind.to_owned(),
        reads: moved(bytes),
        ..FileUse::default()
    };
    profile.files = vec![
        other("?", "unknown", 1 << 30),
        other("pipe:[7]", "pipe", 1 << 29),
        named,
        other("x", "regular", 1),
    ];
    let text = plain(&of((profile, explained), "x"), 100);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no `{what}` in {text}"));
    assert!(at("journal.log") < at("pipe:[7]") && at("pipe:[7]") < at("not named (opened"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("read 1 GiB in 9 calls") && !text.contains("\n? "), "{text}");
    assert!(text.contains("1 more file in the record"), "a byte is no news: {text}");
}

#[test]
fn time_in_interrupts_is_not_called_a_wait() {
    let mut b = synthetic::Builder::new(100.0);
    let t = b.thread("t");
    b.time(t, State::Running, &[], &["main"], (90.0, 90));
    b.time(t, State::Running, &["asm_common_interrupt"], &[], (10.0, 10));
    let text = plain(&of(b.done(), "x"), 100);
    assert!(text.contains("e interrupts 10 ±") && text.contains("system work"), "{text}");
    assert!(!text.contains("asleep") && !text.contains("waited for"), "{text}");
}

#[test]
fn a_cost_above_all_that_the_program_ran_is_not_believed() {
    let (mut profile, explained) = synthetic::sync_loop();
    profile.observer.in_program_ns = 2e9;
    let text = plain(&of((profile.clone(), explained.clone()), "x"), 100);
    assert!(!text.contains("Profiling overhead exceeded") && !text.contains("in the program"), "{text}");
    profile.observer.in_program_ns = 3e8;
    let text = plain(&of((profile, explained), "x"), 100);
    assert!(
        text.contains("Profiling overhead exceeded") && text.contains("300 ms of it in the program"),
        "{text}"
    );
}

#[test]
fn samples_in_the_observer_tell_of_more_than_the_self_test_knows() {
    let text = |in_observer: u64| {
        let mut b = synthetic::Builder::new(100.0);
        let t = b.thread("t");
        b.time(t, State::Running, &[], &["main"], (100.0 - in_observer as f64, 100 - in_observer));
        let tracepoint = ["bpf_trace_run2", "__bpf_trace_sys_exit", "do_syscall_64"];
        b.time(t, State::Running, &tracepoint, &["main"], (in_observer as f64, in_observer));
        let (mut profile, explained) = b.done();
        profile.observer.in_program_ns = 6e6;
        plain(&of((profile, explained), "x"), 100)
    };
    assert!(text(40).contains("40.0 ms of it in the program"), "{}", text(40));
    assert!(text(8).contains("6.00 ms of it in the program"), "8 of 100 may be 6: {}", text(8));
}

#[test]
fn processes_have_a_table_and_what_could_not_be_read_is_no_zero() {
    let (mut profile, explained) = synthetic::sync_loop();
    let single = plain(&of((profile.clone(), explained.clone()), "x"), 100);
    assert!(!single.contains("waits for"), "{single}");
    let own = iowhy_core::profile::OwnIo { written_bytes: 4096, syncs: 7, ..Default::default() };
    profile.processes[0].own = Some(own);
    let child = |pid| iowhy_core::profile::Process {
        pid,
        parent: Some(100),
        name: format!("child{pid}"),
        count: 1,
        ..Default::default()
    };
    profile.processes.extend((1..=9).map(child));
    let text = plain(&of((profile, explained), "x"), 100);
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let cells = |name: &str| row(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(cells("program")[5..10], ["0", "B", "4", "KiB", "7"], "{text}");
    assert_eq!(cells("child1").iter().filter(|cell| *cell == "-").count(), 3, "{text}");
    assert!(text.contains("2 more commands with 0 ns of CPU time"), "{text}");
}

#[test]
fn bytes_to_sockets_are_not_bytes_to_files() {
    let (mut profile, explained) = synthetic::sync_loop();
    let kind = |kind: &str, write_calls, written_bytes| iowhy_core::profile::KindUse {
        kind: kind.to_owned(),
        write_calls,
        written_bytes,
        ..Default::default()
    };
    profile.kinds = vec![kind("regular", 2000, 2000 * 64), kind("socket", 22_000, 22_000 * 14)];
    let split = "files 125 KiB in 2,000 calls, 64 B each; sockets 301 KiB in 22,000 calls";
    profile.calls = None;
    let text = plain(&of((profile.clone(), explained.clone()), "x"), 100);
    assert!(!text.contains("sockets"), "calls were not all counted by file: {text}");
    profile.calls = Some(iowhy_core::profile::CallCounts { complete: true, ..Default::default() });
    let text = plain(&of((profile, explained), "x"), 100);
    assert!(text.contains(split), "{text}");
}

#[test]
fn stolen_time_has_a_line_from_one_per_cent_on() {
    let (mut profile, explained) = synthetic::sync_loop();
    profile.pressure.stolen_ns = Some(profile.wall_ns / 101);
    assert!(!plain(&of((profile.clone(), explained.clone()), "x"), 100).contains("stolen"));
    profile.pressure.stolen_ns = Some(profile.wall_ns / 10);
    let text = plain(&of((profile, explained), "x"), 100);
    assert!(text.contains("taken by the hypervisor: 5.0 % of the time of all CPUs"), "{text}");
}

#[test]
fn many_findings_are_numbered_and_the_rest_named() {
    let (profile, mut explained) = synthetic::sync_loop();
    let first = explained.findings[0].clone();
    explained.findings.truncate(1);
    for id in [FindingId::SmallRequests, FindingId::CopyBound, FindingId::Throttled, FindingId::InodeLock] {
        explained.findings.push(Finding { id, gain_rest_unchanged: None, ..first.clone() });
    }
    let text = plain(&of((profile, explained), "x"), 100);
    assert!(
        text.contains("1. sync-per-write  gain up to 18x if all else stays  93 % of the wall time"),
        "{text}"
    );
    assert!(text.contains("2. small-requests  93 %"), "{text}");
    assert!(text.contains("also: copy-bound, throttled, inode-lock"), "{text}");
    assert_eq!(text.matches(&first.sentence[..40]).count(), 2, "the verdict, and the second finding: {text}");
}

#[test]
fn numbers_are_written_with_what_is_known_of_them() {
    let layer = |share, share_low, share_high| LayerShare {
        id: Layer::Copy,
        busy_s: 0.0,
        wait_s: 0.0,
        wall_s: 0.0,
        share,
        share_low,
        share_high,
    };
    assert_eq!(share(&layer(0.62, 0.62, 0.62)), "62 %");
    assert_eq!(share(&layer(0.62, 0.60, 0.641)), "62 ±3 %");
    assert_eq!(share(&layer(0.034, 0.031, 0.036)), "3.4 ±0.3 %");
    assert_eq!(share(&layer(0.034, 0.0, 0.2)), "3.4 ±16.6 %");
    assert_eq!(share(&layer(0.097, 0.087, 0.107)), "9.7 ±1.0 %");
    assert_eq!([0, 999, 1000, 1234567].map(count), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(
        [0, 1023, 4096, 1536, 40 << 20, 1023 << 10].map(bytes),
        ["0 B", "1023 B", "4 KiB", "1.5 KiB", "40 MiB", "1 MiB"]
    );
    assert_eq!([1.0, 1.078, 2.34, 11.3].map(factor), ["1.00", "1.08", "2.3", "11"]);
    assert_eq!(cut_path("/a/very/long/path/name", 10), "…path/name");
    assert_eq!(cut("abcdef", 4), "abc…");
}

proptest! {
    #[test]
    fn a_paragraph_keeps_its_words_and_its_width(text in "[a-z]{0,30}( [a-zµ]{1,50}){0,12}", width in 10usize..60) {
        let wrapped = wrap(&text, width, "- ", "  ");
        prop_assert!(wrapped.lines().all(|line| visible_width(line) <= width));
        let letters = |s: &str| s.chars().filter(|c| c.is_alphabetic()).collect::<String>();
        prop_assert_eq!(letters(&wrapped), letters(&text));
    }
}
