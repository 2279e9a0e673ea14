//! Every way in which the path report ends with exit code 1 says why: the cell and the reason on stderr and on the screen.

use crate::common::{MIB, directory, full_file, iowhy, text};

/// The one error on stderr.
fn error(stderr: &str) -> &str {
    let errors: Vec<&str> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{stderr}");
    errors[0]
}

#[test]
fn cells_that_failed_are_named_with_their_reason() {
    let ran = iowhy(&["scripted?fail-at=300"]);
    assert_eq!(ran.code(), 1, "{ran:?}");
    let error = error(&ran.stderr);
    for words in ["cells failed: call on `scripted`", "Input/output error", "also dev-null"] {
        assert!(error.contains(words), "{error}");
    }
    let rows = ["cached 4 KiB, random (!)", "direct 4 KiB, depth 32 (!)"];
    for row in rows {
        let marked = ran.stdout.lines().find(|line| line.starts_with(row));
        assert!(marked.is_some_and(|line| line.ends_with("failed")), "{row}: {ran:?}");
    }
    assert!(
        ran.stdout.lines().count() <= 25 && ran.stdout.contains("further doubts: -v shows all"),
        "{ran:?}"
    );
    let all = iowhy(&["scripted?fail-at=300", "-v"]).stdout;
    for cell in rows.iter().chain(&["call (!)", "warm-4096 (!)"]) {
        let named = all
            .lines()
            .find(|line| line.starts_with("  ") && line.contains(cell) && line.contains("failed: "));
        assert!(named.is_some(), "{cell}: {all}");
    }
}

#[test]
fn a_model_that_cannot_be_saved_does_not_cost_the_report() {
    let dir = directory();
    let model = dir.path().join("model.toml");
    let ran = iowhy(&["null", "--save-model", text(&model)]);
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(error(&ran.stderr).contains("no model to save"), "{ran:?}");
    assert!(ran.stdout.contains("nothing at all"), "the report is printed: {ran:?}");
}

#[test]
fn an_output_that_cannot_be_written_is_named() {
    let ran = iowhy(&["scripted", "--json", "/dev/full"]);
    assert_eq!(ran.code(), 1, "{ran:?}");
    assert!(error(&ran.stderr).contains("/dev/full") && ran.stdout.contains("random reads"), "{ran:?}");
}

#[test]
fn what_is_well_ends_with_exit_code_0() {
    for target in ["null", "scripted", "scripted?noise=0.05&seed=3"] {
        let ran = iowhy(&[target]).done();
        assert!(!ran.stderr.contains("error:") && !ran.stdout.contains("(!)"), "{ran:?}");
        assert!(!ran.stdout.contains("more rounds"), "{ran:?}");
    }
}

#[test]
fn a_directory_has_rows_of_sequential_writes_and_a_file_of_the_users_has_none() {
    let dir = directory();
    let labels = |target: &str| -> Vec<String> {
        let ran = iowhy(&[target, "--size", "32m", "--time", "2s", "-q", "--json", "-"]);
        let requests = ran.json()["requests"].as_array().unwrap().clone();
        requests.iter().map(|request| request["label"].as_str().unwrap().to_owned()).collect()
    };
    let scratch = labels(text(dir.path()));
    assert!(scratch.iter().any(|label| label == "write 1 MiB, sync at end"), "{scratch:?}");
    full_file(dir.path(), "precious", 4 * MIB);
    let file = labels(text(&dir.path().join("precious")));
    assert!(!file.is_empty() && !file.iter().any(|label| label.contains("write")), "{file:?}");
}
