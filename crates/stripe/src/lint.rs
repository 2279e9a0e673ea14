//! Rules for a stripe under a file system: whether the file system's own areas all fall on one disk, how many requests are
//! split, and which interleave would be better. Pure arithmetic over a layout that repeats group by group.

use iowhy_core::stripe::Stripe;
use iowhy_core::volume::VolumeKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layout::{Area, Layout};
use crate::split::{self, Split};

/// Bytes of a sector, the grain of every interleave.
pub const SECTOR_BYTES: u64 = 512;
/// Groups that are counted; more do not change the third digit of a share.
const MAX_GROUPS: u64 = 4096;
/// The busiest disk may have this much more than the best possible spread gives it.
const EVEN: f64 = 1.10;
/// From here on the spread counts as concentrated.
const CONCENTRATED: f64 = 1.5;
/// A better interleave is searched for within this factor of the present one.
const WITHIN: u64 = 2;

/// How evenly something is spread over the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// The busiest disk has at most a tenth more than it must have.
    Even,
    /// More than that.
    Uneven,
    /// Half as much again, or more.
    Concentrated,
}

impl Spread {
    /// The stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            Spread::Even => "even",
            Spread::Uneven => "uneven",
            Spread::Concentrated => "concentrated",
        }
    }
}

/// How one kind of area is spread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AreaLoad {
    /// What is there.
    pub what: String,
    /// Bytes on the busiest disk over the mean of all disks: 1 is even, the number of disks is all on one.
    pub most_over_mean: f64,
    /// The same if the groups were dealt out as evenly as whole groups can be.
    pub possible: f64,
    /// The judgement.
    pub spread: Spread,
    /// Share of each disk, 0 to 1.
    pub shares: Vec<f64>,
}

impl AreaLoad {
    /// How much more the busiest disk has than the best possible spread gives it.
    fn excess(&self) -> f64 {
        self.most_over_mean / self.possible
    }

    /// Whether nearly everything is on one disk.
    pub fn is_on_one_disk(&self) -> bool {
        self.most_over_mean > self.shares.len() as f64 * 0.9
    }
}

/// The rules applied to one stripe under one file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lint {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// Disks.
    pub disks: usize,
    /// Groups after which the pattern repeats: L = I * N / gcd(S, I * N). Absent where nothing repeats.
    pub period_groups: Option<u64>,
    /// The kinds of layout.
    pub areas: Vec<AreaLoad>,
    /// The worst of them; `even` where there are none.
    pub spread: Spread,
    /// Requests of each size.
    pub splits: Vec<Split>,
    /// Share of the requests that are split, over those sizes evenly that fit into half a turn: larger ones are to be split.
    pub split_share: f64,
    /// The nearest interleave that is even and splits no more than this one or a tenth, where this one is not good.
    pub better: Option<Better>,
}

impl Lint {
    /// The area with the worst spread.
    pub fn worst(&self) -> Option<&AreaLoad> {
        self.areas.iter().max_by(|a, b| a.excess().total_cmp(&b.excess()))
    }
}

/// Another interleave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Better {
    /// Bytes of one turn.
    pub interleave_bytes: u64,
    /// The busiest disk's share over the mean, for the worst kind of area.
    pub most_over_mean: f64,
    /// Share of the requests that are split.
    pub split_share: f64,
}

/// Which interleaves can be made where the stripe lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Makable {
    /// Only multiples of this.
    pub grain_bytes: u64,
    /// Only powers of two.
    pub powers_of_two: bool,
}

impl Makable {
    /// Any number of sectors: ccd, and stripes in user space.
    pub const ANY: Makable = Makable { grain_bytes: SECTOR_BYTES, powers_of_two: false };

    /// What the driver of a volume can make: md takes multiples of a page for raid0, LVM powers of two from a page on, btrfs
    /// has one interleave and so no other can be advised.
    pub fn from_volume(kind: VolumeKind) -> Makable {
        match kind {
            VolumeKind::Md | VolumeKind::DeviceMapper => Makable { grain_bytes: 4096, powers_of_two: false },
            VolumeKind::Lvm => Makable { grain_bytes: 4096, powers_of_two: true },
            VolumeKind::Btrfs => Makable { grain_bytes: u64::MAX, powers_of_two: true },
        }
    }

    fn allows(self, bytes: u64) -> bool {
        bytes > 0
            && bytes.is_multiple_of(self.grain_bytes.max(1))
            && (!self.powers_of_two || bytes.is_power_of_two())
    }
}

/// Applies the rules. `sizes` are the bytes of requests, each aligned as the file system aligns its files.
///
/// `None` when no disk or no interleave is given.
pub fn lint(stripe: Stripe, layout: &Layout, sizes: &[u64], makable: Makable) -> Option<Lint> {
    let areas = loads(&stripe, layout);
    let spread = areas.iter().map(|area| area.spread).max().unwrap_or(Spread::Even);
    let splits: Vec<Split> =
        sizes.iter().filter_map(|bytes| split::split(&stripe, *bytes, layout.alignment_bytes)).collect();
    let split_share = split_share(&stripe, layout, sizes);
    // Where splits are the trouble another interleave must have fewer; where it is the spread they may stay.
    let allowed = if spread == Spread::Even { SPLITS_LITTLE } else { split_share.max(SPLITS_LITTLE) };
    let fine = spread == Spread::Even && split_share <= SPLITS_LITTLE;
    let better = if fine { None } else { better(&stripe, layout, sizes, makable, allowed) };
    Some(Lint {
        interleave_bytes: stripe.interleave(),
        disks: stripe.members(),
        period_groups: (layout.group_bytes > 0).then(|| period(&stripe, layout.group_bytes)),
        areas,
        spread,
        splits,
        split_share,
        better,
    })
}

/// A tenth of the requests split is not worth another interleave.
const SPLITS_LITTLE: f64 = 0.10;

/// Groups after which the pattern repeats: L = I * N / gcd(S, I * N).
pub fn period(stripe: &Stripe, group_bytes: u64) -> u64 {
    stripe.row() / split::gcd(group_bytes, stripe.row()).max(1)
}

/// How each kind of area is spread over the disks.
fn loads(stripe: &Stripe, layout: &Layout) -> Vec<AreaLoad> {
    let groups = layout.groups.clamp(1, MAX_GROUPS);
    let load = |area: &Area| {
        let mut bytes = vec![0u64; stripe.members()];
        for group in 0..groups {
            let start = group
                .saturating_mul(layout.group_bytes)
                .saturating_add(layout.start_bytes)
                .saturating_add(area.offset);
            for part in stripe.parts(start, area.bytes) {
                if let Some(sum) = bytes.get_mut(part.member) {
                    *sum = sum.saturating_add(part.bytes);
                }
            }
        }
        let total: u64 = bytes.iter().sum();
        let disks = bytes.len() as f64;
        let shares: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64 / total.max(1) as f64).collect();
        let most_over_mean = shares.iter().copied().fold(0.0, f64::max) * disks;
        let possible = possible(stripe, groups, area.bytes);
        let spread = match most_over_mean / possible {
            r if r >= CONCENTRATED => Spread::Concentrated,
            r if r > EVEN => Spread::Uneven,
            _ => Spread::Even,
        };
        (total > 0).then(|| AreaLoad { what: area.what.to_owned(), most_over_mean, possible, spread, shares })
    };
    layout.areas.iter().filter_map(load).collect()
}

/// The best spread for this number of groups: an area within one turn is on one disk.
fn possible(stripe: &Stripe, groups: u64, bytes: u64) -> f64 {
    let (disks, turns) = (stripe.members() as u64, bytes.div_ceil(stripe.interleave()).max(1));
    let pieces = groups.saturating_mul(turns).max(1);
    pieces.div_ceil(disks) as f64 * disks as f64 / pieces as f64
}

/// The nearest interleave that spreads evenly and splits few requests. Smaller and larger alike, by their ratio.
fn better(stripe: &Stripe, layout: &Layout, sizes: &[u64], makable: Makable, allowed: f64) -> Option<Better> {
    let now = stripe.interleave();
    let grain = makable.grain_bytes.max(SECTOR_BYTES);
    let judge = |bytes: u64| {
        let candidate = Stripe::new(bytes, stripe.members())?;
        let split_share = split_share(&candidate, layout, sizes);
        if split_share > allowed {
            return None;
        }
        let areas = loads(&candidate, layout);
        let even = areas.iter().all(|area| area.spread == Spread::Even);
        let most_over_mean = areas.iter().map(|area| area.most_over_mean).fold(1.0, f64::max);
        even.then_some(Better { interleave_bytes: bytes, most_over_mean, split_share })
    };
    // Whole blocks first: they split no aligned request. Then any multiple of the grain.
    let block = layout.alignment_bytes.max(grain);
    for step in [block.div_ceil(grain) * grain, grain] {
        let mut candidates: Vec<u64> = (1..=MAX_CANDIDATES)
            .flat_map(|n| {
                let base = now / step * step;
                let by = step.saturating_mul(n);
                [base.checked_sub(by), base.checked_add(by), Some(base)]
            })
            .flatten()
            .filter(|bytes| {
                *bytes != now
                    && *bytes >= now / WITHIN
                    && *bytes <= now.saturating_mul(WITHIN)
                    && makable.allows(*bytes)
            })
            .collect();
        let distance = |bytes: &u64| {
            let (a, b) = ((*bytes).max(now) as f64, (*bytes).min(now) as f64);
            a / b
        };
        candidates.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        candidates.dedup();
        if let Some(found) = candidates.into_iter().find_map(judge) {
            return Some(found);
        }
    }
    None
}

/// Candidates on each side.
const MAX_CANDIDATES: u64 = 256;

/// Share of the requests that are split although they would fit; each size counts alike. At least the smallest size counts.
fn split_share(stripe: &Stripe, layout: &Layout, sizes: &[u64]) -> f64 {
    let least = sizes.iter().copied().min().unwrap_or(0);
    let small = sizes.iter().filter(|bytes| **bytes <= stripe.interleave() / 2 || **bytes == least);
    let (sum, count) = small
        .filter_map(|bytes| split::split(stripe, *bytes, layout.alignment_bytes))
        .fold((0.0, 0u32), |(sum, count), split| (sum + split.share, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
#[path = "lint_tests.rs"]
mod tests;
