//! Text for a terminal: wrapped paragraphs, aligned tables, bars of letters, small pictures in a line.

mod bar;
mod plot;
mod screen;
pub mod sparkline;
pub mod table;
pub mod wrap;

pub use screen::{part, screen};

/// Columns of the terminal that stdout is, or enough for every column where it is none.
pub fn width() -> usize {
    const WHEN_NO_TERMINAL: usize = 120;
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => WHEN_NO_TERMINAL,
    }
}

/// What pictures are drawn with on this terminal.
pub fn marks() -> sparkline::Marks {
    let values = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
    sparkline::Marks::of_locale(values.each_ref().map(Option::as_deref))
}
