//! Functions of the kernel by the source file that defines them: `functions.txt`, which `cargo xtask symbols` generates.
//!
//! A line `[ID]` names a group of `paths.toml`; the names below it are its functions. `ext4_*` stands for all names that
//! begin so, and ends in an underscore: the longest one decides, and an exact name before it. Names of the group `none`
//! have no meaning. Nothing is allocated for a name, because every start of the program reads all of them.

use rustc_hash::FxHashMap;

/// The group of functions that no path gives a meaning.
pub(crate) const NONE: &str = "none";

/// Groups by name: an index into the table's groups of paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPath {
    exact: FxHashMap<&'static str, u8>,
    prefixes: FxHashMap<&'static str, u8>,
}

impl ByPath {
    /// Reads the file. What cannot be understood is left out and named in `faults`.
    pub(crate) fn parse(text: &'static str, groups: &[&str], faults: &mut Vec<String>) -> ByPath {
        let mut all = ByPath::default();
        // Names have 16 bytes and more on average. To grow a map step by step costs as much as to fill it.
        all.exact.reserve(text.len() / 16);
        let mut group = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(id) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                let index = groups.iter().position(|g| *g == id);
                group = index.and_then(|index| u8::try_from(index).ok());
                if group.is_none() {
                    faults.push(format!("no group of paths is called {id}"));
                }
                continue;
            }
            let Some(group) = group else { continue };
            for name in line.split_ascii_whitespace() {
                let before = match name.strip_suffix('*') {
                    Some(prefix) => all.prefixes.insert(prefix, group),
                    None => all.exact.insert(name, group),
                };
                if before.is_some() {
                    faults.push(format!("{name} has more than one path"));
                }
            }
        }
        all
    }

    /// The group of a function.
    pub(crate) fn get(&self, name: &str) -> Option<u8> {
        let of_prefix = || {
            let ends = name.bytes().enumerate().rev().filter(|(_, byte)| *byte == b'_');
            ends.into_iter().find_map(|(at, _)| self.prefixes.get(&name[..=at]).copied())
        };
        self.exact.get(name).copied().or_else(of_prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides_and_an_exact_name_before_it() {
        let groups = ["a", "b", NONE];
        let text = "# x\nlost\n[a]\next4_* __x\n[b]\next4_file_*\n ext4_get\n[none]\next4_file_y_*\n";
        let mut faults = Vec::new();
        let by_path = ByPath::parse(text, &groups, &mut faults);
        assert_eq!(faults, Vec::<String>::new());
        let names = [
            "ext4_map",
            "ext4_file_x",
            "ext4_file_y_z",
            "ext4_get",
            "ext4_get_",
            "ext4",
            "__x",
            "__xy",
            "lost",
            "",
        ];
        let got = names.map(|name| by_path.get(name));
        assert_eq!(got, [Some(0), Some(1), Some(2), Some(1), Some(0), None, Some(0), None, None, None]);
        ByPath::parse("[a]\nx x\n[c]\ny\n", &groups, &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
