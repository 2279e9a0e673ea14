//! The program's own code around its calls, which may go with calls that are removed.
//!
//! Of the samples, those in the C library's function of a call, on the way in or out, go with the call. Of the rest nobody sees how much
//! works on the bytes, which stay, and how much makes the calls: between nothing and all of it goes.

use iowhy_core::profile::{Profile, SampledShare, StackTime, State};

use super::Facts;
use super::facts::{SYNC_CALLS, Side};
use crate::account::Entry;
use crate::classify::Operation;

/// Other calls that C libraries have a function for and that go with reads, writes, files and mappings.
const OTHER_CALLS: [&str; 18] = [
    "lseek",
    "syscall",
    "preadv64",
    "pwritev64",
    "open",
    "openat",
    "close",
    "stat",
    "fstat",
    "fstatat",
    "lstat",
    "statx",
    "access",
    "faccessat",
    "readlink",
    "getdents",
    "mmap",
    "munmap",
];

/// CPU time in the program's own code.
pub fn own_ns(facts: &Facts<'_>) -> f64 {
    facts.account.sum(|e| e.busy && e.class.operation == Operation::User).time_ns
}

/// Wall time of the program's own code, in nanoseconds, that goes if all of its calls go.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnCode {
    /// What was sampled in functions of calls, by the lower end of its 95 % interval.
    pub least_ns: f64,
    /// The same by the samples.
    pub seen_ns: f64,
    /// All of it.
    pub most_ns: f64,
}

impl OwnCode {
    /// That of a run.
    pub fn new(facts: &Facts<'_>) -> OwnCode {
        let seen = in_call_functions(facts.profile);
        let (low, value) = (seen.interval().map_or(0.0, |(low, _)| low), seen.value().unwrap_or(0.0));
        let all = facts.removable(|e| f64::from(is_own(e)));
        OwnCode { least_ns: low * all.certain_ns, seen_ns: value * all.booked_ns, most_ns: all.most_ns }
    }
}

/// The part of an entry that goes with the calls, by the samples in their functions: of the program's own code and of interrupts meanwhile.
pub(super) fn within_calls(facts: &Facts<'_>) -> impl Fn(&Entry) -> f64 {
    let seen = in_call_functions(facts.profile).value().unwrap_or(0.0);
    move |e| if is_own(e) { seen } else { 0.0 }
}

/// The program's own code, and interrupts meanwhile.
pub(super) fn is_own(e: &Entry) -> bool {
    e.busy && matches!(e.class.operation, Operation::User | Operation::Interrupt)
}

/// Samples of the program's own code in a function that makes a call of reading, writing or syncing.
fn in_call_functions(profile: &Profile) -> SampledShare {
    of_own_samples(profile, 1, makes_a_call)
}

/// Samples of the program's own code in a function that decompresses, or below one. What they do depends on the bytes alone: the
/// same bytes are the same work again.
pub(super) fn decompression(profile: &Profile) -> SampledShare {
    of_own_samples(profile, usize::MAX, decompresses)
}

/// Samples of the program's own code with such a function among their innermost ones.
fn of_own_samples(profile: &Profile, innermost: usize, is_such: impl Fn(&str) -> bool) -> SampledShare {
    let such: Vec<bool> = profile.symbols.iter().map(|symbol| is_such(&symbol.name)).collect();
    let own = |s: &&StackTime| s.known && s.state == State::Running && s.kernel.is_empty();
    let mut share = SampledShare::default();
    for stack in profile.stacks.iter().filter(own) {
        share.n = share.n.saturating_add(stack.events);
        let mut functions = stack.user.iter().take(innermost);
        if functions.any(|id| such.get(*id as usize).is_some_and(|such| *such)) {
            share.hits = share.hits.saturating_add(stack.events);
        }
    }
    share
}

/// How the names of functions begin that decompress, in zlib and zlib-ng, ISA-L, libdeflate, bzip2, zstd, LZ4, Brotli and Snappy.
const DECOMPRESSORS: [&str; 17] = [
    "inflate",
    "zng_inflate",
    "isal_inflate",
    "libdeflate_deflate_decompress",
    "libdeflate_zlib_decompress",
    "libdeflate_gzip_decompress",
    "deflate_decompress",
    "BZ2_bzDecompress",
    "BZ2_decompress",
    "ZSTD_decompress",
    "ZSTD_DCtx",
    "HUF_decompress",
    "LZ4_decompress",
    "LZ4F_decompress",
    "BrotliDecoder",
    "snappy_uncompress",
    "snappy::RawUncompress",
];

/// What the names of such functions have in them, in the libraries of Go and Rust.
const DECOMPRESSORS_OF_PACKAGES: [&str; 7] = [
    "compress/flate.(*decompressor)",
    "compress/bzip2.(*reader)",
    "/zstd.(*blockDec)",
    "/zstd.(*Decoder)",
    "miniz_oxide::inflate",
    "zlib_rs::inflate",
    "ruzstd::decoding",
];

fn decompresses(function: &str) -> bool {
    DECOMPRESSORS.iter().any(|begin| function.starts_with(begin))
        || DECOMPRESSORS_OF_PACKAGES.iter().any(|part| function.contains(part))
}

/// Whether a function of a C library is that of a call: `read`, `__libc_pread64`, `__GI___write_nocancel`.
fn makes_a_call(function: &str) -> bool {
    let name = function.trim_start_matches("__GI_").trim_start_matches('_').trim_start_matches("libc_");
    let name = name.trim_end_matches("_nocancel");
    let is = |call: &str| name == call || call.strip_suffix("64") == Some(name);
    let families = Side::BOTH.iter().flat_map(|side| side.call_names());
    families.chain(&SYNC_CALLS).chain(&OTHER_CALLS).any(|call| is(call))
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;

    use super::*;
    use crate::findings::synthetic::Run;

    #[test]
    fn functions_of_calls_are_known_by_their_names_in_c_libraries() {
        for name in [
            "read",
            "__read",
            "__GI___libc_write",
            "__libc_pread64",
            "pread",
            "__write_nocancel",
            "fsync",
            "lseek",
        ] {
            assert!(makes_a_call(name), "{name}");
        }
        for name in ["main", "reader", "fread", "_IO_file_read", "memcpy", "thread_read"] {
            assert!(!makes_a_call(name), "{name}");
        }
    }

    #[test]
    fn functions_that_decompress_are_known_by_their_names() {
        for name in [
            "inflate",
            "inflate_fast",
            "BZ2_bzDecompress",
            "ZSTD_decompressStream",
            "LZ4_decompress_safe",
            "compress/flate.(*decompressor).huffSym",
            "github.com/klauspost/compress/zstd.(*Decoder).nextBlock",
            "miniz_oxide::inflate::core::decompress",
        ] {
            assert!(decompresses(name), "{name}");
        }
        for name in [
            "deflate",
            "compress/flate.(*compressor).deflate",
            "decompress_and_index",
            "jpeg_start_decompress",
            "parse<zlib_decompressor>",
            "LayoutInflater.inflate",
            "read",
        ] {
            assert!(!decompresses(name), "{name}");
        }
    }

    #[test]
    fn what_was_seen_in_the_function_of_a_call_goes_with_it() {
        let run = Run::new(10.0).busy(Operation::User, Layer::Program, 0.4).stack(
            &["main"],
            State::Running,
            0.3,
            300,
        );
        let run = run.stack(&["__read"], State::Running, 0.1, 100).with(|p| {
            // The builder makes kernel stacks.
            p.stacks.iter_mut().for_each(|s| s.user = std::mem::take(&mut s.kernel));
        });
        let own = run.facts(OwnCode::new);
        assert!(
            own.least_ns > 0.5e9 && (own.seen_ns / 1e9 - 1.0).abs() < 0.01 && own.most_ns >= 4e9,
            "{own:?}"
        );
    }
}
