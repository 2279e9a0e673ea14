//! The whole machine in the running kernel: waits of a program whose waits are known. A process of its own: the observer holds many
//! descriptors open.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use iowhy_core::machine::{Lost, Wait};
use iowhy_linux::clock::monotonic_ns;
use iowhy_watch::machine::MachineWatch;

/// Direct reads wait for a device, each once: what the program counts is what is seen.
#[test]
fn each_direct_read_is_one_wait_on_its_device() {
    const READS: u64 = 300;
    let path = std::env::current_exe().unwrap();
    let mut direct = std::fs::OpenOptions::new();
    let Ok(mut file) = direct.read(true).custom_flags(libc::O_DIRECT).open(path) else {
        println!("skipped: the file system has no O_DIRECT");
        return;
    };
    // A file that was just built is written back first: each page would be one more wait.
    file.sync_all().unwrap();
    let mut watch = match MachineWatch::begin(None) {
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
        for _ in 0..READS {
            file.read_exact(&mut page[start..start + 4096]).unwrap();
        }
    });
    while !reads.is_finished() {
        watch.turn(None, monotonic_ns() + 20_000_000).unwrap();
    }
    reads.join().unwrap();
    let profile = watch.take_interval().unwrap();
    let ours = profile.subjects.iter().position(|s| s.pid == std::process::id());
    let Some(ours) = ours.and_then(|at| u32::try_from(at).ok()) else {
        println!("skipped: the file system is on no device with requests");
        return;
    };
    let is_direct = |wait: &&Wait| {
        let stack = wait.stack.and_then(|stack| profile.stacks.get(stack as usize));
        wait.subject == ours
            && stack.is_some_and(|s| s.iter().any(|f| f.contains("dio") || f.contains("direct")))
    };
    let waits: Vec<_> = profile.waits.iter().filter(is_direct).collect();
    let count: u64 = waits.iter().map(|wait| wait.count).sum();
    // A read that finds its request done already does not sleep.
    assert!(count <= READS && count > READS / 2, "{count}: {profile:#?}");
    assert!(waits.iter().all(|wait| wait.device.is_some()), "{waits:?}");
    assert_eq!(profile.lost, Lost { pooled: profile.lost.pooled, ..Default::default() });
    let parts: f64 = profile.subjects.iter().map(|s| s.io_some_ns).sum();
    assert!(
        (parts - profile.computed.io_some_ns).abs() <= 1e-6 * parts.max(1.0),
        "the parts sum to the whole"
    );
}
