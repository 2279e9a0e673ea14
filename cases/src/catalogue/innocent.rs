//! Programs with no fault in the I/O path. Where the device or the copy is all there is, saying so is true as well.

use iowhy_core::finding::FindingId;

use super::{DATA, DATA_COLD, DATA_WARM, SMALL};
use crate::case::{Before, Case, Need, Setup};

const INNOCENT: Case = Case { accept: Case::INNOCENT, ..Case::EMPTY };
/// At the speed of the device.
const AT_DEVICE_SPEED: Case =
    Case { accept: &[FindingId::Healthy, FindingId::DeviceSaturated], ..Case::EMPTY };
const WAITING: Case = Case { accept: &[FindingId::WaitingElsewhere], ..Case::EMPTY };
const COMPUTING: Case = Case { accept: &[FindingId::CpuBound], ..Case::EMPTY };

pub(super) const CASES: &[Case] = &[
    Case {
        name: "innocent-copy",
        what: "cp of a cached file of 256 MiB, at the machine's speed",
        accept: &[FindingId::Healthy, FindingId::CopyBound],
        slow: &["cp", "--reflink=never", "{dir}/data-256m", "{dir}/copied"],
        setup: &[DATA],
        before: &[DATA_WARM, Before::Remove("copied")],
        ..Case::EMPTY
    },
    Case { name: "innocent-sleep", what: "sleeps", slow: &["sleep", "1.2"], quick: true, ..WAITING },
    Case {
        name: "innocent-compute-rust",
        what: "computes, and reads nothing",
        slow: &["{program}", "compute", "400000000"],
        quick: true,
        ..COMPUTING
    },
    Case {
        name: "innocent-compute-python",
        what: "computes in Python, and reads nothing",
        slow: &["{python}", "{scripts}/compute.py"],
        needs: &[Need::Python],
        ..COMPUTING
    },
    Case {
        name: "innocent-pipe",
        what: "reads what a slow program sends",
        slow: &["sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.2; echo $i; done | cat > /dev/null"],
        ..WAITING
    },
    Case {
        name: "innocent-child",
        what: "a shell that waits for a child that waits",
        slow: &["sh", "-c", "sleep 1; true"],
        ..WAITING
    },
    Case {
        name: "innocent-cold-read",
        what: "reads a cold file front to end in large pieces, read ahead",
        // Where the disk is faster than memory, the copy is what is left.
        accept: &[FindingId::Healthy, FindingId::DeviceSaturated, FindingId::CopyBound],
        slow: &["dd", "if={dir}/data-256m", "of=/dev/null", "bs=1M", "status=none"],
        setup: &[DATA],
        before: &[DATA_COLD],
        ..Case::EMPTY
    },
    Case {
        name: "innocent-grep",
        what: "searches a cached text",
        slow: &["grep", "-c", "-E", "fox.*(12345|54321)", "{dir}/text-256m"],
        setup: &[Setup::Text("text-256m", 256 << 20)],
        before: &[Before::Warm("text-256m")],
        ..INNOCENT
    },
    Case {
        name: "innocent-deep-direct",
        what: "reads random blocks past the cache with 16 in flight",
        slow: &["{program}", "direct-random", "{dir}/data-256m", "4096", "20000", "16"],
        setup: &[DATA],
        needs: &[Need::Direct],
        ..AT_DEVICE_SPEED
    },
    Case {
        name: "innocent-batched-writer",
        what: "writes 128 MiB in pieces of 1 MiB and syncs once",
        slow: &["{program}", "write", "{dir}/out", "1048576", "128", "0"],
        before: &[Before::Remove("out")],
        // Copying into fresh pages is most of it on some machines, and is named for what it is.
        accept: &[FindingId::Healthy, FindingId::DeviceSaturated, FindingId::CopyBound],
        ..AT_DEVICE_SPEED
    },
    Case {
        name: "innocent-sorted-append",
        what: "sorts numbers and appends them through a buffer",
        slow: &["{python}", "{scripts}/sorted_append.py", "{dir}/out"],
        before: &[Before::Remove("out")],
        needs: &[Need::Python],
        ..INNOCENT
    },
    Case {
        name: "innocent-sort",
        what: "sorts a cached text by its lines",
        slow: &["sort", "-o", "{dir}/out", "{dir}/text-32m"],
        setup: &[Setup::Text("text-32m", 32 << 20)],
        before: &[Before::Warm("text-32m"), Before::Remove("out")],
        ..INNOCENT
    },
    Case {
        name: "innocent-checksum",
        what: "sums up a cached file of 64 MiB, ten times",
        slow: &[
            "sha256sum",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
            "{dir}/data-64m",
        ],
        setup: &[SMALL],
        before: &[Before::Warm("data-64m")],
        ..INNOCENT
    },
];
