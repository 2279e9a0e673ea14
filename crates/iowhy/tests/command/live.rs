//! `iowhy --all --live` on a terminal of its own: what is drawn, that keys and signals end it, and that the terminal is as before. What each
//! key does is the unit tests' matter.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::common::{binary, binary_that_listens, finish, is_root, skipped, text};
use crate::whole_machine::{Beside, Group};

/// What the alternate screen begins and ends with.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// A terminal with a program on it.
struct Terminal {
    keyboard: File,
    line: OwnedFd,
    said: Arc<Mutex<Vec<u8>>>,
    child: Child,
}

impl Terminal {
    /// Starts it; `None`: the machine cannot be watched here.
    fn start(arguments: &[&str]) -> Option<Terminal> {
        if !is_root() {
            skipped("the whole machine is watched by root alone");
            return None;
        }
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let no_controlling = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
        let mut options = File::options();
        let line = options.read(true).write(true).custom_flags(no_controlling).open(name.to_str().unwrap());
        let line: OwnedFd = line.unwrap().into();
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let mut command = binary_that_listens();
        command.args(arguments).args(["--live", "--quiet", "--color", "never"]).env("TERM", "xterm");
        let clone = || line.try_clone().unwrap();
        // A process group of its own, which can be stopped.
        command.stdin(clone()).stdout(clone()).stderr(clone()).process_group(0);
        let child = command.spawn().unwrap();
        let keyboard = File::from(controller);
        let said = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, kept) = (keyboard.try_clone().unwrap(), Arc::clone(&said));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut bytes) {
                kept.lock().unwrap().extend(&bytes[..n]);
            }
        });
        let terminal = Terminal { keyboard, line, said, child };
        terminal.wait_for(0, &["processes", "cannot observe"]);
        if terminal.text().contains("cannot observe the whole machine") {
            skipped(&format!("the whole machine cannot be watched here: {}", terminal.text()));
            return None;
        }
        Some(terminal)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// Waits until one of these stands behind that many bytes.
    fn wait_for(&self, from: usize, words: &[&str]) {
        let begun = Instant::now();
        loop {
            let text = self.text();
            let new = text.get(from..).unwrap_or_default();
            if words.iter().any(|word| new.contains(word)) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{words:?} never came: {text:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed()).unwrap()
    }

    /// Whether it is a terminal as a shell wants it: lines, with echo.
    fn is_as_before(&self) -> bool {
        tcgetattr(&self.line).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end; gives what was printed below the screen.
    fn ended(mut self) -> String {
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{:?}", self.text());
        assert!(self.is_as_before());
        self.wait_for(0, &["\nnext\r\n"]);
        let text = self.text();
        let (_, printed) = text.rsplit_once(LEAVE).expect("it has left");
        assert!(!printed.contains('\u{1b}'), "{printed:?}");
        printed.to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_open_an_account_and_leave_with_the_last_one_as_text() {
    let Some(mut terminal) = Terminal::start(&["--all"]) else { return };
    assert!(!terminal.is_as_before());
    let before = terminal.text().len();
    terminal.press("\r");
    terminal.wait_for(before, &["Esc:"]);
    let before = terminal.text().len();
    terminal.press("\u{1b}");
    terminal.wait_for(before, &["PSI"]);
    terminal.press("q");
    let printed = terminal.ended();
    assert!(printed.contains("the whole machine") && printed.contains("the last shown of"), "{printed}");
    assert!(printed.contains("pressure (PSI)"), "{printed}");
}

#[test]
fn a_stop_gives_the_terminal_back_and_a_signal_ends_it_as_a_key_does() {
    let Some(mut terminal) = Terminal::start(&["--all"]) else { return };
    let before = terminal.text().len();
    terminal.press("\u{1a}");
    let stopped = waitpid(Some(terminal.pid()), WaitOptions::UNTRACED).unwrap().unwrap().1;
    assert!(stopped.stopped(), "{stopped:?}");
    assert!(terminal.is_as_before());
    terminal.wait_for(before, &[LEAVE]);
    let before = terminal.text().len();
    terminal.signal(Signal::CONT);
    terminal.wait_for(before, &[ENTER]);
    terminal.wait_for(before, &["processes"]);
    assert!(!terminal.is_as_before());
    terminal.signal(Signal::TERM);
    assert!(terminal.ended().contains("the last shown of"));
}

#[test]
fn it_ends_itself_when_its_time_is_over() {
    let Some(terminal) = Terminal::start(&["--all", "--time", "2s"]) else { return };
    assert!(terminal.ended().contains("the whole machine"));
}

#[test]
fn a_control_group_and_a_container_are_watched_by_themselves() {
    // As Docker names the group of a container; the identifier is this test's own.
    let id = format!("{:08x}{:056x}", std::process::id(), 0);
    let Some(group) = Group::unified(&format!("docker-{id}.scope")) else { return };
    let script = "while true; do read line < /proc/loadavg; sleep 0.05; done";
    let (inside, outside) = (group.run(script), Beside::start(Command::new("sh").args(["-c", script])));
    let [inside_pid, outside_pid] = [&inside, &outside].map(|program| format!("({})", program.pid()));
    for subject in [["--cgroup", text(&group.0)], ["--container", &id[..12]]] {
        let Some(mut terminal) = Terminal::start(&subject) else { return };
        terminal.wait_for(0, &[&inside_pid]);
        let screen = terminal.text();
        assert!(screen.contains(&format!("docker-{id}.scope:")), "{screen:?}");
        assert!(!screen.contains(&outside_pid), "{screen:?}");
        terminal.press("q");
        let printed = terminal.ended();
        // The title is cut to the width.
        assert!(printed.contains(&id[..12]) && printed.contains("control group"), "{printed}");
    }
}

#[test]
fn without_a_terminal_it_is_refused_with_the_command_that_needs_none() {
    let ran = finish(binary().args(["--all", "--live"]));
    assert_eq!((ran.code(), ran.stdout.as_str()), (2, ""), "{ran:?}");
    assert!(
        ran.stderr.contains("stdout is no terminal") && ran.stderr.contains("sudo iowhy --all"),
        "{ran:?}"
    );
    let ran = finish(binary().args(["--cgroup", "/a group", "--live"]));
    assert!(ran.stderr.contains("sudo iowhy --cgroup '/a group' --time 10s"), "{ran:?}");
}

#[test]
fn it_asks_for_what_is_to_be_watched() {
    for arguments in [&["--live"][..], &["--live", "/tmp"], &["--live", "--", "true"]] {
        let ran = finish(Command::new(binary().get_program()).args(arguments));
        assert_eq!(ran.code(), 2, "{ran:?}");
        assert!(ran.stderr.contains("--all"), "{ran:?}");
    }
}
