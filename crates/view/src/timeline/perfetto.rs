//! The trace format of Perfetto, as TrackEvents: `protos/perfetto/trace` of <https://github.com/google/perfetto>. Each thread has a track
//! with its states and one with its slow calls, each device tracks by owner of the requests.
//! Deliberately absent: samples of running threads, for which the other format is better, and events of the scheduler, because they name
//! a CPU and the task before, which are not known.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::lanes::lanes;
use super::protobuf::Message;
use super::{Device, Interval, RUNNING, Request, Thread, Timeline};
use iowhy_core::layer::Layer;
use iowhy_core::profile::State;

/// `Trace.packet`, and fields of `TracePacket`.
const PACKET: u64 = 1;
const TIMESTAMP: u64 = 8;
const SEQUENCE: u64 = 10;
const TRACK_EVENT: u64 = 11;
const INTERNED_DATA: u64 = 12;
const SEQUENCE_FLAGS: u64 = 13;
const TRACK_DESCRIPTOR: u64 = 60;
/// `SEQ_INCREMENTAL_STATE_CLEARED`, `SEQ_NEEDS_INCREMENTAL_STATE`.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
/// All packets are one sequence.
const OUR_SEQUENCE: u64 = 1;
/// Interned texts in one packet: readers limit the size of packets.
const TEXTS_IN_A_PACKET: usize = 500;

/// Fields of `TrackDescriptor`, `ProcessDescriptor` and `ThreadDescriptor`.
mod descriptor {
    pub(super) const UUID: u64 = 1;
    pub(super) const NAME: u64 = 2;
    pub(super) const PROCESS: u64 = 3;
    pub(super) const THREAD: u64 = 4;
    pub(super) const PARENT: u64 = 5;
    pub(super) const PROCESS_PID: u64 = 1;
    pub(super) const PROCESS_NAME: u64 = 6;
    pub(super) const THREAD_PID: u64 = 1;
    pub(super) const THREAD_TID: u64 = 2;
    pub(super) const THREAD_NAME: u64 = 5;
}

/// Fields and values of `TrackEvent` and `DebugAnnotation`.
mod event {
    pub(super) const CATEGORY: u64 = 3;
    pub(super) const ANNOTATION: u64 = 4;
    pub(super) const TYPE: u64 = 9;
    pub(super) const NAME: u64 = 10;
    pub(super) const TRACK: u64 = 11;
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const KEY: u64 = 1;
    pub(super) const UINT: u64 = 3;
    pub(super) const INT: u64 = 4;
    pub(super) const TEXT: u64 = 17;
}

/// A kind of interned text: a field of `InternedData`, whose entries all have a number (1) and a text (2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Category = 1,
    Name = 2,
    Key = 3,
    Text = 29,
}

/// Texts, each written once. Numbers begin at 1.
#[derive(Default)]
struct Texts {
    numbers: HashMap<(Kind, String), u64>,
    /// By kind, in the order of the numbers.
    lists: BTreeMap<Kind, Vec<String>>,
}

impl Texts {
    fn number(&mut self, kind: Kind, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(&(kind, text.to_owned())) {
            return *number;
        }
        let list = self.lists.entry(kind).or_default();
        list.push(text.to_owned());
        let number = list.len() as u64;
        self.numbers.insert((kind, text.to_owned()), number);
        number
    }
}

/// A value beside a slice.
enum Value<'a> {
    Uint(u64),
    Int(i64),
    Text(&'a str),
}

/// Packets in the making. They follow the packets with the texts, which are known last.
#[derive(Default)]
struct Packets {
    texts: Texts,
    bytes: Vec<u8>,
    tracks: u64,
}

impl Packets {
    fn packet(&mut self, packet: Message) {
        let trace = Message::default().message(PACKET, &packet);
        self.bytes.extend_from_slice(trace.as_bytes());
    }

    /// A new track. `describe` adds what it is.
    fn track(&mut self, parent: Option<u64>, describe: impl FnOnce(Message) -> Message) -> u64 {
        self.tracks += 1;
        let mut track = Message::default().uint(descriptor::UUID, self.tracks);
        if let Some(parent) = parent {
            track = track.uint(descriptor::PARENT, parent);
        }
        let packet = Message::default().uint(SEQUENCE, OUR_SEQUENCE).uint(SEQUENCE_FLAGS, NEEDED);
        self.packet(packet.message(TRACK_DESCRIPTOR, &describe(track)));
        self.tracks
    }

    fn named(&mut self, parent: Option<u64>, name: &str) -> u64 {
        self.track(parent, |track| track.text(descriptor::NAME, name))
    }

    fn begin(&mut self, track: u64, time_ns: u64, category: &str, name: &str, values: &[(&str, Value<'_>)]) {
        let mut slice = Message::default()
            .uint(event::TYPE, event::BEGIN)
            .uint(event::TRACK, track)
            .uint(event::CATEGORY, self.texts.number(Kind::Category, category))
            .uint(event::NAME, self.texts.number(Kind::Name, name));
        for (key, value) in values {
            let annotation = Message::default().uint(event::KEY, self.texts.number(Kind::Key, key));
            let annotation = match value {
                Value::Uint(value) => annotation.uint(event::UINT, *value),
                Value::Int(value) => annotation.int(event::INT, *value),
                Value::Text(text) => annotation.uint(event::TEXT, self.texts.number(Kind::Text, text)),
            };
            slice = slice.message(event::ANNOTATION, &annotation);
        }
        self.event(time_ns, &slice);
    }

    fn end(&mut self, track: u64, time_ns: u64) {
        self.event(time_ns, &Message::default().uint(event::TYPE, event::END).uint(event::TRACK, track));
    }

    fn event(&mut self, time_ns: u64, slice: &Message) {
        let packet = Message::default()
            .uint(TIMESTAMP, time_ns)
            .uint(SEQUENCE, OUR_SEQUENCE)
            .uint(SEQUENCE_FLAGS, NEEDED);
        self.packet(packet.message(TRACK_EVENT, slice));
    }

    /// The packets with all texts, which come first.
    fn of_texts(&self) -> Vec<u8> {
        let all = self.texts.lists.iter().flat_map(|(kind, list)| {
            let entry = |(text, number): (&String, u64)| Message::default().uint(1, number).text(2, text);
            list.iter().zip(1..).map(move |numbered| (*kind as u64, entry(numbered)))
        });
        let all: Vec<(u64, Message)> = all.collect();
        let mut bytes = Vec::new();
        let mut flags = CLEARED;
        let mut chunks = all.chunks(TEXTS_IN_A_PACKET);
        // Without any text the sequence begins all the same.
        for chunk in std::iter::once(chunks.next().unwrap_or_default()).chain(chunks) {
            let data = chunk.iter().fold(Message::default(), |data, (kind, text)| data.message(*kind, text));
            let packet = Message::default().uint(SEQUENCE, OUR_SEQUENCE).uint(SEQUENCE_FLAGS, flags);
            let trace = Message::default().message(PACKET, &packet.message(INTERNED_DATA, &data));
            bytes.extend_from_slice(trace.as_bytes());
            flags = NEEDED;
        }
        bytes
    }
}

/// Writes a time line as a trace.
///
/// # Errors
/// Those of `out`.
pub fn write(timeline: &Timeline, mut out: impl io::Write) -> io::Result<()> {
    let mut packets = Packets::default();
    let mut processes: HashMap<u32, u64> = HashMap::new();
    for process in &timeline.processes {
        let pid = i64::from(process.pid);
        let description = Message::default()
            .int(descriptor::PROCESS_PID, pid)
            .text(descriptor::PROCESS_NAME, &process.name);
        let track = packets.track(None, |track| track.message(descriptor::PROCESS, &description));
        processes.insert(process.pid, track);
    }
    let stacks: Vec<String> = timeline.stacks.iter().map(stack_text).collect();
    for thread in &timeline.threads {
        of_thread(timeline, &stacks, thread, processes.get(&thread.pid).copied(), &mut packets);
    }
    for device in &timeline.devices {
        of_device(device, &mut packets);
    }
    whole_run(timeline, &mut packets);
    out.write_all(&packets.of_texts())?;
    out.write_all(&packets.bytes)
}

/// The functions of a stack, innermost first.
fn stack_text(stack: &super::Stack) -> String {
    if !stack.known {
        return "not seen".to_owned();
    }
    let frames = stack.kernel.iter().rev().chain(stack.user.iter().rev());
    frames.map(|frame| frame.name.as_str()).collect::<Vec<_>>().join(" < ")
}

fn of_thread(
    timeline: &Timeline,
    stacks: &[String],
    thread: &Thread,
    process: Option<u64>,
    packets: &mut Packets,
) {
    let description = Message::default()
        .int(descriptor::THREAD_PID, i64::from(thread.pid))
        .int(descriptor::THREAD_TID, i64::from(thread.tid))
        .text(descriptor::THREAD_NAME, &thread.name);
    let track = packets.track(process, |track| track.message(descriptor::THREAD, &description));
    for interval in &thread.intervals {
        state(timeline, stacks, interval, track, packets);
    }
    if !thread.calls.is_empty() {
        let track = packets.named(Some(track), "slowest calls");
        for call in &thread.calls {
            let mut values = vec![("returned", Value::Int(call.value))];
            values.extend(call.path.as_deref().map(|path| ("file", Value::Text(path))));
            packets.begin(track, call.begin_ns, Layer::Call.id(), call.name, &values);
            packets.end(track, call.end_ns);
        }
    }
}

fn state(timeline: &Timeline, stacks: &[String], interval: &Interval, track: u64, packets: &mut Packets) {
    let stack = timeline.stacks.get(interval.stack as usize);
    let waits = matches!(interval.state, Some(State::Queued | State::Blocked));
    let mut values = Vec::new();
    let category = match stack.filter(|_| waits) {
        Some(stack) => {
            values.push(("operation", Value::Text(stack.operation)));
            values.push(("stack", Value::Text(&stacks[interval.stack as usize])));
            let requests = interval.requests.unwrap_or_default();
            for (key, ns) in [
                ("request at the device (ns)", requests.device_ns),
                ("requests in a queue (ns)", requests.queued_ns),
                ("behind requests of other programs (ns)", requests.behind_others_ns),
            ] {
                values.extend((ns > 0).then_some((key, Value::Uint(ns))));
            }
            stack.layer.id()
        }
        None if interval.state == Some(State::Running) => RUNNING,
        None => Layer::Unexplained.id(),
    };
    packets.begin(track, interval.begin_ns, category, timeline.label(interval), &values);
    packets.end(track, interval.end_ns);
}

/// Requests by owner. Those of one owner that overlap are on tracks of one name, which are shown as one.
fn of_device(device: &Device, packets: &mut Packets) {
    let root = packets.named(None, &device.name);
    let mut owners: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in &device.requests {
        owners.entry(&request.owner).or_default().push(request);
    }
    for (owner, requests) in owners {
        let name = format!("requests of {owner}");
        let mut tracks = Vec::new();
        let lanes = lanes(requests.iter().map(|request| (request.begin_ns, request.done_ns)));
        for (request, lane) in requests.into_iter().zip(lanes) {
            if lane == tracks.len() {
                tracks.push(packets.named(Some(root), &name));
            }
            let track = tracks[lane];
            let values = [("bytes", Value::Uint(request.bytes)), ("sector", Value::Uint(request.sector))];
            packets.begin(track, request.begin_ns, Layer::Block.id(), request.operation, &values);
            packets.begin(track, request.issued_ns, Layer::Device.id(), "at the device", &[]);
            packets.end(track, request.done_ns);
            packets.end(track, request.done_ns);
        }
    }
}

/// Findings and notes, which have no time: they are as long as the run.
fn whole_run(timeline: &Timeline, packets: &mut Packets) {
    for finding in &timeline.findings {
        let share = format!("{:.3}", finding.share);
        let track = packets.named(None, "findings (of the whole run)");
        let values = [
            ("cause", Value::Text(&finding.sentence)),
            ("advice", Value::Text(&finding.advice)),
            ("share of the wall time", Value::Text(&share)),
        ];
        packets.begin(track, 0, "finding", &finding.title, &values);
        packets.end(track, timeline.wall_ns);
    }
    let about = [&timeline.subject, &timeline.writer].into_iter().chain(&timeline.notes);
    for note in about {
        let track = packets.named(None, "about this file");
        packets.begin(track, 0, "note", note, &[]);
        packets.end(track, timeline.wall_ns);
    }
}
