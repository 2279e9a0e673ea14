//! Programs in control groups with limits: what the record says of them, where they are replayed, and that groups are left as
//! they were.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{
    MIB, alone, binary, directory, full_file, iowhy, iowhy_alone, is_root, names, skipped, text,
};

/// A control group with 48 MiB of memory, removed when the test ends.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Group> {
        if !is_root() {
            skipped("control groups are made, and calls traced, by root alone");
            return None;
        }
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (top, file) = match v1.join("cgroup.procs").exists() {
            true => (v1, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let directory = top.join(format!("iowhy-test-{name}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&directory) {
            skipped(&format!("no control group can be made in {}: {error}", top.display()));
            return None;
        }
        let group = Group(directory);
        match fs::write(group.0.join(file), (48 * MIB).to_string()) {
            Ok(()) => Some(group),
            Err(error) => {
                skipped(&format!("no limit of memory can be set: {error}"));
                None
            }
        }
    }

    fn members(&self) -> String {
        fs::read_to_string(self.0.join("cgroup.procs")).unwrap()
    }

    /// A command that moves itself into the group and reads a file over and over.
    fn reader(&self, data: &Path) -> Vec<String> {
        let script = format!(
            "echo $$ > {} && for i in 1 2 3 4 5 6; do dd if={} of=/dev/null bs=64k status=none; done",
            self.0.join("cgroup.procs").display(),
            data.display()
        );
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn ours() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_program_that_moves_itself_into_a_group_is_replayed_there_and_the_group_is_as_before() {
    let Some(group) = Group::new("prove") else { return };
    let dir = directory();
    let data = full_file(dir.path(), "data", 96 * MIB);
    // Pages that we wrote are charged to our own group: found in the cache, they would never fill the other one, and the run
    // would be over before anybody looked.
    let file = fs::File::open(&data).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let record = dir.path().join("record.json");
    let (before, limit) = (ours(), group.0.display().to_string());
    let program = group.reader(&data);
    let mut words = vec!["--prove", "--json", text(&record), "--"];
    words.extend(program.iter().map(String::as_str));
    let ran = iowhy_alone(&words);
    assert_eq!(ran.code(), 0, "{ran:?}");
    assert_eq!(
        (group.members().as_str(), ours()),
        ("", before),
        "nobody is left inside, and we are where we were"
    );
    assert_eq!(names(dir.path()), ["data", "record.json"]);
    let value = read(&record);
    let groups = value["profile"]["groups"].as_array().unwrap_or_else(|| panic!("no groups: {}", ran.stderr));
    let found =
        groups.iter().find(|g| g["directory"] == limit.as_str()).unwrap_or_else(|| panic!("{groups:?}"));
    let limits = found["limits"].as_array().unwrap();
    assert!(limits.iter().any(|l| l["resource"] == "memory" && l["set_by"] == limit.as_str()), "{found}");
    assert_eq!(value["profile"]["pressure"]["memory_bytes"].as_u64(), Some(48 * MIB));
    // Where calls were traced, the plan says where it ran.
    let replay = &value["proof"]["baseline"];
    if replay.is_object() {
        assert_eq!(replay["plan"]["placed"]["inside"][0]["directory"], limit.as_str(), "{replay}");
        assert!(replay["notes"].to_string().contains("replayed inside"), "{replay}");
    } else {
        skipped("too few calls were traced for a replay");
    }

    // The group is gone: what ran in it cannot be replayed elsewhere.
    drop(group);
    let ran = iowhy(&["prove", "--quiet", text(&record)]);
    if replay.is_object() {
        assert_refused(&ran, text(&record));
        assert!(ran.stderr.contains("is gone") && ran.stderr.contains("--prove -- CMD"), "{ran:?}");
    }
}

/// The program may not move itself, nor its replay: both are moved by root.
#[test]
fn a_program_of_another_user_is_replayed_inside_its_group_too() {
    let Some(dir) = crate::run_as::open_directory() else { return };
    let Some(group) = Group::new("user") else { return };
    let data = full_file(dir.path(), "data", 96 * MIB);
    let file = fs::File::open(&data).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let theirs = dir.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65_534), Some(65_534)).unwrap();
    let script = "echo $$ > pid; until [ -e go ]; do sleep 0.01; done; \
                  for i in 1 2 3 4 5 6; do dd if=../data of=/dev/null bs=64k status=none; done";
    let args = ["--user", "65534", "--prove", "--json", "record.json", "--", "sh", "-c", script];
    let mover = std::thread::spawn({
        let (procs, theirs) = (group.0.join("cgroup.procs"), theirs.clone());
        move || {
            let begun = std::time::Instant::now();
            while begun.elapsed() < std::time::Duration::from_secs(60) {
                let pid = fs::read_to_string(theirs.join("pid")).unwrap_or_default();
                if pid.ends_with('\n') {
                    fs::write(&procs, pid.trim()).unwrap();
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            fs::write(theirs.join("go"), "").unwrap();
        }
    });
    let ran = alone(binary().args(args).current_dir(&theirs));
    mover.join().unwrap();
    assert_eq!((ran.code(), group.members().as_str()), (0, ""), "{ran:?}");
    let value = read(&theirs.join("record.json"));
    assert_eq!(value["ran_as"]["uid"], 65_534);
    let proof = &value["proof"];
    let told = format!("{} {proof}", ran.stderr);
    assert!(!told.contains("ermission denied") && !told.contains("cannot move the replay"), "{told}");
    let replay = &proof["baseline"];
    if !replay.is_object() {
        return skipped(&format!("nothing was replayed: {}", proof["reason"]));
    }
    assert!(replay["notes"].to_string().contains("replayed inside"), "{replay}");
    assert_eq!(names(&theirs), ["go", "pid", "record.json"]);
}

#[test]
fn the_word_for_a_replay_elsewhere_is_refused_from_a_command_line() {
    let ran = iowhy(&["--serve-replay"]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(ran.stderr.contains("iowhy prove"), "{ran:?}");
}
