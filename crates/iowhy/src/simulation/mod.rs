//! The simulated load of a command: what is asked of the machine, and a watch over memory and progress while it runs.

mod demand;
mod running;

use std::path::Path;

use iowhy_core::problem::Problem;

pub(crate) use self::demand::{Demand, Feed};
pub(crate) use self::running::{MEMORY_SHARE_AT_MOST, Watch};

/// A description larger than this is none.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// A small file of text.
pub(crate) fn read_text(option: &str, path: &Path) -> Result<String, Problem> {
    let refuse = |why: String| {
        Problem::refused(format!("cannot read `{option} {}`: {why}", path.display())).hint("name a TOML file")
    };
    let size = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !size.is_file() || size.len() > MAX_TEXT_BYTES {
        return Err(refuse("not a file of text, or larger than 1 MiB".to_owned()));
    }
    std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))
}
