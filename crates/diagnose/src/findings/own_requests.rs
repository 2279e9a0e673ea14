//! Requests at devices: the program's own where they stand for what it asks, else those that the device counts for everybody.

use iowhy_core::estimate::Estimate;
use iowhy_core::profile::{BlockSample, DeviceUse, FileUse, SampledShare};

use super::Facts;
use super::facts::{Side, share_of};

/// From this part on, those that were seen stand for the others.
const MOSTLY_SEEN: f64 = 0.5;
/// A mean number of requests in flight that counts as one at a time.
pub(super) const ABOUT_ONE: f64 = 1.6;

impl Facts<'_> {
    /// The program's own requests at disks, where they stand for what it asks of them. `None` where a worker of the kernel sends them for it
    /// (loop devices, volumes that encrypt): what the program then sends itself, a page of its code maybe, says nothing about the others.
    fn own_requests(&self) -> Option<&BlockSample> {
        let block = self.profile.block.as_ref()?;
        let counted = self.profile.io.device_read_bytes.unwrap_or(0) as f64;
        let read = block.own_read_bytes as f64 >= MOSTLY_SEEN * counted;
        // Bytes written are counted when pages become dirty, long before the kernel's threads write them.
        let writes = block.own_written_bytes > block.own_read_bytes;
        (read || writes).then_some(block)
    }

    /// The part of the places in the queues of the program's devices that other programs took, by requests: all of it where the
    /// program itself sends one request at a time, which fills no queue. 0 where requests were not seen.
    pub(super) fn others_part_of_queue(&self) -> f64 {
        let Some(block) = &self.profile.block else { return 0.0 };
        let others: u64 = block.others.iter().filter(|other| !other.watch).map(|other| other.requests).sum();
        // What a worker sends for the program is among the kernel's.
        let own = match self.own_requests() {
            Some(own) if others > 0 && own.in_flight.is_some_and(|n| n <= ABOUT_ONE) => return 1.0,
            Some(own) => own.own_requests,
            None => block.own_requests.saturating_add(block.kernel_requests),
        };
        others as f64 / own.saturating_add(others).max(1) as f64
    }

    /// Of the devices that hold files of the program, the one that was busy longest; of all, where none of its files names one. A
    /// device that only others use may be busier, and is nothing that the program waits for.
    pub(super) fn device(&self) -> Option<&DeviceUse> {
        let of_a_file = |d: &&DeviceUse| {
            let names =
                |f: &FileUse| f.device.as_ref() == Some(&d.name) || f.volume.as_ref() == Some(&d.name);
            self.profile.files.iter().any(names)
        };
        let devices = &self.profile.devices;
        let own = devices.iter().filter(of_a_file).max_by_key(|d| d.busy_ns);
        own.or_else(|| devices.iter().max_by_key(|d| d.busy_ns))
    }

    /// Part of the wall time in which that device had a request in flight.
    pub(super) fn device_busy_share(&self) -> Option<f64> {
        let device = self.device()?;
        (self.account.wall_ns > 0.0).then(|| (device.busy_ns as f64 / self.account.wall_ns).min(1.0))
    }

    /// Mean number of requests in flight while there was at least one: as traced, else by Little's law from the
    /// device's own counters.
    pub(super) fn in_flight(&self) -> Option<f64> {
        if let Some(traced) = self.own_requests().and_then(|b| b.in_flight) {
            return Some(traced);
        }
        let d = self.device().filter(|d| d.busy_ns > 0)?;
        Some((d.read_ns + d.write_ns + d.flush_ns) as f64 / d.busy_ns as f64)
    }

    /// The same for reads alone, or writes alone, so that write-back in the background does not look like reading with
    /// a deep queue. A lower bound where it comes from the device's counters: its busy time is that of both.
    pub(super) fn in_flight_of(&self, side: Side) -> Option<f64> {
        if let Some(traced) = self.own_requests().and_then(|b| b.in_flight) {
            return Some(traced);
        }
        let d = self.device().filter(|d| d.busy_ns > 0)?;
        let ns = match side {
            Side::Read => d.read_ns,
            Side::Write => d.write_ns,
        };
        Some((ns as f64 / d.busy_ns as f64).max(1.0))
    }

    /// Mean bytes of a read request at the device: of the program's own requests where they were traced.
    pub fn device_read_bytes_mean(&self) -> Option<f64> {
        let own = self.own_requests().filter(|b| b.own_reads > 0);
        let all = self.device().filter(|d| d.reads > 0);
        own.map(|b| b.own_read_bytes as f64 / b.own_reads as f64)
            .or_else(|| all.map(|d| d.read_bytes as f64 / d.reads as f64))
    }

    /// Part of the program's read requests that began where the one before ended.
    pub fn adjacent_reads(&self) -> Option<Estimate> {
        let block = self.own_requests()?;
        share_of(SampledShare { hits: block.own_reads_adjacent, n: block.own_reads })
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::DeviceUse;

    use crate::findings::synthetic::Run;

    #[test]
    fn requests_in_flight_by_littles_law() {
        let mut run = Run::new(1.0);
        run.profile.devices = vec![DeviceUse {
            busy_ns: 500_000_000,
            read_ns: 2_000_000_000,
            reads: 10,
            ..DeviceUse::default()
        }];
        assert_eq!(run.facts(|f| (f.in_flight(), f.device_busy_share())), (Some(4.0), Some(0.5)));
    }
}
