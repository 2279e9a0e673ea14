//! How often system calls were made in a whole run of which only bursts were traced. What may not enter: what the calls
//! mean.

use iowhy_core::profile::{CallCount, Profile};

use super::range::Range;

/// How often the system calls that are picked were made in the whole run. Exact where every call was seen. Else counts
/// in bursts times `wall / observed`, with the 95 % interval of the mean of the bursts (a normal approximation, and
/// corrected for the part of the run that was observed); from one burst alone, half to twice. Never fewer than were
/// seen. `None` where nothing was traced.
pub fn calls_of_run(profile: &Profile, pick: impl Fn(&CallCount) -> bool) -> Option<Range> {
    let sample = profile.calls.as_ref()?;
    let picked: Vec<_> = sample.calls.iter().filter(|c| pick(c)).collect();
    let seen: u64 = picked.iter().map(|c| c.calls).sum();
    let seen = seen as f64;
    if sample.complete {
        return Some(Range::exact(seen));
    }
    if sample.observed_ns == 0 {
        return None;
    }
    let scale = (profile.wall_ns as f64 / sample.observed_ns as f64).max(1.0);
    let likely = seen * scale;
    let bursts = picked.iter().map(|c| c.per_burst.len()).max().unwrap_or(0);
    if bursts < 2 {
        return Some(Range::new((likely / 2.0).max(seen), likely, likely * 2.0));
    }
    let count =
        |i: usize| picked.iter().filter_map(|c| c.per_burst.get(i)).map(|n| f64::from(*n)).sum::<f64>();
    let n = bursts as f64;
    let mean = (0..bursts).map(count).sum::<f64>() / n;
    let variance = (0..bursts).map(|i| (count(i) - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let unseen = (1.0 - 1.0 / scale).max(0.0);
    let arm = if mean > 0.0 { 1.96 * (variance / n * unseen).sqrt() / mean } else { 0.0 };
    Some(Range::new((likely * (1.0 - arm)).max(seen), likely, likely * (1.0 + arm)))
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::CallSample;

    use super::*;

    fn run(per_burst: &[u32], complete: bool) -> Profile {
        let seen = per_burst.iter().map(|n| u64::from(*n)).sum();
        let call = CallCount {
            name: "fsync".to_owned(),
            calls: seen,
            per_burst: per_burst.to_vec(),
            ..CallCount::default()
        };
        let other = CallCount { name: "read".to_owned(), calls: 1000, ..CallCount::default() };
        let calls = CallSample {
            bursts: per_burst.len() as u32,
            observed_ns: 1_000_000_000,
            complete,
            calls: vec![call, other],
        };
        Profile { wall_ns: 10_000_000_000, calls: Some(calls), ..Profile::default() }
    }

    fn syncs(per_burst: &[u32], complete: bool) -> Option<Range> {
        calls_of_run(&run(per_burst, complete), |call| call.name == "fsync")
    }

    #[test]
    fn counts_are_exact_where_all_was_seen_and_scaled_where_not() {
        assert_eq!(syncs(&[4, 6], true), Some(Range::exact(10.0)));
        assert_eq!(
            syncs(&[5, 5, 5, 5], false),
            Some(Range::exact(200.0)),
            "bursts that agree leave no doubt"
        );
        let uneven = syncs(&[0, 10, 2, 8], false).unwrap();
        assert!(uneven.likely == 200.0 && uneven.low < 110.0 && uneven.high > 290.0, "{uneven:?}");
        assert_eq!(syncs(&[20], false), Some(Range::new(100.0, 200.0, 400.0)), "one burst: half to twice");
        assert_eq!(calls_of_run(&Profile::default(), |_| true), None);
    }

    #[test]
    fn what_was_seen_was_made() {
        for bursts in [&[7u32] as &[u32], &[0, 0, 0, 90], &[1, 200]] {
            let seen = bursts.iter().sum::<u32>();
            assert!(syncs(bursts, false).unwrap().low >= f64::from(seen));
        }
    }
}
