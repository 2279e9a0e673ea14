//! The size of each repair: the default, or what an option asks for.

use iowhy_diagnose::repair::Sizes;

use crate::cli::ProveArgs;

/// The sizes that the options name.
pub(super) fn asked(args: &ProveArgs) -> Sizes {
    let default = Sizes::default();
    Sizes {
        batch: args.batch.unwrap_or(default.batch),
        request_bytes: args.request.unwrap_or(default.request_bytes),
        depth: args.depth,
        subsample: args.subsample.unwrap_or(default.subsample),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn sizes(options: &[&str]) -> Sizes {
        let cli = Cli::try_parse_from([&["iowhy", "prove", "run.json"], options].concat()).unwrap();
        match cli.command {
            Some(Command::Prove(args)) => asked(&args),
            _ => unreachable!("the command is prove"),
        }
    }

    #[test]
    fn what_is_asked_for_is_taken_and_the_rest_is_the_default() {
        assert_eq!(sizes(&[]), Sizes::default());
        let sizes = sizes(&["--batch", "300", "--request", "1m", "--depth", "8", "--subsample", "16"]);
        assert_eq!(sizes, Sizes { batch: 300, request_bytes: 1 << 20, depth: Some(8), subsample: 16 });
    }
}
