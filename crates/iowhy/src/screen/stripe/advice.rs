//! `stripe advise`: the recommendation, the simulated stripes it comes from, the proof, and the measured disks.

use iowhy_core::service::ServiceCurve;
use iowhy_core::text::visible;
use iowhy_core::units::{self, Bytes, count_rate, counted, percent, rate_bytes, time};
use iowhy_stripe::pick::WORTH_LEAVING_OUT;
use iowhy_view::document::{Chapter, Chart, Detail, Part, Section, Shape, Table};
use iowhy_view::svg::lines::{self, Dot, Frame, Series};
use iowhy_view::svg::{Scale, WIDE};

use super::{interleave, proof};
use crate::record::stripe_advice::{
    AdviceRecord, DiskPointRecord, DiskRecord, JudgedBy, PickRecord, PointRecord, StragglerRecord,
};
use crate::screen::{members, surroundings};

/// The chapter.
pub fn chapter(record: &AdviceRecord, detail: Detail) -> Chapter {
    let mut sections = vec![
        Section::new("", recommendation(record)),
        Section::new("simulated stripes", points(record, detail)),
        Section::quiet("Fewer disks", by_disks(record).into_iter().collect()),
    ];
    sections.extend(proof::sections(record, detail));
    sections.push(Section::quiet("Rules of thumb", rules(record).part().into_iter().collect()));
    sections.push(Section::new("measured disks", measured(record)));
    if detail.is_page() {
        sections.extend(surroundings::warnings(&record.warnings));
    }
    let load = [format!("load: {}", record.load)];
    Chapter {
        title: format!("Which interleave for {}?", counted(record.members.len() as u64, "disk", "disks")),
        facts: load.into_iter().chain(record.members.iter().map(disk)).collect(),
        sections,
        ..Chapter::default()
    }
}

fn disk(disk: &DiskRecord) -> String {
    let mut curve = disk.curve.as_ref().map_or_else(|| "unknown speed".to_owned(), in_words);
    if let Some(write) = &disk.write_curve {
        curve.push_str(&format!("; writes: {}", in_words(write)));
    }
    let lost = disk.overwritten.as_ref().map_or("", |_| ", written over by this run: its data is lost");
    format!("{}, {}{lost}: {curve}", visible(&disk.name), Bytes(disk.size_bytes))
}

/// A fitted curve.
fn in_words(curve: &ServiceCurve) -> String {
    let mut parts = Vec::new();
    if curve.access_ns > 0.0 || curve.per_byte_ns > 0.0 {
        parts.push(format!("{} per request", time(curve.access_ns)));
        if curve.per_byte_ns > 0.0 {
            parts.push(format!("then {}", rate_bytes(1e9 / curve.per_byte_ns)));
        }
        if curve.units > 1 {
            parts.push(format!("{} requests in parallel", curve.units));
        }
    }
    if curve.most_requests_per_second > 0.0 {
        parts.push(format!("at most {}", count_rate(curve.most_requests_per_second)));
    }
    if curve.most_bytes_per_second > 0.0 {
        parts.push(format!("at most {}", rate_bytes(curve.most_bytes_per_second)));
    }
    if curve.positioning_ns > 0.0 {
        parts.push(format!("positioning {} of each", time(curve.positioning_ns)));
    }
    format!("{} (fit error {})", parts.join(", "), units::per_cent(curve.residual_percent, 0))
}

fn recommendation(record: &AdviceRecord) -> Vec<Part> {
    let interrupted = record.interrupted.then(|| Part::Text("interrupted: partial result".to_owned()));
    let Some(pick) = &record.pick else {
        let verdict = Part::Verdict("No interleave can be recommended.".to_owned());
        return std::iter::once(verdict).chain(interrupted).collect();
    };
    let disks = counted(record.members.len() as u64, "disk", "disks");
    let verdict = format!("Recommended interleave: {} on {disks}.", interleave(pick.interleave_bytes));
    let mut parts = vec![Part::Verdict(verdict)];
    parts.extend(interrupted);
    parts.push(Part::List(reasons(record, pick)));
    parts
}

fn reasons(record: &AdviceRecord, pick: &PickRecord) -> Vec<String> {
    let equal: Vec<String> = pick.as_good_bytes.iter().map(|bytes| Bytes(*bytes).to_string()).collect();
    let mut reasons = vec![match equal.as_slice() {
        [_] => "No other simulated interleave is within 3 % of it.".to_owned(),
        many if many.len() == record.points.len() => {
            "Every simulated interleave is within 3 % of it.".to_owned()
        }
        many => format!("Within 3 % of each other: {}.", many.join(", ")),
    }];
    reasons.push(format!(
        "Confidence: {}. It loses at most {} if the disks are a quarter faster or slower than measured.",
        pick.confidence.id(),
        percent(pick.regret - 1.0)
    ));
    // A stream is no loss within the noise of the simulation.
    if pick.stream_share < 0.97 {
        reasons.push(format!(
            "One stream of large requests gets {} of its speed with the best interleave for streams.",
            percent(pick.stream_share)
        ));
    }
    reasons.extend(pick.straggler.iter().map(|straggler| slowest(record, straggler)));
    reasons
}

/// The disk that the stripe waits for, and the effect of leaving it out.
fn slowest(record: &AdviceRecord, straggler: &StragglerRecord) -> String {
    let name = visible(&straggler.name);
    let mut text = if straggler.load > WORTH_LEAVING_OUT * straggler.load_of_others {
        format!(
            "straggler: `{name}` is {} busy while the others are {} busy.",
            percent(straggler.load),
            percent(straggler.load_of_others)
        )
    } else {
        format!("slowest: `{name}`, but this load does not wait for it more than for the others.")
    };
    let Some(without) = &straggler.without else {
        text.push_str(" The load does not fit on the others.");
        return text;
    };
    let gain = straggler.gain_without.unwrap_or(1.0);
    let others = match without.disks {
        1 => "the other disk".to_owned(),
        many => format!("the other {many} with an interleave of {}", interleave(without.interleave_bytes)),
    };
    let rate = judged(record, without);
    text.push_str(&if gain >= WORTH_LEAVING_OUT {
        let room = record.members.len();
        format!(
            " Leave it out: the speed of {others} is {gain:.2}x, simulated ({rate}), with 1/{room} less room."
        )
    } else {
        format!(" Keep it: the speed of {others} is {gain:.2}x, simulated ({rate}).")
    });
    text
}

/// Simulated stripes; a page draws their time.
fn points(record: &AdviceRecord, detail: Detail) -> Vec<Part> {
    if record.points.is_empty() {
        return Vec::new();
    }
    let table = point_table(record);
    let by = match record.judged_by {
        JudgedBy::Latency => "latency: mean",
        JudgedBy::Time => "time: of the load",
    };
    let note = Part::Note(format!(
        "simulated, exact for this model and seed; {by}, relative to the best; most / mean: bytes of the busiest disk over the mean; \
         busy: each disk; stream: sequential reads of 1 MiB, one at a time"
    ));
    let part = if detail.is_page() { Part::Chart(chart(record, table)) } else { Part::Table(table) };
    vec![part, note]
}

fn point_table(record: &AdviceRecord) -> Table {
    let picked = record.pick.as_ref().map(|pick| pick.interleave_bytes);
    let least = record.points.iter().map(|point| point.judged_s).fold(f64::INFINITY, f64::min);
    let by = match record.judged_by {
        JudgedBy::Latency => "#latency",
        JudgedBy::Time => "#time",
    };
    let headings =
        ["#interleave", by, "#throughput", "#requests", "#split", "#most / mean", "#busy", "#stream", ""];
    let mut table = Table::new(headings);
    for point in &record.points {
        let marks = [
            (Some(point.interleave_bytes) == picked).then_some("pick"),
            (point.judged_s <= least).then_some("best"),
        ];
        table.row([
            Bytes(point.interleave_bytes).to_string(),
            relative(point.judged_s, least),
            rate_bytes(point.throughput_bytes_per_second),
            count_rate(point.requests_per_second),
            point.split_share.map_or_else(|| "-".to_owned(), percent),
            format!("{:.2}", point.most_over_mean),
            loads(point),
            rate_bytes(point.stream_bytes_per_second),
            marks.into_iter().flatten().collect::<Vec<_>>().join(", "),
        ]);
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes = vec![
        shape(&[]),
        shape(&["requests"]),
        shape(&["requests", "most / mean"]),
        shape(&["requests", "most / mean", "busy"]),
    ];
    table
}

fn chart(record: &AdviceRecord, table: Table) -> Chart {
    let dot = |point: &PointRecord| Dot {
        x: point.interleave_bytes as f64,
        y: point.judged_s,
        ends: None,
        tip: format!("{}\n{}", Bytes(point.interleave_bytes), time(point.judged_s * 1e9)),
    };
    let alt = match &record.pick {
        Some(pick) => format!("recommended: {}", Bytes(pick.interleave_bytes)),
        None => "no interleave can be recommended".to_owned(),
    };
    let what = match record.judged_by {
        JudgedBy::Latency => "mean latency",
        JudgedBy::Time => "time of the load",
    };
    let frame = Frame {
        x: ("interleave", Scale::Log2, &|v| Bytes(v as u64).to_string()),
        y: (what, Scale::Linear, &|s| time(s * 1e9)),
        width: WIDE,
        height: 280.0,
        alt: &alt,
    };
    let dots = record.points.iter().map(dot).collect();
    let series = [Series { name: "simulated".to_owned(), dots, joined: true, modelled: false }];
    let svg = lines::chart(&series, &frame);
    Chart { title: format!("Simulated {what} by interleave"), alt, svg, table }
}

/// `1.04`; a dash where the best takes no time.
fn relative(judged_s: f64, least: f64) -> String {
    match judged_s / least {
        ratio if ratio.is_finite() => format!("{ratio:.2}"),
        _ if judged_s <= 0.0 => "1.00".to_owned(),
        _ => "-".to_owned(),
    }
}

/// The figure that stripes are compared by: throughput, or mean latency.
fn judged(record: &AdviceRecord, point: &PointRecord) -> String {
    match record.judged_by {
        JudgedBy::Latency => format!("mean latency {}", time(point.judged_s * 1e9)),
        JudgedBy::Time => rate_bytes(point.throughput_bytes_per_second),
    }
}

/// `98 / 49 / 49 %`
fn loads(point: &PointRecord) -> String {
    let percents: Vec<f64> = point.loads.iter().map(|load| load * 100.0).collect();
    match percents.iter().all(|load| load.is_finite()) && !percents.is_empty() {
        true => format!("{} %", members::listed(&percents, |load| format!("{load:.0}"))),
        false => "-".to_owned(),
    }
}

/// The speed of fewer disks.
fn by_disks(record: &AdviceRecord) -> Option<Part> {
    let one = record.by_disks.iter().find(|point| point.disks == 1)?;
    // Disks that are all alike need no names.
    let differ = record.pick.as_ref().is_some_and(|pick| pick.straggler.is_some());
    let each = record.by_disks.iter().map(|point| {
        let disks = counted(point.disks as u64, "disk", "disks");
        let mut text = format!("{disks} {}", judged(record, point));
        if point.disks > 1 {
            let times = Some(one.judged_s / point.judged_s).filter(|times| times.is_finite());
            let times = times.map_or_else(String::new, |times| format!("{times:.2}x, "));
            text.push_str(&format!(" ({times}interleave {})", Bytes(point.interleave_bytes)));
        }
        if differ && !point.left_out.is_empty() {
            text.push_str(&format!(" without {}", point.left_out.join(", ")));
        }
        text
    });
    let order = if differ { ", fastest disks first" } else { "" };
    let each = each.collect::<Vec<_>>().join("; ");
    Some(Part::Text(format!("By number of disks, each with its best interleave{order} (simulated): {each}.")))
}

fn rules(record: &AdviceRecord) -> Table {
    let mut table = Table::new(["rule", "#interleave"]);
    for rule in &record.rules {
        let bytes = rule.interleave_bytes.map(|bytes| Bytes(bytes as u64).to_string());
        table.row([rule.name.clone(), bytes.unwrap_or_else(|| "unknown".to_owned())]);
    }
    table
}

/// Disks and directions side by side: more would not fit a line.
const MAX_COLUMNS: usize = 3;

/// The points that the curves were fitted to, a column for each disk and direction.
fn measured(record: &AdviceRecord) -> Vec<Part> {
    let mut columns: Vec<(String, Vec<&DiskPointRecord>)> = Vec::new();
    for (number, disk) in record.members.iter().enumerate() {
        for (write, word) in [(false, "reads"), (true, "writes")] {
            let points: Vec<_> = disk.points.iter().filter(|point| point.write == write).collect();
            if !points.is_empty() {
                columns.push((format!("#disk {} {word}", number + 1), points));
            }
        }
    }
    let mut parts: Vec<Part> =
        columns.chunks(MAX_COLUMNS).map(|block| Part::Table(side_by_side(block))).collect();
    if !parts.is_empty() {
        let all = || record.members.iter().flat_map(|disk| &disk.points).map(|p| p.time_per_request.n);
        let n = match (all().min(), all().max()) {
            (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
            (least, _) => least.unwrap_or(0).to_string(),
        };
        parts.push(Part::Note(format!(
            "time per request, n = {n} rounds; ± or [low, high]: 95 % interval of the median (of fewer than 5 rounds: their \
             range)"
        )));
    }
    parts
}

fn side_by_side(columns: &[(String, Vec<&DiskPointRecord>)]) -> Table {
    let headings = std::iter::once("requests").chain(columns.iter().map(|(name, _)| name.as_str()));
    let mut table = Table::new(headings);
    let key = |point: &DiskPointRecord| (point.block_bytes, point.depth, point.sequential);
    for point in columns.first().into_iter().flat_map(|(_, first)| first) {
        let kind = match (point.depth, point.sequential) {
            (_, true) => "sequential".to_owned(),
            (1, false) => "random".to_owned(),
            (depth, false) => format!("random, depth {depth}"),
        };
        let mut row = vec![format!("{} {kind}", Bytes(point.block_bytes))];
        row.extend(columns.iter().map(|(_, points)| {
            let same = points.iter().find(|other| key(other) == key(point));
            same.map_or_else(|| "-".to_owned(), |same| units::estimate_narrow(&same.time_per_request))
        }));
        table.row(row);
    }
    table
}
