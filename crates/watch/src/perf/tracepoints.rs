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
}

impl Point {
    /// Those that are recorded during the whole run (observer tier).
    pub(crate) const CONTINUOUS: [Point; 4] =
        [Point::BlockInsert, Point::BlockIssue, Point::BlockComplete, Point::DirtyPause];

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Point::BlockInsert => ("block", "block_rq_insert"),
            Point::BlockIssue => ("block", "block_rq_issue"),
            Point::BlockComplete => ("block", "block_rq_complete"),
            Point::DirtyPause => ("writeback", "balance_dirty_pages"),
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
    Block(Box<BlockLayout>),
    Pause { milliseconds: Field },
}

#[derive(Clone, Debug)]
struct BlockLayout {
    device: Field,
    sector: Field,
    sectors: Field,
    bytes: Option<Field>,
    flags: Field,
    task: Option<Field>,
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
                        let block = BlockLayout { device, sector, sectors, bytes, flags, task };
                        Some(Layout::Block(Box::new(block)))
                    }
                    _ => None,
                }
            }
            Point::DirtyPause => field("pause").map(|milliseconds| Layout::Pause { milliseconds }),
        };
        let missing =
            || io::Error::new(io::ErrorKind::InvalidData, format!("{system}:{name} has not all fields"));
        Ok(Reader { point, id: found.id, layout: layout.ok_or_else(missing)? })
    }

    /// Reads a raw record. `None`: it is too short, or says that nothing happened (a pause of no length).
    pub(crate) fn read<'a>(&self, raw: &'a [u8]) -> Option<Trace<'a>> {
        match &self.layout {
            Layout::Block(block) => {
                let BlockLayout { device, sector, sectors, bytes, flags, task } = block.as_ref();
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
        }
    }

    /// A reader for tests, from the text of a `format` file.
    #[cfg(test)]
    pub(crate) fn for_test(point: Point, format: &str) -> Self {
        let format = crate::tracefs::Format::parse(format);
        let field = |name: &str| format.field(name).cloned();
        let need = |name: &str| field(name).expect("a field of the test's format");
        let layout = match point {
            Point::BlockInsert | Point::BlockIssue | Point::BlockComplete => {
                Layout::Block(Box::new(BlockLayout {
                    device: need("dev"),
                    sector: need("sector"),
                    sectors: need("nr_sector"),
                    bytes: field("bytes"),
                    flags: need("rwbs"),
                    task: field("comm"),
                }))
            }
            Point::DirtyPause => Layout::Pause { milliseconds: need("pause") },
        };
        Reader { point, id: 0, layout }
    }
}
