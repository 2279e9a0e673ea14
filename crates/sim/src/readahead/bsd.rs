//! `cluster_read` of 4.4BSD (vfs_cluster.c): after a read that follows the last one, a run of blocks is read at once, and the
//! run doubles while the reader continues, up to the largest transfer.

use std::ops::Range;

use super::{Advice, MAX_STREAMS, ReadAhead};
use rustc_hash::FxHashMap;

/// One file: `v_lastr`, `v_ralen`, `v_maxra`.
#[derive(Clone, Copy, Debug, Default)]
struct Vnode {
    /// One behind the last block that was read.
    next: u64,
    /// Blocks of the next run.
    run: u64,
    /// End of the blocks requested ahead.
    ahead_end: u64,
}

/// All files.
#[derive(Debug)]
pub(super) struct Cluster {
    most: u64,
    files: FxHashMap<u64, Vnode>,
}

impl Cluster {
    pub(super) fn new(most: u64) -> Self {
        Cluster { most, files: FxHashMap::default() }
    }
}

impl ReadAhead for Cluster {
    fn access(&mut self, stream: u64, asked: Range<u64>, missing: bool, limit: u64) -> Advice {
        if self.files.len() > MAX_STREAMS {
            self.files.clear();
        }
        let known = self.files.get(&stream).copied();
        let mut file = known.unwrap_or_default();
        let follows = known.is_some() && (asked.start == file.next || asked.start + 1 == file.next);
        let mut advice = Advice { fetch_end: asked.end, ahead: 0..0 };
        if follows {
            file.run = (file.run * 2).clamp(1, self.most);
            let begin = file.ahead_end.max(asked.end);
            // The next run goes out when the reader has come near the end of the last, at once when it has overrun it.
            if missing || begin.saturating_sub(asked.end) <= file.run / 2 {
                advice.ahead = begin.min(limit)..begin.saturating_add(file.run).min(limit);
                file.ahead_end = advice.ahead.end.max(begin);
            }
        } else {
            file.run = 0;
            file.ahead_end = asked.end;
        }
        file.next = asked.end;
        self.files.insert(stream, file);
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_double_while_the_reader_goes_on() {
        let mut machine = Cluster::new(8);
        let mut runs = Vec::new();
        for block in 0..40u64 {
            let advice = machine.access(1, block..block + 1, block == 0, u64::MAX);
            if !advice.ahead.is_empty() {
                runs.push(advice.ahead.end - advice.ahead.start);
            }
        }
        assert_eq!(runs[..4], [1, 2, 4, 8]);
        assert!(runs.iter().skip(4).all(|run| *run == 8));
    }

    #[test]
    fn a_jump_begins_anew_and_the_end_of_the_file_holds() {
        let mut machine = Cluster::new(8);
        for block in [0u64, 1, 2, 500, 7, 90] {
            let advice = machine.access(1, block..block + 1, true, 501);
            assert!(advice.ahead.end <= 501);
            assert!(block <= 2 || advice.ahead.is_empty());
        }
    }
}
