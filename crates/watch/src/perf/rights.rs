//! What the present process may record, found out by trying: small events are opened. Settings are
//! read only to explain a refusal (`explain`).

use std::io;

use iowhy_core::profile::{Limitation, Tier};

use super::attr::{self, CPU_PERIOD_NS, Role, Start};
use super::explain::{self, Setting};
use crate::in_kernel::{self, Refused};
use iowhy_linux::cpus;

/// What may be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// The highest tier that works.
    pub tier: Tier,
    /// When tasks of our own leave and get a CPU.
    pub switches: bool,
    /// Kernel stacks of our own tasks, with addresses that can be named.
    pub kernel_stacks: bool,
    /// A clock on every CPU, whoever runs there.
    pub per_cpu_clock: bool,
    /// Nanoseconds between two ticks of it.
    pub clock_period_ns: u64,
    /// The observer in the kernel: system calls of the program, block requests of the whole machine.
    pub observer: bool,
    /// What is missing, why, and what would change it.
    pub limitations: Vec<Limitation>,
}

impl Rights {
    /// The same, but nothing above `tier`. What the user gave up is not a limitation.
    #[must_use]
    pub fn at_most(mut self, tier: Tier) -> Self {
        self.tier = self.tier.min(tier);
        self.kernel_stacks &= self.tier >= Tier::Stacks;
        self.per_cpu_clock &= self.tier >= Tier::Clock;
        self.observer &= self.tier >= Tier::Observer;
        self
    }
}

/// What each attempt gave.
#[derive(Debug)]
struct Attempts {
    switches: io::Result<()>,
    stacks: io::Result<()>,
    /// Whether kernel addresses have names.
    names: bool,
    clock: io::Result<()>,
    /// Whether programs of the observer may be loaded, or why not.
    observer: Result<(), Refused>,
}

/// Finds out what we may record. Takes about a millisecond. Events of tasks are tried only where those of a CPU, for which more rights are
/// needed, are refused: the first one that belongs to a task makes the kernel wait for all CPUs, 10 to 16 ms, and every switch
/// of the machine takes longer for a second.
pub fn rights() -> Rights {
    let cpu = cpus::online().first().copied();
    let clock =
        attr::open(Role::Clock { period_ns: CPU_PERIOD_NS, stack_bytes: 0 }, None, cpu, false, Start::Later)
            .map(drop);
    let implied = clock.is_ok();
    let own = |role| match implied {
        true => Ok(()),
        false => attr::open(role, Some(0), None, false, Start::Later).map(drop),
    };
    let attempts = Attempts {
        switches: own(Role::Switch),
        stacks: own(Role::Leaving),
        names: explain::kernel_names_are_shown(),
        clock,
        observer: in_kernel::may_load(),
    };
    judge(&attempts, &Setting::read())
}

/// Tiers and limitations from what was tried. Each tier needs those before it.
fn judge(attempts: &Attempts, setting: &Setting) -> Rights {
    let mut rights =
        Rights { switches: attempts.switches.is_ok(), clock_period_ns: CPU_PERIOD_NS, ..Rights::default() };
    if let Err(error) = &attempts.switches {
        rights.limitations.push(setting.no_events(error));
        return rights;
    }
    match (&attempts.stacks, attempts.names) {
        (Err(error), _) => rights.limitations.push(setting.no_stacks(error)),
        (Ok(()), false) => rights.limitations.push(setting.no_names()),
        (Ok(()), true) => rights.kernel_stacks = true,
    }
    match &attempts.clock {
        Ok(()) => rights.per_cpu_clock = rights.kernel_stacks,
        Err(error) => rights.limitations.push(setting.no_clock(error)),
    }
    match &attempts.observer {
        Ok(()) => rights.observer = rights.per_cpu_clock,
        Err(refused) => rights.limitations.push(setting.no_observer(refused)),
    }
    rights.tier = match (rights.kernel_stacks, rights.per_cpu_clock, rights.observer) {
        (true, true, true) => Tier::Observer,
        (true, true, false) => Tier::Clock,
        (true, false, _) => Tier::Stacks,
        (false, ..) => Tier::None,
    };
    rights
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EACCES))
    }

    fn all() -> Attempts {
        let ok = || Ok(());
        Attempts { switches: ok(), stacks: ok(), names: true, clock: ok(), observer: Ok(()) }
    }

    fn tier(attempts: &Attempts) -> (Tier, Vec<String>) {
        let rights = judge(attempts, &Setting::default());
        (rights.tier, rights.limitations.into_iter().map(|l| l.id).collect())
    }

    #[test]
    fn each_tier_needs_those_before_it() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(tier(&all()), (Tier::Observer, vec![]));
        let without = Attempts { observer: Err(Refused::NotPermitted), ..all() };
        assert_eq!(tier(&without), (Tier::Clock, ids(&["observer"])));
        assert_eq!(tier(&Attempts { clock: refused(), ..all() }), (Tier::Stacks, ids(&["cpu-clock"])));
        assert_eq!(tier(&Attempts { names: false, ..all() }), (Tier::None, ids(&["kernel-stacks"])));
        let only_switches = Attempts { stacks: refused(), clock: refused(), ..all() };
        assert_eq!(tier(&only_switches), (Tier::None, ids(&["kernel-stacks", "cpu-clock"])));
        let nothing = judge(&Attempts { switches: refused(), ..all() }, &Setting::default());
        assert!(!nothing.switches && nothing.tier == Tier::None && nothing.limitations.len() == 1);
    }

    #[test]
    fn a_lower_tier_takes_rights_away_and_gives_none() {
        let full = judge(&all(), &Setting::default());
        let first = full.clone().at_most(Tier::Stacks);
        assert!(first.switches && first.kernel_stacks && !first.per_cpu_clock && !first.observer);
        assert_eq!(first.clone().at_most(Tier::Observer), first);
        assert!(!full.at_most(Tier::None).kernel_stacks);
    }

    #[test]
    fn what_is_said_is_what_works() {
        let rights = rights();
        eprintln!("{rights:?}");
        assert_eq!(rights.kernel_stacks, rights.tier >= Tier::Stacks);
        assert!(rights.tier == Tier::Observer || !rights.limitations.is_empty());
        let own = |role| attr::open(role, Some(0), None, false, Start::Later).is_ok();
        assert_eq!(rights.switches, own(Role::Switch));
        assert!(!rights.kernel_stacks || own(Role::Leaving));
    }
}
