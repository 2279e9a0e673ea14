//! Kernel functions by address, from `/proc/kallsyms`.
//!
//! Only text symbols are kept, in one block of names: about 5 MB for a usual kernel. Where the kernel hides its
//! addresses (`kptr_restrict`), the table is empty and every look-up says so with `None`.

use super::name::strip;

/// Farther than this from the last symbol before it an address belongs to nothing that has a name.
const LONGEST_FUNCTION: u64 = 1 << 20;

/// Most symbols that are kept.
const MAX: usize = 1 << 20;

/// The table.
#[derive(Debug, Default)]
pub struct Kernel {
    /// Sorted by address, each address once.
    functions: Vec<Function>,
    names: String,
    modules: Vec<String>,
}

/// One function. A name is `names[at..at + length]`, as the kernel writes it: few of them are ever asked for, so that
/// suffixes are taken off only then.
#[derive(Debug)]
struct Function {
    address: u64,
    at: u32,
    length: u16,
    /// Index into the modules, from 1; 0 is the kernel itself.
    module: u16,
}

impl Kernel {
    /// Reads a text in the format of `/proc/kallsyms`: `address type name [module]` a line. Lines of another shape are
    /// passed over.
    pub fn parse(text: &str) -> Kernel {
        let mut kernel = Kernel::default();
        for line in text.lines() {
            kernel.line(line);
        }
        // Aliases of one address: the first stays.
        kernel.functions.sort_by_key(|f| f.address);
        kernel.functions.dedup_by_key(|f| f.address);
        kernel.functions.shrink_to_fit();
        kernel
    }

    /// Reads `/proc/kallsyms`. Empty where it cannot be read or hides its addresses.
    pub fn of_this_machine() -> Kernel {
        std::fs::read("/proc/kallsyms").map_or_else(|_| Kernel::default(), |b| Kernel::parse(&text(b)))
    }

    fn line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            return;
        };
        if !matches!(kind, "t" | "T" | "w" | "W") || name.starts_with("__pfx_") || self.functions.len() >= MAX
        {
            return;
        }
        let Ok(address) = u64::from_str_radix(address, 16) else { return };
        if address == 0 {
            return;
        }
        let module = words.next().map_or(0, |m| self.module(m.trim_matches(['[', ']'])));
        let (Ok(at), Ok(length)) = (u32::try_from(self.names.len()), u16::try_from(name.len())) else {
            return;
        };
        self.names.push_str(name);
        self.functions.push(Function { address, at, length, module });
    }

    fn module(&mut self, name: &str) -> u16 {
        // kallsyms lists the symbols of a module together, so the last one is nearly always right.
        let place = self.modules.iter().rposition(|m| m == name).unwrap_or_else(|| {
            self.modules.push(name.to_owned());
            self.modules.len() - 1
        });
        u16::try_from(place + 1).unwrap_or(0)
    }

    /// Whether there is no function in it.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that holds this address: its index (for a cache), name and module.
    pub fn find(&self, address: u64) -> Option<(usize, &str, Option<&str>)> {
        let index = self.functions.partition_point(|f| f.address <= address).checked_sub(1)?;
        let f = &self.functions[index];
        if address - f.address >= LONGEST_FUNCTION {
            return None;
        }
        let at = f.at as usize;
        let name = self.names.get(at..at + f.length as usize)?;
        let module = (f.module as usize).checked_sub(1).and_then(|m| self.modules.get(m)).map(String::as_str);
        Some((index, strip(name), module))
    }
}

/// The bytes as text: nearly always they are, and then nothing is copied.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T _stext
ffffffff81000100 t __mutex_lock.constprop.0
ffffffff81000100 T alias_of_it
ffffffff810001f0 t __pfx_vfs_read
ffffffff81000200 T vfs_read
ffffffff81000300 D data_symbol
nonsense
ffffffffc0000000 t ext4_sync_file\t[ext4]
";

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let k = Kernel::parse(TEXT);
        let name = |a| k.find(a).map(|(_, n, m)| (n.to_owned(), m.map(str::to_owned)));
        assert_eq!(name(0xffff_ffff_8100_0150), Some(("__mutex_lock".into(), None)));
        assert_eq!(name(0xffff_ffff_8100_01f8), Some(("__mutex_lock".into(), None)));
        assert_eq!(name(0xffff_ffff_8100_0200), Some(("vfs_read".into(), None)));
        assert_eq!(name(0xffff_ffff_c000_0010), Some(("ext4_sync_file".into(), Some("ext4".into()))));
        assert_eq!(name(0xffff_ffff_8000_0000), None);
        assert_eq!(name(0xffff_ffff_9000_0000), None);
    }

    #[test]
    fn hidden_addresses_make_an_empty_table() {
        assert!(Kernel::parse("0000000000000000 T vfs_read\n0000000000000000 T vfs_write\n").is_empty());
        assert!(Kernel::parse("").find(1).is_none());
    }
}
