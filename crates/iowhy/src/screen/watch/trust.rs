//! Tier, cost and limitations of the profile, and how to remove them.

use iowhy_core::profile::{Limitation, Tier};
use iowhy_view::document::{Detail, Part};

use super::{percent_of, plural, seconds};
use crate::record::watch::WatchRecord;
use crate::screen::figures::count;
use crate::screen::remedies::remedies;

/// Limitations on a screen.
const MAX_LIMITATIONS: usize = 3;
/// Overhead above which the times are visibly longer, as a share of wall time.
const DISTURBING: f64 = 0.05;
/// Part of the run with full recording below which it is mentioned.
const ALL_SEEN: f64 = 0.999;

/// The last lines.
pub(super) fn parts(record: &WatchRecord, detail: Detail) -> Vec<Part> {
    let seen = &record.observer;
    let mut cost =
        format!("profiling took {} of CPU time", seconds(seen.own_cpu_s + inside(record).unwrap_or(0.0)));
    if let Some(inside) = inside(record).filter(|s| *s > 0.0) {
        cost.push_str(&format!(", {} of it in the program", seconds(inside)));
    }
    // A lower tier without limitations was requested.
    let limit =
        if record.tier < Tier::Observer && record.limitations.is_empty() { " (as requested)" } else { "" };
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
        facts.push(format!("sleep stacks for {} of wall time", percent_of(seen.switch_duty)));
    }
    if record.profile.calls.as_ref().is_some_and(|calls| calls.complete) {
        facts.push("every system call counted".to_owned());
    }
    let mut parts = vec![Part::Note(facts.join(", "))];
    if record.thread_s > 0.0 {
        parts.push(Part::Note(how_known(record)));
    }
    if record.wall_s > 0.0 && inside(record).is_some_and(|s| s > DISTURBING * record.wall_s) {
        parts.push(Part::Text(
            "Profiling overhead exceeded 5 % of wall time; the times above include it.".to_owned(),
        ));
    }
    if let Some(delay_s) = delay_by_watch_s(record).filter(|s| *s > DISTURBING * record.thread_s) {
        parts.push(Part::Text(format!(
            "iowhy read files of the program meanwhile, for the names of functions. That delayed its requests by at most {} (thread time); \
             another run may find these files in the page cache.",
            seconds(delay_s)
        )));
    }
    if detail.is_page() {
        parts.push(Part::Note(format!(
            "unexplained: {} of the thread time; shares without ± were measured whole, those with ± were sampled (95 % \
             intervals)",
            percent_of(record.unexplained_share)
        )));
    }
    let most = detail.rows(MAX_LIMITATIONS, usize::MAX);
    let limitation = |lack: &Limitation| Part::Text(format!("limitation: {}", lack.sentence));
    parts.extend(record.limitations.iter().take(most).map(limitation));
    if record.limitations.len() > most {
        let more = plural((record.limitations.len() - most) as u64, "more limitation", "more limitations");
        parts.push(Part::Text(format!("{more} in the record (`--json FILE`)")));
    }
    let remedies = remedies(&record.limitations, &record.command, record.environment.privileged);
    let line =
        |(i, remedy): (usize, &String)| format!("{}: {remedy}", if i == 0 { "to see it" } else { "or" });
    if !remedies.is_empty() {
        parts.push(Part::Remarks(remedies.iter().enumerate().map(line).collect()));
    }
    parts
}

/// `seen 97 %, inferred 3 %`, rounded to a sum of 100 %.
fn how_known(record: &WatchRecord) -> String {
    let seen = (record.seen_share * 100.0).round() / 100.0;
    format!("seen {}, inferred {}", percent_of(seen), percent_of(1.0 - seen))
}

/// Time of the program's threads in which a request of iowhy was at the device of theirs.
fn delay_by_watch_s(record: &WatchRecord) -> Option<f64> {
    let others = &record.profile.block.as_ref()?.others;
    let own = others.iter().find(|other| other.watch)?;
    Some((own.behind_ns.unwrap_or(0) as f64 + own.beside_ns.unwrap_or(0) as f64) / 1e9)
}

/// CPU time of recording inside the program. `None` where the estimate exceeds all CPU time of the program: the self-test
/// behind it was disturbed.
fn inside(record: &WatchRecord) -> Option<f64> {
    let inside = record.observer.in_program_s;
    (inside <= record.cpu_s).then_some(inside)
}
