//! Speed, shown as paired ratios within one run: our loop against a bare one and against fio, in interleaved rounds,
//! each ratio with its interval. What watching costs is in [`watching`], cache policies are in [`policies`], the timed
//! simulator in [`timed`], how fast traces are read in [`traces`], `iowhy mrc` beside libCacheSim in [`mrc`].
//! Prints; asserts nothing but equal miss ratios, because a shared machine proves nothing by one number.

mod mrc;
mod policies;
mod timed;
mod traces;
mod watching;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use serde_json::Value;

const FILE_BYTES: u64 = 64 << 20;
const SEED: u64 = 1;

/// Rounds of cache policies: each takes half a minute.
const POLICY_ROUNDS: usize = 3;

/// The one part that was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    Nothing,
    Watching,
    Traces,
    Policies,
    Timed,
    Mrc,
}

/// What a benchmark step may fail with: text for people.
type Outcome<T> = Result<T, String>;

/// Builds the release binary and measures it. `--rounds N` changes the number of rounds (default 11); `watching`
/// measures only what watching costs, `traces` only how fast traces are read, `policies` only cache policies, `timed` only
/// the timed simulator (rounds default 3 for the last two), `mrc` only `iowhy mrc` beside libCacheSim.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let (only, rest) = match arguments {
        ["watching", rest @ ..] => (Only::Watching, rest),
        ["traces", rest @ ..] => (Only::Traces, rest),
        ["policies", rest @ ..] => (Only::Policies, rest),
        ["timed", rest @ ..] => (Only::Timed, rest),
        ["mrc", rest @ ..] => (Only::Mrc, rest),
        rest => (Only::Nothing, rest),
    };
    let rounds = match rest {
        [] => {
            if matches!(only, Only::Policies | Only::Timed) {
                POLICY_ROUNDS
            } else {
                11
            }
        }
        ["--rounds", n] if n.parse::<usize>().is_ok_and(|n| n >= 3) => n.parse().unwrap_or(11),
        _ => {
            eprintln!(
                "usage: cargo xtask bench [watching|traces|policies|timed|mrc] [--rounds N], N at least 3"
            );
            return ExitCode::from(2);
        }
    };
    match measure(root, rounds, only) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// One arm: a name and how to get a number from one slice of it.
struct Arm<'a> {
    name: &'a str,
    run: Box<dyn FnMut() -> Outcome<f64> + 'a>,
    values: Vec<f64>,
}

impl<'a> Arm<'a> {
    fn new(name: &'a str, run: impl FnMut() -> Outcome<f64> + 'a) -> Self {
        Arm { name, run: Box::new(run), values: Vec::new() }
    }
}

fn measure(root: &Path, rounds: usize, only: Only) -> Outcome<()> {
    let target = crate::target(root);
    if only == Only::Policies {
        return policies::measure(root, &target, rounds);
    }
    if only == Only::Timed {
        return timed::measure(root, &target, rounds);
    }
    if only == Only::Traces {
        heading(rounds);
        return traces::measure(root, &target, rounds);
    }
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "iowhy"])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !built.success() {
        return Err("the release build failed".to_owned());
    }
    let iowhy = target.join("release/iowhy");
    let file = TestFile::make(&target)?;
    if only == Only::Watching {
        heading(rounds);
        return watching::measure(root, &target, &iowhy, &file.path, rounds);
    }
    if only == Only::Mrc {
        heading(rounds);
        return mrc::measure(root, &target, &iowhy, rounds);
    }
    let fio = Command::new("fio").arg("--version").output().is_ok_and(|o| o.status.success());
    if !fio {
        println!("skipped: comparison with fio (not installed; Debian package `fio`)");
    }
    heading(rounds);
    harness(&iowhy, rounds)?;
    bare_loop(root, &target.join("release/examples/bare_against_runner"), &file.path, rounds)?;
    if fio {
        cached_pread(&iowhy, &file.path, rounds)?;
        uring(&iowhy, &file.path, rounds, false)?;
        uring(&iowhy, &file.path, rounds, true)?;
    }
    watching::measure(root, &target, &iowhy, &file.path, rounds)?;
    println!();
    policies::measure(root, &target, POLICY_ROUNDS)?;
    timed::measure(root, &target, POLICY_ROUNDS)?;
    mrc::measure(root, &target, &iowhy, POLICY_ROUNDS)?;
    traces::measure(root, &target, rounds)
}

fn heading(rounds: usize) {
    println!(
        "{rounds} rounds, arms interleaved in seeded order; [95 % interval of the median], n = {rounds}\n"
    );
}

/// The harness alone: the `null` method, full histogram kept.
fn harness(iowhy: &Path, rounds: usize) -> Outcome<()> {
    let mut arms = [Arm::new("iowhy null", || {
        let record = bench_json(iowhy, &["--runtime", "300ms", "null"])?;
        record["cells"][0]["time_per_request"]["value"]
            .as_f64()
            .ok_or_else(|| "no time per request".to_owned())
    })];
    interleave(&mut arms, rounds)?;
    println!("harness, ns per request (aim: at most 60)\n  {}", show(&arms[0], Unit::Nanoseconds));
    let record = bench_json(iowhy, &["--runtime", "300ms", "null"])?;
    if let Some(bytes) = record["ruler"]["peak_memory_bytes"].as_u64() {
        println!(
            "  peak memory of the process {} MiB (one run; aim: under 64 beside the buffers)\n",
            bytes >> 20
        );
    }
    Ok(())
}

/// What the runner costs a cached read: its loop and a bare one, slice about slice in one process.
fn bare_loop(root: &Path, example: &Path, file: &Path, rounds: usize) -> Outcome<()> {
    let built = Command::new("cargo")
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "iowhy-probe",
            "--example",
            "bare_against_runner",
        ])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !built.success() {
        return Err("the example did not build".to_owned());
    }
    // A slice takes 25 ms: many more pairs than the others fit in the same time.
    let pairs = rounds * PAIRS_PER_ROUND;
    let output = Command::new(example)
        .arg(file)
        .arg(pairs.to_string())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", example.display()))?;
    let record: Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("its JSON: {e}"))?;
    let values = |key: &str| -> Vec<f64> {
        record[key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let bare = Arm { name: "bare loop", run: Box::new(|| Ok(0.0)), values: values("bare_ns") };
    let ours = Arm { name: "runner", run: Box::new(|| Ok(0.0)), values: values("runner_ns") };
    println!("cached random 4 KiB pread, ns per request, {pairs} pairs of 25 ms");
    println!("  {}\n  {}", show(&bare, Unit::Nanoseconds), show(&ours, Unit::Nanoseconds));
    ratio("runner / bare loop (aim: at most 1.03)", &ours, &bare);
    println!();
    Ok(())
}

const PAIRS_PER_ROUND: usize = 20;

/// Cached random 4 KiB reads: iowhy and fio psync. Rates per second.
fn cached_pread(iowhy: &Path, file: &Path, rounds: usize) -> Outcome<()> {
    let path = file.display().to_string();
    let mut arms = vec![
        Arm::new("iowhy pread", || {
            iowhy_rate(iowhy, &["--rw", "randread", "--state", "warm", "--runtime", "1s", &path])
        }),
        Arm::new("fio psync", || fio_rate(&path, &["--ioengine=psync"])),
    ];
    interleave(&mut arms, rounds)?;
    println!("cached random 4 KiB pread, requests per second");
    table(&arms);
    ratio("iowhy / fio psync (aim: at least 1.25)", &arms[0], &arms[1]);
    println!();
    Ok(())
}

/// io_uring at depth 32, cached or direct, against fio with its best options.
fn uring(iowhy: &Path, file: &Path, rounds: usize, direct: bool) -> Outcome<()> {
    let path = file.display().to_string();
    let (state, flag) = if direct { ("direct", "--direct=1") } else { ("warm", "--direct=0") };
    let fio_options = [
        "--ioengine=io_uring",
        "--iodepth=32",
        "--iodepth_batch_submit=32",
        "--iodepth_batch_complete_min=1",
        "--iodepth_batch_complete_max=32",
        "--registerfiles=1",
        "--fixedbufs=1",
        "--nonvectored=1",
        "--norandommap=1",
        flag,
    ];
    let mut reduced = fio_options.to_vec();
    reduced.push("--gtod_reduce=1");
    let mut arms = vec![
        Arm::new("iowhy uring", || {
            iowhy_rate(
                iowhy,
                &[
                    "--rw",
                    "randread",
                    "--method",
                    "uring",
                    "--iodepth",
                    "32",
                    "--state",
                    state,
                    "--runtime",
                    "1s",
                    &path,
                ],
            )
        }),
        Arm::new("fio io_uring", || fio_rate(&path, &fio_options)),
        Arm::new("fio, no clocks", || fio_rate(&path, &reduced)),
    ];
    interleave(&mut arms, rounds)?;
    println!("{state} random 4 KiB, io_uring at depth 32, requests per second");
    table(&arms);
    ratio("iowhy / fio with latencies (aim: at least 1)", &arms[0], &arms[1]);
    ratio("iowhy / fio without any clock (gtod_reduce)", &arms[0], &arms[2]);
    println!();
    Ok(())
}

/// Runs every arm once a round, in seeded order.
fn interleave(arms: &mut [Arm<'_>], rounds: usize) -> Outcome<()> {
    let mut rng = Rng::new(SEED);
    let mut order: Vec<usize> = (0..arms.len()).collect();
    for _ in 0..rounds {
        rng.shuffle(&mut order);
        for &i in &order {
            let value = (arms[i].run)().map_err(|e| format!("{}: {e}", arms[i].name))?;
            arms[i].values.push(value);
        }
    }
    Ok(())
}

fn show(arm: &Arm<'_>, unit: Unit) -> String {
    match stats::bootstrap_median(&arm.values, SEED, unit) {
        Some(e) => format!("{:14} {:>12.1} [{:.1}, {:.1}]", arm.name, e.value, e.low, e.high),
        None => format!("{:14} inconclusive", arm.name),
    }
}

fn table(arms: &[Arm<'_>]) {
    for arm in arms {
        println!("  {}", show(arm, Unit::PerSecond));
    }
}

fn ratio(what: &str, above: &Arm<'_>, below: &Arm<'_>) {
    match stats::paired_ratio(&above.values, &below.values, SEED) {
        Some(Estimate { value, low, high, .. }) => println!("  {what}: {value:.3} [{low:.3}, {high:.3}]"),
        None => println!("  {what}: inconclusive"),
    }
}

fn bench_json(iowhy: &Path, arguments: &[&str]) -> Outcome<Value> {
    let output = crate::iowhy(iowhy)
        .args(["bench", "--quiet", "--json", "-"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", iowhy.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("its JSON cannot be read: {e}"))
}

fn iowhy_rate(iowhy: &Path, arguments: &[&str]) -> Outcome<f64> {
    let record = bench_json(iowhy, arguments)?;
    record["cells"][0]["requests_per_second"]["value"]
        .as_f64()
        .ok_or_else(|| "no rate in its JSON".to_owned())
}

fn fio_rate(path: &str, options: &[&str]) -> Outcome<f64> {
    let output = Command::new("fio")
        .args(["--name=peer", "--rw=randread", "--bs=4k", "--time_based=1", "--runtime=1", "--thread=1"])
        .args(["--output-format=json", "--invalidate=0", "--randrepeat=1"])
        .arg(format!("--size={FILE_BYTES}"))
        .arg(format!("--filename={path}"))
        .args(options)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run fio: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let json = &text[text.find('{').unwrap_or(0)..];
    let record: Value = serde_json::from_str(json).map_err(|e| format!("fio's JSON cannot be read: {e}"))?;
    record["jobs"][0]["read"]["iops"].as_f64().ok_or_else(|| "no iops in fio's JSON".to_owned())
}

/// A file that goes when it is no longer needed.
struct Scratch(PathBuf);

impl Scratch {
    fn make(path: PathBuf, content: &[u8]) -> Outcome<Scratch> {
        std::fs::write(&path, content).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// A file of incompressible data under the build folder, removed at the end.
struct TestFile {
    path: PathBuf,
}

impl TestFile {
    fn make(folder: &Path) -> Outcome<TestFile> {
        let path = folder.join(format!(".iowhy-bench-{}", std::process::id()));
        let mut file = File::create(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        let made = TestFile { path };
        let mut rng = Rng::new(SEED);
        let mut piece = vec![0u8; 1 << 20];
        for _ in 0..FILE_BYTES / piece.len() as u64 {
            for word in piece.chunks_exact_mut(8) {
                word.copy_from_slice(&rng.next_u64().to_le_bytes());
            }
            file.write_all(&piece).map_err(|e| format!("cannot fill the test file: {e}"))?;
        }
        file.sync_all().map_err(|e| format!("cannot sync the test file: {e}"))?;
        Ok(made)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            eprintln!("cannot remove {}: {error}", self.path.display());
        }
    }
}
