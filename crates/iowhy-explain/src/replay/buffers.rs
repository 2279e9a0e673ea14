//! Where in a page the memory of reads and writes begins.
//!
//! Copying between the page cache and a program depends on it: an AMD EPYC (Zen) copies 64 KiB to 64 MiB at 5 to 13 GB/s into
//! memory that begins where its page does or 32 bytes behind, at 3 to 6 GB/s into memory 16 bytes behind, and at 1.4 to
//! 2.2 GB/s 8 bytes behind: its string instructions wait where a store may be the load that comes next, going by the
//! lowest 12 bits (page aliasing; glibc bug 30994). `malloc` of the GNU C library puts every large buffer 16 bytes
//! behind. A replay from another place is another run. What may not enter: the calls.

use iowhy_core::replay::{Do, Plan, Role};

/// `malloc` of the GNU C library asks the kernel for memory of this many bytes and more (M_MMAP_THRESHOLD, mallopt(3)),
const MAPPED_BYTES: u64 = 128 << 10;
/// and puts two words of its own before it.
const BEHIND_MALLOC: u16 = 16;
/// Smaller memory lies anywhere on the heap, most often where nothing is in the way.
const ON_THE_HEAP: u16 = 48;

/// Where a buffer of so many bytes that a program takes from its library begins.
pub(super) fn usual(bytes: u64) -> u16 {
    if bytes >= MAPPED_BYTES { BEHIND_MALLOC } else { ON_THE_HEAP }
}

/// Buffers of a plan whose requests were made larger, or whose memory is kept: new ones from the library, but where the
/// program puts them at the beginning of a page it goes on to.
pub(super) fn taken_anew(plan: &mut Plan) {
    for at in 0..plan.files.len() {
        let moved = plan.actions().filter(|a| a.file as usize == at && moves(a.what));
        let Some(most) = moved.map(|a| a.bytes).max() else { continue };
        let file = &mut plan.files[at];
        if file.buffer_offset != 0 && !file.direct {
            file.buffer_offset = usual(most);
        }
    }
}

/// The same plan with all buffers where their page begins; `None` where they are.
pub(super) fn aligned(plan: &Plan) -> Option<Plan> {
    let mut changed = plan.clone();
    for file in changed.files.iter_mut().filter(|f| f.role != Role::Sink) {
        file.buffer_offset = 0;
    }
    (plan.any(|a| moves(a.what)) && changed != *plan).then_some(changed)
}

fn moves(what: Do) -> bool {
    matches!(what, Do::Read { .. } | Do::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_maps_large_buffers_and_puts_two_words_before_them() {
        assert_eq!((usual(65_536), usual(131_072), usual(1 << 26)), (48, 16, 16));
    }
}
