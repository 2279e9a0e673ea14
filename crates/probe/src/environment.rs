//! Facts about the machine and the block devices under a target, from procfs and sysfs.
//!
//! Invariant: works without root; what cannot be read is `None`, never a guess. Texts of the kernel are read by pure
//! functions with known answers.

use std::fs;
use std::path::{Path, PathBuf};

use iowhy_core::environment::Environment;
use iowhy_linux::choice;
use iowhy_linux::control_group::ControlGroups;
use iowhy_linux::mounts::{self, Mount};

use crate::machine;
use crate::setting::Storage;
use crate::target::devices;
use crate::target::{Status, Target};
use iowhy_linux::block::devices::Devices;
use iowhy_linux::block::sysfs::{self, Sysfs};

/// Gathers what can be known without root; what cannot is `None`.
pub fn environment(target: &Target) -> Environment {
    let table = mounts::read();
    let under = devices::under(target);
    // The members of a stripe stand on file systems of their own; the first speaks for all, the devices are those of all.
    let target = target.data_targets().first().copied().unwrap_or(target);
    let status = target.status();
    let mount =
        status.filter(|s| s.holds_files()).and_then(|s| mounts::find(&table, s.mount_id, target.path()));
    gather(under, status, mount, target.file_system())
}

/// Bytes that the kernel reads ahead of a stream on the target.
pub(crate) fn read_ahead_bytes(target: &Target) -> Option<u64> {
    let display = devices::under(target).display?;
    read_ahead_kib(&Queue::new(&display), &display, target.status()).map(|kib| kib * 1024)
}

/// The same for a path that is only looked at.
pub fn environment_of(path: &Path, place: &Storage) -> Environment {
    let mount = place.mount.as_ref();
    let file_system = mount.map(|mount| mount.file_system.clone());
    gather(place.devices.clone(), Status::from_path(path).as_ref(), mount, file_system)
}

fn gather(
    under: Devices,
    status: Option<&Status>,
    mount: Option<&Mount>,
    file_system: Option<String>,
) -> Environment {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let memory_bytes = machine::memory_bytes();
    let groups = ControlGroups::of_process(None);
    let mut environment = Environment {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        cpu: machine::cpu(&cpuinfo),
        cpus: machine::cpus(),
        memory_bytes,
        memory_limit_bytes: machine::memory_limit_bytes(&groups, memory_bytes),
        file_system,
        mount_options: mount.map(Mount::all_options),
        virtualization: machine::virtualization(&cpuinfo),
        privileged: rustix::process::geteuid().is_root(),
        throttle: throttle(&groups.throttles(&under.numbered(Path::new("/")))),
        ..Environment::default()
    };
    add_device(&mut environment, under, status);
    environment
}

/// Adds what sysfs tells of the device that the target stands on.
fn add_device(environment: &mut Environment, under: Devices, status: Option<&Status>) {
    if let Some(display) = &under.display {
        let stack = Queue::new(display);
        let leaf = under.leaves.first().map(|name| Queue::new(name));
        environment.device_model = stack.model().or_else(|| leaf.as_ref().and_then(Queue::model));
        environment.scheduler =
            leaf.as_ref().and_then(|q| Some(choice::parse(&q.text("queue/scheduler")?)?.0));
        environment.queue_requests = leaf.as_ref().and_then(|q| q.number("queue/nr_requests"));
        environment.rotational = stack.number("queue/rotational").map(|flag| flag != 0);
        environment.logical_block_bytes = stack.number("queue/logical_block_size");
        environment.read_ahead_bytes = read_ahead_kib(&stack, display, status).map(|kib| kib * 1024);
    }
    environment.device = under.display;
    environment.devices = under.leaves;
}

/// The window that applies to the target: the file system's own where it keeps one (anonymous device numbers), else
/// that of the device under it.
fn read_ahead_kib(stack: &Queue, display: &str, status: Option<&Status>) -> Option<u64> {
    let of_device = || stack.number("queue/read_ahead_kb");
    match status.filter(|s| s.holds_files() && s.device.0 == 0) {
        None => of_device(),
        Some(s) => {
            let of_file_system = format!("/sys/class/bdi/{}:{}/read_ahead_kb", s.device.0, s.device.1);
            sysfs::number(Path::new(&of_file_system))
                .or_else(|| sysfs::number(&Sysfs::new().btrfs_of(display)?.join("bdi/read_ahead_kb")))
        }
    }
}

/// Throttles in one line.
fn throttle(found: &[String]) -> Option<String> {
    (!found.is_empty()).then(|| found.join("; "))
}

/// A whole disk's directory in sysfs.
struct Queue {
    dir: Option<PathBuf>,
}

impl Queue {
    fn new(name: &str) -> Queue {
        Queue { dir: Sysfs::new().device_of_name(name).map(|dir| sysfs::whole_disk(&dir).to_owned()) }
    }

    fn text(&self, file: &str) -> Option<String> {
        sysfs::text(&self.dir.as_ref()?.join(file))
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.parse().ok()
    }

    /// What the device says it is: its model, the name of its mapping, its backing file, or its driver.
    fn model(&self) -> Option<String> {
        let driver = || {
            Some(
                fs::read_link(self.dir.as_ref()?.join("device/driver"))
                    .ok()?
                    .file_name()?
                    .to_string_lossy()
                    .into_owned(),
            )
        };
        self.text("device/model")
            .or_else(|| Some(format!("device-mapper {}", self.text("dm/name")?)))
            .or_else(|| Some(format!("md {}", self.text("md/level")?)))
            .or_else(|| Some(format!("loop on {}", self.text("loop/backing_file")?)))
            .or_else(driver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Needs, resolve};

    fn of(spec: &(impl AsRef<std::ffi::OsStr> + ?Sized)) -> Environment {
        let needs = Needs { scratch_bytes: 1 << 20, ..Needs::default() };
        environment(&resolve(spec, &needs, &mut |_, _| {}).unwrap())
    }

    #[test]
    fn false_and_memory_targets_have_no_device_and_still_a_machine() {
        let null = of("null");
        assert_eq!((null.file_system, null.device, null.devices.len()), (None, None, 0));
        assert!(!null.kernel.is_empty() && !null.cpu.is_empty() && null.cpus > 0 && null.memory_bytes > 0);
        let memory = of("memory");
        assert_eq!((memory.file_system.as_deref(), memory.device), (Some("tmpfs"), None));
        assert_eq!(of("/dev/zero").file_system, None, "not that of the node");
    }

    #[test]
    fn a_directory_has_a_file_system_and_either_devices_or_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let needs = Needs { scratch_bytes: 1 << 20, ..Needs::default() };
        let target = resolve(dir.path(), &needs, &mut |_, _| {}).unwrap();
        let under = devices::under(&target);
        assert_ne!(under.leaves.is_empty(), under.reason.is_none(), "{under:?}");
        let environment = environment(&target);
        assert_eq!(environment.devices, under.leaves);
        assert!(environment.file_system.is_some() && environment.mount_options.is_some());
        if let Some(limit) = environment.memory_limit_bytes {
            assert!(limit < environment.memory_bytes);
        }
    }
}
