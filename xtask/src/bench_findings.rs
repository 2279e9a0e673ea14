//! Puts the diagnosis to the test on programs whose cause is known: is it named first, does the repair gain what was
//! predicted, are the repaired and the innocent left in peace? Prints; asserts nothing, because a shared machine proves
//! nothing by one number.
//!
//! Records and times are kept under target/cases/records, so that a changed rule can be judged again on the same runs
//! (`--again`) instead of on new ones.

mod counts;
mod page;
mod proof;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use iowhy::analyzer::Analyzer;
use iowhy::record::prove::Proof;
use iowhy_cases::{Case, Skip, Stage, Variant, catalogue};
use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId, Gain};
use iowhy_core::profile::Profile;
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::counts::Counts;

const SEED: u64 = 1;
const USAGE: &str = "usage: cargo xtask bench-findings [FILTER] [--rounds N] [--again] [--account] [--prove] [--page], N at least 3; \
                     FILTER is part of a name; --again judges the runs that are kept by the rules of today; --account shows \
                     where the time of the slow variant went; --prove replays the slow variant with its first finding \
                     repaired, beside what was foretold and what the really repaired program gains; --page writes the figures \
                     into README.md and docs/accuracy.md";

/// Others on this machine may cost a watched program this part of its time before it is watched again.
const MUCH_NOISE: f64 = 0.15;
/// So often a variant is watched for a quiet run.
const ATTEMPTS: usize = 3;

/// ext4 without a journal does not use an inode again that was freed less than 60 s ago, and making files is slow as long as
/// there are many (`recently_deleted` in fs/ext4/ialloc.c).
const REMOVED_LONG_AGO: Duration = Duration::from_secs(65);

/// Says, beside the runs that are kept, where they come from.
const ORIGIN: &str = "origin.txt";

/// What a step may fail with: text for people.
type Outcome<T> = Result<T, String>;

/// Builds iowhy and the cases, and goes through all cases whose name holds the filter. Fails if any was wrong.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some(options) = options(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match judge_all(root, options) {
        Ok(counts) => {
            println!("\n{}", counts.sentence());
            if options.page
                && let Err(problem) = page::write(root, &counts, &kept_origin(root))
            {
                eprintln!("bench-findings: {problem}");
                return ExitCode::FAILURE;
            }
            if counts.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(problem) => {
            eprintln!("bench-findings: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Options<'a> {
    filter: &'a str,
    rounds: usize,
    again: bool,
    account: bool,
    prove: bool,
    /// Whether the figures are written into the pages.
    page: bool,
}

fn options<'a>(arguments: &[&'a str]) -> Option<Options<'a>> {
    let mut options =
        Options { filter: "", rounds: 5, again: false, account: false, prove: false, page: false };
    let mut rest = arguments.iter();
    while let Some(&word) = rest.next() {
        match word {
            "--rounds" => options.rounds = rest.next()?.parse().ok().filter(|n| *n >= 3)?,
            "--again" => options.again = true,
            "--account" => options.account = true,
            "--prove" => options.prove = true,
            "--page" => options.page = true,
            _ if word.starts_with('-') || !options.filter.is_empty() => return None,
            _ => options.filter = word,
        }
    }
    // The figures of the pages are those of all programs.
    (!options.page || options.filter.is_empty()).then_some(options)
}

/// Where the kept runs come from.
fn kept_origin(root: &Path) -> String {
    let path = crate::target(root).join("cases/records").join(ORIGIN);
    std::fs::read_to_string(path).unwrap_or_else(|_| "Origin unknown.".to_owned())
}

/// The programs under test.
struct Binaries {
    iowhy: PathBuf,
    cases: PathBuf,
}

fn judge_all(root: &Path, options: Options<'_>) -> Outcome<Counts> {
    let Options { filter, rounds, again, account, prove, .. } = options;
    let target = crate::target(root);
    let binaries =
        Binaries { iowhy: target.join("release/iowhy"), cases: target.join("release/iowhy-cases") };
    let dir = target.join("cases");
    let kept = dir.join("records");
    if again {
        let origin = std::fs::read_to_string(kept.join(ORIGIN)).unwrap_or_default();
        println!("runs that were kept in {}, by the rules of today\n{origin}", kept.display());
    } else {
        build(root)?;
        std::fs::create_dir_all(&kept).map_err(|e| format!("cannot make {}: {e}", kept.display()))?;
        // One case that is run again does not make the others younger.
        if filter.is_empty() {
            let origin = format!("{}\n", crate::capture::origin(root)?);
            std::fs::write(kept.join(ORIGIN), origin).map_err(|e| format!("cannot write {ORIGIN}: {e}"))?;
        }
    }
    let cases: Vec<&Case> = catalogue::all().filter(|case| case.name.contains(filter)).collect();
    if cases.is_empty() {
        return Err(format!(
            "no case has `{filter}` in its name; `cargo run -p iowhy-cases -- list` names them"
        ));
    }
    println!(
        "gain = time of the slow variant / time of the repaired one; measured: median of {rounds} rounds\n"
    );
    println!("{HEADER}{}", if prove { proof::HEADER } else { "" });
    let meaning = Analyzer::new();
    let mut counts = Counts::default();
    for case in cases {
        let runs =
            if again { Runs::kept(&kept, case) } else { Runs::made(case, &dir, &binaries, rounds, prove) };
        if let (false, Ok(runs)) = (again, &runs) {
            runs.keep(&kept, case)?;
        }
        match runs.and_then(|runs| Ok((runs.judge(case, &meaning)?, runs))) {
            Ok((row, runs)) => {
                counts.add(&row);
                println!("{}{}", row.line(), if prove { row.proven() } else { String::new() });
                if account {
                    print!("{}", account_of("slow", &runs.slow, &meaning));
                    if let Some(repaired) = &runs.repaired {
                        print!("{}", account_of("repaired", repaired, &meaning));
                    }
                }
            }
            Err(Skip::Unavailable(reason)) => {
                counts.skipped += 1;
                println!("{:26} skipped: {reason}", case.name);
            }
            Err(Skip::Problem(problem)) => {
                counts.failed += 1;
                println!("{:26} failed: {problem}", case.name);
            }
        }
    }
    Ok(counts)
}

fn build(root: &Path) -> Outcome<()> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "iowhy", "--package", "iowhy-cases"])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if built.success() { Ok(()) } else { Err("the release build failed".to_owned()) }
}

/// What was seen and timed of one case.
#[derive(Serialize, Deserialize)]
struct Runs {
    slow: Profile,
    repaired: Option<Profile>,
    /// Seconds of each variant, round by round, unwatched.
    slow_s: Vec<f64>,
    repaired_s: Vec<f64>,
    same_output: bool,
    /// What replays of the slow variant gave.
    #[serde(default)]
    proof: Option<Proof>,
}

fn failed(words: String) -> Skip {
    Skip::Problem(iowhy_core::problem::Problem::failed(words))
}

impl Runs {
    /// Both variants watched, then both unwatched in interleaved rounds, half of them before the proof.
    fn made(
        case: &'static Case,
        dir: &Path,
        binaries: &Binaries,
        rounds: usize,
        prove: bool,
    ) -> Result<Runs, Skip> {
        let mut stage = Stage::new(case, dir, &binaries.cases)?;
        // Replays of the case before may have removed many files of theirs.
        let of_files =
            case.is_right(FindingId::ManySmallFiles) || case.also.contains(&FindingId::ManySmallFiles);
        if prove && of_files {
            std::thread::sleep(REMOVED_LONG_AGO);
        }
        let mut runs = Runs {
            slow: quietest(&mut stage, case, Variant::Slow, binaries).map_err(failed)?,
            repaired: None,
            slow_s: Vec::new(),
            repaired_s: Vec::new(),
            same_output: true,
            proof: None,
        };
        if case.cause.is_some() {
            runs.repaired = Some(quietest(&mut stage, case, Variant::Repaired, binaries).map_err(failed)?);
        }
        let mut rng = Rng::new(SEED);
        // A machine is slower in one minute than in the next: rounds before and after a proof tell of its time.
        let before = if prove && of_files { rounds } else { rounds / 2 };
        runs.time(&mut stage, case, before, &mut rng)?;
        if prove {
            runs.proof = Some(proof::proved(&mut stage, case, binaries).map_err(failed)?);
        }
        runs.time(&mut stage, case, rounds - before, &mut rng)?;
        Ok(runs)
    }

    /// Times both variants, unwatched, in interleaved rounds.
    fn time(&mut self, stage: &mut Stage, case: &Case, rounds: usize, rng: &mut Rng) -> Result<(), Skip> {
        if case.cause.is_none() {
            return Ok(());
        }
        let mut order = [Variant::Slow, Variant::Repaired];
        for _ in 0..rounds {
            rng.shuffle(&mut order);
            let mut said = Vec::new();
            for variant in order {
                let (seconds, output) = timed(stage, variant).map_err(failed)?;
                said.push(output);
                match variant {
                    Variant::Slow => self.slow_s.push(seconds),
                    Variant::Repaired => self.repaired_s.push(seconds),
                }
            }
            self.same_output &= said.windows(2).all(|pair| pair[0] == pair[1]);
        }
        Ok(())
    }

    fn keep(&self, kept: &Path, case: &Case) -> Outcome<()> {
        let path = kept.join(format!("{}.json", case.name));
        let text = serde_json::to_string(self).map_err(|e| e.to_string())?;
        std::fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }

    fn kept(kept: &Path, case: &Case) -> Result<Runs, Skip> {
        let path = kept.join(format!("{}.json", case.name));
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Err(Skip::Unavailable("no run of it is kept".to_owned()));
        };
        serde_json::from_str(&text).map_err(|e| failed(format!("{}: {e}", path.display())))
    }

    fn judge(&self, case: &'static Case, meaning: &Analyzer) -> Result<Row, Skip> {
        let (slow, noise) = without_noise(case, named(&self.slow, meaning));
        let mut row = Row {
            case,
            slow,
            repaired: Vec::new(),
            noise,
            measured: stats::paired_ratio(&self.slow_s, &self.repaired_s, SEED),
            same_output: self.same_output,
            proof: self.proof.clone(),
        };
        if let Some(profile) = &self.repaired {
            let (repaired, noise) = without_noise(case, named(profile, meaning));
            row.repaired = repaired;
            row.noise = row.noise.max(noise);
        }
        Ok(row)
    }
}

/// The findings of a profile.
fn named(profile: &Profile, meaning: &Analyzer) -> Vec<Named> {
    let findings = meaning.explain(profile, None).findings;
    let one = |finding: &Finding| Named {
        id: finding.id.id().to_owned(),
        share: finding.share,
        gain: finding.gain,
    };
    findings.iter().map(one).collect()
}

/// A predicted gain as the table shows it: `+` where there is no upper end.
fn foretold(gain: Gain) -> String {
    let open = if gain.open_above { "+" } else { "" };
    format!("{:.2} [{:.2}, {:.2}{open}]", gain.predicted, gain.low, gain.high)
}

/// One finding of a record.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    id: String,
    /// Part of the wall time.
    share: f64,
    gain: Option<Gain>,
}

/// Where the time of a run went and what is said of it, for those who work on a rule.
fn account_of(variant: &str, profile: &Profile, meaning: &Analyzer) -> String {
    let explained = meaning.explain(profile, None);
    let wall = explained.account.wall_ns.max(1.0);
    let mut parts: BTreeMap<String, (f64, u64)> = BTreeMap::new();
    for entry in &explained.account.entries {
        let how = if entry.busy { "busy" } else { "wait" };
        let wait = entry.class.wait.map_or("", |wait| wait.words());
        let name = format!("{how} {:?} {} {wait}", entry.class.operation, entry.class.layer.id());
        let part = parts.entry(name).or_default();
        part.0 += entry.wall_ns / wall;
        part.1 += entry.events;
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let idle = explained.account.idle_wall_ns / wall;
    let mut text = format!("    {variant}: wall {:.3} s, idle {:.1} %\n", wall / 1e9, 100.0 * idle);
    for (name, (share, events)) in parts.into_iter().take(14) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "      {:5.1} %  {name} (n = {events})", 100.0 * share);
    }
    for finding in &explained.findings {
        let gain = finding.gain.map(foretold);
        let _ = writeln!(
            text,
            "      {} {}: {}; {}",
            finding.id.id(),
            gain.unwrap_or_default(),
            finding.sentence,
            finding.evidence.join("; ")
        );
    }
    text
}

/// Watches a variant until a run is quiet, a few times at most, and returns the quietest run.
fn quietest(stage: &mut Stage, case: &Case, variant: Variant, binaries: &Binaries) -> Outcome<Profile> {
    let meaning = Analyzer::new();
    let noise = |profile: &Profile| without_noise(case, named(profile, &meaning)).1;
    let mut best = watched(stage, variant, binaries)?;
    let mut least = noise(&best);
    for _ in 1..ATTEMPTS {
        if least < MUCH_NOISE {
            break;
        }
        let next = watched(stage, variant, binaries)?;
        if noise(&next) < least {
            least = noise(&next);
            best = next;
        }
    }
    Ok(best)
}

/// Takes the noise out, unless it is what the case is about.
fn without_noise(case: &Case, mut findings: Vec<Named>) -> (Vec<Named>, f64) {
    let noise = FindingId::NoisyNeighbour;
    if case.is_right(noise) || case.also.contains(&noise) {
        return (findings, 0.0);
    }
    let share = findings.iter().filter(|named| named.id == noise.id()).map(|named| named.share).sum();
    findings.retain(|named| named.id != noise.id());
    (findings, share)
}

/// Runs a variant under watch and returns what was seen of it.
fn watched(stage: &mut Stage, variant: Variant, binaries: &Binaries) -> Outcome<Profile> {
    let mut json = record(stage, variant, binaries, &[])?;
    serde_json::from_value(json["profile"].take()).map_err(|e| format!("the record has no profile: {e}"))
}

/// Runs a variant under watch, with these options, and returns the record.
fn record(stage: &mut Stage, variant: Variant, binaries: &Binaries, options: &[&str]) -> Outcome<Value> {
    stage.before(variant).map_err(|p| p.to_string())?;
    let record = stage.dir().join("watched.json");
    // A record that an earlier run left must not be taken for this one's.
    let _ = std::fs::remove_file(&record);
    let output = crate::iowhy(&binaries.iowhy)
        .args(options)
        .arg("--json")
        .arg(&record)
        .arg("--")
        .args(stage.command(variant))
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("cannot run {}: {e}", binaries.iowhy.display()));
    stage.after();
    let output = output?;
    let text = std::fs::read_to_string(&record).map_err(|e| {
        format!("no record ({e}); it said: {}", String::from_utf8_lossy(&output.stderr).trim())
    })?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("its JSON cannot be read: {e}"))?;
    if json["exit"]["code"].as_i64() != Some(0) {
        return Err(format!("the watched program ended with {}", json["exit"]));
    }
    Ok(json)
}

/// Runs a variant without watch: its wall time in seconds, and what it printed.
fn timed(stage: &mut Stage, variant: Variant) -> Outcome<(f64, Vec<u8>)> {
    stage.before(variant).map_err(|p| p.to_string())?;
    let words = stage.command(variant);
    let (program, arguments) = words.split_first().ok_or("an empty command")?;
    let start = Instant::now();
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let seconds = start.elapsed().as_secs_f64();
    stage.after();
    let output = output.map_err(|e| format!("cannot run {program}: {e}"))?;
    if !output.status.success() {
        return Err(format!(
            "the {} variant failed: {}",
            variant.word(),
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok((seconds, output.stdout))
}

const HEADER: &str = "case                       cause                named first             rank  \
                      predicted gain         measured gain          inside  repaired";

/// What became of one case.
struct Row {
    case: &'static Case,
    slow: Vec<Named>,
    repaired: Vec<Named>,
    /// Part of the wall time of the watched runs that others on this machine cost; it is no finding of the case.
    noise: f64,
    measured: Option<Estimate>,
    same_output: bool,
    proof: Option<Proof>,
}

impl Row {
    fn first_is_right(&self) -> bool {
        match self.slow.first() {
            Some(first) => {
                FindingId::ALL.iter().find(|f| f.id() == first.id).is_some_and(|&f| self.case.is_right(f))
            }
            None => false,
        }
    }

    /// Where the cause stands, from 1.
    fn rank(&self) -> Option<usize> {
        let cause = self.case.cause?.id();
        self.slow.iter().position(|named| named.id == cause).map(|i| i + 1)
    }

    /// The prediction of the cause, or of the name that was taken for it. Where the repair takes several causes away, that
    /// of all of them: what they save adds up.
    fn predicted(&self) -> Option<Gain> {
        let cause = self.case.cause?.id();
        if !self.case.also.is_empty() {
            let of_case = |id: &str| id == cause || self.case.also.iter().any(|also| also.id() == id);
            let gains: Vec<_> = self.slow.iter().filter(|n| of_case(&n.id)).filter_map(|n| n.gain).collect();
            let saved = |of: fn(&Gain) -> f64| gains.iter().map(|gain| 1.0 - 1.0 / of(gain)).sum::<f64>();
            let all = Gain::from_saved_time(1.0, saved(|g| g.low), saved(|g| g.predicted), saved(|g| g.high));
            return (!gains.is_empty()).then_some(all);
        }
        let named = self.slow.iter().find(|named| named.id == cause);
        named.or(self.slow.first().filter(|_| self.first_is_right()))?.gain
    }

    /// Whether the two intervals meet.
    fn inside(&self) -> Option<bool> {
        let measured = self.measured.as_ref()?;
        Some(self.predicted()?.meets(measured.low, measured.high))
    }

    /// Further causes that were not named.
    fn missed(&self) -> Vec<&'static str> {
        let named = |id: &str| self.slow.iter().any(|n| n.id == id);
        self.case.also.iter().map(|id| id.id()).filter(|id| !named(id)).collect()
    }

    /// Causes of the slow variant that the repaired one is still said to have. A device that is asked for less does all it
    /// can all the same, only sooner.
    fn still_named(&self) -> Vec<&'static str> {
        let named = |id: &str| self.repaired.iter().any(|n| n.id == id);
        let causes =
            self.case.cause.iter().chain(self.case.also).filter(|id| **id != FindingId::DeviceSaturated);
        causes.map(|id| id.id()).filter(|id| named(id)).collect()
    }

    fn line(&self) -> String {
        let first = self.slow.first().map_or("nothing", |named| named.id.as_str());
        let cause = self.case.cause.map_or("-", |id| id.id());
        let verdict = match self.first_is_right() {
            true if first == cause => "ok".to_owned(),
            true => format!("ok: {first}"),
            false => format!("WRONG: {first}"),
        };
        let mut line = format!("{:26} {cause:20} {verdict:23}", self.case.name);
        let noise = if self.noise < MUCH_NOISE {
            String::new()
        } else {
            format!("; BUSY MACHINE: {:.0} % of the time went to others", 100.0 * self.noise)
        };
        if self.case.cause.is_none() {
            return format!("{}{noise}", line.trim_end());
        }
        let rank = self.rank().map_or("-".to_owned(), |rank| rank.to_string());
        let predicted = self.predicted().map_or("-".to_owned(), foretold);
        let interval = |e: &Estimate| format!("{:.2} [{:.2}, {:.2}]", e.value, e.low, e.high);
        let measured = self.measured.as_ref().map_or("-".to_owned(), interval);
        let inside = match self.inside() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        let still = match self.still_named().as_slice() {
            [] => "ok".to_owned(),
            names => format!("STILL NAMED: {}", names.join(", ")),
        };
        // Writing to a string does not fail.
        let _ = write!(line, " {rank:5} {predicted:22} {measured:22} {inside:7} {still}");
        if !self.missed().is_empty() {
            let _ = write!(line, "; NOT NAMED: {}", self.missed().join(", "));
        }
        if !self.same_output {
            line.push_str("; THE VARIANTS PRINT DIFFERENT RESULTS");
        }
        line.push_str(&noise);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(low: f64, high: f64) -> Gain {
        Gain { low, predicted: (low + high) / 2.0, high, open_above: false }
    }

    pub(super) fn row(name: &str, slow: &[&str], repaired: &[&str]) -> Row {
        let named = |ids: &[&str]| {
            ids.iter()
                .map(|id| Named { id: (*id).to_owned(), share: 0.5, gain: Some(gain(2.0, 4.0)) })
                .collect()
        };
        let measured = stats::paired_ratio(&[3.5, 3.6, 3.7], &[1.0, 1.0, 1.0], SEED);
        let case = catalogue::find(name).expect("a case of the catalogue");
        Row {
            case,
            slow: named(slow),
            repaired: named(repaired),
            noise: 0.0,
            measured,
            same_output: true,
            proof: None,
        }
    }

    #[test]
    fn options_are_read() {
        assert_eq!(
            options(&[]),
            Some(Options { filter: "", rounds: 5, again: false, account: false, prove: false, page: false })
        );
        let all = options(&["sync", "--again", "--rounds", "7", "--prove"]);
        assert_eq!(
            all,
            Some(Options {
                filter: "sync",
                rounds: 7,
                again: true,
                account: false,
                prove: true,
                page: false
            })
        );
        for bad in [&["--rounds", "2"][..], &["--rounds"], &["a", "b"], &["--what"], &["sync", "--page"]] {
            assert_eq!(options(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_right_diagnosis_counts_as_right() {
        let right = row("sync-rust", &["sync-per-write", "small-requests"], &["healthy"]);
        assert!(right.first_is_right() && right.still_named().is_empty());
        assert_eq!((right.rank(), right.inside()), (Some(1), Some(true)));
        let mut counts = Counts::default();
        counts.add(&right);
        assert_eq!((counts.first_right, counts.inside, counts.wrong), (1, 1, 0));
    }

    #[test]
    fn a_wrong_diagnosis_counts_as_wrong() {
        let second = row("sync-rust", &["small-requests", "sync-per-write"], &["healthy"]);
        assert_eq!((second.first_is_right(), second.rank()), (false, Some(2)));
        let nothing = row("sync-rust", &[], &[]);
        assert!(!nothing.first_is_right() && nothing.inside().is_none());
        let still = row("sync-rust", &["sync-per-write"], &["sync-per-write"]);
        let blamed = row("innocent-sleep", &["sync-per-write"], &[]);
        let unnamed = row("two-data-base", &["sync-per-write"], &["healthy"]);
        assert_eq!(unnamed.missed(), ["queue-depth-one"]);
        let mut counts = Counts::default();
        for row in [&second, &nothing, &still, &blamed, &unnamed] {
            counts.add(row);
        }
        assert_eq!((counts.wrong, counts.missed, counts.innocent_right), (4, 1, 0));
    }

    #[test]
    fn a_gain_outside_the_prediction_is_outside() {
        let mut outside = row("sync-rust", &["sync-per-write"], &["healthy"]);
        outside.slow[0].gain = Some(gain(5.0, 7.0));
        assert_eq!(outside.inside(), Some(false));
    }

    #[test]
    fn noise_of_the_machine_is_no_finding_of_a_case() {
        let seen = row("sync-rust", &["noisy-neighbour", "sync-per-write"], &[]).slow;
        let other = catalogue::find("sync-rust").expect("a case");
        let (left, share) = without_noise(other, seen.clone());
        assert_eq!((left.len(), left[0].id.as_str(), share), (1, "sync-per-write", 0.5));
        let noisy = catalogue::find("noisy-cpu").expect("a case");
        assert_eq!(without_noise(noisy, seen.clone()), (seen, 0.0));
    }
}
