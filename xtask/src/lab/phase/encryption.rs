//! dm-crypt: `iowhy doctor` reads its flags, `--try` loads the table of a mounted device with a flag more and puts it back, also
//! after a kill and with the key in the kernel's keyring; the key is in no record, note or message.

use super::watched::each_kernel;
use super::{Phase, ended_well};
use crate::lab::answers::{Answer, Answers};
use crate::lab::boot::{Boot, ext4};
use crate::lab::check::Checks;
use crate::lab::machine::Time;
use crate::lab::packages::Series;

pub(super) const PHASE: Phase = Phase { name: "encryption", boots, judge };

const KERNELS: [(&str, Series); 3] =
    [("crypt-5.10", Series::Old), ("crypt-6.1", Series::Present), ("crypt-6.12", Series::New)];

/// A key of the lab's own.
const KEY: &str = "00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const FLAG: &str = "no_read_workqueue";
/// What a table has besides the flag that is tried.
const OTHERS: [&str; 2] = ["allow_discards", "same_cpu_crypt"];
const NOTE: &str = "/run/iowhy-setting-dm-0-no_read_workqueue";

fn boots() -> Vec<Boot> {
    KERNELS.iter().map(|(name, series)| boot(name, *series)).collect()
}

fn table(device: &str, key: &str, options: &[&str]) -> String {
    let count = options.len();
    format!("0 131072 crypt aes-xts-plain64 {key} 0 {device} 0 {count} {}", options.join(" "))
}

fn boot(name: &'static str, series: Series) -> Boot {
    let mut boot = Boot::new(name, Time::Counted);
    boot.kernel = series;
    boot.null_disks();
    // Where notes of what is to be put back lie.
    boot.step(&["mkdir", "/run"]);
    for module in ["ext4", "dm_crypt", "aes_generic", "ecb", "xts"] {
        boot.module(module, "");
    }
    let [a, b] = ["a", "b"].map(|disk| {
        let fast = [("size", "64"), ("queue_mode", "2"), ("memory_backed", "1")];
        boot.null_disk(disk, &fast)
    });
    boot.step(&["dm-uuid", "sealed", "CRYPT-PLAIN-sealed", &table(&a, KEY, &OTHERS)]);
    boot.file_system("ext4", ext4(48 << 20), "/dev/sealed", "/mnt");
    // A new table brings the defaults of these back.
    boot.step(&["write", "/sys/block/dm-0/queue/read_ahead_kb", "512"]);
    let look = |boot: &mut Boot, label: &str| boot.step(&["dm-table", label, "sealed"]);
    let tried = |flag: &str, time: &str| format!("doctor /mnt --try {flag}=1 --size 8m --time {time}");
    boot.iowhy("before", "-", "doctor /mnt");
    boot.iowhy("before-as-user", "as=65534", "doctor /mnt");
    look(&mut boot, "table-before");
    for flag in [FLAG, "no_write_workqueue"] {
        boot.step(&["dm-look", "sealed", flag]);
        boot.iowhy(flag, "-", &tried(flag, "5s"));
        boot.step(&["dm-looked", &format!("seen-{flag}")]);
        look(&mut boot, &format!("table-after-{flag}"));
    }
    boot.iowhy("after", "-", "doctor /mnt");
    boot.iowhy("faulted", "fault=3", &tried(FLAG, "600s"));
    look(&mut boot, "table-faulted");
    boot.step(&["list", "notes-faulted", "/run"]);
    boot.iowhy("killed", "limit=3", &tried(FLAG, "600s"));
    boot.step(&["list", "notes", "/run"]);
    boot.step(&["show", "note", NOTE]);
    // With which of the two values it was killed nobody knows: the other one it is now for certain.
    let changed = [OTHERS[0], OTHERS[1], FLAG];
    boot.step(&["dm-reload", "sealed", &table(&a, KEY, &changed)]);
    look(&mut boot, "table-changed");
    boot.iowhy("restored", "-", "doctor /mnt");
    look(&mut boot, "table-restored");
    boot.step(&["list", "notes-left", "/run"]);
    // The file system is whole, and takes writes.
    boot.step(&["fill", "/mnt/file", "1048576"]);
    boot.step(&["umount", "/mnt"]);
    boot.step(&["mount", "ext4", "/dev/sealed", "/mnt", ""]);
    keyring(&mut boot, &b);
    boot.step(&["show", "tainted", "/proc/sys/kernel/tainted"]);
    boot
}

/// The key is in the kernel's keyring, and then no longer.
fn keyring(boot: &mut Boot, disk: &str) {
    boot.step(&["key", "lab:volume", KEY]);
    boot.step(&["dm-uuid", "kept", "CRYPT-LUKS2-0123-kept", &table(disk, ":32:logon:lab:volume", &OTHERS)]);
    let tried = format!("doctor /dev/kept --try {FLAG}=1 --size 8m --time 2s");
    for label in ["with-key", "without-key"] {
        boot.step(&["dm-table", &format!("table-{label}-before"), "kept"]);
        boot.iowhy(label, "-", &tried);
        boot.step(&["dm-table", &format!("table-{label}-after"), "kept"]);
        boot.step(&["list", &format!("notes-{label}"), "/run"]);
        if label == "with-key" {
            boot.step(&["unkey"]);
        }
    }
}

fn judge(answers: &Answers, checks: &mut Checks) {
    each_kernel(answers, checks, KERNELS.map(|(name, _)| name), |checks, name| {
        let run = |label: &str| answers.get(name, label);
        for label in ["before", "before-as-user", "after", "restored"] {
            ended_well(checks, label, run(label));
        }
        for label in [FLAG, "no_write_workqueue", "with-key"] {
            tried(checks, label, run(label));
        }
        told(checks, run("before"), run("before-as-user"));
        let before = text(run("table-before"));
        checks.holds("the table has its key", before.contains(KEY), "");
        for flag in [FLAG, "no_write_workqueue"] {
            let seen = run(&format!("seen-{flag}"));
            let [with, without] = ["/with", "/without"].map(|at| seen.at(at).as_u64().unwrap_or(0));
            let said = format!("{with} looks with it, {without} without");
            checks.holds(&format!("{flag}: both values were in force"), with > 5 && without > 5, said);
            let requests = run(flag).at("/record/requests").as_array().map_or(0, Vec::len);
            checks.holds(&format!("{flag}: measured"), requests > 1, format!("{requests} requests"));
            let same = text(run(&format!("table-after-{flag}"))) == before;
            checks.holds(&format!("{flag}: the table is as it was"), same, "");
        }
        let [was, is] = ["before", "after"].map(|label| settings(run(label)));
        checks.holds("all settings are as they were", was == is, format!("{was}\n{is}"));
        let notes = |label: &str| run(label).at("/names").as_array().map(Vec::len);
        let faulted = run("faulted").at("/signal") == 11;
        checks.holds("faulted while it tried", faulted, run("faulted").at("/signal").to_string());
        let back = text(run("table-faulted")) == before && notes("notes-faulted") == Some(0);
        checks.holds("the handler of a fault puts back", back, "");
        checks.holds("killed while it tried", run("killed").at("/timed_out") == true, run("killed").stderr());
        let found = (notes("notes"), notes("notes-left"));
        checks.holds(
            "a note is left, and gone with the next start",
            found == (Some(1), Some(0)),
            format!("{found:?}"),
        );
        let note = text(run("note"));
        let named = note.contains("CRYPT-PLAIN-sealed") && note.contains(FLAG);
        checks.holds("the note names device and flag", named, note);
        checks.holds("the flag was set", text(run("table-changed")).contains(FLAG), "");
        checks.holds("put back by the next start after a kill", text(run("table-restored")) == before, "");
        for label in ["with-key", "without-key"] {
            let [was, is] = ["before", "after"].map(|at| text(run(&format!("table-{label}-{at}"))));
            checks.holds(
                &format!("{label}: the table is as it was"),
                !was.is_empty() && was == is,
                format!("{was}, {is}"),
            );
            let left = notes(&format!("notes-{label}"));
            checks.holds(&format!("{label}: no note is left"), left == Some(0), format!("{left:?}"));
        }
        let without = run("without-key");
        let plain = without.exit() == Some(2) && without.stderr().contains("not in the kernel's keyring");
        checks.holds("without-key: refused in plain words", plain, without.stderr());
        let all = [
            FLAG,
            "no_write_workqueue",
            "before",
            "after",
            "restored",
            "killed",
            "note",
            "with-key",
            "without-key",
        ];
        let telling: Vec<&str> =
            all.into_iter().filter(|label| run(label).at("").to_string().contains(KEY)).collect();
        checks.holds("the key is told nowhere", telling.is_empty(), telling.join(", "));
    });
}

/// A trial that went to its end and put back what it changed. Its exit code may say that a request cannot be compared: the guest's
/// one CPU decrypts what was read ahead while the next requests go directly to the device, and these seem to fill the page cache.
fn tried(checks: &mut Checks, label: &str, run: Answer<'_>) {
    let ended = run.at("/record/put_back") == true && matches!(run.exit(), Some(0 | 1));
    checks.holds(&format!("{label}: tried and put back"), ended, run.stderr());
}

/// What the flags are is told, and to an ordinary user why not.
fn told(checks: &mut Checks, root: Answer<'_>, user: Answer<'_>) {
    let flags = |run: Answer<'_>, what: &str| -> Vec<String> {
        let all = run.at("/record/settings").as_array().map_or(&[][..], Vec::as_slice);
        let of = all.iter().filter(|setting| setting["group"] == "encryption");
        of.map(|setting| format!("{}={}", setting["key"].as_str().unwrap_or(""), setting[what])).collect()
    };
    let expected = ["no_read_workqueue", "no_write_workqueue", "same_cpu_crypt", "submit_from_crypt_cpus"];
    let found = flags(root, "value");
    let right = expected.map(|flag| format!("{flag}=\"{}\"", u8::from(OTHERS.contains(&flag))));
    checks.holds("the flags are told", found == right, found.join(" "));
    let why = flags(user, "limitation");
    let of_rights = why.len() == 4 && why.iter().all(|why| why.contains("needs root"));
    checks.holds("an ordinary user is told why they are not", of_rights, why.join(" "));
}

fn text(run: Answer<'_>) -> &str {
    run.at("/text").as_str().unwrap_or("")
}

/// All settings of queues and of encryption.
fn settings(run: Answer<'_>) -> String {
    let all = run.at("/record/settings").as_array().map_or(&[][..], Vec::as_slice);
    let of = all.iter().filter(|setting| setting["group"] == "encryption" || setting["group"] == "queue");
    of.map(|setting| format!("{}={} ", setting["key"], setting["value"])).collect()
}
