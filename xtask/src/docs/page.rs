//! What a page names: links, headings as anchors, commands, and code between backticks.

use std::collections::BTreeSet;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The parts of a page that can be wrong.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) links: Vec<String>,
    /// Headings as GitHub and mdBook name them in addresses.
    pub(super) anchors: BTreeSet<String>,
    /// Lines that a reader would type.
    pub(super) commands: Vec<String>,
    /// Commands in sentences, which may leave out what they are given.
    pub(super) mentions: Vec<String>,
    /// Text between backticks.
    pub(super) code: Vec<String>,
}

impl Page {
    pub(super) fn parse(text: &str) -> Page {
        let mut page = Page::default();
        let mut heading: Option<String> = None;
        let mut block: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.add_anchor(&heading.take().unwrap_or_default()),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                    block = Some(String::new());
                }
                Event::End(TagEnd::CodeBlock) => {
                    page.commands.extend(commands(&block.take().unwrap_or_default()));
                }
                Event::Text(words) => {
                    if let Some(open) = block.as_mut().or(heading.as_mut()) {
                        open.push_str(&words);
                    }
                }
                Event::Code(words) => {
                    if let Some(open) = heading.as_mut() {
                        open.push_str(&words);
                    }
                    page.mentions.extend(inline_command(&words));
                    page.code.push(words.into_string());
                }
                _ => {}
            }
        }
        page
    }

    fn add_anchor(&mut self, heading: &str) {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let same = (1..).map(|n| format!("{anchor}-{n}"));
        let free = std::iter::once(anchor.clone()).chain(same).find(|name| !self.anchors.contains(name));
        self.anchors.extend(free);
    }
}

fn is_command(line: &str) -> bool {
    ["iowhy ", "sudo iowhy ", "cargo xtask "].iter().any(|start| line.starts_with(start))
}

/// The command lines of a block. Where it shows a terminal, those behind `$ ` and indented ones, which stand in loops; otherwise
/// every line that is one. A line that ends in a backslash goes on in the next.
fn commands(block: &str) -> Vec<String> {
    let whole = block.replace("\\\n", " ");
    let terminal = whole.lines().any(|line| line.starts_with("$ "));
    let typed = |line: &&str| !terminal || line.starts_with("$ ") || line.starts_with("  ");
    let lines = whole.lines().filter(typed).map(|line| line.strip_prefix("$ ").unwrap_or(line).trim());
    lines.filter(|line| is_command(line)).map(str::to_owned).collect()
}

/// A command in a sentence, unless it only shows a form (`[OPTIONS]`, `a|b`, `--from ... --to`).
fn inline_command(code: &str) -> Option<String> {
    let line = code.strip_suffix(" ...").unwrap_or(code);
    let form = line.contains(['[', '|', '<']) || line.contains("... ") || line.contains(" N");
    (is_command(line) && !form).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart() {
        let page = Page::parse(
            "# A `b` c!\n## Same\n## Same\n[x](y.md#z) and `crates/core`\n\n```\n$ sudo iowhy .\niowhy is shown\n```\n\n\
             | a |\n|---|\n| `iowhy doctor --try a=1` |\n",
        );
        assert_eq!(page.links, ["y.md#z"]);
        assert!(["a-b-c", "same", "same-1"].iter().all(|name| page.anchors.contains(*name)), "{page:?}");
        assert_eq!(page.commands, ["sudo iowhy ."]);
        assert_eq!(page.mentions, ["iowhy doctor --try a=1"]);
        assert!(page.code.contains(&"crates/core".to_owned()));
    }

    #[test]
    fn lines_of_scripts_are_commands_and_forms_are_not() {
        assert_eq!(commands("iowhy sim \\\n  --machine nvme\nls\n"), ["iowhy sim    --machine nvme"]);
        for form in ["iowhy [PATH]", "iowhy stripe lint|advise", "iowhy's", "iowhy bench --from ... --to"] {
            assert_eq!(inline_command(form), None, "{form}");
        }
        assert_eq!(inline_command("iowhy -- ...").as_deref(), Some("iowhy --"));
    }
}
