//! READ BUFFER, 1999: two numbers explain a whole table. Time of a command = overhead + bytes / rate; the last copy adds
//! bytes / copy rate. The same fit serves the requests of this machine.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats;

use iowhy_core::stats::nnls::{self, Row};

/// Overhead of a command and rate of its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Time of a command of no bytes.
    pub command: Estimate,
    /// Time of a byte.
    pub byte: Estimate,
    /// Root of the mean squared relative residual.
    pub residual: f64,
}

impl Transfer {
    /// Fits pairs of command size (bytes) and time of a command (ns) by their relative errors. The intervals are the 95 %
    /// percentile intervals of resampled rows. `None` with fewer than three sizes, or without any time.
    pub fn fit(points: &[(f64, f64)], seed: u64) -> Option<Transfer> {
        let usable: Vec<(f64, f64)> = points.iter().copied().filter(|(b, t)| *b > 0.0 && *t > 0.0).collect();
        if usable.len() < 3 {
            return None;
        }
        let rows: Vec<Row> = usable
            .iter()
            .map(|&(bytes, time)| Row { coefficients: vec![1.0, bytes], value: time, weight: 1.0 / time })
            .collect();
        let solution = nnls::solve(2, &rows);
        let of = |column: usize, unit| {
            let drawn = stats::resample(rows.len(), seed, |picked| {
                // A draw of one size only has no slope.
                if picked.iter().all(|&i| usable[i].0 == usable[picked[0]].0) {
                    return f64::NAN;
                }
                let drawn: Vec<Row> = picked.iter().map(|&i| rows[i].clone()).collect();
                nnls::solve(2, &drawn).x[column]
            });
            let at = |share: f64| drawn.get((share * drawn.len().saturating_sub(1) as f64) as usize).copied();
            let value = solution.x[column];
            Estimate {
                value,
                low: at(0.025).unwrap_or(value).min(value),
                high: at(0.975).unwrap_or(value).max(value),
                unit,
                n: rows.len() as u64,
            }
        };
        Some(Transfer {
            command: of(0, Unit::Nanoseconds),
            byte: of(1, Unit::NanosecondsPerByte),
            residual: solution.residual,
        })
    }

    /// Time of a command of this size, ns.
    pub fn predict(&self, bytes: f64) -> f64 {
        self.command.value + bytes * self.byte.value
    }

    /// Bytes a second without the overhead; `None` when a byte costs nothing that could be told.
    pub fn rate(&self) -> Option<Estimate> {
        (self.byte.value > 0.0 && self.byte.low > 0.0)
            .then(|| self.byte.reciprocal(1e9, Unit::BytesPerSecond))
    }
}

/// Bytes a second of the last copy, from times to user space and times to the kernel only, for the same bytes: the median
/// of the differences with its interval. `None` when the copy cannot be separated from zero.
pub fn copy_rate(total_bytes: f64, to_user: &[f64], to_kernel: &[f64], seed: u64) -> Option<Estimate> {
    let differences: Vec<f64> = to_user.iter().zip(to_kernel).map(|(user, kernel)| user - kernel).collect();
    let time = stats::bootstrap_median(&differences, seed, Unit::Nanoseconds)?;
    (time.low > 0.0).then(|| time.reciprocal(total_bytes * 1e9, Unit::BytesPerSecond))
}

/// Whether a rate needs direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// One CPU cannot even make the copies.
    Yes,
    /// It can, but the copies take a share of a CPU that is worth having.
    Costly,
    /// The copies are a trifle.
    No,
}

/// Share of a CPU below which copies are a trifle.
const TRIFLE: f64 = 0.10;

/// Share of one CPU that the copies take at `rate`, and what follows from it.
pub fn need(rate: f64, copy_rate: f64) -> Option<(f64, Need)> {
    let share = rate / copy_rate;
    if !share.is_finite() || share < 0.0 {
        return None;
    }
    Some((
        share,
        if share >= 1.0 {
            Need::Yes
        } else if share > TRIFLE {
            Need::Costly
        } else {
            Need::No
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::load;

    const MIB: f64 = 1_048_576.0;

    #[test]
    fn the_figures_of_the_post_come_out_of_its_table() {
        let sg = load("linux-sg-1999").unwrap();
        let table = sg.table("read-buffer").unwrap();
        let total = sg.fact("total").unwrap();
        let per_command = |column: &str| -> Vec<(f64, f64)> {
            table.pairs("buffer", column).iter().map(|(bytes, time)| (*bytes, time * bytes / total)).collect()
        };
        let fit = Transfer::fit(&per_command("to-kernel"), 1).unwrap();
        let (command, bus) = (&fit.command, fit.rate().unwrap());
        // "about 1.2 milliseconds (seems a bit low to me)", from the last row alone.
        assert!((command.value / sg.fact("command-overhead").unwrap() - 1.0).abs() < 0.10, "{command:?}");
        let published = sg.fact("bus-rate").unwrap();
        assert!((bus.value / published - 1.0).abs() < 0.10, "{} MiB/s", bus.value / MIB);
        assert!(command.low <= command.value && command.value <= command.high);
        assert!(fit.residual < 0.03, "two numbers explain eight rows: {}", fit.residual);
        let times =
            |column: &str| -> Vec<f64> { table.pairs("buffer", column).iter().map(|p| p.1).collect() };
        let copy = copy_rate(total, &times("to-user"), &times("to-kernel"), 1).unwrap();
        assert!(
            (copy.value / sg.fact("copy-rate").unwrap() - 1.0).abs() < 0.05,
            "{} MiB/s",
            copy.value / MIB
        );
        assert!(copy.low <= 80.0 * MIB && 80.0 * MIB <= copy.high);
        // The post's own way: the overhead taken off the first row.
        let own = total / ((7.34e9 - 420.0 * 1.2e6) / 1e9);
        assert!((own / published - 1.0).abs() < 0.02, "{}", own / MIB);
        assert_eq!(
            need(100.0 * MIB, copy.value).unwrap().1,
            Need::Yes,
            "the assertion that the post supports"
        );
    }

    #[test]
    fn an_exact_line_is_found_exactly() {
        let points: Vec<(f64, f64)> =
            [4096.0, 65_536.0, 1e6].iter().map(|b| (*b, 5000.0 + b * 0.25)).collect();
        let fit = Transfer::fit(&points, 1).unwrap();
        assert!((fit.command.value - 5000.0).abs() < 1e-6 && (fit.byte.value - 0.25).abs() < 1e-9);
        assert!(fit.residual < 1e-9 && (fit.predict(8192.0) - 7048.0).abs() < 1e-6);
        assert_eq!(Transfer::fit(&points[..2], 1), None);
        assert_eq!(Transfer::fit(&[(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0)], 1), None);
    }

    #[test]
    fn a_copy_that_cannot_be_told_is_no_rate_and_needs_follow_the_share() {
        assert_eq!(copy_rate(MIB, &[1.0, 2.0, 1.0], &[1.0, 1.0, 2.0], 1), None);
        assert_eq!(need(100.0, 80.0).unwrap().1, Need::Yes);
        assert_eq!(need(100.0, 800.0).unwrap().1, Need::Costly);
        assert_eq!(need(100.0, 8000.0).unwrap().1, Need::No);
        assert_eq!(need(100.0, 0.0), None);
    }
}
