//! `iowhy stripe lint`: the rules applied to an existing stripe, or to one described by numbers.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::stripe::Stripe;
use iowhy_core::units::{Bytes, typed_size};
use iowhy_core::volume::{Ext4, Geometry, Volume, VolumeKind, Xfs};
use iowhy_core::warning::Warning;
use iowhy_probe::volume;
use iowhy_stripe::layout::Layout;
use iowhy_stripe::lint::{self, Makable};

use crate::cli::{LayoutOf, OutputArgs, StripeLintArgs};
use crate::command::Ending;
use crate::output::{self, Outputs};
use crate::record::stripe::{FilePartRecord, LintRecord, PlacesRecord};
use crate::render;

/// Requests that are looked at when nobody says which.
const USUAL_REQUESTS: [u64; 3] = [16 << 10, 64 << 10, 1 << 20];
/// FFS by default: blocks, and bytes for each inode (newfs of NetBSD 1.4T).
const FFS_BLOCK_BYTES: u64 = 8192;
const FFS_BYTES_PER_INODE: u64 = 4096;
const FFS_GROUP_BYTES: u64 = 16 << 20;
/// XFS by default: four groups.
const XFS_GROUPS: u64 = 4;
/// A volume, where nobody says how large.
const USUAL_VOLUME_BYTES: u64 = 1 << 40;

/// Runs the command.
///
/// # Errors
/// Numbers that are missing or cannot be; a path that is not there.
pub(super) fn run(args: &StripeLintArgs, options: &OutputArgs) -> Result<Ending, Problem> {
    let outputs = Outputs::open(options)?;
    let subject = match &args.path {
        Some(path) => of_path(args, path)?,
        None if args.interleave.is_none() && args.disks.is_none() => of_path(args, Path::new("."))?,
        None => of_numbers(args)?,
    };
    let mut sizes = match &args.bs {
        Some(sizes) => sizes.clone(),
        None => USUAL_REQUESTS.to_vec(),
    };
    if args.bs.is_none() && !sizes.contains(&subject.places.alignment_bytes) {
        sizes.insert(0, subject.places.alignment_bytes);
    }
    let mut record = LintRecord::new(subject.words, subject.volume, subject.warnings);
    record.places = Some(PlacesRecord::of(&subject.places));
    record.file_parts = subject.file_parts;
    if let Some(stripe) = subject.stripe {
        record.lint = lint::lint(stripe, &subject.places, &sizes, subject.makable);
    }
    outputs.warn(&record.warnings);
    outputs.finish(&render::stripe::lint_screen(&record, output::width()), &record)?;
    Ok(Ending::done())
}

/// What is looked at.
struct Subject {
    words: String,
    volume: Option<Volume>,
    file_parts: Vec<FilePartRecord>,
    stripe: Option<Stripe>,
    places: Layout,
    makable: Makable,
    warnings: Vec<Warning>,
}

/// A stripe that is there. Numbers that are given beside a path take the place of what was found.
fn of_path(args: &StripeLintArgs, path: &Path) -> Result<Subject, Problem> {
    let described = [
        ("--group", args.group.is_some()),
        ("--volume", args.volume.is_some()),
        ("--block", args.block.is_some()),
        ("--files", args.files.is_some()),
    ];
    if let Some((option, _)) = described.iter().find(|(_, given)| *given) {
        return Err(Problem::refused(format!(
            "`{option}` describes a stripe by numbers, and `{}` is one that is there",
            path.display()
        ))
        .hint("leave the path out and give `--interleave` and `--disks`, or leave the option out"));
    }
    let found = volume::look(path)?;
    let mut warnings: Vec<Warning> =
        found.limitations.iter().map(|limitation| Warning::new("not-known", limitation.clone())).collect();
    let mut words = path.display().to_string();
    if let Some(file_system) = &found.file_system {
        words.push_str(&format!(", {file_system}"));
    }
    if let Some(device) = &found.device {
        words.push_str(&format!(" on {device}"));
    }
    let mut places = places_of(found.geometry);
    places.start_bytes = found.start_bytes;
    let part = |part: volume::FilePart| FilePartRecord { device: part.device, bytes: part.bytes };
    let file_parts = found.file_parts.into_iter().map(part).collect();
    let volume = found.volume;
    if let Some(limitation) = volume.as_ref().and_then(|volume| volume.limitation.clone()) {
        warnings.push(Warning::new("not-a-plain-stripe", limitation));
    }
    let interleave = args.interleave.or_else(|| volume.as_ref()?.interleave_bytes);
    let disks = args.disks.or_else(|| Some(volume.as_ref()?.members.len()));
    let stripe = match interleave.zip(disks) {
        Some((interleave, disks)) => Some(stripe_of(interleave, disks)?),
        None => None,
    };
    if stripe.is_none() && volume.is_none() {
        warnings.push(
            Warning::new(
                "no-stripe",
                format!(
                    "`{}` is on one device as far as the kernel tells: nothing takes turns",
                    path.display()
                ),
            )
            .next("for a stripe of numbers: `iowhy stripe lint --fs ext4 --interleave 64k --disks 3`"),
        );
    }
    let makable = volume.as_ref().map_or(Makable::ANY, |volume| makable(volume.kind));
    Ok(Subject { words, volume, file_parts, stripe, places, makable, warnings })
}

/// A stripe that is only described.
fn of_numbers(args: &StripeLintArgs) -> Result<Subject, Problem> {
    let (Some(interleave), Some(disks)) = (args.interleave, args.disks) else {
        let missing = if args.interleave.is_none() { "--interleave" } else { "--disks" };
        return Err(Problem::refused(format!(
            "`{missing}` is missing: a stripe is an interleave and a number of disks"
        ))
        .hint("for example `iowhy stripe lint --fs ffs --group 32768s --interleave 128s --disks 2`"));
    };
    let stripe = stripe_of(interleave, disks)?;
    let volume_bytes = args.volume.unwrap_or(USUAL_VOLUME_BYTES);
    let (group, block) = (args.group, args.block);
    if let Some(bytes) = group.filter(|bytes| *bytes > volume_bytes) {
        return Err(Problem::refused(format!(
            "`--group {}` is larger than the volume ({})",
            typed_size(bytes),
            Bytes(volume_bytes)
        ))
        .hint("give the size of the volume with `--volume`"));
    }
    let per_group = |group: u64| args.files.map(|files| files.div_ceil((volume_bytes / group.max(1)).max(1)));
    let places = match args.fs {
        LayoutOf::Ffs => {
            let group = group.unwrap_or(FFS_GROUP_BYTES);
            Layout::ffs(
                group,
                volume_bytes,
                block.unwrap_or(FFS_BLOCK_BYTES),
                FFS_BYTES_PER_INODE,
                per_group(group),
            )
        }
        LayoutOf::Ext4 => Layout::ext4(&ext4(group, block, volume_bytes, per_group)),
        LayoutOf::Xfs => {
            let group_bytes = group.unwrap_or(volume_bytes / XFS_GROUPS);
            Layout::xfs(&Xfs {
                group_bytes,
                groups: volume_bytes / group_bytes.max(1),
                block_bytes: block.unwrap_or(4096),
                sector_bytes: 512,
                stripe_unit_bytes: 0,
                stripe_width_bytes: 0,
            })
        }
        LayoutOf::None => Layout::none(block.unwrap_or(4096)),
    };
    let words = format!(
        "{} on {} disks that take turns of {}",
        places.name,
        stripe.members(),
        Bytes(stripe.interleave())
    );
    Ok(Subject {
        words,
        volume: None,
        file_parts: Vec::new(),
        stripe: Some(stripe),
        places,
        makable: Makable::ANY,
        warnings: Vec::new(),
    })
}

/// ext4 as mkfs makes it, with what was given: a group is what keeps its tables together.
fn ext4(
    group: Option<u64>,
    block: Option<u64>,
    volume_bytes: u64,
    per_group: impl Fn(u64) -> Option<u64>,
) -> Ext4 {
    let usual = Ext4::usual(volume_bytes);
    let block_bytes = block.unwrap_or(usual.block_bytes);
    // A block group has as many blocks as a block has bits.
    let blocks_per_group = block_bytes * 8;
    let one = blocks_per_group * block_bytes;
    let flex_groups = group.map_or(usual.flex_groups, |bytes| (bytes / one).max(1));
    let blocks_per_group = match group {
        Some(bytes) if bytes < one => (bytes / block_bytes).max(1),
        _ => blocks_per_group,
    };
    let inodes_per_group = (blocks_per_group * block_bytes / (16 << 10)).max(1);
    Ext4 {
        block_bytes,
        blocks_per_group,
        inodes_per_group,
        flex_groups,
        used_inodes_per_group: per_group(blocks_per_group * block_bytes),
        ..usual
    }
}

fn places_of(geometry: Option<Geometry>) -> Layout {
    match geometry {
        Some(Geometry::Ext4(ext4)) => Layout::ext4(&ext4),
        Some(Geometry::Xfs(xfs)) => Layout::xfs(&xfs),
        Some(Geometry::Btrfs(sector)) => Layout { name: "btrfs", ..Layout::none(sector) },
        None => Layout::none(4096),
    }
}

/// Which interleaves each driver can make. md takes multiples of a page for raid0, LVM powers of two from a page on, btrfs
/// has one (and so no other can be advised).
fn makable(kind: VolumeKind) -> Makable {
    match kind {
        VolumeKind::Md | VolumeKind::DeviceMapper => Makable { grain_bytes: 4096, powers_of_two: false },
        VolumeKind::Lvm => Makable { grain_bytes: 4096, powers_of_two: true },
        VolumeKind::Btrfs => Makable { grain_bytes: u64::MAX, powers_of_two: true },
    }
}

fn stripe_of(interleave: u64, disks: usize) -> Result<Stripe, Problem> {
    Stripe::new(interleave, disks).ok_or_else(|| {
        Problem::refused(format!("{disks} disks with turns of {} cannot be counted", Bytes(interleave)))
            .hint("give a smaller `--interleave`")
    })
}
