//! Puts a replay into the control groups that limited the program: without their limits it would be another run.

use iowhy_core::profile::Limited;
use iowhy_core::replay::{Placed, PlacedGroup, Plan, Role, State};

use super::baseline::Baseline;
use iowhy_diagnose::findings::Facts;

/// Device reads over file sizes from which on memory did not keep the files; a replay then starts with what it keeps.
const REREAD: f64 = 1.2;

pub(super) fn place(facts: &Facts<'_>, baseline: &mut Baseline) {
    let groups = &facts.profile.groups;
    if groups.is_empty() {
        return;
    }
    let plan = &mut baseline.plan;
    let inside = groups
        .iter()
        .map(|g| PlacedGroup { directory: g.directory.clone(), limits: g.limits.clone() })
        .collect();
    plan.placed = Some(Placed { inside, outside: Vec::new() });
    for group in groups {
        let limits: Vec<&str> = group.limits.iter().map(|limit| limit.words.as_str()).collect();
        baseline.notes.push(format!("replayed inside `{}`: {}", group.directory, limits.join("; ")));
    }
    if groups.iter().any(|group| group.limits(Limited::Memory)) && reread(facts, plan) {
        let cached = plan.files.iter_mut().filter(|f| f.role == Role::User && !f.direct);
        cached.for_each(|file| file.state = State::Warm);
    }
}

/// Whether buffered reads came from the device more than once.
fn reread(facts: &Facts<'_>, plan: &Plan) -> bool {
    let cached = plan.files.iter().filter(|f| f.role == Role::User && !f.direct);
    let hold: u64 = cached.map(|f| f.size_bytes).sum();
    let fetched = facts.profile.io.device_read_bytes.unwrap_or(0);
    hold > 0 && fetched as f64 > REREAD * hold as f64
}

#[cfg(test)]
#[path = "control_groups_tests.rs"]
mod tests;
