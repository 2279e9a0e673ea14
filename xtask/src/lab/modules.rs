//! Kernel modules of the unpacked kernel package: which file a module is in, and in what order modules must be loaded.
//! The package ships no `modules.dep`, so the modules' own `.modinfo` sections are read. May not enter: loading.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::kernel;
use super::lean_elf::{u16_at, u32_at, u64_at};

/// Modules of newer packages are packed.
const XZ: &str = ".xz";

/// The modules under a folder, by name.
#[derive(Debug)]
pub(super) struct Modules {
    files: BTreeMap<String, PathBuf>,
    built_in: Vec<String>,
}

impl Modules {
    /// Lists the modules of a folder `lib/modules/VERSION`.
    pub(super) fn under(folder: &Path) -> Modules {
        let mut files = BTreeMap::new();
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open.push(path);
                } else if let Some(name) = path.file_name().and_then(|s| s.to_str())
                    && let Some(name) = name.strip_suffix(XZ).unwrap_or(name).strip_suffix(".ko")
                {
                    files.insert(canonical(name), path);
                }
            }
        }
        let built_in = std::fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        let built_in = built_in
            .lines()
            .filter_map(|line| Some(canonical(Path::new(line).file_stem()?.to_str()?)))
            .collect();
        Modules { files, built_in }
    }

    /// A module, unpacked.
    ///
    /// # Errors
    /// In words: the package does not have it, or it cannot be read.
    pub(super) fn bytes(&self, name: &str) -> Result<Vec<u8>, String> {
        let file = self.files.get(&canonical(name));
        let file = file.ok_or_else(|| format!("this kernel package has no module `{name}`"))?;
        let bytes = std::fs::read(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        if file.to_str().is_some_and(|path| path.ends_with(XZ)) { kernel::unxz(&bytes) } else { Ok(bytes) }
    }

    /// The named modules and all they need, each once and after what it needs.
    ///
    /// # Errors
    /// Names a module that the kernel package does not have.
    pub(super) fn in_order(&self, names: &[&str]) -> Result<Vec<String>, String> {
        let mut order = Vec::new();
        for name in names {
            self.visit(&canonical(name), &mut order, 0)?;
        }
        // Asked for by an alias ("crc32c") that no dependency names; its users fail to load without it.
        if order.iter().any(|name| ["libcrc32c", "ext4", "xfs"].contains(&name.as_str())) {
            order.retain(|name| name != "crc32c_generic");
            order.insert(0, "crc32c_generic".to_owned());
        }
        Ok(order)
    }

    fn visit(&self, name: &str, order: &mut Vec<String>, depth: usize) -> Result<(), String> {
        // Dependencies of modules have no cycles; a damaged file must not hang us.
        const DEEPEST: usize = 32;
        if depth > DEEPEST || order.iter().any(|done| done == name) || self.built_in.iter().any(|b| b == name)
        {
            return Ok(());
        }
        for needed in needs(&self.bytes(name)?) {
            // What a module wants first but can do without ("softdep") may be an alias that no file has.
            if needed.hard || self.files.contains_key(&needed.name) {
                self.visit(&needed.name, order, depth + 1)?;
            }
        }
        order.push(name.to_owned());
        Ok(())
    }
}

/// A module that another one needs.
struct Needed {
    name: String,
    hard: bool,
}

fn needs(module: &[u8]) -> Vec<Needed> {
    let mut needed = Vec::new();
    let info = section(module, ".modinfo").unwrap_or_default();
    for entry in info.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok()) {
        if let Some(list) = entry.strip_prefix("depends=") {
            let names = list.split(',').filter(|name| !name.is_empty());
            needed.extend(names.map(|name| Needed { name: canonical(name), hard: true }));
        } else if let Some(list) = entry.strip_prefix("softdep=pre:") {
            let names = list.split_ascii_whitespace().take_while(|word| !word.ends_with(':'));
            needed.extend(names.map(|name| Needed { name: canonical(name), hard: false }));
        }
    }
    needed
}

/// The bytes of a section of a 64-bit little-endian ELF file.
fn section<'a>(elf: &'a [u8], wanted: &str) -> Option<&'a [u8]> {
    let table = usize::try_from(u64_at(elf, 0x28)?).ok()?;
    let each = usize::from(u16_at(elf, 0x3a)?);
    let count = usize::from(u16_at(elf, 0x3c)?);
    let header = |index: usize| table.checked_add(index.checked_mul(each)?);
    let content = |at: usize| -> Option<&'a [u8]> {
        let offset = usize::try_from(u64_at(elf, at + 0x18)?).ok()?;
        let bytes = usize::try_from(u64_at(elf, at + 0x20)?).ok()?;
        elf.get(offset..offset.checked_add(bytes)?)
    };
    let names = content(header(usize::from(u16_at(elf, 0x3e)?))?)?;
    (0..count).find_map(|index| {
        let at = header(index)?;
        let name = names.get(u32_at(elf, at)? as usize..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        (name == wanted.as_bytes()).then(|| content(at)).flatten()
    })
}

/// Names of modules are written with `-` or `_`; the kernel treats both alike.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest ELF file with a `.modinfo`: a header, three section headers, their names, the section.
    fn module(info: &str) -> Vec<u8> {
        let names = b"\0.shstrtab\0.modinfo\0";
        let table = 0x40;
        let names_at = table + 3 * 0x40;
        let info_at = names_at + names.len();
        let mut elf = vec![0; info_at];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[0x28..0x30].copy_from_slice(&(table as u64).to_le_bytes());
        elf[0x3a..0x3c].copy_from_slice(&0x40u16.to_le_bytes());
        elf[0x3c..0x3e].copy_from_slice(&3u16.to_le_bytes());
        elf[0x3e..0x40].copy_from_slice(&1u16.to_le_bytes());
        let mut header = |index: usize, name: u32, offset: usize, bytes: usize| {
            let at = table + index * 0x40;
            elf[at..at + 4].copy_from_slice(&name.to_le_bytes());
            elf[at + 0x18..at + 0x20].copy_from_slice(&(offset as u64).to_le_bytes());
            elf[at + 0x20..at + 0x28].copy_from_slice(&(bytes as u64).to_le_bytes());
        };
        header(1, 1, names_at, names.len());
        header(2, 11, info_at, info.len());
        elf[names_at..info_at].copy_from_slice(names);
        elf.extend_from_slice(info.as_bytes());
        elf
    }

    #[test]
    fn modules_come_after_what_they_need_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, info: &str| {
            std::fs::write(folder.path().join(format!("{name}.ko")), module(info)).unwrap();
        };
        put("dm-delay", "license=GPL\0depends=dm-mod\0");
        put("dm-mod", "depends=dax\0softdep=pre: crc32c helper post: other\0");
        put("dax", "depends=\0");
        put("helper", "");
        std::fs::write(folder.path().join("modules.builtin"), "kernel/fs/built-in.ko\n").unwrap();
        let modules = Modules::under(folder.path());
        let order = modules.in_order(&["dm_delay", "dax", "built_in"]).unwrap();
        assert_eq!(order, ["dax", "helper", "dm_mod", "dm_delay"]);
        assert!(modules.in_order(&["absent"]).unwrap_err().contains("absent"));
        assert_eq!(modules.bytes("dm-delay").unwrap(), module("license=GPL\0depends=dm-mod\0"));
        assert!(modules.bytes("absent").unwrap_err().contains("absent"));
    }

    #[test]
    fn a_file_that_is_no_module_needs_nothing() {
        assert!(needs(b"").is_empty());
        assert!(needs(&module("depends=a,b\0")[..0x50]).is_empty());
        assert_eq!(needs(&module("depends=a,b\0")).len(), 2);
    }
}
