//! `iowhy trace stat|head|convert|formats`: what a trace file is, its first requests, and the same in another format.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::request::{Op, Request};
use iowhy_trace::survey::Survey;
use iowhy_trace::write::{self, Written};
use iowhy_trace::{Format, Trace};

use crate::cli::{OutputArgs, TraceAction, TraceArgs, TraceConvertArgs, TraceHeadArgs, TraceInputArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::Kind;
use crate::record::lists::{FormatEntry, Listed, Offer};
use crate::record::trace::{
    ConvertRecord, Count, Latencies, OperationCount, SizeCount, Sizes, StatRecord, TraceFound, TraceRecord,
    TraceRequest, losses,
};
use crate::run_as;
use crate::screen::{self, trace as show};
use crate::trace_file::{self, Meter};
use iowhy_view::document::Chapter;

/// Columns of a screen at most.
const MAX_COLUMNS: usize = 100;

fn text(chapter: &Chapter) -> String {
    screen::text(chapter, output::width().min(MAX_COLUMNS))
}

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

fn run_stat(args: &TraceInputArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let mut trace = trace_file::open(args)?;
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
    let warnings = trace_file::warnings(&trace);
    outputs.warn(&warnings);
    let found = TraceFound::Stat(Box::new(stat_record(&trace, &survey)));
    let record = TraceRecord::new(&trace, Kind::Trace, "trace stat", &warnings, found);
    outputs.finish(&text(&show::stat(&trace, &survey)), &record)?;
    Ok(Ending::done())
}

fn run_head(args: &TraceHeadArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let mut trace = trace_file::open(&args.input)?;
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
    let warnings = trace_file::warnings(&trace);
    outputs.warn(&warnings);
    let found = TraceFound::Head {
        requests: requests.iter().map(|request| request_record(request, &trace)).collect(),
    };
    let record = TraceRecord::new(&trace, Kind::Trace, "trace head", &warnings, found);
    outputs.finish(&text(&show::head(&trace, &requests)), &record)?;
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
    let mut trace = trace_file::open(&args.input)?;
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
    let screen = text(&show::converted(&trace, &written, format, &args.output));
    let found = TraceFound::Convert(convert_record(&written, format, &args.output));
    let record = TraceRecord::new(&trace, Kind::Trace, "trace convert", &[], found);
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
    let formats = Format::all()
        .map(|format| FormatEntry {
            id: format.id(),
            about: format.about(),
            kind: format.kind().id(),
            readable: true,
            writable: format.writable(),
            extension: format.extension(),
        })
        .collect();
    let record = Listed::new(Kind::List, "trace formats", Offer::Formats { formats });
    outputs.finish(&text(&show::formats()), &record)?;
    Ok(Ending::done())
}

fn stat_record(trace: &Trace, survey: &Survey) -> StatRecord {
    // If a request was too large to count, only a lower limit is known.
    let footprint = match survey.footprint_from_below() {
        0 => Count::new,
        _ => Count::at_least,
    };
    let operations = Op::ALL
        .into_iter()
        .map(|op| (op, survey.for_op(op)))
        .filter(|(_, flow)| flow.requests > 0)
        .map(|(op, flow)| OperationCount { id: op.id(), requests: flow.requests, bytes: flow.bytes })
        .collect();
    let sizes = |p| trace.has_sizes().then(|| survey.size_quantile(p));
    let common = match trace.has_sizes() {
        true => survey.common_sizes(8),
        false => Vec::new(),
    };
    let common = common.iter().map(|s| SizeCount { size_bytes: s.bytes, requests: s.requests }).collect();
    let latency = survey.latency().map(|h| Latencies {
        n: h.count(),
        min: h.min_ns(),
        p50: h.quantile(0.5),
        p90: h.quantile(0.9),
        p99: h.quantile(0.99),
        p999: h.quantile(0.999),
        max: h.max_ns(),
        mean: h.mean_ns(),
    });
    StatRecord {
        requests: survey.requests,
        operations,
        objects: Count::new(survey.objects()),
        footprint_bytes: trace.has_sizes().then(|| footprint(survey.footprint_bytes())),
        size_bytes: Sizes { p50: sizes(0.5), p99: sizes(0.99), max: sizes(1.0), common },
        sequential_share: survey.sequential_share(),
        span_ns: trace.has_times().then(|| survey.span_ns()),
        requests_per_second: survey.rate().filter(|_| trace.has_times()),
        streams: survey.streams(),
        latency_ns: latency,
        marks: show::MARKS.iter().map(|(mark, name)| (*name, survey.marked(*mark))).collect(),
    }
}

fn request_record(request: &Request, trace: &Trace) -> TraceRequest {
    let marks =
        show::MARKS.iter().filter(|(mark, _)| request.marks.has(*mark)).map(|(_, name)| *name).collect();
    TraceRequest {
        time_ns: trace.has_times().then_some(request.time_ns),
        op: request.op,
        object: request.object,
        name: trace.names().get(request.object).map(str::to_owned),
        offset_bytes: (trace.kind() != iowhy_trace::Kind::Keys).then_some(request.offset),
        size_bytes: trace.has_sizes().then_some(request.bytes),
        latency_ns: (request.latency_ns > 0).then_some(request.latency_ns),
        stream: (request.stream > 0).then_some(request.stream),
        marks,
    }
}

fn convert_record(written: &Written, format: Format, path: &Path) -> ConvertRecord {
    ConvertRecord {
        output: path.display().to_string(),
        output_format: format.id(),
        written_requests: written.requests,
        written_bytes: written.bytes,
        write_losses: losses(&written.losses),
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::request::Marks;

    use super::*;

    #[test]
    fn every_mark_has_a_name() {
        let all = show::MARKS.iter().fold(Marks::default(), |all, (mark, _)| all.with(*mark));
        assert_eq!(all.0.count_ones() as usize, show::MARKS.len());
    }
}
