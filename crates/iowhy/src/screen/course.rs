//! What happened over time: phases, pauses and devices that became slower in words; on a page, strips of the program, of the control group and of the machine.

use iowhy_core::profile::{Course, GroupDeviceCourse};
use iowhy_core::{text, units};
use iowhy_diagnose::phases::Whose;
use iowhy_view::document::{Chart, Part, Section, Table};
use iowhy_view::svg::strips::{self, Mark, Strip};

use super::figures::{bytes, percent_of, plural, visible};
use crate::record::phases::{OverTime, PaceRecord, SlowerDevice, StretchRecord};

/// Fewer steps make no picture.
const MIN_STEPS: usize = 5;
/// Phases and pauses that are told on a screen.
const MAX_PHASES: usize = 5;
const MAX_PAUSES: usize = 3;
/// Devices with strips of their own, those with most time busy.
const MAX_DEVICES: usize = 3;
/// With fewer requests in flight than this there is one.
const ONE_AT_A_TIME: f64 = 1.05;
/// Rows of the table below the strips: steps are added up.
const MAX_ROWS: usize = 30;

fn seconds(s: f64) -> String {
    units::time(s * 1e9)
}

/// Phases, pauses and slower devices, a line each.
pub(crate) fn lines(whose: Whose, over_time: &OverTime) -> Vec<(String, String)> {
    let OverTime { phases, pauses, slower_devices } = over_time;
    let more = |all: usize, most: usize| match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("; {more} more: --json"),
    };
    let mut lines = Vec::new();
    if !phases.is_empty() {
        let told: Vec<String> = phases.iter().take(MAX_PHASES).map(phase).collect();
        let who = match whose {
            Whose::Program => "",
            Whose::Group => "control group: ",
            Whose::Devices => "all devices: ",
        };
        let told = format!("{who}{}{}", told.join("; "), more(phases.len(), MAX_PHASES));
        lines.push(("phases".to_owned(), told));
    }
    if !pauses.is_empty() {
        let told: Vec<String> = pauses.iter().take(MAX_PAUSES).map(|of| pause(whose, of)).collect();
        lines.push(("pauses".to_owned(), told.join("; ") + &more(pauses.len(), MAX_PAUSES)));
    }
    lines.extend(slower_devices.iter().take(MAX_DEVICES).map(|of| ("slower".to_owned(), slower(of))));
    lines
}

/// Why devices become slower: which of these it is, no counter says.
const MAY_BE: &str = "a volume's burst credits are used up, an SSD's write cache is full, thermal throttling, or other users of the same storage";

/// `vda from 12.3 s on: 3,002 requests/s (middle half 2,990 to 3,010, n = 60 steps) instead of ...`
fn slower(of: &SlowerDevice) -> String {
    let SlowerDevice { device, at_s, before, after } = of;
    let depth = match after.in_flight {
        n if n < ONE_AT_A_TIME => "one at a time".to_owned(),
        n => format!("with as many in flight ({n:.1})"),
    };
    let whole = |n: f64| units::count(n.round() as u64);
    let spread = |of: &PaceRecord| {
        format!("(middle half {} to {}, n = {} steps)", whole(of.low), whole(of.high), of.steps)
    };
    format!(
        "{device} from {} on: {} requests/s {} instead of {} {}, of the same size ({}) and {depth}; possible causes: {MAY_BE}",
        seconds(*at_s),
        whole(after.requests_per_second),
        spread(after),
        whole(before.requests_per_second),
        spread(before),
        bytes(after.request_bytes as u64)
    )
}

/// `to 4.2 s reads 310 MiB/s`
fn phase(of: &StretchRecord) -> String {
    let rate = |bytes: u64| units::rate_bytes(bytes as f64 / of.length_s().max(1e-9));
    let mut does = Vec::new();
    if of.read_bytes > 0 {
        does.push(format!("reads {}", rate(of.read_bytes)));
    }
    if of.written_bytes > 0 {
        does.push(format!("writes {}", rate(of.written_bytes)));
    }
    if of.syncs > 0 {
        does.push(plural(of.syncs, "sync", "syncs"));
    }
    let does = if does.is_empty() { "no reads or writes".to_owned() } else { does.join(", ") };
    format!("to {} {does}", seconds(of.end_s))
}

/// `1.2 s at 6.1 s (some task waited for I/O 98 % of it; vda busy 100 %, 410 MiB written)`
fn pause(whose: Whose, of: &StretchRecord) -> String {
    let waited = |share: Option<f64>, what: &str| {
        share
            .filter(|share| visible(*share))
            .map(|share| format!("tasks waited for {what} {} of it", percent_of(share)))
    };
    let mut about: Vec<String> = waited(of.io_waited_share, "I/O")
        .into_iter()
        .chain(waited(of.memory_waited_share, "memory"))
        .collect();
    if let (Some(device), Some(busy)) = (&of.device, of.device_busy_share) {
        let moved = [(of.device_read_bytes, "read"), (of.device_written_bytes, "written")];
        let moved = moved
            .into_iter()
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(n, what)| format!(", {} {what}", bytes(n)));
        about.push(format!("{device} busy {}{}", percent_of(busy), moved.collect::<String>()));
    }
    let nothing = match whose {
        Whose::Program => "no call returned",
        Whose::Group => "the control group made no request",
        Whose::Devices => "no request ended",
    };
    format!("{nothing} for {} at {} ({})", seconds(of.length_s()), seconds(of.begin_s), about.join("; "))
}

/// The section of a page; empty where there are too few steps.
pub(crate) fn section(course: Option<&Course>, whose: Whose, over_time: &OverTime) -> Section {
    let Some(course) = course.filter(|course| course.ends_ns.len() >= MIN_STEPS) else {
        return Section::default();
    };
    let rows = rows(course);
    let ends: Vec<f64> = course.ends_ns.iter().map(|ns| *ns as f64 / 1e9).collect();
    let strips: Vec<Strip> = rows
        .iter()
        .map(|row| Strip {
            name: row.name.clone(),
            values: row.values.clone(),
            top: row.limit.unwrap_or_else(|| row.values.iter().copied().fold(0.0, f64::max)),
        })
        .collect();
    let OverTime { phases, pauses, .. } = over_time;
    let marks: Vec<Mark> =
        pauses.iter().map(|of| Mark { begin: of.begin_s, end: of.end_s, tip: pause(whose, of) }).collect();
    let words = |row: usize, value: f64| (rows[row].words)(value);
    let alt = alt(&ends, phases, pauses);
    let svg = strips::chart(&strips, &ends, &marks, &seconds, &words, &alt);
    let what = match whose {
        Whose::Program => "The program and its machine",
        Whose::Group => "The control group and its machine",
        Whose::Devices => "The machine",
    };
    let title = format!("{what} over time; the figure on the left is that of the upper edge");
    let chart = Chart { title, alt, svg, table: table(course, &rows) };
    let mut parts = vec![Part::Chart(chart)];
    let told = lines(whose, over_time);
    if !told.is_empty() {
        parts.insert(0, Part::Facts(told));
    }
    if whose != Whose::Devices {
        let note = "Devices, waits and memory are those of the whole machine, whoever caused them.";
        parts.push(Part::Note(note.to_owned()));
    }
    if let Some(group) = &course.group {
        let note = "counted where a request is made, also one that a limit holds back";
        parts.push(Part::Note(format!("The control group is {}: {note}.", text::visible(&group.path))));
    }
    Section::new("Over time", parts)
}

fn alt(ends: &[f64], phases: &[StretchRecord], pauses: &[StretchRecord]) -> String {
    let length = seconds(ends.last().copied().unwrap_or(0.0));
    match (phases.len(), pauses.len()) {
        (0, 0) => length,
        (phases, pauses) => {
            let phases = plural(phases.max(1) as u64, "phase", "phases");
            format!("{length}: {phases}, {}", plural(pauses as u64, "pause", "pauses"))
        }
    }
}

/// A quantity over the steps.
struct Row {
    name: String,
    values: Vec<f64>,
    /// A value that it cannot exceed.
    limit: Option<f64>,
    words: fn(f64) -> String,
}

fn rows(course: &Course) -> Vec<Row> {
    let lengths: Vec<f64> = course.lengths_ns().map(|ns| (ns as f64).max(1.0)).collect();
    let each = |column: &[u64], unit: f64| -> Vec<f64> {
        column.iter().zip(&lengths).map(|(value, ns)| *value as f64 * unit / ns).collect()
    };
    let mut rows = Vec::new();
    let mut row = |name: String, values: Vec<f64>, limit: Option<f64>, words: fn(f64) -> String| {
        // A damaged record may have columns of other lengths.
        if values.len() == lengths.len() && values.iter().any(|value| *value > 0.0) {
            rows.push(Row { name, values, limit, words });
        }
    };
    let rate = |column: &[u64]| each(column, 1e9);
    row("program reads".to_owned(), rate(&course.read_bytes), None, units::rate_bytes);
    row("program writes".to_owned(), rate(&course.written_bytes), None, units::rate_bytes);
    row("program syncs".to_owned(), rate(&course.syncs), None, units::count_rate);
    let share =
        |column: &[u64]| -> Vec<f64> { each(column, 1.0).into_iter().map(|share| share.min(1.0)).collect() };
    if let Some(group) = &course.group {
        for device in busiest(group.devices.iter().flatten()) {
            let name = &device.name;
            row(format!("group reads {name}"), rate(&device.read_bytes), None, units::rate_bytes);
            row(format!("group read operations {name}"), rate(&device.reads), None, units::count_rate);
            row(format!("group writes {name}"), rate(&device.written_bytes), None, units::rate_bytes);
            row(format!("group write operations {name}"), rate(&device.writes), None, units::count_rate);
        }
        row("group waits for I/O".to_owned(), share(&group.io_some_ns), Some(1.0), percent_of);
        row("group waits for memory".to_owned(), share(&group.memory_some_ns), Some(1.0), percent_of);
    }
    row("tasks wait for I/O".to_owned(), share(&course.io_some_ns), Some(1.0), percent_of);
    row("tasks wait for memory".to_owned(), share(&course.memory_some_ns), Some(1.0), percent_of);
    row("tasks wait for a CPU".to_owned(), share(&course.cpu_some_ns), Some(1.0), percent_of);
    let mut devices: Vec<_> = course.devices.iter().collect();
    devices.sort_by_key(|device| std::cmp::Reverse(device.busy_ns.iter().sum::<u64>()));
    for device in devices.into_iter().take(MAX_DEVICES) {
        let name = &device.name;
        row(format!("{name} reads"), rate(&device.read_bytes), None, units::rate_bytes);
        row(format!("{name} writes"), rate(&device.written_bytes), None, units::rate_bytes);
        row(format!("{name} requests in flight"), each(&device.request_ns, 1.0), None, |mean| {
            format!("{mean:.1}")
        });
        row(format!("{name} busy"), share(&device.busy_ns), Some(1.0), percent_of);
    }
    let level = |column: &[u64]| column.iter().map(|bytes| *bytes as f64).collect();
    row("dirty memory".to_owned(), level(&course.dirty_bytes), None, size);
    row("memory being written".to_owned(), level(&course.writeback_bytes), None, size);
    row("available memory".to_owned(), level(&course.available_bytes), None, size);
    rows
}

/// The devices that a group moved most bytes at.
fn busiest<'a>(devices: impl Iterator<Item = &'a GroupDeviceCourse>) -> Vec<&'a GroupDeviceCourse> {
    let moved = |device: &GroupDeviceCourse| -> u64 {
        device.read_bytes.iter().chain(&device.written_bytes).fold(0, |sum, bytes| sum.saturating_add(*bytes))
    };
    let mut devices: Vec<_> = devices.collect();
    devices.sort_by_key(|device| std::cmp::Reverse(moved(device)));
    devices.truncate(MAX_DEVICES);
    devices
}

fn size(value: f64) -> String {
    bytes(value.max(0.0) as u64)
}

/// Means over neighbouring steps.
fn table(course: &Course, rows: &[Row]) -> Table {
    let headings =
        std::iter::once("#until".to_owned()).chain(rows.iter().map(|row| format!("#{}", row.name)));
    let mut table = Table::new(headings);
    let lengths: Vec<f64> = course.lengths_ns().map(|ns| ns as f64).collect();
    let each = course.ends_ns.len().div_ceil(MAX_ROWS).max(1);
    for (number, ends) in course.ends_ns.chunks(each).enumerate() {
        let steps = number * each..number * each + ends.len();
        let whole: f64 = lengths[steps.clone()].iter().sum();
        let mean = |row: &Row| {
            let sum: f64 =
                row.values[steps.clone()].iter().zip(&lengths[steps.clone()]).map(|(v, ns)| v * ns).sum();
            (row.words)(sum / whole.max(1.0))
        };
        let until = seconds(ends.last().map_or(0.0, |ns| *ns as f64 / 1e9));
        table.row(std::iter::once(until).chain(rows.iter().map(mean)));
    }
    table
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::{CourseStep, DeviceStep, GroupStep};

    use super::*;

    const STEP_NS: u64 = 100_000_000;

    fn device<const N: usize>(counts: [u64; N]) -> DeviceStep<N> {
        DeviceStep { name: "vda".to_owned(), stacked: false, counts }
    }

    fn course() -> Course {
        let mut course = Course::default();
        for n in 1..=80u64 {
            course.push(CourseStep {
                end_ns: n * STEP_NS,
                own: Some([1, if n <= 40 { 1 << 20 } else { 0 }, 1, if n > 40 { 2 << 20 } else { 0 }, 0]),
                stalls: Some([STEP_NS / 4, 0, 0, 0]),
                memory: Some([n, 0, 1 << 30]),
                devices: vec![device([8, 1 << 20, 0, 0, 8, 2 * STEP_NS, STEP_NS])],
                group: Some(GroupStep {
                    path: "app\u{1b}".to_owned(),
                    stalls: Some([STEP_NS / 2, 0]),
                    devices: Some(vec![device([4, 1 << 19, 0, 0])]),
                }),
            });
        }
        course
    }

    fn stretch(begin_s: f64, end_s: f64) -> StretchRecord {
        StretchRecord {
            begin_s,
            end_s,
            read_bytes: 10 << 20,
            syncs: 1,
            io_waited_share: Some(0.98),
            device: Some("vda".to_owned()),
            device_busy_share: Some(1.0),
            device_written_bytes: 410 << 20,
            ..StretchRecord::default()
        }
    }

    fn over(phases: &[StretchRecord], pauses: &[StretchRecord]) -> OverTime {
        OverTime { phases: phases.to_vec(), pauses: pauses.to_vec(), ..OverTime::default() }
    }

    #[test]
    fn a_slower_device_is_told_with_its_demand() {
        let pace = |requests_per_second, in_flight| PaceRecord {
            requests_per_second,
            low: requests_per_second,
            high: requests_per_second,
            steps: 30,
            request_bytes: 4096.0,
            in_flight,
        };
        let told = |in_flight| {
            let device = "vda".to_owned();
            let (before, after) = (pace(6010.4, in_flight), pace(3001.8, in_flight));
            let slower_devices = vec![SlowerDevice { device, at_s: 12.34, before, after }];
            lines(Whose::Devices, &OverTime { slower_devices, ..OverTime::default() })
        };
        let (name, line) = &told(8.04)[0];
        let begins = "vda from 12.3 s on: 3,002 requests/s (middle half 3,002 to 3,002, n = 30 steps) instead of 6,010 \
                      (middle half 6,010 to 6,010, n = 30 steps), of the same size (4 KiB) and with as many in flight (8.0); possible causes: ";
        assert!(name == "slower" && line.starts_with(begins), "{line}");
        assert!(told(1.0)[0].1.contains("and one at a time; possible causes: "));
    }

    #[test]
    fn phases_and_pauses_are_sentences() {
        let told = lines(
            Whose::Program,
            &over(
                &[stretch(0.0, 2.0), StretchRecord { end_s: 9.0, ..StretchRecord::default() }],
                &[stretch(6.1, 7.3)],
            ),
        );
        assert_eq!(told[0].1, "to 2.00 s reads 5.00 MiB/s, 1 sync; to 9.00 s no reads or writes");
        assert_eq!(
            told[1].1,
            "no call returned for 1.20 s at 6.10 s (tasks waited for I/O 98 % of it; vda busy 100 %, 410 MiB written)"
        );
        assert!(lines(Whose::Program, &OverTime::default()).is_empty());
        let many = vec![stretch(0.0, 1.0); MAX_PHASES + 2];
        assert!(lines(Whose::Program, &over(&many, &[]))[0].1.ends_with("; 2 more: --json"));
        for (whose, phase, pause) in [
            (
                Whose::Group,
                "control group: to 2.00 s reads",
                "the control group made no request for 1.20 s at",
            ),
            (Whose::Devices, "all devices: to 2.00 s reads", "no request ended for 1.20 s at 6.10 s"),
        ] {
            let told = lines(whose, &over(&[stretch(0.0, 2.0)], &[stretch(6.1, 7.3)]));
            assert!(told[0].1.starts_with(phase) && told[1].1.starts_with(pause), "{told:?}");
        }
    }

    #[test]
    fn a_page_has_strips_of_what_is_not_always_0_and_a_table_that_is_short() {
        let section = section(
            Some(&course()),
            Whose::Program,
            &over(&[stretch(0.0, 4.0), stretch(4.0, 8.0)], &[stretch(6.1, 7.3)]),
        );
        let chart = section
            .parts
            .iter()
            .find_map(|part| if let Part::Chart(chart) = part { Some(chart) } else { None });
        let chart = chart.unwrap();
        assert!(chart.svg.contains("vda requests in flight") && !chart.svg.contains("wait for memory"));
        assert!(
            chart.svg.contains("group reads vda") && !chart.svg.contains("group writes"),
            "{}",
            chart.svg
        );
        let notes: Vec<&String> = section
            .parts
            .iter()
            .filter_map(|part| if let Part::Note(note) = part { Some(note) } else { None })
            .collect();
        assert!(notes.iter().any(|note| note.contains("The control group is app\\u{1b}")), "{notes:?}");
        assert!(chart.svg.contains("paused") && chart.alt == "8.00 s: 2 phases, 1 pause", "{}", chart.alt);
        assert!((2..=MAX_ROWS).contains(&chart.table.rows.len()));
        assert!(super::section(None, Whose::Program, &OverTime::default()).is_empty());
    }
}
