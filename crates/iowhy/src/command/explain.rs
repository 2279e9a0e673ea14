//! `iowhy explain [ID]`: the manual page of a finding, or all findings with a line each.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::finding::FindingId;
use iowhy_core::layer::Layer;
use iowhy_core::limit::LimitId;
use iowhy_core::problem::Problem;

use crate::analyzer;
use crate::cli::{ExplainArgs, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::Kind;
use crate::record::lists::{FindingEntry, Listed, Offer};
use iowhy_view::terminal::wrap::{MAX_WIDTH, MIN_WIDTH, wrap};

const BOLD: Style = Style::new().bold();

/// Runs the command.
///
/// # Errors
/// A refusal for an ID that is none; outputs that cannot be written.
pub fn run(args: &ExplainArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let chosen: Vec<FindingId> = match &args.id {
        Some(text) => vec![find(text)?],
        None => FindingId::ALL.to_vec(),
    };
    let outputs = Outputs::open(options)?;
    let width = output::width().clamp(MIN_WIDTH, MAX_WIDTH);
    let screen = match chosen.as_slice() {
        [one] => page(*one, width),
        all => list(all, width),
    };
    let findings: Vec<_> = chosen
        .iter()
        .map(|id| FindingEntry {
            id: *id,
            claim: analyzer::claim(*id),
            manual: analyzer::manual(*id),
            programs: analyzer::programs(*id),
            repairable: id.is_repairable(),
        })
        .collect();
    let record = Listed::new(Kind::List, "explain", Offer::Findings { findings });
    outputs.finish(&screen, &record)?;
    Ok(Ending::done())
}

/// Layers and limits are on the screens too; `explain` has no pages for them.
fn word_of_a_screen(wanted: &str) -> Option<(&'static str, &'static str)> {
    if Layer::ALL.iter().any(|layer| layer.id() == wanted) {
        return Some((
            "a layer of the I/O path",
            "a report shows its share of the time; `iowhy explain` lists the findings",
        ));
    }
    let limit: Result<LimitId, _> = serde_json::from_value(wanted.into());
    limit.is_ok().then_some((
        "a limit of the path report",
        "the lines below it on the screen are its evidence; `iowhy explain` lists the findings",
    ))
}

/// The finding of this name.
fn find(text: &str) -> Result<FindingId, Problem> {
    let wanted = text.to_lowercase().replace(['_', ' '], "-");
    if let Some(id) = FindingId::ALL.iter().find(|id| id.id() == wanted) {
        return Ok(*id);
    }
    if let Some((what, hint)) = word_of_a_screen(&wanted) {
        return Err(Problem::refused(format!("`explain {text}`: this is {what}, not a finding")).hint(hint));
    }
    let words: Vec<&str> = wanted.split('-').filter(|word| word.len() >= 3).collect();
    let near: Vec<String> = FindingId::ALL
        .iter()
        .filter(|id| words.iter().any(|word| id.id().contains(word)))
        .map(|id| format!("`{}`", id.id()))
        .collect();
    let hint = if near.is_empty() {
        "`iowhy explain` lists all of them".to_owned()
    } else {
        format!("did you mean {}? `iowhy explain` lists all", near.join(" or "))
    };
    Err(Problem::refused(format!("`explain {text}`: there is no such finding")).hint(hint))
}

/// All of them.
fn list(ids: &[FindingId], width: usize) -> String {
    let column = ids.iter().map(|id| id.id().len()).max().unwrap_or(0);
    let mut text = String::new();
    for id in ids {
        let name = format!("{:column$}  ", id.id());
        let entry = wrap(analyzer::claim(*id), width, &name, &" ".repeat(name.len()));
        text.push_str(&entry.replacen(id.id(), &format!("{BOLD}{}{BOLD:#}", id.id()), 1));
    }
    text.push_str("`iowhy explain ID` prints the manual page of one\n");
    text
}

/// The manual page with the changes to well-known programs below it, in Markdown.
fn whole_manual(id: FindingId) -> String {
    let mut text = analyzer::manual(id).trim_end().to_owned();
    let programs = analyzer::programs(id);
    if !programs.is_empty() {
        text.push_str("\n\n## In well-known programs\n");
    }
    for known in programs {
        let _ = write!(text, "\n**{}** ({})\n", known.program, known.recognised_by);
        for known in known.changes {
            let change = known.change;
            let when = known.when.map(|when| format!(", {when}")).unwrap_or_default();
            let _ = write!(text, "- ({}{when}) {}", change.kind.words(), change.line());
            let power = change.power_failure.as_ref().map(|lost| format!("Power failure: {lost}"));
            for more in power.iter().chain(&change.note) {
                let _ = write!(text, " {more}");
            }
            let _ = writeln!(text, " Source: {}, {}", change.source_title, change.source_url);
        }
    }
    text
}

/// The manual page for a terminal of `width` columns: headings and names of sections in bold, paragraphs filled anew,
/// examples as they are.
fn page(id: FindingId, width: usize) -> String {
    let mut text = String::new();
    let mut paragraph = String::new();
    let mut example = false;
    let flush = |paragraph: &mut String, text: &mut String| {
        if !paragraph.is_empty() {
            text.push_str(&emphasised(&wrap(paragraph, width, "", "")));
            paragraph.clear();
        }
    };
    let manual = whole_manual(id);
    for line in manual.trim_end().lines() {
        let heading = line.trim_start_matches('#');
        if line.starts_with("```") {
            flush(&mut paragraph, &mut text);
            example = !example;
        } else if example {
            text.push_str(&wrap(line, width, "  ", "    "));
        } else if heading.len() < line.len() {
            flush(&mut paragraph, &mut text);
            let _ = writeln!(text, "{BOLD}{}{BOLD:#}", heading.trim());
        } else if line.is_empty() {
            flush(&mut paragraph, &mut text);
            text.push('\n');
        } else {
            if line.starts_with("- ") || line.starts_with("**") {
                flush(&mut paragraph, &mut text);
            }
            paragraph.push_str(if paragraph.is_empty() { "" } else { " " });
            paragraph.push_str(line);
        }
    }
    flush(&mut paragraph, &mut text);
    text
}

/// Markdown's `**words**` in bold.
fn emphasised(text: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split("**").enumerate() {
        match i % 2 {
            0 => out.push_str(part),
            _ => {
                let _ = write!(out, "{BOLD}{part}{BOLD:#}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_its_line_and_is_found_by_its_name() {
        let text = anstream::adapter::strip_str(&list(FindingId::ALL, 100)).to_string();
        for id in FindingId::ALL {
            assert!(text.contains(&format!("{} ", id.id())) && !analyzer::claim(*id).is_empty());
            assert_eq!(find(id.id()), Ok(*id));
            for width in [40, 80] {
                let page = anstream::adapter::strip_str(&page(*id, width)).to_string();
                assert!(page.contains(id.id()) && !page.contains("**") && !page.contains("```"), "{page}");
                assert!(page.lines().all(|line| line.chars().count() <= width), "{page}");
                let words =
                    |text: &str| text.replace("**", "").split_whitespace().map(str::len).sum::<usize>();
                let fences = whole_manual(*id).replace("```text", "").replace(['`', '#'], "");
                assert_eq!(words(&page.replace(['`', '#'], "")), words(&fences), "no word is lost: {page}");
            }
        }
        assert_eq!(find("Sync_Per_Write"), Ok(FindingId::SyncPerWrite));
    }

    #[test]
    fn a_name_that_is_none_gets_the_nearest_ones() {
        assert!(find("sync").unwrap_err().hint.unwrap().contains("`sync-per-write`"));
        assert!(find("zzz").unwrap_err().hint.unwrap().contains("lists all"));
        assert!(find("").is_err());
    }
}
