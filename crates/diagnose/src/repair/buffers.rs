//! Where in a page the memory of reads and writes begins.
//!
//! Copying between the page cache and a program depends on it. Reads of a cached file on an idle AMD EPYC (Linux 6.18), medians
//! of 9 rounds with the least and the greatest, by where the memory begins behind its page:
//!
//! | request | 0 bytes | 8 | 16 | 32 |
//! |---|---|---|---|---|
//! | 64 KiB | 12.1 [11.4, 12.2] GB/s | 3.1 [3.0, 3.1] | 8.3 [7.4, 8.5] | 11.9 [11.2, 12.1] |
//! | 1 MiB | 17.7 [17.4, 19.4] GB/s | 3.2 [3.1, 3.3] | 8.4 [7.1, 8.6] | 18.7 [17.9, 19.2] |
//! | 16 MiB | 15.2 [13.4, 15.9] GB/s | 3.2 [3.1, 3.2] | 5.8 [5.2, 6.2] | 14.7 [13.2, 16.6] |
//!
//! Its string instructions wait where a store may be the load that comes next, going by the lowest 12 bits (page aliasing;
//! glibc bug 30994). `malloc` of the GNU C library puts every large buffer 16 bytes behind. A replay from another place is
//! another run. What may not enter: the calls.

use iowhy_core::replay::{Op, Plan, Role};

/// `malloc` of the GNU C library asks the kernel for memory of this many bytes and more (M_MMAP_THRESHOLD, mallopt(3)),
const MAPPED_BYTES: u64 = 128 << 10;
/// and puts two words of its own before it.
const BEHIND_MALLOC: u16 = 16;
/// Smaller memory lies anywhere on the heap, most often where nothing is in the way.
const ON_THE_HEAP: u16 = 48;

/// Where a buffer of so many bytes that a program takes from its library begins.
pub fn usual(bytes: u64) -> u16 {
    if bytes >= MAPPED_BYTES { BEHIND_MALLOC } else { ON_THE_HEAP }
}

/// Buffers of a plan whose requests were made larger, or whose memory is kept: new ones from the library, but where the
/// program puts them at the beginning of a page it goes on to.
pub(crate) fn taken_anew(plan: &mut Plan) {
    for at in 0..plan.files.len() {
        let moved = plan.actions().filter(|a| a.file as usize == at && moves(a.op));
        let Some(most) = moved.map(|a| a.bytes).max() else { continue };
        let file = &mut plan.files[at];
        if file.buffer_offset != 0 && !file.direct {
            file.buffer_offset = usual(most);
        }
    }
}

/// The same plan with all buffers where their page begins; `None` where they are.
pub(crate) fn aligned(plan: &Plan) -> Option<Plan> {
    let mut changed = plan.clone();
    for file in changed.files.iter_mut().filter(|f| f.role != Role::Sink) {
        file.buffer_offset = 0;
    }
    (plan.any(|a| moves(a.op)) && changed != *plan).then_some(changed)
}

fn moves(what: Op) -> bool {
    matches!(what, Op::Read { .. } | Op::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_maps_large_buffers_and_puts_two_words_before_them() {
        assert_eq!((usual(65_536), usual(131_072), usual(1 << 26)), (48, 16, 16));
    }
}
