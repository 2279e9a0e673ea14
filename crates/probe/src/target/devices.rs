//! The block devices under a target.
//!
//! Invariant: no leaf carries another in the list, so that sums count nothing twice.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_linux::block::devices::{BlockTree, Devices};
use iowhy_linux::mounts::{self, Mount};

use super::{Status, Target};

/// Finds the devices under a target.
pub fn under(target: &Target) -> Devices {
    let found = all_under(target);
    match found.leaves.iter().find(|leaf| found.backing.contains(leaf)) {
        None => found,
        Some(twice) => Devices {
            reason: Some(format!(
                "{twice} carries bytes of its own and those of a loop device, which it counts again"
            )),
            leaves: Vec::new(),
            ..found
        },
    }
}

fn all_under(target: &Target) -> Devices {
    if let Some(stripe) = target.stripe() {
        let mut all = Devices::default();
        for member in stripe.members() {
            let mut found = all_under(member);
            all.reason = all.reason.take().or(found.reason.take());
            all.join(found);
        }
        return all;
    }
    let Some(status) = target.status() else { return Devices::none("a test target has no device") };
    of_status(status, target.path()).0
}

/// The devices under a path and the mount that it lies on (`None` for a device), without opening it.
///
/// # Errors
/// A refusal where there is nothing of that name, or it may not be looked at.
pub fn under_path(path: &Path) -> Result<(Devices, Option<Mount>), Problem> {
    rustix::fs::stat(path).map_err(|errno| super::cannot_open(path, errno))?;
    let status = Status::from_path(path).ok_or_else(|| super::cannot_open(path, rustix::io::Errno::NOENT))?;
    Ok(of_status(&status, Some(path)))
}

fn of_status(status: &Status, path: Option<&Path>) -> (Devices, Option<Mount>) {
    let tree = BlockTree::read();
    if let Some(number) = status.block_device {
        return (tree.under_device(number), None);
    }
    if status.char_device {
        return (Devices::none("a character device has no block device under it"), None);
    }
    let mount = mounts::find(tree.mounts(), status.mount_id, path).cloned();
    // A memfd is on a mount that no table lists.
    if status.memory_backed {
        return (Devices::none("its bytes live in memory"), mount);
    }
    let real = path.and_then(|path| std::fs::canonicalize(path).ok());
    (tree.under_file(status.device, mount.as_ref(), real.as_deref()), mount)
}
