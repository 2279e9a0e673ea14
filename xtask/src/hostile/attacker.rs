//! Threads with the rights of nobody that exchange and plant names as fast as they can.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{CWD, Gid, RenameFlags, Uid};

use super::arena::{Arena, NOBODY};

/// The attackers of one run.
pub(super) struct Attackers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Attackers {
    pub(super) fn start(arena: &Arena) -> Attackers {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = ["hostile", "sticky"]
            .map(|dir| {
                let (dir, victim, stop) = (arena.at(dir), arena.at("victim"), Arc::clone(&stop));
                std::thread::spawn(move || attack(&dir, &victim, &stop))
            })
            .into_iter()
            .collect();
        Attackers { stop, threads }
    }

    /// Ends them; how many names they exchanged or planted.
    pub(super) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    }
}

fn attack(dir: &Path, victim: &Path, stop: &AtomicBool) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nobody = Uid::from_raw(NOBODY);
    // Of this thread alone: credentials(7).
    let changed = rustix::thread::set_thread_groups(&[])
        .and_then(|()| {
            let group = Gid::from_raw(NOBODY);
            rustix::thread::set_thread_res_gid(group, group, group)
        })
        .and_then(|()| rustix::thread::set_thread_res_uid(nobody, nobody, nobody));
    if changed.is_err() {
        return 0;
    }
    let farm = dir.join(format!("farm-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    plant(&farm, victim);
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let theirs = entry.metadata().is_ok_and(|meta| meta.uid() == NOBODY);
            if !theirs && (name.starts_with(".iowhy") || name.starts_with(".out")) {
                done += u64::from(exchange(&entry.path(), &farm));
                std::thread::yield_now();
                exchange(&entry.path(), &farm);
            }
        }
        // Outputs that are to be new, and left-overs of processes that are dead.
        for (name, target) in [("out.json", victim.join("3")), ("planted", victim.to_owned())] {
            done += u64::from(symlink(target, dir.join(name)).is_ok());
        }
        let left = dir.join(format!(".iowhy-tree-{}", 4_194_305 + done % 64));
        if !left.exists() {
            plant(&left, victim);
            done += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    done
}

fn exchange(one: &Path, other: &Path) -> bool {
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

/// What looks like a tree of iowhy's; its directories lead to root's.
fn plant(tree: &PathBuf, victim: &Path) {
    let _ = fs::create_dir(tree);
    let _ = fs::write(tree.join(".iowhy-tree"), "removed when the run ends\n");
    for number in 0..4 {
        let _ = symlink(victim, tree.join(format!("d{number}")));
    }
}
