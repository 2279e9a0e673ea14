//! No command of `iowhy` imports another one: what two commands need is a module outside of `command/`.

use std::collections::BTreeSet;
use std::path::Path;

use super::circles::{self, Name};

/// The module whose children are the commands.
const COMMANDS: &str = "command";

/// Complaints about the crate whose sources are below this folder.
pub(super) fn complaints(source: &Path) -> Vec<String> {
    between_commands(&circles::imports(source))
}

fn between_commands(imports: &BTreeSet<(Name, Name)>) -> Vec<String> {
    let command = |module: &Name| match module.as_slice() {
        [parent, command, ..] if parent == COMMANDS => Some(command.clone()),
        _ => None,
    };
    let mut complaints = Vec::new();
    for (from, to) in imports {
        if let (Some(one), Some(other)) = (command(from), command(to))
            && one != other
        {
            complaints.push(format!(
                "{}: the command `{one}` imports the command `{other}` ({}): move what both need out of `{COMMANDS}`",
                from.join("::"),
                to.join("::")
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(watch: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("lib.rs", "mod command;\nmod proof;\n"),
            ("proof.rs", "pub fn prove() {}\n"),
            ("command/mod.rs", "mod prove;\nmod watch;\n"),
            ("command/prove/mod.rs", "mod load;\nuse self::load::record;\npub fn run() {}\n"),
            ("command/prove/load.rs", "pub fn record() {}\n"),
            ("command/watch.rs", watch),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        complaints(folder.path())
    }

    #[test]
    fn an_import_of_another_command_is_seen() {
        for bad in [
            "use crate::command::prove;\n",
            "use super::prove::run;\n",
            "use crate::command::prove::load::record;\n",
            "fn f() { crate::command::prove::run() }\n",
        ] {
            assert_eq!(made(bad).len(), 1, "{bad}");
        }
        for innocent in ["use crate::proof::prove;\n", "#[cfg(test)]\nuse super::prove;\n"] {
            assert!(made(innocent).is_empty(), "{innocent}");
        }
    }
}
