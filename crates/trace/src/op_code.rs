//! Operation codes of other tools as [`Op`], and back.

use iowhy_core::request::Op;

/// An operation code of libCacheSim's binary formats; `None` for one that has no meaning there.
///
/// Codes: 0 nop, 1 get, 2 gets, 3 set, 4 add, 5 cas, 6 replace, 7 append, 8 prepend, 9 delete, 10 incr, 11 decr, 12 read,
/// 13 write, 14 update. Tools without operations write `nop`, so it counts as a look-up.
#[inline]
pub(crate) fn from_code(code: u8) -> Option<Op> {
    match code {
        0..=2 | 12 => Some(Op::Read),
        3..=8 | 10 | 11 | 13 | 14 => Some(Op::Write),
        9 => Some(Op::Discard),
        _ => None,
    }
}

/// The code of an operation; `None` where there is none.
pub(crate) fn to_code(op: Op, keys: bool) -> Option<u8> {
    match (op, keys) {
        (Op::Read, true) => Some(1),
        (Op::Write, true) => Some(3),
        (Op::Read, false) => Some(12),
        (Op::Write, false) => Some(13),
        (Op::Discard, _) => Some(9),
        _ => None,
    }
}

/// The last code that means something.
pub(crate) const LAST_CODE: u8 = 14;

/// An operation in words, as CSV files of many origins write it: whole words or initials, any case, or 0 and 1 for read
/// and write.
pub(crate) fn from_word(word: &[u8]) -> Option<Op> {
    let op = match word {
        b"read" | b"R" | b"r" | b"READ" | b"Read" | b"get" | b"gets" | b"GET" | b"0" => Op::Read,
        b"write" | b"W" | b"w" | b"WRITE" | b"Write" | b"set" | b"SET" | b"put" | b"PUT" | b"1" => Op::Write,
        _ => {
            let word = word.to_ascii_lowercase();
            match word.as_slice() {
                b"read" | b"r" | b"rd" | b"get" | b"gets" | b"rs" | b"head" => Op::Read,
                b"write" | b"w" | b"wr" | b"set" | b"add" | b"cas" | b"replace" | b"append" | b"prepend"
                | b"incr" | b"decr" | b"put" | b"update" | b"ws" => Op::Write,
                b"discard" | b"d" | b"trim" | b"unmap" | b"delete" => Op::Discard,
                b"sync" | b"fsync" | b"fdatasync" | b"datasync" | b"flush" => Op::Sync,
                b"open" => Op::Open,
                b"close" => Op::Close,
                b"other" | b"nop" => Op::Other,
                _ => return None,
            }
        }
    };
    Some(op)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_come_back() {
        for keys in [true, false] {
            for op in [Op::Read, Op::Write, Op::Discard] {
                assert_eq!(to_code(op, keys).and_then(from_code), Some(op));
            }
            assert_eq!(to_code(Op::Sync, keys), None);
        }
        assert_eq!(from_code(LAST_CODE + 1), None);
        for op in Op::ALL {
            assert_eq!(from_word(op.id().as_bytes()), Some(op));
        }
        assert_eq!(from_word(b"TRIM"), Some(Op::Discard));
        assert_eq!(from_word(b"frobnicate"), None);
    }
}
