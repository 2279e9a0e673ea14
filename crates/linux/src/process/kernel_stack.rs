//! The kernel stack of a sleeping thread, or the function that it waits in, read from outside many times a second. Nothing
//! is claimed about a thread that ran meanwhile.
//! Cost of one look, measured on 2 virtual CPUs with Linux 6.18: 10 to 18 us with held files, of which the stack takes 8;
//! 20 to 35 us when the files are opened each time; 9 to 18 us without stacks.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use crate::process::schedstat;

use crate::process::task::parse_stat;
use crate::reader::Reader;
use crate::syscalls;

/// What was seen of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Its state as in [`crate::process::task::Stat::state`]; `R` is running or runnable.
    pub state: char,
    /// Kernel functions, innermost first, without suffixes such as `.isra.0`. Where stacks are forbidden: the function
    /// that it waits in, and `__x64_sys_NAME` (on every machine in this spelling) for the system call that it is in,
    /// each if it is known. Empty when it runs, has ended, or nothing may be seen.
    pub frames: Vec<String>,
}

/// Looks at threads. Holds the files of those it looks at open.
#[derive(Debug, Default)]
pub struct StackReader {
    reader: Reader,
    held: HashMap<(u32, u32), Held>,
}

/// Threads whose files are held open, five descriptors each at most: a process may have 1024.
const MAX_HELD: usize = 96;
/// Times that a look is taken again because the thread ran meanwhile; then it is called running.
const ATTEMPTS: u32 = 3;

/// Files of one thread. What could not be opened, or refused to be read, is `None` and not tried again.
#[derive(Debug)]
struct Held {
    stat: OwnedFd,
    schedstat: Option<OwnedFd>,
    stack: Option<OwnedFd>,
    wait: Option<Wait>,
}

/// The way without stacks.
#[derive(Debug)]
struct Wait {
    function: Option<OwnedFd>,
    call: Option<OwnedFd>,
}

impl StackReader {
    /// Holds nothing yet.
    pub fn new() -> StackReader {
        StackReader::default()
    }

    /// What the thread does now; `None` when it is gone.
    pub fn look(&mut self, pid: u32, tid: u32) -> Option<Look> {
        let mut look = Look::default();
        self.look_into(pid, tid, &mut look).then_some(look)
    }

    /// As [`StackReader::look`], into a value whose memory is used again. False when the thread is gone; the value then
    /// says nothing.
    fn look_into(&mut self, pid: u32, tid: u32, look: &mut Look) -> bool {
        // A number that was reused belongs to another thread: the held files then read nothing, new ones do.
        (0..2).any(|_| self.try_look(pid, tid, look).is_some())
    }

    /// Closes the files of a thread that has ended. Not needed for truth, only for room.
    pub fn forget(&mut self, pid: u32, tid: u32) {
        self.held.remove(&(pid, tid));
    }

    fn try_look(&mut self, pid: u32, tid: u32, look: &mut Look) -> Option<()> {
        let key = (pid, tid);
        let mut held = match self.held.remove(&key) {
            Some(held) => held,
            None => Held::open(&mut self.reader, pid, tid)?,
        };
        let mut frames = Frames { all: &mut look.frames, used: 0 };
        for _ in 0..ATTEMPTS {
            frames.used = 0;
            let slices = held.slices(&mut self.reader);
            look.state = held.state(&mut self.reader)?;
            if !sleeps(look.state) {
                break;
            }
            held.frames(&mut self.reader, pid, tid, &mut frames);
            if held.slept_since(&mut self.reader, slices)? {
                break;
            }
            // What was read of a thread that woke meanwhile may be a mixture.
            look.state = 'R';
            frames.used = 0;
        }
        let used = frames.used;
        look.frames.truncate(used);
        if self.held.len() >= MAX_HELD {
            self.held.clear();
        }
        self.held.insert(key, held);
        Some(())
    }
}

/// Whether a thread in this state has a kernel stack that stands still.
fn sleeps(state: char) -> bool {
    !matches!(state, 'R' | 'Z' | 'X' | 'x')
}

impl Held {
    fn open(reader: &mut Reader, pid: u32, tid: u32) -> Option<Held> {
        Some(Held {
            stat: reader.open(format_args!("/proc/{pid}/task/{tid}/stat"))?,
            schedstat: reader.open(format_args!("/proc/{pid}/task/{tid}/schedstat")),
            stack: reader.open(format_args!("/proc/{pid}/task/{tid}/stack")),
            wait: None,
        })
    }

    fn state(&self, reader: &mut Reader) -> Option<char> {
        Some(parse_stat(reader.read_held(&self.stat)?)?.1.state)
    }

    /// How often it has got a CPU; `None` where the kernel does not count that (it then writes zeros).
    fn slices(&self, reader: &mut Reader) -> Option<u64> {
        let text = std::str::from_utf8(reader.read_held(self.schedstat.as_ref()?)?).ok()?;
        Some(schedstat::parse(text)?.slices).filter(|slices| *slices > 0)
    }

    /// Whether it did not get a CPU since the earlier count, or as a weaker proof is still asleep; `None`: it is gone.
    fn slept_since(&self, reader: &mut Reader, slices: Option<u64>) -> Option<bool> {
        match (slices, self.slices(reader)) {
            (Some(before), Some(now)) => Some(before == now),
            _ => self.state(reader).map(sleeps),
        }
    }

    fn frames(&mut self, reader: &mut Reader, pid: u32, tid: u32, frames: &mut Frames<'_>) {
        if let Some(stack) = &self.stack {
            match reader.read_held(stack) {
                // The owner may open it, but only the mighty may read it.
                None => self.stack = None,
                Some(text) => text
                    .split(|&byte| byte == b'\n')
                    .filter_map(stack_frame)
                    .for_each(|f| frames.push_frame(f)),
            }
        }
        if frames.used == 0 {
            let wait = self.wait.get_or_insert_with(|| Wait::open(reader, pid, tid));
            wait.frames(reader, frames);
        }
    }
}

impl Wait {
    fn open(reader: &mut Reader, pid: u32, tid: u32) -> Wait {
        Wait {
            function: reader.open(format_args!("/proc/{pid}/task/{tid}/wchan")),
            call: reader.open(format_args!("/proc/{pid}/task/{tid}/syscall")),
        }
    }

    fn frames(&mut self, reader: &mut Reader, frames: &mut Frames<'_>) {
        if let Some(function) = &self.function {
            match reader.read_held(function) {
                None => self.function = None,
                Some(text) => {
                    if let Some(name) = wait_function(text) {
                        frames.push(name);
                    }
                }
            }
        }
        if let Some(call) = &self.call {
            match reader.read_held(call) {
                None => self.call = None,
                Some(text) => {
                    if let Some(name) = call_number(text).and_then(syscalls::name) {
                        frames.push_parts("__x64_sys_", name);
                    }
                }
            }
        }
    }
}

/// Frames written over those of the last look.
struct Frames<'a> {
    all: &'a mut Vec<String>,
    used: usize,
}

impl Frames<'_> {
    fn push(&mut self, name: &str) {
        self.push_parts(name, "");
    }

    /// A function, with its module in the kernel's way: `xfs_log_force [xfs]`.
    fn push_frame(&mut self, (name, module): (&str, Option<&str>)) {
        self.push_parts(name, "");
        if let (Some(module), Some(frame)) = (module, self.all.get_mut(self.used - 1)) {
            frame.push(' ');
            frame.push_str(module);
        }
    }

    fn push_parts(&mut self, first: &str, second: &str) {
        if self.used == self.all.len() {
            self.all.push(String::new());
        }
        let frame = &mut self.all[self.used];
        frame.clear();
        frame.push_str(first);
        frame.push_str(second);
        self.used += 1;
    }
}

/// One line of a `stack` file: `[<0>] folio_wait_bit_common+0x12d/0x2f0 [module]`: the function, and the module in its
/// brackets. `None` for a line that names no function (an address, the end mark of old kernels).
fn stack_frame(line: &[u8]) -> Option<(&str, Option<&str>)> {
    let line = std::str::from_utf8(line).ok()?;
    let (_address, rest) = line.split_once("] ")?;
    let mut words = rest.split_ascii_whitespace();
    let symbol = words.next()?;
    let module = words.next().filter(|word| word.starts_with('[') && word.ends_with(']'));
    let name = symbol.split_once('+').map_or(symbol, |(name, _)| name);
    let named = (!name.starts_with("0x")).then(|| bare_name(name)).filter(|name| !name.is_empty());
    named.map(|name| (name, module))
}

/// The text of `wchan`: a function, or `0` when the thread runs or may not be looked at.
fn wait_function(text: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(text).ok()?.trim();
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    named.then(|| bare_name(name))
}

/// The number in the text of `syscall`: `running`; `-1 SP PC` outside of any call; or the number, six arguments, stack
/// pointer and program counter (proc_pid_syscall(5)).
///
/// A 32-bit program has other numbers: it shows by a stack below 4 GiB, where no 64-bit program of this kernel has one.
fn call_number(text: &[u8]) -> Option<i64> {
    let mut fields = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let number: i64 = fields.next()?.parse().ok()?;
    let stack = u64::from_str_radix(fields.nth(6)?.strip_prefix("0x")?, 16).ok()?;
    let foreign = cfg!(target_pointer_width = "64") && stack <= u64::from(u32::MAX);
    (number >= 0 && !foreign).then_some(number)
}

/// A name without what compilers add (`.isra.0`, `.constprop.0`, `.part.1`, `.cold`, `.llvm.123`).
fn bare_name(name: &str) -> &str {
    match name.find('.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_stacks_give_bare_names() {
        for (line, expected) in [
            ("[<0>] hrtimer_nanosleep+0x74/0xf0", Some(("hrtimer_nanosleep", None))),
            ("[<0>] xfs_log_force.part.0+0x1/0x2 [xfs]", Some(("xfs_log_force", Some("[xfs]")))),
            ("[<ffffffff8123>] __mutex_lock.constprop.0+0x1/0x2", Some(("__mutex_lock", None))),
            ("[<0>] 0xffffffffc0123456", None),
            ("[<ffffffffffffffff>] 0xffffffffffffffff", None),
            ("[<0>] ", None),
            ("", None),
        ] {
            assert_eq!(stack_frame(line.as_bytes()), expected, "{line:?}");
        }
    }

    #[test]
    fn the_way_without_stacks_reads_a_function_and_a_call() {
        assert_eq!(wait_function(b"hrtimer_nanosleep"), Some("hrtimer_nanosleep"));
        assert_eq!(wait_function(b"do_wait.isra.0\n"), Some("do_wait"));
        assert_eq!((wait_function(b"0"), wait_function(b""), wait_function(b"\xff")), (None, None, None));
        let call = "230 0x0 0x0 0x7ffdbddf2db0 0x7ffdbddf2df0 0x0 0x0 0x7ffdbddf2d98 0x7f148f9e9503\n";
        assert_eq!(call_number(call.as_bytes()), Some(230));
        let of_32_bits = "3 0x0 0x0 0xffdf2db0 0xffdf2df0 0x0 0x0 0xffdf2d98 0xf7fe9503\n";
        assert_eq!(call_number(of_32_bits.as_bytes()).is_none(), cfg!(target_pointer_width = "64"));
        for none in ["running\n", "-1 0x7ffdbddf2d98 0x7f148f9e9503\n", "", "230", "x y"] {
            assert_eq!(call_number(none.as_bytes()), None, "{none:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (stack_frame(&text), wait_function(&text), call_number(&text));
        }

        #[test]
        fn memory_that_is_used_again_shows_nothing_old(names in prop::collection::vec("[a-z]{1,9}", 0..6)) {
            let mut old: Vec<String> = ["left", "over", "from", "before"].map(str::to_owned).to_vec();
            let mut frames = Frames { all: &mut old, used: 0 };
            names.iter().for_each(|name| frames.push(name));
            let used = frames.used;
            old.truncate(used);
            prop_assert_eq!(old, names);
        }
    }

    /// A child that sleeps, killed when it is no longer needed.
    struct Sleeper(Child);

    impl Sleeper {
        /// Starts it, and waits until it is asleep, or seems to be where nothing is shown.
        fn start(reader: &mut StackReader) -> (Sleeper, Look) {
            let child = Sleeper(Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap());
            loop {
                let look = reader.look(child.id(), child.id()).unwrap();
                let asleep = look.frames.iter().any(|frame| frame.contains("nanosleep"));
                if asleep || (look.state == 'S' && look.frames.is_empty()) {
                    return (child, look);
                }
                std::thread::yield_now();
            }
        }

        fn id(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_sleeping_child_is_seen_asleep_and_this_thread_running() {
        let mut reader = StackReader::new();
        let (child, look) = Sleeper::start(&mut reader);
        let id = child.id();
        drop(child);
        assert_eq!(reader.look(id, id), None, "gone");
        assert!(reader.held.is_empty());
        if look.frames.is_empty() {
            eprintln!("skipped: the kernel shows neither stacks nor wait functions here");
        } else {
            assert!(look.frames.iter().any(|f| f == "__x64_sys_clock_nanosleep" || f == "hrtimer_nanosleep"));
        }
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(
            reader.look(std::process::id(), me),
            Some(Look { state: 'R', frames: vec![] }),
            "who looks, runs"
        );
    }

    #[test]
    fn without_stacks_the_call_is_named_in_one_spelling() {
        let mut reader = StackReader::new();
        let (child, _) = Sleeper::start(&mut reader);
        let mut reader = Reader::new();
        let mut wait = Wait::open(&mut reader, child.id(), child.id());
        let mut all = Vec::new();
        let mut frames = Frames { all: &mut all, used: 0 };
        wait.frames(&mut reader, &mut frames);
        match all.last() {
            Some(call) if call.starts_with("__x64_sys_") => assert!(call.ends_with("nanosleep"), "{all:?}"),
            _ => eprintln!("skipped: the kernel does not show which call a process is in ({all:?})"),
        }
    }

    /// Prints what one look costs; asserts only that looks go on holding.
    #[test]
    fn cost() {
        const LOOKS: u32 = 2000;
        let mut reader = StackReader::new();
        let (child, first) = Sleeper::start(&mut reader);
        let mut look = Look::default();
        let begun = Instant::now();
        for _ in 0..LOOKS {
            assert!(reader.look_into(child.id(), child.id(), &mut look));
        }
        let held = begun.elapsed() / LOOKS;
        let begun = Instant::now();
        for _ in 0..LOOKS {
            reader.forget(child.id(), child.id());
            assert!(reader.look_into(child.id(), child.id(), &mut look));
        }
        let opened = begun.elapsed() / LOOKS;
        if let Some(held) = reader.held.get_mut(&(child.id(), child.id())) {
            held.stack = None;
        }
        let begun = Instant::now();
        for _ in 0..LOOKS {
            assert!(reader.look_into(child.id(), child.id(), &mut look));
        }
        let waiting = begun.elapsed() / LOOKS;
        eprintln!("a look with held files {held:?}, opening them {opened:?}, without stacks {waiting:?}");
        assert_eq!(look.state, first.state);
    }
}
