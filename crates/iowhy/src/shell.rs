//! Words as a shell takes them: a command line that is shown can be copied and run. Nothing is run here.

use std::ffi::OsString;

/// A command line. What is not UTF-8 is shown as well as it can be.
pub fn line(words: impl IntoIterator<Item = OsString>) -> String {
    let word = |(i, word): (usize, OsString)| {
        let word = word.to_string_lossy();
        // In front, `A=b` would be an assignment.
        if i == 0 && word.contains('=') { in_quotes(&word) } else { quoted(&word) }
    };
    words.into_iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// A word, quoted where a shell would take it apart or replace a part of it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| (c.is_alphanumeric() || "/._-+,:@%=".contains(c)) && !c.is_control();
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('=') {
        word.to_owned()
    } else {
        in_quotes(word)
    }
}

fn in_quotes(word: &str) -> String {
    if !word.contains(char::is_control) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let mut text = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\\' | '\'' => text.extend(['\\', c]),
            c if c.is_control() => {
                // Octal has at most three digits, so that a digit behind it stays apart.
                c.to_string().bytes().for_each(|byte| text.push_str(&format!("\\{byte:03o}")));
            }
            c => text.push(c),
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HARD: [&[&str]; 8] = [
        &["sh", "-c", "kill -9 $$"],
        &["printf", "%s\\n", "it's", "", "a\"b", "~", "*", "=x"],
        &["a=b", "c=d"],
        &["x", "one\ntwo\t'three'\\", "\u{1b}[31m7", "ä ö"],
        &["x", "!!", "#no", "a#b", "{a,b}", "a;b", "`id`", "a&b|c>d<e"],
        &["tar", "cf", "out.tar", "--exclude=*.o", "dir"],
        &["x", "\u{85}1", "\u{1}2"],
        &["x", "-", "--", "^a", "[ab]", "?"],
    ];

    #[test]
    fn plain_words_stay_and_a_script_is_quoted() {
        let line = |words: &[&str]| line(words.iter().map(OsString::from));
        assert_eq!(line(HARD[0]), "sh -c 'kill -9 $$'");
        assert_eq!(line(&["make", "-j4", "CC=gcc", "/a/b-c_d.e"]), "make -j4 CC=gcc /a/b-c_d.e");
        assert_eq!(line(&["A=b", "x"]), "'A=b' x");
        assert_eq!(line(&["it's"]), "'it'\\''s'");
    }

    /// What a shell makes of the line is the words.
    #[test]
    fn a_shell_takes_the_line_for_the_words() {
        if !std::process::Command::new("bash").arg("--version").output().is_ok_and(|o| o.status.success()) {
            eprintln!("skipped: there is no bash");
            return;
        }
        for words in HARD {
            let script = format!("set -- {}; printf '%s\\0' \"$@\"", line(words.iter().map(OsString::from)));
            let output =
                std::process::Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output();
            let told = output.unwrap().stdout;
            let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
            assert_eq!(String::from_utf8_lossy(&told), String::from_utf8_lossy(&expected), "{script}");
        }
    }
}
