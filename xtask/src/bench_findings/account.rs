//! Where the time of a run went and what is said of it, for those who work on a rule.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iowhy::analyzer::Analyzer;
use iowhy_core::profile::Profile;

use super::foretold;

/// The account of a run, largest parts first, and its findings.
pub(super) fn of_run(variant: &str, profile: &Profile, meaning: &Analyzer) -> String {
    let explained = meaning.explain(profile, None);
    let wall = explained.account.wall_ns.max(1.0);
    let mut parts: BTreeMap<String, (f64, u64)> = BTreeMap::new();
    for entry in &explained.account.entries {
        let how = if entry.busy { "busy" } else { "wait" };
        let wait = entry.class.wait.map_or("", |wait| wait.words());
        let name = format!("{how} {:?} {} {wait}", entry.class.operation, entry.class.layer.id());
        let part = parts.entry(name).or_default();
        part.0 += entry.wall_ns / wall;
        part.1 += entry.events;
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let idle = explained.account.idle_wall_ns / wall;
    let mut text = format!("    {variant}: wall {:.3} s, idle {:.1} %\n", wall / 1e9, 100.0 * idle);
    for (name, (share, events)) in parts.into_iter().take(14) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "      {:5.1} %  {name} (n = {events})", 100.0 * share);
    }
    for finding in &explained.findings {
        let gain = finding.gain.map(foretold).into_iter();
        let gain: Vec<String> =
            gain.chain(finding.gain_rest_unchanged.map(|most| format!("at most {most:.2}"))).collect();
        let _ = writeln!(
            text,
            "      {} {}: {}; {}",
            finding.id.id(),
            gain.join(", "),
            finding.sentence,
            finding.evidence.join("; ")
        );
    }
    text
}
