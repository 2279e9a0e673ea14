//! `iowhy stripe lint`: the rules applied to an existing stripe, or to one described by numbers.

use std::path::Path;

use iowhy_core::problem::Problem;
use iowhy_core::stripe::Stripe;
use iowhy_core::units::{Bytes, counted, typed_size};
use iowhy_core::volume::Volume;
use iowhy_core::warning::Warning;
use iowhy_probe::volume;
use iowhy_stripe::described::{self, Described};
use iowhy_stripe::layout::Layout;
use iowhy_stripe::lint::{self, Makable};

use crate::cli::{LayoutOf, OutputArgs, StripeLintArgs};
use crate::ending::Ending;
use crate::output::{self, Outputs};
use crate::record::stripe::{FilePartRecord, LintRecord, PlacesRecord};
use crate::screen;

/// Request sizes without `--bs`.
const USUAL_REQUESTS: [u64; 3] = [16 << 10, 64 << 10, 1 << 20];

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
    outputs.finish(&screen::text(&screen::stripe::lint(&record), output::width()), &record)?;
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

/// An existing stripe. Numbers given beside a path replace those found.
fn of_path(args: &StripeLintArgs, path: &Path) -> Result<Subject, Problem> {
    let described = [
        ("--group", args.group.is_some()),
        ("--volume", args.volume.is_some()),
        ("--block", args.block.is_some()),
        ("--files", args.files.is_some()),
    ];
    if let Some((option, _)) = described.iter().find(|(_, given)| *given) {
        return Err(Problem::refused(format!(
            "`{option}` describes a stripe by numbers, and `{}` is an existing path",
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
    let mut places = described::found(found.geometry);
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
                    "`{}` is not on a stripe as far as the kernel tells",
                    path.display()
                ),
            )
            .next("to check a stripe described by numbers: `iowhy stripe lint --fs ext4 --interleave 64k --disks 3`"),
        );
    }
    let makable = volume.as_ref().map_or(Makable::ANY, |volume| Makable::from_volume(volume.kind));
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
    let described = Described {
        volume_bytes: args.volume,
        group_bytes: args.group,
        block_bytes: args.block,
        files: args.files,
    };
    if let Some(bytes) = args.group.filter(|bytes| *bytes > described.volume_bytes()) {
        return Err(Problem::refused(format!(
            "`--group {}` is larger than the volume ({})",
            typed_size(bytes),
            Bytes(described.volume_bytes())
        ))
        .hint("give the size of the volume with `--volume`"));
    }
    let places = match args.fs {
        LayoutOf::Ffs => described.ffs(),
        LayoutOf::Ext4 => described.ext4(),
        LayoutOf::Xfs => described.xfs(),
        LayoutOf::None => described.none(),
    };
    let words = format!(
        "{} on {}, interleave {}",
        places.name,
        counted(stripe.members() as u64, "disk", "disks"),
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

fn stripe_of(interleave: u64, disks: usize) -> Result<Stripe, Problem> {
    Stripe::new(interleave, disks).ok_or_else(|| {
        Problem::refused(format!(
            "{disks} disks with an interleave of {} are too large to compute with",
            Bytes(interleave)
        ))
        .hint("give a smaller `--interleave`")
    })
}
