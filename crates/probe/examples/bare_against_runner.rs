//! What the runner costs a cached read: a bare loop and the runner's loop, slice about slice in one process, on one
//! file, in seeded order. Prints one JSON line of paired figures; `cargo xtask bench` runs it.
//!
//! usage: bare_against_runner FILE ROUNDS

use std::process::ExitCode;
use std::time::{Duration, Instant};

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_core::workload::{CacheState, Method, Workload};
use iowhy_probe::arm::Arm;
use iowhy_probe::buffer::Buffer;
use iowhy_probe::residency;
use iowhy_probe::runner::{self, Bounds};
use iowhy_probe::target::{self, Needs, OpenMode, Target};
use std::os::fd::AsFd;

const BLOCK_BYTES: u64 = 4096;
const SLICE: Duration = Duration::from_millis(25);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let (Some(path), Some(Ok(rounds))) = (arguments.get(1), arguments.get(2).map(|n| n.parse::<u32>()))
    else {
        eprintln!("usage: bare_against_runner FILE ROUNDS");
        return ExitCode::from(2);
    };
    match measure(path, rounds) {
        Ok((bare, ours)) => {
            println!("{{\"bare_ns\":{bare:?},\"runner_ns\":{ours:?}}}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Nanoseconds per request of each arm, a pair a round.
fn measure(path: &str, rounds: u32) -> Result<(Vec<f64>, Vec<f64>), Problem> {
    let target = target::resolve(path, &Needs::default(), &mut |_, _| {})?;
    let bytes = target.facts.size_bytes / BLOCK_BYTES * BLOCK_BYTES;
    let file = target.open(OpenMode::default())?;
    residency::fetch(file.as_fd(), 0, bytes)?;
    let mut workload = Workload::reads(Method::Pread, CacheState::Warm, BLOCK_BYTES, bytes);
    workload.pattern = iowhy_core::pattern::Pattern::Random;
    let mut coin = Rng::new(1);
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let bare_first = coin.below(2) == 0;
        for arm in [bare_first, !bare_first] {
            if arm {
                bare.push(bare_slice(&target, bytes)?)
            } else {
                ours.push(runner_slice(&target, &workload)?)
            }
        }
    }
    Ok((bare, ours))
}

/// Random preads and nothing else, in a thread of its own as the runner has it.
fn bare_slice(target: &Target, bytes: u64) -> Result<f64, Problem> {
    let file = target.open(OpenMode::default())?;
    let mut buffer = Buffer::new(BLOCK_BYTES as usize)?;
    let slice = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut rng = Rng::new(1);
            let begun = Instant::now();
            let mut requests = 0u64;
            while begun.elapsed() < SLICE {
                // One look at the time in 256 reads costs a tenth of a nanosecond a read.
                for _ in 0..256 {
                    let offset = rng.below(bytes / BLOCK_BYTES) * BLOCK_BYTES;
                    rustix::io::pread(&file, buffer.as_mut_slice(), offset)?;
                }
                requests += 256;
            }
            Ok::<f64, rustix::io::Errno>(begun.elapsed().as_nanos() as f64 / requests as f64)
        });
        reader.join()
    });
    match slice {
        Ok(Ok(ns)) => Ok(ns),
        Ok(Err(errno)) => Err(Problem::failed(format!("pread failed: {errno}"))),
        Err(_) => Err(Problem::failed("the bare loop panicked")),
    }
}

fn runner_slice(target: &Target, workload: &Workload) -> Result<f64, Problem> {
    let bounds = Bounds { wall: SLICE, requests_per_thread: u64::MAX };
    let slices = runner::run(&[Arm { workload, target, listed: None, request_bytes: None }], bounds, None)?;
    slices.first().map(|s| s.sample.ns_per_request()).ok_or_else(|| Problem::failed("no slice came back"))
}
