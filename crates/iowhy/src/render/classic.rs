//! An experiment on the screen, like the table of a paper: then, now, model, error, and a remark a row.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_classic::published::Experiment;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::text::visible;
use iowhy_core::units;

use crate::record::classic::{ClassicRecord, RowRecord, Section};
use crate::screen::heading;
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{MIN_WIDTH, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Columns of a screen at most.
const MAX_WIDTH: usize = 100;

/// The whole experiment.
pub fn screen(record: &ClassicRecord, width: usize) -> String {
    let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
    let title = wrap(&format!("{}: {}", record.name, record.title), width, "", "  ");
    let rule = "=".repeat(title.lines().map(visible_width).max().unwrap_or(0));
    let mut text = format!("{BOLD}{}{BOLD:#}\n{DIM}{rule}{DIM:#}\n", title.trim_end());
    text.push_str(&wrap(&record.source, width, "  then: ", "        "));
    text.push_str(&wrap(&record.machine, width, "        ", "        "));
    for (index, facts) in record.targets.iter().enumerate() {
        if index == 0 {
            let target = heading::target(facts, &record.environment);
            let lines = std::iter::once(format!("{}  {}", target.name, target.about)).chain(target.facts);
            for (number, line) in lines.enumerate() {
                let first = if number == 0 { "  now:  " } else { "        " };
                text.push_str(&wrap(&line, width, first, "        "));
            }
        } else {
            let _ = writeln!(text, "        and {}", visible(&facts.name));
        }
    }
    for section in &record.sections {
        text.push_str(&table(section, record, width));
    }
    text.push('\n');
    for verdict in &record.verdicts {
        text.push_str(&wrap(verdict, width, "=> ", "   "));
    }
    if record.rounds > 0 {
        let _ = writeln!(
            text,
            "{DIM}now: n = {} rounds; ± the longer arm of the 95 % interval of the median{DIM:#}",
            record.rounds
        );
    }
    if record.interrupted {
        text.push_str("interrupted: partial result\n");
    }
    for lack in &record.not_done {
        text.push_str(&wrap(lack, width, "not done: ", "          "));
    }
    text
}

/// One table and its remarks.
fn table(section: &Section, record: &ClassicRecord, width: usize) -> String {
    let rows: Vec<&RowRecord> = record
        .rows
        .iter()
        .filter(|row| row.key.get("table").and_then(|v| v.as_str()) == Some(section.id.as_str()))
        .collect();
    let mut text = format!("\n{BOLD}{}{BOLD:#}\n", wrap(&section.title, width, "", "").trim_end());
    if let Some(grid) = &section.grid {
        let header: Vec<&str> =
            std::iter::once(section.label.as_str()).chain(grid.header.iter().map(String::as_str)).collect();
        let mut align = vec![Align::Right; header.len()];
        align[0] = Align::Left;
        text.push_str(&layout(&header, &align, &grid.lines));
        for said in &section.said {
            text.push_str(&wrap(said, width, "  ", "    "));
        }
        return text;
    }
    let has = |present: &dyn Fn(&RowRecord) -> bool| rows.iter().any(|row| present(row));
    let (then, now, model) =
        (has(&|r| r.published.is_some()), has(&|r| r.measured.is_some()), has(&|r| r.model.is_some()));
    let error = has(&|r| r.error_percent.is_some());
    let mut header = vec![section.label.as_str()];
    let mut align = vec![Align::Left];
    for (name, shown) in [("then", then), ("now", now), ("model", model), ("error", error)] {
        if shown {
            header.push(name);
            align.push(Align::Right);
        }
    }
    let figures: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let mut line = vec![row.label.clone()];
            if then {
                line.push(row.published.map_or_else(|| "-".to_owned(), |v| plain(v, row.unit)));
            }
            if now {
                line.push(row.measured.as_ref().map_or_else(|| "-".to_owned(), estimate));
            }
            if model {
                line.push(row.model.map_or_else(|| "-".to_owned(), |v| plain(v, row.unit)));
            }
            if error {
                line.push(row.error_percent.map_or_else(|| "-".to_owned(), |e| units::signed_per_cent(e, 0)));
            }
            line
        })
        .collect();
    let plain_table = layout(&header, &align, &figures);
    let room = width.saturating_sub(plain_table.lines().map(visible_width).max().unwrap_or(0) + 2);
    let fits = rows.iter().all(|row| visible_width(&row.remark) <= room);
    if fits && rows.iter().any(|row| !row.remark.is_empty()) {
        header.push("remark");
        align.push(Align::Left);
        let with: Vec<Vec<String>> = figures
            .into_iter()
            .zip(&rows)
            .map(|(mut line, row)| {
                line.push(row.remark.clone());
                line
            })
            .collect();
        text.push_str(&layout(&header, &align, &with));
    } else {
        text.push_str(&plain_table);
        for row in rows.iter().filter(|row| !row.remark.is_empty()) {
            text.push_str(&wrap(&format!("{}: {}", row.label, row.remark), width, "  ", "    "));
        }
    }
    for said in &section.said {
        text.push_str(&wrap(said, width, "  ", "  "));
    }
    text
}

fn plain(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => units::time(value),
        Unit::BytesPerSecond => units::rate_bytes(value),
        Unit::PerSecond => units::count_rate(value),
        Unit::NanosecondsPerByte => format!("{value:.3} ns/B"),
        Unit::Ratio => format!("{value:.2}"),
    }
}

fn estimate(e: &Estimate) -> String {
    units::estimate_narrow(e)
}

/// All experiments with a line each.
pub fn list(experiments: &[Experiment], width: usize) -> String {
    let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
    let mut text = String::new();
    for experiment in experiments {
        let figures: usize = experiment.tables.iter().map(|t| t.rows.len()).sum();
        let _ = writeln!(text, "{BOLD}{}{BOLD:#}  {}", experiment.name, experiment.title);
        text.push_str(&wrap(&experiment.source, width, "    ", "    "));
        let tables = format!(
            "{} tables, {figures} rows, {} single figures",
            experiment.tables.len(),
            experiment.facts.len()
        );
        text.push_str(&wrap(&tables, width, "    ", "    "));
    }
    text.push_str(
        "\n`iowhy classic NAME [PATH]` runs one of them here, `iowhy classic all` all that can be run.\n",
    );
    text
}
