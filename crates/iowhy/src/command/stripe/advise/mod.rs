//! `iowhy stripe advise`: measures the disks, simulates the load on stripes of them, recommends an interleave, and with
//! `--prove` measures it against others. The arithmetic is in `iowhy-stripe`.

mod members;

use std::path::PathBuf;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::warning::Warning;
use iowhy_probe::interrupt;
use iowhy_probe::target::Target;
use iowhy_sim::machine::Machine;
use iowhy_sim::outcome::Outcome;
use iowhy_sim::requests::VolumeRequests;
use iowhy_sim::workload::{What, Workload};
use iowhy_stripe::load::{Load, Question};
use iowhy_stripe::members::{Measured, writes_can_be_measured};
use iowhy_stripe::prove::{self, Proof};
use iowhy_stripe::{disks, pick, rules, simulate};
use iowhy_view::document::Detail;

use crate::cli::{OutputArgs, Proofs, StripeAdviseArgs};
use crate::ending::{self, Ending};
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::member::MemberRecord;
use crate::record::stripe_advice::{AdviceRecord, ProofRecord, RuleRecord, left_out};
use crate::screen;
use crate::simulation::{Demand, Watch};
use crate::targets::announce_destruction;

/// 8 sectors to 32768, doubling: the range of the test of 1999.
const USUAL_INTERLEAVES: std::ops::RangeInclusive<u32> = 12..=24;
/// A scratch file in each directory, all together.
const SCRATCH_BYTES: u64 = 768 << 20;

/// Time for measuring the members when nobody says.
const DEFAULT_TIME: Duration = Duration::from_secs(30);
/// Time for each stripe of the proof when nobody says, over all rounds.
const DEFAULT_PROVE_TIME: Duration = Duration::from_secs(8);

/// Runs the command.
///
/// # Errors
/// Members, loads and interleaves that cannot be; too little measured to know the disks.
pub(super) fn run(args: &StripeAdviseArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let demand = demand(args)?;
    let interleaves =
        args.interleave.clone().unwrap_or_else(|| USUAL_INTERLEAVES.map(|power| 1 << power).collect());
    let plan = match prove_options(args)? {
        Some(options) => Some(prove::Plan::new(&demand, &args.set, options, args.seed)?),
        None => None,
    };
    let writes = demand.writes(simulate::MAX_REQUESTS)?;
    let outputs = Outputs::open(options)?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());
    let scratch = scratch_bytes(args, &demand);
    let targets = members::resolve(&args.disks, &args.destroy_data, writes, scratch, &progress)?;
    let all: Vec<&Target> = targets.iter().collect();
    outputs.spare(&all)?;
    if let Some(plan) = &plan {
        plan.check(&targets)?;
    }
    let measuring = measuring(args, writes);
    announce_destruction(&all, &progress);

    let show = |share: f64, left: Duration, doing: &str| progress.at(share, left, doing);
    let measured = iowhy_stripe::members::measure(&targets, measuring, &show);
    let mut record =
        AdviceRecord::new(demand.words(), demand.is_open(), args.seed, &targets, &measured.members);
    let names: Vec<String> = targets.iter().map(|disk| disk.facts.name.clone()).collect();
    let sizes: Vec<u64> = targets.iter().map(|disk| disk.facts.size_bytes).collect();
    let Some(known) = disks::known(&measured, &names, &sizes) else {
        return Err(too_little(&measured.members));
    };
    record.warnings.extend(known.warnings);
    let apart = measured.sharers.iter().all(|members| *members == 1);
    record.warnings.extend(measured.warnings);
    record.warnings.extend(stand_ins(writes, &targets));
    let question = Question {
        load: &demand,
        settings: &args.set,
        interleaves: &interleaves,
        disks: &known.disks,
        seed: args.seed,
        progress: &show,
    };
    let simulated = simulate::simulate(&question)?;
    record.warnings.extend(simulated.warnings.clone());
    let slowest = simulated.slowest.and_then(|index| known.disks.get(index)).or(known.disks.first());
    record.rules = slowest.map(|disk| rule_records(&disk.read, &demand, targets.len())).unwrap_or_default();
    let throttled_latency = demand.is_open() && known.disks.iter().any(|disk| disk.read.burst_s > 0.0);
    record.warnings.extend(throttled_latency.then(throttled_latency_warning));
    let pick = pick::pick(&simulated, known.good_fit && apart && !throttled_latency);
    if let (Some(plan), Some(pick)) = (plan, &pick) {
        let proofs = prove::run(&plan, targets, &simulated, pick, &question, &mut record.warnings)?;
        record.proof = proofs.into_iter().map(|proof| proof_record(proof, &names)).collect();
    }
    record.fill(&known.disks, simulated, pick);
    record.interrupted = interrupt::requested();
    drop(progress);
    outputs.warn(&record.warnings);
    let ending = ending(&record);
    outputs
        .finish(&screen::text(&screen::stripe::advice(&record, Detail::Screen), output::width()), &record)?;
    Ok(ending)
}

fn ending(record: &AdviceRecord) -> Ending {
    let interrupted = record.interrupted.then(ending::interrupted);
    let failure = record.proof.iter().find_map(|proof| proof.failure.as_ref()).map(|failure| {
        Problem::failed(format!("a stripe of the proof failed: {failure}"))
            .hint("the simulated advice stands; `--prove` again repeats the proof")
    });
    Ending::from_reasons(interrupted.into_iter().chain(failure))
}

/// Time of each stripe and whether all are measured; `None` without `--prove`.
fn prove_options(args: &StripeAdviseArgs) -> Result<Option<(Duration, bool)>, Problem> {
    match (args.prove, args.prove_time) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Problem::refused("`--prove-time` has no effect without `--prove`")
            .hint("add `--prove`, or leave `--prove-time` out")),
        (Some(which), time) => Ok(Some((time.unwrap_or(DEFAULT_PROVE_TIME), which == Proofs::All))),
    }
}

fn measuring(args: &StripeAdviseArgs, writes: bool) -> iowhy_stripe::members::Plan {
    let time = args.time.unwrap_or(DEFAULT_TIME);
    iowhy_stripe::members::Plan { time, time_chosen: args.time.is_some(), writes, seed: args.seed }
}

fn throttled_latency_warning() -> Warning {
    Warning::new(
        "throttled-latency",
        "the simulation does not know that a throttle releases requests in steps of 100 ms: latencies below its limits are \
         longer than predicted",
    )
    .next("`--prove` measures them; `--clients N` compares by the time of the trace instead")
}

impl Load for Demand {
    fn workload(&self) -> Option<&Workload> {
        Demand::workload(self)
    }

    fn is_open(&self) -> bool {
        Demand::is_open(self)
    }

    fn clients(&self) -> Option<u32> {
        Demand::clients(self)
    }

    fn run_first(
        &self,
        machine: &Machine,
        seed: u64,
        first: u64,
        warnings: &mut Vec<Warning>,
    ) -> Result<Outcome, Problem> {
        Demand::run_first(self, machine, seed, first, warnings, &Watch::new(self.trace(), false, None))
    }

    fn volume_requests(&self, machine: &Machine, seed: u64, first: u64) -> Result<VolumeRequests, Problem> {
        Demand::volume_requests(self, machine, seed, first)
    }
}

fn rule_records(curve: &iowhy_core::service::ServiceCurve, demand: &Demand, disks: usize) -> Vec<RuleRecord> {
    let record = |rule: rules::Rule| RuleRecord {
        id: rule.id.to_owned(),
        name: rule.name.to_owned(),
        interleave_bytes: rule.interleave_bytes,
    };
    rules::published(curve, demand.workload(), disks).into_iter().map(record).collect()
}

fn proof_record(proof: Proof, names: &[String]) -> ProofRecord {
    ProofRecord {
        interleave_bytes: proof.interleave_bytes,
        role: proof.role,
        left_out: left_out(&proof.members, names),
        predicted_bytes_per_second: proof.predicted_bytes_per_second,
        throughput: proof.throughput,
        predicted_latency_ns: proof.predicted_latency_ns,
        latency: proof.latency,
        error_percent: proof.error_percent,
        of_fastest: proof.relative_speed,
        members: MemberRecord::all_of(&proof.run, &proof.member_names),
        failure: proof.run.failure,
        samples: proof.run.samples,
    }
}

fn demand(args: &StripeAdviseArgs) -> Result<Demand, Problem> {
    let demand = match (&args.workload, &args.trace) {
        (Some(workload), None) => Demand::for_workload(workload)?,
        (None, Some(path)) => Demand::for_trace(path.clone(), args.clients),
        (Some(_), Some(_)) => {
            return Err(Problem::refused("`--workload` and `--trace` are two loads").hint("give one of them"));
        }
        (None, None) => {
            return Err(Problem::refused(
                "nothing to advise for: neither `--workload` nor `--trace` is given",
            )
            .hint(
                "for example `--workload readers=8,bytes=64k,size=1g,pattern=permuted,requests=2000`; \
                 `iowhy sim --workload list` shows names and keys",
            ));
        }
    };
    if args.trace.as_ref() == Some(&PathBuf::from("-")) {
        return Err(Problem::refused("a trace from stdin can be read once, and every interleave needs it")
            .hint("write it to a file first"));
    }
    Ok(demand)
}

/// Bytes of scratch files, all together: room for the workload's file.
fn scratch_bytes(args: &StripeAdviseArgs, demand: &Demand) -> u64 {
    if let Some(bytes) = args.size {
        return bytes;
    }
    match demand.workload().map(|workload| &workload.what) {
        Some(What::Region { size, .. }) => (*size).clamp(SCRATCH_BYTES / 4, 4 * SCRATCH_BYTES),
        _ => SCRATCH_BYTES,
    }
}

/// What is said where writes are asked for and were not measured.
fn stand_ins(writes: bool, disks: &[Target]) -> Option<Warning> {
    let cannot: Vec<&Target> = disks.iter().filter(|disk| !writes_can_be_measured(disk)).collect();
    let first = cannot.first().filter(|_| writes)?;
    let name = &first.facts.name;
    let (why, next) = match first.writable() {
        true => (
            format!("`{name}` allows no writes past the cache"),
            "name directories on file systems that allow O_DIRECT".to_owned(),
        ),
        false => (
            format!("`{name}` is user data, and iowhy does not write to it without permission"),
            format!(
                "name directories, and scratch files in them are written; to destroy all data on the disks: \
                 `--destroy-data {name}`, once for each"
            ),
        ),
    };
    let message =
        format!("the load writes; the simulation assumes that a write costs what a read costs: {why}");
    Some(Warning::new("reads-stand-in-for-writes", message).next(next))
}

fn too_little(members: &[Measured]) -> Problem {
    match members.iter().find_map(|member| member.failure.clone()) {
        Some(failure) => Problem::failed(format!("a member could not be measured: {failure}"))
            .hint("`iowhy bench --state direct MEMBER` shows it alone"),
        None => Problem::failed("interrupted before the disks were known: nothing to simulate")
            .hint("raise `--time` on slow disks, and let it end"),
    }
}
