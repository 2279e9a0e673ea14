//! Reading from the device: one request at a time, no read-ahead, too much of it, the same bytes again.

use iowhy_core::finding::FindingId;

use super::{DATA, DATA_COLD, SMALL, SMALL_COLD};
use crate::case::{Before, Case, Condition, Need, Setup};

const DEPTH: Case = Case { cause: Some(FindingId::QueueDepthOne), setup: &[DATA], ..Case::EMPTY };
const NO_READAHEAD: Case =
    Case { cause: Some(FindingId::NoReadahead), setup: &[SMALL], before: &[SMALL_COLD], ..Case::EMPTY };
const WASTE: Case =
    Case { cause: Some(FindingId::ReadaheadWaste), before: &[Before::Cold("data-1g")], ..Case::EMPTY };
const THRASH: Case = Case { cause: Some(FindingId::CacheThrash), ..Case::EMPTY };

/// More than read-ahead brings in for a few records.
const BIG: Setup = Setup::Data("data-1g", 1 << 30);

pub(super) const CASES: &[Case] = &[
    Case {
        name: "depth-one-rust",
        what: "reads 8000 random blocks past the cache one at a time; repaired: 32 in flight on a ring",
        slow: &["{program}", "direct-random", "{dir}/data-256m", "4096", "8000", "1"],
        repaired: &["{program}", "direct-random", "{dir}/data-256m", "4096", "8000", "32"],
        needs: &[Need::Direct],
        ..DEPTH
    },
    Case {
        name: "depth-one-python",
        what: "reads 6000 random blocks of a cold file one at a time; repaired: sixteen threads",
        slow: &["{python}", "{scripts}/pool_read.py", "{dir}/data-256m", "6000", "single"],
        repaired: &["{python}", "{scripts}/pool_read.py", "{dir}/data-256m", "6000", "pool"],
        before: &[DATA_COLD],
        needs: &[Need::Python],
        ..DEPTH
    },
    Case {
        name: "depth-one-c",
        what: "looks up 8000 pages of a cold file one by one; repaired: tells the kernel of the next 64",
        slow: &["{bin}/lookup", "{dir}/data-256m", "8000", "single"],
        repaired: &["{bin}/lookup", "{dir}/data-256m", "8000", "ahead"],
        setup: &[DATA, Setup::Compile("lookup")],
        before: &[DATA_COLD],
        needs: &[Need::Compiler],
        ..DEPTH
    },
    Case {
        name: "no-readahead-rust",
        what: "reads a cold file front to end after asking for no read-ahead; repaired: does not ask",
        slow: &["{program}", "read", "{dir}/data-64m", "4096", "1", "random"],
        repaired: &["{program}", "read", "{dir}/data-64m", "4096", "1", "normal"],
        ..NO_READAHEAD
    },
    Case {
        name: "no-readahead-map-c",
        what: "reads a cold mapped file front to end with MADV_RANDOM; repaired: MADV_SEQUENTIAL",
        slow: &["{bin}/mapseq", "{dir}/data-64m", "random"],
        repaired: &["{bin}/mapseq", "{dir}/data-64m", "sequential"],
        setup: &[SMALL, Setup::Compile("mapseq")],
        needs: &[Need::Compiler],
        ..NO_READAHEAD
    },
    Case {
        name: "no-readahead-back-python",
        what: "reads a cold file from its end to its front, never read ahead; repaired: front to end",
        accept: &[FindingId::QueueDepthOne],
        slow: &["{python}", "{scripts}/backward.py", "{dir}/data-64m", "back"],
        repaired: &["{python}", "{scripts}/backward.py", "{dir}/data-64m", "front"],
        needs: &[Need::Python],
        ..NO_READAHEAD
    },
    Case {
        name: "no-readahead-dd",
        what: "dd past the cache in blocks of 8 KiB; repaired: through the cache, which reads ahead",
        accept: &[FindingId::QueueDepthOne, FindingId::SmallRequests],
        slow: &["dd", "if={dir}/data-64m", "of=/dev/null", "bs=8k", "iflag=direct", "status=none"],
        repaired: &["dd", "if={dir}/data-64m", "of=/dev/null", "bs=8k", "status=none"],
        needs: &[Need::Direct],
        ..NO_READAHEAD
    },
    Case {
        name: "readahead-waste-rust",
        what: "touches 1500 random bytes of a cold mapped file; repaired: MADV_RANDOM",
        slow: &["{program}", "map-touch", "{dir}/data-1g", "1500", "normal"],
        repaired: &["{program}", "map-touch", "{dir}/data-1g", "1500", "random"],
        setup: &[BIG],
        ..WASTE
    },
    Case {
        name: "readahead-waste-c",
        what: "reads 3000 random records in eight parts each, and is read ahead; repaired: in one read",
        slow: &["{bin}/records", "{dir}/data-1g", "3000", "parts"],
        repaired: &["{bin}/records", "{dir}/data-1g", "3000", "whole"],
        setup: &[BIG, Setup::Compile("records")],
        needs: &[Need::Compiler],
        ..WASTE
    },
    Case {
        name: "readahead-waste-python",
        what: "looks at 1000 random bytes of a cold mapped file; repaired: madvise(MADV_RANDOM)",
        slow: &["{python}", "{scripts}/chunks.py", "{dir}/data-1g", "1000", "plain"],
        repaired: &["{python}", "{scripts}/chunks.py", "{dir}/data-1g", "1000", "random"],
        setup: &[BIG],
        needs: &[Need::Python],
        ..WASTE
    },
    Case {
        name: "cache-thrash-group",
        what: "reads 256 MiB eight times with 96 MiB of memory; repaired: without that limit",
        slow: &["sh", "-c", "echo $$ > {group} && exec {program} read {dir}/data-256m 262144 8 normal"],
        repaired: &["{program}", "read", "{dir}/data-256m", "262144", "8", "normal"],
        setup: &[DATA],
        before: &[DATA_COLD],
        needs: &[Need::Root],
        condition: Condition::MemoryLimit(96 << 20),
        ..THRASH
    },
    Case {
        name: "cache-thrash-python",
        what: "reads a file five times and lets the kernel forget it each time; repaired: does not",
        slow: &["{python}", "{scripts}/again.py", "{dir}/data-256m", "5", "drop"],
        repaired: &["{python}", "{scripts}/again.py", "{dir}/data-256m", "5", "keep"],
        setup: &[DATA],
        before: &[DATA_COLD],
        needs: &[Need::Python],
        ..THRASH
    },
];
