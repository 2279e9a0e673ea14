//! Interleave truth: one load on three disks with one arm each, striped with interleaves from less than a request to more
//! than all that is read, measured and simulated. What each gains over one disk must be what `iowhy sim` says it gains,
//! and the interleave that the simulator would pick must be as good as the best.
//!
//! A request of 16 KiB takes one turn of a disk, and the load reads 12 MiB in random order at queue depth 16: small
//! interleaves split a request over several disks, 126 sectors split one in four, and huge ones leave disks idle. The
//! simulator is given the very requests that are measured, as a trace: chance alone moves the gain by 5 %.

use iowhy_core::pattern::{Offsets, Pattern};

use super::{Phase, ended_well};
use crate::lab::answers::Answers;
use crate::lab::boot::Boot;
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "interleave", boots, judge };

const NAME: &str = "interleave";
const TOLERANCE: f64 = 0.03;
const DISKS: [&str; 3] = ["a", "b", "c"];
const DISK_SECTORS: u64 = 64 << 11;
/// Sectors of one turn.
const INTERLEAVES: [u64; 8] = [8, 32, 126, 128, 2048, 8192, 16_384, 65_536];
const MACHINE: &str = "/tmp/machine.toml";
/// The disks in the simulator's words.
const DESCRIPTION: &str = r#"
name = "stripe"
[cache]
bytes = 0
[volume]
merge = true
[scheduler]
depth = 1
[device]
kind = "ssd"
bytes = "64m"
read_ns = 2000000
units = 1
"#;
const LOAD: &str = "/tmp/load.iolog";
const REPLAY: &str = "--trace /tmp/load.iolog --clients 16";
const SEED: u64 = 7;
const BLOCK_BYTES: u64 = 16 << 10;
const BLOCKS: u64 = (12 << 20) / BLOCK_BYTES;

/// One pass of the load, as iowhy draws it from its seed, in the form that fio writes.
fn load() -> String {
    let mut offsets = Offsets::new(Pattern::Random, BLOCKS, SEED).for_thread(0, 1);
    let mut text = "fio version 2 iolog\ndisk add\ndisk open\n".to_owned();
    for _ in 0..BLOCKS {
        text.push_str(&format!("disk read {} {BLOCK_BYTES}\n", offsets.next() * BLOCK_BYTES));
    }
    text.push_str("disk close\n");
    text
}

fn boots() -> Vec<Boot> {
    let mut boot = Boot::new(NAME, Time::Counted);
    boot.null_disks();
    boot.module("mq_deadline", "");
    boot.module("dm_mod", "");
    for disk in DISKS {
        boot.null_disk(
            disk,
            &[
                ("size", "64"),
                ("queue_mode", "2"),
                ("irqmode", "2"),
                ("completion_nsec", "2000000"),
                ("hw_queue_depth", "1"),
            ],
        );
        // Whoever asks must not wait for a place in the queue of one disk before asking the next.
        boot.step(&["write", &format!("/sys/block/{disk}/queue/scheduler"), "mq-deadline"]);
        boot.step(&["write", &format!("/sys/block/{disk}/queue/nr_requests"), "64"]);
    }
    for interleave in INTERLEAVES {
        let members: String = DISKS.iter().map(|disk| format!(" /dev/{disk} 0")).collect();
        let sectors = DISKS.len() as u64 * (DISK_SECTORS / interleave * interleave);
        let table = format!("0 {sectors} striped {} {interleave}{members}", DISKS.len());
        boot.step(&["dm", &format!("stripe{interleave}"), &table]);
    }
    let bench = |device: &str| {
        format!(
            "bench {device} --state direct --method uring --pattern random --seed {SEED} --bs 16k --iodepth 16 --size 12m --once"
        )
    };
    boot.iowhy("one", "-", &bench("/dev/a"));
    for interleave in INTERLEAVES {
        boot.iowhy(&measured(interleave), "-", &bench(&format!("/dev/stripe{interleave}")));
    }
    boot.step(&["write", MACHINE, DESCRIPTION]);
    boot.step(&["write", LOAD, &load()]);
    boot.iowhy("sim-one", "-", &format!("sim --machine {MACHINE} {REPLAY}"));
    let sweep: Vec<String> = INTERLEAVES.iter().map(u64::to_string).collect();
    boot.iowhy(
        "sim",
        "-",
        &format!(
            "sim --machine {MACHINE} {REPLAY} --set volume.kind=stripe --set device.count=3 --sweep volume.interleave={}",
            sweep.join(",")
        ),
    );
    vec![boot]
}

fn measured(interleave: u64) -> String {
    format!("stripe-{interleave}")
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let run = |label: &str| answers.get(NAME, label);
    for label in ["one", "sim-one", "sim"] {
        ended_well(checks, label, run(label));
    }
    let rate = |label: &str| run(label).cell("16384").throughput();
    let simulated = |label: &str, index: usize| {
        run(label).number(&format!("/record/points/{index}/throughput_bytes_per_second"))
    };
    let mut gains = Vec::new();
    for (index, interleave) in INTERLEAVES.into_iter().enumerate() {
        let label = measured(interleave);
        ended_well(checks, &label, run(&label));
        let gain = rate(&label).zip(rate("one")).map(|(many, one)| many / one);
        let model = simulated("sim", index).zip(simulated("sim-one", 0)).map(|(many, one)| many / one);
        checks.near(&format!("{interleave} sectors: gain as simulated"), gain, model, TOLERANCE);
        gains.extend(gain.zip(model));
    }
    checks.holds(
        "every interleave was measured and simulated",
        gains.len() == INTERLEAVES.len(),
        format!("{} of {}", gains.len(), INTERLEAVES.len()),
    );
    let best = gains.iter().map(|(gain, _)| *gain).fold(f64::NAN, f64::max);
    let pick = gains.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(gain, _)| *gain);
    checks.near("the simulator's pick against the best", pick, Some(best), TOLERANCE);
    // Without a hill there would be nothing to find.
    let ends = gains.first().zip(gains.last()).map(|((small, _), (huge, _))| small.max(*huge));
    checks.holds(
        "the best lies between the ends",
        ends.is_some_and(|ends| ends * 1.5 < best),
        format!("{best:.2} times one disk, the ends at most {:.2}", ends.unwrap_or(f64::NAN)),
    );
}
