//! The `iowhy` binary: reads the command line, runs a command, prints its problem, sets the exit code.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use iowhy::cli::{Cli, ColorWhen, Command, PathArgs};
use iowhy::command;
use iowhy_core::problem::Problem;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.output.color {
        ColorWhen::Auto => {}
        ColorWhen::Always => anstream::ColorChoice::Always.write_global(),
        ColorWhen::Never => anstream::ColorChoice::Never.write_global(),
    }
    let ended = match &cli.command {
        None => command::path::run(&cli.path, &cli.output),
        Some(_) if cli.path != PathArgs::default() => Err(Problem::refused(
            "a PATH or an option of the main job stands before the subcommand, where it would do nothing",
        )
        .hint("write `iowhy bench [OPTIONS] [TARGET]`; a directory called `bench` is `iowhy ./bench`")),
        Some(Command::Bench(args)) => command::bench::run(args, &cli.output),
    };
    match ended {
        Ok(command::Ending::Done) => ExitCode::SUCCESS,
        Ok(command::Ending::SomethingFailed) => ExitCode::from(1),
        Err(problem) => {
            complain(&problem);
            ExitCode::from(problem.exit_code())
        }
    }
}

/// Prints a problem: cause, then the fix.
fn complain(problem: &Problem) {
    use anstyle::{AnsiColor, Style};
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let cyan = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
    anstream::eprintln!("{red}error:{red:#} {problem}");
    if let Some(hint) = &problem.hint {
        anstream::eprintln!("{cyan}hint:{cyan:#} {hint}");
    }
}
