//! The condition of `attach --when`: an operation and a time, `sync>50ms`.

use std::time::Duration;

use iowhy_core::nearest::did_you_mean;
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, refused_value};
use iowhy_diagnose::classify::{Classifier, Operation};
use iowhy_diagnose::tails::OPERATIONS;

/// Calls of an operation that take longer than a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// The operation.
    pub operation: Operation,
    /// The time.
    pub longer_than: Duration,
}

impl When {
    /// Reads a condition.
    ///
    /// # Errors
    /// Names `option` when it is none: no `>`, no operation that is timed, no time, or a time without a unit.
    pub fn parse(option: &str, text: &str) -> Result<When, Problem> {
        let refuse = |why: &str, hint: String| Err(refused_value(option, text, why, hint));
        let example = || format!("write an operation and a time: `{option} 'sync>50ms'`");
        let Some((name, time)) = text.split_once('>') else {
            if Operation::from_id(text.trim()).is_some() {
                let hint = format!(
                    "quote it: `{option} '{}>50ms'`; without quotes the shell takes `>` for the name of a file",
                    text.trim()
                );
                return refuse("the time is missing", hint);
            }
            return refuse("not a condition", example());
        };
        let (name, time) = (name.trim(), time.trim());
        if time.starts_with(['>', '=']) {
            return refuse("only `>` is understood", example());
        }
        let Some(operation) = OPERATIONS.into_iter().find(|operation| operation.id() == name) else {
            return refuse("unknown operation", known(name, time));
        };
        if time.ends_with(|last: char| last.is_ascii_digit()) {
            return refuse("the time has no unit", format!("for example `{option} '{name}>{time}ms'`"));
        }
        match units::parse_duration(option, time) {
            Ok(longer_than) => Ok(When { operation, longer_than }),
            Err(_) => refuse(
                "not a time",
                format!("write a time such as `{option} '{name}>50ms'`, `{name}>2s`, `{name}>250us`"),
            ),
        }
    }
}

/// What could be written instead of a name that is none: the operation of a call of that name, or one that is nearly the same.
fn known(name: &str, time: &str) -> String {
    let ids = OPERATIONS.map(Operation::id);
    let of_call = Classifier::new().operation_of_call(name);
    let is_time = time.ends_with('s') && units::parse_duration("", time).is_ok();
    let time = if is_time { time } else { "50ms" };
    let meant = match OPERATIONS.contains(&of_call) {
        true => format!("`{name}` is a call of the operation `{0}`: write `{0}>{time}`; ", of_call.id()),
        false => did_you_mean(name, ids),
    };
    format!("{meant}one of {}", ids.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<When, Problem> {
        When::parse("--when", text)
    }

    #[test]
    fn an_operation_and_a_time_are_a_condition() {
        let of = |operation, ms| Ok(When { operation, longer_than: Duration::from_millis(ms) });
        assert_eq!(parse("sync>50ms"), of(Operation::Sync, 50));
        assert_eq!(parse(" read > 1.5s "), of(Operation::Read, 1500));
        assert_eq!(parse("names>2m"), of(Operation::Names, 120_000));
        let short = parse("stat>250us").unwrap();
        assert_eq!((short.operation, short.longer_than), (Operation::Stat, Duration::from_micros(250)));
        for operation in OPERATIONS {
            assert_eq!(parse(&format!("{}>1ms", operation.id())), of(operation, 1));
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_the_cause_and_the_fix() {
        for (text, why, fix) in [
            ("", "not a condition", "--when 'sync>50ms'"),
            ("50ms", "not a condition", "--when 'sync>50ms'"),
            ("sync<50ms", "not a condition", "--when 'sync>50ms'"),
            ("sync", "the time is missing", "--when 'sync>50ms'"),
            ("sync>=50ms", "only `>`", "--when 'sync>50ms'"),
            ("sync>>50ms", "only `>`", "--when 'sync>50ms'"),
            ("sync>", "not a time", "sync>50ms"),
            ("sync>50", "the time has no unit", "sync>50ms"),
            ("sync>fast", "not a time", "sync>50ms"),
            ("sync>-5ms", "not a time", "sync>50ms"),
            ("sync>0ms", "not a time", "sync>50ms"),
            ("sync>50parsecs", "not a time", "sync>50ms"),
            ("fsync>20ms", "unknown operation", "write `sync>20ms`"),
            ("fsync>20", "unknown operation", "write `sync>50ms`"),
            ("pread64>20ms", "unknown operation", "write `read>20ms`"),
            ("snyc>20ms", "unknown operation", "did you mean `sync`?"),
            ("futex>1s", "unknown operation", "one of read, write, sync"),
            (">1s", "unknown operation", "one of read, write, sync"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.message.starts_with(&format!("--when `{text}`: {why}")), "{problem}");
            assert!(problem.hint.as_ref().unwrap().contains(fix), "{text}: {problem:?}");
            assert_eq!(problem.exit_code(), 2);
        }
    }
}
