//! Builds the observer in the kernel from its C source, or checks that the committed bytes are those of the source. The same
//! compiler gives the same bytes; another version of clang gives others, which work as well but cannot be compared.

use std::path::Path;
use std::process::Command;

use crate::steps::Ending;

/// The compiler whose bytes are committed: Debian 12's.
const CLANG: &str = "clang-14";
const VERSION: &str = "14.0.6";
const STRIP: &str = "llvm-strip-14";

/// Committed files, relative to the root.
const SOURCE: &str = "crates/watch/bpf/observer.bpf.c";
const OBJECT: &str = "crates/watch/bpf/observer.bpf.o";

/// Writes the object anew.
pub(crate) fn build(root: &Path) -> Ending {
    match compiled(root) {
        Ok(bytes) => match std::fs::write(root.join(OBJECT), bytes) {
            Ok(()) => Ending::Passed,
            Err(error) => Ending::Failed(format!("{OBJECT}: {error}")),
        },
        Err(ending) => ending,
    }
}

/// Whether the committed object is what the source gives.
pub(crate) fn check(root: &Path) -> Ending {
    let bytes = match compiled(root) {
        Ok(bytes) => bytes,
        Err(ending) => return ending,
    };
    match std::fs::read(root.join(OBJECT)) {
        Ok(committed) if committed == bytes => Ending::Passed,
        Ok(_) => Ending::Failed(format!("{OBJECT} is not what {SOURCE} gives: run `cargo xtask observer`")),
        Err(error) => Ending::Failed(format!("{OBJECT}: {error}")),
    }
}

/// The bytes of the object; where that is not possible here, how the step ends.
fn compiled(root: &Path) -> Result<Vec<u8>, Ending> {
    let version = Command::new(CLANG).arg("--version").output();
    let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if !text.contains(VERSION) {
        return Err(Ending::Skipped(format!(
            "no {CLANG} {VERSION} here: the observer's bytes are not compared"
        )));
    }
    let folder = crate::target(root).join("observer");
    let object = folder.join("observer.bpf.o");
    std::fs::create_dir_all(&folder).map_err(|e| Ending::Failed(format!("{}: {e}", folder.display())))?;
    // Relative names, so that no path of this machine is in the object.
    run(Command::new(CLANG)
        .current_dir(root)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
        .args(["-fdebug-compilation-dir=.", "-c", SOURCE, "-o"])
        .arg(&object))?;
    // The type information stays, the debugger's goes.
    run(Command::new(STRIP).arg("-g").arg(&object))?;
    std::fs::read(&object).map_err(|e| Ending::Failed(format!("{}: {e}", object.display())))
}

fn run(command: &mut Command) -> Result<(), Ending> {
    let name = command.get_program().to_string_lossy().into_owned();
    let said = |why: String| Ending::Failed(format!("{name}: {why}"));
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(error) => Err(said(error.to_string())),
    }
}
