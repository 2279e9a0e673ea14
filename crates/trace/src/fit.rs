//! Whether the beginning of a file is of a format.

/// Whether the beginning of a file fits a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// It must see more.
    More,
}

/// Whether bytes are text: no control characters but those of lines, columns and escapes.
pub(crate) fn is_text(head: &[u8]) -> bool {
    head.iter().all(|byte| *byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t' | 0x1b | 0x0c))
}
