//! What the kernels' debug information says, as it is committed: functions by source file, with the kernels that have them.
//!
//! Kept: functions of files that `paths.toml` gives a meaning. Of files that it does not name only where names begin like one of
//! those, so that no prefix is made that takes them in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use super::dwarf::Function;
use super::package::Kernel;

/// Kernels of one table: their functions are marked with one bit each.
const MAX_KERNELS: usize = 8;

/// The facts that table and page are made from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Name and version of each package, oldest kernel first.
    pub(super) kernels: Vec<String>,
    /// Path and name of each function, and a bit for each kernel that has it.
    pub(super) functions: BTreeMap<(String, String), u8>,
    /// Names and beginnings of names (up to an underscore) of functions outside.
    pub(super) outside: BTreeSet<String>,
}

impl Evidence {
    /// Takes what is wanted from kernels; `inside` tells of a file whether it has a meaning, and `None` that it does not matter.
    pub(super) fn new(kernels: &[Kernel], inside: impl Fn(&str) -> Option<bool>) -> Result<Evidence, String> {
        if kernels.is_empty() || kernels.len() > MAX_KERNELS {
            return Err(format!("{} kernels: one to {MAX_KERNELS} can be told apart", kernels.len()));
        }
        let mut evidence =
            Evidence { kernels: kernels.iter().map(|k| k.version.clone()).collect(), ..Evidence::default() };
        // A name of the kernel itself is not taken for a module's: those have the module with them.
        let built_in: BTreeSet<&str> =
            kernels.iter().flat_map(|k| &k.built_in).map(|(name, _)| name.as_str()).collect();
        let mut others: BTreeSet<&str> = BTreeSet::new();
        for (index, kernel) in kernels.iter().enumerate() {
            let modules = kernel.modules.iter().filter(|(name, _)| !built_in.contains(name.as_str()));
            for (name, path) in kernel.built_in.iter().chain(modules).filter(|f| !is_stub(f)) {
                match inside(path) {
                    Some(true) => {
                        *evidence.functions.entry((path.clone(), name.clone())).or_default() |= 1 << index;
                    }
                    Some(false) => drop(others.insert(name)),
                    None => {}
                }
            }
        }
        let mut begins: BTreeSet<&str> = BTreeSet::new();
        for (_, name) in evidence.functions.keys() {
            begins.extend(beginnings(name).chain([name.as_str()]));
        }
        let shared = |name: &&str| {
            beginnings(name).chain([*name]).filter(|b| begins.contains(b)).last().map(str::to_owned)
        };
        evidence.outside = others.iter().filter_map(shared).collect();
        Ok(evidence)
    }

    /// As it is committed.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        // Level and header are fixed: the same facts give the same bytes.
        let mut writer = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::best());
        writer.write_all(self.to_text().as_bytes()).map_err(|e| e.to_string())?;
        writer.finish().map_err(|e| e.to_string())
    }

    /// Reads what [`Evidence::to_bytes`] wrote.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Evidence, String> {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).map_err(|e| e.to_string())?;
        Evidence::from_text(&text)
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for kernel in &self.kernels {
            text += &format!("kernel {kernel}\n");
        }
        let mut files: BTreeMap<&str, BTreeMap<u8, Vec<&str>>> = BTreeMap::new();
        for ((path, name), kernels) in &self.functions {
            files.entry(path).or_default().entry(*kernels).or_default().push(name);
        }
        for (path, by_kernels) in files {
            text += &format!("file {path}\n");
            for (kernels, names) in by_kernels {
                text += &format!("{kernels} {}\n", names.join(" "));
            }
        }
        let outside: Vec<&str> = self.outside.iter().map(String::as_str).collect();
        text + &format!("outside {}\n", outside.join(" "))
    }

    fn from_text(text: &str) -> Result<Evidence, String> {
        let mut evidence = Evidence::default();
        let mut path = "";
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').ok_or_else(|| format!("no line of evidence: {line}"))?;
            match word {
                "kernel" => evidence.kernels.push(rest.to_owned()),
                "file" => path = rest,
                "outside" => evidence.outside.extend(rest.split_ascii_whitespace().map(str::to_owned)),
                bits => {
                    let bits: u8 = bits.parse().map_err(|_| format!("no kernels: {bits}"))?;
                    let names = rest.split_ascii_whitespace();
                    evidence.functions.extend(names.map(|name| ((path.to_owned(), name.to_owned()), bits)));
                }
            }
        }
        Ok(evidence)
    }
}

/// Entry functions of system calls, which are listed by their call, and code that macros make for tracepoints.
fn is_stub((name, _): &&Function) -> bool {
    [
        "__x64_",
        "__ia32_",
        "__x32_",
        "__se_",
        "__do_sys_",
        "__do_compat_sys_",
        "trace_",
        "perf_trace_",
        "__bpf_trace_",
        "__traceiter_",
        "__probestub_",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// Beginnings of a name that end in an underscore and have a letter, shortest first.
pub(super) fn beginnings(name: &str) -> impl Iterator<Item = &str> {
    let bytes = name.as_bytes();
    (1..bytes.len())
        .filter(move |at| {
            bytes[at - 1] == b'_' && bytes[*at] != b'_' && bytes[..*at].iter().any(|b| *b != b'_')
        })
        .map(move |at| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_ends_in_an_underscore() {
        let all = |name| beginnings(name).collect::<Vec<_>>();
        assert_eq!(all("__ext4_map__x"), ["__ext4_", "__ext4_map__"]);
        assert_eq!(all("ext4_"), Vec::<&str>::new());
        assert_eq!(all("_"), Vec::<&str>::new());
    }

    #[test]
    fn bytes_are_read_back_and_the_kernel_goes_before_modules() {
        let set =
            |all: &[(&str, &str)]| all.iter().map(|(n, p)| ((*n).to_owned(), (*p).to_owned())).collect();
        let old = Kernel {
            version: "a 1".to_owned(),
            built_in: set(&[
                ("read_x", "fs/a.c"),
                ("read_y", "drivers/b.c"),
                ("m_z", "fs/n.c"),
                ("gpu_z", "drivers/b.c"),
            ]),
            modules: set(&[("read_x", "fs/m.c"), ("m_go", "fs/m.c")]),
        };
        let new =
            Kernel { version: "b 2".to_owned(), built_in: set(&[("read_x", "fs/a.c")]), modules: set(&[]) };
        let evidence =
            Evidence::new(&[old, new], |path| (path != "fs/n.c").then(|| path.starts_with("fs/"))).unwrap();
        let found: Vec<_> =
            evidence.functions.iter().map(|((p, n), k)| (p.as_str(), n.as_str(), *k)).collect();
        assert_eq!(found, [("fs/a.c", "read_x", 3), ("fs/m.c", "m_go", 1)]);
        assert_eq!(evidence.outside.iter().collect::<Vec<_>>(), ["read_"]);
        assert_eq!(Evidence::from_bytes(&evidence.to_bytes().unwrap()).unwrap(), evidence);
    }
}
