//! Debian's packages of debug information: finds or downloads one, and reads the functions in it. Nothing is unpacked: the
//! files of a package pass through memory one at a time.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::dwarf::{self, Function};

/// Modules that kernels of clouds, appliances and distributions have built in. A function of a module that is loaded has the
/// module's name with it, and that is enough.
const MODULES: [&str; 55] = [
    "9p",
    "9pnet",
    "9pnet_virtio",
    "ahci",
    "brd",
    "btrfs",
    "dm-crypt",
    "dm-mod",
    "erofs",
    "ext4",
    "f2fs",
    "fat",
    "fscache",
    "fuse",
    "isofs",
    "jbd2",
    "libahci",
    "libata",
    "libnvdimm",
    "lockd",
    "loop",
    "mbcache",
    "md-mod",
    "mq-deadline",
    "bfq",
    "kyber-iosched",
    "nbd",
    "nd_pmem",
    "netfs",
    "nfs",
    "nfs_acl",
    "nfsv3",
    "nfsv4",
    "null_blk",
    "nvme",
    "nvme-core",
    "overlay",
    "raid0",
    "raid1",
    "raid10",
    "raid456",
    "scsi_common",
    "scsi_mod",
    "sd_mod",
    "sg",
    "squashfs",
    "sunrpc",
    "vfat",
    "virtio",
    "virtio_blk",
    "virtio_pci",
    "virtio_ring",
    "virtio_scsi",
    "xfs",
    "zram",
];

/// What one package says.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Name and version of the package.
    pub(super) version: String,
    /// Functions of the kernel itself.
    pub(super) built_in: BTreeSet<Function>,
    /// Functions of modules.
    pub(super) modules: BTreeSet<Function>,
}

/// The package's file: itself where a file is named, else downloaded into a folder.
pub(super) fn find(name: &str, folder: &Path) -> Result<PathBuf, String> {
    if name.ends_with(".deb") {
        return Ok(PathBuf::from(name));
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let there = || {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let begin = format!("{name}_");
        files.into_iter().find(|path| {
            path.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| n.starts_with(&begin) && n.ends_with(".deb"))
        })
    };
    if there().is_none() {
        let status = Command::new("apt-get").args(["-qq", "download", name]).current_dir(folder).status();
        status.map_err(|e| format!("apt-get: {e}"))?;
    }
    there().ok_or_else(|| format!("apt-get download brought no {name}"))
}

/// Reads a package.
pub(super) fn read(deb: &Path) -> Result<Kernel, String> {
    let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", deb.display());
    let mut unpacker = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed(&e))?;
    let mut kernel = Kernel { version: version(deb)?, built_in: BTreeSet::new(), modules: BTreeSet::new() };
    if let Some(output) = unpacker.stdout.take() {
        let mut archive = tar::Archive::new(output);
        for entry in archive.entries().map_err(|e| failed(&e))? {
            let mut entry = entry.map_err(|e| failed(&e))?;
            let path = entry.path().map_err(|e| failed(&e))?.into_owned();
            let Some(file) = path.file_name().and_then(|n| n.to_str()) else { continue };
            let module = file.strip_suffix(".ko").or_else(|| file.strip_suffix(".ko.debug"));
            let built_in = file.starts_with("vmlinux-") && entry.header().entry_type().is_file();
            if !built_in && module.is_none_or(|m| !MODULES.contains(&m)) {
                continue;
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(|e| failed(&e))?;
            let found = dwarf::functions(&bytes).map_err(|e| format!("{file}: {e}"))?;
            if built_in { kernel.built_in.extend(found) } else { kernel.modules.extend(found) }
        }
    }
    match unpacker.wait() {
        Ok(status) if status.success() && !kernel.built_in.is_empty() => Ok(kernel),
        Ok(_) => Err(failed(&"no kernel with debug information in it")),
        Err(error) => Err(failed(&error)),
    }
}

fn version(deb: &Path) -> Result<String, String> {
    let output =
        Command::new("dpkg-deb").arg("--show").arg("--showformat=${Package} ${Version}").arg(deb).output();
    let output = output.map_err(|e| format!("dpkg-deb: {e}"))?;
    match String::from_utf8(output.stdout) {
        Ok(text) if output.status.success() && text.contains(' ') => Ok(text),
        _ => Err(format!("{}: no package of Debian", deb.display())),
    }
}
