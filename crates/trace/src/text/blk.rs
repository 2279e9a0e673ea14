//! Events of the block layer as requests, for blktrace's binary files and blkparse's text.
//!
//! A request passes several steps; one of them is taken as the request, see [`BlockAction`]. Issued requests wait here
//! for their completion. Invariant: at most [`MAX_PENDING`] wait.

use iowhy_core::request::{Marks, Op, Request};

use crate::reader::{BlockAction, Sink};
use rustc_hash::FxHashMap;

/// Issued requests that wait for their completion at most.
const MAX_PENDING: usize = 1 << 16;

/// The steps that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Q.
    Queue,
    /// D.
    Issue,
    /// C.
    Complete,
    /// Any other.
    Other,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) step: Step,
    pub(crate) time_ns: u64,
    /// Major number times 2^20, and minor.
    pub(crate) device: u32,
    pub(crate) sector: u64,
    pub(crate) bytes: u64,
    pub(crate) op: Op,
    pub(crate) marks: Marks,
    pub(crate) pid: u32,
}

/// Makes requests of events.
#[derive(Debug)]
pub(crate) struct Assembler {
    action: BlockAction,
    pending: FxHashMap<(u32, u64), Request>,
}

impl Assembler {
    pub(crate) fn new(action: BlockAction) -> Assembler {
        Assembler { action, pending: FxHashMap::default() }
    }

    /// Takes one event.
    pub(crate) fn event(&mut self, event: Event, sink: &mut Sink<'_>) {
        let wanted = match self.action {
            BlockAction::Queue => event.step == Step::Queue,
            BlockAction::Issue => matches!(event.step, Step::Issue | Step::Complete),
        };
        if !wanted {
            return;
        }
        let Some(offset) = event.sector.checked_mul(512) else {
            // Requests without an address, flushes above all, carry sector -1.
            return match event.op {
                Op::Sync => self.place(Request { bytes: 0, offset: 0, ..Self::request(&event) }, event, sink),
                _ => sink.lose("sector beyond 2^55: left out"),
            };
        };
        if event.bytes == 0 && event.op != Op::Sync {
            return sink.lose("commands that move no bytes (not by sector): left out");
        }
        self.place(Request { offset, ..Self::request(&event) }, event, sink);
    }

    fn request(event: &Event) -> Request {
        Request {
            time_ns: event.time_ns,
            object: u64::from(event.device),
            bytes: event.bytes,
            stream: event.pid,
            op: event.op,
            marks: event.marks,
            ..Request::default()
        }
    }

    fn place(&mut self, request: Request, event: Event, sink: &mut Sink<'_>) {
        if sink.names.get(request.object).is_none() {
            sink.names.put(request.object, device_name(event.device).as_bytes());
        }
        let key = (event.device, event.sector);
        match event.step {
            Step::Issue if self.pending.len() >= MAX_PENDING && !self.pending.contains_key(&key) => {
                sink.lose("more than 65536 requests without completion: latency not known");
                sink.push(request);
            }
            Step::Issue => {
                // Issued again after it went back to the queue: the first issue is not counted twice.
                self.pending.insert(key, request);
            }
            Step::Complete => match self.pending.remove(&key) {
                Some(issued) => sink.push(Request {
                    latency_ns: event.time_ns.saturating_sub(issued.time_ns),
                    marks: issued.marks.with(event.marks),
                    ..issued
                }),
                None => sink.lose("completion whose issue is not in the trace: left out"),
            },
            _ => sink.push(request),
        }
    }

    /// Requests issued and never completed get no latency.
    pub(crate) fn end(&mut self, sink: &mut Sink<'_>) {
        let mut left: Vec<Request> = self.pending.drain().map(|(_, request)| request).collect();
        left.sort_unstable_by_key(|request| (request.time_ns, request.object, request.offset));
        for request in left {
            sink.lose("no completion in the trace: latency not known");
            sink.push(request);
        }
    }
}

/// `8,0`.
fn device_name(device: u32) -> String {
    format!("{},{}", device >> 20, device & 0xf_ffff)
}

/// The letters that blkparse prints for the kind of a request: `F` (flush) first, then `D`, `W`, `R` or `N`, then `F`
/// (forced unit access), `A` (read-ahead), `S` (sync), `M` (metadata).
pub(crate) fn letters(rwbs: &[u8]) -> Option<(Op, Marks)> {
    let mut marks = Marks::default();
    let (flush, rest) = match rwbs {
        [b'F', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (op, flags) = match rest {
        [b'D', flags @ ..] => (Op::Discard, flags),
        [b'W', flags @ ..] => (Op::Write, flags),
        [b'R', flags @ ..] => (Op::Read, flags),
        [b'N', flags @ ..] => (if flush { Op::Sync } else { Op::Other }, flags),
        [] if flush => (Op::Sync, rest),
        _ => return None,
    };
    for flag in flags {
        marks = marks.with(match flag {
            b'F' => Marks::FUA,
            b'A' => Marks::READ_AHEAD,
            b'S' => Marks::SYNC,
            b'M' => Marks::METADATA,
            // Barriers of old kernels and letters of new ones change neither direction nor range.
            b'A'..=b'Z' => Marks::default(),
            _ => return None,
        });
    }
    Some((op, marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_mean_what_blkparse_says() {
        let ahead = Marks::READ_AHEAD;
        for (text, op, marks) in [
            ("R", Op::Read, Marks::default()),
            ("RAM", Op::Read, ahead.with(Marks::METADATA)),
            ("WS", Op::Write, Marks::SYNC),
            ("FWFSM", Op::Write, Marks::FUA.with(Marks::SYNC).with(Marks::METADATA)),
            ("FN", Op::Sync, Marks::default()),
            ("F", Op::Sync, Marks::default()),
            ("DS", Op::Discard, Marks::SYNC),
            ("N", Op::Other, Marks::default()),
        ] {
            assert_eq!(letters(text.as_bytes()), Some((op, marks)), "{text}");
        }
        assert_eq!((letters(b""), letters(b"x"), letters(b"W?")), (None, None, None));
    }
}
