//! fio's job files: sections in brackets, `key=value` or `key` in lines, `[global]` for all sections behind it.

use iowhy_core::problem::Problem;

/// One job: what is global and its own, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Key and value; a key without a value has the value `1`, as in fio.
    pub options: Vec<(String, String)>,
}

/// The jobs of a file.
///
/// # Errors
/// A line that is none of the above; a file without a job. `name` is the file's, for messages.
pub fn read(text: &str, name: &str) -> Result<Vec<Section>, Problem> {
    let refused = |number: usize, why: String| {
        Problem::refused(format!("`{name}`, line {}: {why}", number + 1))
            .hint("a job file has `[name]` and `key=value` in lines of their own; fio's manual calls it JOB FILE FORMAT")
    };
    let mut global: Vec<(String, String)> = Vec::new();
    let mut jobs: Vec<Section> = Vec::new();
    let mut in_global = false;
    let mut begun = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() || line.starts_with('#') || line.starts_with(';') {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some((section, behind)) = rest.split_once(']') else {
                return Err(refused(number, format!("`{line}` has no `]`")));
            };
            if !behind.trim().is_empty() && !behind.trim().starts_with(['#', ';']) {
                return Err(refused(number, format!("`{}` stands behind `]`", behind.trim())));
            }
            begun = true;
            in_global = section.trim() == "global";
            if !in_global {
                jobs.push(Section { name: section.trim().to_owned(), options: global.clone() });
            }
            continue;
        }
        if line.starts_with("include ") {
            return Err(refused(number, "`include` is not followed".to_owned()));
        }
        if !begun {
            return Err(refused(number, format!("`{line}` stands before the first section")));
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), value.trim()),
            None => (line, "1"),
        };
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if key.is_empty() || !key.chars().all(word) {
            return Err(refused(number, format!("`{key}` is no name of an option")));
        }
        let option = (key.replace('-', "_"), value.to_owned());
        match jobs.last_mut() {
            Some(job) if !in_global => job.options.push(option),
            _ => global.push(option),
        }
    }
    if jobs.is_empty() {
        return Err(Problem::refused(format!("`{name}` holds no job"))
            .hint("a job begins with its name in brackets, as `[random-reads]`"));
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globals_hold_for_what_follows_them() {
        let text = "; a comment\n[global]\nbs=4k\ndirect\n\n[a]\nrw = randread\n[global]\nbs=8k\n[b]\n# x\n";
        let jobs = read(text, "x.fio").unwrap();
        let option = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(jobs[0].options, [option("bs", "4k"), option("direct", "1"), option("rw", "randread")]);
        assert_eq!(jobs[1].options, [option("bs", "4k"), option("direct", "1"), option("bs", "8k")]);
    }

    #[test]
    fn what_is_no_job_file_is_refused_with_its_line() {
        for (text, says) in [
            ("bs=4k\n[a]\n", "line 1"),
            ("[a]\n=3\n", "line 2"),
            ("[a\n", "no `]`"),
            ("[a] b\n", "behind `]`"),
            ("[a]\ninclude other.fio\n", "not followed"),
            ("[global]\nbs=1\n", "no job"),
            ("", "no job"),
            ("\u{0}\u{1}", "line 1"),
        ] {
            let problem = read(text, "x.fio").unwrap_err();
            assert!(
                problem.message.contains(says) && problem.message.contains("x.fio"),
                "{text:?}: {problem:?}"
            );
        }
    }
}
