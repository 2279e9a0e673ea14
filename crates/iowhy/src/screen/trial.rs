//! `doctor --try`: the verdict, each request before and after, and that the setting was restored.

use iowhy_core::estimate::Estimate;
use iowhy_core::setting::Group;
use iowhy_core::stats::Verdict;
use iowhy_core::units;
use iowhy_view::document::{Cell, Chapter, Cut, Detail, Part, Section, Shape, Table};

use super::compare::{self, percent};
use super::heading;
use crate::record::doctor::TrialRecord;

/// The chapter.
pub fn chapter(record: &TrialRecord) -> Chapter {
    let doubts = record
        .requests
        .iter()
        .filter_map(|request| Some(format!("{}: {}", request.label, request.change.doubt.as_ref()?)));
    let note = format!(
        "time per request: medians of {} with both values in turn, 95 % intervals; after / before: median of the ratios \
         within a round; visible: the smallest change that would have been reported (never below {})",
        units::counted(u64::from(record.rounds), "round", "rounds"),
        percent(record.threshold_share)
    );
    Chapter {
        title: headline(record),
        facts: heading::machine(&record.environment),
        sections: vec![
            Section::quiet(
                "Requests",
                vec![Part::Table(table(record)), Part::Remarks(doubts.collect()), Part::Note(note)],
            ),
            Section::quiet("What to do", vec![Part::Text(restored(record)), Part::Advice(next(record))]),
        ],
        ..Chapter::default()
    }
}

/// That the setting was restored.
fn restored(record: &TrialRecord) -> String {
    let key = record.setting.key;
    if let Some((other, value)) = record.before.split_once('=') {
        return format!("`{other}` is {value} again and replaces `{}`.", key.id());
    }
    let file = record
        .setting
        .file
        .as_deref()
        .filter(|_| record.members.is_empty() && key.group() != Group::FileSystem);
    match file {
        Some(file) => format!("`{file}` is {} again.", record.before),
        None if differ(record) => format!("`{}` was restored: {}.", key.id(), record.before),
        None => format!("`{}`{} is {} again.", key.id(), subject(record), record.before),
    }
}

/// Whether devices had different values; then they are named with them.
fn differ(record: &TrialRecord) -> bool {
    record.members.iter().any(|member| member.value.as_ref() != Some(&record.before))
        && record.members.len() > 1
}

/// ` of vda`, ` of sda, sdb`.
fn subject(record: &TrialRecord) -> String {
    let subject = record.setting.subject.as_deref();
    let names = |subject: &str| {
        if record.members.is_empty() { subject.to_owned() } else { subject.replace(' ', ", ") }
    };
    subject.map(|subject| format!(" of {}", names(subject))).unwrap_or_default()
}

/// `read_ahead_kb of vda, 128 -> 0: 1 regressed, 1 within noise`
fn headline(record: &TrialRecord) -> String {
    let changed = record.requests.iter().filter(|request| !request.control);
    let parts = match Verdict::counted(changed.map(|request| request.change.verdict)) {
        none if none.is_empty() => "nothing was measured".to_owned(),
        parts => parts,
    };
    let stopped = if record.interrupted { " (interrupted)" } else { "" };
    let key = record.setting.key.id();
    if record.before.contains('=') {
        return format!("{} -> {key}={}: {parts}{stopped}", record.before, record.after);
    }
    // Devices that differ are named with their values.
    let of = if differ(record) { " of".to_owned() } else { subject(record) + "," };
    format!("{key}{of} {} -> {}: {parts}{stopped}", record.before, record.after)
}

fn table(record: &TrialRecord) -> Table {
    let mut table =
        Table::new(["request", "#before", "#after", "#after / before", "#visible", "#n", "verdict"]);
    let time = |e: Option<&Estimate>| e.map_or_else(|| "-".to_owned(), |e| Detail::Screen.estimate(e));
    for request in &record.requests {
        let change = &request.change;
        let control = if request.control { " (control)" } else { "" };
        table.row([
            Cell::from(format!("{}{control}", request.label)),
            time(change.before.as_ref()).into(),
            time(change.after.as_ref()).into(),
            change.after_over_before.as_ref().map_or_else(|| "-".to_owned(), units::factor).into(),
            compare::visible(change.after_over_before.as_ref(), record.threshold_share).into(),
            change.after_over_before.as_ref().map_or(0, |ratio| ratio.n).to_string().into(),
            compare::cell(change.verdict, ""),
        ]);
    }
    let shape = |without: &[&'static str]| Shape { bar: 0, items: 0, without: without.to_vec() };
    table.shapes = vec![
        shape(&[]),
        shape(&["n"]),
        shape(&["n", "before", "after"]),
        shape(&["n", "before", "after", "visible"]),
    ];
    table.cut = Some(Cut::End);
    table
}

/// What to do about it.
fn next(record: &TrialRecord) -> String {
    let any = |verdict: Verdict| {
        record.requests.iter().any(|request| !request.control && request.change.verdict == verdict)
    };
    let keep = format!("`{}`", record.keep);
    match (any(Verdict::Improved), any(Verdict::Regressed)) {
        (true, false) => format!("To keep the new value until the next boot: {keep}"),
        (true, true) => {
            format!("Some requests get faster, others slower. If your program makes the faster ones: {keep}")
        }
        (false, true) => "Do not change it: requests get slower.".to_owned(),
        (false, false) if any(Verdict::Inconclusive) => {
            "Inconclusive: repeat it with a longer `--time`, or on an idle machine.".to_owned()
        }
        (false, false) => "No reason to change it: no request changed.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::environment::Environment;
    use iowhy_core::estimate::{Estimate, Unit};
    use iowhy_core::setting::{Key, Reading};

    use super::*;
    use crate::record::compare::ChangedCell;
    use crate::record::doctor::TriedRequest;

    fn shown(record: &TrialRecord) -> String {
        anstream::adapter::strip_str(&crate::screen::text(&chapter(record), 110)).to_string()
    }

    fn request(label: &str, control: bool, ratio: f64, verdict: Verdict) -> TriedRequest {
        let of =
            |value: f64, unit| Some(Estimate { value, low: value * 0.99, high: value * 1.01, unit, n: 9 });
        let change = ChangedCell {
            key: label.into(),
            before_key: None,
            target: "/data".into(),
            before: of(1000.0, Unit::Nanoseconds),
            after: of(1000.0 * ratio, Unit::Nanoseconds),
            after_over_before: of(ratio, Unit::Ratio),
            verdict,
            layer: None,
            layer_share: None,
            doubt: None,
        };
        TriedRequest { label: label.into(), control, change }
    }

    fn trial(requests: Vec<TriedRequest>) -> TrialRecord {
        let file = Some("/sys/block/vda/queue/read_ahead_kb".to_owned());
        TrialRecord {
            schema: 1,
            kind: crate::record::Kind::TrialOfASetting,
            iowhy: "0".into(),
            command: String::new(),
            path: "/data".into(),
            environment: Environment::default(),
            warnings: Vec::new(),
            setting: Reading { subject: Some("vda".into()), file, ..Reading::new(Key::ReadAhead, "128") },
            before: "128".into(),
            after: "0".into(),
            keep: "echo 0 | sudo tee /sys/block/vda/queue/read_ahead_kb".into(),
            members: Vec::new(),
            put_back: true,
            rounds: 9,
            interrupted: false,
            seed: 1,
            threshold_share: 0.05,
            requests,
            cells_before: Vec::new(),
            cells_after: Vec::new(),
        }
    }

    fn plain(requests: Vec<TriedRequest>) -> String {
        shown(&trial(requests))
    }

    #[test]
    fn verdicts_are_counted_without_the_control_and_the_old_value_is_said_to_be_back() {
        let text = plain(vec![
            request("cold sequential", false, 2.0, Verdict::Regressed),
            request("direct", true, 0.5, Verdict::Improved),
        ]);
        assert!(text.starts_with("read_ahead_kb of vda, 128 -> 0: 1 regressed\n"), "{text}");
        assert!(text.contains("`/sys/block/vda/queue/read_ahead_kb` is 128 again."), "{text}");
        assert!(text.contains("direct (control)") && text.contains("Do not change it"), "{text}");
        let row = text.lines().find(|line| line.starts_with("cold sequential")).unwrap();
        assert!(row.contains("2.000 [1.980, 2.020]") && row.ends_with("9  REGRESSED"), "{row}");
    }

    #[test]
    fn what_helps_comes_with_the_command_that_keeps_it() {
        let text = plain(vec![request("cold sequential", false, 0.5, Verdict::Improved)]);
        assert!(text.contains("`echo 0 | sudo tee /sys/block/vda/queue/read_ahead_kb`"), "{text}");
        let unsure = plain(vec![request("cold sequential", false, 1.0, Verdict::Inconclusive)]);
        assert!(unsure.contains("Inconclusive") && !unsure.contains("sudo"), "{unsure}");
        assert!(plain(Vec::new()).contains("nothing was measured"));
        // Several devices are named, with their values where these differ.
        let member = |name: &str, value: &str| Reading {
            subject: Some(name.into()),
            ..Reading::new(Key::ReadAhead, value)
        };
        let mut several = trial(Vec::new());
        several.setting.subject = Some("sda sdb".into());
        several.members = vec![member("sda", "128"), member("sdb", "128")];
        let text = shown(&several);
        assert!(text.starts_with("read_ahead_kb of sda, sdb, 128 -> 0: "), "{text}");
        assert!(text.contains("`read_ahead_kb` of sda, sdb is 128 again."), "{text}");
        several.members = vec![member("sda", "128"), member("sdb", "64")];
        several.before = "sda 128, sdb 64".into();
        let text = shown(&several);
        assert!(text.starts_with("read_ahead_kb of sda 128, sdb 64 -> 0: "), "{text}");
        assert!(text.contains("was restored: sda 128, sdb 64."), "{text}");
        // Of a pair the other half held before.
        let mut pair = trial(Vec::new());
        (pair.setting, pair.before, pair.after) =
            (Reading::new(Key::DirtyBytes, "0"), "dirty_ratio=20".into(), "8388608".into());
        let text = shown(&pair);
        assert!(text.starts_with("dirty_ratio=20 -> dirty_bytes=8388608: "), "{text}");
        assert!(text.contains("`dirty_ratio` is 20 again"), "{text}");
    }
}
