//! The Python wheel: the package of `python/iowhy`, the classes of records, and the static binary. Written byte by byte the same
//! from the same source, as the Debian package is. Non-goal: a source distribution; Python alone cannot build iowhy.

use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::{Item, records, version};
use crate::static_target::Arch;

/// Systems that the binary runs on. It needs no C library, so that glibc (manylinux) and musl are both right; `manylinux2014`
/// is for installers that do not know PEP 600.
const SYSTEMS: [&str; 3] = ["manylinux2014", "manylinux_2_17", "musllinux_1_1"];

/// Python versions below 3.9 lack annotations such as `dict[str, int]`.
const METADATA: &str = "\
Requires-Python: >=3.9
License: MIT OR Apache-2.0
Summary: Where the time goes between a program's read or write and the disk, and what would help
Provides-Extra: pandas
Requires-Dist: pandas; extra == \"pandas\"
";

/// The wheel's file name.
pub(crate) fn name(arch: Arch) -> String {
    format!("iowhy-{}-py3-none-{}.whl", version(), platforms(arch).join("."))
}

fn platforms(arch: Arch) -> [String; 3] {
    SYSTEMS.map(|system| format!("{system}_{}", arch.name()))
}

/// The wheel, around a binary.
pub(crate) fn wheel(root: &Path, binary: Vec<u8>, arch: Arch) -> io::Result<Vec<u8>> {
    let information = format!("iowhy-{}.dist-info", version());
    let file = |path: String, bytes: Vec<u8>| Item { path, bytes, executable: false };
    let mut items = vec![
        file("iowhy/records.py".to_owned(), records::module().into_bytes()),
        // Says that the annotations are for type checkers (PEP 561).
        file("iowhy/py.typed".to_owned(), Vec::new()),
        Item { path: "iowhy/bin/iowhy".to_owned(), bytes: binary, executable: true },
    ];
    for path in sources(root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        items.push(file(format!("iowhy/{name}"), std::fs::read(&path)?));
    }
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        items.push(file(format!("{information}/{name}"), std::fs::read(root.join(name))?));
    }
    let tags: String = platforms(arch).iter().map(|platform| format!("Tag: py3-none-{platform}\n")).collect();
    for (name, text) in [
        ("METADATA", format!("Metadata-Version: 2.1\nName: iowhy\nVersion: {}\n{METADATA}", version())),
        ("WHEEL", format!("Wheel-Version: 1.0\nGenerator: iowhy\nRoot-Is-Purelib: false\n{tags}")),
        ("entry_points.txt", "[console_scripts]\niowhy = iowhy.__main__:main\n".to_owned()),
    ] {
        items.push(file(format!("{information}/{name}"), text.into_bytes()));
    }
    let record = format!("{information}/RECORD");
    let mut lines: String = items
        .iter()
        .map(|i| format!("{},sha256={},{}\n", i.path, base64(&Sha256::digest(&i.bytes)), i.bytes.len()))
        .collect();
    lines.push_str(&format!("{record},,\n"));
    items.push(file(record, lines.into_bytes()));
    archive(&items)
}

/// The package's modules, in order.
fn sources(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("python/iowhy"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "py") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn archive(items: &[Item]) -> io::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for item in items {
        let mode = if item.executable { 0o755 } else { 0o644 };
        // Without a time: 1980, the first that an archive can tell.
        let options = SimpleFileOptions::default().unix_permissions(mode);
        archive.start_file(item.path.as_str(), options)?;
        archive.write_all(&item.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// For URLs and without padding, as a wheel's RECORD has it (RFC 4648, section 5).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let of_three = |three: &[u8]| {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        let digits = three.len() + 1;
        (0..digits).map(move |digit| char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]))
    };
    bytes.chunks(3).flat_map(of_three).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_record_of_a_wheel_has_digests_without_padding() {
        // RFC 4648, section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("\u{fb}\u{f0}", "w7vDsA"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn the_same_source_makes_the_same_wheel() {
        let root = crate::root();
        let made = wheel(&root, b"binary".to_vec(), Arch::Aarch64).unwrap();
        assert_eq!(made, wheel(&root, b"binary".to_vec(), Arch::Aarch64).unwrap());
        let mut archive = zip::ZipArchive::new(Cursor::new(made)).unwrap();
        let binary = archive.by_name("iowhy/bin/iowhy").unwrap();
        assert_eq!((binary.unix_mode().unwrap() & 0o777, binary.size()), (0o755, 6));
        drop(binary);
        let mut tags = archive.by_name(&format!("iowhy-{}.dist-info/WHEEL", version())).unwrap();
        let mut text = String::new();
        tags.read_to_string(&mut text).unwrap();
        assert!(text.contains("Tag: py3-none-manylinux_2_17_aarch64\n") && !text.contains("x86"), "{text}");
    }
}
