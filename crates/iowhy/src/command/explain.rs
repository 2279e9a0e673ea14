//! `iowhy explain [WORD]`: the manual page of a finding, the meaning of a word of a screen, or all findings with a line each.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::finding::FindingId;
use iowhy_core::problem::Problem;

use crate::analyzer;
use crate::cli::{ExplainArgs, OutputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::Kind;
use crate::record::lists::{FindingEntry, Listed, Offer, WordEntry};
use crate::screen::words::{self, Word};
use iowhy_view::terminal::wrap::{MAX_WIDTH, MIN_WIDTH, wrap};

const BOLD: Style = Style::new().bold();

/// Runs the command.
///
/// # Errors
/// A refusal for a word that is not known; outputs that cannot be written.
pub fn run(args: &ExplainArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let width = output::width().clamp(MIN_WIDTH, MAX_WIDTH);
    let topic = match args.words.as_slice() {
        [] => Topic::Findings(FindingId::ALL),
        words => topic(&words.join(" "))?,
    };
    let outputs = Outputs::open(options)?;
    let (screen, offer) = match topic {
        Topic::Findings([one]) => (page(*one, width), findings(&[*one])),
        Topic::Findings(all) => (list(all, width), findings(all)),
        Topic::Words(words) => (described(&words, width), Offer::Words { words: entries(&words) }),
    };
    outputs.finish(&screen, &Listed::new(Kind::List, "explain", offer))?;
    Ok(Ending::done())
}

fn findings(ids: &[FindingId]) -> Offer {
    let entry = |id: &FindingId| FindingEntry {
        id: *id,
        claim: analyzer::claim(*id),
        manual: analyzer::manual(*id),
        programs: analyzer::programs(*id),
        repairable: id.is_repairable(),
    };
    Offer::Findings { findings: ids.iter().map(entry).collect() }
}

fn entries(words: &[&'static Word]) -> Vec<WordEntry> {
    let entry = |word: &&'static Word| WordEntry { word: word.word, kind: word.kind.id(), text: word.text };
    words.iter().map(entry).collect()
}

/// What a word stands for.
#[derive(Debug, PartialEq)]
enum Topic {
    Findings(&'static [FindingId]),
    Words(Vec<&'static Word>),
}

/// The finding of this name, or the word of a screen.
fn topic(text: &str) -> Result<Topic, Problem> {
    let wanted = words::normal(text);
    if let Some(at) = FindingId::ALL.iter().position(|id| id.id() == wanted) {
        return Ok(Topic::Findings(&FindingId::ALL[at..=at]));
    }
    let found = words::find(text);
    if !found.is_empty() {
        return Ok(Topic::Words(found));
    }
    let parts: Vec<&str> = wanted.split('-').filter(|word| word.len() >= 3).collect();
    let known = FindingId::ALL.iter().map(|id| id.id()).chain(words::WORDS.iter().map(|word| word.word));
    let near = known.filter(|known| parts.iter().any(|part| words::normal(known).contains(part)));
    let mut near: Vec<String> = near.map(|id| format!("`{id}`")).collect();
    near.dedup();
    near.truncate(MAX_NEAR);
    let hint = if near.is_empty() {
        "`iowhy explain` lists the findings; layers, limits, columns and verdicts are explained by their word on the screen"
            .to_owned()
    } else {
        format!("did you mean {}? `iowhy explain` lists the findings", near.join(" or "))
    };
    Err(Problem::refused(format!("`explain {text}`: there is no such finding and no such word")).hint(hint))
}

/// Names that a hint proposes.
const MAX_NEAR: usize = 4;

/// Each meaning of a word: what kind of word it is, and its text.
fn described(words: &[&'static Word], width: usize) -> String {
    let one = |word: &&'static Word| {
        let heading = format!("{BOLD}{}{BOLD:#}  {}\n", word.word, word.kind.about());
        heading + &wrap(word.text, width, "  ", "  ")
    };
    words.iter().map(one).collect::<Vec<_>>().join("\n")
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
    text.push_str("`iowhy explain WORD` prints the manual page of one, or explains a layer, limit, column or verdict of a screen\n");
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
            assert!(matches!(topic(id.id()), Ok(Topic::Findings([one])) if one == id));
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
        assert_eq!(topic("Sync_Per_Write"), Ok(Topic::Findings(&[FindingId::SyncPerWrite])));
    }

    #[test]
    fn a_word_of_a_screen_is_explained_in_every_sense() {
        for text in ["depth", "Where it goes", "where-it-goes", "cpu-queue", "one_thread"] {
            assert!(matches!(topic(text), Ok(Topic::Words(_))), "{text}");
        }
        let Ok(Topic::Words(device)) = topic("device") else { panic!("a layer and a limit") };
        let text = anstream::adapter::strip_str(&described(&device, 60)).to_string();
        assert!(text.contains("a layer") && text.contains("a limit"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn a_name_that_is_none_gets_the_nearest_ones() {
        assert!(topic("sync").unwrap_err().hint.unwrap().contains("`sync-per-write`"));
        assert!(topic("zzz").unwrap_err().hint.unwrap().contains("lists the findings"));
        assert!(topic("").is_err());
    }
}
