//! A plan outside of a control group that limited the program.

use iowhy_core::profile::Limited;
use iowhy_core::replay::{Placed, PlacedGroup, Plan};

/// The plan outside of the groups that limit this, and how that is said; `None`: it is in no such group.
pub(crate) fn without(plan: &Plan, of: Limited) -> Option<(Plan, String)> {
    let placed = plan.placed.as_ref()?;
    let limits = |group: &PlacedGroup| group.limits.iter().any(|limit| limit.of == of);
    let (left, inside): (Vec<PlacedGroup>, Vec<PlacedGroup>) =
        placed.inside.iter().cloned().partition(|group| limits(group));
    if left.is_empty() {
        return None;
    }
    let mut outside = placed.outside.clone();
    for limit in left.iter().flat_map(|group| &group.limits).filter(|limit| limit.of == of) {
        if !outside.contains(&limit.set_by) {
            outside.push(limit.set_by.clone());
        }
    }
    let others = left.iter().flat_map(|group| &group.limits).any(|limit| limit.of != of);
    let names: Vec<String> = outside.iter().map(|name| format!("`{name}`")).collect();
    let how = format!(
        "without the {} of {}: nothing was changed, the replay ran outside it",
        if others { "limits" } else { "limit" },
        names.join(" and ")
    );
    Some((Plan { placed: Some(Placed { inside, outside }), ..plan.clone() }, how))
}
