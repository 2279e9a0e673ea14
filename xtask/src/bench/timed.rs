//! Speed of the timed simulator. The measuring itself is an example of the simulator, built for release.

use std::path::Path;
use std::process::Command;

use super::Outcome;

/// Builds and runs it.
pub(super) fn measure(root: &Path, target: &Path, rounds: usize) -> Outcome<()> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "iowhy-sim", "--example", "timed"])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !built.success() {
        return Err("the example `timed` did not build".to_owned());
    }
    let example = target.join("release/examples/timed");
    let ended = Command::new(&example)
        .arg(rounds.to_string())
        .status()
        .map_err(|e| format!("cannot run {}: {e}", example.display()))?;
    if ended.success() { Ok(()) } else { Err("the timed simulator failed".to_owned()) }
}
