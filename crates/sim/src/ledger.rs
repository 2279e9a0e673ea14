//! Ledgers of simulated time: one per request, and their sum.
//!
//! Invariant: every nanosecond between the start and the end of a request is booked exactly once, as a whole number.

/// Parts of a request's time, top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Part {
    /// The client pauses between its requests.
    Think,
    /// Lock-step: waiting until all others are done with theirs.
    LockStep,
    /// Waiting for a free CPU.
    CpuQueue,
    /// Entering and leaving the kernel.
    Call,
    /// The file system's own code.
    Filesystem,
    /// Waiting for a lock (mlock is serialised per process).
    Lock,
    /// Looking blocks up, putting them in.
    Cache,
    /// Making buffers or pages visible: mappings, faults.
    Mapping,
    /// Moving bytes between kernel and program.
    Copy,
    /// Building and handing down block requests.
    Block,
    /// Throttled by the limit on dirty bytes.
    Writeback,
    /// In a queue before the device.
    Queue,
    /// Throttled by a rate limit of the volume.
    Throttle,
    /// Command overhead of the device.
    Command,
    /// Moving the arm, switching heads.
    Seek,
    /// Waiting for the sector to come round.
    Rotation,
    /// Access time of a medium without an arm.
    Media,
    /// Bytes from or to the medium.
    Transfer,
    /// Bytes over the bus, and waiting for it.
    Bus,
}

/// How many parts there are.
pub const PARTS: usize = 19;

impl Part {
    /// All parts, top to bottom.
    pub const ALL: [Part; PARTS] = [
        Part::Think,
        Part::LockStep,
        Part::CpuQueue,
        Part::Call,
        Part::Filesystem,
        Part::Lock,
        Part::Cache,
        Part::Mapping,
        Part::Copy,
        Part::Block,
        Part::Writeback,
        Part::Queue,
        Part::Throttle,
        Part::Command,
        Part::Seek,
        Part::Rotation,
        Part::Media,
        Part::Transfer,
        Part::Bus,
    ];

    /// The stable identifier, as in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Part::Think => "think",
            Part::LockStep => "lock-step",
            Part::CpuQueue => "cpu-queue",
            Part::Call => "call",
            Part::Filesystem => "filesystem",
            Part::Lock => "lock",
            Part::Cache => "cache",
            Part::Mapping => "mapping",
            Part::Copy => "copy",
            Part::Block => "block",
            Part::Writeback => "writeback",
            Part::Queue => "queue",
            Part::Throttle => "throttle",
            Part::Command => "command",
            Part::Seek => "seek",
            Part::Rotation => "rotation",
            Part::Media => "media",
            Part::Transfer => "transfer",
            Part::Bus => "bus",
        }
    }
}

/// Nanoseconds by part. A request takes a few of them: those that took time are marked, so that adding and summing pass over
/// the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    ns: [u64; PARTS],
    /// A bit for each part that took time.
    taken: u32,
}

impl Parts {
    /// Books time to a part.
    #[inline]
    pub fn add(&mut self, part: Part, ns: u64) {
        if ns > 0 {
            self.add_at(part as usize, ns);
        }
    }

    #[inline]
    fn add_at(&mut self, index: usize, ns: u64) {
        let slot = &mut self.ns[index];
        *slot = slot.saturating_add(ns);
        self.taken |= 1 << index;
    }

    /// Time of a part.
    pub fn get(&self, part: Part) -> u64 {
        self.ns[part as usize]
    }

    /// All together.
    #[inline]
    pub fn total(&self) -> u64 {
        self.indices().fold(0, |sum, index| sum.saturating_add(self.ns[index]))
    }

    /// Adds another account.
    #[inline]
    pub fn merge(&mut self, other: &Parts) {
        for index in other.indices() {
            self.add_at(index, other.ns[index]);
        }
    }

    /// Parts that took time, with their nanoseconds, top to bottom.
    pub fn entries(&self) -> impl Iterator<Item = (Part, u64)> + '_ {
        Part::ALL.into_iter().map(|part| (part, self.get(part))).filter(|(_, ns)| *ns > 0)
    }

    /// The parts that took time, by number.
    #[inline]
    fn indices(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.taken;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            // Only parts are ever marked; this shows the compiler that no bounds check is needed.
            Some(index.min(PARTS - 1))
        })
    }
}

/// Times of one command at a device, in order. The queue stands before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Throttled by a rate limit.
    pub throttle_ns: u64,
    /// Command overhead.
    pub command_ns: u64,
    /// Arm and heads.
    pub seek_ns: u64,
    /// Rotation.
    pub rotation_ns: u64,
    /// Access of a medium without an arm.
    pub media_ns: u64,
    /// Bytes from or to the medium.
    pub transfer_ns: u64,
}

impl Service {
    /// Adds another one.
    pub fn merge(&mut self, other: &Service) {
        for (mine, theirs) in [
            (&mut self.throttle_ns, other.throttle_ns),
            (&mut self.command_ns, other.command_ns),
            (&mut self.seek_ns, other.seek_ns),
            (&mut self.rotation_ns, other.rotation_ns),
            (&mut self.media_ns, other.media_ns),
            (&mut self.transfer_ns, other.transfer_ns),
        ] {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Its parts that took time, in order.
    pub fn entries(&self) -> impl Iterator<Item = (Part, u64)> {
        [
            (Part::Throttle, self.throttle_ns),
            (Part::Command, self.command_ns),
            (Part::Seek, self.seek_ns),
            (Part::Rotation, self.rotation_ns),
            (Part::Media, self.media_ns),
            (Part::Transfer, self.transfer_ns),
        ]
        .into_iter()
        .filter(|(_, ns)| *ns > 0)
    }

    /// From the start to the end of the medium's work.
    pub fn total_ns(&self) -> u64 {
        [self.throttle_ns, self.command_ns, self.seek_ns, self.rotation_ns, self.media_ns, self.transfer_ns]
            .iter()
            .fold(0, |sum, ns| sum.saturating_add(*ns))
    }
}

/// The way of one piece of input or output, from its arrival at the device's queue to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) queue_ns: u64,
    pub(crate) service: Service,
    pub(crate) bus_ns: u64,
}

impl Passage {
    /// Books the last `ns` nanoseconds of the passage: somebody who came late waited for its end only. What is longer than
    /// the passage was spent before it, in the queue of something else.
    pub(crate) fn book_last(&self, mut ns: u64, into: &mut Parts) {
        let s = &self.service;
        for (part, length) in [
            (Part::Bus, self.bus_ns),
            (Part::Transfer, s.transfer_ns),
            (Part::Media, s.media_ns),
            (Part::Rotation, s.rotation_ns),
            (Part::Seek, s.seek_ns),
            (Part::Command, s.command_ns),
            (Part::Throttle, s.throttle_ns),
        ] {
            let here = length.min(ns);
            into.add(part, here);
            ns -= here;
        }
        into.add(Part::Queue, ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_the_order_of_their_numbers_and_ids_are_unique() {
        for (index, part) in Part::ALL.into_iter().enumerate() {
            assert_eq!(part as usize, index);
        }
        let mut ids: Vec<&str> = Part::ALL.iter().map(|part| part.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), PARTS);
    }

    #[test]
    fn who_comes_late_waits_for_the_end_of_the_passage_only() {
        let passage = Passage {
            queue_ns: 100,
            service: Service {
                command_ns: 10,
                seek_ns: 20,
                rotation_ns: 30,
                transfer_ns: 5,
                ..Service::default()
            },
            bus_ns: 4,
        };
        let mut all = Parts::default();
        passage.book_last(169, &mut all);
        assert_eq!((all.get(Part::Queue), all.get(Part::Seek), all.total()), (100, 20, 169));
        let mut late = Parts::default();
        passage.book_last(12, &mut late);
        assert_eq!((late.get(Part::Bus), late.get(Part::Transfer), late.get(Part::Rotation)), (4, 5, 3));
        assert_eq!(late.total(), 12);
    }
}
