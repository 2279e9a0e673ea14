//! How a command ends. The fields are private, so a non-zero exit code exists only together with the problem that is printed
//! for it; the one exception is the code of a program that ran for the user, and its report states that code.

mod cells;

use std::process::ExitCode;

use iowhy_core::problem::Problem;
use iowhy_core::profile::End;

use crate::output::complain;

pub(crate) use self::cells::failed_cells;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Done,
    Problem { problem: Problem, code: u8 },
    Program(u8),
}

impl Ending {
    /// Exit code 0.
    pub fn done() -> Ending {
        Ending(Kind::Done)
    }

    /// The result is printed, but it is incomplete or bad news: exit code 1 with this reason.
    pub fn failed(problem: Problem) -> Ending {
        Ending(Kind::Problem { problem, code: 1 })
    }

    /// [`Ending::failed`] for the first of several reasons, with the number of the others; [`Ending::done`] without any.
    pub fn from_reasons(reasons: impl IntoIterator<Item = Problem>) -> Ending {
        let mut reasons = reasons.into_iter();
        let Some(mut first) = reasons.next() else { return Ending::done() };
        for other in reasons {
            first.message = format!("{}; {}", first.message, other.message);
            first.hint = first.hint.or(other.hint);
        }
        Ending::failed(first)
    }

    /// CMD did not start: the reason, and the exit code a shell would use (126 or 127), or that of the problem.
    pub fn not_started(problem: Problem, code: u8) -> Ending {
        // A problem never ends with success, whatever the caller made of it.
        let code = if code == 0 { problem.exit_code() } else { code };
        Ending(Kind::Problem { problem, code })
    }

    /// CMD ran: its exit code, or 128 and the signal that killed it, as a shell has it.
    pub fn program(end: End) -> Ending {
        match end {
            End::Code(code) => Ending(Kind::Program(code.rem_euclid(256) as u8)),
            End::Signal(signal) => Ending(Kind::Program(128u8.wrapping_add(signal.rem_euclid(128) as u8))),
            End::Running | End::Gone => Ending::failed(
                Problem::failed("the exit code of the program is unknown: it was not seen to end")
                    .hint("run it again; end it with Ctrl-C, which iowhy passes on to it"),
            ),
        }
    }

    /// The exit code of the contract.
    pub fn code(&self) -> u8 {
        match &self.0 {
            Kind::Done => 0,
            Kind::Problem { code, .. } | Kind::Program(code) => *code,
        }
    }

    /// Prints the reason, if there is one, and makes the exit code of it.
    pub fn leave(ended: Result<Ending, Problem>) -> ExitCode {
        let ending = ended.unwrap_or_else(|problem| {
            let code = problem.exit_code();
            Ending(Kind::Problem { problem, code })
        });
        if let Kind::Problem { problem, .. } = &ending.0 {
            complain(problem);
        }
        ExitCode::from(ending.code())
    }
}

/// The reason of a run that a signal ended early.
pub(crate) fn interrupted() -> Problem {
    Problem::failed("interrupted: the result covers only what was measured until then")
        .hint("run it again and let it end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        let code = |end| Ending::program(end).code();
        assert_eq!(code(End::Code(0)), 0);
        assert_eq!(code(End::Code(255)), 255);
        assert_eq!(code(End::Signal(9)), 137);
        assert_eq!(code(End::Signal(15)), 143);
        assert_eq!(code(End::Code(-1)), 255);
        assert_eq!(code(End::Signal(-1)), 255);
        assert!(matches!(Ending::program(End::Running), Ending(Kind::Problem { code: 1, .. })));
    }

    #[test]
    fn several_reasons_are_one_problem_and_none_is_success() {
        assert_eq!(Ending::from_reasons([]).code(), 0);
        let both = Ending::from_reasons([Problem::failed("one"), Problem::failed("two").hint("again")]);
        let expected = Problem::failed("one; two").hint("again");
        assert_eq!(both, Ending::failed(expected));
        assert_eq!(Ending::not_started(Problem::refused("x"), 0).code(), 2);
    }
}
