//! How many requests in flight change what one of them costs on the CPU: calls and doorbells are shared by a batch.

use iowhy_core::model::{Part, StackModel};
use iowhy_core::workload::{Method, Workload};

/// Requests in flight for each thread from which a ring is booked as a batch. From two up to here the costs lie between
/// those of one request and those of many, and are booked as of one.
pub const MANY_IN_FLIGHT: usize = 8;

/// How the requests of a cell share calls and batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// One in flight, by a call or through a ring.
    One,
    /// More than one, booked as one: too few, or the model does not know better.
    Several,
    /// Many, at the costs of a batch.
    Many {
        /// Past the page cache.
        direct: bool,
        /// The model knows the ring apart from what stands below it.
        ring: bool,
    },
}

impl Queue {
    /// How a cell is booked; `direct` when its path has a block layer.
    pub(super) fn of(w: &Workload, direct: bool, model: &StackModel) -> Queue {
        if !w.method.asynchronous() || w.method == Method::Null {
            return Queue::One;
        }
        let ring = model.parts.contains_key(&Part::Ring);
        let known = if direct { model.parts.contains_key(&Part::Deep) } else { ring };
        match w.depth {
            MANY_IN_FLIGHT.. if known => Queue::Many { direct, ring },
            2.. => Queue::Several,
            _ => Queue::One,
        }
    }

    /// What the booking rests on.
    pub(super) fn note(self, w: &Workload, pages: f64) -> Option<&'static str> {
        match self {
            Queue::One if w.method != Method::Uring => None,
            Queue::One => {
                Some("ring: costs of a call for each request; a registered buffer makes it cheaper")
            }
            Queue::Several if w.depth >= MANY_IN_FLIGHT => Some(
                "ring: costs of one request in flight; batching makes it cheaper, which was not measured",
            ),
            Queue::Several => Some(
                "ring: costs of one request in flight; with a few in flight they lie between those of one and of many",
            ),
            Queue::Many { direct: true, .. } if pages > 1.0 => {
                Some("block: the cost of a deep queue was measured on requests of one page")
            }
            Queue::Many { ring: false, .. } => Some("ring: not measured apart, its cost is part of `block`"),
            Queue::Many { .. } => None,
        }
    }
}
