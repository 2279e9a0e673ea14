//! The first file system of a guest: programs, modules, file system images, the script. May not enter: what the script
//! does.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::boot::{Boot, Making};
use super::modules::Modules;
use super::{lean_elf, packages, tool};
use crate::cpio::Archive;

const FOLDERS: [&str; 8] = ["dev", "proc", "sys", "tmp", "mnt", "bin", "m", "images"];
const MAKING_LIMIT: Duration = Duration::from_secs(30);
/// Grain at which an image's empty parts are found.
const GRAIN: usize = 4096;
/// An image is read so much at a time: whole grains.
const PIECE: usize = 256 * GRAIN;

/// The programs that go into every guest, made small.
pub(super) struct Programs {
    iowhy: Vec<u8>,
    guest: Vec<u8>,
    cases: Vec<u8>,
}

impl Programs {
    /// Reads the statically linked programs from a folder of the build.
    ///
    /// # Errors
    /// In words.
    pub(super) fn read(folder: &Path) -> Result<Programs, String> {
        let read = |name: &str| {
            let path = folder.join(name);
            let bytes = std::fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            lean_elf::lean(&bytes).ok_or_else(|| format!("{} is no executable", path.display()))
        };
        Ok(Programs { iowhy: read("iowhy")?, guest: read("lab-guest")?, cases: read("iowhy-cases")? })
    }
}

/// Builds the archive; `tools` is where those that make file systems were unpacked, if they were.
///
/// # Errors
/// In words: a module or a tool that is not there.
pub(super) fn build(
    boot: &Boot,
    programs: &Programs,
    modules: &Modules,
    tools: Option<&Path>,
) -> Result<Vec<u8>, String> {
    let mut archive = Archive::default();
    FOLDERS.iter().for_each(|name| archive.folder(name));
    archive.character_device("dev/console", 5, 1);
    archive.file("init", 0o755, &programs.guest);
    archive.file("bin/lab-guest", 0o755, &programs.guest);
    archive.file("bin/iowhy", 0o755, &programs.iowhy);
    archive.file("bin/iowhy-cases", 0o755, &programs.cases);
    let wanted: Vec<&str> = boot.modules.iter().map(|(name, _)| *name).collect();
    let mut steps = Vec::new();
    for name in modules.in_order(&wanted)? {
        let place = format!("m/{name}.ko");
        archive.file(&place, 0o644, &modules.bytes(&name)?);
        let parameters = boot.modules.iter().find(|(wanted, _)| *wanted == name).map_or("", |(_, p)| p);
        steps.push(vec!["insmod".to_owned(), format!("/{place}"), parameters.to_owned()]);
    }
    for (name, making) in &boot.images {
        archive.file(&format!("images/{name}"), 0o644, &image(making, tools)?);
    }
    steps.extend(boot.steps.iter().cloned());
    let script = serde_json::to_vec(&steps).map_err(|e| e.to_string())?;
    archive.file("lab.json", 0o644, &script);
    Ok(archive.finish())
}

/// The full parts of a new file system: an offset (8 bytes), a length (4 bytes) and the bytes of each.
fn image(making: &Making, tools: Option<&Path>) -> Result<Vec<u8>, String> {
    let file = tempfile::NamedTempFile::with_prefix("iowhy-lab-")
        .map_err(|e| format!("cannot make a temporary file: {e}"))?;
    file.as_file().set_len(making.bytes).map_err(|e| format!("cannot size a temporary file: {e}"))?;
    let [program, options @ ..] = making.command.as_slice() else { return Err("no tool".to_owned()) };
    let unpacked =
        tools.into_iter().flat_map(|root| ["usr/sbin", "sbin"].map(|at| root.join(at).join(program)));
    let unpacked = unpacked.filter(|path| path.is_file()).zip(tools).next();
    let mut command = Command::new(unpacked.as_ref().map_or(Path::new(program), |(path, _)| path));
    if let Some((_, root)) = &unpacked {
        command.env("LD_LIBRARY_PATH", packages::libraries(root));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).args(options).arg(file.path());
    tool::output(&mut command, MAKING_LIMIT)?;
    let whole = std::fs::File::open(file.path()).map_err(|e| format!("cannot open the image: {e}"))?;
    full_parts(&whole).map_err(|e| format!("cannot read the image: {e}"))
}

fn full_parts(mut whole: impl Read) -> std::io::Result<Vec<u8>> {
    let mut parts = Vec::new();
    let mut at = 0;
    // A piece at a time: an image of XFS is 320 MB of nearly nothing.
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        piece.clear();
        whole.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
        if piece.is_empty() {
            return Ok(parts);
        }
        for grain in piece.chunks(GRAIN) {
            if grain.iter().any(|byte| *byte != 0) {
                parts.extend_from_slice(&(at as u64).to_le_bytes());
                parts.extend_from_slice(&(grain.len() as u32).to_le_bytes());
                parts.extend_from_slice(grain);
            }
            at += grain.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_parts_travel() {
        let mut whole = vec![0; PIECE + 10 * GRAIN + 7];
        whole[3 * GRAIN + 1] = 1;
        whole[PIECE + 10 * GRAIN] = 2;
        let parts = full_parts(whole.as_slice()).unwrap();
        assert_eq!(parts.len(), 12 + GRAIN + 12 + 7);
        assert_eq!(parts[..8], (3 * GRAIN as u64).to_le_bytes());
        assert_eq!(parts[12 + GRAIN + 12], 2);
        assert_eq!(parts[12 + GRAIN..12 + GRAIN + 8], ((PIECE + 10 * GRAIN) as u64).to_le_bytes());
        assert!(full_parts([0; 100].as_slice()).unwrap().is_empty());
    }
}
