//! No file system: the offset is the address. Several files share the volume evenly; objects of a trace begin at addresses that
//! are spread over it.

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;
use iowhy_core::units::counted;

use super::{Layout, Step, StepKind, too_small};
use crate::files::Shape;
use crate::machine::Machine;
use crate::volume::SECTOR_BYTES;
use rustc_hash::FxHashMap;

/// Begin of an object of a trace.
const ALIGN_BYTES: u64 = 1 << 20;
/// Files whose begins are kept in a list.
const MAX_KNOWN: u64 = 1 << 16;

/// Objects by their begins.
#[derive(Debug)]
pub(super) struct Raw {
    volume_bytes: u64,
    /// Known files; 0: a trace.
    files: u64,
    /// Their begins are multiples of it.
    align: u64,
    /// Where the first files begin, so that a request costs no division of 128 bits.
    known: Vec<u64>,
    begins: FxHashMap<u64, u64>,
    wrapped: u64,
}

impl Raw {
    pub(super) fn new(machine: &Machine, shape: &Shape, volume_bytes: u64) -> Result<Self, Problem> {
        let (count, bytes) = match shape {
            Shape::Files { count, bytes } => (*count, *bytes),
            Shape::Tree { sizes, files, .. } => (*files, sizes.iter().copied().max().unwrap_or(0)),
            Shape::Unknown => (0, 0),
        };
        // Where there is room, a file begins with a whole read of the cache and with a whole cluster of a fault: a real file is
        // read from its own begin on, wherever that lies.
        let block = machine.cache.block_bytes;
        let whole = machine.cache.io_bytes.max(machine.fault_bytes).div_ceil(block).saturating_mul(block);
        let fits = |align: &u64| {
            let begin = |file| begin_of(file, count, volume_bytes, *align);
            // Distances of neighbours are this share or one step more; only the last one is cut by the end.
            let between = volume_bytes / count / align * align;
            (count == 1 || between >= bytes) && volume_bytes.saturating_sub(begin(count - 1)) >= bytes
        };
        let align = match count {
            0 => block,
            _ => [whole, block, SECTOR_BYTES].into_iter().find(fits).ok_or_else(|| {
                let needed = bytes.div_ceil(SECTOR_BYTES).saturating_mul(SECTOR_BYTES).saturating_mul(count);
                too_small(&format!("{count} files of {bytes} bytes"), needed, volume_bytes)
            })?,
        };
        let listed = if count == 0 { 0 } else { count.saturating_add(1).min(MAX_KNOWN) };
        let known = (0..listed).map(|file| begin_of(file, count, volume_bytes, align)).collect();
        Ok(Raw { volume_bytes, files: count, align, known, begins: FxHashMap::default(), wrapped: 0 })
    }

    fn begin(&mut self, object: u64) -> u64 {
        if self.files > 0 {
            let known = usize::try_from(object).ok().and_then(|file| self.known.get(file));
            return match known {
                Some(begin) => *begin,
                None => begin_of(object, self.files, self.volume_bytes, self.align),
            };
        }
        let index = self.begins.len() as u64;
        let volume = self.volume_bytes;
        *self.begins.entry(object).or_insert_with(|| {
            // Multiples of the golden section fill the volume evenly, however many come.
            let share = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((u128::from(share) * u128::from(volume)) >> 64) as u64 / ALIGN_BYTES * ALIGN_BYTES
        })
    }
}

/// Where a file begins: at its share of the volume, rounded up, so that with one file a disk none begins on the disk before.
fn begin_of(file: u64, files: u64, volume_bytes: u64, align: u64) -> u64 {
    let share = u128::from(file.min(files)) * u128::from(volume_bytes) / u128::from(files.max(1));
    (share as u64).div_ceil(align).saturating_mul(align)
}

impl Layout for Raw {
    fn steps(&mut self, request: &Request, out: &mut Vec<Step>) {
        out.clear();
        let volume = self.volume_bytes.max(1);
        let bytes = request.bytes.min(volume);
        let begin = self.begin(request.object);
        let mut start = begin.saturating_add(request.offset);
        if start > volume - bytes {
            start %= volume;
            start = start.min(volume - bytes);
            self.wrapped += 1;
        }
        let limit =
            if self.files > 0 { self.begin(request.object.saturating_add(1)).min(volume) } else { volume };
        let limit = limit.max(start + bytes);
        out.push(Step { start, bytes, limit, kind: StepKind::Data, whole: false });
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.begins.len() > 1 {
            let many = self.begins.len();
            remarks.push(format!("{many} objects of the trace begin at addresses spread over the volume: their real addresses are unknown"));
        }
        if self.wrapped > 0 {
            let many = counted(self.wrapped, "request lay", "requests lay");
            remarks.push(format!("{many} beyond the end of the volume: wrapped round"));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(raw: &mut Raw, object: u64, offset: u64, bytes: u64) -> Step {
        let mut out = Vec::new();
        raw.steps(&Request { object, offset, bytes, ..Request::default() }, &mut out);
        out[0]
    }

    #[test]
    fn files_share_the_volume_evenly() {
        let machine = Machine::default();
        let shape = Shape::Files { count: 2, bytes: 1 << 20 };
        let mut raw = Raw::new(&machine, &shape, 8 << 20).unwrap();
        assert_eq!(step(&mut raw, 1, 4096, 100).start, (4 << 20) + 4096);
        assert_eq!(step(&mut raw, 0, 0, 100).limit, 4 << 20);
        assert!(Raw::new(&machine, &shape, 1 << 20).is_err());
    }

    /// Two disks whose size is no multiple of a block: the second file begins on the second disk, and with a whole read of the
    /// cache; where there is no room for that, with a whole block.
    #[test]
    fn a_file_of_its_own_disk_does_not_begin_on_the_one_before() {
        let machine = Machine::default();
        let whole = machine.cache.io_bytes.max(machine.fault_bytes);
        let disk = (8 << 20) + 2048;
        let place = |bytes| {
            let shape = Shape::Files { count: 2, bytes };
            Raw::new(&machine, &shape, 2 * disk).map(|mut raw| step(&mut raw, 1, 0, 100).start)
        };
        assert_eq!(place(1 << 20), Ok(disk.div_ceil(whole) * whole));
        assert_eq!(place((8 << 20) - 4096), Ok(disk.div_ceil(4096) * 4096));
        assert!(place(disk + 1).is_err());
    }

    #[test]
    fn what_lies_beyond_the_end_is_wrapped_and_counted() {
        let mut raw = Raw::new(&Machine::default(), &Shape::Unknown, 1 << 20).unwrap();
        for (offset, bytes) in [(u64::MAX, u64::MAX), (1 << 20, 1), ((1 << 20) - 1, 2), (0, 0)] {
            let step = step(&mut raw, 0, offset, bytes);
            assert!(step.start + step.bytes <= 1 << 20 && step.limit <= 1 << 20);
        }
        assert_eq!(raw.wrapped, 3);
    }
}
