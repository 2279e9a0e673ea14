//! Whom the clock hit: the program, other programs, kernel threads, an idle CPU. Shares of the machine's CPU time.

use super::hash::FastMap;

/// Most other threads that are told apart.
const MAX_OTHERS: usize = 4096;

/// Clock samples by owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Of the program under watch.
    pub own: u64,
    /// Of kernel threads, as far as their stacks show it.
    pub kernel: u64,
    /// Of all other tasks.
    pub others: u64,
    /// Of an idle CPU. Most kernels do not sample one, so this is not the whole idle time.
    pub idle: u64,
    /// Other tasks and kernel threads, most samples first.
    pub by_task: Vec<TaskTicks>,
}

/// Clock samples of a task that is not of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskTicks {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name, where a record told it; else `/proc/TID/comm` may.
    pub name: Option<String>,
    /// Whether it is a kernel thread, as far as its stacks show it.
    pub kernel: bool,
    /// Samples.
    pub ticks: u64,
}

/// Counts ticks.
#[derive(Default)]
pub(super) struct Counter {
    sum: Ticks,
    others: FastMap<u32, TaskTicks>,
}

impl Counter {
    #[inline]
    pub(super) fn own(&mut self) {
        self.sum.own += 1;
    }

    pub(super) fn idle(&mut self) {
        self.sum.idle += 1;
    }

    pub(super) fn other(&mut self, pid: u32, tid: u32, kernel: bool) {
        *if kernel { &mut self.sum.kernel } else { &mut self.sum.others } += 1;
        if self.others.len() < MAX_OTHERS || self.others.contains_key(&tid) {
            let task =
                self.others.entry(tid).or_insert_with(|| TaskTicks { pid, tid, ..TaskTicks::default() });
            task.ticks += 1;
            task.kernel = kernel;
        }
    }

    /// A task that is not of the program told its name.
    pub(super) fn name(&mut self, tid: u32, name: &str) {
        if let Some(task) = self.others.get_mut(&tid) {
            task.name = Some(name.to_owned());
        }
    }

    pub(super) fn finish(self) -> Ticks {
        let mut sum = self.sum;
        sum.by_task = self.others.into_values().collect();
        sum.by_task.sort_by(|a, b| b.ticks.cmp(&a.ticks).then(a.tid.cmp(&b.tid)));
        sum
    }
}
