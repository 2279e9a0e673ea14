//! The read-ahead of 1989: the driver reads a minimum size, keeps the last read, and serves later reads from it. It works
//! below the cache, in bytes of the volume, and knows nothing of files.

use std::ops::Range;

/// The driver's buffer.
#[derive(Debug)]
pub(crate) struct DriverBuffer {
    least: u64,
    held: Range<u64>,
}

impl DriverBuffer {
    /// A driver that reads at least `least` bytes.
    pub(crate) fn new(least: u64) -> Self {
        DriverBuffer { least, held: 0..0 }
    }

    /// The range that the driver reads from the disk for this request, empty on a hit.
    pub(crate) fn read(&mut self, asked: Range<u64>, limit: u64) -> Option<Range<u64>> {
        if self.held.start <= asked.start && asked.end <= self.held.end {
            return None;
        }
        let end = asked.end.max(asked.start.saturating_add(self.least).min(limit));
        self.held = asked.start..end;
        Some(self.held.clone())
    }

    /// A write makes the kept read stale.
    pub(crate) fn write(&mut self, written: Range<u64>) {
        if written.start < self.held.end && self.held.start < written.end {
            self.held = 0..0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_four_blocks_come_from_the_buffer() {
        let mut driver = DriverBuffer::new(4096);
        let reads: Vec<_> = (0..8).map(|i| driver.read(i * 1024..(i + 1) * 1024, u64::MAX)).collect();
        assert_eq!(reads.iter().filter(|read| read.is_some()).count(), 2);
        assert_eq!(reads[4], Some(4096..8192));
        driver.write(5000..5001);
        assert!(driver.read(5120..6144, u64::MAX).is_some());
    }

    #[test]
    fn larger_requests_go_through_as_they_are() {
        let mut driver = DriverBuffer::new(4096);
        assert_eq!(driver.read(0..8192, u64::MAX), Some(0..8192));
        assert_eq!(driver.read(9000..9001, 9500), Some(9000..9500));
    }
}
