//! The Berkeley fast file system with the rules of 1999 (NetBSD 1.4T: mkfs.c 1.37, ffs_alloc.c 1.31): cylinder groups, each with
//! its superblock copy, its inodes and its data; directories go round the groups, their files stay with them; fragments fill
//! partial blocks and never cross one.
//!
//! The group's size is a parameter: where it and the stripe's interleave have common divisors, the inodes of all groups lie
//! on the same disk. The rotation of groups by `cgoffset` is left out: with one track a cylinder, as ccd labels have it, it
//! is off.

use iowhy_core::problem::Problem;
use iowhy_core::request::Request;

use super::{Layout, Step, StepKind, too_small};
use crate::files::{Shape, size_of};
use crate::machine::LayoutConfig;

/// Bytes of an inode on disk.
const INODE_BYTES: u64 = 128;
/// First sector of the inodes in a group: behind the boot block, the superblock's copy and the group's own block.
const FIRST_INODE_SECTOR: u64 = 64;
/// More files than this are not laid out.
const MAX_FILES: u64 = 50_000_000;

/// A run of a file's bytes.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// First byte of the file in it.
    offset: u64,
    start: u64,
    bytes: u64,
}

/// A cylinder group that is being filled.
#[derive(Clone, Debug)]
struct Group {
    inodes_left: u32,
    next_inode: u32,
    /// Next whole block, counted in fragments from the group's begin.
    next_block: u64,
    /// Free fragments of partial blocks, by the length of the run.
    partial: [Vec<u64>; 8],
    directories: u32,
}

/// A small file: where its inode's block and its data are, in fragments of the volume.
#[derive(Clone, Copy, Debug)]
struct Small {
    inode: u32,
    data: u32,
}

/// Files and directories with their addresses.
#[derive(Debug)]
pub(super) struct Ffs {
    block: u64,
    fragment: u64,
    sizes: Vec<u64>,
    directories: u64,
    entries_per_block: u64,
    small: Vec<Small>,
    /// Runs of the files that are larger than a block, by file.
    large: Vec<Vec<Run>>,
    /// Blocks of each directory, in bytes of the volume.
    directory_blocks: Vec<Vec<u64>>,
}

/// The allocator.
struct Disk {
    groups: Vec<Group>,
    per_group: u64,
    fragments_per_block: u64,
}

impl Disk {
    fn new(config: &LayoutConfig, volume_bytes: u64) -> Option<(Disk, u64)> {
        let group_bytes = config.group_sectors * 512;
        let count = volume_bytes / group_bytes;
        if count == 0 || count > 1 << 22 {
            return None;
        }
        let per_block = config.block_bytes / INODE_BYTES;
        let inodes = (group_bytes / config.bytes_per_inode).div_ceil(per_block) * per_block;
        let first_data = FIRST_INODE_SECTOR * 512 + inodes * INODE_BYTES;
        let first_block = first_data.div_ceil(config.block_bytes);
        if (first_block + 1) * config.block_bytes > group_bytes {
            return None;
        }
        let fragments_per_block = config.block_bytes / config.fragment_bytes;
        let group = Group {
            inodes_left: u32::try_from(inodes).ok()?,
            next_inode: 0,
            next_block: first_block * fragments_per_block,
            partial: Default::default(),
            directories: 0,
        };
        let per_group = group_bytes / config.block_bytes * fragments_per_block;
        let data = (per_group - group.next_block) * config.fragment_bytes * count;
        Some((Disk { groups: vec![group; count as usize], per_group, fragments_per_block }, data))
    }

    /// `ffs_hashalloc`: the preferred group, then quadratic, then all.
    fn anywhere<T>(
        &mut self,
        preferred: usize,
        mut take: impl FnMut(&mut Group) -> Option<T>,
    ) -> Option<(usize, T)> {
        let count = self.groups.len();
        if let Some(found) = take(&mut self.groups[preferred]) {
            return Some((preferred, found));
        }
        let (mut at, mut step) = (preferred, 1);
        while step < count {
            at = (at + step) % count;
            if let Some(found) = take(&mut self.groups[at]) {
                return Some((at, found));
            }
            step *= 2;
        }
        for further in 2..count {
            let at = (preferred + further) % count;
            if let Some(found) = take(&mut self.groups[at]) {
                return Some((at, found));
            }
        }
        None
    }

    fn inode(&mut self, preferred: usize) -> Option<(usize, u32)> {
        self.anywhere(preferred, |group| {
            group.inodes_left = group.inodes_left.checked_sub(1)?;
            group.next_inode += 1;
            Some(group.next_inode - 1)
        })
    }

    /// A run of `wanted` fragments, at most a block: its first, counted from the begin of the volume.
    fn fragments(&mut self, preferred: usize, wanted: u64) -> Option<(usize, u64)> {
        let (per_block, per_group) = (self.fragments_per_block, self.per_group);
        let (group, at) = self.anywhere(preferred, |group| {
            if wanted < per_block {
                for length in wanted..per_block {
                    if let Some(at) = group.partial[length as usize].pop() {
                        if length > wanted {
                            group.partial[(length - wanted) as usize].push(at + wanted);
                        }
                        return Some(at);
                    }
                }
            }
            if group.next_block + per_block > per_group {
                return None;
            }
            let at = group.next_block;
            group.next_block += per_block;
            if wanted < per_block {
                group.partial[(per_block - wanted) as usize].push(at + wanted);
            }
            Some(at)
        })?;
        Some((group, group as u64 * per_group + at))
    }

    /// `ffs_dirpref` of 1999: the group with the fewest directories among those with at least the average of free inodes.
    fn directory_group(&self) -> usize {
        let free: u64 = self.groups.iter().map(|group| u64::from(group.inodes_left)).sum();
        let average = free / self.groups.len() as u64;
        let fit = self.groups.iter().enumerate().filter(|(_, group)| u64::from(group.inodes_left) >= average);
        fit.min_by_key(|(_, group)| group.directories).map_or(0, |(index, _)| index)
    }
}

impl Ffs {
    pub(super) fn new(config: &LayoutConfig, shape: &Shape, volume_bytes: u64) -> Result<Self, Problem> {
        let (sizes, directories, files) = match shape {
            Shape::Tree { sizes, directories, files } => (sizes.clone(), *directories, *files),
            Shape::Files { count, bytes } => (vec![*bytes], 1, *count),
            Shape::Unknown => (Vec::new(), 0, 0),
        };
        if directories == 0 || sizes.is_empty() {
            return Err(Problem::refused("a file system without directories or files has nothing to read")
                .hint("for example `sizes=930:3030:6102,dirs=390`"));
        }
        if files > MAX_FILES || directories > files.max(1) {
            return Err(Problem::refused(format!(
                "{files} files in {directories} directories cannot be laid out: at most {MAX_FILES} files, and no more directories than files"
            ))
            .hint("fewer files tell the same when each directory keeps its size"));
        }
        let Some((disk, data_bytes)) = Disk::new(config, volume_bytes) else {
            return Err(Problem::refused(
                "`layout.group_sectors` does not fit the volume or leaves no room for data",
            )
            .hint("newfs takes 32768 sectors on a volume of some GB"));
        };
        let per_turn: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add((*size).max(1)));
        let needed = (per_turn / sizes.len() as u64).saturating_mul(files);
        if needed > data_bytes || volume_bytes / config.fragment_bytes > u64::from(u32::MAX) {
            return Err(too_small(&format!("{files} files"), needed, data_bytes));
        }
        let mut ffs = Ffs {
            block: config.block_bytes,
            fragment: config.fragment_bytes,
            entries_per_block: (config.block_bytes / config.entry_bytes).max(1),
            sizes,
            directories,
            small: Vec::with_capacity(files as usize),
            large: Vec::new(),
            directory_blocks: Vec::with_capacity(directories as usize),
        };
        ffs.create(disk, files)
            .ok_or_else(|| too_small("files, inodes and fragments", needed, data_bytes))?;
        Ok(ffs)
    }

    /// Makes directories and files as a script would: one directory after the other, its files in a row.
    fn create(&mut self, mut disk: Disk, files: u64) -> Option<()> {
        disk.groups[0].directories = 1; // the root
        let inode_block = self.block / INODE_BYTES;
        for directory in 0..self.directories {
            let home = disk.directory_group();
            let (home, _) = disk.inode(home)?;
            disk.groups[home].directories += 1;
            let mut blocks = Vec::new();
            for entry in 0..self.files_of(directory, files) {
                if entry % self.entries_per_block == 0 {
                    let (_, at) = disk.fragments(home, disk.fragments_per_block)?;
                    blocks.push(at * self.fragment);
                }
                let size = size_of(self.small.len() as u64, &self.sizes);
                let (group, inode) = disk.inode(home)?;
                let begin = group as u64 * disk.per_group * self.fragment + FIRST_INODE_SECTOR * 512;
                let inode_at = begin + u64::from(inode) / inode_block * self.block;
                let data = self.place(&mut disk, group, size)?;
                self.small.push(Small {
                    inode: u32::try_from(inode_at / self.fragment).ok()?,
                    data: u32::try_from(data).ok()?,
                });
            }
            self.directory_blocks.push(blocks);
        }
        Some(())
    }

    /// Allocates a file's bytes; files of more than a block are kept in a list of their own.
    fn place(&mut self, disk: &mut Disk, group: usize, size: u64) -> Option<u64> {
        let block = self.block;
        if size <= block {
            return Some(disk.fragments(group, size.div_ceil(self.fragment).max(1))?.1);
        }
        // maxbpg: after block / 4 blocks a file goes on in the next group.
        let most = block / 4;
        let (mut runs, mut left, mut offset): (Vec<Run>, u64, u64) = (Vec::new(), size, 0);
        let (mut home, mut in_group) = (group, 0);
        while left > 0 {
            let length = left.min(block);
            if in_group == most {
                (home, in_group) = ((home + 1) % disk.groups.len(), 0);
            }
            let (at_group, at) = disk.fragments(home, length.div_ceil(self.fragment))?;
            in_group = if at_group == home { in_group + 1 } else { 1 };
            home = at_group;
            let start = at * self.fragment;
            match runs.last_mut() {
                Some(run) if run.start + run.bytes == start => run.bytes += length,
                _ => runs.push(Run { offset, start, bytes: length }),
            }
            left -= length;
            offset += length;
        }
        self.large.push(runs);
        Some(self.large.len() as u64 - 1)
    }

    /// Files of one directory, as even as may be.
    fn files_of(&self, directory: u64, files: u64) -> u64 {
        files / self.directories + u64::from(directory < files % self.directories)
    }

    /// Directory of a file, and the index of its entry.
    fn entry_of(&self, file: u64) -> (u64, u64) {
        let files = self.small.len() as u64;
        let (each, more) = (files / self.directories, files % self.directories);
        let in_larger = more * (each + 1);
        if file < in_larger {
            (file / (each + 1), file % (each + 1))
        } else {
            (more + (file - in_larger) / each.max(1), (file - in_larger) % each.max(1))
        }
    }

    fn data_steps(&self, file: u64, small: Small, request: &Request, out: &mut Vec<Step>) {
        let size = size_of(file, &self.sizes);
        let offset = request.offset.min(size);
        let bytes = request.bytes.min(size - offset);
        if bytes == 0 {
            return;
        }
        if size <= self.block {
            let start = u64::from(small.data) * self.fragment;
            // A buffer holds the whole of what the file has in its block.
            let whole = size.div_ceil(self.fragment) * self.fragment;
            out.push(Step { start, bytes: whole, limit: start + whole, kind: StepKind::Data, whole: true });
            return;
        }
        let Some(runs) = self.large.get(small.data as usize) else { return };
        let end = offset + bytes;
        let first = runs.partition_point(|run| run.offset + run.bytes <= offset);
        for run in runs[first..].iter().take_while(|run| run.offset < end) {
            let from = offset.max(run.offset) - run.offset;
            let to = (end - run.offset).min(run.bytes);
            out.push(Step {
                start: run.start + from,
                bytes: to - from,
                limit: run.start + run.bytes,
                kind: StepKind::Data,
                whole: false,
            });
        }
    }
}

impl Layout for Ffs {
    fn steps(&mut self, request: &Request, out: &mut Vec<Step>) {
        out.clear();
        let files = self.small.len() as u64;
        if files == 0 {
            return;
        }
        let file = request.object % files;
        let small = self.small[file as usize];
        // The first read of a file finds its name (a linear search) and its inode; later ones have it open.
        if request.offset == 0 {
            let (directory, entry) = self.entry_of(file);
            let last = (entry / self.entries_per_block) as usize;
            if let Some(blocks) = self.directory_blocks.get(directory as usize) {
                for start in blocks.iter().take(last + 1) {
                    let limit = start + self.block;
                    let (start, bytes) = (*start, self.block);
                    out.push(Step { start, bytes, limit, kind: StepKind::Directory, whole: true });
                }
            }
            let start = u64::from(small.inode) * self.fragment;
            let bytes = self.block;
            out.push(Step { start, bytes, limit: start + bytes, kind: StepKind::Inode, whole: true });
        }
        self.data_steps(file, small, request, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    const VOLUME: u64 = 3 * 4_110_000 * 512;

    fn news(files: u64) -> Ffs {
        let shape = Shape::Tree { sizes: vec![930, 3030, 6102], directories: 390, files };
        Ffs::new(&Machine::default().layout, &shape, VOLUME).unwrap()
    }

    fn steps(ffs: &mut Ffs, file: u64) -> Vec<Step> {
        let mut out = Vec::new();
        ffs.steps(&Request { object: file, bytes: 10_000, ..Request::default() }, &mut out);
        out
    }

    #[test]
    fn the_post_s_tree_has_a_directory_in_every_group_and_directories_of_seven_blocks() {
        let mut ffs = news(1_200_000);
        let blocks = &ffs.directory_blocks;
        assert_eq!(blocks.len(), 390);
        assert!(blocks.iter().all(|b| b.len() == 7), "3077 entries of 16 bytes in blocks of 8 KiB");
        let groups: std::collections::BTreeSet<u64> = blocks.iter().map(|b| b[0] / (32_768 * 512)).collect();
        // 376 groups fit on three disks: all have one, some a second.
        assert!(groups.len() >= 370, "{}", groups.len());
        let read = steps(&mut ffs, 3076);
        let kinds: Vec<StepKind> = read.iter().map(|s| s.kind).collect();
        assert_eq!(kinds.iter().filter(|k| **k == StepKind::Directory).count(), 7);
        assert_eq!(kinds[7..], [StepKind::Inode, StepKind::Data]);
    }

    #[test]
    fn no_two_files_share_a_fragment_and_none_crosses_a_block() {
        let mut ffs = news(20_000);
        let mut taken = std::collections::BTreeSet::new();
        for file in 0..20_000 {
            let data = *steps(&mut ffs, file).last().unwrap();
            let fragments = size_of(file, &[930, 3030, 6102]).div_ceil(1024);
            assert_eq!(data.bytes, fragments * 1024);
            assert_eq!(data.start / 8192, (data.start + data.bytes - 1) / 8192, "within a block");
            assert!(data.start % (32_768 * 512) >= 1088 * 512, "behind the inodes");
            for fragment in data.start / 1024..(data.start + data.bytes) / 1024 {
                assert!(taken.insert(fragment));
            }
        }
        // 6 fragments take a block of their own, two times 3 share one, and 1 fills what they leave: 20 of 24, about.
        let blocks: std::collections::BTreeSet<u64> = taken.iter().map(|f| f / 8).collect();
        let filled = taken.len() as f64 / (blocks.len() as f64 * 8.0);
        assert!((filled - 20.0 / 24.0).abs() < 0.05, "{filled}");
    }

    #[test]
    fn inodes_are_64_to_a_block_from_sector_64_on() {
        let mut ffs = news(20_000);
        for file in 0..20_000 {
            let read = steps(&mut ffs, file);
            let inode = read.iter().find(|s| s.kind == StepKind::Inode).unwrap();
            let inside = inode.start % (32_768 * 512) / 512;
            assert!((64..1088).contains(&inside) && inside % 16 == 0, "{inside}");
        }
    }

    #[test]
    fn a_large_file_is_contiguous_and_moves_on_after_maxbpg_blocks() {
        let shape = Shape::Files { count: 1, bytes: 64 << 20 };
        let mut ffs = Ffs::new(&Machine::default().layout, &shape, VOLUME).unwrap();
        let mut out = Vec::new();
        ffs.steps(&Request { offset: 1 << 20, bytes: 32 << 20, ..Request::default() }, &mut out);
        assert_eq!(out.iter().map(|s| s.bytes).sum::<u64>(), 32 << 20);
        assert!(out.len() <= 4, "{}", out.len());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let shape = |files, sizes: &[u64]| Shape::Tree { sizes: sizes.to_vec(), directories: 2, files };
        let config = Machine::default().layout;
        assert!(Ffs::new(&config, &shape(10_000_000, &[8192]), VOLUME).is_err());
        assert!(Ffs::new(&config, &shape(1, &[u64::MAX]), VOLUME).is_err());
        assert!(Ffs::new(&config, &shape(10, &[1]), 1024).is_err());
    }
}
