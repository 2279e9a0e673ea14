//! What system calls do, and where this architecture keeps their arguments, in the words of the object.
//! The layout is that of `struct shape` and `struct machine` in `bpf/observer.bpf.c`.

use crate::calls::{Direction, End, PathAt, Place, Shape};

/// System call numbers that are told apart; the last one stands for all others and for those of 32-bit programs.
pub(super) const NUMBERS: u32 = 512;

/// No argument says how many bytes were asked for.
pub(super) const NO_ARGUMENT: u16 = 0xffff;

/// Offset in `struct pt_regs` of each argument: `arch/x86/include/asm/ptrace.h`.
#[cfg(target_arch = "x86_64")]
pub(super) const ARGUMENTS: [u16; 6] = [112, 104, 96, 56, 72, 64];
/// O_DIRECT, the bit of `thread_info.flags` that marks 32-bit programs (TIF_ADDR32), where `struct pt_regs` holds the number of
/// the call (`orig_ax`) and the first of the nine words (from `r10` on) that are read at once, the number of rt_sigreturn(2).
#[cfg(target_arch = "x86_64")]
const MACHINE: [u32; 5] = [libc::O_DIRECT as u32, 29, 120, 56, libc::SYS_rt_sigreturn as u32];

/// Offset in `struct pt_regs` of each argument: `arch/arm64/include/asm/ptrace.h`; the first one is kept in `orig_x0`.
#[cfg(target_arch = "aarch64")]
pub(super) const ARGUMENTS: [u16; 6] = [272, 8, 16, 24, 32, 40];
/// As above: TIF_32BIT, `syscallno` in the low half of the word behind `orig_x0`, words from `x1` on.
#[cfg(target_arch = "aarch64")]
const MACHINE: [u32; 5] = [libc::O_DIRECT as u32, 22, 280, 8, libc::SYS_rt_sigreturn as u32];

/// Words of `struct machine`.
pub(super) const MACHINE_WORDS: usize = 12;

/// `struct machine`, with so many calls to be recorded.
pub(super) fn machine_words(recording: u32) -> [u32; MACHINE_WORDS] {
    let [a, b, c, d, e] = MACHINE;
    let [f, g, h, i, j, k] = ARGUMENTS.map(u32::from);
    [a, b, c, d, e, recording, f, g, h, i, j, k]
}

const MOVE: u16 = 1;
const RELAY: u16 = 2;
const SEEK: u16 = 3;
const SYNC: u16 = 4;
const OPEN: u16 = 5;
const MAP: u16 = 6;
const CONTROL: u16 = 7;
const ADVISE: u16 = 8;
const LOOK_UP: u16 = 9;

/// A call as `struct shape`: two ends of three words, the argument with the bytes asked for, protection and flags of a mapping,
/// the kind.
pub(super) fn shape_words(shape: Shape) -> [u16; 10] {
    let nowhere = End { descriptor: 0, place: Place::Position };
    let build = |kind, ends: [(End, Direction); 2], asked: Option<usize>| {
        let [[a, b, c], [d, e, f]] = ends.map(|(end, direction)| end_words(end, direction));
        let asked = asked.map_or(NO_ARGUMENT, |index| ARGUMENTS[index]);
        [a, b, c, d, e, f, asked, ARGUMENTS[2], ARGUMENTS[3], kind]
    };
    let simple = |kind, descriptor| {
        let end = End { descriptor, place: Place::Position };
        build(kind, [(end, Direction::Read), (nowhere, Direction::Read)], None)
    };
    match shape {
        Shape::Move { direction, place, asked } => {
            let end = End { descriptor: 0, place };
            build(MOVE, [(end, direction), (nowhere, direction)], asked)
        }
        Shape::Relay { source, target, asked } => {
            build(RELAY, [(source, Direction::Read), (target, Direction::Write)], Some(asked))
        }
        Shape::Seek => simple(SEEK, 0),
        Shape::Sync => simple(SYNC, 0),
        // The observer counts both as opens: a socket is opened in no other way.
        Shape::Open { path: None } | Shape::Accept => with_path(OPEN, None),
        Shape::Open { path } => with_path(OPEN, path),
        Shape::LookUp { path } => with_path(LOOK_UP, Some(path)),
        Shape::Map => simple(MAP, 4),
        Shape::Control => simple(CONTROL, 0),
        Shape::Advise | Shape::Allocate => simple(ADVISE, 0),
        _ => [0; 10],
    }
}

/// The first end of a call with a path: where its directory and its path are.
fn with_path(kind: u16, path: Option<PathAt>) -> [u16; 10] {
    let at = |argument: Option<usize>| argument.map_or(NO_ARGUMENT, |index| ARGUMENTS[index]);
    let (directory, path) = (at(path.and_then(|p| p.directory)), at(path.map(|p| p.path)));
    [directory, path, 0, 0, 0, 0, NO_ARGUMENT, 0, 0, kind]
}

fn end_words(end: End, direction: Direction) -> [u16; 3] {
    let (place, offset) = match end.place {
        Place::Position => (0, 0),
        Place::Argument(index) => (1, index),
        Place::ArgumentOrPosition(index) => (2, index),
        Place::Pointer(index) => (3, index),
    };
    let low_byte_first = u16::from_ne_bytes([place, direction as u8]);
    [ARGUMENTS[end.descriptor], ARGUMENTS[offset], low_byte_first]
}
