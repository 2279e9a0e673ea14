//! `iowhy stripe advise`: measures the disks, simulates the workload on stripes of them, recommends an interleave, and
//! with `--prove` measures it against others.

mod curves;
pub(crate) mod members;
pub(crate) mod pick;
pub(crate) mod points;
mod prove;
mod replay;

use std::path::PathBuf;

use iowhy_core::problem::Problem;
use iowhy_core::service::ServiceCurve;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_probe::interrupt;
use iowhy_probe::target::Target;
use iowhy_sim::sweep::Settings;
use iowhy_sim::workload::What;
use iowhy_stripe::rules;

use crate::cli::{OutputArgs, StripeAdviseArgs};
use crate::command::ending::{self, Ending};
use crate::command::shared;
use crate::command::sim::Demand;
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::stripe_advice::{AdviceRecord, RuleRecord};
use crate::render;

/// 8 sectors to 32768, doubling: the range of the test of 1999.
const USUAL_INTERLEAVES: std::ops::RangeInclusive<u32> = 12..=24;
/// A scratch file in each directory, all together.
const SCRATCH_BYTES: u64 = 768 << 20;

/// Runs the command.
///
/// # Errors
/// Members, workloads and interleaves that cannot be; too little measured to know the disks.
pub(super) fn run(args: &StripeAdviseArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let demand = demand(args)?;
    let interleaves =
        args.interleave.clone().unwrap_or_else(|| USUAL_INTERLEAVES.map(|power| 1 << power).collect());
    let set = &args.set;
    let plan = prove::Plan::of(args, &demand)?;
    let writes = demand.writes(points::MOST_REQUESTS)?;
    let outputs = Outputs::open(options)?;
    interrupt::install();
    let progress = Progress::new(outputs.quiet());
    let scratch = scratch_bytes(args, &demand);
    let disks = members::resolve(&args.disks, &args.destroy_data, writes, scratch, &progress)?;
    let all: Vec<&Target> = disks.iter().collect();
    outputs.spare(&all)?;
    if let Some(plan) = &plan {
        plan.check(&disks)?;
    }
    shared::announce_destruction(&all, &progress);

    let measured = members::measure(&disks, writes, args, &progress)?;
    let mut record =
        AdviceRecord::new(demand.words(), demand.is_open(), args.seed, &disks, &measured.members);
    let names: Vec<&str> = disks.iter().map(|disk| disk.facts.name.as_str()).collect();
    let sizes: Vec<u64> = disks.iter().map(|disk| disk.facts.size_bytes).collect();
    let Some(known) = curves::known(&measured, &names, &sizes) else {
        return Err(too_little(&measured));
    };
    record.warnings.extend(known.warnings);
    record.warnings.extend(measured.warnings);
    record.warnings.extend(stand_ins(writes, &disks));
    let question = points::Question {
        demand: &demand,
        set,
        interleaves: &interleaves,
        disks: &known.disks,
        seed: args.seed,
        progress: &progress,
    };
    let simulated = points::simulate(&question)?;
    record.warnings.extend(simulated.warnings.clone());
    let slowest = simulated.slowest.and_then(|index| known.disks.get(index)).or(known.disks.first());
    record.rules = slowest.map(|disk| rules_of(&disk.read, &demand, disks.len())).unwrap_or_default();
    let unlike = demand.is_open() && known.disks.iter().any(|disk| disk.read.burst_s > 0.0);
    if unlike {
        record.warnings.push(
            Warning::new(
                "throttled-latency",
                "a throttle hands requests on in steps of a tenth of a second, which the simulation does not know: latencies \
                 below its limits are longer than it says",
            )
            .next("`--prove` measures them; `--clients N` compares by the time of the trace instead"),
        );
    }
    let pick = pick::pick(&simulated, known.good_fit && !unlike);
    if let (Some(plan), Some(pick)) = (plan, &pick) {
        record.proof = prove::run(&plan, disks, &simulated, pick, &question, &mut record.warnings)?;
    }
    drop(progress);
    record.fill(&known.disks, simulated, pick);
    record.interrupted = interrupt::requested();
    outputs.warn(&record.warnings);
    let interrupted = record.interrupted.then(ending::interrupted);
    let failure = record.proof.iter().find_map(|proof| proof.failure.as_ref()).map(|failure| {
        Problem::failed(format!("the stripe that was to prove the advice failed: {failure}"))
            .hint("the simulated advice stands; `--prove` again tries it once more")
    });
    let ending = Ending::from_reasons(interrupted.into_iter().chain(failure));
    outputs.finish(&render::stripe::advice_screen(&record, output::width()), &record)?;
    Ok(ending)
}

fn demand(args: &StripeAdviseArgs) -> Result<Demand, Problem> {
    let demand = match (&args.workload, &args.trace) {
        (Some(text), None) => Demand::of_workload(text)?,
        (None, Some(path)) => Demand::of_trace(path.clone(), args.clients),
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
    let cannot: Vec<&Target> = disks.iter().filter(|disk| !members::writes_can_be_measured(disk)).collect();
    let first = cannot.first().filter(|_| writes)?;
    let name = &first.facts.name;
    let (why, next) = match first.writable() {
        true => (
            format!("`{name}` allows no writes past the cache"),
            "name directories on file systems that allow O_DIRECT".to_owned(),
        ),
        false => (
            format!("`{name}` is yours and is not written to unasked"),
            format!(
                "name directories, and scratch files in them are written; to destroy all data on the disks: \
                 `--destroy-data {name}`, once for each"
            ),
        ),
    };
    let message = format!("the load writes, and writes are taken to cost what reads cost: {why}");
    Some(Warning::new("reads-stand-in-for-writes", message).next(next))
}

fn too_little(measured: &members::Outcome) -> Problem {
    match measured.members.iter().find_map(|member| member.failure.clone()) {
        Some(failure) => Problem::failed(format!("a member could not be measured: {failure}"))
            .hint("`iowhy bench --state direct MEMBER` shows it alone"),
        None => Problem::failed("interrupted before the disks were known: nothing to simulate")
            .hint("raise `--time` on slow disks, and let it end"),
    }
}

/// The published rules, from the curve.
fn rules_of(curve: &ServiceCurve, demand: &Demand, disks: usize) -> Vec<RuleRecord> {
    let (outstanding, request_bytes) = match demand.workload() {
        Some(workload) => (f64::from(workload.clients), workload.request_bytes() as f64),
        None => (f64::NAN, f64::NAN),
    };
    let positioning_ns = match curve.access_ns {
        // A throttled disk takes what its limits say.
        ns if ns > 0.0 && curve.burst_s == 0.0 => ns,
        _ if curve.most_requests_per_second > 0.0 => 1e9 / curve.most_requests_per_second,
        _ => 0.0,
    };
    let inputs = rules::Inputs {
        positioning_s: positioning_ns / 1e9,
        bytes_per_second: curve.media_bytes_per_second(),
        outstanding,
        request_bytes,
        disks: disks as f64,
    };
    let unknown = rules::Inputs { outstanding: 1.0, ..inputs };
    let rule = |id: &'static str, name: &'static str, bytes: Option<f64>| RuleRecord {
        id,
        name,
        interleave_bytes: bytes.map(|bytes| (bytes / 512.0).round().max(1.0) * 512.0),
    };
    vec![
        rule(
            "chen-patterson",
            "Chen, Patterson 1990: S P X (L - 1) + 0.5 KB, S = 1/4",
            rules::chen_patterson(&inputs),
        ),
        rule(
            "chen-patterson-unknown",
            "the same, concurrency unknown: 2/3 P X",
            rules::chen_patterson_unknown(&unknown),
        ),
        rule("lee-katz", "Lee, Katz 1991: sqrt(P X (L - 1) request / N)", rules::lee_katz(&inputs)),
    ]
}

/// Words for a size in a message.
fn words(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// Settings as text.
type Set = Settings;
