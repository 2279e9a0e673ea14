//! The `iowhy` binary: reads the command line, runs a command, prints its problem, sets the exit code.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use iowhy::cli::{Cli, ColorWhen, Command, PathArgs, WatchArgs, usage};
use iowhy::command;
use iowhy::ending::Ending;
use iowhy::output::{complain, complain_hint, complain_usage, print};
use iowhy::{proof, rank, run_as};
use iowhy_core::nearest::nearest;
use iowhy_core::problem::Problem;
use iowhy_core::text::{acts, visible};

fn main() -> ExitCode {
    iowhy_linux::signals::keep_file_size_signal_from_ending_us();
    // First: the helper of a replay in a control group must bring nothing else into that group.
    if let Some(served) = proof::serve() {
        return Ending::leave(served.map(|()| Ending::done()));
    }
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.output.color {
        ColorWhen::Auto => {}
        ColorWhen::Always => anstream::ColorChoice::Always.write_global(),
        ColorWhen::Never => anstream::ColorChoice::Never.write_global(),
    }
    command::put_back_left(&cli.output);
    let ended = run_as::decide(user(&cli), cli.output.as_root).and_then(|()| rank::decide(&mut cli));
    Ending::leave(ended.and_then(|()| run(&cli)))
}

/// Runs the command. Options of another command are refused by name.
fn run(cli: &Cli) -> Result<Ending, Problem> {
    let stray = |name: &str| {
        Err(Problem::refused(format!("{name} belongs to `iowhy -- CMD`, and no program is given"))
            .hint(format!("give the program after `--`: `iowhy {name} ... -- CMD ARG...`")))
    };
    if let (Some(name), false) = (cli.machine.given(), cli.command.is_some()) {
        let program = cli.watch.first_given().or_else(|| (!cli.watch.program.is_empty()).then_some("CMD"));
        if let Some(other) = program {
            return Err(Problem::refused(format!("{other} has no meaning with `{name}`"))
                .hint(format!("`sudo iowhy {name}` watches the whole machine; `iowhy -- CMD` one program")));
        }
        return command::whole_machine::run(&cli.machine, &cli.path, &cli.output);
    }
    let given = cli.watch.first_given().or_else(|| cli.machine.given());
    match (&cli.command, given) {
        (Some(command), given) if given.is_some() || cli.path != PathArgs::default() => {
            Err(misplaced(command, cli.path.first_given().or(given).unwrap_or("an option")))
        }
        (Some(Command::Bench(args)), _) => command::bench::run(args, &cli.output),
        (Some(Command::Attach(args)), _) => match &args.when {
            Some(when) => command::tails::run(args, when, &cli.output),
            None => command::attach::run(args, &cli.output),
        },
        (Some(Command::Explain(args)), _) => command::explain::run(args, &cli.output),
        (Some(Command::Mrc(args)), _) => command::mrc::run(args, &cli.output),
        (Some(Command::Trace(args)), _) => command::trace::run(args, &cli.output),
        (Some(Command::Sim(args)), _) => command::sim::run(args, &cli.output),
        (Some(Command::Tree(args)), _) => command::tree::run(args, &cli.output),
        (Some(Command::Prove(args)), _) => command::prove::run(args, &cli.output),
        (Some(Command::Replay(args)), _) => command::replay::run(args, &cli.output),
        (Some(Command::Compare(args)), _) => command::compare::run(args, &cli.output),
        (Some(Command::Merge(args)), _) => command::merge::run(args, &cli.output),
        (Some(Command::History(args)), _) => command::history::run(args, &cli.output),
        (Some(Command::Export(args)), _) => command::export::run(args, &cli.output),
        (Some(Command::Doctor(args)), _) => command::doctor::run(args, &cli.output),
        (Some(Command::Report(args)), _) => command::report::run(args, &cli.output),
        (Some(Command::Schema(args)), _) => command::schema::run(args, &cli.output),
        (Some(Command::Classic(args)), _) => command::classic::run(args, &cli.output),
        (Some(Command::Stripe(args)), _) => command::stripe::run(args, &cli.output),
        (None, given) => {
            // A `--` with nothing behind it is not seen by the parser.
            let dashes = std::env::args_os().next_back().is_some_and(|last| last == "--");
            if dashes || !cli.watch.program.is_empty() {
                return command::watch::run(&cli.watch, &cli.path, &cli.output);
            }
            if let Some(name) = given {
                return stray(name);
            }
            command::path::run(&cli.path, &cli.output).map_err(|problem| program_meant(cli, problem))
        }
    }
}

/// The user that was asked for, by a command that takes the option.
fn user(cli: &Cli) -> Option<&str> {
    match &cli.command {
        Some(Command::Prove(args)) => args.user.as_deref(),
        Some(Command::Replay(args)) => args.user.as_deref(),
        Some(_) => None,
        None => cli.watch.user.as_deref().filter(|_| !cli.watch.program.is_empty()),
    }
}

/// An option before a subcommand has no effect; the hint says where it belongs.
fn misplaced(command: &Command, what: &str) -> Problem {
    let (name, form) = match command {
        Command::Bench(_) => ("bench", "iowhy bench [OPTIONS] [TARGET]"),
        Command::Attach(_) => ("attach", "iowhy attach [OPTIONS] PID"),
        Command::Explain(_) => ("explain", "iowhy explain [ID]"),
        Command::Mrc(_) => ("mrc", "iowhy mrc [OPTIONS] FILE"),
        Command::Trace(_) => ("trace", "iowhy trace stat|head|convert|formats ..."),
        Command::Sim(_) => ("sim", "iowhy sim [OPTIONS]"),
        Command::Tree(_) => ("tree", "iowhy tree [OPTIONS] [DIR]"),
        Command::Prove(_) => ("prove", "iowhy prove [OPTIONS] RECORD"),
        Command::Replay(_) => ("replay", "iowhy replay RECORD --on DIR,DIR"),
        Command::Compare(_) => ("compare", "iowhy compare [OPTIONS] BEFORE AFTER"),
        Command::Merge(_) => ("merge", "iowhy merge [OPTIONS] RECORD..."),
        Command::History(_) => ("history", "iowhy history [OPTIONS] [PATH]..."),
        Command::Export(_) => ("export", "iowhy export [OPTIONS] RECORD"),
        Command::Doctor(_) => ("doctor", "iowhy doctor [OPTIONS] [PATH]"),
        Command::Report(_) => ("report", "iowhy report RECORD... -o FILE.html"),
        Command::Schema(_) => ("schema", "iowhy schema [KIND]"),
        Command::Classic(_) => ("classic", "iowhy classic [OPTIONS] [NAME] [PATH]"),
        Command::Stripe(_) => ("stripe", "iowhy stripe lint|advise ..."),
    };
    let is_for_attach = matches!(command, Command::Attach(_)) && WatchArgs::is_for_attach(what);
    let hint = if is_for_attach {
        format!("write it after the subcommand: `iowhy attach PID {what} ...`")
    } else {
        format!("write `{form}`; a directory called `{name}` is `iowhy ./{name}`")
    };
    Problem::refused(format!("{what} before the subcommand `{name}` has no effect")).hint(hint)
}

/// A PATH that is not there, but is the name of a program, or nearly that of a subcommand.
fn program_meant(cli: &Cli, problem: Problem) -> Problem {
    let Some(word) = cli.path.target.as_deref().filter(|_| problem.exit_code() == 2) else { return problem };
    if command::watch::is_program(word) {
        problem.hint(format!("to run and profile the program `{word}`: `iowhy -- {word}`"))
    } else if let Some(name) = subcommand_meant(word) {
        problem.hint(did_you_mean(&name))
    } else {
        problem
    }
}

/// The subcommand that a word nearly is, unless a path has that name.
fn subcommand_meant(word: &str) -> Option<String> {
    if word.contains('/') || Path::new(word).exists() {
        return None;
    }
    let whole = Cli::command();
    let names: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
    nearest(word, names).map(str::to_owned)
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`? `iowhy {name} --help` describes it")
}

/// Prints what is wrong with the command line. A refused value has one form, whoever refused it; the rest is the parser's
/// own message.
fn usage(error: &clap::Error) -> ExitCode {
    if error.exit_code() == 0 {
        return Ending::leave(print(&error.render().ansi().to_string()).map(|()| Ending::done()));
    }
    let meant = word_meant();
    if let Some(problem) = usage::problem(error) {
        complain(&match meant {
            // An option that iowhy does not have may be one of the program.
            Some(hint) if error.kind() == ErrorKind::UnknownArgument => problem.hint(hint),
            _ => problem,
        });
        return ExitCode::from(2);
    }
    if std::env::args_os().any(|argument| argument.to_string_lossy().contains(acts)) {
        // The parser quotes what was typed, and a file name that a shell filled in may hold anything, also line ends.
        let shown = std::env::args_os().map(|argument| visible(&argument.to_string_lossy()).into_owned());
        let message = match Cli::try_parse_from(shown) {
            Err(escaped) if escaped.kind() == error.kind() => escaped.render().to_string(),
            _ => error.render().to_string(),
        };
        complain_usage(&message);
    } else {
        // Nothing is left to do when the terminal is gone.
        let _ = error.print();
    }
    if let Some(hint) = meant {
        complain_hint(&hint);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The hint for a first word that is neither an option nor a subcommand, but a program or nearly a subcommand.
fn word_meant() -> Option<String> {
    let mut words = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .skip_while(|word| word.starts_with('-'));
    let word = words.next()?;
    if word == "help" || Cli::command().get_subcommands().any(|command| command.get_name() == word) {
        return None;
    }
    if command::watch::is_program(&word) {
        return Some(format!("to run and profile the program `{word}`: `iowhy -- {word} ...`"));
    }
    subcommand_meant(&word).map(|name| did_you_mean(&name))
}
