//! The result of an experiment: a row for each published figure with its measured and its modelled value, in one unit. How
//! rows look is the caller's.

use std::collections::BTreeMap;

use iowhy_core::cell::CellRun;
use iowhy_core::environment::{Environment, TargetFacts};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::summary::{self, Summary};
use iowhy_core::warning::Warning;
use iowhy_path::reconcile::{self, ReconcileContext, Verdict};
use iowhy_probe::target::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error_percent;

/// An experiment: published, measured and modelled.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// This machine.
    pub environment: Environment,
    /// What was read here.
    pub targets: Vec<TargetFacts>,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Rounds measured.
    pub rounds: u32,
    /// Whether Ctrl-C ended it early.
    pub interrupted: bool,
    /// Published, measured, modelled.
    pub rows: Vec<Row>,
    /// Conclusions, one sentence each.
    pub verdicts: Vec<String>,
    /// What this command does not do for this experiment.
    pub not_done: Vec<String>,
    /// The cells behind `measured`.
    pub cells: Vec<MeasuredCell>,
    /// How the rows are grouped on the screen.
    pub sections: Vec<Section>,
}

/// A cell with what was concluded from it.
#[derive(Clone, Debug)]
pub struct MeasuredCell {
    /// Name of the target.
    pub target: String,
    /// The rounds; its key is unique in the report.
    pub run: CellRun,
    /// Medians and intervals.
    pub summary: Summary,
    /// Whether it is what it claims.
    pub verdict: Verdict,
    /// Bytes claimed and bytes moved, in one sentence.
    pub bytes_verdict: String,
    /// Names of the members of the target.
    pub member_names: Vec<String>,
    /// Offsets and sizes come from lists, not from the workload's pattern.
    pub listed: bool,
}

impl MeasuredCell {
    /// Summary and verdict of a run.
    pub fn new(run: &CellRun, target: &Target, read_ahead_bytes: Option<u64>, seed: u64) -> MeasuredCell {
        let context = ReconcileContext { facts: Some(&target.facts), read_ahead_bytes };
        MeasuredCell {
            target: target.facts.name.clone(),
            run: run.clone(),
            summary: summary::summarize(run, seed),
            verdict: reconcile::verdict(run, &context),
            bytes_verdict: reconcile::reconcile(run, &context).sentence(),
            member_names: target.member_names(),
            listed: false,
        }
    }
}

/// A group of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Section {
    /// The `table` of its rows' keys.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Heading of the first column.
    pub label: String,
    /// Sentences below the table.
    pub said: Vec<String>,
    /// Shown instead of the rows, where figures by two keys read better.
    pub grid: Option<Grid>,
}

/// Figures by two keys, as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grid {
    /// Headings of the columns behind the first.
    pub header: Vec<String>,
    /// First column, then a text a column.
    pub lines: Vec<Vec<String>>,
}

/// One row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// `table`, and the keys of that table.
    pub key: BTreeMap<String, Value>,
    /// What is compared.
    pub quantity: String,
    /// Unit of `published`, `measured` and `model`.
    pub unit: Unit,
    /// The published value.
    pub published: Option<f64>,
    /// The value measured here.
    pub measured: Option<Estimate>,
    /// The model's value for the machine of the post.
    pub model: Option<f64>,
    /// Error of the model against the post.
    pub error_percent: Option<f64>,
    /// How the figure changed.
    pub remark: String,
    /// First column of the table.
    pub label: String,
}

impl Row {
    /// A row without figures.
    pub fn new(table: &str, label: impl Into<String>, quantity: impl Into<String>, unit: Unit) -> Row {
        Row {
            key: BTreeMap::from([("table".to_owned(), Value::from(table))]),
            quantity: quantity.into(),
            unit,
            published: None,
            measured: None,
            model: None,
            error_percent: None,
            remark: String::new(),
            label: label.into(),
        }
    }

    /// Adds a key.
    #[must_use]
    pub fn key(mut self, name: &str, value: impl Into<Value>) -> Row {
        self.key.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the published value.
    #[must_use]
    pub fn then(mut self, published: Option<f64>) -> Row {
        self.published = published;
        self
    }

    /// Adds the measured value.
    #[must_use]
    pub fn now(mut self, measured: Option<Estimate>) -> Row {
        self.measured = measured;
        self
    }

    /// Adds the modelled value and its error.
    #[must_use]
    pub fn model(mut self, model: Option<f64>) -> Row {
        self.model = model.filter(|m| m.is_finite());
        self.error_percent = self.model.zip(self.published).and_then(|(m, p)| error_percent(m, p));
        self
    }

    /// Adds a remark behind those that are there.
    #[must_use]
    pub fn remark(mut self, text: impl AsRef<str>) -> Row {
        if !text.as_ref().is_empty() {
            if !self.remark.is_empty() {
                self.remark.push_str("; ");
            }
            self.remark.push_str(text.as_ref());
        }
        self
    }

    /// Adds the factor of change; none where the interval contains the published figure.
    #[must_use]
    pub fn changed(self) -> Row {
        let text = match (self.published, &self.measured) {
            (Some(then), Some(now)) if then > 0.0 && now.value > 0.0 => {
                let gain = match self.unit {
                    Unit::Nanoseconds | Unit::NanosecondsPerByte => then / now.value,
                    Unit::BytesPerSecond | Unit::PerSecond | Unit::Ratio => now.value / then,
                };
                let within = now.low <= then && then <= now.high;
                match gain {
                    g if within && (ALIKE..=1.0 / ALIKE).contains(&g) => {
                        "unchanged within its interval".to_owned()
                    }
                    _ if within => "inconclusive: the interval is too wide".to_owned(),
                    g if g >= 1.0 => format!("{} times faster", factor(g)),
                    g => format!("{} times slower", factor(1.0 / g)),
                }
            }
            _ => String::new(),
        };
        self.remark(text)
    }
}

/// A figure that has changed by less than this factor counts as unchanged where its interval holds the old one.
const ALIKE: f64 = 0.8;

/// A factor in two digits, thousands apart.
pub fn factor(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.1}");
    }
    let step = 10f64.powf(value.log10().floor() - 1.0);
    let digits = format!("{:.0}", (value / step).round() * step);
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

impl Report {
    /// Begins a group of rows.
    pub fn section(&mut self, id: &str, title: impl Into<String>, label: &str) {
        self.sections.push(Section {
            id: id.to_owned(),
            title: title.into(),
            label: label.to_owned(),
            said: Vec::new(),
            grid: None,
        });
    }

    /// Adds a sentence below the last group.
    pub fn say(&mut self, text: impl Into<String>) {
        if let Some(section) = self.sections.last_mut() {
            section.said.push(text.into());
        }
    }

    /// Shows the last group as figures by two keys.
    pub fn grid(&mut self, grid: Grid) {
        if let Some(section) = self.sections.last_mut() {
            section.grid = Some(grid);
        }
    }

    /// Adds a row.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// A cell by its key.
    pub fn cell(&self, key: &str) -> Option<&MeasuredCell> {
        self.cells.iter().find(|cell| cell.run.key == key)
    }

    /// A figure of a cell, or why there is none: a mislabelled cell has none.
    pub fn figure(
        &self,
        key: &str,
        of: impl Fn(&MeasuredCell) -> Option<Estimate>,
    ) -> Result<Estimate, String> {
        let cell = self.cell(key).ok_or_else(|| "not measured here".to_owned())?;
        if let Some(failure) = &cell.run.failure {
            return Err(format!("failed: {failure}"));
        }
        if cell.verdict == Verdict::Mislabelled {
            return Err(format!("not {}: {}", cell.run.workload.state.id(), cell.bytes_verdict));
        }
        of(cell).ok_or_else(|| "too few rounds".to_owned())
    }

    /// Time of a cell's requests that move `bytes` together.
    pub fn time_for(&self, key: &str, bytes: u64) -> Result<Estimate, String> {
        self.figure(key, |cell| {
            let requests = bytes as f64 / cell.run.workload.block_bytes.max(1) as f64;
            cell.summary.time_per_request.map(|e| scaled(&e, requests))
        })
    }

    /// CPU time over elapsed time of a cell's threads, medians over each other.
    pub fn cpu_share(&self, key: &str) -> Option<f64> {
        let cell = self.cell(key)?;
        Some(cell.summary.cpu_per_request?.value / cell.summary.time_per_request?.value)
    }
}

/// Multiplies an estimate.
pub fn scaled(e: &Estimate, by: f64) -> Estimate {
    Estimate { value: e.value * by, low: e.low * by, high: e.high * by, ..*e }
}

/// Bytes a second from a time for `bytes`.
pub fn rate(time: &Estimate, bytes: f64) -> Estimate {
    time.reciprocal(bytes * 1e9, Unit::BytesPerSecond)
}

/// Puts a figure into a row, or the reason why there is none into its remark.
pub fn with_now(row: Row, now: Result<Estimate, String>) -> Row {
    match now {
        Ok(estimate) => row.now(Some(estimate)).changed(),
        Err(why) => row.remark(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(value: f64) -> Option<Estimate> {
        Some(Estimate { value, low: value * 0.9, high: value * 1.1, unit: Unit::Nanoseconds, n: 5 })
    }

    #[test]
    fn a_change_is_said_in_the_direction_of_its_unit() {
        let row = || Row::new("t", "l", "q", Unit::Nanoseconds).then(Some(101e9));
        assert_eq!(row().now(now(2e6)).changed().remark, "51 000 times faster");
        assert_eq!(row().now(now(303e9)).changed().remark, "3.0 times slower");
        assert_eq!(row().now(now(100e9)).changed().remark, "unchanged within its interval");
        let wide = Estimate { value: 2e9, low: 1e9, high: 200e9, unit: Unit::Nanoseconds, n: 5 };
        assert!(row().now(Some(wide)).changed().remark.starts_with("inconclusive"));
        assert_eq!(row().changed().remark, "");
        let rate = Row::new("t", "l", "q", Unit::BytesPerSecond).then(Some(1.0)).now(now(4.0)).changed();
        assert_eq!(rate.remark("and more").remark, "4.0 times faster; and more");
    }

    #[test]
    fn the_error_is_of_the_model_against_the_post() {
        let row = Row::new("t", "l", "q", Unit::Nanoseconds).then(Some(50.0)).model(Some(45.0));
        assert!((row.error_percent.unwrap() + 10.0).abs() < 1e-9);
        assert_eq!(Row::new("t", "l", "q", Unit::Ratio).model(Some(1.0)).error_percent, None);
        assert_eq!(Row::new("t", "l", "q", Unit::Ratio).model(Some(f64::NAN)).model, None);
    }

    #[test]
    fn factors_have_two_digits() {
        for (value, text) in
            [(1.23, "1.2"), (12.6, "13"), (999.0, "1 000"), (123_456.0, "120 000"), (1e6, "1 000 000")]
        {
            assert_eq!(factor(value), text);
        }
    }
}
