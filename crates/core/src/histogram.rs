//! Log-linear histogram of latencies in nanoseconds, of the shape that fio made common.
//!
//! Goal: a few nanoseconds a record, mergeable over threads and rounds, relative error of a value read back under
//! 0.8 %. Non-goal: a settable range or precision. Invariants: `count` equals the sum over the buckets; `count`,
//! `min`, `max` and `sum` are exact; a histogram without values holds no memory for buckets.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Each power of two is cut into 2^7 = 128 buckets of equal width, hence a width of at most 1/128 of the value.
const SUB_BITS: u32 = 7;

/// Values from 2^40 ns (18 minutes) on share the last bucket.
const RANGE_BITS: u32 = 40;

/// The bucket of 2^40 and everything above it.
const LAST: usize = index(1 << RANGE_BITS);

const BUCKETS: usize = LAST + 1;

/// The bucket that would hold a value if there were no last one. Values below 2^8 have a bucket each.
#[inline]
const fn index(ns: u64) -> usize {
    let shift = (ns | 1 << SUB_BITS).ilog2() - SUB_BITS;
    ((shift << SUB_BITS) as u64 + (ns >> shift)) as usize
}

/// The lowest value of a bucket: the inverse of [`index`].
const fn low(bucket: usize) -> u64 {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    ((bucket - (shift << SUB_BITS)) as u64) << shift
}

/// Latencies of any number of requests. About 34 KiB once it holds a value, nothing before.
#[derive(Clone, Default)]
pub struct Histogram {
    /// `None` until the first value, so that empty histograms are cheap.
    buckets: Option<Box<[u64; BUCKETS]>>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// A bucket that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest value it can hold.
    pub low_ns: u64,
    /// The highest value it can hold (`u64::MAX` in the last bucket).
    pub high_ns: u64,
    /// Values recorded in it; never zero.
    pub count: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Histogram::default()
    }

    /// The histogram with these counts, a bucket each in their order, and the exact sum and ends that somebody else kept. Ends that
    /// lie outside the outermost buckets, because they were read a moment before or after the counts, are moved to them.
    pub fn from_counts(counts: &[u64], sum_ns: u64, min_ns: u64, max_ns: u64) -> Self {
        let mut histogram = Histogram::new();
        for (bucket, count) in counts.iter().enumerate().take(BUCKETS).filter(|(_, count)| **count > 0) {
            histogram.buckets.get_or_insert_with(no_values)[bucket] = *count;
            histogram.count += count;
        }
        let ends = (histogram.buckets().next(), histogram.buckets().last());
        if let (Some(first), Some(last)) = ends {
            histogram.sum_ns = sum_ns;
            histogram.min_ns = min_ns.clamp(first.low_ns, first.high_ns);
            histogram.max_ns = max_ns.clamp(last.low_ns, last.high_ns).max(histogram.min_ns);
        }
        histogram
    }

    /// Records one latency. The first call allocates: see [`Histogram::reserve`].
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Records the same latency `n` times, as when `n` requests share one clock reading.
    #[inline]
    pub fn record_many(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        // `min` saturates, and shows the compiler that no bounds check is needed.
        self.buckets.get_or_insert_with(no_values)[index(ns).min(LAST)] += n;
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns.saturating_mul(n));
        self.count += n;
    }

    /// Allocates the buckets and has the kernel map them, so that [`Histogram::record`] in a timed loop never pays
    /// for either.
    pub fn reserve(&mut self) {
        let buckets = self.buckets.get_or_insert_with(no_values);
        for bucket in buckets.iter_mut() {
            // Not optimised away, which a plain write of zero to fresh zeroed memory could be.
            *bucket = std::hint::black_box(*bucket);
        }
    }

    /// Adds all values of another histogram. The same as having recorded both into one.
    pub fn merge(&mut self, other: &Histogram) {
        let Some(theirs) = other.buckets.as_ref().filter(|_| other.count > 0) else { return };
        for (mine, theirs) in self.buckets.get_or_insert_with(no_values).iter_mut().zip(theirs.iter()) {
            *mine += theirs;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.count += other.count;
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether no value was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The smallest value, exact; 0 when empty.
    pub fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// The largest value, exact; 0 when empty.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The sum of all values, exact (it would saturate at 584 years).
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// The mean of all values; 0 when empty.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }

    /// The value that a share `p` (0 to 1) of all values does not exceed: the middle of the bucket that holds the
    /// value of rank `ceil(p * count)`, kept within `min` and `max`. At most 0.4 % away from that value; exact
    /// below 256 ns, at rank 1 and at the last rank. In the last bucket, which has no middle, it is `max`.
    /// 0 when empty.
    pub fn quantile(&self, p: f64) -> u64 {
        let rank = ((p.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        if rank == 1 {
            return self.min_ns;
        }
        if rank == self.count {
            return self.max_ns;
        }
        let mut seen = 0;
        for Bucket { low_ns, high_ns, count } in self.buckets() {
            seen += count;
            if seen >= rank {
                let middle = if high_ns == u64::MAX { high_ns } else { low_ns + (high_ns - low_ns) / 2 };
                return middle.clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }

    /// The same in four classes an octave, as (lower end in ns, values), empty ones left out: for a map over time.
    /// [`quarter`] gives the upper ends.
    pub fn quarters(&self) -> Vec<(u64, u64)> {
        let mut classes: Vec<(u64, u64)> = Vec::new();
        for bucket in self.buckets() {
            let (low, _) = quarter(bucket.low_ns);
            match classes.last_mut() {
                Some(last) if last.0 == low => last.1 += bucket.count,
                _ => classes.push((low, bucket.count)),
            }
        }
        classes
    }

    /// The buckets that are not empty, by ascending value.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        let all = self.buckets.as_deref().map_or(&[][..], |b| &b[..]);
        all.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, &count)| Bucket {
            low_ns: low(i),
            high_ns: if i == LAST { u64::MAX } else { low(i + 1) - 1 },
            count,
        })
    }
}

/// The quarter of an octave that a value falls into: its lower end, and the one behind it. Below 4 ns a class is 1 ns.
pub fn quarter(ns: u64) -> (u64, u64) {
    let step = 1u64 << ns.max(1).ilog2().saturating_sub(2);
    let low = ns / step * step;
    (low, low.saturating_add(step))
}

#[cold]
fn no_values() -> Box<[u64; BUCKETS]> {
    // By way of a vector: `Box::new([0; BUCKETS])` would pass through the stack in debug builds.
    vec![0; BUCKETS].into_boxed_slice().try_into().unwrap_or_else(|_| Box::new([0; BUCKETS]))
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let totals = |h: &Histogram| (h.count, h.sum_ns, h.min_ns, h.max_ns);
        totals(self) == totals(other) && self.buckets().eq(other.buckets())
    }
}

impl Eq for Histogram {}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min_ns", &self.min_ns)
            .field("median_ns", &self.quantile(0.5))
            .field("max_ns", &self.max_ns)
            .finish_non_exhaustive()
    }
}

/// The form in files: buckets as `[low_ns, count]`, empty ones left out.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Sparse {
    buckets: Vec<(u64, u64)>,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Sparse {
            buckets: self.buckets().map(|b| (b.low_ns, b.count)).collect(),
            count: self.count,
            sum_ns: self.sum_ns,
            min_ns: self.min_ns,
            max_ns: self.max_ns,
        }
        .serialize(serializer)
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Sparse::json_schema(generator)
    }
}

/// Refuses counts that [`Histogram::record`] cannot make, so that an edited or damaged record is noticed.
impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Sparse { buckets: sparse, count, sum_ns, min_ns, max_ns } = Sparse::deserialize(deserializer)?;
        let mut histogram = Histogram { buckets: None, count, sum_ns, min_ns, max_ns };
        let mut left = count;
        for (low_ns, n) in sparse {
            let bucket = index(low_ns).min(LAST);
            if low(bucket) != low_ns {
                return Err(D::Error::custom(format!("histogram: no bucket starts at {low_ns} ns")));
            }
            left = left.checked_sub(n).ok_or_else(|| {
                D::Error::custom(format!("histogram: buckets hold more than `count` {count}"))
            })?;
            histogram.buckets.get_or_insert_with(no_values)[bucket] += n;
        }
        if left > 0 {
            return Err(D::Error::custom(format!(
                "histogram: buckets hold {left} less than `count` {count}"
            )));
        }
        let first = histogram.buckets().next().map_or(0, |b| b.low_ns);
        let last = histogram.buckets().last().map_or(0, |b| b.low_ns);
        let start = |ns| low(index(ns).min(LAST));
        if min_ns > max_ns || start(min_ns) != first || start(max_ns) != last {
            return Err(D::Error::custom("histogram: `min_ns` or `max_ns` is outside the outermost buckets"));
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        values.iter().for_each(|&v| h.record(v));
        h
    }

    /// Latencies over the whole range, not only the large ones that uniform numbers would give.
    fn latency() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, x)| x >> shift)
    }

    #[test]
    fn buckets_tile_the_range_without_gap_or_overlap() {
        for i in 0..BUCKETS {
            assert_eq!(index(low(i)), i);
            if i < LAST {
                assert_eq!(index(low(i + 1) - 1), i);
                assert!((low(i + 1) - low(i) - 1) * 128 <= low(i), "width of bucket {i}");
            }
        }
        assert_eq!(low(LAST), 1 << 40);
    }

    #[test]
    fn known_answers() {
        let mut h = of(&[5, 1000, 200]);
        h.record_many(7, 6);
        h.record_many(9, 0);
        assert_eq!((h.count(), h.min_ns(), h.max_ns(), h.sum_ns()), (9, 5, 1000, 1247));
        assert_eq!((h.quantile(0.0), h.quantile(0.5), h.quantile(0.8), h.quantile(1.0)), (5, 7, 200, 1000));
        let empty = Histogram::new();
        assert_eq!((empty.quantile(0.5), empty.mean_ns(), empty.buckets().count()), (0, 0.0, 0));
    }

    #[test]
    fn values_beyond_the_range_are_counted_in_the_last_bucket() {
        let h = of(&[1, u64::MAX, 1 << 40, (1 << 40) - 1]);
        let last = h.buckets().last().unwrap();
        assert_eq!(last, Bucket { low_ns: 1 << 40, high_ns: u64::MAX, count: 2 });
        assert_eq!((h.count(), h.quantile(0.75), h.sum_ns()), (4, u64::MAX, u64::MAX));
    }

    #[test]
    fn reserving_changes_nothing_that_can_be_seen() {
        let mut h = Histogram::new();
        h.reserve();
        assert_eq!(h, Histogram::new());
        h.record(3);
        h.reserve();
        assert_eq!(h, of(&[3]));
    }

    #[test]
    fn the_file_form_is_sparse_and_damage_is_refused() {
        let text = serde_json::to_string(&of(&[3, 1000, 1001])).unwrap();
        assert_eq!(text, r#"{"buckets":[[3,1],[1000,2]],"count":3,"sum_ns":2004,"min_ns":3,"max_ns":1001}"#);
        for (good, bad) in [
            ("[3,1]", "[3,2]"),
            ("[3,1]", "[3,0]"),
            ("[1000,2]", "[1001,2]"),
            (":1001", ":5"),
            ("_ns\":3", "_ns\":4"),
        ] {
            let damaged = text.replace(good, bad);
            assert_ne!(damaged, text);
            assert!(serde_json::from_str::<Histogram>(&damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn counts_of_others_give_the_histogram_that_recording_gives() {
        let values = [0, 5, 127, 128, 300, 1_000_000, (1 << 40) - 1, 1 << 40, u64::MAX / 4];
        let mut counts = vec![0; BUCKETS];
        values.iter().for_each(|value| counts[index(*value).min(LAST)] += 1);
        let recorded = of(&values);
        let given = Histogram::from_counts(&counts, recorded.sum_ns(), 0, u64::MAX / 4);
        assert_eq!(given, recorded);
        // Read a moment apart: the ends are within the outermost buckets, so that the file form is taken back.
        let late = Histogram::from_counts(&counts[..300], 9, 400, 2);
        let text = serde_json::to_string(&late).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), late);
        assert_eq!(Histogram::from_counts(&[0; 4], 7, 1, 2), Histogram::new());
    }

    proptest! {
        #[test]
        fn every_quantile_is_within_half_a_percent_of_the_exact_one(
            mut values in prop::collection::vec(0u64..1 << 40, 1..200),
            p in 0.0..=1.0f64,
        ) {
            let h = of(&values);
            values.sort_unstable();
            let rank = ((p * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1];
            prop_assert!(h.quantile(p).abs_diff(exact) as f64 <= exact as f64 * 0.004, "{} {exact}", h.quantile(p));
        }

        #[test]
        fn merging_is_recording_both(
            a in prop::collection::vec(latency(), 0..50),
            b in prop::collection::vec(latency(), 0..50),
        ) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both: Vec<u64> = a.into_iter().chain(b).collect();
            prop_assert_eq!(merged.buckets().map(|b| b.count).sum::<u64>(), both.len() as u64);
            prop_assert_eq!(merged, of(&both));
        }

        #[test]
        fn quantiles_never_fall_as_p_rises(values in prop::collection::vec(latency(), 0..50)) {
            let h = of(&values);
            let curve: Vec<u64> = (0..=100).map(|p| h.quantile(f64::from(p) / 100.0)).collect();
            prop_assert!(curve.is_sorted());
        }

        #[test]
        fn json_keeps_everything(values in prop::collection::vec(latency(), 0..50)) {
            let h = of(&values);
            let text = serde_json::to_string(&h).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), h);
        }
    }
}
