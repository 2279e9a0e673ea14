//! Traces for people: one screen of sums, the first requests, what a conversion did, the formats.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::Style;
use iowhy_core::request::{Marks, Op, Request};
use iowhy_core::units::{Bytes, count, count_rate, counted, time};
use iowhy_trace::survey::distinct::{Amount, MAX_BYTES};
use iowhy_trace::survey::{Flow, Survey};
use iowhy_trace::write::Written;
use iowhy_trace::{BlockAction, Compression, Format, Kind, Losses, Trace};

use iowhy_view::terminal::table::{Align, layout};
use iowhy_view::terminal::wrap::{cut, cut_path, wrap};

const BOLD: Style = Style::new().bold();

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

/// Width of the first column of sums.
const LABEL: usize = 13;

fn line(text: &mut String, label: &str, value: &str, width: usize) {
    text.push_str(&wrap(value, width, &format!("  {label:LABEL$}"), &" ".repeat(LABEL + 2)));
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

fn heading(trace: &Trace, width: usize) -> String {
    let packed = match trace.compression() {
        Compression::None => String::new(),
        other => format!(", {}", other.id()),
    };
    let format = trace.format();
    let mut text = String::new();
    let name = cut_path(trace.name(), width);
    let first = format!("{} ({}{packed})", format.about(), format.id());
    text.push_str(&wrap(&first, width, &format!("{BOLD}{name}{BOLD:#}  "), "  "));
    let level = match trace.below_page_cache() {
        Some(true) => ", seen below a page cache: hits are not in it, so it says nothing about a cache above",
        Some(false) => ", recorded above the page cache: requests of the program",
        None => "; on which side of a page cache they were seen, the file does not say",
    };
    line(&mut text, "addresses", &format!("{}{level}", trace.kind().about()), width);
    match trace.action() {
        Some(BlockAction::Queue) => {
            let words = "Q, as queued, before merging; `--action issue` takes D, which has latency";
            line(&mut text, "a request is", words, width);
        }
        Some(BlockAction::Issue) => {
            line(
                &mut text,
                "a request is",
                "D, as issued to the device; latency is the time to its completion",
                width,
            );
        }
        None => {}
    }
    text
}

/// One screen of sums.
pub fn stat(trace: &Trace, survey: &Survey, width: usize) -> String {
    let mut text = heading(trace, width);
    let all = survey.requests;
    if all == 0 {
        line(&mut text, "requests", "none", width);
        text.push_str(&losses("lost", trace.losses(), width));
        return text;
    }
    line(&mut text, "requests", &count(all), width);
    for op in Op::ALL {
        let flow = survey.for_op(op);
        if flow.requests > 0 {
            line(&mut text, &plural(op), &of_all(flow, all, trace), width);
        }
    }
    what(&mut text, trace, survey, width);
    when(&mut text, trace, survey, width);
    let marks: Vec<String> = MARKS
        .iter()
        .map(|(mark, name)| (survey.marked(*mark), name))
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| format!("{name} {} ({})", count(n), share(n, all)))
        .collect();
    if !marks.is_empty() {
        line(&mut text, "marked", &marks.join(", "), width);
    }
    text.push_str(&losses("lost", trace.losses(), width));
    text
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
fn what(text: &mut String, trace: &Trace, survey: &Survey, width: usize) {
    let number = |value: f64| count(value.round() as u64);
    let things = match survey.kind() {
        Kind::Blocks => "devices",
        Kind::Files => "files",
        Kind::Keys => "keys",
    };
    line(text, things, &format!("{} read or written", amount(survey.objects(), number)), width);
    if !trace.has_sizes() {
        line(text, "sizes", "not in the file: each request counts as 1 byte", width);
        return;
    }
    let blocks = if survey.kind() == Kind::Keys {
        "each key once, with its largest size"
    } else {
        "in blocks of 4 KiB"
    };
    let bytes = amount(survey.footprint_bytes(), |value| Bytes(value.round() as u64).to_string());
    let said = match survey.footprint_from_below() {
        0 => format!("{bytes} of different bytes, {blocks}"),
        requests => format!(
            "at least {bytes} of different bytes, {blocks}: of {requests} requests beyond {} only the beginning was counted",
            Bytes(MAX_BYTES)
        ),
    };
    line(text, "footprint", &said, width);
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
        "median {}, mean {}, 99 % up to {}, largest {}; commonest: {}",
        Bytes(survey.size_quantile(0.5)),
        Bytes(transfers.bytes / transfers.requests),
        Bytes(survey.size_quantile(0.99)),
        Bytes(survey.largest()),
        common.join(", ")
    );
    line(text, "sizes", &sizes, width);
    if let Some(sequential) = survey.sequential_share() {
        let one = if survey.kind() == Kind::Blocks { "device" } else { "file" };
        line(
            text,
            "sequential",
            &format!("{} begin where the one before in the same {one} ended", percent(sequential)),
            width,
        );
    }
}

/// Time, rate, latency.
fn when(text: &mut String, trace: &Trace, survey: &Survey, width: usize) {
    if trace.has_times() {
        let rate =
            survey.rate().map(|rate| format!(", {} in the mean", count_rate(rate))).unwrap_or_default();
        line(text, "time", &format!("{}{rate}", span(survey.span_ns())), width);
    } else {
        line(text, "time", "not in the file", width);
    }
    match survey.streams() {
        Some(0 | 1) => {}
        Some(n) => {
            line(text, "streams", &format!("{} processes, threads or clients", count(n as u64)), width)
        }
        None => line(text, "streams", "more than 65,535 processes, threads or clients", width),
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
            line(text, "latency", &words, width);
        }
        None => line(text, "latency", "not in the file", width),
    }
}

/// What was lost, a line a reason.
fn losses(label: &str, losses: &Losses, width: usize) -> String {
    let mut text = String::new();
    if losses.is_empty() {
        line(&mut text, label, "nothing", width);
    }
    for (i, loss) in losses.list().iter().enumerate() {
        let first = loss.first.map(|place| format!(", first at {place}")).unwrap_or_default();
        line(
            &mut text,
            if i == 0 { label } else { "" },
            &format!("{} x {}{first}", count(loss.count), loss.reason),
            width,
        );
    }
    text
}

/// The first requests as a table.
pub fn head(trace: &Trace, requests: &[Request], width: usize) -> String {
    let mut text = heading(trace, width);
    let any = |f: &dyn Fn(&Request) -> bool| requests.iter().any(f);
    let keys = trace.kind() == Kind::Keys;
    let latency = any(&|r| r.latency_ns > 0);
    let stream = any(&|r| r.stream > 0);
    let marks = any(&|r| r.marks != Marks::default());
    let first_ns = requests.first().map_or(0, |request| request.time_ns);
    let mut columns: Vec<(&str, Align, Column)> = Vec::new();
    if trace.has_times() {
        columns.push(("time s", Align::Right, Box::new(move |r, _| since(r.time_ns, first_ns))));
    }
    if stream {
        columns.push(("stream", Align::Right, Box::new(|r, _| r.stream.to_string())));
    }
    columns.push(("op", Align::Left, Box::new(|r, _| r.op.id().to_owned())));
    let title = if keys { "key" } else { "object" };
    columns.push((title, Align::Left, Box::new(object)));
    if !keys {
        columns.push(("offset", Align::Right, Box::new(|r, _| r.offset.to_string())));
    }
    if trace.has_sizes() {
        columns.push(("bytes", Align::Right, Box::new(|r, _| r.bytes.to_string())));
    }
    if latency {
        let show = |r: &Request, _: &Trace| {
            if r.latency_ns > 0 { time(r.latency_ns as f64) } else { "-".to_owned() }
        };
        columns.push(("latency", Align::Right, Box::new(show)));
    }
    if marks {
        columns.push(("marks", Align::Left, Box::new(|r, _| names_of(r.marks))));
    }
    let header: Vec<&str> = columns.iter().map(|(name, _, _)| *name).collect();
    let align: Vec<Align> = columns.iter().map(|(_, align, _)| *align).collect();
    let rows: Vec<Vec<String>> =
        requests.iter().map(|r| columns.iter().map(|(_, _, show)| show(r, trace)).collect()).collect();
    if rows.is_empty() {
        line(&mut text, "requests", "none", width);
    } else {
        text.push_str(&layout(&header, &align, &rows));
    }
    if !trace.losses().is_empty() {
        text.push_str(&losses("lost", trace.losses(), width));
    }
    text
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
    cut(&names.join(" "), 36)
}

fn requests(n: u64) -> String {
    counted(n, "request", "requests")
}

/// What a conversion did.
pub fn converted(trace: &Trace, written: &Written, format: Format, path: &Path, width: usize) -> String {
    let mut text = String::new();
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
    text.push_str(&wrap(&sentence, width, "", "  "));
    text.push_str(&losses("lost reading", trace.losses(), width));
    text.push_str(&losses("lost writing", &written.losses, width));
    text
}

/// The formats.
pub fn formats(width: usize) -> String {
    let mut text = String::new();
    let column = Format::all().map(|format| format.id().len()).max().unwrap_or(0);
    for format in Format::all() {
        let can = if format.writable() { "read, write" } else { "read       " };
        let kind = format.kind().id();
        let start = format!("{:column$}  {can}  {kind:6}  ", format.id());
        let rest = " ".repeat(start.len());
        let entry = wrap(format.about(), width, &start, &rest);
        let _ = write!(text, "{}", entry.replacen(format.id(), &format!("{BOLD}{}{BOLD:#}", format.id()), 1));
    }
    text.push_str(&wrap(
        "Compression with gzip or zstd is seen by its content. A format is found out by the content too.",
        width,
        "",
        "",
    ));
    text
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
            let text = anstream::adapter::strip_str(&formats(width)).to_string();
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            // Long descriptions are wrapped: words are compared, not lines.
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                Format::all().all(|format| words.contains(format.about().split(':').next().unwrap_or("")))
            );
        }
    }
}
