//! No function is longer than a reader can hold in mind. Tests may be: a table of cases has as many lines as cases.

use super::circles::{code, without_tests};

/// Lines of a function, from `fn` to its last brace.
const MAX_LINES: usize = 80;

/// Complaints about one source file.
pub(super) fn complaints(name: &str, text: &str) -> Vec<String> {
    if name.ends_with("tests.rs") || name.contains("/tests/") {
        return Vec::new();
    }
    let text = without_tests(&code(text));
    let functions = text.match_indices("fn ").filter(|(at, _)| !text[..*at].ends_with(is_of_a_name));
    functions
        .filter_map(|(at, _)| {
            let function = &text[at..];
            let lines = function[..end(function)?].lines().count();
            let called = function[3..].split(|c| !is_of_a_name(c)).next().unwrap_or_default();
            (lines > MAX_LINES).then(|| {
                format!("{name}: `{called}` has {lines} lines; a function has at most {MAX_LINES}: split it")
            })
        })
        .collect()
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where a function ends; `None` for one without a body.
fn end(function: &str) -> Option<usize> {
    let (mut parentheses, mut braces) = (0, 0);
    for (at, c) in function.char_indices() {
        match c {
            '(' | '[' => parentheses += 1,
            ')' | ']' => parentheses -= 1,
            ';' if parentheses == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' => braces -= 1,
            _ => {}
        }
        if c == '}' && braces == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("pub fn long(a: [u8; 4]) {{\n{}}}\n", "    a(\"}\n\");\n".repeat((lines - 2) / 2))
    }

    #[test]
    fn a_long_function_is_seen() {
        let declared = "trait T {\n    fn without_a_body();\n}\n";
        let fits = format!("{declared}{}", function(MAX_LINES));
        assert!(complaints("crates/iowhy/src/x.rs", &fits).is_empty());
        let long = format!("{declared}{}", function(MAX_LINES + 2));
        let said = complaints("crates/iowhy/src/x.rs", &long);
        assert!(said.len() == 1 && said[0].contains("`long` has 82 lines"), "{said:?}");
        assert!(complaints("crates/iowhy/src/x_tests.rs", &long).is_empty());
        assert!(
            complaints("crates/iowhy/src/x.rs", &format!("#[cfg(test)]\nmod tests {{\n{long}}}")).is_empty()
        );
    }
}
