//! apt's tools with lists and caches of our own: neither root nor the machine's lists are needed, and releases that the
//! machine does not use can be asked. May not enter: which packages are wanted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::tool;

/// Depends on the present kernel of a release.
const KERNEL: &str = "linux-image-amd64";
/// Debian's own mirror, for releases that the machine's sources do not name.
const MIRROR: &str = "http://deb.debian.org/debian";
/// What signs it: Debian's package `debian-archive-keyring`, which every Debian has.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// No answer within this many seconds means no network.
const NETWORK_PATIENCE_S: u32 = 8;
const LISTS_LIMIT: Duration = Duration::from_secs(90);
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(300);

/// One set of sources.
pub(super) struct Apt {
    folder: PathBuf,
    /// The one release that packages are taken from; `None` for what the machine's own sources have.
    release: Option<&'static str>,
}

impl Apt {
    /// Lists and caches below a folder.
    ///
    /// # Errors
    /// In words: a folder or the list of sources cannot be made.
    pub(super) fn new(folder: PathBuf, release: Option<&'static str>) -> Result<Apt, String> {
        let apt = Apt { folder, release };
        for folder in [apt.lists().join("partial"), apt.cache().join("archives/partial")] {
            std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        }
        if let Some(release) = release {
            let line = format!("deb [signed-by={KEYS}] {MIRROR} {release} main\n");
            std::fs::write(apt.sources(), line)
                .map_err(|e| format!("cannot write {}: {e}", apt.sources().display()))?;
        }
        Ok(apt)
    }

    fn lists(&self) -> PathBuf {
        self.folder.join("lists")
    }

    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    fn sources(&self) -> PathBuf {
        self.folder.join("sources.list")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        for option in [
            format!("Dir::State::Lists={}", self.lists().display()),
            format!("Dir::Cache={}", self.cache().display()),
            "Debug::NoLocking=1".to_owned(),
            // The user that apt downloads as cannot enter a private folder; nothing is installed.
            "APT::Sandbox::User=".to_owned(),
            format!("Acquire::http::Timeout={NETWORK_PATIENCE_S}"),
            format!("Acquire::https::Timeout={NETWORK_PATIENCE_S}"),
            "Acquire::Retries=1".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        if self.release.is_some() {
            for option in [
                format!("Dir::Etc::sourcelist={}", self.sources().display()),
                "Dir::Etc::sourceparts=-".to_owned(),
            ] {
                command.arg("-o").arg(option);
            }
        }
        command
    }

    /// Reads the lists of packages anew.
    ///
    /// # Errors
    /// In words: no network, or no such release.
    pub(super) fn update(&self) -> Result<(), String> {
        let mut command = self.command("apt-get");
        command.args(["-qq", "-o", "APT::Update::Error-Mode=any", "update"]);
        tool::output(&mut command, LISTS_LIMIT).map(drop)
    }

    /// The package with the present kernel.
    ///
    /// # Errors
    /// In words: the sources have none.
    pub(super) fn kernel(&self) -> Result<String, String> {
        let said = tool::output(self.command("apt-cache").args(["depends", KERNEL]), LISTS_LIMIT)?;
        depends(&said).ok_or_else(|| format!("no package source here has `{KERNEL}`"))
    }

    /// A package and what it needs beyond what this machine has.
    ///
    /// # Errors
    /// In words: the sources have it not.
    pub(super) fn missing(&self, package: &str) -> Result<Vec<String>, String> {
        let mut command = self.command("apt-get");
        command.args(["install", "--print-uris", "-qq", "-y", "--no-install-recommends", "--no-upgrade"]);
        let names = printed_names(&tool::output(command.arg(package), LISTS_LIMIT)?);
        if names.is_empty() { Err(format!("apt-get names no package for `{package}`")) } else { Ok(names) }
    }

    /// Downloads packages into a folder.
    ///
    /// # Errors
    /// In words.
    pub(super) fn download(&self, folder: &Path, packages: &[String]) -> Result<(), String> {
        let mut command = self.command("apt-get");
        command.args(["-qq", "download"]).args(packages).current_dir(folder);
        tool::output(&mut command, DOWNLOAD_LIMIT).map(drop)
    }
}

/// The kernel that the meta package depends on.
fn depends(said: &str) -> Option<String> {
    said.lines()
        .filter_map(|line| line.trim().strip_prefix("Depends:"))
        .map(|name| name.trim().to_owned())
        .find(|name| name.starts_with("linux-image-"))
}

/// Names in lines like `'http://HOST/NAME_VERSION_ARCH.deb' NAME_VERSION_ARCH.deb SIZE SHA256:SUM`.
fn printed_names(said: &str) -> Vec<String> {
    said.lines()
        .filter(|line| line.starts_with('\''))
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.split('_').next())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_what_the_tools_print() {
        let said = "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n  Recommends: firmware-linux\n";
        assert_eq!(depends(said).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(depends("N: Unable to locate package\n"), None);
        let said = "'http://deb.example/pool/libfdt1_1.6.1-4+b1_amd64.deb' libfdt1_1.6.1-4+b1_amd64.deb 20184 SHA256:ab\n\
                    'http://deb.example/pool/qemu-system-x86_7.2_amd64.deb' qemu-system-x86_1%3a7.2_amd64.deb 9 SHA256:cd\n";
        assert_eq!(printed_names(said), ["libfdt1", "qemu-system-x86"]);
        assert!(printed_names("").is_empty());
    }
}
