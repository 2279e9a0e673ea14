//! Writing: syncs, locks of inodes and files, parts of blocks, replaced files, dirty limits.

use iowhy_core::finding::FindingId;

use crate::case::{Before, Case, Condition, Need, Setup};

const SYNC: Case = Case { cause: Some(FindingId::SyncPerWrite), ..Case::EMPTY };
const INODE_LOCK: Case = Case { cause: Some(FindingId::InodeLock), needs: &[Need::Direct], ..Case::EMPTY };
const UNALIGNED: Case =
    Case { cause: Some(FindingId::UnalignedWrite), accept: &[FindingId::QueueDepthOne], ..Case::EMPTY };
const FILE_LOCK: Case = Case {
    cause: Some(FindingId::FileLock),
    setup: &[Setup::Data("data-256m", 256 << 20)],
    before: &[Before::Cold("data-256m")],
    needs: &[Need::Python],
    ..Case::EMPTY
};
const REPLACED: Case = Case {
    cause: Some(FindingId::ReplacedFiles),
    before: &[Before::Folder("replaced")],
    needs: &[Need::Python],
    ..Case::EMPTY
};
const REWRITTEN: Case =
    Case { cause: Some(FindingId::RewrittenFiles), before: &[Before::Folder("saved")], ..Case::EMPTY };
const DIRTY: Case = Case {
    cause: Some(FindingId::DirtyThrottle),
    condition: Condition::DirtyLimit(1 << 30),
    needs: &[Need::Root],
    ..Case::EMPTY
};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "sync-rust",
        what: "fdatasync after every record of 4 KiB; repaired: after every 300",
        slow: &["{program}", "write", "{dir}/out", "4096", "600", "1"],
        repaired: &["{program}", "write", "{dir}/out", "4096", "600", "300"],
        before: &[Before::Remove("out")],
        prove: &["--batch", "300"],
        quick: true,
        ..SYNC
    },
    Case {
        name: "sync-sqlite",
        what: "SQLite commits every row; repaired: all rows in one transaction",
        slow: &["{python}", "{scripts}/commit.py", "{dir}/base", "250", "each"],
        repaired: &["{python}", "{scripts}/commit.py", "{dir}/base", "250", "all"],
        before: &[Before::Remove("base"), Before::Remove("base-journal")],
        needs: &[Need::Sqlite],
        prove: &["--batch", "all"],
        ..SYNC
    },
    Case {
        name: "sync-c",
        what: "appends entries of 200 bytes with O_DSYNC; repaired: one fdatasync",
        slow: &["{bin}/journal", "{dir}/out", "2000", "each"],
        repaired: &["{bin}/journal", "{dir}/out", "2000", "end"],
        setup: &[Setup::Compile("journal")],
        before: &[Before::Remove("out")],
        needs: &[Need::Compiler],
        prove: &["--batch", "all"],
        ..SYNC
    },
    Case {
        name: "sync-dd",
        what: "dd oflag=dsync with blocks of 8 KiB; repaired: conv=fsync",
        slow: &["dd", "if=/dev/zero", "of={dir}/out", "bs=8k", "count=1000", "oflag=dsync", "status=none"],
        repaired: &["dd", "if=/dev/zero", "of={dir}/out", "bs=8k", "count=1000", "conv=fsync", "status=none"],
        before: &[Before::Remove("out")],
        prove: &["--batch", "all"],
        ..SYNC
    },
    Case {
        name: "inode-lock-rust",
        what: "eight threads append past the cache to one file; repaired: over blocks of files of their own",
        slow: &["{program}", "append-threads", "{dir}/lock", "8", "600", "shared"],
        repaired: &["{program}", "append-threads", "{dir}/lock", "8", "600", "own"],
        before: &[Before::Folder("lock")],
        quick: true,
        ..INODE_LOCK
    },
    Case {
        name: "inode-lock-python",
        what: "eight Python threads append blocks past the cache to one file; repaired: to their own",
        slow: &["{python}", "{scripts}/append_threads.py", "{dir}/lock", "600", "shared"],
        repaired: &["{python}", "{scripts}/append_threads.py", "{dir}/lock", "600", "own"],
        before: &[Before::Folder("lock")],
        needs: &[Need::Direct, Need::Python],
        ..INODE_LOCK
    },
    Case {
        name: "unaligned-rust",
        what: "changes 4000 bytes in each of 5000 cold blocks; repaired: whole blocks",
        slow: &["{program}", "update", "{dir}/update-64m", "4000", "4096", "5000"],
        repaired: &["{program}", "update", "{dir}/update-64m", "4096", "4096", "5000"],
        setup: &[Setup::Data("update-64m", 64 << 20)],
        before: &[Before::Cold("update-64m")],
        ..UNALIGNED
    },
    Case {
        name: "unaligned-python",
        what: "changes 1000 bytes in each of 6000 cold blocks; repaired: whole blocks",
        slow: &["{python}", "{scripts}/patch.py", "{dir}/update-64m", "6000", "part"],
        repaired: &["{python}", "{scripts}/patch.py", "{dir}/update-64m", "6000", "whole"],
        setup: &[Setup::Data("update-64m", 64 << 20)],
        before: &[Before::Cold("update-64m")],
        needs: &[Need::Python],
        ..UNALIGNED
    },
    Case {
        name: "file-lock-flock",
        what: "four processes read sections of a cold file, one at a time below flock; repaired: with a shared lock",
        slow: &["{python}", "{scripts}/file_lock.py", "flock", "alone", "{dir}/data-256m"],
        repaired: &["{python}", "{scripts}/file_lock.py", "flock", "together", "{dir}/data-256m"],
        ..FILE_LOCK
    },
    Case {
        name: "file-lock-fcntl",
        what: "four processes read sections of a cold file, one at a time below a lock of the whole file; repaired: of the section",
        slow: &["{python}", "{scripts}/file_lock.py", "fcntl", "alone", "{dir}/data-256m"],
        repaired: &["{python}", "{scripts}/file_lock.py", "fcntl", "together", "{dir}/data-256m"],
        ..FILE_LOCK
    },
    Case {
        name: "replaced-truncate",
        what: "truncates and writes a small file again 4,000 times; repaired: overwrites it in place",
        slow: &["{python}", "{scripts}/replace_file.py", "truncate", "{dir}/replaced"],
        repaired: &["{python}", "{scripts}/replace_file.py", "keep", "{dir}/replaced"],
        ..REPLACED
    },
    Case {
        name: "replaced-rename",
        what: "renames a new file over the old one 4,000 times; repaired: overwrites it in place",
        slow: &["{python}", "{scripts}/replace_file.py", "rename", "{dir}/replaced"],
        repaired: &["{python}", "{scripts}/replace_file.py", "keep", "{dir}/replaced"],
        // Names of 4,000 new files cost about as much.
        accept: &[FindingId::ManySmallFiles],
        ..REPLACED
    },
    Case {
        name: "saved-whole-python",
        what: "saves the state of 20,000 jobs after each of 400 changes; repaired: appends to a journal and saves once",
        slow: &["{python}", "{scripts}/save_state.py", "{dir}/saved", "400", "whole"],
        repaired: &["{python}", "{scripts}/save_state.py", "{dir}/saved", "400", "journal"],
        needs: &[Need::Python],
        ..REWRITTEN
    },
    Case {
        name: "saved-in-place-rust",
        what: "writes an index of 2 MiB anew after each of 500 changes; repaired: appends to a journal and writes it once",
        slow: &["{program}", "index", "{dir}/saved", "32768", "500", "whole"],
        repaired: &["{program}", "index", "{dir}/saved", "32768", "500", "journal"],
        quick: true,
        ..REWRITTEN
    },
    Case {
        name: "dirty-throttle-rust",
        what: "writes 384 MiB where 8 MiB may be dirty; repaired: without that limit",
        slow: &["{program}", "write", "{limited}/out", "262144", "1536", "18446744073709551615"],
        repaired: &["{program}", "write", "{free}/out", "262144", "1536", "18446744073709551615"],
        ..DIRTY
    },
    Case {
        name: "dirty-throttle-dd",
        what: "dd of 256 MiB in blocks of 1 MiB where 8 MiB may be dirty; repaired: without that limit",
        slow: &["dd", "if=/dev/zero", "of={limited}/out", "bs=1M", "count=256", "status=none"],
        repaired: &["dd", "if=/dev/zero", "of={free}/out", "bs=1M", "count=256", "status=none"],
        ..DIRTY
    },
];
