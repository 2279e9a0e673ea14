//! Untarring in the model: one writer that waits for each file's inode and name, as the file system of 1999 did, while the data
//! goes out behind it. Compared with what the post quotes of interleaves 96 and 32.

use crate::published::Experiment;
use iowhy_core::estimate::Unit;
use iowhy_core::problem::Problem;
use iowhy_core::units;
use iowhy_probe::interrupt;
use iowhy_sim::files::Shape;
use iowhy_sim::machine::{Machine, Value};
use iowhy_sim::requests;
use iowhy_sim::workload::Load;

use crate::lab::Lab;
use crate::report::{Report, Row};

/// Interleaves of the quotation, the faster first.
const FASTER: u64 = 96;
const SLOWER: u64 = 32;
/// Files of the simulated archive, and their directories. The quotation says "a large directory tree with a lot of small
/// files"; the sizes are those of the post's own test.
const FILES: u64 = 6000;
const DIRECTORIES: u64 = 60;
/// Data that the writer may be ahead of the disks: a stand-in for the half minute after which it is written anyway.
const AHEAD: [&str; 2] = ["1m", "4m"];
/// Disks: the quotation speaks of one drive that is active and one that is idle; the test of the post has three.
const DISKS: [u64; 2] = [2, 3];

/// Simulates, and adds rows and a sentence.
///
/// # Errors
/// What the simulator says of its own machine.
pub(super) fn fill(lab: &Lab<'_>, experiment: &Experiment, record: &mut Report) -> Result<(), Problem> {
    record.section("untar", "Untarring: time at interleave 96 over that at 32", "disks, data held back");
    // "96 is about 20 % faster than 32".
    let then = experiment.fact("untar-gain").map(|gain| 1.0 / (1.0 + gain));
    let fact = |id: &str| experiment.fact(id).map_or(0, |value| value as u64);
    let sizes = ["size-small", "size-middle", "size-large"].into_iter().map(fact).collect();
    let shape = Shape::Tree { sizes, directories: DIRECTORIES, files: FILES };
    let mut found: Vec<f64> = Vec::new();
    for disks in DISKS {
        for ahead in AHEAD {
            let mut row = Row::new(
                "untar",
                format!("{disks}, {ahead}"),
                "time at interleave 96 over that at 32",
                Unit::Ratio,
            )
            .key("disks", disks)
            .key("data_held_back", ahead)
            // The quotation is of a set of its author's, which seems to have had two disks.
            .then(then.filter(|_| disks == 2));
            if !interrupt::requested() {
                let [faster, slower] = [FASTER, SLOWER].map(|at| time_ns(lab, &shape, disks, at, ahead));
                let (faster, slower) = (faster?, slower?);
                let ratio = faster as f64 / slower.max(1) as f64;
                found.push(ratio);
                row = row.key("model_32_ns", slower).key("model_96_ns", faster).model(Some(ratio)).remark(
                    format!("{} at 96, {} at 32", units::time(faster as f64), units::time(slower as f64)),
                );
            } else {
                row = row.remark("interrupted");
            }
            record.row(row);
        }
    }
    record.say(format!(
        "published: C. Sampson, quoted in the post, of his own disks and archive, neither of which is described. model: {FILES} files in \
         {DIRECTORIES} directories made by one writer, each waiting for the block of its inode and then for that of its name; \
         its data goes out in the background once so much is held back. Simulated times repeat to the digit; the archive is a guess."
    ));
    if let (Some(then), Some(low), Some(high)) =
        (then, found.iter().copied().reduce(f64::min), found.iter().copied().reduce(f64::max))
    {
        let explained = found.iter().any(|ratio| (ratio / then - 1.0).abs() <= 0.05);
        record.verdicts.push(format!(
            "Untarring at interleave 96 took {then:.2} of the time at 32 for the author who is quoted; in the model {low:.2} to \
             {high:.2}, by disks and by how much data is held back: {}.",
            match explained {
                true => "explained by some of these",
                false if high < 0.95 => "its direction is explained, its size is not",
                false => "not explained",
            }
        ));
    }
    Ok(())
}

/// Simulated time until all is on the disks.
fn time_ns(lab: &Lab<'_>, shape: &Shape, disks: u64, interleave: u64, ahead: &str) -> Result<u64, Problem> {
    let mut machine = Machine::shipped("netbsd-1999")
        .ok_or_else(|| Problem::failed("the machine `netbsd-1999` does not ship with this build"))?;
    machine.device.count = disks;
    machine.volume.interleave = interleave;
    let device = iowhy_sim::device::new(&machine.device, lab.seed)?.sectors();
    let volume_bytes = device / interleave * interleave * disks * 512;
    let writes = requests::creation(&machine, shape, FILES, volume_bytes)?;
    // The addresses are the volume's own now; fragments are the grain, so that nothing is read to be written in part.
    for (key, value) in [
        ("layout.kind", "raw"),
        ("cache.block_bytes", "1k"),
        ("cache.background_bytes", ahead),
        ("cache.dirty_bytes", "6m"),
    ] {
        machine.set(key, &Value::Text(value.to_owned()))?;
    }
    let outcome = iowhy_sim::run(&machine, Load::replay(writes.into_iter()).closed(1), lab.seed)?;
    Ok(outcome.settled_ns)
}
