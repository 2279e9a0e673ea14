//! The published traces: `numpy.random.default_rng(42)`, weights 1/rank^alpha over m ranks, inverse cumulative distribution of
//! `random(n)`, ranks mapped through `permutation(m)`.
//!
//! A generator of our own, so that nothing needs to be installed: PCG64 (O'Neill 2014, XSL-RR 128/64), numpy's SeedSequence
//! and its bounded integers (Lemire 2019). Compared with numpy itself in the tests below.

/// PCG64 as numpy seeds and steps it.
pub(crate) struct Pcg64 {
    state: u128,
    increment: u128,
    /// The upper half of a 64-bit number of which 32 bits were asked for.
    half: Option<u32>,
}

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

impl Pcg64 {
    /// `default_rng(seed)` for a seed below 2^32.
    pub(crate) fn new(seed: u32) -> Self {
        let s = seed_sequence(seed);
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let mut rng = Pcg64 { state: 0, increment: wide(s[2], s[3]) << 1 | 1, half: None };
        rng.step();
        rng.state = rng.state.wrapping_add(wide(s[0], s[1]));
        rng.step();
        rng
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    fn next_u64(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let whole = self.next_u64();
        self.half = Some((whole >> 32) as u32);
        whole as u32
    }

    /// `random()`: 53 bits in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from 0 to `most`.
    fn up_to(&mut self, most: u32) -> u32 {
        if most == 0 {
            return 0;
        }
        let Some(values) = most.checked_add(1) else { return self.next_u32() };
        let mut product = u64::from(self.next_u32()) * u64::from(values);
        if (product as u32) < values {
            let threshold = (u32::MAX - most) % values;
            while (product as u32) < threshold {
                product = u64::from(self.next_u32()) * u64::from(values);
            }
        }
        (product >> 32) as u32
    }

    /// `permutation(n)`.
    pub(crate) fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..n).collect();
        for i in (1..n).rev() {
            numbers.swap(i as usize, self.up_to(i) as usize);
        }
        numbers
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_sequence(seed: u32) -> [u64; 4] {
    const WORDS: usize = 4;
    let mut constant = 0x43b0_d7e5u32;
    let mut hash = |value: u32| {
        let mixed = value ^ constant;
        constant = constant.wrapping_mul(0x931e_8875);
        let mixed = mixed.wrapping_mul(constant);
        mixed ^ mixed >> 16
    };
    let mix = |x: u32, y: u32| {
        let mixed = 0xca01_f9ddu32.wrapping_mul(x).wrapping_sub(0x4973_f715u32.wrapping_mul(y));
        mixed ^ mixed >> 16
    };
    let mut pool = [seed, 0, 0, 0].map(&mut hash);
    for from in 0..WORDS {
        for to in (0..WORDS).filter(|to| *to != from) {
            pool[to] = mix(pool[to], hash(pool[from]));
        }
    }
    let mut constant = 0x8b51_f9ddu32;
    let mut words = [0u32; 8];
    for (i, word) in words.iter_mut().enumerate() {
        let mixed = pool[i % WORDS] ^ constant;
        constant = constant.wrapping_mul(0x58f3_8ded);
        let mixed = mixed.wrapping_mul(constant);
        *word = mixed ^ mixed >> 16;
    }
    std::array::from_fn(|i| u64::from(words[2 * i + 1]) << 32 | u64::from(words[2 * i]))
}

/// The published trace: `n` references to `m` objects with dense numbers from 0 up.
pub(crate) fn zipf(seed: u32, alpha: f64, n: usize, m: u32) -> Vec<u32> {
    let mut rng = Pcg64::new(seed);
    let mut sum = 0.0;
    let mut cumulative: Vec<f64> = (1..=m)
        .map(|rank| {
            sum += f64::from(rank).powf(-alpha);
            sum
        })
        .collect();
    cumulative.iter_mut().for_each(|value| *value /= sum);
    let ranks: Vec<u32> = (0..n)
        .map(|_| {
            let point = rng.unit();
            cumulative.partition_point(|value| *value < point) as u32
        })
        .collect();
    let names = rng.permutation(m);
    ranks.into_iter().map(|rank| names[(rank as usize).min(m as usize - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_numpy() {
        // numpy 2: r = default_rng(42); r.random(3); r.permutation(10).
        let mut rng = Pcg64::new(42);
        let units: Vec<f64> = (0..3).map(|_| (rng.unit() * 1e8).round() / 1e8).collect();
        assert_eq!(units, [0.773_956_05, 0.438_878_44, 0.858_597_92]);
        assert_eq!(rng.permutation(10), [6, 8, 4, 2, 9, 3, 0, 7, 1, 5]);
    }
}
