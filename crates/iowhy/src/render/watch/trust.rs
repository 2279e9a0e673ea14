//! How far to trust the screen: what could be seen, what not and how to change that, what watching cost.

use std::fmt::Write as _;

use super::words::{count, percent_of, plural, wrap};
use super::{DIM, seconds};
use crate::record::watch::WatchRecord;

/// Lacks that are shown.
const MOST_LACKS: usize = 4;
/// Above this cost in the program the times themselves are longer than without watching, and that is said.
const DISTURBING: f64 = 0.05;
/// Part of the run with full recording below which it is mentioned.
const ALL_SEEN: f64 = 0.999;

/// The last lines.
pub(super) fn trust(record: &WatchRecord, width: usize) -> String {
    let seen = &record.observer;
    let mut facts = vec![format!("tier {}", record.tier.id())];
    let inside = match seen.in_program_s {
        s if s > 0.0 => format!(" ({} of it in the program)", seconds(s)),
        _ => String::new(),
    };
    facts.push(format!("watching cost {} of one CPU{inside}", percent_of(seen.cost_share)));
    facts.push(plural(seen.events, "event", "events"));
    facts.push(if seen.lost == 0 { "none lost".to_owned() } else { format!("{} LOST", count(seen.lost)) });
    if seen.switch_duty < ALL_SEEN && seen.events > 0 {
        facts.push(format!("stacks of sleeps in {} of the time", percent_of(seen.switch_duty)));
    }
    if record.profile.calls.as_ref().is_some_and(|calls| calls.complete) {
        facts.push("every system call traced".to_owned());
    } else if seen.call_bursts > 0 {
        facts.push(format!(
            "system calls traced in {} ({})",
            plural(u64::from(seen.call_bursts), "burst", "bursts"),
            seconds(seen.call_burst_s)
        ));
    }
    let mut text = String::new();
    for line in wrap(&facts.join(", "), width, "", "  ").lines() {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    if seen.in_program_s > DISTURBING * record.wall_s && record.wall_s > 0.0 {
        text.push_str(&wrap(
            "watching slowed the program: recording took more than 5 % of its wall time, and the times above hold it",
            width,
            "",
            "  ",
        ));
    }
    for lack in record.lacks.iter().take(MOST_LACKS) {
        let fix = lack.fix.as_ref().map(|fix| format!("; `{fix}`")).unwrap_or_default();
        text.push_str(&wrap(&format!("not seen: {}{fix}", lack.sentence), width, "", "  "));
    }
    if record.lacks.len() > MOST_LACKS {
        let _ = writeln!(
            text,
            "not seen: {} more in the record (`--json FILE`)",
            record.lacks.len() - MOST_LACKS
        );
    }
    text
}
