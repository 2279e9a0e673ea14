//! What watching costs the watched: small programs alone and under `iowhy -- CMD`, in interleaved rounds.
//!
//! Compared are the program's own times for its loop, wall and CPU, and for whole commands the wall time. The CPU time
//! tells also on a machine that others use, but not what is taken from another CPU or from the device. What may not enter: how the
//! watcher works.

use std::cell::RefCell;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iowhy_core::estimate::Unit;
use serde_json::Value;

use super::{Arm, Outcome, SEED, interleave, ratio, show};

/// Reads of cached blocks, direct reads and round trips in one run: about one to two seconds each.
const CACHED: &str = "2000000";
const DIRECT: &str = "20000";
const ROUND_TRIPS: &str = "200000";
/// A cached read and nine microseconds of computing are a hundred thousand calls a second.
const PACED: [&str; 2] = ["200000", "9000"];
/// Rounds of a build, which takes half a minute.
const BUILD_ROUNDS: usize = 3;
/// Files of the tree that `git status` looks at, and in each folder.
const TREE_FILES: usize = 20_000;
const FILES_IN_FOLDER: usize = 200;

/// What is run, and from where.
struct Case<'a> {
    title: &'a str,
    aim: &'a str,
    program: &'a Path,
    arguments: Vec<String>,
    folder: PathBuf,
    /// It prints its own time; else the wall time of the command counts.
    prints_time: bool,
}

/// Measures all cases. `file`: a test file on a real file system, in the page cache.
pub(super) fn measure(root: &Path, target: &Path, iowhy: &Path, file: &Path, rounds: usize) -> Outcome<()> {
    let program = build_program(root, target)?;
    let path = file.display().to_string();
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let own = |title, aim, arguments| Case {
        title,
        aim,
        program: &program,
        arguments,
        folder: target.to_path_buf(),
        prints_time: true,
    };
    one(iowhy, rounds, &own("cached 4 KiB pread", "1.15", words(&["cached", &path, CACHED])))?;
    let paced = own("100,000 cached preads a second", "1.02", words(&["paced", &path, PACED[0], PACED[1]]));
    one(iowhy, rounds, &paced)?;
    beside(iowhy, rounds, &paced, &own("", "1.02", words(&["cached", &path, CACHED])))?;
    one(iowhy, rounds, &own("O_DIRECT 4 KiB pread", "1.00", words(&["direct", &path, DIRECT])))?;
    one(iowhy, rounds, &own("pipe round trips", "1.10", words(&["pipe", ROUND_TRIPS])))?;
    if let Some(tree) = tree(target)? {
        let git = Case {
            title: "git status",
            aim: "30 ms more",
            program: Path::new("git"),
            arguments: words(&["status", "--porcelain"]),
            folder: tree,
            prints_time: false,
        };
        one(iowhy, rounds, &git)?;
    } else {
        println!("skipped: git status (git is not installed)");
    }
    let clean = target.join("bench-build");
    let build = format!(
        "rm -rf '{0}' && cargo build --quiet --offline -j 2 -p iowhy-core --target-dir '{0}'",
        clean.display()
    );
    let project = Case {
        title: "cargo build -j 2",
        aim: "1.03",
        program: Path::new("sh"),
        arguments: words(&["-c", &build]),
        folder: root.to_path_buf(),
        prints_time: false,
    };
    let built = one(iowhy, rounds.min(BUILD_ROUNDS), &project);
    let _ = std::fs::remove_dir_all(&clean);
    built?;
    let nothing = Case {
        title: "a program that does nothing",
        aim: "30 ms more",
        program: Path::new("true"),
        arguments: Vec::new(),
        folder: target.to_path_buf(),
        prints_time: false,
    };
    one(iowhy, rounds, &nothing)
}

/// What watching one program costs another: `other` on one CPU while `watched` runs on another one, alone and watched.
fn beside(iowhy: &Path, rounds: usize, watched: &Case<'_>, other: &Case<'_>) -> Outcome<()> {
    println!(
        "cached 4 KiB pread on another CPU, while the program above runs alone and watched, ns of its loop"
    );
    let run = |prefix: &[&std::ffi::OsStr]| {
        // Endless: it is killed after the other one's end.
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).args(prefix).arg(watched.program).args(&watched.arguments[..2]);
        command.args([&u64::MAX.to_string(), PACED[1]]).process_group(0);
        let quiet = command
            .current_dir(&watched.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut background = quiet.spawn().map_err(|e| format!("cannot run taskset: {e}"))?;
        std::thread::sleep(Duration::from_millis(500));
        let mut command = Command::new("taskset");
        let took = timed(command.args(["-c", "1"]).arg(other.program).args(&other.arguments), other);
        let _ = rustix::process::kill_process_group(
            rustix::process::Pid::from_child(&background),
            rustix::process::Signal::KILL,
        );
        background.wait().map_err(|e| e.to_string())?;
        Ok(took?.wall_ns)
    };
    let words = ["--quiet", "--no-calibrate", "--"].map(std::ffi::OsStr::new);
    let prefix: Vec<&std::ffi::OsStr> = std::iter::once(iowhy.as_os_str()).chain(words).collect();
    let mut arms = [Arm::new("alone", || run(&[])), Arm::new("watched", || run(&prefix))];
    interleave(&mut arms, rounds)?;
    println!("  {}\n  {}", show(&arms[0], Unit::Nanoseconds), show(&arms[1], Unit::Nanoseconds));
    ratio(
        &format!("beside a watched one / beside an unwatched one (aim: {})", other.aim),
        &arms[1],
        &arms[0],
    );
    println!();
    Ok(())
}

fn build_program(root: &Path, target: &Path) -> Outcome<PathBuf> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "xtask", "--example", "io_program"])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !built.success() {
        return Err("the program to be watched did not build".to_owned());
    }
    Ok(target.join("release/examples/io_program"))
}

/// What the watcher said of itself, of the last run.
struct Said {
    wall_ns: f64,
    own_cpu_ms: f64,
    peak_mib: f64,
    events: f64,
    lost: f64,
    duty: f64,
    recorded_calls: f64,
    /// Its estimate of the time that it took out of the program, over the wall time.
    estimate: f64,
}

fn one(iowhy: &Path, rounds: usize, case: &Case<'_>) -> Outcome<()> {
    let record = case.folder.join(format!(".iowhy-watching-{}.json", std::process::id()));
    let (said, cpu) = (RefCell::new(Vec::new()), [RefCell::new(Vec::new()), RefCell::new(Vec::new())]);
    let mut arms = [
        Arm::new("bare", || {
            let mut command = Command::new(case.program);
            command.args(&case.arguments);
            let took = timed(&mut command, case)?;
            cpu[0].borrow_mut().extend(took.cpu_ns);
            Ok(took.wall_ns)
        }),
        Arm::new("watched", || {
            let mut command = crate::iowhy(iowhy);
            command.args(["--output", "/dev/null", "--json"]).arg(&record).arg("--");
            command.arg(case.program).args(&case.arguments);
            let took = timed(&mut command, case)?;
            cpu[1].borrow_mut().extend(took.cpu_ns);
            said.borrow_mut().push(read_record(&record)?);
            Ok(took.wall_ns)
        }),
    ];
    let done = interleave(&mut arms, rounds);
    let _ = std::fs::remove_file(&record);
    done?;
    let unit = if case.prints_time { "ns of its loop" } else { "ns of wall time" };
    println!("{}, alone and watched, {unit}", case.title);
    println!("  {}\n  {}", show(&arms[0], Unit::Nanoseconds), show(&arms[1], Unit::Nanoseconds));
    ratio(&format!("watched / bare (aim: {})", case.aim), &arms[1], &arms[0]);
    let walls: Vec<Vec<f64>> = arms.iter().map(|arm| arm.values.clone()).collect();
    drop(arms);
    let [bare, watched] = cpu.map(RefCell::into_inner);
    if let Some(e) = iowhy_core::stats::paired_ratio(&watched, &bare, SEED) {
        println!("  the same of its CPU time: {:.3} [{:.3}, {:.3}]", e.value, e.low, e.high);
    }
    let said = said.into_inner();
    let middle = |get: fn(&Said) -> f64| {
        iowhy_core::stats::median(&said.iter().map(get).collect::<Vec<_>>()).unwrap_or_default()
    };
    println!(
        "  watcher, medians: {:.0} ms of CPU, {:.0} MiB at most, {:.0} events, switches recorded {:.0} % of the time, \
         {:.0} calls recorded; lost {} in all rounds",
        middle(|s| s.own_cpu_ms),
        middle(|s| s.peak_mib),
        middle(|s| s.events),
        middle(|s| s.duty * 100.0),
        middle(|s| s.recorded_calls),
        said.iter().map(|s| s.lost).sum::<f64>(),
    );
    if !case.prints_time {
        let inside: Vec<f64> = said.iter().map(|s| s.wall_ns).collect();
        match iowhy_core::stats::paired_ratio(&inside, &walls[0], SEED) {
            Some(e) => println!(
                "  from exec to exit, as the watcher saw it, over bare: {:.3} [{:.3}, {:.3}]",
                e.value, e.low, e.high
            ),
            None => println!("  from exec to exit, as the watcher saw it, over bare: inconclusive"),
        }
        let added: Vec<f64> = walls[1].iter().zip(&inside).map(|(all, inside)| all - inside).collect();
        match iowhy_core::stats::bootstrap_median(&added, SEED, Unit::Nanoseconds) {
            Some(e) => println!(
                "  start and report add {:.0} ms [{:.0}, {:.0}]",
                e.value / 1e6,
                e.low / 1e6,
                e.high / 1e6
            ),
            None => println!("  start and report add: inconclusive"),
        }
    }
    println!(
        "  its own estimate of what it took out of the program: {:.3} of wall\n",
        middle(|s| s.estimate)
    );
    Ok(())
}

/// Times of one run.
struct Took {
    wall_ns: f64,
    /// Only programs that print it.
    cpu_ns: Option<f64>,
}

/// What the program prints, or how long the command takes.
fn timed(command: &mut Command, case: &Case<'_>) -> Outcome<Took> {
    command.current_dir(&case.folder).stdin(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let output = command.output().map_err(|e| format!("cannot run it: {e}"))?;
    let wall: Duration = begin.elapsed();
    if !output.status.success() {
        return Err(format!("it ended with {}", output.status));
    }
    if !case.prints_time {
        return Ok(Took { wall_ns: wall.as_nanos() as f64, cpu_ns: None });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let times: Vec<f64> = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    match times.as_slice() {
        [wall_ns, cpu_ns] => Ok(Took { wall_ns: *wall_ns, cpu_ns: Some(*cpu_ns) }),
        _ => Err(format!("it printed no times: {text:?}")),
    }
}

fn read_record(path: &Path) -> Outcome<Said> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("no record: {e}"))?;
    let record: Value = serde_json::from_str(&text).map_err(|e| format!("its JSON: {e}"))?;
    let seen = &record["observer"];
    // A field that is not there must not read as zero.
    let number = |of: &Value, key: &str| of[key].as_f64().ok_or_else(|| format!("its record has no {key}"));
    let wall_s = number(&record, "wall_s")?.max(1e-9);
    Ok(Said {
        wall_ns: wall_s * 1e9,
        own_cpu_ms: number(seen, "own_cpu_s")? * 1e3,
        peak_mib: number(seen, "peak_memory_bytes")? / f64::from(1 << 20),
        events: number(seen, "events")?,
        lost: number(seen, "lost")?,
        duty: number(seen, "switch_duty")?,
        recorded_calls: number(seen, "recorded_calls")?,
        estimate: number(seen, "in_program_s")? / wall_s,
    })
}

/// A tree of small files under git, kept between runs; `None` without git.
fn tree(target: &Path) -> Outcome<Option<PathBuf>> {
    let tree = target.join("bench-tree");
    if !Command::new("git").arg("--version").output().is_ok_and(|o| o.status.success()) {
        return Ok(None);
    }
    if tree.join("complete").exists() {
        return Ok(Some(tree));
    }
    let failed = |e: std::io::Error| format!("cannot make {}: {e}", tree.display());
    for n in 0..TREE_FILES {
        let folder = tree.join(format!("d{}", n / FILES_IN_FOLDER));
        if n % FILES_IN_FOLDER == 0 {
            std::fs::create_dir_all(&folder).map_err(failed)?;
        }
        std::fs::write(folder.join(format!("f{n}.txt")), format!("file {n}, seed {SEED}\n"))
            .map_err(failed)?;
    }
    std::fs::write(tree.join("complete"), "").map_err(failed)?;
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    let steps: [&[&str]; 3] =
        [&["init", "--quiet"], &["add", "--all"], &["commit", "--quiet", "--message", "tree"]];
    for step in steps {
        let done =
            Command::new("git").args(identity).args(step).current_dir(&tree).output().map_err(failed)?;
        if !done.status.success() {
            let _ = std::fs::remove_file(tree.join("complete"));
            return Err(format!("git {}: {}", step[0], String::from_utf8_lossy(&done.stderr)));
        }
    }
    Ok(Some(tree))
}
