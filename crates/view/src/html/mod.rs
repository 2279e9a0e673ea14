//! From a document to one page that needs nothing else: no network, no font, no library. Style and script are beside this
//! file. Everything that comes from a record is escaped here or in the room of the charts, and nowhere else.

use std::fmt::Write as _;

use crate::document::{Chart, Document, Part, Plot, Section, Table};
use crate::escape::escape;
use crate::svg::bars;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn page(document: &Document) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"iowhy {}\">\n<title>{}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        env!("CARGO_PKG_VERSION"),
        escape(&document.title)
    );
    if document.chapters.len() > 1 {
        text.push_str("<nav aria-label=\"Records\"><ol>\n");
        for (number, chapter) in document.chapters.iter().enumerate() {
            let _ = writeln!(text, "<li><a href=\"#r{number}\">{}</a></li>", escape(&chapter.title));
        }
        text.push_str("</ol></nav>\n");
    }
    text.push_str("<main>\n");
    for (number, chapter) in document.chapters.iter().enumerate() {
        let _ = writeln!(text, "<article id=\"r{number}\">\n<header><h1>{}</h1>", escape(&chapter.title));
        if !chapter.about.is_empty() {
            let _ = writeln!(text, "<p class=\"fact\">{}</p>", escape(&chapter.about));
        }
        for fact in &chapter.facts {
            let _ = writeln!(text, "<p class=\"fact\">{}</p>", escape(fact));
        }
        text.push_str("</header>\n");
        for section in chapter.sections.iter().filter(|section| !section.is_empty()) {
            push_section(&mut text, section);
        }
        text.push_str("</article>\n");
    }
    let _ = write!(
        text,
        "</main>\n<footer>made by iowhy {}; every chart has its figures as a table below it</footer>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    text
}

fn push_section(text: &mut String, section: &Section) {
    text.push_str("<section>\n");
    if !section.title.is_empty() {
        let _ = writeln!(text, "<h2>{}</h2>", escape(&section.title));
    }
    for part in &section.parts {
        match part {
            Part::Verdict(verdict) => {
                let _ = writeln!(text, "<p class=\"verdict\">{}</p>", code(verdict));
            }
            Part::Text(words) | Part::Course(words, _) => {
                let _ = writeln!(text, "<p>{}</p>", code(words));
            }
            Part::Note(words) => {
                let _ = writeln!(text, "<p class=\"note\">{}</p>", code(words));
            }
            Part::Lead(lead, words) => {
                let _ = writeln!(text, "<p><b>{}</b> {}</p>", code(lead), code(words));
            }
            Part::Command(command) => {
                let _ = writeln!(text, "<pre><code>{}</code></pre>", escape(command));
            }
            Part::Advice(words) => {
                let _ = writeln!(text, "<p><b>What to do:</b> {}</p>", code(words));
            }
            Part::Facts(facts) => {
                let mut table = Table::new(["", ""]);
                facts.iter().for_each(|(label, fact)| table.row([label.as_str(), fact.as_str()]));
                push_table(text, &table);
            }
            Part::Split(split) => push_chart(text, &bars::from_split(split)),
            // Pages have charts of every latency instead.
            Part::Spread(_) | Part::Layers(_) => {}
            Part::List(items) | Part::Remarks(items) => {
                text.push_str("<ul>\n");
                for item in items {
                    let _ = writeln!(text, "<li>{}</li>", code(item));
                }
                text.push_str("</ul>\n");
            }
            Part::Table(table) if table.bars().next().is_some() => {
                push_chart(text, &bars::from_table(&section.title, table));
            }
            Part::Table(table) => push_table(text, table),
            Part::Chart(chart) | Part::Plot(Plot { chart, .. }) => push_chart(text, chart),
            Part::Charts(charts) => {
                text.push_str("<div class=\"multiples\">\n");
                charts.iter().for_each(|chart| push_chart(text, chart));
                text.push_str("</div>\n");
            }
        }
    }
    text.push_str("</section>\n");
}

/// Escaped, with what stands between backquotes as code.
fn code(words: &str) -> String {
    let mut text = String::new();
    let pieces: Vec<&str> = words.split('`').collect();
    let paired = pieces.len() % 2 == 1;
    for (number, piece) in pieces.iter().enumerate() {
        match number % 2 {
            1 if paired => {
                let _ = write!(text, "<code>{}</code>", escape(piece));
            }
            1 => {
                let _ = write!(text, "`{}", escape(piece));
            }
            _ => text.push_str(&escape(piece)),
        }
    }
    text
}

fn push_chart(text: &mut String, chart: &Chart) {
    let _ = write!(
        text,
        "<figure>\n<figcaption>{}</figcaption>\n{}\n<p class=\"note\">{}</p>\n",
        code(&chart.title),
        chart.svg,
        code(&chart.alt)
    );
    if !chart.table.rows.is_empty() {
        text.push_str("<details><summary>figures</summary>\n");
        push_table(text, &chart.table);
        text.push_str("</details>\n");
    }
    text.push_str("</figure>\n");
}

fn push_table(text: &mut String, table: &Table) {
    text.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    for (heading, numbers) in &table.columns {
        let class = if *numbers { " class=\"n\"" } else { "" };
        let _ = write!(text, "<th scope=\"col\"{class}>{}</th>", escape(heading));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        text.push_str("<tr>");
        for (cell, (_, numbers)) in row.iter().zip(&table.columns) {
            let class = if *numbers { " class=\"n\"" } else { "" };
            let _ = write!(text, "<td{class}>{}</td>", code(&cell.text()));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</tbody>\n</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Chapter;

    #[test]
    fn every_layer_has_a_colour() {
        for layer in iowhy_core::layer::Layer::ALL {
            assert!(
                STYLE.contains(&format!(".{} {{ fill:", layer.id())),
                "`{}` is drawn in black",
                layer.id()
            );
        }
    }

    #[test]
    fn what_a_record_says_cannot_become_markup() {
        let evil = "</title><script>alert(1)</script>\u{1b}[31m\" onload='x'";
        let mut table = Table::new([evil, "#n"]);
        table.row([evil.to_owned(), "1".to_owned()]);
        let chart = Chart { title: evil.into(), alt: evil.into(), svg: String::new(), table: table.clone() };
        let document = Document {
            title: evil.into(),
            chapters: vec![Chapter {
                title: evil.into(),
                about: evil.into(),
                facts: vec![evil.into()],
                sections: vec![Section::new(
                    evil,
                    vec![
                        Part::Verdict(evil.into()),
                        Part::Text(format!("`{evil}")),
                        Part::Note(format!("`{evil}`")),
                        Part::List(vec![evil.into()]),
                        Part::Table(table),
                        Part::Lead(evil.into(), evil.into()),
                        Part::Advice(evil.into()),
                        Part::Facts(vec![(evil.into(), evil.into())]),
                        Part::Remarks(vec![evil.into()]),
                        Part::Chart(chart),
                    ],
                )],
            }],
        };
        let text = page(&document);
        assert_eq!(text.matches("<script>").count(), 1, "only our own");
        assert!(!text.contains("alert(1)</script>") && !text.contains('\u{1b}'));
        assert!(escape("a\u{202e}b\u{9b}") == "a\\u{202e}b\\u{9b}");
        assert!(!text.contains("onload='") && text.contains("&lt;script&gt;alert(1)"));
    }

    #[test]
    fn backquotes_become_code_only_in_pairs() {
        assert_eq!(code("run `a<b` now"), "run <code>a&lt;b</code> now");
        assert_eq!(code("a ` b"), "a ` b");
    }

    #[test]
    fn a_page_asks_for_nothing_from_elsewhere() {
        let text = page(&Document::default());
        for needle in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!text.contains(needle), "{needle}");
        }
    }
}
