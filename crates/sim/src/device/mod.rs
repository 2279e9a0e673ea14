//! Devices, one kind per file, all behind [`Device`]. Queues and the bus are outside.

mod cloud;
mod null;
pub mod rotating;
mod ssd;
mod two_ways;

use iowhy_core::problem::Problem;

use crate::ledger::Service;
use crate::machine::{DeviceConfig, DeviceKind};

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Sectors, 1 or more.
    pub sectors: u64,
    /// Whether it writes.
    pub write: bool,
}

/// A device in virtual time. Commands are handed to it in the order in which it begins them.
pub trait Device: std::fmt::Debug + Send {
    /// Its size, in sectors of 512 bytes.
    fn sectors(&self) -> u64;

    /// How many commands it works on at once.
    fn units(&self) -> u64;

    /// Begins a command now; returns its time until the medium is done.
    fn serve(&mut self, now_ns: u64, command: &Command) -> Service;

    /// Time until the medium could begin to move bytes, for a device that chooses among its commands.
    fn positioning_ns(&self, _now_ns: u64, _command: &Command) -> u64 {
        0
    }
}

/// Builds one device of this configuration; `seed` seeds its random parts.
///
/// # Errors
/// Names the key that makes the device impossible.
pub fn new(config: &DeviceConfig, seed: u64) -> Result<Box<dyn Device>, Problem> {
    let Some(write) = &config.write else { return one_way(config, seed) };
    // Another sequence of chances than that of the reads.
    let (reads, writes) = (one_way(config, seed)?, one_way(write, !seed)?);
    Ok(Box::new(two_ways::TwoWays::new(reads, writes)))
}

/// A device that serves both directions alike.
fn one_way(config: &DeviceConfig, seed: u64) -> Result<Box<dyn Device>, Problem> {
    Ok(match config.kind {
        DeviceKind::Missing => {
            return Err(
                Problem::refused("the machine has no device").hint("give `device.model` or `device.kind`")
            );
        }
        DeviceKind::Null => Box::new(null::Null::new(config)),
        DeviceKind::Rotating => Box::new(rotating::Rotating::new(&config.rotating)?),
        DeviceKind::Ssd => Box::new(ssd::Ssd::new(config, seed)?),
        DeviceKind::Cloud => Box::new(cloud::Cloud::new(config)?),
    })
}

/// Sectors of a device whose size is a setting.
fn sectors_of(config: &DeviceConfig) -> u64 {
    const WHEN_UNSAID: u64 = 1 << 40;
    let bytes = if config.bytes == 0 { WHEN_UNSAID } else { config.bytes };
    bytes / crate::volume::SECTOR_BYTES
}

/// Nanoseconds for bytes at a speed; 0 for a speed of 0, which stands for "no time".
pub(crate) fn moving_ns(bytes: u64, bytes_per_second: u64) -> u64 {
    if bytes_per_second == 0 {
        return 0;
    }
    // Nearly always small enough for the cheap division.
    if let Some(product) = bytes.checked_mul(1_000_000_000) {
        return product / bytes_per_second;
    }
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second);
    u64::try_from(ns).unwrap_or(u64::MAX)
}
