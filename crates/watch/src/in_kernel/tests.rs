//! Counts of threads whose calls are known, by the observer in the running kernel.

use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use iowhy_core::profile::FileUse;

use super::*;
use crate::calls::CallRecord;
use crate::event::{BlockRequest, Event, Kind, Operation, Step};

/// A thread that does `work` once it is told to: its number, and what tells it and waits for its end.
pub(super) fn later(work: impl FnOnce() + Send + 'static) -> (u32, impl FnOnce()) {
    let (tell, tid) = std::sync::mpsc::channel();
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
        gone.recv().unwrap();
        work();
    });
    let number = tid.recv().unwrap();
    let run = move || {
        go.send(()).unwrap();
        thread.join().unwrap();
    };
    (number, run)
}

/// The observer, with so much room for records; `None`: not here, which is said.
fn counting(record_bytes: u32) -> Option<InKernel> {
    let opened = InKernel::open(record_bytes, true)
        .and_then(|mut observer| observer.follow().and_then(|()| observer.count()).map(|()| observer));
    opened.inspect_err(|why| println!("skipped: system calls cannot be counted here: {why}")).ok()
}

/// Runs `work` on a thread that is counted from before its first call to after its last.
fn counted(work: impl FnOnce() + Send + 'static) -> Option<Facts> {
    let mut observer = counting(WINDOW_BYTES)?;
    let (tid, run) = later(work);
    observer.add([tid]).unwrap();
    run();
    Some(observer.facts().unwrap())
}

fn calls(facts: &Facts, name: &str) -> (u64, u64, u64) {
    facts.calls.iter().find(|c| c.name == name).map_or((0, 0, 0), |c| (c.calls, c.failed, c.bytes))
}

fn file<'a>(facts: &'a Facts, path: &Path) -> &'a FileUse {
    facts.files.iter().find(|f| Path::new(&f.path) == path).unwrap_or_else(|| panic!("{path:?}: {facts:?}"))
}

#[test]
fn files_beyond_the_list_keep_the_sum_of_their_sizes() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().to_owned();
    for n in 0..300 {
        std::fs::write(folder.join(format!("old{n}")), vec![7; 1000 + n]).unwrap();
    }
    let Some(facts) = counted(move || {
        for n in 0..300 {
            std::fs::read(folder.join(format!("old{n}"))).unwrap();
        }
        std::fs::write(folder.join("new"), [7; 10]).unwrap();
    }) else {
        return;
    };
    // By hand: the largest files are listed; the smallest hundred, and the new one, are not.
    let others = facts.files.iter().find(|file| file.path == crate::calls::OTHERS).unwrap();
    assert_eq!(others.most_bytes, Some((1000..1100).sum::<u64>() + 10));
    assert_eq!(others.opens, 101);
    let listed = file(&facts, &directory.path().join("old299"));
    assert_eq!((listed.size_bytes, listed.most_bytes), (None, Some(1299)));
}

/// A file that is written again keeps its inode, one that replaces it has another.
#[test]
fn files_of_one_path_are_told_by_their_inodes() {
    use iowhy_linux::file_handles::Inode;
    let directory = tempfile::tempdir().unwrap();
    let (folder, (give, inodes)) = (directory.path().to_owned(), std::sync::mpsc::channel());
    let Some(facts) = counted(move || {
        for _ in 0..8 {
            let mut file = std::fs::File::create(folder.join("state.new")).unwrap();
            file.write_all(&[7; 8192]).unwrap();
            give.send(Inode::of(&file)).unwrap();
            std::fs::rename(folder.join("state.new"), folder.join("state")).unwrap();
            std::fs::write(folder.join("same"), [7; 8192]).unwrap();
        }
    }) else {
        return;
    };
    let versions = &facts.versions[directory.path().join("state.new").to_str().unwrap()];
    let made: Vec<Inode> = inodes.iter().flatten().collect();
    assert_eq!(versions.len(), 8);
    if made.is_empty() {
        println!("skipped: this file system tells no generation of inodes");
    }
    assert!(made.iter().all(|inode| versions.contains(&(*inode, 8192))), "{made:?} {versions:?}");
    let same = directory.path().join("same");
    assert!(!facts.versions.contains_key(same.to_str().unwrap()));
    assert_eq!(file(&facts, &same).writes.bytes, 8 * 8192);
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
            // As PostgreSQL asks for the size of a table: no seek that the read after it needs.
            file.seek(SeekFrom::End(0)).unwrap();
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
fn a_connection_that_was_accepted_is_told_from_its_other_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let Some(facts) = counted(move || {
        let mut client = UnixStream::connect(&path).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut request = [0; 7];
        for _ in 0..100 {
            client.write_all(b"request").unwrap();
            server.read_exact(&mut request).unwrap();
        }
        server.write_all(b"reply").unwrap();
        client.read_exact(&mut request[..5]).unwrap();
    }) else {
        return;
    };
    let of = |accepted| {
        let mut sockets = facts.sockets.iter().filter(|socket| socket.accepted == accepted);
        let socket = sockets.next().unwrap();
        assert_eq!(sockets.next(), None);
        (socket.reads, socket.writes)
    };
    assert_eq!((of(true), of(false)), ((100, 1), (1, 100)));
    assert!(facts.files.iter().all(|file| file.kind != "socket" || file.opens == 0), "{:?}", facts.files);
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

#[test]
fn a_window_records_each_call_in_order_with_its_file_and_offset() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    let Some(mut observer) = counting(WINDOW_BYTES) else { return };
    let mut file = std::fs::File::open(&path).unwrap();
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut block = [0; 4096];
    let mut work = |observer: &mut InKernel, calls: u32| {
        observer.open_window(calls).unwrap();
        file.seek(SeekFrom::Start(100)).unwrap();
        for n in 0..50u64 {
            file.read_exact(&mut block).unwrap();
            file.read_exact_at(&mut block, n * 8192).unwrap();
        }
        observer.close_window().unwrap();
        file.read_exact(&mut block).unwrap();
        let mut records = Vec::new();
        let left = observer.take_records(&mut |record| records.push(*record)).unwrap();
        assert_eq!(left, 0, "the window is closed");
        records
    };
    observer.add([tid]).unwrap();
    let records = work(&mut observer, 4000);
    let of = |name: i64| records.iter().filter(move |r| i64::from(r.number) == name);
    assert_eq!((of(libc::SYS_read).count(), of(libc::SYS_pread64).count()), (50, 50));
    assert!(records.iter().all(|r| r.tid == tid && r.pid == std::process::id()));
    assert!(
        records.windows(2).all(|pair| pair[0].returned_ns <= pair[1].entered_ns),
        "in order, none nested"
    );
    assert!(records.iter().all(|r| r.entered_ns > 0 && r.entered_ns <= r.returned_ns));
    let ends: Vec<u64> = of(libc::SYS_read).map(|r| r.position).collect();
    assert_eq!(ends, (1..=50).map(|n| 100 + n * 4096).collect::<Vec<u64>>());
    let offsets: Vec<u64> = of(libc::SYS_pread64).map(|r| r.arguments[3]).collect();
    assert_eq!(offsets, (0..50).map(|n| n * 8192).collect::<Vec<u64>>());
    // The kernel stops at the limit by itself.
    assert_eq!(work(&mut observer, 10).len(), 10);
    let facts = observer.facts().unwrap();
    let key = of(libc::SYS_read).next().unwrap().file.unwrap();
    assert_eq!(facts.paths[&key], path.to_str().unwrap());
}

#[test]
fn a_look_up_tells_a_name_from_others_by_its_path_and_where_that_begins() {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

    let Some(mut observer) = counting(WINDOW_BYTES) else { return };
    let directory = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| directory.path().join(name));
    for folder in [&a, &b] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("same"), "x").unwrap();
    }
    let long = |last: &str| a.join(format!("{}{last}", "long".repeat(30)));
    let held = [&a, &b].map(|folder| std::fs::File::open(folder).unwrap());
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let look = |at: &std::fs::File, name: &str| statat(at, name, AtFlags::empty()).is_ok();
    observer.add([tid]).unwrap();
    observer.open_window(4000).unwrap();
    assert!(look(&held[0], "same") && look(&held[1], "same") && look(&held[0], "same"));
    assert!(statat(CWD, a.join("same"), AtFlags::empty()).is_ok());
    assert!(statat(CWD, b.join("same"), AtFlags::SYMLINK_NOFOLLOW).is_ok());
    assert!(!look(&held[0], "none") && openat(&held[0], "none", OFlags::RDONLY, Mode::empty()).is_err());
    assert!(statat(&held[0], "", AtFlags::EMPTY_PATH).is_ok());
    assert!(
        statat(CWD, long("1"), AtFlags::empty()).is_err()
            && statat(CWD, long("2"), AtFlags::empty()).is_err()
    );
    observer.close_window().unwrap();
    let mut names = Vec::new();
    observer
        .take_records(&mut |record| {
            let failed = i64::from(record.number) == libc::SYS_openat && record.value < 0;
            if failed || i64::from(record.number) == libc::SYS_newfstatat {
                names.push(record.position);
            }
        })
        .unwrap();
    let [in_a, in_b, in_a_again, whole_a, whole_b, none, none_opened, own, first, second] = names[..] else {
        panic!("{names:?}")
    };
    assert_eq!((in_a, none, own), (in_a_again, none_opened, 0), "{names:?}");
    let mut apart = vec![in_a, in_b, whole_a, whole_b, none, first, second];
    apart.sort_unstable();
    apart.dedup();
    assert_eq!(apart.len(), 7, "{names:?}");
}

#[test]
fn a_record_of_all_calls_ends_where_its_room_does_and_the_rest_is_counted() {
    let Some(mut observer) = counting(4096) else { return };
    let path = std::env::current_exe().unwrap();
    let file = std::fs::File::open(path).unwrap();
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    observer.open_window(ALL).unwrap();
    observer.add([tid]).unwrap();
    for n in 0..500u64 {
        file.read_exact_at(&mut [0; 16], n).unwrap();
    }
    let mut offsets = Vec::new();
    let left = observer.take_records(&mut |record| offsets.push(record.arguments[3])).unwrap();
    assert_eq!(left, FULL);
    let recorded = offsets.len() as u64;
    assert!(recorded > 10 && recorded < 100, "{recorded}");
    assert_eq!(offsets, (0..recorded).collect::<Vec<u64>>(), "none is missing between");
    let facts = observer.facts().unwrap();
    assert!(facts.lost.records >= 500 - recorded, "{:?}", facts.lost);
}

/// Each page of a mapped file is touched once, out of order; how many of them fault is the kernel's choice.
#[test]
fn faults_on_a_mapped_file_are_recorded_with_their_addresses_between_calls() {
    const PAGES: usize = 4096;
    let opened = InKernel::open(ALL_BYTES, true)
        .and_then(|mut observer| observer.follow().and_then(|()| observer.count()).map(|()| observer))
        .and_then(|mut observer| observer.record_faults().map(|()| observer));
    let mut observer = match opened {
        Ok(observer) => observer,
        Err(why) => {
            println!("skipped: page faults cannot be recorded here: {why}");
            return;
        }
    };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![1; PAGES * 4096]).unwrap();
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let (bytes, flags) = (PAGES * 4096, rustix::mm::MapFlags::SHARED);
    observer.open_window(ALL).unwrap();
    observer.add([tid]).unwrap();
    // SAFETY: a mapping at an address of the kernel's choice touches no memory that exists.
    let start = unsafe {
        rustix::mm::mmap(std::ptr::null_mut(), bytes, rustix::mm::ProtFlags::READ, flags, &file, 0)
    };
    let start = start.unwrap();
    let mut block = [0; 16];
    for n in 0..PAGES {
        let page = n * 1237 % PAGES;
        // SAFETY: inside of the mapping, whose file nobody else knows.
        std::hint::black_box(unsafe { start.cast::<u8>().add(page * 4096 + 7).read_volatile() });
        file.read_exact_at(&mut block, 0).unwrap();
    }
    let mut records = Vec::new();
    observer.take_records(&mut |record| records.push(*record)).unwrap();
    // SAFETY: the mapping was made above and is used no more.
    unsafe { rustix::mm::munmap(start, bytes) }.unwrap();
    let begin = start as u64;
    let within = |record: &&CallRecord| {
        record.is_fault() && (begin..begin + bytes as u64).contains(&record.arguments[0])
    };
    let faults: Vec<&CallRecord> = records.iter().filter(within).collect();
    // At most the 16 pages around one, unless the file has large folios.
    assert!(!faults.is_empty() && faults.len() <= PAGES, "{}", faults.len());
    assert!(faults.iter().all(|f| f.tid == tid && f.pid == std::process::id() && f.arguments[0] % 4096 == 7));
    assert_eq!(faults[0].arguments[0], begin + 7, "the first touch");
    let ours = records.iter().filter(|record| record.tid == tid).collect::<Vec<_>>();
    assert!(ours.windows(2).all(|pair| pair[0].returned_ns <= pair[1].entered_ns), "none nested");
    assert!(faults.iter().all(|f| f.entered_ns > 0 && f.entered_ns < f.returned_ns));
}

/// Reads past the cache: whether the file system allows that, and has a device, is found out by trying.
#[test]
fn every_request_of_a_thread_is_seen_from_its_issue_to_its_end() {
    const READS: usize = 200;
    let opened = InKernel::open(WINDOW_BYTES, true).and_then(|mut observer| {
        observer.requests()?;
        Ok((observer.feed()?, observer))
    });
    let (mut feed, observer) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            println!("skipped: block requests cannot be seen here: {why}");
            return;
        }
    };
    let path = std::env::current_exe().unwrap();
    let mut direct = std::fs::OpenOptions::new();
    let Ok(file) = direct.read(true).custom_flags(libc::O_DIRECT).open(path) else {
        println!("skipped: block requests cannot be seen here: the file system has no O_DIRECT");
        return;
    };
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut page = vec![0_u8; 8192];
    let start = page.as_ptr().align_offset(4096);
    for n in 0..READS {
        assert_eq!(file.read_at(&mut page[start..start + 4096], n as u64 * 4096).unwrap(), 4096);
    }
    let mut words = Vec::new();
    feed.source.take(&mut words);
    drop(observer);
    let records: Vec<&[u64]> = words.chunks_exact(11).collect();
    let mut requests = Vec::new();
    for record in &records {
        let mut take = |event: &Event<'_>| match event.kind {
            Kind::Request(request) => requests.push(BlockRequest { task: "", ..request }),
            ref other => panic!("{other:?}"),
        };
        assert!((feed.read)(record, 0, &mut take));
    }
    assert!(requests.iter().all(|request| request.lost == 0));
    let read = Operation::Read { ahead: false };
    // A file that was just built is written back first. While others keep the device busy, a request waits in the queue, and another
    // thread may issue it: whose it is, its first step tells.
    let mut queued = std::collections::HashSet::new();
    let first: Vec<usize> = (0..requests.len())
        .filter(|at| requests[*at].operation == read)
        .filter(|at| {
            let ours = records[*at][2] >> 32 == u64::from(tid);
            match requests[*at].step {
                Step::Inserted => ours && queued.insert(requests[*at].address),
                Step::Issued => !queued.remove(&requests[*at].address) && ours,
                _ => false,
            }
        })
        .collect();
    if first.is_empty() {
        println!(
            "skipped: block requests cannot be seen here: the file system is on no device with requests"
        );
        return;
    }
    assert_eq!(first.len(), READS);
    let mut untold = 0;
    for first in first {
        let address = requests[first].address;
        let at = (first..requests.len())
            .find(|at| requests[*at].step == Step::Issued && requests[*at].address == address);
        let at = at.expect("its issue");
        let request = &requests[at];
        assert!(!requests[first].by_kernel);
        assert_eq!((request.bytes, request.operation), (4096, read));
        // Its end, or the next request in its memory. A kernel may run no program while some tasks are on the CPU.
        let end = (at + 1..requests.len()).find(|end| requests[*end].address == request.address);
        let Some(end) = end.filter(|end| requests[*end].step == Step::Done) else {
            untold += 1;
            continue;
        };
        assert!(records[end][3] > records[at][3] && requests[end].bytes == 4096);
        assert_eq!((requests[end].device, requests[end].sector), (request.device, request.sector));
    }
    assert!(untold < READS, "no end was told");
    if untold > 0 {
        println!("skipped: the kernel did not tell {untold} of {READS} ends of requests");
    }
}
