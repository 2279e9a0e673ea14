//! Programs that nobody tuned the watch for, on disks of which each request takes a known time: the counts are the programs' own,
//! the time is found where it was put in, and the finding named first is the right one, or none where nothing is wrong.

use std::time::Duration;

use serde_json::Value;

use super::watched::{DATA_BYTES, calibrated, counts, disk, each_kernel, layer, list, slow_disk, watched};
use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;
use crate::lab::packages::Series;

/// Its name holds that of the phase `kernels`, so that both are asked for together.
pub(super) const PHASE: Phase = Phase { name: "kernels-paced", boots, judge };

const KERNELS: [(&str, Series); 3] =
    [("paced-5.10", Series::Old), ("paced-6.1", Series::Present), ("paced-6.12", Series::New)];

/// Completion times of the disks, ns. The slow one works on any number of requests at once, the narrow one on one.
const SLOW_NS: u64 = 60_000_000;
const NARROW_NS: u64 = 10_000_000;
const SWAP_NS: u64 = 20_000_000;
/// A server in user space answers a read after this time, us.
const SERVED_US: u64 = 60_000;
/// A page for each of these, s: the rate of the group whose reads are limited.
const LIMITED_S: f64 = 0.05;
/// How often it reads.
const LIMITED_READS: f64 = 60.0;
const PAGE: u64 = 4096;
/// The group whose memory is limited has less than the file.
const SMALL_MEMORY: u64 = 3 << 20;
const SMALL_FILES: u64 = 30;
/// More than this of unwritten data, and writers are paused; write-back begins at half of it.
const MAX_DIRTY: u64 = 256 << 10;

/// A process that uses the same disk is named where its requests delay the program by more than this part of its time. Chosen: on 5.10 they
/// took 51 % of it, on 6.12 21 %.
const NEIGHBOUR_MATTERS: f64 = 0.1;

/// Of what was put in, this share may appear elsewhere, or not at all.
const TOLERANCE: f64 = 0.02;

const SLOW: &str = "/mnt/slow";
const GROUPS: &str = "/sys/fs/cgroup";

/// Layers in which a program waits; in the others it works, or waits for a CPU.
const WAITS: [&str; 8] =
    ["device", "block", "journal", "writeback", "server", "lock", "elsewhere", "unexplained"];

/// How it is run.
enum Around {
    /// As it is.
    Nothing,
    /// Below a server of files.
    Served,
    /// Beside another process that reads this file all the time.
    Load(&'static str),
    /// Where little data may wait for write-back. From here on that is so.
    LittleDirty,
    /// Where memory can be swapped, page by page. From here on that is so.
    Swap,
}

/// A program and what is known of it.
struct Workload {
    name: &'static str,
    /// Words of the program.
    words: &'static str,
    around: Around,
    /// What it waits for one after the other, s, where the program alone decides how often.
    waits_s: Option<f64>,
    /// Where its time is.
    layers: &'static [&'static str],
    /// What may be named first; empty: nothing is wrong.
    causes: &'static [&'static str],
}

const SLOW_S: f64 = SLOW_NS as f64 / 1e9;
/// Pages of `data`.
const PAGES: f64 = (DATA_BYTES / PAGE) as f64;
/// Where a program waits for a disk: for data, or for the journal's commit.
const DISK: &[&str] = &["device", "journal"];

const fn plain(
    name: &'static str,
    words: &'static str,
    waits_s: Option<f64>,
    layers: &'static [&'static str],
    causes: &'static [&'static str],
) -> Workload {
    Workload { name, words, around: Around::Nothing, waits_s, layers, causes }
}

/// The same where threads of the kernel, or a server, do the work: they take their turn at the guest's one CPU.
const WRITTEN: &[&str] = &["device", "journal", "block", "cpu-queue"];
const DIRECT: &[&str] = &["queue-depth-one"];
/// Small direct reads in order: larger ones help, and so do more at a time.
const IN_ORDER: &[&str] = &["small-requests", "queue-depth-one"];
/// A file is made before it is written: up to [`MADE_BY`] requests are waited for.
const PAUSED: &[&str] = &["writeback", "cpu-queue", "device", "lock"];
/// Its folder, its inode's place and the map of inodes are read, and a block of its map is found while another thread has it.
const MADE_BY: f64 = 5.0;
/// Whether a disk would take still more at once cannot be seen.
const BUSY: &[&str] = &["device-saturated"];
/// What is written at once keeps the disk busy for nearly all of such a short run, on either side of the rule's bound (90 %): both are true.
const BURST: &[&str] = &["healthy", "device-saturated"];
const DURABLE: &[&str] = &["sync-per-write"];

const WORKLOADS: [Workload; 27] = [
    plain("direct reads", "direct-random /mnt/slow/data 4096 100 1", Some(100.0 * SLOW_S), DISK, DIRECT),
    plain(
        "reads without read-ahead",
        "read /mnt/slow/data 4096 1 random",
        Some(PAGES * SLOW_S),
        DISK,
        &["no-readahead"],
    ),
    plain("page faults", "map-touch /mnt/slow/data 100 random", None, DISK, &["mmap-faults"]),
    plain("reads in order", "read /mnt/slow/data 65536 1 -", None, DISK, BUSY),
    plain("appends with syncs", "write /mnt/slow/file 4096 40 1", None, DISK, DURABLE),
    plain("transactions", "transactions /mnt/slow/data /mnt/slow/log 20 1", None, DISK, DURABLE),
    plain("direct writes of two threads", "append-threads /mnt/slow 2 40 own", None, DISK, IN_ORDER),
    plain("durable writes", "paced dsync /mnt/slow 30", None, DISK, DURABLE),
    plain("batches with syncs", "write /mnt/slow/batches 4096 200 20", None, DISK, DURABLE),
    plain("one sync at the end", "write /mnt/slow/end 65536 32 0", None, WRITTEN, BURST),
    plain(
        "mapped pages with syncs",
        "paced msync /mnt/slow 30",
        None,
        DISK,
        &["sync-per-write", "mmap-faults"],
    ),
    plain("new names with syncs", "paced names /mnt/slow 15", None, DISK, DURABLE),
    plain("a copy by the kernel", "paced copy /mnt/slow 512", None, WRITTEN, BUSY),
    plain("small files", "tree /mnt/slow/tree 1", None, DISK, &["many-small-files", "queue-depth-one"]),
    plain("a pipe from a reader", "paced pipe /mnt/slow 40", Some(40.0 * SLOW_S), DISK, IN_ORDER),
    plain("a lock around reads", "paced convoy /mnt/slow 40", Some(40.0 * SLOW_S), DISK, IN_ORDER),
    plain("asynchronous reads", "paced aio /mnt/slow 40", Some(40.0 * SLOW_S), DISK, DIRECT),
    plain("a ring, 8 deep", "direct-random /mnt/slow/data 4096 160 8", None, DISK, BUSY),
    plain("sleeping", "paced sleep /mnt/slow 100", Some(2.0), &["elsewhere"], &[]),
    plain("computing", "compute 30000000", None, &["program"], &[]),
    plain(
        "a group of little memory",
        "within /sys/fs/cgroup/small paced again /mnt/slow 3",
        None,
        DISK,
        &["cache-thrash", "memory-pressure"],
    ),
    plain(
        "a group of limited reads",
        "within /sys/fs/cgroup/limited paced direct /mnt/narrow 60",
        None,
        &["block", "device"],
        &["throttled"],
    ),
    plain("an overlay", "read /over/data 4096 1 random", Some(PAGES * SLOW_S), DISK, &["no-readahead"]),
    plain("a loop device", "direct-random /dev/loop0 4096 40 1", Some(40.0 * SLOW_S), DISK, DIRECT),
    Workload {
        name: "a server of files",
        words: "read /mnt/served/file 131072 1 -",
        around: Around::Served,
        waits_s: None,
        layers: &["server", "cpu-queue"],
        causes: &["server-bound"],
    },
    Workload {
        name: "a disk that others use",
        words: "direct-random /mnt/narrow/data 4096 200 1",
        around: Around::Load("/mnt/narrow/data"),
        waits_s: None,
        layers: &["block", "device"],
        causes: &["noisy-neighbour", "queue-depth-one"],
    },
    Workload {
        name: "others on another disk",
        words: "paced direct /mnt/slow 40",
        around: Around::Load("/mnt/narrow/data"),
        waits_s: None,
        layers: DISK,
        causes: IN_ORDER,
    },
];

/// The same, after the calibrated ones: what they change of the guest's settings, or leave in its caches, would be in those.
const LATER: [Workload; 3] = [
    plain(
        "a loop device above limited reads",
        "within /sys/fs/cgroup/limited direct-random /dev/loop1 4096 60 1",
        None,
        &["block", "device"],
        &["throttled"],
    ),
    Workload {
        name: "a group whose memory is swapped",
        words: "within /sys/fs/cgroup/small paced anonymous /mnt/slow 1536",
        around: Around::Swap,
        waits_s: None,
        layers: &["device", "memory"],
        causes: &["memory-pressure"],
    },
    Workload {
        name: "more dirty data than may be",
        words: "write /mnt/slow/dirty 65536 192 18446744073709551615",
        around: Around::LittleDirty,
        waits_s: None,
        layers: PAUSED,
        causes: &["dirty-throttle"],
    },
];

fn workloads() -> impl Iterator<Item = &'static Workload> {
    WORKLOADS.iter().chain(&LATER)
}

fn boots() -> Vec<Boot> {
    KERNELS.iter().map(|(name, series)| boot(name, *series)).collect()
}

fn boot(name: &'static str, series: Series) -> Boot {
    let mut boot = Boot::new(name, Time::Counted);
    boot.kernel = series;
    // Thirty programs: 229 s of CPU were seen. Chosen: twice that ends only a guest that hangs.
    boot.limit = Duration::from_secs(480);
    for module in ["ext4", "overlay", "fuse", "loop"] {
        boot.module(module, "");
    }
    boot.null_disks();
    let narrow = disk(&mut boot, "narrow", NARROW_NS, &[("hw_queue_depth", "1"), ("submit_queues", "1")]);
    disk(&mut boot, "slow", SLOW_NS, &[]);
    let swap = slow_disk(&mut boot, "swap", SWAP_NS, &[]);
    boot.step(&["mkdir", &format!("{SLOW}/tree")]);
    for n in 0..SMALL_FILES {
        boot.step(&["fill", &format!("{SLOW}/tree/{n}"), "4096"]);
    }
    boot.step(&["fill", &format!("{SLOW}/image"), &DATA_BYTES.to_string()]);
    boot.step(&["loop", "0", &format!("{SLOW}/image")]);
    boot.step(&["fill", "/mnt/narrow/image", &DATA_BYTES.to_string()]);
    boot.step(&["loop", "1", "/mnt/narrow/image"]);
    boot.step(&["mkdir", "/tmp/none"]);
    boot.step(&["mount", "overlay", "overlay", "/over", &format!("lowerdir={SLOW}:/tmp/none")]);
    boot.step(&["mount", "cgroup2", "cgroup2", GROUPS, ""]);
    boot.step(&["write", &format!("{GROUPS}/cgroup.subtree_control"), "+io +memory"]);
    for group in ["small", "limited"] {
        boot.step(&["mkdir", &format!("{GROUPS}/{group}")]);
    }
    boot.step(&["write", &format!("{GROUPS}/small/memory.max"), &SMALL_MEMORY.to_string()]);
    let rate = PAGE as f64 / LIMITED_S;
    let narrow = narrow.trim_start_matches("/dev/");
    boot.step(&["limit-reads", &format!("{GROUPS}/limited"), narrow, &rate.to_string()]);
    for workload in &WORKLOADS {
        one_run(&mut boot, workload, &swap);
    }
    for (label, words, ..) in CALIBRATED {
        calibrated(&mut boot, label, words);
    }
    for workload in &LATER {
        one_run(&mut boot, workload, &swap);
    }
    boot.step(&["show", "tainted", "/proc/sys/kernel/tainted"]);
    boot
}

fn one_run(boot: &mut Boot, workload: &Workload, swap: &str) {
    boot.step(&["write", "/proc/sys/vm/drop_caches", "3"]);
    let around = around(boot, workload, swap);
    let around: Vec<&str> = around.iter().map(String::as_str).collect();
    watched(boot, workload.name, &around, workload.words);
}

/// Prepares what is around a program. Returns the command that runs the watch, if another one does.
fn around(boot: &mut Boot, workload: &Workload, swap: &str) -> Vec<String> {
    let served = SERVED_US.to_string();
    let command: &[&str] = match workload.around {
        Around::Nothing => &[],
        Around::Served => {
            boot.step(&["mkdir", "/mnt/served"]);
            &["iowhy-cases", "serve", "/mnt/served", &served, "0", "sync"]
        }
        Around::Load(file) => &["iowhy-cases", "beside", "disk-load", file],
        Around::LittleDirty => {
            for (limit, bytes) in [("background_", MAX_DIRTY / 2), ("", MAX_DIRTY)] {
                boot.step(&["write", &format!("/proc/sys/vm/dirty_{limit}bytes"), &bytes.to_string()]);
            }
            &[]
        }
        Around::Swap => {
            boot.step(&["write", "/proc/sys/vm/page-cluster", "0"]);
            // Who makes huge pages swaps pages in, and holds the lock of the address space meanwhile.
            boot.step(&["write", "/sys/kernel/mm/transparent_hugepage/enabled", "never"]);
            boot.step(&["swap", swap]);
            &[]
        }
    };
    command.iter().map(|&word| word.to_owned()).collect()
}

/// Programs whose time with a change is known: a tenth of the syncs, and a fourth of the rounds of reads. Label, program, size of the
/// change, and the known gain.
const CALIBRATED: [(&str, &str, &str, f64); 2] = [
    ("calibrated syncs", "write /mnt/slow/more 4096 40 1", "10 records", 10.0),
    ("calibrated reads", "direct-random /mnt/slow/data 4096 100 1", "4 in flight", 4.0),
];
/// A window holds one sync of three requests, or four reads; the time outside of them is a part of the run, too.
const CALIBRATION_TOLERANCE: f64 = 0.1;

/// The predicted time is the known one.
fn prediction(checks: &mut Checks, label: &str, size: &str, gain: f64, run: Answer<'_>) {
    ended_well(checks, label, run);
    let prediction =
        &list(run.at("/record/findings")).first().map(|f| f["prediction"].clone()).unwrap_or_default();
    let choice = list(&prediction["choices"]).iter().find(|choice| choice["size"] == size);
    let left = choice.and_then(|choice| choice["remaining"]["value"].as_f64()).map(|ns| ns / 1e9);
    let known = run.number("/record/wall_s").map(|wall| wall / gain);
    checks.near(&format!("{label}: time with {size}"), left, known, CALIBRATION_TOLERANCE);
}

fn judge(answers: &Answers, checks: &mut Checks) {
    each_kernel(answers, checks, KERNELS.map(|(name, _)| name), |checks, name| {
        for workload in workloads() {
            one(checks, workload, answers.get(name, workload.name));
        }
        for (label, _, size, gain) in CALIBRATED {
            prediction(checks, label, size, gain, answers.get(name, label));
        }
    });
}

fn one(checks: &mut Checks, workload: &Workload, run: Answer<'_>) {
    let name = workload.name;
    ended_well(checks, name, run);
    let lost = run.number("/record/observer/lost");
    checks.holds(&format!("{name}: no record lost"), lost == Some(0.0), format!("{lost:?}"));
    if workload.words.contains("paced ") {
        counts(checks, name, run);
    }
    let wall = run.number("/record/wall_s");
    if workload.waits_s.is_some() {
        // What the observer takes of the program comes on top, and the record says how much that is.
        let alone = wall.zip(run.number("/record/observer/in_program_s")).map(|(wall, taken)| wall - taken);
        checks.near(&format!("{name}: wall time"), alone, workload.waits_s, TOLERANCE);
    }
    let found = workload.layers.iter().map(|id| layer(run, id)).sum::<Option<f64>>();
    let cpu = run.number("/record/cpu_s");
    // What is not CPU time is the wait; of a program that computes, it is the other way round.
    let expected =
        if workload.layers == ["program"] { cpu } else { wall.zip(cpu).map(|(wall, cpu)| wall - cpu) };
    let missing = found.zip(expected).map(|(found, expected)| (expected - found).max(0.0));
    checks.small(&format!("{name}: all in {}", workload.layers.join(", ")), missing, wall, TOLERANCE);
    let elsewhere = WAITS.iter().filter(|id| !workload.layers.contains(id)).map(|id| layer(run, id)).sum();
    checks.small(&format!("{name}: no other wait"), elsewhere, wall, TOLERANCE);
    if workload.causes == ["throttled"] {
        let at_device = layer(run, "device").map(|s| s - LIMITED_READS * NARROW_NS as f64 / 1e9);
        checks.small(&format!("{name}: the rest not in device"), at_device, wall, TOLERANCE);
    }
    if workload.causes == ["dirty-throttle"] {
        let paused =
            layer(run, "writeback").zip(layer(run, "cpu-queue")).map(|(paused, queued)| paused + queued);
        let rest = expected.zip(paused).map(|(wait, paused)| (wait - paused - MADE_BY * SLOW_S).max(0.0));
        checks.small(&format!("{name}: the rest in writeback"), rest, wall, TOLERANCE);
    }
    let named: Vec<&str> = list(run.at("/record/findings")).iter().filter_map(|f| f["id"].as_str()).collect();
    /// These blame nothing in the path of the data.
    const INNOCENT: [&str; 4] = ["healthy", "no-cause-found", "waiting-elsewhere", "cpu-bound"];
    let first = named.first().copied().unwrap_or("");
    let right = match workload.causes {
        [] => named.iter().all(|id| INNOCENT.contains(id)),
        causes => causes.contains(&first),
    };
    checks.holds(&format!("{name}: first finding"), right, format!("{named:?}"));
    if let Around::Load(_) = workload.around {
        neighbour(checks, workload, run);
    }
}

/// Who else uses the disk is named by number and command line, and nobody where that disk is another one.
fn neighbour(checks: &mut Checks, workload: &Workload, run: Answer<'_>) {
    let findings = list(run.at("/record/findings"));
    let told: Option<&Value> = findings.iter().find(|finding| finding["id"] == "noisy-neighbour");
    let text = told.map(Value::to_string).unwrap_or_default();
    let wanted = workload.causes.contains(&"noisy-neighbour");
    let delayed = layer(run, "block").zip(run.number("/record/wall_s")).map(|(s, wall)| s / wall);
    let right = match told {
        Some(_) => wanted && text.contains("(process ") && text.contains("disk-load"),
        // Which process gets the disk next is the kernel's choice: on 6.1 the other one got 18 of 218 requests, 4.7 % of the time.
        None => !wanted || delayed.is_some_and(|part| part < NEIGHBOUR_MATTERS),
    };
    checks.holds(&format!("{}: the other process", workload.name), right, text);
}
