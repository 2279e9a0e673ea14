//! The short answers of the path report: the verdict, what is faster, and a line on trust.
//!
//! Nothing is decided here: rates, limits and gains are read from the record.

use iowhy_core::estimate::Estimate;
use iowhy_core::limit::{Limit, LimitId};
use iowhy_core::units;
use iowhy_path::cross_check::Verdict as CheckVerdict;
use iowhy_path::plan::{WRITE_CACHED, WRITE_DIRECT};
use iowhy_path::reconcile::Verdict as CellVerdict;
use iowhy_view::document::{Detail, Part};

use super::cross_check::Labels;
use crate::record::{CellRecord, FasterRecord, Record};

/// Changes of each question on a screen without `--verbose`.
const MAX_CHANGES: usize = 2;

/// Rates and limits, a line each for random reads, other reads, and writes.
pub(super) fn verdict(record: &Record) -> Vec<Part> {
    let lines: Vec<Part> = [random(record), other(record), writes(record)].into_iter().flatten().collect();
    let lines = if lines.is_empty() { plain(record) } else { lines };
    busy(record).into_iter().chain(lines).collect()
}

/// Said first: every figure below is one of a busy machine.
fn busy(record: &Record) -> Option<Part> {
    let busy = record.warnings.iter().any(|warning| warning.code == "busy-machine");
    let text = "other programs use the CPUs: rates are lower and intervals wider than on an idle machine";
    busy.then(|| lead("busy machine", text.to_owned()))
}

fn random(record: &Record) -> Option<Part> {
    let mut rates = Vec::new();
    rates.extend(per_second(record, "direct-4k").map(|rate| format!("{rate} one at a time")));
    rates.extend(per_second(record, "direct-4k-d32").map(|rate| format!("{rate} with 32 in flight")));
    let rates = or_reason(record, rates.join(", "), "direct-4k")?;
    Some(lead("random reads", answers(record, &[("", rates, "random")])))
}

fn other(record: &Record) -> Option<Part> {
    let rate = |key: &str| or_reason(record, bytes(record, key).unwrap_or_default(), key);
    match (rate("cold-seq-128k"), rate("cached-1m")) {
        (Some(cold), Some(cached)) => {
            let both = [("", cold, "sequential"), ("cached ", cached, "cached")];
            Some(lead("sequential reads", answers(record, &both)))
        }
        (Some(cold), None) => Some(lead("sequential reads", answers(record, &[("", cold, "sequential")]))),
        (None, cached) => Some(lead("cached reads", answers(record, &[("", cached?, "cached")]))),
    }
}

fn writes(record: &Record) -> Option<Part> {
    let label = |wanted: &str| record.requests.iter().find(|request| request.label == wanted);
    let rate = |wanted: &str| bytes(record, &label(wanted)?.key);
    let mut rates = Vec::new();
    rates.extend(rate(WRITE_CACHED).map(|rate| format!("{rate} sequential")));
    rates.extend(rate(WRITE_DIRECT).map(|rate| format!("{rate} direct")));
    let durable = per_second(record, "write-sync-4k");
    rates.extend(durable.map(|rate| format!("{rate} durable (4 KiB + fdatasync)")));
    (!rates.is_empty()).then(|| lead("writes", rates.join(", ")))
}

fn lead(name: &str, text: String) -> Part {
    Part::Lead(format!("{name:<16}"), text)
}

/// Name, rate and limit of each question; limits that are unknown come last, because their words are long.
fn answers(record: &Record, questions: &[(&str, String, &str)]) -> String {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for (name, rate, question) in questions {
        match limited(record, question) {
            Some(Words::Known(limit)) => known.push(format!("{name}{rate}, {limit}")),
            Some(Words::Unknown(limit)) => {
                known.push(format!("{name}{rate}"));
                unknown.push(format!("{name}{limit}"));
            }
            None => known.push(format!("{name}{rate}")),
        }
    }
    known.append(&mut unknown);
    known.join("; ")
}

/// A limit in words.
enum Words {
    Known(&'static str),
    Unknown(String),
}

fn limited(record: &Record, question: &str) -> Option<Words> {
    let limit: &Limit = &record.limits.iter().find(|limit| limit.question == question)?.limit;
    Some(match limit.id {
        LimitId::Cpu => Words::Known("limited by the CPUs"),
        LimitId::OneThread => Words::Known("limited by one thread's CPU"),
        LimitId::Depth => Words::Known("limited by queue depth"),
        LimitId::CopyBandwidth => Words::Known("limited by copy bandwidth"),
        LimitId::Device => Words::Known("limited by the device"),
        LimitId::Throttle => Words::Known("limited by a throttle"),
        LimitId::Unknown => {
            let words = limit.sentence.split_once(": ").map_or(limit.sentence.as_str(), |(_, words)| words);
            Words::Unknown(words.trim_end_matches('.').to_owned())
        }
    })
}

/// For targets without such requests (character devices, SCSI): the first and the last row.
fn plain(record: &Record) -> Vec<Part> {
    let ends = [record.requests.first(), record.requests.last()];
    let row = |(index, request): (usize, Option<&crate::record::RequestRecord>)| {
        let request = request.filter(|_| index == 0 || record.requests.len() > 1)?;
        let cell = find(record, &request.key)?;
        let time = units::time(cell.time_per_request.as_ref()?.value);
        let rate = bytes(record, &request.key).map(|rate| format!(", {rate}")).unwrap_or_default();
        Some(Part::Lead(request.label.clone(), format!("{time} a request{rate}")))
    };
    ends.into_iter().enumerate().filter_map(row).collect()
}

/// The rates; without any why there are none; `None` where the cell was not measured.
fn or_reason(record: &Record, rates: String, key: &str) -> Option<String> {
    let cell = record.cells.iter().find(|cell| cell.key == key)?;
    Some(match rates.is_empty() {
        true if cell.verdict == CellVerdict::Ok.id() => "unknown".to_owned(),
        true => format!("no figure ({})", cell.verdict),
        false => rates,
    })
}

/// A cell whose figures are evidence.
fn find<'a>(record: &'a Record, key: &str) -> Option<&'a CellRecord> {
    let bad = [CellVerdict::Mislabelled.id(), CellVerdict::Failed.id()];
    record.cells.iter().find(|cell| cell.key == key && !bad.contains(&cell.verdict.as_str()))
}

fn per_second(record: &Record, key: &str) -> Option<String> {
    find(record, key)?.requests_per_second.as_ref().map(|rate| units::count_rate(rate.value))
}

fn bytes(record: &Record, key: &str) -> Option<String> {
    let cell = find(record, key).filter(|cell| cell.claimed_bytes > 0)?;
    cell.throughput.as_ref().map(|rate| units::rate_bytes(rate.value))
}

/// What is faster, a line for each question, and what the figures rest on.
pub(super) fn faster(record: &Record, labels: &Labels<'_>, detail: Detail) -> Vec<Part> {
    let mut questions: Vec<(&str, Vec<&FasterRecord>)> = Vec::new();
    for found in &record.faster {
        match questions.iter_mut().find(|(question, _)| *question == found.question) {
            Some((_, changes)) => changes.push(found),
            None => questions.push((&found.question, vec![found])),
        }
    }
    let most = if detail >= Detail::Verbose { usize::MAX } else { MAX_CHANGES };
    let change = |found: &&FasterRecord| format!("{} {}", found.change, times(&found.gain));
    let line = |(question, changes): (&str, Vec<&FasterRecord>)| {
        let changes: Vec<String> = changes.iter().take(most).map(change).collect();
        Part::Lead(format!("faster {question:<18}"), changes.join("; "))
    };
    let mut parts: Vec<Part> = questions.into_iter().map(line).collect();
    parts.extend(trust(record, labels));
    parts
}

/// `4.34x [3.97, 4.84]`
fn times(gain: &Estimate) -> String {
    units::factor(gain).replacen(' ', "x ", 1)
}

/// Rounds, overhead, model, cross-check, in one line.
fn trust(record: &Record, labels: &Labels<'_>) -> Option<Part> {
    if record.requests.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    words.push(format!("{} rounds", rounds(record)));
    words.extend(record.ruler.harness_per_request.map(|harness| format!("overhead {:.0} ns", harness.value)));
    let errors = record.held_out.iter().map(|held| held.error_percent.abs());
    words.extend(errors.reduce(f64::max).map(|worst| format!("model error {worst:.0} %")));
    words.extend(checks(labels));
    words.push("more: -v".to_owned());
    Some(Part::Lead("trust".to_owned(), words.join("; ")))
}

/// `cross-check 1 agree, 2 disagree`; the others are inconclusive.
fn checks(labels: &Labels<'_>) -> Option<String> {
    let count = |wanted: CheckVerdict| labels.iter().filter(|(_, check)| check.verdict == wanted).count();
    let (agree, disagree) = (count(CheckVerdict::Confirmed), count(CheckVerdict::Disagrees));
    (!labels.is_empty()).then(|| format!("cross-check {agree} agree, {disagree} disagree"))
}

/// The rounds of the canonical requests: `11`, or `11 to 19` where some were measured further.
pub(super) fn rounds(record: &Record) -> String {
    let canonical = |cell: &&CellRecord| record.requests.iter().any(|request| request.key == cell.key);
    let counts = || record.cells.iter().filter(canonical).map(|cell| cell.samples.len());
    match (counts().min(), counts().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (_, most) => most.unwrap_or(record.rounds as usize).to_string(),
    }
}
