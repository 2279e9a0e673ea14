//! What a setting means here: costs, hidden things, limits. Each judgement stands on the kernel's or a tool's own
//! documentation, or says that it was not measured and what measures it.
//!
//! Invariant: a setting at its neutral value gets no judgement, and no judgement rests on hearsay.

use iowhy_core::setting::{Group, Key, Reading};
use schemars::JsonSchema;
use serde::Serialize;

/// What a setting does to who measures or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Something cannot be seen, or is not what it seems.
    Hides,
    /// It takes time or bandwidth.
    Costs,
    /// It may take or save time: that depends on device and load.
    MayCost,
    /// It is an upper limit.
    Limits,
    /// It is fast because something is not safe.
    Unsafe,
}

impl Effect {
    /// One word for the screen.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Hides => "hides",
            Effect::Costs => "costs",
            Effect::MayCost => "may cost",
            Effect::Limits => "limits",
            Effect::Unsafe => "unsafe",
        }
    }
}

/// A judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The kind.
    pub effect: Effect,
    /// What follows for whoever reads or writes here.
    pub sentence: String,
    /// Title of the document that says so; `None`: it follows from the value alone, or was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cited: Option<&'static str>,
    /// The value that `doctor --try KEY=VALUE` would measure against the present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub try_value: Option<String>,
    /// Whether `--try` takes this setting at all; else two records and `compare` measure it.
    pub can_try: bool,
}

/// Settings that `--try` takes.
pub const TRIED: [Key; 18] = [
    Key::Scheduler,
    Key::ReadAhead,
    Key::Requests,
    Key::WritebackThrottle,
    Key::Iostats,
    Key::Nomerges,
    Key::Thp,
    Key::DirtyRatio,
    Key::DirtyBytes,
    Key::DirtyBackgroundRatio,
    Key::DirtyBackgroundBytes,
    Key::Governor,
    Key::NoReadWorkqueue,
    Key::NoWriteWorkqueue,
    Key::SameCpuCrypt,
    Key::SubmitFromCryptCpus,
    Key::AccessTime,
    Key::LazyTime,
];

const ABI: &str = "Documentation/ABI/stable/sysfs-block";
const BDI: &str = "Documentation/ABI/testing/sysfs-class-bdi";
const DM_CRYPT: &str = "dm-crypt (admin-guide/device-mapper/dm-crypt)";
const VM: &str = "Documentation for /proc/sys/vm/ (admin-guide/sysctl/vm)";
const BFQ: &str = "BFQ (Budget Fair Queueing) (block/bfq-iosched)";
const EXT4: &str = "ext4 General Information (admin-guide/ext4)";
const MOUNT: &str = "mount(8)";
const XFS: &str = "xfs(5)";
const DAX: &str = "Direct Access for files (filesystems/dax)";
const WBT: &str = "block/blk-wbt.c";
const WRITEBACK: &str = "mm/page-writeback.c";
const CGROUP: &str = "Control Group v2 (admin-guide/cgroup-v2)";
const CPUFREQ: &str = "CPU Performance Scaling (admin-guide/pm/cpufreq)";
const PARAMETERS: &str = "The kernel's command-line parameters (admin-guide/kernel-parameters), mitigations=";
const THP: &str = "Transparent Hugepage Support (admin-guide/mm/transhuge)";
const BTRFS: &str = "btrfs(5)";

/// Judges one of the readings; the others are what stands around it.
pub fn judge(reading: &Reading, all: &[Reading]) -> Option<Judgement> {
    let value = reading.value.as_deref()?;
    let assessment = match reading.key.group() {
        Group::Cpu => cpu(reading, value),
        Group::Memory => memory(reading),
        Group::Queue => queue(reading, value, all),
        Group::Encryption => encryption(reading.key, value),
        Group::FileSystem => file_system(reading, value),
        Group::ControlGroup => control_group(reading, value),
    }?;
    // What is not offered cannot be tried.
    let offered = |value: &String| reading.offered.is_empty() || reading.offered.contains(value);
    Some(Judgement {
        effect: assessment.effect,
        sentence: assessment.sentence,
        cited: assessment.cited,
        try_value: assessment.try_value.filter(offered),
        can_try: TRIED.contains(&reading.key),
    })
}

/// A judgement in the making.
struct Assessment {
    effect: Effect,
    sentence: String,
    cited: Option<&'static str>,
    try_value: Option<String>,
}

fn assess(effect: Effect, sentence: impl Into<String>) -> Option<Assessment> {
    Some(Assessment { effect, sentence: sentence.into(), cited: None, try_value: None })
}

trait With {
    fn cited(self, title: &'static str) -> Self;
    fn tries(self, value: &str) -> Self;
}

impl With for Option<Assessment> {
    fn cited(self, title: &'static str) -> Self {
        self.map(|assessment| Assessment { cited: Some(title), ..assessment })
    }

    fn tries(self, value: &str) -> Self {
        self.map(|assessment| Assessment { try_value: Some(value.to_owned()), ..assessment })
    }
}

fn cpu(reading: &Reading, value: &str) -> Option<Assessment> {
    match reading.key {
        Key::Governor if value != "performance" => assess(
            Effect::MayCost,
            "only the governor performance always requests \"the highest frequency\": a CPU that waits for a device \
             most of the time may run slow, and requests that cost CPU time then take longer",
        )
        .cited(CPUFREQ)
        .tries("performance"),
        Key::Mitigations if !reading.details.is_empty() => assess(
            Effect::Costs,
            format!(
                "active: {}; to switch them off \"improves system performance, but it may also expose users to several \
                 CPU vulnerabilities\"",
                reading.details.join(", ")
            ),
        )
        .cited(PARAMETERS),
        Key::Thp if value == "never" => assess(
            Effect::MayCost,
            "large buffers use small pages, each with its own entry in the page tables and the TLB",
        )
        .cited(THP)
        .tries("madvise"),
        _ => None,
    }
}

fn memory(reading: &Reading) -> Option<Assessment> {
    let number = reading.number()?;
    let at = |what: &str| format!("{what} at {}", amount(reading.key, number));
    match (reading.key, number) {
        (Key::DirtyRatio, 20) | (Key::DirtyBackgroundRatio, 10) => None,
        (Key::DirtyRatio, _) => assess(
            Effect::Limits,
            at("\"a process which is generating disk writes will itself start writing out dirty data\""),
        )
        .cited(VM),
        (Key::DirtyBytes, _) => {
            assess(Effect::Limits, at("\"a process generating disk writes will itself start writeback\"")).cited(VM)
        }
        (Key::DirtyBackgroundRatio, _) => assess(
            Effect::MayCost,
            at("\"the background kernel flusher threads will start writing out dirty data\""),
        )
        .cited(VM),
        (Key::DirtyBackgroundBytes, _) => {
            assess(Effect::MayCost, at("\"the background kernel flusher threads will start writeback\"")).cited(VM)
        }
        (Key::DirtyExpire, 3000) | (Key::DirtyWriteback, 500) | (Key::Swappiness, 60) => None,
        (Key::DirtyExpire, _) => assess(
            Effect::MayCost,
            format!(
                "data is \"old enough to be eligible for writeout\" after {} s ({WRITEBACK}: 30 s)",
                number as f64 / 100.0
            ),
        )
        .cited(VM),
        (Key::DirtyWriteback, 0) => assess(
            Effect::Unsafe,
            "\"disables periodic writeback altogether\": what is not flushed stays in memory until a limit is reached",
        )
        .cited(VM),
        (Key::DirtyWriteback, _) => assess(
            Effect::MayCost,
            format!(
                "\"flusher threads will periodically wake up\" every {} s ({WRITEBACK}: 5 s)",
                number as f64 / 100.0
            ),
        )
        .cited(VM),
        (Key::Swappiness, _) => assess(
            Effect::MayCost,
            format!(
                "{number} of 0 to 200 (by default 60): \"the rough relative IO cost of swapping and filesystem paging\"; \
                 it acts when memory is short"
            ),
        )
        .cited(VM),
        _ => None,
    }
}

fn amount(key: Key, number: i64) -> String {
    if matches!(key, Key::DirtyBytes | Key::DirtyBackgroundBytes) {
        iowhy_core::units::Bytes(u64::try_from(number).unwrap_or(0)).to_string()
    } else {
        format!("{number} % of available memory")
    }
}

fn queue(reading: &Reading, value: &str, all: &[Reading]) -> Option<Assessment> {
    let rotates = run_facts(all, reading, Key::Rotational) == Some("1");
    match (reading.key, value) {
        (Key::Scheduler, order) => scheduler(order, rotates),
        (Key::ReadAhead, kib) if reading.file.as_deref().is_some_and(is_window) => window(kib),
        (Key::ReadAhead, kib) => read_ahead(kib),
        (Key::WritebackThrottle, us) => writeback_throttle(us, rotates),
        (Key::Requests, few) if few.parse::<u64>().is_ok_and(|n| n < DEEPEST) => assess(
            Effect::Limits,
            format!("no more than {few} requests are \"allocated in the block layer\" at a time; the others wait"),
        )
        .cited(ABI)
        .tries("64"),
        (Key::Iostats, "0") => assess(
            Effect::Hides,
            "\"iostats accounting of the disk\" is off: iostat and sar show no activity, and iowhy cannot check the device's \
             byte counts",
        )
        .cited(ABI)
        .tries("1"),
        (Key::Nomerges, "1") => assess(
            Effect::MayCost,
            "\"complex merge checks are disabled, but the simple one-shot merges with the previous I/O request are enabled\"",
        )
        .cited(ABI)
        .tries("0"),
        (Key::Nomerges, "2") => assess(
            Effect::MayCost,
            "\"all merge tries are disabled\": adjacent requests go to the device one by one",
        )
        .cited(ABI)
        .tries("0"),
        _ => None,
    }
}

fn scheduler(order: &str, rotates: bool) -> Option<Assessment> {
    match order {
        "bfq" => assess(
            Effect::Costs,
            "bfq's own work: 1.9 µs a request under one lock on the CPU of its documentation (i7-2760QM), against 0.7 µs \
             of mq-deadline; it may leave a device idle for the sake of latency",
        )
        .cited(BFQ)
        .tries("none"),
        "mq-deadline" if !rotates => assess(
            Effect::Costs,
            "mq-deadline's own work: 0.7 µs a request under one lock on the CPU of that documentation (i7-2760QM)",
        )
        .cited(BFQ)
        .tries("none"),
        "kyber" => {
            assess(Effect::MayCost, "kyber delays requests to keep its target latencies").tries("none")
        }
        "none" if rotates => {
            assess(Effect::MayCost, "a rotational disk without request ordering").tries("mq-deadline")
        }
        _ => None,
    }
}

fn read_ahead(kib: &str) -> Option<Assessment> {
    match kib {
        "0" => {
            assess(
                Effect::Costs,
                "no read-ahead (\"maximum number of kilobytes to read-ahead\"): a sequential reader waits for each of its \
                 requests",
            )
            .cited(ABI)
            .tries("128")
        }
        other if other != "128" => assess(
            Effect::MayCost,
            format!(
                "\"maximum number of kilobytes to read-ahead\": {other} (block/blk-settings.c: 128, or twice the device's \
                 optimal_io_size)"
            ),
        )
        .cited(ABI)
        .tries("128"),
        _ => None,
    }
}

/// Whether it is the read-ahead of a file system itself, and not that of a device.
fn is_window(file: &str) -> bool {
    file.split('/').any(|part| part == "bdi")
}

/// The read-ahead of a file system itself: each type has its own default, so that only none at all says something.
fn window(kib: &str) -> Option<Assessment> {
    if kib != "0" {
        return None;
    }
    assess(
        Effect::Costs,
        "no read-ahead (\"size of the read-ahead window in kilobytes\"): a sequential reader waits for each of its requests",
    )
    .cited(BDI)
    .tries("128")
}

fn writeback_throttle(us: &str, rotates: bool) -> Option<Assessment> {
    match us {
        "0" => assess(
            Effect::MayCost,
            "throttling of background writes is off: they are not delayed when reads get slow",
        )
        .cited(ABI)
        .tries(if rotates { "75000" } else { "2000" }),
        other if !["2000", "75000"].contains(&other) => assess(
            Effect::MayCost,
            format!(
                "\"writeback throttling will start scaling back writes\" once reads take {other} µs ({WBT}: 2000, or 75000 \
                 for rotational disks)"
            ),
        )
        .cited(ABI),
        _ => None,
    }
}

fn encryption(key: Key, value: &str) -> Option<Assessment> {
    match (key, value) {
        (Key::NoReadWorkqueue, "0") => assess(
            Effect::MayCost,
            "each read is decrypted by another thread; 1 would \"bypass dm-crypt internal workqueue and process read requests \
             synchronously\"",
        )
        .cited(DM_CRYPT)
        .tries("1"),
        (Key::NoWriteWorkqueue, "0") => assess(
            Effect::MayCost,
            "each write is encrypted by another thread; 1 would \"bypass dm-crypt internal workqueue and process write requests \
             synchronously\"",
        )
        .cited(DM_CRYPT)
        .tries("1"),
        (Key::SameCpuCrypt, "1") => assess(
            Effect::MayCost,
            "encryption runs on \"the same cpu that IO was submitted on\" and is not \"automatically balanced between available \
             CPUs\"",
        )
        .cited(DM_CRYPT)
        .tries("0"),
        _ => None,
    }
}

/// Requests of the deepest queue of the path report.
const DEEPEST: u64 = 64;

/// What another setting of the same device is.
fn run_facts<'a>(all: &'a [Reading], reading: &Reading, key: Key) -> Option<&'a str> {
    let names = |of: &Reading| -> Vec<String> {
        of.subject.as_deref().unwrap_or_default().split(' ').map(str::to_owned).collect()
    };
    let own = names(reading);
    let of_key = all.iter().filter(|other| other.key == key);
    let same = of_key.filter(|other| names(other).iter().any(|name| own.contains(name)));
    same.filter_map(|other| other.value.as_deref()).next()
}

/// The manual of a file system's own options.
fn manual(reading: &Reading) -> &'static str {
    match reading.details.first().map(String::as_str) {
        Some("ext4") => EXT4,
        Some("btrfs") => BTRFS,
        Some("xfs") => XFS,
        _ => MOUNT,
    }
}

fn file_system(reading: &Reading, value: &str) -> Option<Assessment> {
    match (reading.key, value) {
        (Key::AccessTime, "strictatime") => assess(
            Effect::Costs,
            "every read of a file also changes its inode, which must be written (\"full atime updates\")",
        )
        .cited(MOUNT)
        .tries("relatime"),
        (Key::LazyTime, "on") => assess(
            Effect::Unsafe,
            "times are kept \"on the in-memory version of the file inode\", for up to 24 hours: after a crash they may be old",
        )
        .cited(MOUNT)
        .tries("off"),
        (Key::MountOption, "sync") => {
            assess(Effect::Costs, "\"all I/O to the filesystem should be done synchronously\": every write waits").cited(MOUNT)
        }
        (Key::MountOption, "dirsync") => {
            assess(Effect::Costs, "\"all directory updates within the filesystem should be done synchronously\"").cited(MOUNT)
        }
        (Key::MountOption, "data=journal") => assess(
            Effect::Costs,
            "all data is written twice, first into the journal; this mode \"will disable delayed allocation and O_DIRECT support\"",
        )
        .cited(EXT4),
        (Key::MountOption, "data=writeback") => {
            assess(Effect::Unsafe, "\"data ordering is not preserved\": after a crash files may hold old data").cited(EXT4)
        }
        (Key::MountOption, "nobarrier" | "barrier=0") => assess(
            Effect::Unsafe,
            "no barriers: fsync is fast because it does not empty the device's volatile cache",
        )
        .cited(manual(reading)),
        (Key::MountOption, "nodelalloc") => assess(
            Effect::MayCost,
            "\"blocks are allocated when the data is copied\" into the page cache, not when it is written out",
        )
        .cited(EXT4),
        (Key::MountOption, "discard" | "discard=async") => assess(
            Effect::MayCost,
            "freed blocks are reported to the device, which makes the removal of files slower",
        )
        .cited(manual(reading)),
        (Key::MountOption, "dax" | "dax=always") => {
            assess(Effect::Hides, "no page cache: cold and warm state do not exist here").cited(DAX)
        }
        (Key::MountOption, "nodatacow") => assess(
            Effect::Unsafe,
            "data is written over in place, \"at the cost of potential partial writes\" in a crash; it \"implies nodatasum\": \
             no checksums",
        )
        .cited(BTRFS),
        (Key::MountOption, option) if option.starts_with("compress") => assess(
            Effect::Hides,
            "the device moves fewer bytes than the program, and compression costs CPU time",
        )
        .cited(manual(reading)),
        _ => None,
    }
}

fn control_group(reading: &Reading, value: &str) -> Option<Assessment> {
    if value == "none" {
        return None;
    }
    match reading.key {
        Key::IoLimit => assess(Effect::Limits, reading.details.join("; ")).cited(CGROUP),
        Key::MemoryLimit => assess(
            Effect::Limits,
            "the page cache of this group counts towards it: evicted data is read again",
        )
        .cited(CGROUP),
        Key::MemoryHigh => assess(
            Effect::Costs,
            "above it \"the processes of the cgroup are throttled and put under heavy reclaim pressure\"",
        )
        .cited(CGROUP),
        Key::CpuLimit => {
            assess(Effect::Limits, "above this number of CPUs all threads stop until the next period")
                .cited(CGROUP)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: Key, value: &str) -> Reading {
        Reading { subject: Some("vda".into()), ..Reading::new(key, value) }
    }

    fn effect(key: Key, value: &str) -> Option<Effect> {
        judge(&of(key, value), &[]).map(|judgement| judgement.effect)
    }

    #[test]
    fn neutral_values_get_no_judgement() {
        for (key, value) in [
            (Key::Governor, "performance"),
            (Key::Mitigations, "0 of 19"),
            (Key::Thp, "madvise"),
            (Key::DirtyRatio, "20"),
            (Key::DirtyBackgroundRatio, "10"),
            (Key::Swappiness, "60"),
            (Key::Scheduler, "none"),
            (Key::ReadAhead, "128"),
            (Key::Requests, "256"),
            (Key::WritebackThrottle, "2000"),
            (Key::Iostats, "1"),
            (Key::Nomerges, "0"),
            (Key::NoReadWorkqueue, "1"),
            (Key::SubmitFromCryptCpus, "0"),
            (Key::AccessTime, "relatime"),
            (Key::LazyTime, "off"),
            (Key::MemoryLimit, "none"),
        ] {
            assert_eq!(effect(key, value), None, "{}={value}", key.id());
        }
    }

    #[test]
    fn others_are_judged_and_stand_on_a_document_or_can_be_tried() {
        for (key, value, expected) in [
            (Key::Governor, "powersave", Effect::MayCost),
            (Key::Thp, "never", Effect::MayCost),
            (Key::DirtyBytes, "16777216", Effect::Limits),
            (Key::DirtyWriteback, "0", Effect::Unsafe),
            (Key::Scheduler, "bfq", Effect::Costs),
            (Key::Scheduler, "kyber", Effect::MayCost),
            (Key::ReadAhead, "0", Effect::Costs),
            (Key::ReadAhead, "8192", Effect::MayCost),
            (Key::Requests, "4", Effect::Limits),
            (Key::WritebackThrottle, "0", Effect::MayCost),
            (Key::Iostats, "0", Effect::Hides),
            (Key::Nomerges, "2", Effect::MayCost),
            (Key::NoReadWorkqueue, "0", Effect::MayCost),
            (Key::NoWriteWorkqueue, "0", Effect::MayCost),
            (Key::SameCpuCrypt, "1", Effect::MayCost),
            (Key::AccessTime, "strictatime", Effect::Costs),
            (Key::LazyTime, "on", Effect::Unsafe),
            (Key::MountOption, "discard", Effect::MayCost),
            (Key::MountOption, "data=journal", Effect::Costs),
            (Key::MountOption, "nobarrier", Effect::Unsafe),
            (Key::MountOption, "compress=zstd:3", Effect::Hides),
            (Key::MemoryHigh, "1048576", Effect::Costs),
            (Key::CpuLimit, "1.5", Effect::Limits),
        ] {
            let judgement = judge(&of(key, value), &[]).unwrap_or_else(|| panic!("{}={value}", key.id()));
            assert_eq!(judgement.effect, expected, "{}={value}", key.id());
            assert!(judgement.cited.is_some() || judgement.try_value.is_some(), "{judgement:?}");
            assert!(judgement.try_value.is_none() || judgement.can_try, "{judgement:?}");
        }
    }

    #[test]
    fn read_ahead_of_a_file_system_is_judged_by_its_own_document() {
        let window = |kib: &str| Reading {
            file: Some("/sys/class/bdi/0:44/read_ahead_kb".into()),
            ..of(Key::ReadAhead, kib)
        };
        assert_eq!(judge(&window("4096"), &[]), None);
        let none = judge(&window("0"), &[]).unwrap();
        assert_eq!((none.effect, none.cited), (Effect::Costs, Some(BDI)));
        let of_disk =
            Reading { file: Some("/sys/devices/vda/queue/read_ahead_kb".into()), ..of(Key::ReadAhead, "0") };
        assert_eq!(judge(&of_disk, &[]).unwrap().cited, Some(ABI));
    }

    #[test]
    fn whether_the_disk_turns_decides_about_its_scheduler() {
        let scheduler = of(Key::Scheduler, "mq-deadline");
        let around = |flag: &str| vec![scheduler.clone(), of(Key::Rotational, flag)];
        assert!(judge(&scheduler, &around("0")).is_some());
        assert!(judge(&scheduler, &around("1")).is_none());
        let none = of(Key::Scheduler, "none");
        assert!(judge(&none, &around("1")).is_some() && judge(&none, &around("0")).is_none());
        // Another disk says nothing about this one.
        let other = Reading { subject: Some("vdb sdc".into()), ..of(Key::Rotational, "1") };
        assert!(judge(&none, &[other]).is_none());
    }

    #[test]
    fn what_is_not_offered_is_not_proposed_and_what_is_not_known_not_judged() {
        let bfq = Reading { offered: vec!["bfq".into()], ..of(Key::Scheduler, "bfq") };
        assert_eq!(judge(&bfq, &[]).unwrap().try_value, None);
        let both = Reading { offered: vec!["bfq".into(), "none".into()], ..bfq };
        assert_eq!(judge(&both, &[]).unwrap().try_value.as_deref(), Some("none"));
        assert_eq!(judge(&Reading::unreadable(Key::Iostats, "no such file"), &[]), None);
    }

    #[test]
    fn an_option_is_cited_from_the_manual_of_its_own_file_system() {
        let cited = |file_system: &str| {
            let details = vec![file_system.to_owned()];
            judge(&Reading { details, ..of(Key::MountOption, "discard") }, &[]).unwrap().cited.unwrap()
        };
        assert_eq!((cited("ext4"), cited("btrfs"), cited("xfs")), (EXT4, BTRFS, XFS));
        assert_eq!(cited("jfs"), MOUNT);
    }

    #[test]
    fn mitigations_and_limits_are_named() {
        let active =
            Reading { details: vec!["meltdown".into()], ..Reading::new(Key::Mitigations, "1 of 19") };
        assert!(judge(&active, &[]).unwrap().sentence.contains("meltdown"));
        let limited = Reading {
            details: vec!["reads on vda are limited".into()],
            ..Reading::new(Key::IoLimit, "1 limit")
        };
        assert!(judge(&limited, &[]).unwrap().sentence.contains("reads on vda"));
    }
}
