//! The part of the lab that needs no guest but root: loop devices with direct I/O, disks throttled by the kernel, btrfs over
//! two of them, a compressed disk in memory, the trap of tmpfs, a file that a program serves. Real timings of real paths, so only what holds on a busy
//! machine is checked: a throttle is never exceeded, and two throttled disks are not one.
//!
//! Invariant: whatever is made here is taken away again when its value is dropped, also after a failure: loop devices,
//! mounts, control groups, the compressed disk, files. What is missing is said and left out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iowhy_cases::served::{Manner, Served};
use serde_json::Value;

use super::check::Checks;
use super::tool;

const LIMIT: Duration = Duration::from_secs(60);
const DISK_BYTES: usize = 160 << 20;
/// What a throttled disk may move.
const THROTTLE: f64 = 20_971_520.0;
/// The kernel throttles in slices of 100 ms, so that a run of seconds gets a little more.
const BURST: f64 = 1.25;
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// Runs the checks; without root they are skipped visibly.
pub(super) fn checks(iowhy: &Path, folder: &Path, checks: &mut Checks) {
    checks.group("host");
    match tool::output(Command::new("id").arg("-u"), LIMIT).map(|id| id.trim() == "0") {
        Ok(true) => {}
        _ => return println!("-- host: skipped: loop devices and mounts need root"),
    }
    for (name, part) in [
        ("loop", loop_device as fn(&Path, &Path, &mut Checks) -> Result<(), String>),
        ("throttled disks", throttled),
        ("compressed disk", compressed),
        ("tmpfs", memory),
        ("FUSE", served),
    ] {
        if let Err(why) = part(iowhy, folder, checks) {
            println!("-- host: {name}: skipped: {why}");
        }
    }
}

/// A loop device with direct I/O: the bytes that requests claim are those that it moved.
fn loop_device(iowhy: &Path, folder: &Path, checks: &mut Checks) -> Result<(), String> {
    let disk = Loop::make(folder)?;
    let run =
        Run::new(iowhy, &["bench", &disk.node, "--state", "direct", "--bs", "64k", "--size", "32m"], None)?;
    checks.holds("loop: ends well", run.exit == Some(0), run.said());
    let name = disk.node.trim_start_matches("/dev/");
    checks.holds(
        "loop: it is the device",
        run.record["environment"]["device"] == name,
        run.record["environment"]["device"].to_string(),
    );
    let (claimed, moved) = (run.cell("claimed_bytes"), run.cell("device_bytes"));
    checks.near("loop: bytes moved are those claimed", moved, claimed, 0.01);
    Ok(())
}

/// One disk that the kernel throttles, and btrfs striped over two.
fn throttled(iowhy: &Path, folder: &Path, checks: &mut Checks) -> Result<(), String> {
    if !Path::new(BLKIO).join("blkio.throttle.read_bps_device").exists() {
        return Err(format!("no control group of version 1 at {BLKIO}"));
    }
    let disks = [Loop::make(folder)?, Loop::make(folder)?];
    let group = Group::make()?;
    for disk in &disks {
        group.throttle(&disk.node, THROTTLE as u64)?;
    }
    let words =
        ["bench", &disks[0].node, "--state", "direct", "--bs", "256k", "--size", "64m", "--runtime", "4s"];
    let one = Run::new(iowhy, &words, Some(&group))?;
    checks.holds("throttled: ends well", one.exit == Some(0), one.said());
    let alone = one.throughput();
    at_most(checks, "throttled: the limit holds", alone, THROTTLE * BURST);

    for missing in ["mkfs.btrfs", "mount", "umount"] {
        if !tool::have(missing) {
            return Err(format!("`{missing}` is not here: btrfs was left out"));
        }
    }
    let nodes = disks.each_ref().map(|disk| disk.node.as_str());
    let mut make = Command::new("mkfs.btrfs");
    make.args(["-q", "-f", "-d", "raid0", "-m", "raid0"]).args(nodes);
    tool::output(&mut make, LIMIT)?;
    let mount = Mount::make("btrfs", nodes[0], &folder.join("btrfs"))?;
    let file = mount.at.join("file");
    fill(&file, 64 << 20)?;
    let file = file.display().to_string();
    let words = ["bench", &file, "--state", "direct", "--bs", "1m", "--size", "64m", "--runtime", "4s"];
    let both = Run::new(iowhy, &words, Some(&group))?;
    checks.holds("btrfs over two: ends well", both.exit == Some(0), both.said());
    at_most(checks, "btrfs over two: the limits hold", both.throughput(), 2.0 * THROTTLE * BURST);
    let gain = both.throughput().zip(alone).map(|(both, alone)| both / alone);
    checks.holds(
        "btrfs over two: faster than one",
        gain.is_some_and(|gain| gain > 1.3),
        gain.map_or_else(|| "missing".to_owned(), |gain| format!("{gain:.2} times one")),
    );
    let mut found: Vec<String> = both.record["environment"]["devices"]
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_str).map(|name| format!("/dev/{name}")).collect())
        .unwrap_or_default();
    found.sort();
    let mut expected = nodes.map(str::to_owned).to_vec();
    expected.sort();
    checks.holds("btrfs over two: both disks are seen", found == expected, found.join(" "));
    Ok(())
}

/// A disk in compressed memory is a block device and no memory target.
fn compressed(iowhy: &Path, _folder: &Path, checks: &mut Checks) -> Result<(), String> {
    let disk = Zram::make()?;
    let run =
        Run::new(iowhy, &["bench", &disk.node(), "--state", "direct", "--bs", "4k", "--size", "32m"], None)?;
    checks.holds("zram: ends well", run.exit == Some(0), run.said());
    // Kernels differ in whether such a disk counts what it moves; where it does, the two must agree.
    let verdict = run.record["cells"][0]["verdict"].as_str().unwrap_or("missing").to_owned();
    checks.holds("zram: it is what it claims", ["ok", "inconclusive"].contains(&verdict.as_str()), verdict);
    Ok(())
}

/// tmpfs takes O_DIRECT and answers from memory: that must never pass for a device.
fn memory(iowhy: &Path, folder: &Path, checks: &mut Checks) -> Result<(), String> {
    let mount = Mount::make("tmpfs", "tmpfs", &folder.join("tmpfs"))?;
    let at = mount.at.display().to_string();
    let run = Run::new(iowhy, &["bench", &at, "--state", "direct", "--bs", "4k", "--size", "16m"], None)?;
    let verdict = run.record["cells"][0]["verdict"].as_str().unwrap_or("").to_owned();
    // Kernels before 6.6 refuse O_DIRECT there, and then so do we.
    let caught = (run.exit == Some(1) && verdict == "mislabelled") || run.exit == Some(2);
    checks.holds("tmpfs: no device figure", caught, format!("exit code {:?}, {verdict}", run.exit));
    let left = std::fs::read_dir(&mount.at).into_iter().flatten().count();
    checks.holds("tmpfs: nothing left", left == 0, format!("{left} files"));
    Ok(())
}

/// A file that a program serves: told as such, and no device is claimed for it.
fn served(iowhy: &Path, folder: &Path, checks: &mut Checks) -> Result<(), String> {
    let mount = Served::mount(&folder.join("fuse"), Manner::default())?;
    let words =
        ["bench", &mount.file(), "--layers", "--state", "cold,warm", "--bs", "4k,64k", "--size", "4m"];
    let run = Run::new(iowhy, &words, None)?;
    checks.holds("FUSE: ends well", run.exit == Some(0), run.said());
    let environment = &run.record["environment"];
    let kind = environment["file_system"].as_str().unwrap_or("missing");
    checks.holds("FUSE: is told", kind.starts_with("fuse"), kind);
    let none =
        environment["device"].is_null() && environment["devices"].as_array().is_some_and(Vec::is_empty);
    let said = format!("{} {}", environment["device"], environment["devices"]);
    checks.holds("FUSE: no device is named", none, said);
    let cells = run.record["cells"].as_array().map_or(&[][..], Vec::as_slice);
    let claims = cells.iter().filter(|cell| {
        let layers = cell["layers"].as_array().map_or(&[][..], Vec::as_slice);
        let device = layers.iter().filter(|layer| layer["id"] == "device");
        let time: f64 = device.filter_map(|l| Some(l["busy_ns"].as_f64()? + l["wait_ns"].as_f64()?)).sum();
        time != 0.0 || !cell["device_bytes"].is_null()
    });
    let claims = claims.count();
    let said = format!("{claims} of {} cells claim one", cells.len());
    checks.holds("FUSE: no time and no bytes of a device", claims == 0 && cells.len() == 4, said);
    let at = mount.at.display().to_string();
    drop(mount);
    let table = std::fs::read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
    checks.holds("FUSE: unmounted", !table.contains(&at), String::new());
    Ok(())
}

fn at_most(checks: &mut Checks, name: &str, value: Option<f64>, limit: f64) {
    let said = value.map_or_else(
        || "missing".to_owned(),
        |value| format!("{:.1} MiB/s, at most {:.1}", value / 1048576.0, limit / 1048576.0),
    );
    checks.holds(name, value.is_some_and(|value| value <= limit), said);
}

/// One run of iowhy.
struct Run {
    exit: Option<i32>,
    stderr: String,
    record: Value,
}

impl Run {
    fn new(iowhy: &Path, words: &[&str], group: Option<&Group>) -> Result<Run, String> {
        let record = tempfile::NamedTempFile::with_prefix("iowhy-lab-").map_err(|e| e.to_string())?;
        // The shell enters the control group and becomes iowhy.
        let mut command = Command::new("sh");
        let enter = group.map_or_else(String::new, |g| format!("echo $$ > {}/tasks && ", g.at.display()));
        command.arg("-c").arg(format!("{enter}exec \"$@\"")).arg("sh").arg(iowhy);
        command.args(["--quiet", "--json"]).arg(record.path()).args(words);
        if !words.contains(&"--runtime") {
            command.args(["--runtime", "600ms"]);
        }
        let (exit, stderr) = tool::ending(&mut command, LIMIT)?;
        let text = std::fs::read_to_string(record.path()).unwrap_or_default();
        Ok(Run { exit, stderr, record: serde_json::from_str(&text).unwrap_or(Value::Null) })
    }

    fn said(&self) -> String {
        let first = self.stderr.lines().next().unwrap_or("");
        let cells = self.record["cells"].as_array().into_iter().flatten();
        let words: Vec<&str> = cells.filter_map(|cell| cell["verdict"].as_str()).collect();
        format!("exit code {:?} {first} {}", self.exit, words.join(" "))
    }

    fn cell(&self, key: &str) -> Option<f64> {
        self.record["cells"][0][key].as_f64()
    }

    fn throughput(&self) -> Option<f64> {
        self.record["cells"][0]["throughput"]["value"].as_f64()
    }
}

/// A loop device over a file of its own, with direct I/O.
struct Loop {
    node: String,
    // Dropped after the device was given back.
    _file: tempfile::NamedTempFile,
}

impl Loop {
    fn make(folder: &Path) -> Result<Loop, String> {
        let file = tempfile::Builder::new()
            .prefix("iowhy-lab-disk-")
            .tempfile_in(folder)
            .map_err(|e| format!("cannot make a file in {}: {e}", folder.display()))?;
        fill(file.path(), DISK_BYTES)?;
        let mut command = Command::new("losetup");
        command.args(["--direct-io=on", "--show", "-f"]).arg(file.path());
        let node = tool::output(&mut command, LIMIT)?.trim().to_owned();
        Ok(Loop { node, _file: file })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        undo(Command::new("losetup").arg("-d").arg(&self.node));
    }
}

/// A mount in a folder that is made for it.
struct Mount {
    at: PathBuf,
}

impl Mount {
    fn make(kind: &str, source: &str, at: &Path) -> Result<Mount, String> {
        std::fs::create_dir_all(at).map_err(|e| format!("cannot make {}: {e}", at.display()))?;
        tool::output(Command::new("mount").args(["-t", kind, source]).arg(at), LIMIT)?;
        Ok(Mount { at: at.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        undo(Command::new("umount").arg(&self.at));
        // Only ever an empty folder.
        let _ = std::fs::remove_dir(&self.at);
    }
}

/// A control group with limits of its own.
struct Group {
    at: PathBuf,
}

impl Group {
    fn make() -> Result<Group, String> {
        let at = Path::new(BLKIO).join(format!("iowhy-lab-{}", std::process::id()));
        std::fs::create_dir(&at).map_err(|e| format!("cannot make {}: {e}", at.display()))?;
        Ok(Group { at })
    }

    fn throttle(&self, node: &str, bytes_per_second: u64) -> Result<(), String> {
        let name = node.trim_start_matches("/dev/");
        let number = std::fs::read_to_string(format!("/sys/class/block/{name}/dev"))
            .map_err(|e| format!("cannot find the number of {node}: {e}"))?;
        let file = self.at.join("blkio.throttle.read_bps_device");
        std::fs::write(&file, format!("{} {bytes_per_second}", number.trim()))
            .map_err(|e| format!("cannot write {}: {e}", file.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it has ended; an empty group can be removed.
        if let Err(error) = std::fs::remove_dir(&self.at) {
            println!("-- host: cannot remove {}: {error}", self.at.display());
        }
    }
}

/// A disk in compressed memory.
struct Zram {
    number: u32,
}

impl Zram {
    fn make() -> Result<Zram, String> {
        let text = std::fs::read_to_string("/sys/class/zram-control/hot_add")
            .map_err(|e| format!("no zram here: {e}"))?;
        let number = text.trim().parse().map_err(|_| "zram names no device".to_owned())?;
        let disk = Zram { number };
        std::fs::write(format!("/sys/block/zram{number}/disksize"), (64 << 20).to_string())
            .map_err(|e| format!("cannot size zram{number}: {e}"))?;
        fill(Path::new(&disk.node()), 32 << 20)?;
        Ok(disk)
    }

    fn node(&self) -> String {
        format!("/dev/zram{}", self.number)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write("/sys/class/zram-control/hot_remove", self.number.to_string()) {
            println!("-- host: cannot remove zram{}: {error}", self.number);
        }
    }
}

/// Takes something away; a failure is said, because it stays then.
fn undo(command: &mut Command) {
    if let Err(why) = tool::output(command, LIMIT) {
        println!("-- host: {why}");
    }
}

/// Fills a file or device with bytes that do not compress.
fn fill(path: &Path, bytes: usize) -> Result<(), String> {
    let wrong = |e: std::io::Error| format!("cannot fill {}: {e}", path.display());
    let mut file =
        std::fs::File::options().write(true).create(true).truncate(false).open(path).map_err(wrong)?;
    let mut rng = iowhy_core::rng::Rng::new(1);
    let mut piece = Vec::with_capacity(1 << 20);
    let mut left = bytes;
    while left > 0 {
        piece.clear();
        while piece.len() < left.min(1 << 20) {
            piece.extend_from_slice(&rng.next_u64().to_le_bytes());
        }
        piece.truncate(left);
        file.write_all(&piece).map_err(wrong)?;
        left -= piece.len();
    }
    file.sync_all().map_err(wrong)
}
