//! Puts the diagnosis to the test on programs whose cause is known: is it named first, does the repair gain what was
//! predicted, are the repaired and the innocent left in peace? Prints; asserts nothing, because a shared machine proves
//! nothing by one number.
//!
//! Records and times are kept under target/cases/records, so that a changed rule can be judged again on the same runs
//! (`--again`) instead of on new ones.

mod account;
mod counts;
mod page;
mod proof;
mod run;
mod sizes;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use iowhy::analyzer::Analyzer;
use iowhy::record::prove::Proof;
use iowhy_cases::others::{self, Others};
use iowhy_cases::{Case, Skip, Stage, Variant, catalogue};
use iowhy_core::estimate::Estimate;
use iowhy_core::finding::{Finding, FindingId, Gain, Prediction};
use iowhy_core::profile::Profile;
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use serde::{Deserialize, Serialize};

use self::counts::Counts;
use self::run::{Watched, timed, watched};

const SEED: u64 = 1;
const USAGE: &str = "usage: cargo xtask bench-findings [FILTER] [--rounds N] [--again] [--account] [--prove] [--page] [--fresh|--seen|--packaged], N at least 3; \
                     FILTER is part of a name; --again judges the runs that are kept by the rules of today; --account shows \
                     where the time of the slow variant went; --prove replays the slow variant with its first finding \
                     repaired, beside what was foretold and what the really repaired program gains; --page writes the figures \
                     into README.md and docs/accuracy.md; --fresh takes the programs of people who have not read \
                     the rules (cases/fresh) instead, --seen those that were such once and have been looked at since (cases/seen), \
                     --packaged programs of Debian's packages (cases/packaged)";

/// A row says so where others on this machine cost a watched program this part of its time. The run is judged all the same.
const MUCH_NOISE: f64 = 0.15;
/// So often the slow variant is watched. Every run is judged: none is chosen, and no finding is struck from its list.
const WATCHED: usize = 3;

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
                && let Err(problem) =
                    page::write(root, &counts, options.others, &kept_origin(root, options.others))
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
    /// Programs of others, instead of the catalogue's.
    others: Option<Others>,
}

fn options<'a>(arguments: &[&'a str]) -> Option<Options<'a>> {
    let mut options = Options {
        filter: "",
        rounds: 5,
        again: false,
        account: false,
        prove: false,
        page: false,
        others: None,
    };
    let mut rest = arguments.iter();
    while let Some(&word) = rest.next() {
        match word {
            "--rounds" => options.rounds = rest.next()?.parse().ok().filter(|n| *n >= 3)?,
            "--again" => options.again = true,
            "--account" => options.account = true,
            "--prove" => options.prove = true,
            "--page" => options.page = true,
            "--fresh" => options.others = Some(Others::Fresh),
            "--seen" => options.others = Some(Others::Seen),
            "--packaged" => options.others = Some(Others::Packaged),
            _ if word.starts_with('-') || !options.filter.is_empty() => return None,
            _ => options.filter = word,
        }
    }
    // The figures of the pages are those of all programs, and none of programs that were evidence once.
    let whole = options.filter.is_empty() && options.others != Some(Others::Seen);
    (!options.page || whole).then_some(options)
}

/// Folder of the programs' files and of the runs that are kept.
fn cases_dir(root: &Path, others: Option<Others>) -> PathBuf {
    crate::target(root).join("cases").join(others.map_or("", Others::folder))
}

/// Where the kept runs come from.
fn kept_origin(root: &Path, others: Option<Others>) -> String {
    let path = cases_dir(root, others).join("records").join(ORIGIN);
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
    let dir = cases_dir(root, options.others);
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
    let mut cases: Vec<&'static Case> = match options.others {
        Some(others) => others::all(others).map_err(|p| p.to_string())?,
        None => catalogue::all().collect(),
    };
    cases.retain(|case| case.name.contains(filter));
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
        let runs = if again { Runs::kept(&kept, case) } else { Runs::made(case, &dir, &binaries, options) };
        if let (false, Ok(runs)) = (again, &runs) {
            runs.keep(&kept, case)?;
        }
        match runs.and_then(|runs| Ok((runs.judge(case, &meaning)?, runs))) {
            Ok((row, runs)) => {
                counts.add(&row);
                println!("{}{}", row.line(), if prove { row.proven() } else { String::new() });
                if account {
                    for run in &runs.slow {
                        print!("{}", account::of_run("slow", &run.profile, &meaning));
                    }
                    if let Some(repaired) = &runs.repaired {
                        print!("{}", account::of_run("repaired", repaired, &meaning));
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
    /// Each watched run of the slow variant, and what was calibrated right after it.
    slow: Vec<Watched>,
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
        options: Options<'_>,
    ) -> Result<Runs, Skip> {
        let Options { rounds, prove, others, .. } = options;
        // Other authors choose the names of their files.
        let own = dir.join(case.name);
        let dir = if others.is_some() { &own } else { dir };
        let mut stage = Stage::new(case, dir, &binaries.cases)?;
        // Replays of the case before may have removed many files of theirs.
        let of_files =
            case.is_right(FindingId::ManySmallFiles) || case.also.contains(&FindingId::ManySmallFiles);
        if prove && of_files {
            std::thread::sleep(REMOVED_LONG_AGO);
        }
        let slow = (0..WATCHED).map(|_| watched(&mut stage, Variant::Slow, binaries));
        let slow = slow.collect::<Outcome<Vec<Watched>>>().map_err(failed)?;
        let mut runs = Runs {
            slow,
            repaired: None,
            slow_s: Vec::new(),
            repaired_s: Vec::new(),
            same_output: true,
            proof: None,
        };
        if case.cause.is_some() {
            runs.repaired = Some(watched(&mut stage, Variant::Repaired, binaries).map_err(failed)?.profile);
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
        let of_run =
            |run: &Watched| named(&run.profile, &sizes::as_repaired(case, &run.predictions), meaning);
        let slow: Vec<Vec<Named>> = self.slow.iter().map(of_run).collect();
        let repaired = self.repaired.as_ref().map_or(Vec::new(), |profile| named(profile, &[], meaning));
        let noise = slow.iter().chain([&repaired]).map(|run| noise(case, run)).fold(0.0, f64::max);
        let measured = stats::paired_ratio(&self.slow_s, &self.repaired_s, SEED);
        let proof = self.proof.clone();
        let not_predicted = self.slow.iter().flat_map(|run| &run.not_predicted);
        let of_cause = not_predicted.filter(|(id, _)| case.is_right(*id)).map(|(_, why)| why.clone()).next();
        let same_output = self.same_output;
        Ok(Row { case, slow, repaired, noise, measured, same_output, proof, not_predicted: of_cause })
    }
}

/// The findings of a profile, with what was calibrated.
fn named(profile: &Profile, predictions: &[(FindingId, Prediction)], meaning: &Analyzer) -> Vec<Named> {
    let findings = meaning.predicted(profile, None, meaning.explain(profile, None), predictions).findings;
    let one = |finding: &Finding| Named {
        id: finding.id.id().to_owned(),
        share: finding.share,
        gain: finding.gain,
        at_most: finding.gain_rest_unchanged,
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
    /// Its bound.
    at_most: Option<f64>,
}

/// Part of the time that others on this machine cost, unless that is what the case is about.
fn noise(case: &Case, findings: &[Named]) -> f64 {
    let noise = FindingId::NoisyNeighbour;
    if case.is_right(noise) || case.also.contains(&noise) {
        return 0.0;
    }
    findings.iter().filter(|named| named.id == noise.id()).map(|named| named.share).sum()
}

const HEADER: &str = "case                       cause                named first                     rank  \
                      predicted gain         measured gain          inside   repaired";

/// What became of one case.
struct Row {
    case: &'static Case,
    /// What was said of each watched run of the slow variant.
    slow: Vec<Vec<Named>>,
    repaired: Vec<Named>,
    /// Part of the wall time of the watched runs that others on this machine cost, at most.
    noise: f64,
    measured: Option<Estimate>,
    same_output: bool,
    proof: Option<Proof>,
    /// Why a run has no prediction of the cause.
    not_predicted: Option<String>,
}

impl Row {
    /// Whether the first finding of a run is right.
    fn first_is_right(&self, run: &[Named]) -> bool {
        let id = |first: &Named| FindingId::ALL.iter().find(|f| f.id() == first.id);
        run.first().and_then(id).is_some_and(|&id| self.case.is_right(id))
    }

    /// In how many runs the first finding is right.
    fn right(&self) -> usize {
        self.slow.iter().filter(|run| self.first_is_right(run)).count()
    }

    /// Where the cause stands, from 1, in the run where it stands last; none where a run lacks it.
    fn rank(&self) -> Option<usize> {
        let cause = self.case.cause?.id();
        let ranks = self.slow.iter().map(|run| run.iter().position(|n| n.id == cause).map(|i| i + 1));
        ranks.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// The prediction of the cause in a run, or of the name that was taken for it. Where the repair takes several causes away,
    /// that of all of them: what they save adds up.
    fn predicted(&self, run: &[Named]) -> Option<Gain> {
        let cause = self.case.cause?.id();
        if !self.case.also.is_empty() {
            let of_case = |id: &str| id == cause || self.case.also.iter().any(|also| also.id() == id);
            // Of all that are named, or there is no prediction for all.
            let gains = run.iter().filter(|n| of_case(&n.id)).map(|n| n.gain);
            let gains = gains.collect::<Option<Vec<Gain>>>()?;
            let left =
                |of: fn(&Gain) -> f64| 1.0 - gains.iter().map(|gain| 1.0 - 1.0 / of(gain)).sum::<f64>();
            let all = Gain::from_remaining(left(|g| g.predicted), left(|g| g.high), left(|g| g.low));
            return (!gains.is_empty()).then_some(all);
        }
        self.cause_in(run)?.gain
    }

    /// The cause in a run, or the name that was taken for it.
    fn cause_in<'a>(&self, run: &'a [Named]) -> Option<&'a Named> {
        let cause = self.case.cause?.id();
        run.iter().find(|named| named.id == cause).or(run.first().filter(|_| self.first_is_right(run)))
    }

    /// The predictions of all runs.
    fn calibrated(&self) -> impl Iterator<Item = Gain> {
        self.slow.iter().filter_map(|run| self.predicted(run))
    }

    /// Whether the measured gain is below each bound of a single cause.
    fn bounds(&self) -> impl Iterator<Item = bool> {
        let alone = self.slow.iter().filter(|_| self.case.also.is_empty());
        alone.filter_map(|run| Some(self.measured.as_ref()?.low <= self.cause_in(run)?.at_most?))
    }

    /// Whether the interval of a prediction and that of the measured gain meet.
    fn inside(&self, predicted: &Gain) -> Option<bool> {
        self.measured.as_ref().map(|measured| predicted.meets(measured.low, measured.high))
    }

    /// Further causes that were not named, over all runs.
    fn missed(&self) -> Vec<&'static str> {
        let lacks = |run: &[Named], id: &FindingId| !run.iter().any(|named| named.id == id.id());
        let of_run =
            |run: &Vec<Named>| self.case.also.iter().filter(|id| lacks(run, id)).map(|id| id.id()).collect();
        self.slow.iter().flat_map(|run| -> Vec<_> { of_run(run) }).collect()
    }

    /// Causes of the slow variant that the repaired one is still said to have. A device that is asked for less does all it
    /// can all the same, only sooner.
    fn still_named(&self) -> Vec<&'static str> {
        let named = |id: &str| self.repaired.iter().any(|n| n.id == id);
        let causes =
            self.case.cause.iter().chain(self.case.also).filter(|id| **id != FindingId::DeviceSaturated);
        causes.map(|id| id.id()).filter(|id| named(id)).collect()
    }

    /// What the runs named first: the wrong names, or the name.
    fn named_first(&self) -> String {
        let first = |run: &[Named]| run.first().map_or("nothing".to_owned(), |named| named.id.clone());
        let wrong: Vec<_> =
            self.slow.iter().filter(|run| !self.first_is_right(run)).map(|run| first(run)).collect();
        let of = format!("{} of {}", self.right(), self.slow.len());
        match (wrong.is_empty(), self.slow.first().map(|run| first(run))) {
            (false, _) => format!("{of}, WRONG: {}", wrong.join(", ")),
            (true, Some(name)) if self.case.cause.is_none_or(|cause| cause.id() != name) => {
                format!("{of}, {name}")
            }
            (true, _) => of,
        }
    }

    fn line(&self) -> String {
        let cause = self.case.cause.map_or("-", |id| id.id());
        let mut line = format!("{:26} {cause:20} {:31}", self.case.name, self.named_first());
        let noise = if self.noise < MUCH_NOISE {
            String::new()
        } else {
            format!("; BUSY MACHINE: {:.0} % of the time went to others", 100.0 * self.noise)
        };
        if self.case.cause.is_none() {
            return format!("{}{noise}", line.trim_end());
        }
        let rank = self.rank().map_or("-".to_owned(), |rank| rank.to_string());
        let predicted = self.slow.first().and_then(|run| self.predicted(run));
        let predicted = predicted.map_or("-".to_owned(), foretold);
        let interval = |e: &Estimate| format!("{:.2} [{:.2}, {:.2}]", e.value, e.low, e.high);
        let measured = self.measured.as_ref().map_or("-".to_owned(), interval);
        let judged: Vec<bool> = self.calibrated().filter_map(|gain| self.inside(&gain)).collect();
        let inside = match judged.iter().filter(|inside| **inside).count() {
            _ if judged.is_empty() => "-".to_owned(),
            count => format!("{count} of {}", judged.len()),
        };
        let still = match self.still_named().as_slice() {
            [] => "ok".to_owned(),
            names => format!("STILL NAMED: {}", names.join(", ")),
        };
        // Writing to a string does not fail.
        let _ = write!(line, " {rank:5} {predicted:22} {measured:22} {inside:8} {still}");
        if !self.missed().is_empty() {
            let _ = write!(line, "; NOT NAMED: {}", self.missed().join(", "));
        }
        if !self.same_output {
            line.push_str("; THE VARIANTS PRINT DIFFERENT RESULTS");
        }
        line.push_str(&noise);
        if let Some(why) = &self.not_predicted {
            let _ = write!(line, "; not predicted: {why}");
        }
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
                .map(|id| Named {
                    id: (*id).to_owned(),
                    share: 0.5,
                    gain: Some(gain(2.0, 4.0)),
                    at_most: Some(5.0),
                })
                .collect()
        };
        let measured = stats::paired_ratio(&[3.5, 3.6, 3.7], &[1.0, 1.0, 1.0], SEED);
        let case = catalogue::find(name).expect("a case of the catalogue");
        Row {
            case,
            slow: vec![named(slow)],
            repaired: named(repaired),
            noise: 0.0,
            measured,
            same_output: true,
            proof: None,
            not_predicted: None,
        }
    }

    #[test]
    fn options_are_read() {
        assert_eq!(
            options(&[]),
            Some(Options {
                filter: "",
                rounds: 5,
                again: false,
                account: false,
                prove: false,
                page: false,
                others: None
            })
        );
        let all = options(&["sync", "--again", "--rounds", "7", "--prove", "--fresh"]);
        assert_eq!(
            all,
            Some(Options {
                filter: "sync",
                rounds: 7,
                again: true,
                account: false,
                prove: true,
                page: false,
                others: Some(Others::Fresh)
            })
        );
        for bad in [
            &["--rounds", "2"][..],
            &["--rounds"],
            &["a", "b"],
            &["--what"],
            &["sync", "--page"],
            &["--seen", "--page"],
        ] {
            assert_eq!(options(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_right_diagnosis_counts_as_right() {
        let right = row("sync-rust", &["sync-per-write", "small-requests"], &["healthy"]);
        assert!(right.right() == 1 && right.still_named().is_empty());
        assert_eq!((right.rank(), right.inside(&gain(2.0, 4.0))), (Some(1), Some(true)));
        let mut counts = Counts::default();
        counts.add(&right);
        assert_eq!((counts.first_right, counts.inside, counts.wrong), (1, 1, 0));
        let mut low = right;
        low.slow[0][0].at_most = Some(3.0);
        counts.add(&low);
        assert_eq!((counts.bounds, counts.bounds_hold), (2, 1), "3.6 was measured");
    }

    #[test]
    fn a_wrong_diagnosis_counts_as_wrong() {
        let second = row("sync-rust", &["small-requests", "sync-per-write"], &["healthy"]);
        assert_eq!((second.right(), second.rank()), (0, Some(2)));
        let nothing = row("sync-rust", &[], &[]);
        assert!(nothing.right() == 0 && nothing.calibrated().next().is_none());
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
        let row = row("sync-rust", &["sync-per-write"], &["healthy"]);
        assert_eq!(row.inside(&gain(5.0, 7.0)), Some(false));
    }

    #[test]
    fn every_run_is_judged_with_all_that_it_named() {
        let mut twice = row("sync-rust", &["sync-per-write"], &["healthy"]);
        twice.slow.push(row("sync-rust", &["noisy-neighbour", "sync-per-write"], &[]).slow.remove(0));
        assert_eq!((twice.right(), twice.rank()), (1, Some(2)));
        assert_eq!(twice.named_first(), "1 of 2, WRONG: noisy-neighbour");
        let mut counts = Counts::default();
        counts.add(&twice);
        assert_eq!((counts.first_right, counts.guilty, counts.inside, counts.predicted), (1, 2, 2, 2));
        let noisy = catalogue::find("noisy-cpu").expect("a case");
        assert_eq!((noise(twice.case, &twice.slow[1]), noise(noisy, &twice.slow[1])), (0.5, 0.0));
    }
}
