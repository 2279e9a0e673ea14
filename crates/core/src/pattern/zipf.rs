//! Zipf-distributed ranks by rejection from a stepped bound: exact, a few nanoseconds a draw for any number of ranks.
//!
//! The ranks are cut into bins no wider than 1/64 of their first rank. Over a bin the law is bounded by its value at the
//! bin's first rank, so a draw is: a bin by the alias method (A. J. Walker, ACM TOMS 3(3), 1977; set up as in M. D. Vose,
//! IEEE TSE 17(9), 1991), a rank uniform in the bin, and a rejection by the ratio of law to bound. That ratio is
//! close to 1 and has a constant lower limit, so that few draws need a power computed.
//!
//! Invariant: the table takes at most 30 KiB and well under a millisecond to build, whatever the number of ranks.

use crate::rng::Rng;

/// Ranks 1..=n with P(k) proportional to 1/k^θ.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    theta: f64,
    ranks: u64,
    /// One slot a bin: the share of the slot that the bin itself keeps, in 2^-48, above the bin that has the rest.
    slots: Box<[u64]>,
    /// Every rank has at least this ratio of law to bound, so a draw below it needs no further check.
    sure: f64,
}

/// Bins in one doubling of the rank; below twice this, each rank is its own bin.
const BINS_LOG2: u32 = 6;

/// Low bits of a slot that hold a bin; the greatest number of bins is 64 * 59.
const ALIAS_BITS: u32 = 16;

impl Zipf {
    /// `ranks` of 0 counts as 1; an exponent that is negative or not a number counts as 0 (uniform).
    pub(super) fn new(theta: f64, ranks: u64) -> Self {
        let theta = theta.max(0.0);
        let ranks = ranks.max(1);
        // Bin 0 would be rank 0: it has no weight, which spares a subtraction in every draw.
        let weights: Vec<f64> = (0..=bin_of(ranks))
            .map(|bin| {
                let (first, width_log2) = bin_range(bin);
                if first == 0 { 0.0 } else { (first as f64).powf(-theta) * (1u64 << width_log2) as f64 }
            })
            .collect();
        let sure = (1.0 + 1.0 / f64::from(1u32 << BINS_LOG2)).powf(-theta);
        Zipf { theta, ranks, slots: alias_slots(&weights), sure }
    }

    /// A rank, 1 to `ranks`.
    #[inline]
    pub(super) fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let wide = u128::from(rng.next_u64()) * self.slots.len() as u128;
            let (column, share) = ((wide >> 64) as usize, wide as u64 >> ALIAS_BITS);
            let slot = self.slots[column];
            let alias = slot & ((1 << ALIAS_BITS) - 1);
            let bin = if share < slot >> ALIAS_BITS { column as u64 } else { alias };
            let (first, width_log2) = bin_range(bin);
            let rank = first + (rng.next_u64() & ((1 << width_log2) - 1));
            let u = rng.unit();
            // The last bin may reach beyond the last rank.
            if rank <= self.ranks && (u < self.sure || self.accepts(u, first, rank)) {
                return rank;
            }
        }
    }

    /// Whether `u`, uniform in [0, 1), falls below the ratio of the law at `rank` to the bound of its bin.
    #[cold]
    fn accepts(&self, u: f64, first: u64, rank: u64) -> bool {
        rank == first || u < (rank as f64 / first as f64).powf(-self.theta)
    }
}

/// The first rank of a bin, and the binary logarithm of its number of ranks.
#[inline]
fn bin_range(bin: u64) -> (u64, u32) {
    let width_log2 = ((bin >> BINS_LOG2) as u32).saturating_sub(1);
    ((bin - (u64::from(width_log2) << BINS_LOG2)) << width_log2, width_log2)
}

/// The bin that holds a rank, which is 1 or more.
fn bin_of(rank: u64) -> u64 {
    let width_log2 = rank.ilog2().saturating_sub(BINS_LOG2);
    (rank >> width_log2) + (u64::from(width_log2) << BINS_LOG2)
}

/// The alias table of bins with these weights, of which at least one is positive.
fn alias_slots(weights: &[f64]) -> Box<[u64]> {
    const WHOLE: u64 = 1 << (u64::BITS - ALIAS_BITS);
    let scale = weights.len() as f64 / weights.iter().sum::<f64>();
    // In units of one slot: the mean is 1.
    let mut left: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
    let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..left.len()).partition(|&bin| left[bin] < 1.0);
    // A bin is its own alias until it gets another: a bin that rounding leaves unpaired has a whole slot.
    let mut slots: Box<[u64]> = (0..left.len() as u64).collect();
    while let (Some(&giver), Some(taker)) = (rich.last(), poor.pop()) {
        let kept = ((left[taker] * WHOLE as f64) as u64).min(WHOLE - 1);
        slots[taker] = kept << ALIAS_BITS | giver as u64;
        left[giver] -= 1.0 - left[taker];
        if left[giver] < 1.0 {
            rich.pop();
            poor.push(giver);
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's chi-square of 200,000 draws against the exact probabilities, at fixed seeds.
    #[test]
    fn frequencies_follow_the_law() {
        const RANKS: usize = 20;
        const DRAWS: usize = 200_000;
        // 99.9 % quantile of chi-square with 19 degrees of freedom.
        const CRITICAL: f64 = 43.82;
        for (seed, theta) in [0.0, 0.3, 0.99, 1.0, 1.0 + 1e-10, 1.0 - 2e-6, 1.1, 2.0].into_iter().enumerate()
        {
            let zipf = Zipf::new(theta, RANKS as u64);
            let mut rng = Rng::new(seed as u64);
            let mut counts = [0u32; RANKS];
            for _ in 0..DRAWS {
                counts[zipf.sample(&mut rng) as usize - 1] += 1;
            }
            let weights: Vec<f64> = (1..=RANKS).map(|k| (k as f64).powf(-theta)).collect();
            let total: f64 = weights.iter().sum();
            let chi_square: f64 = weights
                .iter()
                .zip(counts)
                .map(|(w, n)| {
                    let expected = DRAWS as f64 * w / total;
                    (f64::from(n) - expected).powi(2) / expected
                })
                .sum();
            assert!(chi_square < CRITICAL, "θ = {theta}: chi-square {chi_square}");
        }
    }

    #[test]
    fn bins_are_narrow_and_cover_every_rank_once() {
        let mut next = 1;
        for bin in 1..=bin_of(u64::MAX) {
            let (first, width_log2) = bin_range(bin);
            let width = 1u64 << width_log2;
            assert_eq!(first, next, "bin {bin}");
            assert!(width == 1 || first / width >= 1 << BINS_LOG2, "bin {bin}: {width} ranks from {first}");
            assert!(bin_of(first) == bin && bin_of(first + (width - 1)) == bin);
            next = first.wrapping_add(width);
        }
        assert_eq!(next, 0, "the last bin ends at 2^64");
        assert!(bin_of(u64::MAX) < 1 << ALIAS_BITS);
    }

    /// Bins of many ranks: 50,000 ranks in 50 groups.
    #[test]
    fn wide_bins_have_their_share() {
        const RANKS: u64 = 50_000;
        const DRAWS: u32 = 500_000;
        // 99.9 % quantile of chi-square with 49 degrees of freedom.
        const CRITICAL: f64 = 85.35;
        for (seed, theta) in [0.0, 0.8, 0.99, 1.0, 1.2].into_iter().enumerate() {
            let zipf = Zipf::new(theta, RANKS);
            let mut rng = Rng::new(seed as u64);
            let (mut weights, mut counts) = ([0.0; 50], [0u32; 50]);
            (1..=RANKS).for_each(|rank| weights[(rank as usize - 1) / 1000] += (rank as f64).powf(-theta));
            (0..DRAWS).for_each(|_| counts[(zipf.sample(&mut rng) as usize - 1) / 1000] += 1);
            let total: f64 = weights.iter().sum();
            let chi_square: f64 = weights
                .iter()
                .zip(counts)
                .map(|(w, n)| {
                    let expected = f64::from(DRAWS) * w / total;
                    (f64::from(n) - expected).powi(2) / expected
                })
                .sum();
            assert!(chi_square < CRITICAL, "θ = {theta}: chi-square {chi_square}");
        }
    }

    /// Inside a bin at θ = 1, the ranks up to a point have the share ln(point / first) / ln(end / first), to within
    /// the rounding of ranks, which is small in wide bins. The bound taken for the law would halve it instead.
    #[test]
    fn inside_a_bin_the_law_slopes() {
        let zipf = Zipf::new(1.0, 1 << 60);
        let mut rng = Rng::new(1);
        let (mut excess, mut variance) = (0.0, 0.0);
        for _ in 0..8_000_000 {
            let rank = zipf.sample(&mut rng);
            let (first, width_log2) = bin_range(bin_of(rank));
            if width_log2 >= 10 {
                let width = (1u64 << width_log2) as f64 / first as f64;
                let share = (width / 2.0).ln_1p() / width.ln_1p();
                let in_lower_half = (rank - first) >> (width_log2 - 1) == 0;
                excess += f64::from(u8::from(in_lower_half)) - share;
                variance += share * (1.0 - share);
            }
        }
        let deviations = excess / f64::sqrt(variance);
        // 99.9 % of a normal distribution.
        assert!(deviations.abs() < 3.29, "{deviations} standard deviations");
    }

    #[test]
    fn extremes_end_and_stay_in_bounds() {
        let mut rng = Rng::new(9);
        for theta in [0.0, 0.5, 1.0, 3.0, 50.0, 1e3, 1e300, -1.0, f64::NAN] {
            for ranks in [0, 1, 2, 1 << 40, u64::MAX] {
                let zipf = Zipf::new(theta, ranks);
                for _ in 0..1000 {
                    let rank = zipf.sample(&mut rng);
                    assert!((1..=ranks.max(1)).contains(&rank), "θ = {theta}, {ranks} ranks: {rank}");
                    if theta >= 50.0 {
                        assert_eq!(rank, 1, "θ = {theta}: all mass is on the first rank");
                    }
                }
            }
        }
    }
}
