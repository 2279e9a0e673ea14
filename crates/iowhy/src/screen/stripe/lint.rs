//! `stripe lint`: the verdict, the spread of metadata, split requests, and what to change.

use iowhy_core::text::visible;
use iowhy_core::units::{Bytes, count, counted, per_cent};
use iowhy_core::volume::{Volume, VolumeKind};
use iowhy_stripe::lint::{Lint, Spread};
use iowhy_view::document::{Chapter, Part, Section, Table};

use super::interleave;
use crate::record::stripe::LintRecord;
use crate::screen::members::listed;

/// The chapter.
pub fn chapter(record: &LintRecord) -> Chapter {
    let mut facts: Vec<String> = record.volume.iter().map(volume).collect();
    if !record.file_parts.is_empty() {
        let part = |(bytes, device): (u64, &str)| format!("{} on {device}", Bytes(bytes));
        let parts = record.file_parts.iter().map(|each| part((each.bytes, &each.device)));
        facts.push(format!("this file: {}", parts.collect::<Vec<_>>().join(", ")));
    }
    if let Some(places) = record.places.as_ref().filter(|places| places.group_bytes > 0) {
        facts.push(format!(
            "{} groups of {}, files at multiples of {}",
            count(places.groups),
            Bytes(places.group_bytes),
            Bytes(places.alignment_bytes)
        ));
    }
    let sections = match &record.lint {
        None => vec![Section::new(
            "",
            vec![Part::Verdict("No rule applies: the interleave is unknown.".to_owned())],
        )],
        Some(lint) => vec![
            Section::new("", verdict(lint)),
            Section::quiet("Metadata", areas(lint).part().into_iter().collect()),
            Section::quiet("Requests", splits(lint)),
            Section::quiet("What to do", vec![Part::Advice(advice(lint, record.volume.as_ref()))]),
        ],
    };
    Chapter { title: visible(&record.subject).into_owned(), facts, sections, ..Chapter::default() }
}

fn volume(volume: &Volume) -> String {
    let members = volume.members.iter().map(|member| match member.size_bytes {
        Some(bytes) => format!("{} ({})", member.name, Bytes(bytes)),
        None => member.name.clone(),
    });
    let unit = volume
        .interleave_bytes
        .map_or_else(String::new, |bytes| format!(", interleave {}", interleave(bytes)));
    format!(
        "{} {}: {}{unit}, over {}",
        volume.kind.words(),
        volume.name,
        volume.profile,
        members.collect::<Vec<_>>().join(", ")
    )
}

fn verdict(lint: &Lint) -> Vec<Part> {
    let disks = counted(lint.disks as u64, "disk", "disks");
    let verdict = match (lint.spread, lint.worst()) {
        (_, None) => "Even: this file system has no groups whose metadata one disk could hold.".to_owned(),
        (Spread::Even, _) => format!("Even: file-system metadata is spread over all {disks}."),
        (Spread::Concentrated, Some(area)) if area.is_on_one_disk() => {
            format!("Concentrated: the {} of all groups are on one of {disks}.", area.what)
        }
        (spread, Some(area)) => {
            let word = if spread == Spread::Uneven { "Uneven" } else { "Concentrated" };
            format!(
                "{word}: the busiest of {disks} holds {:.2} times the mean of the {}.",
                area.most_over_mean, area.what
            )
        }
    };
    let period = lint.period_groups.map(|period| {
        let repeats = match period {
            1 => "Every group begins at the same offset in the stripe".to_owned(),
            many => format!("The pattern repeats after {} groups", count(many)),
        };
        Part::Text(format!("{repeats} (L = I * N / gcd(S, I * N) = {period})."))
    });
    std::iter::once(Part::Verdict(verdict)).chain(period).collect()
}

fn areas(lint: &Lint) -> Table {
    let mut table = Table::new(["metadata", "#busiest / mean", "#possible", "disk shares", "spread"]);
    for area in &lint.areas {
        let percents: Vec<f64> = area.shares.iter().map(|share| share * 100.0).collect();
        table.row([
            area.what.clone(),
            format!("{:.2}", area.most_over_mean),
            format!("{:.2}", area.possible),
            format!("{} %", listed(&percents, |share| format!("{share:.0}"))),
            area.spread.id().to_owned(),
        ]);
    }
    table
}

fn splits(lint: &Lint) -> Vec<Part> {
    if lint.splits.is_empty() {
        return Vec::new();
    }
    let mut table =
        Table::new(["#request size", "#split requests", "#stripe units / request", "#disks / request"]);
    for split in &lint.splits {
        table.row([
            Bytes(split.bytes).to_string(),
            per_cent(split.share * 100.0, 1),
            format!("{:.2}", split.transfers),
            format!("{:.2}", split.disks),
        ]);
    }
    let note = "means over all aligned offsets of a request, each equally likely";
    vec![Part::Table(table), Part::Note(note.to_owned())]
}

fn advice(lint: &Lint, volume: Option<&Volume>) -> String {
    let now = interleave(lint.interleave_bytes);
    if let Some(better) = &lint.better {
        return format!(
            "Use an interleave of {} instead of {now}: the busiest disk then holds {:.2} times the mean, and {} of the \
             small requests are split.",
            interleave(better.interleave_bytes),
            better.most_over_mean,
            per_cent(better.split_share * 100.0, 1)
        );
    }
    if lint.spread == Spread::Even {
        return format!(
            "Keep {now}: it is good by these rules. `iowhy stripe advise` measures which interleave is the fastest."
        );
    }
    const OTHERWISE: &str = "Change the file system's groups (mkfs.ext4 -G or -g, mkfs.xfs -d agsize, newfs -c), or use \
                             another number of disks.";
    match volume.map(|volume| volume.kind) {
        Some(VolumeKind::Btrfs) => "btrfs has no other interleave than 64 KiB.".to_owned(),
        Some(VolumeKind::Lvm) => {
            format!("LVM interleaves are powers of two, and none nearby is good. {OTHERWISE}")
        }
        _ => format!("No interleave from half to twice this one is good. {OTHERWISE}"),
    }
}
