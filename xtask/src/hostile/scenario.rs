//! The scenarios: each runs `iowhy` once or twice under one kind of hostility and says what was wrong.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use iowhy_core::rng::Rng;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::arena::{Arena, end};
use super::damage::{below, damaged};

/// One kind of hostility.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    weight: u64,
    pub(super) run: fn(&Arena, &mut Rng) -> Vec<String>,
}

const SCENARIOS: [Scenario; 7] = [
    Scenario { name: "damaged inputs", weight: 24, run: damaged_input },
    Scenario { name: "signals", weight: 8, run: signals },
    Scenario { name: "killed trees", weight: 4, run: killed_trees },
    Scenario { name: "outputs among attackers", weight: 4, run: outputs },
    Scenario { name: "limits", weight: 4, run: limits },
    Scenario { name: "full and read-only disks", weight: 3, run: disks },
    Scenario { name: "proofs among attackers", weight: 1, run: proofs },
];

/// Draws one by weight.
pub(super) fn pick(rng: &mut Rng) -> &'static Scenario {
    let mut at = below(rng, SCENARIOS.iter().map(|s| s.weight).sum());
    for scenario in &SCENARIOS {
        if at < scenario.weight {
            return scenario;
        }
        at -= scenario.weight;
    }
    &SCENARIOS[0]
}

/// A run that is still going on after this long hangs.
const HANG: Duration = Duration::from_secs(120);
/// Address space of runs that read damaged inputs: far above what any sample needs.
const MAX_MEMORY: &str = "1073741824";

/// How a run ended.
struct Ended {
    status: ExitStatus,
    stderr: String,
    hung: bool,
}

impl Ended {
    fn wait(mut child: Child) -> Ended {
        let mut pipes = (child.stdout.take(), child.stderr.take());
        let (out, err) = (pipes.0.take(), pipes.1.take());
        let said = std::thread::spawn(move || {
            let mut text = Vec::new();
            err.map(|mut err| err.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let drained = std::thread::spawn(move || {
            let mut sink = std::io::sink();
            out.map(|mut out| std::io::copy(&mut out, &mut sink))
        });
        let begun = Instant::now();
        let mut hung = false;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if begun.elapsed() < HANG => std::thread::sleep(Duration::from_millis(2)),
                _ => {
                    hung = true;
                    end(&mut child);
                }
            }
        };
        let _ = drained.join();
        Ended { status, stderr: said.join().unwrap_or_default(), hung }
    }

    /// Aborts, panics, hangs, and failures without a word. `signalled`: a death by signal is what was asked for.
    fn wrong(&self, signalled: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let last = self.stderr.lines().next_back().unwrap_or_default();
        if self.hung {
            wrong.push(format!("still running after {} s", HANG.as_secs()));
            return wrong;
        }
        if self.stderr.contains("panicked at") || self.stderr.contains("memory allocation of") {
            let line = self.stderr.lines().find(|l| l.contains("panicked") || l.contains("allocation"));
            wrong.push(format!("abort: {}", line.unwrap_or(last)));
        }
        match (self.status.code(), self.status.signal()) {
            (_, Some(signal)) if !signalled => wrong.push(format!("died of signal {signal}: {last}")),
            (Some(code), _) if code != 0 && self.stderr.trim().is_empty() && !signalled => {
                wrong.push(format!("exit code {code} without a word"));
            }
            _ => {}
        }
        wrong
    }
}

fn finish(command: &mut Command, signalled: bool) -> Vec<String> {
    let shown = format!("{:?}", command.get_args().collect::<Vec<_>>());
    let ended = match command.spawn() {
        Ok(child) => Ended::wait(child),
        Err(error) => return vec![format!("cannot start: {error}")],
    };
    ended.wrong(signalled).into_iter().map(|what| format!("{shown}: {what}")).collect()
}

/// The binary under limits of prlimit(1).
fn limited(arena: &Arena, limits: &[String]) -> Command {
    let plain = arena.command();
    let mut command = Command::new("prlimit");
    command.args(limits).arg("--").arg(plain.get_program());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(arena.at("data")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn damaged_input(arena: &Arena, rng: &mut Rng) -> Vec<String> {
    let Some((path, sample)) = arena.samples.get(below(rng, arena.samples.len() as u64) as usize) else {
        return vec!["there are no samples".to_owned()];
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = arena.at("home").join(format!("damaged-{name}"));
    if let Err(error) = std::fs::write(&file, damaged(sample, rng)) {
        return vec![format!("cannot write a damaged input: {error}")];
    }
    let record = name.ends_with(".json");
    let file_text = file.to_string_lossy().into_owned();
    let f = file_text.as_str();
    let commands: &[&[&str]] = if record {
        &[
            &["report", f, "--output", "/dev/null"],
            &["report", f, "--markdown", "--output", "/dev/null"],
            &["compare", f, f],
            &["export", f, "--format", "csv"],
            &["export", f, "--table"],
            &["history", f],
            &["prove", f],
            &["explain", f],
        ]
    } else {
        &[
            &["trace", "stat", f],
            &["trace", "convert", f, "-", "--to", "csv"],
            &["mrc", f],
            &["sim", "--trace", f, "--clients", "1"],
        ]
    };
    let args = commands[below(rng, commands.len() as u64) as usize];
    let wrong = finish(limited(arena, &[format!("--as={MAX_MEMORY}")]).args(args), false);
    if !wrong.is_empty() {
        let kept = std::env::temp_dir().join(format!("iowhy-hostile-{}-{name}", std::process::id()));
        if std::fs::copy(&file, &kept).is_ok() {
            println!("the input is kept as {}", kept.display());
        }
    }
    let _ = std::fs::remove_file(&file);
    wrong
}

const SIGNALS: [i32; 12] = [1, 2, 3, 6, 9, 10, 12, 13, 14, 15, 24, 25];

/// A program, or a measurement, that is signalled at a random moment.
fn signals(arena: &Arena, rng: &mut Rng) -> Vec<String> {
    let big = arena.at("data/big").to_string_lossy().into_owned();
    let script = "for i in 1 2 3 4 5 6 7 8; do dd if=big of=/dev/null bs=64k 2>/dev/null; sleep 0.05; done";
    let commands: [&[&str]; 5] = [
        &["--", "sh", "-c", script],
        &["--tier", "none", "--", "sh", "-c", script],
        &["bench", &big, "--runtime", "2s"],
        &["tree", "--files", "500", "--dirs", "5", "."],
        &["--time", "5s", "."],
    ];
    let args = commands[below(rng, commands.len() as u64) as usize];
    let mut command = arena.command();
    // A group of its own, so that its program can be signalled with it.
    command.args(args).process_group(0);
    let Ok(child) = command.spawn() else { return vec!["cannot start".to_owned()] };
    let group = Pid::from_raw(child.id() as i32);
    for _ in 0..1 + below(rng, 3) {
        std::thread::sleep(Duration::from_millis(below(rng, 900)));
        let number = SIGNALS[below(rng, SIGNALS.len() as u64) as usize];
        let (Some(pid), Some(signal)) = (group, Signal::from_named_raw(number)) else { continue };
        let _ = match below(rng, 2) {
            0 => kill_process(pid, signal),
            _ => kill_process_group(pid, signal),
        };
    }
    let wrong = Ended::wait(child).wrong(true);
    if let Some(pid) = group {
        // What a killed watch leaves running is its program, as it must.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    wrong.into_iter().map(|what| format!("{args:?}: {what}")).collect()
}

fn killed_trees(arena: &Arena, rng: &mut Rng) -> Vec<String> {
    let dir = arena.at(["sticky", "data", "hostile"][below(rng, 3) as usize]);
    let args = ["tree", "--files", "400", "--dirs", "4", "--sizes", "100"];
    let Ok(mut child) = arena.command().args(args).arg(&dir).spawn() else {
        return vec!["cannot start".to_owned()];
    };
    std::thread::sleep(Duration::from_millis(below(rng, 400)));
    end(&mut child);
    // The next one removes what that has left; in a directory of another user it is refused.
    let args = ["tree", "--files", "8", "--dirs", "2", "--sizes", "1", "--phases", "create,delete"];
    finish(arena.command().args(args).arg(&dir), false)
}

fn outputs(arena: &Arena, rng: &mut Rng) -> Vec<String> {
    let dir = arena.at(["sticky", "hostile"][below(rng, 2) as usize]);
    let out = dir.join(["out.json", ".out-new", "fresh"][below(rng, 3) as usize]);
    let mut command = arena.command();
    match below(rng, 3) {
        0 => command.arg("--json").arg(&out).args(["--tier", "none", "--", "true"]),
        1 => command.args(["bench", "null", "--runtime", "50ms", "--json"]).arg(&out),
        _ => {
            command.args(["bench", "null", "--runtime", "50ms", "--save-as", "x"]).env("XDG_STATE_HOME", &dir)
        }
    };
    let wrong = finish(&mut command, false);
    let _ = std::fs::remove_file(&out);
    wrong
}

fn limits(arena: &Arena, rng: &mut Rng) -> Vec<String> {
    let limit = match below(rng, 5) {
        0 => format!("--nofile={}", 3 + below(rng, 60)),
        1 => format!("--fsize={}", below(rng, 1 << 20)),
        2 => format!("--as={}", (64 << 20) + below(rng, 1 << 30)),
        3 => format!("--nproc={}", 1 + below(rng, 8)),
        _ => format!("--cpu={}", 1 + below(rng, 3)),
    };
    let big = arena.at("data/big").to_string_lossy().into_owned();
    let commands: [&[&str]; 6] = [
        &["--", "dd", "if=big", "of=/dev/null", "bs=4k"],
        &["--time", "2s", "."],
        &["bench", &big, "--runtime", "200ms"],
        &["tree", "--files", "200", "--dirs", "40", "."],
        &["doctor"],
        &["--json", "limited.json", "--", "true"],
    ];
    let args = commands[below(rng, commands.len() as u64) as usize];
    // The kernel ends a process that is over its CPU time, and a program may be refused its memory.
    let signalled = limit.starts_with("--cpu");
    let wrong = finish(limited(arena, std::slice::from_ref(&limit)).args(args), signalled);
    let _ = std::fs::remove_file(arena.at("data/limited.json"));
    wrong.into_iter().map(|what| format!("{limit} {what}")).collect()
}

fn disks(arena: &Arena, rng: &mut Rng) -> Vec<String> {
    let dir = arena.at(["full", "readonly"][below(rng, 2) as usize]);
    let out = dir.join("out.json");
    let mut command = arena.command();
    match below(rng, 5) {
        0 => command.arg("--json").arg(&out).args(["--", "true"]),
        1 => command.args(["--time", "1s"]).arg(&dir),
        2 => command.args(["tree", "--files", "50", "--dirs", "2"]).arg(&dir),
        3 => {
            command.args(["bench", "null", "--runtime", "50ms", "--save-as", "x"]).env("XDG_STATE_HOME", &dir)
        }
        _ => command
            .args(["--", "dd", "if=/dev/zero", "bs=4k", "count=64"])
            .arg(format!("of={}", out.display())),
    };
    let wrong = finish(&mut command, false);
    let _ = std::fs::remove_file(&out);
    wrong
}

/// A program of many small files in a directory of the attacker's, proven by root.
fn proofs(arena: &Arena, rng: &mut Rng) -> Vec<String> {
    let dir = arena.at(["sticky", "hostile", "data"][below(rng, 3) as usize]);
    let work = dir.join(format!("work-{}", rng.next_u64()));
    let script = format!(
        "mkdir '{0}' && cd '{0}' && i=0; while [ $i -lt 600 ]; do echo $i > f$i; i=$((i+1)); done; cat f* > /dev/null",
        work.display()
    );
    let mut command = arena.command();
    command.args(["--prove", "--", "sh", "-c", &script]).process_group(0);
    let wrong = match below(rng, 2) {
        0 => finish(&mut command, false),
        _ => {
            let Ok(mut child) = command.spawn() else { return vec!["cannot start".to_owned()] };
            std::thread::sleep(Duration::from_millis(below(rng, 3000)));
            end(&mut child);
            Vec::new()
        }
    };
    let _ = std::fs::remove_dir_all(&work);
    wrong
}
