//! Writes the figures of the kept runs into README.md and docs/accuracy.md, between markers, so that nobody types them.
//! Deliberately absent: runs; a page without markers is an error.

use std::path::Path;

use iowhy_cases::others::Others;

use super::Outcome;
use super::counts::Counts;

const END: &str = "<!-- end of bench-findings -->";

/// What a page shows of the runs.
type Text = fn(&Counts) -> String;

/// A page and its marker; what it shows.
const PAGES: [(&str, &str, Text); 2] = [
    ("README.md", "<!-- bench-findings: short -->", |counts| table(&short(counts))),
    ("docs/accuracy.md", "<!-- bench-findings -->", |counts| {
        format!("{}\n{}", table(&whole(counts)), by_cause(counts))
    }),
];

/// The same for programs that no rule was made with.
const FRESH: [(&str, &str, Text); 1] =
    [("docs/accuracy.md", "<!-- bench-findings: fresh -->", |counts| table(&whole(counts)))];

/// The same for programs of Debian's packages.
const PACKAGED: [(&str, &str, Text); 1] =
    [("docs/accuracy.md", "<!-- bench-findings: packaged -->", |counts| table(&whole(counts)))];

/// Name and value of a figure.
type Row = (&'static str, String);

/// Writes all pages.
pub(super) fn write(root: &Path, counts: &Counts, others: Option<Others>, origin: &str) -> Outcome<()> {
    let pages = match others {
        None => &PAGES[..],
        Some(Others::Packaged) => &PACKAGED,
        Some(_) => &FRESH,
    };
    for (page, marker, shown) in pages {
        let path = root.join(page);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
        let new = filled(&text, marker, &format!("{}\n{}\n", shown(counts), origin.trim()))
            .map_err(|why| format!("{page}: {why}"))?;
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

fn table(rows: &[Row]) -> String {
    let mut text = "| figure | value |\n|---|---|\n".to_owned();
    for (name, value) in rows {
        text.push_str(&format!("| {name} | {value} |\n"));
    }
    text
}

/// Causes, each with the programs that have it.
fn by_cause(counts: &Counts) -> String {
    let mut text = "| cause | programs | runs that named it first | predicted intervals that hold | middle error, a factor |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for (cause, of) in &counts.causes {
        let error = of.error().map_or("-".to_owned(), |error| format!("{error:.2}"));
        let inside = if of.over_predicted.is_empty() {
            "-".to_owned()
        } else {
            part(of.inside, of.over_predicted.len())
        };
        let first = part(of.first_right, of.runs);
        text.push_str(&format!("| `{cause}` | {} | {first} | {inside} | {error} |\n", of.programs));
    }
    text
}

fn short(counts: &Counts) -> Vec<Row> {
    let mut rows = vec![
        (
            "runs of programs with a known cause whose first finding it was",
            part(counts.first_right, counts.guilty),
        ),
        ("runs of healthy programs without a false finding", part(counts.innocent_right, counts.innocent)),
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
    let closed = counts.predicted - counts.open_above;
    rows.push(("closed intervals that contain the measured gain", part(counts.closed_inside, closed)));
    if let Some([low, middle, high]) = counts.over_predicted() {
        rows.push((
            "measured gain over predicted gain, median (middle half)",
            format!("{middle:.2} ({low:.2} to {high:.2})"),
        ));
    }
    if let Some((error, width)) = counts.median_error().zip(counts.median_width()) {
        rows.push(("error of the predicted gain, a factor, median", format!("{:.2}", error.exp())));
        rows.push(("upper over lower end of closed intervals, median", format!("{width:.2}")));
    }
    rows.push((
        "bounds (rest unchanged) that the measured gain does not exceed",
        part(counts.bounds_hold, counts.bounds),
    ));
    rows.push(("repaired programs that still have the finding", part(counts.still_named, counts.programs)));
    rows.push(("second causes that were not found", counts.missed.to_string()));
    rows.push(("of the wrong results, on a busy machine", part(counts.wrong_disturbed, counts.wrong)));
    rows.push(("programs that could not run", (counts.skipped + counts.failed).to_string()));
    if let Some(proofs) = counts.proofs() {
        rows.push(("first findings without a replay", proofs.without_replay.to_string()));
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
        rows.push((
            "of the proven, intervals with a ratio of at most 2 that meet the gain of the repaired program",
            part(proofs.narrow_overlap, proofs.narrow),
        ));
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
        let table = table(&whole(&counts));
        assert!(
            table.contains("| runs of programs with a known cause whose first finding it was | 1 of 2 |\n"),
            "{table}"
        );
        assert!(table.contains("| repaired programs that still have the finding | 1 of 2 |\n"), "{table}");
        assert!(!table.contains("proven"), "{table}");
        assert!(
            by_cause(&counts).contains("| `sync-per-write` | 1 | 1 of 1 | 1 of 1 | 1.20 |\n"),
            "{}",
            by_cause(&counts)
        );

        let page = "a\n<!-- bench-findings -->\nold\n<!-- end of bench-findings -->\nb\n";
        let new = filled(page, "<!-- bench-findings -->", "new\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert!(filled("a\n", "<!-- bench-findings -->", "new\n").is_err());
    }

    #[test]
    fn the_pages_have_their_markers() {
        for (page, marker, _) in PAGES.into_iter().chain(FRESH).chain(PACKAGED) {
            let text = std::fs::read_to_string(crate::root().join(page)).unwrap();
            assert!(filled(&text, marker, "").is_ok(), "{page}");
        }
    }
}
