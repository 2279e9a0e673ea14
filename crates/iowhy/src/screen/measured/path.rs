//! The path report: the verdict, canonical requests with their layers, what is faster, and a line on trust; with `--verbose`
//! the evidence: latencies, limits, methods, layers, model, cross-check.

use iowhy_core::cell::StateCheck;
use iowhy_core::layer::Layer;
use iowhy_core::units::{self, Bytes};
use iowhy_path::reconcile::Verdict as CellVerdict;
use iowhy_view::document::{Chapter, Detail, Part, Section, Spread, Table};
use iowhy_view::piece;

use super::cell::shown;
use super::{Named, cell, charts, cross_check, heading, layers, members, summary};
use crate::record::{CellRecord, MethodRecord, Record};

/// Reasons to doubt cells on a screen without `--verbose`, and cells that each names.
const MAX_DOUBTS: usize = 2;
const MAX_NAMES: usize = 3;

/// The chapter.
pub fn chapter(record: &Record, detail: Detail) -> Chapter {
    let by_key = |key: &str| record.cells.iter().find(|cell| cell.key == key);
    let named: Named<'_> =
        record.requests.iter().filter_map(|r| Some((r.label.clone(), by_key(&r.key)?))).collect();
    let evidence = detail >= Detail::Verbose;
    let mut table = requests(record, &named, detail);
    table.extend(summary::faster(record, &cross_check::labels(&named), detail));
    let mut sections = vec![
        Section::quiet("Verdict", summary::verdict(record)),
        Section::quiet("Where the time of a request goes", table),
    ];
    if evidence && !detail.is_page() {
        let rows = named.iter().map(|(label, cell)| (label.clone(), cell.latency_ns.histogram.clone()));
        sections
            .push(Section::new("", vec![Part::Spread(Spread { rows: rows.collect(), percentiles: true })]));
    }
    let cold = named.iter().filter(|(_, cell)| cell.state != "warm");
    let cold: Vec<_> = cold.map(|(label, cell)| (label.clone(), cell.members.as_slice())).collect();
    sections.push(members::section(&cold));
    if evidence {
        sections.push(Section::quiet("Limits", limits(record)));
        if detail.is_page() {
            sections.push(charts::sizes(record));
        }
        sections.extend(methods(record, detail));
        if !detail.is_page() {
            sections.push(cell::layers(&named));
        }
        sections.push(model(record));
        let labels = cross_check::labels(&named);
        sections.push(Section::quiet("Cross-check", cross_check::summary(record, &labels)));
        sections.push(cross_check::section(&labels));
    }
    if detail.is_page() {
        sections.extend([charts::latencies(&named), charts::over_time(&named)]);
    }
    let mut chapter = super::begin(record, detail, sections);
    if !evidence {
        // Who stands before the machine knows it.
        let machine = heading::machine(&record.environment);
        chapter.facts.retain(|fact| !machine.contains(fact));
        let path = heading::short(&record.environment);
        if !path.is_empty() && record.environments.is_empty() {
            chapter.about = format!("{}, {path}", chapter.about);
        }
    }
    chapter
}

fn requests(record: &Record, named: &Named<'_>, detail: Detail) -> Vec<Part> {
    if named.is_empty() {
        return vec![Part::Text("nothing was measured".to_owned())];
    }
    let marked: Named<'_> = named.iter().map(|(label, cell)| (mark(label, cell), *cell)).collect();
    let mut parts = vec![Part::Table(layers(&marked, detail))];
    if detail >= Detail::Verbose {
        parts.push(Part::Note(format!(
            "medians of {} rounds, ± the longer arm of the 95 % interval; time is thread time per request",
            summary::rounds(record)
        )));
        parts.push(Part::Remarks(marked.iter().flat_map(|(label, cell)| notes(label, cell)).collect()));
    } else {
        parts.push(Part::Remarks(together(named)));
    }
    parts.extend(doubts(record, &marked, detail));
    if detail >= Detail::Verbose {
        parts.extend(marked.iter().filter_map(|(label, cell)| cell::drift(label, cell)));
    }
    parts.extend(cell::interrupted(record).map(Part::Text));
    parts
}

/// The name of a cell; with `(!)` where its figures are no evidence.
fn mark(name: &str, cell: &CellRecord) -> String {
    if is_bad(cell) { format!("{name} (!)") } else { name.to_owned() }
}

fn is_bad(cell: &CellRecord) -> bool {
    [CellVerdict::Mislabelled.id(), CellVerdict::Failed.id()].contains(&cell.verdict.as_str())
}

/// What the layers of a row do not tell apart or could not check.
fn notes(label: &str, cell: &CellRecord) -> Vec<String> {
    let said = |note: &&String| note.contains("not checked") || note.ends_with("stack samples");
    let unchecked = cell.layer_notes.iter().filter(said);
    unchecked.chain(undivided(cell)).map(|note| format!("{label}: {note}")).collect()
}

fn undivided(cell: &CellRecord) -> impl Iterator<Item = &String> {
    cell.layer_notes.iter().filter(|note| note.ends_with("together"))
}

/// What the letters of a bar include beside their own layer, in some of the rows.
fn together(named: &Named<'_>) -> Vec<String> {
    let mut letters: Vec<(String, Vec<&str>)> = Vec::new();
    for note in named.iter().flat_map(|(_, cell)| undivided(cell)) {
        let Some((layer, rest)) = note.split_once(" is ") else { continue };
        let letter = Layer::ALL.into_iter().find(|id| id.id() == layer).map(piece::letter);
        let letter = letter.map_or_else(|| layer.to_owned(), String::from);
        let others = rest.trim_end_matches(" together").split(", ").flat_map(|part| part.split(" and "));
        if !letters.iter().any(|(known, _)| *known == letter) {
            letters.push((letter.clone(), Vec::new()));
        }
        let Some((_, all)) = letters.iter_mut().find(|(known, _)| *known == letter) else { continue };
        all.extend(others.filter(|other| *other != layer && !all.contains(other)).collect::<Vec<_>>());
    }
    let one = |(letter, all): (String, Vec<&str>)| format!("{letter} includes {}", all.join(", "));
    let all: Vec<String> = letters.into_iter().map(one).collect();
    if all.is_empty() { Vec::new() } else { vec![format!("not told apart in some rows: {}", all.join("; "))] }
}

/// Cells that failed, are not what they claim, or could not be checked, by reason: the canonical ones, then those others
/// that the exit code is 1 for.
fn doubts(record: &Record, named: &Named<'_>, detail: Detail) -> Option<Part> {
    let canonical = |cell: &CellRecord| record.requests.iter().any(|request| request.key == cell.key);
    let others = record.cells.iter().filter(|cell| is_bad(cell) && !canonical(cell));
    let others = others.map(|cell| (mark(&cell.key, cell), cell));
    let brief = detail < Detail::Verbose;
    let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
    for (name, cell) in named.iter().cloned().chain(others) {
        let Some(reason) = doubt(cell, brief) else { continue };
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((reason, vec![name])),
        }
    }
    // What the exit code is 1 for comes first.
    by_reason.sort_by_key(|(_, names)| !names[0].ends_with("(!)"));
    let (reasons, most) = if brief { (MAX_DOUBTS, MAX_NAMES) } else { (usize::MAX, usize::MAX) };
    let further = by_reason.len().saturating_sub(reasons);
    let line = |(reason, names): (String, Vec<String>)| {
        let more = names.len().saturating_sub(most);
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        let names: Vec<String> = names.into_iter().take(most).collect();
        format!("{}{more}: {reason}", names.join("; "))
    };
    let mut lines: Vec<String> = by_reason.into_iter().take(reasons).map(line).collect();
    if further > 0 {
        let doubts = units::counted(further as u64, "further doubt", "further doubts");
        lines.push(format!("{doubts}: -v shows all"));
    }
    (!lines.is_empty()).then_some(Part::Remarks(lines))
}

/// Why a cell is no evidence, or may be none. `brief` leaves out the figures of its bytes.
fn doubt(cell: &CellRecord, brief: bool) -> Option<String> {
    if let Some(failure) = &cell.failure {
        return Some(format!("failed: {failure}"));
    }
    let unchecked = matches!(cell.state_check, StateCheck::Inconclusive { .. });
    if cell.latency_ns.n == 0 || (cell.verdict == CellVerdict::Ok.id() && !unchecked) {
        return None;
    }
    let why = cell.why_not_ok();
    let why = if brief { why.split_once(": ").map_or(why, |(_, why)| why) } else { why };
    Some(format!("{}: {why}", cell.verdict))
}

/// The limits with their evidence, that of the slowest question first.
fn limits(record: &Record) -> Vec<Part> {
    let Some(limit) = &record.limit else { return Vec::new() };
    let others = record.limits.iter().map(|question| &question.limit).filter(|other| *other != limit);
    let mut parts = Vec::new();
    for limit in std::iter::once(limit).chain(others) {
        parts.push(Part::Lead(format!("limit: {}", limit.id.id()), limit.sentence.clone()));
        parts.push(Part::List(limit.evidence.clone()));
    }
    parts
}

/// The cost of each access method relative to `pread`.
fn methods(record: &Record, detail: Detail) -> Vec<Section> {
    let mut sections = Vec::new();
    for (state, title) in [("warm", "cached"), ("cold", "not cached")] {
        let methods: Vec<&MethodRecord> = record.methods.iter().filter(|w| w.state == state).collect();
        let mut table = Table::new(["method", "#time", "#time / pread", "#CPU / pread"]);
        (table.indent, table.keys) = (2, 1);
        for method in &methods {
            let mark = if method.delivers { "" } else { " *" };
            table.row([
                format!("{}{mark}", method.method),
                detail.estimate(&method.time_per_request),
                shown(method.time_over_pread.as_ref(), detail),
                shown(method.cpu_over_pread.as_ref(), detail),
            ]);
        }
        if methods.is_empty() {
            continue;
        }
        let mut parts = vec![match detail.is_page() {
            true => Part::Chart(charts::methods(&methods, table)),
            false => Part::Table(table),
        }];
        if methods.iter().any(|method| !method.delivers) {
            parts.push(Part::Note("* to /dev/null: the bytes never reach the program".to_owned()));
        }
        let title = format!("methods: sequential 64 KiB reads, {title}, data used");
        sections.push(Section::new(title, parts));
    }
    sections
}

/// The fitted costs, and their errors at block sizes that the fit did not use.
fn model(record: &Record) -> Section {
    let Some(model) = &record.model else { return Section::default() };
    let mut table = Table::new(["layer", "#ns per call", "#ns per page", "#ns per byte"]);
    (table.indent, table.keys) = (2, 1);
    let parts = record.model_parts.iter().flatten().map(|(name, cost)| (format!("({name})"), cost));
    for (name, cost) in model.iter().map(|(n, c)| (n.clone(), c)).chain(parts) {
        let range = |value: f64, low: f64, high: f64, digits: usize| {
            if value == 0.0 && high == 0.0 {
                "0".to_owned()
            } else {
                format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]")
            }
        };
        table.row([
            name,
            range(cost.cost.per_call_ns, cost.low.per_call_ns, cost.high.per_call_ns, 0),
            range(cost.cost.per_page_ns, cost.low.per_page_ns, cost.high.per_page_ns, 1),
            range(cost.cost.per_byte_ns, cost.low.per_byte_ns, cost.high.per_byte_ns, 4),
        ]);
    }
    let mut lines = Vec::new();
    if let Some(residual) = record.model_residual_percent {
        lines.push(format!("residual of the fit {residual:.1} % (root mean square, relative)"));
    }
    lines.extend(record.held_out.iter().map(|held| {
        format!(
            "held out: {} {}: predicted {}, measured {}, error {}",
            held.calibration_cell,
            Bytes(held.block_bytes),
            units::time(held.predicted_ns),
            units::estimate(&held.measured),
            units::signed_per_cent(held.error_percent, 1)
        )
    }));
    lines.extend(record.model_notes.iter().cloned());
    Section::new("fitted costs (95 % intervals)", vec![Part::Table(table), Part::Remarks(lines)])
}

#[cfg(test)]
pub(crate) mod tests {
    use iowhy_core::limit::LimitId;
    use iowhy_path::plan::{WRITE_CACHED, WRITE_DIRECT};
    use iowhy_view::terminal::screen;
    use iowhy_view::terminal::sparkline::Marks;

    use super::*;
    use crate::record::{FasterRecord, RequestRecord};

    /// A report with all rows, as a directory has them.
    pub(crate) fn full() -> Record {
        let mut record: Record =
            serde_json::from_str(include_str!("../../../tests/command/records/1/path.json")).unwrap();
        let rows = [
            ("write-seq-1m", WRITE_CACHED),
            ("write-direct-1m", WRITE_DIRECT),
            ("write-sync-4k", "write 4 KiB + fdatasync"),
        ];
        for (key, label) in rows {
            let mut cell = record.cells[4].clone();
            cell.key = key.to_owned();
            record.cells.push(cell);
            record.requests.push(RequestRecord { key: key.to_owned(), label: label.to_owned() });
        }
        let gain = record.cells[0].time_per_request.unwrap();
        for question in ["random reads", "sequential reads", "cached reads", "sequential writes"] {
            for change in ["32 in flight", "2 threads", "direct, 1 MiB, 4 in flight"] {
                record.faster.push(FasterRecord {
                    question: question.to_owned(),
                    change: change.to_owned(),
                    key: "a".to_owned(),
                    than: "b".to_owned(),
                    gain: iowhy_core::estimate::Estimate { value: 4.34, low: 3.97, high: 4.84, ..gain },
                });
            }
        }
        record
    }

    fn lines(record: &Record, detail: Detail, width: usize) -> Vec<String> {
        let text = screen(&chapter(record, detail), width, Marks::Blocks);
        anstream::adapter::strip_str(&text).to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_screen_has_at_most_25_lines_and_begins_with_the_verdict() {
        let record = full();
        for width in [100, 120] {
            let lines = lines(&record, Detail::Screen, width);
            assert!(lines.len() <= 25, "{}: {}", lines.len(), lines.join("\n"));
            let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
            assert!(
                at("random reads") < at("request")
                    && at("request") < at("faster")
                    && at("faster") < at("trust")
            );
        }
        assert!(lines(&record, Detail::Verbose, 100).len() > 40);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_word_is_broken() {
        let mut record = full();
        for limit in &mut record.limits {
            limit.limit.id = LimitId::Unknown;
            limit.limit.sentence = "cached reads: limit unknown: a second thread gives 1.2 \
                times the throughput, threshold 1.20 (one-thread), interval 2.0x too wide"
                .to_owned();
        }
        let whole: String = lines(&record, Detail::Screen, 400).join(" ");
        for width in 40..=130 {
            for line in
                [Detail::Screen, Detail::Verbose].iter().flat_map(|detail| lines(&record, *detail, width))
            {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            let lines = lines(&record, Detail::Screen, width);
            let prose = lines.iter().filter(|line| line.starts_with("  ") && !line.starts_with("  -"));
            for word in prose.flat_map(|line| line.split_whitespace()) {
                assert!(whole.contains(word), "{width}: {word}");
            }
        }
    }

    #[test]
    fn whatever_ends_with_exit_code_1_names_cell_and_reason_on_the_screen() {
        let plain = full();
        let last = plain.cells.len() - 1;
        // A canonical cell is named by its label, another one by its key.
        let mut other = plain.cells[last].clone();
        other.key = "cold-way-mmap".to_owned();
        let mut with_other = plain.clone();
        with_other.cells.push(other);
        for (mut record, index, name) in
            [(plain, last, "write 4 KiB + fdatasync"), (with_other, last + 1, "cold-way-mmap")]
        {
            for verdict in [CellVerdict::Mislabelled, CellVerdict::Failed] {
                let cell = &mut record.cells[index];
                cell.verdict = verdict.id().to_owned();
                cell.bytes_verdict = "half of it came from the page cache".to_owned();
                cell.failure =
                    (verdict == CellVerdict::Failed).then(|| "pread failed: Input/output error".to_owned());
                let reason = cell.failure.clone().unwrap_or_else(|| cell.bytes_verdict.clone());
                assert_eq!(crate::ending::Ending::for_cells(&record).code(), 1);
                for detail in [Detail::Screen, Detail::Verbose] {
                    let lines = lines(&record, detail, 120);
                    let named = lines.iter().any(|line| line.contains(name) && line.contains(&reason));
                    assert!(
                        named && lines.iter().any(|line| line.contains("(!)")),
                        "{name}: {}",
                        lines.join("\n")
                    );
                }
            }
        }
    }

    #[test]
    fn a_busy_machine_is_said_first() {
        let mut record = full();
        let warning = iowhy_core::warning::Warning::new("busy-machine", "in 9 of 12 cells ...");
        record.warnings.push(warning);
        let lines = lines(&record, Detail::Screen, 100);
        let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
        assert!(at("busy machine") < at("random reads") && lines.len() <= 25, "{}", lines.join("\n"));
    }

    #[test]
    fn what_a_letter_includes_is_said_once() {
        let mut record = full();
        let notes = [
            "copy is copy and look-up of further pages together",
            "copy is copy and page allocation together",
            "block is block and journal together",
            "device is device, block and journal together",
        ];
        for (cell, note) in record.cells.iter_mut().zip(notes) {
            cell.layer_notes = vec![note.to_owned()];
        }
        record.requests = record
            .cells
            .iter()
            .take(4)
            .map(|cell| RequestRecord { key: cell.key.clone(), label: cell.key.clone() })
            .collect();
        let screen = lines(&record, Detail::Screen, 100).join(" ");
        let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            screen.contains(
                "not told apart in some rows: y includes look-up of further pages, page allocation; b includes journal; \
                 D includes block, journal"
            ),
            "{screen}"
        );
    }

    #[test]
    fn further_rounds_of_some_cells_are_said() {
        let mut record = full();
        assert!(lines(&record, Detail::Screen, 100).iter().any(|line| line.contains(" 11 rounds;")));
        let samples = record.cells[3].samples.clone();
        record.cells[3].samples.extend(samples);
        assert!(lines(&record, Detail::Screen, 100).iter().any(|line| line.contains(" 11 to 22 rounds;")));
    }
}
