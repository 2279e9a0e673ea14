//! The tracepoints that are recorded: their names, the fields that are needed of each, and reading a raw record into
//! [`Trace`].

use std::io;

use crate::event::{BlockRequest, Trace};
use crate::tracefs::{Field, Tracefs};

/// A tracepoint that we know how to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Point {
    BlockInsert,
    BlockIssue,
    BlockComplete,
    DirtyPause,
    Enter,
    Return,
}

impl Point {
    /// Those that are recorded during the whole run (observer tier).
    pub(crate) const CONTINUOUS: [Point; 4] =
        [Point::BlockInsert, Point::BlockIssue, Point::BlockComplete, Point::DirtyPause];
    /// Those of a burst.
    pub(crate) const CALLS: [Point; 2] = [Point::Enter, Point::Return];

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Point::BlockInsert => ("block", "block_rq_insert"),
            Point::BlockIssue => ("block", "block_rq_issue"),
            Point::BlockComplete => ("block", "block_rq_complete"),
            Point::DirtyPause => ("writeback", "balance_dirty_pages"),
            Point::Enter => ("raw_syscalls", "sys_enter"),
            Point::Return => ("raw_syscalls", "sys_exit"),
        }
    }
}

/// A tracepoint of the running kernel, ready to be opened and read.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub(crate) point: Point,
    pub(crate) id: u64,
    layout: Layout,
}

#[derive(Clone, Debug)]
enum Layout {
    Block {
        device: Field,
        sector: Field,
        sectors: Field,
        bytes: Option<Field>,
        flags: Field,
        task: Option<Field>,
    },
    Pause {
        milliseconds: Field,
    },
    Enter {
        number: Field,
        arguments: Field,
    },
    Return {
        number: Field,
        value: Field,
    },
}

impl Reader {
    /// Looks the tracepoint up in the running kernel.
    ///
    /// # Errors
    /// It is not there, may not be read, or has not all fields that are needed.
    pub(crate) fn new(tracefs: &Tracefs, point: Point) -> io::Result<Self> {
        let (system, name) = point.names();
        let found = tracefs.tracepoint(system, name)?;
        let field = |name: &str| found.format.field(name).cloned();
        let layout = match point {
            Point::BlockInsert | Point::BlockIssue | Point::BlockComplete => {
                match (field("dev"), field("sector"), field("nr_sector"), field("rwbs")) {
                    (Some(device), Some(sector), Some(sectors), Some(flags)) => {
                        let (bytes, task) = (field("bytes"), field("comm"));
                        Some(Layout::Block { device, sector, sectors, bytes, flags, task })
                    }
                    _ => None,
                }
            }
            Point::DirtyPause => field("pause").map(|milliseconds| Layout::Pause { milliseconds }),
            Point::Enter => {
                field("id").zip(field("args")).map(|(number, arguments)| Layout::Enter { number, arguments })
            }
            Point::Return => {
                field("id").zip(field("ret")).map(|(number, value)| Layout::Return { number, value })
            }
        };
        let missing =
            || io::Error::new(io::ErrorKind::InvalidData, format!("{system}:{name} has not all fields"));
        Ok(Reader { point, id: found.id, layout: layout.ok_or_else(missing)? })
    }

    /// Reads a raw record. `None`: it is too short, or says that nothing happened (a pause of no length).
    pub(crate) fn read<'a>(&self, raw: &'a [u8]) -> Option<Trace<'a>> {
        match &self.layout {
            Layout::Block { device, sector, sectors, bytes, flags, task } => {
                // The kernel's own dev_t: 12 bits of major, 20 of minor number.
                let number = device.integer(raw)? as u32;
                let length = match sectors.integer(raw)? {
                    // Commands that move no sectors (a flush, a pass-through) may say bytes.
                    0 => bytes.as_ref().and_then(|b| b.integer(raw)).unwrap_or(0),
                    sectors => sectors.saturating_mul(512),
                };
                let request = BlockRequest {
                    device: (number >> 20, number & 0xf_ffff),
                    sector: sector.integer(raw)?,
                    bytes: length,
                    flags: flags.text(raw)?.trim_end(),
                    task: task.as_ref().and_then(|t| t.text(raw)).unwrap_or(""),
                };
                Some(match self.point {
                    Point::BlockInsert => Trace::BlockInsert(request),
                    Point::BlockIssue => Trace::BlockIssue(request),
                    _ => Trace::BlockComplete(request),
                })
            }
            Layout::Pause { milliseconds } => {
                let pause = milliseconds.integer(raw)? as i64;
                (pause > 0).then(|| Trace::DirtyPause { pause_ns: (pause as u64).saturating_mul(1_000_000) })
            }
            Layout::Enter { number, arguments } => {
                let bytes = arguments.bytes(raw)?;
                let width = bytes.len() / 6;
                let mut values = [0u64; 6];
                for (value, word) in values.iter_mut().zip(bytes.chunks_exact(width.max(1))) {
                    *value = match word.len() {
                        8 => u64::from_ne_bytes(word.try_into().ok()?),
                        4 => u64::from(u32::from_ne_bytes(word.try_into().ok()?)),
                        _ => return None,
                    };
                }
                Some(Trace::Enter { number: number.integer(raw)? as i64, arguments: values })
            }
            Layout::Return { number, value } => {
                Some(Trace::Return { number: number.integer(raw)? as i64, value: value.integer(raw)? as i64 })
            }
        }
    }

    /// A reader for tests, from the text of a `format` file.
    #[cfg(test)]
    pub(crate) fn for_test(point: Point, format: &str) -> Self {
        let format = crate::tracefs::Format::parse(format);
        let field = |name: &str| format.field(name).cloned();
        let need = |name: &str| field(name).expect("a field of the test's format");
        let layout = match point {
            Point::BlockInsert | Point::BlockIssue | Point::BlockComplete => Layout::Block {
                device: need("dev"),
                sector: need("sector"),
                sectors: need("nr_sector"),
                bytes: field("bytes"),
                flags: need("rwbs"),
                task: field("comm"),
            },
            Point::DirtyPause => Layout::Pause { milliseconds: need("pause") },
            Point::Enter => Layout::Enter { number: need("id"), arguments: need("args") },
            Point::Return => Layout::Return { number: need("id"), value: need("ret") },
        };
        Reader { point, id: 0, layout }
    }
}
