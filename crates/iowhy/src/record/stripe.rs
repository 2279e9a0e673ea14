//! The records of `stripe`: what the rules say of a stripe.

use iowhy_core::volume::Volume;
use iowhy_core::warning::Warning;
use iowhy_stripe::layout::Layout;
use iowhy_stripe::lint::Lint;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Kind, SCHEMA};

/// The result of `stripe lint`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LintRecord {
    /// Version of the format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: &'static str,
    /// `stripe lint`.
    pub command: &'static str,
    /// What was looked at, in words.
    pub subject: String,
    /// The volume that was recognised; null where it was only described, or none is there.
    pub volume: Option<Volume>,
    /// How much of the file each device has, where that is known; copies count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file_parts: Vec<FilePartRecord>,
    /// Where the file system puts things.
    pub places: Option<PlacesRecord>,
    /// What the rules say; null where nothing takes turns.
    pub lint: Option<Lint>,
    /// What could not be known.
    pub warnings: Vec<Warning>,
}

/// What a device has of the file that was looked at.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FilePartRecord {
    /// The device, by kernel name.
    pub device: String,
    /// Bytes.
    pub bytes: u64,
}

/// Where a file system puts things.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlacesRecord {
    /// `ffs`, `ext4`, `xfs`, `btrfs` or `none`.
    pub file_system: &'static str,
    /// Bytes of a group; 0 where nothing repeats.
    pub group_bytes: u64,
    /// Groups.
    pub groups: u64,
    /// Files begin at multiples of this.
    pub alignment_bytes: u64,
}

impl PlacesRecord {
    /// The figures of a layout.
    pub fn of(places: &Layout) -> PlacesRecord {
        PlacesRecord {
            file_system: places.name,
            group_bytes: places.group_bytes,
            groups: places.groups,
            alignment_bytes: places.alignment_bytes,
        }
    }
}

impl LintRecord {
    /// A record without a verdict yet.
    pub fn new(subject: String, volume: Option<Volume>, warnings: Vec<Warning>) -> LintRecord {
        LintRecord {
            schema: SCHEMA,
            kind: Kind::StripeCheck,
            iowhy: env!("CARGO_PKG_VERSION"),
            command: "stripe lint",
            subject,
            volume,
            file_parts: Vec::new(),
            places: None,
            lint: None,
            warnings,
        }
    }
}
