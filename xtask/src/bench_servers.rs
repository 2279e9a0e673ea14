//! Rates of real servers with and without a sync for each reply, beside what `iowhy attach` predicts of the first. The servers are
//! those of Debian's packages, run by an ordinary user on files below `target/`; one that is not installed is skipped and says so.
//! Prints; asserts nothing. Invariant: what it starts ends with it, and its folder goes, also after a signal.
//! Deliberately absent: anything that a prediction is tuned with.

mod process;
mod servers;

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use iowhy_probe::interrupt;
use serde_json::Value;

use process::{Group, Outcome, finish, pause};
use servers::{SERVERS, Server};

/// Rounds, each with both settings and a watch.
const ROUNDS: usize = 3;
/// Seconds of a load, after which a watch within it begins, and of the watch.
const LOAD_S: u64 = 7;
const BEFORE_WATCH: Duration = Duration::from_secs(1);
const WATCH_S: u64 = 4;
/// Requests of a first load, by which the number of the others is chosen.
const FIRST: u64 = 4_000;
/// Who runs the servers: `nobody`.
const USER: u32 = 65534;
/// Where Debian puts what is not in PATH.
const PATHS: &str = "PATH=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// Runs the servers whose names hold the filter.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let (filter, rounds) = match arguments {
        [] => ("", Some(ROUNDS)),
        ["--rounds", n] => ("", n.parse().ok()),
        [filter] => (*filter, Some(ROUNDS)),
        [filter, "--rounds", n] => (*filter, n.parse().ok()),
        _ => ("", None),
    };
    let Some(rounds) = rounds.filter(|rounds| *rounds > 0) else {
        eprintln!("usage: cargo xtask bench-servers [FILTER] [--rounds N]");
        return ExitCode::from(2);
    };
    match measure(root, &filter.to_lowercase(), rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("bench-servers: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(root: &Path, filter: &str, rounds: usize) -> Outcome<()> {
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
    interrupt::install();
    let target = crate::target(root);
    println!(
        "{rounds} rounds; medians, and of rates before and after the smallest and the greatest as well\n"
    );
    println!(
        "| server | setting | before, a second | after | real gain | predicted rate | holds the real one | predicted over real |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for server in SERVERS.iter().filter(|server| server.name.to_lowercase().contains(filter)) {
        if let Some(missing) = server.needs.iter().find(|program| !is_installed(program)) {
            println!("skipped: {}: the program {missing} is not installed", server.name);
            continue;
        }
        let place = Place::make(&target)?;
        match place.compare(server, rounds) {
            Ok(rows) => println!("| {} | {} | {} |", server.name, server.setting, rows.row()),
            Err(_) if interrupt::requested() => return Err("interrupted".to_owned()),
            Err(why) => println!("failed: {}: {why}", server.name),
        }
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("{PATHS}; command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// One round.
struct Round {
    before: f64,
    after: f64,
    /// The gain of the rate, value and interval, or why there is none.
    predicted: Result<[f64; 3], String>,
}

/// All rounds of a server.
struct Rounds(Vec<Round>);

impl Rounds {
    /// The columns behind the names. Rates are compared within a round, so that a machine that gets slower or faster shows in neither.
    fn row(&self) -> String {
        let of = |value: &dyn Fn(&Round) -> f64| self.0.iter().map(value).collect::<Vec<f64>>();
        let (before, after) = (of(&|round| round.before), of(&|round| round.after));
        let real = median(of(&|round| round.after / round.before));
        let gains: Vec<([f64; 3], &Round)> =
            self.0.iter().filter_map(|round| Some((*round.predicted.as_ref().ok()?, round))).collect();
        let predicted = if gains.is_empty() {
            let why = self.0.iter().find_map(|round| round.predicted.as_ref().err());
            format!("{} | - | -", why.map_or("none", String::as_str))
        } else {
            let rate =
                |at: usize| median(gains.iter().map(|(gain, round)| gain[at] * round.before).collect());
            let over =
                median(gains.iter().map(|(gain, round)| gain[0] * round.before / round.after).collect());
            let held = gains.iter().filter(|(gain, round)| {
                let real = round.after / round.before;
                gain[1] <= real && real <= gain[2]
            });
            format!(
                "{:.0} [{:.0}, {:.0}] | {} of {} rounds | {over:.2}",
                rate(0),
                rate(1),
                rate(2),
                held.count(),
                gains.len()
            )
        };
        format!("{} | {} | {real:.2}x | {predicted}", spread(before), spread(after))
    }
}

/// The median with the smallest and the greatest.
fn spread(values: Vec<f64>) -> String {
    let (low, high) = values.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(*v), h.max(*v)));
    format!("{:.0} ({low:.0} to {high:.0})", median(values))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The folder in which a server runs; it goes with this value.
struct Place {
    folder: PathBuf,
    iowhy: PathBuf,
    record: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            eprintln!("bench-servers: {}: {error}", self.folder.display());
        }
    }
}

impl Place {
    fn make(target: &Path) -> Outcome<Place> {
        let folder = target.join("bench-servers");
        // Of a run that was killed.
        let _ = std::fs::remove_dir_all(&folder);
        let made = std::fs::create_dir_all(&folder).and_then(|()| chown(&folder, Some(USER), Some(USER)));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        // Of a command that runs as another user, iowhy writes the record as that user.
        let (iowhy, record) = (target.join("release/iowhy"), folder.join("record.json"));
        Ok(Place { folder, iowhy, record })
    }

    fn compare(&self, server: &Server, rounds: usize) -> Outcome<Rounds> {
        finish(&mut self.shell(server.prepare, true, 0))?;
        let served = (!server.serve.is_empty()).then(|| self.serve(server)).transpose()?;
        let number = |on| -> Outcome<u64> {
            let rate = self.rate(server, on, FIRST)?;
            Ok((rate * LOAD_S as f64) as u64)
        };
        let (with, without) = (number(true)?, number(false)?);
        let round = |round: usize| -> Outcome<Round> {
            let mut round_of = Round { before: 0.0, after: 0.0, predicted: Err("none".to_owned()) };
            // In turns, so that no setting always comes first.
            let order = if round.is_multiple_of(2) { [0, 1, 2] } else { [2, 1, 0] };
            for step in order {
                match step {
                    0 => round_of.before = self.rate(server, true, with)?,
                    1 => round_of.after = self.rate(server, false, without)?,
                    _ => round_of.predicted = self.predicted(server, served.as_ref(), with)?,
                }
            }
            Ok(round_of)
        };
        let rounds = (0..rounds).map(round).collect::<Outcome<Vec<Round>>>()?;
        Ok(Rounds(rounds))
    }

    /// A command of the server's user, which ends with this process. `n`: requests.
    fn shell(&self, command: &str, on: bool, n: u64) -> Command {
        let mut shell = Command::new("setpriv");
        let user = USER.to_string();
        shell.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--pdeathsig", "KILL", "sh", "-c"]);
        shell.arg(format!("{PATHS}; on={}; n={n}; s={LOAD_S}; {command}", u8::from(on)));
        shell.current_dir(&self.folder).env("HOME", &self.folder).env("PWD", &self.folder);
        shell
    }

    fn serve(&self, server: &Server) -> Outcome<Group> {
        let served = Group::start(&mut self.shell(server.serve, true, 0), Some(server.stop))?;
        for _ in 0..100 {
            match finish(&mut self.shell(server.ready, true, 0)) {
                Ok(_) => return Ok(served),
                Err(_) => pause(Duration::from_millis(300))?,
            }
        }
        Err(format!("it does not serve: {}", served.said().lines().last().unwrap_or("no reason was given")))
    }

    /// The rate of a load with or without syncs.
    fn rate(&self, server: &Server, on: bool, n: u64) -> Outcome<f64> {
        finish(&mut self.shell(server.set, on, 0))?;
        let printed = finish(&mut self.shell(server.load, on, n))?;
        printed.trim().parse().map_err(|_| format!("no rate was printed: `{}`", printed.trim()))
    }

    /// The predicted gain in the rate, value and interval, or why there is none.
    fn predicted(
        &self,
        server: &Server,
        served: Option<&Group>,
        n: u64,
    ) -> Outcome<Result<[f64; 3], String>> {
        if !server.removes_syncs {
            return Ok(Err("none: it makes one sync of several".to_owned()));
        }
        finish(&mut self.shell(server.set, true, 0))?;
        let mut iowhy = crate::iowhy(&self.iowhy);
        iowhy.args(["--quiet", "--json"]).arg(&self.record).current_dir(&self.folder);
        if let Some(served) = served {
            let mut load = Group::start(&mut self.shell(server.load, true, n), None)?;
            pause(BEFORE_WATCH)?;
            let time = format!("{WATCH_S}s");
            iowhy.args(["attach", &served.id().to_string(), "--no-calibrate", "--time", &time]);
            finish(&mut iowhy)?;
            if !load.runs()? {
                return Err("the load ended before the watch".to_owned());
            }
            load.end()?;
        } else {
            iowhy.args(["--user", "nobody", "--", "sh", "-c"]);
            iowhy.arg(format!("on=1; n={n}; s={LOAD_S}; {}", server.load)).stdout(Stdio::null());
            finish(&mut iowhy)?;
        }
        let text = std::fs::read_to_string(&self.record)
            .map_err(|error| format!("{}: {error}", self.record.display()))?;
        gain(&serde_json::from_str(&text).map_err(|error| error.to_string())?)
    }
}

/// The gain in the rate that a record predicts without syncs; of a program that serves nobody, the gain of its finding.
fn gain(record: &Value) -> Outcome<Result<[f64; 3], String>> {
    let findings = record["findings"].as_array().ok_or("the record has no findings")?;
    let Some(found) = findings.iter().find(|finding| finding["id"] == "sync-per-write") else {
        let ids: Vec<&str> = findings.iter().filter_map(|finding| finding["id"].as_str()).collect();
        return Ok(Err(format!("none: found was {}", ids.join(", "))));
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
        _ => Err(format!("none: {}", replies["not_known"].as_str().unwrap_or("nothing was repeated"))),
    })
}
