//! What the present process may record, found out by trying: small events are opened. Settings are
//! read only to explain a refusal (`explain`).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use iowhy_core::profile::{Lack, Tier};

use super::attr::{self, CPU_PERIOD_NS, Role, Start};
use super::explain::{self, Setting};
use super::let_go::let_go;
use super::tracepoints::{Point, Reader};
use crate::tracefs::Tracefs;
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
    /// Tracepoints of the whole machine.
    pub tracepoints: bool,
    /// What is missing, why, and what would change it.
    pub lacks: Vec<Lack>,
}

impl Rights {
    /// The same, but nothing above `tier`. What the user gave up is not a lack.
    #[must_use]
    pub fn at_most(mut self, tier: Tier) -> Self {
        self.tier = self.tier.min(tier);
        self.kernel_stacks &= self.tier >= Tier::T1;
        self.per_cpu_clock &= self.tier >= Tier::T2;
        self.tracepoints &= self.tier >= Tier::T3;
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
    tracefs: io::Result<()>,
    tracepoint: io::Result<()>,
}

/// The tracepoint that was tried. It is kept open, switched off: the last one of a tracepoint takes the kernel tens of
/// milliseconds to close (two grace periods), and the recorder is about to open the same one.
static TRIED: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Keeps the tracepoint that was tried, unless one is kept already.
fn keep(event: OwnedFd) {
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    tried.get_or_insert(event);
}

/// Gives up the tracepoint that was tried, to whoever closes the others.
pub(super) fn give_up_tried() -> Option<OwnedFd> {
    TRIED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Finds out what we may record. Takes about a millisecond.
pub fn rights() -> Rights {
    let cpu = cpus::online().first().copied();
    let own = |role| attr::open(role, Some(0), None, false, Start::Later).map(drop);
    let (tracefs, tracepoint) = match Tracefs::open() {
        Ok(tracefs) => {
            let reader = Reader::new(&tracefs, Point::BlockIssue);
            let opened = reader.and_then(|reader| {
                let role = Role::Trace { point: Point::BlockIssue, id: reader.id };
                attr::open(role, None, cpu, false, Start::Later).map(keep)
            });
            (Ok(()), opened)
        }
        Err(error) => (Err(error), Err(io::ErrorKind::NotFound.into())),
    };
    let attempts = Attempts {
        switches: own(Role::Switch),
        stacks: own(Role::Leaving),
        names: explain::kernel_names_are_shown(),
        clock: attr::open(Role::Clock { period_ns: CPU_PERIOD_NS }, None, cpu, false, Start::Later).map(drop),
        tracefs,
        tracepoint,
    };
    judge(&attempts, &Setting::read())
}

/// The same for somebody who records nothing: nothing stays open, and nobody waits for the kernel to close it.
pub fn look() -> Rights {
    let rights = rights();
    let_go(give_up_tried().into_iter().collect());
    rights
}

/// Tiers and lacks from what was tried. Each tier needs those before it.
fn judge(attempts: &Attempts, setting: &Setting) -> Rights {
    let mut rights = Rights { switches: attempts.switches.is_ok(), ..Rights::default() };
    if let Err(error) = &attempts.switches {
        rights.lacks.push(setting.no_events(error));
        return rights;
    }
    match (&attempts.stacks, attempts.names) {
        (Err(error), _) => rights.lacks.push(setting.no_stacks(error)),
        (Ok(()), false) => rights.lacks.push(setting.no_names()),
        (Ok(()), true) => rights.kernel_stacks = true,
    }
    match &attempts.clock {
        Ok(()) => rights.per_cpu_clock = rights.kernel_stacks,
        Err(error) => rights.lacks.push(setting.no_clock(error)),
    }
    match (&attempts.tracefs, &attempts.tracepoint) {
        (Err(error), _) => rights.lacks.push(setting.no_tracefs(error)),
        (_, Err(error)) => rights.lacks.push(setting.no_tracepoints(error)),
        (Ok(()), Ok(())) => rights.tracepoints = rights.per_cpu_clock,
    }
    rights.tier = match (rights.kernel_stacks, rights.per_cpu_clock, rights.tracepoints) {
        (true, true, true) => Tier::T3,
        (true, true, false) => Tier::T2,
        (true, false, _) => Tier::T1,
        (false, ..) => Tier::T0,
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
        Attempts { switches: ok(), stacks: ok(), names: true, clock: ok(), tracefs: ok(), tracepoint: ok() }
    }

    fn tier(attempts: &Attempts) -> (Tier, Vec<String>) {
        let rights = judge(attempts, &Setting::default());
        (rights.tier, rights.lacks.into_iter().map(|l| l.id).collect())
    }

    #[test]
    fn each_tier_needs_those_before_it() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(tier(&all()), (Tier::T3, vec![]));
        assert_eq!(tier(&Attempts { tracefs: refused(), ..all() }), (Tier::T2, ids(&["tracepoints"])));
        assert_eq!(tier(&Attempts { tracepoint: refused(), ..all() }), (Tier::T2, ids(&["tracepoints"])));
        assert_eq!(tier(&Attempts { clock: refused(), ..all() }), (Tier::T1, ids(&["cpu-clock"])));
        assert_eq!(tier(&Attempts { names: false, ..all() }), (Tier::T0, ids(&["kernel-stacks"])));
        let only_switches = Attempts { stacks: refused(), clock: refused(), ..all() };
        assert_eq!(tier(&only_switches), (Tier::T0, ids(&["kernel-stacks", "cpu-clock"])));
        let nothing = judge(&Attempts { switches: refused(), ..all() }, &Setting::default());
        assert!(!nothing.switches && nothing.tier == Tier::T0 && nothing.lacks.len() == 1);
    }

    #[test]
    fn a_lower_tier_takes_rights_away_and_gives_none() {
        let full = judge(&all(), &Setting::default());
        let first = full.clone().at_most(Tier::T1);
        assert!(first.switches && first.kernel_stacks && !first.per_cpu_clock && !first.tracepoints);
        assert_eq!(first.clone().at_most(Tier::T3), first);
        assert!(!full.at_most(Tier::T0).kernel_stacks);
    }

    #[test]
    fn what_is_said_is_what_works() {
        let rights = rights();
        eprintln!("{rights:?}");
        assert_eq!(rights.kernel_stacks, rights.tier >= Tier::T1);
        assert!(rights.tier == Tier::T3 || !rights.lacks.is_empty());
        let own = |role| attr::open(role, Some(0), None, false, Start::Later).is_ok();
        assert_eq!(rights.switches, own(Role::Switch));
        assert!(!rights.kernel_stacks || own(Role::Leaving));
    }
}
