//! `cargo xtask dist`: what is given to people. For each architecture the static binary, manual pages and shell completions made
//! from the command line's own definition; a Debian package, an RPM package and an archive of them, a Python wheel; and the digests
//! of these files. All under target/dist, and with `--prefix DIR` installed there.
//!
//! The packages are written here, byte by byte the same from the same source. No packaging tool is needed.

mod records;
mod rpm;
pub(crate) mod wheel;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::static_target::{self, Arch};

const SUMMARY: &str = "Where the time goes between a program's read or write and the disk";
const DESCRIPTION: &str = "Measures the I/O path, splits the time over its layers, says what limits it\n\
                           and what would help. One static binary.";

/// A file of the package: path below the prefix, contents, whether it is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    path: String,
    bytes: Vec<u8>,
    executable: bool,
}

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    archs: Vec<Arch>,
    prefix: Option<PathBuf>,
}

const USAGE: &str = "usage: cargo xtask dist [--arch x86_64|aarch64]... [--prefix DIR]; only one architecture is installed below DIR";

/// Makes everything and says where it is.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let Some(options) = parse(arguments) else {
        eprintln!("error: {USAGE}");
        return ExitCode::from(2);
    };
    match make(root, &options.archs, options.prefix.as_deref()) {
        Ok(lines) => {
            println!("{}", lines.join("\n"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// `None`: an option that is none, a value that is none, or two architectures for one place.
fn parse(arguments: &[&str]) -> Option<Options> {
    let mut options = Options::default();
    let mut left = arguments.iter();
    while let Some(option) = left.next() {
        let value = left.next()?;
        match *option {
            "--arch" => options.archs.push(Arch::parse(value)?),
            "--prefix" => options.prefix = Some(value.into()),
            _ => return None,
        }
    }
    (options.archs.len() < 2 || options.prefix.is_none()).then_some(options)
}

/// Makes everything for these architectures, or for this machine's where none is named. Lines that say where it is.
pub(crate) fn make(root: &Path, archs: &[Arch], prefix: Option<&Path>) -> Result<Vec<String>, String> {
    let archs = if archs.is_empty() { vec![Arch::here()?] } else { archs.to_vec() };
    let failed = |error: io::Error| format!("cannot write the distribution: {error}");
    let common = common(root).map_err(failed)?;
    let folder = folder(root);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    let mut digests = String::new();
    let mut lines = Vec::new();
    for arch in archs {
        let binary = static_target::release(root, arch)?;
        let mut items = vec![Item { path: "bin/iowhy".to_owned(), bytes: binary.clone(), executable: true }];
        items.extend(common.iter().cloned());
        let place = folder.join(arch.debian());
        install(&items, &place.join("usr")).map_err(failed)?;
        let pages = items.iter().filter(|item| item.path.contains("/man1/")).count();
        lines.push(format!("binary       {}", place.join("usr/bin/iowhy").display()));
        lines.push(format!("manual       {pages} pages under {}", place.join("usr/share/man").display()));
        for (name, bytes) in packages(root, &items, binary, arch).map_err(failed)? {
            std::fs::write(folder.join(&name), &bytes).map_err(failed)?;
            digests.push_str(&format!("{:x}  {name}\n", Sha256::digest(&bytes)));
            lines.push(format!("package      {}", folder.join(name).display()));
        }
        if let Some(prefix) = prefix {
            install(&items, prefix)
                .map_err(|error| format!("cannot install below {}: {error}", prefix.display()))?;
            lines.push(format!("installed    {} files below {}", items.len(), prefix.display()));
        }
    }
    std::fs::write(folder.join("SHA256SUMS"), digests).map_err(failed)?;
    lines.push(format!("digests      {}", folder.join("SHA256SUMS").display()));
    Ok(lines)
}

/// Where everything is.
pub(crate) fn folder(root: &Path) -> PathBuf {
    crate::target(root).join("dist")
}

/// The binary of an architecture, once it is made.
pub(crate) fn binary(root: &Path, arch: Arch) -> PathBuf {
    folder(root).join(arch.debian()).join("usr/bin/iowhy")
}

/// What is the same on each architecture.
fn common(root: &Path) -> io::Result<Vec<Item>> {
    let mut items = generated()?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "README.md"] {
        let bytes = std::fs::read(root.join(name))?;
        items.push(Item { path: format!("share/doc/iowhy/{name}"), bytes, executable: false });
    }
    Ok(items)
}

/// Packages by the names of their files.
fn packages(root: &Path, items: &[Item], binary: Vec<u8>, arch: Arch) -> io::Result<Vec<(String, Vec<u8>)>> {
    Ok(vec![
        (format!("iowhy_{}_{}.deb", version(), arch.debian()), deb(items, arch)?),
        (rpm::name(arch), rpm::rpm(items, arch)?),
        (format!("iowhy-{}-{}-linux.tar.gz", version(), arch.name()), archive(items)?),
        (wheel::name(arch), wheel::wheel(root, binary, arch)?),
    ])
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Manual pages and completions.
fn generated() -> io::Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut whole = iowhy::cli::Cli::command();
    whole.build();
    pages(&whole, "iowhy", &mut items)?;
    for (shell, path) in [
        (clap_complete::Shell::Bash, "share/bash-completion/completions/iowhy"),
        (clap_complete::Shell::Zsh, "share/zsh/vendor-completions/_iowhy"),
        (clap_complete::Shell::Fish, "share/fish/vendor_completions.d/iowhy.fish"),
    ] {
        let mut bytes = Vec::new();
        clap_complete::generate(shell, &mut iowhy::cli::Cli::command(), "iowhy", &mut bytes);
        items.push(Item { path: path.to_owned(), bytes, executable: false });
    }
    Ok(items)
}

/// A page a command: iowhy(1), iowhy-bench(1), iowhy-stripe-lint(1).
fn pages(command: &clap::Command, name: &str, items: &mut Vec<Item>) -> io::Result<()> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name.to_uppercase()).render(&mut text)?;
    let bytes = gzip(&text)?;
    items.push(Item { path: format!("share/man/man1/{name}.1.gz"), bytes, executable: false });
    for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
        pages(child, &format!("{name}-{}", child.get_name()), items)?;
    }
    Ok(())
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn install(items: &[Item], prefix: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for item in items {
        let path = prefix.join(&item.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, &item.bytes)?;
        let mode = if item.executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// The Debian package, as of deb(5).
fn deb(items: &[Item], arch: Arch) -> io::Result<Vec<u8>> {
    let kib: u64 = items.iter().map(|item| item.bytes.len() as u64).sum::<u64>().div_ceil(1024);
    let control = format!(
        "Package: iowhy\nVersion: {}\nArchitecture: {}\nMaintainer: The developers of iowhy <iowhy@localhost>\n\
         Installed-Size: {kib}\nSection: utils\nPriority: optional\nDescription: {SUMMARY}\n {}\n",
        version(),
        arch.debian(),
        DESCRIPTION.replace('\n', "\n ")
    );
    let control = Item { path: "control".to_owned(), bytes: control.into_bytes(), executable: false };
    let data: Vec<Item> =
        items.iter().map(|i| Item { path: format!("usr/{}", i.path), ..i.clone() }).collect();
    let mut package = b"!<arch>\n".to_vec();
    ar_member(&mut package, "debian-binary", b"2.0\n")?;
    ar_member(&mut package, "control.tar.gz", &gzip(&tar(std::slice::from_ref(&control))?)?)?;
    ar_member(&mut package, "data.tar.gz", &gzip(&tar(&data)?)?)?;
    Ok(package)
}

/// The files below one folder, to be unpacked anywhere.
fn archive(items: &[Item]) -> io::Result<Vec<u8>> {
    let below = |item: &Item| Item { path: format!("iowhy-{}/{}", version(), item.path), ..item.clone() };
    gzip(&tar(&items.iter().map(below).collect::<Vec<_>>())?)
}

/// One member of an ar archive: 60 bytes of header, the bytes, one more where their number is odd.
fn ar_member(archive: &mut Vec<u8>, name: &str, bytes: &[u8]) -> io::Result<()> {
    writeln!(archive, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, 0, "100644", bytes.len())?;
    archive.extend_from_slice(bytes);
    if bytes.len() % 2 == 1 {
        archive.push(b'\n');
    }
    Ok(())
}

/// A tar archive of files and the directories above them, all of root, of the time 0.
fn tar(items: &[Item]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut folders = std::collections::BTreeSet::new();
    for item in items {
        let mut folder = Path::new(&item.path).parent();
        while let Some(path) = folder.filter(|path| !path.as_os_str().is_empty()) {
            folders.insert(path.to_owned());
            folder = path.parent();
        }
    }
    let header = |kind, mode: u32, bytes: u64| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(bytes);
        header.set_mtime(0);
        header
    };
    for folder in folders {
        let path = format!("./{}/", folder.display());
        archive.append_data(&mut header(tar::EntryType::Directory, 0o755, 0), path, io::empty())?;
    }
    for item in items {
        let mode = if item.executable { 0o755 } else { 0o644 };
        let mut header = header(tar::EntryType::Regular, mode, item.bytes.len() as u64);
        archive.append_data(&mut header, format!("./{}", item.path), item.bytes.as_slice())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn every_command_has_its_page_and_its_completion() {
        let items = generated().unwrap();
        let names: Vec<&str> = items.iter().map(|item| item.path.as_str()).collect();
        let command = iowhy::cli::Cli::command();
        for child in command.get_subcommands() {
            let page = format!("share/man/man1/iowhy-{}.1.gz", child.get_name());
            assert!(names.contains(&page.as_str()), "{page}");
            for item in items.iter().filter(|item| !item.path.contains("/man1/")) {
                let text = String::from_utf8_lossy(&item.bytes);
                assert!(text.contains(child.get_name()), "{} does not name {}", item.path, child.get_name());
            }
        }
        assert!(items.iter().all(|item| item.bytes.len() > 100));
    }

    #[test]
    fn one_architecture_at_most_is_installed() {
        let both = ["--arch", "x86_64", "--arch", "aarch64"];
        assert_eq!(parse(&both).unwrap().archs, [Arch::X86_64, Arch::Aarch64]);
        assert_eq!(parse(&["--prefix", "/p"]).unwrap().prefix, Some("/p".into()));
        for bad in
            [&["--arch"][..], &["--arch", "sparc"], &["--to", "x"], &[&both[..], &["--prefix", "p"]].concat()]
        {
            assert!(parse(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn debian_reads_the_package_back() {
        let item =
            |path: &str, executable| Item { path: path.to_owned(), bytes: b"odd".to_vec(), executable };
        let items = [item("bin/iowhy", true), item("share/doc/iowhy/README.md", false)];
        let package = deb(&items, Arch::Aarch64).unwrap();
        assert_eq!(package, deb(&items, Arch::Aarch64).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.deb");
        std::fs::write(&path, &package).unwrap();
        let Ok(listed) = Command::new("dpkg-deb").arg("--contents").arg(&path).output() else {
            println!("skipped: dpkg-deb is not installed");
            return;
        };
        let text = String::from_utf8_lossy(&listed.stdout);
        assert!(listed.status.success(), "{listed:?}");
        assert!(text.contains("-rwxr-xr-x root/root") || text.contains("-rwxr-xr-x 0/0"), "{text}");
        assert!(text.contains("usr/bin/iowhy") && text.contains("usr/share/doc/iowhy/README.md"), "{text}");
        let told = Command::new("dpkg-deb").arg("--field").arg(&path).output().unwrap();
        let text = String::from_utf8_lossy(&told.stdout);
        assert!(
            text.contains("Package: iowhy") && text.contains(&format!("Version: {}", version())),
            "{text}"
        );
        assert!(text.contains("Architecture: arm64"), "{text}");
    }
}
