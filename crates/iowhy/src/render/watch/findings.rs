//! The findings, most valuable first: what each would gain, what it rests on, what to do.

use std::fmt::Write as _;

use iowhy_core::finding::{Finding, Gain};

use super::words::{factor, percent_of};
use super::{BOLD, DIM};
use crate::record::watch::WatchRecord;
use iowhy_view::terminal::wrap::wrap;

/// Findings that are shown.
const MOST_FINDINGS: usize = 2;
/// Lines of evidence of the first finding; the others have their sentence.
const MOST_EVIDENCE: usize = 3;

/// The list.
pub(super) fn findings(record: &WatchRecord, width: usize) -> String {
    let mut text = String::new();
    let many = record.findings.len() > 1;
    for (i, finding) in record.findings.iter().take(MOST_FINDINGS).enumerate() {
        let number = if many { format!("{}. ", i + 1) } else { String::new() };
        text.push_str(&heading(&number, finding, width));
        if i == 0 {
            // The verdict at the top of the screen is its sentence.
            for line in finding.evidence.iter().take(MOST_EVIDENCE) {
                text.push_str(&wrap(line, width, "   - ", "     "));
            }
        } else {
            text.push_str(&wrap(&finding.sentence, width, "   - ", "     "));
        }
        let advice = if i == 0 { finding.advice.as_str() } else { first_sentence(&finding.advice) };
        if !advice.is_empty() {
            text.push_str(&wrap(advice, width, "   > ", "     "));
        }
    }
    let Some(first) = record.findings.first() else { return text };
    let mut notes: Vec<String> = Vec::new();
    if record.findings.len() > MOST_FINDINGS {
        let rest: Vec<&str> = record.findings[MOST_FINDINGS..].iter().map(|f| f.id.id()).collect();
        notes.push(format!("also: {}", rest.join(", ")));
    }
    notes.push(format!("`iowhy explain {}` tells how it is known", first.id.id()));
    for line in wrap(&notes.join("; "), width, "   ", "   ").lines() {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    text.push('\n');
    text
}

/// A finding's name, what its repair would gain, and what it costs.
fn heading(number: &str, finding: &Finding, width: usize) -> String {
    let gain = finding.gain.map(|gain| format!("  {}", self::gain(gain))).unwrap_or_default();
    let head = format!("{number}{}{gain}", finding.title());
    let cost = format!("{} of the wall time", percent_of(finding.share));
    if head.chars().count() + 2 + cost.len() <= width {
        format!("{BOLD}{head}{BOLD:#}  {cost}\n")
    } else {
        format!("{BOLD}{head}{BOLD:#}\n   {cost}\n")
    }
}

/// The first sentence of an advice, whole: what follows a colon or a semicolon may turn its sense. A full stop ends a sentence
/// where a capital follows it, outside brackets and quotes.
fn first_sentence(text: &str) -> &str {
    let (mut brackets, mut quoted) = (0_u32, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' => brackets += 1,
            ')' => brackets = brackets.saturating_sub(1),
            '`' => quoted = !quoted,
            '.' if brackets == 0 && !quoted => {
                let next = text[at + 1..].strip_prefix(' ').and_then(|rest| rest.chars().next());
                if next.is_some_and(char::is_uppercase) {
                    return &text[..=at];
                }
            }
            _ => {}
        }
    }
    text
}

/// `gain 11x [5.8, 20]`: old wall time over new.
fn gain(gain: Gain) -> String {
    let over = if gain.open_above { "over " } else { "" };
    format!("gain {}x [{}, {over}{}]", factor(gain.predicted), factor(gain.low), factor(gain.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_advice_is_a_whole_sentence() {
        let direct = "O_DIRECT bypasses the cache: keep what is read again in memory of your own, or read it through the cache.";
        for (advice, shown) in [
            // Cut at the colon, this said the opposite.
            (direct, direct),
            (
                "Keep the mapping; munmap throws it away. For one look use pread.",
                "Keep the mapping; munmap throws it away.",
            ),
            (
                "Set vm.dirty_ratio (see proc. Also sysctl) or wait. Then run again.",
                "Set vm.dirty_ratio (see proc. Also sysctl) or wait.",
            ),
            ("Run `a. B` first, e.g. twice", "Run `a. B` first, e.g. twice"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(advice), shown);
        }
    }
}
