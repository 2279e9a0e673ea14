//! The disks of a stripe: found or made. A disk of the user is written to only where `--destroy-data` names it.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_probe::target::{Needs, Target, stripe};

use crate::progress::Progress;
use crate::targets;

const MAX_DISKS: usize = 64;

/// Finds or makes the members; those that `destroy` names may be written to, and are where the load `writes`.
///
/// # Errors
/// What one of them refuses; the same one twice; fewer than two; a permission that names none of them.
pub(super) fn resolve(
    names: &[String],
    destroy: &[String],
    writes: bool,
    scratch_bytes: u64,
    progress: &Progress,
) -> Result<Vec<Target>, Problem> {
    if names.len() < 2 || names.len() > MAX_DISKS {
        return Err(Problem::refused(format!(
            "{} disk(s): a stripe has 2 to {MAX_DISKS} members",
            names.len()
        ))
        .hint("name them one after the other: `iowhy stripe advise /dev/sdb /dev/sdc --workload ...`"));
    }
    if let Some(unknown) = destroy.iter().find(|name| !names.contains(name)) {
        return Err(Problem::refused(format!("`--destroy-data {unknown}` names none of the disks"))
            .hint("repeat a disk's name exactly, once for each disk that may be written to"));
    }
    let mut members: Vec<Target> = Vec::new();
    for name in names {
        if name.starts_with("stripe:") || (name.contains(',') && !Path::new(name).exists()) {
            return Err(Problem::refused(format!("`{name}` is not one disk"))
                .hint("name the members one after the other, with blanks between"));
        }
        let permitted = destroy.contains(name);
        let needs = Needs {
            scratch_bytes: scratch_bytes.div_ceil(names.len() as u64),
            write: permitted && writes,
            destroy_data: permitted.then(|| name.clone()),
        };
        let member = targets::resolve(name, &needs, progress)?;
        stripe::check_member("stripe advise", &member, &members, stripe::SECTOR_BYTES)?;
        members.push(member);
    }
    Ok(members)
}
