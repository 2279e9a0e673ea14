//! When threads of the program leave and get a CPU, as the observer tells it while its program is attached. Detached, switches
//! cost nothing. The kernel's stack of a thread that leaves comes with the switch.

use aya::maps::PerCpuArray;

use super::facts::words;
use super::{InKernel, chain, map};
use crate::event::{Chain, Event, Kind};

const ON_SWITCH: &str = "on_switch";
/// Words (of 8 bytes) of `struct switch_event` before its stacks, and of `struct switching`.
const BEFORE_FRAMES: usize = 7;
const SWITCHING: usize = 2 + BEFORE_FRAMES + 255;
/// `LEFT` and `PREEMPTED`.
const LEFT: u32 = 1;
const PREEMPTED: u32 = 2;

impl InKernel {
    /// Tells of switches of threads that are followed from now on, or no more.
    ///
    /// # Errors
    /// Why the kernel refuses the program.
    pub(crate) fn switches(&mut self, on: bool) -> Result<(), String> {
        if on {
            return self.object.attach(ON_SWITCH, "sched_switch");
        }
        self.object.detach(ON_SWITCH);
        Ok(())
    }

    /// How long telling of one switch took so far, on average, in nanoseconds: the observer's own time, on the CPU that switches. `None`:
    /// it has told of none.
    pub(crate) fn switch_cost_ns(&mut self) -> Option<f64> {
        let by_cpu: PerCpuArray<_, [u64; SWITCHING]> = map(&mut self.object, "switching").ok()?;
        let sums = by_cpu.get(&0, 0).map_err(|e| chain(&e)).ok()?;
        let sum = |word: usize| sums.iter().map(|words| words[word]).sum::<u64>() as f64;
        let (spent_ns, switches) = (sum(0), sum(1));
        (switches > 0.0).then(|| spent_ns / switches)
    }
}

/// Hands on what a switch tells, in the order in which it happened. `None`: the record is not whole.
pub(super) fn read<'a>(record: &'a [u64], time_ns: u64, take: &mut dyn FnMut(&Event<'a>)) -> Option<()> {
    let [_, _, task, _, cpu_and_lost, next, flags_and_frames, frames @ ..] = record else { return None };
    let ([pid, tid], [cpu, lost], [next_pid, next_tid], [flags, kernel]) =
        (words(*task), words(*cpu_and_lost), words(*next), words(*flags_and_frames));
    let (kernel, user) = frames.split_at_checked(kernel as usize)?;
    let mut tell = |pid, tid, kind| take(&Event { time_ns, cpu, pid, tid, kind });
    if lost > 0 {
        tell(pid, tid, Kind::Lost { records: u64::from(lost) });
    }
    if flags & LEFT != 0 {
        tell(pid, tid, Kind::LeavingStack(Chain { kernel, user }));
        tell(pid, tid, Kind::Out { preempted: flags & PREEMPTED != 0 });
    }
    if next_tid != 0 {
        tell(next_pid, next_tid, Kind::In);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(record: &[u64]) -> Vec<(u32, u32, String)> {
        let mut seen = Vec::new();
        let mut take = |event: &Event<'_>| seen.push((event.pid, event.tid, format!("{:?}", event.kind)));
        read(record, 5, &mut take);
        seen
    }

    fn pair(low: u32, high: u32) -> u64 {
        let ([a, b, c, d], [e, f, g, h]) = (low.to_ne_bytes(), high.to_ne_bytes());
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }

    #[test]
    fn a_switch_between_two_threads_is_a_stack_a_leaving_and_a_coming() {
        let head = |next, flags, lost| [9, 7, pair(10, 11), 5, pair(1, lost), next, flags];
        let whole = [&head(pair(20, 21), pair(LEFT, 1), 0)[..], &[0xa, 0xb]].concat();
        let (a, b) = ((10, 11), (20, 21));
        let told = events(&whole);
        assert_eq!(told[0], (a.0, a.1, "LeavingStack(Chain { kernel: [10], user: [11] })".to_owned()));
        assert_eq!(told[1], (a.0, a.1, "Out { preempted: false }".to_owned()));
        assert_eq!(told[2..], [(b.0, b.1, "In".to_owned())]);
        let only_comes = events(&head(pair(20, 21), 0, 3));
        assert_eq!(only_comes[0].2, "Lost { records: 3 }");
        assert_eq!(only_comes[1..], [(b.0, b.1, "In".to_owned())]);
        let only_leaves = events(&head(0, pair(LEFT | PREEMPTED, 0), 0));
        assert_eq!(only_leaves[1..], [(a.0, a.1, "Out { preempted: true }".to_owned())]);
        // More frames than there are, and no whole head.
        assert!(events(&head(0, pair(LEFT, 1), 0)).is_empty() && events(&[9, 7]).is_empty());
    }
}
