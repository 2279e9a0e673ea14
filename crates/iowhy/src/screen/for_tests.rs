//! For tests of screens: their text without colours, compared with the files of the end-to-end tests.

use std::path::PathBuf;

use iowhy_view::document::Chapter;
use iowhy_view::terminal;
use iowhy_view::terminal::sparkline::Marks;

/// A screen of this many columns.
pub(crate) fn plain(chapter: &Chapter, width: usize) -> String {
    let text = terminal::screen(chapter, width, Marks::Blocks);
    anstream::adapter::strip_str(&text).to_string()
}

/// Compares with the file of that name; `IOWHY_UPDATE=1` writes it.
pub(crate) fn assert_expected(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/command/expected").join(name);
    if std::env::var_os("IOWHY_UPDATE").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == got, "{name} differs from (IOWHY_UPDATE=1 rewrites it):\n{got}");
}
