//! Reads a trace in threads of its own: one makes keys of requests, one numbers them, and the caller gets the pieces in
//! their order. What is done with them is the caller's.
//!
//! Invariant: the pieces do not depend on the threads; few are on their way at a time, and their memory is used again.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use iowhy_core::problem::Problem;
use iowhy_sim::curve::bank::PIECE;
use iowhy_sim::curve::ids::IdTable;
use iowhy_sim::curve::keys::Keys;
use iowhy_trace::Trace;

use crate::trace_file::Meter;

/// Pieces that wait between two threads at most.
const WAITING: usize = 3;

/// References that follow each other.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) keys: Vec<u64>,
    /// Their dense numbers, where they are numbered.
    pub(super) ids: Vec<u32>,
    bytes: Vec<u64>,
    sized: bool,
    /// Requests so far.
    pub(super) requests: u64,
    /// Distinct keys so far, where they are numbered.
    pub(super) distinct: u32,
    /// More distinct keys than the table takes.
    pub(super) too_many: bool,
}

impl Piece {
    /// What each reference moves, if that is wanted.
    pub(super) fn bytes(&self) -> Option<&[u64]> {
        self.sized.then_some(&self.bytes)
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ids.clear();
        self.bytes.clear();
    }
}

/// Reads a whole trace and hands on the keys that it touches, with their bytes if `sized`, and numbered if there is a table.
///
/// # Errors
/// A trace that cannot be read, and those of `hand_on`; then no more is read.
pub(super) fn stream(
    trace: &mut Trace,
    keys: &mut Keys,
    table: Option<&mut IdTable>,
    sized: impl Fn(&Trace) -> bool + Send,
    meter: &Meter,
    mut hand_on: impl FnMut(&Piece) -> Result<(), Problem>,
) -> Result<(), Problem> {
    std::thread::scope(|scope| {
        let (give_back, used) = channel();
        let (read_in, mut pieces) = sync_channel(WAITING);
        scope.spawn(move || read(trace, keys, sized, meter, &read_in, &used));
        if let Some(table) = table {
            let (numbered_in, numbered) = sync_channel(WAITING);
            let read = std::mem::replace(&mut pieces, numbered);
            scope.spawn(move || number(table, &read, &numbered_in));
        }
        hand_on_all(&pieces, &give_back, &mut hand_on)
    })
}

type Sent = Result<Piece, Problem>;

fn hand_on_all(
    pieces: &Receiver<Sent>,
    give_back: &Sender<Piece>,
    hand_on: &mut impl FnMut(&Piece) -> Result<(), Problem>,
) -> Result<(), Problem> {
    for piece in pieces {
        let piece = piece?;
        hand_on(&piece)?;
        // Nobody takes it at the end of the trace.
        let _ = give_back.send(piece);
    }
    Ok(())
}

/// Sends the pieces of a trace, until it ends or nobody takes them.
fn read(
    trace: &mut Trace,
    keys: &mut Keys,
    sized: impl Fn(&Trace) -> bool,
    meter: &Meter,
    out: &SyncSender<Sent>,
    used: &Receiver<Piece>,
) {
    let mut batch = Vec::new();
    let mut piece = Piece::default();
    loop {
        let more = match trace.next_batch(&mut batch) {
            Ok(more) => more,
            Err(problem) => {
                // Where nobody takes it, another problem came first.
                let _ = out.send(Err(problem.into()));
                return;
            }
        };
        // Some files say at their beginning what they hold.
        piece.sized = sized(trace);
        for request in &batch {
            let bytes = piece.sized.then_some(&mut piece.bytes);
            keys.push(request, &mut piece.keys, bytes);
            if piece.keys.len() >= PIECE {
                piece.requests = keys.requests();
                let mut next = used.try_recv().unwrap_or_default();
                next.clear();
                next.sized = piece.sized;
                if out.send(Ok(std::mem::replace(&mut piece, next))).is_err() {
                    return;
                }
            }
        }
        meter.at(trace);
        if !more {
            piece.requests = keys.requests();
            let _ = out.send(Ok(piece));
            return;
        }
    }
}

/// Numbers pieces on their way.
fn number(table: &mut IdTable, pieces: &Receiver<Sent>, out: &SyncSender<Sent>) {
    for mut sent in pieces {
        if let Ok(piece) = &mut sent {
            piece.too_many = table.numbers(&piece.keys, &mut piece.ids).is_err();
            piece.distinct = table.distinct();
        }
        if out.send(sent).is_err() {
            return;
        }
    }
}
