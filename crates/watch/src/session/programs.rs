//! Other programs at work, known by name and command line from the moment that the first of their events is seen: later they
//! may be gone. Invariant: memory is bounded; a number that is used again is another program only after others were forgotten.

use std::cell::RefCell;
use std::collections::HashMap;

use super::thread_set::ThreadSet;
use crate::block::{Known, Tasks};
use crate::event::RELEASED;
use iowhy_linux::process::task;
use iowhy_linux::reader::Reader;

/// Processes that are remembered.
const MAX_PROCESSES: usize = 4096;

/// Processes by number.
#[derive(Default)]
pub(super) struct Programs {
    reader: Reader,
    known: HashMap<u32, Known>,
}

impl Programs {
    /// A process executes another program.
    pub(super) fn executes(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Who a process is, read when it is seen for the first time.
    pub(super) fn meet(&mut self, pid: u32) -> Known {
        if pid == 0 || pid == RELEASED {
            return Known::default();
        }
        if let Some(known) = self.known.get(&pid) {
            return known.clone();
        }
        let name = task::name(&mut self.reader, pid, pid).map(|name| named(pid, name));
        let known = Known { name, command: task::command_line(&mut self.reader, pid) };
        if self.known.len() >= MAX_PROCESSES {
            self.known.clear();
        }
        self.known.insert(pid, known.clone());
        known
    }
}

/// The name of a process, with a word on those of iowhy: who looks for the cause shall not take the tool that tells of it
/// for it.
fn named(pid: u32, name: String) -> String {
    match name.as_str() {
        _ if pid == std::process::id() => format!("{name} (this watch)"),
        "iowhy" => format!("{name} (another run of it)"),
        _ => name,
    }
}

/// Whom requests belong to.
pub(super) struct Owners<'a> {
    pub(super) threads: &'a ThreadSet,
    pub(super) programs: &'a RefCell<Programs>,
}

impl Tasks for Owners<'_> {
    fn is_own(&self, tid: u32) -> bool {
        self.threads.contains(tid)
    }

    fn identify(&self, pid: u32) -> Known {
        self.programs.borrow_mut().meet(pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_named_with_their_command_lines_and_iowhy_by_what_it_is() {
        let mut programs = Programs::default();
        let ours = programs.meet(std::process::id());
        assert!(ours.name.is_some_and(|name| name.ends_with(" (this watch)")));
        assert!(ours.command.is_some());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // The child is a copy of us until it executes, and gets its name before its arguments.
        let known = loop {
            let known = Programs::default().meet(child.id());
            if known.name.as_deref() == Some("sleep") && known.command.is_some() {
                break known;
            }
            std::thread::yield_now();
        };
        assert_eq!(known.command.as_deref(), Some("sleep 60"));
        assert_eq!(programs.meet(child.id()), known);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(programs.meet(child.id()), known, "it is remembered when it is gone");
        assert_eq!(programs.meet(RELEASED), Known::default());
        assert_eq!(named(0, "iowhy".to_owned()), "iowhy (another run of it)");
        assert_eq!(named(0, "dd".to_owned()), "dd");
    }
}
