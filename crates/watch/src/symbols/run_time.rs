//! Names of code that a process makes while it runs, as just-in-time compilers do, from the table that it writes: `perf-PID.map` in its `/tmp`.
//!
//! Format: start and size (hexadecimal) and name, in a line each (`tools/perf/Documentation/jit-interface.txt` of Linux). The table grows while
//! the process runs, and is read on where an address is not in it yet. Anybody may make a file of that name: it counts only if it belongs to
//! the user of the process or to root, and is no link.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use iowhy_core::profile::Symbol;
use iowhy_linux::names::Regular;
use rustix::fs::OFlags;

use super::name;

/// Most that is read of one table, and most functions of all tables together.
const MAX_BYTES: u64 = 64 << 20;
const MAX_FUNCTIONS: usize = 500_000;
/// Most processes whose tables are held open.
const MAX_TABLES: usize = 128;
/// How long a table is not looked for again that was not there, or had nothing new.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 16;

/// The tables of all processes.
#[derive(Debug, Default)]
pub(super) struct RunTime {
    by_pid: HashMap<u32, Table>,
    functions: usize,
}

#[derive(Debug, Default)]
struct Table {
    file: Option<File>,
    read: u64,
    /// The begin of a line.
    rest: Vec<u8>,
    /// By start: end and name.
    functions: BTreeMap<u64, (u64, Box<str>)>,
    looked: Option<Instant>,
}

impl RunTime {
    /// The function at an address of a process.
    pub(super) fn function(&mut self, pid: u32, address: u64) -> Option<Symbol> {
        if self.by_pid.len() >= MAX_TABLES && !self.by_pid.contains_key(&pid) {
            return None;
        }
        let table = self.by_pid.entry(pid).or_default();
        if table.find(address).is_none() {
            let before = table.functions.len();
            table.read_on(pid, MAX_FUNCTIONS.saturating_sub(self.functions));
            self.functions += table.functions.len() - before;
        }
        table.find(address).map(script)
    }

    /// The process executed another program, or is gone.
    pub(super) fn clear(&mut self, pid: u32) {
        if let Some(table) = self.by_pid.remove(&pid) {
            self.functions -= table.functions.len();
        }
    }
}

impl Table {
    fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }

    fn read_on(&mut self, pid: u32, room: usize) {
        if self.looked.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.looked = Some(Instant::now());
        if self.file.is_none() {
            self.file = open(pid);
        }
        let Some(file) = &self.file else { return };
        let mut chunk = vec![0; CHUNK];
        while self.read < MAX_BYTES {
            match file.read_at(&mut chunk, self.read) {
                Ok(length) if length > 0 => {
                    self.read += length as u64;
                    self.rest.extend(&chunk[..length]);
                }
                _ => break,
            }
            let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let lines: Vec<u8> = self.rest.drain(..whole).collect();
            for line in lines.split(|byte| *byte == b'\n') {
                let Some((start, end, name)) = parse(line) else { continue };
                if self.functions.len() < room || self.functions.contains_key(&start) {
                    self.functions.insert(start, (end, name.into()));
                }
            }
            if self.rest.len() > CHUNK {
                // No line is that long.
                self.rest.clear();
            }
        }
    }
}

fn parse(line: &[u8]) -> Option<(u64, u64, &str)> {
    let mut fields = std::str::from_utf8(line).ok()?.splitn(3, ' ');
    let mut number = || {
        let field = fields.next()?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = fields.next()?.trim();
    (!name.is_empty()).then(|| (start, start.saturating_add(size), name))
}

/// The table of a process, as it sees it (it may live in a container, where it has another number).
fn open(pid: u32) -> Option<File> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().map(|n| n.parse::<u32>().ok()).collect::<Option<Vec<u32>>>()
    };
    let (own, user) = (*field("NSpid:")?.last()?, *field("Uid:")?.get(1)?);
    let path = format!("/proc/{pid}/root/tmp/perf-{own}.map");
    let found = Regular::find(Path::new(&path), OFlags::NOFOLLOW).ok()?;
    [0, user].contains(&found.owner()).then(|| found.open_quietly().ok()).flatten()
}

/// A function of a script: its name and its file, where a well-known translator wrote the line, else the line.
fn script(line: &str) -> Symbol {
    let (name, file) = python(line).or_else(|| node(line)).unwrap_or((line, None));
    let object = file.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    Symbol { name: name::readable(name), object, made_at_run_time: true }
}

/// `py::NAME:FILE` (CPython 3.12, `Python/perf_trampoline.c`).
fn python(line: &str) -> Option<(&str, Option<&str>)> {
    let (name, file) = line.strip_prefix("py::")?.split_once(':')?;
    Some((name, Some(file)))
}

/// `JS:*NAME FILE:LINE:COLUMN`, where a mark of the compiler's tier comes before the name (V8, `src/logging/log.cc`).
fn node(line: &str) -> Option<(&str, Option<&str>)> {
    let function = line.strip_prefix("JS:").or_else(|| line.strip_prefix("Script:"))?;
    let function = function.trim_start_matches(['~', '^', '+', '*', '\'']);
    let (name, place) = function.rsplit_once(' ').unwrap_or(("", function));
    let file = place.rsplitn(3, ':').last().filter(|file| !file.is_empty());
    Some((if name.is_empty() { "(top level)" } else { name }, file))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_table_is_read_on_while_it_grows() {
        // A process of our own number, whose table the test writes.
        let pid = std::process::id();
        let path = format!("/tmp/perf-{pid}.map");
        let mut run_time = RunTime::default();
        assert_eq!(run_time.function(pid, 0x1000), None, "there is none");
        let mut file = File::create_new(&path).unwrap();
        file.write_all(
            b"1000 10 py::load:/srv/app/loader.py\nnonsense\n2000 zz bad\n0x3000 20 LFoo;::bar\n40",
        )
        .unwrap();
        let mut named = |address| {
            std::thread::sleep(PAUSE);
            run_time
                .function(pid, address)
                .map(|s| (s.name, s.object.unwrap_or_default(), s.made_at_run_time))
        };
        let symbol = |name: &str, file: &str| Some((name.to_owned(), file.to_owned(), true));
        assert_eq!(named(0x100f), symbol("load", "loader.py"));
        assert_eq!(named(0x301f), symbol("LFoo;::bar", ""));
        assert_eq!([named(0x1010), named(0x2000), named(0x4000)], [None, None, None]);
        // The rest of a line, and another function where one was.
        file.write_all(b"00 8 JS:*save /srv/app/n.js:2:20\n1000 10 JS:~now node:fs:1:2\n").unwrap();
        assert_eq!(named(0x4007), symbol("save", "n.js"));
        assert_eq!(named(0x1000), symbol("now", "node:fs"));
        std::fs::remove_file(&path).unwrap();
        run_time.clear(pid);
        assert_eq!(run_time.functions, 0);
        // A link in its place is not followed.
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        let opened = open(pid);
        std::fs::remove_file(&path).unwrap();
        assert!(opened.is_none());
    }

    #[test]
    fn lines_of_translators_are_names_and_files() {
        let parts = |line| {
            let symbol = script(line);
            (symbol.name, symbol.object.unwrap_or_default())
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(parts("JS:^saveRecord /tmp/u/n.js:2:20"), pair("saveRecord", "n.js"));
        assert_eq!(parts("Script:~ /tmp/u/n.js:1:1"), pair("(top level)", "n.js"));
        assert_eq!(parts("py::<module>:/a b/c.py"), pair("<module>", "c.py"));
        assert_eq!(parts("Builtin:ArgumentsAdaptor"), pair("Builtin:ArgumentsAdaptor", ""));
    }
}
