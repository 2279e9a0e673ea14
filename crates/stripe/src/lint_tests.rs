//! Known answers of 1999, of vinum(8) and of the literature; counting one by one against the formulas.

use iowhy_core::volume::{Ext4, Xfs};
use proptest::prelude::*;

use super::*;
use crate::layout::Layout;
use crate::rules;

const SECTOR: u64 = 512;
const BLOCK: u64 = 8192;
/// Three disks of 2080 MiB, as in the test of 1999.
const DISK: u64 = 2080 << 20;

fn ffs(group_sectors: u64, disks: u64) -> Layout {
    let volume = DISK * disks;
    let group = group_sectors * SECTOR;
    // 1.2 million files over all groups.
    Layout::ffs(group, volume, BLOCK, 4096, Some(1_200_000 / (volume / group)))
}

fn linted(group_sectors: u64, interleave_sectors: u64, disks: u64) -> Lint {
    let stripe = Stripe::new(interleave_sectors * SECTOR, disks as usize).unwrap();
    lint(stripe, &ffs(group_sectors, disks), &[BLOCK], Makable::ANY).unwrap()
}

fn worst(lint: &Lint, what: &str) -> f64 {
    lint.areas.iter().find(|area| area.what == what).unwrap().most_over_mean
}

/// The groups of newfs on a ccd, 32768 sectors: three disks divide no power of two, so every interleave is even there, and
/// the 126 against 128 of 1999 has another cause.
#[test]
fn three_disks_and_default_groups_are_even_for_126_128_and_2048() {
    for interleave in [126, 128, 2048] {
        let lint = linted(32_768, interleave, 3);
        assert_eq!(lint.spread, Spread::Even, "{interleave}: {lint:?}");
        assert!(lint.areas.iter().all(|area| area.most_over_mean < 1.05), "{lint:?}");
        assert_eq!(lint.better.is_some(), lint.split_share > 0.10, "{lint:?}");
    }
    assert_eq!(linted(32_768, 128, 3).period_groups, Some(3));
    assert_eq!(linted(32_768, 126, 3).period_groups, Some(189));
}

/// Two disks and powers of two: all on one disk. The rule of vinum(8), and what was seen while untarring.
#[test]
fn two_disks_and_powers_of_two_put_everything_on_one() {
    let small = linted(32_768, 128, 2);
    assert_eq!((small.period_groups, small.spread), (Some(1), Spread::Concentrated));
    assert_eq!(worst(&small, "group descriptors"), 2.0);
    for interleave in [1024, 2048, 16_384] {
        let large = linted(32_768, interleave, 2);
        // All 4096 inodes of a group are in use here: 1024 sectors from sector 64 on, of which 64 are on the other disk.
        assert!(worst(&large, "inodes") >= 1.875, "{interleave}: {large:?}");
    }
    for interleave in [126, 2046] {
        let odd = linted(32_768, interleave, 2);
        // 260 groups are no whole number of periods: what is left over is the rest.
        assert!(odd.areas.iter().all(|area| area.most_over_mean <= 1.05), "{interleave}: {odd:?}");
    }
    // Four disks: as bad as four to one.
    assert_eq!(worst(&linted(32_768, 128, 4), "group descriptors"), 4.0);
}

/// Groups of 24 MiB, a multiple of three: three disks concentrate, too.
#[test]
fn three_disks_concentrate_when_the_group_divides_by_three() {
    assert!(worst(&linted(49_152, 2048, 3), "inodes") > 2.9);
    assert!(worst(&linted(49_152, 128, 3), "inodes") < 1.05);
    assert_eq!(worst(&linted(49_152, 128, 3), "group descriptors"), 3.0);
    let odd = linted(49_152, 126, 3);
    assert!(odd.areas.iter().all(|area| area.most_over_mean < 1.05), "{odd:?}");
}

#[test]
fn the_better_interleave_is_near_even_and_splits_few() {
    for (group, interleave, disks) in
        [(32_768, 128, 2), (32_768, 2048, 2), (32_768, 128, 4), (49_152, 2048, 3)]
    {
        let bad = linted(group, interleave, disks);
        let better = bad.better.clone().unwrap();
        assert!(
            better.interleave_bytes * 2 >= bad.interleave_bytes
                && better.interleave_bytes <= 2 * bad.interleave_bytes
        );
        let again = linted(group, better.interleave_bytes / SECTOR, disks);
        assert_eq!(again.spread, Spread::Even, "{better:?}");
        assert!(again.split_share <= 0.10 && (again.split_share - better.split_share).abs() < 1e-12);
    }
    // 11 blocks of 16 sectors: odd, and no aligned block is split.
    let better = linted(32_768, 128, 2).better.unwrap();
    assert_eq!((better.interleave_bytes, better.split_share), (176 * SECTOR, 0.0));
    // Where only powers of two can be made there is none.
    let stripe = Stripe::new(128 * SECTOR, 2).unwrap();
    let only = Makable { grain_bytes: 4096, powers_of_two: true };
    assert_eq!(lint(stripe, &ffs(32_768, 2), &[BLOCK], only).unwrap().better, None);
}

#[test]
fn splits_of_known_interleaves() {
    let share = |interleave: u64, bytes: u64, alignment: u64| {
        let stripe = Stripe::new(interleave * SECTOR, 3).unwrap();
        split::split(&stripe, bytes, alignment).unwrap()
    };
    assert!((share(126, BLOCK, BLOCK).share - 7.0 / 63.0).abs() < 1e-12);
    assert!((share(2046, BLOCK, BLOCK).share - 7.0 / 1023.0).abs() < 1e-12);
    assert_eq!(share(128, BLOCK, BLOCK).share, 0.0);
    assert_eq!((share(8, BLOCK, BLOCK).share, share(8, BLOCK, BLOCK).transfers), (1.0, 2.0));
    // vinum(8): (S + F - 1) / S transfers of an unaligned request of F sectors.
    let unaligned = share(128, 16 * SECTOR, SECTOR);
    assert!((unaligned.transfers - (128.0 + 16.0 - 1.0) / 128.0).abs() < 1e-12);
    assert_eq!(split::split(&Stripe::new(512, 2).unwrap(), 0, 512), None);
}

#[test]
fn ext4_and_xfs_as_they_are_made_by_default() {
    // 16 groups of 128 MiB keep their tables together: 32 MiB of inodes cross every turn, the bitmaps of 64 KiB do not.
    let stripe = Stripe::new(64 << 10, 2).unwrap();
    let found = lint(stripe, &Layout::ext4(&Ext4::usual(1 << 40)), &[4096], Makable::ANY).unwrap();
    assert_eq!(worst(&found, "block bitmaps"), 2.0);
    assert!(worst(&found, "inodes") < 1.01);
    let three = Stripe::new(64 << 10, 3).unwrap();
    assert_eq!(
        lint(three, &Layout::ext4(&Ext4::usual(1 << 40)), &[], Makable::ANY).unwrap().spread,
        Spread::Even
    );
    // Four allocation groups on three disks: one has two of them, and that is no fault of the interleave.
    let xfs = |group_bytes, groups| {
        Layout::xfs(&Xfs {
            group_bytes,
            groups,
            block_bytes: 4096,
            sector_bytes: 512,
            stripe_unit_bytes: 0,
            stripe_width_bytes: 0,
        })
    };
    let found = lint(three, &xfs(10 << 30, 4), &[4096], Makable::ANY).unwrap();
    assert_eq!((found.areas[0].possible, found.spread), (1.5, Spread::Even), "{found:?}");
    assert_eq!(lint(three, &xfs(3 << 30, 64), &[4096], Makable::ANY).unwrap().spread, Spread::Concentrated);
    let nothing = lint(three, &Layout::none(4096), &[], Makable::ANY).unwrap();
    assert_eq!((nothing.period_groups, nothing.spread, nothing.split_share), (None, Spread::Even, 0.0));
}

/// The disk of the test of 1999, by its data sheet: 13.5 ms and 11.4 MB/s.
#[test]
fn the_published_rules() {
    let inputs = rules::Inputs {
        positioning_s: 0.0135,
        bytes_per_second: 11.4e6 * 1.0,
        outstanding: 30.0,
        request_bytes: 8192.0,
        disks: 3.0,
    };
    let sectors = |bytes: f64| (bytes / 512.0).round();
    assert_eq!(sectors(rules::chen_patterson(&inputs).unwrap()), 2180.0);
    assert_eq!(sectors(rules::chen_patterson_unknown(&inputs).unwrap()), 200.0);
    assert_eq!(sectors(rules::lee_katz(&inputs).unwrap()), 216.0);
    let one = rules::Inputs { outstanding: 1.0, ..inputs };
    assert_eq!((rules::chen_patterson(&one), rules::lee_katz(&one)), (Some(512.0), None));
    assert_eq!(rules::chen_patterson(&rules::Inputs { positioning_s: 0.0, ..inputs }), None);
    assert_eq!(rules::lee_katz(&rules::Inputs { disks: f64::NAN, ..inputs }), None);
}

proptest! {
    /// Counting by formula and counting one by one give the same.
    #[test]
    fn splits_are_counted_right(interleave in 1u64..80, disks in 1usize..5, bytes in 1u64..300, alignment in 1u64..40) {
        let stripe = Stripe::new(interleave, disks).unwrap();
        let split = split::split(&stripe, bytes, alignment).unwrap();
        // All residues of multiples of the alignment are met within `interleave` of them.
        let chunks: Vec<u64> = (0..interleave).map(|n| stripe.chunks(n * alignment, bytes)).collect();
        let share = chunks.iter().filter(|c| **c > 1).count() as f64 / chunks.len() as f64;
        let transfers = chunks.iter().sum::<u64>() as f64 / chunks.len() as f64;
        prop_assert!((split.share - share).abs() < 1e-9, "{:?} {}", split, share);
        prop_assert!((split.transfers - transfers).abs() < 1e-9, "{:?} {}", split, transfers);
    }

    /// Whatever is given, shares sum to one and nothing panics; after a period the picture repeats.
    #[test]
    fn loads_hold_together(
        interleave in 1u64..5000, disks in 1usize..9, group in 0u64..100_000, groups in 0u64..500, block in 0u64..10_000,
    ) {
        let stripe = Stripe::new(interleave * SECTOR, disks).unwrap();
        let places = Layout::ffs(group * SECTOR, group * SECTOR * groups, block, 4096, None);
        let lint = lint(stripe, &places, &[4096, 1 << 20], Makable::ANY).unwrap();
        for area in &lint.areas {
            prop_assert!((area.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(area.most_over_mean >= 1.0 - 1e-9 && area.most_over_mean <= disks as f64 + 1e-9);
        }
        if let Some(period) = lint.period_groups {
            let (a, b) = (stripe.member_of(7 * SECTOR), stripe.member_of(period * group * SECTOR + 7 * SECTOR));
            prop_assert_eq!(a, b);
        }
    }
}
