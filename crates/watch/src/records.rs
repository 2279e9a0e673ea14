//! Records as the kernel lays them out: where they come from, and the texts in them.

use std::os::fd::BorrowedFd;

use crate::event::Event;

/// Where records come from: a ring of perf, another buffer of records of the same layout, or a false one in tests.
pub(crate) trait Source {
    /// Appends whole records in the layout of perf.
    fn take(&mut self, out: &mut Vec<u64>);

    /// A descriptor that is readable when it is half full, where there is one.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A source of records about requests and switches, laid out as perf lays out a sample.
pub(crate) struct Feed {
    /// Where the records come from.
    pub(crate) source: Box<dyn Source>,
    /// Reads a record of this time and hands on what it tells. False: it is not of this source.
    pub(crate) read: ReadRecord,
}

/// See [`Feed::read`].
pub(crate) type ReadRecord = for<'a> fn(&'a [u64], u64, &mut dyn FnMut(&Event<'a>)) -> bool;

impl std::fmt::Debug for Feed {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Feed")
    }
}

/// The same memory as bytes.
pub(crate) fn bytes(words: &[u64]) -> &[u8] {
    // SAFETY: every byte of a u64 is an initialised u8, a u8 needs no alignment, and the length is that of the words.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) }
}

/// Text up to the first NUL or the first byte that is not UTF-8.
pub(crate) fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
