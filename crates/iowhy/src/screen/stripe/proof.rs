//! The proof of `stripe advise`: measured and simulated speed of stripes, and the verdict.

use iowhy_core::estimate::Estimate;
use iowhy_core::units::{self, Bytes, signed_per_cent};
use iowhy_stripe::prove::{Purpose, Verdict};
use iowhy_view::document::{Cut, Detail, Part, Section, Shape, Table};

use crate::record::stripe_advice::{AdviceRecord, JudgedBy, ProofRecord};
use crate::screen::members;

/// The proof and the work of the members; empty where nothing was measured.
pub(super) fn sections(record: &AdviceRecord, detail: Detail) -> Vec<Section> {
    if record.proof.is_empty() {
        return Vec::new();
    }
    let mut parts: Vec<Part> = verdict(record).into_iter().chain(without(record)).collect();
    parts.push(Part::Table(table(record, detail)));
    parts.push(Part::Note(
        "stripes in user space, measured in interleaved rounds (n); ± or [low, high]: 95 % interval of the median over \
         rounds, of speeds paired within rounds"
            .to_owned(),
    ));
    let failure = |proof: &ProofRecord| {
        Some(format!("{}: failed: {}", Bytes(proof.interleave_bytes), proof.failure.as_ref()?))
    };
    parts.push(Part::Remarks(record.proof.iter().filter_map(failure).collect()));
    let picked = record.proof.iter().filter(|proof| proof.role == Purpose::Pick);
    let picked: Vec<_> =
        picked.map(|proof| (Bytes(proof.interleave_bytes).to_string(), proof.members.as_slice())).collect();
    vec![Section::new("proof", parts), members::section(&picked)]
}

fn table(record: &AdviceRecord, detail: Detail) -> Table {
    let what = match record.judged_by {
        JudgedBy::Latency => "#mean latency",
        JudgedBy::Time => "#measured",
    };
    let mut table =
        Table::new(["#interleave", "stripe", "#predicted", what, "#n", "#error", "#speed / fastest"]);
    for proof in &record.proof {
        let (predicted, measured) = match proof.predicted_latency_ns {
            Some(ns) => (units::time(ns), proof.latency.as_ref()),
            None => (units::rate_bytes(proof.predicted_bytes_per_second), proof.throughput.as_ref()),
        };
        let shown = |estimate: Option<&Estimate>| match estimate {
            Some(estimate) if detail.is_page() => units::estimate(estimate),
            Some(estimate) => units::estimate_narrow(estimate),
            None => "-".to_owned(),
        };
        table.row([
            interleave(proof, record.members.len()),
            stripe(proof, record),
            predicted,
            shown(measured),
            measured.map_or(proof.samples.len() as u64, |estimate| estimate.n).to_string(),
            proof.error_percent.map_or_else(|| "-".to_owned(), |error| signed_per_cent(error, 0)),
            if is_the_fastest(proof) { "1".to_owned() } else { shown(proof.of_fastest.as_ref()) },
        ]);
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes = vec![shape(&[]), shape(&["predicted"]), shape(&["predicted", "n"])];
    table.cut = Some(Cut::End);
    table
}

/// One disk alone has no interleave.
fn interleave(proof: &ProofRecord, disks: usize) -> String {
    match disks.saturating_sub(proof.left_out.len()) {
        1 => "none".to_owned(),
        _ => Bytes(proof.interleave_bytes).to_string(),
    }
}

/// Why it was measured; the disk that is left out, by its number.
fn stripe(proof: &ProofRecord, record: &AdviceRecord) -> String {
    let number = |name: &String| record.members.iter().position(|disk| disk.name == *name).map(|at| at + 1);
    let out: Vec<String> =
        proof.left_out.iter().filter_map(|name| number(name).map(|n| n.to_string())).collect();
    match out.as_slice() {
        [] => proof.role.id().to_owned(),
        out => format!("{} disk {}", proof.role.id(), out.join(", ")),
    }
}

/// Whether it is the baseline of the others.
fn is_the_fastest(proof: &ProofRecord) -> bool {
    let one = |share: &Estimate| share.low == 1.0 && share.value == 1.0 && share.high == 1.0;
    proof.left_out.is_empty() && proof.of_fastest.as_ref().is_some_and(one)
}

/// The verdict on the pick.
fn verdict(record: &AdviceRecord) -> Option<Part> {
    let pick = record.proof.iter().find(|proof| proof.role == Purpose::Pick)?;
    let Some(share) = &pick.of_fastest else {
        let too_few = "too few rounds of the recommended interleave were measured.";
        return Some(Part::Lead(Verdict::Inconclusive.id().to_owned(), too_few.to_owned()));
    };
    let verdict = Verdict::of_pick(share);
    let name = Bytes(pick.interleave_bytes);
    let speed =
        format!("{} of the speed of the fastest measured stripe (n = {})", units::share(share), share.n);
    let text = match verdict {
        _ if is_the_fastest(pick) => format!("{name} is the fastest measured stripe (n = {}).", share.n),
        Verdict::Proven => format!("{name} reaches {speed}."),
        Verdict::Contradicted => format!("{name} reaches only {speed}. Use the fastest one."),
        Verdict::Inconclusive => format!("{name} reaches {speed}: the interval is too wide."),
    };
    let word = if is_the_fastest(pick) { Verdict::Proven } else { verdict }.id();
    Some(Part::Lead(word.to_owned(), text))
}

/// The verdict on leaving the slowest disk out.
fn without(record: &AdviceRecord) -> Option<Part> {
    let without = record.proof.iter().find(|proof| proof.role == Purpose::Without)?;
    let share = without.of_fastest.as_ref()?;
    let (verdict, faster) = match Verdict::of_leaving_out(share) {
        Verdict::Contradicted => (Verdict::Proven, "leaving it out is slower"),
        Verdict::Proven => (Verdict::Proven, "leaving it out is faster"),
        Verdict::Inconclusive => (Verdict::Inconclusive, "whether leaving it out is faster is undecided"),
    };
    let text = format!(
        "Without {} the speed is {} of that of the fastest stripe of all disks (n = {}): {faster}.",
        without.left_out.join(", "),
        units::share(share),
        share.n
    );
    Some(Part::Lead(verdict.id().to_owned(), text))
}
