//! The figures of the five posts, every number of every table, with source, machine and units. They ship as TOML and are
//! read strictly: what is not understood is refused. What may not enter: figures that the posts do not give.

use iowhy_core::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One post.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name, as on the command line.
    pub name: String,
    /// What it was about.
    pub title: String,
    /// List, author, date and message.
    pub source: String,
    /// Date of the post, YYYY-MM-DD.
    pub date: String,
    /// The machine and what was done on it.
    pub machine: String,
    /// The tables, in the order of the post.
    pub tables: Vec<Table>,
    /// Single figures of the text.
    pub facts: Vec<Fact>,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Short name, unique in the experiment.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, one cell a column; an empty text is a figure that the post does not have.
    pub rows: Vec<Vec<Cell>>,
    /// What the post says of the table.
    pub notes: Vec<String>,
}

/// A column: its name and its unit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Column(pub String, pub FigureUnit);

/// A single figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Short name, unique in the experiment.
    pub id: String,
    /// The figure.
    pub value: Cell,
    /// Its unit.
    pub unit: FigureUnit,
    /// What it is.
    pub text: String,
}

/// A figure or a text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A number in the column's unit.
    Number(f64),
    /// A text, minutes and seconds (`26:17`), or nothing.
    Text(String),
}

/// Units of published figures, as the posts use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FigureUnit {
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// 1024 bytes.
    #[serde(rename = "KiB")]
    Kibibytes,
    /// 1024² bytes.
    #[serde(rename = "MiB")]
    Mebibytes,
    /// 512 bytes.
    #[serde(rename = "sectors")]
    Sectors,
    /// 1024 bytes a second (`kb/sec` of the posts: their programs divide by 1024).
    #[serde(rename = "KiB/s")]
    KibibytesPerSecond,
    /// 1024² bytes a second.
    #[serde(rename = "MiB/s")]
    MebibytesPerSecond,
    /// A million bytes a second, or 1024²: the post does not say.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Minutes and seconds, as a text `26:17`.
    #[serde(rename = "min:s")]
    MinutesSeconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Events a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// A number of things.
    #[serde(rename = "count")]
    Count,
    /// Per cent.
    #[serde(rename = "percent")]
    Percent,
    /// A plain ratio.
    #[serde(rename = "ratio")]
    Ratio,
    /// Words.
    #[serde(rename = "text")]
    Text,
}

impl FigureUnit {
    /// Factor to bytes, nanoseconds, bytes a second, events a second, or a plain number.
    fn factor(self) -> f64 {
        match self {
            FigureUnit::Kibibytes | FigureUnit::KibibytesPerSecond => 1024.0,
            FigureUnit::Mebibytes | FigureUnit::MebibytesPerSecond => 1_048_576.0,
            FigureUnit::Sectors => 512.0,
            FigureUnit::MegabytesPerSecond | FigureUnit::Milliseconds => 1e6,
            FigureUnit::Seconds | FigureUnit::MinutesSeconds => 1e9,
            FigureUnit::Microseconds => 1e3,
            FigureUnit::Percent => 0.01,
            FigureUnit::Bytes
            | FigureUnit::Nanoseconds
            | FigureUnit::PerSecond
            | FigureUnit::Count
            | FigureUnit::Ratio
            | FigureUnit::Text => 1.0,
        }
    }
}

impl Cell {
    /// The figure in base units (bytes, ns, bytes/s, 1/s, plain); `None` for words and for what the post does not have.
    pub fn base(&self, unit: FigureUnit) -> Option<f64> {
        match (self, unit) {
            (Cell::Number(value), FigureUnit::Text | FigureUnit::MinutesSeconds) => {
                debug_assert!(value.is_finite());
                None
            }
            (Cell::Number(value), _) => Some(value * unit.factor()),
            (Cell::Text(text), FigureUnit::MinutesSeconds) => {
                let (minutes, seconds) = text.split_once(':')?;
                let seconds = seconds.parse::<u32>().ok().filter(|s| *s < 60)?;
                Some(f64::from(minutes.parse::<u32>().ok()? * 60 + seconds) * unit.factor())
            }
            (Cell::Text(_), _) => None,
        }
    }

    /// The words, if it is words.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            Cell::Number(_) => None,
        }
    }
}

impl Table {
    /// Index of a column.
    fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.0 == name)
    }

    /// A figure in base units.
    pub fn figure(&self, row: usize, column: &str) -> Option<f64> {
        let index = self.column(column)?;
        self.rows.get(row)?.get(index)?.base(self.columns.get(index)?.1)
    }

    /// A text.
    pub fn text(&self, row: usize, column: &str) -> Option<&str> {
        self.rows.get(row)?.get(self.column(column)?)?.text()
    }

    /// Pairs of two columns in base units, rows that lack either left out.
    pub fn pairs(&self, key: &str, value: &str) -> Vec<(f64, f64)> {
        (0..self.rows.len())
            .filter_map(|row| Some((self.figure(row, key)?, self.figure(row, value)?)))
            .collect()
    }

    /// Row where a text column has this text.
    pub fn row_of(&self, column: &str, text: &str) -> Option<usize> {
        (0..self.rows.len()).find(|&row| self.text(row, column) == Some(text))
    }
}

impl Experiment {
    /// Reads and checks one.
    ///
    /// # Errors
    /// A refusal that names `source` and what is wrong: unknown keys and units, rows of another length than their header,
    /// figures below zero or no numbers at all, a name used twice.
    pub fn from_toml(text: &str, source: &str) -> Result<Experiment, Problem> {
        let refused = |what: String| Problem::refused(format!("`{source}`: {what}"));
        let experiment: Experiment =
            toml::from_str(text).map_err(|error| refused(error.to_string().trim_end().to_owned()))?;
        for (index, table) in experiment.tables.iter().enumerate() {
            if experiment.tables[..index].iter().any(|other| other.id == table.id) {
                return Err(refused(format!("two tables are called `{}`", table.id)));
            }
            for (number, row) in table.rows.iter().enumerate() {
                let place = format!("table `{}`, row {}", table.id, number + 1);
                if row.len() != table.columns.len() {
                    return Err(refused(format!(
                        "{place}: {} figures for {} columns",
                        row.len(),
                        table.columns.len()
                    )));
                }
                for (cell, column) in row.iter().zip(&table.columns) {
                    check(cell, column.1)
                        .map_err(|what| refused(format!("{place}, `{}`: {what}", column.0)))?;
                }
            }
        }
        for (index, fact) in experiment.facts.iter().enumerate() {
            if experiment.facts[..index].iter().any(|other| other.id == fact.id) {
                return Err(refused(format!("two facts are called `{}`", fact.id)));
            }
            check(&fact.value, fact.unit).map_err(|what| refused(format!("fact `{}`: {what}", fact.id)))?;
        }
        Ok(experiment)
    }

    /// A table by its id.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// A single figure in base units, by its id.
    pub fn fact(&self, id: &str) -> Option<f64> {
        self.facts.iter().find(|fact| fact.id == id).and_then(|fact| fact.value.base(fact.unit))
    }
}

fn check(cell: &Cell, unit: FigureUnit) -> Result<(), String> {
    match (cell, unit) {
        (Cell::Text(_), FigureUnit::Text) => Ok(()),
        (Cell::Text(text), _) if text.is_empty() => Ok(()),
        (Cell::Text(text), FigureUnit::MinutesSeconds) => match cell.base(unit) {
            Some(_) => Ok(()),
            None => Err(format!("`{text}` is not minutes and seconds")),
        },
        (Cell::Text(text), _) => Err(format!("`{text}` stands where a number belongs")),
        (Cell::Number(value), FigureUnit::Text | FigureUnit::MinutesSeconds) => {
            Err(format!("{value} stands where a text belongs"))
        }
        (Cell::Number(value), _) if !value.is_finite() || *value < 0.0 => {
            Err(format!("{value} is no figure"))
        }
        (Cell::Number(_), _) => Ok(()),
    }
}

/// Names and texts of the experiments that ship.
const SHIPPED: [(&str, &str); 5] = [
    ("minix-1989", include_str!("../data/minix-1989.toml")),
    ("netbsd-1999", include_str!("../data/netbsd-1999.toml")),
    ("linux-sg-1999", include_str!("../data/linux-sg-1999.toml")),
    ("freebsd-2006", include_str!("../data/freebsd-2006.toml")),
    ("linux-mmap-1999", include_str!("../data/linux-mmap-1999.toml")),
];

/// Names of the experiments that ship.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// One of the experiments that ship.
///
/// # Errors
/// A refusal for a name that is none; a data file that does not hold together (a test sees to it that all do).
pub fn load(name: &str) -> Result<Experiment, Problem> {
    match SHIPPED.iter().find(|(known, _)| *known == name) {
        Some((known, text)) => Experiment::from_toml(text, &format!("{known}.toml")),
        None => {
            let known: Vec<&str> = names().collect();
            Err(Problem::refused(format!("there is no experiment `{name}`"))
                .hint(format!("one of {}; `iowhy classic list` describes them", known.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, rows of each table, single figures.
    type Counts = (&'static str, &'static [(&'static str, usize)], usize);

    #[test]
    fn every_experiment_that_ships_holds_together_and_has_every_row() {
        let counts: [Counts; 5] = [
            (
                "minix-1989",
                &[
                    ("file", 5),
                    ("machines", 4),
                    ("null", 5),
                    ("bnull", 5),
                    ("rhd2", 5),
                    ("hd2", 5),
                    ("readahead", 5),
                ],
                7,
            ),
            ("netbsd-1999", &[("interleave", 8)], 14),
            ("linux-sg-1999", &[("read-buffer", 8)], 12),
            (
                "freebsd-2006",
                &[
                    ("profile-4k-random", 12),
                    ("profile-4k-sequential", 13),
                    ("profile-16k-random", 9),
                    ("profile-16k-sequential", 8),
                    ("calls-4k-random", 9),
                    ("calls-4k-sequential", 9),
                    ("runs", 4),
                    ("reuse", 2),
                ],
                12,
            ),
            ("linux-mmap-1999", &[("methods", 2)], 8),
        ];
        assert_eq!(counts.iter().map(|c| c.0).collect::<Vec<_>>(), names().collect::<Vec<_>>());
        for (name, tables, facts) in counts {
            let experiment = load(name).unwrap();
            assert_eq!((experiment.name.as_str(), experiment.facts.len()), (name, facts));
            let found: Vec<(&str, usize)> =
                experiment.tables.iter().map(|t| (t.id.as_str(), t.rows.len())).collect();
            assert_eq!(found, tables, "{name}");
            assert!(experiment.date.len() == 10 && experiment.source.contains(&experiment.date[..4]));
        }
    }

    #[test]
    fn every_figure_is_positive_but_the_zeros_of_the_call_graph() {
        for experiment in names().map(|name| load(name).unwrap()) {
            for table in &experiment.tables {
                for row in &table.rows {
                    for (cell, column) in row.iter().zip(&table.columns) {
                        let Some(value) = cell.base(column.1) else { continue };
                        let zero_allowed = table.id.starts_with("calls-");
                        assert!(value > 0.0 || (zero_allowed && value == 0.0), "{} {}", table.id, column.0);
                    }
                }
            }
            assert!(experiment.facts.iter().all(|f| f.value.base(f.unit).is_some_and(|v| v > 0.0)));
        }
    }

    #[test]
    fn spot_values() {
        let minix = load("minix-1989").unwrap();
        assert_eq!(minix.table("rhd2").unwrap().figure(4, "time"), Some(11e9));
        assert_eq!(minix.table("machines").unwrap().figure(1, "sun-3-260"), Some(672.0 * 1024.0));
        assert_eq!(minix.table("readahead").unwrap().figure(2, "was"), Some(31.0 * 1024.0));
        let netbsd = load("netbsd-1999").unwrap();
        let times = netbsd.table("interleave").unwrap();
        assert_eq!(times.figure(2, "time"), Some(1240e9), "20:40");
        assert_eq!(
            (times.figure(0, "time"), times.text(0, "notes")),
            (None, Some("lost, but slower than everything else"))
        );
        assert_eq!(
            load("linux-sg-1999").unwrap().table("read-buffer").unwrap().figure(7, "to-kernel"),
            Some(71.71e9)
        );
        let bsd = load("freebsd-2006").unwrap();
        let profile = bsd.table("profile-4k-random").unwrap();
        assert_eq!(
            profile.figure(profile.row_of("function", "allocbuf").unwrap(), "total-per-call"),
            Some(4025.0)
        );
        assert_eq!(load("linux-mmap-1999").unwrap().table("methods").unwrap().figure(1, "time"), Some(107e9));
        assert!(load("minix").unwrap_err().hint.unwrap().contains("minix-1989"));
    }

    #[test]
    fn the_speeds_of_the_minix_tables_follow_from_their_times_by_the_posted_program() {
        let minix = load("minix-1989").unwrap();
        for id in ["file", "null", "bnull", "rhd2", "hd2", "readahead"] {
            let table = minix.table(id).unwrap();
            for row in 0..table.rows.len() {
                let seconds = (table.figure(row, "time").unwrap() / 1e9) as u64;
                let speed = (512 + 2_097_152 / seconds) / 1024;
                assert_eq!(table.figure(row, "speed"), Some(speed as f64 * 1024.0), "{id} row {row}");
            }
        }
    }

    #[test]
    fn self_times_of_a_profile_are_calls_times_cost_and_sum_to_the_cumulative_column() {
        let bsd = load("freebsd-2006").unwrap();
        let mut compared = 0;
        for table in bsd.tables.iter().filter(|t| t.id.starts_with("profile-")) {
            for row in 0..table.rows.len() {
                let own = table.figure(row, "self").unwrap();
                if let (Some(calls), Some(each)) =
                    (table.figure(row, "calls"), table.figure(row, "self-per-call"))
                {
                    compared += 1;
                    // Printed in milliseconds.
                    assert!(
                        (own - calls * each).abs() < 0.7e6,
                        "{} row {row}: {own} {}",
                        table.id,
                        calls * each
                    );
                }
            }
        }
        assert!(compared > 10, "{compared} rows have calls and their cost");
        let table = bsd.table("profile-4k-random").unwrap();
        for row in 1..table.rows.len() {
            let sum = table.figure(row - 1, "cumulative").unwrap() + table.figure(row, "self").unwrap();
            assert!((table.figure(row, "cumulative").unwrap() - sum).abs() < 2.1e6, "row {row}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let head = "name='x'\ntitle='t'\nsource='s'\ndate='2000-01-01'\nmachine='m'\n";
        let with =
            |rest: &str| Experiment::from_toml(&format!("{head}{rest}"), "x.toml").unwrap_err().message;
        let table = |rows: &str| {
            format!(
                "facts=[]\n[[tables]]\nid='a'\ntitle='t'\ncolumns=[['n','s'],['w','text']]\nrows=[{rows}]\nnotes=[]\n"
            )
        };
        assert!(with("facts=[]\ntables=[]\ncolour='red'\n").contains("colour"));
        assert!(with(&table("[1]")).contains("row 1: 1 figures for 2 columns"));
        assert!(with(&table("[-1, '']")).contains("is no figure"));
        assert!(with(&table("[nan, '']")).contains("is no figure"));
        assert!(with(&table("[1, 2]")).contains("where a text belongs"));
        assert!(with(&table("['many', '']")).contains("where a number belongs"));
        assert!(with(&table("[1, '']").replace("'s']", "'furlongs']")).contains("furlongs"));
        let bad_time = "tables=[]\n[[facts]]\nid='a'\nvalue='1:75'\nunit='min:s'\ntext=''\n";
        assert!(with(bad_time).contains("minutes and seconds"));
    }
}
