//! The kernel in the form that starts fastest: the ELF image inside a bzImage whose payload is XZ. Unpacking it once here
//! saves every guest three seconds of emulated decompression. May not enter: running it.
//!
//! Format: Documentation/arch/x86/boot.rst of the kernel (setup header).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::lean_elf::u32_at;
use super::{packages, tool};

const MAGIC_AT: usize = 0x202;
const SETUP_SECTORS_AT: usize = 0x1f1;
const PAYLOAD_OFFSET_AT: usize = 0x248;
const PAYLOAD_BYTES_AT: usize = 0x24c;
const XZ_START: &[u8] = b"\xfd7zXZ\0";
const XZ_END: &[u8] = b"YZ";
const UNPACK_LIMIT: Duration = Duration::from_secs(60);

/// The kernel to start: unpacked where its payload is XZ and `xz` is here, else as it is shipped, which starts slower.
///
/// # Errors
/// In words, when the package has no kernel or a file cannot be read or written.
pub(super) fn image(folder: &Path) -> Result<PathBuf, String> {
    let shipped =
        packages::boot_file(folder).ok_or_else(|| format!("no kernel under {}", folder.display()))?;
    let unpacked = folder.join("vmlinux");
    if unpacked.exists() {
        return Ok(unpacked);
    }
    let bytes = std::fs::read(&shipped).map_err(|e| format!("cannot read {}: {e}", shipped.display()))?;
    let Some(payload) = xz_payload(&bytes).filter(|_| tool::have("xz")) else { return Ok(shipped) };
    let image = unxz(payload)?;
    if !image.starts_with(b"\x7fELF") {
        return Ok(shipped);
    }
    // Under another name first: what is there is whole.
    let partial = folder.join("vmlinux.partial");
    std::fs::write(&partial, image)
        .and_then(|()| std::fs::rename(&partial, &unpacked))
        .map_err(|e| format!("cannot write {}: {e}", unpacked.display()))?;
    Ok(unpacked)
}

/// The XZ stream in a bzImage, without the length that the kernel's build appends to it.
fn xz_payload(bzimage: &[u8]) -> Option<&[u8]> {
    if bzimage.get(MAGIC_AT..MAGIC_AT + 4)? != b"HdrS" {
        return None;
    }
    // Zero means four, for reasons of history.
    let sectors = match bzimage.get(SETUP_SECTORS_AT)? {
        0 => 4,
        n => usize::from(*n),
    };
    let start = (sectors + 1) * 512 + u32_at(bzimage, PAYLOAD_OFFSET_AT)? as usize;
    let bytes = u32_at(bzimage, PAYLOAD_BYTES_AT)? as usize;
    let payload = bzimage.get(start..start.checked_add(bytes)?)?;
    let stream = match payload {
        [stream @ .., _, _, _, _] if stream.ends_with(XZ_END) => stream,
        whole => whole,
    };
    (stream.starts_with(XZ_START) && stream.ends_with(XZ_END)).then_some(stream)
}

/// Unpacks one stream of XZ.
///
/// # Errors
/// In words: there is no `xz`, or the stream is damaged.
pub(super) fn unxz(stream: &[u8]) -> Result<Vec<u8>, String> {
    let mut child = Command::new("xz")
        .args(["--decompress", "--stdout", "--single-stream"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot run xz: {e}"))?;
    let mut input = child.stdin.take();
    let mut output = child.stdout.take();
    let unpacked = std::thread::scope(|scope| {
        // A program that ends early says so by its status; the broken pipe adds nothing.
        scope.spawn(move || input.as_mut().map(|pipe| pipe.write_all(stream)));
        let mut bytes = Vec::new();
        output.as_mut().map(|pipe| std::io::Read::read_to_end(pipe, &mut bytes));
        bytes
    });
    let status = tool::wait(&mut child, UNPACK_LIMIT, "xz")?;
    if status.success() { Ok(unpacked) } else { Err(format!("xz cannot unpack the kernel: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bzimage(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 5 * 512];
        image[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(b"HdrS");
        image[PAYLOAD_OFFSET_AT..PAYLOAD_OFFSET_AT + 4].copy_from_slice(&16u32.to_le_bytes());
        image[PAYLOAD_BYTES_AT..PAYLOAD_BYTES_AT + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(&[0; 16]);
        image.extend_from_slice(payload);
        image
    }

    #[test]
    fn the_payload_is_found_and_its_appended_length_left_out() {
        let stream = b"\xfd7zXZ\0 ... YZ";
        let with_length = [stream.as_slice(), &[1, 2, 3, 4]].concat();
        assert_eq!(xz_payload(&bzimage(&with_length)), Some(stream.as_slice()));
        assert_eq!(xz_payload(&bzimage(stream)), Some(stream.as_slice()));
        assert_eq!(xz_payload(&bzimage(b"\x02\x21\x4c\x18 lz4")), None);
        assert_eq!(xz_payload(b"MZ"), None);
        let mut cut = bzimage(stream);
        cut.truncate(cut.len() - 1);
        assert_eq!(xz_payload(&cut), None);
    }

    #[test]
    fn what_xz_packed_is_unpacked() {
        if !tool::have("xz") {
            println!("skipped: xz is not installed");
            return;
        }
        let packed = Command::new("sh").args(["-c", "printf kernel | xz"]).output().unwrap().stdout;
        assert_eq!(unxz(&packed).unwrap(), b"kernel");
        assert!(unxz(b"no stream").is_err());
    }
}
