//! Samples and markers of one thread, or of one device, in columns.

use iowhy_core::layer::Layer;
use iowhy_core::profile::State;
use serde::Serialize;

use super::ms;
use super::schema::{FINDING, of_layer};
use super::tables::{Tables, request_name};
use crate::timeline::{Device, Finding, Interval, NOT_RECORDED, Thread, Timeline};

/// `MarkerPhase.Interval`.
const INTERVAL: u8 = 1;
/// The kind of the process that the profiler puts first, and that of the others, which it sorts by their activity.
const DEFAULT: &str = "default";
const OTHER: &str = "unknown";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawThread<'a> {
    name: &'a str,
    process_name: &'a str,
    process_type: &'static str,
    pid: String,
    tid: Tid<'a>,
    is_main_thread: bool,
    process_startup_time: f64,
    process_shutdown_time: Option<f64>,
    register_time: f64,
    unregister_time: Option<f64>,
    paused_ranges: [u8; 0],
    show_markers_in_timeline: bool,
    samples: Samples,
    markers: Markers<'a>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Tid<'a> {
    Number(u32),
    Name(&'a str),
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    stack: Vec<u32>,
    time: Vec<f64>,
    weight: Vec<f64>,
    weight_type: &'static str,
    #[serde(rename = "threadCPUDelta")]
    thread_cpu_delta: Vec<u64>,
    length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Markers<'a> {
    data: Vec<Data<'a>>,
    name: Vec<u32>,
    start_time: Vec<f64>,
    end_time: Vec<f64>,
    phase: Vec<u8>,
    category: Vec<usize>,
    length: usize,
}

/// What a marker tells beside its name and times.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Data<'a> {
    Wait {
        operation: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        at_device: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        in_queue: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        behind_others: Option<f64>,
        cause: Cause,
    },
    NotRecorded,
    Call {
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<&'a str>,
        value: i64,
    },
    Request {
        owner: u32,
        bytes: u64,
        sector: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        in_queue: Option<f64>,
        at_device: f64,
    },
    Finding {
        sentence: &'a str,
        advice: &'a str,
        share: f64,
    },
}

/// The stack of a wait.
#[derive(Serialize)]
pub(super) struct Cause {
    tid: u32,
    time: f64,
    stack: u32,
}

impl<'a> Markers<'a> {
    fn add(&mut self, name: u32, category: usize, (begin_ns, end_ns): (u64, u64), data: Data<'a>) {
        self.data.push(data);
        self.name.push(name);
        self.start_time.push(ms(begin_ns));
        self.end_time.push(ms(end_ns));
        self.phase.push(INTERVAL);
        self.category.push(category);
        self.length += 1;
    }

    fn wait(&mut self, timeline: &Timeline, tables: &Tables<'_>, tid: u32, interval: &Interval) {
        let Some(stack) = timeline.stacks.get(interval.stack as usize) else { return };
        let part = |ns: u64| (ns > 0).then(|| ms(ns));
        let requests = interval.requests.unwrap_or_default();
        let data = Data::Wait {
            operation: tables.string(stack.operation),
            at_device: part(requests.device_ns),
            in_queue: part(requests.queued_ns),
            behind_others: part(requests.behind_others_ns),
            cause: Cause { tid, time: ms(interval.begin_ns), stack: tables.of_stack(interval.stack) },
        };
        let name = tables.string(timeline.label(interval));
        self.add(name, of_layer(stack.layer), (interval.begin_ns, interval.end_ns), data);
    }

    fn finding(&mut self, tables: &Tables<'_>, finding: &'a Finding, wall_ns: u64) {
        let Finding { sentence, advice, share, .. } = finding;
        let data = Data::Finding { sentence, advice, share: *share };
        self.add(tables.string(&finding.title), FINDING, (0, wall_ns), data);
    }
}

/// Time in which a thread ran, or waited on the I/O path or for a CPU.
pub(super) fn active_ns(timeline: &Timeline, thread: &Thread) -> u64 {
    let off_path = |interval: &Interval| {
        let stack = timeline.stacks.get(interval.stack as usize);
        interval.state == Some(State::Blocked) && stack.is_some_and(|stack| stack.layer == Layer::Elsewhere)
    };
    let active = thread.intervals.iter().filter(|i| i.state.is_some() && !off_path(i));
    active.map(Interval::length_ns).sum()
}

/// A row of the table of samples.
struct Row {
    time_ns: u64,
    /// Which of several at one time is first.
    order: u8,
    /// `None`: what ran before or will run then.
    stack: Option<u32>,
    weight_ms: f64,
    /// Whether CPU time up to here is its own. The profiler paints it in the colour of the sample that tells it.
    ran: bool,
}

/// The samples of a thread: each tick of the clock has its part of the running time, each wait is a sample at its begin with its length
/// as weight. Samples without weight before and behind waits, and at the end, keep CPU time from being painted as a wait.
fn samples(tables: &Tables<'_>, thread: &Thread) -> Samples {
    let running = thread.intervals.iter().filter(|i| i.state == Some(State::Running));
    let running_ns: u64 = running.clone().map(Interval::length_ns).sum();
    // Running time without any sample is shown where it was, and without a stack.
    let each_ms = ms(running_ns) / thread.samples.len().max(1) as f64;
    let tick =
        |time_ns, stack, weight_ms| Row { time_ns, order: 1, stack: Some(stack), weight_ms, ran: true };
    let ticks = thread.samples.iter().map(|s| tick(s.time_ns, tables.of_stack(s.stack), each_ms));
    let unseen = running
        .filter(|_| thread.samples.is_empty())
        .map(|i| tick(i.begin_ns, tables.not_seen(), ms(i.length_ns())));
    let mut rows: Vec<Row> = ticks.chain(unseen).collect();
    let between = |time_ns, order, ran| Row { time_ns, order, stack: None, weight_ms: 0.0, ran };
    let waits = |interval: &Interval| matches!(interval.state, Some(State::Queued | State::Blocked));
    for (at, wait) in thread.intervals.iter().enumerate().filter(|(_, interval)| waits(interval)) {
        let (stack, weight_ms) = (Some(tables.of_stack(wait.stack)), ms(wait.length_ns()));
        rows.push(between(wait.begin_ns, 2, true));
        rows.push(Row { time_ns: wait.begin_ns, order: 3, stack, weight_ms, ran: false });
        if !thread.intervals.get(at + 1).is_some_and(waits) {
            rows.push(between(wait.end_ns, 0, false));
        }
    }
    rows.sort_by_key(|row| (row.time_ns, row.order));
    let end_ns = rows.last().map_or(thread.end_ns, |row| row.time_ns.max(thread.end_ns));
    rows.push(between(end_ns, 4, true));
    in_columns(tables, &rows, &thread.intervals)
}

/// `rows` in the order of time.
fn in_columns(tables: &Tables<'_>, rows: &[Row], intervals: &[Interval]) -> Samples {
    let mut columns = Samples { weight_type: "tracing-ms", ..Samples::default() };
    let mut ran = Ran { intervals, before_ns: 0 };
    let runs = |row: &&Row| row.ran && row.stack.is_some();
    // What runs next, and, where nothing does, what ran last.
    let mut ticks = rows.iter().filter(runs).peekable();
    let mut running = None;
    let mut last_ns = 0;
    for row in rows {
        if runs(&row) {
            running = ticks.next().and_then(|tick| tick.stack);
        }
        let next = ticks.peek().and_then(|tick| tick.stack);
        let around = if row.ran { running.or(next) } else { next.or(running) };
        let now_ns = if row.ran { ran.until(row.time_ns) } else { last_ns };
        if row.stack.is_none() && row.ran && now_ns == last_ns {
            continue;
        }
        columns.stack.push(row.stack.or(around).unwrap_or_else(|| tables.not_seen()));
        columns.time.push(ms(row.time_ns));
        columns.weight.push(row.weight_ms);
        columns.thread_cpu_delta.push(now_ns - last_ns);
        columns.length += 1;
        last_ns = now_ns;
    }
    columns
}

/// How long a thread has run, for times that only grow.
struct Ran<'a> {
    /// Those that are not over yet.
    intervals: &'a [Interval],
    before_ns: u64,
}

impl Ran<'_> {
    fn until(&mut self, time_ns: u64) -> u64 {
        let ran = |interval: &Interval, until: u64| match interval.state {
            Some(State::Running) => until.saturating_sub(interval.begin_ns),
            _ => 0,
        };
        while let [first, rest @ ..] = self.intervals
            && first.end_ns <= time_ns
        {
            self.before_ns += ran(first, first.end_ns);
            self.intervals = rest;
        }
        self.before_ns + self.intervals.first().map_or(0, |interval| ran(interval, time_ns))
    }
}

impl<'a> RawThread<'a> {
    /// A thread. The first one of all has the findings.
    pub(super) fn new(
        timeline: &'a Timeline,
        tables: &Tables<'_>,
        thread: &'a Thread,
        first: bool,
    ) -> RawThread<'a> {
        let mut markers = Markers::default();
        for finding in timeline.findings.iter().filter(|_| first) {
            markers.finding(tables, finding, timeline.wall_ns);
        }
        for interval in &thread.intervals {
            match interval.state {
                Some(State::Running) => {}
                Some(State::Queued | State::Blocked) => {
                    markers.wait(timeline, tables, thread.tid, interval);
                }
                None => {
                    let times = (interval.begin_ns, interval.end_ns);
                    let category = of_layer(Layer::Unexplained);
                    markers.add(tables.string(NOT_RECORDED), category, times, Data::NotRecorded);
                }
            }
        }
        for call in &thread.calls {
            let data = Data::Call { path: call.path.as_deref(), value: call.value };
            let times = (call.begin_ns, call.end_ns);
            markers.add(tables.string(call.name), of_layer(Layer::Call), times, data);
        }
        let first_process = timeline.threads.first().map(|first| first.pid);
        let of_process = timeline.threads.iter().filter(|other| other.pid == thread.pid);
        let begin_ns = of_process.map(|other| other.begin_ns).min().unwrap_or(thread.begin_ns);
        RawThread {
            name: &thread.name,
            process_name: timeline.process(thread.pid),
            process_type: if first_process == Some(thread.pid) { DEFAULT } else { OTHER },
            pid: thread.pid.to_string(),
            tid: Tid::Number(thread.tid),
            is_main_thread: thread.tid == thread.pid,
            process_startup_time: ms(begin_ns),
            process_shutdown_time: None,
            register_time: ms(thread.begin_ns),
            unregister_time: Some(ms(thread.end_ns)),
            paused_ranges: [],
            show_markers_in_timeline: false,
            samples: samples(tables, thread),
            markers,
        }
    }

    /// A device, which the profiler shows as a thread of the first process.
    pub(super) fn of_device(
        timeline: &'a Timeline,
        tables: &Tables<'_>,
        device: &'a Device,
    ) -> RawThread<'a> {
        let mut markers = Markers::default();
        for request in &device.requests {
            let queued_ns = request.issued_ns.saturating_sub(request.begin_ns);
            let data = Data::Request {
                owner: tables.string(&request.owner),
                bytes: request.bytes,
                sector: request.sector,
                in_queue: (queued_ns > 0).then(|| ms(queued_ns)),
                at_device: ms(request.done_ns.saturating_sub(request.issued_ns)),
            };
            let times = (request.begin_ns, request.done_ns);
            markers.add(tables.string(&request_name(request)), of_layer(Layer::Device), times, data);
        }
        let pid = timeline.processes.first().map_or(0, |process| process.pid);
        RawThread {
            name: &device.name,
            process_name: timeline.process(pid),
            process_type: DEFAULT,
            pid: pid.to_string(),
            tid: Tid::Name(&device.name),
            is_main_thread: false,
            process_startup_time: 0.0,
            process_shutdown_time: None,
            register_time: 0.0,
            unregister_time: None,
            paused_ranges: [],
            show_markers_in_timeline: true,
            samples: Samples { weight_type: "tracing-ms", ..Samples::default() },
            markers,
        }
    }
}
