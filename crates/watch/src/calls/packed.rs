//! Steps of a record of every call, packed: a random read takes 10 to 15 bytes. Steps are told apart by the difference to the
//! step before, in numbers of 7 bits a byte.
//! Invariant: what is unpacked is what was packed, in the same order.

use iowhy_core::profile::{Step, StepKind};

/// A record stops growing at this length: some five million random reads.
const MAX_BYTES: usize = 64 << 20;

const KINDS: [StepKind; 12] = [
    StepKind::Read,
    StepKind::Write,
    StepKind::Seek,
    StepKind::Sync,
    StepKind::Map,
    StepKind::MmapAnon,
    StepKind::Munmap,
    StepKind::Advise,
    StepKind::AdviseMap,
    StepKind::Open,
    StepKind::Allocate,
    StepKind::Touch,
];
/// The first byte: the kind in the low bits, and these.
const FRESH: u8 = 1 << 4;
/// Thread, file, size, argument and place of the memory are those of the step before.
const SAME: u8 = 1 << 5;
const HAS_PLACE: u8 = 1 << 6;
const IS_RUN: u8 = 1 << 7;

/// A step, and when its first call began.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timed {
    pub(crate) begin_ns: u64,
    pub(crate) step: Step,
}

/// Packed steps.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    before: Timed,
}

impl Packed {
    /// Whether there is no room for more.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_BYTES
    }

    /// Adds a step.
    pub(crate) fn push(&mut self, timed: Timed) {
        let Timed { begin_ns, step } = &timed;
        let same = alike(&self.before.step, step);
        let kind = KINDS.iter().position(|kind| *kind == step.kind).unwrap_or(0) as u8;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let run = step.count > 1;
        self.bytes.push(
            kind | flag(step.fresh, FRESH)
                | flag(same, SAME)
                | flag(step.place.is_some(), HAS_PLACE)
                | flag(run, IS_RUN),
        );
        if !same {
            self.number(u64::from(step.thread));
            self.number(step.file.map_or(0, |file| u64::from(file) + 1));
            self.number(step.bytes);
            self.number(u64::from(step.argument));
            self.number(step.buffer_offset.map_or(0, |offset| u64::from(offset) + 1));
        }
        if let Some(place) = step.place {
            self.difference(self.before.step.place.unwrap_or(0), place);
        }
        if run {
            self.number(u64::from(step.count));
            self.difference(0, step.stride as u64);
        }
        self.number(step.gap_ns);
        self.number(step.time_ns);
        self.difference(self.before.begin_ns, *begin_ns);
        let place = step.place.or(self.before.step.place);
        self.before = timed;
        self.before.step.place = place;
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Small differences of either sign are small numbers.
    fn difference(&mut self, from: u64, to: u64) {
        let difference = to.wrapping_sub(from) as i64;
        self.number(((difference << 1) ^ (difference >> 63)) as u64);
    }

    /// All steps, in the order in which they were added.
    pub(crate) fn steps(&self) -> impl Iterator<Item = Timed> + '_ {
        let mut reader = Reader { bytes: &self.bytes, before: Timed::default() };
        std::iter::from_fn(move || reader.step())
    }
}

fn alike(a: &Step, b: &Step) -> bool {
    (a.thread, a.file, a.bytes, a.argument, a.buffer_offset)
        == (b.thread, b.file, b.bytes, b.argument, b.buffer_offset)
}

struct Reader<'a> {
    bytes: &'a [u8],
    before: Timed,
}

impl Reader<'_> {
    /// `None`: the end.
    fn step(&mut self) -> Option<Timed> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let before = std::mem::take(&mut self.before);
        let mut step = Step {
            kind: *KINDS.get(usize::from(first & 0xf))?,
            fresh: first & FRESH != 0,
            count: 1,
            stride: 0,
            place: None,
            ..before.step
        };
        if first & SAME == 0 {
            step.thread = self.number()? as u32;
            step.file = self.number()?.checked_sub(1).map(|file| file as u32);
            step.bytes = self.number()?;
            step.argument = self.number()? as u32;
            step.buffer_offset = self.number()?.checked_sub(1).map(|offset| offset as u16);
        }
        if first & HAS_PLACE != 0 {
            step.place = Some(self.difference(before.step.place.unwrap_or(0))?);
        }
        if first & IS_RUN != 0 {
            step.count = self.number()? as u32;
            step.stride = self.difference(0)? as i64;
        }
        step.gap_ns = self.number()?;
        step.time_ns = self.number()?;
        let begin_ns = self.difference(before.begin_ns)?;
        let timed = Timed { begin_ns, step };
        self.before = timed.clone();
        self.before.step.place = timed.step.place.or(before.step.place);
        Some(timed)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn difference(&mut self, from: u64) -> Option<u64> {
        let coded = self.number()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Some(from.wrapping_add(difference as u64))
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;

    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let mut rng = Rng::new(7);
        let mut some = |most: u64| if rng.unit() < 0.2 { 0 } else { rng.below(most) };
        let steps: Vec<Timed> = (0..5000)
            .map(|n| {
                let count = some(3) as u32 + 1;
                let step = Step {
                    thread: some(2) as u32,
                    kind: KINDS[some(12) as usize],
                    file: some(4).checked_sub(1).map(|file| file as u32),
                    place: some(u64::MAX).checked_sub(1),
                    bytes: some(1 << 40),
                    argument: some(u64::from(u32::MAX)) as u32,
                    fresh: some(2) == 1,
                    buffer_offset: some(4096).checked_sub(1).map(|offset| offset as u16),
                    count,
                    stride: if count > 1 { some(u64::MAX) as i64 } else { 0 },
                    gap_ns: some(1 << 50),
                    time_ns: some(u64::MAX),
                };
                Timed { begin_ns: n * 1000 + some(5000), step }
            })
            .collect();
        let mut packed = Packed::default();
        steps.iter().for_each(|step| packed.push(step.clone()));
        assert_eq!(packed.steps().collect::<Vec<_>>(), steps);
    }

    #[test]
    fn a_random_read_is_small() {
        let mut packed = Packed::default();
        let mut rng = Rng::new(1);
        for n in 0..1000 {
            let step = Step {
                file: Some(3),
                place: Some(rng.below(1 << 30) / 4096 * 4096),
                bytes: 4096,
                buffer_offset: Some(0),
                count: 1,
                gap_ns: 700,
                time_ns: 90_000,
                ..Step::default()
            };
            packed.push(Timed { begin_ns: n * 90_700, step });
        }
        assert!(packed.bytes.len() < 16_000, "{}", packed.bytes.len());
        assert!(!packed.is_full() && packed.steps().count() == 1000);
    }
}
