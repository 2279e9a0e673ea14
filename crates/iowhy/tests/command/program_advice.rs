//! Real programs from Debian's packages: the screen and the record name their settings, and what these cost.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{binary, directory, finish, skipped, text};
use crate::record::words;

/// Inserts, each a transaction of its own.
const INSERTS: &str =
    "(echo 'create table t(a);'; for i in $(seq 200); do echo \"insert into t values($i);\"; done)";

/// A program whose syncs take its time.
struct Real {
    /// Executables without which it cannot run.
    needs: &'static [&'static str],
    /// Run by `sh -c` before.
    prepare: String,
    /// Run by `sh -c` under iowhy.
    command: String,
    name: &'static str,
    recognised_by: &'static str,
    /// A part of the first change, and of its cost.
    change: &'static str,
    cost: &'static str,
}

fn is_installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|o| o.status.success())
}

fn shell(dir: &Path, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(dir).env("HOME", dir);
    shell
}

fn test(real: &Real) {
    if let Some(missing) = real.needs.iter().find(|program| !is_installed(program)) {
        return skipped(&format!("the program {missing} is not installed"));
    }
    let dir = directory();
    assert!(shell(dir.path(), &real.prepare).output().unwrap().status.success(), "{}", real.prepare);
    let record = dir.path().join("run.json");
    let mut command = binary();
    command.args(["--json", text(&record), "--", "sh", "-c", &real.command]).current_dir(dir.path());
    let ran = finish(command.env("HOME", dir.path())).done();
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    let findings = record["findings"].as_array().unwrap();
    let Some(at) = findings.iter().position(|f| f["id"] == "sync-per-write") else {
        return skipped(&format!("{} does not wait for syncs here", real.name));
    };
    let advice = &findings[at]["in_program"];
    if advice.is_null() && record["tier"] == "none" {
        return skipped(&format!("{}: whose syncs they are is not seen without events", real.name));
    }
    assert_eq!(words(&advice["program"]), real.name, "{findings:#?}");
    assert!(words(&advice["recognised_by"]).contains(real.recognised_by), "{advice:#}");
    let first = &advice["changes"][0];
    assert!(words(&first["change"]).contains(real.change), "{advice:#}");
    assert!(words(&first["cost"]).contains(real.cost), "{advice:#}");
    assert!(!words(&first["power_failure"]).is_empty(), "{advice:#}");
    assert!(words(&first["source_url"]).starts_with("http"), "{advice:#}");
    if at < 2 {
        let screen = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = format!("> {}: {}. Cost: {}.", real.name, words(&first["change"]), words(&first["cost"]));
        assert!(screen.contains(&line), "`{line}` is not whole on the screen: {}", ran.stderr);
    }
}

#[test]
fn sqlite_is_told_of_transactions_and_of_its_journal() {
    test(&Real {
        needs: &["sqlite3"],
        prepare: format!("{INSERTS} > inserts.sql"),
        command: "sqlite3 x.db < inserts.sql".to_owned(),
        name: "SQLite",
        recognised_by: "sqlite3",
        change: "`BEGIN; ... COMMIT;`",
        cost: "undone as a whole",
    });
}

#[test]
fn python_with_sqlite_is_told_of_sqlite() {
    let program = "import sqlite3\\nc = sqlite3.connect(\"x.db\")\\nc.execute(\"create table t(a)\")\\n\
                   for i in range(200):\\n c.execute(\"insert into t values(1)\")\\n c.commit()\\n";
    test(&Real {
        needs: &["python3"],
        prepare: format!("printf '{program}' > x.py && python3 -c 'import sqlite3'"),
        command: "python3 x.py".to_owned(),
        name: "SQLite",
        recognised_by: "",
        change: "`BEGIN; ... COMMIT;`",
        cost: "undone as a whole",
    });
}

#[test]
fn git_is_told_of_batches() {
    test(&Real {
        needs: &["git"],
        prepare: "git init -q r && cd r && for i in $(seq 200); do echo $i > f$i; done".to_owned(),
        command: "cd r && git -c core.fsync=loose-object add .".to_owned(),
        name: "git",
        recognised_by: "executable `git`",
        change: "core.fsyncMethod batch",
        cost: "power failure",
    });
}

#[test]
fn rsync_is_told_to_leave_out_its_option() {
    test(&Real {
        needs: &["rsync"],
        prepare: "mkdir a && for i in $(seq 200); do echo $i > a/f$i; done".to_owned(),
        command: "rsync -a --fsync a/ b/".to_owned(),
        name: "rsync",
        recognised_by: "executable `rsync`",
        change: "`--fsync`",
        cost: "power failure",
    });
}

#[test]
fn redis_is_told_of_its_setting() {
    let server = "redis-server --port 0 --unixsocket $PWD/s --appendonly yes --appendfsync always --dir $PWD";
    let client = "(for i in $(seq 500); do echo set k$i v; done; echo shutdown nosave) | redis-cli -s $PWD/s";
    test(&Real {
        needs: &["redis-server", "redis-cli"],
        prepare: "true".to_owned(),
        command: format!(
            "{server} > log & until redis-cli -s $PWD/s ping > ping 2>&1; do sleep 0.1; done; {client} > out 2>&1; wait"
        ),
        name: "Redis",
        recognised_by: "redis",
        change: "`CONFIG SET appendfsync everysec`",
        cost: "the last second",
    });
}
