//! The screen of `stripe advise`: the recommendation first, then the table it comes from, the rules, the proof.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::service::ServiceCurve;
use iowhy_core::units::{self, Bytes};

use super::interleave;
use crate::record::stripe_advice::{AdviceRecord, PickRecord, PointRecord};
use crate::render::members;
use crate::render::paragraph::{LEAST_WIDTH, wrap};
use crate::render::table::{Align, layout};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Lines longer than this are hard to read.
const MOST_WIDTH: usize = 100;
/// The picked stripe is proved when it is this close to the fastest measured one.
const PROVED: f64 = 0.9;

/// The whole result.
pub fn screen(record: &AdviceRecord, width: usize) -> String {
    let width = width.clamp(LEAST_WIDTH, MOST_WIDTH);
    let mut text = String::new();
    for disk in &record.members {
        let curve = disk.curve.as_ref().map_or_else(|| "not known".to_owned(), in_words);
        text.push_str(&wrap(&format!("{}, {}: {curve}", disk.name, Bytes(disk.size_bytes)), width, "", "  "));
    }
    text.push_str(&wrap(&format!("load: {}", record.load), width, "", "  "));
    text.push('\n');
    if let Some(pick) = &record.pick {
        text.push_str(&recommendation(record, pick, width));
        text.push('\n');
    }
    text.push_str(&points(record));
    text.push_str(&counts(record, width));
    text.push_str(&rules(record));
    text.push_str(&proof(record, width));
    if record.interrupted {
        text.push_str("interrupted: this is what was known by then\n");
    }
    text
}

/// What a disk is like.
fn in_words(curve: &ServiceCurve) -> String {
    let mut parts = Vec::new();
    if curve.most_requests_per_second > 0.0 {
        parts.push(format!("at most {}", units::count_rate(curve.most_requests_per_second)));
    }
    if curve.most_bytes_per_second > 0.0 {
        parts.push(format!("at most {}", units::rate_bytes(curve.most_bytes_per_second)));
    }
    if curve.access_ns > 0.0 || curve.per_byte_ns > 0.0 {
        let mut alone = units::time(curve.access_ns);
        if curve.per_byte_ns > 0.0 {
            alone.push_str(&format!(" and {} after that", units::rate_bytes(1e9 / curve.per_byte_ns)));
        }
        if curve.units > 1 {
            alone.push_str(&format!(", {} requests side by side", curve.units));
        }
        parts.insert(0, alone);
    }
    if curve.positioning_ns > 0.0 {
        parts.push(format!("of which positioning {}", units::time(curve.positioning_ns)));
    }
    format!("{} (fit off by {:.0} %)", parts.join(", "), curve.residual_percent)
}

fn recommendation(record: &AdviceRecord, pick: &PickRecord, width: usize) -> String {
    let disks = record.members.len();
    let mut text = format!("{BOLD}");
    text.push_str(&wrap(
        &format!("take turns of {} over {disks} disks", interleave(pick.interleave_bytes)),
        width,
        "",
        "",
    ));
    if text.ends_with('\n') {
        text.pop();
    }
    let _ = writeln!(text, "{BOLD:#}");
    let as_good: Vec<String> = pick.as_good_bytes.iter().map(|bytes| Bytes(*bytes).to_string()).collect();
    let mut why = match as_good.as_slice() {
        [_] => "no other interleave that was simulated is within 3 % of it.".to_owned(),
        many if many.len() == record.points.len() => "for this load every interleave is as good.".to_owned(),
        many => format!("as good for this load, within 3 %: {}.", many.join(", ")),
    };
    let _ = write!(
        why,
        " confidence: {}: if the disks are a quarter faster or slower than measured, it loses at most {:.0} % to the best.",
        pick.confidence,
        (pick.regret - 1.0) * 100.0
    );
    if pick.stream_share < 0.97 {
        let _ = write!(
            why,
            " what it costs: one stream of large reads or writes gets {:.0} % of what the best interleave for streams gives.",
            pick.stream_share * 100.0
        );
    }
    text.push_str(&wrap(&why, width, "  ", "  "));
    text
}

fn points(record: &AdviceRecord) -> String {
    if record.points.is_empty() {
        return String::new();
    }
    let picked = record.pick.as_ref().map(|pick| pick.interleave_bytes);
    let least = record.points.iter().map(|point| point.time_s).fold(f64::INFINITY, f64::min);
    let rows: Vec<Vec<String>> = record
        .points
        .iter()
        .map(|point| {
            let mut marks = Vec::new();
            if Some(point.interleave_bytes) == picked {
                marks.push("pick");
            }
            if point.time_s <= least {
                marks.push("fastest");
            }
            let mut row = vec![
                Bytes(point.interleave_bytes).to_string(),
                (point.interleave_bytes / 512).to_string(),
                format!("{:.2}", point.time_s / least.max(f64::MIN_POSITIVE)),
            ];
            row.extend(common(point));
            row.push(marks.join(", "));
            row
        })
        .collect();
    let mut text = layout(
        &["interleave", "sectors", "time", "rate", "requests", "split", "busiest", "busy", "one stream", ""],
        &[
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
        ],
        &rows,
    );
    let _ = writeln!(
        text,
        "{DIM}simulated; time: against the fastest; busiest: bytes of the busiest disk over the mean of all;\n\
         one stream: reads (or writes, if they cost the same) of 1 MiB in order, one at a time{DIM:#}"
    );
    text
}

/// Rate, requests, splits, load, stream.
fn common(point: &PointRecord) -> Vec<String> {
    vec![
        units::rate_bytes(point.bytes_per_second),
        units::count_rate(point.requests_per_second),
        point.split_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        format!("{:.2}", point.most_over_mean),
        point.utilisation.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        units::rate_bytes(point.stream_bytes_per_second),
    ]
}

/// What fewer disks would do.
fn counts(record: &AdviceRecord, width: usize) -> String {
    let Some(one) = record.by_disks.iter().find(|point| point.disks == 1) else { return String::new() };
    let each: Vec<String> = record
        .by_disks
        .iter()
        .map(|point| match point.disks {
            1 => format!("1 disk {}", units::rate_bytes(point.bytes_per_second)),
            many => format!(
                "{many} disks {} (x{:.2}, at {})",
                units::rate_bytes(point.bytes_per_second),
                one.time_s / point.time_s.max(f64::MIN_POSITIVE),
                Bytes(point.interleave_bytes)
            ),
        })
        .collect();
    format!(
        "\n{}",
        wrap(&format!("by disks, each at its fastest interleave: {}", each.join("; ")), width, "", "  ")
    )
}

fn rules(record: &AdviceRecord) -> String {
    let rows: Vec<Vec<String>> = record
        .rules
        .iter()
        .map(|rule| {
            let bytes = rule.interleave_bytes.map(|bytes| Bytes((bytes as u64).max(512)).to_string());
            vec![rule.name.to_owned(), bytes.unwrap_or_else(|| "-".to_owned())]
        })
        .collect();
    format!("\n{}", layout(&["rule of thumb", "gives"], &[Align::Left, Align::Right], &rows))
}

fn proof(record: &AdviceRecord, width: usize) -> String {
    if record.proof.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = record
        .proof
        .iter()
        .map(|proof| {
            vec![
                Bytes(proof.interleave_bytes).to_string(),
                proof.role.to_owned(),
                units::rate_bytes(proof.predicted_bytes_per_second),
                proof.throughput.as_ref().map_or_else(|| "-".to_owned(), units::estimate),
                proof.error_percent.map_or_else(|| "-".to_owned(), |error| format!("{error:+.0} %")),
                proof.of_fastest.as_ref().map_or_else(|| "-".to_owned(), units::estimate),
            ]
        })
        .collect();
    let mut text =
        format!("\n{BOLD}proof{BOLD:#}: stripes of these disks in user space, in interleaved rounds\n");
    text.push_str(&layout(
        &["interleave", "", "predicted", "measured", "error", "of the fastest"],
        &[Align::Right, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right],
        &rows,
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
    text.push_str(&members::table(&picked));
    text
}

/// The verdict on the pick.
fn proved(record: &AdviceRecord) -> String {
    let Some(pick) = record.proof.iter().find(|proof| proof.role == "pick") else { return String::new() };
    let Some(share) = &pick.of_fastest else {
        return "cannot tell: too few rounds of the pick were measured".to_owned();
    };
    let name = Bytes(pick.interleave_bytes);
    let loss = (1.0 - share.value) * 100.0;
    if share.low >= PROVED {
        format!("proved: {name} is within {loss:.1} % of the fastest that was measured")
    } else if share.high < PROVED {
        format!("refuted: {name} is {loss:.0} % slower than the fastest that was measured; take that one")
    } else {
        format!(
            "cannot tell: {name} is {loss:.1} % below the fastest that was measured, and the interval is too wide"
        )
    }
}
