//! Which threads a process has, and which processes stem from it.
//!
//! A reading is of one instant only: what starts and ends between two readings is not seen, and a process whose parent
//! has ended belongs to init from then on.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::process::task::process_stat;
use crate::reader::Reader;

/// Threads of a process, in the order in which they were made; empty when it is gone.
pub fn threads(pid: u32) -> Vec<u32> {
    numbers(Path::new(&format!("/proc/{pid}/task")))
}

/// Every process that we may see (`hidepid` may hide those of others).
pub fn processes() -> Vec<u32> {
    numbers(Path::new("/proc"))
}

/// Children of a process.
pub fn children(reader: &mut Reader, pid: u32) -> Vec<u32> {
    listed_children(reader, pid).unwrap_or_else(|| {
        parents(reader).into_iter().filter(|(_, parent)| *parent == pid).map(|(c, _)| c).collect()
    })
}

/// All processes below a process, each after its parent, without the process itself. Where the kernel does not list
/// children (CONFIG_PROC_CHILDREN) all processes are read: 0.7 ms where there were about a hundred.
fn descendants(reader: &mut Reader, pid: u32) -> Vec<u32> {
    if lists_children(reader) {
        return below(pid, |parent| listed_children(reader, parent).unwrap_or_default());
    }
    let mut by_parent: HashMap<u32, Vec<u32>> = HashMap::new();
    for (child, parent) in parents(reader) {
        by_parent.entry(parent).or_default().push(child);
    }
    below(pid, |parent| by_parent.remove(&parent).unwrap_or_default())
}

/// Walks down. A number that comes again (it was reused between two readings) is not followed twice.
fn below(pid: u32, mut children: impl FnMut(u32) -> Vec<u32>) -> Vec<u32> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([pid]);
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        for child in children(parent) {
            if seen.insert(child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// Whether the kernel lists children (CONFIG_PROC_CHILDREN).
fn lists_children(reader: &mut Reader) -> bool {
    reader.read(format_args!("/proc/thread-self/children")).is_some()
}

/// The lists of children of each of its threads; `None` where the kernel has none.
fn listed_children(reader: &mut Reader, pid: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    if !lists_children(reader) {
        return None;
    }
    for tid in threads(pid) {
        let text = reader.text(format_args!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
        all.extend(text.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
    }
    Some(all)
}

/// Every process with its parent.
fn parents(reader: &mut Reader) -> Vec<(u32, u32)> {
    processes().into_iter().filter_map(|pid| Some((pid, process_stat(reader, pid)?.parent))).collect()
}

/// The entries of a directory that are numbers.
fn numbers(directory: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A process and all below it, without ourselves: a shell that is attached to from its own prompt has us as a child.
pub fn family(reader: &mut Reader, root: u32) -> Vec<u32> {
    let ourselves = std::process::id();
    let below = descendants(reader, root).into_iter().filter(|pid| *pid != ourselves);
    std::iter::once(root).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_tree_is_walked_once_even_if_it_is_none() {
        let walk = |pairs: &[(u32, u32)], top| {
            below(top, |parent| pairs.iter().filter(|(p, _)| *p == parent).map(|(_, c)| *c).collect())
        };
        assert_eq!(walk(&[(1, 2), (2, 3), (1, 4), (9, 8)], 1), [2, 4, 3]);
        assert_eq!(walk(&[(1, 2), (2, 1), (2, 3)], 1), [2, 3], "a circle");
        assert!(walk(&[(1, 2)], 7).is_empty());
    }

    #[test]
    fn children_and_grandchildren_are_found() {
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'sleep 100 & echo $!; wait'; true"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let sleeper: u32 = line.trim().parse().unwrap();
        let mut reader = Reader::new();
        let (children, all) = (children(&mut reader, shell.id()), descendants(&mut reader, shell.id()));
        let mine = super::children(&mut reader, std::process::id());
        for pid in [sleeper, shell.id()] {
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(pid as i32).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        }
        let id = shell.id();
        shell.wait().unwrap();
        assert!(mine.contains(&id));
        assert_eq!(children.len(), 1, "{children:?}");
        assert!(all.contains(&sleeper) && all.contains(&children[0]) && !all.contains(&id), "{all:?}");
    }

    #[test]
    fn this_process_has_this_thread() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(threads(std::process::id()).contains(&tid));
        assert!(threads(u32::MAX).is_empty());
        assert!(processes().contains(&std::process::id()));
    }
}
