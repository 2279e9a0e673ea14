//! A line of a screen with its codes (`ESC [ ... m`) onto a buffer. The documents' layout makes such lines for every terminal; here they
//! become styles of cells. Colours are those that [`iowhy_view::terminal`] uses, and weight.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

/// Draws a line from column `x` on; what does not fit is cut.
pub(super) fn line(buffer: &mut Buffer, x: u16, y: u16, text: &str) {
    let end = buffer.area.right();
    let (mut x, mut style) = (x, Style::new());
    for (number, piece) in text.split("\u{1b}[").enumerate() {
        let mut shown = piece;
        if number > 0 {
            let (code, rest) = piece.split_once('m').unwrap_or(("", piece));
            style = styled(style, code);
            shown = rest;
        }
        if x < end {
            x = buffer.set_stringn(x, y, shown, usize::from(end - x), style).0;
        }
    }
}

/// A style after a code.
fn styled(style: Style, code: &str) -> Style {
    match code {
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "31" => style.fg(Color::Red),
        "32" => style.fg(Color::Green),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui_core::layout::Rect;

    use super::*;

    #[test]
    fn codes_become_styles_and_take_no_room() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        line(&mut buffer, 1, 0, "a\u{1b}[1mbc\u{1b}[0md\u{1b}[31mefghij");
        let text: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(text, " abcdefg", "cut at the edge");
        let bold = |x: u16| buffer[(x, 0)].modifier.contains(Modifier::BOLD);
        assert_eq!([1, 2, 3, 4].map(bold), [false, true, true, false]);
        assert_eq!((buffer[(4, 0)].fg, buffer[(5, 0)].fg), (Color::Reset, Color::Red));
    }
}
