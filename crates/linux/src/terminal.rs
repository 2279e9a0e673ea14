//! The controlling terminal of this process: whose it is, and which process group it serves.
//!
//! Non-goal: reading, writing or resizing it. Invariant: nothing is opened; opening a terminal can make it ours.

use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

/// A controlling terminal, and how this process stands to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// `st_rdev` of its device node.
    device: u64,
    /// Process group of this process.
    group: i32,
    /// The process group that gets what is typed.
    foreground: i32,
}

impl Terminal {
    /// The controlling terminal; `None` without one, or where `/proc` is not mounted.
    pub fn controlling() -> Option<Terminal> {
        Terminal::from_stat(&std::fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Reads `/proc/PID/stat`. proc_pid_stat(5): after the name in brackets come state, ppid, pgrp, session, tty_nr, tpgid.
    pub fn from_stat(stat: &str) -> Option<Terminal> {
        let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(2);
        let group = fields.next()?.parse().ok()?;
        // A signed number there, with the upper bits of the minor number on top.
        let packed = fields.nth(1)?.parse::<i32>().ok()? as u32;
        let foreground = fields.next()?.parse().ok()?;
        let (major, minor) = (packed >> 8 & 0xfff, packed & 0xff | packed >> 12 & 0xf_ff00);
        (packed != 0).then(|| Terminal { device: rustix::fs::makedev(major, minor), group, foreground })
    }

    /// Whether what is typed reaches our process group.
    pub fn is_ours(&self) -> bool {
        self.group == self.foreground
    }

    /// The user that its device node belongs to; `None` where the node is not seen from here.
    pub fn owner(&self) -> Option<u32> {
        self.of_stream().or_else(|| {
            let node = std::fs::metadata(self.path()?).ok()?;
            (node.rdev() == self.device).then(|| node.uid())
        })
    }

    /// A stream that leads to it tells even where the node is outside our file system.
    fn of_stream(&self) -> Option<u32> {
        let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        [input.as_fd(), output.as_fd(), errors.as_fd()].into_iter().find_map(|stream| {
            let status = rustix::fs::fstat(stream).ok()?;
            #[allow(clippy::useless_conversion)] // The width differs between machines.
            let same = u64::from(status.st_rdev) == self.device;
            let character = rustix::fs::FileType::from_raw_mode(status.st_mode).is_char_device();
            (same && character).then_some(status.st_uid)
        })
    }

    fn path(&self) -> Option<String> {
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        // Documentation/admin-guide/devices.txt: eight majors of 256 pseudo-terminals each, which sysfs does not list.
        if (136..144).contains(&major) {
            return Some(format!("/dev/pts/{}", (major - 136) * 256 + minor));
        }
        let facts = std::fs::read_to_string(format!("/sys/dev/char/{major}:{minor}/uevent")).ok()?;
        let name = facts.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
        Some(format!("/dev/{name}"))
    }
}

/// Whether any program may put input into the queue of its controlling terminal (ioctl TIOCSTI), as though it were typed:
/// the shell that reads there next carries it out. Kernels before 6.2 have no switch for it.
pub fn input_can_be_pushed() -> bool {
    let switch = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    switch.map_or(true, |value| value.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_stat_are_read_behind_any_name() {
        // tty_nr 34817 is 136:1.
        let found = Terminal::from_stat("12 (a) 3 (b) S 1 77 70 34817 77 4194560 9\n").unwrap();
        assert_eq!(found.device, rustix::fs::makedev(136, 1));
        assert_eq!(found.path().unwrap(), "/dev/pts/1");
        assert!(found.is_ours());
        assert!(!Terminal::from_stat("12 (x) S 1 77 70 34817 70 4194560").unwrap().is_ours());
        // 1048576 + 136 * 256 + 2: minor 258.
        let many = Terminal::from_stat("12 (x) S 1 77 70 1083394 -1 4194560").unwrap();
        assert_eq!((many.path().unwrap().as_str(), many.is_ours()), ("/dev/pts/258", false));
        assert_eq!(Terminal::from_stat("12 (x) S 1 77 70 0 -1 4194560"), None, "no terminal");
        for damaged in ["", "12 (x", "12 (x) S 1", "12 (x) S 1 77 70 tty 7"] {
            assert_eq!(Terminal::from_stat(damaged), None, "{damaged}");
        }
    }
}
