//! Placeholders in the names of outputs: `{rank}` and `{host}`; `{{` is a brace. A `}` alone stands for itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use iowhy_core::problem::Problem;

use crate::record::rank::RankRecord;

/// A piece of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Plain(&'a [u8]),
    Rank,
    Host,
    /// Braces around something else, or one that nothing closes.
    Unknown(&'a [u8]),
}

/// The pieces of a name, in order.
fn pieces(mut name: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    while !name.is_empty() {
        let (piece, length) = match name {
            [b'{', b'{', ..] => (Piece::Plain(&name[..1]), 2),
            [b'{', ..] => {
                let end = name.iter().position(|byte| *byte == b'}').map_or(name.len(), |at| at + 1);
                let piece = match &name[..end] {
                    b"{rank}" => Piece::Rank,
                    b"{host}" => Piece::Host,
                    other => Piece::Unknown(other),
                };
                (piece, end)
            }
            _ => {
                let end = name.iter().position(|byte| *byte == b'{').unwrap_or(name.len());
                (Piece::Plain(&name[..end]), end)
            }
        };
        pieces.push(piece);
        name = &name[length..];
    }
    pieces
}

/// Whether the name has `{rank}`.
pub(super) fn asks_for_rank(name: &OsStr) -> bool {
    pieces(name.as_bytes()).contains(&Piece::Rank)
}

/// The name with rank and host in it.
///
/// # Errors
/// A placeholder that there is none; `{rank}` outside of a parallel job; a host whose name leads elsewhere.
pub(super) fn filled(
    option: &str,
    name: &OsStr,
    own: Option<&RankRecord>,
    host: &str,
) -> Result<OsString, Problem> {
    let shown = || format!("`{option} {}`", name.to_string_lossy());
    let mut filled = Vec::new();
    for piece in pieces(name.as_bytes()) {
        match (piece, own) {
            (Piece::Plain(text), _) => filled.extend_from_slice(text),
            (Piece::Rank, Some(own)) => filled.extend_from_slice(own.rank.to_string().as_bytes()),
            (Piece::Rank, None) => {
                return Err(Problem::refused(format!(
                    "{}: the rank of this process is unknown: it is no task of mpirun, srun, flux or torchrun, and no pod of \
                     an indexed Job",
                    shown()
                ))
                .hint("start it by one of them, or name the rank: `--rank N --ranks M`"));
            }
            (Piece::Host, _) if host.is_empty() || host.contains(['/', '\0']) || host.starts_with('.') => {
                return Err(Problem::refused(format!(
                    "{}: the name of this host is `{host}`, and is no name of a file",
                    shown()
                ))
                .hint("leave `{host}` out; `{rank}` alone makes names different"));
            }
            (Piece::Host, _) => filled.extend_from_slice(host.as_bytes()),
            (Piece::Unknown(text), _) => {
                return Err(Problem::refused(format!(
                    "{}: `{}` is no placeholder",
                    shown(),
                    String::from_utf8_lossy(text)
                ))
                .hint("`{rank}` and `{host}` are; a brace of the name itself is written `{{`"));
            }
        }
    }
    Ok(OsString::from_vec(filled))
}

/// Refuses a name that all ranks of a job would write to. A device or pipe is no file that could be overwritten.
///
/// # Errors
/// The refusal, with the name that has the rank in it.
pub(super) fn one_for_each(option: &str, name: &OsStr, own: &RankRecord) -> Result<(), Problem> {
    let differs = pieces(name.as_bytes()).iter().any(|piece| matches!(piece, Piece::Rank | Piece::Host));
    let path = Path::new(name);
    let keeps_nothing = || path.metadata().is_ok_and(|facts| !facts.is_file() && !facts.is_dir());
    if own.ranks == Some(1) || differs || name == "-" || keeps_nothing() {
        return Ok(());
    }
    let stem = path.file_stem().unwrap_or(name).to_string_lossy();
    let extension = path.extension().map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
    let better = path.with_file_name(format!("{stem}-{{rank}}{extension}"));
    let ranks = own.ranks.map_or_else(|| "all ranks".to_owned(), |ranks| format!("{ranks} ranks"));
    Err(Problem::refused(format!(
        "`{option} {}`: {ranks} of this job would write this one file",
        path.display()
    ))
    .hint(format!("`{option} '{}'` is a file for each", better.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> RankRecord {
        RankRecord { rank: 7, ranks: Some(16), ..RankRecord::default() }
    }

    fn fill(name: &str) -> Result<String, Problem> {
        filled("--json", OsStr::new(name), Some(&own()), "node3").map(|name| name.into_string().unwrap())
    }

    #[test]
    fn placeholders_are_filled_in_and_braces_can_be_written() {
        for (name, expected) in [
            ("run.json", "run.json"),
            ("run-{rank}.json", "run-7.json"),
            ("{host}/{rank}/{rank}.json", "node3/7/7.json"),
            ("{{rank}.json", "{rank}.json"),
            ("a{{{rank}}.json", "a{7}.json"),
            ("a}b.json", "a}b.json"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(fill(name).as_deref(), Ok(expected), "{name}");
        }
        let bytes = OsStr::from_bytes(b"\xff{rank}");
        assert_eq!(filled("--json", bytes, Some(&own()), "h").unwrap().as_bytes(), b"\xff7");
    }

    #[test]
    fn other_placeholders_an_unknown_rank_and_odd_hosts_are_refused() {
        for name in ["{}.json", "{size}.json", "run-{rank.json", "{ rank}", "a{"] {
            let problem = fill(name).unwrap_err();
            assert!(problem.message.contains("is no placeholder"), "{name}: {problem}");
        }
        let unknown = filled("--json", OsStr::new("{rank}"), None, "node3").unwrap_err();
        assert!(unknown.hint.unwrap().contains("--rank N"), "the fix is named");
        assert_eq!(filled("--json", OsStr::new("{host}"), None, "node3").unwrap(), "node3");
        for host in ["", "a/b", "..", ".hidden"] {
            assert!(filled("--json", OsStr::new("{host}"), None, host).is_err(), "{host}");
        }
    }

    #[test]
    fn several_ranks_are_not_given_one_file() {
        let refused = |name: &str, own: &RankRecord| one_for_each("--json", OsStr::new(name), own).err();
        let problem = refused("out/run.json", &own()).unwrap();
        assert!(problem.message.contains("16 ranks"), "{problem}");
        assert!(problem.hint.unwrap().contains("'out/run-{rank}.json'"));
        assert!(refused("run", &RankRecord { ranks: None, ..own() }).is_some());
        for name in ["run-{rank}", "run-{host}", "/dev/null", "-"] {
            assert_eq!(refused(name, &own()), None, "{name}");
        }
        assert_eq!(refused("run.json", &RankRecord { ranks: Some(1), ..own() }), None);
    }
}
