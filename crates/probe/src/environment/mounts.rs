//! The mount table of this process.

use std::fs;
use std::path::Path;

use iowhy_core::kernel_text::mountinfo::{Mount, above, parse};

/// The mounts that this process sees; empty without /proc.
pub fn read() -> Vec<Mount> {
    fs::read("/proc/self/mountinfo").map(|text| parse(&String::from_utf8_lossy(&text))).unwrap_or_default()
}

/// The mount with this identifier; without one, the last mount at the longest mount point above the path.
pub fn of<'a>(table: &'a [Mount], id: Option<u64>, path: Option<&Path>) -> Option<&'a Mount> {
    if let Some(id) = id {
        return table.iter().find(|m| m.id == id);
    }
    above(table, &fs::canonicalize(path?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_that_is_not_listed_is_no_guess() {
        let table = parse("22 27 0:21 / / rw - ext4 /dev/vda rw\n");
        assert_eq!(of(&table, Some(22), None).unwrap().id, 22);
        assert_eq!(of(&table, Some(99), Some(Path::new("/"))), None);
    }

    #[test]
    fn the_temporary_directory_is_on_a_mount_that_is_listed() {
        let file = tempfile::tempfile().unwrap();
        let status = crate::target::Status::from_fd(std::os::fd::AsFd::as_fd(&file)).unwrap();
        let table = read();
        if table.is_empty() || status.mount_id.is_none() {
            eprintln!("skipped: no mount table or no mount identifiers");
            return;
        }
        assert!(of(&table, status.mount_id, None).is_some());
    }
}
