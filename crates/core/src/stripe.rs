//! Striping as arithmetic: which member of a stripe holds a byte, and which parts of a request go where. Bytes throughout.
//!
//! The map is that of ccd(4), md raid0, dm-stripe and btrfs raid0: chunks of `interleave` bytes in turn. It knows
//! no devices, no time and no file systems.
//!
//! Invariant: every byte of a range is in exactly one part, and the parts of one range on one member are one: chunks that
//! follow one another on a member are adjacent there, and every striping driver submits them together.

/// Equal members that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stripe {
    interleave: u64,
    members: u64,
    /// Bytes of one turn of all members.
    row: u64,
}

/// Part of a range on one member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Which member, from 0.
    pub member: usize,
    /// First byte on that member.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Stripe {
    /// A stripe of `members` that take turns of `interleave` bytes; `None` when either is 0 or a row is beyond counting.
    pub fn new(interleave: u64, members: usize) -> Option<Stripe> {
        let members = u64::try_from(members).ok()?;
        let row = interleave.checked_mul(members).filter(|row| *row > 0)?;
        Some(Stripe { interleave, members, row })
    }

    /// Bytes of one turn.
    pub fn interleave(&self) -> u64 {
        self.interleave
    }

    /// How many members.
    pub fn members(&self) -> usize {
        self.members as usize
    }

    /// Bytes of one turn of all members.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// Bytes that can be used of a member of this size: whole turns.
    pub fn usable(&self, member_bytes: u64) -> u64 {
        member_bytes / self.interleave * self.interleave
    }

    /// The member that holds a byte.
    pub fn member_of(&self, position: u64) -> usize {
        (position / self.interleave % self.members) as usize
    }

    /// Bytes below `position` that are on a member.
    pub fn held_before(&self, position: u64, member: usize) -> u64 {
        let (rows, rest) = (position / self.row, position % self.row);
        let before = self.interleave.saturating_mul(member as u64);
        rows * self.interleave + rest.saturating_sub(before).min(self.interleave)
    }

    /// The part of `bytes` bytes from `position` on a member; `None`: no part. A range that ends beyond the last
    /// number is cut there.
    pub fn part(&self, position: u64, bytes: u64, member: usize) -> Option<Part> {
        let offset = self.held_before(position, member);
        let end = self.held_before(position.saturating_add(bytes), member);
        (end > offset).then_some(Part { member, offset, bytes: end - offset })
    }

    /// The parts of a range, in the order of their first bytes; at most one for each member.
    pub fn parts(&self, position: u64, bytes: u64) -> impl Iterator<Item = Part> + use<> {
        let stripe = *self;
        let first = self.member_of(position) as u64;
        let touched = self.chunks(position, bytes).min(self.members);
        (0..touched)
            .filter_map(move |turn| stripe.part(position, bytes, ((first + turn) % stripe.members) as usize))
    }

    /// Turns that a range touches: one more than the borders inside it.
    pub fn chunks(&self, position: u64, bytes: u64) -> u64 {
        match position.saturating_add(bytes).checked_sub(1) {
            Some(last) if bytes > 0 => last / self.interleave - position / self.interleave + 1,
            _ => 0,
        }
    }

    /// Offset in the stripe of a byte of a member; `None` beyond the last number.
    pub fn position_of(&self, member: usize, offset: u64) -> Option<u64> {
        let (turn, inside) = (offset / self.interleave, offset % self.interleave);
        let before = self.interleave.checked_mul(member as u64)?.checked_add(inside)?;
        turn.checked_mul(self.row)?.checked_add(before)
    }

    /// The most bytes that one member can have of a range of `bytes`.
    pub fn longest_part(&self, bytes: u64) -> u64 {
        bytes / self.row * self.interleave + (bytes % self.row).min(self.interleave)
    }

    /// Whether requests of `bytes` that begin at multiples of it, counted from `base`, can cross a border.
    pub fn splits(&self, base: u64, bytes: u64) -> bool {
        bytes == 0 || !self.interleave.is_multiple_of(bytes) || !base.is_multiple_of(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_map_of_ccd() {
        let stripe = Stripe::new(8, 3).unwrap();
        let parts =
            |at, bytes| stripe.parts(at, bytes).map(|p| (p.member, p.offset, p.bytes)).collect::<Vec<_>>();
        assert_eq!(parts(0, 16), [(0, 0, 8), (1, 0, 8)]);
        assert_eq!(parts(30, 4), [(0, 14, 2), (1, 8, 2)]);
        // Five turns from the middle of one: the second turn of a member follows its first.
        assert_eq!(parts(4, 36), [(0, 4, 12), (1, 0, 16), (2, 0, 8)]);
        assert_eq!(parts(7, 0), []);
        assert_eq!((stripe.usable(1003), stripe.longest_part(24), stripe.longest_part(60)), (1000, 8, 24));
        assert!(stripe.splits(0, 16) && stripe.splits(4, 8) && !stripe.splits(16, 8) && !stripe.splits(0, 2));
    }

    #[test]
    fn impossible_stripes_are_none_and_the_ends_of_numbers_do_no_harm() {
        assert_eq!(Stripe::new(0, 3), None);
        assert_eq!(Stripe::new(8, 0), None);
        assert_eq!(Stripe::new(u64::MAX, 2), None);
        let stripe = Stripe::new(1 << 20, 3).unwrap();
        let bytes: u64 = stripe.parts(u64::MAX - 10, 100).map(|p| p.bytes).sum();
        assert_eq!(bytes, 10);
        assert_eq!(stripe.position_of(2, u64::MAX), None);
    }

    proptest! {
        #[test]
        fn every_byte_is_in_exactly_one_part_and_the_way_back_finds_it(
            interleave in 1u64..100, members in 1usize..7, start in 0u64..3000, bytes in 0u64..1500,
        ) {
            let stripe = Stripe::new(interleave, members).unwrap();
            let parts: Vec<Part> = stripe.parts(start, bytes).collect();
            prop_assert_eq!(parts.iter().map(|p| p.bytes).sum::<u64>(), bytes);
            let mut seen = Vec::new();
            for part in &parts {
                prop_assert!(part.bytes <= stripe.longest_part(bytes));
                for offset in part.offset..part.offset + part.bytes {
                    let position = stripe.position_of(part.member, offset).unwrap();
                    prop_assert_eq!(stripe.member_of(position), part.member);
                    seen.push(position);
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (start..start + bytes).collect::<Vec<_>>());
            let mut members: Vec<usize> = parts.iter().map(|p| p.member).collect();
            members.sort_unstable();
            members.dedup();
            prop_assert_eq!(members.len(), parts.len(), "one part for each member");
            prop_assert!(parts.len() as u64 <= stripe.chunks(start, bytes));
        }

        #[test]
        fn requests_that_cannot_cross_a_border_do_not(
            interleave in 1u64..200, members in 2usize..5, bytes in 1u64..100, block in 0u64..500, base in 0u64..50,
        ) {
            let stripe = Stripe::new(interleave, members).unwrap();
            let base = base * bytes;
            if !stripe.splits(base, bytes) {
                prop_assert_eq!(stripe.chunks(base + block * bytes, bytes), 1);
            }
        }
    }
}
