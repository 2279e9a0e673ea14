//! Errors of the command line's parser as problems: option, cause, and as the hint what is allowed.
//!
//! Kinds that are not listed here keep the parser's own message, which shows the usage of the command.

use std::error::Error;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use iowhy_core::nearest::nearest;
use iowhy_core::problem::Problem;
use iowhy_core::units::refused_value;

use super::Cli;
use super::value::unknown_word;

/// Words that users of other tools type for an option of iowhy.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("budget", "time"),
    ("duration", "time"),
    ("for", "time"),
    ("runtime", "time"),
    ("timeout", "time"),
    ("list", "table"),
];

/// A refused value, a missing one, or an option that does not exist; `None` for every other error.
pub fn problem(error: &clap::Error) -> Option<Problem> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg)?;
    match error.kind() {
        ErrorKind::ValueValidation => {
            if let Some(problem) = error.source().and_then(|source| source.downcast_ref::<Problem>()) {
                return Some(problem.clone());
            }
            let why = error.source().map_or_else(|| "not allowed".to_owned(), ToString::to_string);
            let hint = format!("`{} --help` describes it", called(&command_line()));
            Some(refused_value(
                option(argument),
                text(ContextKind::InvalidValue).unwrap_or_default(),
                &why,
                hint,
            ))
        }
        ErrorKind::InvalidValue => {
            let allowed: Vec<&str> = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(words)) => words.iter().map(String::as_str).collect(),
                _ => Vec::new(),
            };
            match text(ContextKind::InvalidValue).filter(|value| !value.is_empty()) {
                Some(value) => Some(unknown_word(option(argument), value, &allowed)),
                None if allowed.is_empty() => Some(
                    Problem::refused(format!("{}: the value is missing", option(argument)))
                        .hint(format!("write `{argument}`")),
                ),
                None => Some(unknown_word(option(argument), "", &allowed)),
            }
        }
        ErrorKind::UnknownArgument if argument.starts_with("--") => {
            let path = command_line();
            let whole = Cli::command();
            let command =
                path.iter().fold(&whole, |command, name| command.find_subcommand(name).unwrap_or(command));
            let name = called(&path);
            let see = format!("`{name} --help` lists the options");
            let hint = match option_meant(argument, command, &whole) {
                Some(near) => format!("did you mean `--{near}`? {see}"),
                None => see,
            };
            Some(Problem::refused(format!("`{name}` has no option `{argument}`")).hint(hint))
        }
        _ => None,
    }
}

/// The option that a word is another name of, or nearly is.
fn option_meant<'a>(typed: &str, command: &'a Command, whole: &'a Command) -> Option<&'a str> {
    let typed = typed.trim_start_matches('-').split('=').next().unwrap_or_default();
    let names = || {
        let global = whole.get_arguments().filter(|argument| argument.is_global_set());
        command.get_arguments().chain(global).filter_map(clap::Arg::get_long)
    };
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == typed).map(|(_, name)| *name);
    names().find(|name| Some(*name) == other).or_else(|| nearest(typed, names()))
}

/// `--size` of `--size <SIZE>`, `PID` of `<PID>`.
fn option(argument: &str) -> &str {
    let name = argument.split([' ', '[', '=']).find(|part| !part.is_empty()).unwrap_or(argument);
    name.trim_matches(['<', '>'])
}

/// The subcommands that were typed, outermost first.
fn command_line() -> Vec<String> {
    let whole = Cli::command();
    let mut command = &whole;
    let mut path = Vec::new();
    for word in std::env::args().skip(1).take_while(|word| word != "--") {
        if let Some(below) = command.find_subcommand(&word) {
            command = below;
            path.push(below.get_name().to_owned());
        }
    }
    path
}

fn called(path: &[String]) -> String {
    std::iter::once("iowhy").chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn refused(words: &[&str]) -> Problem {
        let error = Cli::try_parse_from([&["iowhy"], words].concat()).unwrap_err();
        problem(&error).unwrap_or_else(|| panic!("{words:?}: {error}"))
    }

    #[test]
    fn every_refused_value_has_one_form() {
        for (words, message, hint) in [
            (&["bench", "--size", "x"] as &[&str], "--size `x`: not a number", "write a size such as"),
            (
                &["bench", "--touch", "al"],
                "--touch `al`: unknown value",
                "did you mean `all`? one of none, line, all",
            ),
            (&["--color", "blue"], "--color `blue`: unknown value", "one of auto, always, never"),
            (&["attach", "x"], "PID `x`: not a process id", "`pidof x` prints"),
            (
                &["bench", "--threads", "1,0"],
                "--threads `0`: not a whole number from 1 to 1024",
                "for example",
            ),
            (
                &["stripe", "lint", "--fs", "ext5"],
                "--fs `ext5`: unknown value",
                "one of ffs, ext4, xfs, none",
            ),
            (&["bench", "--size"], "--size: the value is missing", "write `--size <SIZE>`"),
            (&["--tier", ""], "--tier ``: unknown value", "one of"),
        ] {
            let problem = refused(words);
            assert_eq!(problem.message, message);
            assert!(problem.hint.as_ref().is_some_and(|text| text.contains(hint)), "{problem:?}");
            assert_eq!(problem.exit_code(), 2);
        }
    }

    #[test]
    fn an_option_of_another_tool_leads_to_ours_and_an_unrelated_one_to_none() {
        let whole = Cli::command();
        let bench = whole.find_subcommand("bench").unwrap();
        for (typed, name) in [
            ("--budget", Some("time")),
            ("--budget=8s", Some("time")),
            ("--sise", Some("size")),
            ("--jsn", Some("json")),
            ("--list", None),
            ("--verbose", None),
        ] {
            assert_eq!(option_meant(typed, bench, &whole), name, "{typed}");
        }
    }
}
