//! Text in lines of a given width: words are kept whole, units stay with their numbers, control characters do not pass.

use crate::terminal::table::visible_width;

/// No terminal is narrower.
pub const MIN_WIDTH: usize = 40;
/// Lines longer than this are hard to read on any terminal.
pub const MAX_WIDTH: usize = 120;

/// A text cut to `room` characters, its end replaced; control characters do not reach the terminal.
pub fn cut(text: &str, room: usize) -> String {
    let clean = clean(text);
    if clean.chars().count() <= room {
        return clean;
    }
    let mut kept: String = clean.chars().take(room.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// A path cut to `room` characters: its beginning gives way, the name stays.
pub fn cut_path(path: &str, room: usize) -> String {
    let clean = clean(path);
    let length = clean.chars().count();
    if length <= room {
        return clean;
    }
    let kept: String = clean.chars().skip(length - room.saturating_sub(1)).collect();
    format!("…{kept}")
}

fn clean(text: &str) -> String {
    iowhy_core::text::visible(text).into_owned()
}

/// A paragraph of lines no wider than `width`, broken at spaces; a word that is too long alone is cut over lines.
pub fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let text = clean(text);
    let mut lines: Vec<String> = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for mut word in words(&text) {
        loop {
            let gap = usize::from(!empty);
            if visible_width(&line) + gap + visible_width(&word) <= width {
                line.push_str(if empty { "" } else { " " });
                line.push_str(&word);
                empty = false;
                break;
            }
            if empty {
                // Longer than a whole line.
                let room = width.saturating_sub(visible_width(&line)).max(1);
                line.extend(word.chars().take(room));
                word = word.chars().skip(room).collect();
            }
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
            if word.is_empty() {
                break;
            }
        }
    }
    if !empty || lines.is_empty() {
        lines.push(line);
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A line broken at single spaces; nothing else of it changes, so what stands in it can be copied. A word that is longer
/// than `width` keeps a line for itself, and lines after the first are indented.
pub fn fold(line: &str, width: usize) -> String {
    const INDENT: &str = "  ";
    let mut text = String::with_capacity(line.len());
    let mut used = 0;
    for (number, word) in line.split(' ').enumerate() {
        let wide = visible_width(word);
        if number > 0 && !word.is_empty() && used > INDENT.len() && used + 1 + wide > width {
            text.push('\n');
            text.push_str(INDENT);
            used = INDENT.len();
        } else if number > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += wide;
    }
    text
}

/// The words of a text; a unit stays with its number.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 12] = ["%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "CPU", "CPUs"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = UNITS.contains(&word.trim_end_matches([',', ';', ')', '.', ':']));
        match words.last_mut() {
            Some(last) if unit && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Items two spaces apart, as many on a line as fit; items may hold colour.
pub fn flow(items: &[String], width: usize, indent: &str) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for item in items {
        if !line.is_empty() && visible_width(&line) + 2 + visible_width(item) > width {
            text.push_str(&line);
            text.push('\n');
            line.clear();
        }
        line.push_str(if line.is_empty() { indent } else { "  " });
        line.push_str(item);
    }
    if !line.is_empty() {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_line_breaks_at_words_only_and_loses_nothing() {
        let line = "error: `/a/long/path/that/is/wider/than/the/screen` is mounted  or in use, so it is not written to";
        for width in [10, 24, 40, 80, 400] {
            let lines = fold(line, width);
            assert_eq!(lines.replace("\n  ", " "), line, "at {width}");
            for part in lines.lines() {
                assert!(
                    visible_width(part) <= width || part.trim().split(' ').count() <= 2,
                    "{width}: {part:?}"
                );
            }
        }
        assert_eq!(fold("one two three", 9), "one two\n  three");
        assert_eq!(
            fold("\u{1b}[31merror:\u{1b}[0m ab", 9),
            "\u{1b}[31merror:\u{1b}[0m ab",
            "colours take no room"
        );
    }
}
