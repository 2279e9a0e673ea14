//! What cannot be measured is refused: one `error:` line that names the option or path, a `hint:` with the fix, exit
//! code 2, nothing on stdout, nothing left behind, nothing of the user's changed.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::SystemTime;

use crate::common::{
    MIB, Mount, Ran, binary, directory, finish, full_file, iowhy, is_root, names, rows, skipped, succeeds,
    text,
};

/// Asserts a refusal that names `subject`.
pub(crate) fn assert_refused(ran: &Ran, subject: &str) {
    assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(errors.len() == 1 && errors[0].contains(subject), "no single error names {subject}: {ran:?}");
    let hints = ran.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
    assert_eq!((hints, ran.stderr.lines().count()), (1, 2), "{ran:?}");
}

fn refused(args: &[&str], subject: &str) {
    assert_refused(&iowhy(args), subject);
}

/// What a file holds and when it was last changed.
pub(crate) fn fingerprint(path: &Path) -> (Vec<u8>, SystemTime) {
    (std::fs::read(path).unwrap(), std::fs::metadata(path).unwrap().modified().unwrap())
}

#[test]
fn targets_that_cannot_be_measured() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("empty"), b"").unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    assert!(succeeds("mkfifo", &[text(&at("pipe"))]));
    std::os::unix::fs::symlink(at("loop"), at("loop")).unwrap();
    full_file(dir.path(), "file", MIB);
    let before = names(dir.path());
    for name in ["missing", "empty", "socket", "pipe", "loop", "file/below"] {
        let path = at(name);
        refused(&[text(&path)], text(&path));
        refused(&["bench", text(&path)], text(&path));
    }
    for device in ["/dev/full", "/dev/tty"] {
        refused(&["bench", device], device);
    }
    // Several targets, one of them missing: nothing is measured.
    let (file, missing) = (at("file"), at("missing"));
    refused(&["bench", &format!("{}:{}", text(&file), text(&missing))], text(&missing));
    refused(&["bench", &format!("{}:{}", text(&missing), text(&file))], text(&missing));
    assert_eq!(names(dir.path()), before);
}

#[test]
fn options_with_impossible_values() {
    let dir = directory();
    let here = text(dir.path());
    for (option, values) in [
        ("--size", &["0", "-1", "-4k", "x", "", "1.5.2m", "4q", "99999999999999999999g"] as &[&str]),
        ("--bs", &["0", "-4k", "4k,", "4k..1k", "x", ""]),
        ("--threads", &["0", "-1", "x", "1,,2", "99999"]),
        ("--iodepth", &["0", "-1", "x", "99999"]),
        ("--time", &["0", "-1s", "x", "5"]),
        ("--precision", &["0", "-1%", "x"]),
        ("--rate", &["0", "-5", "x"]),
        ("--rw", &["reads", "", "READ"]),
        ("--pattern", &["x", "zipf:-1", "zipf:x", "stride:0", "stride"]),
        ("--method", &["x", "pread,x", ""]),
        ("--state", &["x", "hot", "warm,x"]),
        ("--touch", &["x", "some"]),
    ] {
        for value in values {
            if (option, *value) == ("--time", "5") {
                continue;
            }
            refused(&["bench", option, value, here], option);
        }
    }
    for (option, values) in [("--size", &["0", "-1", "x"] as &[&str]), ("--time", &["0", "-3s", "1s", "x"])] {
        for value in values {
            refused(&[option, value, here], option);
        }
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn options_that_contradict_each_other_or_the_target() {
    let dir = directory();
    let here = text(dir.path());
    let file = full_file(dir.path(), "file", MIB);
    let (file, before) = (text(&file), fingerprint(&file));
    for (args, subject) in [
        (&["--size", "2m", file] as &[&str], "--size"),
        (&["--bs", "2m", file], "--bs"),
        (&["--bs", "513", "--direct", file], "--bs"),
        (&["--threads", "300", "--bs", "4k", file], "--threads"),
        (&["--method", "mmap", "--direct", file], "mmap"),
        (&["--method", "mmap", "--state", "direct", "--size", "1m", here], "mmap"),
        (&["--method", "splice", "--state", "direct", file], "splice"),
        (&["--method", "direct", "--state", "warm", file], "direct"),
        (&["--method", "pwrite", file], "pwrite"),
        (&["--method", "mmap", "--rw", "write", "--size", "1m", here], "mmap"),
        (&["--method", "fallocate", "--rw", "randrw", "--size", "1m", here], "fallocate"),
        (&["--state", "warm", "/dev/null"], "/dev/null"),
        (&["--state", "cold", "--size", "1m", "memory"], "memory"),
        (&["scripted?nonsense=1"], "nonsense"),
        (&["scripted?fail-at=-1"], "fail-at"),
        (&["scripted:/nonexistent/model.toml"], "/nonexistent/model.toml"),
    ] {
        refused(&[&["bench"], args].concat(), subject);
    }
    assert_eq!(fingerprint(Path::new(file)), before);
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn what_clap_refuses_names_the_option_too() {
    for (args, subject) in [
        (&["--bogus"] as &[&str], "--bogus"),
        (&["bench", "--bogus"], "--bogus"),
        (&["bench", "--seed", "x"], "--seed"),
        (&["bench", "--direct=2"], "--direct"),
        (&["bench", "--rwmixread", "101"], "--rwmixread"),
        (&["bench", "--direct", "--state", "warm"], "--state"),
        (&["bench", "--once", "--runtime", "1s"], "--time"),
        (&["bench", "--color", "sometimes"], "--color"),
        (&["bench", "--json"], "--json"),
        (&["one", "two"], "two"),
    ] {
        let ran = iowhy(args);
        assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{args:?}");
        let error = ran.stderr.lines().next().unwrap();
        assert!(error.starts_with("error: ") && ran.stderr.contains(subject), "{ran:?}");
        assert_eq!(ran.stderr.matches("error:").count(), 1, "{ran:?}");
    }
}

#[test]
fn a_mistyped_subcommand_is_recognized() {
    for (args, hint) in [
        (&["benhc"] as &[&str], "did you mean `bench`?"),
        (&["docter"], "did you mean `doctor`?"),
        (&["benhc", "--iodepth", "8"], "did you mean `bench`?"),
        (&["hisotry", "one"], "did you mean `history`?"),
        // A program that exists is more likely to be meant than a near name.
        (&["sh"], "`iowhy -- sh`"),
    ] {
        let ran = iowhy(args);
        assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.contains(hint), "{ran:?}");
    }
    let far = iowhy(&["no-such-thing-at-all"]);
    assert!(far.code() == 2 && !far.stderr.contains("did you mean"), "{far:?}");
}

#[test]
fn a_depth_that_cannot_act_is_said_and_measured_as_what_it_is() {
    let ran = iowhy(&["bench", "scripted", "--method", "pread", "--state", "warm", "--iodepth", "32"]).done();
    assert!(ran.stderr.starts_with("warning: depth 32 has no effect with method `pread`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--method uring"), "{}", ran.stderr);
    assert_eq!(rows(&ran.stdout).next().unwrap()[6], "1", "{}", ran.stdout);
}

/// Runs as somebody who may do nothing here: as an ordinary user we are that ourselves.
fn as_nobody(directory: &Path, args: &[&str]) -> Option<Ran> {
    let mut command = binary();
    if is_root() {
        let program = command.get_program().to_owned();
        command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command.stdin(std::process::Stdio::null());
        if !succeeds("setpriv", &["--reuid=65534", "--regid=65534", "--clear-groups", "true"]) {
            skipped("setpriv(1) cannot make an ordinary user here");
            return None;
        }
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let ran = finish(command.args(args));
    if ran.status.code().is_none_or(|code| code > 2) {
        skipped("an ordinary user cannot run the binary where it lies");
        return None;
    }
    Some(ran)
}

#[test]
fn no_permission() {
    let dir = directory();
    let file = full_file(dir.path(), "secret", MIB);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    if let Some(ran) = as_nobody(dir.path(), &["bench", text(&file)]) {
        assert_refused(&ran, text(&file));
        assert!(ran.stderr.contains("permission denied"), "{ran:?}");
    }
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    if let Some(ran) = as_nobody(dir.path(), &["bench", "--size", "1m", text(&closed)]) {
        assert_refused(&ran, text(&closed));
    }
    if let Some(ran) = as_nobody(dir.path(), &["--size", "1m", text(&closed)]) {
        assert_refused(&ran, text(&closed));
    }
    assert!(names(&closed).is_empty());
}

#[test]
fn a_directory_that_is_read_only_for_us_is_measured_through_a_file_in_it() {
    let dir = directory();
    full_file(dir.path(), "large", 17 * MIB);
    let inside = dir.path().join("large");
    std::fs::set_permissions(&inside, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let ran = as_nobody(dir.path(), &["--size", "16m", "--time", "2s", text(dir.path())]);
    if is_root() {
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    if let Some(ran) = ran {
        let ran = ran.measured();
        assert!(ran.stdout.starts_with(text(&inside)) || is_root(), "{ran:?}");
    }
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(names(dir.path()), ["large"]);
}

#[test]
fn a_directory_without_space() {
    // Every file system is too small for this.
    let dir = directory();
    refused(&["--size", "1000000t", text(dir.path())], text(dir.path()));
    assert!(names(dir.path()).is_empty());
    let Some(small) = Mount::tmpfs("size=2m") else { return };
    for command in [&["bench"] as &[&str], &[]] {
        let ran = iowhy(&[command, &["--size", "4m", text(small.path())]].concat());
        assert_refused(&ran, text(small.path()));
        assert!(ran.stderr.contains("--size"), "the hint says what would fit: {ran:?}");
        assert!(names(small.path()).is_empty());
    }
}

#[test]
fn a_read_only_file_system() {
    let Some(mount) = Mount::tmpfs("size=32m") else { return };
    let file = full_file(mount.path(), "file", MIB);
    assert!(succeeds("mount", &["-o", "remount,ro", text(mount.path())]));
    refused(&["bench", "--size", "1m", text(mount.path())], text(mount.path()));
    refused(&["bench", "--rw", "write", "--size", "1m", text(mount.path())], text(mount.path()));
    iowhy(&["bench", "--runtime", "20ms", text(&file)]).done();
}

#[test]
fn a_file_system_without_direct_access() {
    let Some(mount) = Mount::tmpfs("size=32m,huge=never") else { return };
    let file = full_file(mount.path(), "file", MIB);
    let ran = iowhy(&["bench", "--direct", "--runtime", "20ms", text(&file), "--json", "-"]);
    // Since Linux 6.6 tmpfs takes O_DIRECT and answers from memory: then it must not look like a device.
    if ran.code() == 2 {
        assert_refused(&ran, text(&file));
    } else {
        assert_eq!(ran.code(), 1, "{ran:?}");
        assert_eq!(crate::record::only_cell(&ran.json())["verdict"], "mislabelled");
    }
}

#[test]
fn writes_to_a_file_of_the_users() {
    let dir = directory();
    let file = full_file(dir.path(), "precious", MIB);
    let before = fingerprint(&file);
    let name = text(&file);
    for rw in ["write", "randwrite", "rw", "randrw"] {
        refused(&["bench", "--rw", rw, name], name);
    }
    let other = format!("{name}x");
    refused(&["bench", "--rw", "write", "--destroy-data", &other, name], "--destroy-data");
    refused(&["bench", "--rw", "write", "--destroy-data", "", name], "--destroy-data");
    assert_eq!(fingerprint(&file), before);
    assert_eq!(names(dir.path()), ["precious"]);
}
