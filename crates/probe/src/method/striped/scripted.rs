//! A stripe of false members, in virtual time: each member is a machine of its own, and parts overlap exactly.
//!
//! The caller's own work (the busy time of a part) passes one part after the other, as on one CPU; the members' waiting
//! passes side by side.

use std::sync::Arc;

use iowhy_core::stripe::{Part, Stripe};
use iowhy_core::workload::Workload;

use super::{at_member, count, of_member};
use crate::access::{Access, Completion, Failure, Request, Sent};
use crate::clock::Clock;
use crate::method::scripted::Scripted;
use crate::target::stripe;

/// A thread's access to all false members.
pub(super) struct Striped {
    stripe: Arc<stripe::Striped>,
    map: Stripe,
    clock: Clock,
    members: Vec<Option<Scripted>>,
    depth: usize,
    asynchronous: bool,
    /// Requests that have begun: slot, end, bytes.
    in_flight: Vec<(u64, Completion)>,
    parts: Vec<Part>,
    sent: Vec<Sent>,
}

impl Striped {
    pub(super) fn new(workload: &Workload, stripe: &Arc<stripe::Striped>, clock: &Clock) -> Striped {
        let depth = workload.depth.max(1);
        let open = |index: usize| {
            let own = of_member(workload, stripe, index)?;
            // Shares of the member's device go by the threads that use it, which are those of the whole.
            let own = Workload { threads: workload.threads, depth, ..own };
            Some(Scripted::new(stripe.members()[index].script()?, &own, clock))
        };
        Striped {
            map: stripe.map(),
            clock: clock.clone(),
            members: (0..stripe.members().len()).map(open).collect(),
            stripe: Arc::clone(stripe),
            depth,
            asynchronous: workload.method.asynchronous(),
            in_flight: Vec::with_capacity(depth),
            parts: Vec::new(),
            sent: vec![Sent::default(); stripe.members().len()],
        }
    }

    /// Begins all parts; the end of the last, and the bytes of all.
    fn begin_parts(&mut self, request: Request) -> Result<(u64, usize), Failure> {
        self.parts.clear();
        self.parts.extend(self.map.parts(request.offset, request.bytes as u64));
        let (mut end_ns, mut moved) = (self.clock.now_ns(), 0);
        for part in &self.parts {
            count(&mut self.sent, part.member, part.bytes);
            let member =
                self.members.get_mut(part.member).and_then(Option::as_mut).ok_or(Failure::HelperGone)?;
            let own = Request { offset: part.offset, bytes: part.bytes as usize, write: request.write };
            let (end, bytes) = member.begin(own).map_err(at_member(&self.stripe, part.member))?;
            end_ns = end_ns.max(end);
            moved += bytes;
        }
        Ok((end_ns, moved))
    }

    fn sleep_until(&self, end_ns: u64) {
        if let Some(time) = self.clock.virtual_time_of() {
            time.sleep_until(end_ns);
        }
    }
}

impl Access for Striped {
    fn capacity(&self) -> usize {
        if self.asynchronous { self.depth } else { 1 }
    }

    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure> {
        let (end_ns, bytes) = self.begin_parts(request)?;
        if !self.asynchronous {
            self.sleep_until(end_ns);
        }
        self.in_flight.push((end_ns, Completion { slot, bytes }));
        Ok(())
    }

    fn reap(&mut self, at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure> {
        let mut reaped = 0;
        // The first of equals is the one that was begun first.
        while let Some(next) = (0..self.in_flight.len()).min_by_key(|index| self.in_flight[*index].0) {
            let (end_ns, completion) = self.in_flight[next];
            if end_ns > self.clock.now_ns() {
                if reaped >= at_least {
                    break;
                }
                self.sleep_until(end_ns);
            }
            self.in_flight.remove(next);
            done.push(completion);
            reaped += 1;
        }
        Ok(())
    }

    fn data(&self, _slot: usize) -> Option<&[u8]> {
        None
    }

    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        let (end_ns, bytes) = self.begin_parts(request)?;
        self.sleep_until(end_ns);
        Ok(bytes)
    }

    fn begin(&mut self) {
        self.sent.fill(Sent::default());
    }

    fn sent(&self) -> &[Sent] {
        &self.sent
    }
}
