//! Miss ratios: the answer of the LRU curve, a table of policies and sizes, and the curves as a picture.

use iowhy_core::units::{Bytes, count, counted};
use iowhy_sim::policy::PolicyId;
use iowhy_view::document::{Cell, Chapter, Chart, Curve, Detail, Part, Plot, Section, Table};
use iowhy_view::svg::lines::{self, Dot, Frame, Series};
use iowhy_view::svg::{Scale, WIDE};

use super::surroundings;
use crate::record::trace::{CliffRecord, CurvePoint, CurveRecord, MrcRecord, RatiosFound, ShapeRecord};

/// The chapter.
pub fn chapter(record: &MrcRecord, detail: Detail) -> Chapter {
    let ratios = &record.found;
    let mut misses = vec![
        Part::Table(table(ratios, |point| Some(point.miss_ratio))),
        Part::Note(format!("*: best policy of its size; {}", basis(ratios))),
    ];
    if points(ratios).any(|point| point.byte_miss_ratio.is_some()) {
        misses.push(Part::Lead("share of bytes that miss".to_owned(), String::new()));
        misses.push(Part::Table(table(ratios, |point| point.byte_miss_ratio)));
    }
    let mut sections = vec![
        Section::new("", shape(ratios)),
        Section::new("share of references that miss", misses),
        Section::quiet("Miss ratio against cache size", vec![Part::Plot(plot(ratios))]),
    ];
    if detail.is_page() {
        sections.extend(surroundings::warnings(&record.warnings));
    }
    Chapter { title: record.file.clone(), about: record.format.clone(), facts: facts(ratios), sections }
}

fn points(record: &RatiosFound) -> impl Iterator<Item = &CurvePoint> {
    record.curves.iter().flat_map(|curve| &curve.points)
}

/// `72 MiB` or `20,000 objects`.
fn size(record: &RatiosFound, blocks: u64) -> String {
    match record.block_bytes {
        Some(bytes) => Bytes(blocks.saturating_mul(bytes)).to_string(),
        None => counted(blocks, "object", "objects"),
    }
}

fn facts(record: &RatiosFound) -> Vec<String> {
    let about = if record.distinct_exact { "" } else { "about " };
    let sum = match record.block_bytes {
        Some(bytes) => format!(
            "{} {} of {}, {about}{} of them different ({})",
            counted(record.counted_requests, "request touches", "requests touch"),
            counted(record.references, "block", "blocks"),
            Bytes(bytes),
            count(record.distinct),
            Bytes(record.distinct.saturating_mul(bytes))
        ),
        None => format!(
            "{} for {about}{}",
            counted(record.references, "request", "requests"),
            counted(record.distinct, "different object", "different objects")
        ),
    };
    let cold = 100.0 * record.cold_miss_ratio;
    let mut facts = vec![format!("{sum}; first uses, which every cache misses: {about}{cold:.1} %")];
    let left = &record.left_out;
    let reasons = [
        (left.no_access, "that move no bytes"),
        (left.empty, "of no bytes"),
        (left.too_large, "too large to be true"),
        (left.other_kind, "of the other kind"),
    ];
    let reasons: Vec<String> =
        reasons.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))).collect();
    if !reasons.is_empty() {
        facts.push(format!("not counted: requests {}", reasons.join(", ")));
    }
    facts
}

/// The answer of the LRU curve: how much is enough, and its steep falls.
fn shape(record: &RatiosFound) -> Vec<Part> {
    let Some(ShapeRecord { cliffs, saves_90_percent_blocks, saves_all_blocks }) = &record.lru_shape else {
        return Vec::new();
    };
    let verdict = match (saves_90_percent_blocks, saves_all_blocks) {
        (Some(most), Some(all)) if most == all => {
            format!("LRU with {} avoids every miss that a cache of any size can avoid", size(record, *all))
        }
        (Some(most), Some(all)) => format!(
            "LRU with {} avoids 90 % of the misses that a cache of any size can avoid; with {}, all of them",
            size(record, *most),
            size(record, *all)
        ),
        _ => "nothing is used twice: no cache of any size ever hits".to_owned(),
    };
    let fall = |cliff: &CliffRecord| {
        let why = match cliff.like_a_loop {
            true => format!(": typical of a loop over {}", size(record, cliff.middle_blocks)),
            false => String::new(),
        };
        format!(
            "between {} and {} the miss ratio of LRU falls from {:.2} to {:.2}{why}",
            size(record, cliff.from_blocks),
            size(record, cliff.to_blocks),
            cliff.miss_ratio_before,
            cliff.miss_ratio_behind
        )
    };
    let falls: Vec<String> = cliffs.iter().map(fall).collect();
    let falls = (!falls.is_empty()).then_some(Part::List(falls));
    std::iter::once(Part::Verdict(verdict)).chain(falls).collect()
}

/// A row for each size that was asked for, a column for each policy.
fn table(record: &RatiosFound, value: impl Fn(&CurvePoint) -> Option<f64>) -> Table {
    let mut sizes: Vec<u64> = points(record).filter(|point| point.asked).map(|point| point.blocks).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let policies = record.curves.iter().map(|curve| format!("#{}", curve.policy));
    let mut table = Table::new(["#size", "#of trace"].map(str::to_owned).into_iter().chain(policies));
    for blocks in sizes {
        let percent = 100.0 * blocks as f64 / record.distinct.max(1) as f64;
        let share = if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") };
        let ratios = ratios(record, blocks, &value);
        table.row([Cell::from(size(record, blocks)), share.into()].into_iter().chain(ratios));
    }
    table.keys = 2;
    table
}

/// The ratios of one size; the best are marked, as far as their errors can tell.
fn ratios(record: &RatiosFound, blocks: u64, value: impl Fn(&CurvePoint) -> Option<f64>) -> Vec<Cell> {
    // An unknown error excludes nothing.
    let found = |curve: &CurveRecord| {
        let point = curve.points.iter().find(|point| point.blocks == blocks)?;
        Some((value(point)?, point.sampling_error.unwrap_or(f64::INFINITY)))
    };
    // The bound is no policy that could be chosen.
    let is_bound = |curve: &CurveRecord| curve.policy == PolicyId::Belady.id();
    let online: Vec<(f64, f64)> = record.curves.iter().filter(|c| !is_bound(c)).filter_map(found).collect();
    // Four digits are shown.
    let best = online.iter().map(|(ratio, error)| ratio + error).fold(f64::INFINITY, f64::min);
    let may_be_best = |(ratio, error): (f64, f64)| ratio - error <= best + 0.000_05;
    let all = online.iter().all(|point| may_be_best(*point));
    let cell = |curve: &CurveRecord| {
        let Some((ratio, error)) = found(curve) else { return Cell::from("- ") };
        let interval = match error {
            0.0 => String::new(),
            error if error.is_finite() => format!("±{error:.4}"),
            _ => "±?".to_owned(),
        };
        match !is_bound(curve) && !all && may_be_best((ratio, error)) {
            true => Cell::Good(format!("{ratio:.4}{interval}*")),
            false => Cell::Text(format!("{ratio:.4}{interval} ")),
        }
    };
    record.curves.iter().map(cell).collect()
}

/// How the ratios were found.
fn basis(record: &RatiosFound) -> String {
    let rate = |asked: bool| {
        let sampled = points(record).find(|point| point.asked == asked && point.basis == "sampled");
        sampled.map(|point| point.sample_rate * 100.0)
    };
    match (rate(true), rate(false)) {
        (Some(rate), _) => format!(
            "from a sample of {rate:.3} % of the blocks; ± is half of the 95 % interval, from eight parts of the sample"
        ),
        (None, Some(rate)) => format!(
            "this table is exact; between its sizes, curves other than LRU come from {rate:.3} % of the blocks"
        ),
        (None, None) => "exact: every reference was followed".to_owned(),
    }
}

fn plot(record: &RatiosFound) -> Plot {
    let mut table = Table::new(["policy", "#size", "#miss ratio", "#sampling error"]);
    let mut series = Vec::new();
    let mut curves = Vec::new();
    for curve in &record.curves {
        let policy = &curve.policy;
        let mut dots = Vec::new();
        for point in &curve.points {
            let (room, miss) = (size(record, point.blocks), point.miss_ratio);
            let error = match point.sampling_error {
                Some(0.0) => "exact".to_owned(),
                Some(error) => format!("±{error:.4}"),
                None => "unknown".to_owned(),
            };
            let tip = format!("{policy}, {room}\nmiss ratio {miss:.4}");
            table.row([policy.clone(), room, format!("{miss:.4}"), error]);
            let ends = point.sampling_error.filter(|e| *e > 0.0).map(|e| (miss - e, miss + e));
            dots.push(Dot { x: point.blocks as f64, y: miss, ends, tip });
        }
        let places = dots.iter().map(|dot| (dot.x, dot.y)).collect();
        curves.push(Curve { name: policy.clone(), letter: letter(policy), dots: places });
        series.push(Series { name: policy.clone(), dots, joined: true, modelled: false });
    }
    let mean = |one: &Series| one.dots.iter().map(|dot| dot.y).sum::<f64>() / one.dots.len().max(1) as f64;
    let best = series.iter().min_by(|a, b| mean(a).total_cmp(&mean(b)));
    let alt =
        best.map_or_else(String::new, |best| format!("fewest misses, mean of all sizes: {}", best.name));
    let frame = Frame {
        x: ("cache size", Scale::Log2, &|blocks| size(record, blocks as u64)),
        y: ("miss ratio", Scale::Linear, &|ratio| format!("{ratio:.1}")),
        width: WIDE,
        height: 380.0,
        alt: &alt,
    };
    let svg = lines::chart(&series, &frame);
    let ends = |pick: fn(u64, u64) -> u64| {
        let room = points(record).map(|point| point.blocks).reduce(pick);
        size(record, room.unwrap_or(0))
    };
    let chart = Chart { title: "Miss ratio against cache size".to_owned(), alt, svg, table };
    Plot { curves, ends: (ends(u64::min), ends(u64::max)), chart }
}

/// Letter of a policy.
fn letter(policy: &str) -> char {
    PolicyId::parse(policy).map_or('?', PolicyId::letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::trace::LeftOutRecord;

    fn point(blocks: u64, miss_ratio: f64, byte_miss_ratio: Option<f64>, error: f64) -> CurvePoint {
        CurvePoint {
            blocks,
            size_bytes: Some(blocks * 4096),
            miss_ratio,
            byte_miss_ratio,
            sampling_error: Some(error),
            basis: if error > 0.0 { "sampled" } else { "exact" }.to_owned(),
            sample_rate: 0.01,
            asked: true,
        }
    }

    fn screen(curves: Vec<(PolicyId, Vec<CurvePoint>)>, width: usize) -> String {
        let curve = |(policy, points): (PolicyId, Vec<CurvePoint>)| CurveRecord {
            policy: policy.id().to_owned(),
            points,
        };
        let ratios = RatiosFound {
            unit: "blocks".to_owned(),
            block_bytes: Some(4096),
            counted_requests: 100_000,
            references: 123_456,
            distinct: 5000,
            distinct_exact: true,
            cold_miss_ratio: 0.04,
            left_out: LeftOutRecord { no_access: 12, empty: 0, too_large: 0, other_kind: 0 },
            curves: curves.into_iter().map(curve).collect(),
            lru_shape: None,
        };
        let sections = vec![
            Section::new("", vec![Part::Table(table(&ratios, |point| Some(point.miss_ratio)))]),
            Section::new("", vec![Part::Table(table(&ratios, |point| point.byte_miss_ratio))]),
            Section::new("", vec![Part::Note(basis(&ratios)), Part::Plot(plot(&ratios))]),
        ];
        let chapter =
            Chapter { facts: facts(&ratios), title: "t.csv".to_owned(), sections, ..Chapter::default() };
        anstream::adapter::strip_str(&crate::screen::text(&chapter, width)).to_string()
    }

    #[test]
    fn the_best_is_marked_and_no_line_is_too_long() {
        let curve = |(i, policy): (usize, PolicyId)| {
            (
                policy,
                [100, 1000, 1 << 30].map(|room| point(room, 0.9 - i as f64 * 0.01, Some(0.5), 0.0)).to_vec(),
            )
        };
        for width in [60, 80, 100] {
            let text = screen(PolicyId::ALL.iter().copied().enumerate().map(curve).collect(), width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            // LFU is the last but one; the bound is no policy that could be chosen.
            assert!(text.contains("0.8200*") && !text.contains("0.8100*"), "{text}");
            assert!(text.contains("12 that move no bytes"), "{text}");
            assert!(!text.contains("0.5000*"), "when all are alike none is best: {text}");
        }
    }

    #[test]
    fn within_the_error_nobody_is_best() {
        let close = [(PolicyId::Fifo, 0.30), (PolicyId::Lru, 0.31), (PolicyId::Arc, 0.5)];
        let curves = close.map(|(policy, ratio)| (policy, vec![point(10, ratio, None, 0.02)])).to_vec();
        let text = screen(curves, 100);
        assert!(text.contains("0.3000±0.0200*") && text.contains("0.3100±0.0200*"), "{text}");
        assert!(text.contains("0.5000±0.0200\n") && text.contains("sample of 1.000 %"), "{text}");
    }

    #[test]
    fn letters_are_unique() {
        let mut letters: Vec<char> = PolicyId::ALL.iter().map(|policy| letter(policy.id())).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), PolicyId::ALL.len());
        assert!(!letters.contains(&'?'));
    }
}
