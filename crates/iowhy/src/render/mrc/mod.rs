//! Miss-ratio curves for people: references, the table of policies and sizes, the plot, and what the LRU curve says.

mod plot;

use anstyle::Style;
use iowhy_core::units::{Bytes, count, counted};
use iowhy_sim::curve::bank::{Basis, Point};
use iowhy_sim::curve::keys::{LeftOut, Unit};
use iowhy_sim::policy::PolicyId;

use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{cut_path, wrap};

const BOLD: Style = Style::new().bold();

/// What is shown.
#[derive(Debug)]
pub struct Shown<'a> {
    /// The trace, as the user named it.
    pub name: &'a str,
    /// Its format.
    pub format: &'a str,
    /// What is cached.
    pub unit: Unit,
    /// References to blocks or objects.
    pub references: u64,
    /// Requests that they came from.
    pub requests: u64,
    /// Distinct blocks or objects.
    pub distinct: u64,
    /// Whether every reference was followed.
    pub exact: bool,
    /// What was not counted.
    pub left_out: LeftOut,
    /// In the order of the columns.
    pub policies: &'a [PolicyId],
    /// Sizes of the rows.
    pub asked: &'a [u64],
    /// All points.
    pub points: &'a [Point],
    /// What the LRU curve says.
    pub words: Vec<String>,
}

/// Room for people: `72 MiB` or `20,000 objects`.
pub fn room(room: u64, unit: Unit) -> String {
    match unit {
        Unit::Blocks(bytes) => Bytes(room.saturating_mul(bytes)).to_string(),
        Unit::Objects => counted(room, "object", "objects"),
    }
}

/// The screen, at most `width` columns.
pub fn screen(shown: &Shown<'_>, width: usize) -> String {
    let mut text = heading(shown, width);
    text.push('\n');
    text.push_str("share of references that miss (* the best, ties included)\n");
    text.push_str(&table(shown, width, |point| Some(point.miss_ratio)));
    text.push_str(&notes(shown, width));
    // Bytes of the bound are no bound of bytes, but what it misses all the same.
    if shown.points.iter().any(|point| point.byte_miss_ratio.is_some()) {
        text.push_str("\nshare of bytes that miss\n");
        text.push_str(&table(shown, width, |point| point.byte_miss_ratio));
    }
    let plot = plot::plot(shown.points, shown.policies, shown.unit, width);
    if !plot.is_empty() {
        text.push('\n');
        text.push_str(&plot);
    }
    if !shown.words.is_empty() {
        text.push('\n');
        for sentence in &shown.words {
            text.push_str(&wrap(sentence, width, "- ", "  "));
        }
    }
    text
}

fn heading(shown: &Shown<'_>, width: usize) -> String {
    let name = cut_path(shown.name, width.saturating_sub(24).max(10));
    let mut text = format!("{BOLD}{name}{BOLD:#}  {}\n", shown.format);
    let about = if shown.exact { "" } else { "about " };
    let sum = match shown.unit {
        Unit::Blocks(bytes) => format!(
            "{} {} of {}, {about}{} of them different ({})",
            counted(shown.requests, "request touches", "requests touch"),
            counted(shown.references, "block", "blocks"),
            Bytes(bytes),
            count(shown.distinct),
            Bytes(shown.distinct.saturating_mul(bytes))
        ),
        Unit::Objects => {
            format!(
                "{} for {about}{}",
                counted(shown.references, "request", "requests"),
                counted(shown.distinct, "different object", "different objects")
            )
        }
    };
    let cold = 100.0 * shown.distinct as f64 / shown.references.max(1) as f64;
    text.push_str(&wrap(
        &format!("{sum}; first uses, which every cache misses: {about}{cold:.1} %"),
        width,
        "  ",
        "  ",
    ));
    let left = shown.left_out;
    let parts: Vec<String> = [
        (left.no_access, "that move no bytes"),
        (left.empty, "of no bytes"),
        (left.too_large, "too large to be true"),
        (left.other_kind, "of the other kind"),
    ]
    .iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{} {what}", count(*n)))
    .collect();
    if !parts.is_empty() {
        text.push_str(&wrap(&format!("not counted: requests {}", parts.join(", ")), width, "  ", "  "));
    }
    text
}

/// One table, or several below each other where the columns do not fit.
fn table(shown: &Shown<'_>, width: usize, value: impl Fn(&Point) -> Option<f64>) -> String {
    let rows: Vec<Row> = shown.asked.iter().map(|room| Row::of(shown, *room, &value)).collect();
    let sizes: Vec<String> = shown.asked.iter().map(|size| room(*size, shown.unit)).collect();
    let shares: Vec<String> = shown
        .asked
        .iter()
        .map(|size| {
            let percent = 100.0 * *size as f64 / shown.distinct.max(1) as f64;
            if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
        })
        .collect();
    let cell =
        rows.iter().flat_map(|row| &row.cells).map(|cell| visible_width(cell)).max().unwrap_or(6).max(6) + 2;
    let left = sizes.iter().map(|size| visible_width(size)).max().unwrap_or(4).max(4) + 2 + 10;
    let fit = (width.saturating_sub(left) / cell).max(1);
    let mut text = String::new();
    for (number, policies) in shown.policies.chunks(fit).enumerate() {
        let from = number * fit;
        let mut header = vec!["size", "of trace"];
        header.extend(policies.iter().map(|policy| policy.id()));
        let align = vec![Align::Right; header.len()];
        let body: Vec<Vec<String>> = rows
            .iter()
            .zip(sizes.iter().zip(&shares))
            .map(|(row, (size, share))| {
                let mut line = vec![size.clone(), share.clone()];
                line.extend(row.cells.iter().skip(from).take(policies.len()).cloned());
                line
            })
            .collect();
        text.push_str(&layout(&header, &align, &body));
    }
    text
}

/// The cells of one size, in the order of the policies.
struct Row {
    cells: Vec<String>,
}

impl Row {
    fn of(shown: &Shown<'_>, room: u64, value: impl Fn(&Point) -> Option<f64>) -> Row {
        let points: Vec<Option<(f64, f64)>> = shown
            .policies
            .iter()
            .map(|policy| {
                let point = shown.points.iter().find(|p| p.policy == *policy && p.room == room)?;
                Some((value(point)?, error(point)))
            })
            .collect();
        let online: Vec<(f64, f64)> = shown
            .policies
            .iter()
            .zip(&points)
            .filter(|(policy, _)| **policy != PolicyId::Belady)
            .filter_map(|(_, point)| *point)
            .collect();
        // What might be the best, as far as the errors can tell; four digits are shown.
        let best = online.iter().map(|(ratio, error)| ratio + error).fold(f64::INFINITY, f64::min);
        let may_be_best = |(ratio, error): (f64, f64)| ratio - error <= best + 0.000_05;
        let all = online.iter().all(|point| may_be_best(*point));
        let cells = shown
            .policies
            .iter()
            .zip(&points)
            .map(|(policy, point)| {
                let Some(point) = *point else { return "-".to_owned() };
                let marked = *policy != PolicyId::Belady && !all && may_be_best(point);
                let error = match point.1 {
                    0.0 => String::new(),
                    error if error.is_finite() => format!("±{error:.4}"),
                    _ => "±?".to_owned(),
                };
                match marked {
                    true => format!("{BOLD}{:.4}{BOLD:#}{error}*", point.0),
                    false => format!("{:.4}{error} ", point.0),
                }
            })
            .collect();
        Row { cells }
    }
}

/// The error of a point; 0 where it is exact.
fn error(point: &Point) -> f64 {
    match point.basis {
        Basis::Exact => 0.0,
        // An unknown error excludes nothing.
        Basis::Sampled { error, .. } => error.unwrap_or(f64::INFINITY),
    }
}

/// How the numbers were found.
fn notes(shown: &Shown<'_>, width: usize) -> String {
    let rate = |asked: bool| {
        shown.points.iter().filter(|point| shown.asked.contains(&point.room) == asked).find_map(|point| {
            match point.basis {
                Basis::Sampled { rate, .. } => Some(rate),
                Basis::Exact => None,
            }
        })
    };
    match (rate(true), rate(false)) {
        (Some(rate), _) => wrap(
            &format!(
                "from a sample of {:.3} % of the blocks; ± is half of the 95 % interval, from eight parts of the sample",
                rate * 100.0
            ),
            width,
            "",
            "",
        ),
        (None, Some(rate)) => wrap(
            &format!(
                "this table is exact; between its sizes, curves other than LRU come from {:.3} % of the blocks",
                rate * 100.0
            ),
            width,
            "",
            "",
        ),
        (None, None) => "exact: every reference was followed\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<'a>(points: &'a [Point], policies: &'a [PolicyId], asked: &'a [u64]) -> Shown<'a> {
        Shown {
            name: "some/trace.csv",
            format: "csv",
            unit: Unit::Blocks(4096),
            references: 123_456,
            requests: 100_000,
            distinct: 5000,
            exact: true,
            left_out: LeftOut { no_access: 12, ..LeftOut::default() },
            policies,
            asked,
            points,
            words: vec!["a sentence".to_owned()],
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_best_is_marked_and_no_line_is_too_long() {
        let policies = PolicyId::ALL;
        let rooms = [100, 1000, 1 << 30];
        let points: Vec<Point> = policies
            .iter()
            .enumerate()
            .flat_map(|(i, &policy)| {
                rooms.iter().map(move |&room| Point {
                    policy,
                    room,
                    miss_ratio: 0.9 - i as f64 * 0.01,
                    byte_miss_ratio: Some(0.5),
                    basis: Basis::Exact,
                })
            })
            .collect();
        for width in [60, 80, 100] {
            let text = plain(&screen(&shown(&points, &policies, &rooms), width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            // LFU is the last but one; the bound is no policy that could be chosen.
            assert!(text.contains("0.8200*") && !text.contains("0.8100*"), "{text}");
            assert!(text.contains("12 that move no bytes") && text.contains("a sentence"));
            assert!(!text.contains("0.5000*"), "when all are alike none is best: {text}");
        }
    }

    #[test]
    fn within_the_error_nobody_is_best() {
        let policies = [PolicyId::Fifo, PolicyId::Lru, PolicyId::Arc];
        let point = |policy, miss_ratio, error| Point {
            policy,
            room: 10,
            miss_ratio,
            byte_miss_ratio: None,
            basis: Basis::Sampled { rate: 0.01, error: Some(error) },
        };
        let close = [
            point(PolicyId::Fifo, 0.30, 0.02),
            point(PolicyId::Lru, 0.31, 0.02),
            point(PolicyId::Arc, 0.5, 0.02),
        ];
        let text = plain(&screen(&shown(&close, &policies, &[10]), 100));
        assert_eq!(
            text.matches("0.3000±0.0200*").count() + text.matches("0.3100±0.0200*").count(),
            2,
            "{text}"
        );
        assert!(text.contains("sample of 1.000 %"));
    }
}
