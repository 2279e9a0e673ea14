//! Targets that link statically: their names, making sure that the toolchain has them, and builds for them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What runs in the lab's guests. Needs no C library, so that it runs in a guest or a container without one.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-musl";

/// An architecture that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Aarch64,
}

impl Arch {
    pub(crate) const ALL: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

    /// The architecture with this name.
    pub(crate) fn parse(name: &str) -> Option<Arch> {
        Arch::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// The architecture that this runs on.
    ///
    /// # Errors
    /// In words, where no packages are made for it.
    pub(crate) fn here() -> Result<Arch, String> {
        let name = std::env::consts::ARCH;
        Arch::parse(name).ok_or_else(|| format!("no packages are made for {name}: name one with `--arch`"))
    }

    /// The name that Linux, Rust, RPM and Python have for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        }
    }

    /// The name that Debian and images of containers have for it.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Arch::X86_64 => "amd64",
            Arch::Aarch64 => "arm64",
        }
    }

    /// The target that needs no C library.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }
}

/// Makes sure that the toolchain can build for a target.
///
/// # Errors
/// In words, when it cannot and adding it does not work.
pub(crate) fn ensure(root: &Path, target: &str) -> Result<(), String> {
    let installed = Command::new("rustup").args(["target", "list", "--installed"]).current_dir(root).output();
    let has = installed.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).lines().any(|l| l == target));
    let added = || {
        Command::new("rustup")
            .args(["target", "add", target])
            .current_dir(root)
            .status()
            .is_ok_and(|s| s.success())
    };
    if has || added() { Ok(()) } else { Err(format!("`rustup target add {target}` did not work here")) }
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

/// Builds iowhy as it is given to people: optimised and without symbols. The toolchain's own linker links for every architecture,
/// and no C compiler is needed: no crate compiles C.
///
/// # Errors
/// In words, where it does not build.
pub(crate) fn release(root: &Path, arch: Arch) -> Result<Vec<u8>, String> {
    let target = arch.target();
    ensure(root, &target)?;
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "iowhy", "--target", &target])
        .args(["--config", "profile.release.strip=true"])
        .args(["--config", &format!("target.{target}.linker=\"rust-lld\"")])
        .current_dir(root)
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !built.success() {
        return Err(format!("the static binary for {target} does not build"));
    }
    let path = crate::target(root).join(&target).join("release/iowhy");
    std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
