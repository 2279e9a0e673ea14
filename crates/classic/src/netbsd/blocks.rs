//! Blocks of 4k against 8k for real: the same small tree on file systems made for it, mounted anew before each pass of the
//! readers, so that names and inodes are cold, too. Only where it was asked for, and as root.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::published::Experiment;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::schedule;
use iowhy_core::stats;
use iowhy_core::units::{self, Bytes};
use iowhy_probe::counters;
use iowhy_probe::interrupt;
use iowhy_probe::scratch_fs::{Image, Kind, MountPoint, has_direct_io};
use iowhy_probe::tree::{self, Files, Order, Phase, Shape, Tree};

use crate::lab::Lab;
use crate::report::{Report, Row};

/// Each file system's nameless file; it takes room only as it is filled.
const IMAGE_BYTES: u64 = 512 << 20;
/// Directories of the tree, each with as many files as the post's have.
const DIRECTORIES: u64 = 3;
/// Rounds at least and at most.
const ROUNDS: (u32, u32) = (5, 7);

/// What is compared: smaller block first.
const PAIRS: [(Kind, u64, u64); 2] = [(Kind::Xfs, 4096, 8192), (Kind::Ext4, 1024, 4096)];

/// A file system with the tree on it, and its passes.
struct Arm {
    kind: Kind,
    block_bytes: u64,
    image: Image,
    files: Files,
    lists: Vec<Vec<u32>>,
    /// Bytes of all files that the lists name.
    bytes: u64,
    times_ns: Vec<f64>,
    /// Bytes that the device moved, a pass.
    device_bytes: Vec<f64>,
}

/// Measures what can be measured, and says why the rest cannot.
pub(super) fn measure(lab: &Lab<'_>, experiment: &Experiment, record: &mut Report) {
    record.section(
        "block-size-real",
        "Blocks of two sizes for real: time with the smaller over that with the larger",
        "blocks",
    );
    let fact = |id: &str| experiment.fact(id).map_or(0, |value| value as u64);
    let each = fact("files") / fact("directories").max(1);
    let shape = Shape {
        files: DIRECTORIES * each,
        directories: DIRECTORIES,
        sizes: ["size-small", "size-middle", "size-large"].into_iter().map(fact).collect(),
    };
    let readers = fact("readers").max(1);
    let mut stand = match MountPoint::new() {
        Ok(stand) => stand,
        Err(problem) => {
            record.say(format!("measured: inconclusive: {problem}."));
            return;
        }
    };
    for (number, (kind, small, large)) in PAIRS.into_iter().enumerate() {
        if interrupt::requested() {
            break;
        }
        let label = format!("{}, {} over {}", kind.id(), Bytes(small), Bytes(large));
        let row = Row::new(
            "block-size-real",
            label,
            "time with the smaller block over that with the larger",
            Unit::Ratio,
        )
        .key("file_system", kind.id())
        .key("small_block_bytes", small)
        .key("large_block_bytes", large)
        .then(experiment.fact("block-size-gain").filter(|_| large == 8192).map(|gain| 1.0 + gain));
        let arms = [small, large].map(|block| Arm::make(lab, kind, block, &shape, readers, &mut stand));
        let row = match arms {
            [Ok(a), Ok(b)] => {
                let mut pair = [a, b];
                match rounds(lab, &mut pair, &mut stand, number as u64) {
                    Ok(rounds) => {
                        record.rounds = record.rounds.max(rounds);
                        filled(lab, row, &pair, record)
                    }
                    Err(problem) => row.remark(format!("not measured: {problem}")),
                }
            }
            [Err(problem), _] | [_, Err(problem)] => row.remark(format!("not measured: {problem}")),
        };
        record.row(row);
    }
    record.say(format!(
        "measured: {} files in {DIRECTORIES} directories, as many in each as in the post's, on file systems made for this in nameless \
         files in `{}`; {readers} readers with fixed lists; mounted anew before each pass, so that names, inodes and data are \
         cold; device: bytes that the loop device read, a file.",
        shape.files, lab.spec
    ));
}

impl Arm {
    fn make(
        lab: &Lab<'_>,
        kind: Kind,
        block_bytes: u64,
        shape: &Shape,
        readers: u64,
        stand: &mut MountPoint,
    ) -> Result<Arm, Problem> {
        let image = Image::make(Path::new(lab.spec), IMAGE_BYTES, kind, block_bytes)?;
        stand.attach(image.mount(false)?)?;
        let begun = Instant::now();
        let tree =
            Tree::make(&stand.path(), Some(&stand.path().join("news")), shape.clone(), &mut |done, all| {
                let share = done as f64 / all.max(1) as f64;
                let left = begun.elapsed().mul_f64((1.0 - share) / share.max(0.01));
                lab.world.at(share, left, "a tree on a file system of its own");
            });
        let files = tree.map(|tree| tree.files());
        // Clean before anything is read.
        stand.detach()?;
        let files = files?;
        let lists = files.lists(readers as usize, Some(shape.files / readers), Order::Random, lab.seed);
        let bytes = lists.iter().flatten().map(|file| files.size(*file)).sum();
        Ok(Arm {
            kind,
            block_bytes,
            image,
            files,
            lists,
            bytes,
            times_ns: Vec::new(),
            device_bytes: Vec::new(),
        })
    }

    /// One pass on a mount of its own.
    fn pass(&mut self, stand: &mut MountPoint) -> Result<(), Problem> {
        let mounted = self.image.mount(true)?;
        let device = mounted.device().to_owned();
        if !has_direct_io(&device) {
            self.image.drop_cache()?;
        }
        stand.attach(mounted)?;
        let names = [device];
        let before = counters::devices(&names);
        let pass = tree::run(Phase::Read, &mut self.files, &self.lists, None, &mut |_| {});
        let after = counters::devices(&names);
        stand.detach()?;
        let pass = pass?;
        if pass.interrupted {
            return Ok(());
        }
        self.times_ns.push(pass.last_done_ns as f64);
        if let (Some(before), Some(after)) = (before, after) {
            self.device_bytes.push(after.since(&before).read_bytes as f64);
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("{} with {}", self.kind.id(), Bytes(self.block_bytes))
    }

    /// Bytes that the device read, a file.
    fn device_bytes_per_file(&self, seed: u64) -> Option<Estimate> {
        let files = self.lists.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let each: Vec<f64> = self.device_bytes.iter().map(|bytes| bytes / files).collect();
        stats::bootstrap_median(&each, seed, Unit::Ratio)
    }

    /// Whether the device was asked for all that the readers read, in every pass: else something was cached.
    fn cold(&self) -> bool {
        !self.device_bytes.is_empty() && self.device_bytes.iter().all(|bytes| *bytes >= self.bytes as f64)
    }
}

/// Passes of both, in seeded order within a round.
fn rounds(lab: &Lab<'_>, pair: &mut [Arm; 2], stand: &mut MountPoint, number: u64) -> Result<u32, Problem> {
    let (begun, time) = (Instant::now(), lab.time / 4);
    let mut round = 0;
    while round < ROUNDS.1 && (round < ROUNDS.0 || begun.elapsed() < time) {
        for &index in &schedule::interleave(pair.len(), round, lab.seed ^ number) {
            if interrupt::requested() {
                return Ok(round);
            }
            let left = time.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
            lab.world.at(f64::from(round) / f64::from(ROUNDS.1), left, "30 readers, mounted anew");
            pair[index].pass(stand)?;
        }
        round += 1;
    }
    Ok(round)
}

fn filled(lab: &Lab<'_>, row: Row, pair: &[Arm; 2], record: &mut Report) -> Row {
    let [small, large] = pair;
    let ratio = stats::paired_ratio(&small.times_ns, &large.times_ns, lab.seed);
    let [a, b] = [small, large].map(|arm| arm.device_bytes_per_file(lab.seed));
    let [time_a, time_b] =
        [small, large].map(|arm| stats::bootstrap_median(&arm.times_ns, lab.seed, Unit::Nanoseconds));
    let value = |estimate: &Option<Estimate>| serde_json::to_value(estimate).unwrap_or_default();
    let row = row
        .key("small_block_time_ns", value(&time_a))
        .key("large_block_time_ns", value(&time_b))
        .key("small_block_device_bytes_per_file", a.map(|e| e.value))
        .key("large_block_device_bytes_per_file", b.map(|e| e.value));
    let evidence = match (a, b) {
        (Some(a), Some(b)) => {
            format!(
                "device: {:.0} bytes a file with the smaller, {:.0} with the larger (medians of {} passes)",
                a.value, b.value, a.n
            )
        }
        _ => "device: not counted".to_owned(),
    };
    if !(small.cold() && large.cold()) {
        return row
            .remark(format!("inconclusive: something was cached, or the device does not count; {evidence}"));
    }
    let Some(ratio) = ratio else { return row.remark("too few rounds") };
    record.verdicts.push(format!(
        "Small cold files on {} take {} times as long as on {}: {}.",
        small.name(),
        units::factor(&ratio),
        large.name(),
        match () {
            () if ratio.low > 1.05 => "the larger block wins",
            () if ratio.high < 0.95 => "the smaller block wins",
            () if ratio.low >= 0.95 && ratio.high <= 1.05 => "no significant difference, as the post found",
            () => "inconclusive at 5 %",
        }
    ));
    row.now(Some(ratio)).remark(evidence)
}
