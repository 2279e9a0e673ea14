//! What repairs are held against: the run as it was, and, for many small files, their shape. Each has an arm of its own, and
//! its own word on how like the program it is.

use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::replay::Plan;
use iowhy_diagnose::findings::Facts;
use iowhy_replay::carry_out as carried;
use iowhy_replay::{AsWas, room, same_system, small_files, verdict};

use super::arms::{Arm, Times};
use crate::record::prove::Replayed;

/// The bases of a proof.
pub(super) struct Bases {
    calls: Result<Base, String>,
    /// Only where many small files were found.
    files: Option<Result<Base, String>>,
    /// Whether the calls would be replayed, were there room for what they write.
    pub(super) without_room: bool,
}

/// One of them.
pub(super) struct Base {
    pub(super) as_was: AsWas,
    /// Index of its arm.
    pub(super) arm: usize,
}

/// How like the program its replay is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Likeness {
    pub(super) fidelity: Option<Estimate>,
    pub(super) faithful: bool,
}

impl Bases {
    /// Makes the plans that these findings need.
    pub(super) fn of(facts: &Facts<'_>, findings: &[&Finding]) -> Bases {
        let base = |as_was: Result<AsWas, String>| as_was.map(|as_was| Base { as_was, arm: 0 });
        let many = findings.iter().any(|f| f.id == FindingId::ManySmallFiles);
        // What is written must not fill the disk of the user.
        let on_their_system = |as_was| same_system::checked(as_was, carried::file_system);
        let calls = iowhy_replay::as_was(facts).and_then(on_their_system);
        let calls = calls.map(|as_was| room::within(as_was, carried::room));
        let without_room = matches!(calls, Ok(Err(_)));
        Bases {
            calls: base(calls.and_then(|within| within)),
            files: many.then(|| base(small_files::as_was(facts).and_then(on_their_system))),
            without_room,
        }
    }

    /// Their arms. A base that nothing is held against has none where there is another.
    pub(super) fn arms(&mut self, repaired: &[FindingId]) -> Vec<Arm> {
        let of_files = |id: &FindingId| self.files.is_some() && *id == FindingId::ManySmallFiles;
        let (files, calls) = (repaired.iter().any(of_files), repaired.iter().any(|id| !of_files(id)));
        if files && !calls {
            self.calls = Err("no finding was held against the calls".to_owned());
        } else if !files && self.calls.is_ok() {
            self.files = None;
        }
        let mut arms = Vec::new();
        let calls = self.calls.as_mut().ok().map(|base| ("as it was", base));
        let files = self.files.as_mut().and_then(|base| base.as_mut().ok());
        for (name, base) in calls.into_iter().chain(files.map(|base| ("the files as they were", base))) {
            base.arm = arms.len();
            arms.push(base.arm_of(name, base.as_was.plan.clone()));
        }
        arms
    }

    /// What a finding is held against, or why there is nothing.
    pub(super) fn of_finding(&self, id: FindingId) -> Result<&Base, &String> {
        match &self.files {
            Some(files) if id == FindingId::ManySmallFiles => files.as_ref(),
            _ => self.calls.as_ref(),
        }
    }

    /// The one that stands for the run: the calls, or where they cannot be replayed the files.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn main(&self) -> Result<&Base, &String> {
        match (&self.calls, &self.files) {
            (Err(_), Some(files)) => files.as_ref(),
            _ => self.calls.as_ref(),
        }
    }
}

impl Base {
    /// An arm that is held against this.
    pub(super) fn arm_of(&self, name: &str, plan: Plan) -> Arm {
        Arm::new(name, plan, self.arm, self.as_was.scale)
    }

    pub(super) fn likeness(&self, times: &[Times], seed: u64) -> Likeness {
        let io_ns = times.get(self.arm).map_or(&[][..], |t| &t.io_ns);
        let fidelity = verdict::fidelity(&self.as_was, io_ns, seed);
        Likeness { fidelity, faithful: fidelity.as_ref().is_some_and(verdict::is_faithful) }
    }

    /// What goes into the record.
    pub(super) fn replayed(&self, times: &Times, likeness: Likeness) -> Replayed {
        Replayed {
            fidelity: likeness.fidelity,
            faithful: likeness.faithful,
            program_io_s: self.as_was.unwatched_io_ns() / 1e9,
            scale: self.as_was.scale,
            calls: times.calls,
            io_ns: times.io_ns.clone(),
            notes: self.as_was.notes.clone(),
            plan: self.as_was.plan.clone(),
        }
    }
}
