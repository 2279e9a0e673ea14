//! `doctor`: profiling rights, then every setting by group with its value and meaning, then the commands that measure them.

use iowhy_core::setting::{Group, Key, Reading};
use iowhy_core::text::visible;
use iowhy_core::units::counted;
use iowhy_view::document::{Cell, Chapter, Part, Section, Table};
use iowhy_view::terminal::wrap::cut;

use super::heading;
use super::remedies::{explained, with_sudo};
use crate::record::doctor::{DoctorRecord, RightsRecord, SettingRecord};

/// Characters of a value beside its meaning.
const VALUE: usize = 16;
/// A longer title has a line of its own.
const TITLE: usize = 24;

/// The chapter.
pub fn chapter(record: &DoctorRecord) -> Chapter {
    let mut sections = vec![
        Section::new("", vec![Part::Verdict(headline(&record.settings))]),
        rights(&record.rights, record.environment.privileged),
    ];
    for (group, title) in [
        (Group::Cpu, "CPU"),
        (Group::Memory, "memory"),
        (Group::Queue, "device queue"),
        (Group::Encryption, "encryption"),
        (Group::FileSystem, "file system"),
        (Group::ControlGroup, "control group"),
    ] {
        // Most paths have none.
        if group != Group::Encryption || record.settings.iter().any(|setting| setting.group == group) {
            sections.push(settings(record, group, title));
        }
    }
    sections.push(measure(&record.settings));
    Chapter {
        title: visible(&record.path).into_owned(),
        facts: heading::machine(&record.environment),
        sections,
        ..Chapter::default()
    }
}

/// The number of settings that are judged.
fn headline(settings: &[SettingRecord]) -> String {
    let judged = settings.iter().filter(|setting| setting.judgement.is_some()).count();
    let unread = settings.iter().filter(|setting| setting.reading.value.is_none()).count();
    let unread = if unread == 0 { String::new() } else { format!("; {unread} could not be read") };
    let of = settings.len();
    match judged {
        0 => format!("{}: none has a documented cost{unread}", counted(of as u64, "setting", "settings")),
        n => format!("{n} of {of} settings cost, limit or hide something, or may{unread}"),
    }
}

fn rights(rights: &RightsRecord, privileged: bool) -> Section {
    let mut parts = vec![Part::Text(format!("tier `{}`: {}", rights.tier.id(), rights.shows))];
    if let Some(next) = &rights.next {
        let reason = next.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        parts.push(Part::Text(format!("tier `{}` would add {}{reason}", next.tier.id(), next.shows)));
        match &next.command {
            Some(command) => {
                let sudo = command.starts_with("sudo ") && !privileged;
                parts.extend(sudo.then(|| Part::Command(with_sudo(""))));
                parts.push(Part::Command(explained(command)));
            }
            None => parts.push(Part::Text("no command for it is known".to_owned())),
        }
    }
    Section::new("profiling rights", parts)
}

fn settings(record: &DoctorRecord, group: Group, title: &str) -> Section {
    let title = devices(group, title, &record.settings);
    let of_group: Vec<&SettingRecord> =
        record.settings.iter().filter(|setting| setting.group == group).collect();
    if of_group.is_empty() {
        let why = match (group, &record.no_device) {
            (Group::Queue, Some(why)) => format!("none: {why}"),
            _ => "none: the path is a device".to_owned(),
        };
        return Section::new(title, vec![Part::Text(why)]);
    }
    let beside = title.chars().count() <= TITLE;
    let mut table = Table::new([if beside { title.as_str() } else { "setting" }, "value", "meaning"]);
    table.prose = true;
    of_group.iter().for_each(|setting| table.row(row(setting, &of_group)));
    let mut parts = vec![Part::Table(table)];
    if let (Group::Queue, Some(why)) = (group, &record.no_device) {
        parts.push(Part::Text(format!("no other: {why}")));
    }
    if beside { Section::quiet(title, parts) } else { Section::new(title, parts) }
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

fn row(setting: &SettingRecord, group: &[&SettingRecord]) -> [Cell; 3] {
    let reading = &setting.reading;
    let same = group.iter().filter(|other| other.reading.key == reading.key).count();
    let name = match &reading.subject {
        Some(subject) if same > 1 && matches!(setting.group, Group::Queue | Group::Encryption) => {
            format!("{} {subject}", reading.key.id())
        }
        _ => reading.key.id().to_owned(),
    };
    let value = cut(reading.value.as_deref().unwrap_or("not read"), VALUE);
    let meaning = match (&setting.judgement, &reading.limitation) {
        (Some(judgement), _) => {
            let cited = judgement.cited.map(|title| format!(" [{title}]")).unwrap_or_default();
            format!("{}: {}{cited}", judgement.effect.word(), judgement.sentence)
        }
        (None, Some(why)) => why.clone(),
        (None, None) => reading.key.about().to_owned(),
    };
    let meaning = match &reading.file {
        Some(file) if reading.value.is_some() && is_of_mount(reading) => {
            format!("{meaning} (of the mount: {file})")
        }
        _ => meaning,
    };
    let value = if setting.judgement.is_some() { Cell::Bad(value) } else { Cell::Text(value) };
    [visible(&name).into_owned().into(), value, meaning.into()]
}

/// Whether it is the read-ahead of a file system itself: it stands among those of devices.
fn is_of_mount(reading: &Reading) -> bool {
    reading.key == Key::ReadAhead && reading.subject.as_ref().is_some_and(|subject| subject.starts_with('/'))
}

/// The commands that measure judged settings; two records and `compare` for those that `--try` does not take.
fn measure(settings: &[SettingRecord]) -> Section {
    let mut parts: Vec<Part> =
        settings.iter().filter_map(|setting| setting.measure.clone()).map(Part::Command).collect();
    let others: Vec<&str> = settings
        .iter()
        .filter(|setting| setting.judgement.is_some() && setting.measure.is_none())
        .map(|setting| setting.reading.key.id())
        .collect();
    if !others.is_empty() {
        parts.push(Part::Text(format!(
            "{}: measure with the old and the new value, then compare:",
            others.join(", ")
        )));
        let commands = ["iowhy --json before.json PATH", "iowhy --json after.json PATH"];
        parts.extend(commands.map(|command| Part::Command(command.to_owned())));
        parts.push(Part::Command("iowhy compare before.json after.json".to_owned()));
    }
    Section::new("to measure the cost", parts)
}

#[cfg(test)]
mod tests {
    use iowhy_core::environment::Environment;
    use iowhy_core::profile::Tier;
    use iowhy_diagnose::setting::judge;

    use super::*;
    use crate::record::doctor::NextTier;

    fn shown(record: &DoctorRecord) -> String {
        anstream::adapter::strip_str(&crate::screen::text(&chapter(record), 80)).to_string()
    }

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
                tier: Tier::Clock,
                shows: "a clock".into(),
                next: Some(NextTier {
                    tier: Tier::Observer,
                    shows: "calls and requests".into(),
                    reason: Some("bpf(2) is not permitted".into()),
                    command: Some("sudo setcap cap_bpf=ep /bin/iowhy".into()),
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
        let plain = shown(&told);
        assert!(plain.contains("2 of 4 settings") && plain.contains("1 could not be read"), "{plain}");
        let next = "  > `sudo iowhy -- CMD` (CMD still runs as you)\n  > `sudo setcap cap_bpf=ep";
        assert!(plain.contains(next), "{plain}");
        let mut root = told;
        root.environment.privileged = true;
        let plain = shown(&root);
        assert!(plain.contains("  > `sudo setcap cap_bpf=ep /bin/iowhy` (holds for everyone"), "{plain}");
        assert!(plain.contains("  > iowhy doctor . --try nomerges=0\n"), "{plain}");
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
        let plain = shown(&told);
        assert!(plain.contains("\ndevice queue of sda, sdb  ") && plain.contains("\niostats sdb"), "{plain}");
        assert!(
            plain.contains("\nscheduler ")
                && plain.lines().filter(|l| !l.contains("> `sudo")).all(|l| l.chars().count() <= 80),
            "{plain}"
        );
    }

    #[test]
    fn a_served_path_has_the_read_ahead_of_its_mount_alone() {
        let window = Reading {
            subject: Some("/mnt/share".into()),
            file: Some("/sys/class/bdi/0:51/read_ahead_kb".into()),
            ..Reading::new(Key::ReadAhead, "128")
        };
        let plain = shown(&record(vec![window]));
        let flowed = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowed.contains("(of the mount: /sys/class/bdi/0:51/read_ahead_kb)"), "{plain}");
        assert!(flowed.contains("no other: its bytes live in memory"), "{plain}");
    }

    #[test]
    fn a_path_without_a_device_says_why_it_has_no_queue() {
        let plain = shown(&record(Vec::new()));
        assert!(plain.contains("none: its bytes live in memory"), "{plain}");
        assert!(plain.contains("0 settings: none has"), "{plain}");
    }
}
