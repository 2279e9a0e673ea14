//! One thread: its state and its exact times.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::process::schedstat::{self, Schedstat};

use crate::reader::Reader;

/// What `/proc/PID/task/TID/stat` says (proc_pid_stat(5)). Ticks are those of [`tick_ns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// `R` running or runnable, `S` asleep, `D` asleep and not to be woken by signals, `Z` zombie, `T` stopped, `t`
    /// traced, `I` idle kernel thread, `X` dead.
    pub state: char,
    /// The parent process.
    pub parent: u32,
    /// Page faults that needed no device.
    pub minor_faults: u64,
    /// Page faults that waited for a device.
    pub major_faults: u64,
    /// The same two of children that it has waited for, with what those had waited for.
    pub waited_minor_faults: u64,
    /// Page faults of those children that waited for a device.
    pub waited_major_faults: u64,
    /// CPU time in user mode, in ticks.
    pub user_ticks: u64,
    /// CPU time in the kernel, in ticks.
    pub system_ticks: u64,
    /// CPU time in user mode of the children that it has waited for, in ticks.
    pub waited_user_ticks: u64,
    /// CPU time of those children in the kernel, in ticks.
    pub waited_system_ticks: u64,
    /// Threads of its process.
    pub threads: u64,
    /// When it started, in ticks since boot. With the number of the thread it is an identity that is not reused.
    pub start_ticks: u64,
    /// The CPU it ran on last.
    pub processor: Option<u32>,
    /// Time that it waited for block devices, in ticks. Counts only while `kernel.task_delayacct` is 1, and only sleeps
    /// that the kernel calls I/O: waits for a journal commit or a lock are not among them.
    pub block_wait_ticks: Option<u64>,
}

/// Reads the text of a `stat` file: the name and the rest. The name is up to 15 bytes of anything, blanks, parentheses
/// and newlines included, and ends at the last parenthesis.
pub fn parse_stat(text: &[u8]) -> Option<(&[u8], Stat)> {
    let open = text.iter().position(|&byte| byte == b'(')?;
    let close = text.iter().rposition(|&byte| byte == b')')?;
    let name = text.get(open + 1..close)?;
    let mut fields = std::str::from_utf8(text.get(close + 1..)?).ok()?.split_ascii_whitespace();
    let mut state = fields.next()?.chars();
    // Fields are counted from 1 as in the manual: the state is field 3, the parent is next.
    let mut next = 4;
    let mut field = |number: usize| {
        let found = fields.nth(number - next);
        next = number + 1;
        found
    };
    // Kernel threads and processes from another PID name space have 0 here; nothing has a negative parent.
    let parent = field(4)?.parse().ok()?;
    let mut count = |number| field(number)?.parse::<u64>().ok();
    let stat = Stat {
        state: state.next()?,
        parent,
        minor_faults: count(10)?,
        waited_minor_faults: count(11)?,
        major_faults: count(12)?,
        waited_major_faults: count(13)?,
        user_ticks: count(14)?,
        system_ticks: count(15)?,
        waited_user_ticks: count(16)?,
        waited_system_ticks: count(17)?,
        threads: count(20)?,
        start_ticks: count(22)?,
        processor: count(39).and_then(|cpu| u32::try_from(cpu).ok()),
        block_wait_ticks: count(42),
    };
    Some((name, stat))
}

/// Times of a thread, and how often it got a CPU; `None` when it is gone or the kernel keeps no such counts.
pub fn schedstat(reader: &mut Reader, pid: u32, tid: u32) -> Option<Schedstat> {
    schedstat::parse(reader.text(format_args!("/proc/{pid}/task/{tid}/schedstat"))?)
}

/// State and ticks of a thread.
pub fn stat(reader: &mut Reader, pid: u32, tid: u32) -> Option<Stat> {
    Some(parse_stat(reader.read(format_args!("/proc/{pid}/task/{tid}/stat"))?)?.1)
}

/// State and ticks of a process: its threads together, those that have ended included.
pub fn process_stat(reader: &mut Reader, pid: u32) -> Option<Stat> {
    Some(parse_stat(reader.read(format_args!("/proc/{pid}/stat"))?)?.1)
}

/// Name of a thread; bytes that are not UTF-8 are replaced.
pub fn name(reader: &mut Reader, pid: u32, tid: u32) -> Option<String> {
    let text = reader.read(format_args!("/proc/{pid}/task/{tid}/comm"))?;
    Some(String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(text)).into_owned())
}

/// Characters of a command line that name it; longer ones are cut.
const MAX_COMMAND: usize = 200;

/// Command line of a process, arguments separated by blanks and cut to 200 characters; `None` for kernel threads,
/// zombies, and where it is not for us to see.
pub fn command_line(reader: &mut Reader, pid: u32) -> Option<String> {
    let text = reader.read(format_args!("/proc/{pid}/cmdline"))?;
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    let blanks: Vec<u8> = text.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    let words = String::from_utf8_lossy(&blanks);
    let cut = words.char_indices().nth(MAX_COMMAND).map(|(at, _)| format!("{}...", &words[..at]));
    Some(cut.unwrap_or_else(|| words.into_owned())).filter(|words| !words.is_empty())
}

/// Path of the program that a process executes; `None` for kernel threads, zombies, and where it is not for us to see.
/// The file may be gone: the kernel then adds ` (deleted)`.
pub fn program(pid: u32) -> Option<String> {
    Some(std::fs::read_link(format!("/proc/{pid}/exe")).ok()?.to_string_lossy().into_owned())
}

/// The directory that a process is in, where that path leads us to the same one: in another name space it may not.
pub fn directory(pid: u32) -> Option<String> {
    let link = format!("/proc/{pid}/cwd");
    let path = std::fs::read_link(&link).ok()?;
    let identity = |path: &Path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let same = identity(&path)? == identity(Path::new(&link))?;
    if same { path.into_os_string().into_string().ok() } else { None }
}

/// A thread whose files are held open for repeated reading: 0.4 us for the times of a thread where opening, reading and
/// closing the file takes 4.4 us (2 virtual CPUs, Linux 6.18).
#[derive(Debug)]
pub struct HeldThread {
    schedstat: Option<OwnedFd>,
    stat: OwnedFd,
}

impl HeldThread {
    /// Opens them; `None` when the thread is gone.
    pub fn open(reader: &mut Reader, pid: u32, tid: u32) -> Option<HeldThread> {
        Some(HeldThread {
            schedstat: reader.open(format_args!("/proc/{pid}/task/{tid}/schedstat")),
            stat: reader.open(format_args!("/proc/{pid}/task/{tid}/stat"))?,
        })
    }

    /// Its times; `None` when it is gone or the kernel keeps no such counts.
    pub fn schedstat(&self, reader: &mut Reader) -> Option<Schedstat> {
        schedstat::parse(std::str::from_utf8(reader.read_held(self.schedstat.as_ref()?)?).ok()?)
    }

    /// Its state; `None` when it is gone.
    pub fn stat(&self, reader: &mut Reader) -> Option<Stat> {
        Some(parse_stat(reader.read_held(&self.stat)?)?.1)
    }
}

/// Length of a tick of `stat` files in nanoseconds: 10 ms nearly everywhere.
pub fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REST: &str = "S 12166 12166 8717 0 -1 4194304 104 7 9 8 11 12 13 14 20 0 3 0 136800 3133440 416 \
        18446744073709551615 94090590433280 94090590453161 140726948515536 0 0 0 0 0 0 0 0 0 17 1 0 0 42 0 0 0\n";

    #[test]
    fn a_real_line_is_read_whatever_the_name() {
        for name in ["cat", "a b", ") R 1 (", "\n)", "((", "", "\u{e4}"] {
            let line = format!("12186 ({name}) {REST}");
            let (seen, stat) = parse_stat(line.as_bytes()).unwrap();
            assert_eq!(seen, name.as_bytes());
            assert_eq!(
                stat,
                Stat {
                    state: 'S',
                    parent: 12166,
                    minor_faults: 104,
                    waited_minor_faults: 7,
                    major_faults: 9,
                    waited_major_faults: 8,
                    user_ticks: 11,
                    system_ticks: 12,
                    waited_user_ticks: 13,
                    waited_system_ticks: 14,
                    threads: 3,
                    start_ticks: 136_800,
                    processor: Some(1),
                    block_wait_ticks: Some(42),
                }
            );
        }
        let not_text = [b"1 (\xff\xfe) ", REST.as_bytes()].concat();
        assert_eq!(parse_stat(&not_text).unwrap().0, b"\xff\xfe");
    }

    #[test]
    fn a_line_that_is_cut_has_what_it_has_or_nothing() {
        let old = REST.split_whitespace().take(30).collect::<Vec<_>>().join(" ");
        let stat = parse_stat(format!("1 (x) {old}").as_bytes()).unwrap().1;
        assert_eq!((stat.start_ticks, stat.processor, stat.block_wait_ticks), (136_800, None, None));
        for broken in ["", "1", "1 (x", "1 x)", "1 )x(", "1 (x)", "1 (x) S", "1 (x) S y"] {
            assert_eq!(parse_stat(broken.as_bytes()), None, "{broken:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(text in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..300) {
            let _ = parse_stat(&text);
            let whole = format!("1 (x) {REST}");
            if let Some((name, _)) = parse_stat(&whole.as_bytes()[..cut.min(whole.len())]) {
                prop_assert_eq!(name, b"x");
            }
        }
    }

    #[test]
    fn this_thread_runs_and_its_time_grows() {
        let (pid, mut reader) = (std::process::id(), Reader::new());
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let held = HeldThread::open(&mut reader, pid, tid).unwrap();
        assert_eq!(held.stat(&mut reader).unwrap().state, 'R');
        assert_eq!(stat(&mut reader, pid, tid).unwrap().parent, std::os::unix::process::parent_id());
        assert!(process_stat(&mut reader, pid).unwrap().threads >= 1);
        assert!(program(pid).is_some() && name(&mut reader, pid, tid).is_some());
        let command = command_line(&mut reader, pid).unwrap();
        assert!(command.starts_with(&std::env::args().next().unwrap()[..10]), "{command}");
        assert!(!command.contains('\0') && command.chars().count() <= MAX_COMMAND + 3);
        assert_eq!(command_line(&mut reader, u32::MAX), None);
        let Some(before) = schedstat(&mut reader, pid, tid) else {
            eprintln!("skipped: the kernel keeps no schedstat");
            return;
        };
        std::thread::sleep(std::time::Duration::from_millis(2));
        let after = held.schedstat(&mut reader).unwrap();
        assert!(after.slices > before.slices && after.running_ns > before.running_ns, "{before:?} {after:?}");
    }

    #[test]
    fn the_directory_of_this_process_is_known_and_of_none_it_is_not() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(directory(std::process::id()).map(std::path::PathBuf::from), Some(here));
        assert_eq!(directory(u32::MAX), None);
    }

    #[test]
    fn a_thread_that_is_not_there_has_nothing() {
        let mut reader = Reader::new();
        assert_eq!(stat(&mut reader, u32::MAX, u32::MAX), None);
        assert_eq!(schedstat(&mut reader, 0, 0), None);
        assert!(HeldThread::open(&mut reader, u32::MAX, 1).is_none());
        assert!(tick_ns() > 0);
    }
}
