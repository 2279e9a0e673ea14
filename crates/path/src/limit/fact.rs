//! A measured fact in words, and how a verdict prints its facts.
//!
//! Invariants: whatever estimate is in the words is counted in `n`; a verdict says `n` once, on the first line that
//! has a measured number, because a short screen shows the first lines only.

use iowhy_core::estimate::Estimate;

/// A fact: the claim, then what stands behind it, a line each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fact {
    words: String,
    details: Vec<String>,
    /// The fewest and the most rounds that its estimates rest on.
    rounds: Option<(u64, u64)>,
}

impl Fact {
    /// Words that print these estimates.
    pub(super) fn new(words: impl Into<String>, printed: &[&Estimate]) -> Fact {
        Fact { words: words.into(), ..Fact::default() }.counting(printed)
    }

    /// Another line, which prints these estimates.
    pub(super) fn detail(mut self, line: impl Into<String>, printed: &[&Estimate]) -> Fact {
        self.details.push(line.into());
        self.counting(printed)
    }

    /// The same with something behind the words.
    pub(super) fn followed_by(mut self, words: &str) -> Fact {
        self.words.push_str(words);
        self
    }

    /// The same with something before the words.
    pub(super) fn preceded_by(mut self, words: &str) -> Fact {
        self.words.insert_str(0, words);
        self
    }

    /// The same with another fact as a detail.
    pub(super) fn beside(mut self, other: Fact) -> Fact {
        self.rounds = widest(self.rounds, other.rounds);
        self.details.push(other.words);
        self.details.extend(other.details);
        self
    }

    /// The claim alone: its details are dropped.
    pub(super) fn short(mut self) -> Fact {
        self.details.clear();
        self
    }

    /// The claim in words.
    pub(super) fn claim(&self) -> &str {
        &self.words
    }

    fn counting(mut self, printed: &[&Estimate]) -> Fact {
        for e in printed {
            self.rounds = widest(self.rounds, Some((e.n, e.n)));
        }
        self
    }
}

/// Columns of a line of evidence: 110 with the indent and the dash before it.
const WIDTH: usize = 106;

/// The lines of a verdict. `n` has a line of its own where it finds no room.
pub(super) fn lines(facts: Vec<Fact>) -> Vec<String> {
    let mut rounds = facts.iter().fold(None, |all, fact| widest(all, fact.rounds));
    let mut lines = Vec::new();
    for fact in facts {
        let mut words = fact.words;
        let n = rounds.take_if(|_| fact.rounds.is_some()).map(|(fewest, most)| match most - fewest {
            0 => format!("n = {most} rounds"),
            _ => format!("n = {fewest} to {most} rounds"),
        });
        let fits = |n: &String| words.chars().count() + ", ".len() + n.chars().count() <= WIDTH;
        let (behind, alone): (Option<String>, Option<String>) =
            if n.as_ref().is_some_and(fits) { (n, None) } else { (None, n) };
        if let Some(n) = behind {
            words.push_str(&format!(", {n}"));
        }
        lines.push(words);
        lines.extend(alone);
        lines.extend(fact.details);
    }
    lines
}

fn widest(a: Option<(u64, u64)>, b: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iowhy_core::estimate::Unit;

    #[test]
    fn n_is_said_once_and_covers_every_estimate() {
        let of = |n| Estimate { value: 1.0, low: 1.0, high: 1.0, unit: Unit::Ratio, n };
        let plain = Fact::new("not measured", &[]);
        let facts =
            vec![plain.clone(), Fact::new("a", &[&of(9)]).detail("b", &[&of(7)]), Fact::new("c", &[&of(8)])];
        assert_eq!(lines(facts), ["not measured", "a, n = 7 to 9 rounds", "b", "c"]);
        assert_eq!(lines(vec![Fact::new("a", &[&of(9)])]), ["a, n = 9 rounds"]);
        let long = "a".repeat(WIDTH - 5);
        assert_eq!(lines(vec![Fact::new(&*long, &[&of(9)])]), [&*long, "n = 9 rounds"]);
        assert_eq!(lines(vec![plain]), ["not measured"]);
    }
}
