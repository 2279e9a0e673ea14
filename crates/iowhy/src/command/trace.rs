//! `iowhy trace stat|head|convert|formats`: what a trace file is, its first requests, and the same in another format.

use std::path::Path;
use std::time::Instant;

use iowhy_core::problem::Problem;
use iowhy_core::request::{Op, Request};
use iowhy_core::warning::Warning;
use iowhy_trace::survey::Survey;
use iowhy_trace::survey::distinct::Amount;
use iowhy_trace::write::{self, Written};
use iowhy_trace::{BlockAction, Format, Losses, Options, Trace};
use serde_json::{Value, json};

use crate::cli::{OutputArgs, TraceAction, TraceArgs, TraceConvertArgs, TraceHeadArgs, TraceInputArgs};
use crate::command::Ending;
use crate::output::{self, Outputs};
use crate::progress::Progress;
use crate::record::{Kind, SCHEMA};

use crate::render::trace as render;
use crate::run_as;

/// Columns of a screen at most.
const MAX_COLUMNS: usize = 100;

/// Runs the command.
///
/// # Errors
/// Refusals for files and options; a trace that breaks off; outputs that cannot be written.
pub fn run(args: &TraceArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    match &args.action {
        TraceAction::Stat(stat) => run_stat(&stat.input, options),
        TraceAction::Head(head) => run_head(head, options),
        TraceAction::Convert(convert) => run_convert(convert, options),
        TraceAction::Formats => run_formats(options),
    }
}

/// Opens the trace of the options.
///
/// # Errors
/// An unknown format or step; see [`iowhy_trace::open`].
pub fn open(args: &TraceInputArgs) -> Result<Trace, Problem> {
    iowhy_trace::open(&args.file, &reading(args))
}

/// The options of a trace as its reader takes them.
fn reading(args: &TraceInputArgs) -> Options {
    Options { format: args.format, columns: args.columns.clone(), action: args.action }
}

/// Shows how far a file was read, if anybody can see it.
pub(super) struct Meter {
    line: Progress,
    begun: Instant,
}

impl Meter {
    pub(super) fn new(quiet: bool) -> Meter {
        Meter { line: Progress::new(quiet), begun: Instant::now() }
    }

    pub(super) fn at(&self, trace: &Trace) {
        if let Some(share) = trace.share_read().filter(|share| *share > 0.0) {
            self.line.at(share, self.begun.elapsed().mul_f64((1.0 - share) / share), trace.name());
        }
    }
}

fn run_stat(args: &TraceInputArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let mut trace = open(args)?;
    let outputs = Outputs::open_apart(options, &[&args.file])?;
    let meter = Meter::new(outputs.quiet());
    let mut batch = Vec::new();
    let mut more = trace.next_batch(&mut batch)?;
    // Some files say at their beginning what they address.
    let mut survey = Survey::new(trace.kind());
    while more {
        survey.add(&batch);
        meter.at(&trace);
        more = trace.next_batch(&mut batch)?;
    }
    drop(meter);
    let warnings = warnings(&trace);
    outputs.warn(&warnings);
    let width = output::width().min(MAX_COLUMNS);
    let mut record = about(&trace, Kind::Trace, "trace stat", &warnings);
    extend(&mut record, stat_record(&trace, &survey));
    outputs.finish(&render::stat(&trace, &survey, width), &record)?;
    Ok(Ending::done())
}

fn run_head(args: &TraceHeadArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let mut trace = open(&args.input)?;
    let outputs = Outputs::open_apart(options, &[&args.input.file])?;
    let mut requests = Vec::new();
    let wanted = args.number;
    while requests.len() < wanted {
        let missing = wanted - requests.len();
        if trace.fill(&mut requests, missing)? == 0 {
            break;
        }
    }
    requests.truncate(wanted);
    let warnings = warnings(&trace);
    outputs.warn(&warnings);
    let width = output::width().min(MAX_COLUMNS);
    let list: Vec<Value> = requests.iter().map(|request| request_record(request, &trace)).collect();
    let mut record = about(&trace, Kind::Trace, "trace head", &warnings);
    extend(&mut record, json!({"requests": list}));
    outputs.finish(&render::head(&trace, &requests, width), &record)?;
    Ok(Ending::done())
}

fn run_convert(args: &TraceConvertArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let to_stdout = args.output.as_os_str() == "-";
    let json_to_stdout = options.json.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if to_stdout && json_to_stdout {
        return Err(Problem::refused("`--json -` and the output `-` are both stdout")
            .hint("name a file for one of them"));
    }
    let format = output_format(args)?;
    if let Some(json) = options.json.as_deref().filter(|_| !json_to_stdout) {
        output::spare_inputs("--json", json, &[&args.input.file])?;
        if !to_stdout {
            output::all_different(&[("OUT", Some(&args.output)), ("--json", Some(json))])?;
        }
    }
    let mut trace = open(&args.input)?;
    let mut batch = Vec::new();
    let mut more = trace.next_batch(&mut batch)?;
    // The trace is made, and where it is given up removed, as the user of this run.
    let _files = run_as::files()?;
    let mut writer = write::create(&args.output, format, trace.kind(), args.force, &args.input.file)?;
    let outputs = Outputs::open(options)?;
    let meter = Meter::new(outputs.quiet() || to_stdout);
    while more && !writer.abandoned() {
        writer.write(&batch, trace.names())?;
        meter.at(&trace);
        more = trace.next_batch(&mut batch)?;
    }
    let abandoned = writer.abandoned();
    let written = writer.finish()?;
    drop(meter);
    if abandoned {
        return Ok(Ending::done());
    }
    let screen = render::converted(&trace, &written, format, &args.output, output::width().min(MAX_COLUMNS));
    let mut record = about(&trace, Kind::Trace, "trace convert", &[]);
    extend(&mut record, convert_record(&written, format, &args.output));
    if to_stdout {
        if !outputs.quiet() {
            anstream::eprint!("{screen}");
        }
        outputs.finish("", &record)?;
    } else {
        outputs.finish(&screen, &record)?;
    }
    Ok(Ending::done())
}

fn output_format(args: &TraceConvertArgs) -> Result<Format, Problem> {
    if let Some(format) = args.to {
        return Ok(format);
    }
    let list: Vec<&str> = Format::all().filter(|format| format.writable()).map(Format::id).collect();
    Format::of_output(&args.output).ok_or_else(|| {
        Problem::refused(format!("`{}`: its name does not say which format to write", args.output.display()))
            .hint(format!("say `--to FORMAT`, one of {}", list.join(", ")))
    })
}

fn run_formats(options: &OutputArgs) -> Result<Ending, Problem> {
    let outputs = Outputs::open(options)?;
    let list: Vec<Value> = Format::all()
        .map(|format| {
            json!({"id": format.id(), "about": format.about(), "kind": format.kind().id(), "readable": true,
                   "writable": format.writable(), "extension": format.extension()})
        })
        .collect();
    let record = json!({"schema": SCHEMA, "kind": Kind::List, "iowhy": env!("CARGO_PKG_VERSION"), "command": "trace formats", "formats": list});
    outputs.finish(&render::formats(output::width().min(MAX_COLUMNS)), &record)?;
    Ok(Ending::done())
}

/// What a reader must know before using the trace.
pub(super) fn warnings(trace: &Trace) -> Vec<Warning> {
    let mut list = Vec::new();
    if trace.losses().count(iowhy_trace::CUT_OFF) > 0 {
        list.push(
            Warning::new("cut-off", format!("`{}` is cut off: only its beginning was read", trace.name()))
                .next("copy or download it again; `gzip -t` and `zstd -t` check a file"),
        );
    }
    let refused: u64 = trace
        .losses()
        .list()
        .iter()
        .filter(|loss| loss.reason.contains("left out"))
        .map(|loss| loss.count)
        .sum();
    if refused > trace.requests() {
        list.push(
            Warning::new(
                "more-lost-than-read",
                "more was left out than was read: perhaps the format is another one",
            )
            .next("`iowhy trace head` shows what was read; `--format` names another format"),
        );
    }
    list
}

/// What every record of a trace says.
pub(super) fn about(trace: &Trace, kind: Kind, command: &str, warnings: &[Warning]) -> Value {
    json!({
        "schema": SCHEMA,
        "kind": kind,
        "iowhy": env!("CARGO_PKG_VERSION"),
        "command": command,
        "warnings": warnings,
        "file": trace.name(),
        "format": trace.format().id(),
        "compression": trace.compression().id(),
        "content": trace.kind().id(),
        "below_page_cache": trace.below_page_cache(),
        "action": trace.action().map(|action| match action {
            BlockAction::Queue => "queue",
            BlockAction::Issue => "issue",
        }),
        "read_requests": trace.requests(),
        "losses": losses(trace.losses()),
    })
}

fn losses(losses: &Losses) -> Vec<Value> {
    let place = |loss: &iowhy_trace::Loss| loss.first.map(|place| place.to_string());
    losses
        .list()
        .iter()
        .map(|loss| json!({"reason": loss.reason, "count": loss.count, "first": place(loss)}))
        .collect()
}

pub(super) fn extend(record: &mut Value, more: Value) {
    if let (Value::Object(record), Value::Object(more)) = (record, more) {
        record.extend(more);
    }
}

fn stat_record(trace: &Trace, survey: &Survey) -> Value {
    // Where a request was too large to count, the truth may be any larger.
    let footprint = match survey.footprint_from_below() {
        0 => {
            |a: Amount| json!({"value": a.value, "low": a.value - a.error, "high": a.value + a.error, "exact": a.error == 0.0})
        }
        _ => |a: Amount| json!({"value": null, "low": a.value - a.error, "high": null, "exact": false}),
    };
    let amount = |a: Amount| json!({"value": a.value, "low": a.value - a.error, "high": a.value + a.error, "exact": a.error == 0.0});
    let operations: Vec<Value> = Op::ALL
        .into_iter()
        .map(|op| (op, survey.for_op(op)))
        .filter(|(_, flow)| flow.requests > 0)
        .map(|(op, flow)| json!({"id": op.id(), "requests": flow.requests, "bytes": flow.bytes}))
        .collect();
    let sizes = |p| trace.has_sizes().then(|| survey.size_quantile(p));
    let common: Vec<Value> = match trace.has_sizes() {
        true => survey
            .common_sizes(8)
            .iter()
            .map(|s| json!({"size_bytes": s.bytes, "requests": s.requests}))
            .collect(),
        false => Vec::new(),
    };
    let marks: serde_json::Map<String, Value> =
        render::MARKS.iter().map(|(mark, name)| ((*name).to_owned(), json!(survey.marked(*mark)))).collect();
    let latency = survey.latency().map(|h| {
        json!({"n": h.count(), "min": h.min_ns(), "p50": h.quantile(0.5), "p90": h.quantile(0.9), "p99": h.quantile(0.99),
               "p999": h.quantile(0.999), "max": h.max_ns(), "mean": h.mean_ns()})
    });
    json!({
        "requests": survey.requests,
        "operations": operations,
        "objects": amount(survey.objects()),
        "footprint_bytes": trace.has_sizes().then(|| footprint(survey.footprint_bytes())),
        "size_bytes": {"p50": sizes(0.5), "p99": sizes(0.99), "max": sizes(1.0), "common": common},
        "sequential_share": survey.sequential_share(),
        "span_ns": trace.has_times().then(|| survey.span_ns()),
        "requests_per_second": survey.rate().filter(|_| trace.has_times()),
        "streams": survey.streams(),
        "latency_ns": latency,
        "marks": marks,
    })
}

fn request_record(request: &Request, trace: &Trace) -> Value {
    let marks: Vec<&str> =
        render::MARKS.iter().filter(|(mark, _)| request.marks.has(*mark)).map(|(_, name)| *name).collect();
    json!({
        "time_ns": trace.has_times().then_some(request.time_ns),
        "op": request.op,
        "object": request.object,
        "name": trace.names().get(request.object),
        "offset_bytes": (trace.kind() != iowhy_trace::Kind::Keys).then_some(request.offset),
        "size_bytes": trace.has_sizes().then_some(request.bytes),
        "latency_ns": (request.latency_ns > 0).then_some(request.latency_ns),
        "stream": (request.stream > 0).then_some(request.stream),
        "marks": marks,
    })
}

fn convert_record(written: &Written, format: Format, path: &Path) -> Value {
    json!({
        "output": path.display().to_string(),
        "output_format": format.id(),
        "written_requests": written.requests,
        "written_bytes": written.bytes,
        "write_losses": losses(&written.losses),
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::request::Marks;

    use super::*;

    #[test]
    fn every_mark_has_a_name() {
        let all = render::MARKS.iter().fold(Marks::default(), |all, (mark, _)| all.with(*mark));
        assert_eq!(all.0.count_ones() as usize, render::MARKS.len());
    }
}
