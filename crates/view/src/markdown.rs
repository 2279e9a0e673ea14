//! From a document to Markdown for issues and pull requests: a chart becomes its sentence and its table.

use std::fmt::Write as _;

use iowhy_core::text::{acts, visible};

use crate::document::{Document, Part, Plot, Table};
use crate::svg::bars;

/// Rows that a table shows at most; issues are read by people.
const MAX_ROWS: usize = 40;

/// The text.
pub fn text(document: &Document) -> String {
    let mut text = String::new();
    for chapter in &document.chapters {
        let _ = writeln!(text, "# {}\n", plain(&chapter.title));
        for fact in std::iter::once(&chapter.about).filter(|about| !about.is_empty()).chain(&chapter.facts) {
            let _ = writeln!(text, "{}  ", plain(fact));
        }
        if !chapter.facts.is_empty() || !chapter.about.is_empty() {
            text.push('\n');
        }
        for section in chapter.sections.iter().filter(|section| !section.is_empty()) {
            if !section.title.is_empty() {
                let _ = writeln!(text, "## {}\n", plain(&section.title));
            }
            section.parts.iter().for_each(|part| push(&mut text, part));
        }
    }
    text
}

fn push(text: &mut String, part: &Part) {
    match part {
        Part::Verdict(words) => {
            let _ = writeln!(text, "**{}**\n", plain(words));
        }
        Part::Text(words) | Part::Note(words) | Part::Course(words, _) => {
            let _ = writeln!(text, "{}\n", plain(words));
        }
        Part::Lead(lead, words) => {
            let _ = writeln!(text, "**{}** {}\n", plain(lead), plain(words));
        }
        Part::Command(command) => {
            let _ = writeln!(text, "    {}\n", visible(command));
        }
        Part::Advice(words) => {
            let _ = writeln!(text, "**What to do:** {}\n", plain(words));
        }
        Part::Facts(facts) => {
            for (label, fact) in facts {
                let _ = writeln!(text, "- {}: {}", plain(label), plain(fact));
            }
            text.push('\n');
        }
        Part::Split(split) => push(text, &Part::Chart(bars::from_split(split))),
        // Charts of every latency stand in.
        Part::Spread(_) | Part::Layers(_) => {}
        Part::List(items) | Part::Remarks(items) => {
            for item in items {
                let _ = writeln!(text, "- {}", plain(item));
            }
            text.push('\n');
        }
        Part::Table(table) => push_table(text, &table.without_bars()),
        Part::Chart(chart) | Part::Plot(Plot { chart, .. }) => {
            let _ = writeln!(text, "{}: {}\n", plain(&chart.title), plain(&chart.alt));
            push_table(text, &chart.table);
        }
        Part::Charts(charts) => {
            charts.iter().for_each(|chart| push(text, &Part::Chart(chart.clone())));
        }
    }
}

fn push_table(text: &mut String, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    let line =
        |cells: &mut dyn Iterator<Item = String>| format!("| {} |", cells.collect::<Vec<_>>().join(" | "));
    let _ = writeln!(text, "{}", line(&mut table.columns.iter().map(|(heading, _)| cell(heading))));
    let rule = |numbers: bool| if numbers { "---:" } else { "---" }.to_owned();
    let _ = writeln!(text, "{}", line(&mut table.columns.iter().map(|(_, numbers)| rule(*numbers))));
    for row in table.rows.iter().take(MAX_ROWS) {
        let _ = writeln!(text, "{}", line(&mut row.iter().map(|words| cell(&words.text()))));
    }
    if table.rows.len() > MAX_ROWS {
        let _ = writeln!(text, "\nand {} rows more in the record", table.rows.len() - MAX_ROWS);
    }
    text.push('\n');
}

/// On one line, with nothing that Markdown or HTML would take for its own. Between backquotes a text stands as it is.
fn plain(words: &str) -> String {
    let paired = words.matches('`').count().is_multiple_of(2);
    let mut text = String::with_capacity(words.len());
    let mut within_code = false;
    for c in words.chars() {
        match c {
            '`' if paired => {
                within_code = !within_code;
                text.push(c);
            }
            c if c.is_control() => text.push(' '),
            c if acts(c) => text.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
            c if within_code => text.push(c),
            '\\' | '*' | '_' | '#' | '<' | '>' | '[' | ']' | '|' | '~' | '`' | '@' => {
                text.push('\\');
                text.push(c);
            }
            c => text.push(c),
        }
    }
    text
}

/// The same within a table, where a bar ends the cell even in code.
fn cell(words: &str) -> String {
    plain(words).replace("\\|", "|").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Chapter, Chart, Section};

    #[test]
    fn charts_become_their_sentence_and_table() {
        let mut table = Table::new(["size", "#time"]);
        table.row(["4 KiB", "1 | 2"]);
        table.row(["`a|b`", "3"]);
        let chart = Chart { title: "Time".into(), alt: "grows".into(), svg: "<svg/>".into(), table };
        let section = Section::new("How *long*", vec![Part::Verdict("slow".into()), Part::Chart(chart)]);
        let chapter = Chapter {
            title: "x".into(),
            about: String::new(),
            facts: vec!["Linux".into()],
            sections: vec![section],
        };
        let text = text(&Document { title: "t".into(), chapters: vec![chapter] });
        assert_eq!(
            text,
            "# x\n\nLinux  \n\n## How \\*long\\*\n\n**slow**\n\nTime: grows\n\n| size | time |\n| --- | ---: |\n\
             | 4 KiB | 1 \\| 2 |\n| `a\\|b` | 3 |\n\n"
        );
    }

    #[test]
    fn nothing_becomes_a_mention_a_tag_or_a_second_line() {
        assert_eq!(plain("@all <b>\nx"), "\\@all \\<b\\> x");
        assert_eq!(plain("`<b>` ok"), "`<b>` ok");
    }
}
