//! From the measured members to the curves that are simulated: members that are alike share one, which halves the noise; the
//! others keep their own.

use iowhy_core::estimate::Estimate;
use iowhy_core::service::{DiskCurves, ServiceCurve};
use iowhy_core::stats;
use iowhy_core::warning::Warning;

use crate::curve::{self, Point};
use crate::members::{Measured, Outcome, Shape};

/// Greatest ratio of the times of members that count as alike.
const ALIKE: f64 = 1.20;
/// What a throttle of a control group lets through after a pause: a slice of it (block/blk-throttle.c: HZ / 10).
const THROTTLE_BURST_S: f64 = 0.1;
/// A curve that misses its own points by more than this is doubted.
const GOOD_FIT_PERCENT: f64 = 15.0;

/// The disks to simulate.
pub struct Known {
    /// One a member, in their order.
    pub disks: Vec<DiskCurves>,
    /// Whether every curve passes near its points.
    pub good_fit: bool,
    /// Limitations of the curves.
    pub warnings: Vec<Warning>,
}

/// The curves of the members, whose names these are; `None` when too little was measured of one.
pub fn known(measured: &Outcome, names: &[String], sizes: &[u64]) -> Option<Known> {
    let groups = groups(&measured.members);
    let mut disks: Vec<Option<DiskCurves>> = vec![None; measured.members.len()];
    let mut throttled = false;
    for group in &groups {
        let of = |write| {
            let size = group.iter().filter_map(|index| sizes.get(*index)).min().copied()?;
            let pooled: Vec<Point> = pooled(group, &measured.members, write);
            let mut curve = curve::fit(&pooled, size)?;
            if measured.throttled && curve.access_ns == 0.0 && curve.per_byte_ns == 0.0 {
                curve.burst_s = THROTTLE_BURST_S;
                // The rates show only the limits; a request that they let through at once still has its latency.
                let own: Vec<f64> =
                    group.iter().filter_map(|index| measured.members[*index].unhindered_ns).collect();
                curve.access_ns = stats::median(&own).unwrap_or(0.0);
            }
            Some(curve)
        };
        // Every member must have been measured: the others say nothing about one that failed.
        let each = group.iter().all(|index| measured.members[*index].read.is_some());
        let read: ServiceCurve = of(false).filter(|_| each)?;
        throttled |= read.burst_s > 0.0;
        for index in group {
            let sharers = measured.sharers.get(*index).copied().unwrap_or(1);
            disks[*index] = Some(DiskCurves { read, write: of(true) }.map(|curve| curve.part(sharers)));
        }
    }
    let disks: Vec<DiskCurves> = disks.into_iter().collect::<Option<_>>()?;
    let mut warnings = Vec::new();
    warnings.extend(differences(&groups, &measured.members, names));
    if throttled {
        warnings.push(Warning::new(
            "throttled-disks",
            "a control group throttles these disks: the advice is for the throttle, which lets 100 ms worth of requests \
             through at once after a pause",
        ));
    }
    let curves = disks.iter().flat_map(|disk| [Some(disk.read), disk.write]).flatten();
    let residual = curves.map(|curve| curve.residual_percent).fold(0.0, f64::max);
    if residual > GOOD_FIT_PERCENT {
        warnings.push(
            Warning::new("poor-fit", format!("a fitted curve misses the measured sizes by {residual:.0} %"))
                .next("a longer `--time`, or an idle machine; `--prove` measures instead of predicting"),
        );
    }
    Some(Known { disks, good_fit: residual <= GOOD_FIT_PERCENT, warnings })
}

/// What two members took for the same requests.
fn pairs<'a>(a: &'a Measured, b: &'a Measured) -> impl Iterator<Item = (&'a Estimate, &'a Estimate)> {
    a.points.iter().filter_map(|(shape, ns)| Some((ns, time_of(b, shape)?)))
}

fn time_of<'a>(member: &'a Measured, shape: &Shape) -> Option<&'a Estimate> {
    member.points.iter().find(|(other, _)| other == shape).map(|(_, ns)| ns)
}

/// How much longer `a` takes than `b`: the median over the requests that both made.
fn slower(a: &Measured, b: &Measured) -> f64 {
    let ratios: Vec<f64> = pairs(a, b).map(|(a, b)| a.value / b.value).collect();
    stats::median(&ratios).unwrap_or(1.0)
}

/// Alike: as fast in the median over all requests, and in none surely and by more than that apart.
fn alike(a: &Measured, b: &Measured) -> bool {
    let ratio = slower(a, b);
    let apart = |(a, b): (&Estimate, &Estimate)| {
        let far = a.value.max(b.value) > ALIKE * a.value.min(b.value);
        far && (a.low > b.high || b.low > a.high)
    };
    (1.0 / ALIKE..=ALIKE).contains(&ratio) && !pairs(a, b).any(apart)
}

/// Members that are alike, each with every other of its group; in the order of the members.
fn groups(members: &[Measured]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let fits = |group: &&mut Vec<usize>| group.iter().all(|other| alike(member, &members[*other]));
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// The medians over a group of each request that all of it made.
fn pooled(group: &[usize], members: &[Measured], write: bool) -> Vec<Point> {
    let Some(first) = group.first().and_then(|index| members.get(*index)) else { return Vec::new() };
    let of_all = |(shape, _): &(Shape, Estimate)| {
        let times: Option<Vec<f64>> =
            group.iter().map(|index| Some(time_of(members.get(*index)?, shape)?.value)).collect();
        Some(shape.point(stats::median(&times?)?))
    };
    first.points.iter().filter(|(shape, _)| shape.write == write).filter_map(of_all).collect()
}

/// Says how far the groups are apart.
fn differences(groups: &[Vec<usize>], members: &[Measured], names: &[String]) -> Option<Warning> {
    let firsts: Vec<usize> = groups.iter().filter_map(|group| group.first().copied()).collect();
    let (mut slowest, mut fastest) = (*firsts.first()?, *firsts.first()?);
    for index in &firsts {
        if slower(&members[*index], &members[slowest]) > 1.0 {
            slowest = *index;
        }
        if slower(&members[*index], &members[fastest]) < 1.0 {
            fastest = *index;
        }
    }
    let listed: Vec<String> = groups
        .iter()
        .map(|group| group.iter().map(|index| format!("`{}`", names[*index])).collect::<Vec<_>>().join(", "))
        .collect();
    (groups.len() > 1).then(|| {
        let by = match slower(&members[slowest], &members[fastest]) {
            ratio if ratio > ALIKE => {
                format!("`{}` takes {ratio:.1} times as long as `{}`", names[slowest], names[fastest])
            }
            _ => "in some of the measured requests".to_owned(),
        };
        Warning::new(
            "members-differ",
            format!(
                "the members differ: {by}; each group is simulated with its own curve ({})",
                listed.join("; ")
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::estimate::Unit;

    use super::*;

    const SIZES: [u64; 4] = [4096, 65_536, 262_144, 1 << 20];

    /// A member with a limit of requests and one of bytes a second, measured to 5 %.
    fn limited(requests: f64, bytes: f64) -> Measured {
        let points = SIZES.iter().map(|size| {
            let ns = (1e9 / requests).max(*size as f64 * 1e9 / bytes);
            let shape = Shape { bytes: *size, depth: 1, sequential: false, write: false };
            (shape, Estimate { value: ns, low: 0.95 * ns, high: 1.05 * ns, unit: Unit::Nanoseconds, n: 4 })
        });
        let mut member = Measured { points: points.collect(), ..Measured::default() };
        let plain: Vec<Point> = member.points.iter().map(|(shape, ns)| shape.point(ns.value)).collect();
        member.read = curve::fit(&plain, 1 << 30);
        member
    }

    fn of(members: Vec<Measured>) -> Known {
        let sharers = vec![1; members.len()];
        let outcome = Outcome { members, throttled: true, sharers, warnings: Vec::new() };
        known(&outcome, &["a", "b", "c"].map(str::to_owned), &[1 << 30; 3]).unwrap()
    }

    #[test]
    fn alike_members_share_a_curve_and_the_slow_one_keeps_its_own() {
        let known = of(vec![limited(200.0, 20e6), limited(100.0, 10e6), limited(210.0, 21e6)]);
        assert!(known.disks[0] == known.disks[2] && known.disks[0] != known.disks[1]);
        let rates: Vec<f64> =
            known.disks.iter().map(|disk| disk.read.most_requests_per_second.round()).collect();
        assert_eq!((rates[1], rates[0] > 199.0 && rates[0] < 211.0), (100.0, true), "{rates:?}");
        assert!(known.disks.iter().all(|disk| disk.read.burst_s > 0.0), "a throttle");
        let said = known.warnings.iter().find(|warning| warning.code == "members-differ").unwrap();
        assert!(said.message.contains("`b` takes 2.0 times as long"), "{said:?}");
        let same = of(vec![limited(200.0, 20e6), limited(205.0, 20e6), limited(196.0, 20e6)]);
        assert!(same.disks.windows(2).all(|pair| pair[0] == pair[1]));
    }

    /// Three members of one disk are together as fast as the disk, not three times as fast.
    #[test]
    fn members_on_one_disk_are_parts_of_it() {
        let members = vec![limited(200.0, 20e6), limited(200.0, 20e6), limited(200.0, 20e6)];
        let outcome = Outcome { members, throttled: true, sharers: vec![3; 3], warnings: Vec::new() };
        let known = known(&outcome, &["a", "b", "c"].map(str::to_owned), &[1 << 30; 3]).unwrap();
        let rate: f64 = known.disks.iter().map(|disk| disk.read.most_requests_per_second).sum();
        assert!((rate - 200.0).abs() < 2.0, "{rate}");
        let bytes: f64 = known.disks.iter().map(|disk| disk.read.most_bytes_per_second).sum();
        assert!((bytes - 20e6).abs() < 2e5, "{bytes}");
    }

    /// As many requests a second, but half the bytes: alike in the median over sizes is not enough.
    #[test]
    fn one_size_that_is_surely_apart_is_enough() {
        let known = of(vec![limited(200.0, 20e6), limited(200.0, 20e6), limited(200.0, 5e6)]);
        assert!(known.disks[0] == known.disks[1] && known.disks[0] != known.disks[2], "{:?}", known.disks);
    }

    #[test]
    fn a_member_that_was_not_measured_leaves_nothing_to_simulate() {
        let failed = Measured { read: None, ..limited(200.0, 20e6) };
        let outcome = Outcome {
            members: vec![limited(200.0, 20e6), failed, limited(200.0, 20e6)],
            throttled: false,
            sharers: vec![1; 3],
            warnings: Vec::new(),
        };
        assert!(known(&outcome, &["a", "b", "c"].map(str::to_owned), &[1 << 30; 3]).is_none());
    }
}
