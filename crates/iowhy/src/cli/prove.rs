//! Options of `iowhy prove`.

use std::path::PathBuf;

use clap::Args;
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, refused_value};
use iowhy_diagnose::repair::Sizes;
use iowhy_replay::plan::what_if::Change;

use super::value::{List, count, list, seed, value, word};

/// Options of `prove`.
#[derive(Debug, Args)]
pub struct ProveArgs {
    /// A record of a profiled program, made with `iowhy --record-calls --json RECORD -- CMD`
    #[arg(value_name = "RECORD")]
    pub record: PathBuf,

    /// Rounds, 5 to 99; each replays the baseline and every repair once
    #[arg(long, value_name = "N", default_value = "9", allow_hyphen_values = true, value_parser = value(count::<usize>(5..=99)))]
    pub rounds: usize,

    /// For sync-per-write: records made durable by one sync, or `all` of the run [default: 100]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(batch))]
    pub batch: Option<u64>,

    /// For small-requests: merge consecutive requests up to this size [default: 64k]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = value(request))]
    pub request: Option<u64>,

    /// For queue-depth-one: the queue depth [default: 32 with io_uring, 16 with threads]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u32>(2..=1024)))]
    pub depth: Option<u32>,

    /// For device-saturated: replay only 1/N of the I/O [default: 2]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = value(count::<u32>(2..=1000)))]
    pub subsample: Option<u32>,

    /// Also try these changes, advised or not: direct, deeper (queue depth), larger (requests), mapped, windows (one
    /// mapping per read), random (hint POSIX_FADV_RANDOM), aligned (buffers at page boundaries)
    #[arg(long, value_name = "CHANGE,...", value_parser = value(list(word(&Change::ALL, Change::id))))]
    pub what_if: Option<List<Change>>,

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

fn batch(option: &str, text: &str) -> Result<u64, Problem> {
    match text {
        "all" => Ok(Sizes::ALL),
        number => number.parse().ok().filter(|n| *n > 1).ok_or_else(|| {
            let hint = "`--batch 300` syncs once for 300 records, `--batch all` once at the end";
            refused_value(option, text, "not a number of records above 1", hint)
        }),
    }
}

fn request(option: &str, text: &str) -> Result<u64, Problem> {
    match units::parse_bytes_nonzero(option, text)? {
        bytes @ 512..=0x400_0000 => Ok(bytes),
        _ => Err(refused_value(
            option,
            text,
            "not from 512 bytes to 64 MiB",
            format!("for example `{option} 64k`"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_more_than_one_record_or_all() {
        assert_eq!(batch("--batch", "300"), Ok(300));
        assert_eq!(batch("--batch", "all"), Ok(Sizes::ALL));
        for bad in ["1", "0", "none", "-3", ""] {
            let problem = batch("--batch", bad).unwrap_err();
            assert!(problem.message.starts_with("--batch `") && problem.hint.is_some(), "{problem:?}");
        }
    }

    #[test]
    fn a_merged_request_has_512_bytes_to_64_mib() {
        assert_eq!(request("--request", "1m"), Ok(1 << 20));
        assert_eq!(request("--request", "64m"), Ok(64 << 20));
        for bad in ["1", "1g", "x", "0"] {
            assert!(request("--request", bad).unwrap_err().hint.is_some(), "{bad}");
        }
    }

    #[test]
    fn changes_are_named_once_each_and_others_refused() {
        let changes = |text| list(word(&Change::ALL, Change::id))("--what-if", text);
        assert_eq!(changes("direct, windows,direct"), Ok(vec![Change::Direct, Change::Windows]));
        for bad in ["", "fast", "direct,"] {
            assert!(changes(bad).unwrap_err().hint.unwrap().contains("larger"), "{bad}");
        }
    }
}
