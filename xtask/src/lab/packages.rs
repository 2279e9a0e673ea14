//! Debian's kernels and QEMU, downloaded and unpacked into a cache, without installing anything and without root.
//!
//! Goal: the present versions, asked for at most once a week; each unpacked once. Where anything is missing (no apt, no
//! network), that is a reason to skip, not a failure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::apt::Apt;
use super::tool;

/// The emulator.
const EMULATOR: &str = "qemu-system-x86";
/// Makes XFS, and the program of it that is looked for.
const XFS_TOOLS: (&str, &str) = ("xfsprogs", "mkfs.xfs");
/// Versions are asked for anew after this. They move with security updates; results must not depend on them.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);
const UNPACK_LIMIT: Duration = Duration::from_secs(180);
/// Changed whenever what is unpacked of a kernel package changes, so that an older cache is not taken for it.
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

/// Which kernel a guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Series {
    /// What the machine's own package sources have.
    Present,
    /// 5.10, of Debian 11: the oldest kernel with type information that Debian keeps.
    Old,
    /// 6.12, of Debian 13, built for Debian 12.
    New,
}

impl Series {
    /// The release of Debian that has it, where the machine's own sources do not say.
    fn release(self) -> Option<&'static str> {
        match self {
            Series::Present => None,
            Series::Old => Some("bullseye"),
            Series::New => Some("bookworm-backports"),
        }
    }

    /// What its lists and its index are called.
    fn name(self) -> &'static str {
        self.release().unwrap_or("present")
    }
}

/// A kernel package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kernel {
    /// How it was unpacked.
    recipe: String,
    /// Name and version of the package.
    pub(super) version: String,
    /// Folder with `boot/` and `lib/modules/VERSION/`.
    pub(super) folder: PathBuf,
}

impl Kernel {
    /// Finds it in the cache, or downloads and unpacks it.
    ///
    /// # Errors
    /// Why guests with it cannot run here, in words.
    pub(super) fn get(cache: &Path, series: Series) -> Result<Kernel, String> {
        possible()?;
        let whole = |kernel: &Kernel| kernel.recipe == RECIPE && kernel.folder.is_dir();
        kept_or(&cache.join(format!("kernel-{}.json", series.name())), whole, || Kernel::fetch(cache, series))
    }

    fn fetch(cache: &Path, series: Series) -> Result<Kernel, String> {
        let apt = Apt::new(cache.join("apt").join(series.name()), series.release())?;
        apt.update()?;
        let name = apt.kernel()?;
        let debs = Downloads::get(&apt, cache, std::slice::from_ref(&name))?;
        let deb = debs.find(&name)?;
        let version = stem(&deb).unwrap_or(name);
        let folder = cache.join(format!("{}-{RECIPE}", folder_name(&version)));
        if !folder.is_dir() {
            whole(&folder, |folder| unpack_kernel(&deb, folder))?;
        }
        Ok(Kernel { recipe: RECIPE.to_owned(), version, folder })
    }
}

/// What guests are made of beside their kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Packages {
    /// Name and version of the emulator.
    pub(super) emulator_version: String,
    /// Folder in which the emulator and its libraries stand as they would in `/`; `None` where the machine has its own.
    pub(super) emulator: Option<PathBuf>,
    /// The same of the tools that make file systems; `None` where the machine has them.
    pub(super) tools: Option<PathBuf>,
}

impl Packages {
    /// Finds them in the cache, or downloads and unpacks them.
    ///
    /// # Errors
    /// Why the lab cannot run here, in words.
    pub(super) fn get(cache: &Path) -> Result<Packages, String> {
        possible()?;
        let whole = |kept: &Packages| {
            [&kept.emulator, &kept.tools].into_iter().flatten().all(|folder| folder.is_dir())
        };
        kept_or(&cache.join("packages.json"), whole, || Packages::fetch(cache))
    }

    fn fetch(cache: &Path) -> Result<Packages, String> {
        let apt = Apt::new(cache.join("apt").join(Series::Present.name()), None)?;
        apt.update()?;
        let emulator_names = match tool::have("qemu-system-x86_64") {
            true => Vec::new(),
            false => apt.missing(EMULATOR)?,
        };
        let (tools, program) = XFS_TOOLS;
        let tools_names = if tool::have(program) { Vec::new() } else { apt.missing(tools)? };
        let debs = Downloads::get(&apt, cache, &[emulator_names.clone(), tools_names.clone()].concat())?;
        // Everything in one folder, as it would stand in `/`; `None` where the machine has it.
        let root_of = |main: &str, names: &[String]| -> Result<(Option<PathBuf>, String), String> {
            if names.is_empty() {
                return Ok((None, "the machine's own".to_owned()));
            }
            let version = stem(&debs.find(main)?).unwrap_or_else(|| main.to_owned());
            let root = cache.join(folder_name(&version));
            if !root.is_dir() {
                whole(&root, |folder| names.iter().try_for_each(|name| unpack(&debs.find(name)?, folder)))?;
            }
            Ok((Some(root), version))
        };
        let (emulator, emulator_version) = root_of(EMULATOR, &emulator_names)?;
        let (tools, _) = root_of(tools, &tools_names)?;
        Ok(Packages { emulator_version, emulator, tools })
    }
}

/// Whether packages of Debian can be had here at all.
fn possible() -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("guests are made for x86-64 Linux hosts only".to_owned());
    }
    match ["apt-get", "apt-cache", "dpkg-deb", "tar"].into_iter().find(|name| !tool::have(name)) {
        Some(missing) => Err(format!("`{missing}` is not here: packages are those of Debian")),
        None => Ok(()),
    }
}

/// An index of what was unpacked.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    /// When the versions were asked for, seconds since 1970.
    asked_s: u64,
    what: T,
}

/// What an index names if it is fresh, else what is fetched now; an older one that is whole still serves where nothing can
/// be fetched.
fn kept_or<T: Serialize + DeserializeOwned>(
    index: &Path,
    whole: impl Fn(&T) -> bool,
    fetch: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    if let Some(folder) = index.parent() {
        std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    }
    let text = std::fs::read_to_string(index).unwrap_or_default();
    let kept: Option<Kept<T>> = serde_json::from_str(&text).ok().filter(|kept: &Kept<T>| whole(&kept.what));
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    match kept {
        Some(kept) if now_s.saturating_sub(kept.asked_s) < FRESH.as_secs() => Ok(kept.what),
        kept => match (fetch(), kept) {
            (Ok(what), _) => {
                let kept = Kept { asked_s: now_s, what };
                let text = serde_json::to_string_pretty(&kept).map_err(|e| e.to_string())?;
                std::fs::write(index, text).map_err(|e| format!("cannot write {}: {e}", index.display()))?;
                Ok(kept.what)
            }
            (Err(why), Some(kept)) => {
                println!("-- older packages are used: {why}");
                Ok(kept.what)
            }
            (Err(why), None) => Err(why),
        },
    }
}

/// Packages as they were downloaded; they are gone with this value, since they are unpacked then.
struct Downloads {
    folder: PathBuf,
}

impl Downloads {
    fn get(apt: &Apt, cache: &Path, names: &[String]) -> Result<Downloads, String> {
        let folder = cache.join("debs");
        fresh_folder(&folder)?;
        let mut names = names.to_vec();
        names.sort();
        names.dedup();
        if !names.is_empty() {
            println!("-- downloading {} packages of Debian", names.len());
            apt.download(&folder, &names)?;
        }
        Ok(Downloads { folder })
    }

    fn find(&self, name: &str) -> Result<PathBuf, String> {
        files(&self.folder)
            .into_iter()
            .find(|path| stem(path).is_some_and(|s| s.starts_with(&format!("{name}_"))))
            .ok_or_else(|| format!("apt-get download brought no {name}"))
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        // 90 MB need not be kept twice; what cannot be removed is removed by the next download.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
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
        let index = home.path().join("kernel.json");
        let kernel =
            Kernel { recipe: RECIPE.into(), version: "k".into(), folder: home.path().join("kernel") };
        let get =
            |fetched: Result<Kernel, String>| kept_or(&index, |k: &Kernel| k.folder.is_dir(), || fetched);
        assert_eq!(get(Ok(kernel.clone())), Ok(kernel.clone()));
        assert_eq!(get(Err("no network".to_owned())), Err("no network".to_owned()));
        std::fs::create_dir(&kernel.folder).unwrap();
        assert_eq!(get(Err("it is not asked for".to_owned())), Ok(kernel.clone()));
        std::fs::write(&index, serde_json::to_string(&Kept { asked_s: 1, what: &kernel }).unwrap()).unwrap();
        assert_eq!(get(Err("no network".to_owned())), Ok(kernel), "an old one serves where nothing else is");
        assert_eq!(folder_name("qemu-system-x86_1%3a7.2~a_amd64"), "qemu-system-x86_1-7.2-a_amd64");
    }
}
