//! Writes the figures of the kept runs into README.md and docs/accuracy.md, between markers, so that nobody types them.
//! Deliberately absent: runs; a page without markers is an error.

use std::path::Path;

use super::Outcome;
use super::counts::Counts;

const END: &str = "<!-- end of bench-findings -->";

/// What a page shows of the runs.
type Rows = fn(&Counts) -> Vec<Row>;

/// A page and its marker; what it shows.
const PAGES: [(&str, &str, Rows); 2] = [
    ("README.md", "<!-- bench-findings: short -->", short),
    ("docs/accuracy.md", "<!-- bench-findings -->", whole),
];

/// Name and value of a figure.
type Row = (&'static str, String);

/// Writes all pages.
pub(super) fn write(root: &Path, counts: &Counts, origin: &str) -> Outcome<()> {
    for (page, marker, rows) in PAGES {
        let path = root.join(page);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
        let new =
            filled(&text, marker, &table(&rows(counts), origin)).map_err(|why| format!("{page}: {why}"))?;
        std::fs::write(&path, new).map_err(|error| format!("{page}: {error}"))?;
        println!("written: {page}");
    }
    Ok(())
}

/// The page with this text between its markers.
fn filled(page: &str, marker: &str, text: &str) -> Outcome<String> {
    let (before, rest) = page.split_once(marker).ok_or(format!("no `{marker}`"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("`{marker}` has no `{END}`"))?;
    Ok(format!("{before}{marker}\n{text}{END}{after}"))
}

fn table(rows: &[Row], origin: &str) -> String {
    let mut text = "| figure | value |\n|---|---|\n".to_owned();
    for (name, value) in rows {
        text.push_str(&format!("| {name} | {value} |\n"));
    }
    format!("{text}\n{}\n", origin.trim())
}

fn short(counts: &Counts) -> Vec<Row> {
    let mut rows = vec![
        ("known causes that were the first finding", part(counts.first_right, counts.guilty)),
        ("healthy programs without a false finding", part(counts.innocent_right, counts.innocent)),
        ("predicted intervals that contain the measured gain", part(counts.inside, counts.predicted)),
    ];
    if let Some(proofs) = counts.proofs() {
        rows.push(("first findings proven by replay", part(proofs.proven, proofs.tried)));
        rows.push((
            "proven gains within 20 % of the gain of the repaired program",
            part(proofs.near, proofs.proven),
        ));
    }
    rows
}

fn whole(counts: &Counts) -> Vec<Row> {
    let mut rows = short(counts);
    rows.truncate(3);
    rows.push(("of these intervals, without an upper end", counts.open_above.to_string()));
    if let Some([low, middle, high]) = counts.over_predicted() {
        rows.push((
            "measured gain over predicted gain, median (middle half)",
            format!("{middle:.2} ({low:.2} to {high:.2})"),
        ));
    }
    rows.push(("repaired programs that still have the finding", part(counts.still_named, counts.guilty)));
    rows.push(("second causes that were not found", counts.missed.to_string()));
    rows.push(("of the wrong results, on a busy machine", part(counts.wrong_disturbed, counts.wrong)));
    rows.push(("programs that could not run", (counts.skipped + counts.failed).to_string()));
    if let Some(proofs) = counts.proofs() {
        rows.push(("first findings replayed", proofs.tried.to_string()));
        rows.push(("proven", proofs.proven.to_string()));
        rows.push(("not confirmed", proofs.not_confirmed.to_string()));
        rows.push(("contradicted", proofs.contradicted.to_string()));
        rows.push(("inconclusive", proofs.inconclusive.to_string()));
        rows.push((
            "proven gain within 20 % of the gain of the repaired program",
            part(proofs.near, proofs.proven),
        ));
        rows.push(("not within 20 %, but the intervals overlap", part(proofs.overlap, proofs.proven)));
        rows.push(("gain of the repaired program over proven gain, median", format!("{:.2}", proofs.median)));
    }
    rows
}

fn part(count: usize, all: usize) -> String {
    format!("{count} of {all}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    #[test]
    fn a_page_shows_the_figures_of_the_runs_and_keeps_the_rest() {
        let mut counts = Counts::default();
        counts.add(&row("sync-rust", &["sync-per-write"], &["healthy"]));
        counts.add(&row("depth-one-python", &["small-requests"], &["queue-depth-one"]));
        counts.add(&row("innocent-sleep", &[], &[]));
        let table = table(&whole(&counts), "Captured at commit 1a2b3c4.\n");
        assert!(table.contains("| known causes that were the first finding | 1 of 2 |\n"), "{table}");
        assert!(table.contains("| repaired programs that still have the finding | 1 of 2 |\n"), "{table}");
        assert!(table.ends_with("\n\nCaptured at commit 1a2b3c4.\n") && !table.contains("proven"), "{table}");

        let page = "a\n<!-- bench-findings -->\nold\n<!-- end of bench-findings -->\nb\n";
        let new = filled(page, "<!-- bench-findings -->", "new\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert!(filled("a\n", "<!-- bench-findings -->", "new\n").is_err());
    }

    #[test]
    fn the_pages_have_their_markers() {
        for (page, marker, _) in PAGES {
            let text = std::fs::read_to_string(crate::root().join(page)).unwrap();
            assert!(filled(&text, marker, "").is_ok(), "{page}");
        }
    }
}
