//! Reads settings from procfs and sysfs below a root, which tests replace.
//!
//! Invariant: an unreadable setting has a reason; no value is inferred from another.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use iowhy_core::problem::Problem;
use iowhy_core::setting::{Group, Key, Reading};
use iowhy_linux::choice;
use iowhy_linux::control_group::ControlGroups;
use iowhy_linux::mounts::Mount;

use super::{dm_crypt, mount_time};
use crate::target::devices;
use iowhy_linux::block::devices::Devices;
use iowhy_linux::block::sysfs::{Sysfs, whole_disk};
use iowhy_linux::served;

/// Devices and mount under a path.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// The block devices.
    pub devices: Devices,
    /// The mount; `None` for a device.
    pub mount: Option<Mount>,
}

impl Storage {
    /// Looks at a path without opening it.
    ///
    /// # Errors
    /// A refusal where there is nothing of that name.
    pub fn under(path: &Path) -> Result<Storage, Problem> {
        let (devices, mount) = devices::under_path(path)?;
        Ok(Storage { devices, mount })
    }
}

/// Reads every setting of the machine and of the storage under a path, in the order of [`Key::ALL`]; `root` holds
/// `proc` and `sys`.
pub fn read(root: &Path, place: &Storage) -> Vec<Reading> {
    let files = Files { root };
    let mut found = vec![governor(&files), mitigations(&files), thp(&files)];
    found.extend(memory(&files));
    found.extend(queues(&files, place));
    found.extend(encryption(&files, place));
    found.extend(place.mount.iter().flat_map(mount));
    found.extend(control_groups(root, &place.devices));
    found
}

/// One setting, a reading for each device, mount or group of CPUs that has one of its own; none where the path has none of
/// that kind.
pub fn read_each(root: &Path, place: &Storage, key: Key) -> Vec<Reading> {
    let files = Files { root };
    match key.group() {
        // Of a pair also the one that does not count.
        Group::Memory => vec![files.reading(key, &format!("/proc/sys/vm/{}", key.id()))],
        Group::Queue if !place.devices.leaves.is_empty() => queues_of(&files, place, key),
        _ if key == Key::Governor => governors(&files),
        _ => read(root, place).into_iter().filter(|reading| reading.key == key).collect(),
    }
}

/// A setting of one device, by its kernel name.
pub fn read_device(root: &Path, device: &str, key: Key) -> Reading {
    let files = Files { root };
    match key.group() {
        Group::Encryption => encryption_of(&files, device, &[key]).remove(0),
        _ => queue(&files, key, device),
    }
}

/// Files below the root, named as if the root were `/`.
struct Files<'a> {
    root: &'a Path,
}

impl Files<'_> {
    fn at(&self, file: &str) -> PathBuf {
        self.root.join(file.trim_start_matches('/'))
    }

    /// The text without the blanks around it, or why there is none.
    fn text(&self, file: &str) -> Result<String, String> {
        match fs::read_to_string(self.at(file)) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("there is no {file}")),
            Err(error) => Err(format!("{file}: {error}")),
        }
    }

    /// Names in a directory, sorted; none where there is no such directory.
    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A plain file as a reading.
    fn reading(&self, key: Key, file: &str) -> Reading {
        let reading = match self.text(file) {
            Ok(text) => Reading::new(key, text),
            Err(why) => Reading::unreadable(key, why),
        };
        Reading { file: Some(file.to_owned()), ..reading }
    }

    /// A file that lists what is offered, the choice in brackets.
    fn choice(&self, key: Key, file: &str) -> Reading {
        let reading = match self.text(file).map(|text| choice::parse(&text)) {
            Ok(Some((chosen, offered))) => Reading { offered, ..Reading::new(key, chosen) },
            Ok(None) => Reading::unreadable(key, format!("{file} is empty")),
            Err(why) => Reading::unreadable(key, why),
        };
        Reading { file: Some(file.to_owned()), ..reading }
    }
}

/// Where CPUs are.
const CPUS: &str = "/sys/devices/system/cpu";

/// How clock rates are chosen, by all CPUs, with the driver that carries it out.
fn governor(files: &Files<'_>) -> Reading {
    let is_cpu = |name: &String| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
    let of = |file: &str| {
        let cpus = files.names(CPUS).into_iter().filter(is_cpu);
        let mut all: Vec<String> =
            cpus.filter_map(|cpu| files.text(&format!("{CPUS}/{cpu}/cpufreq/{file}")).ok()).collect();
        all.sort();
        all.dedup();
        all.join(" ")
    };
    let (governor, driver) = (of("scaling_governor"), of("scaling_driver"));
    if governor.is_empty() {
        return Reading::unreadable(
            Key::Governor,
            format!("no cpufreq in {CPUS}: this kernel shows no clock rate"),
        );
    }
    let details = if driver.is_empty() { Vec::new() } else { vec![format!("driver {driver}")] };
    Reading {
        file: Some(format!("{CPUS}/cpu*/cpufreq/scaling_governor")),
        offered: of("scaling_available_governors").split_whitespace().map(str::to_owned).collect(),
        details,
        ..Reading::new(Key::Governor, governor)
    }
}

/// The same, a reading for each group of CPUs that share a clock.
fn governors(files: &Files<'_>) -> Vec<Reading> {
    let policies =
        files.names(&format!("{CPUS}/cpufreq")).into_iter().filter(|name| name.starts_with("policy"));
    let readings: Vec<Reading> = policies
        .map(|policy| {
            let directory = format!("{CPUS}/cpufreq/{policy}");
            let reading = files.reading(Key::Governor, &format!("{directory}/scaling_governor"));
            let offered = files.text(&format!("{directory}/scaling_available_governors")).unwrap_or_default();
            let offered = offered.split_whitespace().map(str::to_owned).collect();
            Reading { subject: Some(policy), offered, ..reading }
        })
        .collect();
    if readings.is_empty() { vec![governor(files)] } else { readings }
}

/// Workarounds that are active; details name them.
fn mitigations(files: &Files<'_>) -> Reading {
    const FAULTS: &str = "/sys/devices/system/cpu/vulnerabilities";
    let names = files.names(FAULTS);
    if names.is_empty() {
        return Reading::unreadable(Key::Mitigations, format!("there is no {FAULTS}"));
    }
    let active = |name: &String| {
        files.text(&format!("{FAULTS}/{name}")).is_ok_and(|text| text.contains("Mitigation:"))
    };
    let details: Vec<String> = names.iter().filter(|name| active(name)).cloned().collect();
    Reading {
        file: Some(format!("{FAULTS}/*")),
        value: Some(format!("{} of {}", details.len(), names.len())),
        details,
        ..Reading::new(Key::Mitigations, "")
    }
}

fn thp(files: &Files<'_>) -> Reading {
    files.choice(Key::Thp, "/sys/kernel/mm/transparent_hugepage/enabled")
}

/// Dirty limits: of each pair of ratio and bytes the one that counts.
fn memory(files: &Files<'_>) -> Vec<Reading> {
    let vm = |key: Key| files.reading(key, &format!("/proc/sys/vm/{}", key.id()));
    let pair = |ratio: Key, bytes: Key| {
        let by_bytes = vm(bytes);
        if by_bytes.number().is_some_and(|n| n > 0) { by_bytes } else { vm(ratio) }
    };
    vec![
        pair(Key::DirtyRatio, Key::DirtyBytes),
        pair(Key::DirtyBackgroundRatio, Key::DirtyBackgroundBytes),
        vm(Key::DirtyExpire),
        vm(Key::DirtyWriteback),
        vm(Key::Swappiness),
    ]
}

/// The queues of the devices under the path. Devices on which a setting is the same share a reading. A served file system has
/// no device, and its own read-ahead alone.
fn queues(files: &Files<'_>, place: &Storage) -> Vec<Reading> {
    let mut found: Vec<Reading> = Vec::new();
    if place.devices.leaves.is_empty() {
        return own_window(files, place).into_iter().collect();
    }
    for key in Key::ALL.iter().copied().filter(|key| key.group() == Group::Queue) {
        let begin = found.len();
        for reading in queues_of(files, place, key) {
            let same = |one: &&mut Reading| one.value.is_some() && one.value == reading.value;
            match found[begin..].iter_mut().find(same) {
                Some(one) => {
                    let names = [one.subject.take(), reading.subject].into_iter().flatten();
                    one.subject = Some(names.collect::<Vec<_>>().join(" "));
                }
                None => found.push(reading),
            }
        }
    }
    found
}

/// A setting of the queues, device by device.
fn queues_of(files: &Files<'_>, place: &Storage, key: Key) -> Vec<Reading> {
    let devices = &place.devices;
    match (key, own_window(files, place), &devices.stack) {
        // The window that counts is that of the file system, or of the topmost device.
        (Key::ReadAhead, Some(own), _) => vec![own],
        (Key::ReadAhead, None, Some(stack)) => vec![queue(files, key, stack)],
        _ => devices.leaves.iter().map(|leaf| queue(files, key, leaf)).collect(),
    }
}

fn queue(files: &Files<'_>, key: Key, device: &str) -> Reading {
    let class = files.at(&format!("/sys/class/block/{device}"));
    // A link leads to the device's own directory, from which a partition finds its disk.
    let directory = fs::canonicalize(&class).unwrap_or(class);
    let root = fs::canonicalize(files.root).unwrap_or_else(|_| files.root.to_owned());
    let disk = whole_disk(&directory);
    let disk = disk.strip_prefix(&root).unwrap_or(disk);
    let file = format!("/{}/queue/{}", disk.display().to_string().trim_start_matches('/'), key.id());
    let reading = if key == Key::Scheduler { files.choice(key, &file) } else { files.reading(key, &file) };
    Reading { subject: Some(device.to_owned()), ..reading }
}

/// The read-ahead window of a file system that keeps its own: a served one, or one on several devices. That of a block device is
/// `queue/read_ahead_kb` under another name (both show `ra_pages` of one `backing_dev_info`) and is not listed twice.
fn own_window(files: &Files<'_>, place: &Storage) -> Option<Reading> {
    let mount = place.mount.as_ref()?;
    let reading = match window_of(files.root, mount)? {
        Ok(file) => files.reading(Key::ReadAhead, &file),
        // The window of the device below is none that counts here; without one there is nothing else to show.
        Err(why) => Reading::unreadable(Key::ReadAhead, why),
    };
    Some(Reading { subject: Some(mount.point.display().to_string()), ..reading })
}

/// The file with the read-ahead window that a mount keeps for itself, or why it cannot be told; `None`: it keeps none. NFS and
/// FUSE name it by the device number of the mount (Documentation/ABI/testing/sysfs-class-bdi). SMB, Ceph, 9p and others number
/// theirs (`cifs-1`, by `super_setup_bdi()` in fs/super.c): then it is known only where there is one of that type.
pub(super) fn window_of(root: &Path, mount: &Mount) -> Option<Result<String, String>> {
    const WINDOWS: &str = "/sys/class/bdi";
    let files = Files { root };
    let ((major, minor), kind) = (mount.device, mount.file_system.as_str());
    let there = |name: &str| {
        let file = format!("{WINDOWS}/{name}/read_ahead_kb");
        files.at(&file).exists().then_some(Ok(file))
    };
    if major != 0 {
        return if kind == "fuseblk" { there(&format!("{major}:{minor}-fuseblk")) } else { None };
    }
    if kind == "btrfs" {
        let member = Path::new(&mount.source).file_name()?.to_string_lossy().into_owned();
        let node = fs::canonicalize(&mount.source).ok();
        let member =
            node.and_then(|node| Some(node.file_name()?.to_string_lossy().into_owned())).unwrap_or(member);
        let home = Sysfs::at(files.at("/sys")).btrfs_of(&member)?;
        let home = home.strip_prefix(root).unwrap_or(&home);
        let file = format!("/{}/bdi/read_ahead_kb", home.display().to_string().trim_start_matches('/'));
        return files.at(&file).exists().then_some(Ok(file));
    }
    if let Some(exact) = there(&format!("{major}:{minor}")) {
        return Some(exact);
    }
    // Layers of an overlay have windows of their own, and theirs count.
    let served = served::by_type(kind)?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let of_type = |name: &String| {
        name.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_number)
    };
    let names: Vec<String> = files.names(WINDOWS).into_iter().filter(of_type).collect();
    match names.as_slice() {
        [] => None,
        [one] => there(one),
        several => Some(Err(format!(
            "{served}: the kernel numbers the windows of {kind} mounts ({}) and does not tell which is this one's",
            several.join(", ")
        ))),
    }
}

/// Flags of the encrypted devices under the path, setting by setting.
fn encryption(files: &Files<'_>, place: &Storage) -> Vec<Reading> {
    let keys: Vec<Key> = Key::ALL.iter().copied().filter(|key| key.group() == Group::Encryption).collect();
    let of_each = place.devices.crypt.iter().flat_map(|device| encryption_of(files, device, &keys));
    let mut found: Vec<Reading> = of_each.collect();
    found.sort_by_key(|reading| keys.iter().position(|key| *key == reading.key));
    found
}

/// Flags of one encrypted device: its table is read once. Details are its name, and the other options of its table.
fn encryption_of(files: &Files<'_>, device: &str, keys: &[Key]) -> Vec<Reading> {
    let read = dm_crypt::options(files.root, device);
    let of = |key: &Key| {
        let reading = match &read {
            Err(why) => Reading::unreadable(*key, why.clone()),
            Ok((name, options)) => {
                let is_set = options.iter().any(|option| option == key.id());
                let others = options.iter().filter(|option| *option != key.id());
                let details = std::iter::once(name).chain(others).cloned().collect();
                Reading { details, ..Reading::new(*key, if is_set { "1" } else { "0" }) }
            }
        };
        Reading { subject: Some(device.to_owned()), ..reading }
    };
    keys.iter().map(of).collect()
}

/// Options of a mount that cost or hide something, beside its times of access.
const OPTIONS: [&str; 14] = [
    "sync",
    "dirsync",
    "data=journal",
    "data=writeback",
    "nobarrier",
    "barrier=0",
    "nodelalloc",
    "discard",
    "discard=async",
    "dax",
    "dax=always",
    "compress",
    "compress-force",
    "nodatacow",
];

fn mount(mount: &Mount) -> Vec<Reading> {
    let options = mount.all_options();
    let options: Vec<&str> = options.split(',').collect();
    let of = |key: Key, value: &str| Reading {
        subject: Some(mount.point.display().to_string()),
        file: Some("/proc/self/mountinfo".to_owned()),
        ..Reading::new(key, value)
    };
    let time =
        |key: Key| Reading { offered: mount_time::offered(key), ..of(key, mount_time::present(key, mount)) };
    let mut found = vec![time(Key::AccessTime), time(Key::LazyTime)];
    let wanted = |option: &&&str| {
        OPTIONS.contains(*option)
            || option.split_once('=').is_some_and(|(name, _)| name.starts_with("compress"))
    };
    let option =
        |option: &&str| Reading { details: vec![mount.file_system.clone()], ..of(Key::MountOption, option) };
    found.extend(options.iter().filter(wanted).map(option));
    found
}

fn control_groups(root: &Path, devices: &Devices) -> Vec<Reading> {
    let groups = ControlGroups::below(root);
    let keys = [Key::IoLimit, Key::MemoryLimit, Key::MemoryHigh, Key::CpuLimit];
    if !groups.are_visible() {
        let why = "no control group of this process can be seen: not mounted, or hidden";
        return keys.map(|key| Reading::unreadable(key, why)).to_vec();
    }
    let throttles = groups.throttles(&devices.numbered(root));
    let number = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), |n| n.to_string());
    let io = match throttles.len() {
        0 => "none".to_owned(),
        1 => "1 limit".to_owned(),
        n => format!("{n} limits"),
    };
    // Version 1 writes "no limit" as the greatest number of whole pages.
    let memory = groups.memory_limit_bytes().filter(|limit| *limit < i64::MAX as u64 >> 12 << 12);
    vec![
        Reading { details: throttles, ..Reading::new(Key::IoLimit, io) },
        Reading::new(Key::MemoryLimit, number(memory)),
        Reading::new(Key::MemoryHigh, number(groups.memory_high_bytes())),
        Reading::new(Key::CpuLimit, groups.cpu_limit().map_or_else(|| "none".to_owned(), |n| n.to_string())),
    ]
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
