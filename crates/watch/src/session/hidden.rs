//! Programs that may not be watched: set-user-id, with file capabilities, or not readable. The kernel closes the events of a
//! thread that executes one, and says that it ended, though it lives on.
//!
//! Non-goal: why the kernel refused; the file's mode tells that. Invariant: only a thread that executed a program and has
//! mapped nothing since can be one: a program begins with its mappings, and they are recorded.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iowhy_core::profile::Limitation;

/// Processes that are remembered as hidden; of more than this only the number is known.
const MAX_HIDDEN: usize = 1024;

/// The processes.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    /// Processes that execute a program just now, and its name.
    beginning: HashMap<u32, String>,
    /// How often each of the few processes of interest executed a program: the command.
    root: Option<u32>,
    root_programs: u64,
    /// Hidden ones that may live, with the name of their program.
    living: BTreeMap<u32, String>,
    /// The first name, and how many there were besides the command.
    first: Option<String>,
    others: u64,
    root_is_hidden: bool,
    /// No event belongs to a thread: what the kernel closes does not matter.
    seen_by_cpu: bool,
}

impl Hidden {
    /// The command.
    pub(super) fn of_command(&mut self, pid: u32) {
        self.root = Some(pid);
    }

    /// Threads are recorded by events of CPUs: such a program is seen as any other, and its record of an exit tells nothing.
    pub(super) fn all_are_seen(&mut self) {
        self.seen_by_cpu = true;
    }

    /// Whether a thread is seen no more after such a record.
    pub(super) fn hides(&self) -> bool {
        !self.seen_by_cpu
    }

    /// A process of the program executes another one.
    pub(super) fn executes(&mut self, pid: u32, name: &str) {
        self.root_programs += u64::from(self.root == Some(pid));
        self.beginning.insert(pid, name.to_owned());
    }

    /// A process maps something: it is watched.
    pub(super) fn maps(&mut self, pid: u32) {
        self.beginning.remove(&pid);
    }

    /// Whether the record of an exit means that the thread may not be watched any more, and lives.
    pub(super) fn is_no_exit(&mut self, pid: u32, tid: u32) -> bool {
        let Some(name) = self.beginning.remove(&pid).filter(|_| pid == tid) else { return false };
        if self.seen_by_cpu {
            // It may have died in its exec, after all: whether it lives is looked at.
        } else if self.root == Some(pid) {
            self.root_is_hidden = true;
        } else {
            self.others += 1;
            self.first.get_or_insert_with(|| name.clone());
        }
        if self.living.len() < MAX_HIDDEN {
            self.living.insert(pid, name);
        }
        true
    }

    /// Hidden processes whose end no record will tell, without the command.
    pub(super) fn living(&self) -> Vec<u32> {
        self.living.keys().copied().filter(|pid| self.root != Some(*pid)).collect()
    }

    /// One of them has ended.
    pub(super) fn ended(&mut self, pid: u32) {
        self.living.remove(&pid);
    }

    /// What could not be seen, in words. `command`: the file of the command, and its run time in words.
    pub(super) fn limitations(&self, command: Option<(&Path, String)>) -> Vec<Limitation> {
        let mut limitations = Vec::new();
        if self.root_is_hidden {
            let root = self.root.and_then(|pid| self.living.get(&pid));
            let name = root.map_or("?", String::as_str);
            limitations.push(match command.filter(|_| self.root_programs == 1) {
                Some((file, run_time)) => Limitation {
                    id: Limitation::ONLY_RUN_TIME.to_owned(),
                    sentence: format!(
                        "this program may not be watched ({}): only its run time is known, {run_time}",
                        why(file)
                    ),
                    fix: None,
                },
                None => Limitation {
                    id: "hidden-program".to_owned(),
                    sentence: format!(
                        "from the start of `{name}` on, which may not be watched (setuid / not readable), only the run \
                         time is known"
                    ),
                    fix: None,
                },
            });
        }
        if let Some(first) = &self.first {
            let who = match self.others {
                1 => format!("`{first}`"),
                n => format!("{n} programs, among them `{first}`,"),
            };
            limitations.push(Limitation {
                id: "hidden-programs".to_owned(),
                sentence: format!(
                    "{who} may not be watched (setuid / not readable): where its time goes is not seen"
                ),
                fix: None,
            });
        }
        limitations
    }
}

/// Why a file's program may not be watched by us.
fn why(file: &Path) -> &'static str {
    const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
    let path = std::ffi::CString::new(file.as_os_str().as_bytes()).unwrap_or_default();
    // SAFETY: the path ends in a nul byte and lives through the call, which only asks.
    let readable = unsafe { libc::access(path.as_ptr(), libc::R_OK) == 0 };
    match std::fs::metadata(file) {
        Ok(facts) if facts.mode() & SET_ID != 0 => "setuid",
        Ok(_) if !readable => "not readable",
        // File capabilities, an interpreter, or a program that the first one executed.
        _ => "it has rights of its own",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_right_after_an_exec_is_none_and_one_after_mappings_is() {
        let mut hidden = Hidden::default();
        hidden.of_command(1);
        hidden.executes(1, "sleep");
        assert!(hidden.is_no_exit(1, 1));
        assert!(!hidden.is_no_exit(1, 1), "the second one is an exit");
        hidden.executes(2, "true");
        hidden.maps(2);
        assert!(!hidden.is_no_exit(2, 2));
        assert!(!hidden.is_no_exit(3, 3), "it executed nothing");
        assert_eq!(hidden.living(), [0; 0]);
        hidden.executes(4, "su");
        assert!(!hidden.is_no_exit(4, 5), "another thread of it");
        hidden.executes(6, "su");
        assert!(hidden.is_no_exit(6, 6));
        assert_eq!(hidden.living(), [6]);
        hidden.ended(6);
        assert_eq!(hidden.living(), [0; 0]);
        let mut hidden = Hidden::default();
        hidden.all_are_seen();
        hidden.executes(7, "su");
        assert!(hidden.is_no_exit(7, 7) && !hidden.hides());
        assert_eq!((hidden.living(), hidden.limitations(None).len()), (vec![7], 0));
    }

    #[test]
    fn only_a_command_that_was_hidden_from_its_start_has_but_a_run_time() {
        let ids = |programs: &[&str]| {
            let mut hidden = Hidden::default();
            hidden.of_command(1);
            for (at, name) in programs.iter().enumerate() {
                hidden.executes(1, name);
                if at + 1 < programs.len() {
                    hidden.maps(1);
                }
            }
            assert!(hidden.is_no_exit(1, 1));
            let limitations = hidden.limitations(Some((Path::new("/no/such/file"), "2.00 s".to_owned())));
            (limitations[0].id.clone(), limitations[0].sentence.clone())
        };
        let (id, sentence) = ids(&["sleep"]);
        assert_eq!(id, Limitation::ONLY_RUN_TIME);
        assert!(sentence.ends_with("only its run time is known, 2.00 s"), "{sentence}");
        let (id, sentence) = ids(&["sh", "su"]);
        assert!(id != Limitation::ONLY_RUN_TIME && sentence.contains("`su`"), "{id} {sentence}");
    }
}
