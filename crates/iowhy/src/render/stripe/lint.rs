//! The screen of `stripe lint`: the verdict first, then the evidence.

use std::fmt::Write as _;

use anstyle::Style;
use iowhy_core::text::visible;
use iowhy_core::units::Bytes;
use iowhy_core::volume::{Volume, VolumeKind};
use iowhy_stripe::lint::{Lint, Spread};

use super::interleave;
use crate::record::stripe::LintRecord;
use iowhy_view::terminal::table::{Align, layout};
use iowhy_view::terminal::wrap::{MIN_WIDTH, wrap};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// Lines longer than this are hard to read.
const MAX_WIDTH: usize = 100;

/// The whole result.
pub fn screen(record: &LintRecord, width: usize) -> String {
    let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
    let mut text = format!("{BOLD}{}{BOLD:#}\n", visible(&record.subject));
    if let Some(volume) = &record.volume {
        text.push_str(&wrap(&found(volume), width, "  ", "  "));
    }
    if !record.file_parts.is_empty() {
        let parts: Vec<String> = record
            .file_parts
            .iter()
            .map(|part| format!("{} on {}", Bytes(part.bytes), part.device))
            .collect();
        text.push_str(&wrap(&format!("this file: {}", parts.join(", ")), width, "  ", "  "));
    }
    if let Some(places) = &record.places
        && places.group_bytes > 0
    {
        let _ = writeln!(
            text,
            "  {} groups of {}, files at multiples of {}",
            places.groups,
            Bytes(places.group_bytes),
            Bytes(places.alignment_bytes)
        );
    }
    text.push('\n');
    let Some(lint) = &record.lint else {
        text.push_str(&wrap("no rule applies: the interleave is unknown", width, "", ""));
        return text;
    };
    text.push_str(&wrap(&verdict(lint), width, "", ""));
    if !lint.areas.is_empty() {
        text.push('\n');
        text.push_str(&areas(lint));
    }
    text.push('\n');
    text.push_str(&splits(lint));
    text.push_str(&wrap(&advice(lint, record.volume.as_ref()), width, "", ""));
    text
}

fn found(volume: &Volume) -> String {
    let members: Vec<String> = volume
        .members
        .iter()
        .map(|member| match member.size_bytes {
            Some(bytes) => format!("{} ({})", member.name, Bytes(bytes)),
            None => member.name.clone(),
        })
        .collect();
    let turns =
        volume.interleave_bytes.map_or_else(String::new, |bytes| format!(", turns of {}", interleave(bytes)));
    format!("{} {}: {}{turns}, over {}", volume.kind.words(), volume.name, volume.profile, members.join(", "))
}

/// What matters, in a sentence or two.
fn verdict(lint: &Lint) -> String {
    let disks = lint.disks;
    let worst = lint
        .areas
        .iter()
        .max_by(|a, b| (a.most_over_mean / a.possible).total_cmp(&(b.most_over_mean / b.possible)));
    let mut text = match (lint.spread, worst) {
        (_, None) => {
            "no groups at fixed places: metadata cannot all fall on one disk by the interleave".to_owned()
        }
        (Spread::Even, Some(_)) => {
            format!("even: the file system's own places are spread over all {disks} disks")
        }
        (Spread::Uneven, Some(area)) => format!(
            "uneven: the busiest of {disks} disks has {:.2} times the mean of the {}",
            area.most_over_mean, area.what
        ),
        (Spread::Concentrated, Some(area)) if area.most_over_mean > disks as f64 * 0.9 => {
            format!("concentrated: the {} of all groups lie on one of {disks} disks", area.what)
        }
        (Spread::Concentrated, Some(area)) => format!(
            "concentrated: the busiest of {disks} disks has {:.2} times the mean of the {}",
            area.most_over_mean, area.what
        ),
    };
    if let Some(period) = lint.period_groups {
        let repeats = match period {
            1 => "every group begins at the same place of the stripe".to_owned(),
            many => format!("the pattern repeats after {many} groups"),
        };
        text.push_str(&format!("; {repeats} (L = I * N / gcd(S, I * N) = {period})"));
    }
    text
}

fn areas(lint: &Lint) -> String {
    let rows: Vec<Vec<String>> = lint
        .areas
        .iter()
        .map(|area| {
            let shares: Vec<String> =
                area.shares.iter().map(|share| format!("{:.0}", share * 100.0)).collect();
            let shares =
                if shares.len() <= 8 { shares.join(" / ") } else { format!("{} disks", shares.len()) };
            vec![
                area.what.clone(),
                format!("{:.2}", area.most_over_mean),
                format!("{:.2}", area.possible),
                format!("{shares} %"),
                area.spread.id().to_owned(),
            ]
        })
        .collect();
    layout(
        &["places in each group", "most / mean", "best possible", "share of each disk", "spread"],
        &[Align::Left, Align::Right, Align::Right, Align::Left, Align::Left],
        &rows,
    )
}

fn splits(lint: &Lint) -> String {
    if lint.splits.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = lint
        .splits
        .iter()
        .map(|split| {
            vec![
                Bytes(split.bytes).to_string(),
                format!("{:.1} %", split.share * 100.0),
                format!("{:.2}", split.transfers),
                format!("{:.2}", split.disks),
            ]
        })
        .collect();
    let mut text = layout(&["requests of", "split", "turns each", "disks each"], &[Align::Right; 4], &rows);
    let _ = writeln!(text, "{DIM}requests begin at any multiple of the alignment with equal chance{DIM:#}\n");
    text
}

/// What to do.
fn advice(lint: &Lint, volume: Option<&Volume>) -> String {
    let now = interleave(lint.interleave_bytes);
    if let Some(better) = &lint.better {
        return format!(
            "nearest good interleave: {} instead of {now}: busiest disk {:.2} times the mean, {:.1} % of the small requests split",
            interleave(better.interleave_bytes),
            better.most_over_mean,
            better.split_share * 100.0
        );
    }
    if lint.spread == Spread::Even {
        return format!(
            "{now} is a good interleave by these rules; which is the fastest, `iowhy stripe advise` measures"
        );
    }
    match volume.map(|volume| volume.kind) {
        Some(VolumeKind::Btrfs) => "btrfs takes turns of 64 KiB and no others".to_owned(),
        Some(VolumeKind::Lvm) => "LVM makes powers of two only: change the file system's groups instead (mkfs.ext4 -G or -g, \
                                  mkfs.xfs -d agsize), or use another number of disks"
            .to_owned(),
        _ => "no interleave from half to twice this one is good: change the file system's groups (mkfs.ext4 -G or -g, \
              mkfs.xfs -d agsize, newfs -c), or use another number of disks"
            .to_owned(),
    }
}
