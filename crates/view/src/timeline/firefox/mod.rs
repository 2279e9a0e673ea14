//! The processed profile format of the Firefox Profiler, version 66: `src/types/profile.ts` and `docs-developer` of
//! <https://github.com/firefox-devtools/profiler>. Waits are samples and markers, each device a thread with a marker for a request.
//! Deliberately absent: addresses and libraries, because functions have their names already.
//! Invariant: the weights of a thread's samples sum to its recorded time, and each wait is one marker.

mod columns;
mod schema;
mod tables;

use std::io;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::Timeline;
use columns::{RawThread, active_ns};
use schema::{Category, MarkerSchema, categories, schemas};
use tables::{Shared, Tables};

/// The version of the format.
const VERSION: u32 = 66;
/// The version of the format of Gecko that comes with it; importers ignore it.
const GECKO_VERSION: u32 = 30;
/// The profiler shows this number of threads at first, the busiest ones; the others are a click away.
const SHOWN: usize = 12;
/// Shown where no clock took samples: the profiler divides by it.
const NO_CLOCK_MS: f64 = 1.0;

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// Writes a time line as JSON.
///
/// # Errors
/// Those of `out`.
pub fn write(timeline: &Timeline, out: impl io::Write) -> io::Result<()> {
    let tables = Tables::new(timeline);
    let profile = Profile {
        meta: Meta::new(timeline),
        libs: [],
        shared: tables.shared(),
        threads: Threads { timeline, tables: &tables },
        pages: [],
        counters: [],
    };
    serde_json::to_writer(out, &profile).map_err(io::Error::from)
}

#[derive(Serialize)]
struct Profile<'a> {
    meta: Meta<'a>,
    libs: [u8; 0],
    shared: Shared<'a>,
    threads: Threads<'a>,
    pages: [u8; 0],
    counters: [u8; 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    interval: f64,
    start_time: f64,
    start_time_as_clock_monotonic_nanoseconds_since_boot: u64,
    profiling_start_time: f64,
    profiling_end_time: f64,
    process_type: u8,
    product: &'a str,
    imported_from: &'a str,
    arguments: &'a str,
    platform: &'static str,
    oscpu: &'static str,
    stackwalk: u8,
    debug: bool,
    version: u32,
    preprocessed_profile_version: u32,
    symbolicated: bool,
    symbolication_not_supported: bool,
    uses_only_one_stack_type: bool,
    source_code_is_not_on_searchfox: bool,
    keep_profile_thread_order: bool,
    sample_units: SampleUnits,
    categories: Vec<Category>,
    marker_schema: Vec<MarkerSchema>,
    extra: Vec<Section<'a>>,
    initial_visible_threads: Vec<usize>,
    initial_selected_threads: Vec<usize>,
}

#[derive(Serialize)]
struct SampleUnits {
    time: &'static str,
    #[serde(rename = "eventDelay")]
    event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    thread_cpu_delta: &'static str,
}

/// A part of the panel with facts about the profile.
#[derive(Serialize)]
struct Section<'a> {
    label: &'static str,
    entries: Vec<Fact<'a>>,
}

#[derive(Serialize)]
struct Fact<'a> {
    label: String,
    format: &'static str,
    value: &'a str,
}

impl<'a> Meta<'a> {
    fn new(timeline: &'a Timeline) -> Meta<'a> {
        let interval = match timeline.clock_period_ns {
            0 => NO_CLOCK_MS,
            period => ms(period),
        };
        let fact = |label: String, value| Fact { label, format: "string", value };
        let findings =
            timeline.findings.iter().map(|finding| fact(finding.title.clone(), finding.sentence.as_str()));
        let notes = timeline.notes.iter().zip(1..).map(|(note, n)| fact(n.to_string(), note.as_str()));
        let sections = [("Findings", findings.collect()), ("About this profile", notes.collect())];
        let sections = sections.into_iter().map(|(label, entries)| Section { label, entries });
        Meta {
            interval,
            start_time: ms(timeline.start_unix_ns),
            start_time_as_clock_monotonic_nanoseconds_since_boot: timeline.start_monotonic_ns,
            profiling_start_time: 0.0,
            profiling_end_time: ms(timeline.wall_ns),
            process_type: 0,
            product: &timeline.subject,
            imported_from: &timeline.writer,
            arguments: &timeline.subject,
            platform: "Linux",
            oscpu: "Linux",
            stackwalk: 1,
            debug: false,
            version: GECKO_VERSION,
            preprocessed_profile_version: VERSION,
            symbolicated: true,
            symbolication_not_supported: true,
            uses_only_one_stack_type: true,
            source_code_is_not_on_searchfox: true,
            keep_profile_thread_order: true,
            sample_units: SampleUnits { time: "ms", event_delay: "ms", thread_cpu_delta: "ns" },
            categories: categories(),
            marker_schema: schemas(),
            extra: sections.filter(|section| !section.entries.is_empty()).collect(),
            initial_visible_threads: shown(timeline),
            initial_selected_threads: busiest(timeline).into_iter().take(1).collect(),
        }
    }
}

/// The threads, the busiest first.
fn busiest(timeline: &Timeline) -> Vec<usize> {
    let mut threads: Vec<usize> = (0..timeline.threads.len()).collect();
    threads.sort_by_cached_key(|at| (std::cmp::Reverse(active_ns(timeline, &timeline.threads[*at])), *at));
    threads
}

/// The busiest threads, and all devices.
fn shown(timeline: &Timeline) -> Vec<usize> {
    let mut threads = busiest(timeline);
    threads.truncate(SHOWN);
    threads.sort_unstable();
    threads.extend(timeline.threads.len()..timeline.threads.len() + timeline.devices.len());
    threads
}

/// Threads and devices; the columns of one are made at a time.
struct Threads<'a> {
    timeline: &'a Timeline,
    tables: &'a Tables<'a>,
}

impl Serialize for Threads<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Threads { timeline, tables } = self;
        let count = timeline.threads.len() + timeline.devices.len();
        let mut list = serializer.serialize_seq(Some(count))?;
        for (index, thread) in timeline.threads.iter().enumerate() {
            list.serialize_element(&RawThread::new(timeline, tables, thread, index == 0))?;
        }
        for device in &timeline.devices {
            list.serialize_element(&RawThread::of_device(timeline, tables, device))?;
        }
        list.end()
    }
}
