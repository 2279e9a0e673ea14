//! A volume with limits: a bucket of requests and a bucket of bytes, each filled at its rate, and a base time.

use iowhy_core::problem::Problem;

use super::{Command, Device, sectors_of};
use crate::ledger::Service;
use crate::machine::{CloudConfig, DeviceConfig};
use crate::volume::SECTOR_BYTES;

/// A token bucket. A request that takes more tokens than there are waits for the rest.
#[derive(Debug)]
struct Bucket {
    per_ns: f64,
    most: f64,
    tokens: f64,
    at_ns: u64,
}

impl Bucket {
    fn new(per_second: f64, burst: f64) -> Self {
        Bucket { per_ns: per_second / 1e9, most: burst, tokens: burst, at_ns: 0 }
    }

    /// Takes tokens; how long the taker waits for them.
    fn take(&mut self, now_ns: u64, tokens: f64) -> u64 {
        if self.per_ns <= 0.0 {
            return 0;
        }
        let passed = now_ns.saturating_sub(self.at_ns) as f64;
        self.at_ns = self.at_ns.max(now_ns);
        self.tokens = (self.tokens + passed * self.per_ns).min(self.most);
        // A bucket without depth lets one go as soon as the one before is paid for.
        let wait = if self.tokens < 0.0 || self.tokens < tokens.min(self.most) {
            (tokens.min(self.most) - self.tokens) / self.per_ns
        } else {
            0.0
        };
        self.tokens -= tokens;
        wait.ceil() as u64
    }
}

/// Two buckets and a base time.
#[derive(Debug)]
pub(super) struct Cloud {
    config: CloudConfig,
    sectors: u64,
    requests: Bucket,
    bytes: Bucket,
}

impl Cloud {
    pub(super) fn new(config: &DeviceConfig) -> Result<Self, Problem> {
        let cloud = config.cloud.clone();
        if cloud.units == 0 {
            return Err(Problem::refused("`device.units` is 0: no request would ever be served")
                .hint("give 1 or more"));
        }
        Ok(Cloud {
            sectors: sectors_of(config),
            requests: Bucket::new(cloud.iops, cloud.iops_burst),
            bytes: Bucket::new(cloud.bytes_per_second, cloud.bytes_burst),
            config: cloud,
        })
    }
}

impl Device for Cloud {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn units(&self) -> u64 {
        self.config.units
    }

    fn serve(&mut self, now_ns: u64, command: &Command) -> Service {
        let bytes = command.sectors.saturating_mul(SECTOR_BYTES);
        let counted = match self.config.request_bytes {
            0 => 1,
            each => bytes.div_ceil(each).max(1),
        };
        let for_requests = self.requests.take(now_ns, counted as f64);
        let for_bytes = self.bytes.take(now_ns, bytes as f64);
        Service {
            throttle_ns: for_requests.max(for_bytes),
            media_ns: self.config.base_ns,
            ..Service::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{DeviceKind, Machine};

    fn cloud(change: impl FnOnce(&mut CloudConfig)) -> Cloud {
        let mut config = Machine::default().device;
        config.kind = DeviceKind::Cloud;
        change(&mut config.cloud);
        Cloud::new(&config).unwrap()
    }

    fn read(sectors: u64) -> Command {
        Command { sector: 0, sectors, write: false }
    }

    #[test]
    fn a_burst_goes_through_and_then_the_rate_holds() {
        let mut volume = cloud(|c| {
            c.iops = 1000.0;
            c.iops_burst = 3.0;
        });
        let waits: Vec<u64> = (0..6).map(|_| volume.serve(0, &read(8)).throttle_ns / 1_000_000).collect();
        assert_eq!(waits, [0, 0, 0, 1, 2, 3]);
        assert_eq!(volume.serve(1_000_000_000, &read(8)).throttle_ns, 0, "the bucket fills again");
    }

    #[test]
    fn without_a_burst_the_rate_holds_from_the_second_on() {
        let mut volume = cloud(|c| c.iops = 1000.0);
        let waits: Vec<u64> = (0..3).map(|_| volume.serve(0, &read(8)).throttle_ns / 1_000_000).collect();
        assert_eq!(waits, [0, 1, 2]);
    }

    #[test]
    fn bytes_are_limited_too_and_large_requests_count_more_than_once() {
        let mut volume = cloud(|c| c.bytes_per_second = 512_000.0);
        let waits: Vec<u64> = (0..3).map(|_| volume.serve(0, &read(1)).throttle_ns / 1_000_000).collect();
        assert_eq!(waits, [0, 1, 2]);
        let mut volume = cloud(|c| {
            c.iops = 1000.0;
            c.request_bytes = 512;
        });
        volume.serve(0, &read(4));
        assert_eq!(volume.serve(0, &read(1)).throttle_ns, 4_000_000);
    }
}
