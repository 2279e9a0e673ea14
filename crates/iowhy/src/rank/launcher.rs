//! Launchers of parallel jobs, and the environment variables by which they number their processes.
//!
//! Pure: a function of an environment. Launchers nest (torchrun in a Slurm step, mpirun over Slurm's daemons, a pod of a job), and
//! the variables of the outer ones stay; the innermost one started this process and is believed. Two of one level cannot both have.

use std::ffi::OsString;

use iowhy_core::problem::Problem;

/// Looks a variable up.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// How near a launcher is to the process, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// Starts workers inside whatever else was started.
    Worker,
    /// Starts the processes of an MPI job.
    Process,
    /// Starts tasks or pods of an allocation, among them the daemons of other launchers.
    Allocation,
}

/// One launcher.
struct Launcher {
    level: Level,
    rank: &'static str,
    /// Number of ranks; the first that is set.
    ranks: &'static [&'static str],
    /// Names of the job; all that are set.
    job: &'static [&'static str],
    restarts: Option<&'static str>,
    /// Whether the variable for the rank is this launcher's here: `RANK` is an ordinary word, and Slurm numbers batch scripts, too.
    is_here: fn(Environment<'_>) -> bool,
}

/// Sources: pytorch.org/docs/stable/elastic/run; docs.open-mpi.org "Environment variables set for MPI applications"; the PMI
/// wire protocol (Flux RFC 13) and MPICH's Hydra; PMIx standard 4.1, "Environment variables"; Slurm's plugin mpi/cray_shasta and
/// flux-coral2's cray_pals for PALS; flux-core "flux-environment(7)"; srun(1) "Output environment variables";
/// kubernetes.io "Indexed Job for parallel processing".
const LAUNCHERS: [Launcher; 8] = [
    Launcher {
        level: Level::Worker,
        rank: "RANK",
        ranks: &["WORLD_SIZE"],
        job: &["TORCHELASTIC_RUN_ID"],
        restarts: Some("TORCHELASTIC_RESTART_COUNT"),
        is_here: |environment| environment("WORLD_SIZE").is_some(),
    },
    Launcher {
        level: Level::Process,
        rank: "OMPI_COMM_WORLD_RANK",
        ranks: &["OMPI_COMM_WORLD_SIZE"],
        job: &["PMIX_NAMESPACE"],
        restarts: None,
        is_here: |_| true,
    },
    Launcher {
        level: Level::Process,
        rank: "PMI_RANK",
        ranks: &["PMI_SIZE"],
        job: &["PMI_JOBID"],
        restarts: None,
        is_here: |_| true,
    },
    Launcher {
        level: Level::Process,
        rank: "PALS_RANKID",
        ranks: &[],
        job: &["PALS_APID"],
        restarts: None,
        is_here: |_| true,
    },
    Launcher {
        level: Level::Process,
        rank: "FLUX_TASK_RANK",
        ranks: &["FLUX_JOB_SIZE"],
        job: &["FLUX_JOB_ID"],
        restarts: None,
        is_here: |_| true,
    },
    Launcher {
        level: Level::Process,
        rank: "PMIX_RANK",
        ranks: &[],
        job: &["PMIX_NAMESPACE"],
        restarts: None,
        is_here: |_| true,
    },
    Launcher {
        level: Level::Allocation,
        rank: "SLURM_PROCID",
        // With --preserve-env the second is the allocation's number of tasks, not the step's.
        ranks: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        restarts: Some("SLURM_RESTART_COUNT"),
        is_here: in_slurm_step,
    },
    Launcher {
        level: Level::Allocation,
        rank: "JOB_COMPLETION_INDEX",
        ranks: &[],
        job: &[],
        restarts: None,
        is_here: |_| true,
    },
];

/// Whether the process is a task of srun: batch scripts and the shell of salloc have a number, too, and step ids that
/// slurm.h reserves.
fn in_slurm_step(environment: Environment<'_>) -> bool {
    const SLURM_MAX_NORMAL_STEP_ID: u64 = 0xffff_fff0;
    ["SLURM_STEP_ID", "SLURM_STEPID"]
        .into_iter()
        .find_map(|name| environment(name)?.to_str()?.parse::<u64>().ok())
        .is_some_and(|step| step <= SLURM_MAX_NORMAL_STEP_ID)
}

/// What the launchers say of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Its number.
    pub(crate) rank: u64,
    /// Processes of the job.
    pub(crate) ranks: Option<u64>,
    /// The variables that say so.
    pub(crate) believed: Vec<String>,
}

/// One launcher's word, with its level.
struct Word {
    level: Level,
    rank: (&'static str, u64),
    ranks: Option<(&'static str, u64)>,
}

/// The rank by the environment; `None` outside of a parallel job.
///
/// # Errors
/// A number that is none; launchers that contradict each other.
pub(crate) fn claim(environment: Environment<'_>) -> Result<Option<Claim>, Problem> {
    let mut words = Vec::new();
    for launcher in &LAUNCHERS {
        words.extend(word(launcher, environment)?);
    }
    let Some(level) = words.iter().map(|word| word.level).min() else { return Ok(None) };
    let (inner, outer): (Vec<Word>, Vec<Word>) = words.into_iter().partition(|word| word.level == level);
    let one = |numbers: Vec<(&'static str, u64)>| {
        let first = numbers.first().copied();
        match numbers.iter().find(|(_, number)| Some(*number) != first.map(|(_, number)| number)) {
            Some(other) => Err((first.unwrap_or(*other), *other)),
            None => Ok(first),
        }
    };
    let rank = one(inner.iter().map(|word| word.rank).collect()).map_err(two_ranks)?;
    let ranks = one(inner.iter().filter_map(|word| word.ranks).collect()).map_err(two_sizes)?;
    let Some((_, rank)) = rank else { return Ok(None) };
    if let Some((name, ranks)) = ranks {
        if rank >= ranks {
            return Err(beyond(inner[0].rank, (name, ranks)));
        }
        if let Some(other) = outer.iter().filter_map(|word| word.ranks).find(|(_, other)| *other > ranks) {
            return Err(two_sizes(((name, ranks), other)));
        }
    }
    let mut believed: Vec<String> = Vec::new();
    for word in &inner {
        believed.push(word.rank.0.to_owned());
        believed.extend(word.ranks.map(|(name, _)| name.to_owned()));
    }
    Ok(Some(Claim { rank, ranks: ranks.map(|(_, ranks)| ranks), believed }))
}

fn word(launcher: &Launcher, environment: Environment<'_>) -> Result<Option<Word>, Problem> {
    if !(launcher.is_here)(environment) {
        return Ok(None);
    }
    let Some(rank) = number(launcher.rank, environment)? else { return Ok(None) };
    let mut ranks = None;
    for name in launcher.ranks {
        if let Some(number) = number(name, environment)? {
            ranks = Some((*name, number));
            break;
        }
    }
    Ok(Some(Word { level: launcher.level, rank: (launcher.rank, rank), ranks }))
}

/// The number in a variable; an empty one counts as not set. Ranks are C's `int` in every launcher.
fn number(name: &str, environment: Environment<'_>) -> Result<Option<u64>, Problem> {
    let Some(value) = environment(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let parsed = value.to_str().and_then(|text| text.parse::<u64>().ok());
    match parsed.filter(|number| i32::try_from(*number).is_ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(Problem::refused(format!(
            "`{name}={}` is no number from 0 on, so the rank of this process is unknown",
            value.to_string_lossy()
        ))
        .hint(format!(
            "outside of a parallel job: `env -u {name} iowhy ...`; in one, name the rank: `--rank N --ranks M`"
        ))),
    }
}

fn two_ranks(((one, rank), (other, other_rank)): ((&str, u64), (&str, u64))) -> Problem {
    Problem::refused(format!(
        "this process has two ranks: {rank} by {one}, {other_rank} by {other}; its record would be of the wrong one"
    ))
    .hint(format!("unset the one that is left over: `env -u {other} iowhy ...`; or name the rank: `--rank N --ranks M`"))
}

fn two_sizes(((one, ranks), (other, other_ranks)): ((&str, u64), (&str, u64))) -> Problem {
    Problem::refused(format!(
        "this process is one of {ranks} by {one}, and one of {other_ranks} by {other}: several would have one rank"
    ))
    .hint(format!("unset the one that is left over: `env -u {one} iowhy ...`; or name the rank: `--rank N --ranks M`"))
}

fn beyond((rank_name, rank): (&str, u64), (name, ranks): (&str, u64)) -> Problem {
    Problem::refused(format!("rank {rank} ({rank_name}) of {ranks} ({name}): ranks count from 0"))
        .hint("name the rank and their number: `--rank N --ranks M`")
}

/// The job in the words of the innermost launcher that names it, and how often it was restarted. torchrun without `--rdzv-id`
/// calls every job `none`.
pub(crate) fn job(environment: Environment<'_>) -> (Option<String>, Option<u64>) {
    let text =
        |name: &str| environment(name)?.into_string().ok().filter(|text| !text.is_empty() && text != "none");
    let named = |launcher: &&Launcher| launcher.job.first().is_some_and(|name| text(name).is_some());
    let job = LAUNCHERS.iter().find(named).map(|launcher| {
        let all = launcher.job.iter().filter_map(|name| Some(format!("{name}={}", text(name)?)));
        all.collect::<Vec<_>>().join(" ")
    });
    let restarts = LAUNCHERS
        .iter()
        .filter_map(|launcher| text(launcher.restarts?)?.parse().ok())
        .reduce(|a: u64, b| a + b);
    (job, restarts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The environment that is written so: `NAME=value NAME=value`.
    fn look(text: &'static str) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            text.split(' ').find_map(|word| {
                let (key, value) = word.split_once('=')?;
                (key == name).then(|| value.into())
            })
        }
    }

    fn claimed(text: &'static str) -> Option<(u64, Option<u64>, String)> {
        let claim = claim(&look(text)).unwrap_or_else(|problem| panic!("{text}: {problem}"))?;
        Some((claim.rank, claim.ranks, claim.believed.join(" ")))
    }

    #[test]
    fn each_launcher_is_believed() {
        for (environment, rank, ranks, believed) in [
            (
                "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4",
                3,
                Some(4),
                "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE",
            ),
            ("PMI_RANK=0 PMI_SIZE=1", 0, Some(1), "PMI_RANK PMI_SIZE"),
            ("PALS_RANKID=5", 5, None, "PALS_RANKID"),
            ("PALS_RANKID=5 PMI_RANK=5 PMI_SIZE=8", 5, Some(8), "PMI_RANK PMI_SIZE PALS_RANKID"),
            ("FLUX_TASK_RANK=2 FLUX_JOB_SIZE=3", 2, Some(3), "FLUX_TASK_RANK FLUX_JOB_SIZE"),
            ("PMIX_RANK=7", 7, None, "PMIX_RANK"),
            ("RANK=1 WORLD_SIZE=2", 1, Some(2), "RANK WORLD_SIZE"),
            ("JOB_COMPLETION_INDEX=4", 4, None, "JOB_COMPLETION_INDEX"),
            ("SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2", 1, Some(2), "SLURM_PROCID SLURM_NTASKS"),
            (
                "SLURM_STEPID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=9",
                1,
                Some(2),
                "SLURM_PROCID SLURM_STEP_NUM_TASKS",
            ),
        ] {
            assert_eq!(claimed(environment), Some((rank, ranks, believed.to_owned())), "{environment}");
        }
    }

    #[test]
    fn what_is_no_rank_here_is_not_believed() {
        for environment in [
            "",
            "RANK=gold",
            "RANK=3",
            "PMI_RANK=",
            "PMI_SIZE=4",
            // A batch script, and the shell of salloc.
            "SLURM_PROCID=0 SLURM_NTASKS=4",
            "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=4294967291",
            "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=4294967290",
        ] {
            assert_eq!(claimed(environment), None, "{environment}");
        }
    }

    #[test]
    fn the_launcher_nearest_to_the_process_is_believed() {
        for (environment, rank, ranks) in [
            // mpirun starts its daemons by srun, one for each node.
            (
                "SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_SIZE=8",
                7,
                8,
            ),
            // torchrun as a task on each node, and in each pod.
            ("SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 RANK=9 WORLD_SIZE=16", 9, 16),
            ("JOB_COMPLETION_INDEX=1 RANK=12 WORLD_SIZE=16", 12, 16),
            // The rendezvous of torchrun numbers nodes in its own order.
            ("SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 RANK=0 WORLD_SIZE=2", 0, 2),
        ] {
            let (found, of, _) = claimed(environment).unwrap();
            assert_eq!((found, of), (rank, Some(ranks)), "{environment}");
        }
    }

    #[test]
    fn contradictions_and_what_is_no_number_are_refused_with_the_fix() {
        for (environment, says, fix) in [
            (
                "PMI_RANK=1 PMI_SIZE=4 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4",
                "2 by OMPI_COMM_WORLD_RANK, 1 by PMI_RANK",
                "env -u PMI_RANK",
            ),
            ("PMI_RANK=1 PMI_SIZE=4 FLUX_TASK_RANK=1 FLUX_JOB_SIZE=8", "4 by PMI_SIZE", "--rank N --ranks M"),
            // Exported by a batch script: every task would be rank 0.
            (
                "SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=4 RANK=0 WORLD_SIZE=1",
                "one of 1 by WORLD_SIZE, and one of 4 by SLURM_NTASKS",
                "env -u WORLD_SIZE",
            ),
            ("PMI_RANK=4 PMI_SIZE=4", "rank 4 (PMI_RANK) of 4 (PMI_SIZE)", "--rank N --ranks M"),
            ("PMI_RANK=x", "`PMI_RANK=x` is no number", "env -u PMI_RANK"),
            ("PMI_RANK=-1", "`PMI_RANK=-1`", "env -u PMI_RANK"),
            ("PMIX_RANK=4294967294", "`PMIX_RANK=4294967294`", "env -u PMIX_RANK"),
            ("RANK=1 WORLD_SIZE=many", "`WORLD_SIZE=many`", "env -u WORLD_SIZE"),
        ] {
            let problem = claim(&look(environment)).expect_err(environment);
            assert_eq!(problem.exit_code(), 2);
            assert!(problem.message.contains(says), "{environment}: {problem}");
            assert!(
                problem.hint.as_ref().is_some_and(|hint| hint.contains(fix)),
                "{environment}: {problem:?}"
            );
        }
    }

    #[test]
    fn jobs_are_named_by_the_innermost_launcher_that_names_one() {
        for (environment, named, restarts) in [
            ("PMIX_NAMESPACE=77 SLURM_JOB_ID=4711 SLURM_STEP_ID=0", Some("PMIX_NAMESPACE=77"), None),
            (
                "SLURM_JOB_ID=4711 SLURM_STEP_ID=0 SLURM_RESTART_COUNT=2",
                Some("SLURM_JOB_ID=4711 SLURM_STEP_ID=0"),
                Some(2),
            ),
            ("TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=1", None, Some(1)),
            (
                "TORCHELASTIC_RUN_ID=train TORCHELASTIC_RESTART_COUNT=0",
                Some("TORCHELASTIC_RUN_ID=train"),
                Some(0),
            ),
            ("JOB_COMPLETION_INDEX=1", None, None),
        ] {
            assert_eq!(job(&look(environment)), (named.map(str::to_owned), restarts), "{environment}");
        }
    }
}
