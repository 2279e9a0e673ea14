//! The device mapper by its ioctl interface (`include/uapi/linux/dm-ioctl.h`): making a mapped device, changing its table while
//! it is in use, and reading it.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::sys::{self, iowr};

const CONTROL: &str = "/dev/mapper/control";
const HEADER_BYTES: usize = 312;
const TARGET_BYTES: usize = 40;
const BUFFER_BYTES: usize = 16 << 10;

const DEV_CREATE: u8 = 3;
const DEV_SUSPEND: u8 = 6;
const TABLE_LOAD: u8 = 9;
const TABLE_STATUS: u8 = 12;

const SUSPEND_FLAG: u32 = 1 << 1;
const STATUS_TABLE_FLAG: u32 = 1 << 4;
const NO_FLUSH_FLAG: u32 = 1 << 11;
/// The UUID follows the name.
const UUID: std::ops::Range<usize> = 176..304;
/// A table is looked at this often.
const LOOKS_EVERY: Duration = Duration::from_millis(5);

/// Makes a device from lines `START LENGTH TYPE PARAMETERS` (sectors), and a link `/dev/NAME` to it. It has no UUID where that
/// is empty.
///
/// # Errors
/// The kernel's, with the request.
pub(crate) fn create(name: &str, uuid: &str, table: &[String]) -> Result<(), String> {
    let control = open()?;
    let mut made = Request::new(name, 0, 0)?;
    let room = made.bytes[UUID].get_mut(..uuid.len()).ok_or("the UUID is too long")?;
    room.copy_from_slice(uuid.as_bytes());
    made.send(&control, DEV_CREATE, "DM_DEV_CREATE")?;
    load(&control, name, table)?;
    Request::new(name, 0, 0)?.send(&control, DEV_SUSPEND, "DM_DEV_SUSPEND")?;
    let device = u64::from_le_bytes(made.bytes[40..48].try_into().unwrap_or_default());
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    std::os::unix::fs::symlink(format!("/dev/dm-{minor}"), format!("/dev/{name}"))
        .map_err(|e| format!("cannot link /dev/{name}: {e}"))
}

/// Gives a device another table; requests under way are finished by the old one.
///
/// # Errors
/// The kernel's, with the request.
pub(crate) fn reload(name: &str, table: &[String]) -> Result<(), String> {
    let control = open()?;
    load(&control, name, table)?;
    Request::new(name, 0, SUSPEND_FLAG | NO_FLUSH_FLAG)?.send(&control, DEV_SUSPEND, "suspending")?;
    Request::new(name, 0, 0)?.send(&control, DEV_SUSPEND, "resuming")
}

/// The first target of the live table: its type and parameters.
///
/// # Errors
/// The kernel's, with the request.
pub(crate) fn table(name: &str) -> Result<String, String> {
    let mut request = Request::new(name, 0, STATUS_TABLE_FLAG | NO_FLUSH_FLAG)?;
    request.send(&open()?, TABLE_STATUS, "DM_TABLE_STATUS")?;
    let text = |at: usize| {
        let bytes = request.bytes.get(at..).unwrap_or_default();
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    };
    Ok(format!("{} {}", text(HEADER_BYTES + 24), text(HEADER_BYTES + TARGET_BYTES)))
}

/// A thread that looks at a table again and again, and counts how often it had a word.
pub(crate) struct Looks {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Result<[u64; 2], String>>,
}

impl Looks {
    /// Begins.
    pub(crate) fn begin(name: &str, word: &str) -> Looks {
        let ends = Arc::new(AtomicBool::new(false));
        let (end, name, word) = (Arc::clone(&ends), name.to_owned(), word.to_owned());
        let thread = std::thread::spawn(move || {
            let mut counts = [0, 0];
            while !end.load(Ordering::Relaxed) {
                let has = table(&name)?.split(' ').any(|one| one == word);
                counts[usize::from(has)] += 1;
                std::thread::sleep(LOOKS_EVERY);
            }
            Ok(counts)
        });
        Looks { ends, thread }
    }

    /// Ends; looks without the word, and with it.
    ///
    /// # Errors
    /// The kernel's, with the request.
    pub(crate) fn end(self) -> Result<[u64; 2], String> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "looking at the table panicked".to_owned())?
    }
}

fn open() -> Result<File, String> {
    File::options().read(true).write(true).open(CONTROL).map_err(|e| format!("cannot open {CONTROL}: {e}"))
}

fn load(control: &File, name: &str, table: &[String]) -> Result<(), String> {
    let mut request = Request::new(name, table.len() as u32, 0)?;
    let mut at = HEADER_BYTES;
    for line in table {
        at = request.target(at, line)?;
    }
    request.send(control, TABLE_LOAD, "DM_TABLE_LOAD")
}

/// A request: the header and the table behind it.
struct Request {
    bytes: Vec<u8>,
}

impl Request {
    fn new(name: &str, targets: u32, flags: u32) -> Result<Request, String> {
        let mut bytes = vec![0; BUFFER_BYTES];
        // Interface version 4.0.0, size of the buffer, start of the data, number of targets.
        for (at, value) in
            [(0, 4), (12, BUFFER_BYTES as u32), (16, HEADER_BYTES as u32), (20, targets), (28, flags)]
        {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        // The name has 128 bytes with its zero.
        let room = bytes.get_mut(48..48 + name.len()).filter(|_| name.len() < 128);
        room.ok_or("the name is too long")?.copy_from_slice(name.as_bytes());
        Ok(Request { bytes })
    }

    /// Adds one target; returns where the next one goes.
    fn target(&mut self, at: usize, line: &str) -> Result<usize, String> {
        let wrong = || format!("`{line}` is not START LENGTH TYPE PARAMETERS");
        let mut words = line.splitn(4, ' ');
        let mut number = || words.next().and_then(|w| w.parse::<u64>().ok()).ok_or_else(wrong);
        let (start, length) = (number()?, number()?);
        let kind = words.next().filter(|kind| kind.len() < 16).ok_or_else(wrong)?;
        let parameters = words.next().unwrap_or("");
        let next = (TARGET_BYTES + parameters.len() + 1).next_multiple_of(8);
        let room = self.bytes.get_mut(at..at + next).ok_or("the table is too long")?;
        room[..8].copy_from_slice(&start.to_le_bytes());
        room[8..16].copy_from_slice(&length.to_le_bytes());
        room[20..24].copy_from_slice(&(next as u32).to_le_bytes());
        room[24..24 + kind.len()].copy_from_slice(kind.as_bytes());
        room[TARGET_BYTES..TARGET_BYTES + parameters.len()].copy_from_slice(parameters.as_bytes());
        Ok(at + next)
    }

    fn send(&mut self, control: &File, number: u8, what: &str) -> Result<(), String> {
        sys::ioctl(control, iowr(0xfd, number, HEADER_BYTES), self.bytes.as_mut_slice())
            .map_err(|e| format!("{what}: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_follow_each_other_on_multiples_of_eight() {
        let mut request = Request::new("lab", 2, 0).unwrap();
        let second = request.target(HEADER_BYTES, "0 8 linear /dev/a 0").unwrap();
        assert_eq!(second % 8, 0);
        assert_eq!(&request.bytes[48..52], b"lab\0");
        assert_eq!(request.bytes[HEADER_BYTES + 8], 8);
        assert_eq!(&request.bytes[HEADER_BYTES + 24..HEADER_BYTES + 31], b"linear\0");
        assert_eq!(&request.bytes[HEADER_BYTES + 40..HEADER_BYTES + 49], b"/dev/a 0\0");
        assert_eq!(usize::from(request.bytes[HEADER_BYTES + 20]), second - HEADER_BYTES);
        assert!(request.target(second, "0 x linear").is_err());
        assert!(request.target(second, "0 8").is_err());
        assert!(request.target(BUFFER_BYTES - 8, "0 8 error").is_err());
        assert!(Request::new(&"n".repeat(200), 0, 0).is_err());
    }
}
