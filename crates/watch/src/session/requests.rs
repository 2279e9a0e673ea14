//! What a signal to us means for the watch. A pure function of arrivals and times.
//!
//! A command gets from the terminal what we get, for it is in our process group; what was sent to us alone is passed
//! on. Either way the command decides whether it ends, and the report still comes. Who sends us the same request again
//! does not want to wait: the watch ends, and the command runs on. Keys are no such request, for programs live on
//! interrupts (a pager, a command line that clears its line) and would lose their terminal with us; only Ctrl-\ twice is.

use iowhy_linux::signals::{Meaning, meaning};

use iowhy_linux::signals::Arrival;

/// A signal this soon after the same one is its echo: one sender signals both the process and its group.
const ECHO_NS: u64 = 200_000_000;

/// SIGINT and SIGHUP again within this time are impatience; later they are a new request, as to a program that lives on
/// interrupts, or reads its settings again on SIGHUP.
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

/// Whom else a signal reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The subject is a process that runs already: signals to us are for us.
    NotOurs,
    /// A command of ours, which did not get it.
    UsAlone,
    /// A command of ours, which got it as well.
    CommandToo,
}

/// The signals so far: number and time of each that was answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    answered: Vec<(i32, u64)>,
}

impl Requests {
    /// The answer to a signal. Its own time counts, not when we come to it: two requests that were made apart stay two
    /// however busy we were.
    pub(super) fn answer(&mut self, arrival: Arrival, reach: Reach) -> Answer {
        let now_ns = arrival.at_ns;
        if reach == Reach::NotOurs {
            return Answer::End;
        }
        let signal = arrival.signal;
        match meaning(signal) {
            // A message to the program (dd prints its progress), not a request to end: each one counts.
            Meaning::Message => {
                return if reach == Reach::CommandToo { Answer::Nothing } else { Answer::PassOn(signal) };
            }
            // Our own CPU time is used up, not the command's.
            Meaning::Limit if arrival.from_kernel => return Answer::End,
            _ => {}
        }
        let known = self.answered.iter().position(|(number, _)| *number == signal);
        let since = known.map(|at| now_ns.saturating_sub(self.answered[at].1));
        if since.is_some_and(|ns| ns < ECHO_NS) {
            return Answer::Nothing;
        }
        let again = match signal {
            _ if arrival.from_kernel => signal == libc::SIGQUIT && since.is_some(),
            libc::SIGINT | libc::SIGHUP => since.is_some_and(|ns| ns < IMPATIENCE_NS),
            _ => since.is_some(),
        };
        if again {
            return Answer::End;
        }
        match known {
            Some(at) => self.answered[at].1 = now_ns,
            None => self.answered.push((signal, now_ns)),
        }
        if reach == Reach::CommandToo { Answer::Nothing } else { Answer::PassOn(signal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sent(signal: i32, at_ns: u64) -> Arrival {
        Arrival { signal, from_kernel: false, sender: 1, at_ns }
    }

    fn typed(signal: i32, at_ns: u64) -> Arrival {
        Arrival { signal, from_kernel: true, sender: 0, at_ns }
    }

    #[test]
    fn what_was_sent_to_us_alone_is_passed_on_once() {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            let mut r = Requests::default();
            let mut answer = |ms| r.answer(sent(signal, ms * MS), Reach::UsAlone);
            assert_eq!(answer(1000), Answer::PassOn(signal));
            assert_eq!(answer(1001), Answer::Nothing, "an echo");
            assert_eq!(answer(2000), Answer::End);
        }
    }

    #[test]
    fn a_request_to_end_is_remembered_and_one_to_read_settings_is_not() {
        for (signal, then) in [
            (libc::SIGTERM, Answer::End),
            (libc::SIGQUIT, Answer::End),
            (libc::SIGHUP, Answer::PassOn(libc::SIGHUP)),
            (libc::SIGINT, Answer::PassOn(libc::SIGINT)),
        ] {
            let mut r = Requests::default();
            r.answer(sent(signal, 0), Reach::UsAlone);
            assert_eq!(r.answer(sent(signal, 60_000 * MS), Reach::UsAlone), then);
        }
    }

    #[test]
    fn messages_are_passed_on_each_time() {
        let mut r = Requests::default();
        for ms in [0, 1, 300] {
            assert_eq!(r.answer(sent(libc::SIGUSR1, ms * MS), Reach::UsAlone), Answer::PassOn(libc::SIGUSR1));
        }
        assert_eq!(r.answer(sent(libc::SIGUSR2, MS), Reach::CommandToo), Answer::Nothing);
    }

    #[test]
    fn a_timer_that_we_inherited_is_for_the_command_and_our_cpu_limit_is_not() {
        let mut r = Requests::default();
        assert_eq!(r.answer(typed(libc::SIGALRM, 0), Reach::UsAlone), Answer::PassOn(libc::SIGALRM));
        assert_eq!(r.answer(typed(libc::SIGXCPU, 0), Reach::UsAlone), Answer::End);
        assert_eq!(r.answer(sent(libc::SIGXCPU, 0), Reach::UsAlone), Answer::PassOn(libc::SIGXCPU));
    }

    #[test]
    fn a_stronger_request_is_passed_on_as_well() {
        let mut r = Requests::default();
        r.answer(sent(libc::SIGINT, 0), Reach::UsAlone);
        assert_eq!(r.answer(sent(libc::SIGTERM, MS), Reach::UsAlone), Answer::PassOn(libc::SIGTERM));
    }

    #[test]
    fn keys_are_for_the_command() {
        let mut r = Requests::default();
        for ms in [0, 300, 600, 9000] {
            assert_eq!(r.answer(typed(libc::SIGINT, ms * MS), Reach::CommandToo), Answer::Nothing);
        }
        assert_eq!(r.answer(typed(libc::SIGQUIT, 0), Reach::CommandToo), Answer::Nothing);
        assert_eq!(r.answer(typed(libc::SIGQUIT, 700 * MS), Reach::CommandToo), Answer::End);
        let mut r = Requests::default();
        assert_eq!(r.answer(typed(libc::SIGINT, 0), Reach::UsAlone), Answer::PassOn(libc::SIGINT));
    }

    #[test]
    fn what_the_group_got_is_not_sent_twice() {
        let mut r = Requests::default();
        assert_eq!(r.answer(sent(libc::SIGTERM, 0), Reach::CommandToo), Answer::Nothing);
        assert_eq!(r.answer(sent(libc::SIGTERM, 900 * MS), Reach::CommandToo), Answer::End);
    }

    #[test]
    fn a_process_that_is_not_ours_is_let_alone() {
        assert_eq!(Requests::default().answer(typed(libc::SIGINT, 0), Reach::NotOurs), Answer::End);
    }
}
