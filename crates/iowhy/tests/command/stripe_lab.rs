//! Stripes over slow disks: loop devices throttled by a control group (version 1). Root only; everything that is set up here is
//! taken down again, also when a test fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::common::{Loop, MIB, binary, directory, full_file, iowhy, is_root, skipped, succeeds, text};

/// Where a version 1 control group for block devices is made.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// Throttled loop devices, and the control group that throttles whoever is in it.
struct Lab {
    loops: Vec<PathBuf>,
    group: PathBuf,
    _files: TempDir,
}

impl Lab {
    /// Loop devices of `bytes`, each limited to its reads a second and bytes a second; or the reason why not.
    fn new(bytes: u64, limits: &[(u64, u64)]) -> Result<Lab, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("throttled loop devices need root".into());
        }
        if !Path::new(BLKIO).join("blkio.throttle.read_bps_device").exists() {
            return Err("no control group of version 1 throttles block devices here".into());
        }
        let files = directory();
        // Tests of one process run side by side.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let group = Path::new(BLKIO).join(format!("iowhy-test-{}-{number}", std::process::id()));
        fs::create_dir(&group).map_err(|error| format!("no control group can be made: {error}"))?;
        // From here on dropping it takes down what there is.
        let mut lab = Lab { loops: Vec::new(), group, _files: files };
        for (number, (requests, rate)) in limits.iter().enumerate() {
            let file = full_file(lab._files.path(), &format!("disk-{number}"), bytes);
            let made = Command::new("losetup")
                .args(["--show", "--find", "--read-only", "--direct-io=on"])
                .arg(&file)
                .output()
                .map_err(|error| format!("no losetup: {error}"))?;
            if !made.status.success() {
                return Err(format!("no loop device: {}", String::from_utf8_lossy(&made.stderr)));
            }
            let device = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
            lab.loops.push(device.clone());
            let name = device.file_name().unwrap().to_string_lossy().into_owned();
            let number =
                fs::read_to_string(format!("/sys/block/{name}/dev")).map_err(|error| error.to_string())?;
            for (key, limit) in [("read_bps_device", rate), ("read_iops_device", requests)] {
                fs::write(
                    lab.group.join(format!("blkio.throttle.{key}")),
                    format!("{} {limit}", number.trim()),
                )
                .map_err(|error| format!("no throttle: {error}"))?;
            }
        }
        Ok(lab)
    }

    /// Runs the binary inside the group.
    fn run(&self, args: &[&str]) -> std::process::Output {
        let iowhy = binary();
        Command::new("sh")
            .args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\""])
            .arg(&self.group)
            .arg(iowhy.get_program())
            .args(args)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for device in &self.loops {
            let _ = Command::new("losetup").arg("-d").arg(device).status();
        }
        let _ = fs::remove_dir(&self.group);
    }
}

/// The throttle decides the times here, so that a busy machine changes little; the bounds are wide all the same.
#[test]
fn advice_on_throttled_disks_is_compared_with_measured_stripes() {
    let lab = match Lab::new(32 * MIB, &[(200, 20 * MIB); 3]) {
        Ok(lab) => lab,
        Err(reason) => {
            skipped(&reason);
            return;
        }
    };
    let disks: Vec<&str> = lab.loops.iter().map(|device| text(device)).collect();
    let load = "readers=6,bytes=64k,size=90m,pattern=permuted,requests=200,method=direct";
    let args = [
        "--workload",
        load,
        "--interleave",
        "8k,64k,1m",
        "--prove=all",
        "--time",
        "8s",
        "--prove-time",
        "2500ms",
    ];
    let output = lab.run(&[&["stripe", "advise"], &disks[..], &args[..], &["--json", "-"]].concat());
    assert!(output.status.success(), "{output:?}");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let shares: Vec<(u64, f64)> = record["proof"]
        .as_array()
        .unwrap()
        .iter()
        .map(|proof| {
            (proof["interleave_bytes"].as_u64().unwrap(), proof["of_fastest"]["value"].as_f64().unwrap())
        })
        .collect();
    let pick = record["pick"]["interleave_bytes"].as_u64().unwrap();
    let of = |bytes: u64| shares.iter().find(|(interleave, _)| *interleave == bytes).unwrap().1;
    assert!(of(pick) > 0.6, "the pick is among the fast ones: {pick} {shares:?}");
    assert!(of(8192) < 0.75, "each request of 64 KiB is three there: {shares:?}");
    assert_ne!(pick, 8192);
    let busy = record["proof"][0]["members"][0]["device_bytes"].as_u64();
    assert!(
        busy.is_some_and(|bytes| bytes > 0),
        "the devices' own counters: {}",
        record["proof"][0]["members"]
    );
    let loops = lab.loops.clone();
    let group = lab.group.clone();
    drop(lab);
    assert!(!group.exists());
    for device in loops {
        let name = device.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            !Path::new(&format!("/sys/block/{name}/loop/backing_file")).exists(),
            "{device:?} is detached"
        );
    }
}

/// Each part of a request is one of so many that a member may serve a second, so that the splits must explain what a small
/// interleave costs.
#[test]
fn the_interleave_test_of_1999_on_three_throttled_disks_shows_what_its_splits_cost() {
    let lab = match Lab::new(65 * MIB, &[(600, 200 * MIB); 3]) {
        Ok(lab) => lab,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let members = lab.loops.iter().map(|device| text(device)).collect::<Vec<_>>().join(",");
    let output =
        lab.run(&["classic", "netbsd-1999", "null", "--members", &members, "--time", "16s", "--json", "-"]);
    assert!(output.status.success(), "{output:?}");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = record["rows"].as_array().unwrap();
    let row = |table: &str, interleave: u64| {
        let of = |row: &&serde_json::Value| {
            row["key"]["table"] == table && row["key"]["interleave_sectors"] == interleave
        };
        rows.iter().find(of).unwrap_or_else(|| panic!("{table} {interleave}"))
    };
    let (eight, even) = (row("stripe", 8), row("stripe", 128));
    let ratio = |row: &serde_json::Value| row["measured"]["value"].as_f64().unwrap();
    assert!(eight["key"]["by_splits"].as_f64().unwrap() > 1.6, "{eight}");
    assert!(ratio(eight) > 1.3, "two parts take two turns: {eight}");
    assert!(ratio(even) < 1.3, "nothing is split: {even}");
    let writes = |row: &&serde_json::Value| {
        row["key"]["table"] == "stripe-long" && row["key"]["load"] == "large-writes"
    };
    assert_eq!(rows.iter().filter(writes).count(), 0, "the user's devices are only read");
}

/// One of three disks is half as fast: it is named, and the stripe without it is measured beside the others. The throttle decides
/// the times, and two disks of 200 requests a second against three that wait for one of 100 are far apart.
#[test]
fn the_slow_one_of_throttled_disks_is_found_and_left_out() {
    let lab = match Lab::new(32 * MIB, &[(200, 20 * MIB), (200, 20 * MIB), (60, 6 * MIB)]) {
        Ok(lab) => lab,
        Err(reason) => {
            skipped(&reason);
            return;
        }
    };
    let disks: Vec<&str> = lab.loops.iter().map(|device| text(device)).collect();
    let load = "readers=8,bytes=64k,size=60m,pattern=permuted,requests=200,method=direct";
    let args = [
        "--workload",
        load,
        "--interleave",
        "8k,64k,1m",
        "--prove",
        "--time",
        "8s",
        "--prove-time",
        "2500ms",
    ];
    let output = lab.run(&[&["stripe", "advise"], &disks[..], &args[..], &["--json", "-"]].concat());
    assert!(output.status.success(), "{output:?}");
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let straggler = &record["pick"]["straggler"];
    assert_eq!(straggler["name"], disks[2], "{straggler}");
    assert!(straggler["gain_without"].as_f64().unwrap() > 1.2, "{straggler}");
    let proof = record["proof"].as_array().unwrap();
    let speed = |role: &str| {
        let found = proof.iter().find(|proof| proof["role"] == role);
        found.unwrap_or_else(|| panic!("no {role}: {proof:?}"))["of_fastest"]["value"].as_f64().unwrap()
    };
    assert!(speed("without") > 1.2, "{}", speed("without"));
    assert!(speed("pick") > 0.6, "{}", speed("pick"));
}

/// A btrfs over two loop devices, unmounted and detached when the test ends.
struct Btrfs {
    point: TempDir,
    mounted: bool,
    loops: Vec<Loop>,
    _files: TempDir,
}

impl Btrfs {
    /// Data and metadata of profile raid0; or the reason why not.
    fn raid0() -> Result<Btrfs, String> {
        if !is_root() {
            return Err("a btrfs over loop devices needs root".into());
        }
        let files = directory();
        let mut made = Btrfs { point: directory(), mounted: false, loops: Vec::new(), _files: files };
        for name in ["one", "two"] {
            let path = made._files.path().join(name);
            fs::File::create(&path)
                .and_then(|file| file.set_len(256 * MIB))
                .map_err(|error| error.to_string())?;
            made.loops.push(Loop::over(&path).ok_or("no loop device")?);
        }
        let devices: Vec<&str> = made.loops.iter().map(|one| one.device.as_str()).collect();
        if !succeeds("mkfs.btrfs", &[&["-q", "-f", "-d", "raid0", "-m", "raid1"], &devices[..]].concat()) {
            return Err("mkfs.btrfs is not here or makes none".into());
        }
        succeeds("btrfs", &["device", "scan", devices[0], devices[1]]);
        let at = text(made.point.path()).to_owned();
        let both = format!("device={},device={}", devices[0], devices[1]);
        made.mounted = succeeds("mount", &["-t", "btrfs", "-o", &both, devices[0], &at]);
        if made.mounted { Ok(made) } else { Err("btrfs cannot be mounted here".into()) }
    }
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        if self.mounted {
            succeeds("umount", &[text(self.point.path())]);
        }
    }
}

#[test]
fn btrfs_tells_its_profile_its_turns_and_what_each_device_has_of_a_file() {
    let btrfs = match Btrfs::raid0() {
        Ok(btrfs) => btrfs,
        Err(reason) => {
            skipped(&reason);
            return;
        }
    };
    let file = full_file(btrfs.point.path(), "data", 8 * MIB);
    let lint = |path: &Path| iowhy(&["stripe", "lint", text(path), "--json", "-"]).done().json();
    let record = lint(&file);
    let volume = &record["volume"];
    assert_eq!((&volume["kind"], &volume["profile"]), (&"btrfs".into(), &"raid0".into()), "{record}");
    assert_eq!(
        (&volume["interleave_bytes"], &volume["limitation"]),
        (&65_536.into(), &serde_json::Value::Null)
    );
    let names: Vec<&str> = btrfs.loops.iter().map(|one| one.device.trim_start_matches("/dev/")).collect();
    let seen: Vec<&str> =
        record["file_parts"].as_array().unwrap().iter().map(|p| p["device"].as_str().unwrap()).collect();
    assert_eq!(seen, names, "{record}");
    let bytes: Vec<u64> =
        record["file_parts"].as_array().unwrap().iter().map(|part| part["bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes.iter().sum::<u64>(), 8 * MIB, "no byte is lost, none counted twice");
    // Extents begin anywhere in a turn: each may give one device a turn more.
    assert!(bytes[0].abs_diff(bytes[1]) <= MIB, "{bytes:?}");
    let of_all = lint(btrfs.point.path());
    assert_eq!(
        (&of_all["volume"]["profile"], of_all["file_parts"].is_null()),
        (&"raid0".into(), true),
        "{of_all}"
    );
    let screen = iowhy(&["stripe", "lint", text(&file)]).done().stdout;
    assert!(screen.contains("this file: ") && screen.contains(names[0]), "{screen}");
}
