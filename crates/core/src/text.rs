//! Text from outside (names, paths, records) made safe to show: control and bidirectional characters are written as escapes, so
//! that no input moves a cursor, changes a title or reorders a line. Deliberately absent: widths, colours, quoting for shells.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character acts on a terminal or on the order of a line: C0, DEL, C1, line and paragraph separators, and the
/// bidirectional controls of Unicode (UAX #9).
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with every such character as an escape (`\n`, `\u{1b}`): one line, fit for a screen. Other text is unchanged.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push(&mut safe, c));
    Cow::Owned(safe)
}

/// As [`visible`], with `\` as `\\`: [`unescaped`] gives the text back.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c == '\\' || acts(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\\\"),
            c => push(&mut safe, c),
        }
    }
    Cow::Owned(safe)
}

fn push(safe: &mut String, c: char) {
    match c {
        '\n' => safe.push_str("\\n"),
        '\r' => safe.push_str("\\r"),
        '\t' => safe.push_str("\\t"),
        c if acts(c) => {
            // Writing to a string does not fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        }
        c => safe.push(c),
    }
}

/// The text that [`escaped`] was made of; `None` where it is no such text.
pub fn unescaped(text: &str) -> Option<String> {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let mut left = rest.chars();
        whole.push(match left.next()? {
            '\\' => '\\',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (code, behind) = left.as_str().strip_prefix('{')?.split_once('}')?;
                rest = behind;
                whole.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                continue;
            }
            _ => return None,
        });
        rest = left.as_str();
    }
    whole.push_str(rest);
    Some(whole)
}

/// A finished screen: line ends and the colours of iowhy's own renderers pass, everything else that acts is escaped. The last
/// guard; renderers still make names [`visible`], because a colour in a name would pass here.
pub fn screen(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '\n' && acts(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour_length(rest);
        if colour > 0 {
            safe.push_str(&rest[..colour]);
            rest = &rest[colour..];
            continue;
        }
        if c == '\n' {
            safe.push('\n');
        } else {
            push(&mut safe, c);
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(safe)
}

/// Bytes of a colour (`ESC [ numbers m`) at the start of the text; 0: none.
fn colour_length(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = numbers.bytes().take_while(|b| b.is_ascii_digit() || *b == b';').count();
    if numbers.as_bytes().get(end) == Some(&b'm') { 2 + end + 1 } else { 0 }
}

/// JSON with every such character as `\uXXXX`, which every JSON reader turns back. Valid because JSON holds them only within
/// strings.
pub fn json(text: String) -> String {
    if !text.contains(|c| c != '\n' && acts(c)) {
        return text;
    }
    let mut safe = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if c == '\n' || !acts(c) {
            safe.push(c);
        } else {
            // Every such character lies in the basic plane.
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVIL: &str = "a\u{1b}[31mb\r\n\u{9b}2J\u{202e}gpj.\u{2066}\u{7f}\u{0}\u{61c}\u{2029}\\u{1b}";

    #[test]
    fn nothing_that_acts_passes_and_plain_text_is_not_copied() {
        assert!(!visible(EVIL).contains(acts) && !escaped(EVIL).contains(acts));
        assert_eq!(visible("a\u{1b}[2J\n"), "a\\u{1b}[2J\\n");
        assert!(matches!(visible("läuft “gut” 日本 \\ x"), Cow::Borrowed(_)));
        assert_eq!(escaped("a\\b"), "a\\\\b");
        assert_eq!(unescaped("a\\x"), None);
        assert_eq!(unescaped("a\\"), None);
        assert_eq!(unescaped("\\u{110000}"), None);
    }

    #[test]
    fn a_screen_keeps_lines_and_colours_and_nothing_else() {
        assert_eq!(screen("\u{1b}[1mx\u{1b}[0m\ny"), "\u{1b}[1mx\u{1b}[0m\ny");
        assert_eq!(screen("\u{1b}[2J\r\u{1b}]0;t\u{7}\u{202e}"), "\\u{1b}[2J\\r\\u{1b}]0;t\\u{7}\\u{202e}");
        assert_eq!(screen("\u{1b}["), "\\u{1b}[");
    }

    #[test]
    fn json_says_the_same_without_them() {
        assert_eq!(json("{\"a\":\"\u{202e}\u{85}\"}\n".to_owned()), "{\"a\":\"\\u202e\\u0085\"}\n");
    }

    proptest! {
        #[test]
        fn escaping_loses_nothing(text in "(\\PC|[\u{0}-\u{a0}\u{2000}-\u{2070}\\\\])*") {
            let safe = escaped(&text);
            prop_assert!(!safe.contains(acts));
            let back = unescaped(&safe);
            prop_assert_eq!(back.as_deref(), Some(text.as_str()));
        }
    }
}
