//! What every watch of the machine does: waits for events, and asks the kernel for the names of its functions.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use iowhy_linux::clock::monotonic_ns;
use iowhy_linux::signals::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::in_kernel::{MachineObserver, Namer};
use crate::symbols::Symbols;

/// What was told is added up so often. PSI weighs CPUs by their use in each of its own periods, which end when somebody reads it: at the ends of
/// ours, and where the steps of time are read.
pub(super) const PERIOD_NS: u64 = 1_000_000_000;
/// Events are taken at least so often.
pub(super) const TURN_NS: u64 = 50_000_000;

/// Waits for events, a signal, or a descriptor that can be read: of a process, when it ends; of a terminal, when a key is pressed. True:
/// somebody asks us to end.
pub(super) fn turn(
    observer: &mut MachineObserver,
    signals: Option<&Signals>,
    other: Option<BorrowedFd<'_>>,
    until_ns: u64,
) -> bool {
    let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    let mut fds = vec![PollFd::from_borrowed_fd(observer.fd(), PollFlags::IN)];
    fds.extend(signals.map(|signals| PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)));
    fds.extend(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)));
    // An interrupted wait is a wait that is over.
    let _ = poll(&mut fds, Some(&timeout));
    signals.is_some_and(|signals| signals.next().is_some())
}

/// Functions by their addresses in the kernel, each asked for once.
pub(super) struct Names {
    symbols: Symbols,
}

impl Names {
    pub(super) fn new() -> Names {
        let mut symbols = Symbols::of_this_machine();
        if let Some(namer) = Namer::open() {
            symbols.ask_kernel(namer);
        }
        Names { symbols }
    }

    /// The functions of these stacks, each stack once, and where the stack with a number of the kernel stands among them.
    pub(super) fn of(
        &mut self,
        mut numbers: Vec<u32>,
        observer: &mut MachineObserver,
    ) -> (Vec<Vec<String>>, impl Fn(u32) -> Option<u32> + use<>) {
        numbers.sort_unstable();
        numbers.dedup();
        let stacks = numbers.iter().map(|number| self.stack(*number, observer)).collect();
        (stacks, move |number| numbers.binary_search(&number).ok().and_then(|at| u32::try_from(at).ok()))
    }

    fn stack(&mut self, number: u32, observer: &mut MachineObserver) -> Vec<String> {
        // The kernel may give a number anew: what it stands for is not remembered.
        let ids: Vec<_> = observer.stack(number).into_iter().map(|at| self.symbols.kernel(at)).collect();
        ids.into_iter().map(|id| self.symbols.frame(id).into_owned()).collect()
    }
}
