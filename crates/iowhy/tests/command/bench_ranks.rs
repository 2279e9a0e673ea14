//! `bench --ranks` and `--scale`: processes that the variables of a launcher number, those that iowhy starts itself, and Open MPI's.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Mount, Ran, binary, directory, finish, iowhy, names, succeeds, text};
use crate::launchers::{self, Launcher};
use crate::whole_machine::Group;

/// A short run on a cached file.
const SHORT: [&str; 8] = ["--size", "4m", "--bs", "64k", "--state", "warm", "--time", "600ms"];

/// One rank, as Open MPI numbers it.
fn rank(number: usize, ranks: usize, args: &[&str], dir: &Path) -> Command {
    let mut command = binary();
    command.env("OMPI_COMM_WORLD_RANK", number.to_string());
    command.env("OMPI_COMM_WORLD_SIZE", ranks.to_string());
    command.args(["bench", "--ranks"]).args(args).arg(dir);
    command
}

/// Starts it in the background.
fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for all, in their order.
fn ends(ranks: Vec<Child>) -> Vec<Ran> {
    let end = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    };
    ranks.into_iter().map(end).collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn steps(record: &Value) -> &[Value] {
    list(&record["cells"][0], "steps")
}

/// Sums and rates of a step must be those of its samples.
fn closes(step: &Value, rounds: u64, block_bytes: u64) {
    let ranks = step["ranks"].as_u64().unwrap();
    let samples = list(step, "samples");
    assert_eq!(samples.len() as u64, ranks * rounds, "every rank is in every round");
    let number = |sample: &Value, key: &str| sample[key].as_i64().unwrap();
    let mut rates = Vec::new();
    for round in samples.chunks(ranks as usize) {
        let first = round.iter().map(|sample| number(sample, "start_ns")).min().unwrap();
        let last =
            round.iter().map(|sample| number(sample, "start_ns") + number(sample, "wall_ns")).max().unwrap();
        let bytes: i64 = round.iter().map(|sample| number(sample, "bytes")).sum();
        let requests: i64 = round.iter().map(|sample| number(sample, "requests")).sum();
        assert!(round.iter().all(|sample| sample["round"] == round[0]["round"]));
        assert_eq!(bytes, requests * block_bytes as i64);
        rates.push(bytes as f64 * 1e9 / (last - first) as f64);
    }
    let throughput = &step["throughput"];
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let value = throughput["value"].as_f64().unwrap();
    assert!(least <= value && value <= most, "{throughput}");
    assert_eq!(throughput["n"], rounds);
}

#[test]
fn ranks_of_a_launcher_make_one_account_and_leave_nothing() {
    let dir = directory();
    let json = directory();
    let out = json.path().join("run.json");
    let args = [&SHORT[..], &["--json", text(&out)]].concat();
    let ran = ends((0..3).map(|number| start(&mut rank(number, 3, &args, dir.path()))).collect());
    assert!(ran.iter().all(|ran| ran.code() == 0), "{ran:?}");
    assert!(
        ran[0].stdout.contains("3 ranks together: ") && ran[0].stdout.contains("by OMPI_COMM_WORLD_RANK"),
        "{ran:?}"
    );
    assert!(ran[1..].iter().all(|ran| ran.stdout.is_empty()), "{ran:?}");
    assert_eq!((names(dir.path()), names(json.path())), (Vec::new(), vec!["run.json".to_owned()]));
    let record: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!((&record["kind"], list(&record, "ranks").len()), (&Value::from("measured-ranks"), 3));
    let [step] = steps(&record) else { panic!("{record}") };
    closes(step, 12, 64 << 10);
    assert_eq!(list(step, "of_ranks").len(), 3);
    assert_eq!(list(&record["hosts"][0], "ranks").len(), 3, "one host, of one clock");
    assert_eq!(
        (&record["hosts"][0]["clock_lead_ns"], &record["hosts"][0]["clock_error_ns"]),
        (&0.into(), &0.into())
    );
    assert!(iowhy(&["report", text(&out), "--markdown"]).done().stdout.contains("3 ranks"));
    assert!(iowhy(&["export", text(&out), "--table", "cells"]).done().stdout.contains("pread"));
}

#[test]
fn scale_starts_processes_of_its_own_and_gives_a_verdict() {
    let dir = directory();
    let args = [&["bench", "--scale", "2,1", "--json", "-"][..], &SHORT, &[text(dir.path())]].concat();
    let record = iowhy(&args).done().json();
    assert_eq!(record["started_here"], true);
    let ranks: Vec<u64> = steps(&record).iter().map(|step| step["ranks"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [1, 2]);
    steps(&record).iter().for_each(|step| closes(step, 12, 64 << 10));
    let scale = &record["cells"][0]["scale"];
    let verdict = scale["verdict"].as_str().unwrap();
    assert!(["server-bound", "client-bound", "undecided"].contains(&verdict), "{scale}");
    assert!(scale["reason"].is_string() && list(scale, "growth").len() == 1, "{scale}");
    // The first number of ranks is that of rank 0 alone.
    assert!(list(&steps(&record)[0], "samples").iter().all(|sample| sample["rank"] == 0));
    assert_eq!(names(dir.path()), [""; 0]);
    let screen =
        iowhy(&[&["bench", "--scale", "1,2"][..], &SHORT, &[text(dir.path())]].concat()).done().stdout;
    let verdicts = ["server-bound: ", "client-bound: ", "undecided: "];
    assert!(
        verdicts.iter().any(|verdict| screen.contains(verdict)) && screen.contains("started by iowhy"),
        "{screen}"
    );
}

fn measure_together(launcher: Option<Launcher>) {
    let Some(launcher) = launcher else { return };
    let dir = directory();
    let words = ["bench", "--scale", "1,2,4", "--quiet", "--json", "-"];
    let record = finish(launcher.command().args(words).args(SHORT).arg(dir.path())).measured().json();
    assert_eq!((record["started_here"].as_bool(), list(&record, "ranks").len()), (Some(false), 4));
    assert!(launcher.names_job(&record), "{}", record["job"]);
    assert_eq!(steps(&record).len(), 3);
    steps(&record).iter().for_each(|step| closes(step, 12, 64 << 10));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn ranks_of_open_mpi_measure_together() {
    measure_together(launchers::open_mpi());
}

#[test]
fn ranks_of_mpich_measure_together() {
    measure_together(launchers::mpich());
}

#[test]
fn ranks_of_slurm_measure_together() {
    measure_together(launchers::slurm());
}

#[test]
fn a_rank_that_a_control_group_throttles_is_named_as_the_slowest() {
    let Some(group) = Group::new("cpu", "bench-rank") else { return };
    // Two per cent of a CPU.
    if !group.limit(&[("cpu.max", "2000 100000".to_owned()), ("cpu.cfs_quota_us", "2000".to_owned())]) {
        return;
    }
    // Pages of a rank that hardly runs look unused, and a kernel that reclaims such pages takes them; not from memory without swap.
    let dir = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| directory());
    let script = format!(
        "if [ $OMPI_COMM_WORLD_RANK = 2 ]; then echo $$ > {}; fi; exec \"$@\"",
        group.0.join("cgroup.procs").display()
    );
    let args = [&SHORT[..6], &["--time", "2400ms", "--json", "-"]].concat();
    let start_in = |number| {
        let command = rank(number, 4, &args, dir.path());
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        start(&mut shell)
    };
    let ran = ends((0..4).map(start_in).collect());
    assert!(ran.iter().all(|ran| ran.code() == 0), "{ran:?}");
    let record = ran[0].json();
    let slow = list(&steps(&record)[0], "slow");
    assert_eq!(slow.first().map(|slow| slow["rank"].as_u64().unwrap()), Some(2), "{slow:?}");
    assert!(slow[0]["of_others"]["high"].as_f64().unwrap() < 0.95, "{slow:?}");
}

/// Waits until the ranks measure.
fn until_they_measure(dir: &Path) {
    let until = Instant::now() + Duration::from_secs(120);
    let measures = || {
        let places = std::fs::read_dir(dir).unwrap().flatten();
        places.filter_map(|place| std::fs::read_dir(place.path()).ok()).any(|mut files| {
            files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("go-")))
        })
    };
    while !measures() {
        assert!(Instant::now() < until, "the ranks do not measure: {:?}", names(dir));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_rank_that_is_killed_ends_the_run_of_all_and_nothing_is_left() {
    let dir = directory();
    let long = [&SHORT[..6], &["--time", "600s"]].concat();
    let mut ranks: Vec<Child> = (0..3).map(|number| start(&mut rank(number, 3, &long, dir.path()))).collect();
    until_they_measure(dir.path());
    ranks[1].kill().unwrap();
    // Rank 0 sees it when its slice is over; a signal cuts that short.
    for alive in [&ranks[0], &ranks[2]] {
        assert!(succeeds("kill", &["-TERM", &alive.id().to_string()]));
    }
    let ran = ends(ranks);
    for alive in [&ran[0], &ran[2]] {
        assert_eq!(alive.code(), 1, "{alive:?}");
        assert!(alive.stderr.contains("interrupted") || alive.stderr.contains("rank 1"), "{alive:?}");
    }
    assert_eq!(names(dir.path()), [""; 0]);
    // All of them killed: what is left goes with the next run.
    let mut ranks: Vec<Child> = (0..2).map(|number| start(&mut rank(number, 2, &long, dir.path()))).collect();
    until_they_measure(dir.path());
    ranks.iter_mut().for_each(|rank| rank.kill().unwrap());
    for rank in &mut ranks {
        rank.wait().unwrap();
    }
    assert_eq!(names(dir.path()).len(), 1);
    let next = ends((0..2).map(|number| start(&mut rank(number, 2, &SHORT, dir.path()))).collect());
    assert!(next.iter().all(|ran| ran.code() == 0), "{next:?}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn a_rank_that_is_killed_is_named() {
    let dir = directory();
    let args = [&SHORT[..6], &["--time", "60s"]].concat();
    let mut ranks: Vec<Child> = (0..3).map(|number| start(&mut rank(number, 3, &args, dir.path()))).collect();
    until_they_measure(dir.path());
    ranks[2].kill().unwrap();
    let ran = ends(ranks);
    for alive in &ran[..2] {
        assert_eq!(alive.code(), 1, "{alive:?}");
        assert!(alive.stderr.contains("rank 2 ended: process"), "{alive:?}");
    }
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn ranks_that_do_not_come_and_two_of_one_rank_are_named() {
    let dir = directory();
    let args = [&SHORT[..], &["--rank-limit", "2s"]].concat();
    let ran = ends([0, 2].map(|number| start(&mut rank(number, 4, &args, dir.path()))).into());
    assert!(ran.iter().all(|ran| ran.code() == 1), "{ran:?}");
    assert!(
        ran[0].stderr.contains("did not come within 2.00 s") && ran[0].stderr.contains("--rank-limit"),
        "{ran:?}"
    );
    assert_eq!(names(dir.path()), [""; 0]);
    let ran = ends([0, 1, 1].map(|number| start(&mut rank(number, 3, &SHORT, dir.path()))).into());
    assert!(ran.iter().all(|ran| ran.code() != 0), "{ran:?}");
    assert!(
        ran[0].stderr.contains("two processes are rank 1") && ran[0].stderr.contains("hint: "),
        "{ran:?}"
    );
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn what_cannot_be_measured_together_is_refused_before_anything_is_made() {
    let dir = directory();
    let file = dir.path().join("file");
    std::fs::write(&file, "content").unwrap();
    let (place, file) = (text(dir.path()), text(&file));
    let scale = ["--scale", "1,4", "--ranks=2", place];
    for (args, says, fix) in [
        (&["--ranks", place][..], "no launcher", "--ranks=4"),
        (&["--ranks=2", file], "is no directory", "--ranks DIR"),
        (&scale, "asks for 4 ranks, and there are 2 ranks", "leave the greater"),
        (&["--rank", "1", place], "`--rank` numbers a process", "--ranks=M"),
        (&["--ranks", "--rank", "1", place], "how many ranks there are is unknown", "--ranks=M"),
        (&["--rank", "2", "--ranks=2", place], "count from 0", "0 to 1"),
        (&["--ranks=2", "--layers", place], "--layers", "--help"),
        (&["--ranks=100000", place], "1024 processes", "mpirun"),
        (&["--ranks=0", place], "--ranks", "hint"),
    ] {
        let ran = iowhy(&[&["bench"][..], args].concat());
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains(says) && ran.stderr.contains(fix), "{args:?}: {ran:?}");
    }
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn a_full_directory_ends_the_run_with_the_reason_and_nothing_is_left() {
    let Some(small) = Mount::tmpfs("size=7m") else { return };
    // Room for one scratch file of two.
    let ran = iowhy(&[&["bench", "--ranks=2"][..], &SHORT, &[text(small.path())]].concat());
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert!(ran.stderr.contains("space"), "{ran:?}");
    assert_eq!(names(small.path()), [""; 0]);
    // Room for the file of one rank, and for no message.
    let Some(full) = Mount::tmpfs("size=4m") else { return };
    let ran = iowhy(&[&["bench", "--ranks=2"][..], &SHORT, &[text(full.path())]].concat());
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert_eq!(names(full.path()), [""; 0]);
}

#[test]
fn an_interrupt_of_one_ends_all() {
    let dir = directory();
    let args = [&["bench", "--ranks=3", "--time", "600s"][..], &SHORT[..6], &[text(dir.path())]].concat();
    let ranks = start(binary().args(&args));
    until_they_measure(dir.path());
    assert!(succeeds("kill", &["-TERM", &ranks.id().to_string()]));
    let [ran] = <[Ran; 1]>::try_from(ends(vec![ranks])).unwrap();
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(ran.stderr.contains("interrupted: the ranks have no result together"), "{ran:?}");
    assert_eq!(names(dir.path()), [""; 0]);
}
