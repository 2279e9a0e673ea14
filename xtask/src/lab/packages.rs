//! Debian's kernel and QEMU, downloaded and unpacked into a cache, without installing anything and without root.
//!
//! Goal: the present versions, asked for at most once a week; each unpacked once. Lists of packages are kept apart from the
//! machine's own, because those may be empty or need root. Where anything is missing (no apt, no network), that is a
//! reason to skip, not a failure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::tool;

/// Depends on the present kernel.
const KERNEL: &str = "linux-image-amd64";
/// The emulator.
const EMULATOR: &str = "qemu-system-x86";
/// Makes XFS, and the program of it that is looked for.
const XFS_TOOLS: (&str, &str) = ("xfsprogs", "mkfs.xfs");
/// Versions are asked for anew after this. They move with security updates; results must not depend on them.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);
/// No answer within this many seconds means no network.
const NETWORK_PATIENCE_S: u32 = 8;
const LISTS_LIMIT: Duration = Duration::from_secs(90);
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(300);
const UNPACK_LIMIT: Duration = Duration::from_secs(180);
/// Changed whenever what is unpacked of the kernel package changes, so that an older cache is not taken for it.
const RECIPE: &str = "3";
/// Folders of modules that fixtures may want; the rest of the kernel package is 350 MB that nobody loads.
const MODULE_FOLDERS: [&str; 11] = [
    "block",
    "drivers/block",
    "drivers/md",
    "drivers/scsi",
    "drivers/target",
    "drivers/uio",
    "drivers/dax",
    "drivers/virtio",
    "fs",
    "lib",
    "mm",
];

/// What guests are made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Packages {
    /// When the versions were asked for, seconds since 1970.
    asked_s: u64,
    /// How the kernel package was unpacked.
    recipe: String,
    /// Name and version of the kernel package.
    pub(super) kernel_version: String,
    /// Name and version of the emulator.
    pub(super) emulator_version: String,
    /// Folder with `boot/` and `lib/modules/VERSION/`.
    pub(super) kernel: PathBuf,
    /// Folder in which the emulator and its libraries stand as they would in `/`; `None` where the machine has its own.
    pub(super) emulator: Option<PathBuf>,
    /// The same of the tools that make file systems; `None` where the machine has them.
    #[serde(default)]
    pub(super) tools: Option<PathBuf>,
}

impl Packages {
    /// Finds them in the cache, or downloads and unpacks them.
    ///
    /// # Errors
    /// Why the lab cannot run here, in words.
    pub(super) fn get(cache: &Path) -> Result<Packages, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("guests are made for x86-64 Linux hosts only".to_owned());
        }
        if let Some(missing) =
            ["apt-get", "apt-cache", "dpkg-deb", "tar"].into_iter().find(|name| !tool::have(name))
        {
            return Err(format!("`{missing}` is not here: packages are those of Debian"));
        }
        std::fs::create_dir_all(cache).map_err(|e| format!("cannot make {}: {e}", cache.display()))?;
        let kept = Packages::kept(cache);
        if let Some(kept) = &kept
            && now_s().saturating_sub(kept.asked_s) < FRESH.as_secs()
        {
            return Ok(kept.clone());
        }
        match (Packages::fetch(cache), kept) {
            (Ok(fetched), _) => Ok(fetched),
            (Err(why), Some(kept)) => {
                println!("-- older packages are used: {why}");
                Ok(kept)
            }
            (Err(why), None) => Err(why),
        }
    }

    /// What an earlier run unpacked, if all of it is still there.
    fn kept(cache: &Path) -> Option<Packages> {
        let text = std::fs::read_to_string(cache.join(INDEX)).ok()?;
        let kept: Packages = serde_json::from_str(&text).ok()?;
        let there = kept.recipe == RECIPE
            && kept.kernel.is_dir()
            && [&kept.emulator, &kept.tools].into_iter().flatten().all(|folder| folder.is_dir());
        there.then_some(kept)
    }

    fn fetch(cache: &Path) -> Result<Packages, String> {
        let apt = Apt::new(cache)?;
        apt.update()?;
        let kernel_name = apt.kernel()?;
        let emulator_names = match tool::have("qemu-system-x86_64") {
            true => Vec::new(),
            false => apt.missing(EMULATOR)?,
        };
        let (tools, program) = XFS_TOOLS;
        let tools_names = if tool::have(program) { Vec::new() } else { apt.missing(tools)? };
        let debs = cache.join("debs");
        fresh_folder(&debs)?;
        let mut wanted = [emulator_names.clone(), tools_names.clone(), vec![kernel_name.clone()]].concat();
        wanted.sort();
        wanted.dedup();
        println!("-- downloading {} packages of Debian", wanted.len());
        apt.download(&debs, &wanted)?;
        let find = |name: &str| {
            files(&debs)
                .into_iter()
                .find(|path| stem(path).is_some_and(|s| s.starts_with(&format!("{name}_"))))
                .ok_or_else(|| format!("apt-get download brought no {name}"))
        };
        let kernel_deb = find(&kernel_name)?;
        let kernel_version = stem(&kernel_deb).unwrap_or(kernel_name);
        let kernel = cache.join(format!("{}-{RECIPE}", folder_name(&kernel_version)));
        if !kernel.is_dir() {
            whole(&kernel, |folder| unpack_kernel(&kernel_deb, folder))?;
        }
        // Everything in one folder, as it would stand in `/`; `None` where the machine has it.
        let root_of = |main: &str, names: &[String]| -> Result<(Option<PathBuf>, String), String> {
            if names.is_empty() {
                return Ok((None, "the machine's own".to_owned()));
            }
            let version = stem(&find(main)?).unwrap_or_else(|| main.to_owned());
            let root = cache.join(folder_name(&version));
            if !root.is_dir() {
                whole(&root, |folder| names.iter().try_for_each(|name| unpack(&find(name)?, folder)))?;
            }
            Ok((Some(root), version))
        };
        let (emulator, emulator_version) = root_of(EMULATOR, &emulator_names)?;
        let (tools, _) = root_of(tools, &tools_names)?;
        // They are unpacked; 90 MB need not be kept twice.
        let _ = std::fs::remove_dir_all(&debs);
        let packages = Packages {
            asked_s: now_s(),
            recipe: RECIPE.to_owned(),
            kernel_version,
            emulator_version,
            kernel,
            emulator,
            tools,
        };
        let text = serde_json::to_string_pretty(&packages).map_err(|e| e.to_string())?;
        std::fs::write(cache.join(INDEX), text).map_err(|e| format!("cannot keep what was found: {e}"))?;
        Ok(packages)
    }
}

/// Remembers what was unpacked.
const INDEX: &str = "packages.json";

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// apt's tools with lists and caches of our own, so that neither root nor the machine's lists are needed.
struct Apt {
    lists: PathBuf,
    cache: PathBuf,
}

impl Apt {
    fn new(cache: &Path) -> Result<Apt, String> {
        let apt = Apt { lists: cache.join("apt/lists"), cache: cache.join("apt/cache") };
        for folder in [apt.lists.join("partial"), apt.cache.join("archives/partial")] {
            std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        }
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        for option in [
            format!("Dir::State::Lists={}", self.lists.display()),
            format!("Dir::Cache={}", self.cache.display()),
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
        command
    }

    fn update(&self) -> Result<(), String> {
        let mut command = self.command("apt-get");
        command.args(["-qq", "-o", "APT::Update::Error-Mode=any", "update"]);
        tool::output(&mut command, LISTS_LIMIT).map(drop)
    }

    /// The package with the present kernel.
    fn kernel(&self) -> Result<String, String> {
        let said = tool::output(self.command("apt-cache").args(["depends", KERNEL]), LISTS_LIMIT)?;
        depends(&said).ok_or_else(|| format!("no package source here has `{KERNEL}`"))
    }

    /// A package and what it needs beyond what this machine has.
    fn missing(&self, package: &str) -> Result<Vec<String>, String> {
        let mut command = self.command("apt-get");
        command.args(["install", "--print-uris", "-qq", "-y", "--no-install-recommends", "--no-upgrade"]);
        let names = printed_names(&tool::output(command.arg(package), LISTS_LIMIT)?);
        if names.is_empty() { Err(format!("apt-get names no package for `{package}`")) } else { Ok(names) }
    }

    fn download(&self, folder: &Path, packages: &[String]) -> Result<(), String> {
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

fn files(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.to_owned())
}

/// Versions hold characters that are awkward in a path that is listed in another (`:` as `%3a`).
fn folder_name(version: &str) -> String {
    version.replace("%3a", "-").replace([':', '~'], "-")
}

fn fresh_folder(folder: &Path) -> Result<(), String> {
    // It is not there on the first run.
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

/// Fills a folder under another name first, so that one that is there is whole.
fn whole(folder: &Path, fill: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let partial = PathBuf::from(format!("{}.partial", folder.display()));
    fresh_folder(&partial)?;
    fill(&partial)?;
    std::fs::rename(&partial, folder).map_err(|e| format!("cannot name {}: {e}", folder.display()))
}

fn unpack(deb: &Path, folder: &Path) -> Result<(), String> {
    tool::output(Command::new("dpkg-deb").arg("-x").arg(deb).arg(folder), UNPACK_LIMIT).map(drop)
}

/// The kernel and the modules that fixtures may want.
fn unpack_kernel(deb: &Path, folder: &Path) -> Result<(), String> {
    let mut archive = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run dpkg-deb: {e}"))?;
    let patterns = MODULE_FOLDERS
        .iter()
        .flat_map(|f| ["", "usr/"].map(|prefix| format!("./{prefix}lib/modules/*/kernel/{f}/*")));
    let mut tar = Command::new("tar");
    // Members that a pattern does not find (merged /usr or not) make tar fail at the end; what matters is looked for below.
    tar.args(["-x", "--wildcards", "--no-same-owner", "-C"])
        .arg(folder)
        .args(["./boot/vmlinuz-*", "./lib/modules/*/modules.builtin", "./usr/lib/modules/*/modules.builtin"])
        .args(["./lib/modules/*/kernel/arch/x86/crypto/*", "./lib/modules/*/kernel/crypto/*"])
        .args(patterns)
        .stdin(archive.stdout.take().map_or_else(std::process::Stdio::null, Into::into))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let unpacked = tar.spawn().map_err(|e| format!("cannot run tar: {e}"));
    let unpacked = unpacked.and_then(|mut tar| tool::wait(&mut tar, UNPACK_LIMIT, "tar"));
    let read = tool::wait(&mut archive, UNPACK_LIMIT, "dpkg-deb");
    unpacked?;
    read?;
    match (boot_file(folder), modules_folder(folder)) {
        (Some(_), Some(_)) => Ok(()),
        _ => Err(format!("{} holds no kernel, or none with modules", deb.display())),
    }
}

/// The folders of libraries in one that packages were unpacked into, for `LD_LIBRARY_PATH`.
pub(super) fn libraries(root: &Path) -> std::ffi::OsString {
    let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|at| root.join(at));
    // These paths hold no colon: they are made of package names and the folder of the build.
    std::env::join_paths(folders).unwrap_or_default()
}

/// The kernel as its package ships it.
pub(super) fn boot_file(folder: &Path) -> Option<PathBuf> {
    files(&folder.join("boot")).into_iter().find(|path| stem(path).is_some_and(|s| s.starts_with("vmlinuz-")))
}

/// The folder `lib/modules/VERSION`.
pub(super) fn modules_folder(folder: &Path) -> Option<PathBuf> {
    ["lib/modules", "usr/lib/modules"].into_iter().find_map(|at| files(&folder.join(at)).into_iter().next())
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
        assert_eq!(folder_name("qemu-system-x86_1%3a7.2~a_amd64"), "qemu-system-x86_1-7.2-a_amd64");
    }

    #[test]
    fn a_folder_that_is_there_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("linux-6.1");
        let failed = whole(&folder, |at| {
            std::fs::write(at.join("half"), "").unwrap();
            Err("the network went away".to_owned())
        });
        assert!(failed.is_err() && !folder.exists());
        whole(&folder, |at| std::fs::write(at.join("all"), "").map_err(|e| e.to_string())).unwrap();
        assert!(folder.join("all").exists() && !folder.join("half").exists());
    }

    #[test]
    fn an_index_whose_folders_are_gone_does_not_count() {
        let home = tempfile::tempdir().unwrap();
        let packages = Packages {
            asked_s: 1,
            recipe: RECIPE.into(),
            kernel_version: "k".into(),
            emulator_version: "q".into(),
            kernel: home.path().join("kernel"),
            emulator: None,
            tools: None,
        };
        std::fs::write(home.path().join(INDEX), serde_json::to_string(&packages).unwrap()).unwrap();
        assert_eq!(Packages::kept(home.path()), None);
        std::fs::create_dir(home.path().join("kernel")).unwrap();
        assert_eq!(Packages::kept(home.path()), Some(packages));
    }
}
