//! Which process of a parallel job this one is: decided once, before a command begins, from options and the launcher's variables.
//! `{rank}` and `{host}` in the names of outputs are filled in here, before any of them is opened.

mod launcher;
mod names;

use std::ffi::OsStr;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use iowhy_core::problem::Problem;
use iowhy_linux::host;
use iowhy_linux::names::open_regular;
use rustix::fs::OFlags;
use serde::Deserialize;

use crate::cli::{Cli, Command};
use crate::record::rank::RankRecord;
use crate::run_as;

static DECIDED: OnceLock<Option<RankRecord>> = OnceLock::new();

/// The rank of this process; `None` outside of a parallel job.
pub fn own() -> Option<&'static RankRecord> {
    DECIDED.get().and_then(Option::as_ref)
}

/// Finds the rank, where a program is profiled, ranks measure together or a name asks for it, and fills the names of the outputs in.
///
/// # Errors
/// A rank that is contradictory, no number, or asked for and unknown; a name with another placeholder; one file for several
/// ranks; a file that this rank of the same job wrote already.
pub fn decide(cli: &mut Cli) -> Result<(), Problem> {
    let together = match &cli.command {
        Some(Command::Bench(args)) if args.of_ranks() => Some((args.rank, args.ranks.flatten())),
        _ => None,
    };
    let sight = match &mut cli.command {
        Some(Command::Attach(args)) => Some(&mut args.sight),
        None if !cli.watch.program.is_empty() => Some(&mut cli.watch.sight),
        _ => None,
    };
    let profiles = sight.is_some();
    let (options, files) = match sight {
        Some(sight) => ((sight.rank, sight.ranks), Some(sight.profile_files_mut())),
        None => ((None, None), None),
    };
    let paths = [("--json", cli.output.json.as_mut()), ("--output", cli.watch.output.as_mut())];
    let paths = paths.into_iter().chain(files.into_iter().flatten());
    let mut paths: Vec<(&str, &mut PathBuf)> =
        paths.filter_map(|(option, path)| Some((option, path?))).collect();
    let saved = cli.output.save_as.as_deref().map(OsStr::new);
    let mut all = paths.iter().map(|(_, path)| path.as_os_str()).chain(saved);
    let environment: launcher::Environment<'_> = &|name| std::env::var_os(name);
    if let Some(options) = together {
        // Without a launcher the command starts the ranks itself.
        let named = options.0.is_some() || launcher::claim(environment)?.is_some();
        let _ = DECIDED.set(if named { find(options, environment)? } else { None });
    } else if profiles || all.any(names::asks_for_rank) {
        let _ = DECIDED.set(find(options, environment)?);
    }
    let host = host::name();
    let fill = |option: &str, name: &OsStr| {
        own().filter(|_| profiles).map_or(Ok(()), |own| names::one_for_each(option, name, own))?;
        names::filled(option, name, own(), &host)
    };
    for (option, path) in &mut paths {
        let filled = PathBuf::from(fill(option, path.as_os_str())?);
        if let Some(own) = own().filter(|_| *option == "--json" && filled != **path) {
            refuse_written(&filled, own)?;
        }
        **path = filled;
    }
    if let Some(name) = &mut cli.output.save_as {
        *name = fill("--save-as", OsStr::new(name))?.to_string_lossy().into_owned();
    }
    Ok(())
}

/// Variables by which iowhy numbers processes that it starts itself, in the words of a launcher.
pub(crate) fn variables(rank: u64, ranks: u64, job: &str) -> [(&'static str, String); 3] {
    [("PMI_RANK", rank.to_string()), ("PMI_SIZE", ranks.to_string()), ("PMI_JOBID", job.to_owned())]
}

/// The rank of a process with these variables.
///
/// # Errors
/// Those of [`decide`].
pub(crate) fn with(variables: &[(&str, String)]) -> Result<Option<RankRecord>, Problem> {
    find((None, None), &|name| {
        let own = variables.iter().find(|(own, _)| *own == name).map(|(_, value)| value.into());
        own.or_else(|| std::env::var_os(name))
    })
}

/// The rank by options, else by the environment. A rank that is named needs no launcher.
fn find(
    (rank, ranks): (Option<u64>, Option<u64>),
    environment: launcher::Environment<'_>,
) -> Result<Option<RankRecord>, Problem> {
    let claim = match rank {
        Some(rank) => Some(launcher::Claim { rank, ranks: None, believed: vec!["--rank".to_owned()] }),
        None => launcher::claim(environment)?,
    };
    let Some(mut claim) = claim else {
        return match ranks {
            Some(ranks) => Err(Problem::refused(format!(
                "`--ranks {ranks}`: the rank of this process is unknown, as no launcher of a parallel job has set one"
            ))
            .hint(format!("name it, too: `--rank N --ranks {ranks}`"))),
            None => Ok(None),
        };
    };
    if let Some(ranks) = ranks {
        claim.ranks = Some(ranks);
        claim.believed.push("--ranks".to_owned());
        if claim.rank >= ranks {
            return Err(Problem::refused(format!(
                "rank {} of {ranks} (`--ranks`): ranks count from 0",
                claim.rank
            ))
            .hint(format!("`--rank` is 0 to {}; or `--ranks` is larger", ranks.saturating_sub(1))));
        }
    }
    let (job, restarts) = launcher::job(environment);
    Ok(Some(RankRecord {
        rank: claim.rank,
        ranks: claim.ranks,
        believed: claim.believed,
        host: host::name(),
        boot_id: host::boot_id(),
        job,
        restarts,
        started_unix_s: host::unix_s(),
    }))
}

/// `rank 3 of 16 on node07, by OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE`
pub fn words(own: &RankRecord) -> String {
    format!("{} on {}, by {}", own.words(), own.host, own.believed.join(" and "))
}

/// What is read of a record that is there already.
#[derive(Deserialize)]
struct Written {
    rank: Option<RankRecord>,
}

/// A record that is larger is not looked into: it is replaced, as any other file.
const MAX_BYTES: u64 = 1 << 30;

/// Refuses to replace the record that another process of the same job wrote as the same rank. Where the launcher names no
/// job, another host is another process, and the same host a new run.
fn refuse_written(path: &Path, own: &RankRecord) -> Result<(), Problem> {
    let written = {
        let _files = run_as::files()?;
        open_regular(path, OFlags::RDONLY).ok().and_then(|file| {
            serde_json::from_reader::<_, Written>(BufReader::new(file.take(MAX_BYTES))).ok()?.rank
        })
    };
    match written.filter(|other| is_of_same_run(other, own)) {
        Some(other) => {
            let job = own.job.as_ref().map_or_else(String::new, |job| format!(" of the same job ({job})"));
            Err(Problem::refused(format!(
                "`--json {}` was written by another process that is {}{job}, on {}: it would be overwritten",
                path.display(),
                other.words(),
                other.host
            ))
            .hint("give each process a rank of its own, and each program of a job another name; or remove the file"))
        }
        None => Ok(()),
    }
}

fn is_of_same_run(written: &RankRecord, own: &RankRecord) -> bool {
    match (&written.job, &own.job) {
        // Of another rank, too: a name that has the host alone is one for all ranks there.
        (Some(one), Some(other)) => one == other && written.restarts == own.restarts,
        (None, None) => {
            written.rank == own.rank && (&written.host, &written.boot_id) != (&own.host, &own.boot_id)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<std::ffi::OsString> {
        None
    }

    fn open_mpi(name: &str) -> Option<std::ffi::OsString> {
        let value = match name {
            "OMPI_COMM_WORLD_RANK" => "3",
            "OMPI_COMM_WORLD_SIZE" => "4",
            "PMIX_NAMESPACE" => "77",
            _ => return None,
        };
        Some(value.into())
    }

    #[test]
    fn options_come_before_the_environment() {
        let found = |options, environment: launcher::Environment<'_>| {
            find(options, environment)
                .unwrap()
                .map(|own| (own.rank, own.ranks, own.believed.join(" "), own.job))
        };
        let job = Some("PMIX_NAMESPACE=77".to_owned());
        assert_eq!(found((None, None), &none), None);
        assert_eq!(found((Some(2), None), &none), Some((2, None, "--rank".into(), None)));
        assert_eq!(
            found((Some(2), Some(9)), &open_mpi),
            Some((2, Some(9), "--rank --ranks".into(), job.clone()))
        );
        let believed = "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE";
        assert_eq!(found((None, None), &open_mpi), Some((3, Some(4), believed.into(), job.clone())));
        assert_eq!(found((None, Some(8)), &open_mpi), Some((3, Some(8), format!("{believed} --ranks"), job)));
        for (options, says) in [((Some(4), Some(4)), "rank 4 of 4"), ((None, Some(4)), "is unknown")] {
            let problem = find(options, &none).unwrap_err();
            assert!(
                problem.exit_code() == 2 && problem.hint.is_some() && problem.message.contains(says),
                "{problem}"
            );
        }
    }

    #[test]
    fn a_record_of_the_same_run_and_rank_is_told_from_one_of_another_run() {
        let own = RankRecord {
            rank: 3,
            host: "a".into(),
            boot_id: Some("x".into()),
            job: Some("J=1".into()),
            ..RankRecord::default()
        };
        let other = |change: &dyn Fn(&mut RankRecord)| {
            let mut other = own.clone();
            change(&mut other);
            is_of_same_run(&other, &own)
        };
        assert!(other(&|_| {}) && other(&|other| other.host = "b".into()));
        assert!(!other(&|other| other.job = Some("J=2".into())));
        assert!(!other(&|other| other.job = None));
        assert!(!other(&|other| other.restarts = Some(1)), "a restarted job replaces what it wrote before");
        assert!(other(&|other| other.rank = 2), "it is no other rank's either");
        // Without a job: the same host writes anew, another one has the same rank.
        let nameless = RankRecord { job: None, ..own.clone() };
        assert!(!is_of_same_run(&nameless, &nameless));
        assert!(is_of_same_run(&RankRecord { host: "b".into(), ..nameless.clone() }, &nameless));
    }
}
