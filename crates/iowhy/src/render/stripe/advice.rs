//! The screen of `stripe advise`: the recommendation first, then the table it comes from, the rules; the proof is `proof`'s.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::service::ServiceCurve;
use iowhy_core::text::visible;
use iowhy_core::units::{self, Bytes};

use super::{interleave, proof};
use crate::record::stripe_advice::{AdviceRecord, DiskPointRecord, PickRecord, PointRecord, StragglerRecord};
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{MIN_WIDTH, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Lines longer than this are hard to read.
const MAX_WIDTH: usize = 100;

/// The whole result.
pub fn screen(record: &AdviceRecord, width: usize) -> String {
    let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
    let mut text = String::new();
    for disk in &record.members {
        let mut curve = disk.curve.as_ref().map_or_else(|| "not known".to_owned(), in_words);
        if let Some(write) = &disk.write_curve {
            curve.push_str(&format!("; writes: {}", in_words(write)));
        }
        let lost = disk.overwritten.as_ref().map_or("", |_| ", written over by this run, its data is lost");
        let line = format!("{}, {}{lost}: {curve}", visible(&disk.name), Bytes(disk.size_bytes));
        text.push_str(&wrap(&line, width, "", "  "));
    }
    text.push_str(&measured(record, width));
    text.push_str(&wrap(&format!("load: {}", record.load), width, "", "  "));
    text.push('\n');
    if let Some(pick) = &record.pick {
        text.push_str(&recommendation(record, pick, width));
        text.push('\n');
    }
    text.push_str(&points(record, width));
    text.push_str(&counts(record, width));
    text.push_str(&rules(record));
    text.push_str(&proof::section(record, width));
    if record.interrupted {
        text.push_str("interrupted: partial result\n");
    }
    text
}

/// Disks and directions side by side in the table of what was measured: more would not fit a line.
const MAX_COLUMNS: usize = 3;

/// What the curves were fitted to: a column for each disk and direction.
fn measured(record: &AdviceRecord, width: usize) -> String {
    let mut columns: Vec<(String, Vec<&DiskPointRecord>)> = Vec::new();
    for (number, disk) in record.members.iter().enumerate() {
        for (write, word) in [(false, "reads"), (true, "writes")] {
            let own: Vec<_> = disk.points.iter().filter(|point| point.write == write).collect();
            if !own.is_empty() {
                columns.push((format!("disk {} {word}", number + 1), own));
            }
        }
    }
    let mut text = String::new();
    for block in columns.chunks(MAX_COLUMNS) {
        text.push_str(&columns_side_by_side(block));
    }
    if text.is_empty() {
        return text;
    }
    let all = record.members.iter().flat_map(|disk| &disk.points);
    let rounds: Vec<u64> = all.map(|point| point.time_per_request.n).collect();
    text.push_str(&footnote(
        &format!(
            "time per request at each queue depth, random unless sequential; n = {} rounds; ± or [low, high]: the longer \
             arm or both ends of the 95 % interval of the median (of fewer than 5 rounds: their range)",
            of_rounds(&rounds)
        ),
        width,
    ));
    text
}

fn columns_side_by_side(columns: &[(String, Vec<&DiskPointRecord>)]) -> String {
    let Some((_, first)) = columns.first() else { return String::new() };
    let like = |point: &DiskPointRecord| (point.block_bytes, point.depth, point.sequential);
    let rows: Vec<Vec<String>> = first
        .iter()
        .map(|shape| {
            let how = match (shape.depth, shape.sequential) {
                (_, true) => " in order".to_owned(),
                (1, false) => String::new(),
                (depth, false) => format!(" x {depth}"),
            };
            let mut row = vec![format!("{}{how}", Bytes(shape.block_bytes))];
            row.extend(columns.iter().map(|(_, points)| {
                let own = points.iter().find(|point| like(point) == like(shape));
                own.map_or_else(|| "-".to_owned(), |point| units::estimate_narrow(&point.time_per_request))
            }));
            row
        })
        .collect();
    let header: Vec<&str> =
        std::iter::once("requests").chain(columns.iter().map(|(name, _)| name.as_str())).collect();
    let mut align = vec![Align::Right; header.len()];
    align[0] = Align::Left;
    layout(&header, &align, &rows)
}

/// What a table's words mean.
pub(super) fn footnote(said: &str, width: usize) -> String {
    format!("{DIM}{}{DIM:#}\n", wrap(said, width, "", "").trim_end())
}

/// `5`, or `3 to 5`.
fn of_rounds(rounds: &[u64]) -> String {
    match (rounds.iter().min(), rounds.iter().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "0".to_owned(),
    }
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
    if let Some(straggler) = &pick.straggler {
        text.push_str(&slowest(record, straggler, disks, width));
    }
    text
}

/// Below this the slowest disk is as good as the others.
pub(super) const WORTH_LEAVING_OUT: f64 = 1.03;

/// Who holds the stripe up, and what leaving it out would give.
fn slowest(record: &AdviceRecord, straggler: &StragglerRecord, disks: usize, width: usize) -> String {
    let name = visible(&straggler.name);
    let mut text = match straggler.load > WORTH_LEAVING_OUT * straggler.load_of_others {
        true => format!(
            "straggler: `{name}` is at {:.0} % of what it can do when the others are at {:.0} %.",
            straggler.load * 100.0,
            straggler.load_of_others * 100.0
        ),
        false => format!("slowest: `{name}`, but this load does not wait for it more than for the others."),
    };
    let Some(without) = &straggler.without else {
        text.push_str(" the load does not fit on the others without it.");
        return wrap(&text, width, "  ", "  ");
    };
    let gain = straggler.gain_without.unwrap_or(1.0);
    let turns = match without.disks {
        1 => "the other disk alone".to_owned(),
        many => format!("the other {many} with turns of {}", interleave(without.interleave_bytes)),
    };
    let rate = judged(record, without);
    if gain >= WORTH_LEAVING_OUT {
        let _ = write!(
            text,
            " leave it out: {turns} are simulated to be {gain:.2} times as fast ({rate}), with 1/{disks} less room."
        );
    } else {
        let _ = write!(text, " keep it: {turns} are simulated at {gain:.2} times the speed ({rate}).");
    }
    wrap(&text, width, "  ", "  ")
}

fn points(record: &AdviceRecord, width: usize) -> String {
    if record.points.is_empty() {
        return String::new();
    }
    // Loads one by one where they fit, else the least and the most.
    let listed = point_table(record, true);
    let mut text = match listed.lines().all(|line| visible_width(line) <= width) {
        true => listed,
        false => point_table(record, false),
    };
    let judged = if record.judged_by == "latency" { "latency: the mean" } else { "time: of the load" };
    text.push_str(&footnote(
        &format!(
            "simulated; {judged}, against the best; busiest: bytes of the busiest disk over the mean of all; load: share of the \
             time that each disk is at work or at its limit; one stream: reads of 1 MiB in order, one at a time"
        ),
        width,
    ));
    text
}

fn point_table(record: &AdviceRecord, each: bool) -> String {
    let picked = record.pick.as_ref().map(|pick| pick.interleave_bytes);
    let least = record.points.iter().map(|point| point.judged_s).fold(f64::INFINITY, f64::min);
    let rows: Vec<Vec<String>> = record
        .points
        .iter()
        .map(|point| {
            let mut marks = Vec::new();
            if Some(point.interleave_bytes) == picked {
                marks.push("pick");
            }
            if point.judged_s <= least {
                marks.push("best");
            }
            vec![
                Bytes(point.interleave_bytes).to_string(),
                against(point.judged_s, least),
                units::rate_bytes(point.bytes_per_second),
                units::count_rate(point.requests_per_second),
                point.split_share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0)),
                format!("{:.2}", point.most_over_mean),
                loads(point, each),
                units::rate_bytes(point.stream_bytes_per_second),
                marks.join(", "),
            ]
        })
        .collect();
    let mut align = [Align::Right; 9];
    align[8] = Align::Left;
    layout(
        &[
            "interleave",
            record.judged_by,
            "rate",
            "requests",
            "split",
            "busiest",
            "load of each",
            "one stream",
            "",
        ],
        &align,
        &rows,
    )
}

/// How many times the best it is; a dash where the best takes no time.
fn against(judged_s: f64, least: f64) -> String {
    match least {
        least if least > 0.0 => format!("{:.2}", judged_s / least),
        _ if judged_s <= 0.0 => "1.00".to_owned(),
        _ => "-".to_owned(),
    }
}

/// What stripes are compared by, of one of them: its rate, or its mean latency.
fn judged(record: &AdviceRecord, point: &PointRecord) -> String {
    match record.judged_by {
        "latency" => format!("{} mean latency", units::time(point.judged_s * 1e9)),
        _ => units::rate_bytes(point.bytes_per_second),
    }
}

/// `98 / 49 / 49 %`, or `49 to 98 %`.
fn loads(point: &PointRecord, each: bool) -> String {
    let percent = |load: f64| format!("{:.0}", load * 100.0);
    if each {
        let all: Vec<String> = point.loads.iter().map(|load| percent(*load)).collect();
        return format!("{} %", all.join(" / "));
    }
    let least = point.loads.iter().copied().fold(f64::INFINITY, f64::min);
    let most = point.loads.iter().copied().fold(0.0, f64::max);
    if least.is_finite() { format!("{} to {} %", percent(least), percent(most)) } else { "-".to_owned() }
}

/// What fewer disks would do.
fn counts(record: &AdviceRecord, width: usize) -> String {
    let Some(one) = record.by_disks.iter().find(|point| point.disks == 1) else { return String::new() };
    // Disks that are all alike need no names.
    let differ = record.pick.as_ref().is_some_and(|pick| pick.straggler.is_some());
    let each: Vec<String> = record
        .by_disks
        .iter()
        .map(|point| {
            let speed = judged(record, point);
            let mut what = match point.disks {
                1 => format!("1 disk {speed}"),
                many => {
                    let times = match one.judged_s / point.judged_s {
                        times if times.is_finite() => format!("x{times:.2}, "),
                        _ => String::new(),
                    };
                    format!("{many} disks {speed} ({times}at {})", Bytes(point.interleave_bytes))
                }
            };
            if differ && !point.left_out.is_empty() {
                what.push_str(&format!(" without {}", point.left_out.join(", ")));
            }
            what
        })
        .collect();
    let order = if differ { ", the fastest disks first" } else { "" };
    format!(
        "\n{}",
        wrap(
            &format!("by disks, each at its fastest interleave{order} (simulated): {}", each.join("; ")),
            width,
            "",
            "  "
        )
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
