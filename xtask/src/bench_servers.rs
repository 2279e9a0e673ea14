//! Rates of real servers with and without a sync for each reply, beside what `iowhy attach` predicts of the first. The servers are
//! those of Debian's packages, run by an ordinary user on files below `target/`; one that is not installed is skipped and says so.
//! Prints; asserts nothing. Deliberately absent: anything that a prediction is tuned with.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Rounds, each with both settings.
const ROUNDS: usize = 3;
/// Seconds of a load, and of a watch within it, which begins before.
const LOAD_S: u64 = 7;
const WATCH_S: u64 = 5;
/// Requests of a first load, by which the number of the others is chosen.
const FIRST: u64 = 20_000;
/// Who runs the servers: `nobody`.
const USER: u32 = 65534;

/// What a benchmark step may fail with: text for people.
type Outcome<T> = Result<T, String>;

/// A server, or a program with the engine of one. All texts are commands of `sh`, run in a folder of its own with `$on` (1: a sync for
/// each reply), `$n` requests and `$s` seconds.
struct Server {
    name: &'static str,
    /// The setting and its two values.
    setting: &'static str,
    /// Programs without which it cannot run.
    needs: &'static [&'static str],
    prepare: &'static str,
    /// Runs until it is killed; empty: the load is the program.
    serve: &'static str,
    /// Succeeds when it serves.
    ready: &'static str,
    /// Changes the setting.
    set: &'static str,
    /// Prints the rate of its requests.
    load: &'static str,
}

const SERVERS: [Server; 5] = [
    Server {
        name: "Redis, 50 clients",
        setting: "appendfsync always -> everysec",
        needs: &["redis-server", "redis-cli", "redis-benchmark"],
        prepare: "",
        serve: "exec redis-server --port 0 --unixsocket $PWD/s --appendonly yes --appendfsync always --save ''",
        ready: "redis-cli -s s ping",
        set: "redis-cli -s s config set appendfsync $([ $on = 1 ] && echo always || echo everysec)",
        load: "redis-benchmark -s s -t set -c 50 -d 100 -r 100000 -n $n --csv | sed -n 's/^\"SET\",\"\\([0-9.]*\\).*/\\1/p'",
    },
    Server {
        name: "PostgreSQL, 1 client",
        setting: "synchronous_commit on -> off",
        needs: PG,
        prepare: PG_PREPARE,
        serve: PG_SERVE,
        ready: PG_READY,
        set: "",
        load: "PGOPTIONS=\"-c synchronous_commit=$([ $on = 1 ] && echo on || echo off)\" pgbench -h $PWD -U u -n -c 1 -T $s postgres | \
               sed -n 's/^tps = \\([0-9.]*\\).*/\\1/p'",
    },
    Server {
        name: "PostgreSQL, 8 clients",
        setting: "synchronous_commit on -> off",
        needs: PG,
        prepare: PG_PREPARE,
        serve: PG_SERVE,
        ready: PG_READY,
        set: "",
        load: "PGOPTIONS=\"-c synchronous_commit=$([ $on = 1 ] && echo on || echo off)\" pgbench -h $PWD -U u -n -c 8 -T $s postgres | \
               sed -n 's/^tps = \\([0-9.]*\\).*/\\1/p'",
    },
    Server {
        name: "MariaDB, 4 clients",
        setting: "innodb_flush_log_at_trx_commit 1 -> 2",
        needs: &["mariadbd", "mariadb-install-db", "mariadb-slap", "mariadb"],
        prepare: "mariadb-install-db --no-defaults --datadir=$PWD/data --auth-root-authentication-method=normal --skip-test-db",
        serve: "exec mariadbd --no-defaults --datadir=$PWD/data --socket=$PWD/s --skip-networking --skip-grant-tables --tmpdir=$PWD \
                --pid-file=$PWD/pid",
        ready: "mariadb --no-defaults -S s -e 'create database if not exists d; create table if not exists d.t \
                (a int auto_increment primary key, b char(100)) engine=innodb'",
        set: "mariadb --no-defaults -S s -e \"set global innodb_flush_log_at_trx_commit = $((2 - on))\"",
        load: "mariadb-slap --no-defaults -S s --concurrency=4 --create-schema=d --no-drop --number-of-queries=$n \
               --query=\"insert into t (b) values ('x')\" | awk -v n=$n '/Average/ { print n / $(NF - 1) }'",
    },
    Server {
        name: "RocksDB, 1 thread",
        setting: "db_bench --sync=1 -> 0",
        needs: &["db_bench"],
        prepare: "",
        serve: "",
        ready: "",
        set: "",
        load: "db_bench --benchmarks=fillrandom --db=$PWD/db --num=$n --value_size=100 --sync=$on | \
               awk '/^fillrandom/ { for (i = 1; i < NF; i++) if ($(i + 1) == \"ops/sec\") print $i }'",
    },
];

const PG: &[&str] = &["postgres", "initdb", "pgbench", "psql"];
const PG_PREPARE: &str = "initdb -D data -A trust -U u --no-sync";
const PG_SERVE: &str = "exec postgres -D data -k $PWD -c listen_addresses=''";
const PG_READY: &str =
    "psql -h $PWD -U u -c 'select 1' postgres && pgbench -h $PWD -U u -i -s 10 -q postgres";
/// Where Debian puts what is not in PATH.
const PATHS: &str = "PATH=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// Runs the servers whose names hold the filter.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let filter = match arguments {
        [] => "",
        [filter] => filter,
        _ => {
            eprintln!("usage: cargo xtask bench-servers [FILTER]");
            return ExitCode::from(2);
        }
    };
    match measure(root, &filter.to_lowercase()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench-servers: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(root: &Path, filter: &str) -> Outcome<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(
            "calls are counted by root alone, and servers run as another user: run it as root".to_owned()
        );
    }
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "iowhy"])
        .current_dir(root)
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !built.success() {
        return Err("the release build failed".to_owned());
    }
    let target = crate::target(root);
    println!("| server | setting | before, a second | after | real | predicted | predicted over real |");
    println!("|---|---|---|---|---|---|---|");
    for server in SERVERS.iter().filter(|server| server.name.to_lowercase().contains(filter)) {
        if let Some(missing) = server.needs.iter().find(|program| !is_installed(program)) {
            println!("skipped: {}: the program {missing} is not installed", server.name);
            continue;
        }
        let folder = target.join("bench-servers");
        let _ = std::fs::remove_dir_all(&folder);
        let made = std::fs::create_dir_all(&folder).and_then(|()| chown(&folder, Some(USER), Some(USER)));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        let place = Place { folder: folder.clone(), iowhy: target.join("release/iowhy") };
        match place.compare(server) {
            Ok(row) => println!("| {} | {} | {row} |", server.name, server.setting),
            Err(why) => println!("failed: {}: {why}", server.name),
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("{PATHS}; command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// A server that is killed at the end.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Where a server runs.
struct Place {
    folder: PathBuf,
    iowhy: PathBuf,
}

impl Place {
    /// One line of the table.
    fn compare(&self, server: &Server) -> Outcome<String> {
        self.done(&mut self.shell(server.prepare, true, 0))?;
        let served = (!server.serve.is_empty()).then(|| self.serve(server)).transpose()?;
        let mut rates = [Vec::new(), Vec::new()];
        let mut gains = Vec::new();
        let numbers = [true, false].map(|on| -> Outcome<u64> {
            self.set(server, on)?;
            let rate = self.rate(&mut self.shell(server.load, on, FIRST))?;
            Ok((rate * LOAD_S as f64) as u64)
        });
        let [with, without]: [Outcome<u64>; 2] = numbers;
        let (with, without) = (with?, without?);
        for round in 0..ROUNDS {
            let order = if round % 2 == 0 { [true, false] } else { [false, true] };
            for on in order {
                self.set(server, on)?;
                let n = if on { with } else { without };
                rates[usize::from(!on)].push(self.rate(&mut self.shell(server.load, on, n))?);
            }
            self.set(server, true)?;
            gains.push(self.predicted(server, served.as_ref(), with)?);
        }
        let [before, after] = rates.map(|mut rates| median(&mut rates));
        let real = after / before;
        let known: Vec<[f64; 3]> = gains.iter().filter_map(|gain| gain.ok()).collect();
        let of = |at: usize| median(&mut known.iter().map(|gain| gain[at]).collect::<Vec<f64>>());
        let (gain, over) = if known.is_empty() {
            (
                gains.iter().find_map(|gain| gain.as_ref().err().copied()).unwrap_or("none").to_owned(),
                "-".to_owned(),
            )
        } else {
            (format!("{:.2}x [{:.2}, {:.2}]", of(0), of(1), of(2)), format!("{:.2}", of(0) / real))
        };
        Ok(format!("{before:.0} | {after:.0} | {real:.2}x | {gain} | {over}"))
    }

    /// A command of the server's user. `n`: requests.
    fn shell(&self, command: &str, on: bool, n: u64) -> Command {
        let mut shell = Command::new("sh");
        let text = format!("{PATHS}; on={}; n={n}; s={LOAD_S}; {command}", u8::from(on));
        shell.args(["-c", &text]).current_dir(&self.folder).env("HOME", &self.folder);
        shell.uid(USER).gid(USER).stdin(Stdio::null());
        shell
    }

    fn serve(&self, server: &Server) -> Outcome<Served> {
        let log = std::fs::File::create(self.folder.join("log")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let mut command = self.shell(server.serve, true, 0);
        let child = command.stdout(log).stderr(errors).spawn().map_err(|error| error.to_string())?;
        let served = Served(child);
        let begun = Instant::now();
        while let Err(why) = self.done(&mut self.shell(server.ready, true, 0)) {
            if begun.elapsed() > Duration::from_secs(30) {
                return Err(format!("it does not serve: {why}"));
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        Ok(served)
    }

    fn set(&self, server: &Server, on: bool) -> Outcome<()> {
        self.done(&mut self.shell(server.set, on, 0)).map(|_| ())
    }

    fn done(&self, command: &mut Command) -> Outcome<String> {
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(text.lines().last().unwrap_or("no reason was given").to_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn rate(&self, command: &mut Command) -> Outcome<f64> {
        let printed = self.done(command)?;
        printed.trim().parse().map_err(|_| format!("no rate was printed: `{}`", printed.trim()))
    }

    /// The predicted gain in the rate, value and interval, or why there is none.
    fn predicted(
        &self,
        server: &Server,
        served: Option<&Served>,
        n: u64,
    ) -> Outcome<Result<[f64; 3], &'static str>> {
        let record = self.folder.parent().unwrap_or(&self.folder).join("bench-servers.json");
        let mut iowhy = crate::iowhy(&self.iowhy);
        iowhy.args(["--quiet", "--json"]).arg(&record).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(served) = served {
            // Children that a server starts for its clients are seen from the start of the watch on.
            iowhy.args(["attach", &served.0.id().to_string(), "--time", &format!("{WATCH_S}s")]);
            let mut watch = iowhy.spawn().map_err(|error| format!("{}: {error}", self.iowhy.display()))?;
            std::thread::sleep(Duration::from_millis(500));
            let loaded = self.rate(&mut self.shell(server.load, true, n));
            watch.wait().map_err(|error| error.to_string())?;
            loaded?;
        } else {
            iowhy.args(["--user", "nobody", "--", "sh", "-c"]);
            iowhy.arg(format!("on=1; n={n}; {}", server.load)).current_dir(&self.folder);
            iowhy.status().map_err(|error| format!("{}: {error}", self.iowhy.display()))?;
        }
        let text =
            std::fs::read_to_string(&record).map_err(|error| format!("{}: {error}", record.display()))?;
        let record: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let none = Vec::new();
        let findings = record["findings"].as_array().unwrap_or(&none);
        let Some(found) = findings.iter().find(|finding| finding["id"] == "sync-per-write") else {
            return Ok(Err("not found"));
        };
        let replies = &found["replies"];
        let gain = match replies["per_second"].as_f64() {
            Some(now) => {
                let rate = &replies["without_cause"]["per_second"];
                ["value", "low", "high"].map(|key| rate[key].as_f64().map(|rate| rate / now))
            }
            None => ["predicted", "low", "high"].map(|key| found["gain"][key].as_f64()),
        };
        Ok(match gain {
            [Some(value), Some(low), Some(high)] => Ok([value, low, high]),
            _ => Err("no gain"),
        })
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
