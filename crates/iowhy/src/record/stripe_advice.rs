//! The record of `stripe advise`: the disks, the simulated stripes, the recommendation and its proof.

use iowhy_core::cell::Sample;
use iowhy_core::estimate::Estimate;
use iowhy_core::service::ServiceCurve;
use iowhy_core::warning::Warning;
use iowhy_probe::target::Target;
use serde::Serialize;

use super::SCHEMA;
use super::member::MemberRecord;
use crate::command::stripe::{Measured, Pick, Point, Simulated};

/// The result.
#[derive(Debug, Serialize)]
pub struct AdviceRecord {
    /// Version of the format.
    pub schema: u32,
    /// Version of iowhy.
    pub iowhy: &'static str,
    /// `stripe advise`.
    pub command: &'static str,
    /// The workload or trace, as it was given.
    pub load: String,
    /// Seed of everything that chance decides.
    pub seed: u64,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
    /// The disks.
    pub members: Vec<DiskRecord>,
    /// The curve that was simulated: the slowest member's; null when it is not known.
    pub curve: Option<ServiceCurve>,
    /// All disks, by interleave.
    pub points: Vec<PointRecord>,
    /// The fastest interleave for each number of disks.
    pub by_disks: Vec<PointRecord>,
    /// The published rules.
    pub rules: Vec<RuleRecord>,
    /// What is recommended.
    pub pick: Option<PickRecord>,
    /// Stripes that were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<ProofRecord>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// One disk.
#[derive(Debug, Serialize)]
pub struct DiskRecord {
    /// How the user named it.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its fitted curve.
    pub curve: Option<ServiceCurve>,
    /// What was measured of it.
    pub points: Vec<DiskPointRecord>,
}

/// A measured size.
#[derive(Debug, Serialize)]
pub struct DiskPointRecord {
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
    /// In order, and not by chance.
    pub sequential: bool,
    /// The reciprocal of the rate.
    pub time_per_request: Estimate,
}

/// One simulated stripe.
#[derive(Debug, Serialize)]
pub struct PointRecord {
    /// Disks.
    pub disks: usize,
    /// Bytes of one turn; says nothing for one disk.
    pub interleave_bytes: u64,
    /// Time of the workload.
    pub time_s: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Bytes of the busiest disk over the mean of all.
    pub most_over_mean: f64,
    /// Share of the time that disks are at work, their mean; null for disks that are nothing but limits.
    pub utilisation: Option<f64>,
    /// Share of the requests that are split; null for a trace.
    pub split_share: Option<f64>,
    /// One stream of 1 MiB requests in order.
    pub stream_bytes_per_second: f64,
    /// The greatest time against the best interleave's, over curves that are off by a quarter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
}

impl PointRecord {
    fn of(point: &Point, regret: Option<f64>) -> PointRecord {
        PointRecord {
            disks: point.disks,
            interleave_bytes: point.interleave_bytes,
            time_s: point.time_s,
            bytes_per_second: point.bytes_per_second,
            requests_per_second: point.requests_per_second,
            most_over_mean: point.most_over_mean,
            utilisation: point.utilisation,
            split_share: point.split_share,
            stream_bytes_per_second: point.stream_bytes_per_second,
            regret,
        }
    }
}

/// A rule of thumb.
#[derive(Debug, Serialize)]
pub struct RuleRecord {
    /// Its stable identifier.
    pub id: &'static str,
    /// Who said it, and how it goes.
    pub name: &'static str,
    /// What it gives here, in whole sectors; null where its inputs are not known.
    pub interleave_bytes: Option<f64>,
}

/// The recommendation.
#[derive(Debug, Serialize)]
pub struct PickRecord {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// Its time over that of the fastest, simulated.
    pub over_fastest: f64,
    /// What is as good for the workload, within 3 %.
    pub as_good_bytes: Vec<u64>,
    /// `firm`, `fair` or `weak`.
    pub confidence: &'static str,
    /// The greatest loss against the best, when the curve is off by a quarter.
    pub regret: f64,
    /// A single stream here over the best stream of any interleave.
    pub stream_share: f64,
}

/// A stripe in user space that was measured.
#[derive(Debug, Serialize)]
pub struct ProofRecord {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// `pick`, `fastest` (simulated), `default`, `worst` (simulated) or `other`.
    pub role: &'static str,
    /// What the simulation said.
    pub predicted_bytes_per_second: f64,
    /// What was measured.
    pub throughput: Option<Estimate>,
    /// (predicted - measured) / measured.
    pub error_percent: Option<f64>,
    /// Its rate over that of the fastest measured one, paired within rounds.
    pub of_fastest: Option<Estimate>,
    /// What each member was sent and did.
    pub members: Vec<MemberRecord>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Raw rounds.
    pub samples: Vec<Sample>,
}

impl AdviceRecord {
    /// A record of the measured disks.
    pub(crate) fn new(load: String, seed: u64, disks: &[Target], members: &[Measured]) -> AdviceRecord {
        let disk = |(target, measured): (&Target, &Measured)| DiskRecord {
            name: target.facts.name.clone(),
            size_bytes: target.facts.size_bytes,
            curve: measured.curve,
            points: measured
                .points
                .iter()
                .map(|(block_bytes, depth, sequential, time)| DiskPointRecord {
                    block_bytes: *block_bytes,
                    depth: *depth,
                    sequential: *sequential,
                    time_per_request: *time,
                })
                .collect(),
        };
        AdviceRecord {
            schema: SCHEMA,
            iowhy: env!("CARGO_PKG_VERSION"),
            command: "stripe advise",
            load,
            seed,
            interrupted: false,
            members: disks.iter().zip(members).map(disk).collect(),
            curve: None,
            points: Vec::new(),
            by_disks: Vec::new(),
            rules: Vec::new(),
            pick: None,
            proof: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds what was simulated and picked.
    pub(crate) fn fill(&mut self, curve: ServiceCurve, simulated: Simulated, pick: Option<Pick>) {
        let points = &simulated.points;
        let fastest = points.iter().map(|point| point.time_s).fold(f64::INFINITY, f64::min);
        let stream = points.iter().map(|point| point.stream_bytes_per_second).fold(0.0, f64::max);
        self.pick = pick.map(|pick| {
            let chosen = &points[pick.index];
            PickRecord {
                interleave_bytes: chosen.interleave_bytes,
                over_fastest: if fastest > 0.0 { chosen.time_s / fastest } else { 1.0 },
                as_good_bytes: pick.as_good.iter().map(|at| points[*at].interleave_bytes).collect(),
                confidence: pick.confidence.id(),
                regret: simulated.regret.get(pick.index).copied().unwrap_or(1.0),
                stream_share: if stream > 0.0 { chosen.stream_bytes_per_second / stream } else { 1.0 },
            }
        });
        let regret = simulated.regret.iter().copied().map(Some).chain(std::iter::repeat(None));
        self.points =
            points.iter().zip(regret).map(|(point, regret)| PointRecord::of(point, regret)).collect();
        self.by_disks = simulated.by_disks.iter().map(|point| PointRecord::of(point, None)).collect();
        self.curve = Some(curve);
    }
}
