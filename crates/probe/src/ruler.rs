//! Measures iowhy itself first: cost and step of the clock, and copy speed of this CPU. The campaign measures the
//! overhead per request with the `null` method and stores it beside these.

use std::sync::OnceLock;

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::problem::Problem;
use iowhy_core::stats;

use crate::buffer::Buffer;
use crate::clock::Clock;

/// Clock and copy speed.
#[derive(Clone, Debug)]
pub struct Ruler {
    /// `tsc`, `clock_gettime` or `virtual`.
    pub clock_source: &'static str,
    /// The smallest step that two readings in a row showed.
    pub clock_step_ns: u64,
    /// Cost of one reading.
    pub clock_read: Estimate,
    /// Cost of moving one byte from memory outside the CPU's caches to a hot 64 KiB buffer, in user mode: the lower
    /// bound of
    /// kernel's copy can at best be.
    pub copy: Option<Estimate>,
}

const ROUNDS: usize = 9;

/// Measures the ruler; takes about 60 ms, most of it the copy.
///
/// # Errors
/// Only when memory for the copy cannot be had.
pub fn measure(seed: u64) -> Result<Ruler, Problem> {
    let clock = Clock::real();
    let reads: Vec<f64> = (0..ROUNDS).map(|_| clock_cost(&clock)).collect();
    let clock_read = stats::bootstrap_median(&reads, seed, Unit::Nanoseconds)
        .ok_or_else(|| Problem::failed("the clock could not be measured"))?;
    let mut source = Buffer::new(COPY_SOURCE_BYTES)?;
    // Filled, because pages never written may all be one and the same.
    source.fill(seed);
    let mut sink = Buffer::new(COPY_SINK_BYTES)?;
    let copies: Vec<f64> = (0..ROUNDS).map(|_| copy_cost(&clock, &source, &mut sink)).collect();
    Ok(Ruler {
        clock_source: clock.source(),
        clock_step_ns: clock_step(&clock),
        clock_read,
        copy: stats::bootstrap_median(&copies, seed, Unit::NanosecondsPerByte),
    })
}

/// Larger than the second-level cache of current CPUs, so that the source comes from where file pages come from.
const COPY_SOURCE_BYTES: usize = 8 << 20;
const COPY_SINK_BYTES: usize = 64 << 10;

/// Cost of one reading of the real clock, in nanoseconds. Measured once per process, about 4 ms.
pub fn clock_read_ns() -> f64 {
    static COST: OnceLock<f64> = OnceLock::new();
    *COST.get_or_init(|| {
        let clock = Clock::real();
        let reads: Vec<f64> = (0..ROUNDS).map(|_| clock_cost(&clock)).collect();
        stats::median(&reads).unwrap_or(0.0)
    })
}

/// The least time in which this CPU loads one byte of each cache line of a page of 4 KiB, in nanoseconds, where it goes over
/// a buffer of that size again and again. Takes some milliseconds.
///
/// # Errors
/// Only when memory for the buffer cannot be had.
pub fn page_load_ns(buffer_bytes: u64) -> Result<f64, Problem> {
    const PAGE: usize = 4096;
    const LINE: usize = 64;
    /// Far more than reading the clock takes.
    const PAGES: usize = 2048;
    let bytes = usize::try_from(buffer_bytes).unwrap_or(usize::MAX).clamp(PAGE, COPY_SOURCE_BYTES);
    let mut buffer = Buffer::new(bytes)?;
    buffer.fill(1);
    let clock = Clock::real();
    let passes = PAGES.div_ceil(bytes / PAGE);
    let round = || {
        let start = clock.now_ns();
        for _ in 0..passes {
            let lines = std::hint::black_box(buffer.as_slice()).iter().step_by(LINE);
            std::hint::black_box(lines.fold(0u64, |sum, byte| sum.wrapping_add(u64::from(*byte))));
        }
        (clock.now_ns() - start) as f64 / (passes * (bytes / PAGE)) as f64
    };
    Ok((0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min))
}

fn clock_cost(clock: &Clock) -> f64 {
    const READS: u64 = 20_000;
    let start = clock.now_ns();
    for _ in 0..READS {
        std::hint::black_box(clock.now_ns());
    }
    (clock.now_ns() - start) as f64 / READS as f64
}

fn clock_step(clock: &Clock) -> u64 {
    let mut least = u64::MAX;
    let mut last = clock.now_ns();
    for _ in 0..20_000 {
        let now = clock.now_ns();
        if now > last {
            least = least.min(now - last);
        }
        last = now;
    }
    least
}

fn copy_cost(clock: &Clock, source: &Buffer, sink: &mut Buffer) -> f64 {
    let start = clock.now_ns();
    for piece in source.as_slice().chunks_exact(COPY_SINK_BYTES) {
        sink.as_mut_slice().copy_from_slice(piece);
        std::hint::black_box(sink.as_slice());
    }
    (clock.now_ns() - start) as f64 / COPY_SOURCE_BYTES as f64
}
