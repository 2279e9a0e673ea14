//! Tests of the rule `memory-pressure`.

use iowhy_core::layer::Layer;
use iowhy_core::profile::BlockSample;
use iowhy_core::profile::State;

use super::*;
use crate::classify::{Operation, Wait};
use crate::findings::synthetic::{Run, access, slow_and_repaired};

const RECLAIM: [&str; 4] =
    ["folio_wait_writeback", "shrink_folio_list", "shrink_node", "try_to_free_mem_cgroup_pages"];
const RECLAIM_CPU: [&str; 3] = ["shrink_lruvec", "shrink_node", "try_to_free_mem_cgroup_pages"];
const SWAP: [&str; 4] = ["io_schedule", "folio_wait_bit_common", "do_swap_page", "handle_mm_fault"];

/// In a control group of 64 MiB that was at its limit.
fn limited(run: Run) -> Run {
    run.with(|p| {
        p.pressure.memory = Some(MemoryUse {
            group: Some("/sys/fs/cgroup/job".into()),
            limit_bytes: Some(64 << 20),
            at_limit: Some(1234),
            killed: Some(0),
            refaulted_file_pages: Some(0),
            refaulted_anon_pages: Some(0),
            ..MemoryUse::default()
        });
        p.io.peak_memory_bytes = Some(8 << 20);
    })
}

/// Of a writer these parts are asleep and on a CPU in reclaim.
fn writer(asleep: f64, busy: f64) -> Run {
    limited(
        Run::new(10.0)
            .wait(Operation::Write, Wait::Reclaim, asleep)
            .stack(&RECLAIM, State::Blocked, asleep, (1000.0 * asleep) as u64)
            .busy(Operation::Write, Layer::Memory, busy)
            .stack(&RECLAIM_CPU, State::Running, busy, (9970.0 * busy) as u64)
            .busy(Operation::User, Layer::Program, 1.0 - asleep - busy)
            .io((0, 0), (512, 512 << 20))
            .calls(&[("write", 512), ("openat", 10)])
            .file(512 << 20, |f| f.writes = access(512, 512 << 20, 512)),
    )
}

fn evidence(found: &Finding, words: &str) -> bool {
    found.evidence.iter().any(|e| e.contains(words))
}

#[test]
fn a_writer_that_frees_its_pages_first_is_told_to_release_them() {
    let found = slow_and_repaired(FindingId::MemoryPressure, &writer(0.5, 0.2), &writer(0.01, 0.02));
    assert_eq!(found.gain, None);
    assert!(evidence(&found, "70 % of wall time, 20 % CPU time and 50 % waiting"), "{found:?}");
    assert!(evidence(&found, "/sys/fs/cgroup/job: 64 MiB; it was reached 1,234 times"), "{found:?}");
    assert!(found.advice.contains("not needed again") && found.advice.contains("520 MiB"), "{found:?}");
}

#[test]
fn a_limit_whose_group_is_gone_is_told_by_the_functions_that_obey_it() {
    let gone = writer(0.5, 0.2).with(|p| {
        p.pressure.memory = None;
        p.groups = vec![iowhy_core::profile::LimitedGroup {
            limits: vec![iowhy_core::profile::GroupLimit {
                of: Limited::Memory,
                set_by: "/sys/fs/cgroup/job".into(),
                words: "memory is limited to 67108864 bytes (memory.max)".into(),
            }],
            ..Default::default()
        }];
    });
    let found = &gone.findings()[0];
    assert!(evidence(found, "/sys/fs/cgroup/job: memory is limited to"), "{found:?}");
    assert!(found.advice.contains("Raise the memory limit"), "{found:?}");
}

#[test]
fn held_back_above_memory_high_is_told_by_its_file() {
    let run = writer(0.0, 0.0).wait(Operation::Write, Wait::Reclaim, 0.6).stack(
        &["schedule_timeout", "__mem_cgroup_handle_over_high"],
        State::Blocked,
        0.6,
        50,
    );
    let found = &run.findings()[0];
    assert!(found.id == FindingId::MemoryPressure && found.advice.contains("memory.high"), "{found:?}");
}

/// A heap in swap: each touch waits for a page.
fn swapping() -> Run {
    limited(
        Run::new(10.0)
            .wait(Operation::Fault, Wait::DeviceRead, 0.6)
            .stack(&SWAP, State::Blocked, 0.6, 1000)
            .busy(Operation::User, Layer::Program, 0.4)
            .device_read(20 << 20)
            .device(0.6, 1.0, |d| (d.reads, d.read_bytes) = (5000, 20 << 20)),
    )
    .with(|p| {
        let memory = p.pressure.memory.as_mut().unwrap();
        (memory.refaulted_anon_pages, memory.swapped_in_pages) = (Some(5000), Some(5120));
    })
}

#[test]
fn a_heap_in_swap_needs_memory_and_no_other_device() {
    assert_eq!(swapping().ids(), [FindingId::MemoryPressure]);
    let found = &swapping().findings()[0];
    assert!(evidence(found, "from swap: 60 %") && found.advice.contains("working set smaller"), "{found:?}");
    // A mapped file beside it is not what the faults are for.
    let beside = swapping().file(1 << 20, |f| f.mapped = true);
    assert_eq!(beside.ids()[0], FindingId::MemoryPressure, "{:?}", beside.findings());
}

/// Reads of files, of which this number of pages had been evicted; others read so many bytes from the device meanwhile.
fn rereads(evicted: u64, by_others: u64) -> Run {
    let fetched = 400 << 20;
    limited(
        Run::new(10.0)
            .wait(Operation::Read, Wait::DeviceRead, 0.8)
            .busy(Operation::User, Layer::Program, 0.2)
            .io((100_000, 800 << 20), (0, 0))
            .calls(&[("read", 100_000), ("openat", 50_000)])
            .device_read(fetched)
            .device(0.8, 1.0, |d| (d.reads, d.read_bytes) = (5000, fetched + by_others))
            .file(1 << 30, |f| {
                f.reads = access(100_000, 800 << 20, 100_000);
                f.reads.distinct_bytes = 100 << 20;
            }),
    )
    .with(|p| p.pressure.memory.as_mut().unwrap().refaulted_file_pages = Some(evicted))
}

#[test]
fn evicted_pages_of_files_count_as_far_as_they_are_the_programs() {
    let share = |run: &Run| {
        let found = run.findings().into_iter().find(|f| f.id == FindingId::MemoryPressure);
        found.map(|f| (f.share * 100.0).round())
    };
    let pages = (200 << 20) / 4096;
    assert_eq!(share(&rereads(pages, 0)), Some(40.0), "half of the bytes came back");
    // 8 MiB of the process and 100 MiB of files, however many there are.
    assert!(rereads(pages, 0).findings().iter().any(|f| f.advice.contains("108 MiB would hold")));
    assert_eq!(share(&rereads(pages, 100 << 20)), Some(20.0), "a quarter for certain");
    assert_eq!(share(&rereads(pages, 200 << 20)), None, "all of them may be of others");
    assert_eq!(share(&rereads(10 * pages, 0)), Some(60.0), "a quarter was read for the first time");
    // What came back in the run was taken away in it, unless the kernel does not count that.
    let freed = |freed: u64| {
        let all = rereads(pages, 0);
        all.with(|p| p.pressure.memory.as_mut().unwrap().freed_pages = Some(freed))
    };
    assert_eq!((share(&freed(pages)), share(&freed(pages / 2))), (Some(40.0), Some(20.0)));
    assert_eq!(share(&freed(0)), None, "memory that is freed while nobody uses it is not short");
    // A backup reads each file once: that the kernel evicted it yesterday is no want of memory today.
    let backup = rereads(10 * pages, 0).with(|p| p.files[0].reads.distinct_bytes = 400 << 20);
    assert_eq!(share(&backup), None);
    let unknown = rereads(10 * pages, 0).with(|p| p.files.clear());
    assert_eq!(share(&unknown), None, "nobody counted distinct bytes");
}

#[test]
fn who_reads_the_same_file_again_and_again_thrashes_the_cache() {
    let run = rereads((300 << 20) / 4096, 0).with(|p| {
        p.calls.as_mut().unwrap().calls.retain(|c| c.name == "read");
        p.files[0].most_bytes = Some(100 << 20);
        let own_read_bytes = p.io.device_read_bytes.unwrap();
        p.block = Some(BlockSample { own_read_bytes, ..BlockSample::default() });
    });
    assert_eq!(run.ids()[0], FindingId::CacheThrash);
    assert!(!run.ids().contains(&FindingId::MemoryPressure), "{:?}", run.ids());
}

#[test]
fn innocent_programs_have_memory_enough() {
    let not_named = |run: &Run| assert!(!run.ids().contains(&FindingId::MemoryPressure), "{:?}", run.ids());
    // At its limit, because the page cache fills what there is; nothing comes back and freeing takes little.
    not_named(&writer(0.0, 0.03));
    // Counters of the group, but the program computes.
    not_named(&limited(Run::new(10.0).busy(Operation::User, Layer::Program, 1.0)).with(|p| {
        let memory = p.pressure.memory.as_mut().unwrap();
        memory.refaulted_file_pages = Some(1_000_000);
        memory.refaulted_anon_pages = Some(1_000_000);
        memory.swapped_in_pages = Some(1_000_000);
    }));
    // It lowers the limit of a group itself, and the kernel frees pages for that.
    not_named(&Run::new(10.0).busy(Operation::Write, Layer::Memory, 0.9).stack(
        &["shrink_lruvec", "try_to_free_mem_cgroup_pages", "memory_max_write"],
        State::Running,
        0.9,
        900,
    ));
    // First reads from a disk.
    not_named(&rereads(0, 0));
    // One page that came back from swap after a long sleep.
    not_named(&limited(Run::new(10.0).wait(Operation::Poll, Wait::Poll, 0.9)).stack(
        &SWAP,
        State::Blocked,
        0.06,
        1,
    ));
}
