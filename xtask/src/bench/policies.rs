//! Cache policies and curves on the published traces: miss ratios to four digits, speed, memory. The measuring itself is an
//! example of the simulator, built for release; it fails where a miss ratio differs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Outcome;

/// Builds it, and says where it is.
pub(super) fn build(root: &Path, target: &Path) -> Outcome<PathBuf> {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--package", "iowhy-sim", "--example", "policies"])
        .current_dir(root)
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !built.success() {
        return Err("the example `policies` did not build".to_owned());
    }
    Ok(target.join("release/examples/policies"))
}

/// Builds and runs it.
pub(super) fn measure(root: &Path, target: &Path, rounds: usize) -> Outcome<()> {
    let example = build(root, target)?;
    let ended = Command::new(&example)
        .arg(rounds.to_string())
        .status()
        .map_err(|e| format!("cannot run {}: {e}", example.display()))?;
    match ended.success() {
        true => Ok(()),
        false => Err("miss ratios differ from the published ones".to_owned()),
    }
}
