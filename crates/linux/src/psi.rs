//! Pressure stall information: `/proc/pressure/*` (Documentation/accounting/psi.rst), and the same files of a control group.

use std::os::fd::OwnedFd;
use std::path::Path;

use crate::reader::Reader;

/// Totals since boot, in nanoseconds. A file that is not there leaves its figures 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// CPU: some.
    pub cpu_some_ns: u64,
    /// I/O: some.
    pub io_some_ns: u64,
    /// I/O: full.
    pub io_full_ns: u64,
    /// Memory: some.
    pub memory_some_ns: u64,
    /// Memory: full.
    pub memory_full_ns: u64,
}

/// The machine's own folder.
const OF_MACHINE: &str = "/proc/pressure";

impl Totals {
    /// The machine's. Reading makes the kernel add up what it has not yet. `None`: this kernel counts none (`CONFIG_PSI`, or `psi=0`).
    pub fn of_machine() -> Option<Totals> {
        Totals::from_files(&|name| Path::new(OF_MACHINE).join(name))
    }

    /// Those of a control group of version 2: `io.pressure` and its kin.
    pub fn of_group(group: &Path) -> Option<Totals> {
        Totals::from_files(&|name| group.join(format!("{name}.pressure")))
    }

    fn from_files(path: &dyn Fn(&str) -> std::path::PathBuf) -> Option<Totals> {
        let read = |name: &str| std::fs::read_to_string(path(name)).ok();
        Some(Totals::from_texts(
            &read("io")?,
            &read("memory").unwrap_or_default(),
            &read("cpu").unwrap_or_default(),
        ))
    }

    fn from_texts(io: &str, memory: &str, cpu: &str) -> Totals {
        let total = |text: &str, kind| total_ns(text, kind).unwrap_or(0);
        Totals {
            cpu_some_ns: total(cpu, "some"),
            io_some_ns: total(io, "some"),
            io_full_ns: total(io, "full"),
            memory_some_ns: total(memory, "some"),
            memory_full_ns: total(memory, "full"),
        }
    }

    /// What passed since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Totals) -> Totals {
        Totals {
            cpu_some_ns: self.cpu_some_ns.saturating_sub(earlier.cpu_some_ns),
            io_some_ns: self.io_some_ns.saturating_sub(earlier.io_some_ns),
            io_full_ns: self.io_full_ns.saturating_sub(earlier.io_full_ns),
            memory_some_ns: self.memory_some_ns.saturating_sub(earlier.memory_some_ns),
            memory_full_ns: self.memory_full_ns.saturating_sub(earlier.memory_full_ns),
        }
    }
}

/// Pressure files that are held open, to be read again and again.
#[derive(Debug)]
pub struct HeldTotals {
    io: OwnedFd,
    memory: Option<OwnedFd>,
    cpu: Option<OwnedFd>,
}

impl HeldTotals {
    /// The machine's. `None`: this kernel counts none.
    pub fn of_machine(reader: &mut Reader) -> Option<HeldTotals> {
        HeldTotals::open(reader, &|name| Path::new(OF_MACHINE).join(name))
    }

    /// Those of a control group of version 2.
    pub fn of_group(reader: &mut Reader, group: &Path) -> Option<HeldTotals> {
        HeldTotals::open(reader, &|name| group.join(format!("{name}.pressure")))
    }

    fn open(reader: &mut Reader, path: &dyn Fn(&str) -> std::path::PathBuf) -> Option<HeldTotals> {
        let mut open = |name: &str| reader.open(format_args!("{}", path(name).display()));
        Some(HeldTotals { io: open("io")?, memory: open("memory"), cpu: open("cpu") })
    }

    /// What stands there now. `None`: they cannot be read any more, as of a group that is gone.
    pub fn read(&self, reader: &mut Reader) -> Option<Totals> {
        let mut text =
            |file: &OwnedFd| reader.read_held(file).map(|text| String::from_utf8_lossy(text).into_owned());
        let io = text(&self.io)?;
        let mut of = |file: &Option<OwnedFd>| file.as_ref().and_then(&mut text).unwrap_or_default();
        let (memory, cpu) = (of(&self.memory), of(&self.cpu));
        Some(Totals::from_texts(&io, &memory, &cpu))
    }
}

/// `total` of the line that begins with this word, which the kernel gives in microseconds.
fn total_ns(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(' '))?;
    let total = line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let text = "some avg10=32.66 avg60=22.79 avg300=8.24 total=840251892\n\
                    full avg10=30.17 avg60=20.43 avg300=7.22 total=679744280\n";
        assert_eq!(total_ns(text, "some"), Some(840_251_892_000));
        assert_eq!(total_ns(text, "full"), Some(679_744_280_000));
        for broken in ["", "some", "some total=x", "somewhat total=1", "some total=18446744073709551615"] {
            assert_eq!(total_ns(broken, "some"), None, "{broken}");
        }
    }

    #[test]
    fn totals_do_not_go_down() {
        let Some(before) = Totals::of_machine() else {
            println!("skipped: this kernel counts no pressure");
            return;
        };
        let after = Totals::of_machine().unwrap();
        let passed = after.since(&before);
        assert_eq!(passed.io_some_ns, after.io_some_ns - before.io_some_ns);
        assert_eq!(before.since(&after).io_some_ns, 0);
        let mut reader = Reader::new();
        let held = HeldTotals::of_machine(&mut reader).unwrap();
        let totals = [(); 3].map(|()| held.read(&mut reader).unwrap().cpu_some_ns);
        assert!(after.cpu_some_ns <= totals[0] && totals.is_sorted(), "{after:?} {totals:?}");
    }
}
