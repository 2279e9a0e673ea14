//! Options of `iowhy replay`.

use std::path::PathBuf;

use clap::Args;
use iowhy_core::problem::Problem;
use iowhy_core::units::refused_value;

use super::value::{List, count, list, seed, value};

/// Options of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// A record of a profiled program, made with `iowhy --record-calls --json RECORD -- CMD`
    #[arg(value_name = "RECORD")]
    pub record: PathBuf,

    /// Directories, one on each file system to be tried: scratch files of the same sizes are made there for the time of the
    /// replay
    #[arg(long, value_name = "DIR,...", required = true, value_parser = value(list(directory)))]
    pub on: List<String>,

    /// Rounds, 5 to 99; each replays the calls once in every place
    #[arg(long, value_name = "N", default_value = "9", allow_hyphen_values = true, value_parser = value(count::<usize>(5..=99)))]
    pub rounds: usize,

    /// Seed of the order of the replays and of the intervals
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true, value_parser = value(seed))]
    pub seed: u64,

    /// Create scratch files, and read the program's files, as this user [default: under sudo, the user who called it]
    #[arg(long, value_name = "NAME|UID", allow_hyphen_values = true)]
    pub user: Option<String>,

    /// Also replay a record of another machine
    #[arg(long)]
    pub force: bool,
}

fn directory(option: &str, text: &str) -> Result<String, Problem> {
    if text.is_empty() {
        return Err(refused_value(
            option,
            text,
            "no directory",
            format!("for example `{option} /mnt/a,/mnt/b`"),
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_once_each() {
        let all = |text| list(directory)("--on", text);
        assert_eq!(all("/mnt/a, /b,/mnt/a"), Ok(vec!["/mnt/a".to_owned(), "/b".to_owned()]));
        assert!(all("/mnt/a,").unwrap_err().hint.unwrap().contains("/mnt/b"));
    }
}
