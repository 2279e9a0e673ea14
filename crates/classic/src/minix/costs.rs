//! Minix, 1989: costs of a call, of a look-up in the cache, of a request to the disk and of a byte, fitted on the three
//! lower tables (`/dev/null`, `/dev/bnull`, the raw disk); the tables above are predicted from them.
//!
//! Non-goal: the turn of the disk. What a missed sector costs beyond the fitted request shows as error, and stays there.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::rng::Rng;

use crate::published::Experiment;
use iowhy_core::stats::nnls::{self, Row};

/// Block sizes of the post.
pub(super) const BLOCKS: [u64; 5] = [512, 1024, 2048, 8192, 16_384];
/// What the post reads; everything is told for so much.
pub(super) const POSTED_BYTES: u64 = 2 << 20;

/// Columns of the fit.
const CALL: usize = 0;
const LOOKUP: usize = 1;
const REQUEST: usize = 2;
const BYTE: usize = 3;
const COLUMNS: usize = 4;

/// Resamples behind the intervals.
const RESAMPLES: usize = 1000;

/// The fitted costs, in nanoseconds, with what the rounding of the published times to whole seconds leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Of one `read` call, from `/dev/null`.
    pub call: Estimate,
    /// Of one look-up in the cache, from `/dev/bnull`.
    pub lookup: Estimate,
    /// Of one request to the disk, from the raw disk.
    pub request: Estimate,
    /// Of one byte from the disk.
    pub byte: Estimate,
    /// Unit of the file system's cache, bytes.
    chunk_bytes: f64,
    /// Bytes read in each test.
    total_bytes: f64,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/null`.
    Null,
    /// The block device of no blocks.
    Bnull,
    /// The raw disk.
    Raw,
    /// The disk through the cache, or a file: the post finds them equal.
    Cached,
    /// The same with a driver that reads this many bytes at least, and keeps the rest.
    ReadAhead(u64),
}

impl Costs {
    /// Fits the three tables. `None` when the experiment lacks one of them.
    pub fn fit(experiment: &Experiment, seed: u64) -> Option<Costs> {
        let total_bytes = experiment.fact("file-size")?;
        let chunk_bytes = experiment.fact("chunk")?;
        let mut rows = Vec::new();
        for (id, used) in
            [("null", [CALL].as_slice()), ("bnull", &[CALL, LOOKUP]), ("rhd2", &[CALL, REQUEST])]
        {
            for (block, time) in experiment.table(id)?.pairs("block", "time") {
                let mut coefficients = vec![0.0; COLUMNS];
                for &column in used {
                    coefficients[column] = total_bytes / block;
                }
                if used.contains(&REQUEST) {
                    coefficients[BYTE] = total_bytes;
                }
                // Every time is rounded to a second alike, so all rows count alike.
                rows.push(Row { coefficients, value: time, weight: 1.0 });
            }
        }
        let x = nnls::solve(COLUMNS, &rows).x;
        let mut rng = Rng::new(seed);
        let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); COLUMNS];
        let mut shaken = rows.clone();
        for _ in 0..RESAMPLES {
            for (row, original) in shaken.iter_mut().zip(&rows) {
                // What is printed as 32 s was 31.5 to 32.5 s.
                row.value = original.value + (rng.unit() - 0.5) * 1e9;
            }
            for (column, value) in nnls::solve(COLUMNS, &shaken).x.into_iter().enumerate() {
                drawn[column].push(value);
            }
        }
        let mut estimate = |column: usize, unit| {
            drawn[column].sort_unstable_by(f64::total_cmp);
            let at = |share: f64| drawn[column][(share * (RESAMPLES - 1) as f64) as usize];
            Estimate { value: x[column], low: at(0.025), high: at(0.975), unit, n: rows.len() as u64 }
        };
        Some(Costs {
            call: estimate(CALL, Unit::Nanoseconds),
            lookup: estimate(LOOKUP, Unit::Nanoseconds),
            request: estimate(REQUEST, Unit::Nanoseconds),
            byte: estimate(BYTE, Unit::NanosecondsPerByte),
            chunk_bytes,
            total_bytes,
        })
    }

    /// Time for the whole test in pieces of `block_bytes`, ns.
    ///
    /// Through the cache each call looks up every chunk that it touches, and each chunk of the file is asked of the disk
    /// once. With read-ahead in the driver the disk is asked once for each of its larger pieces; the cost of a message to the
    /// driver is not separable from the disk's part of a request, so it is left out.
    pub fn predict(&self, device: Device, block_bytes: u64) -> f64 {
        let block = block_bytes.max(1) as f64;
        let calls = self.total_bytes / block;
        let lookups = calls * (block / self.chunk_bytes).max(1.0);
        let bytes = self.total_bytes * self.byte.value;
        let through_cache = calls * self.call.value + lookups * self.lookup.value + bytes;
        match device {
            Device::Null => calls * self.call.value,
            Device::Bnull => calls * (self.call.value + self.lookup.value),
            Device::Raw => calls * (self.call.value + self.request.value) + bytes,
            Device::Cached => through_cache + self.total_bytes / self.chunk_bytes * self.request.value,
            Device::ReadAhead(least) => {
                let piece = (least as f64).max(self.chunk_bytes);
                through_cache + self.total_bytes / piece * self.request.value
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_percent;
    use crate::published::load;

    #[test]
    fn the_fit_gives_back_its_own_tables_and_the_128_calls_a_second_of_the_post() {
        let minix = load("minix-1989").unwrap();
        let costs = Costs::fit(&minix, 1).unwrap();
        let calls_per_second = 1e9 / costs.call.value;
        assert!((calls_per_second - minix.fact("calls").unwrap()).abs() < 5.0, "{calls_per_second}");
        for (id, device) in [("null", Device::Null), ("bnull", Device::Bnull), ("rhd2", Device::Raw)] {
            for (block, time) in minix.table(id).unwrap().pairs("block", "time") {
                let predicted = costs.predict(device, block as u64);
                assert!((predicted - time).abs() < 2.1e9, "{id} {block}: {predicted} {time}");
            }
        }
        for e in [&costs.call, &costs.lookup, &costs.request, &costs.byte] {
            assert!(e.low <= e.value && e.value <= e.high && e.low > 0.0, "{e:?}");
        }
    }

    #[test]
    fn the_tables_above_are_predicted_within_what_the_fit_can_know() {
        let minix = load("minix-1989").unwrap();
        let costs = Costs::fit(&minix, 1).unwrap();
        for (id, device, worst) in [
            ("file", Device::Cached, 30.0),
            ("hd2", Device::Cached, 30.0),
            ("readahead", Device::ReadAhead(4096), 45.0),
        ] {
            let mut all_low = true;
            for (block, time) in minix.table(id).unwrap().pairs("block", "time") {
                let error = error_percent(costs.predict(device, block as u64), time).unwrap();
                assert!(error.abs() < worst, "{id} {block}: {error}");
                all_low &= error < 8.0;
            }
            // Turns of the disk that were missed are not in the fit: it may come out fast, hardly slow.
            assert!(all_low, "{id}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_intervals() {
        let minix = load("minix-1989").unwrap();
        assert_eq!(Costs::fit(&minix, 7), Costs::fit(&minix, 7));
    }
}
