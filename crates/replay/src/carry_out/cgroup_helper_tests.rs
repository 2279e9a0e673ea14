//! Plans inside control groups that are made for the test and removed after it.

use std::fs;
use std::io::Seek;
use std::path::PathBuf;

use iowhy_core::profile::{GroupLimit, Limited};
use iowhy_core::replay::{Action, Op, Placed, PlanFile, Role};

use super::super::replay::Replay;
use super::*;

const MIB: u64 = 1 << 20;
const ROLE: &str = "IOWHY_TEST_INSIDE";

/// Runs in a child process only.
#[test]
fn child_that_serves() {
    if std::env::var_os(ROLE).is_some() {
        std::process::exit(if serve().is_ok() { 0 } else { 3 });
    }
}

/// A test of this module as `--exact` wants it.
fn test(name: &str) -> String {
    let module = module_path!().split_once("::").map_or("", |(_, module)| module);
    format!("{module}::{name}")
}

fn helper_command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &test("child_that_serves")]).env(ROLE, "1");
    command
}

/// A group of the memory controller, or of version 2; it is removed with its value.
struct Made(PathBuf);

impl Made {
    fn new(name: &str) -> Option<Made> {
        let table = mounts::read();
        let mount = table.iter().find(|m| {
            m.file_system == "cgroup" && m.super_options.split(',').any(|o| o == "memory")
                || m.file_system == "cgroup2"
        });
        let Some(mount) = mount else {
            eprintln!("skipped: no control groups are mounted here");
            return None;
        };
        let directory = mount.point.join(format!("iowhy-test-{name}-{}", std::process::id()));
        match fs::create_dir(&directory) {
            Ok(()) => Some(Made(directory)),
            Err(error) => {
                eprintln!("skipped: no control group can be made in {}: {error}", mount.point.display());
                None
            }
        }
    }

    fn members(&self) -> String {
        fs::read_to_string(self.0.join("cgroup.procs")).unwrap()
    }

    /// Every file of the group that holds a setting.
    fn settings(&self) -> Vec<(PathBuf, String)> {
        let mut all: Vec<(PathBuf, String)> = fs::read_dir(&self.0)
            .unwrap()
            .flatten()
            .filter(|e| {
                let name = e.file_name().to_string_lossy().into_owned();
                ["limit_in_bytes", ".max", ".high", ".low", "swappiness", "subtree_control", ".type"]
                    .iter()
                    .any(|end| name.ends_with(end))
            })
            .filter_map(|e| Some((e.path(), fs::read_to_string(e.path()).ok()?)))
            .collect();
        all.sort();
        all
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn placed(directory: &Path) -> Placed {
    let limit = GroupLimit {
        of: Limited::Memory,
        set_by: directory.display().to_string(),
        words: "memory is limited to 1 bytes (memory.max)".to_owned(),
    };
    let group = PlacedGroup { directory: directory.display().to_string(), limits: vec![limit] };
    Placed { inside: vec![group], outside: Vec::new() }
}

/// `count` reads of 4 KiB over a file of 1 MiB, with think time before each.
fn plan(file: &tempfile::NamedTempFile, count: u32, think_ns: f64, placed: Option<Placed>) -> Plan {
    let planned =
        PlanFile { size_bytes: MIB, ..PlanFile::new(file.path().display().to_string(), Role::User) };
    let read = Action {
        op: Op::Read { fresh: false },
        file: 0,
        offset: 64 << 10,
        bytes: 4096,
        count,
        stride: 4096,
        think_ns,
    };
    Plan { files: vec![planned], threads: vec![vec![read]], passes: 1, depth: 1, placed, ..Plan::default() }
}

fn data() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![7u8; MIB as usize]).unwrap();
    file.as_file().sync_all().unwrap();
    file.rewind().unwrap();
    file
}

/// What a control group takes is done as root, and files are made as the user that the thread makes its files as.
#[test]
fn a_plan_runs_inside_its_group_as_the_owner_of_the_files() {
    let Some(group) = Made::new("owner") else { return };
    let file = data();
    fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let owner = FileOwner { uid: 65_534, gid: 65_533, groups: vec![65_533, 65_532] };
    let Ok(_files) = owner.enter() else {
        return eprintln!("skipped: only root can act as another user");
    };
    let mut replay = Replay::prepare(plan(&file, 100, 0.0, Some(placed(&group.0))), &helper_command).unwrap();
    let Replay::InCgroup(helper) = &replay else { panic!("we are not in that group") };
    // Here a thread of a test serves, beside the main thread.
    let threads = fs::read_dir(format!("/proc/{}/task", helper.child.id())).unwrap().flatten();
    let serving = threads.into_iter().any(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap();
        let line = |name: &str| -> Vec<u32> {
            let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
            line.split_whitespace().map(|word| word.parse().unwrap()).collect()
        };
        // Real, effective, saved, of the file system.
        let owner = (line("Uid:")[3], line("Gid:")[3]) == (65_534, 65_533);
        owner && line("Groups:") == [65_532, 65_533]
    });
    assert!(serving, "no thread there makes files as that user");
    assert_eq!(replay.run().unwrap().calls, 100);
}

fn ours() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap()
}

#[test]
fn a_plan_runs_inside_its_group_and_group_and_we_are_as_before() {
    let Some(group) = Made::new("runs") else { return };
    let (before, settings) = (ours(), group.settings());
    let file = data();
    let mut replay = Replay::prepare(plan(&file, 100, 0.0, Some(placed(&group.0))), &helper_command).unwrap();
    let Replay::InCgroup(helper) = &replay else { panic!("we are not in that group") };
    assert_eq!(group.members(), format!("{}\n", helper.child.id()), "the process that carries the plan out");
    assert_eq!(ours(), before, "and not we");
    for _ in 0..2 {
        let round = replay.run().unwrap();
        assert_eq!((round.calls, round.bytes), (100, 100 * 4096));
        assert!(round.elapsed_ns > 0.0);
    }
    drop(replay);
    assert_eq!(group.members(), "", "nobody is left inside");
    assert_eq!((ours(), group.settings()), (before, settings));
}

#[test]
fn a_process_that_is_killed_is_told_and_nobody_is_left_inside() {
    let Some(group) = Made::new("killed") else { return };
    let file = data();
    let mut replay = Replay::prepare(plan(&file, 100, 0.0, Some(placed(&group.0))), &helper_command).unwrap();
    let Replay::InCgroup(helper) = &mut replay else { panic!("we are not in that group") };
    helper.child.kill().unwrap();
    let problem = replay.run().unwrap_err();
    assert!(problem.message.contains("ended early") && problem.hint.is_some(), "{problem}");
    assert_eq!(group.members(), "");
}

#[test]
fn one_that_is_dropped_in_the_midst_of_a_run_is_gone() {
    let Some(group) = Made::new("dropped") else { return };
    let file = data();
    // Ten seconds of own time.
    let replay = Replay::prepare(plan(&file, 100, 1e8, Some(placed(&group.0))), &helper_command).unwrap();
    let Replay::InCgroup(helper) = &replay else { panic!("we are not in that group") };
    (&helper.stream).write_all(b"run\n").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    drop(replay);
    assert_eq!(group.members(), "");
}

#[test]
fn what_fails_inside_is_told_as_it_would_be_here() {
    let Some(group) = Made::new("fails") else { return };
    let file = data();
    let mut wrong = plan(&file, 1, 0.0, Some(placed(&group.0)));
    wrong.files[0].path = "/no/such/file".to_owned();
    let there = Replay::prepare(wrong.clone(), &helper_command).unwrap_err();
    let here = Replay::prepare(Plan { placed: None, ..wrong }, &helper_command).unwrap_err();
    assert_eq!(there, here);
    assert_eq!(group.members(), "");
}

#[test]
fn a_directory_that_is_no_control_group_gets_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let file = data();
    fs::write(dir.path().join("cgroup.procs"), "").unwrap();
    for directory in [dir.path().to_owned(), dir.path().join("gone")] {
        let problem =
            Replay::prepare(plan(&file, 1, 0.0, Some(placed(&directory))), &helper_command).unwrap_err();
        assert!(problem.message.contains("is gone (memory is limited to 1 bytes"), "{problem}");
        assert!(problem.exit_code() == 2 && problem.hint.is_some_and(|hint| hint.contains("--prove")));
    }
    assert_eq!(fs::read_to_string(dir.path().join("cgroup.procs")).unwrap(), "");
}

/// Whoever wrote the record may exchange what it names: nothing but the file of a control group is written to.
#[test]
fn a_link_is_no_control_group() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let (to_group, planted) = (dir.path().join("to-group"), dir.path().join("planted"));
    std::os::unix::fs::symlink("/sys/fs/cgroup", &to_group).unwrap();
    fs::create_dir(&planted).unwrap();
    std::os::unix::fs::symlink(&victim, planted.join("cgroup.procs")).unwrap();
    let below = to_group.join("below");
    for directory in [&to_group, &below, &planted] {
        let group = PlacedGroup { directory: directory.display().to_string(), limits: Vec::new() };
        assert!(enter(&group, std::process::id()).is_err(), "{}", directory.display());
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

/// Without the right to write there the replay is refused, with the command that has it.
#[test]
fn a_group_that_may_not_be_entered_is_refused_with_the_exact_command() {
    let Some(group) = Made::new("refused") else { return };
    let directory = group.0.display().to_string();
    let Ok(status) = Command::new("setpriv").arg("--version").stdout(Stdio::null()).status() else {
        eprintln!("skipped: there is no setpriv to give rights up with");
        return;
    };
    assert!(status.success());
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &test("child_that_is_refused"), "--nocapture"])
        .env(ROLE, &directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("setpriv:") {
        eprintln!("skipped: the test cannot be run as another user: {said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let ran = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(ran.contains("1 passed"), "{ran}");
    assert_eq!(group.members(), "");
}

/// Runs in a child process only.
#[test]
fn child_that_is_refused() {
    let Ok(directory) = std::env::var(ROLE) else { return };
    let group = placed(Path::new(&directory)).inside.remove(0);
    let problem = enter(&group, std::process::id()).unwrap_err();
    assert!(problem.exit_code() == 2 && problem.message.contains(&directory), "{problem}");
    assert!(problem.hint.is_some_and(|hint| hint.contains("`sudo iowhy prove RECORD`")));
}
