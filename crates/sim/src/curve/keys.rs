//! Keys of a cache: a block of an object, or a whole object, as one number. A request becomes the keys that it touches.
//!
//! Invariant: two blocks never share a key. Dense numbers are in [`super::ids`].

use std::collections::HashMap;

use iowhy_core::request::{Op, Request};

/// Unit of caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Blocks of this size; a request is split.
    Blocks(u64),
    /// Each object is one, whatever its size.
    Objects,
}

/// A request that touches more blocks is left out: it comes from a corrupt file.
pub const MAX_BLOCKS_OF_REQUEST: u64 = 1 << 20;

/// Requests not counted, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Requests that move no bytes (open, sync, discard and others).
    pub no_access: u64,
    /// Reads and writes of zero bytes.
    pub empty: u64,
    /// Requests of more than [`MAX_BLOCKS_OF_REQUEST`] blocks.
    pub too_large: u64,
    /// Requests of the other direction (with reads or writes only).
    pub other_kind: u64,
}

/// Which requests count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Reads and writes: a write leaves its block in the cache.
    #[default]
    ReadsAndWrites,
    /// Reads only.
    Reads,
    /// Writes only.
    Writes,
}

/// Bits of a key that number the block in its object; those above number the object.
const BLOCK_BITS: u32 = 40;
/// The upper bit marks keys from the table of rare ones.
const RARE: u64 = 1 << 63;
const MAX_PLAIN_OBJECTS: u64 = 1 << (63 - BLOCK_BITS);

/// Turns requests into keys.
#[derive(Debug)]
pub struct Keys {
    unit: Unit,
    counted: Counted,
    /// Numbers of objects, in order of arrival.
    objects: HashMap<u64, u64>,
    last: Option<(u64, u64)>,
    /// Keys of blocks that do not fit the plain form: beyond a petabyte, or of the 8 millionth object and more.
    rare: HashMap<(u64, u64), u64>,
    left_out: LeftOut,
    requests: u64,
}

impl Keys {
    /// For caches of this unit.
    pub fn new(unit: Unit, counted: Counted) -> Self {
        Keys {
            unit,
            counted,
            objects: HashMap::new(),
            last: None,
            rare: HashMap::new(),
            left_out: LeftOut::default(),
            requests: 0,
        }
    }

    /// Appends the keys that a request touches, in order; with `bytes`, as many entries of the size of each (the whole
    /// request for an object, the block for a block).
    #[inline]
    pub fn push(&mut self, request: &Request, keys: &mut Vec<u64>, bytes: Option<&mut Vec<u64>>) {
        let read = match request.op {
            Op::Read => true,
            Op::Write => false,
            _ => {
                self.left_out.no_access += 1;
                return;
            }
        };
        let wanted = match self.counted {
            Counted::ReadsAndWrites => true,
            Counted::Reads => read,
            Counted::Writes => !read,
        };
        if !wanted {
            self.left_out.other_kind += 1;
            return;
        }
        match self.unit {
            Unit::Objects => {
                self.requests += 1;
                keys.push(request.key());
                if let Some(bytes) = bytes {
                    bytes.push(request.bytes);
                }
            }
            Unit::Blocks(block_bytes) => {
                let blocks = request.blocks(block_bytes);
                let count = blocks.end.saturating_sub(blocks.start);
                if count == 0 {
                    self.left_out.empty += 1;
                    return;
                }
                if count > MAX_BLOCKS_OF_REQUEST {
                    self.left_out.too_large += 1;
                    return;
                }
                self.requests += 1;
                self.push_blocks(request.object, blocks, keys);
                if let Some(bytes) = bytes {
                    bytes.extend(std::iter::repeat_n(block_bytes, count as usize));
                }
            }
        }
    }

    #[inline]
    fn push_blocks(&mut self, object: u64, blocks: std::ops::Range<u64>, keys: &mut Vec<u64>) {
        let number = match self.last {
            Some((last, number)) if last == object => number,
            _ => {
                let next = self.objects.len() as u64;
                let number = *self.objects.entry(object).or_insert(next);
                self.last = Some((object, number));
                number
            }
        };
        if number < MAX_PLAIN_OBJECTS && blocks.end <= 1 << BLOCK_BITS {
            keys.extend(blocks.map(|block| number << BLOCK_BITS | block));
            return;
        }
        for block in blocks {
            let next = RARE | self.rare.len() as u64;
            keys.push(*self.rare.entry((object, block)).or_insert(next));
        }
    }

    /// Requests not counted so far.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Requests that counted so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(unit: Unit, requests: &[Request]) -> (Vec<u64>, LeftOut) {
        let mut keys = Keys::new(unit, Counted::default());
        let mut out = Vec::new();
        for request in requests {
            keys.push(request, &mut out, None);
        }
        (out, keys.left_out())
    }

    fn read(object: u64, offset: u64, bytes: u64) -> Request {
        Request { object, offset, bytes, ..Request::default() }
    }

    #[test]
    fn a_request_is_split_and_blocks_of_two_objects_differ() {
        let (keys, _) =
            keys_of(Unit::Blocks(4096), &[read(9, 4096, 8192), read(5, 4096, 1), read(9, 8191, 1)]);
        assert_eq!(keys.len(), 4);
        assert_eq!(keys[0], keys[3]);
        assert!(keys[2] != keys[0] && keys[2] != keys[1]);
    }

    #[test]
    fn far_blocks_have_keys_of_their_own() {
        let (keys, _) =
            keys_of(Unit::Blocks(1), &[read(1, 1 << 45, 2), read(1, (1 << 45) + 1, 1), read(2, 1 << 45, 1)]);
        assert_eq!(keys.len(), 4);
        assert_eq!(keys[1], keys[2]);
        assert!(keys[0] != keys[1] && keys[3] != keys[0]);
    }

    #[test]
    fn what_cannot_be_counted_is_said() {
        let sync = Request { op: Op::Sync, ..Request::default() };
        let (keys, left) =
            keys_of(Unit::Blocks(512), &[sync, read(0, 0, 0), read(0, 0, u64::MAX), read(0, 0, 1)]);
        assert_eq!(keys.len(), 1);
        assert_eq!(left, LeftOut { no_access: 1, empty: 1, too_large: 1, other_kind: 0 });
        let (keys, left) = keys_of(Unit::Objects, &[read(7, 0, 0), read(8, 0, u64::MAX)]);
        assert_eq!((keys, left), (vec![7, 8], LeftOut::default()));
    }
}
