//! Columns of text, aligned by visible width. Colour codes count for nothing.

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Lays out rows below a header; columns are as wide as their widest cell, two spaces apart.
pub fn layout(header: &[&str], align: &[Align], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|h| visible_width(h)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(visible_width(cell));
        }
    }
    let mut text = String::new();
    let head: Vec<String> = header.iter().map(|h| (*h).to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (column, width) in widths.iter().enumerate() {
            let cell = row.get(column).map_or("", String::as_str);
            let gap = " ".repeat(width - visible_width(cell));
            match align.get(column) {
                Some(Align::Right) => line.push_str(&format!("{gap}{cell}")),
                _ => line.push_str(&format!("{cell}{gap}")),
            }
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Characters that take room on a terminal: escape sequences (`ESC [ ... m`) do not.
pub fn visible_width(text: &str) -> usize {
    let mut width = 0;
    let mut escape = false;
    for c in text.chars() {
        match (escape, c) {
            (false, '\u{1b}') => escape = true,
            (true, 'm') => escape = false,
            (true, _) => {}
            (false, _) => width += 1,
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_colour_takes_no_room() {
        let text = layout(
            &["name", "n"],
            &[Align::Left, Align::Right],
            &[vec!["a".into(), "1".into()], vec!["\u{1b}[31mlonger\u{1b}[0m".into(), "100".into()]],
        );
        assert_eq!(text, "name      n\na         1\n\u{1b}[31mlonger\u{1b}[0m  100\n");
    }
}
