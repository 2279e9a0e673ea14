//! Files of a case: data, trees, compiled programs, and the state of their pages before a run. Files are
//! made once and used again when they have the right size; their bytes follow from a fixed seed.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iowhy_core::problem::Problem;
use iowhy_core::rng::Rng;
use iowhy_probe::residency;

use crate::case::{Before, Setup};

/// Every file's bytes come from this seed.
const SEED: u64 = 1989;

/// Files that share a sub-folder of a tree.
const FILES_PER_FOLDER: u32 = 100;

/// Pages of a file that may still be cached when it counts as cold: 1 in this many.
const COLD_PART: u64 = 50;

/// Folder of the Python and C sources.
pub(crate) fn sources() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Makes files once.
///
/// # Errors
/// The folder cannot be written, or a program does not compile.
pub(crate) fn set_up(setup: Setup, dir: &Path) -> Result<(), Problem> {
    match setup {
        Setup::Data(name, bytes) => data(&dir.join(name), bytes),
        Setup::Sparse(name, bytes) => sparse(&dir.join(name), bytes),
        Setup::Text(name, bytes) => text(&dir.join(name), bytes),
        Setup::Tree(name, files, bytes) => tree(&dir.join(name), files, bytes),
        Setup::Archive(name, files, bytes) => data(&dir.join(name), u64::from(files) * u64::from(bytes)),
        Setup::Compile(name) => compile(name, dir),
        Setup::Run(_) => Ok(()),
    }
}

/// Prepares files before every run.
///
/// # Errors
/// A file is missing, or stays in the page cache.
pub(crate) fn before(step: Before, dir: &Path) -> Result<(), Problem> {
    match step {
        Before::Cold(name) => each_file(&dir.join(name), cold),
        Before::Warm(name) => each_file(&dir.join(name), warm),
        Before::Remove(name) => remove(&dir.join(name)),
        Before::Folder(name) => {
            remove(&dir.join(name))?;
            fs::create_dir(dir.join(name)).map_err(failed("make", &dir.join(name)))
        }
    }
}

fn failed<'a>(doing: &'a str, path: &'a Path) -> impl Fn(std::io::Error) -> Problem + 'a {
    move |e| Problem::failed(format!("cannot {doing} `{}`: {e}", path.display()))
}

fn has_size(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() == bytes)
}

/// Writes through a side file, so that a file with the right name is always whole.
fn make(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> Result<(), Problem> {
    let side = path.with_extension("part");
    let made = File::create(&side).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        fill(&mut out)?;
        out.into_inner()?.sync_all()
    });
    made.and_then(|()| fs::rename(&side, path)).map_err(failed("make", path))
}

fn data(path: &Path, bytes: u64) -> Result<(), Problem> {
    if has_size(path, bytes) {
        return Ok(());
    }
    make(path, |out| {
        let mut rng = Rng::new(SEED);
        let mut piece = vec![0u8; 1 << 16];
        let mut left = bytes;
        while left > 0 {
            for word in piece.chunks_exact_mut(8) {
                word.copy_from_slice(&rng.next_u64().to_le_bytes());
            }
            let now = left.min(piece.len() as u64);
            out.write_all(&piece[..now as usize])?;
            left -= now;
        }
        Ok(())
    })
}

fn sparse(path: &Path, bytes: u64) -> Result<(), Problem> {
    const PIECE: usize = 1 << 20;
    if has_size(path, bytes) {
        return Ok(());
    }
    make(path, |out| {
        let mut rng = Rng::new(SEED);
        let mut piece = vec![0u8; PIECE];
        let file = out.get_mut();
        file.set_len(bytes)?;
        for place in (0..bytes.saturating_sub(PIECE as u64)).step_by(16 * PIECE) {
            piece.fill_with(|| rng.below(256) as u8);
            file.write_all_at(&piece, place)?;
        }
        Ok(())
    })
}

fn text(path: &Path, bytes: u64) -> Result<(), Problem> {
    let size = fs::metadata(path).map_or(0, |m| m.len());
    if size >= bytes && size < bytes + 200 {
        return Ok(());
    }
    make(path, |out| {
        let mut rng = Rng::new(SEED);
        let mut written = 0;
        while written < bytes {
            let line = format!(
                "{:016x} the quick brown fox jumps over {:06}\n",
                rng.next_u64(),
                rng.below(1_000_000)
            );
            out.write_all(line.as_bytes())?;
            written += line.len() as u64;
        }
        Ok(())
    })
}

fn tree(path: &Path, files: u32, bytes: u32) -> Result<(), Problem> {
    // The mark is made last: a tree without it is not whole.
    let mark = path.with_extension(format!("{files}x{bytes}"));
    if mark.exists() {
        return Ok(());
    }
    remove(path)?;
    let mut rng = Rng::new(SEED);
    let mut content = vec![0u8; bytes as usize];
    for number in 0..files {
        let folder = path.join(format!("d{:04}", number / FILES_PER_FOLDER));
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&folder).map_err(failed("make", &folder))?;
        }
        content.fill_with(|| b'a' + rng.below(26) as u8);
        let file = folder.join(format!("f{number:06}"));
        fs::write(&file, &content).map_err(failed("make", &file))?;
    }
    File::create(&mark).and_then(|f| f.sync_all()).map_err(failed("make", &mark))
}

fn compile(name: &str, dir: &Path) -> Result<(), Problem> {
    let bin = dir.join("bin");
    fs::create_dir_all(&bin).map_err(failed("make", &bin))?;
    let source = sources().join("c").join(format!("{name}.c"));
    let output = bin.join(name);
    let modified = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    if modified(&output).is_some_and(|made| modified(&source).is_some_and(|written| written < made)) {
        return Ok(());
    }
    let made = Command::new("cc")
        .args(["-O2", "-g", "-Wall", "-pthread", "-o"])
        .arg(&output)
        .arg(&source)
        .output()
        .map_err(|e| Problem::failed(format!("cannot run `cc`: {e}")).hint("install a C compiler"))?;
    if made.status.success() {
        Ok(())
    } else {
        let words = String::from_utf8_lossy(&made.stderr).into_owned();
        Err(Problem::failed(format!("`{name}.c` does not compile: {words}")))
    }
}

fn cold(path: &Path) -> Result<(), Problem> {
    let Ok(file) = File::open(path) else { return Ok(()) };
    let bytes = file.metadata().map_err(failed("examine", path))?.len();
    rustix::fs::fdatasync(&file).map_err(|e| failed("sync", path)(e.into()))?;
    match residency::evict_patiently(file.as_fd(), bytes, COLD_PART)? {
        Ok(seen) if seen.resident * COLD_PART > seen.pages => Err(Problem::failed(format!(
            "`{}` stays in the page cache: {} of {} pages",
            path.display(),
            seen.resident,
            seen.pages
        ))
        .hint("give a folder on a disk; tmpfs has no cold files")),
        Ok(_) => Ok(()),
        Err(reason) => Err(Problem::failed(format!("cannot see whether the file is cold: {reason}"))),
    }
}

fn warm(path: &Path) -> Result<(), Problem> {
    let file = File::open(path).map_err(failed("open", path))?;
    let bytes = file.metadata().map_err(failed("examine", path))?.len();
    residency::fetch(file.as_fd(), 0, bytes).map(|_| ())
}

/// Does something to a file, or to each file of a folder.
fn each_file(path: &Path, each: impl Fn(&Path) -> Result<(), Problem>) -> Result<(), Problem> {
    if !path.is_dir() {
        return each(path);
    }
    let mut open = vec![path.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).map_err(failed("list", &folder))?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                each(&path)?;
            }
        }
    }
    Ok(())
}

/// Folders that a run made lie here afterwards. They are not removed between runs: ext4 without a journal does not use
/// inodes again that were freed within the last minutes, and looks at each of them, so that the next run would take up to five
/// times as long for what was removed before it (Linux 6.18; `recently_deleted` in fs/ext4/ialloc.c).
const ASIDE: &str = "aside";
/// Older entries are removed when the next case is prepared.
const KEPT_ASIDE: Duration = Duration::from_secs(3600);

fn remove(path: &Path) -> Result<(), Problem> {
    let folder = path.is_dir();
    let gone = if folder { set_aside(path) } else { fs::remove_file(path) };
    match gone {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed("remove", path)(e)),
        _ => {}
    }
    // Many files leave the journal with work that the next run would wait for.
    if let (true, Some(parent)) = (folder, path.parent()) {
        let parent = File::open(parent).map_err(failed("open", parent))?;
        rustix::fs::syncfs(parent).map_err(|e| failed("sync", path)(e.into()))?;
    }
    Ok(())
}

fn set_aside(path: &Path) -> std::io::Result<()> {
    let aside = path.with_file_name(ASIDE);
    fs::create_dir_all(&aside)?;
    let free = (0u32..).map(|n| aside.join(n.to_string())).find(|place| !place.exists());
    free.map_or(Ok(()), |place| fs::rename(path, place))
}

/// Removes entries that old runs set aside.
pub(crate) fn clear_aside(dir: &Path) {
    let entries = fs::read_dir(dir.join(ASIDE)).into_iter().flatten().flatten();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for entry in entries {
        // A change of name is a change of the inode, and not of its content.
        let moved = entry.metadata().map_or(0, |m| m.ctime());
        if now.saturating_sub(Duration::from_secs(u64::try_from(moved).unwrap_or(0))) > KEPT_ASIDE {
            // The next run tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_earlier_runs_lie_aside_and_files_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("results");
        for run in 1..=3 {
            before(Before::Folder("results"), dir.path()).unwrap();
            assert_eq!(fs::read_dir(&made).unwrap().count(), 0, "it is empty when a run begins");
            fs::write(made.join("one"), "x").unwrap();
            let aside = fs::read_dir(dir.path().join(ASIDE)).map_or(0, Iterator::count);
            assert_eq!(aside, run - 1);
        }
        before(Before::Remove("results"), dir.path()).unwrap();
        assert!(!made.exists());
        // Too young to go.
        clear_aside(dir.path());
        assert_eq!(fs::read_dir(dir.path().join(ASIDE)).unwrap().count(), 3);
        fs::write(&made, "a file").unwrap();
        before(Before::Remove("results"), dir.path()).unwrap();
        before(Before::Remove("results"), dir.path()).unwrap();
        assert!(!made.exists());
        assert_eq!(fs::read_dir(dir.path().join(ASIDE)).unwrap().count(), 3, "files are removed");
    }
}
