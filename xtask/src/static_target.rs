//! The target that links statically: its name, and making sure that the toolchain has it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Needs no C library, so that what is built runs in a guest or a container without one.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";

/// Makes sure that the toolchain can build for it.
///
/// # Errors
/// In words, when it cannot and adding it does not work.
pub(crate) fn ensure(root: &Path) -> Result<(), String> {
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).current_dir(root).output();
    let has = installed.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).lines().any(|l| l == TARGET));
    let added = || {
        Command::new("rustup")
            .args(["target", "add", TARGET])
            .current_dir(root)
            .status()
            .is_ok_and(|s| s.success())
    };
    if has || added() { Ok(()) } else { Err(format!("`rustup target add {TARGET}` did not work here")) }
}

/// The binary that [`build`] makes.
pub(crate) fn binary(root: &Path) -> PathBuf {
    crate::target(root).join(TARGET).join("debug/iowhy")
}

/// Builds what is linked statically: iowhy, and with it the first process of the lab's guests and the programs that print
/// what they did, so that what they share is built once.
pub(crate) fn build(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(["build", "--quiet", "--target", TARGET])
        .args(["--package", "iowhy", "--package", "lab-guest", "--package", "iowhy-cases"])
        .current_dir(root);
    command
}
