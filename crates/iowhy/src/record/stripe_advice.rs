//! The record of `stripe advise`: the disks, the simulated stripes, the recommendation and its proof.

use iowhy_core::cell::Sample;
use iowhy_core::estimate::Estimate;
use iowhy_core::service::{DiskCurves, ServiceCurve};
use iowhy_core::warning::Warning;
use iowhy_probe::target::Target;
use iowhy_stripe::members::Measured;
use iowhy_stripe::pick::{Confidence, Pick};
use iowhy_stripe::prove::Purpose;
use iowhy_stripe::simulate::{Point, Simulated};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::member::MemberRecord;
use super::{Kind, SCHEMA};

/// What stripes are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JudgedBy {
    /// Time of the load.
    Time,
    /// Mean latency, where its requests come at their own times.
    Latency,
}

/// The result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AdviceRecord {
    /// Version of the format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// `stripe advise`.
    pub command: String,
    /// The workload or trace, as given.
    pub load: String,
    /// What stripes are compared by.
    pub judged_by: JudgedBy,
    /// Seed of everything that chance decides.
    pub seed: u64,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
    /// The disks.
    pub members: Vec<DiskRecord>,
    /// The curve of reads of the slowest member, as it was simulated; null when it is not known.
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<ProofRecord>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// One disk.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiskRecord {
    /// How the user named it.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// What was on it, in words, when this run writes over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwritten: Option<String>,
    /// The fitted curve of its reads.
    pub curve: Option<ServiceCurve>,
    /// The fitted curve of its writes; null where they were not measured.
    pub write_curve: Option<ServiceCurve>,
    /// What was simulated: one curve for all members that are alike.
    pub simulated: Option<DiskCurves>,
    /// What was measured of it.
    pub points: Vec<DiskPointRecord>,
}

/// A measured size.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiskPointRecord {
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
    /// Sequential, not random.
    pub sequential: bool,
    /// Writes.
    pub write: bool,
    /// The reciprocal of the rate.
    pub time_per_request: Estimate,
}

/// One simulated stripe.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AdvicePoint")]
pub struct PointRecord {
    /// Disks.
    pub disks: usize,
    /// Those that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Bytes of one turn; says nothing for one disk.
    pub interleave_bytes: u64,
    /// Time of the workload.
    pub time_s: f64,
    /// What it is compared by: `time_s`, or the mean latency.
    pub judged_s: f64,
    /// Bytes a second.
    pub throughput_bytes_per_second: f64,
    /// Requests a second.
    pub requests_per_second: f64,
    /// Bytes of the busiest disk over the mean of all.
    pub most_over_mean: f64,
    /// Share of the time that disks are at work or at their limits, their mean.
    pub busy_share: Option<f64>,
    /// The same for each disk, in their order, without those that are left out.
    pub loads: Vec<f64>,
    /// Share of the requests that are split; null for a trace.
    pub split_share: Option<f64>,
    /// One stream of 1 MiB requests in order.
    pub stream_bytes_per_second: f64,
    /// The greatest time against the best interleave's, over curves that are off by a quarter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret: Option<f64>,
}

impl PointRecord {
    fn of(point: &Point, names: &[String], regret: Option<f64>) -> PointRecord {
        let used = point.loads.len().max(1) as f64;
        PointRecord {
            disks: point.members.len(),
            left_out: left_out(&point.members, names),
            interleave_bytes: point.interleave_bytes,
            time_s: point.time_s,
            judged_s: point.cost_s,
            throughput_bytes_per_second: point.bytes_per_second,
            requests_per_second: point.requests_per_second,
            most_over_mean: point.most_over_mean,
            busy_share: Some(point.loads.iter().sum::<f64>() / used),
            loads: point.loads.clone(),
            split_share: point.split_share,
            stream_bytes_per_second: point.stream_bytes_per_second,
            regret,
        }
    }
}

/// The disks that are not among these.
pub(crate) fn left_out(members: &[usize], names: &[String]) -> Vec<String> {
    let out = names.iter().enumerate().filter(|(index, _)| !members.contains(index));
    out.map(|(_, name)| name.clone()).collect()
}

/// A rule of thumb.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuleRecord {
    /// Its stable identifier.
    pub id: String,
    /// Who said it, and how it goes.
    pub name: String,
    /// What it gives here, in whole sectors; null where its inputs are not known.
    pub interleave_bytes: Option<f64>,
}

/// The recommendation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PickRecord {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// Its time over that of the fastest, simulated.
    pub over_fastest: f64,
    /// What is as good for the workload, within 3 %.
    pub as_good_bytes: Vec<u64>,
    /// How sure it is.
    pub confidence: Confidence,
    /// The greatest loss against the best, when the curve is off by a quarter.
    pub regret: f64,
    /// A single stream here over the best stream of any interleave.
    pub stream_share: f64,
    /// The slowest disk, where they are not all alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub straggler: Option<StragglerRecord>,
}

/// The slowest disk and what it does to the recommended stripe.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StragglerRecord {
    /// Its name.
    pub name: String,
    /// Share of the time that it is at work, or at its limit.
    pub load: f64,
    /// The same of the others, the mean of them.
    pub load_of_others: f64,
    /// The others without it, at their fastest interleave; null where the load does not fit on them.
    pub without: Option<PointRecord>,
    /// How many times as fast that is as the recommended stripe, simulated.
    pub gain_without: Option<f64>,
}

/// A stripe in user space that was measured.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProofRecord {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// Why it was measured.
    pub role: Purpose,
    /// Disks that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What the simulation said; of loads that are carried out request by request with directories, inodes and whole blocks.
    pub predicted_bytes_per_second: f64,
    /// What was measured.
    pub throughput: Option<Estimate>,
    /// The mean latency that the simulation said, where requests come at their own times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_latency_ns: Option<f64>,
    /// The mean latency of a round that was measured, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Estimate>,
    /// (predicted - measured) / measured, of what stripes are compared by.
    pub error_percent: Option<f64>,
    /// How fast it is against the fastest measured one of all disks, paired within rounds: rates, or the inverse of latencies.
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
    /// A record of the measured disks; `open`: requests come at their own times.
    pub(crate) fn new(
        load: String,
        open: bool,
        seed: u64,
        disks: &[Target],
        members: &[Measured],
    ) -> AdviceRecord {
        let disk = |(target, measured): (&Target, &Measured)| DiskRecord {
            name: target.facts.name.clone(),
            size_bytes: target.facts.size_bytes,
            overwritten: target.facts.overwritten.clone(),
            curve: measured.read,
            write_curve: measured.write,
            simulated: None,
            points: measured
                .points
                .iter()
                .map(|(shape, time)| DiskPointRecord {
                    block_bytes: shape.bytes,
                    depth: shape.depth as u64,
                    sequential: shape.sequential,
                    write: shape.write,
                    time_per_request: *time,
                })
                .collect(),
        };
        AdviceRecord {
            schema: SCHEMA,
            kind: Kind::StripeAdvice,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: "stripe advise".to_owned(),
            load,
            judged_by: if open { JudgedBy::Latency } else { JudgedBy::Time },
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
    pub(crate) fn fill(&mut self, disks: &[DiskCurves], simulated: Simulated, pick: Option<Pick>) {
        let names: Vec<String> = self.members.iter().map(|member| member.name.clone()).collect();
        for (member, curves) in self.members.iter_mut().zip(disks) {
            member.simulated = Some(*curves);
        }
        let points = &simulated.points;
        let fastest = points.iter().map(|point| point.cost_s).fold(f64::INFINITY, f64::min);
        let stream = points.iter().map(|point| point.stream_bytes_per_second).fold(0.0, f64::max);
        self.pick = pick.map(|pick| {
            let chosen = &points[pick.index];
            PickRecord {
                interleave_bytes: chosen.interleave_bytes,
                over_fastest: if fastest > 0.0 { chosen.cost_s / fastest } else { 1.0 },
                as_good_bytes: pick.as_good.iter().map(|at| points[*at].interleave_bytes).collect(),
                confidence: pick.confidence,
                regret: simulated.regret.get(pick.index).copied().unwrap_or(1.0),
                stream_share: if stream > 0.0 { chosen.stream_bytes_per_second / stream } else { 1.0 },
                straggler: straggler(&simulated, chosen, &names),
            }
        });
        self.curve =
            simulated.slowest.and_then(|index| disks.get(index)).or(disks.first()).map(|disk| disk.read);
        let regret = simulated.regret.iter().copied().map(Some).chain(std::iter::repeat(None));
        self.points =
            points.iter().zip(regret).map(|(point, regret)| PointRecord::of(point, &names, regret)).collect();
        self.by_disks = simulated.by_disks.iter().map(|point| PointRecord::of(point, &names, None)).collect();
    }
}

/// What the slowest disk does to the chosen stripe.
fn straggler(simulated: &Simulated, chosen: &Point, names: &[String]) -> Option<StragglerRecord> {
    let slowest = simulated.slowest?;
    let load = *chosen.loads.get(slowest)?;
    let others = chosen.loads.len().saturating_sub(1).max(1) as f64;
    let without = simulated.without_slowest();
    Some(StragglerRecord {
        name: names.get(slowest)?.clone(),
        load,
        load_of_others: (chosen.loads.iter().sum::<f64>() - load) / others,
        without: without.map(|point| PointRecord::of(point, names, None)),
        gain_without: without.filter(|point| point.cost_s > 0.0).map(|point| chosen.cost_s / point.cost_s),
    })
}
