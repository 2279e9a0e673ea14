//! Opens the sources of a watch: the recorder and the observer in the kernel. What cannot be opened becomes a limitation.

use std::time::Duration;

use iowhy_core::profile::{Limitation, Tier};

use super::counting::{self, Counting};
use super::event_loop::{EventLoop, Roots};
use super::state::State;
use crate::event::Kind;
use crate::in_kernel::{self, InKernel};
use crate::perf::{self, Recorder, SelfTest};
use iowhy_linux::process::tree;

impl EventLoop<'_> {
    /// Opens the sources for the subject. What cannot be opened becomes a limitation.
    ///
    /// What recording costs here is measured before, but for a command, which would start later by that: there it is
    /// measured when the command has ended, and the first decisions rest on usual costs.
    pub(super) fn open(&mut self, roots: &Roots<'_>) {
        if !matches!(roots, Roots::Command(_)) {
            self.measure_costs(None);
        }
        let threads: Vec<(u32, u32)> = match roots {
            Roots::Command(pid) => vec![(*pid, *pid)],
            Roots::Process(pid) => {
                let processes = tree::family(&mut self.state.reader, *pid);
                processes.iter().flat_map(|p| tree::threads(*p).into_iter().map(|t| (*p, t))).collect()
            }
            Roots::Own(tids) => tids.iter().map(|t| (std::process::id(), *t)).collect(),
        };
        self.root = threads.first().map_or(0, |t| t.0);
        self.own = matches!(roots, Roots::Own(_));
        self.state.only_listed = self.own;
        self.command = matches!(roots, Roots::Command(_));
        if self.command {
            self.state.hidden.of_command(self.root);
        }
        for (pid, tid) in &threads {
            self.state.threads.add(*pid, *tid);
        }
        self.observe(roots);
        if self.rights.switches {
            let tids: Vec<u32> = threads.iter().map(|t| t.1).collect();
            let subject = match roots {
                _ if self.observed_switches => perf::Subject::Machine,
                Roots::Command(pid) => perf::Subject::Child(*pid),
                Roots::Process(_) | Roots::Own(_) => perf::Subject::Threads(&tids),
            };
            let own = (!self.own).then(std::process::id);
            match Recorder::open_with(subject, &self.rights, own) {
                Ok(recorder) => {
                    self.limitations.extend(recorder.limitations().iter().cloned());
                    self.recorder = Some(recorder);
                }
                Err(problem) => {
                    self.limitations.push(Limitation {
                        id: "recording".to_owned(),
                        sentence: format!("nothing is recorded: {problem}"),
                        fix: problem.hint,
                    });
                    self.rights = self.rights.clone().at_most(Tier::None);
                }
            }
        }
        if self.recorder.is_none() {
            self.rights.switches = false;
        }
        self.feed();
        // Threads that were born between listing and opening are met here; the recorder follows those by itself whose
        // parent was recorded already.
        if let Roots::Process(pid) = roots {
            self.meet_late_threads(*pid);
        }
    }

    /// Loads the observer. What it cannot do becomes a limitation; without any of it the tier is the one below.
    fn observe(&mut self, roots: &Roots<'_>) {
        if !self.rights.observer {
            if self.wants_counts && !self.own && !self.limitations.iter().any(|l| l.id == "observer") {
                self.limitations.push(counting::without(self.rights.tier));
            }
            return;
        }
        let record_bytes = if self.wants_record { in_kernel::ALL_BYTES } else { in_kernel::WINDOW_BYTES };
        let mut observer = match InKernel::open(record_bytes, self.wants_counts && !self.own) {
            Ok(observer) => observer,
            Err(why) => {
                self.limitations.push(Limitation {
                    id: "observer".to_owned(),
                    sentence: format!("calls and block requests are not counted: {why}"),
                    fix: None,
                });
                self.rights = self.rights.clone().at_most(Tier::Clock);
                return;
            }
        };
        let followed = observer.follow();
        let follows = followed.is_ok();
        if let Err(why) = followed {
            self.limitations.push(counting::limitation(format!("system calls are not counted: {why}")));
        } else {
            match observer.switches(true) {
                Ok(()) => {
                    self.observed_switches = true;
                    self.state.hidden.all_are_seen();
                }
                Err(why) => self.limitations.push(Limitation {
                    id: "observed-switches".to_owned(),
                    sentence: format!("switches are recorded by perf, which slows the program more: {why}"),
                    fix: None,
                }),
            }
            match roots {
                Roots::Command(pid) => counting::command(&mut observer, *pid, &mut self.limitations),
                Roots::Process(pid) => {
                    counting::process(&mut observer, *pid, &mut self.state.reader, &mut self.limitations);
                }
                Roots::Own(tids) => counting::threads(&mut observer, tids, &mut self.limitations),
            }
        }
        self.follows = follows;
        self.observer = Some(observer);
    }

    /// Counts calls, and follows requests of rings. Comes as late as it can: its program is still being loaded meanwhile.
    pub(super) fn count(&mut self) {
        let Some(observer) =
            self.observer.as_mut().filter(|_| self.follows && self.wants_counts && !self.own)
        else {
            return;
        };
        self.counting = Counting::open(observer, &mut self.limitations);
        if self.counting.is_some() {
            self.state.rings_followed = match observer.rings() {
                Ok(()) => true,
                Err(why) => {
                    self.limitations.push(Limitation {
                        id: "ring-requests".to_owned(),
                        sentence: format!("requests of io_uring are not followed: {why}"),
                        fix: None,
                    });
                    false
                }
            };
        }
    }

    /// Lets the recorder hand on what the observer tells, and the observer tell of requests.
    fn feed(&mut self) {
        let Some((observer, recorder)) = self.observer.as_mut().zip(self.recorder.as_mut()) else { return };
        let told = observer.feed().and_then(|feed| {
            recorder.feed(feed);
            observer.requests()
        });
        match told {
            Ok(()) => self.state.trace_blocks(),
            Err(why) => self.limitations.push(Limitation {
                id: "block-requests".to_owned(),
                sentence: format!("requests at the devices are not seen: {why}"),
                fix: None,
            }),
        }
    }

    /// Measures what recording costs on this machine, where it is allowed at all. `run`: the length of the run, once it is over.
    pub(super) fn measure_costs(&mut self, run: Option<Duration>) {
        if self.rights.switches {
            let ticks = run.is_none() || self.state.own_ticks > 0;
            let test = perf::self_test(&self.rights, run, !self.observed_switches, ticks);
            let switch_cost_ns = self.self_test.switch_cost_ns.or(test.switch_cost_ns);
            self.self_test = SelfTest { switch_cost_ns, ..test };
        }
    }

    fn meet_late_threads(&mut self, root: u32) {
        let State { reader, threads, .. } = &mut self.state;
        let processes = tree::family(reader, root);
        let mut new = Vec::new();
        for pid in processes {
            for tid in tree::threads(pid) {
                if threads.add(pid, tid) {
                    new.push(tid);
                }
            }
        }
        if let Some(recorder) = &mut self.recorder
            && !new.is_empty()
        {
            // Those whose birth was recorded must not be recorded twice.
            let mut born = Vec::new();
            recorder.drain(true, &mut |event| {
                if matches!(event.kind, Kind::Fork { .. }) {
                    born.push(event.tid);
                }
            });
            new.retain(|tid| !born.contains(tid));
            if let Err(error) = recorder.follow(&new) {
                self.limitations.push(Limitation {
                    id: "late-threads".to_owned(),
                    sentence: format!("{} threads that began meanwhile are not recorded: {error}", new.len()),
                    fix: None,
                });
            }
        }
    }
}
