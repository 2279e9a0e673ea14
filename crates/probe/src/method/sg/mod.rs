//! SCSI READ BUFFER through /dev/sg*: the 1999 test. The same bytes come out of the device's own buffer each time, so
//! what differs between the four methods is what the host does with them: sg's buffer and a copy, the device writing to
//! user memory, sg's buffer mapped, or no way to user memory at all.
//!
//! Non-goal: reading the medium. A request's offset is ignored: every request reads the device's buffer from its start.
//! Invariant: only commands that read are sent, and none before the descriptor is known to be an sg device.

mod command;
mod device;
mod header;

use std::os::fd::{AsFd, OwnedFd};

use iowhy_core::problem::Problem;
use iowhy_core::units::typed_size;
use iowhy_core::workload::{Method, Workload};
use rustix::io::Errno;

use self::device::{Mapping, Nature, Trouble};
use self::header::{Moved, Transfer};
use crate::access::{Blocking, Failure, Perform, Request};
use crate::buffer::Buffer;
use crate::hot_loop::HotAccess;
use crate::target::{OpenMode, Target};

/// The first version of the driver with SG_IO.
const OLDEST_VERSION: i32 = 30_000;

/// sg's switch for direct transfers.
const ALLOW_DIRECT: &str = "/proc/scsi/sg/allow_dio";

/// Opens the target for the workload's method.
///
/// # Errors
/// The target is no SCSI generic device, or the device has no READ BUFFER or a smaller buffer than the block size, or
/// sg's reserve buffer cannot be mapped.
pub fn open(workload: &Workload, target: &Target) -> Result<Box<dyn HotAccess>, Problem> {
    let method = workload.method;
    if workload.direction.writes() {
        return Err(Problem::refused(format!("--method {} only reads", method.id())).hint("use --rw read"));
    }
    let file = target.open(OpenMode::default())?;
    let sg = Sg::new(file, &target.facts.name, method, workload.block_bytes)?;
    Ok(Box::new(Blocking::new(sg)))
}

/// Where arrived bytes are seen.
enum Landing {
    Memory(Buffer),
    Mapped(Mapping),
    Nowhere,
}

/// READ BUFFER commands to one device.
struct Sg {
    // Before the descriptor: the mapping goes first.
    landing: Landing,
    file: OwnedFd,
    transfer: Transfer,
    block_bytes: usize,
    arrived_bytes: usize,
    dropped: Vec<String>,
}

impl Sg {
    fn new(file: OwnedFd, name: &str, method: Method, block_bytes: u64) -> Result<Sg, Problem> {
        let transfer = match method {
            Method::SgDirect => Transfer::Direct,
            Method::SgMmap => Transfer::Mapped,
            Method::SgNoCopy => Transfer::KernelOnly,
            _ => Transfer::Indirect,
        };
        check_device(&file, name, method)?;
        let block_bytes = check_size(&file, name, block_bytes)?;
        let mut dropped = Vec::new();
        if transfer != Transfer::Direct {
            let reserved = device::reserve(file.as_fd(), block_bytes).map_err(|errno| {
                Problem::failed(format!("`{name}` gives no reserve buffer: {}", std::io::Error::from(errno)))
            })?;
            if reserved < block_bytes && transfer == Transfer::Mapped {
                return Err(Problem::refused(format!(
                    "--bs {block_bytes}: `{name}` maps no more than {reserved} bytes"
                ))
                .hint(format!(
                    "use `--bs {}`, or raise max_sectors_kb of the device",
                    typed_size(reserved as u64)
                )));
            }
            if reserved < block_bytes {
                dropped.push(format!(
                    "reserve buffer: {reserved} of {block_bytes} bytes; sg allocates one for each command"
                ));
            }
        }
        let landing = match transfer {
            Transfer::Indirect | Transfer::Direct => Landing::Memory(Buffer::new(block_bytes)?),
            Transfer::KernelOnly => Landing::Nowhere,
            Transfer::Mapped => Landing::Mapped(Mapping::new(&file, block_bytes).map_err(|errno| {
                Problem::failed(format!(
                    "cannot map the reserve buffer of `{name}`: {}",
                    std::io::Error::from(errno)
                ))
            })?),
        };
        let mut sg = Sg { landing, file, transfer, block_bytes, arrived_bytes: 0, dropped };
        let first = sg.read(block_bytes).map_err(|trouble| problem(name, "READ BUFFER (data)", &trouble))?;
        if transfer == Transfer::Direct && !first.direct {
            sg.dropped.push(not_direct(std::fs::read_to_string(ALLOW_DIRECT).ok().as_deref()));
        }
        Ok(sg)
    }

    fn read(&mut self, bytes: usize) -> Result<Moved, Trouble> {
        let memory = match &mut self.landing {
            Landing::Memory(buffer) => buffer.as_mut_slice(),
            Landing::Mapped(_) | Landing::Nowhere => &mut [],
        };
        device::send(self.file.as_fd(), &command::read_data(bytes), self.transfer, memory, bytes)
    }
}

impl Perform for Sg {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        if request.write || request.bytes > self.block_bytes {
            return Err(Failure::Io { call: "SG_IO", offset: request.offset, errno: Errno::INVAL });
        }
        match self.read(request.bytes) {
            Ok(moved) => {
                self.arrived_bytes = moved.bytes;
                Ok(moved.bytes)
            }
            Err(Trouble::Call(errno)) => Err(Failure::Io { call: "SG_IO", offset: request.offset, errno }),
            Err(Trouble::Command(rejected)) => {
                Err(Failure::Io { call: rejected.call, offset: request.offset, errno: rejected.errno })
            }
        }
    }

    fn data(&self) -> Option<&[u8]> {
        match &self.landing {
            Landing::Memory(buffer) => Some(buffer.front(self.arrived_bytes)),
            Landing::Mapped(mapping) => Some(mapping.front(self.arrived_bytes)),
            Landing::Nowhere => None,
        }
    }

    fn dropped(&self) -> &[String] {
        &self.dropped
    }
}

/// Refuses anything but an sg device, before any command is sent.
fn check_device(file: &OwnedFd, name: &str, method: Method) -> Result<(), Problem> {
    let unusable =
        |why: &str| Problem::refused(format!("--method {} cannot use `{name}`: {why}", method.id()));
    let failed = |errno: Errno| unusable(&std::io::Error::from(errno).to_string());
    match device::nature(file).map_err(failed)? {
        Nature::Sg => {}
        Nature::Block => {
            return Err(unusable("it is a block device, not a SCSI generic device").hint(
                "name the /dev/sgN of the same disk: `lsscsi -g`, or `ls /sys/block/DISK/device/scsi_generic`",
            ));
        }
        Nature::Other => {
            return Err(unusable("it is not a SCSI generic device")
                .hint("name a /dev/sgN (`lsscsi -g` lists them; `sudo modprobe sg` makes them appear)"));
        }
    }
    match device::version(file).map_err(failed)? {
        version if version >= OLDEST_VERSION => Ok(()),
        version => {
            Err(unusable(&format!("its sg driver has version {version}, SG_IO needs {OLDEST_VERSION}")))
        }
    }
}

/// The block size as a length the device's buffer has.
fn check_size(file: &OwnedFd, name: &str, block_bytes: u64) -> Result<usize, Problem> {
    let mut descriptor = [0u8; command::DESCRIPTOR_BYTES];
    let length = descriptor.len();
    device::send(file.as_fd(), &command::read_descriptor(), Transfer::Indirect, &mut descriptor, length)
        .map_err(|trouble| problem(name, "READ BUFFER (descriptor)", &trouble))?;
    let capacity = command::capacity_bytes(descriptor);
    fit(name, block_bytes, capacity)
}

fn fit(name: &str, block_bytes: u64, capacity: usize) -> Result<usize, Problem> {
    let most = capacity.min(command::MAX_TRANSFER_BYTES);
    match usize::try_from(block_bytes) {
        Ok(bytes) if (1..=most).contains(&bytes) => Ok(bytes),
        _ => Err(Problem::refused(format!(
            "--bs {block_bytes}: the buffer of `{name}` can be read in pieces of 1 to {most} bytes"
        ))
        .hint(format!("use `--bs {}` or less", typed_size(most as u64)))),
    }
}

fn problem(name: &str, command: &str, trouble: &Trouble) -> Problem {
    match trouble {
        Trouble::Call(errno) => {
            Problem::failed(format!("{command} on `{name}`: SG_IO failed: {}", std::io::Error::from(*errno)))
        }
        Trouble::Command(rejected) => Problem::failed(format!("{command} on `{name}`: {rejected}")).hint(
            "READ BUFFER is optional for a device: `sg_opcodes /dev/sgN` (sg3-utils) lists what it has",
        ),
    }
}

/// Why a transfer that was to be direct was not; `setting` is the content of sg's switch.
fn not_direct(setting: Option<&str>) -> String {
    match setting.map(str::trim) {
        Some("0") => format!(
            "direct transfer: not honoured, sg copied from its own buffer ({ALLOW_DIRECT} is 0; \
             `echo 1 | sudo tee {ALLOW_DIRECT}` allows it)"
        ),
        Some(value) => format!(
            "direct transfer: not honoured although {ALLOW_DIRECT} is {value}; the host adapter needs another alignment"
        ),
        None => format!("direct transfer: not honoured, and {ALLOW_DIRECT} cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHODS: [Method; 4] = [Method::Sg, Method::SgDirect, Method::SgMmap, Method::SgNoCopy];

    #[test]
    fn what_is_not_an_sg_device_is_refused_by_name_with_the_way_to_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, [0; 4096]).unwrap();
        for name in ["/dev/null", "/dev/zero", path.to_str().unwrap()] {
            for method in METHODS {
                let file = std::fs::File::open(name).unwrap().into();
                let refused = Sg::new(file, name, method, 4096).err().expect("no sg device");
                assert!(refused.message.contains(name), "{refused}");
                assert!(refused.message.contains(&format!("--method {}", method.id())), "{refused}");
                assert!(refused.message.contains("not a SCSI generic device"), "{refused}");
                assert!(refused.hint.unwrap().contains("lsscsi -g"));
            }
        }
    }

    #[test]
    fn sg_ioctls_on_something_else_fail_and_do_not_invent() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(device::version(&null), Err(Errno::NOTTY));
        assert_eq!(device::reserve(null.as_fd(), 4096), Err(Errno::NOTTY));
        let mut data = [0u8; 16];
        let sent = device::send(null.as_fd(), &command::read_data(16), Transfer::Indirect, &mut data, 16);
        assert!(matches!(sent, Err(Trouble::Call(Errno::NOTTY))), "{sent:?}");
        let larger = device::send(null.as_fd(), &command::read_data(17), Transfer::Indirect, &mut data, 17);
        assert!(matches!(larger, Err(Trouble::Call(Errno::INVAL))), "never sent: {larger:?}");
    }

    #[test]
    fn a_block_must_fit_the_buffer_and_the_command() {
        assert_eq!(fit("/dev/sg0", 32_768, 32_768), Ok(32_768));
        for (block, capacity, most) in
            [(0, 100, "100"), (101, 100, "100"), (1 << 24, 1 << 25, &typed_size((1 << 24) - 1))]
        {
            let refused = fit("/dev/sg0", block, capacity).unwrap_err();
            assert!(refused.message.contains(&block.to_string()), "{refused}");
            assert!(refused.hint.unwrap().contains(most));
        }
    }

    #[test]
    fn a_copy_in_place_of_a_direct_transfer_is_explained_by_the_switch() {
        assert!(not_direct(Some("0\n")).contains("echo 1 | sudo tee /proc/scsi/sg/allow_dio"));
        assert!(not_direct(Some("1\n")).contains("although /proc/scsi/sg/allow_dio is 1"));
        assert!(not_direct(None).contains("cannot be read"));
    }
}
