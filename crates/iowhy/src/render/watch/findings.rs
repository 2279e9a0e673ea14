//! The findings, most valuable first: what each would gain, what it rests on, what to do.

use std::fmt::Write as _;

use iowhy_core::finding::{Finding, Gain};

use super::BOLD;
use super::words::{factor, percent_of, wrap};
use crate::record::watch::WatchRecord;

/// Findings that are shown in full.
const MOST_FINDINGS: usize = 3;
/// Lines of evidence per finding.
const MOST_EVIDENCE: usize = 4;

/// The list.
pub(super) fn findings(record: &WatchRecord, width: usize) -> String {
    let mut text = String::new();
    for (i, finding) in record.findings.iter().take(MOST_FINDINGS).enumerate() {
        // The verdict at the top has said the first sentence already.
        text.push_str(&one(i, finding, record.findings.len() > 1, i > 0, width));
    }
    if record.findings.len() > MOST_FINDINGS {
        let rest: Vec<&str> = record.findings[MOST_FINDINGS..].iter().map(|f| f.id.id()).collect();
        text.push_str(&wrap(&format!("also: {}", rest.join(", ")), width, "", "  "));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn one(index: usize, finding: &Finding, numbered: bool, sentence: bool, width: usize) -> String {
    let number = if numbered { format!("{}. ", index + 1) } else { String::new() };
    let gain = finding.gain.map(|gain| format!("  {}", self::gain(gain))).unwrap_or_default();
    let head = format!("{number}{}{gain}", finding.id.id());
    let cost = format!("{} of the wall time", percent_of(finding.share));
    let mut text = String::new();
    if head.chars().count() + 2 + cost.len() <= width {
        let _ = writeln!(text, "{BOLD}{head}{BOLD:#}  {cost}");
    } else {
        let _ = writeln!(text, "{BOLD}{head}{BOLD:#}\n   {cost}");
    }
    if sentence {
        text.push_str(&wrap(&finding.sentence, width, "   ", "   "));
    }
    for line in finding.evidence.iter().take(MOST_EVIDENCE) {
        text.push_str(&wrap(line, width, "   - ", "     "));
    }
    if finding.evidence.len() > MOST_EVIDENCE {
        let _ = writeln!(
            text,
            "   - {} more in the record (`--json FILE`)",
            finding.evidence.len() - MOST_EVIDENCE
        );
    }
    if !finding.advice.is_empty() {
        text.push_str(&wrap(&finding.advice, width, "   > ", "     "));
    }
    text
}

/// `gain 11x [5.8, 20]`: old wall time over new.
fn gain(gain: Gain) -> String {
    format!("gain {}x [{}, {}]", factor(gain.predicted), factor(gain.low), factor(gain.high))
}
