//! Every stack once: from addresses to a number, with names and with the answer to "does it wait on the I/O path?".
//!
//! Bounded: when many stacks are held, new ones lose their user part, then the middle of their kernel part, and at the
//! end they are the unknown stack.

use iowhy_core::profile::SymbolId;

use super::hash::{FastMap, Mix};
use crate::event::Chain;
use crate::symbols::Symbols;

/// Number of a stack. 0 is the unknown one.
pub(super) type StackId = u32;

/// The stack of which nothing is known.
pub(super) const UNKNOWN: StackId = 0;

/// Most stacks that keep their user part.
const MAX_WHOLE: usize = 49_152;
/// Most stacks that keep their whole kernel part.
const MAX_KERNEL: usize = 61_440;
/// Most stacks.
const MAX: usize = 65_536;
/// Most frames of all stacks together, 4 bytes each.
const MAX_FRAMES: usize = 4_000_000;
/// Most frames of one stack, kernel or user.
const LONGEST: usize = 128;
/// Where a thread waits for what comes to its ring (`io_uring/io_uring.c` of the kernel).
const RING_WAIT: &str = "io_cqring_wait";
/// What calls the observer's program at a switch, by kernel (`kernel/trace/bpf_trace.c`, `include/linux/tracepoint.h`): that and what it
/// called are no part of why a thread sleeps. They are among the first frames, before those of the switch.
const TRACING: [&str; 3] = ["bpf_trace_run", "__bpf_trace_sched_switch", "__traceiter_sched_switch"];
const MAX_TRACING: usize = 8;
/// Frames that a stack is cut to: innermost and outermost ones.
const INNER: usize = 6;
const OUTER: usize = 3;
/// Most different chains of addresses that are remembered.
const MAX_RAW: usize = 262_144;

#[derive(Clone, Copy, Debug)]
struct Stack {
    /// First frame, number of kernel frames, number of user frames after them.
    first: u32,
    kernel: u16,
    user: u16,
    known: bool,
    on_path: bool,
    /// It waits for what comes to a ring.
    ring: bool,
}

/// Leaves a stack that the observer took as one that perf took: it begins with what called `__schedule`.
fn drop_tracing(symbols: &Symbols, kernel: &mut Vec<SymbolId>) {
    let traces = |id: &SymbolId| TRACING.iter().any(|name| symbols.name(*id).starts_with(name));
    let Some(last) = kernel.iter().take(MAX_TRACING).rposition(traces) else { return };
    let switch = kernel.get(last + 1).is_some_and(|id| symbols.name(*id) == "__schedule");
    kernel.drain(..=last + usize::from(switch));
}

/// All stacks.
pub(super) struct Stacks<'a> {
    on_path: &'a dyn Fn(&[&str]) -> bool,
    stacks: Vec<Stack>,
    frames: Vec<SymbolId>,
    /// By hash of addresses, and by hash of names. 64 bits: two of some ten thousand collide once in 10^9 runs.
    by_address: FastMap<u64, StackId>,
    by_name: FastMap<u64, StackId>,
    /// Of stacks of rings: the same without requests.
    for_events: FastMap<StackId, StackId>,
    /// Addresses of the chain that is looked at.
    callers: Vec<u64>,
}

impl<'a> Stacks<'a> {
    pub(super) fn new(on_path: &'a dyn Fn(&[&str]) -> bool) -> Stacks<'a> {
        let unknown =
            Stack { first: 0, kernel: 0, user: 0, known: false, on_path: on_path(&[]), ring: false };
        Stacks {
            on_path,
            stacks: vec![unknown],
            frames: Vec::new(),
            by_address: FastMap::default(),
            by_name: FastMap::default(),
            for_events: FastMap::default(),
            callers: Vec::new(),
        }
    }

    /// The stack with these addresses in this process. `known`: whether the kernel part is all there is (a user-mode
    /// sample has none), or could not be looked at.
    pub(super) fn intern(
        &mut self,
        symbols: &mut Symbols,
        pid: u32,
        chain: Chain<'_>,
        known: bool,
    ) -> StackId {
        if !known && chain.user.is_empty() {
            return UNKNOWN;
        }
        let mut found = std::mem::take(&mut self.callers);
        let user = symbols.callers(pid, &chain, &mut found);
        let id = self.of_addresses(symbols, pid, Chain { user, ..chain }, known);
        self.callers = found;
        id
    }

    fn of_addresses(&mut self, symbols: &mut Symbols, pid: u32, chain: Chain<'_>, known: bool) -> StackId {
        let mut hash = Mix::default();
        hash.add(chain.kernel.len() as u64 * 2 + u64::from(known));
        chain.kernel.iter().for_each(|a| hash.add(*a));
        if !chain.user.is_empty() {
            hash.add(symbols.generation(pid));
            chain.user.iter().for_each(|a| hash.add(*a));
        }
        let hash = hash.value();
        if let Some(id) = self.by_address.get(&hash) {
            return *id;
        }
        // A return address points behind the call, which may be the next function already.
        let call = |(i, a): (usize, &u64)| if i == 0 { *a } else { a.saturating_sub(1) };
        let mut kernel: Vec<SymbolId> =
            chain.kernel.iter().take(LONGEST).enumerate().map(|f| symbols.kernel(call(f))).collect();
        drop_tracing(symbols, &mut kernel);
        let user: Vec<SymbolId> = if self.stacks.len() < MAX_WHOLE {
            chain.user.iter().take(LONGEST).enumerate().map(|f| symbols.user(pid, call(f))).collect()
        } else {
            Vec::new()
        };
        let id = self.of_names(symbols, &kernel, &user, known);
        if self.by_address.len() >= MAX_RAW {
            self.by_address.clear();
        }
        self.by_address.insert(hash, id);
        id
    }

    /// The stack with these kernel functions, innermost first.
    pub(super) fn named(&mut self, symbols: &mut Symbols, names: &[&str]) -> StackId {
        if names.is_empty() {
            return UNKNOWN;
        }
        let kernel: Vec<SymbolId> = names.iter().take(LONGEST).map(|n| symbols.named(n)).collect();
        self.of_names(symbols, &kernel, &[], true)
    }

    fn of_names(
        &mut self,
        symbols: &Symbols,
        kernel: &[SymbolId],
        user: &[SymbolId],
        known: bool,
    ) -> StackId {
        let cut: Vec<SymbolId>;
        let full = self.frames.len() + kernel.len() + user.len() > MAX_FRAMES;
        let user = if full || self.stacks.len() >= MAX_WHOLE { &[] } else { user };
        let kernel = if (full || self.stacks.len() >= MAX_KERNEL) && kernel.len() > INNER + OUTER {
            cut = [&kernel[..INNER], &kernel[kernel.len() - OUTER..]].concat();
            &cut
        } else {
            kernel
        };
        if !known && user.is_empty() {
            return UNKNOWN;
        }
        let mut hash = Mix::default();
        hash.add(kernel.len() as u64 * 2 + u64::from(known));
        kernel.iter().chain(user).for_each(|s| hash.add(u64::from(*s)));
        let hash = hash.value();
        if let Some(id) = self.by_name.get(&hash) {
            return *id;
        }
        if self.stacks.len() >= MAX {
            return UNKNOWN;
        }
        let frames: Vec<_> = kernel.iter().map(|s| symbols.frame(*s)).collect();
        let names: Vec<&str> = frames.iter().map(AsRef::as_ref).collect();
        let stack = Stack {
            first: self.frames.len() as u32,
            kernel: kernel.len() as u16,
            user: user.len() as u16,
            known,
            on_path: (self.on_path)(&names),
            ring: names.contains(&RING_WAIT),
        };
        self.frames.extend(kernel.iter().chain(user));
        let id = self.stacks.len() as StackId;
        self.stacks.push(stack);
        self.by_name.insert(hash, id);
        id
    }

    /// The same stack where no request on a file is under way on any ring: it waits for an event, off the I/O path. Other stacks stay as
    /// they are.
    pub(super) fn without_requests(&mut self, id: StackId) -> StackId {
        let stack = self.get(id);
        if !stack.ring || !stack.on_path {
            return id;
        }
        if let Some(there) = self.for_events.get(&id) {
            return *there;
        }
        if self.stacks.len() >= MAX {
            return id;
        }
        let there = self.stacks.len() as StackId;
        self.stacks.push(Stack { on_path: false, ..stack });
        self.for_events.insert(id, there);
        there
    }

    fn get(&self, id: StackId) -> Stack {
        self.stacks[if (id as usize) < self.stacks.len() { id as usize } else { 0 }]
    }

    /// Whether a thread asleep with this stack waits on the I/O path.
    #[inline]
    pub(super) fn on_path(&self, id: StackId) -> bool {
        self.get(id).on_path
    }

    /// Kernel frames, user frames, and whether the kernel part was seen.
    pub(super) fn frames(&self, id: StackId) -> (&[SymbolId], &[SymbolId], bool) {
        let s = self.get(id);
        let (first, middle) = (s.first as usize, s.first as usize + s.kernel as usize);
        (&self.frames[first..middle], &self.frames[middle..middle + s.user as usize], s.known)
    }

    /// How many there are, the unknown one included.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.stacks.len()
    }
}
