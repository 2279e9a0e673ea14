//! `iowhy tree`: many small files created, read and removed by parallel threads, in a scratch tree or an existing one
//! (read-only). A scratch tree is made anew in each round where phases change it; a kept one is made once and read in every
//! round. The walk and the timing are in `iowhy_probe::tree`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iowhy_core::cell::StateCheck;
use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;
use iowhy_probe::target::{Needs, Target};
use iowhy_probe::tree::{self, Files, Order, Pass, Phase, Shape, State, Tree};
use iowhy_probe::{environment, interrupt};
use iowhy_view::document::Detail;

use crate::cli::tree::MAX_FILES;
use crate::cli::{OutputArgs, TreeArgs};
use crate::ending::{self, Ending};
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::lists::{Listed, RemovalFound};
use crate::record::tree::{PhaseRecord, Seen, SettledRecord, TreeFacts, TreeRecord};
use crate::record::{Kind, SCHEMA};
use crate::run_as;
use crate::screen;
use crate::shell;
use crate::targets;

/// Rounds at least and at most: fewer have no interval.
const ROUNDS: (usize, usize) = (3, 12);
const DEFAULT_FILES: u64 = 10_000;
const DEFAULT_DIRECTORIES: u64 = 100;

/// Runs the command.
///
/// # Errors
/// Usage errors and refusals; what the system refuses. What was made is removed in every case.
pub fn run(args: &TreeArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    if let Some(root) = &args.remove {
        return remove(root, options);
    }
    let plan = Plan::from_args(args)?;
    let outputs = Outputs::open(options)?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());
    // Under sudo a tree that is made belongs to the caller; one that is found is read with all rights.
    let _files = match plan.origin {
        Origin::Found(_) => None,
        Origin::Made(_) | Origin::Kept(_) => Some(run_as::files()?),
    };
    let mut bench = Bench::prepare(&plan, &progress)?;
    outputs.spare(&[&bench.device])?;
    let rounds = bench.rounds(&plan, &progress);
    drop(progress);
    let record = bench.record(&plan, rounds?);
    outputs.warn(&record.warnings);
    if record.rounds == 0 {
        return Err(Problem::failed("interrupted before the first round was over; what was made is removed"));
    }
    let interrupted = record.interrupted.then(ending::interrupted);
    let unmet = record.phases.iter().find(|phase| phase.state_verified == Some(false)).map(|phase| {
        let state = phase.state.as_deref().unwrap_or("asked for");
        Problem::failed(format!("phase `{}`: the cache was not {state} before every round", phase.phase))
            .hint("other processes may read these files or fill the memory; run it again when they are idle")
    });
    let ending = Ending::from_reasons(interrupted.into_iter().chain(unmet));
    outputs
        .finish(&screen::text(&screen::tree::chapter(&record, Detail::Screen), output::width()), &record)?;
    Ok(ending)
}

fn remove(root: &Path, options: &OutputArgs) -> Result<Ending, Problem> {
    interrupt::install();
    let outputs = Outputs::open(options)?;
    let progress = Progress::new(outputs.quiet());
    let _files = run_as::files()?;
    let gone =
        tree::remove(root, &mut |gone| progress.at(0.5, Duration::ZERO, &format!("{gone} files removed")))?;
    drop(progress);
    let found = RemovalFound { removed_files: gone, path: root.display().to_string() };
    let record = Listed::new(Kind::Removal, typed(), found);
    outputs.finish(&format!("removed {gone} files and `{}`\n", root.display()), &record)?;
    Ok(Ending::done())
}

fn typed() -> String {
    shell::line(std::env::args_os())
}

/// Where the files come from.
enum Origin {
    /// Made below this directory, and removed.
    Made(PathBuf),
    /// Made in this directory, and left there.
    Kept(PathBuf),
    /// There already; only read.
    Found(PathBuf),
}

/// What is to be done, checked.
struct Plan {
    origin: Origin,
    shape: Shape,
    /// Files of a found tree at most.
    most: u64,
    readers: usize,
    each: Option<u64>,
    order: Order,
    phases: Vec<Phase>,
    state: State,
    budget: Duration,
    seed: u64,
}

impl Plan {
    fn from_args(args: &TreeArgs) -> Result<Plan, Problem> {
        let origin = match (&args.from, &args.keep) {
            (Some(from), _) => Origin::Found(from.clone()),
            (None, Some(keep)) => Origin::Kept(keep.clone()),
            (None, None) => Origin::Made(args.target.clone().unwrap_or_else(|| PathBuf::from("."))),
        };
        let found = matches!(origin, Origin::Found(_));
        let files = args.files.unwrap_or(if found { MAX_FILES } else { DEFAULT_FILES });
        let directories = args.dirs.unwrap_or_else(|| DEFAULT_DIRECTORIES.min(files));
        within("--dirs", directories, 1, files)?;
        if let Some(each) = args.files_per_thread {
            within("--files-per-thread", each, 1, files / args.threads)?;
        }
        let phases = phases(args, &origin)?;
        Ok(Plan {
            shape: Shape { files, directories, sizes: args.sizes.clone() },
            most: files,
            readers: usize::try_from(args.threads).unwrap_or(1),
            each: args.files_per_thread,
            order: args.order,
            state: args.state,
            phases,
            budget: args.time,
            seed: args.seed,
            origin,
        })
    }

    /// Whether every round makes the tree anew.
    fn lives_each_round(&self) -> bool {
        let changes = |phase: &Phase| matches!(phase, Phase::Create | Phase::Sync | Phase::Delete);
        matches!(self.origin, Origin::Made(_)) && self.phases.iter().any(changes)
    }
}

fn within(option: &str, value: u64, least: u64, most: u64) -> Result<(), Problem> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Problem::refused(format!("`{option} {value}` is not from {least} to {most}"))
        .hint(format!("for example `{option} {}`", most.min(least.max(10)))))
}

/// The phases in the order of a file's life, whatever the order in which they were given.
fn phases(args: &TreeArgs, origin: &Origin) -> Result<Vec<Phase>, Problem> {
    let allowed = |phase: Phase| match origin {
        Origin::Made(_) => true,
        Origin::Kept(_) | Origin::Found(_) => phase.only_reads(),
    };
    let Some(given) = &args.phases else {
        return Ok(Phase::ALL.into_iter().filter(|phase| allowed(*phase)).collect());
    };
    if let Some(phase) = given.iter().find(|phase| !allowed(**phase)) {
        let why = match origin {
            Origin::Found(_) => "a tree that is there is only read",
            _ => "a tree that is kept is made once, and then only read",
        };
        return Err(Problem::refused(format!("`--phases {}`: {why}", phase.id())).hint(
            "leave out `--from` or `--keep`, and a tree is made for the test; or use stat, list, read",
        ));
    }
    Ok(Phase::ALL.into_iter().filter(|phase| given.contains(phase)).collect())
}

/// The tree, the device under it, and the files as they are walked.
struct Bench {
    tree: Option<Tree>,
    files: Files,
    /// What facts and counters of the device are asked of.
    device: Target,
}

impl Bench {
    fn prepare(plan: &Plan, progress: &Progress) -> Result<Bench, Problem> {
        let scratch = Needs { scratch_bytes: 1 << 20, write: false, destroy_data: None };
        match &plan.origin {
            Origin::Found(root) => {
                let files = Files::walk(root, plan.most, &mut |found| {
                    progress.at(0.0, Duration::ZERO, &format!("listing: {found} files"));
                })?;
                let device = match files.largest() {
                    Some(file) => targets::resolve(
                        &file.to_string_lossy(),
                        &Needs { scratch_bytes: 0, ..scratch },
                        progress,
                    )?,
                    None => {
                        return Err(Problem::refused(format!(
                            "there is no file with data in `{}`",
                            root.display()
                        ))
                        .hint("name a directory with files"));
                    }
                };
                Ok(Bench { tree: None, files, device })
            }
            Origin::Kept(root) => {
                let mut tree = Tree::lay_out(Path::new("."), Some(root), plan.shape.clone())?;
                let begun = Instant::now();
                tree.fill(&mut |done, all| {
                    let share = done as f64 / all.max(1) as f64;
                    progress.at(
                        share,
                        left(begun, share),
                        "making the tree, which stays: Ctrl-C, and it goes on next time",
                    );
                })?;
                let device = targets::resolve(&root.to_string_lossy(), &scratch, progress)?;
                let mut bench = Bench { files: tree.files(), tree: Some(tree), device };
                bench.found(plan)?;
                Ok(bench)
            }
            Origin::Made(parent) => {
                let device = targets::resolve(&parent.to_string_lossy(), &scratch, progress)?;
                if !parent.is_dir() {
                    return Err(Problem::refused(format!("`{}` is no directory", parent.display()))
                        .hint("name a directory to make the tree in, or `--from DIR` to read one"));
                }
                let tree = Tree::lay_out(parent, None, plan.shape.clone())?;
                Ok(Bench { files: tree.files(), tree: Some(tree), device })
            }
        }
    }

    /// Files by inode or as their directories list them are known only when they are there.
    fn found(&mut self, plan: &Plan) -> Result<(), Problem> {
        if let Some(tree) = self.tree.as_ref().filter(|_| plan.order != Order::Random) {
            self.files = tree.listed()?;
        }
        Ok(())
    }

    /// Rounds until the time is over; those that were finished, phase by phase.
    fn rounds(&mut self, plan: &Plan, progress: &Progress) -> Result<Vec<(Phase, Vec<Seen>)>, Problem> {
        let mut all: Vec<(Phase, Vec<Seen>)> = plan.phases.iter().map(|phase| (*phase, Vec::new())).collect();
        let begun = Instant::now();
        for round in 0..ROUNDS.1 {
            let spent = begun.elapsed();
            let next = spent + spent / (round as u32).max(1);
            if round >= ROUNDS.0 && next > plan.budget {
                break;
            }
            let from = (begun, round);
            match self.round(plan, round, &mut |share, doing| tell(progress, plan, from, share, doing))? {
                Some(seen) => {
                    for ((_, rounds), seen) in all.iter_mut().zip(seen) {
                        rounds.push(seen);
                    }
                }
                None => break,
            }
        }
        Ok(all)
    }

    /// One round. `None` when somebody asked us to stop: half a round is none.
    fn round(
        &mut self,
        plan: &Plan,
        round: usize,
        told: &mut dyn FnMut(f64, &str),
    ) -> Result<Option<Vec<Seen>>, Problem> {
        let mut seen = Vec::new();
        let (lives, own) = (plan.lives_each_round(), matches!(plan.origin, Origin::Made(_)));
        for (number, phase) in Phase::ALL.into_iter().enumerate() {
            let wanted = plan.phases.contains(&phase);
            // What is not asked for is still done where the others need it.
            let needed = match phase {
                Phase::Create | Phase::Sync => own && (lives || round == 0),
                Phase::Delete => lives,
                _ => false,
            };
            if !wanted && !needed {
                continue;
            }
            told(number as f64 / Phase::ALL.len() as f64, phase.id());
            let one = self.phase(plan, phase)?;
            if one.pass.interrupted {
                return Ok(None);
            }
            if wanted {
                seen.push(one);
            }
            match phase {
                Phase::Create => self.found(plan)?,
                Phase::Delete => {
                    self.files.set_moved(false);
                    if let Some(tree) = self.tree.as_ref().filter(|_| plan.order != Order::Random) {
                        self.files = tree.files();
                    }
                }
                _ => {}
            }
        }
        Ok(Some(seen))
    }

    fn phase(&mut self, plan: &Plan, phase: Phase) -> Result<Seen, Problem> {
        let lists = match phase {
            Phase::List => self.files.directory_lists(plan.readers),
            Phase::Stat | Phase::Read => self.files.lists(plan.readers, plan.each, plan.order, plan.seed),
            // All files are made, renamed and removed, whatever is read of them.
            _ => self.files.lists(plan.readers, None, plan.order, plan.seed),
        };
        let resident_before = match phase {
            Phase::Read => tree::set_state(&self.files, &lists, plan.state, &mut |_| {})?,
            _ => None,
        };
        let before = self.device.device_counters();
        let pass: Pass = tree::run(phase, &mut self.files, &lists, self.tree.as_ref(), &mut |_| {})?;
        let after = self.device.device_counters();
        let device_bytes = before.zip(after).map(|(before, after)| {
            let moved = after.since(&before);
            (moved.read_bytes, moved.write_bytes)
        });
        Ok(Seen { pass, resident_before, device_bytes })
    }

    fn record(&self, plan: &Plan, rounds: Vec<(Phase, Vec<Seen>)>) -> TreeRecord {
        let environment = environment::environment(&self.device);
        let (path, origin) = match &plan.origin {
            Origin::Made(path) => (path, "made"),
            Origin::Kept(path) => (path, "kept"),
            Origin::Found(path) => (path, "found"),
        };
        // A tree that was removed in the last round was as it was planned.
        let files = match &self.tree {
            Some(tree) => tree.files(),
            None => Files::default(),
        };
        let files = if self.tree.is_some() { &files } else { &self.files };
        let left_out = self.files.passed_over;
        let wanted = match plan.state {
            State::Cold => 0.0,
            State::Warm => 1.0,
        };
        let phases: Vec<PhaseRecord> = rounds
            .iter()
            .map(|(phase, seen)| {
                let state = (*phase == Phase::Read).then_some((plan.state.id(), wanted));
                PhaseRecord::new(*phase, state, StateCheck::TOLERANCE, seen, plan.seed)
            })
            .collect();
        let count = rounds.iter().map(|(_, seen)| seen.len() as u64).max().unwrap_or(0);
        let of = |wanted: Phase| rounds.iter().find(|(phase, _)| *phase == wanted).map(|(_, seen)| seen);
        let settled = of(Phase::Create)
            .zip(of(Phase::Sync))
            .and_then(|(create, sync)| SettledRecord::new(create, sync, plan.seed));
        TreeRecord {
            schema: SCHEMA,
            kind: Kind::SmallFiles,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: typed(),
            environment,
            tree: TreeFacts {
                path: path.display().to_string(),
                origin: origin.to_owned(),
                files: files.len(),
                directories: files.directories(),
                bytes: files.bytes(),
                size_bytes: files.quantiles(&[0.0, 0.5, 1.0]),
                made_now: self.tree.as_ref().map_or(0, Tree::made),
                not_regular: left_out.not_regular,
                forbidden: left_out.forbidden,
                other_file_system: left_out.other_file_system,
                cut: left_out.cut,
            },
            readers: plan.readers as u64,
            files_each: plan.each,
            order: plan.order.id().to_owned(),
            warnings: self.warnings(plan, &phases),
            rounds: count,
            interrupted: interrupt::requested(),
            seed: plan.seed,
            phases,
            settled,
        }
    }

    fn warnings(&self, plan: &Plan, phases: &[PhaseRecord]) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let left_out = self.files.passed_over;
        if left_out.forbidden > 0 {
            warnings.push(Warning::new(
                "forbidden",
                format!(
                    "{} files or directories may not be looked at: they are left out",
                    left_out.forbidden
                ),
            ));
        }
        if left_out.cut && matches!(plan.origin, Origin::Found(_)) {
            warnings.push(
                Warning::new(
                    "cut",
                    format!("there are more files: the first {} that were found are taken", plan.most),
                )
                .next("raise `--files`"),
            );
        }
        if let Some(read) = phases.iter().find(|phase| phase.state.is_some()) {
            match (plan.state, read.state_verified) {
                (_, Some(true)) | (State::Warm, None) => {}
                (State::Cold, None) => warnings
                    .push(Warning::new("state-not-seen", "whether the files were cold could not be seen")),
                (_, Some(false)) => warnings.push(
                    Warning::new(
                        "not-the-state",
                        format!("the files were not {} before every round", plan.state.id()),
                    )
                    .next(
                        "a file system in memory is always warm: `--state warm`, or name another directory",
                    ),
                ),
            }
        }
        warnings
    }
}

fn left(begun: Instant, share: f64) -> Duration {
    let spent = begun.elapsed().as_secs_f64();
    let left = if share > 0.0 { spent / share - spent } else { 0.0 };
    Duration::from_secs_f64(left.clamp(0.0, 1e9))
}

fn tell(progress: &Progress, plan: &Plan, (begun, round): (Instant, usize), share: f64, doing: &str) {
    let by_time = begun.elapsed().as_secs_f64() / plan.budget.as_secs_f64().max(1e-3);
    let by_rounds = (round as f64 + share) / ROUNDS.0 as f64;
    // It ends with the time, but not before the fewest rounds.
    let share = by_time.min(by_rounds).min(1.0);
    progress.at(share, left(begun, share), &format!("round {}: {doing}", round + 1));
}
