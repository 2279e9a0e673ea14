//! How far the clock of another host is from the first rank's, bounded by the messages between them.
//!
//! A message is read after it was written. From one in each direction follow both bounds, without a time server and without trust in
//! either clock.

/// Bounds of another clock's lead, in nanoseconds; `i64::MIN` and `i64::MAX` where nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// It leads by at least this.
    pub(crate) low_ns: i64,
    /// It leads by at most this.
    pub(crate) high_ns: i64,
    /// Whether messages contradicted each other: a clock was set.
    pub(crate) was_set: bool,
}

impl Offset {
    /// Of a process that reads the same clock.
    pub(super) const SAME: Offset = Offset { low_ns: 0, high_ns: 0, was_set: false };
    /// Before any message.
    pub(super) const UNKNOWN: Offset = Offset { low_ns: i64::MIN, high_ns: i64::MAX, was_set: false };

    /// The other wrote a message at `theirs`, and the first rank had read it at `ours`.
    pub(super) fn heard(&mut self, theirs: i64, ours: i64) {
        let low = theirs.saturating_sub(ours);
        self.low_ns = self.low_ns.max(low);
        if self.low_ns > self.high_ns {
            *self = Offset { low_ns: low, high_ns: i64::MAX, was_set: true };
        }
    }

    /// The first rank wrote a message at `ours`, and the other had read it at `theirs`.
    pub(super) fn told(&mut self, ours: i64, theirs: i64) {
        let high = theirs.saturating_sub(ours);
        self.high_ns = self.high_ns.min(high);
        if self.low_ns > self.high_ns {
            *self = Offset { low_ns: i64::MIN, high_ns: high, was_set: true };
        }
    }

    /// The middle of the bounds; of one bound that bound.
    pub(crate) fn middle_ns(&self) -> i64 {
        match (self.low_ns, self.high_ns) {
            (i64::MIN, i64::MAX) => 0,
            (i64::MIN, known) | (known, i64::MAX) => known,
            (low, high) => low + (high - low) / 2,
        }
    }

    /// How far the middle may be off.
    pub(crate) fn error_ns(&self) -> u64 {
        self.high_ns.abs_diff(self.low_ns) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_in_both_directions_bound_a_clock_that_leads() {
        let (mut offset, lead) = (Offset::UNKNOWN, 5_000_000_000);
        assert_eq!(offset.middle_ns(), 0);
        // Each message is read between 1 and 4 ms after it was written.
        for (written, delay) in [(100, 4_000_000), (200, 1_000_000), (300, 3_000_000)] {
            offset.heard(written + lead, written + delay);
            offset.told(written, written + delay + lead);
            assert!(offset.low_ns <= lead && lead <= offset.high_ns, "{offset:?}");
        }
        assert_eq!((offset.low_ns, offset.high_ns), (lead - 1_000_000, lead + 1_000_000));
        assert_eq!((offset.middle_ns(), offset.error_ns(), offset.was_set), (lead, 1_000_000, false));
    }

    #[test]
    fn a_clock_that_is_set_is_noticed_and_followed() {
        let mut offset = Offset::UNKNOWN;
        offset.heard(1_000, 1_100);
        offset.told(1_200, 1_300);
        // An hour later on the other host.
        let hour = 3_600_000_000_000;
        offset.heard(2_000 + hour, 2_100);
        offset.told(2_200, 2_300 + hour);
        assert!(offset.was_set && offset.low_ns <= hour && hour <= offset.high_ns, "{offset:?}");
        assert!(offset.error_ns() < hour as u64);
    }
}
