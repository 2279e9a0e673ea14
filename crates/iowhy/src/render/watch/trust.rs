//! How far to trust the screen: what could be seen, what not and how to change that, what watching cost.

use std::fmt::Write as _;

use iowhy_core::profile::Tier;

use super::words::{count, percent_of, plural};
use super::{DIM, seconds};
use crate::record::watch::WatchRecord;
use crate::render::paragraph::wrap;
use crate::render::remedies::remedies;

/// Lacks that are shown.
const MAX_LIMITATIONS: usize = 3;
/// Above this cost in the program the times themselves are longer than without watching, and that is said.
const DISTURBING: f64 = 0.05;
/// Part of the run with full recording below which it is mentioned.
const ALL_SEEN: f64 = 0.999;

/// The last lines.
pub(super) fn trust(record: &WatchRecord, width: usize) -> String {
    let seen = &record.observer;
    let mut cost =
        format!("watching took {} of CPU time", seconds(seen.own_cpu_s + inside(record).unwrap_or(0.0)));
    if let Some(inside) = inside(record).filter(|s| *s > 0.0) {
        let _ = write!(cost, ", {} of it in the program", seconds(inside));
    }
    // Where nothing is lacking, a lower tier than the highest was asked for.
    let limit = if record.tier < Tier::Observer && record.limitations.is_empty() {
        " (no more was asked for)"
    } else {
        ""
    };
    let mut facts = vec![format!("tier {}{limit}", record.tier.id()), cost];
    if seen.lost > 0 {
        facts.push(format!(
            "{} of {} LOST",
            count(seen.lost),
            plural(seen.events.saturating_add(seen.lost), "event", "events")
        ));
    } else if seen.events == 0 {
        facts.push("no event could be recorded".to_owned());
    } else {
        facts.push(format!("{}, none lost", plural(seen.events, "event", "events")));
    }
    if seen.switch_duty < ALL_SEEN && seen.events > 0 {
        facts.push(format!("stacks of sleeps in {} of the time", percent_of(seen.switch_duty)));
    }
    if record.profile.calls.as_ref().is_some_and(|calls| calls.complete) {
        facts.push("every system call traced".to_owned());
    } else if seen.call_bursts > 0 && record.wall_s > 0.0 {
        facts.push(format!(
            "system calls traced in {} of the time",
            percent_of((seen.call_burst_s / record.wall_s).min(1.0))
        ));
    }
    let mut text = String::new();
    for line in wrap(&facts.join(", "), width, "", "  ").lines() {
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    if record.wall_s > 0.0 && inside(record).is_some_and(|s| s > DISTURBING * record.wall_s) {
        text.push_str(&wrap(
            "watching slowed the program: recording took more than 5 % of its wall time, and the times above hold it",
            width,
            "",
            "  ",
        ));
    }
    for limitation in record.limitations.iter().take(MAX_LIMITATIONS) {
        text.push_str(&wrap(&format!("not seen: {}", limitation.sentence), width, "", "  "));
    }
    if record.limitations.len() > MAX_LIMITATIONS {
        let _ = writeln!(
            text,
            "not seen: {} more in the record (`--json FILE`)",
            record.limitations.len() - MAX_LIMITATIONS
        );
    }
    let remedies = remedies(&record.limitations, &record.command, record.environment.privileged);
    for (i, remedy) in remedies.iter().enumerate() {
        let start = if i == 0 { "  to see it: " } else { "  or: " };
        text.push_str(&wrap(remedy, width, start, "    "));
    }
    text
}

/// CPU time that recording took out of the program. An estimate above all that the program used is none: the self-test
/// that it rests on was disturbed.
fn inside(record: &WatchRecord) -> Option<f64> {
    let inside = record.observer.in_program_s;
    (inside <= record.cpu_s).then_some(inside)
}
