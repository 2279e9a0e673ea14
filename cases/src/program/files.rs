//! Many small files against the same bytes in one.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Outcome, failed};

/// Examines, opens and reads every file below a folder, `passes` times.
pub(super) fn tree(dir: &str, passes: u64) -> Outcome<u64> {
    let mut bytes = 0;
    for _ in 0..passes {
        let mut open: Vec<PathBuf> = vec![Path::new(dir).to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).map_err(failed("list a folder"))? {
                let path = entry.map_err(failed("list a folder"))?.path();
                if fs::metadata(&path).map_err(failed("examine a file"))?.is_dir() {
                    open.push(path);
                } else {
                    bytes += fs::read(&path).map_err(failed("read a file"))?.len() as u64;
                }
            }
        }
    }
    Ok(bytes)
}

/// Reads the same number of members from one file, `passes` times.
pub(super) fn archive(path: &str, files: u64, bytes: u64, passes: u64) -> Outcome<u64> {
    let mut total = 0;
    for _ in 0..passes {
        let mut content = Vec::new();
        File::open(path).and_then(|mut f| f.read_to_end(&mut content)).map_err(failed("read the archive"))?;
        total +=
            content.chunks(bytes.max(1) as usize).take(files as usize).map(|c| c.len() as u64).sum::<u64>();
    }
    Ok(total)
}
