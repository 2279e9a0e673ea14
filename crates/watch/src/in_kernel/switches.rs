//! When threads of the program leave and get a CPU, as the observer tells it while its program is attached. Detached, switches
//! cost nothing. The kernel's stack of a thread that leaves comes with the switch.

use aya::maps::PerCpuArray;

use super::facts::words;
use super::{InKernel, chain, map};
use crate::event::{Chain, Event, Kind, UserStack};

const ON_SWITCH: &str = "on_switch";
/// Words (of 8 bytes) of `struct switch_event` before its stacks, of a copied stack with its registers, and of `struct switching`.
const BEFORE_FRAMES: usize = 8;
const COPIED: usize = 3 + 32 * 64;
const SWITCHING: usize = 2 + BEFORE_FRAMES + 255 + COPIED;
/// `LEFT`, `PREEMPTED` and `REGISTERS_TOLD`.
const LEFT: u32 = 1;
const PREEMPTED: u32 = 2;
const REGISTERS_TOLD: u32 = 4;

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
    let [_, _, task, _, cpu_and_lost, next, flags_and_kernel, user_and_stack, frames @ ..] = record else {
        return None;
    };
    let ([pid, tid], [cpu, lost], [next_pid, next_tid]) = (words(*task), words(*cpu_and_lost), words(*next));
    let ([flags, kernel], [user, copied]) = (words(*flags_and_kernel), words(*user_and_stack));
    let (kernel, behind) = frames.split_at_checked(kernel as usize)?;
    let (user, behind) = behind.split_at_checked(user as usize)?;
    let stack = match behind {
        [instruction, pointer, frame, words @ ..] if flags & REGISTERS_TOLD != 0 => {
            let words = words.get(..copied as usize)?;
            Some(UserStack { instruction: *instruction, pointer: *pointer, frame: *frame, words })
        }
        _ => None,
    };
    let mut tell = |pid, tid, kind| take(&Event { time_ns, cpu, pid, tid, kind });
    if lost > 0 {
        tell(pid, tid, Kind::Lost { records: u64::from(lost) });
    }
    if flags & LEFT != 0 {
        tell(pid, tid, Kind::LeavingStack(Chain { kernel, user, stack }));
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
        let head = |next, flags, lost, user| [9, 7, pair(10, 11), 5, pair(1, lost), next, flags, user];
        let whole = [&head(pair(20, 21), pair(LEFT, 1), 0, pair(1, 0))[..], &[0xa, 0xb]].concat();
        let (a, b) = ((10, 11), (20, 21));
        let told = events(&whole);
        assert_eq!(
            told[0],
            (a.0, a.1, "LeavingStack(Chain { kernel: [10], user: [11], stack: None })".to_owned())
        );
        assert_eq!(told[1], (a.0, a.1, "Out { preempted: false }".to_owned()));
        assert_eq!(told[2..], [(b.0, b.1, "In".to_owned())]);
        let only_comes = events(&head(pair(20, 21), 0, 3, 0));
        assert_eq!(only_comes[0].2, "Lost { records: 3 }");
        assert_eq!(only_comes[1..], [(b.0, b.1, "In".to_owned())]);
        let only_leaves = events(&head(0, pair(LEFT | PREEMPTED, 0), 0, 0));
        assert_eq!(only_leaves[1..], [(a.0, a.1, "Out { preempted: true }".to_owned())]);
        // More frames than there are, and no whole head.
        assert!(events(&head(0, pair(LEFT, 1), 0, 0)).is_empty() && events(&[9, 7]).is_empty());
        // Place in the code, stack pointer, frame pointer, and two words of stack; then one word less than there are.
        let copied =
            [&head(0, pair(LEFT | REGISTERS_TOLD, 0), 0, pair(1, 2))[..], &[0xb, 0xb, 0x40, 0x50, 1, 2]]
                .concat();
        let stack = "Some(UserStack { instruction: 11, pointer: 64, frame: 80, words: [1, 2] })";
        assert!(events(&copied)[0].2.contains(stack), "{:?}", events(&copied));
        assert!(events(&copied[..copied.len() - 1]).is_empty());
    }
}
