//! Requests at devices: the program's own where they stand for what it asks, else those that the device counts for everybody.

use iowhy_core::estimate::Estimate;
use iowhy_core::profile::{BlockSample, DeviceUse, FileUse, SampledShare};

use super::Facts;
use super::facts::{Side, share_of};

/// From this part of the bytes on, requests that were seen stand for the others. Chosen.
const MOSTLY_SEEN: f64 = 0.5;
/// Requests of others, over those of a device, up to which its counters are told as the program's. Chosen.
const FEW: f64 = 0.2;
/// A mean number of requests in flight that counts as one at a time.
pub(super) const ABOUT_ONE: f64 = 1.6;

impl Facts<'_> {
    /// The program's own requests at disks, where its reads stand for what it reads. `None` where a worker of the kernel sends them for it
    /// (loop devices, RAID 5 and 6): what the program then sends itself, a page of its code maybe, says nothing about the others.
    pub(super) fn own_reads(&self) -> Option<&BlockSample> {
        let counted = self.profile.io.device_read_bytes.unwrap_or(0) as f64;
        self.profile.block.as_ref().filter(|block| block.own_read_bytes as f64 >= MOSTLY_SEEN * counted)
    }

    /// The same of one that mostly writes as well: bytes written are counted when pages become dirty, long before the kernel's threads write
    /// them, so that nothing is known to compare with.
    fn own_requests(&self) -> Option<&BlockSample> {
        let writes = |block: &&BlockSample| block.own_written_bytes > block.own_read_bytes;
        self.own_reads().or_else(|| self.profile.block.as_ref().filter(writes))
    }

    /// The device that holds the program's files, unless others made many requests meanwhile, to whichever device: its counters are those of
    /// everybody.
    fn device_of_the_program(&self) -> Option<&DeviceUse> {
        let others = self.profile.block.iter().flat_map(|block| &block.others).filter(|other| !other.watch);
        let others: u64 = others.map(|other| other.requests).fold(0, u64::saturating_add);
        self.device().filter(|d| others as f64 <= FEW * d.reads.saturating_add(d.writes) as f64)
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
        let d = self.device_of_the_program().filter(|d| d.busy_ns > 0)?;
        Some((d.read_ns + d.write_ns + d.flush_ns) as f64 / d.busy_ns as f64)
    }

    /// The same for reads alone, or writes alone, so that write-back in the background does not look like reading with
    /// a deep queue. A lower bound where it comes from the device's counters: its busy time is that of both.
    pub(super) fn in_flight_of(&self, side: Side) -> Option<f64> {
        let traced = match side {
            Side::Read => self.own_reads(),
            Side::Write => self.own_requests(),
        };
        if let Some(traced) = traced.and_then(|b| b.in_flight) {
            return Some(traced);
        }
        let d = self.device_of_the_program().filter(|d| d.busy_ns > 0)?;
        let ns = match side {
            Side::Read => d.read_ns,
            Side::Write => d.write_ns,
        };
        Some((ns as f64 / d.busy_ns as f64).max(1.0))
    }

    /// Mean bytes of a read request at the device: of the program's own requests where they were traced.
    pub fn device_read_bytes_mean(&self) -> Option<f64> {
        let own = self.own_reads().filter(|b| b.own_reads > 0);
        let all = self.device_of_the_program().filter(|d| d.reads > 0);
        own.map(|b| b.own_read_bytes as f64 / b.own_reads as f64)
            .or_else(|| all.map(|d| d.read_bytes as f64 / d.reads as f64))
    }

    /// Part of the program's read requests that began where the one before ended.
    pub fn adjacent_reads(&self) -> Option<Estimate> {
        let block = self.own_reads()?;
        share_of(SampledShare { hits: block.own_reads_adjacent, n: block.own_reads })
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::{DeviceUse, OtherUser};

    use super::*;
    use crate::findings::synthetic::Run;

    /// 200 MiB through a loop device by requests of 1 MiB; the program itself sent one of 28 KiB.
    fn by_worker() -> Run {
        Run::new(1.0).device_read(200 << 20).block(1, 28_672, 0, 0).device(0.9, 5.0, |d| {
            (d.reads, d.read_bytes) = (200, 200 << 20);
        })
    }

    #[test]
    fn requests_of_a_worker_are_told_by_the_device_even_beside_a_log() {
        let told = |run: Run| run.facts(|f| (f.device_read_bytes_mean(), f.in_flight_of(Side::Read)));
        let by_device = (Some(f64::from(1 << 20)), Some(5.0));
        assert_eq!(told(by_worker()), by_device);
        let log = |p: &mut iowhy_core::profile::Profile| {
            let block = p.block.as_mut().unwrap();
            (block.own_written_bytes, block.in_flight) = (40 << 10, Some(1.0));
        };
        assert_eq!(told(by_worker().with(log)), by_device);
        assert_eq!(by_worker().with(log).facts(|f| f.in_flight_of(Side::Write)), Some(1.0));
    }

    #[test]
    fn counters_of_a_device_are_nothing_of_the_program_where_others_use_it() {
        let beside = |requests, watch| {
            by_worker()
                .with(|p| p.block.as_mut().unwrap().kernel_requests = 199)
                .with(|p| {
                    p.block.as_mut().unwrap().others =
                        vec![OtherUser { requests, watch, ..OtherUser::default() }]
                })
                .facts(|f| (f.device_read_bytes_mean().is_some(), f.others_part_of_queue()))
        };
        assert_eq!(beside(40, false), (true, 40.0 / 240.0));
        assert_eq!(beside(200, false), (false, 0.5), "what a worker sends is the program's");
        assert_eq!(beside(200, true), (true, 0.0));
    }

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
