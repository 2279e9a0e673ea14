//! What is faster than the plain request, beyond noise: more in flight, another thread, another method.
//!
//! Invariant: a gain is a ratio within rounds; it is listed only if its whole interval is above 1 and its value above
//! [`MIN_GAIN`].

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Method};

use crate::methods::MethodTable;
use crate::per_request::{bytes_per_second, paired_estimate};
use crate::plan::LimitCell;

/// Smaller gains are not listed.
pub const MIN_GAIN: f64 = 1.05;

/// One change, and its gain.
#[derive(Clone, Debug, PartialEq)]
pub struct Faster {
    /// `random reads`, `sequential reads`, `cached reads`, `sequential writes`.
    pub question: &'static str,
    /// The change in words.
    pub change: String,
    /// Key of the cell with the change.
    pub key: String,
    /// Key of the cell without it.
    pub than: String,
    /// Throughput with the change over throughput without it.
    pub gain: Estimate,
}

/// Everything that is faster, the greatest gain of each question first. `writes` are sequential ones through the cache and
/// past it.
pub fn faster<'a>(
    limit: &dyn Fn(LimitCell) -> Option<&'a CellRun>,
    writes: [Option<&'a CellRun>; 2],
    methods: &[MethodTable],
) -> Vec<Faster> {
    use LimitCell::*;
    let [cached, direct] = writes;
    let pairs = [
        ("random reads", limit(RandomOne), limit(RandomDeep)),
        ("sequential reads", limit(ColdSequential), limit(ColdSequentialThreads)),
        ("sequential reads", limit(ColdSequential), limit(DirectSequentialDeep)),
        ("cached reads", limit(CachedSmall), limit(CachedSmallThreads)),
        ("sequential writes", cached, direct),
        ("sequential writes", direct, cached),
    ];
    let pair = |(question, than, with): (&'static str, Option<&CellRun>, Option<&CellRun>)| {
        let (than, with) = (than?, with?);
        let gain =
            paired_estimate(than, with, Unit::Ratio, |a, b| bytes_per_second(b) / bytes_per_second(a))?;
        Some(Faster {
            question,
            change: change(than, with),
            key: with.key.clone(),
            than: than.key.clone(),
            gain,
        })
    };
    let methods = methods.iter().flat_map(of_methods);
    let mut found: Vec<Faster> = pairs.into_iter().filter_map(pair).chain(methods).collect();
    found.retain(|faster| faster.gain.low > 1.0 && faster.gain.value > MIN_GAIN);
    let order = ["random reads", "sequential reads", "cached reads", "sequential writes"];
    let rank = |faster: &Faster| order.iter().position(|question| *question == faster.question);
    found.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.gain.value.total_cmp(&a.gain.value)));
    found
}

/// The methods of a table whose bytes reach the program, against its reference.
fn of_methods(table: &MethodTable) -> impl Iterator<Item = Faster> {
    let question = if table.common.state == CacheState::Warm { "cached reads" } else { "sequential reads" };
    let than = table.rows.iter().find(|row| row.method == table.reference).map(|row| row.key.clone());
    table.rows.iter().filter_map(move |row| {
        let delivers = !matches!(row.method, Method::Splice | Method::Sendfile);
        let time = row.ratio.filter(|_| delivers && row.method != table.reference)?;
        Some(Faster {
            question,
            change: format!("{} of {}", row.method.id(), Bytes(table.common.block_bytes)),
            key: row.key.clone(),
            than: than.clone()?,
            gain: time.reciprocal(1.0, Unit::Ratio),
        })
    })
}

/// What `with` has and `than` has not.
fn change(than: &CellRun, with: &CellRun) -> String {
    let (a, b) = (&than.workload, &with.workload);
    let mut words = Vec::new();
    if a.state == CacheState::Direct && b.state != CacheState::Direct {
        words.push("through the cache".to_owned());
    }
    if b.state == CacheState::Direct && a.state != CacheState::Direct {
        words.push("direct".to_owned());
    }
    if a.block_bytes != b.block_bytes {
        words.push(Bytes(b.block_bytes).to_string());
    }
    if a.depth != b.depth {
        words.push(format!("{} in flight", b.depth));
    }
    if a.threads != b.threads {
        words.push(format!("{} threads", b.threads));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods;
    use crate::synthetic::Rounds;
    use iowhy_core::workload::Workload;

    fn cell(method: Method, depth: usize, ns: f64) -> CellRun {
        let mut workload = Workload::reads(method, CacheState::Direct, 4096, 1 << 30);
        workload.depth = depth;
        Rounds::new(workload).wait(ns).build()
    }

    /// The gain of random reads with 32 in flight, each round's time multiplied by `noise`.
    fn found(one_ns: f64, deep_ns: f64, noise: impl Fn(usize) -> u64) -> Vec<Faster> {
        let (one, mut deep) = (cell(Method::Direct, 1, one_ns), cell(Method::Uring, 32, deep_ns));
        for (i, sample) in deep.samples.iter_mut().enumerate() {
            sample.wall_ns = sample.wall_ns * noise(i) / 100;
        }
        let limit = |wanted: LimitCell| match wanted {
            LimitCell::RandomOne => Some(&one),
            LimitCell::RandomDeep => Some(&deep),
            _ => None,
        };
        faster(&limit, [None, None], &[])
    }

    #[test]
    fn a_gain_beyond_noise_is_listed_with_its_interval() {
        let found = found(80_000.0, 10_000.0, |_| 100);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].question, found[0].change.as_str()), ("random reads", "32 in flight"));
        assert!((found[0].gain.value - 8.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn what_is_slower_or_as_fast_or_only_noise_is_not_listed() {
        assert!(found(10_000.0, 80_000.0, |_| 100).is_empty());
        assert!(found(10_000.0, 9_800.0, |_| 100).is_empty(), "2 % are too little");
        // A median gain of 1.25 whose rounds lie on both sides of 1.
        assert!(found(10_000.0, 10_000.0, |i| if i % 2 == 0 { 40 } else { 160 }).is_empty());
    }

    #[test]
    fn methods_that_deliver_no_bytes_are_no_advice() {
        let warm = |method, ns| {
            let run = Workload::reads(method, CacheState::Warm, 65_536, 1 << 30);
            Rounds::new(run).busy(ns).build()
        };
        let cells = [warm(Method::Pread, 3000.0), warm(Method::Sendfile, 300.0), warm(Method::Read, 1500.0)];
        let found = faster(&|_| None, [None, None], &methods::tables(&cells));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].question, found[0].change.as_str()), ("cached reads", "read of 64 KiB"));
        assert!((found[0].gain.value - 2.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn the_faster_of_two_ways_to_write_is_listed_once() {
        let write = |method, state, ns| {
            let mut workload = Workload::reads(method, state, 1 << 20, 1 << 30);
            workload.direction = iowhy_core::workload::Direction::Write;
            Rounds::new(workload).wait(ns).build()
        };
        let cached = write(Method::PwriteEndFdatasync, CacheState::None, 2e6);
        let direct = write(Method::Direct, CacheState::Direct, 1e6);
        let found = faster(&|_| None, [Some(&cached), Some(&direct)], &[]);
        assert_eq!(found.iter().map(|f| f.change.as_str()).collect::<Vec<_>>(), ["direct"]);
    }
}
