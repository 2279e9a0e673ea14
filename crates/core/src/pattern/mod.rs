//! Patterns: the orders in which blocks of a region are requested, and their generators.
//!
//! Invariant: pattern, number of blocks, seed and thread decide the sequence. It is the same on every machine, save that the
//! powers behind Zipf differ in the last bit between math libraries, which may change a rare draw.

mod offsets;
mod permutation;
mod zipf;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

pub use self::offsets::Offsets;
use crate::problem::Problem;

/// The order in which blocks of a region are requested. In text, and in files: `sequential`, `random`, `permuted`,
/// `zipf:1.1`, `stride:4`, `reverse`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub enum Pattern {
    /// Ascending, wrapping at the end.
    Sequential,
    /// Independent and uniform: blocks repeat.
    Random,
    /// A seeded permutation: every block exactly once before any repeats. Each cycle has its own permutation.
    Permuted,
    /// Zipf-distributed with exponent θ over a seeded permutation of the blocks: block of rank k is requested with
    /// a probability proportional to 1/k^θ.
    Zipf(f64),
    /// Ascending with a step of N blocks; each further lap starts one block later, so that every block is reached
    /// once in N laps. A step beyond the region's end is one lap a block, which is sequential.
    Stride(u64),
    /// Descending, wrapping at the start.
    Reverse,
}

impl Pattern {
    /// Whether a block may be requested again before every other one was: requested bytes are then more than
    /// bytes that a cache has to fetch.
    pub fn revisits(self) -> bool {
        matches!(self, Pattern::Random | Pattern::Zipf(_))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Sequential => f.write_str("sequential"),
            Pattern::Random => f.write_str("random"),
            Pattern::Permuted => f.write_str("permuted"),
            Pattern::Zipf(theta) => write!(f, "zipf:{theta}"),
            Pattern::Stride(blocks) => write!(f, "stride:{blocks}"),
            Pattern::Reverse => f.write_str("reverse"),
        }
    }
}

impl FromStr for Pattern {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        match (name, argument) {
            ("seq" | "sequential", None) => Ok(Pattern::Sequential),
            ("rand" | "random", None) => Ok(Pattern::Random),
            ("permuted", None) => Ok(Pattern::Permuted),
            ("reverse", None) => Ok(Pattern::Reverse),
            ("zipf", Some(theta)) => match theta.parse() {
                Ok(theta) if (0.0..=f64::MAX).contains(&theta) => Ok(Pattern::Zipf(theta)),
                _ => Err(refusal(text, "the exponent must be a number, 0 or more")),
            },
            ("stride", Some(step)) => match step.parse() {
                Ok(step) if step > 0 => Ok(Pattern::Stride(step)),
                _ => Err(refusal(text, "the step must be a whole number of blocks, 1 or more")),
            },
            ("zipf", None) => Err(refusal(text, "the exponent is missing, as in `zipf:1.1`")),
            ("stride", None) => Err(refusal(text, "the step in blocks is missing, as in `stride:4`")),
            ("seq" | "sequential" | "rand" | "random" | "permuted" | "reverse", Some(_)) => {
                Err(refusal(text, &format!("`{name}` takes no number")))
            }
            _ => Err(refusal(text, "there is no such pattern")),
        }
    }
}

fn refusal(text: &str, why: &str) -> Problem {
    Problem::refused(format!("--pattern `{text}`: {why}"))
        .hint("use one of `seq`, `random`, `permuted`, `zipf:1.1`, `stride:4`, `reverse`")
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> String {
        pattern.to_string()
    }
}

impl TryFrom<String> for Pattern {
    type Error = Problem;

    fn try_from(text: String) -> Result<Self, Problem> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_and_json_round_trip() {
        for (pattern, text) in [
            (Pattern::Sequential, "sequential"),
            (Pattern::Random, "random"),
            (Pattern::Permuted, "permuted"),
            (Pattern::Zipf(1.1), "zipf:1.1"),
            (Pattern::Zipf(0.0), "zipf:0"),
            (Pattern::Stride(4), "stride:4"),
            (Pattern::Reverse, "reverse"),
        ] {
            assert_eq!(pattern.to_string(), text);
            assert_eq!(text.parse(), Ok(pattern));
            let json = serde_json::to_string(&pattern).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern);
        }
        assert_eq!("seq".parse(), Ok(Pattern::Sequential));
        assert_eq!("rand".parse(), Ok(Pattern::Random));
    }

    #[test]
    fn what_is_refused_names_the_option_the_text_and_all_choices() {
        for text in
            ["", "zip", "zipf", "zipf:", "zipf:-1", "zipf:nan", "zipf:inf", "stride:0", "stride:-1", "seq:2"]
        {
            let problem = text.parse::<Pattern>().unwrap_err();
            assert!(problem.message.starts_with(&format!("--pattern `{text}`: ")), "{problem}");
            let hint = problem.hint.unwrap();
            for choice in ["seq", "random", "permuted", "zipf:", "stride:", "reverse"] {
                assert!(hint.contains(choice));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,20}") {
            let _ = text.parse::<Pattern>();
        }
    }
}
