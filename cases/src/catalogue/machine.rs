//! Causes outside the program: limits, other processes, an overlay, and a saturated device.

use iowhy_core::finding::FindingId;

use super::{DATA, DATA_COLD, SMALL};
use crate::case::{Before, Case, Condition, Need, Setup};

const THROTTLED: Case = Case {
    cause: Some(FindingId::Throttled),
    setup: &[DATA],
    needs: &[Need::Root, Need::Direct],
    condition: Condition::DiskLimit(64 << 20),
    ..Case::EMPTY
};
const NOISY: Case = Case { cause: Some(FindingId::NoisyNeighbour), ..Case::EMPTY };
const COPY_UP: Case = Case {
    cause: Some(FindingId::CopyUp),
    needs: &[Need::Root, Need::Command("unshare")],
    before: &[Before::Folder("up"), Before::Folder("work"), Before::Folder("merged")],
    ..Case::EMPTY
};
const SATURATED: Case =
    Case { cause: Some(FindingId::DeviceSaturated), needs: &[Need::Direct], ..Case::EMPTY };

pub(super) const CASES: &[Case] = &[
    Case {
        name: "throttled-direct",
        what: "reads 96 MiB past the cache in a control group with 64 MiB a second; repaired: outside it",
        slow: &[
            "sh",
            "-c",
            "echo $$ > {group} && exec {program} direct-random {dir}/data-256m 131072 768 16",
        ],
        repaired: &["{program}", "direct-random", "{dir}/data-256m", "131072", "768", "16"],
        ..THROTTLED
    },
    Case {
        name: "throttled-dd",
        what: "dd of a cold file in a control group with 64 MiB a second; repaired: outside it",
        slow: &[
            "sh",
            "-c",
            "echo $$ > {group} && exec dd if={dir}/data-256m of=/dev/null bs=1M count=96 status=none",
        ],
        repaired: &["dd", "if={dir}/data-256m", "of=/dev/null", "bs=1M", "count=96", "status=none"],
        before: &[DATA_COLD],
        ..THROTTLED
    },
    Case {
        name: "copy-up-mode",
        what: "changes the mode of 3,000 files below an overlay, which goes with its namespace; repaired: of files that no overlay holds",
        slow: &[
            "unshare",
            "--mount",
            "sh",
            "-ec",
            "mount -t overlay overlay -o lowerdir={dir}/tree-3000,upperdir={dir}/up,workdir={dir}/work {dir}/merged; \
             chmod -R o-r {dir}/merged",
        ],
        repaired: &["chmod", "-R", "o-r", "{dir}/plain-3000"],
        setup: &[Setup::Tree("tree-3000", 3000, 30_000), Setup::Tree("plain-3000", 3000, 30_000)],
        ..COPY_UP
    },
    Case {
        name: "copy-up-append",
        what: "appends a line to each of 24 files of 8 MiB below an overlay; repaired: to files that no overlay holds",
        slow: &[
            "unshare",
            "--mount",
            "sh",
            "-ec",
            "mount -t overlay overlay -o lowerdir={dir}/logs,upperdir={dir}/up,workdir={dir}/work {dir}/merged; \
             for file in {dir}/merged/*/*; do echo line >> $file; done",
        ],
        repaired: &["sh", "-ec", "for file in {dir}/plain-logs/*/*; do echo line >> $file; done"],
        setup: &[Setup::Tree("logs", 24, 8 << 20), Setup::Tree("plain-logs", 24, 8 << 20)],
        ..COPY_UP
    },
    Case {
        name: "noisy-cpu",
        what: "computes beside six processes that compute; repaired: without them",
        slow: &["{program}", "compute", "120000000"],
        repaired: &["{program}", "compute", "120000000"],
        condition: Condition::OtherProcess(6, &["{program}", "spin"]),
        ..NOISY
    },
    Case {
        name: "noisy-disk",
        what: "reads past the cache beside two processes that keep the disk busy; repaired: without them",
        accept: &[FindingId::DeviceSaturated],
        slow: &["{program}", "direct-random", "{dir}/data-256m", "4096", "3000", "1"],
        repaired: &["{program}", "direct-random", "{dir}/data-256m", "4096", "3000", "1"],
        setup: &[DATA],
        needs: &[Need::Direct],
        condition: Condition::OtherProcess(2, &["{program}", "disk-load", "{dir}/data-256m"]),
        ..NOISY
    },
    Case {
        name: "saturated-stream",
        what: "streams all columns of a table as fast as the disk can; repaired: the one it needs, a sixteenth",
        slow: &["{program}", "direct-stream", "{dir}/data-1g", "1048576", "67108864"],
        repaired: &["{program}", "direct-stream", "{dir}/data-64m", "1048576", "67108864"],
        setup: &[Setup::Data("data-1g", 1 << 30), SMALL],
        prove: &["--subsample", "16"],
        ..SATURATED
    },
    Case {
        name: "saturated-dd",
        what: "dd past the cache in pieces of 16 MiB, many requests each; repaired: of a sixteenth of the file",
        slow: &["dd", "if={dir}/data-1g", "of=/dev/null", "bs=16M", "iflag=direct", "status=none"],
        repaired: &[
            "dd",
            "if={dir}/data-1g",
            "of=/dev/null",
            "bs=16M",
            "count=4",
            "iflag=direct",
            "status=none",
        ],
        setup: &[Setup::Data("data-1g", 1 << 30)],
        accept: &[FindingId::Healthy],
        prove: &["--subsample", "16"],
        ..SATURATED
    },
];
