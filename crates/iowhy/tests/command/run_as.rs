//! As whom `iowhy -- CMD` runs CMD: `--user`, the environment of sudo, `--as-root`, and what each refuses.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::bad_input::assert_refused;
use crate::common::{Ran, binary, directory, finish, is_root, names, skipped, succeeds, text};

/// A number without an entry in the user database.
pub(crate) const STRANGER: u32 = 1_987_654;
/// A group without one.
pub(crate) const GROUP: u32 = 1_876_543;
const WHO: &str = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME";
const SETPRIV: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// A directory that everybody may enter; `None`, said aloud, where root's rights are missing or `$TMPDIR` is closed.
pub(crate) fn open_directory() -> Option<TempDir> {
    if !is_root() {
        skipped("only root can run a program as another user");
        return None;
    }
    let dir = directory();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    if !succeeds("setpriv", &[&SETPRIV[..], &["test", "-x", text(dir.path())]].concat()) {
        skipped("other users may not enter $TMPDIR, or there is no setpriv(1)");
        return None;
    }
    Some(dir)
}

/// Runs in a directory, with an environment.
pub(crate) fn run_in(dir: &Path, environment: &[(&str, &str)], args: &[&str]) -> Ran {
    finish(binary().args(args).envs(environment.iter().copied()).current_dir(dir))
}

/// What a program of this system prints.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// As an ordinary user; `None`, said aloud, where that user cannot run the binary.
fn as_nobody(dir: &Path, environment: &[(&str, &str)], args: &[&str]) -> Option<Ran> {
    let program = binary();
    let mut command = Command::new("setpriv");
    command.args(SETPRIV).arg(program.get_program());
    let version = finish(command.arg("--version").current_dir(dir));
    if version.status.code() != Some(0) {
        skipped("an ordinary user cannot run the binary where it lies");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(SETPRIV).arg(program.get_program()).args(args).envs(environment.iter().copied());
    Some(finish(command.current_dir(dir)))
}

#[test]
fn the_program_runs_as_the_user_that_is_asked_for_and_nothing_of_root_is_left() {
    let Some(dir) = open_directory() else { return };
    let ran = run_in(dir.path(), &[], &["--user", "65534", "--", "sh", "-c", "grep ^Cap /proc/self/status"]);
    let masks: Vec<&str> = ran.stdout.lines().filter(|line| !line.starts_with("CapBnd")).collect();
    assert!(masks.len() >= 3 && masks.iter().all(|m| m.ends_with("\t0000000000000000")), "{ran:?}");
    let stranger = STRANGER.to_string();
    let ran = run_in(dir.path(), &[], &["--user", &stranger, "--", "sh", "-c", WHO]);
    assert_eq!(ran.stdout, format!("{stranger}\n{stranger}\n{stranger}\n/\n"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("as uid {stranger}")), "{ran:?}");
    let root = [("HOME", "/root"), ("USER", "root"), ("KEPT", "as it was")];
    let Some(entry) = said("getent", &["passwd", "nobody"]) else {
        return skipped("there is no user `nobody`, or no getent(1)");
    };
    let home = entry.split(':').nth(5).unwrap();
    let groups = ["-u", "-g", "-G"].map(|what| said("id", &[what, "nobody"]).unwrap());
    let ran =
        run_in(dir.path(), &root, &["--user", "nobody", "--", "sh", "-c", &format!("{WHO}; echo $KEPT")]);
    assert_eq!(ran.stdout, format!("{}\n{home} nobody nobody\nas it was\n", groups.join("\n")), "{ran:?}");
    assert!(ran.stderr.contains(&format!("as user nobody (uid {})", groups[0])), "{ran:?}");
}

#[test]
fn under_sudo_it_is_the_caller_unless_root_is_kept() {
    let Some(dir) = open_directory() else { return };
    let (uid, gid) = (STRANGER.to_string(), GROUP.to_string());
    let sudo = [("SUDO_UID", uid.as_str()), ("SUDO_GID", gid.as_str()), ("SUDO_USER", "somebody")];
    let who = ["--", "sh", "-c", "id -u; id -g; id -G"];
    let ran = run_in(dir.path(), &sudo, &who);
    assert_eq!(ran.stdout, format!("{uid}\n{gid}\n{gid}\n"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("as uid {uid}")), "{ran:?}");
    let ran = run_in(dir.path(), &[("PKEXEC_UID", uid.as_str())], &who);
    assert!(ran.stdout.starts_with(&format!("{uid}\n")), "{ran:?}");
    let ran = run_in(dir.path(), &sudo, &[&["--as-root"], &who[..]].concat());
    assert!(ran.stdout.starts_with("0\n") && ran.stderr.contains("(uid 0)"), "{ran:?}");
    // Root who called sudo, and root who called nobody: as ever, and nothing is said.
    for environment in [&[("SUDO_UID", "0"), ("SUDO_GID", "0")][..], &[]] {
        let ran = run_in(dir.path(), environment, &who);
        assert!(ran.stdout.starts_with("0\n") && !ran.stderr.contains("uid"), "{ran:?}");
    }
    // What cannot be believed does not run as root.
    for damaged in ["", "x", "-1", "4294967295"] {
        let ran = run_in(dir.path(), &[("SUDO_UID", damaged)], &["--", "touch", "made"]);
        assert_refused(&ran, "SUDO_UID");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn the_record_and_the_page_say_as_whom_it_ran() {
    let Some(dir) = open_directory() else { return };
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let (uid, gid) = (STRANGER.to_string(), GROUP.to_string());
    let sudo = [("SUDO_UID", uid.as_str()), ("SUDO_GID", gid.as_str())];
    run_in(dir.path(), &sudo, &["--json", "r.json", "--", "true"]).done();
    let record = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let value: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(value["ran_as"], serde_json::json!({"uid": STRANGER, "gid": GROUP, "name": null}));
    let page = run_in(dir.path(), &[], &["report", "r.json"]).done();
    assert!(page.stdout.contains(&format!("as uid {uid}")));
    run_in(dir.path(), &[], &["--json", "plain.json", "--", "true"]).done();
    let record = std::fs::read_to_string(dir.path().join("plain.json")).unwrap();
    assert!(!record.contains("ran_as"), "nobody decided it");
}

#[test]
fn permissions_are_judged_as_those_of_the_user() {
    let Some(dir) = open_directory() else { return };
    let at = |name: &str, mode: u32| {
        let path = dir.path().join(name);
        std::fs::write(&path, "#!/bin/sh\ntouch ran; echo found $0\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path
    };
    for folder in ["closed", "first", "second"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
        std::fs::set_permissions(dir.path().join(folder), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let (own, inside) = (at("own", 0o700), at("closed/inside", 0o755));
    at("first/tool", 0o700);
    at("second/tool", 0o755);
    std::fs::set_permissions(dir.path().join("closed"), PermissionsExt::from_mode(0o700)).unwrap();
    let user = ["--user", "65534", "--"];
    for path in [&own, &inside] {
        let ran = run_in(dir.path(), &[], &[&user[..], &[text(path)]].concat());
        assert_eq!((ran.code(), ran.stdout.as_str()), (126, ""), "{ran:?}");
        assert!(ran.stderr.contains("uid 65534)") && ran.stderr.contains("--as-root"), "{ran:?}");
        assert!(ran.stderr.contains("permission denied"), "{ran:?}");
    }
    // As a shell of that user: what may not be executed is passed over.
    let search =
        ["closed", "first", "second"].map(|folder| text(&dir.path().join(folder)).to_owned()).join(":");
    let search = format!("{search}:/usr/bin:/bin");
    let ran = run_in(dir.path(), &[("PATH", &search)], &[&user[..], &["tool"]].concat());
    assert!(ran.stdout.starts_with("found") && ran.stdout.contains("second/tool"), "{ran:?}");
    // Root runs all of them.
    for path in [&own, &inside] {
        assert!(run_in(dir.path(), &[], &["--", text(path)]).stdout.starts_with("found"));
    }
}

#[test]
fn a_directory_that_the_user_may_not_enter_is_named_before_anything_runs() {
    let Some(dir) = open_directory() else { return };
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let mark = dir.path().join("mark");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let ran = run_in(&closed, &[], &["--user", "65534", "--", "touch", text(&mark)]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (126, ""), "{ran:?}");
    let errors: Vec<&str> = ran.stderr.lines().collect();
    assert!(
        errors.len() == 2
            && errors[0].contains("uid 65534")
            && errors[0].contains(text(&closed))
            && errors[1].starts_with("hint: "),
        "{ran:?}"
    );
    assert!(!mark.exists());
    run_in(&closed, &[], &["--", "touch", text(&mark)]).done();
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let Some(dir) = open_directory() else { return };
    let made = ["--", "touch", "made"];
    for (options, subject) in [
        (&["--user", "no-such-user-anywhere"][..], "--user no-such-user-anywhere"),
        (&["--user", ""], "--user"),
        (&["--user", "4294967295"], "--user 4294967295"),
        (&["--user", "-1"], "--user -1"),
        (&["--user", "65534", "--as-root"], "--as-root"),
    ] {
        assert_refused(&run_in(dir.path(), &[], &[options, &made].concat()), subject);
    }
    assert_refused(&run_in(dir.path(), &[], &["--user", "65534", "."]), "--user");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn without_root_nobody_else_can_be_asked_for_and_sudo_is_not_believed() {
    let Some(dir) = open_directory() else { return };
    let root = [("SUDO_UID", "0"), ("SUDO_GID", "0")];
    let Some(ran) = as_nobody(dir.path(), &root, &["--", "sh", "-c", "id -u; id -g"]) else { return };
    assert_eq!(ran.stdout, "65534\n65534\n", "{ran:?}");
    let damaged = [("SUDO_UID", "x"), ("SUDO_GID", "y")];
    let ran = as_nobody(dir.path(), &damaged, &["--", "id", "-u"]).unwrap();
    assert_eq!(ran.stdout, "65534\n", "{ran:?}");
    for (options, subject) in [
        (&["--user", "root"][..], "--user root"),
        (&["--user", "0"], "--user 0"),
        (&["--as-root"], "--as-root"),
    ] {
        let ran = as_nobody(dir.path(), &[], &[options, &["--", "id"]].concat()).unwrap();
        assert_refused(&ran, subject);
        assert!(ran.stderr.contains("sudo iowhy"), "{ran:?}");
    }
    let ran = as_nobody(dir.path(), &[], &["--user", "65534", "--", "id", "-u"]).unwrap();
    assert!(ran.stdout == "65534\n" && ran.stderr.contains("uid 65534"), "{ran:?}");
}

#[test]
fn without_rights_the_run_with_sudo_is_proposed_first() {
    let Some(dir) = open_directory() else { return };
    let Some(ran) = as_nobody(dir.path(), &[], &["--", "sh", "-c", "exit 0"]) else { return };
    assert_eq!(ran.code(), 0, "{ran:?}");
    // Lines of a screen are broken at spaces.
    let flat = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(at) = flat.find("to see it: ") else {
        assert!(!flat.contains("limitation: no "), "{flat}");
        return skipped("an ordinary user lacks no rights here");
    };
    let program = text(Path::new(binary().get_program())).to_owned();
    let proposal = format!("to see it: `sudo {program} -- sh -c 'exit 0'` (CMD still runs as you)");
    assert!(flat[at..].starts_with(&proposal) || !flat.contains("sudo "), "{flat}");
    if let Some(setting) = flat.find("sudo sysctl") {
        assert!(setting > at && flat[setting..].contains("every user of this machine"), "{flat}");
    }
}

/// A program on its terminal can type there (TIOCSTI), and root's shell carries it out.
#[test]
fn on_a_terminal_of_root_the_program_of_another_user_is_refused() {
    let Some(dir) = open_directory() else { return };
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    if !succeeds("script", &["-q", "-e", "-c", "true", "/dev/null"]) {
        return skipped("script (util-linux) makes no terminal here");
    }
    // The terminal that script makes belongs to us.
    let on_terminal = |before: &str, environment: &[(&str, &str)]| {
        let mut command = Command::new("script");
        let words =
            format!("exec {before} \"$BIN\" --user 65534 --output report --json r.json -- touch made");
        command.args(["-q", "-e", "-c", &words, "/dev/null"]).stdin(Stdio::null());
        command.env("BIN", binary().get_program()).envs(environment.iter().copied());
        finish(command.current_dir(dir.path()))
    };
    let switch = std::fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti").unwrap_or_default();
    let refused = on_terminal("", &[]);
    if switch.trim() == "0" {
        assert_eq!(refused.code(), 0, "nobody can type there: {refused:?}");
    } else {
        assert_eq!(refused.code(), 2, "{refused:?}");
        for word in ["TIOCSTI", "setsid --wait iowhy --user", "dev.tty.legacy_tiocsti=0"] {
            assert!(refused.stdout.contains(word), "{word}: {refused:?}");
        }
        assert!(names(dir.path()).is_empty(), "nothing was opened: {:?}", names(dir.path()));
    }
    // Without the terminal, and for the user who called sudo, it runs.
    for (before, environment) in [("setsid --wait", &[][..]), ("", &[("SUDO_UID", "65534")])] {
        let ran = on_terminal(before, environment);
        assert_eq!(ran.code(), 0, "{before} {environment:?}: {ran:?}");
        assert!(names(dir.path()).contains(&"made".to_owned()), "{ran:?}");
        names(dir.path()).iter().for_each(|name| std::fs::remove_file(dir.path().join(name)).unwrap());
    }
}
