//! The pace of block devices over time: one that serves requests of the same kind more slowly from some moment on, and one that serves no
//! more of them when more wait. From counts in steps of time alone. Pure.
//!
//! Goal: tell a limit of a volume (credits that are used up, a rate that was ordered) or of a medium (a fast part that is full, heat) from what
//! its users ask for. Non-goal: which of these it is; the device does not say. Limits of control groups hold requests back before the device:
//! they are not in its counts.

use iowhy_core::profile::{Course, DeviceCourse};

use crate::divisions;

/// A step tells a pace where the device was busy for this part of it.
const BUSY: f64 = 0.5;
/// Steps of a pace: a second at least.
const ENOUGH: usize = 10;
/// What is told: a pace that is slower by this factor.
const FACTOR: f64 = 1.5;
/// Requests are of the same kind where their mean sizes differ by less than this factor, and the parts of reads among them by less than [`MIX`].
const SIZES: f64 = 1.25;
/// See [`SIZES`].
const MIX: f64 = 0.1;
/// As many in flight: at least this part of what was before.
const AS_MANY: f64 = 0.8;
/// The queue varies where its longer quarter is this many times the shorter one.
const VARIES: f64 = 1.5;
/// A pace is the same within this part.
const SAME: f64 = 0.05;

/// How a device served requests in some steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Requests in a second in which it was busy: the median of the steps.
    pub per_second: f64,
    /// The middle half of the same.
    pub middle_half: [f64; 2],
    /// How many steps these are.
    pub steps: usize,
    /// Mean size of a request, in bytes.
    pub bytes: f64,
    /// Requests in flight while it was busy.
    pub in_flight: f64,
    reads: f64,
}

/// A device that became slower.
#[derive(Clone, Debug, PartialEq)]
pub struct Slower {
    /// Its name.
    pub device: String,
    /// When, in nanoseconds from the beginning.
    pub at_ns: u64,
    /// Until then.
    pub before: Pace,
    /// From then on.
    pub after: Pace,
}

/// Devices that served requests of the same kind, with as many in flight, at a slower pace from some moment on; of each the largest such change.
pub fn slower(course: &Course) -> Vec<Slower> {
    let found = course.devices.iter().filter(|device| !device.stacked).filter_map(|device| {
        let steps = Step::all(course, device);
        let values = steps.iter().map(|step| step.per_second).collect();
        let parts = divisions::parts(&[values, vec![0.0; steps.len()]]);
        let pairs = parts.windows(2).filter_map(|pair| {
            let (before, after) = (&steps[pair[0].clone()], &steps[pair[1].clone()]);
            let (from, to) = (Pace::of(before)?, Pace::of(after)?);
            let is_slower = from.per_second >= FACTOR * to.per_second;
            let demand = from.is_like(&to) && to.in_flight >= AS_MANY * from.in_flight;
            let at_ns = after.first()?.begin_ns;
            (is_slower && demand).then(|| Slower {
                device: device.name.clone(),
                at_ns,
                before: from,
                after: to,
            })
        });
        let factor = |of: &Slower| of.before.per_second / of.after.per_second;
        pairs.max_by(|a, b| factor(a).total_cmp(&factor(b)))
    });
    found.collect()
}

/// A device whose pace stayed the same while more or fewer requests were in flight: what more of them do is wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The pace of all of its steps.
    pub pace: Pace,
    /// Requests in flight in the quarters of steps with the fewest and with the most: their medians.
    pub in_flight: [f64; 2],
}

/// Whether a device has one, by the steps in which at least two requests were in flight.
pub fn plateau(course: &Course, device: &str) -> Option<Plateau> {
    let of = course.devices.iter().find(|of| of.name == device)?;
    let mut steps = Step::all(course, of);
    steps.retain(|step| step.in_flight >= 2.0);
    steps.sort_by(|a, b| a.in_flight.total_cmp(&b.in_flight));
    let quarter = steps.len() / 4;
    let (few, many) = (Pace::of(&steps[..quarter])?, Pace::of(&steps[steps.len() - quarter..])?);
    let varies = many.in_flight >= VARIES * few.in_flight;
    let same = (many.per_second / few.per_second - 1.0).abs() <= SAME;
    let pace = Pace::of(&steps)?;
    (varies && same && few.is_like(&many))
        .then_some(Plateau { pace, in_flight: [few.in_flight, many.in_flight] })
}

/// A step in which a device was busy for long enough.
struct Step {
    begin_ns: u64,
    per_second: f64,
    bytes: f64,
    in_flight: f64,
    reads: f64,
}

impl Step {
    fn all(course: &Course, device: &DeviceCourse) -> Vec<Step> {
        let step = |(at, length): (usize, u64)| {
            let of = |column: &[u64]| column.get(at).copied().unwrap_or(0) as f64;
            let (requests, busy_ns) = (of(&device.requests), of(&device.busy_ns));
            let tells = requests > 0.0 && length > 0 && busy_ns >= BUSY * length as f64;
            tells.then(|| Step {
                begin_ns: course.ends_ns.get(at).map_or(0, |end| end.saturating_sub(length)),
                per_second: requests * 1e9 / busy_ns,
                bytes: (of(&device.read_bytes) + of(&device.written_bytes)) / requests,
                in_flight: of(&device.request_ns) / busy_ns,
                reads: of(&device.reads) / requests,
            })
        };
        course.lengths_ns().enumerate().filter_map(step).collect()
    }
}

impl Pace {
    /// Medians of the steps; `None`: too few.
    fn of(steps: &[Step]) -> Option<Pace> {
        if steps.len() < ENOUGH {
            return None;
        }
        let at = |part: f64, of: &dyn Fn(&Step) -> f64| {
            let mut values: Vec<f64> = steps.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[((values.len() - 1) as f64 * part).round() as usize]
        };
        let pace = |part| at(part, &|step| step.per_second);
        Some(Pace {
            per_second: pace(0.5),
            middle_half: [pace(0.25), pace(0.75)],
            steps: steps.len(),
            bytes: at(0.5, &|step| step.bytes),
            in_flight: at(0.5, &|step| step.in_flight),
            reads: at(0.5, &|step| step.reads),
        })
    }

    fn is_like(&self, other: &Pace) -> bool {
        let (small, large) = (self.bytes.min(other.bytes), self.bytes.max(other.bytes));
        large <= SIZES * small && (self.reads - other.reads).abs() <= MIX
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;

    use super::*;
    use crate::findings::synthetic::device_course as course;

    const STEP_NS: u64 = 100_000_000;

    /// See [`course`].
    type Does = (f64, f64, f64, f64);

    fn noisy(rng: &mut Rng, value: f64) -> f64 {
        value * (0.9 + 0.2 * rng.unit())
    }

    #[test]
    fn credits_that_are_used_up_are_a_slower_pace_of_the_same_requests() {
        let mut rng = Rng::new(3);
        let steps: Vec<Does> = (0..80)
            .map(|n| (noisy(&mut rng, if n < 30 { 600.0 } else { 300.0 }), 4096.0, 8.0, 1.0))
            .collect();
        let found = slower(&course(steps));
        assert_eq!(found.len(), 1);
        let Slower { device, at_ns, before, after } = &found[0];
        assert_eq!((device.as_str(), *at_ns), ("vda", 30 * STEP_NS));
        assert!((before.per_second / 6000.0 - 1.0).abs() < 0.05, "{before:?}");
        assert!((after.per_second / 3000.0 - 1.0).abs() < 0.05 && after.in_flight == 8.0, "{after:?}");
        assert!(after.middle_half[0] < after.per_second && after.per_second < after.middle_half[1]);
    }

    #[test]
    fn one_request_at_a_time_is_judged_by_the_time_that_the_device_is_busy() {
        // The program computes between its requests, from the middle on for longer.
        let computes = course((0..60).map(|n| {
            let busy = if n < 30 { 1.0 } else { 0.55 };
            (200.0 * busy, 4096.0, 1.0, busy)
        }));
        assert_eq!(slower(&computes), []);
        // A hundredth of the time it waits for nothing.
        let limited = course((0..60).map(|n| (if n < 30 { 200.0 } else { 40.0 }, 4096.0, 1.0, 0.99)));
        assert_eq!(slower(&limited).len(), 1);
    }

    #[test]
    fn other_requests_and_fewer_of_them_are_no_slower_device() {
        let two = |a: Does, b: Does| course((0..80).map(|n| if n < 40 { a } else { b }));
        let none = |course: &Course, why: &str| assert_eq!(slower(course), [], "{why}");
        none(&two((600.0, 4096.0, 8.0, 1.0), (100.0, 65536.0, 8.0, 1.0)), "larger ones");
        none(&two((600.0, 4096.0, 8.0, 1.0), (150.0, 4096.0, 2.0, 1.0)), "fewer in flight");
        none(&two((600.0, 4096.0, 8.0, 1.0), (500.0, 4096.0, 8.0, 1.0)), "hardly slower");
        none(&two((300.0, 4096.0, 8.0, 1.0), (600.0, 4096.0, 8.0, 1.0)), "faster");
        none(&two((600.0, 4096.0, 8.0, 1.0), (30.0, 4096.0, 8.0, 0.1)), "hardly busy");
        let mut writes = two((600.0, 4096.0, 8.0, 1.0), (300.0, 4096.0, 8.0, 1.0));
        for step in 40..80 {
            let device = &mut writes.devices[0];
            device.writes[step] = std::mem::take(&mut device.reads[step]);
        }
        none(&writes, "writes");
        none(&course((0..15).map(|n| (if n < 8 { 600.0 } else { 300.0 }, 4096.0, 8.0, 1.0))), "too short");
        let mut stacked = two((600.0, 4096.0, 8.0, 1.0), (300.0, 4096.0, 8.0, 1.0));
        stacked.devices[0].stacked = true;
        none(&stacked, "its disks tell");
    }

    #[test]
    fn a_device_whose_pace_varies_is_seldom_called_slower() {
        let mut rng = Rng::new(17);
        let called = (0..200)
            .filter(|_| {
                let mut wild = |_| (50.0 + 950.0 * rng.unit(), 4096.0, 8.0, 1.0);
                !slower(&course((0..80).map(&mut wild))).is_empty()
            })
            .count();
        assert!(called <= 6, "{called} of 200; the level is 1 %");
    }

    #[test]
    fn a_plateau_is_a_pace_that_more_requests_in_flight_do_not_change() {
        let mut rng = Rng::new(5);
        let of = |rng: &mut Rng, scales: bool| {
            let steps: Vec<Does> = (0..80)
                .map(|_| {
                    let in_flight = 4.0 + 28.0 * rng.unit();
                    let pace = if scales { 20.0 * in_flight } else { 300.0 };
                    (pace * (0.99 + 0.02 * rng.unit()), 4096.0, in_flight, 1.0)
                })
                .collect();
            plateau(&course(steps), "vda")
        };
        let found = of(&mut rng, false).unwrap();
        assert!((found.pace.per_second / 3000.0 - 1.0).abs() < 0.02, "{found:?}");
        assert!(found.in_flight[0] < 12.0 && found.in_flight[1] > 24.0, "{found:?}");
        assert_eq!(of(&mut rng, true), None, "more in flight, more served");
        let steady = course((0..80).map(|_| (300.0, 4096.0, 8.0, 1.0)));
        assert_eq!(plateau(&steady, "vda"), None, "the queue was always the same");
        assert_eq!(plateau(&steady, "vdb"), None);
    }
}
