//! One request of a trace file, of the simulator and of the curves. Plain data, independent of formats.
//!

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// Operation of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Bytes are read, or an object is looked up.
    #[default]
    Read,
    /// Bytes are written, or an object is stored.
    Write,
    /// Bytes are given up (trim, unmap), or an object is deleted.
    Discard,
    /// Makes earlier writes durable: fsync, cache flush. Its range may be empty: the whole object.
    Sync,
    /// An object is opened; moves no bytes.
    Open,
    /// An object is closed; moves no bytes.
    Close,
    /// Anything else that moves no bytes: stat, a control command.
    Other,
}

impl Op {
    /// Every kind.
    pub const ALL: [Op; 7] = [Op::Read, Op::Write, Op::Discard, Op::Sync, Op::Open, Op::Close, Op::Other];

    /// The stable identifier, as in CSV and JSON.
    pub fn id(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "discard",
            Op::Sync => "sync",
            Op::Open => "open",
            Op::Close => "close",
            Op::Other => "other",
        }
    }

    /// The kind with this identifier.
    pub fn from_id(id: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.id() == id)
    }
}

/// Further attributes of a request, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Marks(pub u8);

impl Marks {
    /// Issued by read-ahead, not by the program.
    pub const READ_AHEAD: Marks = Marks(1);
    /// Metadata of a file system.
    pub const METADATA: Marks = Marks(2);
    /// Somebody waits for it (O_SYNC, REQ_SYNC).
    pub const SYNC: Marks = Marks(4);
    /// Goes to the medium itself (forced unit access).
    pub const FUA: Marks = Marks(8);
    /// The traced cache had it.
    pub const HIT: Marks = Marks(16);
    /// The traced cache did not have it.
    pub const MISS: Marks = Marks(32);
    /// It failed.
    pub const FAILED: Marks = Marks(64);

    /// Whether all of these are set.
    pub fn has(self, marks: Marks) -> bool {
        self.0 & marks.0 == marks.0
    }

    /// These and those.
    #[must_use]
    pub fn with(self, marks: Marks) -> Marks {
        Marks(self.0 | marks.0)
    }
}

/// [`Request::next_use`] of a request whose bytes are not used again.
pub const NEVER: u64 = u64::MAX;

/// One request. A trace of addresses (a disk, a file) has one object per device or file and offsets in it; a trace of
/// keys has one object per key, offset 0, and the size of the value in `bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Issue time, in nanoseconds since the origin that its trace has (its first request, or an epoch).
    pub time_ns: u64,
    /// File, device or key. Names are beside the requests, in the trace's own table of names.
    pub object: u64,
    /// Where in the object, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Time until it was answered, in nanoseconds; 0 where the trace does not say.
    pub latency_ns: u64,
    /// Index of the next request for the same object as the trace itself says, counted in requests from 0; [`NEVER`] for
    /// none, 0 where the trace does not say (nothing is used next at the first request).
    pub next_use: u64,
    /// Process, thread, client or tenant; 0: unknown.
    pub stream: u32,
    /// The operation.
    pub op: Op,
    /// Further attributes.
    pub marks: Marks,
}

impl Request {
    /// One number for what an object cache keeps: the object, and where in it. Traces of keys give the key itself, so that
    /// objects are counted as other simulators count them.
    pub fn key(&self) -> u64 {
        // A bijection of the offset, so that two offsets of one object never collide.
        self.object ^ self.offset.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The blocks of `block_bytes` that it touches: the first, and one behind the last. An empty request touches none.
    pub fn blocks(&self, block_bytes: u64) -> std::ops::Range<u64> {
        let block = block_bytes.max(1);
        if self.bytes == 0 {
            return self.offset / block..self.offset / block;
        }
        let last = self.offset.saturating_add(self.bytes - 1) / block;
        self.offset / block..last.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_identifiers() {
        for op in Op::ALL {
            assert_eq!(Op::from_id(op.id()), Some(op));
        }
        assert_eq!(Op::from_id("READ"), None);
    }

    #[test]
    fn a_request_is_split_at_the_edges_of_blocks() {
        let of = |offset, bytes| Request { offset, bytes, ..Request::default() }.blocks(4096);
        assert_eq!(of(0, 4096), 0..1);
        assert_eq!(of(4095, 2), 0..2);
        assert_eq!(of(8192, 0), 2..2);
        assert_eq!(of(512, 65536), 0..17);
        assert!(of(u64::MAX, u64::MAX).end <= u64::MAX / 4096 + 1);
    }

    #[test]
    fn keys_are_those_of_the_trace_and_offsets_do_not_collide() {
        let key = |object, offset| Request { object, offset, ..Request::default() }.key();
        assert_eq!(key(42, 0), 42);
        assert!((1..1000).all(|i| key(42, i * 512) != 42 && key(42, i * 512) != key(42, (i - 1) * 512)));
    }

    #[test]
    fn marks_add_up() {
        let both = Marks::READ_AHEAD.with(Marks::METADATA);
        assert!(both.has(Marks::READ_AHEAD) && both.has(both) && !both.has(Marks::SYNC));
        assert!(!Marks::READ_AHEAD.has(both));
    }
}
