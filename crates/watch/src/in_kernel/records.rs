//! Windows in which the observer records each call with its time. Outside of them nothing is attached to the entry of calls.

use aya::maps::{Array, MapData, RingBuf};

use super::shapes::{MACHINE_WORDS, machine_words};
use super::{InKernel, chain, map};
use crate::calls::{CallRecord, FileKey};

/// Words of `struct machine`: which one says how many more calls are recorded.
const RECORDING: usize = 5;
/// Words (of 8 bytes) of `struct record`; a page fault has the first ones only.
const RECORD: usize = 14;

/// The program at the entry of calls, there while a window is open.
const ON_ENTER: &str = "on_enter";

/// The buffer that records wait in.
pub(super) struct Window(RingBuf<MapData>);

/// `RECORD_ALL`: every call from now on.
pub(crate) const ALL: u32 = u32::MAX;
/// `RECORD_FULL`: none any more, but those that are missing are counted.
pub(crate) const FULL: u32 = u32::MAX - 1;

impl InKernel {
    /// Records the next calls, so many at the most, or [`ALL`].
    ///
    /// # Errors
    /// The kernel refuses the program at the entry of calls, or its buffer.
    pub(crate) fn open_window(&mut self, calls: u32) -> Result<(), String> {
        if self.window.is_none() {
            let records = self.object.take_map("records").ok_or("the object has no map records")?;
            self.window = Some(Window(RingBuf::try_from(records).map_err(|e| chain(&e))?));
        }
        self.object.attach(ON_ENTER, "sys_enter")?;
        self.allow_records(calls)
    }

    /// Records so many more calls in the window that is open.
    ///
    /// # Errors
    /// A map of the observer cannot be written.
    pub(crate) fn allow_records(&mut self, calls: u32) -> Result<(), String> {
        let mut machine: Array<_, [u32; MACHINE_WORDS]> = map(&mut self.object, "machine")?;
        machine.set(0, machine_words(calls), 0).map_err(|e| chain(&e))
    }

    /// Hands on what was recorded since the last time, in the order of returns. Returns how many more calls will be recorded; 0:
    /// none is since some moment.
    ///
    /// # Errors
    /// A map of the observer cannot be read.
    pub(crate) fn take_records(&mut self, take: &mut dyn FnMut(&CallRecord)) -> Result<u32, String> {
        let machine: Array<_, [u32; MACHINE_WORDS]> = map(&mut self.object, "machine")?;
        let left = machine.get(&0, 0).map_err(|e| chain(&e))?[RECORDING];
        if let Some(Window(ring)) = &mut self.window {
            while let Some(item) = ring.next() {
                if let Some(record) = decode(&item) {
                    take(&record);
                }
            }
        }
        Ok(left)
    }

    /// Ends the window. What it recorded can still be taken.
    ///
    /// # Errors
    /// A map of the observer cannot be written.
    pub(crate) fn close_window(&mut self) -> Result<(), String> {
        self.allow_records(0)?;
        self.object.detach(ON_ENTER);
        Ok(())
    }
}

/// `struct record` of `bpf/observer.bpf.c`.
fn decode(bytes: &[u8]) -> Option<CallRecord> {
    let mut words = [0; RECORD];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().ok()?);
    }
    let halves = |word: u64| super::facts::words(word);
    let [entered_ns, returned_ns, task, call, value, a, b, c, d, e, f, inode, device, position] = words;
    let ([pid, tid], [number, flags]) = (halves(task), halves(call));
    Some(CallRecord {
        entered_ns,
        returned_ns,
        pid,
        tid,
        number,
        flags,
        value: value as i64,
        arguments: [a, b, c, d, e, f],
        file: (device != 0 || inode != 0).then_some(FileKey([inode, device])),
        position,
    })
}
