//! Known answers on made-up machines.

use super::*;

/// A made-up root.
struct Root {
    dir: tempfile::TempDir,
}

impl Root {
    fn new(files: &[(&str, &str)]) -> Root {
        let root = Root { dir: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(file, text)| root.write(file, text));
        root
    }

    fn write(&self, file: &str, text: &str) {
        let at = self.dir.path().join(file);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, format!("{text}\n")).unwrap();
    }

    /// A disk with these settings of its queue.
    fn disk(&self, name: &str, settings: &[(&str, &str)]) {
        for (setting, text) in settings {
            self.write(&format!("sys/class/block/{name}/queue/{setting}"), text);
        }
    }

    fn read(&self, leaves: &[&str], mountinfo: &str) -> Vec<Reading> {
        let leaves = leaves.iter().map(|&leaf| leaf.to_owned()).collect();
        let mount = iowhy_linux::mounts::parse(mountinfo).into_iter().next();
        let devices = Devices { leaves, ..Devices::default() };
        read(self.dir.path(), &Storage { devices, mount })
    }
}

/// The values of a setting, subject by subject; `-` for what could not be read.
fn values(readings: &[Reading], key: Key) -> Vec<String> {
    let of_key = readings.iter().filter(|reading| reading.key == key);
    of_key.map(|reading| reading.value.clone().unwrap_or_else(|| "-".to_owned())).collect()
}

const NVME: [(&str, &str); 8] = [
    ("scheduler", "[none] mq-deadline kyber"),
    ("read_ahead_kb", "128"),
    ("nr_requests", "1023"),
    ("wbt_lat_usec", "2000"),
    ("iostats", "1"),
    ("nomerges", "0"),
    ("rotational", "0"),
    ("write_cache", "write through"),
];

#[test]
fn an_nvme_disk_reads_as_it_was_written() {
    let root = Root::new(&[]);
    root.disk("nvme0n1", &NVME);
    let all = root.read(&["nvme0n1"], "27 1 259:2 / /data rw,noatime - ext4 /dev/nvme0n1p2 rw");
    for (key, value) in [
        (Key::Scheduler, "none"),
        (Key::ReadAhead, "128"),
        (Key::Requests, "1023"),
        (Key::WritebackThrottle, "2000"),
        (Key::Iostats, "1"),
        (Key::Nomerges, "0"),
        (Key::Rotational, "0"),
        (Key::WriteCache, "write through"),
        (Key::AccessTime, "noatime"),
    ] {
        assert_eq!(values(&all, key), [value], "{}", key.id());
    }
    let scheduler = all.iter().find(|r| r.key == Key::Scheduler).unwrap();
    assert_eq!(scheduler.offered, ["none", "mq-deadline", "kyber"]);
    assert_eq!(scheduler.subject.as_deref(), Some("nvme0n1"));
    assert_eq!(scheduler.file.as_deref(), Some("/sys/class/block/nvme0n1/queue/scheduler"));
}

#[test]
fn devices_that_agree_share_a_reading_and_others_stand_apart() {
    let root = Root::new(&[]);
    root.disk("sda", &[("scheduler", "none [bfq]"), ("read_ahead_kb", "128"), ("nomerges", "2")]);
    root.disk("sdb", &[("scheduler", "none [bfq]"), ("read_ahead_kb", "4096"), ("nomerges", "2")]);
    let all = root.read(&["sda", "sdb"], "");
    let of = |key: Key| -> Vec<(String, String)> {
        let of_key = all.iter().filter(|r| r.key == key);
        of_key.map(|r| (r.subject.clone().unwrap(), r.value.clone().unwrap_or_default())).collect()
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(of(Key::Scheduler), [pair("sda sdb", "bfq")]);
    assert_eq!(of(Key::ReadAhead), [pair("sda", "128"), pair("sdb", "4096")]);
    assert_eq!(of(Key::Nomerges), [pair("sda sdb", "2")]);
    // To be changed each is one.
    let devices = Devices { leaves: vec!["sda".into(), "sdb".into()], ..Devices::default() };
    let each = read_each(root.dir.path(), &Storage { devices, mount: None }, Key::Scheduler);
    assert_eq!(each.iter().map(|r| r.subject.as_deref()).collect::<Vec<_>>(), [Some("sda"), Some("sdb")]);
    // Two that could not be read are two: nobody knows whether they are the same.
    assert_eq!(of(Key::Iostats), [pair("sda", ""), pair("sdb", "")]);
}

#[test]
fn a_stack_and_a_file_system_of_its_own_number_have_windows_of_their_own() {
    let root = Root::new(&[
        ("sys/class/bdi/btrfs-1/read_ahead_kb", "1"),
        ("sys/fs/btrfs/1234/bdi/read_ahead_kb", "4096"),
        ("sys/fs/btrfs/1234/devices/sda/size", "1"),
    ]);
    root.disk("sda", &[("read_ahead_kb", "128")]);
    root.disk("dm-0", &[("read_ahead_kb", "512")]);
    let devices = Devices { leaves: vec!["sda".into()], stack: Some("dm-0".into()), ..Devices::default() };
    let stacked = read(root.dir.path(), &Storage { devices, mount: None });
    assert_eq!(values(&stacked, Key::ReadAhead), ["512"]);
    let btrfs = root.read(&["sda"], "36 27 0:44 / /data rw,relatime - btrfs /dev/sda rw,compress=zstd:3");
    assert_eq!(values(&btrfs, Key::ReadAhead), ["4096"]);
    assert_eq!(values(&btrfs, Key::MountOption), ["compress=zstd:3"]);
    // Without a window of its own it is the device's.
    let overlay = root.read(&["sda"], "36 27 0:45 / /data rw - overlay overlay rw");
    assert_eq!(values(&overlay, Key::ReadAhead), ["128"]);
}

#[test]
fn a_served_file_system_has_a_window_where_it_can_be_told_which() {
    let root = Root::new(&[
        ("sys/class/bdi/0:51/read_ahead_kb", "256"),
        ("sys/class/bdi/8:1-fuseblk/read_ahead_kb", "64"),
        ("sys/class/bdi/8:1/read_ahead_kb", "128"),
        ("sys/class/bdi/cifs-7/read_ahead_kb", "2048"),
        ("sys/class/bdi/ceph-1/read_ahead_kb", "8192"),
        ("sys/class/bdi/ceph-2/read_ahead_kb", "4096"),
    ]);
    let of = |number: &str, kind: &str| {
        let all = root.read(&[], &format!("36 27 {number} / /data rw - {kind} server:/x rw"));
        let found: Vec<Reading> = all.into_iter().filter(|r| r.key.group() == Group::Queue).collect();
        assert!(found.iter().all(|r| r.key == Key::ReadAhead && r.subject.as_deref() == Some("/data")));
        found
    };
    for (number, kind, value, name) in [
        ("0:51", "nfs4", "256", "0:51"),
        ("0:51", "fuse.sshfs", "256", "0:51"),
        ("0:60", "cifs", "2048", "cifs-7"),
        ("8:1", "fuseblk", "64", "8:1-fuseblk"),
    ] {
        let found = of(number, kind);
        assert_eq!(values(&found, Key::ReadAhead), [value], "{kind}");
        assert_eq!(found[0].file, Some(format!("/sys/class/bdi/{name}/read_ahead_kb")), "{kind}");
    }
    // Two of one type: the kernel does not tell which is whose.
    let ceph = of("0:61", "ceph");
    let why = ceph[0].limitation.as_ref().unwrap();
    assert!(ceph[0].value.is_none() && why.contains("ceph-1, ceph-2"), "{why}");
    // No window, none of this type, and a disk's own, which is that of its queue.
    assert!(of("0:62", "9p").is_empty() && of("0:63", "tmpfs").is_empty() && of("8:1", "ext4").is_empty());
}

#[test]
fn what_is_missing_says_so_and_nothing_is_guessed() {
    let root = Root::new(&[]);
    let all = root.read(&["vda"], "");
    assert!(all.iter().all(|reading| reading.value.is_none()), "{all:?}");
    for reading in &all {
        assert!(reading.limitation.as_ref().is_some_and(|why| !why.is_empty()), "{reading:?}");
    }
    let keys: std::collections::HashSet<Key> = all.iter().map(|reading| reading.key).collect();
    assert!(keys.contains(&Key::Governor) && keys.contains(&Key::Iostats) && keys.contains(&Key::IoLimit));
    // No device: no queue to speak of.
    assert!(root.read(&[], "").iter().all(|reading| reading.key.group() != Group::Queue));
}

#[test]
fn of_ratio_and_bytes_the_one_that_counts_is_shown() {
    let root = Root::new(&[
        ("proc/sys/vm/dirty_bytes", "0"),
        ("proc/sys/vm/dirty_ratio", "20"),
        ("proc/sys/vm/dirty_background_bytes", "16777216"),
        ("proc/sys/vm/dirty_background_ratio", "0"),
    ]);
    let all = root.read(&[], "");
    assert_eq!(values(&all, Key::DirtyRatio), ["20"]);
    assert_eq!(values(&all, Key::DirtyBackgroundBytes), ["16777216"]);
    assert!(values(&all, Key::DirtyBytes).is_empty() && values(&all, Key::DirtyBackgroundRatio).is_empty());
}

#[test]
fn processors_say_governor_driver_and_active_mitigations() {
    let cpu = "sys/devices/system/cpu";
    let root = Root::new(&[
        (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave"),
        (&format!("{cpu}/cpu0/cpufreq/scaling_driver"), "intel_pstate"),
        (&format!("{cpu}/cpu0/cpufreq/scaling_available_governors"), "performance powersave"),
        (&format!("{cpu}/cpufreq/policy0/scaling_governor"), "powersave"),
        (&format!("{cpu}/cpufreq/policy0/scaling_available_governors"), "performance powersave"),
        (&format!("{cpu}/cpufreq/policy1/scaling_governor"), "performance"),
        (&format!("{cpu}/cpu1/cpufreq/scaling_governor"), "performance"),
        (&format!("{cpu}/cpufreq/ondemand"), "no processor"),
        (&format!("{cpu}/vulnerabilities/meltdown"), "Mitigation: PTI"),
        (&format!("{cpu}/vulnerabilities/mds"), "Not affected"),
        (&format!("{cpu}/vulnerabilities/retbleed"), "Vulnerable"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
    ]);
    let all = root.read(&[], "");
    let of = |key: Key| all.iter().find(|reading| reading.key == key).unwrap();
    assert_eq!(of(Key::Governor).value.as_deref(), Some("performance powersave"));
    assert_eq!(of(Key::Governor).details, ["driver intel_pstate"]);
    assert_eq!(of(Key::Governor).offered, ["performance", "powersave"]);
    // To change it each group of CPUs is one.
    let each = read_each(root.dir.path(), &Storage::default(), Key::Governor);
    let file = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor";
    assert_eq!((each[0].file.as_deref(), each[0].offered.len()), (Some(file), 2));
    assert_eq!(values(&each, Key::Governor), ["powersave", "performance"]);
    assert_eq!(of(Key::Mitigations).value.as_deref(), Some("1 of 3"));
    assert_eq!(of(Key::Mitigations).details, ["meltdown"]);
    assert_eq!((of(Key::Thp).value.as_deref(), of(Key::Thp).offered.len()), (Some("madvise"), 3));
}

#[test]
fn options_of_a_mount_that_matter_are_picked_out() {
    let root = Root::new(&[]);
    let mounted =
        "27 1 254:0 / /data rw,nosuid,sync - ext4 /dev/vda rw,data=journal,discard,resuid=1,nobarrier";
    let all = root.read(&[], mounted);
    assert_eq!(values(&all, Key::AccessTime), ["strictatime"], "neither relatime nor noatime is said");
    assert_eq!(values(&all, Key::LazyTime), ["off"]);
    assert_eq!(values(&all, Key::MountOption), ["sync", "data=journal", "discard", "nobarrier"]);
    assert_eq!(all.iter().find(|r| r.key == Key::AccessTime).unwrap().subject.as_deref(), Some("/data"));
}

#[test]
fn limits_of_control_groups_of_both_versions_are_found() {
    let second = Root::new(&[
        ("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
        ("proc/self/cgroup", "0::/job/inner"),
        ("sys/class/block/vda/dev", "254:0"),
        ("sys/fs/cgroup/job/io.max", "254:0 rbps=1048576 wbps=max riops=max wiops=100"),
        ("sys/fs/cgroup/job/inner/io.max", "8:0 rbps=5 wbps=max riops=max wiops=max"),
        ("sys/fs/cgroup/job/inner/memory.max", "max"),
        ("sys/fs/cgroup/job/memory.max", "1073741824"),
        ("sys/fs/cgroup/job/inner/memory.high", "536870912"),
        ("sys/fs/cgroup/job/cpu.max", "150000 100000"),
    ]);
    let all = second.read(&["vda"], "");
    assert_eq!(values(&all, Key::IoLimit), ["2 limits"]);
    let limits = &all.iter().find(|r| r.key == Key::IoLimit).unwrap().details;
    assert!(limits[0].contains("1048576 bytes/s") && limits[1].contains("100 requests/s"), "{limits:?}");
    assert_eq!(values(&all, Key::MemoryLimit), ["1073741824"]);
    assert_eq!(values(&all, Key::MemoryHigh), ["536870912"]);
    assert_eq!(values(&all, Key::CpuLimit), ["1.5"]);

    let first = Root::new(&[
        (
            "proc/self/mountinfo",
            "35 31 0:31 / /cg/memory rw - cgroup cgroup rw,memory\n38 31 0:35 / /cg/blkio rw - cgroup cgroup rw,blkio",
        ),
        ("proc/self/cgroup", "7:blkio:/\n4:memory:/job"),
        ("sys/class/block/vda/dev", "254:0"),
        ("cg/blkio/blkio.throttle.read_bps_device", "254:0 500"),
        ("cg/memory/job/memory.limit_in_bytes", "2097152"),
        ("cg/memory/memory.limit_in_bytes", "9223372036854771712"),
    ]);
    let all = first.read(&["vda"], "");
    assert_eq!(
        (values(&all, Key::IoLimit), values(&all, Key::MemoryLimit)),
        (vec!["1 limit".into()], vec!["2097152".into()])
    );
    assert_eq!(
        (values(&all, Key::MemoryHigh), values(&all, Key::CpuLimit)),
        (vec!["none".into()], vec!["none".into()])
    );
}
