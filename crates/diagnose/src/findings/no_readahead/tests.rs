//! Tests of the rule `no-readahead`.

use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{Step, StepKind, Stretch};

use super::*;
use crate::findings::synthetic::{Run, access, bound_leaves, slow_and_repaired};

/// A sequential pass over 400 MiB by requests of so many bytes at the device.
fn pass(request: u64, wait: f64, ahead: u64, window: u64) -> Run {
    let bytes = 409_600_000;
    Run::new(10.0)
        .wait(Operation::Read, Wait::DeviceRead, wait)
        .busy(Operation::User, Layer::Program, 1.0 - wait)
        .io((bytes / 4096, bytes), (0, 0))
        .device_read(bytes)
        .file(bytes, |f| f.reads = access(1000, 4_096_000, 1000))
        .block(bytes / request, bytes, bytes / request, ahead)
        .device(wait, 1.0, |d| {
            (d.reads, d.read_bytes, d.read_ahead_bytes) = (bytes / request, bytes, Some(window));
        })
}

#[test]
fn a_pass_without_a_window_is_named_and_with_one_not() {
    let repaired = pass(131_072, 0.1, 400_000_000, 131_072);
    let found = slow_and_repaired(FindingId::NoReadahead, &pass(4096, 0.8, 0, 0), &repaired);
    assert!(found.advice.contains("read_ahead_kb"));
    bound_leaves(&found, 0.2);
}

#[test]
fn requests_of_a_worker_are_judged_by_the_device_and_not_by_what_the_program_sent_itself() {
    // A loop device: of the program's own requests there is a page of its code.
    let by_worker = |request, wait, ahead| {
        pass(request, wait, ahead, 131_072)
            .with(|p| p.block.as_mut().unwrap().own_read_bytes = 28_672)
            .with(|p| p.block.as_mut().unwrap().own_reads = 1)
    };
    let named = |run: Run| run.ids().contains(&FindingId::NoReadahead);
    assert!(named(by_worker(4096, 0.8, 0)));
    assert!(!named(by_worker(1 << 20, 0.8, 400_000_000)));
}

/// Reads in the order in which a burst saw them: places and how many follow each by the same stride.
fn in_this_order(run: Run, runs: &[(u64, i64, u32)]) -> Run {
    let steps = runs.iter().map(|&(place, stride, count)| Step {
        kind: StepKind::Read,
        file: Some(0),
        place: Some(place),
        bytes: 4096,
        count,
        stride,
        ..Step::default()
    });
    let stretch = Stretch { length_ns: 1_000_000, steps: steps.collect() };
    run.with(|p| {
        p.pattern.stretches = vec![stretch];
        p.files[0].reads = access(1000, 4_096_000, 0);
        if let Some(block) = &mut p.block {
            block.own_reads_adjacent = 0;
        }
    })
}

#[test]
fn reads_from_the_end_to_the_front_are_named_and_random_ones_are_not() {
    let back = in_this_order(pass(4096, 0.8, 0, 131_072), &[(1 << 27, -4096, 1000)]);
    let found = back.findings();
    let found = found.iter().find(|f| f.id == FindingId::NoReadahead).expect("it is named");
    assert!(found.sentence.starts_with("Backward reads") && found.advice.contains("start to end"));
    // Pairs of reads at random places: each second pair goes back.
    let pairs: Vec<_> = (0..500u64)
        .map(|i| (i * 7919 * 4096 % (1 << 27), if i % 2 == 0 { -9_000_000 } else { 5_000_000 }, 2))
        .collect();
    let random = in_this_order(pass(4096, 0.8, 0, 131_072), &pairs);
    assert!(!random.ids().contains(&FindingId::NoReadahead), "{:?}", random.ids());
}

#[test]
fn a_hint_against_read_ahead_is_what_remains_where_the_window_is_open() {
    let run = pass(4096, 0.8, 0, 131_072);
    assert_eq!(run.ids(), [FindingId::NoReadahead]);
    assert!(run.findings()[0].advice.contains("POSIX_FADV_RANDOM"));
}

#[test]
fn a_copy_of_cached_bytes_is_not_blamed_for_the_pages_of_its_start() {
    let copy = |from_device: u64| {
        let bytes = 512 << 20;
        Run::new(10.0)
            .wait(Operation::Fault, Wait::DeviceRead, 0.02)
            .busy(Operation::Read, Layer::Cache, 0.38)
            .busy(Operation::Write, Layer::Filesystem, 0.6)
            .io((bytes / 4096, bytes), (bytes / 4096, bytes))
            .device_read(from_device)
            .file(bytes, |f| f.reads = access(1000, 4_096_000, 1000))
            .block(from_device / 4096, from_device, from_device / 4096, 0)
            .device(0.01, 1.0, |d| (d.reads, d.read_bytes) = (from_device / 4096, from_device))
    };
    assert!(copy(512 << 20).ids().contains(&FindingId::NoReadahead), "all of it came from the device");
    assert!(!copy(16 << 10).ids().contains(&FindingId::NoReadahead));
}

#[test]
fn pages_from_swap_are_not_read_ahead() {
    let swap = ["io_schedule", "folio_wait_bit_common", "do_swap_page", "handle_mm_fault"];
    let of = |names: &[&str]| {
        pass(4096, 0.8, 0, 0)
            .stack(names, iowhy_core::profile::State::Blocked, 0.8, 1000)
            .ids()
            .contains(&FindingId::NoReadahead)
    };
    assert!(!of(&swap));
    assert!(of(&["io_schedule", "folio_wait_bit_common", "filemap_fault", "handle_mm_fault"]));
}
