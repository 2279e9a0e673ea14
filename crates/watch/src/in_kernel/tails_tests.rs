//! Calls of a thread that are known, timed by the observer in the running kernel.

use std::io::{Read, Write};
use std::os::unix::fs::FileExt;

use super::*;
use crate::in_kernel::tests::later;
use crate::in_kernel::{Called, Report};
use iowhy_linux::syscalls;

/// The operations of this test.
const READ: u32 = 0;
const WRITE: u32 = 1;
const SYNC: u32 = 2;

fn operation(number: u32) -> Option<u16> {
    match syscalls::name(i64::from(number))? {
        "read" | "pread64" => Some(READ as u16),
        "write" => Some(WRITE as u16),
        "fdatasync" => Some(SYNC as u16),
        _ => None,
    }
}

/// Runs `work` on a thread whose calls are timed; those of `told` that take longer are told.
fn timed(told: (u32, u64), work: impl FnOnce() + Send + 'static) -> Option<(MachineObserver, Vec<Called>)> {
    let mut observer = match MachineObserver::open_timed(&operation, 3) {
        Ok(observer) => observer,
        Err(why) => {
            println!("skipped: system calls cannot be counted here: {why}");
            return None;
        }
    };
    let (tid, run) = later(work);
    observer.tell_from(told.0, told.1).unwrap();
    observer.time_calls(&mut || vec![tid]).unwrap();
    run();
    observer.stop_timing();
    let mut calls = Vec::new();
    observer.take(&mut |report| {
        if let Report::Called(called) = report {
            calls.push(called);
        }
    });
    Some((observer, calls))
}

#[test]
fn every_call_is_timed_once_and_by_its_operation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let there = path.clone();
    let work = move || {
        let mut file = std::fs::File::options().create(true).read(true).append(true).open(&there).unwrap();
        for _ in 0..1000 {
            file.write_all(&[7; 512]).unwrap();
        }
        for _ in 0..7 {
            file.sync_data().unwrap();
        }
        let mut block = [0; 512];
        for n in 0..300 {
            file.read_exact_at(&mut block, n * 512).unwrap();
        }
        // A call that fails is a call.
        assert!(std::fs::File::open("/").unwrap().read(&mut block).is_err());
    };
    // All reads are told: then they are known one by one.
    let Some((mut observer, told)) = timed((READ, 0), work) else { return };
    let [reads, writes, syncs] = [READ, WRITE, SYNC].map(|place| observer.operation(place).unwrap());
    assert_eq!((reads.times.count(), writes.times.count(), syncs.times.count()), (301, 1000, 7));
    assert_eq!((reads.failed, writes.failed, syncs.failed), (1, 0, 0));
    assert_eq!(observer.calls_lost(), CallsLost::default());
    let mut exact = Histogram::new();
    told.iter().for_each(|called| exact.record(called.time_ns()));
    assert_eq!(reads.times, exact, "the kernel's buckets, sum and ends are those of the calls that it told");
    let files: Vec<String> = told.iter().filter_map(|call| call.file).map(|key| observer.file(key)).collect();
    assert_eq!(files, vec![path.display().to_string(); 300]);
    assert_eq!(told.iter().filter(|call| call.value == -i64::from(libc::EISDIR)).count(), 1);
}

#[test]
fn a_call_that_sleeps_is_told_with_its_sleep() {
    let work = move || {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        // Writes when the reader sleeps in its call, whenever that is.
        let helper = std::thread::spawn(move || {
            let asleep = || {
                let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap();
                call.starts_with(&format!("{} ", libc::SYS_read))
            };
            while !asleep() {
                std::thread::yield_now();
            }
            writer.write_all(&[1]).unwrap();
        });
        reader.read_exact(&mut [0]).unwrap();
        helper.join().unwrap();
    };
    let Some((mut observer, told)) = timed((READ, 1), work) else { return };
    // The helper, a child of the thread, reads files of its own.
    let is_pipe = |call: &&Called, observer: &mut MachineObserver| {
        call.file.is_some_and(|key| observer.file(key).starts_with("pipe:["))
    };
    let ours: Vec<&Called> = told.iter().filter(|call| is_pipe(call, &mut observer)).collect();
    let [call] = ours.as_slice() else { panic!("{told:?}") };
    assert!(call.sleeps >= 1 && call.slept_ns > 0, "{call:?}");
    assert!(
        call.slept_ns + call.queued_ns <= call.time_ns(),
        "the parts are no more than the call: {call:?}"
    );
    assert_eq!((call.pid, call.value), (std::process::id(), 1));
}
