//! The reader of a format: requests in batches, with what was lost and the names of objects.

use iowhy_core::request::Request;

use crate::columns::ColumnSpec;
use crate::error::{Position, TraceError};
use crate::format::{Format, Kind};
use crate::losses::Losses;
use crate::names::Names;

/// Which step of a request through the block layer is taken as the request (blktrace and blkparse).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockAction {
    /// Q: as it was queued by the file system or the program, before merging. No latency.
    #[default]
    Queue,
    /// D: as it was issued to the device, after merging; the latency is the time to its completion (C).
    Issue,
}

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The format; found out where it is not given.
    pub format: Option<Format>,
    /// The columns of a CSV file.
    pub columns: Option<ColumnSpec>,
    /// Which step is the request (blktrace and blkparse); the default where it is not given. Refused for other formats.
    pub action: Option<BlockAction>,
}

/// Streams requests.
pub trait Reader: Send {
    /// Appends at most `most` requests and says how many; 0 is the end.
    ///
    /// # Errors
    /// The trace cannot be read any further. Requests appended before are valid.
    fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError>;

    /// The names of objects, as far as they have come up.
    fn names(&self) -> &Names;

    /// Losses so far.
    fn losses(&self) -> &Losses;

    /// Address space, where the file itself says so.
    fn kind(&self) -> Option<Kind> {
        None
    }

    /// Whether the kind says if requests were recorded above or below a page cache.
    fn level_known(&self) -> bool {
        true
    }

    /// Whether requests have times.
    fn has_times(&self) -> bool {
        true
    }

    /// Whether requests have sizes.
    fn has_sizes(&self) -> bool {
        true
    }
}

impl<R: Reader + ?Sized> Reader for Box<R> {
    fn fill(&mut self, into: &mut Vec<Request>, most: usize) -> Result<usize, TraceError> {
        (**self).fill(into, most)
    }

    fn names(&self) -> &Names {
        (**self).names()
    }

    fn losses(&self) -> &Losses {
        (**self).losses()
    }

    fn kind(&self) -> Option<Kind> {
        (**self).kind()
    }

    fn level_known(&self) -> bool {
        (**self).level_known()
    }

    fn has_times(&self) -> bool {
        (**self).has_times()
    }

    fn has_sizes(&self) -> bool {
        (**self).has_sizes()
    }
}

/// Results of reading one line or record.
pub(crate) struct Sink<'a> {
    pub(crate) into: &'a mut Vec<Request>,
    pub(crate) losses: &'a mut Losses,
    pub(crate) names: &'a mut Names,
    pub(crate) place: Position,
}

impl Sink<'_> {
    /// Hands on a request.
    #[inline]
    pub(crate) fn push(&mut self, request: Request) {
        self.into.push(request);
    }

    /// Counts a loss at this position.
    #[cold]
    pub(crate) fn lose(&mut self, reason: &'static str) {
        self.losses.add(reason, Some(self.place));
    }
}
