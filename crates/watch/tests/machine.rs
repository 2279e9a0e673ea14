//! The whole machine in the running kernel: waits of a program whose waits are known. A process of its own: the observer holds many
//! descriptors open.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use iowhy_core::machine::{Lost, Wait};
use iowhy_linux::clock::monotonic_ns;
use iowhy_watch::machine::MachineWatch;

/// How often the calling thread has slept so far, as the kernel counts it.
fn sleeps() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// Direct reads wait for a device: each sleep that the kernel counts is one wait that is seen.
#[test]
fn each_sleep_of_a_direct_read_is_one_wait_on_its_device() {
    const READS: u64 = 300;
    let path = std::env::current_exe().unwrap();
    let mut direct = std::fs::OpenOptions::new();
    let Ok(mut file) = direct.read(true).custom_flags(libc::O_DIRECT).open(path) else {
        println!("skipped: the file system has no O_DIRECT");
        return;
    };
    // A file that was just built is written back first: each page would be one more wait.
    file.sync_all().unwrap();
    let mut watch = match MachineWatch::begin(1.0, None) {
        Ok(watch) => watch,
        Err(problem) => {
            println!("skipped: the whole machine cannot be observed here: {problem}");
            return;
        }
    };
    // The reads begin once they are observed, however long that took.
    let reads = std::thread::spawn(move || {
        let mut page = vec![0_u8; 8192];
        let start = page.as_ptr().align_offset(4096);
        let before = sleeps();
        for _ in 0..READS {
            file.read_exact(&mut page[start..start + 4096]).unwrap();
        }
        sleeps() - before
    });
    while !reads.is_finished() {
        watch.turn(None, monotonic_ns() + 20_000_000).unwrap();
    }
    // A read that finds its request done already does not sleep: on a busy or a fast machine, most of them.
    let slept = reads.join().unwrap();
    if slept == 0 {
        println!("skipped: no read waited for its device");
        return;
    }
    let profile = watch.take_interval().unwrap();
    let ours = profile.subjects.iter().position(|s| s.pid == std::process::id());
    let Some(ours) = ours.and_then(|at| u32::try_from(at).ok()) else {
        println!("skipped: the file system is on no device with requests");
        return;
    };
    let made_by_us = profile.devices.iter().flat_map(|d| &d.users).filter(|user| user.subject == ours);
    let made: u64 = made_by_us.map(|user| user.requests).sum();
    let done: u64 = profile.devices.iter().map(|device| device.reads).sum();
    let is_direct = |wait: &&Wait| {
        let stack = wait.stack.and_then(|stack| profile.stacks.get(stack as usize));
        wait.subject == ours
            && stack.is_some_and(|s| s.iter().any(|f| f.contains("dio") || f.contains("direct")))
    };
    let waits: Vec<_> = profile.waits.iter().filter(is_direct).collect();
    let count: u64 = waits.iter().map(|wait| wait.count).sum();
    assert!(count <= slept && made >= READS, "{count} of {slept}: {profile:#?}");
    if done < made {
        // Seen where a virtual machine runs no program in the kernel while a task of its manager is on the CPU.
        println!("skipped: the kernel did not tell {} of {made} ends of requests", made - done);
        return;
    }
    assert_eq!(count, slept, "{profile:#?}");
    assert!(waits.iter().all(|wait| wait.device.is_some()), "{profile:#?}");
    assert_eq!(profile.lost, Lost { pooled: profile.lost.pooled, ..Default::default() });
    let parts: f64 = profile.subjects.iter().map(|s| s.io_some_ns).sum();
    assert!(
        (parts - profile.computed.io_some_ns).abs() <= 1e-6 * parts.max(1.0),
        "the parts sum to the whole"
    );
}
