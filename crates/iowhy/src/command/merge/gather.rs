//! What is kept of the ranks, and the record that is made of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use iowhy_core::finding::FindingId;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Tier;
use iowhy_core::stats;
use iowhy_core::units;
use iowhy_core::warning::Warning;
use iowhy_diagnose::ranks::{LEVEL, MIN_RANKS, Merged, Ranks, Straggler};

use super::load::{self, OfRank, Refused};
use crate::record::merge::{
    EndingOfRanks, FindingOverRanks, HostOfRanks, LayerOverRanks, LeftOut, MergeRecord, PartOverRanks,
    RankLine, RankRange, SlowRank,
};
use crate::record::rank::RankRecord;
use crate::record::{Kind, SCHEMA};
use crate::shell;

/// The ranks so far.
#[derive(Default)]
pub(super) struct Gathered {
    ranks: Ranks,
    lines: Vec<RankLine>,
    of_rank: HashMap<u64, usize>,
    starts: Vec<f64>,
    /// Host names with the run of the kernel, and their ranks by index.
    hosts: BTreeMap<(String, Option<String>), Vec<usize>>,
    endings: Vec<EndingOfRanks>,
    findings: BTreeMap<FindingId, Vec<(u64, f64)>>,
    versions: BTreeSet<String>,
    programs: BTreeSet<String>,
    tiers: BTreeSet<Tier>,
    subject: String,
    job: Option<String>,
    /// Ranks of the job, and the file that says so.
    ranks_of_job: Option<(u64, usize)>,
    left_out: Vec<(LeftOut, Problem)>,
}

impl Gathered {
    /// Reads a file. One that is of no use is remembered with its reason.
    ///
    /// # Errors
    /// Another file is of the same rank, or of another job.
    pub(super) fn add(&mut self, file: &Path) -> Result<(), Problem> {
        match load::rank(file) {
            Ok((rank, record)) => self.keep(file.display().to_string(), rank, record),
            Err(Refused { problem, rank }) => {
                let (file, reason) = (file.display().to_string(), problem.message.clone());
                self.left_out.push((LeftOut { file, rank, reason }, problem));
                Ok(())
            }
        }
    }

    fn keep(&mut self, file: String, rank: RankRecord, record: OfRank) -> Result<(), Problem> {
        self.check(&file, &rank)?;
        let index = self.lines.len();
        if index == 0 {
            self.subject.clone_from(&record.subject);
        }
        self.job = self.job.take().or(rank.job);
        self.ranks_of_job = self.ranks_of_job.or(rank.ranks.map(|ranks| (ranks, index)));
        let parts = record.operations.into_iter().flat_map(|operation| {
            let id = operation.id;
            operation.layers.into_iter().map(move |layer| ((id.clone(), layer.id), layer.wall_s * 1e9))
        });
        self.ranks.add(record.wall_s * 1e9, parts);
        self.of_rank.insert(rank.rank, index);
        self.starts.push(rank.started_unix_s);
        self.hosts.entry((rank.host.clone(), rank.boot_id)).or_default().push(index);
        match self.endings.iter_mut().find(|ending| ending.exit == record.exit) {
            Some(ending) => ending.ranks.push(rank.rank),
            None => self.endings.push(EndingOfRanks { exit: record.exit, ranks: vec![rank.rank] }),
        }
        for finding in record.findings {
            self.findings.entry(finding.id).or_default().push((rank.rank, finding.share));
        }
        self.versions.insert(record.iowhy);
        self.programs.insert(record.subject.split_whitespace().next().unwrap_or_default().to_owned());
        self.tiers.extend(record.tier);
        self.lines.push(RankLine { rank: rank.rank, host: rank.host, file, wall_s: record.wall_s });
        Ok(())
    }

    /// Whether a record is of the same job as the others, and of a rank of its own.
    fn check(&self, file: &str, rank: &RankRecord) -> Result<(), Problem> {
        if let Some(other) = self.of_rank.get(&rank.rank).map(|index| &self.lines[*index]) {
            return Err(Problem::refused(format!(
                "rank {} stands in two records: `{}` (on {}) and `{file}` (on {})",
                rank.rank, other.file, other.host, rank.host
            ))
            .hint("one of them is of another run, or two processes were given one rank: name the one that is meant"));
        }
        let two_jobs = |one: String, other: String, first: &str| {
            Problem::refused(format!("`{first}` and `{file}` are of two jobs: {one} and {other}"))
                .hint("name the files of one job; those of an earlier one may be left over")
        };
        let first = self.lines.first().map_or("", |line| line.file.as_str());
        if let (Some(one), Some(other)) = (&self.job, &rank.job)
            && one != other
        {
            return Err(two_jobs(one.clone(), other.clone(), first));
        }
        if let (Some((one, index)), Some(other)) = (self.ranks_of_job, rank.ranks)
            && one != other
        {
            let words = |ranks| units::counted(ranks, "rank", "ranks");
            return Err(two_jobs(words(one), words(other), &self.lines[index].file));
        }
        Ok(())
    }

    /// The record.
    ///
    /// # Errors
    /// No file could be used; a rank beyond those of the job.
    pub(super) fn finish(self, threshold: f64) -> Result<MergeRecord, Problem> {
        let numbers: Vec<u64> = self.lines.iter().map(|line| line.rank).collect();
        let parts_doubt = self.parts_doubt();
        let Some(merged) = self.ranks.merged(&numbers, threshold, parts_doubt.is_none()) else {
            return Err(self.nothing());
        };
        let ranks_of_job = self.ranks_of_job.map(|(ranks, _)| ranks);
        if let Some((line, ranks)) =
            ranks_of_job.and_then(|ranks| Some((self.lines.iter().find(|line| line.rank >= ranks)?, ranks)))
        {
            return Err(Problem::refused(format!(
                "`{}` is of rank {}, and the job has {ranks} by other records: ranks count from 0",
                line.file, line.rank
            ))
            .hint("leave the file out, or make the records again with `--rank N --ranks M`"));
        }
        let stragglers_doubt = self.stragglers_doubt();
        let stragglers: Vec<Straggler> =
            if stragglers_doubt.is_some() { Vec::new() } else { merged.stragglers.clone() };
        let known: BTreeSet<u64> =
            numbers.iter().copied().chain(self.left_out.iter().filter_map(|(left, _)| left.rank)).collect();
        Ok(MergeRecord {
            schema: SCHEMA,
            kind: Kind::MergedRanks,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: shell::line(std::env::args_os()),
            warnings: self.warnings(),
            hosts: self.hosts(&stragglers),
            stragglers: stragglers.iter().map(|straggler| self.straggler(straggler)).collect(),
            findings: self.findings(),
            subject: self.subject,
            job: self.job,
            ranks_of_job,
            missing: missing(&known, ranks_of_job.unwrap_or(0)),
            left_out: self.left_out.into_iter().map(|(left, _)| left).collect(),
            endings: endings(self.endings),
            started_within_s: span(&self.starts),
            wall: merged.wall,
            layers: layers(&merged),
            parts: parts(&merged),
            parts_doubt,
            stragglers_doubt,
            level: LEVEL,
            threshold_share: threshold,
            ranks: by_number(self.lines),
        })
    }

    /// Why there is nothing to merge: the reason of the first file.
    fn nothing(self) -> Problem {
        let others = self.left_out.len().saturating_sub(1) as u64;
        let Some((_, mut first)) = self.left_out.into_iter().next() else {
            return Problem::refused("there is no record to merge")
                .hint("name the files: `iowhy merge run-*.json`");
        };
        if others > 0 {
            first.message = format!(
                "{}; and {} of no use either",
                first.message,
                units::counted(others, "other file is", "other files are")
            );
        }
        first
    }

    fn parts_doubt(&self) -> Option<String> {
        (self.tiers.len() > 1).then(|| {
            let names: Vec<&str> = self.tiers.iter().map(|tier| tier.id()).collect();
            format!(
                "the ranks were watched at {}: what one shows, another books elsewhere; give all hosts the same rights",
                names.join(" and ")
            )
        })
    }

    fn stragglers_doubt(&self) -> Option<String> {
        if self.programs.len() > 1 {
            let names: Vec<&str> = self.programs.iter().map(String::as_str).collect();
            return Some(format!(
                "the ranks ran different programs ({}): their times differ by that",
                names.join(", ")
            ));
        }
        (self.lines.len() < MIN_RANKS).then(|| {
            format!(
                "{} are too few to tell noise from a slow one",
                units::counted(self.lines.len() as u64, "rank", "ranks")
            )
        })
    }

    fn straggler(&self, straggler: &Straggler) -> SlowRank {
        let line = &self.lines[straggler.index];
        SlowRank {
            rank: line.rank,
            host: line.host.clone(),
            wall_s: line.wall_s,
            wall_excess_s: straggler.wall_excess_ns / 1e9,
            by_wall: straggler.by_wall,
            layer: straggler.layer.as_ref().map(|(layer, _)| *layer),
            layer_excess_s: straggler.layer.as_ref().map(|(_, ns)| ns / 1e9),
            operation: straggler.operation.as_ref().map(|(operation, _)| operation.clone()),
            chance: straggler.chance,
        }
    }

    fn hosts(&self, stragglers: &[Straggler]) -> Vec<HostOfRanks> {
        let slow: BTreeSet<usize> = stragglers.iter().map(|straggler| straggler.index).collect();
        let host = |((host, boot_id), indices): (&(String, Option<String>), &Vec<usize>)| {
            let mut ranks: Vec<u64> = indices.iter().map(|index| self.lines[*index].rank).collect();
            ranks.sort_unstable();
            let stragglers = indices.iter().filter(|index| slow.contains(index)).count() as u64;
            HostOfRanks { host: host.clone(), boot_id: boot_id.clone(), ranks, stragglers }
        };
        let mut hosts: Vec<HostOfRanks> = self.hosts.iter().map(host).collect();
        hosts.sort_by_key(|host| host.ranks.first().copied());
        hosts
    }

    fn findings(&self) -> Vec<FindingOverRanks> {
        let finding = |(id, of): (&FindingId, &Vec<(u64, f64)>)| {
            let shares: Vec<f64> = of.iter().map(|(_, share)| *share).collect();
            let mut ranks: Vec<u64> = of.iter().map(|(rank, _)| *rank).collect();
            ranks.sort_unstable();
            ranks.dedup();
            Some(FindingOverRanks { id: *id, ranks, median_share: stats::median(&shares)? })
        };
        let mut findings: Vec<FindingOverRanks> = self.findings.iter().filter_map(finding).collect();
        findings.sort_by(|a, b| {
            let shares = || b.median_share.total_cmp(&a.median_share);
            b.ranks.len().cmp(&a.ranks.len()).then_with(shares)
        });
        findings
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.versions.len() > 1 {
            let versions: Vec<&str> = self.versions.iter().map(String::as_str).collect();
            warnings.push(
                Warning::new(
                    "versions",
                    format!("the ranks were watched by iowhy {}", versions.join(" and ")),
                )
                .next("findings and parts may differ by that alone: install one version on all hosts"),
            );
        }
        let mut names: BTreeMap<&str, u64> = BTreeMap::new();
        self.hosts.keys().for_each(|(host, _)| *names.entry(host.as_str()).or_default() += 1);
        for (host, machines) in names.into_iter().filter(|(_, machines)| *machines > 1) {
            warnings.push(
                Warning::new(
                    "host-names",
                    format!("{machines} machines are called `{host}`: their kernels were started apart"),
                )
                .next("`boot_id` in the record tells them apart; give each host a name of its own"),
            );
        }
        warnings.extend(self.clocks());
        warnings
    }

    /// Ranks that, by the clocks of their hosts, did not run at the same time.
    fn clocks(&self) -> Option<Warning> {
        let last = (0..self.starts.len()).max_by(|a, b| self.starts[*a].total_cmp(&self.starts[*b]))?;
        let end = |index: &usize| self.starts[*index] + self.lines[*index].wall_s;
        let first = (0..self.starts.len()).min_by(|a, b| end(a).total_cmp(&end(b)))?;
        let apart = self.starts[last] - end(&first);
        let (one, other) = (&self.lines[first], &self.lines[last]);
        (apart > 0.0).then(|| {
            Warning::new(
                "clocks",
                format!(
                    "by the clocks of their hosts, rank {} on {} ended {} before rank {} on {} began: the clocks differ by that or \
                     more, or the ranks did not run together. Wall times do not depend on these clocks",
                    one.rank,
                    one.host,
                    units::time(apart * 1e9),
                    other.rank,
                    other.host
                ),
            )
            .next("`chronyc tracking` on both hosts shows the error of their clocks")
        })
    }
}

/// The ranks below `ranks` that are not known.
fn missing(known: &BTreeSet<u64>, ranks: u64) -> Vec<RankRange> {
    let mut missing = Vec::new();
    let mut next = 0;
    for rank in known.iter().copied().filter(|rank| *rank < ranks).chain([ranks]) {
        if rank > next {
            missing.push(RankRange { first: next, last: rank - 1 });
        }
        next = rank.saturating_add(1);
    }
    missing
}

fn endings(mut endings: Vec<EndingOfRanks>) -> Vec<EndingOfRanks> {
    endings.iter_mut().for_each(|ending| ending.ranks.sort_unstable());
    endings.sort_by_key(|ending| std::cmp::Reverse(ending.ranks.len()));
    endings
}

/// Between the least and the greatest.
fn span(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (greatest - least).max(0.0)
}

fn layers(merged: &Merged) -> Vec<LayerOverRanks> {
    merged.layers.iter().map(|(id, time)| LayerOverRanks { id: *id, time: *time }).collect()
}

fn parts(merged: &Merged) -> Vec<PartOverRanks> {
    let part = |((operation, layer), time): &((String, _), _)| PartOverRanks {
        operation: operation.clone(),
        layer: *layer,
        time: *time,
    };
    merged.parts.iter().map(part).collect()
}

fn by_number(mut lines: Vec<RankLine>) -> Vec<RankLine> {
    lines.sort_by_key(|line| line.rank);
    lines
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
