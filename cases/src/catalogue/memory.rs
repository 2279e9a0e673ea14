//! Memory: faults on mapped files, buffers taken anew, the lock of the address space, copies.

use iowhy_core::finding::FindingId;

use super::{DATA, DATA_WARM, SMALL, SMALL_WARM};
use crate::case::{Before, Case, Condition, Need, Setup};

const FAULTS: Case =
    Case { cause: Some(FindingId::MmapFaults), setup: &[SMALL], before: &[SMALL_WARM], ..Case::EMPTY };
const FRESH: Case =
    Case { cause: Some(FindingId::FreshBuffers), setup: &[DATA], before: &[DATA_WARM], ..Case::EMPTY };
const MMAP_LOCK: Case = Case {
    cause: Some(FindingId::MmapLock),
    accept: &[FindingId::FreshBuffers],
    needs: &[Need::SeveralCpus],
    ..Case::EMPTY
};
const COPY: Case =
    Case { cause: Some(FindingId::CopyBound), setup: &[DATA], before: &[DATA_WARM], ..Case::EMPTY };
const PRESSURE: Case =
    Case { cause: Some(FindingId::MemoryPressure), needs: &[Need::Root, Need::Direct], ..Case::EMPTY };

pub(super) const CASES: &[Case] = &[
    Case {
        name: "memory-pressure-dd",
        what: "dd writes 1 GiB with 16 MiB of memory: pages are freed before it gets any; repaired: past the cache",
        slow: &[
            "sh",
            "-c",
            "echo $$ > {group} && exec dd if=/dev/zero of={dir}/out bs=4M count=256 status=none",
        ],
        repaired: &[
            "dd",
            "if=/dev/zero",
            "of={dir}/out",
            "bs=4M",
            "count=256",
            "oflag=direct",
            "status=none",
        ],
        before: &[Before::Remove("out")],
        condition: Condition::MemoryLimit(16 << 20),
        // Version 2 of control groups pauses the writer before its group is full.
        accept: &[FindingId::DirtyThrottle],
        ..PRESSURE
    },
    Case {
        name: "memory-pressure-tree",
        what: "reads 1,000 files of 256 KiB six times with 64 MiB of memory; repaired: without that limit",
        slow: &["sh", "-c", "echo $$ > {group} && exec {program} tree {dir}/tree-256k 6"],
        repaired: &["{program}", "tree", "{dir}/tree-256k", "6"],
        setup: &[Setup::Tree("tree-256k", 1000, 256 << 10)],
        before: &[Before::Cold("tree-256k")],
        condition: Condition::MemoryLimit(64 << 20),
        // Where the list of files is complete, their size tells that bytes came again.
        accept: &[FindingId::CacheThrash],
        ..PRESSURE
    },
    Case {
        name: "mmap-faults-rust",
        what: "maps a cached file anew for each of 600 passes; repaired: maps it once",
        slow: &["{program}", "map-passes", "{dir}/data-64m", "600", "remap"],
        repaired: &["{program}", "map-passes", "{dir}/data-64m", "600", "once"],
        ..FAULTS
    },
    Case {
        name: "mmap-faults-c",
        what: "maps and unmaps 60,000 windows of 256 KiB of a cached file; repaired: one mapping",
        slow: &["{bin}/windows", "{dir}/data-64m", "60000", "window"],
        repaired: &["{bin}/windows", "{dir}/data-64m", "60000", "whole"],
        setup: &[SMALL, Setup::Compile("windows")],
        needs: &[Need::Compiler],
        ..FAULTS
    },
    Case {
        name: "mmap-faults-python",
        what: "maps a cached file for each of 150 looks; repaired: keeps one mapping",
        slow: &["{python}", "{scripts}/map_records.py", "{dir}/data-64m", "150", "each"],
        repaired: &["{python}", "{scripts}/map_records.py", "{dir}/data-64m", "150", "once"],
        needs: &[Need::Python],
        ..FAULTS
    },
    Case {
        name: "fresh-buffers-rust",
        what: "reads a cached file into a new zeroed buffer of 64 MiB each time; repaired: one buffer",
        slow: &["{program}", "fresh", "{dir}/data-256m", "67108864", "5", "fresh"],
        repaired: &["{program}", "fresh", "{dir}/data-256m", "67108864", "5", "reuse"],
        // It reads one cached file several times, which is as true.
        accept: &[FindingId::RepeatedReads],
        ..FRESH
    },
    Case {
        name: "fresh-buffers-c",
        what: "maps memory for each read of 1 MiB and gives it back; repaired: one buffer",
        slow: &["{bin}/arena", "{dir}/data-256m", "12", "fresh"],
        repaired: &["{bin}/arena", "{dir}/data-256m", "12", "reuse"],
        setup: &[DATA, Setup::Compile("arena")],
        needs: &[Need::Compiler],
        quick: true,
        // It reads one cached file several times, which is as true.
        accept: &[FindingId::RepeatedReads],
        ..FRESH
    },
    Case {
        name: "fresh-buffers-python",
        what: "reads 64 MiB into a new bytes object each time; repaired: readinto one buffer",
        slow: &["{python}", "{scripts}/fresh.py", "{dir}/data-256m", "6", "fresh"],
        repaired: &["{python}", "{scripts}/fresh.py", "{dir}/data-256m", "6", "into"],
        needs: &[Need::Python],
        // It reads one cached file several times, which is as true.
        accept: &[FindingId::RepeatedReads],
        ..FRESH
    },
    Case {
        name: "mmap-lock-rust",
        what: "four threads map, fill and unmap a cached file over and over; repaired: each maps it once",
        accept: &[FindingId::MmapFaults],
        slow: &["{program}", "map-threads", "{dir}/data-64m", "4", "120", "map"],
        repaired: &["{program}", "map-threads", "{dir}/data-64m", "4", "120", "keep"],
        setup: &[SMALL],
        before: &[SMALL_WARM],
        ..MMAP_LOCK
    },
    Case {
        name: "mmap-lock-c",
        what: "four threads take memory from the kernel and give it back; repaired: each keeps its own",
        slow: &["{bin}/mapthreads", "40", "map"],
        repaired: &["{bin}/mapthreads", "40", "keep"],
        setup: &[Setup::Compile("mapthreads")],
        needs: &[Need::SeveralCpus, Need::Compiler],
        ..MMAP_LOCK
    },
    Case {
        name: "copy-bound-rust",
        what: "copies a cached file 16 times to look at a byte of each page; repaired: maps it",
        slow: &["{program}", "fresh", "{dir}/data-256m", "1048576", "16", "reuse"],
        repaired: &["{program}", "map-sum", "{dir}/data-256m", "16"],
        // It reads one cached file several times, which is as true.
        accept: &[FindingId::RepeatedReads],
        ..COPY
    },
    Case {
        name: "copy-bound-python",
        what: "reads a cached file 16 times to look at a byte of each page; repaired: maps it",
        slow: &["{python}", "{scripts}/copy.py", "{dir}/data-256m", "8", "read"],
        repaired: &["{python}", "{scripts}/copy.py", "{dir}/data-256m", "8", "map"],
        needs: &[Need::Python],
        // It reads one cached file several times, which is as true.
        accept: &[FindingId::RepeatedReads],
        ..COPY
    },
];
