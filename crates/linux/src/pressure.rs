//! Pressure from outside the program: others on the CPUs, limits of control groups, memory.

use std::num::NonZeroI32;

use crate::{meminfo, memory_use};
use iowhy_core::profile::{MemoryUse, Pressure};
use rustix::process::Pid;

use crate::control_group::ControlGroups;
use crate::process::task::tick_ns;
use crate::reader::Reader;

/// What is needed at the start to tell the pressure at the end.
#[derive(Clone, Debug)]
pub struct Before {
    cpu: Option<CpuTime>,
    groups: ControlGroups,
    throttled_ns: Option<u64>,
    cpus: u64,
    physical_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    memory: MemoryUse,
}

/// What is read at the end.
#[derive(Clone, Debug)]
pub struct AtEnd {
    cpu: Option<CpuTime>,
    throttled_ns: Option<u64>,
    memory: MemoryUse,
}

/// The first line of `/proc/stat`, in ticks of all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTime {
    busy: u64,
    idle: u64,
    /// Of `busy`, interrupts.
    interrupts: u64,
    stolen: u64,
}

/// Ticks that must have passed before a share is told: fewer, and the grain of the ticks is more than a twentieth.
const MIN_TICKS: u64 = 20;

impl Before {
    /// Reads it for a process (`None`: for this one, whose limits a child will inherit).
    pub fn take(reader: &mut Reader, pid: Option<u32>) -> Before {
        let groups = ControlGroups::of_process(pid);
        let physical =
            reader.text(format_args!("/proc/meminfo")).and_then(|text| meminfo::bytes(text, "MemTotal"));
        Before {
            cpu: cpu_time(reader),
            throttled_ns: groups.cpu_throttled_ns(),
            cpus: cpus(pid),
            physical_bytes: physical,
            memory_bytes: memory_bytes(physical, &groups),
            memory: memory_use::now(&groups, physical),
            groups,
        }
    }

    /// The process was in other groups than at the start: those count. `throttled_ns`, `memory`: their counts when it was
    /// first seen there.
    pub fn inside(&mut self, groups: ControlGroups, throttled_ns: Option<u64>, memory: MemoryUse) {
        if groups != self.groups {
            self.throttled_ns = throttled_ns;
            self.memory = memory;
            self.memory_bytes = memory_bytes(self.physical_bytes, &groups);
            self.groups = groups;
        }
    }

    /// The control groups of the process.
    pub fn groups(&self) -> &ControlGroups {
        &self.groups
    }

    /// The readings at the end; to be taken at once, before the watcher does anything that takes time.
    pub fn end(&self, reader: &mut Reader) -> AtEnd {
        AtEnd {
            cpu: cpu_time(reader),
            throttled_ns: self.groups.cpu_throttled_ns(),
            memory: memory_use::now(&self.groups, self.physical_bytes),
        }
    }

    /// What interrupts and the hypervisor took of all CPUs in between, ns, in whole ticks (proc_stat(5)).
    pub fn taken_ns(&self, end: &AtEnd) -> u64 {
        let passed = self.cpu.zip(end.cpu).map(|(before, now)| now.since(before)).unwrap_or_default();
        passed.interrupts.saturating_add(passed.stolen).saturating_mul(tick_ns())
    }

    /// The pressure in between. `own_cpu_ns` is the CPU time that the program and the watcher used meanwhile. What
    /// only tracepoints tell (the dirty throttle) stays `None`.
    pub fn until(&self, end: &AtEnd, own_cpu_ns: u64) -> Pressure {
        let passed = self.cpu.zip(end.cpu).map(|(before, now)| now.since(before));
        Pressure {
            others_cpu_share: passed.and_then(|passed| passed.others_share(own_cpu_ns, tick_ns())),
            others_on_cpu: Vec::new(),
            cpus: self.cpus,
            memory_bytes: self.memory_bytes,
            cpu_throttled_ns: end
                .throttled_ns
                .zip(self.throttled_ns)
                .map(|(now, before)| now.saturating_sub(before)),
            cpu_limit: self.groups.cpu_limit(),
            stolen_ns: passed.map(|passed| passed.stolen.saturating_mul(tick_ns())),
            memory: memory_use::since(&end.memory, &self.memory),
        }
    }
}

/// Memory that the groups leave a process.
fn memory_bytes(physical: Option<u64>, groups: &ControlGroups) -> Option<u64> {
    [physical, groups.memory_limit_bytes()].into_iter().flatten().min()
}

impl CpuTime {
    fn since(self, earlier: CpuTime) -> CpuTime {
        // Idle time may run backwards a little (proc_stat(5)).
        CpuTime {
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }

    /// Part of all CPU time in which something else than ourselves ran; time that the hypervisor stole belongs to none.
    fn others_share(self, own_ns: u64, tick_ns: u64) -> Option<f64> {
        let all = self.busy.saturating_add(self.idle).saturating_add(self.stolen);
        if all < MIN_TICKS {
            return None;
        }
        // Ticks are coarse: the two together must not exceed the whole.
        let own = own_ns as f64 / tick_ns as f64;
        let others = (self.busy as f64 - own).min(all as f64 - own).max(0.0);
        Some(others / all as f64)
    }
}

fn cpu_time(reader: &mut Reader) -> Option<CpuTime> {
    parse(reader.text(format_args!("/proc/stat"))?)
}

/// `cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE` (proc_stat(5)); guests are in USER and NICE.
fn parse(text: &str) -> Option<CpuTime> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let field = |i: usize| fields.get(i).copied().unwrap_or(0);
    if fields.len() < 4 {
        return None;
    }
    let sum = |fields: &[usize]| fields.iter().map(|i| field(*i)).fold(0, u64::saturating_add);
    let (busy, idle, interrupts) = (sum(&[0, 1, 2, 5, 6]), sum(&[3, 4]), sum(&[5, 6]));
    Some(CpuTime { busy, idle, interrupts, stolen: field(7) })
}

/// CPUs that the process may run on.
fn cpus(pid: Option<u32>) -> u64 {
    let number = pid.and_then(|pid| NonZeroI32::new(i32::try_from(pid).ok()?));
    let of = |pid| rustix::thread::sched_getaffinity(pid).ok();
    // A process that is gone had, as far as we can tell, what we have.
    let set = number.and_then(|number| of(Pid::from_raw(number.get()))).or_else(|| of(None));
    set.map_or(1, |set| u64::from(set.count().max(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str =
        "cpu  51611 1 14928 201015 2335 2 325 3831 7 0\ncpu0 24828 0 5240 104594 585 0 32 1786 0 0\n";

    #[test]
    fn real_text_is_read() {
        let busy = 51611 + 1 + 14928 + 2 + 325;
        let told = CpuTime { busy, idle: 201_015 + 2335, interrupts: 2 + 325, stolen: 3831 };
        assert_eq!(parse(TEXT), Some(told));
        assert_eq!(parse("cpu  1 2 3 4\n"), Some(CpuTime { busy: 6, idle: 4, ..CpuTime::default() }));
        for broken in ["", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4", "cpu a b c d"] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn others_are_what_is_neither_idle_nor_stolen_nor_ours() {
        let passed = CpuTime { busy: 60, idle: 30, interrupts: 0, stolen: 10 };
        assert_eq!(passed.others_share(400_000_000, 10_000_000), Some(0.2));
        assert_eq!(passed.others_share(u64::MAX, 10_000_000), Some(0.0));
        assert_eq!(CpuTime { busy: 1, ..CpuTime::default() }.others_share(0, 1), None, "too short to tell");
        let backwards = CpuTime::default().since(passed);
        assert_eq!(backwards, CpuTime::default());
    }

    proptest! {
        #[test]
        fn a_share_is_between_nothing_and_all(busy: u64, idle: u64, stolen: u64, own: u64) {
            if let Some(share) = (CpuTime { busy, idle, interrupts: 0, stolen }).others_share(own, 10_000_000) {
                prop_assert!((0.0..=1.0).contains(&share), "{share}");
            }
        }

        #[test]
        fn no_text_is_too_odd(text in "(cpu |[0-9 \n]|.){0,80}") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn this_machine_has_cpus_and_memory() {
        let mut reader = Reader::new();
        for pid in [None, Some(std::process::id()), Some(u32::MAX)] {
            let before = Before::take(&mut reader, pid);
            let pressure = before.until(&before.end(&mut reader), 0);
            assert!(
                pressure.cpus >= 1 && pressure.memory_bytes.is_none_or(|bytes| bytes > 0),
                "{pressure:?}"
            );
        }
    }
}
