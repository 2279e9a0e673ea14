//! `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst): exact times of a task.

/// What the scheduler counts of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU, in nanoseconds. Of a running task it may lag by up to a tick.
    pub running_ns: u64,
    /// Time runnable without a CPU, in nanoseconds.
    pub queued_ns: u64,
    /// Times it got a CPU.
    pub slices: u64,
}

/// Three numbers; `None` when they are not there.
pub fn parse(text: &str) -> Option<Schedstat> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let mut field = || fields.next()?.ok();
    Some(Schedstat { running_ns: field()?, queued_ns: field()?, slices: field()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_gives_run_time_and_delay() {
        let told = Schedstat { running_ns: 13_020_386, queued_ns: 9_890_995, slices: 65 };
        assert_eq!(parse("13020386 9890995 65\n"), Some(told));
        for broken in ["", "1", "1 2", "a b c", "-1 2 3"] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
    }
}
