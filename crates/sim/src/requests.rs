//! The requests of a load to the volume of a machine, without time: for carrying the same requests out on real disks.
//! The addresses are those of a timed run.

use iowhy_core::problem::Problem;
use iowhy_core::request::{Marks, Op, Request};

use crate::cache;
use crate::device;
use crate::files::{Shape, size_of};
use crate::layout::{self, Layout, Step, StepKind};
use crate::machine::Machine;
use crate::volume::SECTOR_BYTES;
use crate::workload::{Arrival, Load};

/// A request to the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeRequest {
    /// Number of the client.
    pub client: u32,
    /// Arrival time of open arrivals; else 0.
    pub at_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes, 1 or more.
    pub bytes: u64,
    /// Write instead of read.
    pub write: bool,
    /// Content of the range.
    pub kind: StepKind,
}

/// Requests of all clients, in turns.
#[derive(Clone, Debug, Default)]
pub struct VolumeRequests {
    /// To the volume.
    pub to_volume: Vec<VolumeRequest>,
    /// Number of the clients' own requests.
    pub requests: u64,
    /// Adaptations of the load, in words.
    pub remarks: Vec<String>,
}

/// Reads of one client from the volume, in order.
#[derive(Clone, Debug, Default)]
pub struct Client {
    reads: Vec<VolumeRequest>,
    /// For each of the client's own requests, the number of reads when it was done.
    ends: Vec<usize>,
}

impl Client {
    /// Reads caused by its first `requests` requests.
    pub fn first(&self, requests: usize) -> &[VolumeRequest] {
        let end = requests.checked_sub(1).and_then(|last| self.ends.get(last).or(self.ends.last()));
        &self.reads[..end.copied().unwrap_or(0)]
    }

    /// Number of its own requests.
    pub fn requests(&self) -> usize {
        self.ends.len()
    }
}

/// Lets the clients take turns, a request each, and gives each request with its steps to `see`. Returns the number of
/// requests, `max` at most.
fn take_turns(
    layout: &mut dyn Layout,
    load: &mut Load<'_>,
    max: u64,
    mut see: impl FnMut(u32, &Request, &[Step]),
) -> u64 {
    let clients = match load.arrival {
        Arrival::Closed { clients, .. } => clients,
        Arrival::Open => 1,
    };
    let mut steps = Vec::new();
    let mut open: Vec<u32> = (0..clients).collect();
    let mut left = max;
    while left > 0 && !open.is_empty() {
        open.retain(|client| {
            if left == 0 {
                return false;
            }
            let Some(request) = load.source.next(*client) else { return false };
            left -= 1;
            steps.clear();
            if request.bytes > 0 && matches!(request.op, Op::Read | Op::Write) {
                layout.steps(&request, &mut steps);
            }
            see(*client, &request, &steps);
            true
        });
    }
    max - left
}

fn to_volume(client: u32, request: &Request, step: &Step) -> VolumeRequest {
    let write = request.op == Op::Write;
    VolumeRequest { client, at_ns: 0, offset: step.start, bytes: step.bytes, write, kind: step.kind }
}

/// The first `max` requests of a load, without a cache: every step of a request goes to the volume.
///
/// # Errors
/// An impossible machine, and files that do not fit on it.
pub fn uncached(machine: &Machine, mut load: Load<'_>, max: u64) -> Result<VolumeRequests, Problem> {
    machine.check()?;
    let mut sectors = u64::MAX;
    for index in 0..machine.device.count {
        sectors = sectors.min(device::new(machine.member(index as usize).0, 0)?.sectors());
    }
    let volume_bytes = machine.volume_of(sectors)?.sectors().saturating_mul(SECTOR_BYTES);
    let mut layout = layout::new(machine, &load.shape, volume_bytes)?;
    let mut all = Vec::new();
    let open = load.arrival == Arrival::Open;
    let requests = take_turns(&mut *layout, &mut load, max, |client, request, steps| {
        all.extend(steps.iter().filter(|step| step.bytes > 0).map(|step| {
            let offset = step.start.min(volume_bytes.saturating_sub(1));
            VolumeRequest {
                at_ns: if open { request.time_ns } else { 0 },
                offset,
                bytes: step.bytes.min(volume_bytes - offset),
                ..to_volume(client, request, step)
            }
        }));
    });
    let mut remarks = layout.remarks();
    remarks.extend(load.source.remarks());
    Ok(VolumeRequests { to_volume: all, requests, remarks })
}

/// The reads of closed clients behind the machine's cache, which is empty at first and shared. As the clients take turns,
/// the cached blocks do not depend on the speed of any disk, and the lists are the same for all disks.
///
/// # Errors
/// Files that do not fit; open arrivals.
pub fn cached_reads(
    machine: &Machine,
    mut load: Load<'_>,
    volume_bytes: u64,
) -> Result<Vec<Client>, Problem> {
    let Arrival::Closed { clients, .. } = load.arrival else {
        return Err(Problem::refused("a list of requests for each client needs clients: leave `rate` out"));
    };
    let mut layout = layout::new(machine, &load.shape, volume_bytes)?;
    let blocks = machine.cache.bytes / machine.cache.block_bytes.max(1);
    let mut cache = match blocks {
        0 => None,
        blocks => Some(cache::blocks(machine.cache.policy, blocks)?),
    };
    let mut all = vec![Client::default(); clients as usize];
    take_turns(&mut *layout, &mut load, u64::MAX, |number, request, steps| {
        let client = &mut all[number as usize];
        for step in steps {
            // A buffer by its own address, as the timed run keeps it; longer runs are not kept.
            if let Some(cache) = cache.as_mut().filter(|_| step.whole) {
                let key = cache::whole_key(step.start);
                if cache.lookup(key) {
                    continue;
                }
                cache.insert(key, &mut |_| {});
            }
            client.reads.push(to_volume(number, request, step));
        }
        client.ends.push(client.reads.len());
    });
    Ok(all)
}

/// The writes that create the first `files` files of a tree, in order. The file system of 1999 waited for the inode and then
/// for the directory's block: these are marked as synchronous metadata, the data is not.
///
/// # Errors
/// Files that do not fit.
pub fn creation(
    machine: &Machine,
    shape: &Shape,
    files: u64,
    volume_bytes: u64,
) -> Result<Vec<Request>, Problem> {
    let mut layout = layout::new(machine, shape, volume_bytes)?;
    let sizes: &[u64] = match shape {
        Shape::Tree { sizes, .. } => sizes,
        _ => &[],
    };
    let (mut out, mut steps): (Vec<Request>, Vec<Step>) = (Vec::new(), Vec::new());
    let waited_for = Marks::SYNC.with(Marks::METADATA);
    for file in 0..files {
        let bytes = size_of(file, sizes).max(1);
        layout.steps(&Request { object: file, bytes, ..Request::default() }, &mut steps);
        let at = |step: &Step, marks| Request {
            op: Op::Write,
            offset: step.start,
            bytes: step.bytes,
            marks,
            ..Request::default()
        };
        let of = |kind| steps.iter().rfind(|step| step.kind == kind);
        // The last block that a search looks through is the one that gets the name.
        out.extend(of(StepKind::Inode).map(|step| at(step, waited_for)));
        out.extend(of(StepKind::Directory).map(|step| at(step, waited_for)));
        out.extend(of(StepKind::Data).map(|step| at(step, Marks::default())));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::machine::Value;
    use crate::workload::Workload;

    const VOLUME: u64 = 12 * 32_768 * 512;

    fn machine(cache: &str) -> Machine {
        let mut machine = Machine::shipped("netbsd-1999").unwrap();
        machine.set("cache.bytes", &Value::Text(cache.to_owned())).unwrap();
        machine
    }

    fn load(each: u64) -> Load<'static> {
        let spec = format!("readers=3,files={each},sizes=930:3030:6102,dirs=12,population=36923");
        Workload::parse(&spec).unwrap().load(1)
    }

    /// Without a cache a file is its directory's blocks up to its name, its inode and its data; all at their own addresses.
    #[test]
    fn a_file_is_names_inode_and_data_and_a_shorter_list_is_the_begin_of_a_longer_one() {
        let clients = cached_reads(&machine("0"), load(50), VOLUME).unwrap();
        assert_eq!(clients.len(), 3);
        for client in &clients {
            assert_eq!(client.requests(), 50);
            let all = client.first(50);
            let of = |kind| all.iter().filter(|asked| asked.kind == kind).count();
            assert_eq!((of(StepKind::Inode), of(StepKind::Data)), (50, 50));
            assert!((50..=350).contains(&of(StepKind::Directory)), "one to seven blocks of names each");
            for asked in all {
                assert!(asked.offset + asked.bytes <= VOLUME && asked.offset % 1024 == 0);
                assert_eq!(asked.offset / 8192, (asked.offset + asked.bytes - 1) / 8192, "within a block");
                let in_group = asked.offset % (32_768 * 512) / 512;
                match asked.kind {
                    StepKind::Inode => assert!((64..1088).contains(&in_group)),
                    StepKind::Directory | StepKind::Data => assert!(in_group >= 1088),
                }
            }
            assert_eq!(client.first(0), []);
            assert!(
                all.starts_with(client.first(7)) && client.first(7).last().unwrap().kind == StepKind::Data
            );
            assert_eq!(client.first(1000), all);
        }
        let fewer = cached_reads(&machine("0"), load(7), VOLUME).unwrap();
        assert_eq!(fewer[0].first(7), clients[0].first(7));
    }

    #[test]
    fn what_is_cached_is_not_asked_for_again() {
        let asked = |cache| -> usize {
            cached_reads(&machine(cache), load(200), VOLUME).unwrap().iter().map(|c| c.first(200).len()).sum()
        };
        let (none, some, all) = (asked("0"), asked("256k"), asked("64m"));
        assert!(all < some && some < none, "{all} {some} {none}");
        // All that there is to ask for once: 12 directories of 7 blocks, at most 12 x 49 blocks of inodes, 600 files' data.
        assert!(all <= 12 * 7 + 12 * 49 + 600, "{all}");
    }

    #[test]
    fn making_a_file_waits_for_its_inode_and_its_name_and_not_for_its_data() {
        let shape = Shape::Tree { sizes: vec![930, 3030, 6102], directories: 4, files: 400 };
        let writes = creation(&machine("8m"), &shape, 400, VOLUME).unwrap();
        assert_eq!(writes.len(), 3 * 400);
        for (file, three) in writes.chunks(3).enumerate() {
            let waited: Vec<bool> = three.iter().map(|write| write.marks.has(Marks::SYNC)).collect();
            assert_eq!(waited, [true, true, false]);
            assert!(three.iter().all(|write| write.op == Op::Write));
            assert_eq!((three[0].bytes, three[1].bytes), (8192, 8192));
            let size = size_of(file as u64, &[930, 3030, 6102]);
            assert_eq!(three[2].bytes, size.div_ceil(1024) * 1024);
        }
        // Inodes of one directory lie in a row: 100 files in at most three blocks of 64.
        let inodes: std::collections::BTreeSet<u64> =
            writes[..300].iter().step_by(3).map(|write| write.offset).collect();
        assert!(inodes.len() <= 3, "{inodes:?}");
    }

    fn machine_with(text: &[(&str, &str)]) -> Machine {
        let mut machine = Machine::default();
        for (path, value) in text {
            machine.set(path, &Value::Text((*value).to_owned())).unwrap();
        }
        machine
    }

    /// The same as a run without a cache, to the byte and to the command.
    #[test]
    fn a_run_makes_these_requests_and_no_others() {
        for layout in ["raw", "extent", "ffs"] {
            let machine = machine_with(&[
                ("device.kind", "ssd"),
                ("device.bytes", "256m"),
                ("device.count", "2"),
                ("volume.kind", "stripe"),
                ("layout.kind", layout),
            ]);
            let load =
                Workload::parse("readers=3,files=40,sizes=930:3030:6102,dirs=7,population=500").unwrap();
            let VolumeRequests { to_volume, requests, .. } =
                uncached(&machine, load.load(4), u64::MAX).unwrap();
            assert_eq!(requests, 120);
            let outcome = crate::run(&machine, load.load(4), 4).unwrap();
            let sectors = |request: &VolumeRequest| {
                (request.offset + request.bytes).div_ceil(SECTOR_BYTES) - request.offset / SECTOR_BYTES
            };
            assert_eq!(
                to_volume.iter().map(sectors).sum::<u64>() * SECTOR_BYTES,
                outcome.volume_bytes,
                "{layout}"
            );
            let mut by_client: BTreeMap<u32, usize> = BTreeMap::new();
            to_volume.iter().for_each(|request| *by_client.entry(request.client).or_default() += 1);
            assert_eq!(by_client.len(), 3);
            assert!(layout == "ffs" || by_client.values().all(|count| *count == 40), "{by_client:?}");
        }
    }

    #[test]
    fn a_trace_keeps_its_times_and_its_first_requests() {
        let request = |n: u64| Request {
            time_ns: 5000 + n * 1000,
            offset: n * 4096,
            bytes: 512,
            op: if n.is_multiple_of(2) { Op::Read } else { Op::Write },
            ..Default::default()
        };
        let machine = machine_with(&[("device.kind", "ssd"), ("device.bytes", "1m")]);
        let VolumeRequests { to_volume, .. } =
            uncached(&machine, Load::replay((0..10).map(request)), 4).unwrap();
        let seen: Vec<_> = to_volume.iter().map(|p| (p.client, p.at_ns, p.bytes, p.write)).collect();
        assert_eq!(
            seen,
            [(0, 0, 512, false), (0, 1000, 512, true), (0, 2000, 512, false), (0, 3000, 512, true)]
        );
    }
}
