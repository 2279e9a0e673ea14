//! Read-ahead truth: a disk whose request takes 500 ms whatever its size, read in pieces of 4 KiB with read-ahead windows
//! of 0, 128 and 1024 KiB. Against that the CPU's part is nothing, and a pass takes as many requests one after the other
//! as the kernel's rules for windows give. `iowhy sim` must say the same of such a disk.

use super::{Phase, ended_well};
use crate::lab::answers::Answers;
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "read-ahead", boots, judge };

const TOLERANCE: f64 = 0.05;
/// Windows, KiB, and the pages that are read: without read-ahead each takes a request of its own.
const PASSES: [(u64, u64); 3] = [(0, 64), (128, 4096), (1024, 4096)];
const REQUEST_NS: f64 = 500e6;
const MACHINE: &str = "/tmp/machine.toml";
/// The same disk in the simulator's words: any number of requests at once, each of the same time.
const DESCRIPTION: &str = r#"
name = "slow"
[cache]
bytes = "unlimited"
block_bytes = "4k"
io_bytes = "1280k"
[scheduler]
depth = 64
[device]
kind = "ssd"
bytes = "64m"
units = 64
read_ns = 500000000
"#;

fn simulated(window: u64) -> String {
    format!("sim-{window}")
}

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new("read-ahead", Time::Counted);
    boot.null_disks();
    boot.null_disk(
        "slow",
        &[("size", "64"), ("queue_mode", "2"), ("irqmode", "2"), ("completion_nsec", "500000000")],
    );
    boot.step(&["write", MACHINE, DESCRIPTION]);
    for (window, pages) in PASSES {
        boot.step(&["write", "/sys/block/slow/queue/read_ahead_kb", &window.to_string()]);
        let bytes = pages * 4096;
        boot.iowhy(
            &window.to_string(),
            "-",
            &format!("bench /dev/slow --state cold --bs 4k --size {bytes} --once"),
        );
        let kind = if window == 0 { "none" } else { "linux" };
        boot.iowhy(
            &simulated(window),
            "-",
            &format!(
                "sim --machine {MACHINE} --set readahead.kind={kind} --set readahead.bytes={}k \
                 --workload readers=1,requests={pages},bytes=4k,size={bytes}",
                window.max(4)
            ),
        );
    }
    vec![boot]
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let time = |window: u64| answers.get("read-ahead", &window.to_string()).cell("4096").time();
    // Requests one after the other for each page.
    let model = |window: u64, pages: u64| rounds(pages, window / 4) as f64 / pages as f64;
    for (window, pages) in PASSES {
        let run = answers.get("read-ahead", &window.to_string());
        ended_well(checks, &format!("{window} KiB"), run);
        let expected = Some(model(window, pages) * REQUEST_NS);
        checks.near(&format!("{window} KiB: time of a piece"), time(window), expected, TOLERANCE);
    }
    // What `iowhy sim` says of this disk.
    let sim = |window: u64, pages: u64| {
        let run = answers.get("read-ahead", &simulated(window));
        Some(run.number("/record/points/0/time_s")? * 1e9 / pages as f64)
    };
    for (window, pages) in PASSES {
        ended_well(checks, &format!("{window} KiB simulated"), answers.get("read-ahead", &simulated(window)));
        checks.near(&format!("{window} KiB: as simulated"), time(window), sim(window, pages), TOLERANCE);
    }
    for pair in PASSES.windows(2) {
        let [(less, few), (more, many)] = [pair[0], pair[1]];
        let ratio = time(less).zip(time(more)).map(|(less, more)| less / more);
        let expected = Some(model(less, few) / model(more, many));
        checks.near(&format!("{less} KiB against {more} KiB"), ratio, expected, TOLERANCE);
        let by_sim = sim(less, few).zip(sim(more, many)).map(|(less, more)| less / more);
        checks.near(&format!("{less} KiB against {more} KiB, as simulated"), ratio, by_sim, TOLERANCE);
    }
}

/// Requests that a reader of one page a call waits for, one after the other. The second window is asked for when the
/// second page is read; from then on the next window is asked for when the first page of one is looked up, before
/// waiting for it. So two windows are under way at a time.
fn rounds(pages: u64, most: u64) -> u64 {
    let windows = windows(pages, most);
    if most == 0 { windows } else { 1 + windows / 2 }
}

/// Windows that a file of `pages` is read in, one page a call, by the rule of mm/readahead.c: the first is four pages
/// where the limit allows that many, then each is four times or twice the last up to the limit.
fn windows(pages: u64, most: u64) -> u64 {
    if most == 0 {
        return pages;
    }
    let (mut size, mut read, mut windows) = (first(most), 0, 0);
    while read < pages {
        windows += 1;
        read += size;
        size = match size {
            small if small < most / 16 => small * 4,
            middle if middle <= most / 2 => middle * 2,
            _ => most,
        };
    }
    windows
}

fn first(most: u64) -> u64 {
    if 1 <= most / 32 {
        4
    } else if 1 <= most / 4 {
        2
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_to_the_limit() {
        // 4, 8, 16, then 32 each: 28 pages in three, the rest by 32.
        assert_eq!(windows(28, 32), 3);
        assert_eq!(windows(28 + 64, 32), 5);
        // 4, 16, 32, 64, 128, then 256 each.
        assert_eq!(windows(244, 256), 5);
        assert_eq!(windows(245, 256), 6);
        assert_eq!(windows(7, 0), 7);
        // The first alone, then two at a time.
        assert_eq!([4, 5, 13, 29, 61].map(|pages| rounds(pages, 32)), [1, 2, 2, 3, 3]);
        assert_eq!(rounds(7, 0), 7);
    }
}
