//! Chunks of btrfs as a search of the chunk tree hands them out: a header in the byte order of this machine, then the item as it
//! lies on disk, little-endian (linux/btrfs_tree.h, `struct btrfs_chunk`). Pure; what makes no sense is an error, never a guess.

use iowhy_core::stripe::Stripe;

/// Bytes of `struct btrfs_ioctl_search_header`.
const HEADER_BYTES: usize = 32;
/// Bytes of `struct btrfs_chunk` without its stripes, and of one stripe.
const CHUNK_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;
/// Bits of the type (BTRFS_BLOCK_GROUP_*).
const DATA: u64 = 1;
const RAID0: u64 = 1 << 3;
const RAID10: u64 = 1 << 6;
const PARITY: u64 = 1 << 7 | 1 << 8;
/// The profiles by their bits; none of them: `single`.
const PROFILES: [(u64, &str); 8] = [
    (RAID0, "raid0"),
    (1 << 4, "raid1"),
    (1 << 5, "dup"),
    (RAID10, "raid10"),
    (1 << 7, "raid5"),
    (1 << 8, "raid6"),
    (1 << 9, "raid1c3"),
    (1 << 10, "raid1c4"),
];

/// A run of the file system's addresses and the devices that it lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// First address.
    pub(super) start: u64,
    /// Addresses.
    pub(super) length: u64,
    /// Bytes of one turn.
    pub(super) stripe_bytes: u64,
    kind: u64,
    /// Copies of each turn, for raid10.
    copies: u16,
    /// Numbers of the devices, in the order of their turns.
    stripes: Vec<u64>,
}

impl Chunk {
    /// Whether it holds data, and not only metadata.
    pub(super) fn holds_data(&self) -> bool {
        self.kind & DATA != 0
    }

    /// The profile by its name.
    pub(super) fn profile(&self) -> &'static str {
        PROFILES.iter().find(|(bit, _)| self.kind & bit != 0).map_or("single", |(_, name)| name)
    }

    /// Whether devices take turns in it.
    pub(super) fn takes_turns(&self) -> bool {
        self.kind & (RAID0 | RAID10 | PARITY) != 0
    }

    /// Devices that it lies on.
    pub(super) fn devices(&self) -> usize {
        self.stripes.len()
    }

    /// What of a range of addresses lies in it: bytes from its start, and bytes.
    pub(super) fn overlap(&self, (start, bytes): &(u64, u64)) -> Option<(u64, u64)> {
        let (from, to) = (
            *start.max(&self.start),
            start.saturating_add(*bytes).min(self.start.saturating_add(self.length)),
        );
        (to > from).then(|| (from - self.start, to - from))
    }

    /// Bytes on each device, by number, of a range of it; copies count. `None` where parity moves from row to row.
    pub(super) fn shares(&self, from: u64, bytes: u64) -> Option<Vec<(u64, u64)>> {
        if self.kind & PARITY != 0 {
            return None;
        }
        // One turn may lie on several devices: those that follow one another.
        let copies = match self.kind {
            kind if kind & RAID10 != 0 => usize::from(self.copies).max(1),
            kind if kind & RAID0 != 0 => 1,
            _ => self.stripes.len(),
        };
        let turns = Stripe::new(self.stripe_bytes, self.stripes.len() / copies)?;
        let share = |(index, device): (usize, &u64)| {
            let member = index / copies;
            (*device, turns.part(from, bytes, member).map_or(0, |part| part.bytes))
        };
        Some(self.stripes.iter().enumerate().map(share).collect())
    }
}

/// Reads this number of items.
///
/// # Errors
/// Says what is cut short or cannot be.
pub(super) fn read(buffer: &[u8], items: u32) -> Result<Vec<Chunk>, String> {
    let mut rest = buffer;
    (0..items)
        .map(|number| {
            let cut = || format!("item {} of {items} is cut short", number + 1);
            let (header, behind) = rest.split_at_checked(HEADER_BYTES).ok_or_else(cut)?;
            let field = |at: usize| {
                header.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
            };
            let length = header.get(28..32).and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes);
            let (start, length) = field(16).zip(length).ok_or_else(cut)?;
            let (item, next) = behind.split_at_checked(length as usize).ok_or_else(cut)?;
            rest = next;
            chunk(start, item).ok_or_else(|| format!("item {} of {items} is no chunk", number + 1))
        })
        .collect()
}

/// One item; `None` when it is too short for its stripes or its figures cannot be.
fn chunk(start: u64, item: &[u8]) -> Option<Chunk> {
    let long = |at: usize| Some(u64::from_le_bytes(item.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(u16::from_le_bytes(item.get(at..at + 2)?.try_into().ok()?));
    let stripes: Vec<u64> =
        (0..usize::from(short(44)?)).map(|n| long(CHUNK_BYTES + n * STRIPE_BYTES)).collect::<Option<_>>()?;
    if item.len() < CHUNK_BYTES + stripes.len() * STRIPE_BYTES {
        return None;
    }
    let found = Chunk {
        start,
        length: long(0)?,
        stripe_bytes: long(16)?,
        kind: long(24)?,
        copies: short(46)?,
        stripes,
    };
    (found.length > 0 && found.stripe_bytes > 0 && !found.stripes.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;

    use super::*;

    const KIB: u64 = 1 << 10;

    fn item(start: u64, kind: u64, copies: u16, devices: &[u64]) -> Vec<u8> {
        let mut item = Vec::new();
        // length, owner, turn, type: then three sizes, the counts, and the stripes.
        for field in [1u64 << 30, 2, 64 * KIB, kind] {
            item.extend(field.to_le_bytes());
        }
        for field in [65_536u32, 65_536, 4096] {
            item.extend(field.to_le_bytes());
        }
        item.extend((devices.len() as u16).to_le_bytes());
        item.extend(copies.to_le_bytes());
        for device in devices {
            item.extend(device.to_le_bytes());
            item.extend([0u8; 24]);
        }
        let mut bytes = Vec::new();
        for field in [7u64, 256, start] {
            bytes.extend(field.to_ne_bytes());
        }
        bytes.extend(228u32.to_ne_bytes());
        bytes.extend((item.len() as u32).to_ne_bytes());
        bytes.extend(item);
        bytes
    }

    fn one(kind: u64, copies: u16, devices: &[u64]) -> Chunk {
        read(&item(1 << 20, kind, copies, devices), 1).unwrap().remove(0)
    }

    #[test]
    fn known_bytes_are_known_chunks() {
        let bytes = [item(0, DATA | RAID0, 1, &[1, 2]), item(1 << 30, 1 << 4 | 1 << 2, 1, &[3, 1])].concat();
        let chunks = read(&bytes, 2).unwrap();
        let seen: Vec<_> = chunks
            .iter()
            .map(|c| {
                (c.start, c.length, c.stripe_bytes, c.profile(), c.holds_data(), c.takes_turns(), c.devices())
            })
            .collect();
        assert_eq!(
            seen,
            [
                (0, 1 << 30, 65_536, "raid0", true, true, 2),
                (1 << 30, 1 << 30, 65_536, "raid1", false, false, 2)
            ]
        );
        assert_eq!(chunks[1].stripes, [3, 1]);
        assert_eq!(one(DATA, 1, &[1]).profile(), "single");
        assert_eq!(read(&bytes, 0), Ok(Vec::new()));
    }

    #[test]
    fn what_is_cut_short_is_an_error_at_every_length() {
        let bytes = item(0, DATA | RAID0, 1, &[1, 2]);
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length], 1).is_err(), "{length}");
        }
        assert!(read(&bytes, 2).unwrap_err().contains("item 2 of 2"));
        // More stripes than the item holds; a turn of nothing; no device.
        for (at, value) in [(HEADER_BYTES + 44, 3u8), (HEADER_BYTES + 18, 0), (HEADER_BYTES + 44, 0)] {
            let mut broken = bytes.clone();
            broken[at] = value;
            assert!(read(&broken, 1).unwrap_err().contains("no chunk"), "{at}");
        }
    }

    #[test]
    fn every_profile_puts_a_range_on_its_devices() {
        let shares = |chunk: Chunk| chunk.shares(64 * KIB, 192 * KIB);
        assert_eq!(shares(one(DATA | RAID0, 1, &[1, 2])), Some(vec![(1, 64 * KIB), (2, 128 * KIB)]));
        assert_eq!(shares(one(DATA | 1 << 4, 1, &[1, 2])), Some(vec![(1, 192 * KIB), (2, 192 * KIB)]));
        assert_eq!(shares(one(DATA | 1 << 5, 1, &[1, 1])), Some(vec![(1, 192 * KIB), (1, 192 * KIB)]));
        assert_eq!(shares(one(DATA, 1, &[9])), Some(vec![(9, 192 * KIB)]));
        assert_eq!(
            shares(one(DATA | RAID10, 2, &[1, 2, 3, 4])),
            Some(vec![(1, 64 * KIB), (2, 64 * KIB), (3, 128 * KIB), (4, 128 * KIB)])
        );
        assert_eq!(shares(one(DATA | 1 << 7, 1, &[1, 2, 3])), None);
    }

    #[test]
    fn overlaps_are_counted_from_the_start_of_the_chunk() {
        let chunk = one(DATA, 1, &[1]);
        assert_eq!(chunk.overlap(&(0, 1 << 20)), None);
        assert_eq!(chunk.overlap(&((1 << 20) - 10, 30)), Some((0, 20)));
        assert_eq!(chunk.overlap(&((1 << 20) + 5, u64::MAX)), Some((5, (1 << 30) - 5)));
    }

    /// Known bytes with a few of them changed, and cut anywhere: an error or chunks, and no harm.
    #[test]
    fn no_bytes_do_harm() {
        let known =
            [item(0, DATA | RAID0, 1, &[1, 2, 3]), item(1 << 30, DATA | RAID10, 2, &[1, 2, 3, 4])].concat();
        let mut rng = Rng::new(7);
        let (mut read_well, mut refused) = (0, 0);
        for _ in 0..5000 {
            let mut bytes = known.clone();
            for _ in 0..1 + rng.below(3) {
                bytes[rng.below(known.len() as u64) as usize] = rng.below(256) as u8;
            }
            bytes.truncate(known.len() - (rng.below(4) * rng.below(80)) as usize);
            match read(&bytes, 1 + rng.below(3) as u32) {
                Ok(chunks) => {
                    read_well += 1;
                    for chunk in chunks {
                        let (from, length) = (rng.below(u64::MAX), rng.below(u64::MAX));
                        let _ = (chunk.shares(from, length), chunk.overlap(&(from, length)));
                    }
                }
                Err(_) => refused += 1,
            }
        }
        assert!(read_well > 100 && refused > 100, "{read_well} {refused}");
    }
}
