//! The null block device: one that answers reads at once, so that only the path to it is left. Named by the user, or the first
//! that is there; never made, for its driver is a module of the kernel. Only read.

use std::fs;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_probe::target::{self, Needs, Target};

use crate::lab::Lab;

/// Where block devices have their names, and what those of this driver begin with.
const DEVICES: &str = "/dev";
const NAME: &str = "nullb";
/// Where the driver keeps the devices that were made by hand, which may have any name.
const BY_HAND: &str = "/sys/kernel/config/nullb";
/// Settings of the driver that decide what a read costs.
const SETTINGS: [&str; 3] = ["queue_mode", "irqmode", "completion_nsec"];

/// What was found.
#[derive(Debug)]
pub(super) struct NullBlock {
    /// The device.
    pub(super) target: Target,
    /// What it is, for the screen.
    pub(super) words: String,
}

/// The device that the user named, or one that is there; `Err` within says what there is not.
///
/// # Errors
/// A name of no null block device, for reading it would measure a disk.
pub(super) fn find(lab: &Lab<'_>) -> Result<Result<NullBlock, String>, Problem> {
    let path = match lab.null_block {
        Some(named) => {
            let path = fs::canonicalize(named)
                .map_err(|error| Problem::refused(format!("cannot open `{}`: {error}", named.display())))?;
            if !is_one(&path, Path::new(BY_HAND)) {
                return Err(Problem::refused(format!(
                    "`--null-block {}` is no null block device, and reading it would measure a disk",
                    named.display()
                ))
                .hint("`modprobe null_blk` makes /dev/nullb0"));
            }
            path
        }
        None => match first(Path::new(DEVICES)) {
            Some(path) => path,
            None => {
                return Ok(Err(format!(
                    "there is no null block device here ({DEVICES}/{NAME}*, `modprobe null_blk`)"
                )));
            }
        },
    };
    let needs = Needs { scratch_bytes: 0, write: false, destroy_data: None };
    let Some(name) = path.to_str() else {
        return Ok(Err(format!("`{}` has a name that cannot be written", path.display())));
    };
    Ok(match target::resolve(name, &needs, &mut |_, _| {}) {
        Ok(target) => Ok(NullBlock { words: words(name), target }),
        Err(problem) if lab.null_block.is_some() => return Err(problem),
        Err(problem) => Err(format!("`{name}` cannot be read here: {problem}")),
    })
}

/// The first by name.
fn first(devices: &Path) -> Option<PathBuf> {
    let all = fs::read_dir(devices).ok()?.flatten().map(|entry| entry.path());
    all.filter(|path| is_one(path, Path::new("/nowhere"))).min()
}

/// Whether a path has the name of a null block device: the driver's own, with a number, or one that was made by hand.
fn is_one(path: &Path, by_hand: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let number = name.strip_prefix(NAME).unwrap_or_default();
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())) || by_hand.join(name).is_dir()
}

fn words(name: &str) -> String {
    let setting = |key: &&str| {
        let value = fs::read_to_string(format!("/sys/module/null_blk/parameters/{key}")).ok()?;
        Some(format!("{key} {}", value.trim()))
    };
    let settings: Vec<String> = SETTINGS.iter().filter_map(setting).collect();
    match settings.is_empty() {
        true => format!("{name} through the cache"),
        false => format!("{name} through the cache; its driver's settings: {}", settings.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_block_devices_are_told_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let by_hand = dir.path().join("config");
        fs::create_dir_all(by_hand.join("mine")).unwrap();
        for (name, one) in [
            ("nullb0", true),
            ("nullb12", true),
            ("nullb", false),
            ("nullb0p1", false),
            ("null", false),
            ("mine", true),
            ("vda", false),
        ] {
            assert_eq!(is_one(&Path::new("/dev").join(name), &by_hand), one, "{name}");
        }
    }

    #[test]
    fn the_first_one_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(first(dir.path()), None);
        for name in ["nullb2", "nullb1", "null", "nullb1p1"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(first(dir.path()), Some(dir.path().join("nullb1")));
    }
}
