//! What a report is made of, before anybody knows whether it becomes a page or Markdown.
//!
//! Invariant: a chart never stands alone. It carries a table with the same figures and a sentence that says what is to be
//! seen, so that nothing is lost on paper, in Markdown, or for whoever does not see it.

/// A whole report.
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
    /// What was measured, watched or simulated.
    pub title: String,
    /// Facts about it, a line each.
    pub facts: Vec<String>,
    /// Its parts, most telling first.
    pub sections: Vec<Section>,
}

/// A heading and what stands below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The heading; empty for the verdict, which needs none.
    pub title: String,
    /// The contents.
    pub parts: Vec<Part>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// What a reader in a hurry takes away.
    Verdict(String),
    /// A paragraph.
    Text(String),
    /// A remark in small type.
    Note(String),
    /// Facts, one each.
    List(Vec<String>),
    /// Figures.
    Table(Table),
    /// A picture with its figures.
    Chart(Chart),
    /// Small multiples: charts of one kind side by side.
    Charts(Vec<Chart>),
}

/// Rows under headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The headings, and whether the column holds numbers.
    pub columns: Vec<(String, bool)>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows. A heading that begins with `#` is of a column of numbers.
    pub fn new(headings: &[&str]) -> Table {
        let column = |heading: &&str| match heading.strip_prefix('#') {
            Some(numbers) => (numbers.to_owned(), true),
            None => ((*heading).to_owned(), false),
        };
        Table { columns: headings.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
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

impl Section {
    /// A section of parts.
    pub fn new(title: impl Into<String>, parts: Vec<Part>) -> Section {
        Section { title: title.into(), parts }
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}
