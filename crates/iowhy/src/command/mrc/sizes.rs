//! What the options of `iowhy mrc` mean: policies, sizes, samples. Text in, numbers out; nothing is read.

use iowhy_core::problem::Problem;
use iowhy_core::units::parse_bytes_nonzero;
use iowhy_sim::curve::keys::Unit;
use iowhy_sim::curve::shards::Sampling;
use iowhy_sim::policy::{MAX_BLOCKS, PolicyId};

/// The most sizes that one option may give.
const MOST_SIZES: usize = 1000;

/// One size as it was typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    /// Blocks or objects.
    Count(u64),
    /// Part of all distinct blocks or objects.
    Share(f64),
    /// Bytes.
    Bytes(u64),
}

impl Size {
    /// Room in blocks or objects, at least one.
    pub(super) fn room(self, distinct: u64, unit: Unit) -> u64 {
        let room = match (self, unit) {
            (Size::Count(count), _) => count,
            (Size::Share(share), _) => (share * distinct as f64).round() as u64,
            (Size::Bytes(bytes), Unit::Blocks(block)) => bytes / block.max(1),
            // Refused when it was read.
            (Size::Bytes(bytes), Unit::Objects) => bytes,
        };
        room.max(1)
    }
}

/// The sizes that are shown when nobody says.
pub(super) fn usual() -> Vec<Size> {
    [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0].map(Size::Share).to_vec()
}

/// Reads `20000,1%,64MiB`.
///
/// # Errors
/// Names `--size` for what is no size, for bytes with objects, and for bytes that hold no block.
pub(super) fn parse(text: &str, unit: Unit) -> Result<Vec<Size>, Problem> {
    let mut sizes = Vec::new();
    for item in text.split(',').map(str::trim) {
        let size = parse_one(item, unit)?;
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    if sizes.len() > MOST_SIZES {
        return Err(Problem::refused(format!(
            "`--size` names {} sizes; {MOST_SIZES} is the most",
            sizes.len()
        ))
        .hint("leave some out; `--points N` makes dense curves"));
    }
    Ok(sizes)
}

fn parse_one(item: &str, unit: Unit) -> Result<Size, Problem> {
    let refused = |why: &str| {
        Problem::refused(format!("`--size {item}`: {why}"))
            .hint("write blocks (or objects) as `20000`, a part of the trace as `1%`, bytes as `64MiB`")
    };
    if let Some(percent) = item.strip_suffix('%') {
        let share: f64 = percent.trim().parse().map_err(|_| refused("no number before the %"))?;
        return match share {
            share if share > 0.0 && share <= 100.0 => Ok(Size::Share(share / 100.0)),
            _ => Err(refused("a part of the trace is above 0 % and at most 100 %")),
        };
    }
    if !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit()) {
        return match item.parse() {
            Ok(count) if count > 0 && count <= MAX_BLOCKS as u64 => Ok(Size::Count(count)),
            _ => Err(refused(&format!("a cache holds 1 to {MAX_BLOCKS} blocks"))),
        };
    }
    let bytes = parse_bytes_nonzero("--size", item)
        .map_err(|problem| Problem { hint: refused("").hint, ..problem })?;
    match unit {
        Unit::Objects => Err(Problem::refused(format!(
            "`--size {item}`: with `--objects` each object is one, whatever its bytes"
        ))
        .hint("give a number of objects (`20000`) or a part of the trace (`1%`), or leave `--objects` out")),
        Unit::Blocks(block) if bytes < block => Err(refused(&format!("it holds no block of {block} bytes"))
            .hint("choose a larger cache or a smaller `--block`")),
        Unit::Blocks(block) if bytes / block > MAX_BLOCKS as u64 => {
            Err(refused(&format!("it holds more than {MAX_BLOCKS} blocks of {block} bytes"))
                .hint("choose a smaller cache or a larger `--block`"))
        }
        Unit::Blocks(_) => Ok(Size::Bytes(bytes)),
    }
}

/// Reads a list of policies, or `all`; repeated ones are dropped.
///
/// # Errors
/// Names `--policy` and lists the policies.
pub(super) fn parse_policies(text: &str) -> Result<Vec<PolicyId>, Problem> {
    if text.trim().eq_ignore_ascii_case("all") {
        return Ok(PolicyId::ALL.to_vec());
    }
    let mut policies = Vec::new();
    for item in text.split(',') {
        let policy = PolicyId::parse(item)
            .map_err(|problem| Problem { message: format!("`--policy`: {}", problem.message), ..problem })?;
        if !policies.contains(&policy) {
            policies.push(policy);
        }
    }
    Ok(policies)
}

/// Reads `1%`, `0.01` or `8192`; `None`: all of them, so that nothing need be estimated.
///
/// # Errors
/// Names `--sample` for what is neither a share of the blocks nor a number of them, and for `1`, which could be either.
pub(super) fn parse_sample(text: &str) -> Result<Option<Sampling>, Problem> {
    let refused = || {
        Problem::refused(format!("`--sample {text}` is no share of the blocks and no number of them"))
            .hint("write a share as `1%` or `0.01` (above 0, below 1; all of them are `100%`), a number as `8192` (at least 64)")
    };
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let value: f64 = number.trim().parse().map_err(|_| refused())?;
    let share = value / scale;
    match share {
        _ if !value.is_finite() || value <= 0.0 => Err(refused()),
        _ if scale == 1.0 && share == 1.0 => {
            Err(Problem::refused(format!("`--sample {text}` could be a share of all blocks or one block"))
                .hint(
                    "write `100%` for all, `1%` for a hundredth, a number of blocks as `8192` (at least 64)",
                ))
        }
        _ if share == 1.0 => Ok(None),
        _ if share < 1.0 => Ok(Some(Sampling::Rate(share))),
        _ if scale == 1.0 && value.fract() == 0.0 && (64.0..=f64::from(1u32 << 30)).contains(&value) => {
            Ok(Some(Sampling::Blocks(value as u32)))
        }
        _ => Err(refused()),
    }
}

/// So many sizes, evenly spread by factor, from a thousandth of all distinct blocks to all of them.
pub(super) fn spread(distinct: u64, points: u32) -> Vec<u64> {
    let low = (distinct as f64 / 1000.0).max(1.0);
    let steps = f64::from(points.saturating_sub(1).max(1));
    let factor = (distinct as f64).max(1.0) / low;
    let mut sizes: Vec<u64> = (0..points)
        .map(|i| (low * factor.powf(f64::from(i) / steps)).round().min(distinct as f64).max(1.0) as u64)
        .collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: Unit = Unit::Blocks(4096);

    #[test]
    fn sizes_are_read_in_three_ways() {
        assert_eq!(
            parse("20000, 1%,64MiB,1%", BLOCKS).unwrap(),
            [Size::Count(20_000), Size::Share(0.01), Size::Bytes(64 << 20)]
        );
        assert_eq!(Size::Bytes(64 << 20).room(10, BLOCKS), 16_384);
        assert_eq!(Size::Share(0.01).room(1000, BLOCKS), 10);
        assert_eq!(Size::Share(0.01).room(3, BLOCKS), 1);
    }

    #[test]
    fn what_is_no_size_is_refused_by_the_name_of_the_option() {
        for bad in ["", "0", "-1", "0%", "101%", "nan%", "x%", "4x", "1k", "99999999999", "9999P", "1,,2"] {
            let problem = parse(bad, BLOCKS).unwrap_err();
            assert!(problem.message.contains("--size") && problem.exit_code() == 2, "{bad}: {problem}");
            assert!(problem.hint.is_some(), "{bad}");
        }
        let hint = parse("foo", BLOCKS).unwrap_err().hint.unwrap();
        assert!(hint.contains("20000") && hint.contains("1%") && hint.contains("64MiB"), "{hint}");
        assert!(parse("64MiB", Unit::Objects).unwrap_err().message.contains("--objects"));
        assert!(parse(&(1..2000).map(|i| i.to_string()).collect::<Vec<_>>().join(","), BLOCKS).is_err());
    }

    #[test]
    fn policies_and_samples() {
        assert_eq!(parse_policies("LRU,s3-fifo,lru").unwrap(), [PolicyId::Lru, PolicyId::S3Fifo]);
        assert_eq!(parse_policies("all").unwrap().len(), PolicyId::ALL.len());
        assert!(parse_policies("lru,").unwrap_err().message.contains("--policy"));
        assert_eq!(parse_sample("1%").unwrap(), Some(Sampling::Rate(0.01)));
        assert_eq!(parse_sample("0.5").unwrap(), Some(Sampling::Rate(0.5)));
        assert_eq!(parse_sample("8192").unwrap(), Some(Sampling::Blocks(8192)));
        assert_eq!(parse_sample("100%").unwrap(), None);
        for bad in ["0", "-1", "200%", "12.5", "1", "1.0", "2", "nan", "inf", "", "x"] {
            assert!(parse_sample(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_spread_reaches_from_little_to_all() {
        let sizes = spread(100_000, 24);
        assert!(sizes.first() == Some(&100) && sizes.last() == Some(&100_000) && sizes.len() == 24);
        assert!(sizes.is_sorted());
        assert_eq!(spread(1, 5), [1]);
        assert_eq!(spread(0, 5), [1]);
        assert!(spread(10, 0).is_empty());
    }
}
