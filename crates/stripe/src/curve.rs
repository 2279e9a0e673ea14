//! From measured times of requests to a service curve: two forms are tried, and the better one is taken.
//!
//! A disk's requests take an access time and a time per byte (a line); a throttled or limited volume answers at the
//! later of its request limit and its byte limit (a bend). Which it is shows in the sizes between.

use iowhy_core::service::ServiceCurve;

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Bytes of a request.
    pub bytes: u64,
    /// Queue depth.
    pub depth: u64,
    /// Sequential, else random.
    pub sequential: bool,
    /// Reciprocal of the rate at that queue depth, nanoseconds.
    pub ns: f64,
}

/// Positions longer than this are an arm's.
const ARM_NS: f64 = 1e6;
/// A sequential request takes less than this share of a random one, on a disk with an arm.
const SEQUENTIAL_SHARE: f64 = 0.5;
/// Greatest number of units: more cannot be separated.
const MAX_UNITS: f64 = 1024.0;
/// Units of a volume that is all limits: enough that they never wait for each other.
const FREE_UNITS: u64 = 256;
/// A deep queue that is this much faster than one request at a time has units of its own.
const PARALLEL_GAIN: f64 = 1.3;

/// Fits a curve. `None` with fewer than two sizes of random requests at queue depth 1, or with times that are not positive.
pub fn fit(points: &[Point], size_bytes: u64) -> Option<ServiceCurve> {
    if points.iter().any(|p| !(p.ns.is_finite() && p.ns > 0.0) || p.bytes == 0 || p.depth == 0) {
        return None;
    }
    let alone: Vec<(f64, f64)> =
        points.iter().filter(|p| p.depth == 1 && !p.sequential).map(|p| (p.bytes as f64, p.ns)).collect();
    let sizes = alone.iter().map(|(bytes, _)| *bytes);
    if sizes.clone().fold(f64::INFINITY, f64::min) >= sizes.fold(0.0, f64::max) {
        return None;
    }
    let (straight, bent) = (line(&alone, points, size_bytes), bend(points, size_bytes));
    let error = |curve: &ServiceCurve| residual(curve, points);
    let (line_error, bend_error) = (error(&straight), error(&bent));
    let mut curve = if bend_error < line_error { bent } else { straight };
    curve.residual_percent = line_error.min(bend_error) * 100.0;
    curve.positioning_ns = positioning(points, &curve);
    Some(curve)
}

/// Access time and time for each byte, by least squares of relative errors, none negative.
fn line(alone: &[(f64, f64)], points: &[Point], size_bytes: u64) -> ServiceCurve {
    let (mut s_1, mut s_n, mut s_nn, mut s_t, mut s_nt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (bytes, ns) in alone {
        let weight = 1.0 / (ns * ns);
        s_1 += weight;
        s_n += weight * bytes;
        s_nn += weight * bytes * bytes;
        s_t += weight * ns;
        s_nt += weight * bytes * ns;
    }
    let determinant = s_1 * s_nn - s_n * s_n;
    let (mut access_ns, mut per_byte_ns) = if determinant > 0.0 {
        ((s_nn * s_t - s_n * s_nt) / determinant, (s_1 * s_nt - s_n * s_t) / determinant)
    } else {
        (s_t / s_1, 0.0)
    };
    if access_ns < 0.0 {
        (access_ns, per_byte_ns) = (0.0, s_nt / s_nn);
    }
    if per_byte_ns < 0.0 {
        (access_ns, per_byte_ns) = (s_t / s_1, 0.0);
    }
    let mut curve = ServiceCurve {
        access_ns,
        per_byte_ns,
        units: 1,
        most_requests_per_second: 0.0,
        most_bytes_per_second: 0.0,
        positioning_ns: 0.0,
        burst_s: 0.0,
        size_bytes,
        residual_percent: 0.0,
    };
    // How many the deepest queue of each size has side by side: the rate over that of one.
    let gain = |point: &Point| curve.request_ns(point.bytes) / point.ns;
    let deep: Vec<&Point> = points.iter().filter(|p| p.depth > 1).collect();
    let units = deep.iter().map(|p| gain(p)).fold(1.0, f64::max);
    if units >= PARALLEL_GAIN {
        curve.units = units.round().clamp(2.0, MAX_UNITS) as u64;
        // Side by side they share what passes at most: the fastest of all.
        curve.most_bytes_per_second = fastest(points);
    }
    curve
}

/// The later of two limits: the fewest time of any request, and the most bytes a second of any.
fn bend(points: &[Point], size_bytes: u64) -> ServiceCurve {
    let least_ns = points.iter().map(|point| point.ns).fold(f64::INFINITY, f64::min);
    ServiceCurve {
        access_ns: 0.0,
        per_byte_ns: 0.0,
        units: FREE_UNITS,
        most_requests_per_second: 1e9 / least_ns,
        most_bytes_per_second: fastest(points),
        positioning_ns: 0.0,
        burst_s: 0.0,
        size_bytes,
        residual_percent: 0.0,
    }
}

/// Bytes a second of the fastest.
fn fastest(points: &[Point]) -> f64 {
    points.iter().map(|point| point.bytes as f64 * 1e9 / point.ns).fold(0.0, f64::max)
}

/// The prediction of a measured point.
fn predicted_ns(curve: &ServiceCurve, point: &Point) -> f64 {
    if point.depth == 1 {
        return curve.request_ns(point.bytes);
    }
    let together = ServiceCurve {
        access_ns: curve.access_ns / curve.units.min(point.depth) as f64,
        per_byte_ns: curve.per_byte_ns / curve.units.min(point.depth) as f64,
        ..*curve
    };
    together.request_ns(point.bytes)
}

/// Root mean square of relative errors over random requests; an arm makes sequential ones another case.
fn residual(curve: &ServiceCurve, points: &[Point]) -> f64 {
    let errors: Vec<f64> = points
        .iter()
        .filter(|point| !point.sequential)
        .map(|point| predicted_ns(curve, point) / point.ns - 1.0)
        .collect();
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len().max(1) as f64).sqrt()
}

/// Extra time of a random request over a sequential one of the same size, where an arm causes it.
fn positioning(points: &[Point], curve: &ServiceCurve) -> f64 {
    let in_order = points.iter().filter(|point| point.sequential && point.depth == 1);
    in_order
        .filter_map(|point| {
            let random = curve.request_ns(point.bytes);
            let saved = random - point.ns;
            (saved > ARM_NS && point.ns < SEQUENTIAL_SHARE * random).then_some(saved)
        })
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: [u64; 4] = [4096, 65_536, 262_144, 1 << 20];

    fn measured(curve: &ServiceCurve) -> Vec<Point> {
        let mut points: Vec<Point> = SIZES
            .iter()
            .map(|bytes| Point { bytes: *bytes, depth: 1, sequential: false, ns: curve.request_ns(*bytes) })
            .collect();
        for bytes in [4096, 1 << 20] {
            let mut point = Point { bytes, depth: 16, sequential: false, ns: 0.0 };
            point.ns = predicted_ns(curve, &point);
            points.push(point);
        }
        points
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn a_drive_with_units_comes_back_from_its_own_times() {
        let drive = ServiceCurve {
            access_ns: 80_000.0,
            per_byte_ns: 0.5,
            units: 8,
            most_requests_per_second: 0.0,
            most_bytes_per_second: 4e9,
            positioning_ns: 0.0,
            burst_s: 0.0,
            size_bytes: 1 << 30,
            residual_percent: 0.0,
        };
        let fitted = fit(&measured(&drive), 1 << 30).unwrap();
        assert!(close(fitted.access_ns, 80_000.0) && close(fitted.per_byte_ns, 0.5), "{fitted:?}");
        assert_eq!(fitted.units, 8);
        assert!(fitted.residual_percent < 5.0 && fitted.positioning_ns == 0.0, "{fitted:?}");
    }

    #[test]
    fn a_throttled_volume_is_its_two_limits() {
        let limits = ServiceCurve {
            access_ns: 0.0,
            per_byte_ns: 0.0,
            units: FREE_UNITS,
            most_requests_per_second: 200.0,
            most_bytes_per_second: 20e6,
            positioning_ns: 0.0,
            burst_s: 0.0,
            size_bytes: 1 << 28,
            residual_percent: 0.0,
        };
        let fitted = fit(&measured(&limits), 1 << 28).unwrap();
        assert!(
            close(fitted.most_requests_per_second, 200.0) && close(fitted.most_bytes_per_second, 20e6),
            "{fitted:?}"
        );
        assert!(fitted.residual_percent < 0.01);
    }

    #[test]
    fn an_arm_is_seen_by_what_order_saves() {
        let disk = ServiceCurve {
            access_ns: 13_500_000.0,
            per_byte_ns: 10.0,
            units: 1,
            most_requests_per_second: 0.0,
            most_bytes_per_second: 0.0,
            positioning_ns: 0.0,
            burst_s: 0.0,
            size_bytes: 2 << 30,
            residual_percent: 0.0,
        };
        let mut points = measured(&disk);
        points.push(Point { bytes: 65_536, depth: 1, sequential: true, ns: 655_360.0 });
        let fitted = fit(&points, 2 << 30).unwrap();
        assert!(close(fitted.positioning_ns, 13_500_000.0), "{fitted:?}");
        assert!(close(fitted.media_bytes_per_second(), 1e8));
    }

    #[test]
    fn too_little_or_nonsense_gives_none() {
        let point = Point { bytes: 4096, depth: 1, sequential: false, ns: 1000.0 };
        assert_eq!(fit(&[], 1), None);
        assert_eq!(fit(&[point, point], 1), None);
        assert_eq!(fit(&[point, Point { bytes: 8192, ns: f64::NAN, ..point }], 1), None);
        assert_eq!(fit(&[point, Point { bytes: 8192, depth: 0, ..point }], 1), None);
    }

    proptest! {
        #[test]
        fn no_time_makes_a_curve_negative(times in prop::collection::vec(1.0f64..1e10, 6)) {
            let points: Vec<Point> = SIZES.iter().zip(&times)
                .map(|(bytes, ns)| Point { bytes: *bytes, depth: 1, sequential: false, ns: *ns })
                .chain([Point { bytes: 4096, depth: 16, sequential: false, ns: times[4] }])
                .chain([Point { bytes: 65_536, depth: 1, sequential: true, ns: times[5] }])
                .collect();
            let curve = fit(&points, 1 << 30).unwrap();
            prop_assert!(curve.access_ns >= 0.0 && curve.per_byte_ns >= 0.0 && curve.units >= 1);
            prop_assert!(curve.positioning_ns >= 0.0 && curve.residual_percent.is_finite());
            prop_assert!(SIZES.iter().all(|bytes| curve.request_ns(*bytes) > 0.0));
        }
    }
}
