//! Options for the size of repairs, and the changes of `--what-if`.

use iowhy_core::problem::Problem;
use iowhy_diagnose::repair::Sizes;
use iowhy_replay::plan::what_if::Change;

use crate::cli::ProveArgs;
use crate::plan::sweep::size;

const MAX_DEPTH: u32 = 1024;
/// Largest N of `--subsample N`: 1/N of the bytes stay.
const MAX_SUBSAMPLE: u32 = 1000;
const MAX_REQUEST_BYTES: u64 = 64 << 20;

/// The sizes that the options name.
pub(super) fn asked(args: &ProveArgs) -> Result<Sizes, Problem> {
    let mut sizes = Sizes::default();
    if let Some(text) = &args.batch {
        sizes.batch = match text.as_str() {
            "all" => Sizes::ALL,
            number => number.parse().ok().filter(|n| *n > 1).ok_or_else(|| {
                Problem::refused(format!("`--batch {text}` is no number of records above 1"))
                    .hint("`--batch 300` syncs once for 300 records, `--batch all` once at the end")
            })?,
        };
    }
    if let Some(text) = &args.request {
        sizes.request_bytes = size("--request", text).map_err(|p| p.hint("`--request 64k` is usual"))?;
        if !(512..=MAX_REQUEST_BYTES).contains(&sizes.request_bytes) {
            return Err(Problem::refused(format!("`--request {text}` is not between 512 bytes and 64 MiB"))
                .hint("`--request 64k` is usual"));
        }
    }
    if let Some(text) = &args.depth {
        sizes.depth = Some(text.parse().ok().filter(|n| (2..=MAX_DEPTH).contains(n)).ok_or_else(|| {
            Problem::refused(format!("`--depth {text}` is no number from 2 to {MAX_DEPTH}"))
                .hint("`--depth 32` keeps 32 requests in flight")
        })?);
    }
    if let Some(text) = &args.subsample {
        sizes.one_in = text.parse().ok().filter(|n| (2..=MAX_SUBSAMPLE).contains(n)).ok_or_else(|| {
            Problem::refused(format!("`--subsample {text}` is no number from 2 to {MAX_SUBSAMPLE}"))
                .hint("`--subsample 4` asks for a quarter of the bytes")
        })?;
    }
    Ok(sizes)
}

/// The changes that `--what-if` names, each once.
pub(super) fn changes(args: &ProveArgs) -> Result<Vec<Change>, Problem> {
    let mut changes = Vec::new();
    for word in args.what_if.iter().flat_map(|text| text.split(',')) {
        let Some(change) = Change::ALL.into_iter().find(|c| c.id() == word.trim()) else {
            let all: Vec<&str> = Change::ALL.iter().map(|c| c.id()).collect();
            return Err(Problem::refused(format!("`--what-if {word}` is no change that can be tried"))
                .hint(format!("these can: {}", all.join(", "))));
        };
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn args(batch: Option<&str>, request: Option<&str>, depth: Option<&str>) -> ProveArgs {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        ProveArgs {
            record: PathBuf::new(),
            rounds: "9".to_owned(),
            batch: owned(batch),
            request: owned(request),
            depth: owned(depth),
            subsample: None,
            what_if: None,
            seed: 1,
            user: None,
            force: false,
        }
    }

    #[test]
    fn what_is_asked_for_is_taken_and_the_rest_is_usual() {
        assert_eq!(asked(&args(None, None, None)), Ok(Sizes::default()));
        let sizes = asked(&args(Some("300"), Some("1m"), Some("8"))).unwrap();
        assert_eq!((sizes.batch, sizes.request_bytes, sizes.depth), (300, 1 << 20, Some(8)));
        assert_eq!(asked(&args(Some("all"), None, None)).unwrap().batch, Sizes::ALL);
    }

    #[test]
    fn changes_are_named_once_each_and_others_refused() {
        let of =
            |text: &str| changes(&ProveArgs { what_if: Some(text.to_owned()), ..args(None, None, None) });
        assert_eq!(of("direct, windows,direct"), Ok(vec![Change::Direct, Change::Windows]));
        assert_eq!(changes(&args(None, None, None)), Ok(vec![]));
        for bad in ["", "fast", "direct,"] {
            let problem = of(bad).unwrap_err();
            assert!(problem.hint.is_some_and(|hint| hint.contains("larger")), "{bad}");
        }
    }

    #[test]
    fn one_request_in_so_many_is_a_number_above_one() {
        let of =
            |text: &str| asked(&ProveArgs { subsample: Some(text.to_owned()), ..args(None, None, None) });
        assert_eq!(of("16").map(|sizes| sizes.one_in), Ok(16));
        for bad in ["1", "half", "-2", "1001"] {
            let problem = of(bad).unwrap_err();
            assert!(problem.exit_code() == 2 && problem.message.contains("--subsample"), "{problem:?}");
        }
    }

    #[test]
    fn a_size_that_is_none_is_refused_by_its_option() {
        for (batch, request, depth, option) in [
            (Some("1"), None, None, "--batch"),
            (Some("none"), None, None, "--batch"),
            (None, Some("1"), None, "--request"),
            (None, Some("1g"), None, "--request"),
            (None, Some("x"), None, "--request"),
            (None, None, Some("1"), "--depth"),
            (None, None, Some("-3"), "--depth"),
        ] {
            let problem = asked(&args(batch, request, depth)).unwrap_err();
            assert!(problem.exit_code() == 2 && problem.message.contains(option), "{problem:?}");
            assert!(problem.hint.is_some());
        }
    }
}
