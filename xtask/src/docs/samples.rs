//! Marks around sample output in pages: `cargo xtask capture` writes it, or a remark says why it does not.

/// What stands before output that `cargo xtask capture` writes.
pub(crate) const BEGIN: &str = "<!-- capture";
/// What stands before output that is of another time or machine, with the reason.
const STATIC: &str = "<!-- static: ";

/// Sample output of iowhy that is neither captured nor marked as static, as line numbers.
pub(crate) fn uncaptured(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut fenced, mut excused, mut found) = (false, false, Vec::new());
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && (line.starts_with(BEGIN) || line.starts_with(STATIC)) {
            excused = true;
        } else if !fenced && !line.is_empty() {
            excused = false;
        }
        let command = line.strip_prefix("$ ").map(|typed| typed.trim_start_matches("sudo "));
        let shows =
            lines.get(number + 1).is_some_and(|next| !next.starts_with("```") && !next.starts_with('$'));
        if fenced && !excused && shows && command.is_some_and(|command| command.starts_with("iowhy")) {
            found.push(number + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_output_is_captured_or_has_a_reason() {
        let sample = "```\n$ sudo iowhy .\noutput\n```\n";
        assert_eq!(uncaptured(sample), [2]);
        assert!(uncaptured(&format!("<!-- capture: iowhy . -->\n{sample}")).is_empty());
        assert!(uncaptured(&format!("<!-- static: another machine -->\n\n{sample}")).is_empty());
        assert_eq!(uncaptured(&format!("<!-- static: another -->\ntext\n{sample}")), [4]);
        assert!(uncaptured("```\n$ iowhy .\n```\n").is_empty());
    }
}
