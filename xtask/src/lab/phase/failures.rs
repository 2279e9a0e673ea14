//! Failures: whatever goes wrong ends in the right message and exit code, without a hang and without a file left behind.
//! And what needs more than one CPU: io_uring by two threads, watching a program. No time means anything here.

use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::{Boot, ext4, minix};
use crate::lab::check::Checks;
use crate::lab::machine::Time;

pub(super) const PHASE: Phase = Phase { name: "failures", boots, judge };

/// Guest time after which a program hangs.
const LIMIT: &str = "limit=60";

fn boots() -> Vec<Boot> {
    let mut dying = Boot::new("failing-disks", Time::Real);
    dying.null_disks();
    dying.module("dm_flakey", "");
    dying.module("scsi_debug", "dev_size_mb=64 ndelay=500000");
    dying.module("sd_mod", "");
    slow_disk(&mut dying, "a");
    slow_disk(&mut dying, "b");
    dying.step(&["dm", "mapped", "0 131072 linear /dev/a 0"]);
    dying.step(&["later", "2500", "dm-reload", "mapped", "0 131072 error"]);
    dying.iowhy(
        "error-in-mid-run",
        LIMIT,
        "bench /dev/mapped --state direct --bs 4k --size 16m --runtime 12s",
    );
    dying.step(&["join"]);
    dying.iowhy(
        "error-from-the-start",
        LIMIT,
        "bench /dev/mapped --state direct --bs 4k --size 16m --runtime 1s",
    );
    dying.iowhy("error-cached", LIMIT, "bench /dev/mapped --state cold,warm --bs 4k --size 16m --runtime 1s");
    // Works for one second, fails for the next.
    dying.step(&["dm", "flaky", "0 131072 flakey /dev/b 0 1 1"]);
    dying.iowhy("flaky", LIMIT, "bench /dev/flaky --state direct --bs 4k --size 16m --runtime 6s");
    dying.step(&["wait", "/dev/sda"]);
    dying.step(&["later", "2500", "write", "/sys/block/sda/device/delete", "1"]);
    dying.iowhy("unplugged", LIMIT, "bench /dev/sda --state direct --bs 4k --size 16m --runtime 12s");
    dying.step(&["join"]);
    dying.step(&["list", "left", "/tmp"]);

    let mut refused = Boot::new("refusals", Time::Real);
    refused.null_disks();
    refused.module("ext4", "");
    refused.module("minix", "");
    refused.null_disk("disk", &[("size", "64"), ("queue_mode", "2"), ("memory_backed", "1")]);
    refused.null_disk("small", &[("size", "16"), ("queue_mode", "2"), ("memory_backed", "1")]);
    refused.null_disk("old", &[("size", "32"), ("queue_mode", "2"), ("memory_backed", "1")]);
    refused.file_system("ext4", ext4(16 << 20), "/dev/small", "/full");
    refused.file_system("minix", minix(32 << 20), "/dev/old", "/minix");
    refused.iowhy("full", LIMIT, "bench /full --state direct --size 64m --runtime 1s");
    refused.step(&["list", "full-left", "/full"]);
    refused.iowhy("minix-direct", LIMIT, "bench /minix --state direct --bs 4k --size 4m --runtime 200ms");
    refused.iowhy("minix", LIMIT, "bench /minix --state warm --bs 4k --size 4m --runtime 200ms");
    refused.step(&["list", "minix-left", "/minix"]);
    refused.iowhy("device-as-nobody", "limit=60,as=65534", "bench /dev/disk --state direct --runtime 200ms");
    refused.step(&["mkdir", "/full/open"]);
    refused.step(&["open-to-all", "/full/open"]);
    refused.iowhy(
        "folder-as-nobody",
        "limit=60,as=65534",
        "bench /full/open --state direct --bs 4k --size 4m --runtime 200ms",
    );
    refused.step(&["list", "open-left", "/full/open"]);
    refused.iowhy(
        "two-threads",
        LIMIT,
        "bench /dev/disk --state direct --method uring --bs 4k --iodepth 32 --threads 2 --size 16m --runtime 600ms",
    );
    refused.step(&["fill", "/full/file", "2097152"]);
    let watch = |options: &str, rest: &[&str], boot: &mut Boot| {
        let mut words = vec!["run"];
        words.extend(options.split(' '));
        words.extend(["iowhy", "--quiet", "--json", "@record", "--", "lab-guest", "program"]);
        words.extend(rest);
        boot.step(&words);
    };
    watch("watched limit=60", &["read", "/full/file", "512", "5"], &mut refused);
    watch("watched-as-nobody limit=60,as=65534", &["read", "/full/file", "512", "5"], &mut refused);
    watch("watched-exit limit=60", &["exit", "7"], &mut refused);
    vec![dying, refused]
}

fn slow_disk(boot: &mut Boot, name: &str) {
    boot.null_disk(
        name,
        &[("size", "64"), ("queue_mode", "2"), ("irqmode", "2"), ("completion_nsec", "500000")],
    );
}

fn judge(answers: &Answers, checks: &mut Checks) {
    let dying = |label| answers.get("failing-disks", label);
    for (label, device) in [
        ("error-in-mid-run", "/dev/mapped"),
        ("error-from-the-start", "/dev/mapped"),
        ("error-cached", "/dev/mapped"),
        ("flaky", "/dev/flaky"),
        ("unplugged", "/dev/sda"),
    ] {
        let run = dying(label);
        outcome(checks, label, run, 1);
        let failures: Vec<&str> = run.cells().iter().filter_map(|cell| cell["failure"].as_str()).collect();
        let named = [run.stdout(), run.stderr()].iter().any(|said| said.contains(device));
        let words =
            ["nput/output error", "No such device", "no such device", "I/O error", "its device went away"];
        let said = format!("{} {}", failures.join(" "), run.stderr());
        checks.holds(
            &format!("{label}: says what failed, and where"),
            named && words.iter().any(|word| said.contains(word)),
            said.lines().next().unwrap_or("").chars().take(120).collect::<String>(),
        );
    }
    let kept = dying("error-in-mid-run").at("/record/cells/0/samples").as_array().map_or(0, Vec::len);
    checks.holds("error-in-mid-run: rounds before it are kept", kept > 0, format!("{kept} rounds"));
    left(checks, dying("left"), &["stderr", "stdout"], "/tmp");

    let refused = |label| answers.get("refusals", label);
    for (label, words) in
        [("full", "full"), ("minix-direct", "O_DIRECT"), ("device-as-nobody", "ermission denied")]
    {
        let run = refused(label);
        outcome(checks, label, run, 2);
        let said = run.stderr();
        let one_line: String = said.lines().next().unwrap_or("").chars().take(120).collect();
        checks.holds(&format!("{label}: says why"), said.contains(words), one_line);
        let hint = said.lines().find(|line| line.starts_with("hint: ")).unwrap_or("");
        checks.holds(&format!("{label}: says what would help"), !hint.is_empty(), hint);
    }
    for label in ["minix", "folder-as-nobody", "two-threads", "watched", "watched-as-nobody"] {
        ended_well(checks, label, refused(label));
    }
    outcome(checks, "watched-exit", refused("watched-exit"), 7);
    left(checks, refused("full-left"), &["lost+found"], "/full");
    left(checks, refused("minix-left"), &[], "/minix");
    left(checks, refused("open-left"), &[], "/full/open");
    // The file has 4096 pieces of 512 bytes, read five times, and each pass ends with an empty read.
    for label in ["watched", "watched-as-nobody"] {
        let bytes = refused(label).number("/record/io/read_bytes");
        checks.near(&format!("{label}: bytes read"), bytes, Some(5.0 * 2_097_152.0), 0.01);
    }
}

/// It ended by itself with this code.
fn outcome(checks: &mut Checks, name: &str, run: Answer<'_>, code: i64) {
    let timed_out = run.at("/timed_out").as_bool();
    let said = match (run.exit(), timed_out) {
        (_, Some(true)) => "it hangs".to_owned(),
        (Some(found), _) => format!("exit code {found}"),
        (None, _) => format!("no exit code, signal {}", run.at("/signal")),
    };
    checks.holds(
        &format!("{name}: ends with {code}"),
        run.exit() == Some(code) && timed_out == Some(false),
        said,
    );
}

/// Nothing is in a folder but what we put there.
fn left(checks: &mut Checks, listed: Answer<'_>, ours: &[&str], folder: &str) {
    let names = listed.at("/names");
    let others = names.as_array().map(|names| {
        names
            .iter()
            .filter(|name| !name.as_str().is_some_and(|n| ours.contains(&n) || n == "record.json"))
            .count()
    });
    checks.holds(&format!("nothing left in {folder}"), others == Some(0), names.to_string());
}
