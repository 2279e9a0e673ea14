//! What btrfs says of itself: its devices to everybody, its chunk tree to root. Only asks, never sets; sysfs stays the source
//! where it says nothing. What the items mean is in `chunk`.

mod chunk;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use iowhy_core::volume::{Volume, VolumeKind, VolumeMember};
use rustix::fs::{Mode, OFlags};

use self::chunk::Chunk;
use super::{FilePart, Found};
use crate::target::extents;

/// The magic of its requests.
const MAGIC: u64 = 0x94;
/// `struct btrfs_ioctl_fs_info_args` and BTRFS_IOC_FS_INFO (linux/btrfs.h).
const FS_INFO_BYTES: usize = 1024;
const FS_INFO: u64 = 2 << 30 | (FS_INFO_BYTES as u64) << 16 | MAGIC << 8 | 31;
/// `struct btrfs_ioctl_dev_info_args` and BTRFS_IOC_DEV_INFO.
const DEV_INFO_BYTES: usize = 4096;
const DEV_INFO: u64 = 3 << 30 | (DEV_INFO_BYTES as u64) << 16 | MAGIC << 8 | 30;
/// Where in it the size and the path are.
const AT_SIZE: usize = 32;
const AT_PATH: usize = 3072;
/// `struct btrfs_ioctl_search_args_v2` without its buffer, and BTRFS_IOC_TREE_SEARCH_V2.
const SEARCH_BYTES: usize = 112;
const SEARCH: u64 = 3 << 30 | (SEARCH_BYTES as u64) << 16 | MAGIC << 8 | 17;
/// Where in it the number of items and the size of the buffer are.
const AT_ITEMS: usize = 64;
const AT_BUFFER_SIZE: usize = 104;
/// Room for the items of one search.
const BUFFER_BYTES: usize = 64 << 10;
/// The chunk tree, the object that its chunks belong to, and their type (linux/btrfs_tree.h).
const CHUNK_TREE: u64 = 3;
const FIRST_CHUNK_OBJECT: u64 = 256;
const CHUNK_ITEM: u32 = 228;
/// More devices or chunks than these are given up: an answer that makes no sense.
const MAX_DEVICES: u64 = 1 << 12;
const MAX_CHUNKS: usize = 1 << 20;

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    id: u64,
    name: String,
    bytes: u64,
}

/// Adds what btrfs itself says to what sysfs has said: profile and turns of the chunks that hold data (of a file: its own), and
/// how much of a file each device has.
pub(super) fn add(path: &Path, found: &mut Found) {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(errno) => {
            let error = io::Error::from(errno);
            found.limitations.push(format!(
                "btrfs cannot be asked, because `{}` cannot be opened: {error}",
                path.display()
            ));
            return;
        }
    };
    let (devices, chunks) = match devices(&file).and_then(|devices| Ok((devices, chunks(&file)?))) {
        Ok(known) => known,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            found.limitations.push(
                "only root may ask btrfs which device holds what: this is from sysfs, for the whole file system".to_owned(),
            );
            return;
        }
        Err(error) => {
            found.limitations.push(format!("btrfs does not say where its chunks are: {error}"));
            return;
        }
    };
    apply(&file, devices, &chunks, found);
}

/// Puts it into what was found.
fn apply(file: &File, devices: Vec<Device>, chunks: &[Chunk], found: &mut Found) {
    let size = file.metadata().ok().filter(|about| about.is_file()).map_or(0, |about| about.len());
    let pieces = match extents::pieces(file.as_fd(), size) {
        Ok(pieces) if size > 0 => Some(pieces),
        _ => None,
    };
    // A file stands for itself, anything else for all data.
    let holding: Vec<&Chunk> = match &pieces {
        Some(pieces) => {
            chunks.iter().filter(|chunk| pieces.iter().any(|piece| chunk.overlap(piece).is_some())).collect()
        }
        None => chunks.iter().filter(|chunk| chunk.holds_data()).collect(),
    };
    if holding.is_empty() {
        return;
    }
    let mut profiles: Vec<&str> = holding.iter().map(|chunk| chunk.profile()).collect();
    profiles.sort_unstable();
    profiles.dedup();
    let widths: Vec<usize> = holding.iter().map(|chunk| chunk.devices()).collect();
    let turns = holding.iter().all(|chunk| chunk.takes_turns()).then(|| holding[0].stripe_bytes);
    let limitation = match profiles.as_slice() {
        ["raid0"] if widths.iter().any(|width| *width != devices.len()) => Some(format!(
            "chunks of {} to {} devices, of which there are {}: `btrfs balance` spreads them over all",
            widths.iter().min().unwrap_or(&0),
            widths.iter().max().unwrap_or(&0),
            devices.len()
        )),
        ["raid0"] => None,
        [one] if turns.is_some() => {
            Some(format!("{one} also holds copies or parity: the rules of a plain stripe hold only roughly"))
        }
        [one] => Some(format!("{one} takes no turns: whole chunks of up to 1 GiB go to one device")),
        many => {
            Some(format!("its data has several profiles ({}): `btrfs balance` is not done", many.join(", ")))
        }
    };
    if devices.len() > 1 {
        let name = found.volume.as_ref().map(|volume| volume.name.clone()).unwrap_or_default();
        let member =
            |device: &Device| VolumeMember { name: device.name.clone(), size_bytes: Some(device.bytes) };
        found.volume = Some(Volume {
            kind: VolumeKind::Btrfs,
            name,
            profile: profiles.join(", "),
            interleave_bytes: turns,
            members: devices.iter().map(member).collect(),
            limitation,
        });
    }
    let Some(pieces) = pieces else { return };
    let mut parts: Vec<FilePart> =
        devices.iter().map(|device| FilePart { device: device.name.clone(), bytes: 0 }).collect();
    for chunk in &holding {
        for (from, bytes) in pieces.iter().filter_map(|piece| chunk.overlap(piece)) {
            let Some(shares) = chunk.shares(from, bytes) else {
                found
                    .limitations
                    .push(format!("which device holds what of {} is not worked out here", chunk.profile()));
                return;
            };
            for (id, bytes) in shares {
                if let Some(at) = devices.iter().position(|device| device.id == id) {
                    parts[at].bytes += bytes;
                }
            }
        }
    }
    found.file_parts = parts;
}

/// Asks one thing, in a buffer that starts with what is asked.
fn ask(file: &File, request: u64, buffer: &mut [u64]) -> io::Result<()> {
    // SAFETY: each caller passes a buffer at least as long as the structure that its request reads and writes (and, for a
    // search, as long as that and the room that it names), aligned to eight bytes, that lives through the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, buffer.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The devices, by their numbers.
fn devices(file: &File) -> io::Result<Vec<Device>> {
    let mut about = [0u64; FS_INFO_BYTES / 8];
    ask(file, FS_INFO, &mut about)?;
    let [most, count] = [about[0], about[1]];
    if most > MAX_DEVICES || count > MAX_DEVICES {
        return Err(io::Error::other(format!("it names {count} devices")));
    }
    let mut devices = Vec::new();
    for id in 0..=most {
        let mut buffer = [0u64; DEV_INFO_BYTES / 8];
        buffer[0] = id;
        match ask(file, DEV_INFO, &mut buffer) {
            Ok(()) => devices.push(device(id, &bytes_of(&buffer))),
            // Numbers of devices that were removed.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(devices)
}

/// The fields of `struct btrfs_ioctl_dev_info_args`.
fn device(id: u64, bytes: &[u8]) -> Device {
    let path: Vec<u8> = bytes.iter().skip(AT_PATH).copied().take_while(|byte| *byte != 0).collect();
    let path = String::from_utf8_lossy(&path).into_owned();
    let size =
        bytes.get(AT_SIZE..AT_SIZE + 8).and_then(|field| field.try_into().ok()).map_or(0, u64::from_ne_bytes);
    let name = match Path::new(&path).file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        // A device that is gone has no path.
        None => format!("device {id}"),
    };
    Device { id, name, bytes: size }
}

/// All chunks, by their addresses.
fn chunks(file: &File) -> io::Result<Vec<Chunk>> {
    let mut all = Vec::new();
    let mut from = 0u64;
    loop {
        let mut buffer = vec![0u64; (SEARCH_BYTES + BUFFER_BYTES) / 8];
        // tree, objects, offsets, transactions, types, items.
        let key = [CHUNK_TREE, FIRST_CHUNK_OBJECT, FIRST_CHUNK_OBJECT, from, u64::MAX, 0, u64::MAX];
        buffer[..key.len()].copy_from_slice(&key);
        buffer[7] = pair(CHUNK_ITEM, CHUNK_ITEM);
        buffer[AT_ITEMS / 8] = pair(u32::MAX, 0);
        buffer[AT_BUFFER_SIZE / 8] = BUFFER_BYTES as u64;
        ask(file, SEARCH, &mut buffer)?;
        let bytes = bytes_of(&buffer);
        let items = bytes.get(AT_ITEMS..AT_ITEMS + 4).and_then(|field| field.try_into().ok());
        let items = items.map_or(0, u32::from_ne_bytes);
        let found = chunk::read(&bytes[SEARCH_BYTES..], items).map_err(io::Error::other)?;
        match found.last().and_then(|last| last.start.checked_add(1)) {
            Some(next) if all.len() < MAX_CHUNKS => from = next,
            _ => return Ok(all),
        }
        all.extend(found);
    }
}

/// Two numbers of 32 bits as they lie one behind the other in memory.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b] = [first.to_ne_bytes(), second.to_ne_bytes()];
    u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_by_its_fields() {
        let mut bytes = vec![0u8; DEV_INFO_BYTES];
        bytes[AT_SIZE..AT_SIZE + 8].copy_from_slice(&(5u64 << 30).to_ne_bytes());
        bytes[AT_PATH..AT_PATH + 10].copy_from_slice(b"/dev/loop7");
        assert_eq!(device(3, &bytes), Device { id: 3, name: "loop7".into(), bytes: 5 << 30 });
        assert_eq!(device(4, &[]).name, "device 4");
        assert_eq!(pair(1, 2).to_ne_bytes()[..4], 1u32.to_ne_bytes());
    }

    #[test]
    fn what_is_no_btrfs_is_said_and_changes_nothing() {
        let mut found = Found::default();
        add(Path::new("/proc/self/status"), &mut found);
        assert!(found.volume.is_none() && found.limitations.len() == 1, "{found:?}");
        add(Path::new("/no/such/file"), &mut found);
        assert!(found.limitations[1].contains("/no/such/file"), "{found:?}");
    }
}
