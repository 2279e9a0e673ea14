//! Counts of threads whose calls are known, by the observer in the running kernel.

use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use iowhy_core::profile::FileUse;

use super::*;

/// Runs `work` on a thread that is counted from before its first call to after its last.
fn counted(work: impl FnOnce() + Send + 'static) -> Option<Facts> {
    let mut observer = match InKernel::open() {
        Ok(observer) => observer,
        Err(why) => {
            println!("skipped: system calls cannot be counted here: {why}");
            return None;
        }
    };
    let (tell, tid) = std::sync::mpsc::channel();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
        gone.recv().unwrap();
        work();
    });
    observer.add([tid.recv().unwrap()]).unwrap();
    go.send(()).unwrap();
    thread.join().unwrap();
    Some(observer.facts().unwrap())
}

fn calls(facts: &Facts, name: &str) -> (u64, u64, u64) {
    facts.calls.iter().find(|c| c.name == name).map_or((0, 0, 0), |c| (c.calls, c.failed, c.bytes))
}

fn file<'a>(facts: &'a Facts, path: &Path) -> &'a FileUse {
    facts.files.iter().find(|f| Path::new(&f.path) == path).unwrap_or_else(|| panic!("{path:?}: {facts:?}"))
}

#[test]
fn every_call_is_counted_once_with_its_bytes_and_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let there = path.clone();
    let Some(facts) = counted(move || {
        let mut file = std::fs::File::create(&there).unwrap();
        for _ in 0..1000 {
            file.write_all(&[7; 4096]).unwrap();
        }
        file.sync_data().unwrap();
        let mut file = std::fs::File::open(&there).unwrap();
        let mut block = [0; 4096];
        for _ in 0..100 {
            file.read_exact(&mut block).unwrap();
        }
        for n in 0..500u64 {
            file.read_exact_at(&mut block, n * 7919 % 1000 * 4096).unwrap();
        }
        file.seek(SeekFrom::Start(100)).unwrap();
        file.read_exact(&mut block).unwrap();
        assert!(std::fs::File::open("/no/such/file").is_err());
    }) else {
        return;
    };
    assert_eq!(calls(&facts, "write"), (1000, 0, 4_096_000));
    assert_eq!(calls(&facts, "read"), (101, 0, 413_696));
    assert_eq!(calls(&facts, "pread64"), (500, 0, 2_048_000));
    assert_eq!(calls(&facts, "fdatasync").0, 1);
    assert_eq!(calls(&facts, "openat").1, 1);
    let data = file(&facts, &path);
    assert_eq!((data.opens, data.syncs, data.kind.as_str()), (2, 1, "regular"));
    assert_eq!((data.writes.calls, data.writes.bytes), (1000, 4_096_000));
    assert_eq!((data.reads.calls, data.reads.bytes), (601, 413_696 + 2_048_000));
    assert_eq!((data.writes.sequential.hits, data.writes.sequential.n), (999, 999));
    assert_eq!((data.reads.after_seek.hits, data.reads.unaligned.hits), (1, 1));
    assert_eq!(data.reads.sizes[12], 601);
    assert_eq!(facts.lost, Lost::default());
}

#[test]
fn bytes_that_are_read_again_are_told_from_new_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    std::fs::write(&path, vec![1; 4 << 20]).unwrap();
    let there = path.clone();
    let Some(facts) = counted(move || {
        let file = std::fs::File::open(&there).unwrap();
        let mut block = [0; 65536];
        for _ in 0..4 {
            for n in 0..64 {
                file.read_exact_at(&mut block, n * 65536).unwrap();
            }
        }
    }) else {
        return;
    };
    let reads = &file(&facts, &path).reads;
    // Four times the same bytes: a quarter of what was moved is distinct, whichever bytes carry marks.
    assert_eq!((reads.bytes, reads.distinct_bytes), (16 << 20, 4 << 20));
}

#[test]
fn children_are_counted_before_they_run_and_short_ones_too() {
    let Some(facts) = counted(|| {
        for _ in 0..20 {
            assert!(std::process::Command::new("/bin/true").status().unwrap().success());
        }
    }) else {
        return;
    };
    let (execs, failed, _) = calls(&facts, "execve");
    assert_eq!((execs, failed), (20, 0));
    assert_eq!(facts.lost, Lost::default());
}
