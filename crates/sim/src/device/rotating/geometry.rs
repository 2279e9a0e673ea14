//! Where a sector lies: cylinder, head, and angle on its track. Numbers only; no time.

use iowhy_core::problem::Problem;

use crate::machine::RotatingConfig;

/// A zone with derived figures.
#[derive(Clone, Copy, Debug)]
struct Region {
    first_cylinder: u64,
    first_sector: u64,
    sectors: u64,
    track_skew: u64,
    cylinder_skew: u64,
    /// Logical sectors until the interleaving has gone once round.
    lap: u64,
}

/// A position on the platters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder.
    pub cylinder: u64,
    /// Surface.
    pub head: u64,
    /// Logical sector on its track.
    pub sector: u64,
    /// Sectors of its track.
    pub of: u64,
    /// Slot on the track, counted from the index: skew and interleave applied.
    pub slot: u64,
    zone: usize,
}

/// A disk's zones.
#[derive(Clone, Debug)]
pub struct Geometry {
    heads: u64,
    interleave: u64,
    regions: Vec<Region>,
    sectors: u64,
    cylinders: u64,
}

impl Geometry {
    /// Checks zones and heads.
    ///
    /// # Errors
    /// Names the key that makes the disk impossible.
    pub fn new(config: &RotatingConfig) -> Result<Geometry, Problem> {
        let refuse = |key: &str, why: &str| {
            Err(Problem::refused(format!("`device.{key}` {why}"))
                .hint("`device.model = \"st32171w\"` is a disk that is complete"))
        };
        if config.zones.is_empty() {
            return refuse("zones", "are missing: a rotating disk needs one at least");
        }
        if !(1..=1024).contains(&config.heads) {
            return refuse("heads", "must be 1 to 1024");
        }
        if config.sector_interleave == 0 {
            return refuse("sector_interleave", "is 0: 1 stands for no interleaving");
        }
        let mut regions = Vec::with_capacity(config.zones.len());
        let (mut first_cylinder, mut first_sector) = (0u64, 0u64);
        for zone in &config.zones {
            if zone.last_cylinder < first_cylinder {
                return refuse("zones", "must have rising last cylinders");
            }
            if !(1..=1 << 20).contains(&zone.sectors) {
                return refuse("zones", "have a track without sectors, or with too many");
            }
            if config.sector_interleave > zone.sectors {
                return refuse("sector_interleave", "is more than a track has sectors");
            }
            regions.push(Region {
                first_cylinder,
                first_sector,
                sectors: zone.sectors,
                track_skew: zone.track_skew % zone.sectors,
                cylinder_skew: zone.cylinder_skew % zone.sectors,
                lap: zone.sectors / gcd(zone.sectors, config.sector_interleave),
            });
            // At most 1e9 cylinders x 1024 heads x 2^20 sectors, 2^60: no overflow.
            let cylinders = zone.last_cylinder - first_cylinder + 1;
            first_sector = first_sector.saturating_add(cylinders.saturating_mul(config.heads * zone.sectors));
            first_cylinder = zone.last_cylinder + 1;
        }
        Ok(Geometry {
            heads: config.heads,
            interleave: config.sector_interleave,
            regions,
            sectors: first_sector,
            cylinders: first_cylinder,
        })
    }

    /// Sectors of the disk.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders of the disk.
    pub fn cylinders(&self) -> u64 {
        self.cylinders
    }

    /// Surfaces.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// Where a sector lies; beyond the end, at the end.
    #[inline]
    pub fn place(&self, sector: u64) -> Place {
        let sector = sector.min(self.sectors.saturating_sub(1));
        let zone = self.regions.partition_point(|region| region.first_sector <= sector).saturating_sub(1);
        let region = &self.regions[zone];
        let inside = sector - region.first_sector;
        let (track, on_track) = (inside / region.sectors, inside % region.sectors);
        let (cylinder, head) = (track / self.heads, track % self.heads);
        let turned = cylinder * ((self.heads - 1) * region.track_skew + region.cylinder_skew)
            + head * region.track_skew;
        let position = on_track * self.interleave + on_track / region.lap;
        Place {
            cylinder: region.first_cylinder + cylinder,
            head,
            sector: on_track,
            of: region.sectors,
            slot: (position + turned) % region.sectors,
            zone,
        }
    }

    /// Skew in sectors of the track after a position.
    pub fn skew_behind(&self, place: &Place) -> u64 {
        let region = &self.regions[place.zone];
        if place.head + 1 == self.heads { region.cylinder_skew } else { region.track_skew }
    }

    /// Zones, from the outside in.
    pub(super) fn zones(&self) -> usize {
        self.regions.len()
    }

    /// A position on the first or last track of a cylinder of a zone; it stands for all such tracks.
    pub(super) fn on_zone(&self, zone: usize, last_head: bool) -> Place {
        let of = self.regions[zone].sectors;
        let head = if last_head { self.heads - 1 } else { 0 };
        Place { cylinder: self.regions[zone].first_cylinder, head, sector: 0, of, slot: 0, zone }
    }

    /// The zone number of a position, and whether its track is the last of its cylinder.
    #[inline]
    pub(super) fn zone_of(&self, place: &Place) -> (usize, bool) {
        (place.zone, place.head + 1 == self.heads)
    }

    /// Slots that pass while a whole track is read.
    pub fn track_slots(&self, place: &Place) -> u64 {
        self.slots(&Place { sector: 0, ..*place }, place.of)
    }

    /// Slots from the beginning of sector `first` to the end of the last of `sectors` on the same track.
    pub fn slots(&self, place: &Place, sectors: u64) -> u64 {
        let region = &self.regions[place.zone];
        let last = place.sector + sectors.max(1) - 1;
        let laps = last / region.lap - place.sector / region.lap;
        (last - place.sector) * self.interleave + laps + 1
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Machine, Zone};

    fn config(heads: u64, interleave: u64, zones: &[(u64, u64, u64, u64)]) -> RotatingConfig {
        let mut config = Machine::default().device.rotating;
        config.heads = heads;
        config.sector_interleave = interleave;
        config.zones = zones
            .iter()
            .map(|&(last_cylinder, sectors, track_skew, cylinder_skew)| Zone {
                last_cylinder,
                sectors,
                track_skew,
                cylinder_skew,
            })
            .collect();
        config
    }

    #[test]
    fn sectors_follow_tracks_then_cylinders_then_zones() {
        let g = Geometry::new(&config(2, 1, &[(1, 10, 3, 5), (3, 6, 1, 2)])).unwrap();
        assert_eq!((g.sectors(), g.cylinders()), (64, 4));
        let at = |sector| {
            let p = g.place(sector);
            (p.cylinder, p.head, p.sector, p.slot)
        };
        assert_eq!(at(0), (0, 0, 0, 0));
        assert_eq!(at(13), (0, 1, 3, 6));
        assert_eq!(at(20), (1, 0, 0, 8));
        assert_eq!(at(40), (2, 0, 0, 0));
        assert_eq!(at(63), (3, 1, 5, 3));
        assert_eq!(at(999), at(63));
    }

    #[test]
    fn interleaving_uses_every_slot_once() {
        for (sectors, interleave) in [(17, 2), (16, 2), (17, 3), (18, 3), (15, 1), (10, 10)] {
            let g = Geometry::new(&config(1, interleave, &[(0, sectors, 0, 0)])).unwrap();
            let mut slots: Vec<u64> = (0..sectors).map(|s| g.place(s).slot).collect();
            slots.sort_unstable();
            assert_eq!(slots, (0..sectors).collect::<Vec<_>>(), "{sectors} {interleave}");
        }
        let g = Geometry::new(&config(1, 2, &[(0, 17, 0, 0)])).unwrap();
        assert_eq!(g.place(1).slot, 2);
        assert_eq!(g.slots(&g.place(0), 17), 33, "a track takes two turns");
    }

    #[test]
    fn impossible_disks_are_refused() {
        for bad in [
            config(1, 1, &[]),
            config(0, 1, &[(1, 10, 0, 0)]),
            config(1, 0, &[(1, 10, 0, 0)]),
            config(1, 1, &[(1, 0, 0, 0)]),
            config(1, 11, &[(1, 10, 0, 0)]),
            config(1, 1, &[(5, 10, 0, 0), (4, 10, 0, 0)]),
        ] {
            assert!(Geometry::new(&bad).is_err());
        }
    }
}
