//! Puts the diagnosis to the test on programs whose cause is known: is it named first, does the repair gain what was
//! predicted, are the repaired and the innocent left in peace? Prints; asserts nothing, because a shared machine proves
//! nothing by one number.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use iowhy_cases::{Case, Skip, Stage, Variant, catalogue};
use iowhy_core::estimate::Estimate;
use iowhy_core::finding::FindingId;
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use serde_json::Value;

const SEED: u64 = 1;
const USAGE: &str =
    "usage: cargo xtask bench-findings [FILTER] [--rounds N], N at least 3; FILTER is part of a name";

/// Others on this machine may cost a watched program this part of its time before it is watched again.
const MUCH_NOISE: f64 = 0.15;
/// So often a variant is watched for a quiet run.
const ATTEMPTS: usize = 3;

/// What a step may fail with: text for people.
type Outcome<T> = Result<T, String>;

/// Builds iowhy and the cases, and goes through all cases whose name holds the filter. Fails if any was wrong.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some((filter, rounds)) = options(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match judge_all(root, filter, rounds) {
        Ok(counts) => {
            println!("\n{}", counts.sentence());
            if counts.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(problem) => {
            eprintln!("bench-findings: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The filter and the number of rounds.
fn options<'a>(arguments: &[&'a str]) -> Option<(&'a str, usize)> {
    let (mut filter, mut rounds) = ("", 5);
    let mut rest = arguments.iter();
    while let Some(&word) = rest.next() {
        match word {
            "--rounds" => rounds = rest.next()?.parse().ok().filter(|n| *n >= 3)?,
            _ if word.starts_with('-') || !filter.is_empty() => return None,
            _ => filter = word,
        }
    }
    Some((filter, rounds))
}

/// The programs under test.
struct Binaries {
    iowhy: PathBuf,
    cases: PathBuf,
}

fn judge_all(root: &Path, filter: &str, rounds: usize) -> Outcome<Counts> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "iowhy", "--package", "iowhy-cases"])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !built.success() {
        return Err("the release build failed".to_owned());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let binaries =
        Binaries { iowhy: target.join("release/iowhy"), cases: target.join("release/iowhy-cases") };
    let dir = target.join("cases");
    let cases: Vec<&Case> = catalogue::all().filter(|case| case.name.contains(filter)).collect();
    if cases.is_empty() {
        return Err(format!(
            "no case has `{filter}` in its name; `cargo run -p iowhy-cases -- list` names them"
        ));
    }
    println!(
        "gain = time of the slow variant / time of the repaired one; measured: median of {rounds} rounds\n"
    );
    println!("{HEADER}");
    let mut counts = Counts::default();
    for case in cases {
        match judge(case, &dir, &binaries, rounds) {
            Ok(row) => {
                counts.add(&row);
                println!("{}", row.line());
            }
            Err(Skip::Lacking(reason)) => {
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

/// One case: the slow variant watched, the repaired one watched, then both unwatched in interleaved rounds.
fn judge(case: &'static Case, dir: &Path, binaries: &Binaries, rounds: usize) -> Result<Row, Skip> {
    let mut stage = Stage::set(case, dir, &binaries.cases)?;
    let failed = |words: String| Skip::Problem(iowhy_core::problem::Problem::failed(words));
    let mut row =
        Row { case, slow: Vec::new(), repaired: Vec::new(), noise: 0.0, measured: None, same_output: true };
    (row.slow, row.noise) = quietest(&mut stage, case, Variant::Slow, binaries).map_err(failed)?;
    if case.cause.is_none() {
        return Ok(row);
    }
    let (repaired_names, noise) = quietest(&mut stage, case, Variant::Repaired, binaries).map_err(failed)?;
    row.repaired = repaired_names;
    row.noise = row.noise.max(noise);
    let (mut slow, mut repaired) = (Vec::new(), Vec::new());
    let mut rng = Rng::new(SEED);
    let mut order = [Variant::Slow, Variant::Repaired];
    for _ in 0..rounds {
        rng.shuffle(&mut order);
        let mut said = Vec::new();
        for variant in order {
            let (seconds, output) = timed(&mut stage, variant).map_err(failed)?;
            said.push(output);
            match variant {
                Variant::Slow => slow.push(seconds),
                Variant::Repaired => repaired.push(seconds),
            }
        }
        row.same_output &= said.windows(2).all(|pair| pair[0] == pair[1]);
    }
    row.measured = stats::paired_ratio(&slow, &repaired, SEED);
    Ok(row)
}

/// One finding of a record.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    id: String,
    /// Part of the wall time.
    share: f64,
    /// Low end, most likely value, high end.
    gain: Option<[f64; 3]>,
}

/// Watches a variant until a run is quiet, a few times at most. Returns the findings of the quietest run without the
/// noise that is the machine's and not the case's, and the share of that noise.
fn quietest(
    stage: &mut Stage,
    case: &Case,
    variant: Variant,
    binaries: &Binaries,
) -> Outcome<(Vec<Named>, f64)> {
    let mut best = without_noise(case, watched(stage, variant, binaries)?);
    for _ in 1..ATTEMPTS {
        if best.1 < MUCH_NOISE {
            break;
        }
        let next = without_noise(case, watched(stage, variant, binaries)?);
        if next.1 < best.1 {
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

/// Runs a variant under watch and returns its findings in the order of the record.
fn watched(stage: &mut Stage, variant: Variant, binaries: &Binaries) -> Outcome<Vec<Named>> {
    stage.before(variant).map_err(|p| p.to_string())?;
    let record = stage.dir().join("watched.json");
    // A record that an earlier run left must not be taken for this one's.
    let _ = std::fs::remove_file(&record);
    let output = Command::new(&binaries.iowhy)
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
    findings(&json)
}

/// The findings of a record.
fn findings(json: &Value) -> Outcome<Vec<Named>> {
    let list = json["findings"].as_array().ok_or("the record has no findings")?;
    list.iter()
        .map(|finding| {
            let id = finding["id"].as_str().ok_or("a finding has no id")?.to_owned();
            let gain = &finding["gain"];
            let numbers = [gain["low"].as_f64(), gain["predicted"].as_f64(), gain["high"].as_f64()];
            let gain = if let [Some(low), Some(predicted), Some(high)] = numbers {
                Some([low, predicted, high])
            } else {
                None
            };
            Ok(Named { id, share: finding["share"].as_f64().unwrap_or(0.0), gain })
        })
        .collect()
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

    /// The prediction of the cause, or of the name that was taken for it.
    fn predicted(&self) -> Option<[f64; 3]> {
        let cause = self.case.cause?.id();
        let named = self.slow.iter().find(|named| named.id == cause);
        named.or(self.slow.first().filter(|_| self.first_is_right()))?.gain
    }

    /// Whether the two intervals meet.
    fn inside(&self) -> Option<bool> {
        let ([low, _, high], measured) = (self.predicted()?, self.measured.as_ref()?);
        Some(measured.low <= high && measured.high >= low)
    }

    /// Further causes that were not named.
    fn missed(&self) -> Vec<&'static str> {
        let named = |id: &str| self.slow.iter().any(|n| n.id == id);
        self.case.also.iter().map(|id| id.id()).filter(|id| !named(id)).collect()
    }

    /// Causes of the slow variant that the repaired one is still said to have.
    fn still_named(&self) -> Vec<&'static str> {
        let named = |id: &str| self.repaired.iter().any(|n| n.id == id);
        self.case.cause.iter().chain(self.case.also).map(|id| id.id()).filter(|id| named(id)).collect()
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
        let interval = |[low, value, high]: [f64; 3]| format!("{value:.2} [{low:.2}, {high:.2}]");
        let predicted = self.predicted().map_or("-".to_owned(), interval);
        let measured = self.measured.as_ref().map_or("-".to_owned(), |e| interval([e.low, e.value, e.high]));
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

/// How many of what.
#[derive(Default)]
struct Counts {
    guilty: usize,
    first_right: usize,
    predicted: usize,
    inside: usize,
    still_named: usize,
    missed: usize,
    innocent: usize,
    innocent_right: usize,
    wrong: usize,
    /// Of the wrong ones, those whose runs others disturbed.
    wrong_disturbed: usize,
    skipped: usize,
    failed: usize,
}

impl Counts {
    fn add(&mut self, row: &Row) {
        let right = row.first_is_right();
        let clean = row.still_named().is_empty();
        if row.case.cause.is_some() {
            self.guilty += 1;
            self.first_right += usize::from(right);
            self.still_named += usize::from(!clean);
            self.missed += row.missed().len();
            self.predicted += usize::from(row.inside().is_some());
            self.inside += usize::from(row.inside() == Some(true));
        } else {
            self.innocent += 1;
            self.innocent_right += usize::from(right);
        }
        let wrong = !right || !clean;
        self.wrong += usize::from(wrong);
        self.wrong_disturbed += usize::from(wrong && row.noise >= MUCH_NOISE);
    }

    fn sentence(&self) -> String {
        format!(
            "causes named first: {} of {}; second causes missed: {}; repaired still blamed: {}\n\
             measured gain meets the predicted interval: {} of {}\n\
             innocent left in peace: {} of {}\n\
             wrong in any way: {}, of which on a busy machine: {}\n\
             skipped: {}; failed: {}",
            self.first_right,
            self.guilty,
            self.missed,
            self.still_named,
            self.inside,
            self.predicted,
            self.innocent_right,
            self.innocent,
            self.wrong,
            self.wrong_disturbed,
            self.skipped,
            self.failed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, slow: &[&str], repaired: &[&str]) -> Row {
        let named = |ids: &[&str]| {
            ids.iter()
                .map(|id| Named { id: (*id).to_owned(), share: 0.5, gain: Some([2.0, 3.0, 4.0]) })
                .collect()
        };
        let measured = stats::paired_ratio(&[3.5, 3.6, 3.7], &[1.0, 1.0, 1.0], SEED);
        let case = catalogue::find(name).expect("a case of the catalogue");
        Row { case, slow: named(slow), repaired: named(repaired), noise: 0.0, measured, same_output: true }
    }

    #[test]
    fn options_are_read() {
        assert_eq!(options(&[]), Some(("", 5)));
        assert_eq!(options(&["sync", "--rounds", "7"]), Some(("sync", 7)));
        for bad in [&["--rounds", "2"][..], &["--rounds"], &["a", "b"], &["--what"]] {
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
        outside.slow[0].gain = Some([5.0, 6.0, 7.0]);
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

    #[test]
    fn findings_are_read_from_a_record() {
        let json = serde_json::json!({"findings": [
            {"id": "sync-per-write", "share": 0.6, "gain": {"low": 1.5, "predicted": 2.0, "high": 3.0}},
            {"id": "healthy", "gain": null},
        ]});
        let read = findings(&json).expect("readable");
        assert_eq!(
            read[0],
            Named { id: "sync-per-write".to_owned(), share: 0.6, gain: Some([1.5, 2.0, 3.0]) }
        );
        assert_eq!(read[1].gain, None);
        assert!(findings(&serde_json::json!({})).is_err());
    }
}
