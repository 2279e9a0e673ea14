//! The record of `classic`: one row a published figure, with what this machine says and what the model says, in the same
//! unit. What may not enter: text layout, which is `render`'s.

use std::collections::BTreeMap;

use crate::record::Kind;
use iowhy_classic::error_percent;
use iowhy_core::environment::{Environment, TargetFacts};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::warning::Warning;
use serde::Serialize;
use serde_json::Value;

use crate::record::CellRecord;

/// One experiment, then, now and as modelled.
#[derive(Clone, Debug, Serialize)]
pub struct ClassicRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The experiment's name.
    pub name: String,
    /// What it was about.
    pub title: String,
    /// Where and when it was published.
    pub source: String,
    /// Date of the post.
    pub date: String,
    /// The machine of the post.
    pub machine: String,
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
    /// Seed of every order, pattern and interval.
    pub seed: u64,
    /// Then, now, model.
    pub rows: Vec<RowRecord>,
    /// What follows, a sentence each.
    pub verdicts: Vec<String>,
    /// What this command does not do for this experiment.
    pub not_done: Vec<String>,
    /// The raw measurements behind `measured`.
    pub cells: Vec<CellRecord>,
    /// How the rows are grouped on the screen.
    #[serde(skip)]
    pub sections: Vec<Section>,
}

/// A group of rows on the screen.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The `table` of its rows' keys.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Heading of the first column.
    pub label: String,
    /// What is to be said below the table.
    pub said: Vec<String>,
    /// Shown instead of the rows, where a row of figures for each of several keys reads better than a row each.
    pub grid: Option<Grid>,
}

/// Figures by two keys, as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Headings of the columns behind the first.
    pub header: Vec<String>,
    /// First column, then a text a column.
    pub lines: Vec<Vec<String>>,
}

/// One row.
#[derive(Clone, Debug, Serialize)]
pub struct RowRecord {
    /// What tells it from the others: `table`, and the table's own keys.
    pub key: BTreeMap<String, Value>,
    /// What is compared.
    pub quantity: String,
    /// Unit of `published`, `measured` and `model`.
    pub unit: Unit,
    /// What the post says; `None` where it says nothing.
    pub published: Option<f64>,
    /// What was measured here; `None` where nothing was.
    pub measured: Option<Estimate>,
    /// What the model says of the machine of the post.
    pub model: Option<f64>,
    /// Error of the model against the post.
    pub error_percent: Option<f64>,
    /// What has changed, or not, in plain words.
    pub remark: String,
    /// First column on the screen.
    #[serde(skip)]
    pub label: String,
}

impl RowRecord {
    /// A row without figures.
    pub fn new(table: &str, label: impl Into<String>, quantity: impl Into<String>, unit: Unit) -> RowRecord {
        RowRecord {
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
    pub fn key(mut self, name: &str, value: impl Into<Value>) -> RowRecord {
        self.key.insert(name.to_owned(), value.into());
        self
    }

    /// Adds what the post says.
    #[must_use]
    pub fn then(mut self, published: Option<f64>) -> RowRecord {
        self.published = published;
        self
    }

    /// Adds what was measured.
    #[must_use]
    pub fn now(mut self, measured: Option<Estimate>) -> RowRecord {
        self.measured = measured;
        self
    }

    /// Adds what the model says, and its error.
    #[must_use]
    pub fn model(mut self, model: Option<f64>) -> RowRecord {
        self.model = model.filter(|m| m.is_finite());
        self.error_percent = self.model.zip(self.published).and_then(|(m, p)| error_percent(m, p));
        self
    }

    /// Adds a remark behind those that are there.
    #[must_use]
    pub fn remark(mut self, text: impl AsRef<str>) -> RowRecord {
        if !text.as_ref().is_empty() {
            if !self.remark.is_empty() {
                self.remark.push_str("; ");
            }
            self.remark.push_str(text.as_ref());
        }
        self
    }

    /// Says by which factor the figure has changed. Beside an interval that holds the old figure nothing has.
    #[must_use]
    pub fn changed(self) -> RowRecord {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn now(value: f64) -> Option<Estimate> {
        Some(Estimate { value, low: value * 0.9, high: value * 1.1, unit: Unit::Nanoseconds, n: 5 })
    }

    #[test]
    fn a_change_is_said_in_the_direction_of_its_unit() {
        let row = || RowRecord::new("t", "l", "q", Unit::Nanoseconds).then(Some(101e9));
        assert_eq!(row().now(now(2e6)).changed().remark, "51 000 times faster");
        assert_eq!(row().now(now(303e9)).changed().remark, "3.0 times slower");
        assert_eq!(row().now(now(100e9)).changed().remark, "unchanged within its interval");
        let wide = Estimate { value: 2e9, low: 1e9, high: 200e9, unit: Unit::Nanoseconds, n: 5 };
        assert!(row().now(Some(wide)).changed().remark.starts_with("inconclusive"));
        assert_eq!(row().changed().remark, "");
        let rate =
            RowRecord::new("t", "l", "q", Unit::BytesPerSecond).then(Some(1.0)).now(now(4.0)).changed();
        assert_eq!(rate.remark("and more").remark, "4.0 times faster; and more");
    }

    #[test]
    fn the_error_is_of_the_model_against_the_post() {
        let row = RowRecord::new("t", "l", "q", Unit::Nanoseconds).then(Some(50.0)).model(Some(45.0));
        assert!((row.error_percent.unwrap() + 10.0).abs() < 1e-9);
        assert_eq!(RowRecord::new("t", "l", "q", Unit::Ratio).model(Some(1.0)).error_percent, None);
        assert_eq!(RowRecord::new("t", "l", "q", Unit::Ratio).model(Some(f64::NAN)).model, None);
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
