//! The RPM package, written byte by byte the same from the same source: a lead, a header of digests, a header of what the package
//! is, and a compressed cpio archive of its files. It has no signature and runs no scripts.
//!
//! Format: version 4 of the manual of RPM (docs/manual/format_v4.md), tags of include/rpm/rpmtag.h. Needs RPM 4.14 or later to
//! verify it: older ones know no digest of the compressed archive.

use std::io;

use sha2::{Digest, Sha256};

use super::{DESCRIPTION, Item, SUMMARY, gzip, version};
use crate::cpio::Archive;
use crate::static_target::Arch;

/// Begins each header.
const MAGIC: [u8; 8] = [0x8e, 0xad, 0xe8, 0x01, 0, 0, 0, 0];
/// Bytes of an entry in the index of a header.
const ENTRY: usize = 16;
/// There was no package of this version before.
const RELEASE: &str = "1";
/// RPMFILE_DOC.
const DOCUMENTATION: u32 = 2;
/// PGPHASHALGO_SHA256.
const SHA256: u32 = 8;
/// RPMSENSE_EQUAL; RPMSENSE_RPMLIB, RPMSENSE_LESS and RPMSENSE_EQUAL.
const EQUAL: u32 = 8;
const OF_RPM: u32 = 0x0100_000a;
/// What the one who installs must understand: abilities of RPM itself, each with the version that brought it.
const ABILITIES: [(&str, &str); 3] = [
    ("rpmlib(CompressedFileNames)", "3.0.4-1"),
    ("rpmlib(FileDigests)", "4.6.0-1"),
    ("rpmlib(PayloadFilesHavePrefix)", "4.0-1"),
];

/// The values of a tag.
enum Value {
    Short(Vec<u16>),
    Long(Vec<u32>),
    Text(String),
    List(Vec<String>),
    /// Text that may be translated, in one language.
    Words(String),
}

/// A file or directory.
struct Entry {
    /// From the root on.
    path: String,
    mode: u16,
    bytes: Vec<u8>,
    flags: u32,
}

/// The file name of the package.
pub(super) fn name(arch: Arch) -> String {
    format!("iowhy-{}-{RELEASE}.{}.rpm", version(), arch.name())
}

/// The package.
pub(super) fn rpm(items: &[Item], arch: Arch) -> io::Result<Vec<u8>> {
    let entries = entries(items);
    let mut archive = Archive::default();
    for entry in &entries {
        let name = format!(".{}", entry.path);
        if entry.mode & FOLDER == FOLDER {
            archive.folder(&name);
        } else {
            archive.file(&name, u32::from(entry.mode), &entry.bytes);
        }
    }
    let archive = archive.finish();
    let payload = gzip(&archive)?;
    let header = header(63, &described(&entries, &payload, arch));
    let digests = [
        (273, Value::Text(hex(&header))),
        (1000, Value::Long(vec![(header.len() + payload.len()) as u32])),
        (1007, Value::Long(vec![archive.len() as u32])),
    ];
    let mut package = lead(arch);
    package.extend(header_of_digests(&digests));
    package.extend(header);
    package.extend(payload);
    Ok(package)
}

const FOLDER: u16 = 0o040_000;
const REGULAR: u16 = 0o100_000;

/// All files, and the directory that nothing but this package has, in the order that RPM looks them up in.
fn entries(items: &[Item]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = items
        .iter()
        .map(|item| Entry {
            // Where Fedora's shell looks; the other is Debian's.
            path: format!("/usr/{}", item.path.replace("zsh/vendor-completions", "zsh/site-functions")),
            mode: REGULAR | if item.executable { 0o755 } else { 0o644 },
            bytes: item.bytes.clone(),
            flags: if item.path.starts_with("share/doc") { DOCUMENTATION } else { 0 },
        })
        .collect();
    let path = "/usr/share/doc/iowhy".to_owned();
    entries.push(Entry { path, mode: FOLDER | 0o755, bytes: Vec::new(), flags: 0 });
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries
}

/// The first 96 bytes. Only the type of what follows is still read; the rest is in the header.
fn lead(arch: Arch) -> Vec<u8> {
    let number: u16 = match arch {
        Arch::X86_64 => 1,
        Arch::Aarch64 => 19,
    };
    let mut lead = vec![0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0];
    lead.extend(number.to_be_bytes());
    lead.extend(format!("iowhy-{}-{RELEASE}", version()).bytes());
    lead.resize(76, 0);
    // Linux, and digests in a header of their own.
    lead.extend([0, 1, 0, 5]);
    lead.resize(96, 0);
    lead
}

/// What the package is and holds. Tags in rising order.
fn described(entries: &[Entry], payload: &[u8], arch: Arch) -> Vec<(u32, Value)> {
    let text = |words: &str| Value::Text(words.to_owned());
    let list = |words: &[&str]| Value::List(words.iter().map(|word| (*word).to_owned()).collect());
    let longs = |of: &dyn Fn(&Entry) -> u32| Value::Long(entries.iter().map(of).collect());
    let shorts = |of: &dyn Fn(&Entry) -> u16| Value::Short(entries.iter().map(of).collect());
    let texts = |of: &dyn Fn(&Entry) -> String| Value::List(entries.iter().map(of).collect());
    let parted =
        |entry: &Entry| entry.path.rsplit_once('/').map(|(at, name)| (format!("{at}/"), name.to_owned()));
    let mut folders: Vec<String> = entries.iter().filter_map(parted).map(|(folder, _)| folder).collect();
    folders.sort();
    folders.dedup();
    let folder_of = |entry: &Entry| {
        let folder = parted(entry).map(|(folder, _)| folder);
        folder.and_then(|folder| folders.iter().position(|other| *other == folder)).unwrap_or(0) as u32
    };
    let numbers = Value::Long((1..).take(entries.len()).collect());
    let release = format!("{}-{RELEASE}", version());
    let (abilities, since): (Vec<&str>, Vec<&str>) = ABILITIES.into_iter().unzip();
    vec![
        (100, list(&["C"])),
        (1000, text("iowhy")),
        (1001, text(version())),
        (1002, text(RELEASE)),
        (1004, Value::Words(SUMMARY.to_owned())),
        (1005, Value::Words(DESCRIPTION.to_owned())),
        (1009, Value::Long(vec![entries.iter().map(|entry| entry.bytes.len() as u32).sum()])),
        (1014, text("MIT OR Apache-2.0")),
        (1016, Value::Words("Applications/System".to_owned())),
        (1021, text("linux")),
        (1022, text(arch.name())),
        (1028, longs(&|entry| entry.bytes.len() as u32)),
        (1030, shorts(&|entry| entry.mode)),
        (1033, shorts(&|_| 0)),
        (1034, longs(&|_| 0)),
        (1035, texts(&|entry| if entry.mode & FOLDER == FOLDER { String::new() } else { hex(&entry.bytes) })),
        (1036, texts(&|_| String::new())),
        (1037, longs(&|entry| entry.flags)),
        (1039, texts(&|_| "root".to_owned())),
        (1040, texts(&|_| "root".to_owned())),
        // Without it a package counts as one of sources.
        (1044, Value::Text(format!("iowhy-{release}.src.rpm"))),
        (1045, longs(&|_| u32::MAX)),
        (1047, list(&["iowhy"])),
        (1048, Value::Long(vec![OF_RPM; abilities.len()])),
        (1049, list(&abilities)),
        (1050, list(&since)),
        (1095, longs(&|_| 1)),
        (1096, numbers),
        (1097, texts(&|_| String::new())),
        (1112, Value::Long(vec![EQUAL])),
        (1113, list(&[&release])),
        (1116, longs(&folder_of)),
        (1117, texts(&|entry| parted(entry).map_or_else(String::new, |(_, name)| name))),
        (1118, Value::List(folders.clone())),
        (1124, text("cpio")),
        (1125, text("gzip")),
        (1126, text("9")),
        (5011, Value::Long(vec![SHA256])),
        (5092, Value::List(vec![hex(payload)])),
        (5093, Value::Long(vec![SHA256])),
    ]
}

/// The header before the others, which begin at a multiple of eight.
fn header_of_digests(digests: &[(u32, Value)]) -> Vec<u8> {
    let mut bytes = header(62, digests);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A header: its index, and the values in the same order. The tag `region` comes first and says that all of it is as it was built.
fn header(region: u32, tags: &[(u32, Value)]) -> Vec<u8> {
    let entry = |tag: u32, kind: u32, offset: i32, count: usize| {
        [tag, kind, offset.cast_unsigned(), count as u32].map(u32::to_be_bytes).concat()
    };
    const BINARY: u32 = 7;
    let (mut index, mut store) = (Vec::new(), Vec::new());
    for (tag, value) in tags {
        let (kind, align, count) = value.form();
        store.resize(Vec::len(&store).next_multiple_of(align), 0);
        index.extend(entry(*tag, kind, store.len() as i32, count));
        value.write(&mut store);
    }
    let entries = tags.len() + 1;
    let end = store.len() as i32;
    store.extend(entry(region, BINARY, -((entries * ENTRY) as i32), ENTRY));
    let mut header = MAGIC.to_vec();
    header.extend((entries as u32).to_be_bytes());
    header.extend((store.len() as u32).to_be_bytes());
    header.extend(entry(region, BINARY, end, ENTRY));
    header.extend(index);
    header.extend(store);
    header
}

impl Value {
    /// The number of its type, the multiple that it begins at, and how many it holds.
    fn form(&self) -> (u32, usize, usize) {
        match self {
            Value::Short(all) => (3, 2, all.len()),
            Value::Long(all) => (4, 4, all.len()),
            Value::Text(_) => (6, 1, 1),
            Value::List(all) => (8, 1, all.len()),
            Value::Words(_) => (9, 1, 1),
        }
    }

    fn write(&self, store: &mut Vec<u8>) {
        match self {
            Value::Short(all) => all.iter().for_each(|n| store.extend(n.to_be_bytes())),
            Value::Long(all) => all.iter().for_each(|n| store.extend(n.to_be_bytes())),
            Value::List(all) => all.iter().for_each(|text| store.extend([text.as_bytes(), &[0]].concat())),
            Value::Text(text) | Value::Words(text) => store.extend([text.as_bytes(), &[0]].concat()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn items() -> Vec<Item> {
        let item =
            |path: &str, executable| Item { path: path.to_owned(), bytes: b"odd".to_vec(), executable };
        vec![item("bin/iowhy", true), item("share/doc/iowhy/README.md", false), item("share/a", false)]
    }

    #[test]
    fn a_header_is_an_index_and_aligned_values() {
        let tags = [(1000, Value::Text("ab".to_owned())), (1028, Value::Long(vec![7, 8]))];
        let header = header(63, &tags);
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        // Three entries; "ab" and its zero are padded to four, eight bytes of numbers, sixteen of the region's end.
        assert_eq!((word(8), word(12), header.len()), (3, 28, 16 + 3 * 16 + 28));
        assert_eq!([word(16), word(20), word(24), word(28)], [63, 7, 12, 16]);
        assert_eq!([word(48), word(52), word(56), word(60)], [1028, 4, 4, 2]);
        assert_eq!((&header[64..68], word(68), word(72)), (&b"ab\0\0"[..], 7, 8));
        assert_eq!(word(84).cast_signed(), -48);
    }

    #[test]
    fn rpm_reads_the_package_back() {
        let package = rpm(&items(), Arch::Aarch64).unwrap();
        assert_eq!(package, rpm(&items(), Arch::Aarch64).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.rpm");
        std::fs::write(&path, &package).unwrap();
        let said = |arguments: &[&str]| {
            let home = format!("--dbpath={}", folder.path().join("db").display());
            let ran = Command::new("rpm").arg(home).args(arguments).arg(&path).output().ok()?;
            assert!(ran.status.success(), "{ran:?}");
            Some(String::from_utf8_lossy(&ran.stdout).into_owned())
        };
        let Some(listed) = said(&["-qlvp"]) else {
            println!("skipped: rpm is not installed");
            return;
        };
        let lines: Vec<&str> = listed.lines().collect();
        assert_eq!(lines.len(), 4, "{listed}");
        assert!(lines[0].starts_with("-rwxr-xr-x") && lines[0].ends_with(" /usr/bin/iowhy"), "{listed}");
        assert!(
            lines[2].starts_with("drwxr-xr-x") && lines[2].ends_with(" /usr/share/doc/iowhy"),
            "{listed}"
        );
        let fields = said(&["-qp", "--queryformat", "%{NVRA} %{OS} %{SIZE} %{FILEDIGESTALGO}"]).unwrap();
        assert_eq!(fields, format!("iowhy-{}-1.aarch64 linux 9 8", version()));
        let checked = said(&["--checksig"]).unwrap();
        assert!(checked.contains("digests OK"), "{checked}");
        // A byte of the archive that is another one is seen.
        let mut damaged = package;
        *damaged.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let ran = Command::new("rpm").arg("--checksig").arg(&path).output().unwrap();
        assert!(!ran.status.success(), "{ran:?}");
    }
}
