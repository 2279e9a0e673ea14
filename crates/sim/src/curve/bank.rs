//! Many caches under one stream of references: each policy at each size, whole or in miniature, in parallel.
//!
//! In miniature (MINISIM: Waldspurger, Saemundsson, Ahmad, Park, ATC 2017), a cache of a part of the size is run over the same
//! part of the blocks; its error comes from the parts of the sample (see [`super::sample`]).

use iowhy_core::problem::Problem;
use rayon::prelude::*;

use super::ids::IdTable;
use super::sample::{GROUPS, HASHES, error_of, hash};
use crate::policy::{Bulk, PolicyId, belady, bulk, bulk_of_any};

/// A miss ratio at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The policy.
    pub policy: PolicyId,
    /// Room, in blocks or objects.
    pub room: u64,
    /// Share of references that missed.
    pub miss_ratio: f64,
    /// Share of bytes that missed; `None` where sizes were not given or are all the same, or for a miniature.
    pub byte_miss_ratio: Option<f64>,
    /// How it was found.
    pub basis: Basis,
}

/// How a ratio was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// Every reference was followed.
    Exact,
    /// A sample was followed.
    Sampled {
        /// Share of the blocks.
        rate: f64,
        /// Half the width of the 95 % interval; `None`: unknown.
        error: Option<f64>,
    },
}

/// How to run at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// The policy; Belady's bound only exactly.
    pub policy: PolicyId,
    /// Room, in blocks or objects; at least one.
    pub room: u64,
    /// The share of blocks to follow, or all of them.
    pub sample: Option<f64>,
}

/// A piece of a stream: the same references as keys, as dense numbers, and perhaps with sizes.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Keys of blocks. Samples are chosen by them.
    pub keys: &'a [u64],
    /// Their dense numbers; may be empty where only miniatures run, and with `dense` off where no bound is asked for.
    pub ids: &'a [u32],
    /// Bytes that each moves.
    pub bytes: Option<&'a [u64]>,
}

/// References of a piece that are worth handing to several threads at once.
pub const PIECE: usize = 1 << 17;

/// The caches.
#[derive(Debug)]
pub struct Bank {
    members: Vec<Member>,
    /// All references so far, for the bound, which needs the future. Empty unless it is requested.
    history: Vec<u32>,
    history_bytes: Vec<u64>,
    wants_history: bool,
    /// The samples that miniatures follow: chosen and numbered once for all of them.
    samples: Vec<Sample>,
    references: u64,
    /// The bytes that the first reference moved.
    size: Option<u64>,
    /// Whether references move different numbers of bytes. Until then, bytes need no counts of their own.
    sized: bool,
    bytes: u64,
}

/// Those references of a piece whose hash is below a threshold, as dense numbers: all, and each part of them.
#[derive(Debug)]
struct Sample {
    threshold: u64,
    whole: Numbered,
    parts: Vec<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    table: IdTable,
    ids: Vec<u32>,
}

#[derive(Debug)]
struct Member {
    order: Order,
    runner: Runner,
    misses: u64,
    missed_bytes: u64,
}

#[derive(Debug)]
enum Runner {
    Dense(Box<dyn Bulk<u32>>),
    Any(Box<dyn Bulk<u64>>),
    Miniature(Miniature),
    /// Run at the end, over the history.
    Bound,
}

/// A cache over a sample, and one over each part of it.
#[derive(Debug)]
struct Miniature {
    /// The number of its sample.
    sample: usize,
    threshold: u64,
    whole: (Box<dyn Bulk<u32>>, u64),
    parts: Vec<(Box<dyn Bulk<u32>>, u64)>,
}

impl Bank {
    /// Empty caches. With `dense`, they are found by arrays that grow with the distinct blocks of the stream (faster); else
    /// memory grows with the room of each. Caches in miniature grow with the distinct blocks of their sample.
    ///
    /// # Errors
    /// Impossible rooms, see [`bulk`].
    pub fn new(orders: &[Order], dense: bool) -> Result<Bank, Problem> {
        let mut samples = Vec::new();
        let members = orders
            .iter()
            .map(|&order| {
                let runner = Runner::new(order, dense, &mut samples)?;
                Ok(Member { order, runner, misses: 0, missed_bytes: 0 })
            })
            .collect::<Result<Vec<Member>, Problem>>()?;
        let wants_history = orders.iter().any(|order| order.policy == PolicyId::Belady);
        Ok(Bank {
            members,
            history: Vec::new(),
            history_bytes: Vec::new(),
            wants_history,
            samples,
            references: 0,
            size: None,
            sized: false,
            bytes: 0,
        })
    }

    /// Runs a piece of the stream through all caches, each on whatever core is free. The result does not depend on how
    /// the stream is cut, nor on the cores.
    pub fn feed(&mut self, piece: Piece<'_>) {
        let bytes = piece.bytes.filter(|bytes| self.sizes_differ(bytes));
        let piece = Piece { bytes, ..piece };
        self.references += piece.keys.len() as u64;
        if self.wants_history {
            self.history.extend_from_slice(piece.ids);
            self.history_bytes.extend_from_slice(piece.bytes.unwrap_or_default());
        }
        self.samples.par_iter_mut().for_each(|sample| sample.choose(piece.keys));
        let samples = &self.samples;
        self.members.par_iter_mut().for_each(|member| member.feed(piece, samples));
    }

    /// Counts the bytes of a piece, and says whether they differ by now. The first that differs finds the sums of before.
    fn sizes_differ(&mut self, bytes: &[u64]) -> bool {
        let one = *self.size.get_or_insert(bytes.first().copied().unwrap_or(0));
        self.bytes = bytes.iter().fold(self.bytes, |sum, bytes| sum.saturating_add(*bytes));
        if !self.sized && bytes.iter().any(|bytes| *bytes != one) {
            self.sized = true;
            for member in &mut self.members {
                member.missed_bytes = member.misses.saturating_mul(one);
            }
            self.history_bytes.resize(self.history.len(), one);
        }
        self.sized
    }

    /// The miss ratios, in the order of the orders.
    ///
    /// # Errors
    /// A trace with more references than the bound can number.
    pub fn finish(self) -> Result<Vec<Point>, Problem> {
        let Bank { mut members, history, history_bytes, references, bytes, sized, wants_history, .. } = self;
        if wants_history {
            let distinct = history.iter().max().map_or(0, |highest| highest + 1);
            let next = belady::next_uses(history, distinct).ok_or_else(|| {
                Problem::failed(format!(
                    "`belady` numbers at most {} references; this trace has {references}",
                    u32::MAX - 1
                ))
                .hint("leave `belady` out of `--policy`")
            })?;
            members.par_iter_mut().filter(|m| matches!(m.runner, Runner::Bound)).for_each(|member| {
                let sizes = sized.then_some(history_bytes.as_slice());
                (member.misses, member.missed_bytes) =
                    belady::misses_of_sizes(&next, sizes, member.order.room);
            });
        }
        let byte_share = |missed: u64| (sized && bytes > 0).then(|| missed as f64 / bytes as f64);
        let point = |member: &Member| {
            let Order { policy, room, .. } = member.order;
            match &member.runner {
                Runner::Miniature(miniature) => {
                    let (miss_ratio, basis) = miniature.answer(references);
                    Point { policy, room, miss_ratio, byte_miss_ratio: None, basis }
                }
                _ => Point {
                    policy,
                    room,
                    miss_ratio: if references == 0 { 0.0 } else { member.misses as f64 / references as f64 },
                    byte_miss_ratio: byte_share(member.missed_bytes),
                    basis: Basis::Exact,
                },
            }
        };
        Ok(members.iter().map(point).collect())
    }
}

impl Member {
    fn feed(&mut self, piece: Piece<'_>, samples: &[Sample]) {
        match (&mut self.runner, piece.bytes) {
            (Runner::Dense(cache), None) => self.misses += cache.references(piece.ids),
            (Runner::Any(cache), None) => self.misses += cache.references(piece.keys),
            (Runner::Dense(cache), Some(bytes)) => {
                let (misses, missed) = sized(cache.as_mut(), piece.ids, bytes);
                self.misses += misses;
                self.missed_bytes = self.missed_bytes.saturating_add(missed);
            }
            (Runner::Any(cache), Some(bytes)) => {
                let (misses, missed) = sized(cache.as_mut(), piece.keys, bytes);
                self.misses += misses;
                self.missed_bytes = self.missed_bytes.saturating_add(missed);
            }
            (Runner::Miniature(miniature), _) => miniature.feed(&samples[miniature.sample]),
            (Runner::Bound, _) => {}
        }
    }
}

/// References with sizes: how many missed, and their bytes.
fn sized<Id: Copy>(cache: &mut dyn Bulk<Id>, blocks: &[Id], bytes: &[u64]) -> (u64, u64) {
    let mut misses = 0;
    let mut missed: u64 = 0;
    for (block, bytes) in blocks.iter().zip(bytes) {
        if !cache.reference(*block) {
            misses += 1;
            missed = missed.saturating_add(*bytes);
        }
    }
    (misses, missed)
}

/// A room of 64 bits as a capacity; what is too large for one is refused there.
fn capacity(room: u64) -> usize {
    usize::try_from(room).unwrap_or(usize::MAX)
}

impl Runner {
    fn new(order: Order, dense: bool, samples: &mut Vec<Sample>) -> Result<Runner, Problem> {
        let Order { policy, room, sample } = order;
        Ok(match sample {
            _ if policy == PolicyId::Belady => Runner::Bound,
            Some(rate) if rate < 1.0 => Runner::Miniature(Miniature::new(policy, room, rate, samples)?),
            _ if dense => Runner::Dense(bulk(policy, capacity(room))?),
            _ => Runner::Any(bulk_of_any(policy, capacity(room))?),
        })
    }
}

impl Sample {
    fn new(threshold: u64) -> Sample {
        let parts = (0..GROUPS).map(|_| Numbered::default()).collect();
        Sample { threshold, whole: Numbered::default(), parts }
    }

    /// Replaces the references by those of the next piece.
    fn choose(&mut self, keys: &[u64]) {
        self.whole.ids.clear();
        self.parts.iter_mut().for_each(|part| part.ids.clear());
        for &key in keys {
            let (hash, group) = hash(key);
            if hash < self.threshold {
                self.whole.push(key);
                self.parts[group].push(key);
            }
        }
    }
}

impl Numbered {
    /// A sample of more blocks than can be told apart stops growing; its rate was chosen far too high.
    fn push(&mut self, key: u64) {
        self.ids.extend(self.table.number(key).ok());
    }
}

impl Miniature {
    fn new(policy: PolicyId, room: u64, rate: f64, samples: &mut Vec<Sample>) -> Result<Miniature, Problem> {
        let threshold = (rate.clamp(0.0, 1.0) * HASHES as f64).ceil().max(1.0) as u64;
        let known = samples.iter().position(|sample| sample.threshold == threshold);
        let sample = known.unwrap_or_else(|| {
            samples.push(Sample::new(threshold));
            samples.len() - 1
        });
        let small = |share: f64| {
            let room = (room as f64 * threshold as f64 / HASHES as f64 * share).round().max(1.0);
            Ok::<_, Problem>((bulk(policy, room as usize)?, 0))
        };
        let parts = (0..GROUPS).map(|_| small(1.0 / GROUPS as f64)).collect::<Result<_, _>>()?;
        Ok(Miniature { sample, threshold, whole: small(1.0)?, parts })
    }

    fn feed(&mut self, sample: &Sample) {
        let (cache, misses) = &mut self.whole;
        *misses += cache.references(&sample.whole.ids);
        for ((cache, misses), part) in self.parts.iter_mut().zip(&sample.parts) {
            *misses += cache.references(&part.ids);
        }
    }

    /// Misses over the references that a sample of this rate should have: what it has too few or too many of are hits on a few
    /// favourites, as in the adjustment of SHARDS.
    fn answer(&self, references: u64) -> (f64, Basis) {
        let rate = self.threshold as f64 / HASHES as f64;
        let expected = (references as f64 * rate).max(1.0);
        let ratio = |misses: u64, expected: f64| (misses as f64 / expected).min(1.0);
        let parts: Vec<f64> =
            self.parts.iter().map(|(_, misses)| ratio(*misses, expected / GROUPS as f64)).collect();
        (ratio(self.whole.1, expected), Basis::Sampled { rate, error: error_of(&parts) })
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;

    use super::*;
    use crate::curve::ids::IdTable;

    fn run(orders: &[Order], keys: &[u64], dense: bool, cut: usize, bytes: Option<&[u64]>) -> Vec<Point> {
        let mut table = IdTable::default();
        let mut ids = Vec::new();
        table.numbers(keys, &mut ids).unwrap();
        let mut bank = Bank::new(orders, dense).unwrap();
        for start in (0..keys.len()).step_by(cut) {
            let range = start..(start + cut).min(keys.len());
            let bytes = bytes.map(|bytes| &bytes[range.clone()]);
            bank.feed(Piece { keys: &keys[range.clone()], ids: &ids[range], bytes });
        }
        bank.finish().unwrap()
    }

    fn all(room: u64) -> Vec<Order> {
        PolicyId::ALL.iter().map(|&policy| Order { policy, room, sample: None }).collect()
    }

    fn keys(n: usize) -> Vec<u64> {
        let mut rng = Rng::new(8);
        (0..n).map(|_| (rng.below(300) + 1) * rng.below(300) * 7).collect()
    }

    #[test]
    fn answers_depend_neither_on_the_index_nor_on_the_cut() {
        let keys = keys(20_000);
        let mut orders = all(500);
        orders.push(Order { policy: PolicyId::Lru, room: 2000, sample: Some(0.3) });
        let first = run(&orders, &keys, true, 20_000, None);
        assert_eq!(first, run(&orders, &keys, false, 777, None));
        let bound = first.iter().find(|p| p.policy == PolicyId::Belady).unwrap().miss_ratio;
        assert!(first[..10].iter().all(|point| point.miss_ratio >= bound && point.basis == Basis::Exact));
    }

    #[test]
    fn bytes_of_one_size_have_no_ratio_and_the_first_other_one_finds_the_sums_of_before() {
        let keys = keys(5000);
        let mut bytes = vec![4096; 5000];
        for point in run(&all(300), &keys, true, 1000, Some(&bytes)) {
            assert_eq!(point.byte_miss_ratio, None, "{}", point.policy);
        }
        // All in one piece counts sizes apart from the start; in pieces, only the last one has another size.
        bytes[4999] = 4097;
        let pieces = run(&all(300), &keys, true, 1000, Some(&bytes));
        assert_eq!(pieces, run(&all(300), &keys, false, 5000, Some(&bytes)));
        assert!(pieces.iter().all(|point| (point.byte_miss_ratio.unwrap() - point.miss_ratio).abs() < 1e-6));
        // One large block that is always there, and small ones that never are.
        let keys: Vec<u64> = (0..2000).flat_map(|i| [0, i + 1]).collect();
        let bytes: Vec<u64> = (0..2000).flat_map(|_| [1_000_000, 1]).collect();
        for point in run(&all(100), &keys, true, 4000, Some(&bytes)) {
            assert!(point.byte_miss_ratio.unwrap() < point.miss_ratio, "{}", point.policy);
        }
    }

    #[test]
    fn miniatures_come_near_and_say_how_near() {
        let keys = keys(300_000);
        let online: Vec<Order> =
            all(8000).into_iter().filter(|order| order.policy != PolicyId::Belady).collect();
        let exact = run(&online, &keys, true, 1 << 16, None);
        let small: Vec<Order> = online.iter().map(|o| Order { sample: Some(0.2), ..*o }).collect();
        for (exact, sampled) in exact.iter().zip(run(&small, &keys, true, 1 << 16, None)) {
            let Basis::Sampled { rate, error: Some(error) } = sampled.basis else { panic!("{sampled:?}") };
            assert!((rate - 0.2).abs() < 1e-6);
            let off = (sampled.miss_ratio - exact.miss_ratio).abs();
            assert!(off < 0.1 && off <= error * 3.0 + 0.01, "{}: off {off}, said {error}", exact.policy);
        }
    }

    #[test]
    fn an_empty_stream_has_no_misses() {
        for point in run(&all(5), &[], true, 1, None) {
            assert_eq!((point.miss_ratio, point.byte_miss_ratio), (0.0, None));
        }
        assert!(Bank::new(&all(0), true).is_err());
    }
}
