//! Read-ahead is allowed: without the hint against it, through the page cache, from front to end.

use crate::repair::Sizes;
pub(super) use crate::repair::read_ahead::repaired;

/// Of reads from the end to the front; others have no sizes.
pub(super) const CHOICES: &[(&str, Sizes)] = &[
    ("from start to end", Sizes::USUAL),
    ("in pieces of 1 MiB from the end", Sizes { request_bytes: 1 << 20, ..Sizes::USUAL }),
    ("in pieces of 8 MiB from the end", Sizes { request_bytes: 8 << 20, ..Sizes::USUAL }),
];
