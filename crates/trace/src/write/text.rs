//! Formats made of lines: our own CSV, fio's iologs, DiskSim, a list of ids. Their fields are described where they are
//! read.

use std::io::Write as _;

use iowhy_core::request::{Op, Request};

use super::Encoder;
use super::carry::{self, Carries};
use crate::format::Kind;
use crate::losses::Losses;
use crate::names::{MAX_NAMES, Names};
use crate::text::{KIND_COMMENT, OWN_HEADER, first_line};
use rustc_hash::FxHashMap;

/// Objects whose first mention is remembered, for names.
const MAX_SEEN: usize = MAX_NAMES;

/// Writing into memory does not fail.
macro_rules! put {
    ($out:expr, $($what:tt)*) => {
        let _ = write!($out, $($what)*);
    };
}

/// CSV that keeps everything.
pub(super) struct Csv {
    kind: Kind,
    named: FxHashMap<u64, ()>,
}

impl Csv {
    pub(super) fn new(kind: Kind) -> Csv {
        Csv { kind, named: FxHashMap::default() }
    }
}

impl Encoder for Csv {
    fn begin(&mut self, out: &mut Vec<u8>) {
        put!(out, "{KIND_COMMENT}{}\n{OWN_HEADER}\n", self.kind.id());
    }

    fn request(&mut self, r: &Request, names: &Names, out: &mut Vec<u8>, _: &mut Losses) -> bool {
        let next_use = if r.next_use == 0 { String::new() } else { r.next_use.to_string() };
        put!(
            out,
            "{},{},{},{},{},{},{},{next_use},{},",
            r.time_ns,
            r.stream,
            r.op.id(),
            r.object,
            r.offset,
            r.bytes,
            r.latency_ns,
            r.marks.0
        );
        // A name is written once, at its first request.
        if let Some(name) = names.get(r.object)
            && !self.named.contains_key(&r.object)
        {
            if self.named.len() < MAX_SEEN {
                self.named.insert(r.object, ());
            }
            let clean: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            put!(out, "\"{}\"", clean.replace('"', "\"\""));
        }
        out.push(b'\n');
        true
    }
}

/// fio's iolog.
pub(super) struct Iolog {
    version: u8,
    /// Objects that were mentioned, and whether they are open.
    open: FxHashMap<u64, bool>,
    first_ns: Option<u64>,
    time_us: u64,
}

impl Iolog {
    pub(super) fn new(version: u8) -> Iolog {
        Iolog { version, open: FxHashMap::default(), first_ns: None, time_us: 0 }
    }

    fn line(&self, out: &mut Vec<u8>, object: u64, names: &Names, rest: std::fmt::Arguments<'_>) {
        if self.version == 3 {
            put!(out, "{} ", self.time_us);
        }
        put_name(out, object, names);
        put!(out, " {rest}\n");
    }

    /// Waits, or notes the time. Times count from the first request.
    fn time(&mut self, request: &Request, names: &Names, out: &mut Vec<u8>, losses: &mut Losses) {
        let first = *self.first_ns.get_or_insert(request.time_ns);
        if request.time_ns < first {
            losses.add("time before that of the first request: kept at it", None);
        }
        let us = carry::microseconds(request.time_ns.saturating_sub(first), losses);
        if self.version == 3 {
            self.time_us = us;
            return;
        }
        // fio drops waits below 100 microseconds; they add up here until they count.
        const MIN_WAIT_US: u64 = 100;
        let wait = us.saturating_sub(self.time_us);
        if wait >= MIN_WAIT_US {
            self.line(out, request.object, names, format_args!("wait {wait} 0"));
            self.time_us = us;
        } else if wait > 0 || us < self.time_us {
            losses.add("waits below 100 us: put off until they add up", None);
        }
    }
}

/// Names longer than this are refused by fio.
const MAX_NAME: usize = 256;

/// The name of an object; one that fio could not read, or none, becomes a number.
fn put_name(out: &mut Vec<u8>, object: u64, names: &Names) {
    match usable_name(object, names) {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => {
            put!(out, "object-{object}");
        }
    }
}

fn usable_name(object: u64, names: &Names) -> Option<&str> {
    let fits = |name: &&str| {
        !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.chars().any(|c| c.is_whitespace() || c.is_control())
    };
    names.get(object).filter(fits)
}

impl Encoder for Iolog {
    fn begin(&mut self, out: &mut Vec<u8>) {
        put!(out, "{}\n", first_line(self.version));
    }

    fn request(&mut self, request: &Request, names: &Names, out: &mut Vec<u8>, losses: &mut Losses) -> bool {
        let action = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Sync => "sync",
            Op::Open | Op::Close => "",
            Op::Other => {
                losses.add(
                    "requests that are neither reads, writes, trims, syncs, opens nor closes: left out",
                    None,
                );
                return false;
            }
        };
        if !self.open.contains_key(&request.object) && self.open.len() >= MAX_SEEN {
            losses.add("more than a million files: requests to the rest left out", None);
            return false;
        }
        carry::count(request, Carries { object: true, ..Carries::default() }, losses);
        let mentioned = self.open.contains_key(&request.object);
        if !mentioned {
            if usable_name(request.object, names).is_none() {
                losses.add("name missing, too long or with blanks: `object-N` instead", None);
            }
            self.line(out, request.object, names, format_args!("add"));
        }
        self.time(request, names, out, losses);
        let is_open = self.open.get(&request.object).copied().unwrap_or(false);
        if request.op == Op::Close {
            self.open.insert(request.object, false);
            if is_open {
                self.line(out, request.object, names, format_args!("close"));
            } else {
                losses.add("close of what is not open: left out", None);
            }
            return is_open;
        }
        if !is_open {
            self.line(out, request.object, names, format_args!("open"));
            self.open.insert(request.object, true);
            if request.op != Op::Open {
                losses.add("opens that fio needs: added", None);
            }
        } else if request.op == Op::Open {
            losses.add("open of what is open: left out", None);
            return false;
        }
        if request.op != Op::Open {
            self.line(
                out,
                request.object,
                names,
                format_args!("{action} {} {}", request.offset, request.bytes),
            );
        }
        true
    }
}

/// DiskSim's ASCII format.
pub(super) struct DiskSim;

impl Encoder for DiskSim {
    fn request(&mut self, request: &Request, _: &Names, out: &mut Vec<u8>, losses: &mut Losses) -> bool {
        if !carry::moves_bytes(request, losses) {
            return false;
        }
        carry::count(request, Carries { object: true, ..Carries::default() }, losses);
        let (first, count) = carry::sectors(request, losses);
        let flags = u8::from(request.op == Op::Read);
        let (ms, ns) = (request.time_ns / 1_000_000, request.time_ns % 1_000_000);
        put!(out, "{ms}.{ns:06} {} {first} {count} {flags}\n", request.object);
        true
    }
}

/// One id a line.
pub(super) struct Ids {
    kind: Kind,
}

impl Ids {
    pub(super) fn new(kind: Kind) -> Ids {
        Ids { kind }
    }
}

impl Encoder for Ids {
    fn request(&mut self, request: &Request, _: &Names, out: &mut Vec<u8>, losses: &mut Losses) -> bool {
        if !carry::moves_bytes(request, losses) {
            return false;
        }
        if request.op != Op::Read {
            losses.add("writes: kept as accesses, the format has no operations", None);
        }
        if request.time_ns > 0 {
            losses.add("times: dropped", None);
        }
        if request.bytes > 1 {
            losses.add("sizes: dropped", None);
        }
        carry::count(request, Carries { object: true, ..Carries::default() }, losses);
        put!(out, "{}\n", carry::id(request, self.kind, losses));
        true
    }
}
