//! Phases: stretches in which a program, a control group or all devices read and write at other rates than before, and pauses in which nothing
//! of theirs went on while tasks waited for I/O or memory. From counts in steps of time alone. Pure.
//!
//! Goal: what a person sees in the picture, in words. Non-goal: why; that is what findings are for.

use iowhy_core::profile::Course;

use crate::divisions::{self, LEVEL, MIN_STEPS};

/// What is told: rates that differ by this factor, the larger of them at least this part of the highest of the run.
const FACTOR: f64 = 2.0;
const MATTERS: f64 = 0.05;
/// A pause is told where tasks waited for this part of it.
const WAITED: f64 = 0.5;

/// Whose reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Calls of the program that returned.
    Program,
    /// Operations of the control group. Its own tasks wait, where the kernel counts them apart.
    Group,
    /// Requests of all devices that ended.
    Devices,
}

/// What they did in each step.
struct Moved {
    /// Reads, bytes read, writes, bytes written, syncs.
    counts: [Vec<u64>; 5],
    /// All that went on, of whatever kind.
    all: Vec<u64>,
    /// Time in which tasks waited for I/O, and for memory; empty: it is not counted.
    stalls: [Vec<u64>; 2],
}

impl Moved {
    /// `None`: it is not counted.
    fn of(course: &Course, whose: Whose) -> Option<Moved> {
        let steps = course.ends_ns.len();
        let machine = || [course.io_some_ns.clone(), course.memory_some_ns.clone()];
        match whose {
            Whose::Program => {
                let Course { reads, read_bytes, writes, written_bytes, syncs, .. } = course;
                let all = added(&[(false, [reads]), (false, [writes]), (false, [syncs])], steps);
                (read_bytes.len() == steps).then(|| Moved {
                    counts: [reads, read_bytes, writes, written_bytes, syncs].map(Clone::clone),
                    all: all.concat(),
                    stalls: machine(),
                })
            }
            Whose::Group => {
                let group = course.group.as_ref()?;
                let devices = group.devices.as_ref()?.iter();
                let devices: Vec<_> = devices
                    .map(|d| (d.stacked, [&d.reads, &d.read_bytes, &d.writes, &d.written_bytes]))
                    .collect();
                let [reads, read_bytes, writes, written_bytes] = added(&devices, steps);
                let own = [group.io_some_ns.clone(), group.memory_some_ns.clone()];
                Some(Moved {
                    all: reads.iter().zip(&writes).map(|(reads, writes)| reads + writes).collect(),
                    counts: [reads, read_bytes, writes, written_bytes, vec![0; steps]],
                    stalls: if own[0].is_empty() { machine() } else { own },
                })
            }
            Whose::Devices => {
                let devices = course.devices.iter();
                let devices: Vec<_> = devices
                    .map(|d| (d.stacked, [&d.reads, &d.read_bytes, &d.writes, &d.written_bytes, &d.requests]))
                    .collect();
                let [reads, read_bytes, writes, written_bytes, all] = added(&devices, steps);
                let counts = [reads, read_bytes, writes, written_bytes, vec![0; steps]];
                Some(Moved { counts, all, stalls: machine() })
            }
        }
    }
}

/// Sums over devices, step by step. A request of a stacked one is counted where it ends up; where nothing does, at the stacked ones.
fn added<const N: usize>(devices: &[(bool, [&Vec<u64>; N])], steps: usize) -> [Vec<u64>; N] {
    let does = |(stacked, columns): &(bool, [&Vec<u64>; N])| {
        !stacked && columns.iter().any(|column| column.iter().any(|count| *count > 0))
    };
    let with_stacked = !devices.iter().any(does);
    let counted = || devices.iter().filter(move |(stacked, _)| with_stacked || !stacked);
    std::array::from_fn(|at| {
        let sum = |step| counted().filter_map(|(_, columns)| columns[at].get(step)).sum();
        (0..steps).map(sum).collect()
    })
}

/// Sums over consecutive steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Its first step.
    pub first: usize,
    /// The step behind its last one.
    pub end: usize,
    /// Its beginning, in nanoseconds from that of the run.
    pub begin_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// Reads: calls of a program, operations of a control group, requests of devices.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Calls of a program that made data durable.
    pub syncs: u64,
    /// Part of it in which tasks waited for I/O; `None` where the kernel does not count that.
    pub io_waited: Option<f64>,
    /// Part of it in which tasks waited for memory.
    pub memory_waited: Option<f64>,
    /// The device that was busy longest, and the part of the time that it was.
    pub device: Option<(String, f64)>,
    /// Bytes that this device read and wrote.
    pub device_bytes: [u64; 2],
}

impl Stretch {
    /// Its length, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Bytes read and written a second.
    fn rates(&self) -> [f64; 2] {
        [self.read_bytes, self.written_bytes].map(|bytes| bytes as f64 * 1e9 / self.length_ns().max(1) as f64)
    }
}

/// What a run consists of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    /// Its phases in their order; one where nothing changed, none where it has too few steps.
    pub phases: Vec<Stretch>,
    /// Pauses, longest first.
    pub pauses: Vec<Stretch>,
}

/// Finds them; none where those reads and writes are not counted.
///
/// A run is divided where its rates change (`divisions::parts`; reads and writes together); it is told where they differ by a factor of two.
pub fn phases(course: &Course, whose: Whose) -> Phases {
    let steps = course.ends_ns.len();
    let Some(moved) = Moved::of(course, whose).filter(|_| steps >= 2 * MIN_STEPS) else {
        return Phases::default();
    };
    let lengths: Vec<u64> = course.lengths_ns().collect();
    let rate = |column: &[u64]| -> Vec<f64> {
        column.iter().zip(&lengths).map(|(bytes, length)| *bytes as f64 / (*length).max(1) as f64).collect()
    };
    let rates = [rate(&moved.counts[1]), rate(&moved.counts[3])];
    let stretch = |first, end| stretch(course, &moved, first, end);
    let parts = divisions::parts(&rates).into_iter().map(|part| stretch(part.start, part.end)).collect();
    let phases = joined(&stretch, parts);
    let pauses = phases.iter().flat_map(|phase| pauses(&stretch, &moved.all, phase)).collect();
    Phases { phases, pauses: longest_first(pauses) }
}

/// Neighbours whose rates do not differ enough are one; most alike first.
fn joined(stretch: &dyn Fn(usize, usize) -> Stretch, mut parts: Vec<Stretch>) -> Vec<Stretch> {
    let highest =
        |parts: &[Stretch], at: usize| parts.iter().map(|part| part.rates()[at]).fold(0.0, f64::max);
    loop {
        let most = [highest(&parts, 0), highest(&parts, 1)];
        let alike = parts.windows(2).enumerate().map(|(at, pair)| (at, distance(&pair[0], &pair[1], most)));
        match alike.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((at, distance)) if distance < FACTOR => {
                parts[at] = stretch(parts[at].first, parts[at + 1].end);
                parts.remove(at + 1);
            }
            _ => return parts,
        }
    }
}

/// The largest factor between rates of two stretches, of those rates that matter.
fn distance(a: &Stretch, b: &Stretch, most: [f64; 2]) -> f64 {
    let factors = a.rates().into_iter().zip(b.rates()).zip(most).map(|((a, b), most)| {
        let (low, high) = (a.min(b), a.max(b));
        if high < MATTERS * most || high <= 0.0 { 1.0 } else { high / low.max(MATTERS * high / FACTOR) }
    });
    factors.fold(1.0, f64::max)
}

/// Pauses of a phase: consecutive steps in which nothing went on (no call returned), more of them than the part of such steps in the phase
/// explains, in most of which tasks waited.
fn pauses(stretch: &dyn Fn(usize, usize) -> Stretch, all: &[u64], phase: &Stretch) -> Vec<Stretch> {
    let is_empty = |step: &usize| all.get(*step) == Some(&0);
    let steps: Vec<usize> = (phase.first..phase.end).collect();
    let empty = steps.iter().filter(|step| is_empty(step)).count();
    if empty == steps.len() {
        return Vec::new();
    }
    let share = empty as f64 / steps.len() as f64;
    let runs = steps.chunk_by(|a, b| is_empty(a) == is_empty(b)).filter(|run| is_empty(&run[0]));
    let long = runs.filter(|run| share.powi(run.len() as i32) * steps.len() as f64 <= LEVEL);
    let told = long.filter_map(|run| {
        let pause = stretch(run[0], run[run.len() - 1] + 1);
        let waited = [pause.io_waited, pause.memory_waited].into_iter().flatten().fold(0.0, f64::max);
        (waited >= WAITED).then_some(pause)
    });
    told.collect()
}

fn longest_first(mut pauses: Vec<Stretch>) -> Vec<Stretch> {
    pauses.sort_by_key(|pause| std::cmp::Reverse(pause.length_ns()));
    pauses
}

/// The sums over some steps.
fn stretch(course: &Course, moved: &Moved, first: usize, end: usize) -> Stretch {
    let sum = |column: &[u64]| column.get(first..end).map_or(0, |part| part.iter().sum());
    let begin_ns = if first == 0 { 0 } else { course.ends_ns[first - 1] };
    let end_ns = course.ends_ns[end - 1];
    let length = end_ns.saturating_sub(begin_ns).max(1) as f64;
    let part = |column: &[u64]| column.get(first..end).map(|_| (sum(column) as f64 / length).min(1.0));
    let [reads, read_bytes, writes, written_bytes, syncs] = &moved.counts;
    let busiest = course.devices.iter().max_by_key(|device| sum(&device.busy_ns));
    let busiest = busiest.filter(|device| sum(&device.busy_ns) > 0);
    Stretch {
        first,
        end,
        begin_ns,
        end_ns,
        reads: sum(reads),
        read_bytes: sum(read_bytes),
        writes: sum(writes),
        written_bytes: sum(written_bytes),
        syncs: sum(syncs),
        io_waited: part(&moved.stalls[0]),
        memory_waited: part(&moved.stalls[1]),
        device: busiest.map(|device| (device.name.clone(), (sum(&device.busy_ns) as f64 / length).min(1.0))),
        device_bytes: busiest.map_or([0; 2], |device| [sum(&device.read_bytes), sum(&device.written_bytes)]),
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::{CourseStep, DeviceCourse, DeviceStep, GroupStep};
    use iowhy_core::rng::Rng;

    use super::*;

    const STEP_NS: u64 = 100_000_000;

    /// A course of steps: reads' bytes, writes' bytes, part waited for I/O.
    fn course(steps: impl IntoIterator<Item = (u64, u64, f64)>) -> Course {
        let mut course = Course::default();
        for (n, (read, written, waited)) in steps.into_iter().enumerate() {
            course.push(CourseStep {
                end_ns: (n as u64 + 1) * STEP_NS,
                own: Some([read.div_ceil(4096), read, written.div_ceil(4096), written, 0]),
                stalls: Some([(waited * STEP_NS as f64) as u64, 0, 0, 0]),
                memory: None,
                devices: vec![device("vda", false, [1, read, 0, written, 1, 1, STEP_NS / 2])],
                group: None,
            });
        }
        course
    }

    fn device<const N: usize>(name: &str, stacked: bool, counts: [u64; N]) -> DeviceStep<N> {
        DeviceStep { name: name.to_owned(), stacked, counts }
    }

    /// Noise about a rate, as a program's steps have.
    fn noisy(n: usize, rate: u64, rng: &mut Rng) -> Vec<u64> {
        (0..n).map(|_| (rate as f64 * (0.7 + 0.6 * rng.unit())) as u64).collect()
    }

    fn ends(phases: &Phases) -> Vec<usize> {
        phases.phases.iter().map(|phase| phase.end).collect()
    }

    #[test]
    fn a_program_that_reads_and_then_writes_has_two_phases() {
        let mut rng = Rng::new(3);
        let reads = noisy(40, 1 << 20, &mut rng).into_iter().map(|bytes| (bytes, 0, 0.1));
        let writes: Vec<_> = noisy(30, 1 << 22, &mut rng).into_iter().map(|bytes| (0, bytes, 0.1)).collect();
        let found = phases(&course(reads.chain(writes)), Whose::Program);
        assert_eq!(ends(&found), [40, 70]);
        assert_eq!((found.phases[0].written_bytes, found.phases[1].read_bytes), (0, 0));
        assert_eq!((found.phases[1].begin_ns, found.phases[1].end_ns), (40 * STEP_NS, 70 * STEP_NS));
        assert!(found.pauses.is_empty());
    }

    #[test]
    fn an_even_program_has_one_phase_and_false_divisions_are_rare() {
        let mut rng = Rng::new(11);
        let divided = (0..200)
            .filter(|_| {
                let mut wild = |_| ((rng.unit() * rng.unit() * 1e7) as u64, 0, 0.0);
                phases(&course((0..60).map(&mut wild)), Whose::Program).phases.len() > 1
            })
            .count();
        // The level is 1 % for each division tried, before rates are compared.
        assert!(divided <= 6, "{divided} of 200");
    }

    #[test]
    fn a_small_change_is_not_told() {
        let mut rng = Rng::new(5);
        let first = noisy(50, 1_000_000, &mut rng);
        let second = noisy(50, 1_500_000, &mut rng);
        assert_eq!(
            ends(&phases(
                &course(first.into_iter().chain(second).map(|bytes| (bytes, 0, 0.0))),
                Whose::Program
            )),
            [100]
        );
    }

    #[test]
    fn a_pause_needs_steps_without_calls_and_somebody_who_waits() {
        let mut rng = Rng::new(7);
        let with_pause = |waited: f64, rng: &mut Rng| {
            let steps = noisy(80, 1 << 20, rng).into_iter().enumerate();
            course(steps.map(
                |(n, bytes)| {
                    if (50..54).contains(&n) { (0, 0, waited) } else { (0, bytes, 0.2) }
                },
            ))
        };
        let found = phases(&with_pause(0.95, &mut rng), Whose::Program);
        assert_eq!(found.pauses.len(), 1);
        assert_eq!((found.pauses[0].begin_ns, found.pauses[0].end_ns), (50 * STEP_NS, 54 * STEP_NS));
        assert_eq!(found.pauses[0].device, Some(("vda".to_owned(), 0.5)));
        assert!(phases(&with_pause(0.0, &mut rng), Whose::Program).pauses.is_empty(), "it computed");
        let slow = course((0..80).map(|n| if n % 8 == 0 { (4096, 0, 0.9) } else { (0, 0, 0.9) }));
        assert!(phases(&slow, Whose::Program).pauses.is_empty(), "seldom calls are no pauses");
    }

    #[test]
    fn phases_cover_the_run_and_hold_all_its_bytes() {
        let mut rng = Rng::new(13);
        for _ in 0..50 {
            let steps = 10 + rng.below(150) as usize;
            let mut level = 1;
            let made = course((0..steps).map(|_| {
                if rng.below(20) == 0 {
                    level = 1 << rng.below(24);
                }
                (rng.below(level), rng.below(level * 2), rng.unit())
            }));
            let found = phases(&made, Whose::Program);
            assert_eq!((found.phases[0].first, found.phases.last().unwrap().end), (0, steps));
            assert!(found.phases.windows(2).all(|pair| pair[0].end == pair[1].first));
            let total: u64 = found.phases.iter().map(|phase| phase.read_bytes).sum();
            assert_eq!(total, made.read_bytes.iter().sum::<u64>());
        }
    }

    /// A machine whose volume lies on a disk, and a group that reads from it and is held back for a while.
    fn of_machine() -> Course {
        let mut course = Course::default();
        for n in 0..80_u64 {
            let (bytes, is_paused) = (if n < 40 { 1 << 20 } else { 8 << 20 }, (60..64).contains(&n));
            let reads = |bytes: u64| [bytes >> 12, bytes, 0, 0, bytes >> 12, 1, 1];
            let of_group = |name: &str, stacked| {
                let counts = if is_paused { [0; 4] } else { [9, bytes / 2, 0, 0] };
                device(name, stacked, counts)
            };
            course.push(CourseStep {
                end_ns: (n + 1) * STEP_NS,
                stalls: Some([0; 4]),
                devices: vec![device("dm-0", true, reads(bytes)), device("vda", false, reads(bytes))],
                group: Some(GroupStep {
                    path: "a".to_owned(),
                    stalls: Some([if is_paused { STEP_NS } else { 0 }, 0]),
                    devices: Some(vec![of_group("dm-0", true), of_group("vda", false)]),
                }),
                ..CourseStep::default()
            });
        }
        course
    }

    #[test]
    fn devices_and_groups_have_phases_of_their_own_and_no_byte_is_counted_twice() {
        let course = of_machine();
        assert_eq!(phases(&course, Whose::Program), Phases::default(), "no program was followed");
        let devices = phases(&course, Whose::Devices);
        assert_eq!(ends(&devices), [40, 80]);
        assert_eq!((devices.phases[0].read_bytes, devices.phases[1].read_bytes), (40 << 20, 320 << 20));
        assert!(devices.pauses.is_empty(), "others went on");
        let group = phases(&course, Whose::Group);
        assert_eq!(group.phases[0].read_bytes, 20 << 20);
        let pauses: Vec<_> =
            group.pauses.iter().map(|pause| (pause.first, pause.end, pause.io_waited)).collect();
        assert_eq!(pauses, [(60, 64, Some(1.0))], "its own tasks waited");
        let mut alone = course;
        alone.devices.retain(|device| device.stacked);
        let stacked = phases(&alone, Whose::Devices);
        assert_eq!(stacked.phases[0].read_bytes, 40 << 20, "a volume whose disks are not seen");
    }

    #[test]
    fn nothing_is_told_of_a_short_run_or_without_own_counts() {
        assert_eq!(phases(&course((0..9).map(|_| (1, 1, 0.0))), Whose::Program), Phases::default());
        let mut unknown = course((0..50).map(|_| (1, 1, 0.0)));
        unknown.read_bytes = Vec::new();
        assert_eq!(phases(&unknown, Whose::Program), Phases::default());
        unknown.devices = vec![DeviceCourse::default()];
        assert_eq!(phases(&unknown, Whose::Program), Phases::default());
    }
}
