//! Methods that are one system call a request: [`reads`], [`writes`], and the bare call.
//!
//! Goal: to add nothing measurable to the system call. Invariant: a request is checked for direction before the method
//! is opened, never in the hot path.

pub mod reads;
pub mod writes;

use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use iowhy_core::units::typed_size;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};
use rustix::io::Errno;

use crate::access::{Blocking, Failure, Perform, Request};
use crate::buffer::Buffer;
use crate::hot_loop::HotAccess;
use crate::target::{OpenMode, Target};

use reads::{AtPosition, Flagged, InFour, Positioned, Reader};
use writes::{Allocate, Durable, WriteAtPosition, WritePositioned, Writer};

/// Opens the target for the workload's method.
///
/// # Errors
/// Refuses sizes that O_DIRECT on this target cannot do; passes on
/// what opening the target says.
pub fn open(workload: &Workload, target: &Target) -> Result<Box<dyn HotAccess>, Problem> {
    let method = workload.method;
    let direct = method == Method::Direct || workload.state == CacheState::Direct;
    if direct {
        check_direct_alignment(workload, target)?;
    }
    let fd = |write, dsync| target.open(OpenMode { write, direct, dsync });
    let bytes = block_bytes(workload)?;
    let seed = workload.seed;
    Ok(match method {
        Method::Syscall => boxed(Syscall { fd: fd(false, false)? }),
        Method::Read => boxed(Reader::new(fd(false, false)?, bytes, AtPosition::new(direct))?),
        Method::Pread => boxed(Reader::new(fd(false, false)?, bytes, Positioned { direct })?),
        Method::PreadRandom | Method::PreadSequential => {
            let file = fd(false, false)?;
            advise(&file, method, &target.facts.name)?;
            boxed(Reader::new(file, bytes, Positioned { direct })?)
        }
        Method::Readv => boxed(Reader::new(fd(false, false)?, bytes, InFour { direct })?),
        Method::Preadv2 => boxed(Reader::new(fd(false, false)?, bytes, Flagged::plain(direct))?),
        Method::PreadEnd => boxed(PreadEnd {
            fd: fd(false, false)?,
            end: target.facts.size_bytes,
            buffer: Buffer::new(bytes)?,
        }),
        Method::Preadv2Nowait => boxed(Reader::new(fd(false, false)?, bytes, Flagged::nowait(direct))?),
        Method::Preadv2Dontcache => boxed(Reader::new(fd(false, false)?, bytes, Flagged::dontcache(direct))?),
        Method::Direct => match workload.direction {
            Direction::Read => boxed(Reader::new(fd(false, false)?, bytes, Positioned { direct })?),
            Direction::Write => {
                boxed(Writer::new(fd(true, false)?, bytes, seed, WritePositioned::new(Durable::No, direct))?)
            }
            Direction::Mixed(_) => boxed(Mixed {
                reader: Reader::new(fd(false, false)?, bytes, Positioned { direct })?,
                writer: Writer::new(
                    fd(true, false)?,
                    bytes,
                    seed,
                    WritePositioned::new(Durable::No, direct),
                )?,
            }),
        },
        Method::Write => boxed(Writer::new(fd(true, false)?, bytes, seed, WriteAtPosition::new(direct))?),
        Method::Pwrite => {
            boxed(Writer::new(fd(true, false)?, bytes, seed, WritePositioned::new(Durable::No, direct))?)
        }
        Method::PwriteDsync => {
            boxed(Writer::new(fd(true, true)?, bytes, seed, WritePositioned::new(Durable::No, direct))?)
        }
        Method::PwriteFsync => {
            boxed(Writer::new(fd(true, false)?, bytes, seed, WritePositioned::new(Durable::All, direct))?)
        }
        Method::PwriteFdatasync => {
            boxed(Writer::new(fd(true, false)?, bytes, seed, WritePositioned::new(Durable::Data, direct))?)
        }
        Method::PwriteEndFdatasync => boxed(Writer::new(
            fd(true, false)?,
            bytes,
            seed,
            WritePositioned::new(Durable::DataAtEnd, direct),
        )?),
        Method::Fallocate => boxed(Writer::new(fd(true, false)?, 0, seed, Allocate::default())?),
        other => {
            return Err(Problem::refused(format!(
                "method `{}` is not one system call a request",
                other.id()
            )));
        }
    })
}

fn boxed(perform: impl Perform + 'static) -> Box<dyn HotAccess> {
    Box::new(Blocking::new(perform))
}

/// Tells the kernel the order of reads on this descriptor alone; nothing is left behind when it closes.
fn advise(file: &OwnedFd, method: Method, name: &str) -> Result<(), Problem> {
    use rustix::fs::Advice;
    let advice = if method == Method::PreadRandom { Advice::Random } else { Advice::Sequential };
    rustix::fs::fadvise(file, 0, None, advice).map_err(|errno| {
        Problem::refused(format!("`{name}` takes no posix_fadvise: {}", std::io::Error::from(errno)))
            .hint("use `--method pread`")
    })
}

fn block_bytes(workload: &Workload) -> Result<usize, Problem> {
    usize::try_from(workload.block_bytes).map_err(|_| {
        Problem::refused(format!("a block of {} bytes does not fit into memory", workload.block_bytes))
            .hint("choose a smaller `--bs`")
    })
}

/// Says before the first EINVAL what O_DIRECT asks of sizes, where the target's alignment is known.
fn check_direct_alignment(workload: &Workload, target: &Target) -> Result<(), Problem> {
    let Some(alignment) = target.facts.direct_alignment_bytes.filter(|&a| a > 1) else {
        return Ok(());
    };
    for (what, bytes) in [("block size", workload.block_bytes), ("region offset", workload.region_offset)] {
        if bytes % alignment != 0 {
            return Err(Problem::refused(format!(
                "O_DIRECT on `{}` needs multiples of {alignment} bytes, and the {what} is {bytes}",
                target.facts.name
            ))
            .hint(format!(
                "use a multiple of {alignment}, such as `--bs {}`",
                typed_size(bytes.next_multiple_of(alignment))
            )));
        }
    }
    Ok(())
}

/// A failed call, kept out of the hot path. O_DIRECT answers EINVAL where the request is not aligned.
#[cold]
fn failed(call: &'static str, direct: bool, offset: u64, errno: Errno) -> Failure {
    let call = match (direct && errno == Errno::INVAL, call) {
        (true, "pread" | "preadv" | "preadv2" | "read") => {
            "direct read (O_DIRECT needs offset and size in multiples of the logical block; try a larger `--bs`)"
        }
        (true, _) => {
            "direct write (O_DIRECT needs offset and size in multiples of the logical block; try a larger `--bs`)"
        }
        (false, _) => call,
    };
    Failure::Io { call, offset, errno }
}

/// `pread` at the end of the file: everything that is done for a request before the first page is looked up. It moves
/// nothing and claims nothing.
#[derive(Debug)]
pub struct PreadEnd {
    fd: OwnedFd,
    end: u64,
    buffer: Buffer,
}

impl Perform for PreadEnd {
    fn perform(&mut self, _request: Request) -> Result<usize, Failure> {
        rustix::io::pread(&self.fd, self.buffer.as_mut_slice(), self.end)
            .map_err(Failure::io("pread", self.end))
    }

    fn data(&self) -> Option<&[u8]> {
        None
    }
}

/// The cheapest system call on the descriptor: fcntl(F_GETFD). It moves nothing and claims nothing.
#[derive(Debug)]
pub struct Syscall {
    fd: OwnedFd,
}

impl Perform for Syscall {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        rustix::io::fcntl_getfd(&self.fd).map_err(Failure::io("fcntl", request.offset))?;
        Ok(0)
    }

    fn data(&self) -> Option<&[u8]> {
        None
    }
}

/// Reads or writes as each request says, each with its own descriptor.
#[derive(Debug)]
pub struct Mixed<R, W> {
    reader: Reader<R>,
    writer: Writer<W>,
}

impl<R: reads::ReadCall, W: writes::WriteCall> Perform for Mixed<R, W> {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        if request.write { self.writer.perform(request) } else { self.reader.perform(request) }
    }

    /// Content of the last read; a write keeps it.
    fn data(&self) -> Option<&[u8]> {
        self.reader.data()
    }
}

/// The file offset of a descriptor, moved only when a request is elsewhere.
#[derive(Debug, Default)]
struct Position(u64);

impl Position {
    /// Makes the descriptor stand at `offset`.
    #[inline]
    fn seek(&mut self, fd: &OwnedFd, offset: u64) -> Result<(), Failure> {
        if self.0 != offset {
            rustix::fs::seek(fd, rustix::fs::SeekFrom::Start(offset))
                .map_err(Failure::io("lseek", offset))?;
            self.0 = offset;
        }
        Ok(())
    }

    /// Notes that a call moved it on.
    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.0 += bytes as u64;
    }
}

/// A buffer of incompressible bytes to write from.
fn source(bytes: usize, seed: u64) -> Result<Buffer, Problem> {
    let mut buffer = Buffer::new(bytes)?;
    buffer.fill(seed);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_call_claims_no_bytes() {
        let mut call = Syscall { fd: tempfile::tempfile().unwrap().into() };
        assert_eq!(call.perform(Request { offset: 5, bytes: 4096, write: false }), Ok(0));
    }

    #[test]
    fn only_an_einval_of_a_direct_request_speaks_of_alignment() {
        let text = |direct, errno| failed("pread", direct, 8, errno).to_string();
        assert!(text(true, Errno::INVAL).contains("--bs"));
        assert!(!text(false, Errno::INVAL).contains("--bs"));
        assert!(text(true, Errno::IO).starts_with("pread at offset 8 failed"));
    }

    #[test]
    fn a_mix_does_what_each_request_says() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7u8; 8192]).unwrap();
        let open = |write| std::fs::File::options().read(true).write(write).open(file.path()).unwrap().into();
        let mut mixed = Mixed {
            reader: Reader::new(open(false), 4096, Positioned { direct: false }).unwrap(),
            writer: Writer::new(open(true), 4096, 3, WritePositioned::new(Durable::No, false)).unwrap(),
        };
        assert_eq!(mixed.perform(Request { offset: 0, bytes: 4096, write: true }), Ok(4096));
        assert_eq!(mixed.perform(Request { offset: 4096, bytes: 4096, write: false }), Ok(4096));
        assert_eq!(mixed.data().unwrap(), [7u8; 4096]);
        assert_eq!(mixed.perform(Request { offset: 0, bytes: 4096, write: false }), Ok(4096));
        assert_eq!(mixed.data().unwrap(), source(4096, 3).unwrap().as_slice());
    }
}
