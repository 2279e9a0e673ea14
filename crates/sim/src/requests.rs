//! What a load of whole files comes to on the volume, without time: the blocks that each client asks for behind the machine's
//! cache, and the writes that making the files takes. The addresses are those of the timed runs.
//!
//! For whoever carries the same requests out on real disks. What may not enter: time, volumes, devices.

use iowhy_core::problem::Problem;
use iowhy_core::request::{Marks, Op, Request};

use crate::cache;
use crate::layout::{self, Shape, Step, StepKind, size_of};
use crate::machine::Machine;
use crate::workload::{Arrival, Load};

/// A run of bytes of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// What it holds.
    pub kind: StepKind,
}

/// What one client asks the volume for, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Client {
    asked: Vec<Asked>,
    /// For each of the client's own requests, how many were asked when it was done.
    ends: Vec<usize>,
}

impl Client {
    /// What its first so many requests lead to.
    pub fn first(&self, requests: usize) -> &[Asked] {
        let end = requests.checked_sub(1).and_then(|last| self.ends.get(last).or(self.ends.last()));
        &self.asked[..end.copied().unwrap_or(0)]
    }

    /// Its own requests.
    pub fn requests(&self) -> usize {
        self.ends.len()
    }
}

/// What closed clients ask a volume of so many bytes for, each file behind the machine's cache, which is empty at first and
/// common to all. The clients take turns, a request each: which blocks are cached when does not hang on the speed of any disk,
/// so that the lists are the same for all.
///
/// # Errors
/// What the layout says of files that do not fit; open arrivals.
pub fn reads(machine: &Machine, mut load: Load<'_>, volume_bytes: u64) -> Result<Vec<Client>, Problem> {
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
    let mut steps: Vec<Step> = Vec::new();
    loop {
        let mut over = true;
        for (number, client) in all.iter_mut().enumerate() {
            let Some(request) = load.source.next(number as u32) else { continue };
            over = false;
            layout.steps(&request, &mut steps);
            for step in &steps {
                // A buffer by its own address, as the timed run keeps it; longer runs are not kept.
                if let Some(cache) = cache.as_mut().filter(|_| step.whole) {
                    let key = cache::whole_key(step.start);
                    if cache.lookup(key) {
                        continue;
                    }
                    cache.insert(key, &mut |_| {});
                }
                client.asked.push(Asked { start: step.start, bytes: step.bytes, kind: step.kind });
            }
            client.ends.push(client.asked.len());
        }
        if over {
            return Ok(all);
        }
    }
}

/// The writes that making the first so many files of a tree takes, in order, as requests to the volume's own addresses. What
/// the file system of 1999 waited for (the inode, then the directory's block) bears the marks of synchronous metadata; the data
/// does not.
///
/// # Errors
/// What the layout says of files that do not fit.
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
        let clients = reads(&machine("0"), load(50), VOLUME).unwrap();
        assert_eq!(clients.len(), 3);
        for client in &clients {
            assert_eq!(client.requests(), 50);
            let all = client.first(50);
            let of = |kind| all.iter().filter(|asked| asked.kind == kind).count();
            assert_eq!((of(StepKind::Inode), of(StepKind::Data)), (50, 50));
            assert!((50..=350).contains(&of(StepKind::Directory)), "one to seven blocks of names each");
            for asked in all {
                assert!(asked.start + asked.bytes <= VOLUME && asked.start % 1024 == 0);
                assert_eq!(asked.start / 8192, (asked.start + asked.bytes - 1) / 8192, "within a block");
                let in_group = asked.start % (32_768 * 512) / 512;
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
        let fewer = reads(&machine("0"), load(7), VOLUME).unwrap();
        assert_eq!(fewer[0].first(7), clients[0].first(7));
    }

    #[test]
    fn what_is_cached_is_not_asked_for_again() {
        let asked = |cache| -> usize {
            reads(&machine(cache), load(200), VOLUME).unwrap().iter().map(|c| c.first(200).len()).sum()
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
}
