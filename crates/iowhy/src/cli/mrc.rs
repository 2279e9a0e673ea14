//! Options of `mrc`.

use clap::{Args, ValueEnum};
use iowhy_core::problem::Problem;
use iowhy_core::units::{self, refused_value};
use iowhy_sim::curve::shards::Sampling;
use iowhy_sim::policy::{MAX_BLOCKS, PolicyId};

use super::trace::TraceInputArgs;
use super::value::{List, count, list, value};

/// Options of `mrc`.
#[derive(Debug, Args)]
pub struct MrcArgs {
    /// The trace.
    #[command(flatten)]
    pub input: TraceInputArgs,

    /// Policies, as a list, or `all`
    #[arg(long, help = policies_help(), value_name = "POLICIES", default_value = "fifo,lru,clock,sieve,s3fifo,arc", value_parser = value(policies))]
    pub policy: List<PolicyId>,

    /// Cache sizes, as a list: `20000` blocks (or objects), `1%` of all that the trace touches, `64MiB`
    /// [default: 0.1 % to 100 % in steps of about three]
    #[arg(long, value_name = "SIZES", allow_hyphen_values = true, value_parser = value(sizes))]
    pub size: Option<List<CacheSize>>,

    /// Cache whole objects of any size, as simulators of key-value caches count [default: blocks]
    #[arg(long, conflicts_with = "block")]
    pub objects: bool,

    /// Size of a block; requests are split
    #[arg(long, value_name = "SIZE", default_value = "4k", allow_hyphen_values = true, value_parser = value(units::parse_bytes_nonzero))]
    pub block: u64,

    /// Follow only a sample: a share of the blocks (`1%`, `0.01`; `100%` is all of them), or a number of them (`8192`, at
    /// least 64); its error is stated
    #[arg(long, value_name = "RATE|COUNT", allow_hyphen_values = true, value_parser = value(sample))]
    pub sample: Option<Sample>,

    /// Ignore other requests entirely: they are not counted and do not enter the cache
    #[arg(long, value_name = "KIND", value_enum, default_value_t = MrcOnly::All)]
    pub only: MrcOnly,

    /// Sizes of each curve in the plot and in JSON, in addition to `--size`; 0 for none
    #[arg(long, value_name = "N", default_value_t = 24, allow_hyphen_values = true, value_parser = value(count::<u32>(0..=1000)))]
    pub points: u32,
}

/// Which requests `mrc` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MrcOnly {
    /// Reads and writes; a write leaves its block in the cache.
    All,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
}

/// A cache size as it is typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CacheSize {
    /// Blocks or objects.
    Count(u64),
    /// Part of all distinct blocks or objects.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

/// A sample of the blocks; `None`: all of them, so nothing is estimated.
pub type Sample = Option<Sampling>;

const MAX_SIZES: usize = 1000;

/// `20000,1%,64MiB`.
fn sizes(option: &str, text: &str) -> Result<List<CacheSize>, Problem> {
    let sizes = list(cache_size)(option, text)?;
    if sizes.len() > MAX_SIZES {
        let hint = "leave some out; `--points N` makes dense curves";
        return Err(refused_value(option, text, &format!("more than {MAX_SIZES} sizes"), hint));
    }
    Ok(sizes)
}

fn cache_size(option: &str, item: &str) -> Result<CacheSize, Problem> {
    const HINT: &str = "write blocks (or objects) as `20000`, a part of the trace as `1%`, bytes as `64MiB`";
    let refused = |why: &str| refused_value(option, item, why, HINT);
    if let Some(percent) = item.strip_suffix('%') {
        let share: f64 = percent.trim().parse().map_err(|_| refused("no number before the %"))?;
        return match share {
            share if share > 0.0 && share <= 100.0 => Ok(CacheSize::Share(share / 100.0)),
            _ => Err(refused("a part of the trace is above 0 % and at most 100 %")),
        };
    }
    if !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit()) {
        return match item.parse() {
            Ok(count) if count > 0 && count <= MAX_BLOCKS as u64 => Ok(CacheSize::Count(count)),
            _ => Err(refused(&format!("a cache holds 1 to {MAX_BLOCKS} blocks"))),
        };
    }
    let bytes = units::parse_bytes_nonzero(option, item).map_err(|problem| problem.hint(HINT))?;
    Ok(CacheSize::Bytes(bytes))
}

/// A list of policies, or `all`.
fn policies_help() -> String {
    let ids: Vec<&str> = PolicyId::online().map(PolicyId::id).collect();
    format!("Policies, as a list of {}, belady (the bound); or `all`", ids.join(", "))
}

fn policies(option: &str, text: &str) -> Result<List<PolicyId>, Problem> {
    if text.trim().eq_ignore_ascii_case("all") {
        return Ok(PolicyId::ALL.to_vec());
    }
    list(|option: &str, item: &str| {
        PolicyId::parse(item).map_err(|problem| {
            refused_value(option, item, "unknown policy", problem.hint.unwrap_or_default())
        })
    })(option, text)
}

/// `1%`, `0.01` or `8192`. `1` could be all blocks or one block, and is refused.
fn sample(option: &str, text: &str) -> Result<Sample, Problem> {
    const HINT: &str = "write a share as `1%` or `0.01` (above 0, below 1; all blocks are `100%`), a number of blocks as \
                        `8192` (at least 64)";
    let refused = |why: &str| refused_value(option, text, why, HINT);
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let number: f64 = number.trim().parse().map_err(|_| refused("not a number"))?;
    let share = number / scale;
    match share {
        _ if !number.is_finite() || number <= 0.0 => Err(refused("must be more than zero")),
        _ if scale == 1.0 && share == 1.0 => Err(refused("could mean all blocks or one block")),
        _ if share == 1.0 => Ok(None),
        _ if share < 1.0 => Ok(Some(Sampling::Rate(share))),
        _ if scale == 1.0 && number.fract() == 0.0 && (64.0..=f64::from(1u32 << 30)).contains(&number) => {
            Ok(Some(Sampling::Blocks(number as u32)))
        }
        _ => Err(refused("neither a share nor a number of blocks")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_blocks_shares_or_bytes() {
        assert_eq!(
            sizes("--size", "20000, 1%,64MiB,1%").unwrap(),
            [CacheSize::Count(20_000), CacheSize::Share(0.01), CacheSize::Bytes(64 << 20)]
        );
        for bad in ["", "0", "-1", "0%", "101%", "nan%", "x%", "4x", "99999999999", "99999P", "1,,2"] {
            let problem = sizes("--size", bad).unwrap_err();
            assert!(problem.message.starts_with("--size `") && problem.hint.is_some(), "{bad}: {problem}");
        }
        assert!(sizes("--size", "foo").unwrap_err().hint.unwrap().contains("64MiB"));
        let many: Vec<String> = (1..2000).map(|i| i.to_string()).collect();
        assert!(sizes("--size", &many.join(",")).is_err());
    }

    #[test]
    fn policies_are_read_in_any_case_and_once() {
        assert_eq!(policies("--policy", "LRU,s3-fifo,lru").unwrap(), [PolicyId::Lru, PolicyId::S3Fifo]);
        assert_eq!(policies("--policy", "all").unwrap().len(), PolicyId::ALL.len());
        assert!(policies("--policy", "lru,").unwrap_err().message.contains("--policy"));
    }

    #[test]
    fn samples_are_shares_or_numbers() {
        assert_eq!(sample("--sample", "1%").unwrap(), Some(Sampling::Rate(0.01)));
        assert_eq!(sample("--sample", "0.5").unwrap(), Some(Sampling::Rate(0.5)));
        assert_eq!(sample("--sample", "8192").unwrap(), Some(Sampling::Blocks(8192)));
        assert_eq!(sample("--sample", "100%").unwrap(), None);
        for bad in ["0", "-1", "200%", "12.5", "1", "1.0", "2", "nan", "inf", "", "x"] {
            assert!(sample("--sample", bad).is_err(), "{bad}");
        }
    }
}
