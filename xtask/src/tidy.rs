//! Rules of the house that no compiler knows. Each is a function from the tree to complaints.

mod circles;
mod commands;
mod functions;
mod users;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A source file longer than this is no longer one room.
const MAX_LINES: usize = 700;

/// What each crate may depend on: edges point down. `iowhy` may use them all.
const EDGES: [(&str, &[&str]); 13] = [
    ("core", &[]),
    ("linux", &["core"]),
    ("probe", &["core", "linux"]),
    ("watch", &["core", "linux"]),
    ("trace", &["core", "linux"]),
    ("sim", &["core"]),
    ("diagnose", &["core", "sim"]),
    ("path", &["core", "diagnose", "probe"]),
    ("replay", &["core", "linux", "diagnose", "probe"]),
    ("stripe", &["core", "probe", "sim"]),
    ("classic", &["core", "linux", "probe", "sim", "path"]),
    ("view", &["core"]),
    ("iowhy", &["*"]),
];

/// Folders that may contain `unsafe`: those that talk to the kernel, the programs on which a diagnosis is tested, and
/// the first process of the lab's virtual machines.
const KERNEL_CRATES: [&str; 6] =
    ["crates/linux", "crates/probe", "crates/watch", "crates/replay", "cases", "lab-guest"];

/// Where names in file systems are made and removed, and nowhere else in the product: `iowhy` runs as root in directories of
/// hostile users.
const NAMES: &str = "crates/linux/src/names/";
/// Calls that make, replace or remove a name, or may do so.
const NAME_CALLS: [&str; 23] = [
    "File::create",
    "fs::write(",
    "fs::copy(",
    "fs::hard_link(",
    "fs::create_dir",
    "fs::remove_",
    "fs::soft_link(",
    "fs::set_permissions(",
    "unix::fs::symlink",
    ".create(true)",
    ".create_new(true)",
    "OFlags::CREATE",
    "fs::unlink",
    "fs::mkdir",
    "fs::rename",
    "fs::link",
    "fs::symlink",
    "fs::mknod",
    "libc::unlink(",
    "libc::rename",
    "libc::mkdir",
    "libc::link",
    "tempfile::",
];

/// Prints complaints; fails if there are any.
pub(crate) fn report(root: &Path) -> ExitCode {
    let complaints = check(root);
    for complaint in &complaints {
        println!("tidy: {complaint}");
    }
    if complaints.is_empty() {
        println!("tidy: ok");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// All complaints about the tree.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let sources = rust_files(root);
    let mut complaints = edges_point_down(root);
    for path in &sources {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        complaints.extend(file_complaints(&name, &text));
        complaints.extend(name_complaints(&name, &text));
        complaints.extend(functions::complaints(&name, &text));
    }
    complaints.extend(module_circles(root));
    complaints.extend(commands::complaints(&root.join("crates/iowhy/src")));
    complaints.extend(words::complaints(root, &sources));
    complaints.extend(users::complaints(root, &sources));
    if sources.len() < 10 {
        complaints.push(format!(
            "only {} source files found under {}: is this the root?",
            sources.len(),
            root.display()
        ));
    }
    complaints
}

/// Complaints about one source file.
fn file_complaints(name: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let lines = text.lines().count();
    if lines > MAX_LINES {
        complaints.push(format!("{name}: {lines} lines; a room has at most {MAX_LINES}: split it"));
    }
    if !text.starts_with("//!") {
        complaints.push(format!("{name}: no module header (`//!`) that says what the room is for"));
    }
    if !KERNEL_CRATES.iter().any(|c| name.contains(&format!("{c}/"))) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            if code.contains(concat!("uns", "afe ")) && !code.contains('"') {
                complaints.push(format!("{name}:{}: unsafe code outside the kernel crates", number + 1));
            }
        }
    }
    for left_open in
        [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("TO", "DO"), concat!("FIX", "ME")]
    {
        if text.contains(left_open) {
            complaints.push(format!("{name}: `{left_open}` left open"));
        }
    }
    complaints
}

/// Calls that make or remove names outside of their room. Tests, which begin at `#[cfg(test)]` or have files of their own, may.
fn name_complaints(name: &str, text: &str) -> Vec<String> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let product = name.starts_with("crates/") && name.contains("/src/") && !name.starts_with(NAMES);
    if !product || file.ends_with("tests.rs") {
        return Vec::new();
    }
    let code = text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    let mut complaints = Vec::new();
    for (number, line) in code {
        let line = line.split("//").next().unwrap_or("");
        if let Some(call) = NAME_CALLS.iter().find(|call| line.contains(**call)) {
            complaints.push(format!(
                "{name}:{}: `{call}` makes or removes a name outside of {NAMES}: use what is there",
                number + 1
            ));
        }
    }
    complaints
}

/// Every crate depends only on what [`EDGES`] names.
fn edges_point_down(root: &Path) -> Vec<String> {
    let Ok(crates) = std::fs::read_dir(root.join("crates")) else {
        return vec!["no folder `crates`".to_owned()];
    };
    let mut complaints = Vec::new();
    for entry in crates.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
        complaints.extend(dependency_complaints(&name, &manifest));
    }
    complaints
}

/// Modules that import each other, in any crate.
fn module_circles(root: &Path) -> Vec<String> {
    let crates = std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten().map(|e| e.path());
    let others = ["cases", "lab-guest", "xtask"].map(|name| root.join(name));
    let mut folders: Vec<PathBuf> = crates.chain(others).collect();
    folders.sort();
    let of = |folder: &PathBuf| {
        let name = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
        circles::complaints(&name, &folder.join("src"))
    };
    folders.iter().flat_map(of).collect()
}

fn dependency_complaints(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = EDGES.iter().find(|(each, _)| *each == name) else {
        return vec![format!("crates/{name}: not in the table of edges in xtask/src/tidy.rs: add it")];
    };
    manifest
        .lines()
        .skip_while(|line| !line.contains("dependencies]"))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter_map(|word| word.strip_prefix("iowhy-"))
        .filter(|word| !allowed.contains(word) && !allowed.contains(&"*"))
        .map(|word| {
            format!("crates/{name}: depends on iowhy-{word}; edges point down, see xtask/src/tidy.rs")
        })
        .collect()
}

/// Every Rust source below the root, build output left out.
pub(crate) fn rust_files(root: &Path) -> Vec<PathBuf> {
    ["crates", "cases", "lab-guest", "xtask"]
        .iter()
        .flat_map(|folder| files(&root.join(folder), "rs"))
        .collect()
}

/// Files with this extension below a folder, in order, build output left out.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if !path.join("CACHEDIR.TAG").exists() {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        assert_eq!(check(&crate::root()), Vec::<String>::new());
    }

    #[test]
    fn an_edge_that_points_up_is_seen() {
        let depends =
            |on: &str| format!("[dependencies]\niowhy-core.workspace = true\niowhy-{on}.workspace = true\n");
        assert_eq!(dependency_complaints("diagnose", &depends("path")).len(), 1);
        assert_eq!(dependency_complaints("core", &depends("linux")).len(), 2);
        assert_eq!(dependency_complaints("unheard-of", "").len(), 1);
        assert!(dependency_complaints("path", &depends("diagnose")).is_empty());
        assert!(dependency_complaints("iowhy", &depends("view")).is_empty());
    }

    #[test]
    fn names_are_made_and_removed_in_one_room() {
        for call in ["std::fs::remove_file(&path)", "OpenOptions::new().create(true)", "fs::write(a, b)"] {
            let text = format!("//! x\nfn f() {{ {call}; }}\n");
            assert_eq!(name_complaints("crates/iowhy/src/x.rs", &text).len(), 1, "{call}");
            assert!(name_complaints(&format!("{NAMES}x.rs"), &text).is_empty());
            assert!(name_complaints("crates/iowhy/tests/x.rs", &text).is_empty());
            let tested = format!("//! x\n#[cfg(test)]\nmod tests {{\n{text}}}\n");
            assert!(name_complaints("crates/iowhy/src/x.rs", &tested).is_empty());
        }
    }

    #[test]
    fn breaches_in_a_file_are_seen() {
        let long = format!("//! x\n{}", "\n".repeat(MAX_LINES));
        let open = format!("//! x\nfn f() {{ {}) }}\n", concat!("todo", "!("));
        let sharp = format!("//! x\nfn f() {{ {}{{}} }}\n", concat!("uns", "afe "));
        for bad in ["fn f() {}\n", &long, &open, &sharp] {
            assert!(!file_complaints("crates/iowhy/src/x.rs", bad).is_empty(), "{bad}");
        }
        assert!(file_complaints("crates/probe/src/x.rs", &sharp).is_empty());
    }
}
