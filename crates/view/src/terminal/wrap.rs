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
    for mut word in pieces(text.split_whitespace()) {
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

/// A line broken at single spaces between its pieces; nothing else of it changes, so what stands in it can be copied. A word that is longer
/// than `width` keeps a line for itself, and lines after the first are indented.
pub fn fold(line: &str, width: usize) -> String {
    const INDENT: &str = "  ";
    let mut text = String::with_capacity(line.len());
    let mut used = 0;
    for (number, word) in pieces(line.split(' ')).iter().enumerate() {
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

/// Pieces that a line is not broken in: a unit stays with its number or interval, and an interval with its value:
/// `5.9 MiB/s`, `±3 %`, `12x [10, 14]`, `[5.1, 6.2] MiB/s`. One that is longer than a line is still cut.
fn pieces<'a>(text: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    // Whether the last word was the beginning of an interval: `[5.1,`.
    let mut begun = false;
    for word in text {
        let opens = word.starts_with('[') && word[1..].starts_with(is_of_number);
        match words.last_mut() {
            Some(last)
                if begun
                    || (is_unit(word) && ends_with_number(last))
                    || ((opens || word.starts_with('±')) && ends_with_figure(last)) =>
            {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        begun = opens && word.ends_with(',');
    }
    words
}

fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '-' | '+' | '.')
}

/// `12`, `±3` or the end of an interval.
fn ends_with_number(word: &str) -> bool {
    word.ends_with(|c: char| c.is_ascii_digit() || c == ']')
}

/// A number, with its unit or `x`.
fn ends_with_figure(word: &str) -> bool {
    let last = word.rsplit(' ').next().unwrap_or(word);
    ends_with_number(last) || is_unit(last) || last.strip_suffix('x').is_some_and(ends_with_number)
}

/// Whether a word is a unit, alone or as a rate (`MiB/s`, `k/s`).
fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 15] =
        ["%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "CPU", "CPUs", "k", "M", "G"];
    let word = word.trim_end_matches([',', ';', ')', '.', ':']);
    match word.split_once('/') {
        Some((unit, per)) => matches!(per, "s" | "byte") && (unit.is_empty() || UNITS.contains(&unit)),
        None => UNITS[..12].contains(&word),
    }
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
    fn a_value_an_interval_and_their_unit_stay_on_one_line() {
        let figures = [
            "5.905 GiB/s",
            "208.9 k/s",
            "435 /s",
            "0.158 ns/byte",
            "11.05 µs ±3 %",
            "12.5 MiB/s [10.1, 14.9]",
            "[10.1, 14.9] MiB/s",
            "56 % [54, 58]",
            "1.19x [1.12, 1.22]",
            "3,800 [3,700, 3,900]",
            "-1.5 % [-2.0, -0.9]",
        ];
        for figure in figures {
            for padding in 0..40 {
                let text = format!("{}it takes {figure}, and then it ends", "a ".repeat(padding));
                for width in [40, 80, 100] {
                    let lines = wrap(&text, width, "", "  ");
                    assert!(lines.lines().any(|line| line.contains(figure)), "{width}: {lines}");
                    assert!(lines.lines().all(|line| visible_width(line) <= width), "{width}: {lines}");
                    assert_eq!(lines.split_whitespace().collect::<Vec<_>>().join(" "), text);
                    assert!(fold(&text, width).lines().any(|line| line.contains(figure)), "{width}: {text}");
                }
            }
        }
    }

    #[test]
    fn brackets_and_letters_that_are_no_figures_break_as_words() {
        let words = |text: &str| pieces(text.split_whitespace());
        assert_eq!(words("see [the page] or [1, 2] k s"), ["see", "[the", "page]", "or", "[1, 2]", "k", "s"]);
        assert_eq!(words("run 3 M of 4 s."), ["run", "3", "M", "of", "4 s."]);
    }

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
