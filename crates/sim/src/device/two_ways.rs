//! A device that serves reads by one curve and writes by another, as disks with a write buffer and throttled volumes do.
//!
//! Each direction keeps its own limits (the throttle of a control group has a bucket for each). What is left out: that an arm
//! which has written must go back, and that both directions of a drive share its link.

use super::{Command, Device};
use crate::ledger::Service;

/// Two devices of the same bytes.
#[derive(Debug)]
pub(super) struct TwoWays {
    reads: Box<dyn Device>,
    writes: Box<dyn Device>,
}

impl TwoWays {
    pub(super) fn new(reads: Box<dyn Device>, writes: Box<dyn Device>) -> Self {
        TwoWays { reads, writes }
    }
}

impl Device for TwoWays {
    fn sectors(&self) -> u64 {
        self.reads.sectors().min(self.writes.sectors())
    }

    fn units(&self) -> u64 {
        self.reads.units().max(self.writes.units())
    }

    fn serve(&mut self, now_ns: u64, command: &Command) -> Service {
        match command.write {
            true => self.writes.serve(now_ns, command),
            false => self.reads.serve(now_ns, command),
        }
    }

    fn positioning_ns(&self, now_ns: u64, command: &Command) -> u64 {
        match command.write {
            true => self.writes.positioning_ns(now_ns, command),
            false => self.reads.positioning_ns(now_ns, command),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::device;
    use crate::machine::{DeviceKind, Machine};

    use super::*;

    #[test]
    fn each_direction_has_its_own_time_and_its_own_limit() {
        let mut config = Machine::default().device;
        config.kind = DeviceKind::Ssd;
        config.ssd.read_ns = 10_000;
        let mut write = config.clone();
        write.ssd.write_ns = 70_000;
        write.ssd.iops = 100.0;
        config.write = Some(Box::new(write));
        let mut device = device::new(&config, 1).unwrap();
        let mut total = |write| device.serve(0, &Command { sector: 0, sectors: 8, write }).total_ns();
        assert_eq!(
            [total(false), total(true), total(true), total(false)],
            [10_000, 70_000, 10_070_000, 10_000]
        );
    }
}
