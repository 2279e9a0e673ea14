//! Programs that an ordinary user may start but not watch: set-user-id, and without the right to read them. Run time and exit
//! code need no rights.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Ran, binary, directory, finish, is_root, skipped, text};

/// The time that the programs sleep, in seconds.
const SLEEPS: f64 = 0.3;

fn copied(from: &Path, to: &Path, mode: u32) {
    std::fs::copy(from, to).unwrap();
    std::fs::set_permissions(to, PermissionsExt::from_mode(mode)).unwrap();
}

/// Runs the binary's copy in this directory as nobody; the record goes to `out/record.json` there.
fn as_nobody(directory: &Path, program: &[&str]) -> (Ran, Value) {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "./iowhy"]);
    command.args(["--json", "out/record.json", "--"]).args(program).current_dir(directory);
    let ran = finish(command.stdin(Stdio::null()));
    let record = std::fs::read(directory.join("out/record.json")).unwrap();
    (ran, serde_json::from_slice(&record).unwrap())
}

#[test]
fn a_program_that_may_not_be_watched_has_its_run_time_and_its_exit_code() {
    if !is_root() {
        return skipped("a file that its user may run but not read takes another user");
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return skipped("setpriv (util-linux) is not installed");
    }
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    copied(Path::new(binary().get_program()), &at("iowhy"), 0o755);
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    copied(&shell, &at("unreadable"), 0o711);
    copied(&shell, &at("setuid"), 0o4755);
    std::fs::create_dir(at("out")).unwrap();
    std::fs::set_permissions(at("out"), PermissionsExt::from_mode(0o777)).unwrap();
    let script = format!("sleep {SLEEPS}; exit 7");
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let recorded = paranoid.trim().parse().is_ok_and(|level: i32| level <= 2);
    let no_setuid = rustix::fs::statvfs(dir.path())
        .is_ok_and(|s| s.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID));
    for (program, why) in [("./unreadable", "not readable"), ("./setuid", "setuid")] {
        if no_setuid && why == "setuid" {
            skipped("$TMPDIR is mounted nosuid");
            continue;
        }
        let (ran, record) = as_nobody(dir.path(), &[program, "-c", &script]);
        assert_eq!(ran.code(), 7, "{ran:?}");
        assert_eq!(record["exit"]["code"], 7, "{record}");
        // What sleep(1) sleeps is the least.
        assert!(record["wall_s"].as_f64().is_some_and(|wall_s| wall_s >= SLEEPS), "{record}");
        if !recorded {
            skipped("without perf events as an ordinary user every program is watched by /proc alone");
            continue;
        }
        let sentence = format!("this program may not be watched ({why}): only its run time is known");
        let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(&sentence) && said.contains("run as root: > sudo iowhy --as-root -- "),
            "{ran:?}"
        );
        for guess in ["profile", "idle_s", "thread_s", "findings", "io"] {
            assert!(record.get(guess).is_none(), "{guess}: {record}");
        }
        let ran =
            finish(binary().args(["report", text(&at("out/record.json")), "-o", text(&at("page.html"))]));
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("only the run time"), "{ran:?}");
    }
    // One that another program starts takes nothing of the rest.
    let (ran, record) = as_nobody(dir.path(), &["sh", "-c", "./unreadable -c 'sleep 0.3'; true"]);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert!(record["wall_s"].as_f64().is_some_and(|wall_s| wall_s >= SLEEPS), "{record}");
    if recorded {
        let lacks = record["limitations"].as_array().unwrap();
        assert!(lacks.iter().any(|lack| lack["id"] == "hidden-programs"), "{record}");
        let (wall_s, idle_s) = (record["wall_s"].as_f64().unwrap(), record["idle_s"].as_f64().unwrap());
        assert!(idle_s < wall_s - SLEEPS / 2.0, "nobody knows that it was idle: {idle_s} of {wall_s}");
    }
}
