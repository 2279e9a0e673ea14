//! What things cost, by loops that have nothing in common with iowhy: its figures are compared with them. Access times are
//! left alone and calls are bare, as iowhy's are: both would cost a tenth of the smallest ones.

use std::fs::File;
use std::io;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};

use crate::sys;
use crate::sys::number;

/// Batches; the median of their means is the answer.
const BATCHES: usize = 5;

/// Measures; the kinds are `pread PATH BLOCK N`, `direct PATH BLOCK N`, `end PATH BLOCK N` for reads at the end of the
/// file, which find nothing, and `getfd PATH N` for the call on a descriptor that does least.
///
/// # Errors
/// In words.
pub(crate) fn measure(label: &str, kind: &str, words: &[&str]) -> Result<Value, String> {
    let mut times = match (kind, words) {
        ("pread", [path, block, n]) => {
            reads(path, number(block)? as usize, number(n)?, OFlags::empty(), false)
        }
        ("getfd", [path, n]) => getfd(path, number(n)?),
        ("end", [path, block, n]) => reads(path, number(block)? as usize, number(n)?, OFlags::empty(), true),
        ("direct", [path, block, n]) => {
            reads(path, number(block)? as usize, number(n)?, OFlags::DIRECT, false)
        }
        _ => return Err("no such measurement".to_owned()),
    }
    .map_err(|e| format!("{kind} {}: {e}", words.join(" ")))?;
    let (ns, low_ns, high_ns) = middle(&mut times);
    Ok(json!({"label": label, "ns": ns, "low_ns": low_ns, "high_ns": high_ns}))
}

/// What an empty system call takes, ns.
///
/// # Errors
/// None in practice.
pub(crate) fn call(n: u64) -> io::Result<f64> {
    let mut times = batches(n, |_| {
        // SAFETY: takes nothing and changes nothing.
        unsafe { libc::syscall(libc::SYS_getppid) };
        Ok(())
    })?;
    Ok(middle(&mut times).0)
}

/// Median, least and greatest of the batches.
fn middle(times: &mut [f64]) -> (f64, f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0], times[times.len() - 1])
}

/// Mean time of one of `n` repetitions, for each batch.
fn batches(n: u64, mut one: impl FnMut(u64) -> io::Result<()>) -> io::Result<Vec<f64>> {
    let n = n.max(1);
    let mut means = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let begun = Instant::now();
        for index in 0..n {
            one(index)?;
        }
        means.push(begun.elapsed().as_nanos() as f64 / n as f64);
    }
    Ok(means)
}

/// Asks for the flags of a descriptor.
fn getfd(path: &str, n: u64) -> io::Result<Vec<f64>> {
    let file = File::open(path)?;
    batches(n, |_| sys::descriptor_flags(&file))
}

/// Reads one block after the other, round and round; or always at the end of the file.
fn reads(path: &str, block: usize, n: u64, flags: OFlags, at_the_end: bool) -> io::Result<Vec<f64>> {
    const ALIGNMENT: usize = 4096;
    let file: File = rustix::fs::open(path, OFlags::RDONLY | OFlags::NOATIME | flags, Mode::empty())?.into();
    let mut memory = vec![1u8; block + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    let size = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?;
    let blocks = (size / block.max(1) as u64).max(1);
    let buffer = &mut memory[start..start + block];
    batches(n, |index| {
        let at = if at_the_end { size } else { (index % blocks) * block as u64 };
        sys::pread(&file, buffer, at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_has_a_median_between_its_ends() {
        assert!(call(100).unwrap() > 0.0);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [1; 8192]).unwrap();
        let truth = measure("p", "pread", &[&file.path().to_string_lossy(), "4096", "10"]).unwrap();
        let of = |key: &str| truth[key].as_f64().unwrap();
        assert!(of("low_ns") > 0.0 && of("low_ns") <= of("ns") && of("ns") <= of("high_ns"), "{truth}");
        assert!(measure("g", "getfd", &[&file.path().to_string_lossy(), "10"]).is_ok());
        assert!(measure("p", "pread", &["/no/such/file", "4096", "10"]).is_err());
        assert!(measure("p", "sing", &[]).is_err());
    }
}
