//! Flash: latency of n bytes is t0 + n / speed of a unit, with parallel units and limits on requests and bytes per second.
//!
//! Not modelled, and reported where it matters: garbage collection, wear, a full write buffer.

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;

use super::{Command, Device, moving_ns, sectors_of};
use crate::ledger::Service;
use crate::machine::{DeviceConfig, Spread, SsdConfig};
use crate::volume::SECTOR_BYTES;

/// Units behind one link.
#[derive(Debug)]
pub(super) struct Ssd {
    config: SsdConfig,
    sectors: u64,
    rng: Rng,
    /// Nanoseconds between two requests at the limit; 0: no limit.
    gap_ns: u64,
    /// When the next request may begin.
    next_ns: u64,
    /// When the link is free.
    link_ns: u64,
    /// Ends of the requests that are in service, where requests in flight share something.
    ends_ns: Vec<u64>,
}

impl Ssd {
    pub(super) fn new(config: &DeviceConfig, seed: u64) -> Result<Self, Problem> {
        if config.ssd.units == 0 {
            return Err(Problem::refused("`device.units` is 0: no unit would ever serve a request")
                .hint("give 1 or more"));
        }
        let gap_ns = if config.ssd.iops > 0.0 { (1e9 / config.ssd.iops) as u64 } else { 0 };
        Ok(Ssd {
            sectors: sectors_of(config),
            config: config.ssd.clone(),
            rng: Rng::new(seed),
            gap_ns,
            next_ns: 0,
            link_ns: 0,
            ends_ns: Vec::new(),
        })
    }
}

impl Device for Ssd {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn units(&self) -> u64 {
        self.config.units
    }

    fn serve(&mut self, now_ns: u64, command: &Command) -> Service {
        let bytes = command.sectors.saturating_mul(SECTOR_BYTES);
        let begin = now_ns.max(self.next_ns);
        if self.config.batch_ns > 0 {
            self.ends_ns.retain(|end| *end > now_ns);
        }
        let shared_ns = self.config.batch_ns / (self.ends_ns.len() as u64 + 1);
        self.next_ns = begin.saturating_add(self.gap_ns).saturating_add(shared_ns);
        let mean = if command.write { self.config.write_ns } else { self.config.read_ns };
        let media_ns = match self.config.spread {
            Spread::Fixed => mean,
            // `unit` is below 1, so the logarithm is finite.
            Spread::Exponential => (-(1.0 - self.rng.unit()).ln() * mean as f64) as u64,
        };
        let alone = moving_ns(bytes, self.config.unit_bytes_per_second);
        let mut transfer_ns = alone;
        if self.config.bytes_per_second > 0 {
            // The link is reserved in the order of commands; what it keeps a command waiting is part of its transfer.
            let link = self.link_ns.max(begin).saturating_add(moving_ns(bytes, self.config.bytes_per_second));
            self.link_ns = link;
            let done = begin.saturating_add(media_ns).saturating_add(alone).max(link);
            transfer_ns = done - begin.saturating_add(media_ns).min(done);
        }
        if self.config.batch_ns > 0 {
            self.ends_ns.push(begin.saturating_add(media_ns).saturating_add(transfer_ns));
        }
        Service { throttle_ns: begin - now_ns, media_ns, transfer_ns, ..Service::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{DeviceKind, Machine};

    fn ssd(change: impl FnOnce(&mut SsdConfig)) -> Ssd {
        let mut config = Machine::default().device;
        config.kind = DeviceKind::Ssd;
        config.ssd.read_ns = 80_000;
        change(&mut config.ssd);
        Ssd::new(&config, 1).unwrap()
    }

    const READ: Command = Command { sector: 0, sectors: 8, write: false };

    #[test]
    fn the_service_curve() {
        let mut device = ssd(|s| s.unit_bytes_per_second = 1_000_000_000);
        let service = device.serve(5, &READ);
        assert_eq!((service.media_ns, service.transfer_ns, service.throttle_ns), (80_000, 4096, 0));
    }

    #[test]
    fn limits_hold_over_many_requests() {
        let mut device = ssd(|s| s.iops = 1000.0);
        let starts: Vec<u64> = (0..5).map(|_| device.serve(0, &READ).throttle_ns).collect();
        assert_eq!(starts, [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000]);
        let mut device = ssd(|s| s.bytes_per_second = 4_096_000);
        let ends: Vec<u64> = (0..3).map(|_| device.serve(0, &READ).total_ns()).collect();
        assert_eq!(ends, [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn exponential_times_have_their_mean() {
        let mut device = ssd(|s| s.spread = Spread::Exponential);
        let n = 100_000;
        let mean = (0..n).map(|_| device.serve(0, &READ).media_ns).sum::<u64>() as f64 / f64::from(n);
        // The mean of n draws is off by more than 5 standard deviations (1 / sqrt(n) each) once in millions.
        assert!((mean / 80_000.0 - 1.0).abs() < 5.0 / f64::from(n).sqrt(), "{mean}");
    }
}
