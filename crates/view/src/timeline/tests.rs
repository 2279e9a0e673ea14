//! A time line by hand and the exact files of it; laws of the formats and of conservation for any time line.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const US: u64 = 1000;

fn frame(name: &str, object: Option<&str>) -> Frame {
    Frame { name: name.to_owned(), object: object.map(str::to_owned) }
}

fn stack(
    user: &[&str],
    kernel: &[&str],
    layer: Layer,
    operation: &'static str,
    waits: Option<&str>,
) -> Stack {
    Stack {
        user: user.iter().map(|name| frame(name, Some("/usr/bin/program"))).collect(),
        kernel: kernel.iter().map(|name| frame(name, None)).collect(),
        known: !(user.is_empty() && kernel.is_empty()),
        layer,
        operation,
        waits: waits.map(str::to_owned),
    }
}

fn interval(begin_us: u64, end_us: u64, state: Option<State>, stack: u32) -> Interval {
    Interval { begin_ns: begin_us * US, end_ns: end_us * US, state, stack, requests: None }
}

fn request(operation: &'static str, owner: &str, (begin, issued, done): (u64, u64, u64)) -> Request {
    Request {
        operation,
        owner: owner.to_owned(),
        sector: 2048,
        bytes: 4096,
        begin_ns: begin * US,
        issued_ns: issued * US,
        done_ns: done * US,
    }
}

/// Two threads, one device, one millisecond.
fn by_hand() -> Timeline {
    let (running, queued, blocked) = (Some(State::Running), Some(State::Queued), Some(State::Blocked));
    let sleep = Interval {
        requests: Some(RequestParts { device_ns: 300 * US, queued_ns: 50 * US, behind_others_ns: 20 * US }),
        ..interval(100, 500, blocked, 2)
    };
    let main = Thread {
        pid: 100,
        tid: 100,
        name: "program".to_owned(),
        begin_ns: 0,
        end_ns: 1000 * US,
        intervals: vec![
            interval(0, 100, running, 0),
            sleep,
            interval(500, 600, running, 0),
            interval(600, 650, queued, 3),
            interval(650, 800, None, 0),
            interval(800, 1000, running, 0),
        ],
        samples: vec![
            Sample { time_ns: 50 * US, stack: 0 },
            Sample { time_ns: 550 * US, stack: 1 },
            Sample { time_ns: 900 * US, stack: 0 },
        ],
        calls: vec![Call {
            name: "read",
            path: Some("/data/x".to_owned()),
            value: -5,
            begin_ns: 90 * US,
            end_ns: 520 * US,
        }],
    };
    let worker = Thread {
        pid: 100,
        tid: 101,
        name: "worker \"1\"".to_owned(),
        begin_ns: 200 * US,
        end_ns: 900 * US,
        intervals: vec![interval(200, 300, running, 0), interval(300, 900, blocked, 4)],
        samples: vec![],
        calls: vec![],
    };
    let wait = "waiting: data from the device";
    Timeline {
        writer: "iowhy 0".to_owned(),
        subject: "program --option".to_owned(),
        start_unix_ns: 1_700_000_000_000_000_000,
        start_monotonic_ns: 5_000_000_000,
        wall_ns: 1000 * US,
        clock_period_ns: 250 * US,
        processes: vec![Process { pid: 100, name: "program".to_owned() }],
        threads: vec![main, worker],
        stacks: vec![
            stack(&["main", "encode"], &[], Layer::Program, "user", None),
            stack(&["main"], &["ksys_read", "copy_to_iter"], Layer::Copy, "read", None),
            stack(&["main"], &["ksys_read", "io_schedule"], Layer::Device, "read", Some(wait)),
            stack(&["main"], &["ksys_read"], Layer::CpuQueue, "read", Some("waiting: a CPU")),
            stack(&[], &[], Layer::Unexplained, "unknown", Some("waiting: something unknown")),
        ],
        devices: vec![Device {
            name: "device sda (8:0)".to_owned(),
            requests: vec![
                request("write", "another program: fio", (100, 100, 200)),
                request("read", "the program", (110, 150, 480)),
                request("read-ahead", "the program", (120, 120, 300)),
            ],
        }],
        findings: vec![Finding {
            title: "queue-depth-one".to_owned(),
            sentence: "one request at a time".to_owned(),
            advice: "ask for more".to_owned(),
            share: 0.4,
        }],
        notes: vec!["by hand".to_owned()],
    }
}

/// Compares with a stored text; with `IOWHY_UPDATE=1` it is written.
fn assert_stored(name: &str, text: &str) {
    let path = format!("{}/src/timeline/expected/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("IOWHY_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{path}");
}

fn firefox_of(timeline: &Timeline) -> Value {
    let mut bytes = Vec::new();
    firefox::write(timeline, &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn the_profile_by_hand_is_exactly_this() {
    let profile = firefox_of(&by_hand());
    valid(&profile).unwrap();
    assert_stored("firefox.json", &(serde_json::to_string_pretty(&profile).unwrap() + "\n"));
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(|n| n.as_f64().unwrap()).collect()
}

/// Holds a profile against the types that the format publishes: columns of one length, indices into tables that are there, known words.
fn valid(profile: &Value) -> Result<(), String> {
    let shared = &profile["shared"];
    let strings = list(&shared["stringArray"]).len();
    let categories = list(&profile["meta"]["categories"]);
    let column = |table: &Value, name: &str, of: &[Value], most: Option<usize>| -> Result<(), String> {
        let length = table["length"].as_u64().ok_or_else(|| format!("{name}: no length"))? as usize;
        if of.len() != length {
            return Err(format!("{name}: {} rows of {length}", of.len()));
        }
        let fits = |n: &Value| most.is_none_or(|most| n.as_u64().is_some_and(|n| (n as usize) < most));
        of.iter().find(|n| !fits(n)).map_or(Ok(()), |n| Err(format!("{name}: {n}")))
    };
    let rows = |table: &Value| table["length"].as_u64().unwrap_or(0) as usize;
    for (table, columns) in [
        ("stackTable", &[("frame", Some(rows(&shared["frameTable"]))), ("prefixOffset", None)] as &[_]),
        (
            "frameTable",
            &[
                ("func", Some(rows(&shared["funcTable"]))),
                ("category", Some(categories.len())),
                ("subcategory", Some(1)),
                ("address", None),
                ("inlineDepth", None),
                ("nativeSymbol", None),
                ("innerWindowID", None),
                ("line", None),
                ("column", None),
                ("originalLocation", None),
            ],
        ),
        (
            "funcTable",
            &[
                ("name", Some(strings)),
                ("isJS", None),
                ("relevantForJS", None),
                ("resource", None),
                ("source", None),
                ("lineNumber", None),
                ("columnNumber", None),
                ("originalLocation", None),
            ],
        ),
        ("resourceTable", &[("name", Some(strings)), ("lib", None), ("host", None), ("type", Some(6))]),
        ("nativeSymbols", &[("libIndex", None), ("address", None), ("name", None), ("functionSize", None)]),
        ("sourceLocationTable", &[("source", None), ("line", None), ("column", None)]),
    ] {
        for (name, most) in columns {
            column(&shared[table], &format!("{table}.{name}"), list(&shared[table][name]), *most)?;
        }
    }
    for (at, offset) in list(&shared["stackTable"]["prefixOffset"]).iter().enumerate() {
        if offset.as_u64().is_none_or(|offset| offset as usize > at) {
            return Err(format!("prefixOffset of {at}: {offset}"));
        }
    }
    let resources = rows(&shared["resourceTable"]) as i64;
    if list(&shared["funcTable"]["resource"]).iter().any(|r| !(-1..resources).contains(&r.as_i64().unwrap()))
    {
        return Err("a resource that is not there".to_owned());
    }
    if !categories.iter().any(|category| category["color"] == "grey") {
        return Err("no default category".to_owned());
    }
    let kinds: Vec<&str> =
        list(&profile["meta"]["markerSchema"]).iter().map(|s| s["name"].as_str().unwrap()).collect();
    let stacks = rows(&shared["stackTable"]);
    for thread in list(&profile["threads"]) {
        let (samples, markers) = (&thread["samples"], &thread["markers"]);
        column(samples, "samples.stack", list(&samples["stack"]), Some(stacks))?;
        for name in ["time", "weight", "threadCPUDelta"] {
            column(samples, name, list(&samples[name]), None)?;
        }
        if numbers(&samples["time"]).windows(2).any(|two| two[0] > two[1]) {
            return Err("samples are not in the order of time".to_owned());
        }
        let most = [("name", Some(strings)), ("category", Some(categories.len())), ("phase", Some(4))];
        let columns = [("data", None), ("startTime", None), ("endTime", None)];
        for (name, most) in most.into_iter().chain(columns) {
            column(markers, name, list(&markers[name]), most)?;
        }
        for (data, (begin, end)) in list(&markers["data"])
            .iter()
            .zip(numbers(&markers["startTime"]).into_iter().zip(numbers(&markers["endTime"])))
        {
            if !kinds.contains(&data["type"].as_str().unwrap()) || begin > end {
                return Err(format!("marker {data} from {begin} to {end}"));
            }
            let cause = data["cause"]["stack"].as_u64();
            if cause.is_some_and(|stack| stack as usize >= stacks) {
                return Err(format!("the stack of {data}"));
            }
        }
    }
    Ok(())
}

/// A message: fields with numbers or bytes, in their order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Result<u64, &[u8]>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let value = match key & 7 {
            0 => Ok(value),
            2 => {
                let (content, rest) = bytes.split_at(value as usize);
                bytes = rest;
                Err(content)
            }
            other => panic!("wire type {other}"),
        };
        found.push((key >> 3, value));
    }
    found
}

fn number(message: &[u8], field: u64) -> Option<u64> {
    fields(message).into_iter().find(|(of, _)| *of == field).and_then(|(_, value)| value.ok())
}

fn parts(message: &[u8], field: u64) -> Vec<&[u8]> {
    fields(message).into_iter().filter(|(of, _)| *of == field).filter_map(|(_, value)| value.err()).collect()
}

/// The trace as text, a line for each packet, with the field numbers of the published messages.
fn told(trace: &[u8]) -> String {
    fn tell(message: &[u8], path: &[u64], out: &mut String) {
        // Fields that are messages: of a packet, its descriptor, its event and its texts.
        const MESSAGES: [&[u64]; 9] =
            [&[60], &[60, 3], &[60, 4], &[11], &[11, 4], &[12], &[12, 1], &[12, 2], &[12, 3]];
        for (field, value) in fields(message) {
            let path = [path, &[field]].concat();
            let is_message = MESSAGES.contains(&path.as_slice()) || path == [12, 29];
            match value {
                Ok(value) => out.push_str(&format!(" {field}={value}")),
                Err(bytes) if is_message => {
                    out.push_str(&format!(" {field}{{"));
                    tell(bytes, &path, out);
                    out.push_str(" }");
                }
                Err(bytes) => out.push_str(&format!(" {field}={:?}", String::from_utf8_lossy(bytes))),
            }
        }
    }
    let mut text = String::new();
    for packet in parts(trace, 1) {
        let mut line = String::new();
        tell(packet, &[], &mut line);
        text.push_str(line.trim_start());
        text.push('\n');
    }
    text
}

fn perfetto_of(timeline: &Timeline) -> Vec<u8> {
    let mut bytes = Vec::new();
    perfetto::write(timeline, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_trace_by_hand_is_exactly_this() {
    assert_stored("perfetto.txt", &told(&perfetto_of(&by_hand())));
}

/// Time of the slices by track and depth. Fails where slices do not nest, end before they begin, or stay open.
fn slices(trace: &[u8]) -> HashMap<(u64, usize), u64> {
    // As a reader does: by time, and where times are equal in the order of the file.
    let mut events: Vec<(u64, u64, u64)> = Vec::new();
    let mut known = Vec::new();
    for packet in parts(trace, 1) {
        for track in parts(packet, 60) {
            known.push(number(track, 1).unwrap());
            assert!(number(track, 5).is_none_or(|parent| known.contains(&parent)), "parents come first");
        }
        for event in parts(packet, 11) {
            let track = number(event, 11).unwrap();
            assert!(known.contains(&track), "a track is described before its events");
            events.push((number(packet, 8).unwrap(), track, number(event, 9).unwrap()));
        }
    }
    events.sort_by_key(|event| event.0);
    let mut open: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut sums = HashMap::new();
    for (time, track, what) in events {
        let stack = open.entry(track).or_default();
        match what {
            1 => stack.push(time),
            2 => {
                let begin = stack.pop().expect("an end has its begin");
                *sums.entry((track, stack.len())).or_default() += time - begin;
            }
            other => panic!("type {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    sums
}

fn any_timeline() -> impl Strategy<Value = Timeline> {
    let step = (0u8..4, 1u64..500, 0u32..4);
    let thread = prop::collection::vec(step, 0..40);
    let at_device = (0u64..5000, 0u64..100, 0u64..900, 0usize..3);
    (prop::collection::vec(thread, 0..4), prop::collection::vec(at_device, 0..60)).prop_map(
        |(threads, requests)| {
            let mut timeline = by_hand();
            timeline.wall_ns = 40 * 500 * US;
            timeline.threads = threads.iter().zip(200..).map(|(steps, tid)| any_thread(steps, tid)).collect();
            let owners = ["the program", "the kernel", "another program: x"];
            let mut requests: Vec<Request> = requests
                .into_iter()
                .map(|(begin, queued, device, owner)| {
                    request("read", owners[owner], (begin, begin + queued, begin + queued + device))
                })
                .collect();
            requests.sort_by_key(|request| request.begin_ns);
            timeline.devices[0].requests = requests;
            timeline
        },
    )
}

fn any_thread(steps: &[(u8, u64, u32)], tid: u32) -> Thread {
    let mut thread = Thread { pid: 100, tid, name: format!("t{tid}"), ..Thread::default() };
    let mut now = u64::from(tid);
    thread.begin_ns = now * US;
    for (what, length, stack) in steps {
        let end = now + length;
        let (state, stack) = match what {
            0 => (Some(State::Running), 0),
            1 => (Some(State::Queued), 3),
            2 => (Some(State::Blocked), [2, 4][*stack as usize % 2]),
            _ => (None, 0),
        };
        if state == Some(State::Running) && stack == 0 && length % 3 > 0 {
            thread.samples.push(Sample { time_ns: (now + length / 2) * US, stack: 1 });
        }
        thread.intervals.push(interval(now, end, state, stack));
        now = end;
    }
    thread.end_ns = now * US;
    thread
}

/// Recorded time of a thread in states, in milliseconds.
fn time_ms(thread: &Thread, pick: impl Fn(&Interval) -> bool) -> f64 {
    thread.intervals.iter().filter(|i| pick(i)).map(|i| i.length_ns() as f64 / 1e6).sum()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

proptest! {
    #[test]
    fn profiles_are_valid_and_conserve_time_by_thread_and_layer(timeline in any_timeline()) {
        let profile = firefox_of(&timeline);
        prop_assert_eq!(valid(&profile), Ok(()));
        let waits = |i: &Interval| matches!(i.state, Some(State::Queued | State::Blocked));
        for (index, thread) in timeline.threads.iter().enumerate() {
            let written = &profile["threads"][index];
            let weights = numbers(&written["samples"]["weight"]);
            prop_assert!(near(weights.iter().sum(), time_ms(thread, |i| i.state.is_some())));
            let ran: u64 = numbers(&written["samples"]["threadCPUDelta"]).iter().map(|ns| *ns as u64).sum();
            prop_assert!(near(ran as f64 / 1e6, time_ms(thread, |i| i.state == Some(State::Running))));
            let rows = thread.intervals.iter().filter(|i| waits(i)).count() + thread.samples.len();
            let unseen = thread.intervals.iter().filter(|i| i.state == Some(State::Running)).count();
            let unseen = if thread.samples.is_empty() { unseen } else { 0 };
            prop_assert_eq!(weights.iter().filter(|weight| **weight > 0.0).count(), rows + unseen);
            // No CPU time is a wait's.
            let times = numbers(&written["samples"]["time"]);
            let cpu = numbers(&written["samples"]["threadCPUDelta"]);
            for wait in thread.intervals.iter().filter(|i| waits(i)) {
                let begin_ms = wait.begin_ns as f64 / 1e6;
                let at = (0..times.len()).filter(|at| near(times[*at], begin_ms) && weights[*at] > 0.0);
                prop_assert!(at.clone().count() > 0);
                prop_assert!(at.clone().any(|at| cpu[at] == 0.0));
            }
            let markers = &written["markers"];
            let begins = numbers(&markers["startTime"]);
            for (category, layer) in Layer::ALL.into_iter().enumerate() {
                let of_layer = |i: &Interval| waits(i) && timeline.stacks[i.stack as usize].layer == layer;
                let these = list(&markers["category"]).iter().zip(list(&markers["data"])).enumerate();
                let these = these.filter(|(_, (of, data))| **of == category && data["type"] == "wait");
                let sum: f64 = these.map(|(at, _)| markers["endTime"][at].as_f64().unwrap() - begins[at]).sum();
                prop_assert!(near(sum, time_ms(thread, of_layer)), "{layer:?}: {sum}");
            }
        }
        let requests = &timeline.devices[0].requests;
        let device = &profile["threads"][timeline.threads.len()]["markers"];
        prop_assert_eq!(device["length"].as_u64(), Some(requests.len() as u64));
    }

    #[test]
    fn traces_nest_and_conserve_time_by_track(timeline in any_timeline()) {
        let sums = slices(&perfetto_of(&timeline));
        let ns = |i: &Interval| i.length_ns();
        // Track 1 is the process; each thread has one track, as there are no calls.
        for (thread, track) in timeline.threads.iter().zip(2..) {
            let whole: u64 = thread.intervals.iter().map(ns).sum();
            prop_assert_eq!(sums.get(&(track, 0)).copied().unwrap_or(0), whole);
        }
        let first = 2 + timeline.threads.len() as u64;
        let depth = |depth: usize| -> u64 {
            sums.iter().filter(|((track, at), _)| *at == depth && *track >= first).map(|(_, ns)| ns).sum()
        };
        let requests = &timeline.devices[0].requests;
        let all: u64 = requests.iter().map(|r| r.done_ns - r.begin_ns).sum();
        let at_device: u64 = requests.iter().map(|r| r.done_ns - r.issued_ns).sum();
        // One finding, one note, subject and writer are as long as the run.
        let whole_run = 4 * timeline.wall_ns;
        prop_assert_eq!((depth(0), depth(1)), (all + whole_run, at_device));
    }
}

#[test]
fn many_texts_are_in_several_packets_and_only_the_first_clears() {
    let mut timeline = by_hand();
    let calls = (0..2000).map(|n| Call { name: "read", path: Some(format!("/f{n}")), ..Call::default() });
    timeline.threads[1].calls = calls.collect();
    let trace = perfetto_of(&timeline);
    let packets = parts(&trace, 1);
    let cleared: Vec<bool> = packets.iter().map(|packet| number(packet, 13) == Some(1)).collect();
    assert!(cleared[0] && !cleared[1..].contains(&true));
    let texts: usize = packets.iter().flat_map(|p| parts(p, 12)).map(|data| parts(data, 29).len()).sum();
    assert!(texts > 2000);
    assert!(packets.iter().filter(|packet| !parts(packet, 12).is_empty()).count() > 4);
}

#[test]
fn an_empty_time_line_is_a_file_all_the_same() {
    let empty = Timeline::default();
    valid(&firefox_of(&empty)).unwrap();
    // What is said of the whole run has a track of its own; it names neither subject nor writer here.
    assert!(slices(&perfetto_of(&empty)).values().all(|ns| *ns == 0));
}
