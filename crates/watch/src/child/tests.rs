//! Real children: what they inherit, how they end, and that nothing of them stays behind.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use iowhy_core::profile::End;

use super::*;

fn hold(words: &[&str]) -> Result<Child, Refusal> {
    let arguments: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
    Child::hold(OsStr::new(words[0]), &arguments, None)
}

fn end(child: &Child) -> End {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(end) = child.ended() {
            return end;
        }
        assert!(Instant::now() < deadline, "the child does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn run(words: &[&str]) -> End {
    let mut child = hold(words).unwrap();
    child.release().unwrap();
    let end = end(&child);
    assert!(child.reap().is_some());
    assert!(child.reap().is_none());
    end
}

#[test]
fn codes_and_signals_come_through() {
    assert_eq!(run(&["true"]), End::Code(0));
    assert_eq!(run(&["sh", "-c", "exit 3"]), End::Code(3));
    assert_eq!(run(&["sh", "-c", "exit 255"]), End::Code(255));
    assert_eq!(run(&["sh", "-c", "kill -TERM $$"]), End::Signal(libc::SIGTERM));
    assert_eq!(run(&["sh", "-c", "kill -KILL $$"]), End::Signal(libc::SIGKILL));
}

#[test]
fn it_waits_to_be_released_and_never_runs_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let child = hold(&["touch", mark.to_str().unwrap()]).unwrap();
    assert_eq!(child.ended(), None);
    let pid = child.pid();
    drop(child);
    assert!(!mark.exists());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "no zombie");
}

#[test]
fn a_script_without_interpreter_line_runs_in_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script");
    // Another process writes it: a fork of a parallel test could hold our descriptor open, and the file busy.
    let write = |text: &str| {
        let status = std::process::Command::new("sh")
            .args(["-c", "printf '%s\n' \"$1\" > \"$0\" && chmod 755 \"$0\""])
            .args([file.as_os_str(), OsStr::new(text)])
            .status();
        assert!(status.unwrap().success());
    };
    write("test \"$1\" = 'a b' && exit 9");
    assert_eq!(run(&[file.to_str().unwrap(), "a b"]), End::Code(9));
    write("#!/no/such/interpreter");
    let mut child = hold(&[file.to_str().unwrap()]).unwrap();
    assert_eq!(child.release().unwrap_err().code, 127);
}

#[test]
fn nothing_of_iowhy_leaks_into_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("state");
    let script = format!(
        "grep -E '^Sig(Blk|Ign)' /proc/self/status > {0}; ls /proc/self/fd | wc -l >> {0}; ulimit -n >> {0}; env | sort >> {0}",
        out.display()
    );
    let read = || {
        let text = std::fs::read_to_string(&out).unwrap();
        let (masks, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|l| l.starts_with("Sig"));
        let masks: Vec<u64> = masks
            .iter()
            .map(|m| u64::from_str_radix(m.split_whitespace().nth(1).unwrap(), 16).unwrap())
            .collect();
        (masks, rest.join("\n"))
    };
    assert_eq!(run(&["sh", "-c", &script]), End::Code(0));
    let (our_masks, ours) = read();
    // A child of the standard library, which takes the same care of descriptors and environment.
    assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
    let (_, theirs) = read();
    assert_eq!(ours, theirs);
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let own = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let sigpipe = 1 << (libc::SIGPIPE - 1);
    let ignored = if iowhy_linux::signals::ignored_at_start(libc::SIGPIPE) { sigpipe } else { 0 };
    assert_eq!(our_masks, [own("SigBlk:"), own("SigIgn:") & !sigpipe | ignored]);
}

#[test]
fn a_killed_child_that_was_not_released_is_no_hang() {
    let mut child = hold(&["true"]).unwrap();
    child.signal(libc::SIGKILL);
    child.release().unwrap();
    assert_eq!(end(&child), End::Signal(libc::SIGKILL));
}

#[test]
fn what_it_used_is_known_children_included() {
    let mut child = hold(&["sh", "-c", "for i in 1 2 3 4 5; do /bin/true; done"]).unwrap();
    child.release().unwrap();
    end(&child);
    let usage = child.reap().unwrap();
    assert!(usage.minor_faults > 0 && usage.peak_memory_bytes > 4096);
}

#[test]
fn only_known_orphans_are_reaped() {
    let mut adoption = Adoption::begin();
    // The shell ends at once and leaves its child behind, whose number it prints.
    let output = std::process::Command::new("sh")
        .args(["-c", "sleep 0.05 > /dev/null 2>&1 & echo $!"])
        .stderr(std::process::Stdio::null())
        .output()
        .unwrap();
    let orphan: u32 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{orphan}/stat")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !state().contains(") Z ") && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(adoption.reap(&[orphan], |_| {}).is_empty(), "not known, not reaped");
    adoption.descendant(orphan);
    let mut seen = vec![];
    let reaped = adoption.reap(&[orphan], |pid| seen.push(pid));
    assert_eq!((reaped.len(), seen), (1, vec![orphan]));
    assert_eq!(state(), "");
}
