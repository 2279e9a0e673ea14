//! Read-ahead is allowed: without the hint against it, through the page cache, from front to end.

pub(super) use crate::repair::read_ahead::repaired;
