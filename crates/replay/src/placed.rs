//! Where a replay runs: in the control groups that limited the program, because under no limit it is another run. A repair
//! may run outside one of them.

use iowhy_core::profile::Limited;
use iowhy_core::replay::{Placed, PlacedGroup, Plan, Role, State};

use super::AsWas;
use iowhy_diagnose::findings::Facts;

/// The device must have read so many times what the files hold: then memory did not keep them, and a replay begins with
/// as much of them as it keeps.
const AGAIN: f64 = 1.2;

/// Places the run as it was.
pub(super) fn place(facts: &Facts<'_>, as_was: &mut AsWas) {
    let groups = &facts.profile.groups;
    if groups.is_empty() {
        return;
    }
    let plan = &mut as_was.plan;
    let inside = groups
        .iter()
        .map(|g| PlacedGroup { directory: g.directory.clone(), limits: g.limits.clone() })
        .collect();
    plan.placed = Some(Placed { inside, outside: Vec::new() });
    for group in groups {
        let limits: Vec<&str> = group.limits.iter().map(|limit| limit.words.as_str()).collect();
        as_was.notes.push(format!("replayed inside `{}`: {}", group.directory, limits.join("; ")));
    }
    if groups.iter().any(|group| group.limits(Limited::Memory)) && came_again(facts, plan) {
        let cached = plan.files.iter_mut().filter(|f| f.role == Role::User && !f.direct);
        cached.for_each(|file| file.state = State::Warm);
    }
}

/// Whether what is read through the page cache came from the device more than once.
fn came_again(facts: &Facts<'_>, plan: &Plan) -> bool {
    let cached = plan.files.iter().filter(|f| f.role == Role::User && !f.direct);
    let hold: u64 = cached.map(|f| f.size_bytes).sum();
    let fetched = facts.profile.io.device_read_bytes.unwrap_or(0);
    hold > 0 && fetched as f64 > AGAIN * hold as f64
}

#[cfg(test)]
#[path = "placed_tests.rs"]
mod tests;
