//! `iowhy attach` on programs that run on: the replies of a server are those that it counted itself, and `--prove` replays the seconds
//! that were watched while the program goes on.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{alone, binary, directory, iowhy, is_root, names, skipped, text};

/// A server whose only client is its child. Each record is made durable before its reply.
const SERVER: &str = "
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind('s')
listener.listen()
if os.fork() == 0:
    listener.close()
    client = socket.socket(socket.AF_UNIX)
    client.connect('s')
    while True:
        client.sendall(b'request')
        if not client.recv(100):
            os._exit(0)
connection, _ = listener.accept()
log = os.open('log', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
while True:
    request = connection.recv(100)
    os.write(log, request * 20)
    os.fdatasync(log)
    connection.sendall(b'reply')
";

/// A program that is killed at the end.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(quiet.spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It is our own child, and not waited for: killing it cannot fail.
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Waits until a file is written.
fn grows(file: &Path) -> bool {
    let begun = Instant::now();
    while std::fs::metadata(file).map_or(0, |m| m.len()) == 0 {
        if begun.elapsed() > Duration::from_secs(20) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn watched(pid: &str, options: &[&str]) -> (Value, String) {
    let record = directory();
    let path = record.path().join("record.json");
    let mut command = binary();
    command.args(["attach", pid, "--time", "1500ms", "--json", text(&path)]).args(options);
    let ran = alone(&mut command);
    let value = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (serde_json::from_str(&value).unwrap(), ran.stdout)
}

fn syncs(record: &Value) -> Option<&Value> {
    record["findings"].as_array()?.iter().find(|found| found["id"] == "sync-per-write")
}

#[test]
fn replies_are_counted_and_their_rate_without_syncs_is_higher() {
    if !is_root() {
        return skipped("system calls are traced by root alone, and a replay is made of them");
    }
    if !Command::new("python3").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return skipped("the program python3 is not installed");
    }
    let dir = directory();
    let mut server = Running::start(Command::new("python3").args(["-c", SERVER]).current_dir(dir.path()));
    assert!(grows(&dir.path().join("log")), "the server does not serve");
    let (record, screen) = watched(&server.pid(), &["--no-calibrate"]);
    assert!(server.runs());
    let Some(found) = syncs(&record) else { return skipped("the server does not wait for syncs here") };
    let replies = &found["replies"];
    let sockets = record["profile"]["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "socket");
    let calls = replies["calls"].as_u64().unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!(Some(calls), sockets.and_then(|kind| kind["write_calls"].as_u64()), "{found:#}");
    // A reply for each sync; the watch may begin and end between the two.
    let log =
        record["profile"]["files"].as_array().unwrap().iter().find(|f| text_of(f, "path").ends_with("/log"));
    assert!(log.unwrap()["syncs"].as_u64().unwrap().abs_diff(calls) <= 1, "{log:?} {calls}");
    assert_eq!(
        (replies["connections"].as_u64(), &replies["listens"]),
        (Some(1), &Value::Bool(true)),
        "{found:#}"
    );
    let now = replies["per_second"].as_f64().unwrap();
    assert!((now * record["wall_s"].as_f64().unwrap() - calls as f64).abs() < 1.0, "{found:#}");
    let rate = |key: &str| replies["without_cause"]["per_second"][key].as_f64().unwrap();
    assert!(now <= rate("low") && rate("low") <= rate("value") && rate("value") <= rate("high"), "{found:#}");
    assert!(rate("value") > now, "{found:#}");
    assert!(screen.contains("replies a second, counted"), "{screen}");
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[test]
fn the_seconds_that_were_watched_are_proved_and_the_program_runs_on() {
    for with in ["--when=sync>1s", "--no-counts", "--tier=clock"] {
        assert_refused(&iowhy(&["attach", "1", "--prove", with]), "--prove");
    }
    if !is_root() {
        return skipped("system calls are traced by root alone, and a replay is made of them");
    }
    let dir = directory();
    let log = dir.path().join("log");
    let to = format!("of={}", text(&log));
    let mut writer = Running::start(Command::new("dd").args(["if=/dev/zero", &to, "bs=100", "oflag=dsync"]));
    assert!(grows(&log), "dd does not write");
    let (record, screen) = watched(&writer.pid(), &["--prove"]);
    assert!(writer.runs() && record["exit"].is_null());
    assert_eq!(names(dir.path()), ["log"]);
    assert!(screen.contains("\nreplayed: process "), "{screen}");
    let Some(found) = syncs(&record) else { return skipped("dd does not wait for syncs here") };
    assert!(found["prediction"].is_null(), "a proof takes its place: {found:#}");
    let proof = &record["proof"];
    let proved = proof["findings"].as_array().unwrap().iter().find(|f| f["id"] == "sync-per-write").unwrap();
    assert!(proved["measured"]["value"].as_f64() > Some(1.0), "{proof:#}");
    // The plan is the record of these seconds: all of its writes are dd's.
    let plan = &proof["baseline"]["plan"];
    let writes = |a: &&Value| a["op"] == "write";
    let actions: Vec<&Value> =
        plan["threads"].as_array().unwrap().iter().flat_map(|t| t.as_array().unwrap()).collect();
    assert!(actions.iter().copied().filter(writes).all(|a| a["bytes"] == 100), "{plan:#}");
    assert!(actions.iter().copied().filter(writes).count() > 0, "{plan:#}");
}
