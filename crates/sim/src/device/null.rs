//! Takes no time, which leaves the cost of the layers above.

use super::{Command, Device, sectors_of};
use crate::ledger::Service;
use crate::machine::DeviceConfig;

/// Nothing.
#[derive(Debug)]
pub(super) struct Null {
    sectors: u64,
}

impl Null {
    pub(super) fn new(config: &DeviceConfig) -> Self {
        Null { sectors: sectors_of(config) }
    }
}

impl Device for Null {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn units(&self) -> u64 {
        1
    }

    fn serve(&mut self, _: u64, _: &Command) -> Service {
        Service::default()
    }
}
