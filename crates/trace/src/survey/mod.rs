//! A trace in one screen: counts, sizes, distinct bytes, order, time, latency. Arithmetic alone; no printing.
//!
//! Invariant: memory is bounded whatever the trace (see [`distinct`] and the constants here); estimates are marked,
//! with their error.

pub mod distinct;

use iowhy_core::histogram::Histogram;
use iowhy_core::request::{Marks, Op, Request};

use self::distinct::{Amount, Blocks, Keys};
use crate::format::Kind;
use rustc_hash::FxHashMap;

/// Sizes that are counted one by one; a trace with more has the rest in powers of two only.
const MAX_SIZES: usize = 1 << 16;

/// Objects whose last end is remembered to see sequential requests.
const MAX_ENDS: usize = 1 << 20;

/// Sums of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Requests.
    pub requests: u64,
    /// Bytes that they move.
    pub bytes: u64,
}

/// How many of the transfers had a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeCount {
    /// The size.
    pub bytes: u64,
    /// Transfers of this size.
    pub requests: u64,
}

/// A survey of a trace so far.
#[derive(Debug)]
pub struct Survey {
    kind: Kind,
    /// Every request.
    pub requests: u64,
    by_op: [Flow; Op::ALL.len()],
    first_ns: u64,
    last_ns: u64,
    sizes: FxHashMap<u64, u64>,
    /// Transfers whose size found no room in the table.
    other_sizes: u64,
    /// Transfers by power of two: at index i those of at least 2^i and below 2^(i+1).
    powers: [u64; 64],
    largest: u64,
    ends: FxHashMap<u64, u64>,
    sequential: u64,
    followed: u64,
    latency: Histogram,
    marked: [u64; 8],
    keys: Keys,
    blocks: Blocks,
    objects: Keys,
    streams: FxHashMap<u32, ()>,
}

/// Maximum number of distinct streams.
const MAX_STREAMS: usize = 1 << 16;

impl Survey {
    /// Of a trace whose requests address this.
    pub fn new(kind: Kind) -> Survey {
        Survey {
            kind,
            requests: 0,
            by_op: [Flow::default(); Op::ALL.len()],
            first_ns: u64::MAX,
            last_ns: 0,
            sizes: FxHashMap::default(),
            other_sizes: 0,
            powers: [0; 64],
            largest: 0,
            ends: FxHashMap::default(),
            sequential: 0,
            followed: 0,
            latency: Histogram::new(),
            marked: [0; 8],
            keys: Keys::new(),
            blocks: Blocks::new(),
            objects: Keys::new(),
            streams: FxHashMap::default(),
        }
    }

    /// Takes requests in the order of the trace.
    pub fn add(&mut self, batch: &[Request]) {
        for request in batch {
            self.one(request);
        }
    }

    fn one(&mut self, request: &Request) {
        self.requests += 1;
        let flow = &mut self.by_op[request.op as usize];
        flow.requests += 1;
        flow.bytes = flow.bytes.saturating_add(request.bytes);
        self.first_ns = self.first_ns.min(request.time_ns);
        self.last_ns = self.last_ns.max(request.time_ns);
        if request.latency_ns > 0 {
            self.latency.record(request.latency_ns);
        }
        if request.marks != Marks::default() {
            for (bit, count) in self.marked.iter_mut().enumerate() {
                *count += u64::from(request.marks.0 >> bit & 1);
            }
        }
        if request.stream > 0 && self.streams.len() < MAX_STREAMS {
            self.streams.insert(request.stream, ());
        }
        if matches!(request.op, Op::Read | Op::Write) {
            self.transfer(request);
        }
    }

    fn transfer(&mut self, request: &Request) {
        let bytes = request.bytes;
        self.largest = self.largest.max(bytes);
        if bytes > 0 {
            self.powers[bytes.ilog2() as usize] += 1;
        }
        let room = self.sizes.len() < MAX_SIZES;
        match self.sizes.get_mut(&bytes) {
            Some(count) => *count += 1,
            None if room => {
                self.sizes.insert(bytes, 1);
            }
            None => self.other_sizes += 1,
        }
        if self.kind == Kind::Keys {
            self.keys.add(request.key(), bytes);
            return;
        }
        self.objects.add(request.object, 0);
        self.blocks.add(request.object, request.offset, bytes);
        let end = request.offset.saturating_add(bytes);
        let room = self.ends.len() < MAX_ENDS;
        match self.ends.get_mut(&request.object) {
            Some(last) => {
                self.followed += 1;
                self.sequential += u64::from(*last == request.offset);
                *last = end;
            }
            None if room => {
                self.ends.insert(request.object, end);
            }
            None => {}
        }
    }

    /// Address space of the requests.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sums of one kind of request.
    pub fn for_op(&self, op: Op) -> Flow {
        self.by_op[op as usize]
    }

    /// Reads and writes.
    pub fn transfers(&self) -> Flow {
        let (reads, writes) = (self.for_op(Op::Read), self.for_op(Op::Write));
        Flow { requests: reads.requests + writes.requests, bytes: reads.bytes.saturating_add(writes.bytes) }
    }

    /// From the earliest request to the latest, in nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns.min(self.last_ns))
    }

    /// Requests per second over the span; `None` where there is no span.
    pub fn rate(&self) -> Option<f64> {
        (self.span_ns() > 0).then(|| self.requests as f64 / (self.span_ns() as f64 / 1e9))
    }

    /// Share of transfers that begin where the one before them in the same file or device ended, of those that have one
    /// before them. `None` for keys, and where there is none.
    pub fn sequential_share(&self) -> Option<f64> {
        (self.followed > 0).then(|| self.sequential as f64 / self.followed as f64)
    }

    /// The commonest sizes, at most `most`.
    pub fn common_sizes(&self, most: usize) -> Vec<SizeCount> {
        let mut all: Vec<SizeCount> = self
            .sizes
            .iter()
            .map(|(bytes, requests)| SizeCount { bytes: *bytes, requests: *requests })
            .collect();
        all.sort_unstable_by_key(|size| (std::cmp::Reverse(size.requests), size.bytes));
        all.truncate(most);
        all
    }

    /// The size that a share `p` (0 to 1) of transfers does not exceed; exact, or the upper end of a power of two
    /// where sizes were too many to count.
    pub fn size_quantile(&self, p: f64) -> u64 {
        let total = self.transfers().requests;
        let rank = ((p.clamp(0.0, 1.0) * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        if self.other_sizes == 0 {
            let mut all: Vec<(u64, u64)> =
                self.sizes.iter().map(|(bytes, requests)| (*bytes, *requests)).collect();
            all.sort_unstable();
            for (bytes, requests) in all {
                seen += requests;
                if seen >= rank {
                    return bytes;
                }
            }
            return self.largest;
        }
        // Transfers of nothing have no power.
        seen += total - self.powers.iter().sum::<u64>();
        for (power, requests) in self.powers.iter().enumerate() {
            seen += requests;
            if seen >= rank {
                return (2u64.checked_shl(power as u32).map_or(u64::MAX, |above| above - 1))
                    .min(self.largest);
            }
        }
        self.largest
    }

    /// The largest transfer.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Latencies, where the trace has some.
    pub fn latency(&self) -> Option<&Histogram> {
        (!self.latency.is_empty()).then_some(&self.latency)
    }

    /// Requests with a mark.
    pub fn marked(&self, mark: Marks) -> u64 {
        match mark.0.checked_ilog2() {
            Some(bit) => self.marked[bit as usize],
            None => 0,
        }
    }

    /// Different keys, or different files or devices, that were read or written.
    pub fn objects(&self) -> Amount {
        if self.kind == Kind::Keys { self.keys.count() } else { self.objects.count() }
    }

    /// Different bytes that were read or written: each key once with its largest size; addresses in blocks of
    /// [`distinct::BLOCK_BYTES`].
    pub fn footprint_bytes(&self) -> Amount {
        if self.kind == Kind::Keys { self.keys.weight() } else { self.blocks.bytes() }
    }

    /// Requests of which only the beginning is in the footprint, because they are beyond [`distinct::MAX_BYTES`] or the last
    /// address; 0: the footprint is all there is.
    pub fn footprint_from_below(&self) -> u64 {
        if self.kind == Kind::Keys { 0 } else { self.blocks.cut() }
    }

    /// Different processes, threads or clients; `None` where they were too many to count.
    pub fn streams(&self) -> Option<usize> {
        (self.streams.len() < MAX_STREAMS).then_some(self.streams.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(offset: u64, bytes: u64) -> Request {
        Request { offset, bytes, time_ns: offset * 1000, latency_ns: bytes, ..Request::default() }
    }

    #[test]
    fn known_answers_for_addresses() {
        let mut survey = Survey::new(Kind::Blocks);
        survey.add(&[read(0, 4096), read(4096, 4096), read(8192, 512), read(0, 4096)]);
        survey.add(&[Request { op: Op::Sync, ..Request::default() }]);
        let write =
            Request { op: Op::Write, marks: Marks::SYNC.with(Marks::METADATA), ..read(1 << 20, 8192) };
        survey.add(&[write]);
        assert_eq!(survey.for_op(Op::Read), Flow { requests: 4, bytes: 12800 });
        assert_eq!((survey.transfers().requests, survey.requests), (5, 6));
        assert_eq!(survey.sequential_share(), Some(0.5));
        assert_eq!(survey.footprint_bytes(), Amount { value: 5.0 * 4096.0, error: 0.0 });
        assert_eq!(survey.objects().value, 1.0);
        assert_eq!(survey.common_sizes(1), [SizeCount { bytes: 4096, requests: 3 }]);
        assert_eq!(
            (survey.size_quantile(0.5), survey.size_quantile(0.0), survey.size_quantile(1.0)),
            (4096, 512, 8192)
        );
        assert_eq!(
            (survey.marked(Marks::SYNC), survey.marked(Marks::METADATA), survey.marked(Marks::HIT)),
            (1, 1, 0)
        );
        assert_eq!(survey.span_ns(), (1 << 20) * 1000);
        assert_eq!(survey.latency().unwrap().count(), 5);
    }

    #[test]
    fn keys_count_once_with_their_largest_size() {
        let mut survey = Survey::new(Kind::Keys);
        let key = |object, bytes| Request { object, bytes, ..Request::default() };
        survey.add(&[key(1, 10), key(2, 5), key(1, 20), key(1, 3)]);
        assert_eq!((survey.objects().value, survey.footprint_bytes().value), (2.0, 25.0));
        assert_eq!(
            (survey.sequential_share(), survey.latency().is_none(), survey.rate()),
            (None, true, None)
        );
    }

    #[test]
    fn nothing_and_extremes_have_answers() {
        let mut survey = Survey::new(Kind::Files);
        assert_eq!((survey.span_ns(), survey.rate(), survey.size_quantile(0.5)), (0, None, 0));
        let extreme = Request {
            offset: u64::MAX,
            bytes: u64::MAX,
            time_ns: u64::MAX,
            object: u64::MAX,
            stream: u32::MAX,
            ..Request::default()
        };
        survey.add(&[extreme, extreme]);
        assert_eq!(survey.size_quantile(0.5), u64::MAX);
        assert!(survey.footprint_bytes().value > 0.0);
    }

    #[test]
    fn many_sizes_are_told_by_powers_of_two() {
        let mut survey = Survey::new(Kind::Keys);
        let requests: Vec<Request> =
            (0..200_000).map(|bytes| Request { bytes, ..Request::default() }).collect();
        survey.add(&requests);
        assert_eq!(survey.size_quantile(0.5), (1 << 17) - 1);
        assert_eq!((survey.size_quantile(0.0), survey.size_quantile(1.0)), (1, 199_999));
    }
}
