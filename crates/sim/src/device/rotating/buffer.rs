//! The drive's own buffer: segments of sectors that were read, and the one that is still growing because the drive reads on.

/// A run of sectors that the buffer holds.
#[derive(Clone, Copy, Debug)]
struct Segment {
    first: u64,
    end: u64,
    /// For the least recently used to leave.
    used: u64,
}

/// Sectors that are being read beyond the last command.
#[derive(Clone, Copy, Debug)]
struct Growing {
    segment: usize,
    from: u64,
    at_ns: u64,
    limit: u64,
    /// Nanoseconds for a sector, changes of track included.
    sector_ns: f64,
}

/// State of a read in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// All there.
    Hit,
    /// Being read: available after this many nanoseconds.
    Soon(u64),
    /// To be fetched.
    Miss,
}

/// The buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    segments: Vec<Segment>,
    most: usize,
    sectors: u64,
    reads_on: bool,
    growing: Option<Growing>,
    uses: u64,
}

impl Buffer {
    /// An empty buffer.
    pub(super) fn new(segments: u64, sectors: u64, reads_on: bool) -> Self {
        // More segments than this are not looked through one by one.
        let most = if sectors == 0 { 0 } else { segments.min(1024) as usize };
        Buffer { segments: Vec::new(), most, sectors, reads_on, growing: None, uses: 0 }
    }

    /// State of a read; counts as a use.
    pub(super) fn ask(&mut self, now_ns: u64, first: u64, end: u64) -> Answer {
        if self.most == 0 {
            return Answer::Miss;
        }
        self.settle(now_ns);
        self.uses += 1;
        let uses = self.uses;
        if let Some(segment) = self.segments.iter_mut().find(|s| s.first <= first && end <= s.end) {
            segment.used = uses;
            return Answer::Hit;
        }
        let Some(growing) = self.growing else { return Answer::Miss };
        let segment = &mut self.segments[growing.segment];
        // The drive reads on from its position: a read farther ahead than a segment is a read of its own.
        if segment.first <= first && first <= segment.end && end <= growing.limit {
            segment.used = uses;
            let there = growing.at_ns + ((end - growing.from) as f64 * growing.sector_ns).ceil() as u64;
            return Answer::Soon(there.saturating_sub(now_ns));
        }
        Answer::Miss
    }

    /// How far reading on has come: the arm is there.
    pub(super) fn head_at(&self, now_ns: u64) -> Option<u64> {
        self.growing.map(|growing| reached(&growing, now_ns))
    }

    /// Reading on ends, because the arm is needed elsewhere.
    pub(super) fn stop(&mut self, now_ns: u64) {
        self.settle(now_ns);
        self.growing = None;
    }

    /// Sectors were read until `now_ns`; the drive reads on from there, up to a full segment, to `disk_end` at most.
    pub(super) fn fill(&mut self, now_ns: u64, first: u64, end: u64, disk_end: u64, sector_ns: f64) {
        if self.most == 0 {
            return;
        }
        self.uses += 1;
        let first = first.max(end.saturating_sub(self.sectors));
        // A read that goes on where a segment ends makes that one longer, and its beginning leaves.
        let index = match self.segments.iter().position(|s| s.first <= first && first <= s.end) {
            Some(index) => {
                let segment = &mut self.segments[index];
                segment.end = segment.end.max(end);
                segment.first = segment.first.max(segment.end.saturating_sub(self.sectors));
                index
            }
            None if self.segments.len() < self.most => {
                self.segments.push(Segment { first, end, used: 0 });
                self.segments.len() - 1
            }
            None => {
                let oldest =
                    self.segments.iter().enumerate().min_by_key(|(_, s)| s.used).map_or(0, |(i, _)| i);
                self.segments[oldest] = Segment { first, end, used: 0 };
                oldest
            }
        };
        self.segments[index].used = self.uses;
        self.growing = self.reads_on.then(|| Growing {
            segment: index,
            from: end,
            at_ns: now_ns,
            limit: end.saturating_add(self.sectors).min(disk_end),
            sector_ns,
        });
    }

    /// Sectors that are written are not there any more.
    pub(super) fn forget(&mut self, now_ns: u64, first: u64, end: u64) {
        self.stop(now_ns);
        self.segments.retain(|s| s.end <= first || end <= s.first);
    }

    /// Makes the growing segment as long as it is now.
    fn settle(&mut self, now_ns: u64) {
        if let Some(growing) = self.growing {
            let segment = &mut self.segments[growing.segment];
            segment.end = segment.end.max(reached(&growing, now_ns));
            segment.first = segment.first.max(segment.end.saturating_sub(self.sectors));
        }
    }
}

fn reached(growing: &Growing, now_ns: u64) -> u64 {
    let read = now_ns.saturating_sub(growing.at_ns) as f64 / growing.sector_ns.max(1.0);
    growing.from.saturating_add(read as u64).min(growing.limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_on_makes_the_next_read_a_hit() {
        let mut buffer = Buffer::new(2, 100, true);
        assert_eq!(buffer.ask(0, 10, 20), Answer::Miss);
        buffer.fill(1000, 10, 20, 10_000, 10.0);
        assert_eq!(buffer.ask(1000, 12, 18), Answer::Hit);
        assert_eq!(buffer.ask(1000, 20, 30), Answer::Soon(100));
        assert_eq!(buffer.ask(1100, 20, 30), Answer::Hit);
        assert_eq!(buffer.ask(1100, 20, 121), Answer::Miss, "beyond what the segment holds");
        assert_eq!(buffer.head_at(9_999_999), Some(120));
    }

    #[test]
    fn the_segment_that_was_not_used_leaves_and_writes_forget() {
        let mut buffer = Buffer::new(2, 100, false);
        buffer.fill(0, 0, 10, 10_000, 10.0);
        buffer.fill(0, 1000, 1010, 10_000, 10.0);
        assert_eq!(buffer.ask(0, 0, 10), Answer::Hit);
        buffer.fill(0, 2000, 2010, 10_000, 10.0);
        assert_eq!((buffer.ask(0, 1000, 1010), buffer.ask(0, 0, 10)), (Answer::Miss, Answer::Hit));
        buffer.forget(0, 5, 6);
        assert_eq!(buffer.ask(0, 0, 10), Answer::Miss);
    }

    #[test]
    fn without_segments_nothing_is_kept() {
        let mut buffer = Buffer::new(0, 100, true);
        buffer.fill(0, 0, 10, 100, 1.0);
        assert_eq!((buffer.ask(1, 0, 10), buffer.head_at(5)), (Answer::Miss, None));
    }
}
