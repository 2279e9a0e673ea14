//! A virtual machine: starts it, waits for its end, reads its answers. May not enter: what it is for.
//!
//! Two kinds of time. *Deterministic*: one CPU, and the clock counts instructions (4 ns each), so that the same machine
//! gives the same figures to the digit, however busy the host is; disks outside the guest have no place there, because
//! waiting for the host lets virtual time leap. *Plain*: two CPUs emulated side by side in real time, where only
//! outcomes count and no duration means anything.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::packages::{self, Packages};
use super::tool;

/// What time is in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// One CPU; every instruction takes 4 ns.
    Counted,
    /// One CPU; every instruction takes 1 ns. The timer's interrupt comes after four times as many instructions, so that
    /// it takes a fourth of the share; starting takes twice as long.
    Fine,
    /// Two CPUs in the host's time.
    Real,
}

/// What is started.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    /// The kernel.
    pub(super) kernel: &'a Path,
    /// Its first file system.
    pub(super) initramfs: &'a Path,
    /// The clock.
    pub(super) time: Time,
    /// Features to take from (or give to) the CPU, as QEMU writes them: `,-erms`.
    pub(super) cpu: &'a str,
    /// Memory.
    pub(super) memory_mib: u32,
    /// Disks of the emulator's.
    pub(super) disks: &'a [Throttled],
    /// CPU time of the host after which it is ended.
    pub(super) limit: Duration,
    /// A folder of its own for what it writes.
    pub(super) folder: &'a Path,
}

/// A disk of the emulator's, for guests in the host's time: virtual time would leap while the host waits.
#[derive(Clone, Debug)]
pub(super) struct Throttled {
    /// What it is called, as its serial number too.
    pub(super) name: &'static str,
    /// Its size. It reads as zeros, and no file of the host stands behind it.
    pub(super) bytes: u64,
    /// Its limits, as QEMU names them: `bps-read` is what may be read of it in a second, after the tenth of that which the emulator lets pass
    /// at once; `iops-total-max` and `iops-total-max-length` are the rate of a burst and its seconds.
    pub(super) limits: Vec<(&'static str, u64)>,
}

impl Throttled {
    fn attach(&self, command: &mut Command) {
        let Throttled { name, bytes, limits } = self;
        let limits: String =
            limits.iter().map(|(limit, value)| format!(",throttling.{limit}={value}")).collect();
        command
            .arg("-drive")
            .arg(format!(
                "if=none,id={name},format=raw,file.driver=null-co,file.size={bytes},file.read-zeroes=on{limits}"
            ))
            .arg("-device")
            .arg(format!("virtio-blk-pci,drive={name},serial={name}"));
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct BootResult {
    /// One value per answer, in order.
    pub(super) answers: Vec<Value>,
    /// Why the script was not followed to its end, if it was not.
    pub(super) failure: Option<String>,
    /// Host time it took.
    pub(super) took: Duration,
    /// CPU time of the host that it took: what says more on a busy one.
    pub(super) cpu: Duration,
    /// The guest's kernel stopped because one of its CPUs no longer made progress.
    pub(super) locked_up: bool,
}

/// The two messages of a kernel of which a CPU makes no progress: one runs the same kernel code for a minute (twice the
/// threshold of [`WATCHDOG`]), or one never passes a grace period of RCU (also when it takes no timer interrupt, which
/// the first detector needs).
const LOCKED_UP: [&str; 2] = ["soft lockup", "rcu: INFO: rcu_"];

/// Stops a guest that is locked up after a minute, instead of when its CPU time is used up.
const WATCHDOG: &str = "softlockup_panic=1 watchdog_thresh=30 sysctl.kernel.panic_on_rcu_stall=1 \
                        rcupdate.rcu_cpu_stall_timeout=60";

/// The last thing the kernel said.
fn last_words(console: &str) -> Option<String> {
    let printable = |line: &str| line.chars().filter(|c| !c.is_control()).collect::<String>();
    console.lines().rev().map(printable).find(|line| !line.trim().is_empty())
}

/// Settings under which nothing in the guest depends on chance: no address randomisation, no random numbers from the
/// host, a clock that starts at a given instant.
const SAME_EVERY_TIME: &str = "nokaslr norandmaps random.trust_cpu=off random.trust_bootloader=off";

impl Machine<'_> {
    /// Runs it to its end.
    pub(super) fn run(&self, packages: &Packages) -> BootResult {
        let begun = Instant::now();
        let mut told = match self.start_and_wait(packages) {
            Ok(cpu) => BootResult { cpu, ..read(&self.answers()) },
            Err(why) => BootResult { failure: Some(why), ..read(&self.answers()) },
        };
        let console = self.console_text();
        told.locked_up = told.failure.is_some() && LOCKED_UP.iter().any(|message| console.contains(message));
        if let Some(why) = &mut told.failure
            && let Some(last) = last_words(&console)
        {
            why.push_str(&format!("; the console ends with `{last}` ({})", self.console().display()));
        }
        told.took = begun.elapsed();
        told
    }

    fn answers(&self) -> PathBuf {
        self.folder.join(ANSWERS)
    }

    fn console(&self) -> PathBuf {
        self.folder.join(CONSOLE)
    }

    fn console_text(&self) -> String {
        std::fs::read(self.console())
            .map_or_else(|_| String::new(), |b| String::from_utf8_lossy(&b).into_owned())
    }

    fn start_and_wait(&self, packages: &Packages) -> Result<Duration, String> {
        let mut command = emulator(packages);
        command
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "q35"])
            .arg("-m")
            .arg(self.memory_mib.to_string())
            .arg("-kernel")
            .arg(self.kernel)
            .arg("-initrd")
            .arg(self.initramfs)
            .arg("-serial")
            .arg(format!("file:{}", self.console().display()))
            .arg("-chardev")
            .arg(format!("file,id=lab,path={}", self.answers().display()))
            .args(["-device", "isa-debugcon,iobase=0xe9,chardev=lab"]);
        let mut words = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable".to_owned();
        match self.time {
            Time::Counted | Time::Fine => {
                let shift = if self.time == Time::Fine { 0 } else { 2 };
                command
                    .args(["-accel", "tcg", "-smp", "1", "-seed", "42", "-icount"])
                    .arg(format!("shift={shift},sleep=off"))
                    .args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"])
                    .arg("-cpu")
                    .arg(format!("max,-rdrand,-rdseed{}", self.cpu));
                words = format!("{words} {SAME_EVERY_TIME}");
            }
            Time::Real => {
                command
                    .args(["-accel", "tcg,thread=multi", "-smp", "2", "-cpu"])
                    .arg(format!("max{}", self.cpu));
                words = format!("{words} {WATCHDOG}");
            }
        }
        for disk in self.disks {
            disk.attach(&mut command);
        }
        let log = std::fs::File::create(self.folder.join("emulator.log"))
            .map_err(|e| format!("cannot write in {}: {e}", self.folder.display()))?;
        let mut child = command
            .arg("-append")
            .arg(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|e| format!("cannot run the emulator: {e}"))?;
        let (status, cpu) = tool::wait_while_working(&mut child, self.limit, "the guest")?;
        if status.success() {
            return Ok(cpu);
        }
        let said = std::fs::read_to_string(self.folder.join("emulator.log")).unwrap_or_default();
        Err(format!("the emulator ended with {status}: {}", said.lines().last().unwrap_or("it said nothing")))
    }
}

/// The emulator with the folders that it would find its parts in if it were installed.
pub(super) fn emulator(packages: &Packages) -> Command {
    let Some(root) = &packages.emulator else { return Command::new("qemu-system-x86_64") };
    // Only packages that the machine lacks were unpacked: it may have parts of the emulator, and not all.
    let part = |at: &str| match root.join(at) {
        unpacked if unpacked.is_dir() => unpacked,
        _ => Path::new("/").join(at),
    };
    let mut command = Command::new(root.join("usr/bin/qemu-system-x86_64"));
    command
        .env("LD_LIBRARY_PATH", packages::libraries(root))
        .env("QEMU_MODULE_DIR", part("usr/lib/x86_64-linux-gnu/qemu"));
    for at in ["usr/share/qemu", "usr/share/seabios"] {
        command.arg("-L").arg(part(at));
    }
    command
}

/// What a machine told that ran in this folder before.
pub(super) fn kept(folder: &Path) -> BootResult {
    read(&folder.join(ANSWERS))
}

/// The file of what the kernel said.
pub(super) const CONSOLE: &str = "console.log";

/// The file of the answers.
pub(super) const ANSWERS: &str = "answers.jsonl";

/// Reads the answers; the last one says how the script ended.
fn read(path: &Path) -> BootResult {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut told =
        BootResult { failure: Some("it ended without saying so".to_owned()), ..BootResult::default() };
    for line in text.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(answer) if answer["end"] == "done" => told.failure = None,
            Ok(answer) if answer["end"] == "failed" => {
                told.failure = Some(answer["why"].as_str().unwrap_or("for no reason").to_owned());
            }
            Ok(answer) => told.answers.push(answer),
            // Cut off in the middle: the end is missing then, and that is said.
            Err(_) => {}
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_with_how_the_script_ended() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let told = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            let told = read(file.path());
            (told.answers.len(), told.failure)
        };
        assert_eq!(told("{\"label\":\"a\"}\n{\"end\":\"done\"}\n"), (1, None));
        assert_eq!(told("{\"end\":\"failed\",\"why\":\"no disk\"}\n"), (0, Some("no disk".to_owned())));
        assert!(told("{\"label\":\"a\"}\n{\"lab").1.unwrap().contains("without saying"));
        assert!(read(Path::new("/no/such/file")).failure.is_some());
    }
}
