//! The rule `cpu-bound`. Its page of the manual:
#![doc = include_str!("page.md")]

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::{Facts, Rule, say};

pub(super) const RULE: Rule = Rule { id: FindingId::CpuBound, manual: include_str!("page.md"), judge };

/// The program's own code is the cause from this share of the wall time on.
const BOUND: f64 = 0.6;
/// With fewer samples a share is said with "about".
const ENOUGH_SAMPLES: u64 = 20;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let account = facts.account;
    let (program_ns, how) = facts.program_wall()?;
    let share = facts.share_without_queueing(program_ns);
    if share < BOUND {
        return None;
    }
    let of = facts.time_without_queueing();
    let kernel = account.sum(|e| e.busy && e.class.layer != Layer::Program);
    let waits = account.sum(|e| !e.busy && e.wall_ns > 0.0);
    let few = account.sum(|e| e.busy).events < ENOUGH_SAMPLES && how.ends_with("samples");
    let about = if few { "about " } else { "" };
    let mut evidence = vec![format!("{} of {of} is the program's own code ({how})", say::percent(share))];
    evidence.push(format!(
        "CPU time in the kernel takes {}, waiting on the path to the disk and for a CPU {}",
        say::percent(facts.wall_share(kernel.wall_ns)),
        say::percent(facts.wall_share(waits.wall_ns))
    ));
    Some(Finding {
        id: FindingId::CpuBound,
        share: facts.wall_share(program_ns),
        sentence: format!(
            "The program computes: {about}{} of {} is its own code, and no change to its I/O would gain much",
            say::percent(share),
            of
        ),
        evidence,
        advice: "Look at the code itself with a CPU profiler (perf record -g, samply), or let more threads compute."
            .into(),
        gain: None,
        undecided: false,
    })
}

impl Facts<'_> {
    /// Wall time in the program's own code, and how it is known: from samples, else (where no stacks could
    /// be taken) from the kernel's split of the CPU time.
    pub(super) fn program_wall(&self) -> Option<(f64, String)> {
        let program = self.account.sum(|e| e.busy && e.class.layer == Layer::Program);
        let running = self.account.sum(|e| e.busy);
        if program.wall_ns > 0.0 || running.events > 0 {
            return Some((program.wall_ns, format!("{} samples", say::count(program.events as f64))));
        }
        let (user, system) = (self.profile.io.user_ns? as f64, self.profile.io.system_ns? as f64);
        let part = user / (user + system).max(1.0);
        Some((running.wall_ns * part, "by the kernel's count of CPU time in user mode".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Operation, Wait};
    use crate::findings::synthetic::{Run, slow_and_repaired};

    fn run(computing: f64) -> Run {
        Run::new(10.0)
            .busy(Operation::User, Layer::Program, computing)
            .busy(Operation::Read, Layer::Copy, 0.05)
            .wait(Operation::Futex, Wait::Futex, 0.95 - computing)
    }

    #[test]
    fn computing_is_named_and_sleeping_not() {
        let found = slow_and_repaired(FindingId::CpuBound, &run(0.9), &run(0.1));
        assert_eq!(found.gain, None);
    }

    #[test]
    fn without_stacks_the_kernels_split_tells() {
        let unseen = Run::new(10.0).busy_sampled(Operation::Unknown, Layer::Unexplained, 1.0, 0);
        let with = |user, system| {
            unseen.clone().with(|p| (p.io.user_ns, p.io.system_ns) = (Some(user), Some(system))).ids()
        };
        assert_eq!(with(9_000_000_000, 1_000_000_000), [FindingId::CpuBound]);
        assert_eq!(with(1_000_000_000, 9_000_000_000), [FindingId::Healthy]);
    }
}
