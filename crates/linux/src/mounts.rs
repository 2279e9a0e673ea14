//! The mount table, `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).

use std::fs;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Identifier, as statx gives it.
    pub id: u64,
    /// Major and minor number of the file system's device, as stat gives it; major 0 is anonymous.
    pub device: (u32, u32),
    /// The directory of the file system that is mounted (`/` unless it is a bind mount or a control group's root).
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// Options of the mount.
    pub options: String,
    /// Type, e.g. `ext4`.
    pub file_system: String,
    /// What is mounted: a device node, a server, a pool.
    pub source: String,
    /// Options of the file system.
    pub super_options: String,
}

impl Mount {
    /// Options of the mount and of the file system together, each once.
    pub fn all_options(&self) -> String {
        let mut all: Vec<&str> = self.options.split(',').collect();
        for option in self.super_options.split(',').filter(|o| !o.is_empty()) {
            // The file system may be writable where this mount of it is not; what holds here is the mount's.
            if !all.contains(&option) && option != "rw" {
                all.push(option);
            }
        }
        all.join(",")
    }
}

/// The mounts that this process sees; empty without /proc.
pub fn read() -> Vec<Mount> {
    fs::read("/proc/self/mountinfo").map(|text| parse(&String::from_utf8_lossy(&text))).unwrap_or_default()
}

/// The mount with this identifier; without one, the last mount at the longest mount point above the path.
pub fn find<'a>(table: &'a [Mount], id: Option<u64>, path: Option<&Path>) -> Option<&'a Mount> {
    if let Some(id) = id {
        return table.iter().find(|m| m.id == id);
    }
    above(table, &fs::canonicalize(path?).ok()?)
}

/// The mount that an absolute path without links lies on. Later mounts cover earlier ones at the same point.
pub fn above<'a>(table: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    table.iter().filter(|m| path.starts_with(&m.point)).max_by_key(|m| m.point.components().count())
}

/// Reads the table; lines of an unknown shape are left out.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // Optional fields stand before a lone hyphen; a mount point cannot hold a blank, it is escaped.
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ');
    let id = mount.next()?.parse().ok()?;
    let (_parent, device) = (mount.next()?, mount.next()?);
    let (major, minor) = device.split_once(':')?;
    let mut field = || mount.next();
    let (root, point, options) = (field()?, field()?, field()?);
    let mut file_system = file_system.split(' ');
    Some(Mount {
        id,
        device: (major.parse().ok()?, minor.parse().ok()?),
        root: unescape(root).into(),
        point: unescape(point).into(),
        options: options.to_owned(),
        file_system: file_system.next()?.to_owned(),
        source: unescape(file_system.next()?),
        super_options: unescape(file_system.next().unwrap_or_default()),
    })
}

/// Undoes the octal escapes of blank, tab, newline, backslash and hash (`\040`).
fn unescape(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at..at + 4).filter(|code| code[0] == b'\\').and_then(|code| {
            let digits = std::str::from_utf8(&code[1..]).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The directories of an overlay, top down, from the options of its file system.
pub fn overlay_layers(super_options: &str) -> Vec<&str> {
    let values =
        |key: &'static str| super_options.split(',').filter_map(move |option| option.strip_prefix(key));
    let lower = values("lowerdir=").flat_map(|dirs| dirs.split(':')).chain(values("lowerdir+="));
    values("upperdir=").chain(lower).filter(|dir| !dir.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
36 27 0:30 /sub/dir /mnt/with\\040blank\\134 ro,nosuid - btrfs /dev/sda1 rw,compress=zstd:3,subvol=/sub
37 27 0:31 / /mnt rw - tmpfs tmpfs rw
38 27 0:32 / /mnt rw - xfs /dev/sdb rw
broken line
";

    #[test]
    fn the_known_table_reads_as_it_was_written() {
        let table = parse(TABLE);
        assert_eq!(table.len(), 5);
        let bind = &table[2];
        assert_eq!((bind.device, table[1].device), ((0, 30), (254, 0)));
        assert_eq!(
            (bind.id, bind.root.to_str(), bind.point.to_str()),
            (36, Some("/sub/dir"), Some("/mnt/with blank\\"))
        );
        assert_eq!((bind.file_system.as_str(), bind.source.as_str()), ("btrfs", "/dev/sda1"));
        assert_eq!(bind.all_options(), "ro,nosuid,compress=zstd:3,subvol=/sub");
        assert_eq!(table[1].super_options, "rw,discard");
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescape("a\\0"), "a\\0");
        assert_eq!(unescape("\\999\\011x"), "\\999\tx");
    }

    #[test]
    fn the_longest_and_latest_mount_wins_and_names_are_whole() {
        let table = parse(TABLE);
        let at = |path: &str| above(&table, Path::new(path)).unwrap().id;
        assert_eq!(at("/mnt/with blank\\/f"), 36);
        assert_eq!(at("/mnt/f"), 38, "the later mount covers the earlier");
        assert_eq!(at("/mntother/f"), 27);
    }

    #[test]
    fn overlay_layers_are_listed_top_down() {
        let options = "rw,lowerdir=/l1:/l2,upperdir=/u,workdir=/w,lowerdir+=/l3";
        assert_eq!(overlay_layers(options), ["/u", "/l1", "/l2", "/l3"]);
        assert_eq!(overlay_layers("rw,lowerdir=/l1"), ["/l1"]);
    }

    #[test]
    fn an_identifier_that_is_not_listed_is_no_guess() {
        let table = parse("22 27 0:21 / / rw - ext4 /dev/vda rw\n");
        assert_eq!(find(&table, Some(22), None).unwrap().id, 22);
        assert_eq!(find(&table, Some(99), Some(Path::new("/"))), None);
    }
}
