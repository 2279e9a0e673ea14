//! Known answers on made-up trees: what is put back, in which order, and what a killed run leaves.

use super::*;

/// A made-up machine with one disk, and a directory for notes.
struct Machine {
    dir: tempfile::TempDir,
}

const QUEUE: &str = "sys/devices/vdx/queue";

impl Machine {
    fn new() -> Machine {
        let machine = Machine { dir: tempfile::tempdir().unwrap() };
        for (file, text) in [
            ("sys/devices/vdx/queue/read_ahead_kb", "128\n"),
            ("sys/devices/vdx/queue/scheduler", "none [mq-deadline] bfq\n"),
            ("sys/devices/vdx/queue/nr_requests", "256\n"),
            ("sys/devices/vdx/queue/wbt_lat_usec", "75000\n"),
            ("proc/sys/vm/dirty_bytes", "0\n"),
            ("proc/sys/vm/dirty_ratio", "20\n"),
        ] {
            let at = machine.at(file);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, text).unwrap();
        }
        fs::create_dir(machine.at("run")).unwrap();
        machine
    }

    fn at(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.at(file)).unwrap().trim().to_owned()
    }

    fn notes(&self) -> usize {
        fs::read_dir(self.at("run")).unwrap().count()
    }

    /// A second disk, and a hold of the read-ahead of both.
    fn both(&self, other: &str) -> Result<ChangedSetting, Problem> {
        let second = "sys/devices/vdy/queue/read_ahead_kb";
        fs::create_dir_all(self.at(second).parent().unwrap()).unwrap();
        fs::write(self.at(second), format!("{other}\n")).unwrap();
        let reading = |disk: &str, value: &str| Reading {
            file: Some(format!("/sys/devices/{disk}/queue/read_ahead_kb")),
            subject: Some(disk.into()),
            ..Reading::new(Key::ReadAhead, value)
        };
        let readings = [reading("vdx", "128"), reading("vdy", other)];
        ChangedSetting::hold_in(&readings, None, self.dir.path(), &self.at("run"))
    }

    fn values(&self) -> (String, String) {
        (self.now(), self.text("sys/devices/vdy/queue/read_ahead_kb"))
    }

    fn hold(&self, key: Key, directory: &str, value: &str) -> Result<ChangedSetting, Problem> {
        let file = Some(format!("/{directory}/{}", key.id()));
        let reading = Reading { file, subject: Some("vdx".into()), ..Reading::new(key, value) };
        ChangedSetting::hold_in(&[reading], None, self.dir.path(), &self.at("run"))
    }

    fn read_ahead(&self) -> Result<ChangedSetting, Problem> {
        self.hold(Key::ReadAhead, QUEUE, "128")
    }

    fn now(&self) -> String {
        self.text("sys/devices/vdx/queue/read_ahead_kb")
    }

    fn undo(&self) -> Vec<String> {
        undo_in(&self.at("run"), self.dir.path())
    }
}

/// Releases the lock and does nothing else, as SIGKILL would.
fn kill(held: ChangedSetting) {
    for part in &held.parts {
        flock(part.note._lock.try_clone().unwrap(), FlockOperation::Unlock).unwrap();
    }
    std::mem::forget(held);
}

#[test]
fn what_was_there_is_put_back_and_the_note_goes() {
    let machine = Machine::new();
    let held = machine.read_ahead().unwrap();
    assert_eq!((held.old_value(), machine.notes()), ("128", 1));
    let second = machine.read_ahead().unwrap_err();
    assert!(second.message.contains("another run"), "{second}");
    held.set("0").unwrap();
    assert_eq!((machine.now().as_str(), machine.undo().len()), ("0", 0), "a run that lives is let be");
    held.restore().unwrap();
    assert_eq!((machine.now().as_str(), machine.notes()), ("128", 1), "still held");
    held.set("7").unwrap();
    drop(held);
    assert_eq!((machine.now().as_str(), machine.notes()), ("128", 0));
    let panicked = std::panic::catch_unwind(|| {
        let held = machine.read_ahead().unwrap();
        held.set("7").unwrap();
        // Unwinds as a panic does, without its message.
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(panicked.is_err());
    assert_eq!((machine.now().as_str(), machine.notes()), ("128", 0));
}

#[test]
fn what_a_killed_run_has_left_is_undone_once_and_only_where_settings_are() {
    let machine = Machine::new();
    let held = machine.read_ahead().unwrap();
    held.set("0").unwrap();
    kill(held);
    let again = machine.read_ahead().unwrap_err();
    assert!(again.message.contains("killed"), "{again}");
    let said = machine.undo();
    assert!(said.len() == 1 && said[0].contains("is 128 again"), "{said:?}");
    assert_eq!((machine.now().as_str(), machine.notes(), machine.undo().len()), ("128", 0, 0));
    // Notes that name other files, or nothing, put nothing back.
    let other = machine.at("sys/devices/vdx/uevent");
    fs::write(&other, "as it was").unwrap();
    let climbing = machine.at("sys/devices/../devices/vdx/queue/read_ahead_kb");
    for (name, text) in [
        ("a", format!("{}=x\n", other.display())),
        ("b", format!("{}=1\n", climbing.display())),
        ("c", "/etc/passwd=x\n".to_owned()),
        ("d", String::new()),
        ("e", "nonsense".to_owned()),
    ] {
        fs::write(machine.at("run").join(format!("{NOTE}{name}")), text).unwrap();
    }
    assert!(machine.undo().is_empty());
    assert_eq!((fs::read_to_string(&other).unwrap().as_str(), machine.now().as_str()), ("as it was", "128"));
}

#[test]
fn what_changes_along_with_a_setting_is_put_back_too() {
    let machine = Machine::new();
    let held = machine.hold(Key::Scheduler, QUEUE, "mq-deadline").unwrap();
    // The kernel does this when the scheduler is changed.
    for (file, text) in [("scheduler", "none"), ("nr_requests", "64"), ("wbt_lat_usec", "0")] {
        fs::write(machine.at(QUEUE).join(file), text).unwrap();
    }
    drop(held);
    let now = |file: &str| machine.text(&format!("{QUEUE}/{file}"));
    assert_eq!(
        (now("scheduler"), now("nr_requests"), now("wbt_lat_usec")),
        ("mq-deadline".into(), "256".into(), "75000".into())
    );
    // Of ratio and bytes the kernel clears the one that is not set: what was 0 is not written back, its other half is.
    let held = machine.hold(Key::DirtyBytes, "proc/sys/vm", "0").unwrap();
    assert_eq!(held.old_state(), "dirty_ratio=20");
    fs::write(machine.at("proc/sys/vm/dirty_bytes"), "1048576").unwrap();
    fs::write(machine.at("proc/sys/vm/dirty_ratio"), "0").unwrap();
    drop(held);
    assert_eq!(machine.text("proc/sys/vm/dirty_ratio"), "20");
    assert_eq!(machine.text("proc/sys/vm/dirty_bytes"), "1048576", "the kernel clears it, not we");
}

#[test]
fn a_setting_behind_a_link_is_put_back_where_the_link_leads() {
    let machine = Machine::new();
    fs::create_dir_all(machine.at("sys/class/bdi")).unwrap();
    std::os::unix::fs::symlink(machine.at(QUEUE), machine.at("sys/class/bdi/0:44")).unwrap();
    let held = machine.hold(Key::ReadAhead, "sys/class/bdi/0:44", "128").unwrap();
    held.set("0").unwrap();
    kill(held);
    assert_eq!((machine.undo().len(), machine.now().as_str()), (1, "128"));
}

#[test]
fn a_setting_that_is_not_there_is_refused_and_leaves_no_note() {
    let machine = Machine::new();
    let missing = machine.hold(Key::Iostats, QUEUE, "1").unwrap_err();
    assert!(missing.message.contains("iostats") && missing.hint.is_some(), "{missing}");
    assert_eq!(machine.notes(), 0);
    assert!(ChangedSetting::read_ahead("no-such-device").is_err());
}

fn two(a: &str, b: &str) -> (String, String) {
    (a.to_owned(), b.to_owned())
}

#[test]
fn several_devices_are_changed_together_and_each_gets_its_own_back() {
    let machine = Machine::new();
    let held = machine.both("512").unwrap();
    assert_eq!((held.old_state().as_str(), machine.notes()), ("vdx 128, vdy 512", 2));
    held.set("64").unwrap();
    assert_eq!(machine.values(), two("64", "64"));
    held.restore().unwrap();
    assert_eq!(machine.values(), two("128", "512"));
    held.set("64").unwrap();
    drop(held);
    assert_eq!((machine.values(), machine.notes()), (two("128", "512"), 0));
    assert_eq!(machine.both("128").unwrap().old_state(), "128");
}

#[test]
fn of_several_devices_one_that_is_held_already_leaves_the_others_free() {
    let machine = Machine::new();
    let first = machine.read_ahead().unwrap();
    assert!(machine.both("512").is_err());
    assert_eq!(machine.notes(), 1, "that of the first alone");
    drop(first);
    let both = machine.both("512").unwrap();
    assert!(machine.read_ahead().is_err());
    both.set("64").unwrap();
    kill(both);
    assert_eq!(machine.undo().len(), 2);
    assert_eq!((machine.values(), machine.notes()), (two("128", "512"), 0));
}

#[test]
fn a_setting_that_changed_since_it_was_read_is_let_be() {
    let machine = Machine::new();
    fs::write(machine.at(QUEUE).join("read_ahead_kb"), "4096\n").unwrap();
    let refused = machine.read_ahead().unwrap_err();
    assert!(refused.message.contains("from 128 to 4096"), "{refused}");
    assert_eq!((machine.now().as_str(), machine.notes()), ("4096", 0));
}

#[test]
fn governors_come_back_with_what_hangs_on_them() {
    let machine = Machine::new();
    let policy = "sys/devices/system/cpu/cpufreq/policy0";
    fs::create_dir_all(machine.at(policy)).unwrap();
    let write = |file: &str, text: &str| fs::write(machine.at(policy).join(file), text).unwrap();
    write("scaling_governor", "powersave\n");
    write("energy_performance_preference", "balance_power\n");
    let reading = Reading {
        file: Some(format!("/{policy}/scaling_governor")),
        subject: Some("policy0".into()),
        ..Reading::new(Key::Governor, "powersave")
    };
    let held = ChangedSetting::hold_in(&[reading], None, machine.dir.path(), &machine.at("run")).unwrap();
    held.set("performance").unwrap();
    // What intel_pstate does then.
    write("energy_performance_preference", "performance");
    kill(held);
    assert_eq!(machine.undo().len(), 1);
    assert_eq!(machine.text(&format!("{policy}/scaling_governor")), "powersave");
    assert_eq!(machine.text(&format!("{policy}/energy_performance_preference")), "balance_power");
}

#[test]
fn a_file_system_that_would_forget_other_options_is_not_told_of_one() {
    let of = |kind: &str, options: &str| {
        let line = format!("27 1 254:0 / /mnt rw - {kind} /dev/vda {options}");
        may_be_reconfigured(&iowhy_linux::mounts::parse(&line)[0]).map_err(|p| p.message)
    };
    assert!(of("ext4", "rw,discard").is_ok() && of("xfs", "rw,inode64").is_ok());
    assert!(of("xfs", "rw,inode32").unwrap_err().contains("inode32"));
    assert!(of("vfat", "rw").unwrap_err().contains("vfat"));
    assert!(of("ext4", "ro,discard").unwrap_err().contains("read only"));
}

/// A machine for tests that cannot write a note: the setting is not touched.
#[test]
fn without_a_note_nothing_is_held() {
    let machine = Machine::new();
    fs::remove_dir(machine.at("run")).unwrap();
    let refused = machine.read_ahead().unwrap_err();
    assert!(refused.message.contains("note"), "{refused}");
    assert_eq!(machine.now(), "128");
}
