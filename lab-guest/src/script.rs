//! The steps of a script: each is a list of words, the first of which says what to do. One place that knows them all.

use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::keyring::Key;
use crate::sys::number;
use crate::tcmu::Handler;
use crate::{dm, fixture, image, loop_device, md, run, swap, sys, truth};

/// The machine while its script is followed.
#[derive(Default)]
pub(crate) struct Guest {
    /// Steps that wait for their time beside the script.
    later: Vec<JoinHandle<Result<(), String>>>,
    /// The disk in user space, once it is made.
    handler: Option<Handler>,
    /// Who looks at the table of a mapped device.
    looks: Option<dm::Looks>,
    /// A key in the keyring.
    key: Option<Key>,
}

impl Guest {
    /// Follows one step; some have an answer.
    ///
    /// # Errors
    /// In words; the script ends there.
    pub(crate) fn follow(&mut self, step: &[String]) -> Result<Option<Value>, String> {
        let words: Vec<&str> = step.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["run", label, options, argv @ ..] => return run::run(label, options, argv).map(Some),
            ["truth", label, kind, rest @ ..] => return truth::measure(label, kind, rest).map(Some),
            ["list", label, folder] => return list(label, folder).map(Some),
            ["show", label, path] => return show(label, path).map(Some),
            ["dm-table", label, name] => {
                return Ok(Some(json!({"label": label, "text": dm::table(name)?})));
            }
            ["dm-look", name, word] => self.looks = Some(dm::Looks::begin(name, word)),
            ["dm-looked", label] => {
                let [without, with] = self.looks.take().ok_or("nobody looks at a table")?.end()?;
                return Ok(Some(json!({"label": label, "without": without, "with": with})));
            }
            ["key", description, hex] => self.key = Some(Key::add(description, hex)?),
            ["unkey"] => self.key.take().ok_or("there is no key")?.remove()?,
            ["later", ms, rest @ ..] => {
                let wait = Duration::from_millis(number(ms)?);
                let step: Vec<String> = rest.iter().map(|&word| word.to_owned()).collect();
                self.later.push(std::thread::spawn(move || {
                    std::thread::sleep(wait);
                    let words: Vec<&str> = step.iter().map(String::as_str).collect();
                    plain(&words)
                }));
            }
            ["join"] => {
                for thread in self.later.drain(..) {
                    thread.join().map_err(|_| "a later step panicked".to_owned())??;
                }
            }
            ["tcmu", name, bytes] => self.handler = Some(Handler::start(name, number(bytes)?)?),
            ["tcmu-cost", command_ns, ps_per_byte] => {
                let handler = self.handler.as_ref().ok_or("there is no disk in user space yet")?;
                handler.cost(number(command_ns)?, number(ps_per_byte)?);
            }
            other => plain(other)?,
        }
        Ok(None)
    }
}

/// Steps that need nothing but the kernel.
fn plain(words: &[&str]) -> Result<(), String> {
    let owned = |words: &[&str]| -> Vec<String> { words.iter().map(|&w| w.to_owned()).collect() };
    match words {
        ["insmod", path, parameters] => sys::insmod(path, parameters),
        ["mkdir", path] => std::fs::create_dir_all(path).map_err(|e| format!("cannot make {path}: {e}")),
        ["write", path, text] => fixture::write(path, text),
        ["wait", path] => fixture::wait_for(path),
        ["limit-reads", group, disk, bytes_s] => fixture::limit_reads(group, disk, bytes_s),
        ["remove", path] => std::fs::remove_file(path).map_err(|e| format!("cannot remove {path}: {e}")),
        ["mount", kind, source, at, options] => fixture::mount(kind, source, at, options),
        ["umount", at] => fixture::unmount(at),
        ["open-to-all", path] => {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777))
                .map_err(|e| format!("cannot open {path} to all: {e}"))
        }
        ["image", from, device] => image::unpack(from, device),
        ["fill", path, bytes] => image::fill(path, number(bytes)?),
        ["swap", device] => swap::on(device),
        ["loop", number, file] => loop_device::make(number, file),
        ["dm", name, table @ ..] => dm::create(name, "", &owned(table)),
        ["dm-uuid", name, uuid, table @ ..] => dm::create(name, uuid, &owned(table)),
        ["dm-reload", name, table @ ..] => dm::reload(name, &owned(table)),
        ["md-raid0", index, chunk_bytes, members @ ..] => {
            md::raid0(number(index)? as u32, number(chunk_bytes)? as i32, &owned(members))
        }
        _ => Err("no such step".to_owned()),
    }
}

/// Names in a folder, to see what was left behind.
fn list(label: &str, folder: &str) -> Result<Value, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("cannot list {folder}: {e}"))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(json!({"label": label, "names": names}))
}

/// What a small file of the kernel says.
fn show(label: &str, path: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    Ok(json!({"label": label, "text": text.trim()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(words: &[&str]) -> Vec<String> {
        words.iter().map(|&w| w.to_owned()).collect()
    }

    #[test]
    fn a_later_step_is_done_once_it_is_joined_and_its_failure_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made").to_string_lossy().into_owned();
        let mut guest = Guest::default();
        guest.follow(&step(&["later", "1", "write", &made, "x"])).unwrap();
        guest.follow(&step(&["join"])).unwrap();
        assert_eq!(std::fs::read_to_string(&made).unwrap(), "x");
        let listed = guest.follow(&step(&["list", "l", &folder.path().to_string_lossy()])).unwrap();
        assert_eq!(listed, Some(json!({"label": "l", "names": ["made"]})));
        guest.follow(&step(&["later", "1", "write", "/no/such/folder/x", "x"])).unwrap();
        assert!(guest.follow(&step(&["join"])).unwrap_err().contains("/no/such"));
    }

    #[test]
    fn what_is_no_step_is_refused() {
        let mut guest = Guest::default();
        for bad in
            [step(&[]), step(&["dance"]), step(&["fill", "/tmp/x", "many"]), step(&["tcmu-cost", "1", "1"])]
        {
            assert!(guest.follow(&bad).is_err(), "{bad:?}");
        }
    }
}
