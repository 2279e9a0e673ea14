//! To whom files belong that a run makes as another user: outputs, kept records, scratch files of a proof.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::bad_input::assert_refused;
use crate::common::{alone, binary, names, skipped, text};
use crate::run_as::{GROUP, STRANGER, open_directory, run_in};

fn owner(path: &Path) -> (u32, u32) {
    let facts = std::fs::symlink_metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (facts.uid(), facts.gid())
}

/// All below a directory.
fn all(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    entries.flat_map(|path| [if path.is_dir() { all(&path) } else { vec![] }, vec![path]].concat()).collect()
}

fn sudo() -> [(&'static str, String); 2] {
    [("SUDO_UID", STRANGER.to_string()), ("SUDO_GID", GROUP.to_string())]
}

fn environment<'a>(variables: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

/// A directory of the user in one that everybody may enter.
fn theirs(dir: &Path) -> PathBuf {
    let theirs = dir.join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(STRANGER), Some(GROUP)).unwrap();
    theirs
}

#[test]
fn outputs_and_kept_records_belong_to_the_user() {
    let Some(dir) = open_directory() else { return };
    let theirs = theirs(dir.path());
    let (sudo, state) = (sudo(), theirs.join("state"));
    let mut variables = environment(&sudo);
    variables.push(("XDG_STATE_HOME", text(&state)));
    let outputs = ["--json", "r.json", "--output", "report", "--flamegraph", "f.folded", "--save-as", "run"];
    let outputs = [&outputs[..], &["--profile", "f.json.gz", "--perfetto", "f.pftrace"]].concat();
    // The second run is kept beside the first.
    for _ in 0..2 {
        let ran = run_in(&theirs, &variables, &[&outputs[..], &["--", "touch", "made"]].concat()).done();
        assert_eq!(ran.stderr, "", "{ran:?}");
    }
    let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let attached = run_in(
        &theirs,
        &variables,
        &["attach", &pid, "--time", "50ms", "--json", "a.json", "--save-as", "att"],
    );
    // It is our own child, and still there: killing it cannot fail.
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    attached.done();
    run_in(&theirs, &variables, &["bench", "scripted", "--state", "warm", "--json", "b.json"]).measured();
    run_in(&theirs, &variables, &["report", "r.json", "-o", "page.html"]).done();
    let made = all(&theirs);
    for name in [
        "made",
        "r.json",
        "report",
        "f.folded",
        "a.json",
        "b.json",
        "page.html",
        "run.json",
        "run+2.json",
        "f.json.gz",
        "f.pftrace",
    ] {
        assert!(made.iter().any(|path| path.ends_with(name)), "{name}: {made:?}");
    }
    for path in made {
        assert_eq!(owner(&path), (STRANGER, GROUP), "{}", path.display());
    }
    run_in(&theirs, &variables, &["history", "--remove", "run"]).done();
    assert_eq!(names(&state.join("iowhy/records")), ["att.json"]);
    // Root is kept where that is asked for.
    run_in(&theirs, &variables, &["--as-root", "--json", "root.json", "--", "touch", "made-by-root"]).done();
    assert_eq!(owner(&theirs.join("root.json")).0, 0);
    assert_eq!(owner(&theirs.join("made-by-root")).0, 0);
}

#[test]
fn a_link_of_the_user_does_not_lead_root_to_a_file_of_roots() {
    let Some(dir) = open_directory() else { return };
    let (theirs, sudo) = (theirs(dir.path()), sudo());
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "root's").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    symlink(&secret, theirs.join("out")).unwrap();
    symlink(dir.path().join("new"), theirs.join("dangling")).unwrap();
    for (option, name) in [
        ("--json", "out"),
        ("--json", "dangling"),
        ("--output", "out"),
        ("--flamegraph", "out"),
        ("--profile", "out"),
    ] {
        let ran = run_in(&theirs, &environment(&sudo), &[option, name, "--", "true"]);
        assert_refused(&ran, option);
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "root's");
    assert_eq!(names(dir.path()), ["secret", "theirs"]);
    assert_eq!(names(&theirs), ["dangling", "out"]);
}

#[test]
fn records_are_kept_in_the_home_of_the_user_and_not_in_that_of_root() {
    let Some(dir) = open_directory() else { return };
    let entry = std::process::Command::new("getent").args(["passwd", "nobody"]).output();
    let entry = entry.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let Some(home) = entry.split(':').nth(5).filter(|home| !Path::new(home).exists()) else {
        return skipped("there is no user `nobody` whose home does not exist");
    };
    let root = dir.path().join("home-of-root");
    std::fs::create_dir(&root).unwrap();
    let ran = finish_without_state(dir.path(), &root, &["--user", "nobody", "--save-as", "x", "--", "true"]);
    assert_refused(&ran, &format!("{home}/.local/state"));
    assert!(ran.stderr.contains("as user nobody"), "{ran:?}");
    assert_eq!(names(&root), [""; 0]);
    finish_without_state(dir.path(), &root, &["--save-as", "x", "--", "true"]).done();
    assert_eq!(names(&root), [".local"]);
}

fn finish_without_state(dir: &Path, home: &Path, args: &[&str]) -> crate::common::Ran {
    let mut command = binary();
    command.args(args).env("HOME", home).env_remove("XDG_STATE_HOME").current_dir(dir);
    crate::common::finish(&mut command)
}

/// Makes records of 512 bytes durable one by one. `None`, said aloud: too few calls were traced for a replay.
fn synced(theirs: &Path) -> Option<()> {
    let sudo = sudo();
    let record = theirs.join("r.json");
    let written = ["dd", "if=/dev/zero", "of=data", "bs=512", "count=1500", "oflag=dsync", "status=none"];
    let args = [&["--record-calls", "--json", text(&record), "--"], &written[..]].concat();
    let ran = alone(binary().args(args).envs(environment(&sudo)).current_dir(theirs));
    assert_eq!((ran.code(), ran.stdout.as_str()), (0, ""), "{ran:?}");
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    if !value["profile"]["pattern"].is_object() {
        skipped("too few calls were traced for a replay");
        return None;
    }
    Some(())
}

#[test]
fn scratch_files_of_a_proof_belong_to_the_user() {
    let Some(dir) = open_directory() else { return };
    let (theirs, sudo) = (theirs(dir.path()), sudo());
    if synced(&theirs).is_none() {
        return;
    }
    let mut command = binary();
    command
        .args(["prove", "r.json", "--rounds", "99", "--quiet"])
        .envs(environment(&sudo))
        .current_dir(&theirs);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let device = std::fs::metadata(&theirs).unwrap().dev();
    let (begun, mut seen) = (Instant::now(), Vec::new());
    // A file without a name is seen through the process that holds it.
    while seen.len() < 50 && begun.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none()
    {
        let held = std::fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
        let facts = held.filter_map(|fd| std::fs::metadata(fd.path()).ok());
        let scratch = facts.filter(|f| f.is_file() && f.nlink() == 0 && f.dev() == device);
        seen.extend(scratch.map(|f| (f.uid(), f.gid())));
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    child.wait().unwrap();
    if seen.is_empty() {
        return skipped("nothing was replayed: others use this machine too much");
    }
    assert!(seen.iter().all(|owner| *owner == (STRANGER, GROUP)), "{seen:?}");
}

#[test]
fn a_proof_writes_only_where_the_user_may() {
    let Some(dir) = open_directory() else { return };
    let theirs = theirs(dir.path());
    if synced(&theirs).is_none() {
        return;
    }
    let sudo = sudo();
    let prove = ["prove", "r.json", "--rounds", "5"];
    let ran = alone(binary().args(prove).envs(environment(&sudo)).current_dir(&theirs));
    assert!(!ran.stderr.contains("permission denied"), "{ran:?}");
    assert_eq!(names(&theirs), ["data", "r.json"]);
    // Somebody else may read all of it, and make nothing there.
    let proved = run_in(&theirs, &[], &[&prove[..], &["--user", "65534", "--json", "-"]].concat());
    let told = format!("{}{}", proved.stdout, proved.stderr);
    assert!(
        told.contains("permission denied") && told.contains("as a user who may write there"),
        "{proved:?}"
    );
    assert_ne!(proved.code(), 0);
}
