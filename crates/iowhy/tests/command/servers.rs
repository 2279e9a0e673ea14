//! `iowhy attach` on programs that run on: the replies of a server are those that it counted itself, and `--prove` replays the seconds
//! that were watched while the program goes on.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bad_input::assert_refused;
use crate::common::{alone, binary, directory, iowhy, is_root, names, skipped, text};

/// A server whose only client is its child, so that both ends of the connection are watched. Each record is made durable before its
/// reply. Argument: so many requests, or -1.
const SERVER: &str = "
import os, socket, sys
left = int(sys.argv[1])
listener = socket.socket(socket.AF_UNIX)
listener.bind('s')
listener.listen()
child = os.fork()
if child == 0:
    listener.close()
    client = socket.socket(socket.AF_UNIX)
    client.connect('s')
    while left:
        left -= 1
        client.sendall(b'request')
        if not client.recv(100):
            break
    os._exit(0)
connection, _ = listener.accept()
log = os.open('log', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
while True:
    request = connection.recv(100)
    if not request:
        break
    os.write(log, request * 20)
    os.fdatasync(log)
    connection.sendall(b'reply')
os.waitpid(child, 0)
";

fn server(folder: &Path, requests: &str) -> Command {
    let mut server = Command::new("python3");
    server.args(["-c", SERVER, requests]).current_dir(folder);
    server
}

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

/// Why nothing can be counted here.
fn cannot_count() -> Option<&'static str> {
    if !is_root() {
        return Some("system calls are traced by root alone, and a replay is made of them");
    }
    let python = Command::new("python3").arg("-V").output().is_ok_and(|output| output.status.success());
    (!python).then_some("the program python3 is not installed")
}

/// Calls on sockets: each is on one side, and the client's are not the server's. Returns the replies of the finding.
fn replies_of<'a>(record: &'a Value, found: &'a Value) -> (u64, &'a Value) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no number: {found:#}"));
    let connections = &record["profile"]["connections"];
    let writes = ["accepted", "other", "unknown"].map(|side| number(&connections[side]["write_calls"]));
    let sockets = record["profile"]["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "socket");
    assert_eq!(number(&sockets.unwrap()["write_calls"]), writes.iter().sum::<u64>(), "{connections:#}");
    assert_eq!((number(&connections["accepted"]["sockets"]), writes[2]), (1, 0), "{connections:#}");
    assert!(writes[1] > 0, "the client is watched: {connections:#}");
    let replies = &found["replies"];
    assert_eq!((number(&replies["calls"]), number(&replies["connections"])), (writes[0], 1), "{found:#}");
    (writes[0], replies)
}

fn syncs_of_log(record: &Value) -> u64 {
    let files = record["profile"]["files"].as_array().unwrap();
    let log = files.iter().find(|file| text_of(file, "path").ends_with("/log"));
    log.and_then(|log| log["syncs"].as_u64()).unwrap()
}

#[test]
fn replies_are_counted_at_the_side_that_accepted_though_the_client_is_watched_too() {
    if let Some(why) = cannot_count() {
        return skipped(why);
    }
    let dir = directory();
    let mut server = Running::start(&mut server(dir.path(), "-1"));
    assert!(grows(&dir.path().join("log")), "the server does not serve");
    let (record, screen) = watched(&server.pid(), &["--no-calibrate"]);
    assert!(server.runs());
    let Some(found) = syncs(&record) else { return skipped("the server does not wait for syncs here") };
    let (calls, replies) = replies_of(&record, found);
    // A reply for each sync; the watch may begin and end between the two.
    assert!(syncs_of_log(&record).abs_diff(calls) <= 1, "{calls}: {found:#}");
    let now = replies["per_second"].as_f64().unwrap();
    assert!((now * record["wall_s"].as_f64().unwrap() - calls as f64).abs() < 1.0, "{found:#}");
    let rate = |key: &str| replies["without_cause"]["per_second"][key].as_f64().unwrap();
    assert!(now <= rate("low") && rate("low") <= rate("value") && rate("value") <= rate("high"), "{found:#}");
    assert!(rate("value") > now, "{found:#}");
    assert!(screen.contains("replies a second, counted as writes to accepted connections"), "{screen}");
}

#[test]
fn a_connection_that_is_accepted_while_watched_is_counted_from_its_first_reply() {
    if let Some(why) = cannot_count() {
        return skipped(why);
    }
    let dir = directory();
    let record = dir.path().join("record.json");
    let mut command = binary();
    command.args(["--no-calibrate", "--json", text(&record), "--", "python3", "-c", SERVER, "2000"]);
    let ran = alone(command.current_dir(dir.path()));
    assert_eq!(ran.code(), 0, "{ran:?}");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    let connections = &record["profile"]["connections"];
    let [accepted, other, unknown] =
        ["accepted", "other", "unknown"].map(|side| connections[side]["write_calls"].as_u64().unwrap());
    // No look need have met the client's end, which is closed at once.
    assert_eq!((accepted, other + unknown, syncs_of_log(&record)), (2000, 2000, 2000), "{connections:#}");
    let Some(found) = syncs(&record) else { return skipped("the server does not wait for syncs here") };
    let replies = &found["replies"];
    if unknown == 0 {
        assert_eq!(replies["calls"], 2000, "{found:#}");
    } else {
        let why = text_of(replies, "not_known");
        assert!(replies["calls"].is_null() && why.starts_with("2,000 of 4,000 writes"), "{found:#}");
    }
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[test]
fn the_seconds_that_were_watched_are_proved_and_the_program_runs_on() {
    for with in ["--no-counts", "--tier=clock"] {
        assert_refused(&iowhy(&["attach", "1", "--prove", with]), "--prove");
    }
    let both = iowhy(&["attach", "1", "--prove", "--when=sync>1s"]);
    assert!(both.code() == 2 && ["--prove", "--when"].iter().all(|o| both.stderr.contains(o)), "{both:?}");
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
