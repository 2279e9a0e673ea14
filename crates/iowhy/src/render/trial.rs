//! The screen of `iowhy doctor --try`: the verdict, each request before and after, and that the setting was restored.

use anstyle::{AnsiColor, Style};
use iowhy_core::setting::Group;
use iowhy_core::stats::Verdict;
use iowhy_core::units;

use crate::record::doctor::TrialRecord;
use crate::screen::compare::{percent, word};
use crate::screen::heading;
use iowhy_view::terminal::table::{Align, layout};
use iowhy_view::terminal::wrap::{cut, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// A screen is at least and at most so wide.
const WIDTHS: (usize, usize) = (60, 110);

/// Lays the trial out.
pub fn screen(record: &TrialRecord, width: usize) -> String {
    let width = width.clamp(WIDTHS.0, WIDTHS.1);
    let headline = wrap(&headline(record), width, "", "  ");
    let mut text = format!("{BOLD}{}{BOLD:#}\n", headline.trim_end());
    for line in heading::machine(&record.environment) {
        text.push_str(&wrap(&line, width, "  ", "    "));
    }
    text.push('\n');
    text.push_str(&table(record));
    for request in &record.requests {
        if let Some(doubt) = &request.change.doubt {
            text.push_str(&wrap(&format!("{}: {doubt}", request.label), width, "  ", "    "));
        }
    }
    text.push_str(&wrap(&back(record), width, "", "  "));
    text.push_str(&wrap(&next(record), width, "", "  "));
    let how = format!(
        "time per request: medians of {} in which both values took turns, 95 % intervals; after / before is the median of \
         the ratios within a round; a difference matters from {} on",
        units::counted(u64::from(record.rounds), "round", "rounds"),
        percent(record.threshold_share)
    );
    text.push_str(&format!("{DIM}{}{DIM:#}\n", wrap(&how, width, "", "  ").trim_end()));
    text
}

/// That the setting was restored.
fn back(record: &TrialRecord) -> String {
    let key = record.setting.key;
    if let Some((other, value)) = record.before.split_once('=') {
        return format!("`{other}` is {value} again, and holds instead of `{}`.", key.id());
    }
    let file = record
        .setting
        .file
        .as_deref()
        .filter(|_| record.members.is_empty() && key.group() != Group::FileSystem);
    match file {
        Some(file) => format!("`{file}` is {} again.", record.before),
        None if differ(record) => format!("`{}` was restored: {}.", key.id(), record.before),
        None => format!("`{}`{} is {} again.", key.id(), of(record), record.before),
    }
}

/// Whether devices had different values; then they are named with them.
fn differ(record: &TrialRecord) -> bool {
    record.members.iter().any(|member| member.value.as_ref() != Some(&record.before))
        && record.members.len() > 1
}

/// ` of vda`, ` of sda, sdb`.
fn of(record: &TrialRecord) -> String {
    let subject = record.setting.subject.as_deref();
    let names = |subject: &str| {
        if record.members.is_empty() { subject.to_owned() } else { subject.replace(' ', ", ") }
    };
    subject.map(|subject| format!(" of {}", names(subject))).unwrap_or_default()
}

/// `read_ahead_kb of vda, 128 -> 0: 1 regressed, 1 within noise`
fn headline(record: &TrialRecord) -> String {
    let count = |verdict: Verdict| {
        let touched = record.requests.iter().filter(|request| !request.control);
        touched.filter(|request| request.change.verdict == verdict).count()
    };
    let parts: Vec<String> = [
        (Verdict::Regressed, "regressed"),
        (Verdict::Improved, "improved"),
        (Verdict::WithinNoise, "within noise"),
        (Verdict::CannotTell, "inconclusive"),
    ]
    .into_iter()
    .map(|(verdict, words)| (count(verdict), words))
    .filter(|(n, _)| *n > 0)
    .map(|(n, words)| format!("{n} {words}"))
    .collect();
    let parts = if parts.is_empty() { "nothing was measured".to_owned() } else { parts.join(", ") };
    let stopped = if record.interrupted { " (interrupted)" } else { "" };
    let key = record.setting.key.id();
    if record.before.contains('=') {
        return format!("{} -> {key}={}: {parts}{stopped}", record.before, record.after);
    }
    // Devices that differ are named with their values.
    let of = if differ(record) { " of".to_owned() } else { of(record) + "," };
    format!("{key}{of} {} -> {}: {parts}{stopped}", record.before, record.after)
}

fn table(record: &TrialRecord) -> String {
    let time = |e: Option<iowhy_core::estimate::Estimate>| {
        e.map_or_else(|| "-".to_owned(), |e| units::estimate_narrow(&e))
    };
    let rows: Vec<Vec<String>> = record
        .requests
        .iter()
        .map(|request| {
            let change = &request.change;
            let label =
                if request.control { format!("{} (control)", request.label) } else { request.label.clone() };
            vec![
                cut(&label, 36),
                time(change.before),
                time(change.after),
                change.ratio.as_ref().map_or_else(|| "-".to_owned(), units::factor),
                change.ratio.as_ref().map_or_else(|| "0".to_owned(), |ratio| ratio.n.to_string()),
                verdict_word(change.verdict),
            ]
        })
        .collect();
    layout(
        &["request", "before", "after", "after / before", "n", "verdict"],
        &[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left],
        &rows,
    )
}

/// What to do about it.
fn next(record: &TrialRecord) -> String {
    let any = |verdict: Verdict| {
        record.requests.iter().any(|request| !request.control && request.change.verdict == verdict)
    };
    let keep = format!("`{}`", record.keep);
    match (any(Verdict::Improved), any(Verdict::Regressed)) {
        (true, false) => format!("to have it until the next boot: {keep}"),
        (true, true) => format!("it helps some and harms others; if those that it helps are yours: {keep}"),
        (false, true) => "there is no reason here to change it".to_owned(),
        (false, false) if any(Verdict::CannotTell) => {
            "inconclusive; a longer `--time`, or an idle machine, would decide".to_owned()
        }
        (false, false) => "nothing here speaks for or against it".to_owned(),
    }
}

/// The word of a verdict; those of change in colour.
fn verdict_word(verdict: Verdict) -> String {
    let style = match verdict {
        Verdict::Improved => AnsiColor::Green.on_default(),
        Verdict::Regressed => AnsiColor::Red.on_default(),
        Verdict::WithinNoise | Verdict::CannotTell => Style::new(),
    };
    format!("{style}{}{style:#}", word(verdict))
}

#[cfg(test)]
mod tests {
    use iowhy_core::environment::Environment;
    use iowhy_core::estimate::{Estimate, Unit};
    use iowhy_core::setting::{Key, Reading};

    use super::*;
    use crate::record::compare::ChangedCell;
    use crate::record::doctor::TriedRequest;

    fn request(label: &str, control: bool, ratio: f64, verdict: Verdict) -> TriedRequest {
        let of =
            |value: f64, unit| Some(Estimate { value, low: value * 0.99, high: value * 1.01, unit, n: 9 });
        let change = ChangedCell {
            key: label.into(),
            before_key: None,
            target: "/data".into(),
            before: of(1000.0, Unit::Nanoseconds),
            after: of(1000.0 * ratio, Unit::Nanoseconds),
            ratio: of(ratio, Unit::Ratio),
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
        anstream::adapter::strip_str(&screen(&trial(requests), 110)).to_string()
    }

    #[test]
    fn verdicts_are_counted_without_the_control_and_the_old_value_is_said_to_be_back() {
        let text = plain(vec![
            request("cold sequential", false, 2.0, Verdict::Regressed),
            request("direct", true, 0.5, Verdict::Improved),
        ]);
        assert!(text.starts_with("read_ahead_kb of vda, 128 -> 0: 1 regressed\n"), "{text}");
        assert!(text.contains("`/sys/block/vda/queue/read_ahead_kb` is 128 again."), "{text}");
        assert!(text.contains("direct (control)") && text.contains("no reason here to change"), "{text}");
        let row = text.lines().find(|line| line.starts_with("cold sequential")).unwrap();
        assert!(row.contains("2.000 [1.980, 2.020]") && row.ends_with("9  REGRESSED"), "{row}");
    }

    #[test]
    fn what_helps_comes_with_the_command_that_keeps_it() {
        let text = plain(vec![request("cold sequential", false, 0.5, Verdict::Improved)]);
        assert!(text.contains("`echo 0 | sudo tee /sys/block/vda/queue/read_ahead_kb`"), "{text}");
        let unsure = plain(vec![request("cold sequential", false, 1.0, Verdict::CannotTell)]);
        assert!(unsure.contains("inconclusive") && !unsure.contains("sudo"), "{unsure}");
        assert!(plain(Vec::new()).contains("nothing was measured"));
        // Several devices are named, with their values where these differ.
        let member = |name: &str, value: &str| Reading {
            subject: Some(name.into()),
            ..Reading::new(Key::ReadAhead, value)
        };
        let mut several = trial(Vec::new());
        several.setting.subject = Some("sda sdb".into());
        several.members = vec![member("sda", "128"), member("sdb", "128")];
        let text = anstream::adapter::strip_str(&screen(&several, 110)).to_string();
        assert!(text.starts_with("read_ahead_kb of sda, sdb, 128 -> 0: "), "{text}");
        assert!(text.contains("`read_ahead_kb` of sda, sdb is 128 again."), "{text}");
        several.members = vec![member("sda", "128"), member("sdb", "64")];
        several.before = "sda 128, sdb 64".into();
        let text = anstream::adapter::strip_str(&screen(&several, 110)).to_string();
        assert!(text.starts_with("read_ahead_kb of sda 128, sdb 64 -> 0: "), "{text}");
        assert!(text.contains("was restored: sda 128, sdb 64."), "{text}");
        // Of a pair the other half held before.
        let mut pair = trial(Vec::new());
        (pair.setting, pair.before, pair.after) =
            (Reading::new(Key::DirtyBytes, "0"), "dirty_ratio=20".into(), "8388608".into());
        let text = anstream::adapter::strip_str(&screen(&pair, 110)).to_string();
        assert!(text.starts_with("dirty_ratio=20 -> dirty_bytes=8388608: "), "{text}");
        assert!(text.contains("`dirty_ratio` is 20 again"), "{text}");
    }
}
