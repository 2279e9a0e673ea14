//! Reads one record of the kernel into an [`Event`]. Pure: words in, event out; borrowed data points into the words.
//!
//! Invariant: no input makes it fail other than by saying so ([`Decoded::Malformed`]).

use std::collections::HashMap;

use perf_event_open_sys::bindings as b;

use super::attr::Role;
use super::merge::{TRAILER, flags, kind};
use crate::event::{Chain, Event, Kind, RELEASED, UserStack};
use crate::records::{bytes, text};

/// What the records' ids stand for.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    roles: HashMap<u64, Role>,
}

impl Ids {
    pub(crate) fn add(&mut self, id: u64, role: Role) {
        self.roles.insert(id, role);
    }
}

/// What a record is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decoded<'a> {
    Event(Event<'a>),
    /// The kernel took fewer samples for a while, because they cost too much.
    Throttled,
    /// Well formed, and of no interest.
    Other,
    /// Too short for what it says it is.
    Malformed,
}

/// Reads a record; `time_ns` is what its consumer shall see (at least that of the one before).
pub(crate) fn decode<'a>(record: &'a [u64], time_ns: u64, ids: &Ids) -> Decoded<'a> {
    let Some(header) = record.first().copied() else { return Decoded::Malformed };
    let read = if kind(header) == b::PERF_RECORD_SAMPLE {
        sample(record, time_ns, ids)
    } else {
        other(record, header, time_ns)
    };
    read.unwrap_or(Decoded::Malformed)
}

/// Two u32 that the kernel wrote one after the other.
fn pair(word: u64) -> (u32, u32) {
    let bytes = word.to_ne_bytes();
    let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (half(0), half(4))
}

/// id, task, time, CPU, and what the role adds.
fn sample<'a>(record: &'a [u64], time_ns: u64, ids: &Ids) -> Option<Decoded<'a>> {
    let [_, id, task, _, cpu, body @ ..] = record else { return None };
    let kind = match ids.roles.get(id) {
        Some(Role::Clock { stack_bytes, .. }) => {
            let (chain, rest) = chain(body)?;
            let stack = if *stack_bytes > 0 { stack(rest)? } else { None };
            Kind::Tick(Chain { stack, ..chain })
        }
        Some(Role::Leaving) => Kind::LeavingStack(chain(body)?.0),
        Some(Role::Side | Role::Switch) | None => return Some(Decoded::Other),
    };
    let (pid, tid) = pair(*task);
    if released(pid, tid) {
        return Some(Decoded::Other);
    }
    Some(Decoded::Event(Event { time_ns, cpu: pair(*cpu).0, pid, tid, kind }))
}

/// Whether a task was on its last steps when the record was written: its exit was told before, and its number is gone. What
/// is left of it are the last microseconds in `do_exit`, of which nobody can say whose they are.
fn released(pid: u32, tid: u32) -> bool {
    pid == RELEASED || tid == RELEASED
}

/// A number of addresses, and that many: each context begins with a marker that says whose addresses follow. With it what comes behind.
fn chain(body: &[u64]) -> Option<(Chain<'_>, &[u64])> {
    let (count, rest) = body.split_first()?;
    let (addresses, behind) = rest.split_at_checked(usize::try_from(*count).ok()?)?;
    let mut chain = Chain::default();
    let mut at = 0;
    while at < addresses.len() {
        let marker = addresses[at];
        let is_marker = |address: &u64| *address >= b::PERF_CONTEXT_MAX;
        let from = if is_marker(&marker) { at + 1 } else { at };
        let to = addresses[from..].iter().position(is_marker).map_or(addresses.len(), |n| from + n);
        // A context can come twice only where a chain is broken; the first part is the innermost.
        match marker {
            b::PERF_CONTEXT_KERNEL if chain.kernel.is_empty() => chain.kernel = &addresses[from..to],
            b::PERF_CONTEXT_USER if chain.user.is_empty() => chain.user = &addresses[from..to],
            _ => {}
        }
        at = to;
    }
    Some((chain, behind))
}

/// Registers and the copy of a user stack: the kind of process and, if it is one, the registers; the bytes of the copy, they, and how many
/// of them are true. Inner `None`: the task has no user part, or a narrow one.
fn stack(behind: &[u64]) -> Option<Option<UserStack<'_>>> {
    let (abi, rest) = behind.split_first()?;
    if *abi == u64::from(b::PERF_SAMPLE_REGS_ABI_NONE) {
        return Some(None);
    }
    let [frame, pointer, instruction, bytes, rest @ ..] = rest else { return None };
    if *bytes == 0 {
        return Some(None);
    }
    let (words, rest) = rest.split_at_checked(usize::try_from(*bytes / 8).ok()?)?;
    let copied = usize::try_from(*rest.first()? / 8).ok()?;
    let words = words.get(..copied.min(words.len()))?;
    let stack = UserStack { instruction: *instruction, pointer: *pointer, frame: *frame, words };
    Some((*abi == u64::from(b::PERF_SAMPLE_REGS_ABI_64)).then_some(stack))
}

/// Any record but a sample: its body, then the trailer.
fn other<'a>(record: &'a [u64], header: u64, time_ns: u64) -> Option<Decoded<'a>> {
    let (body, trailer) = record.get(1..)?.split_at_checked((record.len() - 1).checked_sub(TRAILER)?)?;
    let (mut pid, mut tid) = pair(trailer[0]);
    let cpu = pair(trailer[2]).0;
    let flag = |bit: u32| flags(header) & bit != 0;
    let kind = match kind(header) {
        b::PERF_RECORD_SWITCH | b::PERF_RECORD_SWITCH_CPU_WIDE if released(pid, tid) => {
            return Some(Decoded::Other);
        }
        b::PERF_RECORD_SWITCH | b::PERF_RECORD_SWITCH_CPU_WIDE => {
            if flag(b::PERF_RECORD_MISC_SWITCH_OUT) {
                Kind::Out { preempted: flag(b::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) }
            } else {
                Kind::In
            }
        }
        b::PERF_RECORD_FORK => {
            let (child, parent_pid) = pair(*body.first()?);
            let (child_tid, parent_tid) = pair(*body.get(1)?);
            (pid, tid) = (child, child_tid);
            Kind::Fork { parent_pid, parent_tid }
        }
        b::PERF_RECORD_EXIT => {
            (pid, tid) = (pair(*body.first()?).0, pair(*body.get(1)?).0);
            Kind::Exit
        }
        b::PERF_RECORD_COMM => {
            (pid, tid) = pair(*body.first()?);
            Kind::Name { name: text(bytes(&body[1..])), exec: flag(b::PERF_RECORD_MISC_COMM_EXEC) }
        }
        b::PERF_RECORD_MMAP => {
            (pid, tid) = pair(*body.first()?);
            map(body.get(1..4)?, !flag(b::PERF_RECORD_MISC_MMAP_DATA), body.get(4..)?)?
        }
        b::PERF_RECORD_MMAP2 => {
            (pid, tid) = pair(*body.first()?);
            // Task; start, length, offset; device (or build id) and generation, three words; protection and flags.
            let code = pair(*body.get(7)?).0 & libc::PROT_EXEC as u32 != 0;
            map(body.get(1..4)?, code, body.get(8..)?)?
        }
        b::PERF_RECORD_LOST => Kind::Lost { records: *body.get(1)? },
        b::PERF_RECORD_LOST_SAMPLES => Kind::Lost { records: *body.first()? },
        b::PERF_RECORD_THROTTLE => return Some(Decoded::Throttled),
        _ => return Some(Decoded::Other),
    };
    Some(Decoded::Event(Event { time_ns, cpu, pid, tid, kind }))
}

fn map<'a>(place: &[u64], code: bool, path: &'a [u64]) -> Option<Kind<'a>> {
    let [start, length, offset] = place else { return None };
    Some(Kind::Map { start: *start, length: *length, offset: *offset, code, path: text(bytes(path)) })
}

#[cfg(test)]
mod tests;
