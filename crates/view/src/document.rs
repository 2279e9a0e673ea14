//! What is shown of records, before anybody knows whether it becomes a screen, a page or Markdown.
//! Invariant: a chart carries a table with the same figures and a sentence that says what it shows, so that nothing is lost
//! on paper, in Markdown, or for readers who do not see it.

use iowhy_core::estimate::Estimate;
use iowhy_core::histogram::Histogram;
use iowhy_core::layer::Layer;
use iowhy_core::units;

use crate::piece::Piece;

/// How much of a record a document shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// One screen of a terminal.
    Screen,
    /// A screen with the evidence (`--verbose`, `--layers`).
    Verbose,
    /// Everything that fits a page, with charts.
    Page,
}

impl Detail {
    /// Whether charts and long tables are shown.
    pub fn is_page(self) -> bool {
        self == Detail::Page
    }

    /// An estimate: narrow on a screen, with n on a page.
    pub fn estimate(self, estimate: &Estimate) -> String {
        match self {
            Detail::Page => format!("{} (n = {})", units::estimate(estimate), estimate.n),
            _ => units::estimate_narrow(estimate),
        }
    }

    /// The first so many on a screen, or on a page.
    pub fn rows(self, screen: usize, page: usize) -> usize {
        if self.is_page() { page } else { screen }
    }
}

/// Several records shown together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Title of the page.
    pub title: String,
    /// A chapter a record.
    pub chapters: Vec<Chapter>,
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chapter {
    /// The target or program.
    pub title: String,
    /// Its state in a few words, beside the title; may be empty.
    pub about: String,
    /// Facts about it, a line each.
    pub facts: Vec<String>,
    /// Its parts, most important first.
    pub sections: Vec<Section>,
}

/// A heading and its contents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The heading; empty for the verdict.
    pub title: String,
    /// Whether only a page shows the heading: on a screen the contents explain themselves.
    pub quiet: bool,
    /// The contents.
    pub parts: Vec<Part>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// The answer in one sentence.
    Verdict(String),
    /// A short bold lead, and a sentence.
    Lead(String, String),
    /// A paragraph.
    Text(String),
    /// A remark in small type.
    Note(String),
    /// Evidence, a line each.
    List(Vec<String>),
    /// Remarks about rows of the table above, a line each.
    Remarks(Vec<String>),
    /// What to do.
    Advice(String),
    /// A command to copy: never wrapped.
    Command(String),
    /// Labels with facts.
    Facts(Vec<(String, String)>),
    /// Figures.
    Table(Table),
    /// One bar with its legend.
    Split(Split),
    /// Layers of several cells in figures; a page has columns instead.
    Layers(Vec<(String, Vec<(Layer, String)>)>),
    /// A sentence about a drift, and the times per request of the rounds; a page has charts of them.
    Course(String, Vec<f64>),
    /// Latencies of several cells, as small pictures; a page has charts instead.
    Spread(Spread),
    /// A chart with its figures.
    Chart(Chart),
    /// Curves: a picture of letters on a screen, their chart on a page.
    Plot(Plot),
    /// Small multiples: charts of one kind side by side.
    Charts(Vec<Chart>),
}

/// A split whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// What is split, with its size.
    pub label: String,
    /// Its pieces.
    pub pieces: Vec<Piece>,
    /// The legend: a layer, its name there, its share; without a layer a word.
    pub legend: Vec<(Option<Layer>, String, String)>,
}

/// Latencies of several cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Name and histogram.
    pub rows: Vec<(String, Histogram)>,
    /// Whether p50 and p99 are shown too.
    pub percentiles: bool,
}

/// What a cell of a table holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A verdict to be glad of.
    Good(String),
    /// A verdict to act on.
    Bad(String),
    /// A bar.
    Bar(Vec<Piece>),
    /// Words, most important first; on a narrow screen the last give way.
    Items(Vec<String>),
    /// A text whose end gives way on a narrow screen.
    Long(String),
}

impl Cell {
    /// The cell as one line; empty for a bar.
    pub fn text(&self) -> String {
        match self {
            Cell::Text(text) | Cell::Good(text) | Cell::Bad(text) | Cell::Long(text) => text.clone(),
            Cell::Bar(_) => String::new(),
            Cell::Items(items) => items.join(", "),
        }
    }

    /// The pieces of a bar.
    pub fn pieces(&self) -> Option<&[Piece]> {
        match self {
            Cell::Bar(pieces) => Some(pieces),
            _ => None,
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

/// How a screen narrows a table. Shapes are tried in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Width of bars.
    pub bar: usize,
    /// Words of [`Cell::Items`], characters of [`Cell::Long`].
    pub items: usize,
    /// Columns left out.
    pub without: Vec<&'static str>,
}

/// Which end of the first column gives way where no shape fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The end.
    End,
    /// The start: paths keep their names.
    Start,
}

/// Rows under headings. A heading is the words of the JSON key, without its unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The headings, and whether the column holds numbers.
    pub columns: Vec<(String, bool)>,
    /// The cells.
    pub rows: Vec<Vec<Cell>>,
    /// How a screen narrows it; empty: as it is.
    pub shapes: Vec<Shape>,
    /// The last resort on a narrow screen.
    pub cut: Option<Cut>,
    /// Whether the last column is prose, which a screen breaks into lines.
    pub prose: bool,
    /// Spaces before each line on a screen.
    pub indent: usize,
    /// First columns that name a row. On a narrow screen they are repeated, with the other columns below each other;
    /// 0: the table stays whole.
    pub keys: usize,
}

impl Table {
    /// A table without rows. A heading that begins with `#` is of a column of numbers.
    pub fn new<S: AsRef<str>>(headings: impl IntoIterator<Item = S>) -> Table {
        let column = |heading: S| match heading.as_ref().strip_prefix('#') {
            Some(numbers) => (numbers.to_owned(), true),
            None => (heading.as_ref().to_owned(), false),
        };
        Table { columns: headings.into_iter().map(column).collect(), ..Table::default() }
    }

    /// Adds a row.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table without columns that no row fills.
    pub fn without_empty_columns(&self) -> Table {
        let filled = |column: usize| {
            self.rows.iter().any(|row| row.get(column).is_some_and(|cell| *cell != Cell::from("")))
        };
        let kept: Vec<usize> = (0..self.columns.len()).filter(|column| filled(*column)).collect();
        let Table { columns, rows, .. } = self.select(&kept);
        Table { columns, rows, ..self.clone() }
    }

    /// The first bar of each row: first cell, second cell, bar.
    pub fn bars(&self) -> impl Iterator<Item = (String, String, &[Piece])> {
        self.rows.iter().filter_map(|row| {
            let pieces = row.iter().find_map(Cell::pieces)?;
            Some((row.first()?.text(), row.get(1)?.text(), pieces))
        })
    }

    /// The table without its bars, which Markdown and CSV cannot show.
    pub fn without_bars(&self) -> Table {
        let bar = |column: &usize| {
            self.rows.iter().any(|row| row.get(*column).is_some_and(|c| c.pieces().is_some()))
        };
        let kept: Vec<usize> = (0..self.columns.len()).filter(|column| !bar(column)).collect();
        self.select(&kept)
    }

    /// Some of its columns.
    pub fn select(&self, columns: &[usize]) -> Table {
        let row = |row: &Vec<Cell>| columns.iter().filter_map(|column| row.get(*column).cloned()).collect();
        Table {
            columns: columns.iter().map(|column| self.columns[*column].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
            ..Table::default()
        }
    }

    /// The table as a part; nothing where it has no rows.
    pub fn part(self) -> Option<Part> {
        (!self.rows.is_empty()).then_some(Part::Table(self))
    }
}

/// A picture with its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What is to be seen in it, in a sentence.
    pub alt: String,
    /// An `<svg>` element.
    pub svg: String,
    /// The same figures.
    pub table: Table,
}

/// Curves over a size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// The curves.
    pub curves: Vec<Curve>,
    /// The least and the largest size, for people.
    pub ends: (String, String),
    /// The same for a page.
    pub chart: Chart,
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its letter on a screen.
    pub letter: char,
    /// Size and value.
    pub dots: Vec<(f64, f64)>,
}

impl Section {
    /// A section of parts.
    pub fn new(title: impl Into<String>, parts: Vec<Part>) -> Section {
        Section { title: title.into(), quiet: false, parts }
    }

    /// A section whose heading only a page shows.
    pub fn quiet(title: impl Into<String>, parts: Vec<Part>) -> Section {
        Section { title: title.into(), quiet: true, parts }
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_nobody_fills_are_left_out() {
        let mut table = Table::new(["file", "#size", "#syncs"]);
        table.row(["a", "", "3"]);
        table.row(["b", "", ""]);
        let table = table.without_empty_columns();
        assert_eq!(table.columns, [("file".to_owned(), false), ("syncs".to_owned(), true)]);
        assert_eq!(table.rows[1], [Cell::from("b"), Cell::from("")]);
    }
}
