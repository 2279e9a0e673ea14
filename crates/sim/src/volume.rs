//! One address space over several disks: stripe, mirror, concatenation. Pure arithmetic in sectors of 512 bytes.
//!
//! The stripe is that of ccd(4): stripe = sector div I, disk = stripe mod N, sector on it (stripe div N) * I + sector mod I;
//! components are cut to a multiple of I; a request that crosses I is split.

use iowhy_core::problem::Problem;

use crate::unit::Unit;

/// Bytes of a sector.
pub const SECTOR_BYTES: u64 = 512;

/// How disks are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// Chunks in turn over the disks.
    Stripe {
        /// Sectors per chunk.
        interleave: u64,
    },
    /// All hold the same.
    Mirror,
    /// One behind the other.
    Concat,
}

/// One piece on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which disk.
    pub disk: u32,
    /// First sector on it.
    pub sector: u64,
    /// Sectors.
    pub sectors: u64,
}

/// Disks of one size, joined.
#[derive(Clone, Debug)]
pub struct Volume {
    join: Join,
    disks: u32,
    /// The interleave and the number of disks, as units.
    turn: Unit,
    round: Unit,
    /// Sectors used of each disk.
    component: u64,
    /// Pieces that follow one another on a disk become one.
    merge: bool,
}

impl Volume {
    /// Joins `disks` disks of `sectors` each.
    ///
    /// # Errors
    /// Refuses no disk, an interleave of 0, and disks too small for one turn.
    pub fn new(join: Join, disks: u32, sectors: u64, merge: bool) -> Result<Volume, Problem> {
        if disks == 0 {
            return Err(Problem::refused("`device.count` is 0: the machine has no device")
                .hint("give at least one: `--set device.count=1`"));
        }
        let component = match join {
            Join::Stripe { interleave: 0 } => {
                return Err(Problem::refused(
                    "`volume.interleave` is 0: a stripe of no sectors has no place for data",
                )
                .hint("give sectors of 512 bytes, 1 or more: `--set volume.interleave=128`"));
            }
            Join::Stripe { interleave } => sectors / interleave * interleave,
            Join::Mirror | Join::Concat => sectors,
        };
        if component == 0 {
            return Err(Problem::refused(format!(
                "the devices hold {sectors} sectors each: too few for one turn of the volume"
            ))
            .hint("lower `volume.interleave`, or give larger devices"));
        }
        let interleave = if let Join::Stripe { interleave } = join { interleave } else { 1 };
        let (turn, round) = (Unit::new(interleave), Unit::new(u64::from(disks)));
        Ok(Volume { join, disks, turn, round, component, merge })
    }

    /// Sectors of the address space.
    pub fn sectors(&self) -> u64 {
        match self.join {
            Join::Mirror => self.component,
            Join::Stripe { .. } | Join::Concat => self.component.saturating_mul(u64::from(self.disks)),
        }
    }

    /// How many disks.
    pub fn disks(&self) -> u32 {
        self.disks
    }

    /// The pieces of a range, which must lie inside the volume. A mirror reads from `choice` (any number) and writes to all.
    pub fn pieces(&self, sector: u64, sectors: u64, write: bool, choice: u64, out: &mut Vec<Piece>) {
        out.clear();
        let disks = u64::from(self.disks);
        match self.join {
            Join::Mirror if write => {
                out.extend((0..self.disks).map(|disk| Piece { disk, sector, sectors }));
            }
            Join::Mirror => out.push(Piece { disk: (choice % disks) as u32, sector, sectors }),
            Join::Concat => {
                let (mut at, end) = (sector, sector + sectors);
                while at < end {
                    let inside = at % self.component;
                    let length = (self.component - inside).min(end - at);
                    out.push(Piece { disk: (at / self.component) as u32, sector: inside, sectors: length });
                    at += length;
                }
            }
            Join::Stripe { interleave } => {
                let (mut at, end) = (sector, sector + sectors);
                while at < end {
                    let (stripe, inside) = self.turn.split(at);
                    let length = (interleave - inside).min(end - at);
                    let (round, disk) = self.round.split(stripe);
                    let (disk, on_disk) = (disk as u32, round * interleave + inside);
                    match out.iter_mut().rev().find(|piece| piece.disk == disk) {
                        Some(before) if self.merge && before.sector + before.sectors == on_disk => {
                            before.sectors += length;
                        }
                        _ => out.push(Piece { disk, sector: on_disk, sectors: length }),
                    }
                    at += length;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(volume: &Volume, sector: u64, sectors: u64) -> Vec<(u32, u64, u64)> {
        let mut out = Vec::new();
        volume.pieces(sector, sectors, false, 0, &mut out);
        out.iter().map(|p| (p.disk, p.sector, p.sectors)).collect()
    }

    #[test]
    fn the_map_of_ccd() {
        let volume = Volume::new(Join::Stripe { interleave: 8 }, 3, 1003, false).unwrap();
        assert_eq!(volume.sectors(), 3000, "components are cut to a multiple of the interleave");
        assert_eq!(pieces(&volume, 0, 16), [(0, 0, 8), (1, 0, 8)]);
        assert_eq!(pieces(&volume, 30, 4), [(0, 14, 2), (1, 8, 2)]);
    }

    /// A boundary falls inside a block of 16 sectors seven times of eight where the interleave is twice an odd number: 7/8 of
    /// one block in 126/16 is 11.1 %, of one in 2046/16 is 0.68 %. None at 128.
    #[test]
    fn how_many_blocks_are_split() {
        let share = |interleave| {
            let volume = Volume::new(Join::Stripe { interleave }, 3, 4_110_000, false).unwrap();
            let split = (0..100_000).filter(|block| pieces(&volume, block * 16, 16).len() > 1).count();
            split as f64 / 100_000.0
        };
        assert!((share(126) - 0.111).abs() < 0.001, "{}", share(126));
        assert!((share(2046) - 0.00684).abs() < 0.0002, "{}", share(2046));
        assert_eq!((share(128), share(8)), (0.0, 1.0));
    }

    #[test]
    fn a_mirror_writes_all_and_reads_one_and_a_concatenation_fills_one_after_the_other() {
        let mirror = Volume::new(Join::Mirror, 2, 100, false).unwrap();
        let mut out = Vec::new();
        mirror.pieces(5, 3, true, 0, &mut out);
        assert_eq!(out.len(), 2);
        mirror.pieces(5, 3, false, 7, &mut out);
        assert_eq!(out, [Piece { disk: 1, sector: 5, sectors: 3 }]);
        let concat = Volume::new(Join::Concat, 2, 100, false).unwrap();
        assert_eq!(pieces(&concat, 98, 4), [(0, 98, 2), (1, 0, 2)]);
    }

    #[test]
    fn impossible_volumes_are_refused() {
        for (join, disks, sectors) in [
            (Join::Stripe { interleave: 0 }, 3, 100),
            (Join::Stripe { interleave: 200 }, 3, 100),
            (Join::Mirror, 0, 100),
            (Join::Concat, 2, 0),
        ] {
            let problem = Volume::new(join, disks, sectors, false).unwrap_err();
            assert!(problem.hint.is_some());
        }
    }

    proptest! {
        /// No sector is lost, doubled or mapped twice, with and without merging.
        #[test]
        fn pieces_tile_the_range(
            interleave in 1u64..300, disks in 1u32..6, start in 0u64..5000, sectors in 1u64..2000, merge: bool,
        ) {
            let volume = Volume::new(Join::Stripe { interleave }, disks, 20_000, merge).unwrap();
            let mut out = Vec::new();
            volume.pieces(start, sectors, false, 0, &mut out);
            prop_assert_eq!(out.iter().map(|p| p.sectors).sum::<u64>(), sectors);
            let mut places: Vec<(u32, u64)> =
                out.iter().flat_map(|p| (p.sector..p.sector + p.sectors).map(move |s| (p.disk, s))).collect();
            places.sort_unstable();
            places.dedup();
            prop_assert_eq!(places.len() as u64, sectors);
            for s in start..start + sectors {
                let (stripe, inside) = (s / interleave, s % interleave);
                let place = ((stripe % u64::from(disks)) as u32, stripe / u64::from(disks) * interleave + inside);
                prop_assert!(places.binary_search(&place).is_ok());
            }
        }
    }
}
