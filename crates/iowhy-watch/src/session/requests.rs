//! What a signal to us means for the watch. A pure function of arrivals and times.
//!
//! A command gets from the terminal what we get, for it is in our process group; what was sent to us alone is passed
//! on. Either way the command decides whether it ends, and the report still comes. A second signal soon after the first
//! says that the user does not want to wait.

use crate::signals::Arrival;

/// A signal this soon after another is its echo: timeout(1) signals both the process and its group.
const ECHO_NS: u64 = 200_000_000;

/// A second signal within this time is impatience; later it is a new request, as to a program that lives on
/// interrupts (a command line that clears its line).
const IMPATIENCE_NS: u64 = 5_000_000_000;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing: an echo, or the command got it itself.
    Nothing,
    /// Send it to the command.
    PassOn(i32),
    /// End the watch with what is known.
    End,
}

/// The signals so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    first_ns: Option<u64>,
    last_ns: Option<u64>,
}

impl Requests {
    /// `command_in_our_group`: whether the subject is a command that gets the terminal's signals with us; `None`: the
    /// subject is not a command of ours.
    pub(super) fn answer(
        &mut self,
        now_ns: u64,
        arrival: Arrival,
        command_in_our_group: Option<bool>,
    ) -> Answer {
        let Some(in_our_group) = command_in_our_group else { return Answer::End };
        let since = |t: Option<u64>| t.map_or(u64::MAX, |t| now_ns.saturating_sub(t));
        if since(self.last_ns) < ECHO_NS {
            return Answer::Nothing;
        }
        if since(self.first_ns) < IMPATIENCE_NS {
            return Answer::End;
        }
        self.first_ns = Some(now_ns);
        self.last_ns = Some(now_ns);
        if arrival.from_kernel && in_our_group { Answer::Nothing } else { Answer::PassOn(arrival.signal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sent() -> Arrival {
        Arrival { signal: libc::SIGTERM, from_kernel: false }
    }

    fn typed() -> Arrival {
        Arrival { signal: libc::SIGINT, from_kernel: true }
    }

    #[test]
    fn what_was_sent_to_us_alone_is_passed_on_once() {
        let mut r = Requests::default();
        assert_eq!(r.answer(1000 * MS, sent(), Some(true)), Answer::PassOn(libc::SIGTERM));
        assert_eq!(r.answer(1001 * MS, sent(), Some(true)), Answer::Nothing, "the echo of timeout(1)");
        assert_eq!(r.answer(2000 * MS, sent(), Some(true)), Answer::End);
    }

    #[test]
    fn what_the_terminal_sent_is_passed_on_only_to_another_group() {
        assert_eq!(Requests::default().answer(0, typed(), Some(true)), Answer::Nothing);
        assert_eq!(Requests::default().answer(0, typed(), Some(false)), Answer::PassOn(libc::SIGINT));
        let mut r = Requests::default();
        r.answer(0, typed(), Some(true));
        assert_eq!(r.answer(500 * MS, typed(), Some(true)), Answer::End);
        let mut r = Requests::default();
        r.answer(0, typed(), Some(true));
        assert_eq!(r.answer(9000 * MS, typed(), Some(true)), Answer::Nothing, "a new request");
    }

    #[test]
    fn a_process_that_is_not_ours_is_let_alone() {
        assert_eq!(Requests::default().answer(0, typed(), None), Answer::End);
    }
}
