//! Ranks of parallel jobs, as users start them: by the launchers that are installed, else by the variables that they set.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{
    Loop, MIB, Ran, binary, directory, finish, full_file, iowhy, is_root, names, skipped, text,
};
use crate::launchers::{self, Launcher};
use crate::whole_machine::Group;

/// Runs a program as a rank, by the variables of a launcher.
fn as_rank(variables: &[(&str, &str)], args: &[&str]) -> Ran {
    finish(binary().envs(variables.iter().copied()).args(args))
}

fn record(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_rank_is_found_printed_and_recorded_and_fills_the_names() {
    let dir = directory();
    let host = String::from_utf8(Command::new("uname").arg("-n").output().unwrap().stdout).unwrap();
    let host = host.trim();
    let name = |name: &str| text(&dir.path().join(name)).to_owned();
    let rank = [("PMI_RANK", "3"), ("PMI_SIZE", "4"), ("PMI_JOBID", "4711.0")];
    let ran = as_rank(
        &rank,
        &[
            "--json",
            &name("run-{rank}.json"),
            "--output",
            &name("{host}-{{{rank}.txt"),
            "--tier",
            "none",
            "--",
            "true",
        ],
    )
    .done();
    assert!(ran.stderr.contains(&format!("rank 3 of 4 on {host}, by PMI_RANK and PMI_SIZE")), "{ran:?}");
    let mut expected = ["run-3.json".to_owned(), format!("{host}-{{3.txt")];
    expected.sort();
    assert_eq!(names(dir.path()), expected);
    let found = &record(&dir.path().join("run-3.json"))["rank"];
    assert_eq!(
        (found["rank"].as_u64(), found["ranks"].as_u64(), found["host"].as_str()),
        (Some(3), Some(4), Some(host))
    );
    assert_eq!(
        (found["job"].as_str(), &found["believed"][0]),
        (Some("PMI_JOBID=4711.0"), &Value::from("PMI_RANK"))
    );
    // Named by options, and quiet: one line less.
    let ran = as_rank(
        &rank,
        &[
            "--rank",
            "7",
            "--ranks",
            "9",
            "--quiet",
            "--json",
            &name("run-{rank}.json"),
            "--tier",
            "none",
            "--",
            "true",
        ],
    )
    .done();
    assert!(!ran.stderr.contains(", by --rank"), "{ran:?}");
    assert_eq!(
        record(&dir.path().join("run-7.json"))["rank"]["believed"],
        serde_json::json!(["--rank", "--ranks"])
    );
    // Outside of a job there is no rank, and no line.
    let alone = iowhy(&["--json", &name("alone.json"), "--tier", "none", "--", "true"]).done();
    assert!(!alone.stderr.contains("rank") && record(&dir.path().join("alone.json")).get("rank").is_none());
}

#[test]
fn what_cannot_be_believed_is_refused_before_the_program_runs() {
    let dir = directory();
    let mark = dir.path().join("ran");
    let program = ["--", "touch", text(&mark)];
    let named = |name: &str| text(&dir.path().join(name)).to_owned();
    let [per_rank, other, one] = ["run-{rank}.json", "{size}.json", "run.json"].map(named);
    let [per_rank, other, one] = [&per_rank, &other, &one].map(String::as_str);
    for (variables, args, says, fix) in [
        (&[("PMI_RANK", "x")][..], &[][..], "`PMI_RANK=x`", "env -u PMI_RANK"),
        (&[("PMI_RANK", "1"), ("FLUX_TASK_RANK", "2")], &[], "two ranks", "env -u FLUX_TASK_RANK"),
        (&[("PMI_RANK", "4"), ("PMI_SIZE", "4")], &[], "count from 0", "--rank N"),
        (&[], &["--json", per_rank], "is unknown", "--rank N --ranks M"),
        (&[], &["--ranks", "4"], "is unknown", "--rank N --ranks 4"),
        (&[], &["--rank", "4", "--ranks", "4"], "rank 4 of 4", "0 to 3"),
        (&[], &["--rank", "-1"], "--rank", "--rank"),
        (&[], &["--json", other], "`{size}` is no placeholder", "`{{`"),
        (&[("PMI_RANK", "1"), ("PMI_SIZE", "4")], &["--json", one], "4 ranks of this job", "run-{rank}.json"),
        (&[("PMI_RANK", "1"), ("PMI_SIZE", "4")], &["--save-as", "run"], "--save-as run", "run-{rank}"),
    ] {
        let ran = as_rank(variables, &[args, &program[..]].concat());
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains("hint: ") && ran.stderr.contains(fix),
            "{ran:?}"
        );
    }
    assert_eq!(names(dir.path()), [""; 0], "nothing ran, and nothing was written");
}

#[test]
fn two_processes_of_one_rank_do_not_overwrite_each_other() {
    let dir = directory();
    let path = text(&dir.path().join("run-{rank}.json")).to_owned();
    let run = |job: &str| {
        let variables = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_JOBID", job)];
        as_rank(&variables, &["--json", &path, "--tier", "none", "--", "true"])
    };
    run("1").done();
    let written = dir.path().join("run-0.json");
    let before = std::fs::read(&written).unwrap();
    let second = run("1");
    assert_eq!(second.code(), 2, "{second:?}");
    assert!(second.stderr.contains("rank 0 of 2 of the same job (PMI_JOBID=1)"), "{second:?}");
    assert_eq!(std::fs::read(&written).unwrap(), before);
    // A later job of the same ranks replaces its files, as any run does.
    run("2").done();
    assert_eq!(record(&written)["rank"]["job"], "PMI_JOBID=2");
    // Both at once: who ends second finds the name taken, and writes beside it.
    let both = directory();
    let path = text(&both.path().join("run-{rank}.json")).to_owned();
    let start = || {
        let mut run = binary();
        run.envs([("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMI_JOBID", "3")]);
        run.args(["--json", &path, "--quiet", "--tier", "none", "--", "sleep", "1"]);
        run.stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut runs = [start(), start()];
    let codes: Vec<bool> = runs.iter_mut().map(|run| run.wait().unwrap().success()).collect();
    assert_eq!(codes.iter().filter(|done| **done).count(), 1, "{codes:?}");
    assert_eq!(names(both.path()), ["run-0.json", "run-0.json.2"]);
}

#[test]
fn merged_records_have_exit_codes_a_screen_and_a_report() {
    let dir = directory();
    let run = |rank: &str, script: &str| {
        let variables = [("PMI_RANK", rank), ("PMI_SIZE", "3"), ("PMI_JOBID", "9")];
        let path = text(&dir.path().join("run-{rank}.json")).to_owned();
        as_rank(&variables, &["--json", &path, "--tier", "none", "--", "sh", "-c", script])
    };
    for rank in ["0", "1", "2"] {
        run(rank, "sleep 0.1").done();
    }
    let files = ["0", "1", "2"].map(|rank| text(&dir.path().join(format!("run-{rank}.json"))).to_owned());
    let [zero, one, two] = files.each_ref().map(String::as_str);
    let out = text(&dir.path().join("merged.json")).to_owned();
    let ran = iowhy(&["merge", two, zero, one, "--json", &out]).done();
    assert!(ran.stdout.contains("3 ranks") && ran.stdout.contains("wall time"), "{ran:?}");
    let merged = record(Path::new(&out));
    let order: Vec<u64> =
        merged["ranks"].as_array().unwrap().iter().map(|line| line["rank"].as_u64().unwrap()).collect();
    assert_eq!((order, &merged["kind"]), (vec![0, 1, 2], &Value::from("merged-ranks")));
    assert!(iowhy(&["report", &out, "--markdown"]).done().stdout.contains("wall time"));
    // A rank that is missing, one that was killed, a file that is none.
    let missing = iowhy(&["merge", zero, one]);
    assert_eq!(missing.code(), 1, "{missing:?}");
    assert!(
        missing.stdout.contains("no record of rank 2") && missing.stderr.contains("no record of rank 2 of 3"),
        "{missing:?}"
    );
    std::fs::remove_file(two).unwrap();
    assert_eq!(run("2", "kill -9 $$").code(), 137);
    let killed = iowhy(&["merge", zero, one, two, "/etc/hostname"]);
    assert_eq!(killed.code(), 1, "{killed:?}");
    assert!(
        killed.stderr.contains("rank 2: killed by signal 9") && killed.stderr.contains("1 file was left out"),
        "{killed:?}"
    );
    // What contradicts itself, and an output that is an input.
    let twice = iowhy(&["merge", zero, one, zero]);
    assert!(twice.code() == 2 && twice.stderr.contains("rank 0 stands in two records"), "{twice:?}");
    let over = iowhy(&["merge", zero, one, "--json", zero]);
    assert!(over.code() == 2 && over.stderr.contains("the input"), "{over:?}");
    let itself = iowhy(&["merge", &out]);
    assert!(itself.code() == 2 && itself.stderr.contains("another kind: merged ranks"), "{itself:?}");
}

/// Runs a script as four ranks, and merges what they wrote.
fn merged_job(launcher: &Launcher, folder: &Path, script: &str) -> Value {
    let json = folder.join("run-{rank}.json");
    let report = folder.join("run-{rank}.txt");
    let args = [
        "--quiet",
        "--no-calibrate",
        "--json",
        text(&json),
        "--output",
        text(&report),
        "--",
        "sh",
        "-c",
        script,
    ];
    finish(launcher.command().args(args)).done();
    let files: Vec<String> =
        (0..4).map(|rank| text(&folder.join(format!("run-{rank}.json"))).to_owned()).collect();
    let words: Vec<&str> = files.iter().map(String::as_str).collect();
    iowhy(&[&["merge", "--json", "-"][..], &words].concat()).done().json()
}

fn only_straggler(merged: &Value) -> &Value {
    match merged["stragglers"].as_array().unwrap().as_slice() {
        [only] => only,
        others => panic!("{others:?} of {:#}", merged["ranks"]),
    }
}

/// Rank 2 writes durably for seven seconds; the others are soon done.
fn names_the_rank_that_syncs(launcher: Option<Launcher>) {
    let Some(launcher) = launcher else { return };
    let dir = directory();
    let script = format!(
        "if [ ${} = 2 ]; then end=$(($(date +%s) + 7)); while [ $(date +%s) -lt $end ]; do \
         dd if=/dev/zero of={} bs=4k count=400 oflag=dsync status=none; done; else sleep 1; fi",
        launcher.rank,
        text(&dir.path().join("data"))
    );
    let merged = merged_job(&launcher, dir.path(), &script);
    let slow = only_straggler(&merged);
    assert_eq!((slow["rank"].as_u64(), slow["by_wall"].as_bool()), (Some(2), Some(true)), "{slow}");
    assert!(slow["layer"].is_string() && slow["layer"] != "elsewhere", "{slow}");
    assert_eq!(slow["host"], merged["hosts"][0]["host"]);
    assert_eq!((merged["ranks_of_job"].as_u64(), merged["missing"].as_array().unwrap().len()), (Some(4), 0));
    assert!(launcher.names_job(&merged), "{}", merged["job"]);
}

#[test]
fn a_rank_of_open_mpi_that_syncs_for_longer_is_named() {
    names_the_rank_that_syncs(launchers::open_mpi());
}

#[test]
fn a_rank_of_mpich_that_syncs_for_longer_is_named() {
    names_the_rank_that_syncs(launchers::mpich());
}

#[test]
fn a_rank_of_slurm_that_syncs_for_longer_is_named() {
    names_the_rank_that_syncs(launchers::slurm());
}

#[test]
fn a_rank_that_a_control_group_throttles_is_named_with_its_layer() {
    let dir = directory();
    let file = full_file(dir.path(), "disk", 64 * MIB);
    if !is_root() {
        skipped("control groups are made by root alone");
        return;
    }
    let Some(disk) = Loop::over(&file) else { return };
    let Some(group) = Group::new("blkio", "rank") else { return };
    let number =
        std::fs::read_to_string(format!("/sys/class/block/{}/dev", disk.device.trim_start_matches("/dev/")))
            .unwrap();
    let number = number.trim();
    let v2 = ("io.max", format!("{number} riops=20"));
    if !group.limit(&[v2, ("blkio.throttle.read_iops_device", format!("{number} 20"))]) {
        return;
    }
    let Some(launcher) = launchers::open_mpi() else { return };
    let script = format!(
        "if [ $OMPI_COMM_WORLD_RANK = 3 ]; then echo $$ > {}; fi; \
         exec dd if={} of=/dev/null bs=4k count=120 iflag=direct status=none",
        group.0.join("cgroup.procs").display(),
        disk.device
    );
    let merged = merged_job(&launcher, dir.path(), &script);
    let slow = only_straggler(&merged);
    assert_eq!((slow["rank"].as_u64(), slow["by_wall"].as_bool()), (Some(3), Some(true)), "{slow}");
    assert_eq!((slow["layer"].as_str(), slow["operation"].as_str()), (Some("block"), Some("read")), "{slow}");
}
