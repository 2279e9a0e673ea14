//! The path report: canonical requests with their layers, limits, methods, cross-check, and the evidence.

use iowhy_core::cell::StateCheck;
use iowhy_core::units::{self, Bytes};
use iowhy_path::reconcile::Verdict as CellVerdict;
use iowhy_view::document::{Chapter, Detail, Part, Section, Spread, Table};

use super::cell::shown;
use super::{Named, cell, charts, cross_check, layers, members};
use crate::record::{CellRecord, MethodRecord, Record};

/// Lines of evidence on a screen.
const MAX_EVIDENCE: usize = 4;

/// The chapter.
pub fn chapter(record: &Record, detail: Detail) -> Chapter {
    let by_key = |key: &str| record.cells.iter().find(|cell| cell.key == key);
    let named: Named<'_> =
        record.requests.iter().filter_map(|r| Some((r.label.clone(), by_key(&r.key)?))).collect();
    let mut sections = Vec::new();
    if detail.is_page() {
        sections.push(Section::quiet("Limits", limits(record, detail)));
    }
    sections.push(Section::quiet("Where the time of a request goes", requests(record, &named, detail)));
    let rows = named.iter().map(|(label, cell)| (label.clone(), cell.latency_ns.histogram.clone())).collect();
    if !detail.is_page() {
        sections.push(Section::new("", vec![Part::Spread(Spread { rows, percentiles: true })]));
    }
    let cold = named.iter().filter(|(_, cell)| cell.state != "warm");
    let cold: Vec<_> = cold.map(|(label, cell)| (label.clone(), cell.members.as_slice())).collect();
    sections.push(members::section(&cold));
    sections.push(Section::new("", failures(record)));
    if detail.is_page() {
        sections.push(charts::sizes(record));
    } else {
        sections.push(Section::quiet("Limits", limits(record, detail)));
    }
    sections.extend(methods(record, detail));
    if detail >= Detail::Verbose {
        if !detail.is_page() {
            sections.push(cell::layers(&named));
        }
        sections.push(model(record));
        sections.push(cross_check::section(&cross_check::labels(&named)));
    }
    if detail.is_page() {
        sections.extend([charts::latencies(&named), charts::over_time(&named)]);
    }
    sections.push(Section::quiet("Cross-check", trust(record, &named)));
    super::begin(record, detail, sections)
}

fn requests(record: &Record, named: &Named<'_>, detail: Detail) -> Vec<Part> {
    if named.is_empty() {
        return vec![Part::Text("nothing was measured".to_owned())];
    }
    let mark = |cell: &CellRecord| if cell.verdict == CellVerdict::Mislabelled.id() { " (!)" } else { "" };
    let marked = named.iter().map(|(label, cell)| (format!("{label}{}", mark(cell)), *cell)).collect();
    let mut parts = vec![
        Part::Table(layers(&marked, detail)),
        Part::Note(format!(
            "medians of {} rounds, ± the longer arm of the 95 % interval; time is thread time per request",
            record.rounds
        )),
    ];
    for (label, cell) in &marked {
        parts.push(Part::Remarks(remarks(label, cell)));
        parts.extend(cell::drift(label, cell));
    }
    parts.extend(cell::interrupted(record).map(Part::Text));
    parts
}

/// Doubts about one row.
fn remarks(label: &str, cell: &CellRecord) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(failure) = &cell.failure {
        lines.push(format!("{label}: {failure}"));
    } else if let StateCheck::Violated { reason } | StateCheck::Inconclusive { reason } = &cell.state_check {
        lines.push(format!("{label}: {reason}"));
    } else if cell.verdict != "ok" && cell.latency_ns.n > 0 {
        lines.push(format!("{label}: {}", cell.bytes_verdict));
    }
    let notes = cell.layer_notes.iter().filter(|note| note.contains("not checked"));
    lines.extend(notes.map(|note| format!("{label}: {note}")));
    lines
}

/// Cells beside the canonical ones that could not be measured, by reason.
fn failures(record: &Record) -> Vec<Part> {
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    let canonical = |cell: &CellRecord| record.requests.iter().any(|request| request.key == cell.key);
    for cell in record.cells.iter().filter(|cell| !canonical(cell)) {
        let Some(reason) = &cell.failure else { continue };
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, keys)) => keys.push(&cell.key),
            None => by_reason.push((reason, vec![&cell.key])),
        }
    }
    let line = |(reason, keys): (&str, Vec<&str>)| format!("not measured: {}: {reason}", keys.join(", "));
    if by_reason.is_empty() {
        Vec::new()
    } else {
        vec![Part::Remarks(by_reason.into_iter().map(line).collect())]
    }
}

/// The limit with its evidence, then the other questions.
fn limits(record: &Record, detail: Detail) -> Vec<Part> {
    let Some(limit) = &record.limit else { return Vec::new() };
    let all = detail >= Detail::Verbose;
    let others = record.limits.iter().map(|question| &question.limit).filter(|other| *other != limit);
    let mut parts = Vec::new();
    for (number, limit) in std::iter::once(limit).chain(others).enumerate() {
        parts.push(Part::Lead(format!("limit: {}", limit.id.id()), limit.sentence.clone()));
        // A line that begins so names what the limit is not.
        let evidence = limit.evidence.iter().filter(|line| all || !line.starts_with("not "));
        let most = match number {
            _ if all => usize::MAX,
            0 => MAX_EVIDENCE,
            _ => 0,
        };
        parts.push(Part::List(evidence.take(most).cloned().collect()));
    }
    parts
}

/// The cost of each access method relative to `pread`.
fn methods(record: &Record, detail: Detail) -> Vec<Section> {
    let mut sections = Vec::new();
    for (state, title) in [("warm", "cached"), ("cold", "not cached")] {
        let methods: Vec<&MethodRecord> = record.methods.iter().filter(|w| w.state == state).collect();
        let mut table = Table::new(["method", "#time", "#time / pread", "#CPU / pread"]);
        table.indent = 2;
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
    table.indent = 2;
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

/// Overhead of iowhy, the greatest error of the model, and the cross-check.
fn trust(record: &Record, named: &Named<'_>) -> Vec<Part> {
    let mut notes = Vec::new();
    if let Some(harness) = &record.ruler.harness_per_request {
        notes.push(format!("overhead of iowhy {} per request", units::estimate(harness)));
    }
    let error = |held: &&crate::record::HeldOutRecord| held.error_percent.abs();
    if let Some(worst) = record.held_out.iter().max_by(|a, b| error(a).total_cmp(&error(b))) {
        notes.push(format!(
            "error of the model at held-out block sizes: at most {:.0} % ({} {})",
            error(&worst),
            worst.calibration_cell,
            Bytes(worst.block_bytes)
        ));
    }
    let note = (!notes.is_empty()).then(|| Part::Note(notes.join("; ")));
    note.into_iter().chain(cross_check::summary(record, &cross_check::labels(named))).collect()
}
