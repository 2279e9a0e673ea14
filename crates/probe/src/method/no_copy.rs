//! splice and sendfile to /dev/null: bytes that never reach user memory.
//!
//! Measures how pages are brought to where the kernel could send them; /dev/null then drops them.

use std::fs::File;
use std::os::fd::OwnedFd;

use iowhy_core::problem::Problem;
use iowhy_core::workload::{Method, Workload};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::SpliceFlags;

use crate::access::{Blocking, Failure, Perform, Request};
use crate::hot_loop::HotAccess;
use crate::target::{OpenMode, Target};

/// Opens the target for the workload's method.
///
/// # Errors
/// Says what the kernel refuses: a pipe, or sending to /dev/null; passes on what opening the target says.
pub fn open(workload: &Workload, target: &Target) -> Result<Box<dyn HotAccess>, Problem> {
    let fd = target.open(OpenMode::default())?;
    Ok(if workload.method == Method::Sendfile {
        Box::new(Blocking::new(Sendfile::new(fd)?))
    } else {
        Box::new(Blocking::new(Splice::new(fd, workload.block_bytes)?))
    })
}

fn open_null() -> Result<OwnedFd, Problem> {
    let null = File::options().write(true).open("/dev/null");
    Ok(null.map_err(|error| Problem::failed(format!("cannot open `/dev/null`: {error}")))?.into())
}

/// sendfile(2) to /dev/null, repeated until the request is done.
#[derive(Debug)]
pub struct Sendfile {
    fd: OwnedFd,
    null: OwnedFd,
}

impl Sendfile {
    /// Tries first, with a page of our own, whether this kernel sends to /dev/null.
    ///
    /// # Errors
    /// Says that it does not, or that /dev/null cannot be opened.
    pub fn new(fd: OwnedFd) -> Result<Self, Problem> {
        let null = open_null()?;
        try_sendfile(&null).map_err(|errno| {
            let cause = std::io::Error::from(errno);
            Problem::refused(format!("this kernel does not sendfile(2) to `/dev/null`: {cause}"))
                .hint("use `--method splice`")
        })?;
        Ok(Sendfile { fd, null })
    }
}

/// Sends one byte of memory to `out`.
fn try_sendfile(out: &OwnedFd) -> Result<(), Errno> {
    let memory = rustix::fs::memfd_create("iowhy-sendfile", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::io::pwrite(&memory, &[0], 0)?;
    retry_on_intr(|| rustix::fs::sendfile(out, &memory, Some(&mut 0), 1)).map(drop)
}

impl Perform for Sendfile {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        let mut at = request.offset;
        let mut moved = 0;
        while moved < request.bytes {
            let rest = request.bytes - moved;
            let bytes = retry_on_intr(|| rustix::fs::sendfile(&self.null, &self.fd, Some(&mut at), rest))
                .map_err(Failure::io("sendfile", request.offset))?;
            if bytes == 0 {
                break;
            }
            moved += bytes;
        }
        Ok(moved)
    }

    fn data(&self) -> Option<&[u8]> {
        None
    }
}

/// splice(2) from the file into a pipe and from the pipe to /dev/null, repeated until the request is done.
#[derive(Debug)]
pub struct Splice {
    fd: OwnedFd,
    pipe_out: OwnedFd,
    pipe_in: OwnedFd,
    null: OwnedFd,
    dropped: Vec<String>,
}

impl Splice {
    /// Makes a pipe that holds a whole request, or as much of one as this user may have.
    ///
    /// # Errors
    /// Fails when there is no pipe to be had, or no /dev/null.
    pub fn new(fd: OwnedFd, block_bytes: u64) -> Result<Self, Problem> {
        let (pipe_out, pipe_in) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|errno| {
                Problem::failed(format!("cannot make a pipe for splice(2): {}", std::io::Error::from(errno)))
            })?;
        let dropped = enlarge(&pipe_in, block_bytes).into_iter().collect();
        Ok(Splice { fd, pipe_out, pipe_in, null: open_null()?, dropped })
    }

    /// Empties the pipe of `bytes` bytes.
    fn drain(&self, mut bytes: usize, offset: u64) -> Result<(), Failure> {
        while bytes > 0 {
            let gone = retry_on_intr(|| {
                rustix::pipe::splice(&self.pipe_out, None, &self.null, None, bytes, SpliceFlags::MOVE)
            })
            .map_err(Failure::io("splice to /dev/null", offset))?;
            if gone == 0 {
                return Err(Failure::Io { call: "splice to /dev/null", offset, errno: Errno::IO });
            }
            bytes -= gone;
        }
        Ok(())
    }
}

/// Enlarges the pipe to hold `bytes`; where the limit forbids that, to the largest half, quarter, ... that it
/// allows. Says so then, because each request needs several rounds.
fn enlarge(pipe: &OwnedFd, bytes: u64) -> Option<String> {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    let present = rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(0);
    let mut size = wanted.min(1 << 30);
    let mut refused = None;
    while size > present {
        match rustix::pipe::fcntl_setpipe_size(pipe, size) {
            Ok(_) => break,
            Err(errno) => refused = Some(errno),
        }
        size /= 2;
    }
    let held = rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(present);
    (held < wanted).then(|| {
        let cause = refused.map_or(String::new(), |errno| format!(" ({})", std::io::Error::from(errno)));
        format!("F_SETPIPE_SZ {wanted}: the pipe holds {held} bytes{cause}; see /proc/sys/fs/pipe-max-size")
    })
}

impl Perform for Splice {
    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        let mut at = request.offset;
        let mut moved = 0;
        while moved < request.bytes {
            let rest = request.bytes - moved;
            let bytes = retry_on_intr(|| {
                rustix::pipe::splice(&self.fd, Some(&mut at), &self.pipe_in, None, rest, SpliceFlags::MOVE)
            })
            .map_err(Failure::io("splice", request.offset))?;
            if bytes == 0 {
                break;
            }
            self.drain(bytes, request.offset)?;
            moved += bytes;
        }
        Ok(moved)
    }

    fn data(&self) -> Option<&[u8]> {
        None
    }

    fn dropped(&self) -> &[String] {
        &self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 3_000_001;

    fn file() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![5; LENGTH]).unwrap();
        file
    }

    fn moves_all(mut method: impl Perform) {
        for (offset, bytes, expected) in [
            (0, 4096, 4096),
            (1_000_000, 2_000_000, 2_000_000),
            (0, LENGTH + 5, LENGTH),
            (LENGTH - 1, 4096, 1),
            (LENGTH, 4096, 0),
            (77, 0, 0),
        ] {
            assert_eq!(method.perform(Request { offset: offset as u64, bytes, write: false }), Ok(expected));
            assert!(method.data().is_none());
        }
    }

    #[test]
    fn requests_larger_than_the_pipe_are_moved_whole_and_end_with_the_file() {
        let file = file();
        moves_all(Splice::new(File::open(file.path()).unwrap().into(), 1 << 20).unwrap());
        moves_all(Splice::new(File::open(file.path()).unwrap().into(), 1).unwrap());
        match Sendfile::new(File::open(file.path()).unwrap().into()) {
            Ok(method) => moves_all(method),
            Err(problem) => eprintln!("skipped: {problem}"),
        }
    }

    #[test]
    fn a_pipe_smaller_than_the_request_is_reported() {
        let fd = || File::open("/dev/zero").unwrap().into();
        assert!(Splice::new(fd(), 4096).unwrap().dropped().is_empty());
        let huge = Splice::new(fd(), 1 << 40).unwrap();
        assert!(matches!(huge.dropped(), [one] if one.contains("pipe-max-size")), "{:?}", huge.dropped());
    }

    #[test]
    fn a_descriptor_that_cannot_be_read_fails_under_the_name_of_the_call() {
        let file = file();
        let write_only = File::options().write(true).open(file.path()).unwrap();
        let mut splice = Splice::new(write_only.into(), 4096).unwrap();
        let failure = splice.perform(Request { offset: 512, bytes: 4096, write: false }).unwrap_err();
        assert_eq!(failure, Failure::Io { call: "splice", offset: 512, errno: Errno::BADF });
    }

    #[test]
    fn sending_to_a_reader_is_refused_by_the_trial() {
        let read_only: OwnedFd = File::open("/dev/null").unwrap().into();
        assert_eq!(try_sendfile(&read_only), Err(Errno::BADF));
    }
}
