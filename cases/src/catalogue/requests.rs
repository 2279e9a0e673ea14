//! Too many calls: small requests, buffers thrown away by seeks, many small files, a process for each.

use iowhy_core::finding::FindingId;

use super::{DATA, DATA_WARM, SMALL, SMALL_WARM};
use crate::case::{Before, Case, Need, Setup};

/// Files of the tree.
const FILES: u32 = 20_000;
/// Bytes of each.
const FILE_BYTES: u32 = 300;
const TREE: Setup = Setup::Tree("tree", FILES, FILE_BYTES);
const TREE_500: Setup = Setup::Tree("tree-500", 500, FILE_BYTES);
const SPARSE: Setup = Setup::Sparse("sparse-2g", 2 << 30);
const ARCHIVE: Setup = Setup::Archive("archive", FILES, FILE_BYTES);

const SMALL_REQUESTS: Case = Case { cause: Some(FindingId::SmallRequests), ..Case::EMPTY };
const STDIO_SEEK: Case = Case { cause: Some(FindingId::StdioSeek), ..Case::EMPTY };
const MANY_FILES: Case = Case { cause: Some(FindingId::ManySmallFiles), ..Case::EMPTY };
const REPEATED_READS: Case = Case { cause: Some(FindingId::RepeatedReads), ..Case::EMPTY };
const READS_OF_HOLES: Case = Case { cause: Some(FindingId::ReadsOfHoles), ..Case::EMPTY };
const FAILED_LOOKUPS: Case = Case { cause: Some(FindingId::FailedLookups), ..Case::EMPTY };
const PROCESS_STARTS: Case = Case { cause: Some(FindingId::ProcessStarts), ..Case::EMPTY };

pub(super) const CASES: &[Case] = &[
    Case {
        name: "small-read-rust",
        what: "reads a cached file 128 bytes a call; repaired: 256 KiB",
        slow: &["{program}", "read", "{dir}/data-256m", "128", "2", "normal"],
        repaired: &["{program}", "read", "{dir}/data-256m", "262144", "2", "normal"],
        prove: &["--request", "256k"],
        setup: &[DATA],
        before: &[DATA_WARM],
        quick: true,
        ..SMALL_REQUESTS
    },
    Case {
        name: "small-write-rust",
        what: "appends records of 64 bytes, a call each; repaired: 64 KiB a call",
        slow: &["{program}", "write", "{dir}/out", "64", "2097152", "18446744073709551615"],
        repaired: &["{program}", "write", "{dir}/out", "65536", "2048", "18446744073709551615"],
        before: &[Before::Remove("out")],
        quick: true,
        ..SMALL_REQUESTS
    },
    Case {
        name: "small-read-python",
        what: "reads a cached file 100 bytes a call; repaired: 1 MiB",
        slow: &["{python}", "{scripts}/small_read.py", "{dir}/data-64m", "small"],
        repaired: &["{python}", "{scripts}/small_read.py", "{dir}/data-64m", "large"],
        prove: &["--request", "1m"],
        setup: &[SMALL],
        before: &[SMALL_WARM],
        needs: &[Need::Python],
        ..SMALL_REQUESTS
    },
    Case {
        name: "flush-lines-python",
        what: "flushes after every line of a log; repaired: when the buffer is full",
        slow: &["{python}", "{scripts}/flush_lines.py", "{dir}/out", "800000", "flush"],
        repaired: &["{python}", "{scripts}/flush_lines.py", "{dir}/out", "800000", "buffer"],
        prove: &["--request", "8k"],
        before: &[Before::Remove("out")],
        needs: &[Need::Python],
        ..SMALL_REQUESTS
    },
    Case {
        name: "small-write-c",
        what: "stdio without a buffer, a call for every line; repaired: stdio as it comes",
        slow: &["{bin}/lines", "{dir}/out", "2000000", "none"],
        repaired: &["{bin}/lines", "{dir}/out", "2000000", "full"],
        prove: &["--request", "4k"],
        setup: &[Setup::Compile("lines")],
        before: &[Before::Remove("out")],
        needs: &[Need::Compiler],
        ..SMALL_REQUESTS
    },
    Case {
        name: "small-dd",
        what: "dd with blocks of 64 bytes of a cached file; repaired: 256 KiB",
        slow: &["dd", "if={dir}/data-64m", "of=/dev/null", "bs=64", "status=none"],
        repaired: &["dd", "if={dir}/data-64m", "of=/dev/null", "bs=256k", "status=none"],
        prove: &["--request", "256k"],
        setup: &[SMALL],
        before: &[SMALL_WARM],
        ..SMALL_REQUESTS
    },
    Case {
        name: "stdio-seek-c",
        what: "fseek and fread of 64 bytes through a buffer of 64 KiB, at random; repaired: pread",
        slow: &["{bin}/cells", "{dir}/data-256m", "60000", "stdio"],
        repaired: &["{bin}/cells", "{dir}/data-256m", "60000", "pread"],
        setup: &[DATA, Setup::Compile("cells")],
        before: &[DATA_WARM],
        needs: &[Need::Compiler],
        ..STDIO_SEEK
    },
    Case {
        name: "stdio-seek-rust",
        what: "BufReader::seek before each field throws 64 KiB away; repaired: seek_relative",
        slow: &["{program}", "skip", "{dir}/data-64m", "256", "seek"],
        repaired: &["{program}", "skip", "{dir}/data-64m", "256", "relative"],
        setup: &[SMALL],
        before: &[SMALL_WARM],
        quick: true,
        ..STDIO_SEEK
    },
    Case {
        name: "stdio-seek-python",
        what: "seek and read of 40 bytes through a buffer of 128 KiB, at random; repaired: os.pread",
        slow: &["{python}", "{scripts}/cells.py", "{dir}/data-256m", "50000", "seek"],
        repaired: &["{python}", "{scripts}/cells.py", "{dir}/data-256m", "50000", "pread"],
        setup: &[DATA],
        before: &[DATA_WARM],
        needs: &[Need::Python],
        ..STDIO_SEEK
    },
    Case {
        name: "small-files-rust",
        what: "examines, opens and reads 20,000 files of 300 bytes, eight times; repaired: one archive",
        slow: &["{program}", "tree", "{dir}/tree", "8"],
        repaired: &["{program}", "archive", "{dir}/archive", "20000", "300", "8"],
        setup: &[TREE, ARCHIVE],
        before: &[Before::Warm("tree"), Before::Warm("archive")],
        quick: true,
        ..MANY_FILES
    },
    Case {
        name: "small-files-python",
        what: "makes a file for each of 12,000 results; repaired: one file",
        slow: &["{python}", "{scripts}/many_files.py", "{dir}/results", "12000", "many"],
        repaired: &["{python}", "{scripts}/many_files.py", "{dir}/results", "12000", "one"],
        before: &[Before::Folder("results")],
        needs: &[Need::Python],
        ..MANY_FILES
    },
    Case {
        name: "small-files-cp",
        what: "cp of a tree of 8,000 small files; repaired: cp of one archive",
        slow: &["cp", "-r", "{dir}/tree-8k", "{dir}/copied"],
        repaired: &["cp", "-r", "{dir}/archive-8k", "{dir}/copied"],
        setup: &[Setup::Tree("tree-8k", 8000, FILE_BYTES), Setup::Archive("archive-8k", 8000, FILE_BYTES)],
        before: &[Before::Warm("tree-8k"), Before::Warm("archive-8k"), Before::Remove("copied")],
        ..MANY_FILES
    },
    Case {
        name: "scan-table-rust",
        what: "reads a cached table of 64 MiB from its first byte up to each of 60 records; repaired: reads the records",
        slow: &["{program}", "lookup", "{dir}/data-64m", "60", "scan"],
        repaired: &["{program}", "lookup", "{dir}/data-64m", "60", "record"],
        setup: &[SMALL],
        before: &[SMALL_WARM],
        quick: true,
        ..REPEATED_READS
    },
    Case {
        name: "poll-log-python",
        what: "reads a growing log from its first byte at each poll; repaired: goes on where the poll before ended",
        slow: &["{python}", "{scripts}/poll_log.py", "{dir}/out", "300", "whole"],
        repaired: &["{python}", "{scripts}/poll_log.py", "{dir}/out", "300", "news"],
        before: &[Before::Remove("out")],
        needs: &[Need::Python],
        ..REPEATED_READS
    },
    Case {
        name: "image-whole-rust",
        what: "sums the pages of a sparse image of 2 GiB, 128 MiB of which are data; repaired: asks where the data is",
        slow: &["{program}", "image", "{dir}/sparse-2g", "whole"],
        repaired: &["{program}", "image", "{dir}/sparse-2g", "data"],
        setup: &[SPARSE],
        quick: true,
        ..READS_OF_HOLES
    },
    Case {
        name: "image-copy-dd",
        what: "dd copies a sparse image, with its holes as zeros; repaired: cp, which leaves them out",
        slow: &["dd", "if={dir}/sparse-1g", "of={dir}/clone", "bs=1M"],
        repaired: &["cp", "--sparse=auto", "{dir}/sparse-1g", "{dir}/clone"],
        setup: &[Setup::Sparse("sparse-1g", 1 << 30)],
        before: &[Before::Remove("clone")],
        ..READS_OF_HOLES
    },
    Case {
        name: "search-stat-python",
        what: "asks of 4,000 names again and again whether they exist; none does; repaired: lists the directory once",
        slow: &["{python}", "{scripts}/search.py", "stat", "{dir}/tree"],
        repaired: &["{python}", "{scripts}/search.py", "list", "{dir}/tree"],
        setup: &[TREE],
        needs: &[Need::Python],
        ..FAILED_LOOKUPS
    },
    Case {
        name: "search-open-python",
        what: "tries to open 4,000 files that do not exist again and again; repaired: lists the directory once",
        slow: &["{python}", "{scripts}/search.py", "open", "{dir}/tree"],
        repaired: &["{python}", "{scripts}/search.py", "list", "{dir}/tree"],
        setup: &[TREE],
        needs: &[Need::Python],
        ..FAILED_LOOKUPS
    },
    Case {
        name: "process-each-sh",
        what: "a shell that starts cksum for each of 500 files; repaired: one cksum for all",
        slow: &["sh", "-c", "for f in {dir}/tree-500/*/*; do cksum \"$f\"; done > /dev/null"],
        repaired: &["sh", "-c", "cksum {dir}/tree-500/*/* > /dev/null"],
        setup: &[TREE_500],
        before: &[Before::Warm("tree-500")],
        ..PROCESS_STARTS
    },
    Case {
        name: "process-each-python",
        what: "starts wc for each of 500 files; repaired: reads them itself",
        slow: &["{python}", "{scripts}/starts.py", "run", "{dir}/tree-500", "500"],
        repaired: &["{python}", "{scripts}/starts.py", "read", "{dir}/tree-500", "500"],
        setup: &[TREE_500],
        before: &[Before::Warm("tree-500")],
        needs: &[Need::Python],
        ..PROCESS_STARTS
    },
];
