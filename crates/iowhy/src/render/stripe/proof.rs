//! The proof on the screen of `stripe advise`: measured and simulated throughput of stripes, and the verdict.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::estimate::Estimate;
use iowhy_core::units::{self, Bytes};

use super::advice::{WORTH_LEAVING_OUT, footnote};
use crate::record::stripe_advice::{AdviceRecord, ProofRecord};
use crate::screen::measured::members;
use iowhy_view::document::Chapter;
use iowhy_view::terminal::table::{Align, layout};
use iowhy_view::terminal::wrap::wrap;

const BOLD: Style = Style::new().bold();
/// The picked stripe is proved when it is this close to the fastest measured one.
const PROVED: f64 = 0.9;

/// The section of the proof; empty where nothing was measured.
pub(super) fn section(record: &AdviceRecord, width: usize) -> String {
    if record.proof.is_empty() {
        return String::new();
    }
    let shown = |estimate: Option<&Estimate>| estimate.map_or_else(|| "-".to_owned(), units::estimate);
    let rows: Vec<Vec<String>> = record
        .proof
        .iter()
        .map(|proof| {
            let (predicted, measured) = match proof.predicted_latency_ns {
                Some(ns) => (units::time(ns), proof.latency.as_ref()),
                None => (units::rate_bytes(proof.predicted_bytes_per_second), proof.throughput.as_ref()),
            };
            vec![
                turns_of(proof, record.members.len()),
                role(proof, record),
                predicted,
                shown(measured),
                measured.map_or(proof.samples.len() as u64, |estimate| estimate.n).to_string(),
                proof.error_percent.map_or_else(|| "-".to_owned(), |error| units::signed_per_cent(error, 0)),
                match is_the_fastest(proof) {
                    true => "1, itself".to_owned(),
                    false => shown(proof.of_fastest.as_ref()),
                },
            ]
        })
        .collect();
    let mut text =
        format!("\n{BOLD}proof{BOLD:#}: stripes of these disks in user space, in interleaved rounds\n");
    let mut align = [Align::Right; 7];
    align[1] = Align::Left;
    let what = if record.judged_by == "latency" { "mean latency" } else { "measured" };
    text.push_str(&layout(
        &["interleave", "", "predicted", what, "n", "error", "speed of the fastest"],
        &align,
        &rows,
    ));
    text.push_str(&footnote(
        "n: rounds; ± or [low, high]: 95 % interval of the median over rounds, of speeds paired within rounds",
        width,
    ));
    for proof in &record.proof {
        if let Some(failure) = &proof.failure {
            text.push_str(&wrap(
                &format!("{}: failed: {failure}", Bytes(proof.interleave_bytes)),
                width,
                "  ",
                "  ",
            ));
        }
    }
    text.push_str(&wrap(&proved(record), width, "", ""));
    let picked: Vec<_> = record
        .proof
        .iter()
        .filter(|proof| proof.role == "pick")
        .map(|proof| (Bytes(proof.interleave_bytes).to_string(), proof.members.as_slice()))
        .collect();
    let members = Chapter { sections: vec![members::section(&picked)], ..Chapter::default() };
    let members = crate::screen::text(&members, 100);
    if !members.is_empty() {
        text.push('\n');
        text.push_str(&members);
    }
    text
}

/// Its interleave; one disk alone takes no turns.
fn turns_of(proof: &ProofRecord, disks: usize) -> String {
    match disks - proof.left_out.len().min(disks) {
        1 => "none".to_owned(),
        _ => Bytes(proof.interleave_bytes).to_string(),
    }
}

/// Why it was measured; who is left out, by number.
fn role(proof: &ProofRecord, record: &AdviceRecord) -> String {
    let number = |name: &String| record.members.iter().position(|disk| disk.name == *name).map(|at| at + 1);
    let out: Vec<String> =
        proof.left_out.iter().filter_map(|name| number(name).map(|n| n.to_string())).collect();
    match out.as_slice() {
        [] => proof.role.to_owned(),
        out => format!("{} disk {}", proof.role, out.join(", ")),
    }
}

/// Whether it is the baseline of the others.
fn is_the_fastest(proof: &ProofRecord) -> bool {
    let one = |share: &Estimate| share.low == 1.0 && share.value == 1.0 && share.high == 1.0;
    proof.left_out.is_empty() && proof.of_fastest.as_ref().is_some_and(one)
}

/// The verdict on the pick.
fn proved(record: &AdviceRecord) -> String {
    let Some(pick) = record.proof.iter().find(|proof| proof.role == "pick") else { return String::new() };
    let Some(share) = &pick.of_fastest else {
        return "inconclusive: too few rounds of the pick were measured".to_owned();
    };
    let name = Bytes(pick.interleave_bytes);
    let of =
        format!("{} of the speed of the fastest that was measured, n = {}", units::share(share), share.n);
    let mut text = if is_the_fastest(pick) {
        format!("proved: {name} is the fastest that was measured, n = {}", share.n)
    } else if share.low >= PROVED {
        format!("proved: {name} has {of}")
    } else if share.high < PROVED {
        format!("refuted: {name} has {of}; take that one")
    } else {
        format!("inconclusive: {name} has {of}: the interval is too wide")
    };
    if let Some(without) = record.proof.iter().find(|proof| proof.role == "without")
        && let Some(share) = &without.of_fastest
    {
        let held = if share.low > WORTH_LEAVING_OUT {
            "leaving it out is faster, measured"
        } else if share.high < 1.0 {
            "leaving it out is slower, measured"
        } else {
            "leaving it out: inconclusive"
        };
        let _ = write!(
            text,
            "; without {} it is {} of that speed, n = {}: {held}",
            without.left_out.join(", "),
            units::share(share),
            share.n
        );
    }
    text
}
