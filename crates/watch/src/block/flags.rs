//! Reading the kernel's short form of a request's operation and flags.
//!
//! Source: blk_fill_rwbs() in kernel/trace/blktrace.c: `F` for a flush before, then the operation (`R`, `W`, `D`, `DE`,
//! `F`, `N`), then `F` (force unit access), `A` (read-ahead), `S` (synchronous), `M` (metadata).

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read {
        /// Because read-ahead asked.
        ahead: bool,
    },
    Write,
    /// Flush, discard and whatever moves no data of the program.
    Other,
}

/// The operation of a request with these flags.
pub(super) fn operation(flags: &str) -> Operation {
    let rest = flags.strip_prefix('F').unwrap_or(flags);
    match rest.as_bytes().first() {
        Some(b'R') => Operation::Read { ahead: rest.contains('A') },
        Some(b'W') => Operation::Write,
        _ => Operation::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_spellings() {
        for (flags, expected) in [
            ("R", Operation::Read { ahead: false }),
            ("RA", Operation::Read { ahead: true }),
            ("RAM", Operation::Read { ahead: true }),
            ("RSM", Operation::Read { ahead: false }),
            ("W", Operation::Write),
            ("WS", Operation::Write),
            ("WFS", Operation::Write),
            ("FWFS", Operation::Write),
            ("FF", Operation::Other),
            ("F", Operation::Other),
            ("D", Operation::Other),
            ("DE", Operation::Other),
            ("N", Operation::Other),
            ("", Operation::Other),
            ("ä", Operation::Other),
        ] {
            assert_eq!(operation(flags), expected, "{flags}");
        }
    }
}
