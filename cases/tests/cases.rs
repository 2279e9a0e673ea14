//! Both variants of a case do the same useful work, and a stage leaves nothing outside its folder.

use std::path::Path;
use std::process::Command;

use iowhy_cases::{Skip, Stage, Variant, catalogue};

const OWN: &str = env!("CARGO_BIN_EXE_iowhy-cases");

/// A folder on the disk that the build is on, removed with all it holds.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the build folder is writable");
        Folder(path)
    }

    /// A file of pseudo-random bytes in it.
    fn file(&self, name: &str, bytes: usize) -> String {
        let path = self.0.join(name);
        let content: Vec<u8> = (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
        std::fs::write(&path, content).expect("the folder is writable");
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Output of a program.
fn said(words: &[&str]) -> String {
    let output = Command::new(OWN).arg("program").args(words).output().expect("the binary runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a number")
}

#[test]
fn variants_do_the_same_work() {
    let folder = Folder::new("variants");
    let data = folder.file("data", 4 << 20);
    let out = folder.path("out");
    let never = u64::MAX.to_string();
    let archive = folder.file("archive", 40 * 50);
    let tree = folder.path("tree");
    for part in 0..4 {
        std::fs::create_dir_all(format!("{tree}/{part}")).expect("writable");
        for number in 0..10 {
            std::fs::write(format!("{tree}/{part}/{number}"), [b'x'; 50]).expect("writable");
        }
    }
    let pairs: Vec<[Vec<&str>; 2]> = vec![
        [vec!["read", &data, "512", "2", "normal"], vec!["read", &data, "65536", "2", "random"]],
        [vec!["write", &out, "64", "1024", &never], vec!["write", &out, "65536", "1", "0"]],
        [vec!["update", &out, "1000", "4096", "10"], vec!["update", &out, "4096", "4096", "10"]],
        [vec!["transactions", &data, &out, "20", "1"], vec!["transactions", &data, &out, "20", "8"]],
        [vec!["map-touch", &data, "50", "normal"], vec!["map-touch", &data, "50", "random"]],
        [vec!["map-passes", &data, "3", "remap"], vec!["map-passes", &data, "3", "once"]],
        [vec!["fresh", &data, "1048576", "2", "fresh"], vec!["fresh", &data, "1048576", "2", "reuse"]],
        [vec!["fresh", &data, "1048576", "2", "reuse"], vec!["map-sum", &data, "2"]],
        [vec!["map-threads", &data, "3", "2", "map"], vec!["map-threads", &data, "3", "2", "keep"]],
        [vec!["tree", &tree, "2"], vec!["archive", &archive, "40", "50", "2"]],
        [vec!["skip", &data, "512", "seek"], vec!["skip", &data, "512", "relative"]],
    ];
    for [slow, repaired] in &pairs {
        let number = said(slow);
        assert_eq!(number, said(repaired), "{slow:?}");
        assert!(number.trim() != "0", "{slow:?} did nothing");
    }
}

#[test]
fn a_deep_queue_reads_what_single_reads_read() {
    let folder = Folder::new("deep");
    let data = folder.file("data", 4 << 20);
    let single = Command::new(OWN).args(["program", "direct-random", &data, "4096", "100", "1"]).output();
    let single = single.expect("the binary runs");
    if !single.status.success() {
        println!("skipped: no direct reads here: {}", String::from_utf8_lossy(&single.stderr).trim());
        return;
    }
    let deep = said(&["direct-random", &data, "4096", "100", "16"]);
    assert_eq!(String::from_utf8_lossy(&single.stdout), deep);
    assert_eq!(said(&["direct-stream", &data, "65536", "4194304"]), said(&["map-sum", &data, "1"]));
}

#[test]
fn nonsense_is_refused_in_words() {
    for words in [
        &["program", "nothing"][..],
        &["program", "read", "x", "y", "1", "normal"],
        &["run", "x", "slow", "."],
    ] {
        let output = Command::new(OWN).args(words).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{words:?}");
    }
}

#[test]
fn a_case_is_prepared_run_and_undone() {
    let folder = Folder::new("case");
    let case = catalogue::find("innocent-sleep").expect("in the catalogue");
    let mut stage = Stage::new(case, &folder.0, Path::new(OWN)).expect("it needs nothing");
    stage.before(Variant::Slow).expect("nothing to do");
    assert_eq!(stage.command(Variant::Slow), ["sleep", "1.2"]);
    assert!(stage.command(Variant::Repaired).is_empty());
}

#[test]
fn a_control_group_is_gone_after_its_stage() {
    let folder = Folder::new("group");
    let case = catalogue::find("throttled-direct").expect("in the catalogue");
    let stage = match Stage::new(case, &folder.0, Path::new(OWN)) {
        Ok(stage) => stage,
        Err(Skip::Unavailable(reason)) => {
            println!("skipped: {reason}");
            return;
        }
        Err(Skip::Problem(problem)) => panic!("{problem}"),
    };
    let words = stage.command(Variant::Slow).join(" ");
    let group = words.split_whitespace().find(|w| w.ends_with("cgroup.procs")).expect("it names the group");
    let group = Path::new(group).parent().expect("a folder").to_path_buf();
    assert!(group.is_dir());
    drop(stage);
    assert!(!group.exists());
}
