//! One record of a rank: what a merge needs of it. The profile, which is nearly all of a record, is passed over.

use std::path::Path;

use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::problem::Problem;
use iowhy_core::profile::Tier;
use iowhy_core::text::{acts, visible};
use serde::Deserialize;

use crate::record::Kind;
use crate::record::rank::RankRecord;
use crate::record::watch::Exit;
use crate::record_file::{self, MAX_FIGURE};

/// What fixes a file that is no record of a rank.
const HINT: &str = "name the files that `iowhy --json 'run-{rank}.json' -- CMD` wrote as a task of mpirun, srun, flux or torchrun";

/// What is read.
#[derive(Debug, Deserialize)]
pub(super) struct OfRank {
    pub(super) iowhy: String,
    pub(super) subject: String,
    #[serde(default)]
    pub(super) rank: Option<RankRecord>,
    pub(super) wall_s: f64,
    pub(super) exit: Option<Exit>,
    #[serde(default)]
    pub(super) tier: Option<Tier>,
    #[serde(default)]
    pub(super) operations: Vec<Operation>,
    #[serde(default)]
    pub(super) findings: Vec<Found>,
}

/// An operation.
#[derive(Debug, Deserialize)]
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) layers: Vec<OfLayer>,
}

/// Its time in a layer.
#[derive(Debug, Deserialize)]
pub(super) struct OfLayer {
    pub(super) id: Layer,
    pub(super) wall_s: f64,
}

/// A finding.
#[derive(Debug, Deserialize)]
pub(super) struct Found {
    pub(super) id: FindingId,
    pub(super) share: f64,
}

/// Why a file is left out, with its rank where that can be read.
pub(super) struct Refused {
    pub(super) problem: Problem,
    pub(super) rank: Option<u64>,
}

/// Reads the record of a rank.
///
/// # Errors
/// The file cannot be read, was cut off, is no record of a profiled program, or holds no rank.
pub(super) fn rank(path: &Path) -> Result<(RankRecord, OfRank), Refused> {
    let without_rank = |problem| Refused { problem, rank: None };
    let (kind, record) = record_file::part::<OfRank>(path, HINT, &[Kind::WatchedProgram, Kind::RunTime])
        .map_err(without_rank)?;
    let name = path.display();
    let Some(rank) = record.rank.clone() else {
        return Err(without_rank(
            Problem::refused(format!("`{name}` holds no rank: it was made outside of a parallel job"))
                .hint(HINT),
        ));
    };
    let refused = |problem: Problem| Refused { problem, rank: Some(rank.rank) };
    if kind == Kind::RunTime {
        return Err(refused(record_file::only_run_time(path)));
    }
    let odd = figures(&rank, &record).find(|figure| !(0.0..=MAX_FIGURE).contains(figure));
    match odd {
        Some(figure) => Err(refused(record_file::no_figure(path, figure))),
        None => Ok(shown(rank, record)),
    }
}

/// What acts on a screen is escaped in every text.
fn shown(mut rank: RankRecord, mut record: OfRank) -> (RankRecord, OfRank) {
    let texts = [&mut rank.host, &mut record.iowhy, &mut record.subject].into_iter();
    let texts = texts.chain(&mut rank.job).chain(&mut rank.boot_id);
    for text in texts.chain(record.operations.iter_mut().map(|operation| &mut operation.id)) {
        if text.contains(acts) {
            *text = visible(text).into_owned();
        }
    }
    (rank, record)
}

/// Every figure that is used.
fn figures<'a>(rank: &RankRecord, record: &'a OfRank) -> impl Iterator<Item = f64> + use<'a> {
    let parts = record.operations.iter().flat_map(|operation| &operation.layers).map(|layer| layer.wall_s);
    [record.wall_s, rank.started_unix_s]
        .into_iter()
        .chain(parts)
        .chain(record.findings.iter().map(|f| f.share))
}
