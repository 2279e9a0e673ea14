//! The screen of `iowhy doctor`: rights, then every setting in its group: value, and meaning.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::setting::{Group, Key};

use crate::record::doctor::{DoctorRecord, RightsRecord, SettingRecord};
use crate::screen::heading;
use crate::screen::remedies::{explained, with_sudo};
use iowhy_view::terminal::wrap::{MAX_WIDTH, MIN_WIDTH, cut, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Columns of names and of values; the rest says what they mean.
const NAME: usize = 26;
const VALUE: usize = 16;

/// Lays the visit out.
pub fn screen(record: &DoctorRecord, width: usize) -> String {
    let width = width.clamp(MIN_WIDTH.max(NAME + VALUE + 20), MAX_WIDTH);
    let mut text = format!("{BOLD}{}{BOLD:#}\n", cut(&record.path, width));
    for line in heading::machine(&record.environment) {
        text.push_str(&wrap(&line, width, "  ", "    "));
    }
    text.push_str(&wrap(&headline(&record.settings), width, "", "  "));
    text.push_str(&rights(&record.rights, record.environment.privileged, width));
    for (group, title) in [
        (Group::Cpu, "CPU"),
        (Group::Memory, "memory"),
        (Group::Queue, "device queue"),
        (Group::FileSystem, "file system"),
        (Group::ControlGroup, "control group"),
    ] {
        text.push_str(&title_line(&devices(group, title, &record.settings)));
        let of_group: Vec<&SettingRecord> = record.settings.iter().filter(|s| s.group == group).collect();
        for setting in &of_group {
            text.push_str(&row(setting, &of_group, width));
        }
        if of_group.is_empty() {
            let why = match (group, &record.no_device) {
                (Group::Queue, Some(why)) => format!("none: {why}"),
                _ => "none: the path is a device".to_owned(),
            };
            text.push_str(&wrap(&why, width, "  ", "    "));
        }
    }
    text.push_str(&footnote(&record.settings, width));
    text
}

/// How many settings are judged, and how.
fn headline(settings: &[SettingRecord]) -> String {
    let judged = settings.iter().filter(|setting| setting.judgement.is_some()).count();
    let unread = settings.iter().filter(|setting| setting.reading.value.is_none()).count();
    let unread = if unread == 0 { String::new() } else { format!(", {unread} could not be read") };
    let of = settings.len();
    match judged {
        0 => format!(
            "{of} settings: none that could be read costs or hides anything that is documented{unread}"
        ),
        n => format!("{n} of {of} settings cost, limit or hide something, or may{unread}"),
    }
}

/// The title of the queues names their devices where they are several; rows name them where they differ.
fn devices(group: Group, title: &str, settings: &[SettingRecord]) -> String {
    // Read-ahead may be that of a file system or of a stack; schedulers are of every device.
    let of = settings.iter().filter(|setting| group == Group::Queue && setting.reading.key == Key::Scheduler);
    let subjects: Vec<&str> = of.filter_map(|setting| setting.reading.subject.as_deref()).collect();
    let mut names: Vec<&str> = subjects.iter().flat_map(|subject| subject.split(' ')).collect();
    names.sort_unstable();
    if names.len() < 2 { title.to_owned() } else { format!("{title} of {}", names.join(", ")) }
}

fn title_line(title: &str) -> String {
    let line = if title.chars().count() > NAME {
        cut(title, NAME + VALUE + 20)
    } else {
        format!("{title:<NAME$}  {:<VALUE$}  meaning", "value")
    };
    format!("\n{BOLD}{}{BOLD:#}\n", line.trim_end())
}

fn rights(rights: &RightsRecord, privileged: bool, width: usize) -> String {
    let mut text = format!("\n{BOLD}rights to watch programs{BOLD:#}\n");
    text.push_str(&wrap(&format!("{} of T3 now: {}", rights.tier.id(), rights.shows), width, "  ", "    "));
    let Some(next) = &rights.next else { return text };
    let reason = next.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    text.push_str(&wrap(
        &format!("{} would show {}{reason}", next.tier.id(), next.shows),
        width,
        "  ",
        "    ",
    ));
    // A command is one line, so that it can be copied.
    match &next.command {
        Some(command) if command.starts_with("sudo ") && !privileged => {
            let _ = writeln!(text, "    next: {}\n    or: {}", with_sudo(""), explained(command));
        }
        Some(command) => {
            let _ = writeln!(text, "    next: {}", explained(command));
        }
        None => text.push_str("    no command for it is known\n"),
    }
    text
}

fn row(setting: &SettingRecord, group: &[&SettingRecord], width: usize) -> String {
    let reading = &setting.reading;
    let same = group.iter().filter(|other| other.reading.key == reading.key).count();
    let name = match &reading.subject {
        Some(subject) if same > 1 && setting.group == Group::Queue => {
            format!("{} {subject}", reading.key.id())
        }
        _ => reading.key.id().to_owned(),
    };
    let value = reading.value.as_deref().unwrap_or("not read");
    let begin =
        format!("  {:<room$}  {:<VALUE$}  ", cut(&name, NAME - 2), cut(value, VALUE), room = NAME - 2);
    let rest = " ".repeat(NAME + VALUE + 4);
    let meaning = match (&setting.judgement, &reading.limitation) {
        (Some(judgement), _) => {
            let cited = judgement.cited.map(|title| format!(" [{title}]")).unwrap_or_default();
            format!("{}: {}{cited}", judgement.effect.word(), judgement.sentence)
        }
        (None, Some(why)) => why.clone(),
        (None, None) => reading.key.about().to_owned(),
    };
    let mut text = wrap(&meaning, width, &begin, &rest);
    if setting.judgement.is_none() {
        text = format!("{DIM}{}{DIM:#}\n", text.trim_end());
    }
    if let Some(measure) = &setting.measure {
        let _ = writeln!(text, "{rest}not measured: `{measure}`");
    } else if setting.judgement.is_some() {
        let _ = writeln!(text, "{rest}not measured: see below");
    }
    text
}

/// How to measure what `--try` does not take.
fn footnote(settings: &[SettingRecord], width: usize) -> String {
    if !settings.iter().any(|setting| setting.judgement.is_some() && setting.measure.is_none()) {
        return String::new();
    }
    let line = "what else was not measured: `iowhy --json before.json PATH`, change it, `iowhy --json after.json PATH`, and \
                `iowhy compare before.json after.json` say what it costs";
    format!("\n{}", wrap(line, width, "", "  "))
}

#[cfg(test)]
mod tests {
    use iowhy_core::environment::Environment;
    use iowhy_core::profile::Tier;
    use iowhy_core::setting::Reading;
    use iowhy_diagnose::setting::judge;

    use super::*;
    use crate::record::doctor::NextTier;

    fn record(readings: Vec<Reading>) -> DoctorRecord {
        let settings = readings.into_iter().map(|reading| SettingRecord {
            group: reading.key.group(),
            judgement: judge(&reading, &[]),
            measure: (reading.key == Key::Nomerges).then(|| "iowhy doctor . --try nomerges=0".to_owned()),
            reading,
        });
        DoctorRecord {
            schema: 1,
            kind: crate::record::Kind::Doctor,
            iowhy: "0".into(),
            command: String::new(),
            path: "/data".into(),
            environment: Environment::default(),
            warnings: Vec::new(),
            rights: RightsRecord {
                tier: Tier::T2,
                shows: "a clock".into(),
                next: Some(NextTier {
                    tier: Tier::T3,
                    shows: "tracepoints".into(),
                    reason: Some("no tracefs".into()),
                    command: Some("sudo mount -t tracefs tracefs /sys/kernel/tracing".into()),
                }),
                limitations: Vec::new(),
            },
            no_device: Some("its bytes live in memory".into()),
            settings: settings.collect(),
        }
    }

    #[test]
    fn judged_settings_stand_out_and_commands_are_whole_lines() {
        let of = |key, value: &str| Reading { subject: Some("sda".into()), ..Reading::new(key, value) };
        let told = record(vec![
            of(Key::Nomerges, "2"),
            of(Key::Iostats, "1"),
            Reading::unreadable(Key::Governor, "no cpufreq"),
            of(Key::AccessTime, "strictatime"),
        ]);
        let plain = anstream::adapter::strip_str(&screen(&told, 80)).to_string();
        assert!(plain.contains("2 of 4 settings") && plain.contains("1 could not be read"), "{plain}");
        let next = "    next: `sudo iowhy -- CMD` (CMD still runs as you)\n    or: `sudo mount -t tracefs";
        assert!(plain.contains(next), "{plain}");
        let mut root = told;
        root.environment.privileged = true;
        let plain = anstream::adapter::strip_str(&screen(&root, 80)).to_string();
        assert!(plain.contains("    next: `sudo mount -t tracefs tracefs /sys/kernel/tracing`\n"), "{plain}");
        assert!(plain.contains("not measured: `iowhy doctor . --try nomerges=0`\n"), "{plain}");
        assert!(plain.contains("not read") && plain.contains("no cpufreq"), "{plain}");
        assert!(plain.contains("costs: every read") && plain.contains("compare before.json"), "{plain}");
    }

    #[test]
    fn several_devices_are_named_and_a_row_names_its_own_where_they_differ() {
        let of = |subject: &str, key, value: &str| Reading {
            subject: Some(subject.into()),
            ..Reading::new(key, value)
        };
        let told = record(vec![
            of("sdb sda", Key::Scheduler, "none"),
            of("sda", Key::Iostats, "1"),
            of("sdb", Key::Iostats, "0"),
        ]);
        let plain = anstream::adapter::strip_str(&screen(&told, 80)).to_string();
        assert!(plain.contains("\ndevice queue of sda, sdb  ") && plain.contains("  iostats sdb"), "{plain}");
        assert!(
            plain.contains("  scheduler   ") && plain.lines().all(|l| l.chars().count() <= 80),
            "{plain}"
        );
    }

    #[test]
    fn a_path_without_a_device_says_why_it_has_no_queue() {
        let plain = anstream::adapter::strip_str(&screen(&record(Vec::new()), 80)).to_string();
        assert!(plain.contains("none: its bytes live in memory"), "{plain}");
        assert!(plain.contains("0 settings: none"), "{plain}");
    }
}
