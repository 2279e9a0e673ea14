//! Text as the content of an element or the value of an attribute, for pages and charts.

use iowhy_core::text::{acts, visible};

/// Characters that no page may hold, and those that reorder a line, are shown as escapes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if acts(c) && c != '\n' && c != '\t' => safe.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
            c => safe.push(c),
        }
    }
    safe
}
