//! The rule `cpu-bound`. Its page of the manual:
#![doc = include_str!("page.md")]

#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::Layer;

use super::{Facts, Repairs, Rule, precedence, repairs, say};

pub(super) const RULE: Rule = Rule {
    id: FindingId::CpuBound,
    claim: "the program's own computing dominates",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs::none(repairs::NO_FAULT),
};

/// The program's own code is the cause from this share of the wall time on.
const BOUND: f64 = 0.6;
/// With fewer samples a share is printed with "about".
const ENOUGH_SAMPLES: u64 = 20;
/// The longest tick of Linux (HZ is 100 or more).
const TICK_NS: f64 = 1e7;
/// Most kernels split the CPU time of a process by where their ticks hit it, and one that no tick hit in the kernel ran in user mode all the time: the
/// less, the shorter it is. Of processes with ten ticks, at the bound above, 2 % have none in the kernel (exp(-10 x 0.4)).
const ENOUGH_TICKS: f64 = 10.0;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let account = facts.account;
    let (program_ns, how) = facts.program_wall()?;
    let share = facts.share_without_queueing(program_ns);
    if share < BOUND {
        return None;
    }
    let of = facts.time_without_queueing();
    let kernel_ns = account.sum(|e| e.busy).wall_ns - program_ns;
    let waits = account.sum(|e| !e.busy && e.wall_ns > 0.0);
    let few = account.sum(|e| e.busy).events < ENOUGH_SAMPLES && how.ends_with("samples");
    let about = if few { "about " } else { "" };
    let mut evidence = vec![format!("{} of {of} is the program's own code ({how})", say::percent(share))];
    evidence.push(format!(
        "kernel CPU time: {}; waiting for storage or for a CPU: {}",
        say::percent(facts.wall_share(kernel_ns)),
        say::percent(facts.wall_share(waits.wall_ns))
    ));
    Some(Finding {
        id: FindingId::CpuBound,
        share: facts.wall_share(program_ns),
        sentence: format!(
            "CPU-bound: {about}{} of {of} is the program's own code{}",
            say::percent(share),
            precedence::LITTLE
        ),
        evidence,
        advice: "Profile the code with a CPU profiler (perf record -g, samply), or use more threads.".into(),
        gain: None,
        gain_rest_unchanged: None,
        in_program: None,
        prediction: None,
        not_calibrated: None,
        replies: None,
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
        let processes: u64 = self.profile.processes.iter().map(|process| process.count.max(1)).sum();
        if user + system < ENOUGH_TICKS * TICK_NS * processes.max(1) as f64 {
            return None;
        }
        let part = user / (user + system).max(1.0);
        Some((running.wall_ns * part, "the kernel's user-mode CPU time".to_owned()))
    }
}
