//! A command line as words, as a shell splits it: quotes, and the end at a pipe, a redirection, a comment or a next command.
//! Nothing is expanded.

/// The words of the command, without `sudo` and variables before it.
pub(super) fn of_command(line: &str) -> Vec<String> {
    let mut words = split(line);
    let before = |word: &String| word == "sudo" || word.contains('=') && !word.starts_with('-');
    while words.first().is_some_and(before) {
        words.remove(0);
    }
    words
}

fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | ';' | '&' | '>' | '<') => break,
            (None, '#') if word.is_none() => break,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        assert_eq!(of_command("A=1 sudo iowhy -- sh -c 'a | b' > x"), ["iowhy", "--", "sh", "-c", "a | b"]);
        assert_eq!(of_command("iowhy a#b # why"), ["iowhy", "a#b"]);
        assert_eq!(of_command("iowhy \"\" && ls"), ["iowhy", ""]);
    }
}
