//! Files one behind the other, whole blocks each. Files of a trace, whose sizes are not known, get pieces of 1 MiB in the order
//! in which they are first touched.

use std::collections::HashMap;

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;

use super::{Layout, Step, StepKind, too_small};
use crate::files::{Shape, size_of};
use crate::machine::Machine;

/// A piece of a file whose size is not known.
const CHUNK_BYTES: u64 = 1 << 20;

/// Files in a row.
#[derive(Debug)]
pub(super) struct Extent {
    volume_bytes: u64,
    /// First byte of each file, and one behind the last; empty: a trace.
    begins: Vec<u64>,
    chunks: HashMap<(u64, u64), u64>,
    wrapped: bool,
}

impl Extent {
    pub(super) fn new(machine: &Machine, shape: &Shape, volume_bytes: u64) -> Result<Self, Problem> {
        let (count, sizes) = match shape {
            Shape::Files { count, bytes } => (*count, vec![*bytes]),
            Shape::Tree { sizes, files, .. } => (*files, sizes.clone()),
            Shape::Unknown => (0, Vec::new()),
        };
        let block = machine.cache.block_bytes;
        let mut begins = Vec::new();
        if count > 0 {
            begins.push(0);
        }
        let mut end = 0u64;
        for file in 0..count {
            end = end.saturating_add(size_of(file, &sizes).div_ceil(block).saturating_mul(block));
            if end > volume_bytes {
                let needed = end.saturating_mul(count / (file + 1)).max(end);
                return Err(too_small(&format!("{count} files"), needed, volume_bytes));
            }
            begins.push(end);
        }
        Ok(Extent { volume_bytes, begins, chunks: HashMap::new(), wrapped: false })
    }

    fn known(&self, request: &Request) -> Step {
        // Built with two begins at least: a file has a begin and an end.
        let file = request.object.min(self.begins.len() as u64 - 2) as usize;
        let (begin, end) = (self.begins[file], self.begins[file + 1]);
        let offset = request.offset.min(end - begin);
        let bytes = request.bytes.min(end - begin - offset);
        Step { start: begin + offset, bytes, limit: end, kind: StepKind::Data, whole: false }
    }
}

impl Layout for Extent {
    fn steps(&mut self, request: &Request, out: &mut Vec<Step>) {
        out.clear();
        if !self.begins.is_empty() {
            out.push(self.known(request));
            return;
        }
        let pieces = (self.volume_bytes / CHUNK_BYTES).max(1);
        let chunk_bytes = CHUNK_BYTES.min(self.volume_bytes);
        let end = request.offset.saturating_add(request.bytes.min(self.volume_bytes));
        let mut at = request.offset;
        while at < end {
            let (chunk, inside) = (at / CHUNK_BYTES, at % CHUNK_BYTES);
            let length = (CHUNK_BYTES - inside).min(end - at);
            let next = self.chunks.len() as u64;
            let place = *self.chunks.entry((request.object, chunk)).or_insert(next);
            self.wrapped |= place >= pieces;
            let begin = place % pieces * CHUNK_BYTES;
            let inside = inside.min(chunk_bytes);
            let bytes = length.min(chunk_bytes - inside);
            match out.last_mut() {
                Some(before) if before.start + before.bytes == begin + inside => {
                    before.bytes += bytes;
                    before.limit = begin + chunk_bytes;
                }
                _ => out.push(Step {
                    start: begin + inside,
                    bytes,
                    limit: begin + chunk_bytes,
                    kind: StepKind::Data,
                    whole: false,
                }),
            }
            at += length;
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.chunks.is_empty() {
            remarks.push("files of the trace are laid out in pieces of 1 MiB in the order of their first use: their real addresses are unknown".to_owned());
        }
        if self.wrapped {
            remarks
                .push("the trace touches more than the volume holds: addresses were used twice".to_owned());
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(layout: &mut Extent, object: u64, offset: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        layout.steps(&Request { object, offset, bytes, ..Request::default() }, &mut out);
        out.iter().map(|s| (s.start, s.bytes)).collect()
    }

    #[test]
    fn files_follow_one_another() {
        let sizes = vec![100, 5000];
        let shape = Shape::Tree { sizes: sizes.clone(), directories: 1, files: 4 };
        let mut layout = Extent::new(&Machine::default(), &shape, 1 << 20).unwrap();
        let mut begin = 0;
        for file in 0..4 {
            let room = size_of(file, &sizes).div_ceil(4096) * 4096;
            assert_eq!(steps(&mut layout, file, 10, 99_999), [(begin + 10, room - 10)]);
            begin += room;
        }
        assert!(Extent::new(&Machine::default(), &shape, 8192).is_err());
    }

    #[test]
    fn files_of_a_trace_get_places_as_they_come() {
        let mut layout = Extent::new(&Machine::default(), &Shape::Unknown, 8 << 20).unwrap();
        assert_eq!(steps(&mut layout, 7, 5 << 20, 10), [(0, 10)]);
        assert_eq!(steps(&mut layout, 9, 0, 10), [(1 << 20, 10)]);
        assert_eq!(steps(&mut layout, 7, (5 << 20) + 20, 10), [(20, 10)]);
        assert_eq!(steps(&mut layout, 3, 0, 3 << 20), [(2 << 20, 3 << 20)]);
        assert!(steps(&mut layout, 3, u64::MAX - 10, u64::MAX).iter().map(|s| s.1).sum::<u64>() <= 8 << 20);
    }
}
