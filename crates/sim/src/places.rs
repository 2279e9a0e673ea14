//! Where the requests of a load go on a machine's volume, without time: what a proof on real disks carries out.

use iowhy_core::problem::Problem;
use iowhy_core::request::Op;

use crate::device;
use crate::layout;
use crate::machine::{JoinKind, Machine};
use crate::volume::{Join, SECTOR_BYTES, Volume};
use crate::workload::{Arrival, Load};

/// One access to the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose it is; its places follow one another.
    pub client: u32,
    /// When it is asked for, of open arrivals; else 0.
    pub at_ns: u64,
    /// First byte.
    pub start: u64,
    /// Bytes, 1 or more.
    pub bytes: u64,
    /// Writes.
    pub write: bool,
}

/// Where requests go.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// Every access, client by client in turn.
    pub places: Vec<Place>,
    /// Requests that they are of.
    pub requests: u64,
    /// What had to be bent, in words.
    pub remarks: Vec<String>,
}

/// The volume of a machine.
///
/// # Errors
/// What the machine cannot be built from.
pub(crate) fn volume(machine: &Machine, sectors: u64) -> Result<Volume, Problem> {
    let join = match machine.volume.kind {
        JoinKind::Single | JoinKind::Concat => Join::Concat,
        JoinKind::Stripe => Join::Stripe { interleave: machine.volume.interleave },
        JoinKind::Mirror => Join::Mirror,
    };
    Volume::new(join, machine.device.count as u32, sectors, machine.volume.merge)
}

/// The places of the first `most` requests. Nothing is held in a cache: every step of a request is there.
///
/// # Errors
/// What the machine cannot be built from, and files that do not fit on it.
pub fn places(machine: &Machine, mut load: Load<'_>, most: u64) -> Result<Placed, Problem> {
    machine.check()?;
    let mut sectors = u64::MAX;
    for index in 0..machine.device.count {
        sectors = sectors.min(device::new(machine.member(index as usize).0, 0)?.sectors());
    }
    let volume_bytes = volume(machine, sectors)?.sectors().saturating_mul(SECTOR_BYTES);
    let mut layout = layout::new(machine, &load.shape, volume_bytes)?;
    let clients = match load.arrival {
        Arrival::Closed { clients, .. } => clients,
        Arrival::Open => 1,
    };
    let (mut all, mut steps) = (Vec::new(), Vec::new());
    let mut open: Vec<u32> = (0..clients).collect();
    let mut left = most;
    while left > 0 && !open.is_empty() {
        open.retain(|client| {
            if left == 0 {
                return false;
            }
            let Some(request) = load.source.next(*client) else { return false };
            left -= 1;
            if request.bytes > 0 && matches!(request.op, Op::Read | Op::Write) {
                layout.steps(&request, &mut steps);
                all.extend(steps.iter().filter(|step| step.bytes > 0).map(|step| {
                    let start = step.start.min(volume_bytes.saturating_sub(1));
                    Place {
                        client: *client,
                        at_ns: if load.arrival == Arrival::Open { request.time_ns } else { 0 },
                        start,
                        bytes: step.bytes.min(volume_bytes - start),
                        write: request.op == Op::Write,
                    }
                }));
            }
            true
        });
    }
    let mut remarks = layout.remarks();
    remarks.extend(load.source.remarks());
    Ok(Placed { places: all, requests: most - left, remarks })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::workload::Workload;

    fn machine(text: &[(&str, &str)]) -> Machine {
        let mut machine = Machine::default();
        for (path, value) in text {
            machine.set(path, &crate::machine::Value::Text((*value).to_owned())).unwrap();
        }
        machine
    }

    /// What is listed is what a run without a cache asks of the volume: to the byte and to the command.
    #[test]
    fn a_run_asks_for_these_places_and_no_others() {
        for layout in ["raw", "extent", "ffs"] {
            let machine = machine(&[
                ("device.kind", "ssd"),
                ("device.bytes", "256m"),
                ("device.count", "2"),
                ("volume.kind", "stripe"),
                ("layout.kind", layout),
            ]);
            let load =
                Workload::parse("readers=3,files=40,sizes=930:3030:6102,dirs=7,population=500").unwrap();
            let Placed { places, requests, .. } = places(&machine, load.load(4), u64::MAX).unwrap();
            assert_eq!(requests, 120);
            let outcome = crate::run(&machine, load.load(4), 4).unwrap();
            let sectors = |place: &Place| {
                (place.start + place.bytes).div_ceil(SECTOR_BYTES) - place.start / SECTOR_BYTES
            };
            assert_eq!(
                places.iter().map(sectors).sum::<u64>() * SECTOR_BYTES,
                outcome.volume_bytes,
                "{layout}"
            );
            let mut by_client: BTreeMap<u32, usize> = BTreeMap::new();
            places.iter().for_each(|place| *by_client.entry(place.client).or_default() += 1);
            assert_eq!(by_client.len(), 3);
            assert!(layout == "ffs" || by_client.values().all(|count| *count == 40), "{by_client:?}");
        }
    }

    #[test]
    fn a_trace_keeps_its_times_and_its_first_requests() {
        let request = |n: u64| iowhy_core::request::Request {
            time_ns: 5000 + n * 1000,
            offset: n * 4096,
            bytes: 512,
            op: if n.is_multiple_of(2) { Op::Read } else { Op::Write },
            ..Default::default()
        };
        let machine = machine(&[("device.kind", "ssd"), ("device.bytes", "1m")]);
        let Placed { places, .. } = places(&machine, Load::replay((0..10).map(request)), 4).unwrap();
        let seen: Vec<_> = places.iter().map(|p| (p.client, p.at_ns, p.bytes, p.write)).collect();
        assert_eq!(
            seen,
            [(0, 0, 512, false), (0, 1000, 512, true), (0, 2000, 512, false), (0, 3000, 512, true)]
        );
    }
}
