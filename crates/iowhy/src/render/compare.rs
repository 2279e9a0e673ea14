//! The screen of `iowhy compare`: the verdict in one line, what differs around the two runs, then each cell.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use iowhy_core::stats::Verdict;
use iowhy_core::units;

use crate::record::compare::{ChangedCell, Comparison};
use crate::render::paragraph::{cut, wrap};
use crate::render::table::{Align, layout};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
/// A screen is at least and at most so wide.
const WIDTHS: (usize, usize) = (60, 100);

/// Lays the comparison out.
pub fn screen(comparison: &Comparison, width: usize) -> String {
    let width = width.clamp(WIDTHS.0, WIDTHS.1);
    let mut text = wrap(&headline(comparison), width, "", "  ").trim_end().to_owned();
    text = format!("{BOLD}{text}{BOLD:#}\n");
    for (which, source) in [("before", &comparison.before), ("after ", &comparison.after)] {
        let line = cut(&format!("{which}  {}: {}", source.file, source.command), width);
        let _ = writeln!(text, "{DIM}{line}{DIM:#}");
    }
    for difference in &comparison.differences {
        let line = format!("{}: {} -> {}", difference.fact, difference.before, difference.after);
        text.push_str(&wrap(&line, width, "differs  ", "    "));
    }
    text.push('\n');
    text.push_str(&table(&comparison.cells));
    text.push_str(&remarks(comparison, width));
    text
}

fn count(comparison: &Comparison, verdict: Verdict) -> usize {
    comparison.cells.iter().filter(|cell| cell.verdict == verdict).count()
}

/// `2 of 6 cells regressed, 1 improved; ...`
fn headline(comparison: &Comparison) -> String {
    let of = [
        (Verdict::Regressed, "regressed"),
        (Verdict::Improved, "improved"),
        (Verdict::WithinNoise, "within noise"),
        (Verdict::CannotTell, "cannot tell"),
    ];
    let parts: Vec<String> = of
        .iter()
        .map(|(verdict, words)| (count(comparison, *verdict), words))
        .filter(|(n, _)| *n > 0)
        .map(|(n, words)| format!("{n} {words}"))
        .collect();
    let cells = match comparison.cells.len() {
        1 => "1 cell".to_owned(),
        n => format!("{n} cells"),
    };
    format!(
        "{cells} compared: {} (a difference matters from {} on)",
        parts.join(", "),
        units_percent(comparison.threshold_share)
    )
}

/// The word of the verdict; those of change in colour.
pub(crate) fn verdict_word(verdict: Verdict) -> String {
    match verdict {
        Verdict::Improved => format!("{GREEN}improved{GREEN:#}"),
        Verdict::Regressed => format!("{RED}REGRESSED{RED:#}"),
        Verdict::WithinNoise => "within noise".to_owned(),
        Verdict::CannotTell => "cannot tell".to_owned(),
    }
}

/// A share as per cent, with a tenth where there is one.
pub(crate) fn units_percent(share: f64) -> String {
    let percent = (share * 1000.0).round() / 10.0;
    format!("{percent} %")
}

fn table(cells: &[ChangedCell]) -> String {
    let time = |e: Option<iowhy_core::estimate::Estimate>| {
        e.map_or_else(|| "-".to_owned(), |e| units::estimate_narrow(&e))
    };
    let many = cells.iter().any(|cell| cell.target != cells[0].target);
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            let word = verdict_word(cell.verdict);
            let layer = match (cell.layer, cell.layer_share) {
                (Some(layer), Some(share)) if share < 0.95 => format!(", mostly {}", layer.id()),
                (Some(layer), _) => format!(", {}", layer.id()),
                _ => String::new(),
            };
            let key = if many { format!("{} {}", cut(&cell.target, 16), cell.key) } else { cell.key.clone() };
            vec![
                cut(&key, 34),
                time(cell.before),
                time(cell.after),
                cell.ratio.as_ref().map_or_else(|| "-".to_owned(), units::factor),
                format!("{word}{layer}"),
            ]
        })
        .collect();
    layout(
        &["cell", "before", "after", "after / before", "verdict"],
        &[Align::Left, Align::Right, Align::Right, Align::Right, Align::Left],
        &rows,
    )
}

fn remarks(comparison: &Comparison, width: usize) -> String {
    let mut text = String::new();
    for cell in comparison.cells.iter().filter(|cell| cell.doubt.is_some()) {
        let doubt = cell.doubt.as_deref().unwrap_or_default();
        text.push_str(&wrap(&format!("{}: {doubt}", cell.key), width, "  ", "    "));
    }
    for (keys, which) in [(&comparison.only_before, "first"), (&comparison.only_after, "second")] {
        if !keys.is_empty() {
            let line = format!("only in the {which} record: {}", keys.join(", "));
            text.push_str(&wrap(&line, width, "  ", "    "));
        }
    }
    let unsure = comparison.cells.iter().any(|c| c.verdict == Verdict::CannotTell && c.doubt.is_none());
    if unsure {
        let line = "cannot tell: the interval holds both no change and one that matters; more rounds, or an idle \
                    machine, would decide (`--precision` and `--runtime` of `iowhy bench`)";
        text.push_str(&wrap(line, width, "  ", "    "));
    }
    let line = format!(
        "time per request: medians{}, 95 % intervals; the layer is where half or more of the change sits by the two fits",
        rounds(&comparison.cells)
    );
    let _ = write!(text, "{DIM}{}{DIM:#}", wrap(&line, width, "", "  "));
    text
}

/// ` of 8 to 11 rounds`: the fewer of both sides, of each cell.
fn rounds(cells: &[ChangedCell]) -> String {
    let of = || cells.iter().filter_map(|cell| Some(cell.ratio.as_ref()?.n));
    match (of().min(), of().max()) {
        (Some(least), Some(most)) if least == most => format!(" of {least} rounds"),
        (Some(least), Some(most)) => format!(" of {least} to {most} rounds"),
        _ => String::new(),
    }
}
