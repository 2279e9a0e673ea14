//! Programs with two causes, the larger one first.

use iowhy_core::finding::FindingId;

use super::{DATA, DATA_COLD, DATA_WARM, SMALL};
use crate::case::{Before, Case, Need, Setup};

const UPDATED: [Setup; 2] = [Setup::Data("update-64m", 64 << 20), Setup::Compile("updaters")];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "two-sync-and-small",
        what: "syncs every record, then reads a cached file in small pieces; repaired: neither",
        cause: Some(FindingId::SyncPerWrite),
        also: &[FindingId::SmallRequests],
        // Both weigh about the same.
        accept: &[FindingId::SmallRequests],
        slow: &[
            "sh",
            "-c",
            "{program} write {dir}/out 4096 1500 1 && {program} read {dir}/data-64m 64 1 normal",
        ],
        repaired: &[
            "sh",
            "-c",
            "{program} write {dir}/out 4096 1500 0 && {program} read {dir}/data-64m 262144 1 normal",
        ],
        setup: &[SMALL],
        prove: &["--batch", "all"],
        before: &[Before::Remove("out"), Before::Warm("data-64m")],
        ..Case::EMPTY
    },
    Case {
        name: "two-data-base",
        what: "reads a cold page, then syncs a record, for each transaction; repaired: in batches",
        cause: Some(FindingId::SyncPerWrite),
        also: &[FindingId::QueueDepthOne],
        slow: &["{program}", "transactions", "{dir}/data-256m", "{dir}/out", "800", "1"],
        repaired: &["{program}", "transactions", "{dir}/data-256m", "{dir}/out", "800", "100"],
        setup: &[DATA],
        before: &[Before::Remove("out"), DATA_COLD],
        ..Case::EMPTY
    },
    Case {
        name: "two-lock-and-parts",
        what: "eight threads change parts of cold blocks of one file; repaired: whole blocks of own files",
        cause: Some(FindingId::InodeLock),
        also: &[FindingId::UnalignedWrite],
        slow: &["{bin}/updaters", "1000", "{dir}/update-64m"],
        repaired: &[
            "{bin}/updaters",
            "1000",
            "{dir}/part0",
            "{dir}/part1",
            "{dir}/part2",
            "{dir}/part3",
            "{dir}/part4",
            "{dir}/part5",
            "{dir}/part6",
            "{dir}/part7",
        ],
        setup: &[
            UPDATED[0],
            UPDATED[1],
            Setup::Data("part0", 32 << 20),
            Setup::Data("part1", 32 << 20),
            Setup::Data("part2", 32 << 20),
            Setup::Data("part3", 32 << 20),
            Setup::Data("part4", 32 << 20),
            Setup::Data("part5", 32 << 20),
            Setup::Data("part6", 32 << 20),
            Setup::Data("part7", 32 << 20),
        ],
        before: &[
            Before::Cold("update-64m"),
            Before::Cold("part0"),
            Before::Cold("part1"),
            Before::Cold("part2"),
            Before::Cold("part3"),
            Before::Cold("part4"),
            Before::Cold("part5"),
            Before::Cold("part6"),
            Before::Cold("part7"),
        ],
        needs: &[Need::Compiler],
        ..Case::EMPTY
    },
    Case {
        name: "two-seek-and-files",
        what: "random cells through a thrown-away buffer, then many small files; repaired: neither",
        cause: Some(FindingId::StdioSeek),
        also: &[FindingId::ManySmallFiles],
        // Both weigh about the same: which is more depends on how fast the machine copies.
        accept: &[FindingId::ManySmallFiles],
        slow: &["sh", "-c", "{bin}/cells {dir}/data-256m 100000 stdio && {program} tree {dir}/tree 8"],
        repaired: &[
            "sh",
            "-c",
            "{bin}/cells {dir}/data-256m 100000 pread && {program} archive {dir}/archive 20000 300 8",
        ],
        setup: &[
            DATA,
            Setup::Compile("cells"),
            Setup::Tree("tree", 20_000, 300),
            Setup::Archive("archive", 20_000, 300),
        ],
        before: &[DATA_WARM, Before::Warm("tree"), Before::Warm("archive")],
        needs: &[Need::Compiler],
        ..Case::EMPTY
    },
];
