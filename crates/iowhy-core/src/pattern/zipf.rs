//! Zipf-distributed ranks by rejection-inversion: exact, constant time and memory for any number of ranks.
//!
//! W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
//! ACM TOMACS 6(3), 1996. The area under x^-θ stands in for the sum; a draw from the area is rounded to a rank and
//! rejected where area and sum differ. At least three of four draws are accepted.

use crate::rng::Rng;

/// Ranks 1..=n with P(k) proportional to 1/k^θ.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    theta: f64,
    ranks: u64,
    /// The area up to rank 1's lower end, shifted so that rank 1 itself is never rejected.
    area_first: f64,
    /// The area up to the upper end of the last rank.
    area_last: f64,
    /// A draw this little below its rank needs no further check.
    sure: f64,
}

impl Zipf {
    /// `ranks` of 0 counts as 1; an exponent that is negative or not a number counts as 0 (uniform).
    pub(super) fn new(theta: f64, ranks: u64) -> Self {
        let theta = theta.max(0.0);
        let ranks = ranks.max(1);
        let mut zipf = Zipf { theta, ranks, area_first: 0.0, area_last: 0.0, sure: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(ranks as f64 + 0.5);
        zipf.sure = 2.0 - zipf.inverse_area(zipf.area(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank, 1 to `ranks`.
    #[inline]
    pub(super) fn sample(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.area_last + rng.unit() * (self.area_first - self.area_last);
            let x = self.inverse_area(area);
            // A float too large for u64 saturates; not-a-number becomes 0, hence rank 1.
            let rank = ((x + 0.5) as u64).clamp(1, self.ranks);
            let k = rank as f64;
            if k - x <= self.sure || area >= self.area(k + 0.5) - self.density(k) {
                return rank;
            }
        }
    }

    /// x^-θ.
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of x^-θ from 1: (x^(1-θ) - 1) / (1-θ), which is ln x at θ = 1.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = 1.0 - self.theta;
        if power.abs() > NEAR_ONE {
            ((power * log).exp() - 1.0) / power
        } else {
            log * (1.0 + power * log / 2.0)
        }
    }

    /// The x with this area.
    #[inline]
    fn inverse_area(&self, area: f64) -> f64 {
        let power = 1.0 - self.theta;
        if power.abs() > NEAR_ONE {
            // Negative only by rounding.
            ((1.0 + area * power).max(0.0).ln() / power).exp()
        } else {
            (area * (1.0 - area * power / 2.0)).exp()
        }
    }
}

/// Below this |1-θ| the powers are replaced by two terms of their series in 1-θ. There both forms err by less than
/// 1e-9: the powers by cancellation (2^-52 / |1-θ|), the series by its third term ((1-θ) ln x)^2 / 6.
const NEAR_ONE: f64 = 1e-6;

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
