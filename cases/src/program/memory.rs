//! Reading into memory that is taken for each request, or into memory that stays.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Outcome, failed, sample};

/// Reads the file `passes` times in requests of `bytes`. The slow way makes a zeroed buffer for each request; from
/// 32 MiB on every allocator takes such memory from the kernel and gives it back.
pub(super) fn fresh(path: &str, bytes: usize, passes: u64, reuse: bool) -> Outcome<u64> {
    let file = File::open(path).map_err(failed("open the file"))?;
    let size = file.metadata().map_err(failed("examine the file"))?.len();
    let mut kept = vec![0u8; if reuse { bytes } else { 0 }];
    let mut sum = 0;
    for _ in 0..passes {
        let mut place = 0;
        while place < size {
            let now = bytes.min((size - place) as usize);
            if reuse {
                file.read_exact_at(&mut kept[..now], place).map_err(failed("read"))?;
                sum += sample(&kept[..now]);
            } else {
                let mut buffer = vec![0u8; now];
                file.read_exact_at(&mut buffer, place).map_err(failed("read"))?;
                sum += sample(&buffer);
            }
            place += now as u64;
        }
    }
    Ok(sum)
}
