//! `iowhy tree` on the screen: rates of each phase, then the time of each call.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::estimate::Estimate;
use iowhy_core::units::{self, Bytes};

use crate::record::tree::{PhaseRecord, TreeRecord};
use crate::screen::heading::machine;
use iowhy_view::terminal::table::{Align, layout, visible_width};
use iowhy_view::terminal::wrap::{MIN_WIDTH, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Columns of a screen at most.
const MAX_WIDTH: usize = 100;

/// The whole result.
pub fn screen(record: &TreeRecord, width: usize) -> String {
    let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
    let mut text = heading(record, width);
    text.push('\n');
    text.push_str(&phases(record, width));
    text.push('\n');
    text.push_str(&calls(record));
    let _ = writeln!(
        text,
        "{DIM}n = {} rounds; ± the longer arm of the 95 % interval of the median over rounds, also of p50 and p99\n\
         of each round's calls; slowest: of all calls of all rounds{DIM:#}",
        record.rounds
    );
    for said in said(record) {
        text.push_str(&wrap(&said, width, "=> ", "   "));
    }
    if record.interrupted {
        text.push_str("interrupted: partial result\n");
    }
    text
}

fn heading(record: &TreeRecord, width: usize) -> String {
    let tree = &record.tree;
    let sizes = match tree.size_bytes.as_slice() {
        [least, middle, most] if least != most => {
            format!(" of {} to {}, half of them up to {}", Bytes(*least), Bytes(*most), Bytes(*middle))
        }
        [one, ..] => format!(" of {}", Bytes(*one)),
        [] => String::new(),
    };
    let origin = match tree.origin.as_str() {
        "found" => "only read".to_owned(),
        "kept" => format!("kept, {} of them made now", grouped(tree.made_now)),
        _ => "made for this, now removed".to_owned(),
    };
    let what = format!(
        "{} files{sizes} in {} directories, {} in all; {origin}",
        grouped(tree.files),
        grouped(tree.directories),
        Bytes(tree.bytes)
    );
    let mut text = format!("{BOLD}{}{BOLD:#}\n", wrap(&tree.path, width, "", "").trim_end());
    text.push_str(&wrap(&what, width, "  ", "  "));
    for line in machine(&record.environment) {
        text.push_str(&wrap(&line, width, "  ", "  "));
    }
    let each = record.files_each.map_or_else(String::new, |n| format!(" of {} files each", grouped(n)));
    let readers = match record.readers {
        1 => format!("1 thread{each}"),
        n => format!("{n} threads side by side{each}"),
    };
    text.push_str(&wrap(&format!("{readers}, {} order", record.order), width, "  ", "  "));
    text
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn shown(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "-".to_owned(), units::estimate_narrow)
}

/// The table of phases. What the device moved goes below where the table would be wider than the screen, and the first
/// thread's end into the record alone.
fn phases(record: &TreeRecord, width: usize) -> String {
    let several = record.readers > 1;
    for (with_first, with_device) in [(several, true), (several, false), (false, false)] {
        let text = phase_table(record, with_first, with_device);
        let fits = text.lines().all(|line| visible_width(line) <= width);
        if fits || !(with_first || with_device) {
            let below = if with_device { String::new() } else { devices(record) };
            return if below.is_empty() { text } else { text + &wrap(&below, width, "  ", "  ") };
        }
    }
    String::new()
}

fn phase_table(record: &TreeRecord, with_first: bool, with_device: bool) -> String {
    let mut header = vec!["phase", "files/s", "throughput"];
    if with_first {
        header.push("first done");
    }
    header.push("last done");
    if with_device {
        header.push("device");
    }
    let mut align = vec![Align::Right; header.len()];
    align[0] = Align::Left;
    let rows: Vec<Vec<String>> = record
        .phases
        .iter()
        .map(|phase| {
            // Of a sync there are no files, of a stat no bytes.
            let rate = phase.files_per_second.as_ref().filter(|_| phase.files > 0);
            let mut row = vec![name(phase), shown(rate), shown(phase.throughput.as_ref())];
            if with_first {
                row.push(shown(phase.first_done.as_ref()));
            }
            row.push(shown(phase.last_done.as_ref()));
            if with_device {
                row.push(device(phase));
            }
            row
        })
        .collect();
    layout(&header, &align, &rows)
}

/// What the device moved, in a sentence.
fn devices(record: &TreeRecord) -> String {
    let moved: Vec<String> = record
        .phases
        .iter()
        .map(|phase| (phase, device(phase)))
        .filter(|(_, moved)| moved != NOTHING && moved != UNKNOWN)
        .map(|(phase, moved)| format!("{} {moved}", phase.phase))
        .collect();
    match moved.as_slice() {
        [] => String::new(),
        moved => format!("device in the last round, all processes: {}", moved.join("; ")),
    }
}

/// No byte moved.
const NOTHING: &str = "nothing";
/// There are no counters.
const UNKNOWN: &str = "-";

fn name(phase: &PhaseRecord) -> String {
    match (&phase.state, phase.state_verified) {
        (Some(state), Some(true)) => format!("{}, {state} ✓", phase.phase),
        (Some(state), Some(false)) => format!("{}, not {state}", phase.phase),
        (Some(state), None) => format!("{}, {state}?", phase.phase),
        (None, _) => phase.phase.clone(),
    }
}

/// What the device moved in the last round.
fn device(phase: &PhaseRecord) -> String {
    let Some(last) = phase.samples.last() else { return UNKNOWN.to_owned() };
    match (last.device_read_bytes, last.device_write_bytes) {
        (Some(0), Some(0)) => NOTHING.to_owned(),
        (Some(read), Some(0)) => format!("{} read", Bytes(read)),
        (Some(0), Some(written)) => format!("{} written", Bytes(written)),
        (Some(read), Some(written)) => format!("{} read, {} written", Bytes(read), Bytes(written)),
        _ => UNKNOWN.to_owned(),
    }
}

fn calls(record: &TreeRecord) -> String {
    let rows: Vec<Vec<String>> = record
        .phases
        .iter()
        .flat_map(|phase| phase.operations.iter().map(move |call| (phase, call)))
        .filter(|(_, call)| call.n > 0)
        .map(|(phase, call)| {
            vec![
                phase.phase.clone(),
                call.id.clone(),
                grouped(call.n),
                shown(call.mean.as_ref()),
                shown(call.p50.as_ref()),
                shown(call.p99.as_ref()),
                units::time(call.max_ns as f64),
            ]
        })
        .collect();
    let mut align = [Align::Right; 7];
    align[..2].fill(Align::Left);
    layout(&["phase", "call", "calls", "mean", "p50", "p99", "slowest"], &align, &rows)
}

/// What follows, in sentences.
fn said(record: &TreeRecord) -> Vec<String> {
    let mut said = Vec::new();
    let find = |name: &str| record.phases.iter().find(|phase| phase.phase == name);
    if let Some(read) = find("read")
        && let Some(together) = &read.calls_together
    {
        let parts: Vec<String> = read
            .operations
            .iter()
            .filter_map(|call| Some(format!("{} {}", call.id, units::share(call.share.as_ref()?))))
            .collect();
        let names = match (read.state.as_deref(), read.state_verified) {
            (Some("cold"), Some(true)) => {
                " Its data was cold; its name and inode were in the kernel's caches, which only root could empty, and \
                 for the whole machine."
            }
            _ => "",
        };
        said.push(format!(
            "Reading a file takes {}: {}.{names}",
            units::estimate(together),
            parts.join(", ")
        ));
    }
    if let Some(settled) = &record.settled {
        said.push(format!(
            "Made and on the device: {} files; the sync is {} of that time.",
            units::estimate(&settled.files_per_second),
            units::share(&settled.sync_share)
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        assert_eq!([grouped(7), grouped(1234), grouped(1_200_000)], ["7", "1,234", "1,200,000"]);
    }
}
