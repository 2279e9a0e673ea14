//! Runs other programs with a time limit. May not enter: what they are for.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a program to its end and keeps what it says; it has no input.
///
/// # Errors
/// In words: it cannot be started, it took longer than the limit (it is killed then), or it failed, with the end of what
/// it said.
pub(super) fn output(command: &mut Command, limit: Duration) -> Result<String, String> {
    let output = whole(command, limit)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(format!("{}: {}: {}", command.get_program().to_string_lossy(), output.status, last.trim()))
}

/// Runs a program whose failure is an answer: its exit code (`None` after a signal) and what it said on stderr.
///
/// # Errors
/// In words: it cannot be started, or it took longer than the limit.
pub(super) fn ending(command: &mut Command, limit: Duration) -> Result<(Option<i32>, String), String> {
    let output = whole(command, limit)?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn whole(command: &mut Command, limit: Duration) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    // Both pipes are drained while it runs: a full pipe would stop it.
    let out = drain(child.stdout.take());
    let err = drain(child.stderr.take());
    let status = wait(&mut child, limit, &name)?;
    let collect = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(Output { status, stdout: collect(out), stderr: collect(err) })
}

/// Waits for a child; kills it when the limit is over.
///
/// # Errors
/// In words, when it had to be killed or cannot be waited for.
pub(super) fn wait(child: &mut Child, limit: Duration, name: &str) -> Result<ExitStatus, String> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(LOOK),
            Ok(None) => {
                // It may have ended just now; either way it is gone after this.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} took longer than {:.0} s", limit.as_secs_f64()));
            }
            Err(error) => return Err(format!("cannot wait for {name}: {error}")),
        }
    }
}

/// Waits for a child that works and tells its CPU time, as it was last seen; kills it when it has used this much CPU time, or has not ended after a long time by
/// the wall clock. On a busy machine the wall clock alone would say little.
///
/// # Errors
/// In words, when it had to be killed or cannot be waited for.
pub(super) fn wait_while_working(
    child: &mut Child,
    cpu: Duration,
    name: &str,
) -> Result<(ExitStatus, Duration), String> {
    const PATIENCE: u32 = 6;
    let begun = Instant::now();
    let mut used = Duration::ZERO;
    loop {
        used = used.max(cpu_time(child.id()));
        match child.try_wait() {
            Ok(Some(status)) => return Ok((status, used)),
            Ok(None) if used < cpu && begun.elapsed() < cpu * PATIENCE => std::thread::sleep(LOOK),
            Ok(None) => {
                // It may have ended just now; either way it is gone after this.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "{name} did not end within {:.0} s of CPU time, or six times that",
                    cpu.as_secs_f64()
                ));
            }
            Err(error) => return Err(format!("cannot wait for {name}: {error}")),
        }
    }
}

/// CPU time of all threads of a process that live; nothing once it is gone.
fn cpu_time(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse().ok()
    };
    Duration::from_nanos(threads.filter_map(of).sum())
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before an error is what there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Whether a program can be found.
pub(super) fn have(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    // The folders of administrators' programs are not in every user's path.
    let folders = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_comes_back_and_limits_hold() {
        let minute = Duration::from_secs(60);
        assert_eq!(output(Command::new("echo").arg("x"), minute).unwrap(), "x\n");
        let failed = output(Command::new("sh").args(["-c", "echo a >&2; echo why >&2; exit 3"]), minute);
        assert!(failed.unwrap_err().ends_with("exit status: 3: why"));
        let answer = ending(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), minute);
        assert_eq!(answer, Ok((Some(3), "why\n".to_owned())));
        let slow = output(Command::new("sleep").arg("600"), Duration::from_millis(50));
        assert!(slow.unwrap_err().contains("took longer"));
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let ended = wait_while_working(&mut busy, Duration::from_millis(50), "sh");
        assert!(ended.unwrap_err().contains("did not end"));
        assert!(output(&mut Command::new("/no/such/tool"), minute).unwrap_err().contains("cannot run"));
        assert!(have("sh") && !have("no-such-tool"));
    }
}
