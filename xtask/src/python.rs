//! `cargo xtask python`: the Python package as its user has it. A wheel is installed into a fresh environment and the tests of
//! `python/tests` run there. By itself it needs no network and carries the debug binary; with `--notebook` it is the wheel of
//! `cargo xtask dist`, beside pandas, a kernel of Jupyter and a type checker from the registry.

use std::path::Path;
use std::process::Command;

use crate::static_target::Arch;
use crate::steps::{self, Ending};
use crate::{dist, programs};

/// What the tests in a notebook need from the registry.
const PACKAGES: [&str; 6] = ["pandas", "pandas-stubs", "nbclient", "ipykernel", "mypy", "prometheus-client"];

/// Installs and tests.
pub(crate) fn check(root: &Path, notebook: bool) -> Ending {
    let usable = Command::new("python3").args(["-c", "import venv, ensurepip"]).output();
    if !usable.is_ok_and(|ran| ran.status.success()) {
        return Ending::Skipped("there is no `python3` with the module venv".to_owned());
    }
    let folder = crate::target(root).join("python");
    let wheel = match wheel(root, &folder, notebook) {
        Ok(wheel) => wheel,
        Err(why) => return Ending::Failed(why),
    };
    let environment = folder.join("environment");
    let python = environment.join("bin/python");
    let pip = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]).args(arguments);
        steps::command(&mut command)
    };
    let made = steps::command(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment));
    if !matches!(made, Ending::Passed) {
        return made;
    }
    if notebook && !matches!(pip(&PACKAGES), Ending::Passed) {
        return Ending::Skipped(format!("pip cannot install {} here", PACKAGES.join(", ")));
    }
    let installed = pip(&["--no-index", "--no-deps", &wheel]);
    if !matches!(installed, Ending::Passed) {
        return installed;
    }
    let pattern = if notebook { "*.py" } else { "test_*.py" };
    steps::command(
        crate::iowhy(&python)
            .args(["-m", "unittest", "discover", "--start-directory", "python/tests", "--pattern", pattern])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(root),
    )
}

/// The path of the wheel to test.
fn wheel(root: &Path, folder: &Path, of_dist: bool) -> Result<String, String> {
    let arch = Arch::here()?;
    if of_dist {
        dist::make(root, &[arch], None)?;
        return Ok(dist::folder(root).join(dist::wheel::name(arch)).display().to_string());
    }
    if !programs::build_binary(root) {
        return Err("iowhy does not build".to_owned());
    }
    let failed = |error: std::io::Error| format!("cannot make the wheel: {error}");
    let binary = std::fs::read(programs::binary(root)).map_err(failed)?;
    std::fs::create_dir_all(folder).map_err(failed)?;
    let path = folder.join(dist::wheel::name(arch));
    std::fs::write(&path, dist::wheel::wheel(root, binary, arch).map_err(failed)?).map_err(failed)?;
    Ok(path.display().to_string())
}
