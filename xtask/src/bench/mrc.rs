//! `iowhy mrc` as a whole process beside `cachesim` of libCacheSim, where that is in PATH: the same trace, the same
//! policies, the same size. Both read the file from the page cache. A miss ratio that differs in four digits is a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use iowhy_core::stats;
use serde_json::Value;

use super::{Arm, Outcome, SEED, Scratch, Unit, interleave, ratio};

/// Both know them by the same names.
const POLICIES: [&str; 6] = ["fifo", "lru", "clock", "sieve", "arc", "s3fifo"];
const ALL: &str = "fifo,lru,clock,sieve,arc,s3fifo";
/// Objects that a cache holds: a tenth of those in the trace.
const ROOM: &str = "100000";

/// Runs every policy alone and all together in both, and the default curves.
pub(super) fn measure(root: &Path, target: &Path, iowhy: &Path, rounds: usize) -> Outcome<()> {
    let example = super::policies::build(root, target)?;
    let path = target.join(format!(".iowhy-bench-{}.zipf.oracleGeneral", std::process::id()));
    let trace = Scratch(path);
    let made = Command::new(&example).arg("--write").arg(&trace.0).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err(format!("{} did not write the trace", example.display()));
    }
    let peer = Command::new("cachesim").arg("--help").output().is_ok_and(|o| o.status.success());
    if !peer {
        println!(
            "skipped: comparison with libCacheSim (no `cachesim` in PATH; https://github.com/1a1a11a/libCacheSim)"
        );
    }
    let (ours, theirs) = (Ours { iowhy, trace: &trace.0 }, Theirs { target, trace: &trace.0 });
    println!("iowhy mrc, 20 M requests over 1 M objects, zipf 1.0, room {ROOM} objects; whole process");
    for policy in POLICIES {
        one_policy(&ours, peer.then_some(&theirs), policy, rounds)?;
    }
    together(&ours, peer.then_some(&theirs), rounds)
}

/// One policy in both; also the processor time, which other work on the machine changes less.
fn one_policy(ours: &Ours<'_>, theirs: Option<&Theirs<'_>>, policy: &str, rounds: usize) -> Outcome<()> {
    let our_ratio = ours.size(policy)?.1;
    let (mut our_cpu, mut their_cpu) = (Vec::new(), Vec::new());
    let mut arms = vec![Arm::new("iowhy mrc", || {
        let (time, _) = ours.size(policy)?;
        our_cpu.push(time.cpu_s);
        Ok(time.wall_ns)
    })];
    if let Some(theirs) = theirs {
        arms.push(Arm::new("cachesim", || {
            let (time, miss_ratio) = theirs.size(policy)?;
            if format!("{our_ratio:.4}") != miss_ratio {
                return Err(format!("{policy}: a miss ratio of {miss_ratio}, and {our_ratio:.4} here"));
            }
            their_cpu.push(time.cpu_s);
            Ok(time.wall_ns)
        }));
    }
    interleave(&mut arms, rounds)?;
    println!("{policy}");
    arms.iter().for_each(show);
    if theirs.is_some() {
        ratio("cachesim / iowhy mrc, time", &arms[1], &arms[0]);
    }
    drop(arms);
    if let Some(e) = stats::paired_ratio(&their_cpu, &our_cpu, SEED) {
        println!("  cachesim / iowhy mrc, processor time: {:.2} [{:.2}, {:.2}]", e.value, e.low, e.high);
    }
    Ok(())
}

/// Six policies in one run: beside six runs of the peer, and beside its own run of several caches on all cores.
fn together(ours: &Ours<'_>, theirs: Option<&Theirs<'_>>, rounds: usize) -> Outcome<()> {
    let mut arms = vec![
        Arm::new("six, one size", || Ok(ours.size(ALL)?.0.wall_ns)),
        Arm::new("six, curves", || Ok(ours.curves()?.wall_ns)),
    ];
    if let Some(theirs) = theirs {
        arms.push(Arm::new("cachesim 6 runs", || {
            POLICIES.iter().map(|policy| theirs.size(policy).map(|(time, _)| time.wall_ns)).sum()
        }));
        arms.push(Arm::new("cachesim 1 run", || Ok(theirs.together()?.wall_ns)));
    }
    interleave(&mut arms, rounds)?;
    println!("six policies");
    arms.iter().for_each(show);
    if theirs.is_some() {
        ratio("six runs of cachesim / one of iowhy mrc, time", &arms[2], &arms[0]);
        ratio("cachesim with all of them and all cores / iowhy mrc, time", &arms[3], &arms[0]);
    }
    println!();
    Ok(())
}

fn show(arm: &Arm<'_>) {
    match stats::bootstrap_median(&arm.values, SEED, Unit::Nanoseconds) {
        Some(e) => {
            let [value, low, high] = [e.value, e.low, e.high].map(|ns| ns / 1e9);
            println!("  {:16} {value:>7.3} s [{low:.3}, {high:.3}]", arm.name);
        }
        None => println!("  {:16} inconclusive", arm.name),
    }
}

/// What a process took.
struct Time {
    wall_ns: f64,
    cpu_s: f64,
}

/// Runs a process and answers what it took, and what it printed.
fn timed(command: &mut Command) -> Outcome<(Time, String)> {
    let (begun, cpu) = (Instant::now(), children_cpu_s()?);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", command.get_program().display()))?;
    let time = Time { wall_ns: begun.elapsed().as_nanos() as f64, cpu_s: children_cpu_s()? - cpu };
    match output.status.success() {
        true => Ok((time, String::from_utf8_lossy(&output.stdout).into_owned())),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Processor time of all children that have ended, in hundredths of a second.
fn children_cpu_s() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|e| format!("/proc/self/stat: {e}"))?;
    // Behind the name, which may hold anything: fields 16 and 17, counted from 1 with the name as the second.
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: Vec<f64> = after.split_whitespace().skip(13).take(2).filter_map(|n| n.parse().ok()).collect();
    match ticks.as_slice() {
        [user, system] => Ok((user + system) / 100.0),
        _ => Err("/proc/self/stat has no times of children".to_owned()),
    }
}

struct Ours<'a> {
    iowhy: &'a Path,
    trace: &'a PathBuf,
}

impl Ours<'_> {
    fn run(&self, options: &[&str]) -> Outcome<(Time, Value)> {
        let mut command = crate::iowhy(self.iowhy);
        command.arg("mrc").arg(self.trace).args(["--objects", "--quiet", "--json", "-"]).args(options);
        let (time, text) = timed(&mut command)?;
        Ok((time, serde_json::from_str(&text).map_err(|e| format!("its JSON cannot be read: {e}"))?))
    }

    /// The time and the miss ratio of the first policy.
    fn size(&self, policies: &str) -> Outcome<(Time, f64)> {
        let (time, record) = self.run(&["--points", "0", "--size", ROOM, "--policy", policies])?;
        let miss_ratio = record["curves"][0]["points"][0]["miss_ratio"].as_f64();
        Ok((time, miss_ratio.ok_or("its JSON has no miss ratio")?))
    }

    fn curves(&self) -> Outcome<Time> {
        Ok(self.run(&["--policy", ALL])?.0)
    }
}

struct Theirs<'a> {
    target: &'a Path,
    trace: &'a PathBuf,
}

impl Theirs<'_> {
    fn run(&self, policies: &str, threads: usize) -> Outcome<(Time, String)> {
        let mut command = Command::new("cachesim");
        command.arg(self.trace).args(["oracleGeneral", policies, ROOM, "--ignore-obj-size", "1"]);
        // It writes a folder of results where it runs.
        command.arg(format!("--num-thread={threads}")).args(["-o", "/dev/null"]).current_dir(self.target);
        timed(&mut command)
    }

    /// The time and the miss ratio as it prints it.
    fn size(&self, policy: &str) -> Outcome<(Time, String)> {
        let (time, text) = self.run(policy, 1)?;
        let last = text.rsplit_once("miss ratio ").map(|(_, rest)| rest.chars().take(6).collect());
        Ok((time, last.ok_or("cachesim prints no miss ratio")?))
    }

    fn together(&self) -> Outcome<Time> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(self.run(ALL, cores)?.0)
    }
}
