//! One boot of a guest as a plan: modules, file systems, steps. The words of the steps are those of `lab-guest`.

use std::time::Duration;

use super::machine::{Throttled, Time};
use super::packages::Series;

/// A plan.
#[derive(Clone, Debug)]
pub(super) struct Boot {
    /// What it is called, in the table and in the folder of what it wrote.
    pub(super) name: &'static str,
    /// The kernel.
    pub(super) kernel: Series,
    /// The clock.
    pub(super) time: Time,
    /// Features to take from the CPU.
    pub(super) cpu: &'static str,
    /// Memory.
    pub(super) memory_mib: u32,
    /// Disks of the emulator's.
    pub(super) disks: Vec<Throttled>,
    /// CPU time of the host after which it is ended.
    pub(super) limit: Duration,
    /// Modules to load, with their parameters; what they need comes by itself.
    pub(super) modules: Vec<(&'static str, &'static str)>,
    /// File systems to take along, by name; `image` steps unpack them from `/images/NAME`.
    pub(super) images: Vec<(&'static str, Making)>,
    /// What is done, in order.
    pub(super) steps: Vec<Vec<String>>,
}

impl Boot {
    /// Nothing to do yet.
    pub(super) fn new(name: &'static str, time: Time) -> Boot {
        Boot {
            name,
            kernel: Series::Present,
            time,
            cpu: "",
            memory_mib: 768,
            disks: Vec::new(),
            limit: Duration::from_secs(240),
            modules: Vec::new(),
            images: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// The same plan under another name.
    pub(super) fn again(&self, name: &'static str) -> Boot {
        Boot { name, ..self.clone() }
    }

    /// Loads a module.
    pub(super) fn module(&mut self, name: &'static str, parameters: &'static str) {
        self.modules.push((name, parameters));
    }

    /// Adds a step.
    pub(super) fn step(&mut self, words: &[&str]) {
        self.steps.push(words.iter().map(|&word| word.to_owned()).collect());
    }

    /// null_blk, and what its devices are made through.
    pub(super) fn null_disks(&mut self) {
        self.module("null_blk", "nr_devices=0");
        self.step(&["mount", "configfs", "configfs", "/sys/kernel/config", ""]);
    }

    /// A null block device with its attributes; needs [`Boot::null_disks`]. Returns its path, which older kernels number.
    pub(super) fn null_disk(&mut self, name: &str, attributes: &[(&str, &str)]) -> String {
        const FOLDER: &str = "/sys/kernel/config/nullb";
        let made = |step: &&Vec<String>| matches!(step.as_slice(), [word, at] if word == "mkdir" && at.starts_with(FOLDER));
        let number = self.steps.iter().filter(made).count();
        let folder = format!("{FOLDER}/{name}");
        self.step(&["mkdir", &folder]);
        for (attribute, value) in attributes.iter().chain(&[("power", "1")]) {
            self.step(&["write", &format!("{folder}/{attribute}"), value]);
        }
        let path =
            if self.kernel == Series::Old { format!("/dev/nullb{number}") } else { format!("/dev/{name}") };
        self.step(&["wait", &path]);
        path
    }

    /// Puts a new file system on a device and mounts it.
    pub(super) fn file_system(&mut self, kind: &'static str, making: Making, device: &str, at: &str) {
        if !self.images.iter().any(|(name, _)| *name == kind) {
            self.images.push((kind, making));
        }
        self.step(&["image", &format!("/images/{kind}"), device]);
        self.step(&["mount", kind, device, at, ""]);
    }

    /// Runs iowhy with words separated by spaces; its record is kept.
    pub(super) fn iowhy(&mut self, label: &str, options: &str, arguments: &str) {
        let mut words = vec!["run", label, options, "iowhy", "--quiet", "--json", "@record"];
        words.extend(arguments.split_ascii_whitespace());
        self.step(&words);
    }
}

/// A file system that the host makes, as `mke2fs` and its kin do it.
#[derive(Clone, Debug)]
pub(super) struct Making {
    /// The tool with its options; the file comes last.
    pub(super) command: Vec<&'static str>,
    /// Size of the file system.
    pub(super) bytes: u64,
}

/// ext4 of a size, without a journal to write in the background and without lazy initialisation.
pub(super) fn ext4(bytes: u64) -> Making {
    mke2fs(&["-O", "^has_journal"], bytes)
}

/// The same with its journal.
pub(super) fn ext4_with_journal(bytes: u64) -> Making {
    mke2fs(&[], bytes)
}

fn mke2fs(options: &[&'static str], bytes: u64) -> Making {
    let without_lazy_work = "lazy_itable_init=0,lazy_journal_init=0";
    let mut command = vec!["mke2fs", "-q", "-F", "-t", "ext4", "-E", without_lazy_work, "-b", "4096"];
    command.extend(options);
    Making { command, bytes }
}

/// XFS, which is never smaller than 300 MB; only its full parts travel, and a disk that is memory holds no others.
pub(super) fn xfs() -> Making {
    Making { command: vec!["mkfs.xfs", "-q", "-f"], bytes: 320 << 20 }
}

/// Minix, version 3.
pub(super) fn minix(bytes: u64) -> Making {
    Making { command: vec!["mkfs.minix", "-3"], bytes }
}
