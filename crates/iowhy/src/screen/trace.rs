//! Traces: one screen of sums, the first requests, what a conversion did, the formats.

use std::path::Path;

use iowhy_core::request::{Marks, Op, Request};
use iowhy_core::units::{Bytes, count, count_rate, counted, time};
use iowhy_trace::survey::distinct::{Amount, MAX_BYTES};
use iowhy_trace::survey::{Flow, Survey};
use iowhy_trace::write::Written;
use iowhy_trace::{BlockAction, Compression, Format, Kind, Losses, Trace};
use iowhy_view::document::{Chapter, Part, Section, Table};
use iowhy_view::terminal::wrap::cut_path;

/// Labels with facts.
type Facts = Vec<(String, String)>;

/// The names of marks.
pub const MARKS: [(Marks, &str); 7] = [
    (Marks::READ_AHEAD, "read-ahead"),
    (Marks::METADATA, "metadata"),
    (Marks::SYNC, "sync"),
    (Marks::FUA, "fua"),
    (Marks::HIT, "hit"),
    (Marks::MISS, "miss"),
    (Marks::FAILED, "failed"),
];

fn line(facts: &mut Facts, label: &str, value: impl Into<String>) {
    facts.push((label.to_owned(), value.into()));
}

fn share(part: u64, whole: u64) -> String {
    percent(part as f64 / whole.max(1) as f64)
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.095 { "below 0.1 %".to_owned() } else { format!("{percent:.1} %") }
}

/// An amount with its error, if it has one.
fn amount(a: Amount, show: impl Fn(f64) -> String) -> String {
    match a.error > 0.0 {
        true => {
            format!("about {} (±{:.1} %, from a sample)", show(a.value), (100.0 * a.error / a.value).max(0.1))
        }
        false => show(a.value),
    }
}

/// A long time in two units; short ones as everywhere.
fn span(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..120 => time(ns as f64),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} days {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A chapter about a trace, and facts about its addresses.
fn begin(trace: &Trace) -> (Chapter, Facts) {
    let packed = match trace.compression() {
        Compression::None => String::new(),
        other => format!(", {}", other.id()),
    };
    let format = trace.format();
    let about = format!("{} ({}{packed})", format.about(), format.id());
    let mut facts = Facts::new();
    let level = match trace.below_page_cache() {
        Some(true) => {
            ", recorded below a page cache: its hits are missing, so caches above it cannot be judged"
        }
        Some(false) => ", recorded above the page cache: requests of the program",
        None => "; the file does not say whether they were recorded above or below a page cache",
    };
    line(&mut facts, "addresses", format!("{}{level}", trace.kind().about()));
    match trace.action() {
        Some(BlockAction::Queue) => line(
            &mut facts,
            "a request is",
            "Q, as queued, before merging; `--action issue` takes D, which has latency",
        ),
        Some(BlockAction::Issue) => line(
            &mut facts,
            "a request is",
            "D, as issued to the device; latency is the time to its completion",
        ),
        None => {}
    }
    (Chapter { title: trace.name().to_owned(), about, ..Chapter::default() }, facts)
}

fn end(mut chapter: Chapter, facts: Facts, parts: Vec<Part>) -> Chapter {
    chapter.sections = vec![Section::new("", vec![Part::Facts(facts)]), Section::new("", parts)];
    chapter
}

/// Sums over all requests.
pub fn stat(trace: &Trace, survey: &Survey) -> Chapter {
    let (chapter, mut facts) = begin(trace);
    let all = survey.requests;
    if all == 0 {
        line(&mut facts, "requests", "none");
    } else {
        line(&mut facts, "requests", count(all));
        for op in Op::ALL {
            let flow = survey.for_op(op);
            if flow.requests > 0 {
                line(&mut facts, &plural(op), of_all(flow, all, trace));
            }
        }
        what(&mut facts, trace, survey);
        when(&mut facts, trace, survey);
        let marks: Vec<String> = MARKS
            .iter()
            .map(|(mark, name)| (survey.marked(*mark), name))
            .filter(|(n, _)| *n > 0)
            .map(|(n, name)| format!("{name} {} ({})", count(n), share(n, all)))
            .collect();
        if !marks.is_empty() {
            line(&mut facts, "marked", marks.join(", "));
        }
    }
    losses(&mut facts, "lost", trace.losses());
    end(chapter, facts, Vec::new())
}

fn plural(op: Op) -> String {
    match op {
        Op::Other => "others".to_owned(),
        Op::Discard => "discards".to_owned(),
        _ => format!("{}s", op.id()),
    }
}

fn of_all(flow: Flow, all: u64, trace: &Trace) -> String {
    let bytes = match flow.bytes > 0 && trace.has_sizes() {
        true => format!(", {}", Bytes(flow.bytes)),
        false => String::new(),
    };
    format!("{} ({}){bytes}", count(flow.requests), share(flow.requests, all))
}

/// Objects, bytes, sizes and order of the requests.
fn what(facts: &mut Facts, trace: &Trace, survey: &Survey) {
    let number = |value: f64| count(value.round() as u64);
    let things = match survey.kind() {
        Kind::Blocks => "devices",
        Kind::Files => "files",
        Kind::Keys => "keys",
    };
    line(facts, things, format!("{} read or written", amount(survey.objects(), number)));
    if !trace.has_sizes() {
        line(facts, "sizes", "not in the file: each request counts as 1 byte");
        return;
    }
    let blocks = if survey.kind() == Kind::Keys {
        "each key once, with its largest size"
    } else {
        "in blocks of 4 KiB"
    };
    let bytes = amount(survey.footprint_bytes(), |value| Bytes(value.round() as u64).to_string());
    let said = match survey.footprint_from_below() {
        0 => format!("{bytes} of distinct bytes, {blocks}"),
        requests => format!(
            "at least {bytes} of distinct bytes, {blocks}: of {requests} requests beyond {} only the first bytes count",
            Bytes(MAX_BYTES)
        ),
    };
    line(facts, "footprint", said);
    let transfers = survey.transfers();
    if transfers.requests == 0 {
        return;
    }
    let common: Vec<String> = survey
        .common_sizes(4)
        .iter()
        .map(|size| format!("{} {}", Bytes(size.bytes), share(size.requests, transfers.requests)))
        .collect();
    let sizes = format!(
        "median {}, mean {}, 99 % up to {}, largest {}; most frequent: {}",
        Bytes(survey.size_quantile(0.5)),
        Bytes(transfers.bytes / transfers.requests),
        Bytes(survey.size_quantile(0.99)),
        Bytes(survey.largest()),
        common.join(", ")
    );
    line(facts, "sizes", sizes);
    if let Some(sequential) = survey.sequential_share() {
        let one = if survey.kind() == Kind::Blocks { "device" } else { "file" };
        line(
            facts,
            "sequential",
            format!("{} begin where the previous request to the same {one} ended", percent(sequential)),
        );
    }
}

/// Time, rate, latency.
fn when(facts: &mut Facts, trace: &Trace, survey: &Survey) {
    if trace.has_times() {
        let rate = survey.rate().map(|rate| format!(", {} on average", count_rate(rate))).unwrap_or_default();
        line(facts, "time", format!("{}{rate}", span(survey.span_ns())));
    } else {
        line(facts, "time", "not in the file");
    }
    match survey.streams() {
        Some(0 | 1) => {}
        Some(n) => line(facts, "streams", format!("{} processes, threads or clients", count(n as u64))),
        None => line(facts, "streams", "more than 65,535 processes, threads or clients"),
    }
    match survey.latency() {
        Some(h) => {
            let q = |p| time(h.quantile(p) as f64);
            let known = match h.count() == survey.requests {
                true => String::new(),
                false => format!(" (known for {} of the requests)", share(h.count(), survey.requests)),
            };
            let words = format!(
                "median {}, 90 % up to {}, 99 % up to {}, longest {}{known}",
                q(0.5),
                q(0.9),
                q(0.99),
                time(h.max_ns() as f64)
            );
            line(facts, "latency", words);
        }
        None => line(facts, "latency", "not in the file"),
    }
}

/// What was lost, a line a reason.
fn losses(facts: &mut Facts, label: &str, losses: &Losses) {
    if losses.is_empty() {
        line(facts, label, "nothing");
    }
    for (i, loss) in losses.list().iter().enumerate() {
        let first = loss.first.map(|place| format!(", first at {place}")).unwrap_or_default();
        let label = if i == 0 { label } else { "" };
        line(facts, label, format!("{} x {}{first}", count(loss.count), loss.reason));
    }
}

/// The first requests as a table.
pub fn head(trace: &Trace, requests: &[Request]) -> Chapter {
    let (chapter, mut facts) = begin(trace);
    let any = |f: &dyn Fn(&Request) -> bool| requests.iter().any(f);
    let keys = trace.kind() == Kind::Keys;
    let latency = any(&|r| r.latency_ns > 0);
    let stream = any(&|r| r.stream > 0);
    let marks = any(&|r| r.marks != Marks::default());
    let first_ns = requests.first().map_or(0, |request| request.time_ns);
    let mut columns: Vec<(&str, Column)> = Vec::new();
    if trace.has_times() {
        columns.push(("#time s", Box::new(move |r, _| since(r.time_ns, first_ns))));
    }
    if stream {
        columns.push(("#stream", Box::new(|r, _| r.stream.to_string())));
    }
    columns.push(("op", Box::new(|r, _| r.op.id().to_owned())));
    let title = if keys { "key" } else { "object" };
    columns.push((title, Box::new(object)));
    if !keys {
        columns.push(("#offset", Box::new(|r, _| r.offset.to_string())));
    }
    if trace.has_sizes() {
        columns.push(("#bytes", Box::new(|r, _| r.bytes.to_string())));
    }
    if latency {
        let show = |r: &Request, _: &Trace| {
            if r.latency_ns > 0 { time(r.latency_ns as f64) } else { "-".to_owned() }
        };
        columns.push(("#latency", Box::new(show)));
    }
    if marks {
        columns.push(("marks", Box::new(|r, _| names_of(r.marks))));
    }
    let mut table = Table::new(columns.iter().map(|(name, _)| *name));
    requests.iter().for_each(|request| table.row(columns.iter().map(|(_, show)| show(request, trace))));
    if requests.is_empty() {
        line(&mut facts, "requests", "none");
    }
    if !trace.losses().is_empty() {
        losses(&mut facts, "lost", trace.losses());
    }
    end(chapter, facts, table.part().into_iter().collect())
}

/// What a column shows of a request.
type Column = Box<dyn Fn(&Request, &Trace) -> String>;

/// Seconds since the first request on the screen.
fn since(time_ns: u64, first_ns: u64) -> String {
    let (sign, ns) = if time_ns < first_ns { ("-", first_ns - time_ns) } else { ("", time_ns - first_ns) };
    format!("{sign}{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

fn object(request: &Request, trace: &Trace) -> String {
    const ROOM: usize = 36;
    match trace.names().get(request.object) {
        Some(name) => cut_path(name, ROOM),
        None => request.object.to_string(),
    }
}

fn names_of(marks: Marks) -> String {
    let names: Vec<&str> = MARKS.iter().filter(|(mark, _)| marks.has(*mark)).map(|(_, name)| *name).collect();
    names.join(" ")
}

fn requests(n: u64) -> String {
    counted(n, "request", "requests")
}

/// What a conversion did.
pub fn converted(trace: &Trace, written: &Written, format: Format, path: &Path) -> Chapter {
    let to = if path.as_os_str() == "-" { "stdout".to_owned() } else { path.display().to_string() };
    let sentence = format!(
        "{} ({}): {} to {to} ({}): {}, {}",
        trace.name(),
        trace.format().id(),
        requests(trace.requests()),
        format.id(),
        requests(written.requests),
        Bytes(written.bytes)
    );
    let mut facts = Facts::new();
    losses(&mut facts, "lost reading", trace.losses());
    losses(&mut facts, "lost writing", &written.losses);
    let sections = vec![Section::new("", vec![Part::Text(sentence), Part::Facts(facts)])];
    Chapter { sections, ..Chapter::default() }
}

/// The formats.
pub fn formats() -> Chapter {
    let mut table = Table::new(["format", "can", "addresses", "about"]);
    for format in Format::all() {
        let can = if format.writable() { "read, write" } else { "read" };
        table.row([format.id(), can, format.kind().id(), format.about()]);
    }
    table.prose = true;
    let note = "Format and compression (gzip, zstd) are detected by content.";
    let sections = vec![Section::new("", vec![Part::Table(table), Part::Text(note.to_owned())])];
    Chapter { sections, ..Chapter::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_shares_and_spans() {
        assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [share(1, 3), share(1, 100_000), share(0, 0), share(1, 1)],
            ["33.3 %", "below 0.1 %", "0.0 %", "100.0 %"]
        );
        assert_eq!(span(1_500_000_000), "1.50 s");
        assert_eq!(
            [span(125 * 1_000_000_000), span(7_260 * 1_000_000_000), span(200_000 * 1_000_000_000)],
            ["2 min 5 s", "2 h 1 min", "2 days 7 h"]
        );
        assert_eq!((since(5, 0), since(0, 1_000_000_001)), ("0.000000".to_owned(), "-1.000000".to_owned()));
    }

    #[test]
    fn an_estimate_shows_its_error() {
        let show = |value: f64| format!("{value}");
        assert_eq!(amount(Amount { value: 200.0, error: 2.0 }, show), "about 200 (±1.0 %, from a sample)");
        assert_eq!(amount(Amount { value: 200.0, error: 0.0 }, show), "200");
    }

    #[test]
    fn the_list_of_formats_fits_a_terminal() {
        for width in [80, 100] {
            let text = anstream::adapter::strip_str(&crate::screen::text(&formats(), width)).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            // Long descriptions are wrapped: words are compared, not lines.
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                Format::all().all(|format| words.contains(format.about().split(':').next().unwrap_or("")))
            );
        }
    }
}
