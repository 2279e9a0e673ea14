//! No two modules of a crate import each other, at any depth: what stands below one module forms one node.
//!
//! Paths are read from the text (macros included) and followed through re-exports. A module and those inside it are one
//! house: a parent names its children, and they use what the parent defines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module by the names from the root of its crate: `["fit", "solve"]`; the root has none.
pub(super) type Name = Vec<String>;

/// One module of a crate.
#[derive(Default)]
struct Module {
    /// Its text without comments, strings and tests.
    text: String,
    /// Names that it hands on from elsewhere: name -> path as written.
    handed_on: BTreeMap<String, Vec<String>>,
}

/// Complaints about the crate whose sources are below this folder; `name` is said in them.
pub(super) fn complaints(name: &str, source: &Path) -> Vec<String> {
    let modules = modules(source);
    let edges = edges(&modules);
    let mut parents: BTreeSet<&[String]> = BTreeSet::new();
    for module in modules.keys() {
        parents.extend((0..module.len()).map(|depth| &module[..depth]));
    }
    let mut complaints = Vec::new();
    for parent in parents {
        let below = |module: &Name| {
            (module.len() > parent.len() && module.starts_with(parent)).then(|| module[parent.len()].clone())
        };
        let mut graph: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (from, to) in &edges {
            if let (Some(a), Some(b)) = (below(from), below(to))
                && a != b
            {
                let said = format!("{} -> {}", from.join("::"), to.join("::"));
                graph.entry(a).or_default().entry(b).or_insert(said);
            }
        }
        for circle in circles(&graph) {
            let ties: Vec<&str> = circle
                .iter()
                .flat_map(|a| {
                    graph[a].iter().filter(|(b, _)| circle.contains(*b)).map(|(_, said)| said.as_str())
                })
                .collect();
            let place = [&[name.to_owned()], parent].concat().join("::");
            let circle: Vec<&str> = circle.iter().map(String::as_str).collect();
            complaints.push(format!(
                "{place}: modules import each other: {} ({}): move what both need below them",
                circle.join(", "),
                ties.join("; ")
            ));
        }
    }
    complaints
}

/// The imports of the crate whose sources are below this folder, from module to module.
pub(super) fn imports(source: &Path) -> BTreeSet<(Name, Name)> {
    edges(&modules(source))
}

fn modules(source: &Path) -> BTreeMap<Name, Module> {
    let mut modules = BTreeMap::new();
    for root in ["lib.rs", "main.rs"] {
        let path = source.join(root);
        if let Ok(text) = std::fs::read_to_string(&path) {
            read(&mut modules, Vec::new(), &text, &path, source);
        }
    }
    modules
}

/// Reads a module and, by its `mod` lines, those inside it; tests are left out.
fn read(modules: &mut BTreeMap<Name, Module>, name: Name, text: &str, path: &Path, source: &Path) {
    let text = without_tests(&code(text));
    let folder = match path.file_name().and_then(|f| f.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().unwrap_or(source).to_owned(),
        _ => path.with_extension(""),
    };
    for child in declared(&text) {
        let candidates: [PathBuf; 2] =
            [folder.join(format!("{child}.rs")), folder.join(&child).join("mod.rs")];
        for path in candidates {
            if let Ok(text) = std::fs::read_to_string(&path) {
                let name = [name.as_slice(), std::slice::from_ref(&child)].concat();
                read(modules, name, &text, &path, source);
            }
        }
    }
    let handed_on = paths(&text)
        .into_iter()
        .filter(|path| path.handed_on)
        .filter_map(|path| Some((path.alias.or_else(|| path.names.last().cloned())?, path.names)))
        .collect();
    modules.insert(name, Module { text, handed_on });
}

/// From module to module, where neither stands inside the other.
fn edges(modules: &BTreeMap<Name, Module>) -> BTreeSet<(Name, Name)> {
    let mut edges = BTreeSet::new();
    for (from, module) in modules {
        for path in paths(&module.text) {
            if let Some(to) = resolve(modules, from, &path.names, 8)
                && !to.starts_with(from)
                && !from.starts_with(&to)
            {
                edges.insert((from.clone(), to));
            }
        }
    }
    edges
}

/// The module that a path leads into; `None` for one that leaves the crate.
fn resolve(modules: &BTreeMap<Name, Module>, from: &Name, path: &[String], depth: u32) -> Option<Name> {
    let mut at = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" => from.clone(),
        "super" => from[..from.len().checked_sub(1)?].to_vec(),
        child => {
            let inside = [from.as_slice(), &[child.to_owned()]].concat();
            modules.contains_key(&inside).then_some(inside)?
        }
    };
    for segment in &path[1..] {
        let inside = [at.as_slice(), std::slice::from_ref(segment)].concat();
        if segment == "super" {
            at.pop()?;
        } else if modules.contains_key(&inside) {
            at = inside;
        } else {
            let on = modules.get(&at).and_then(|module| module.handed_on.get(segment));
            return match on {
                Some(path) if depth > 0 => resolve(modules, &at, path, depth - 1).or(Some(at)),
                _ => Some(at),
            };
        }
    }
    Some(at)
}

/// One path of the text, from its first name on.
struct Written {
    names: Vec<String>,
    alias: Option<String>,
    handed_on: bool,
}

/// All paths that begin with `crate`, `self` or `super`, and all of `use` lines; groups are spread out.
fn paths(text: &str) -> Vec<Written> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "use" => {
                let handed_on = at > 0 && matches!(tokens[at - 1], "pub" | ")");
                let end = tokens[at..].iter().position(|t| *t == ";").map_or(tokens.len(), |n| at + n);
                spread(&tokens[at + 1..end], &[], handed_on, &mut found);
                at = end;
            }
            "crate" | "self" | "super" if tokens.get(at + 1) == Some(&"::") => {
                let mut names = vec![tokens[at].to_owned()];
                while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|t| is_name(t)) {
                    names.push(tokens[at + 2].to_owned());
                    at += 2;
                }
                found.push(Written { names, alias: None, handed_on: false });
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// The paths of one tree of a `use` line.
fn spread(tokens: &[&str], before: &[String], handed_on: bool, found: &mut Vec<Written>) {
    let mut names = before.to_vec();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "::" => {}
            "{" => {
                let mut depth = 0;
                let mut start = at + 1;
                for (n, token) in tokens.iter().enumerate().skip(at) {
                    match *token {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || (depth == 1 && *token == ",") {
                        if start < n {
                            spread(&tokens[start..n], &names, handed_on, found);
                        }
                        start = n + 1;
                    }
                    if depth == 0 {
                        break;
                    }
                }
                return;
            }
            "as" => {
                let alias = tokens.get(at + 1).map(|t| (*t).to_owned());
                found.push(Written { names, alias, handed_on });
                return;
            }
            // `a::{self}` is `a`.
            "self" if !names.is_empty() => {}
            name => names.push(name.to_owned()),
        }
        at += 1;
    }
    if !names.is_empty() {
        found.push(Written { names, alias: None, handed_on });
    }
}

/// Names of the modules that a text declares with a file of their own.
fn declared(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let of = |three: &[&str]| (three[0] == "mod" && three[2] == ";").then(|| three[1].to_owned());
    tokens.windows(3).filter_map(of).collect()
}

pub(super) fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

pub(super) fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        if !token.trim().is_empty() {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

/// The text without comments and without what stands between quotes; line ends stay.
pub(super) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw_string(rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let begun = hashes + 2;
            rest[begun..].find(&end).map_or(rest.len(), |n| begun + n + end.len())
        } else if first == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |(n, _)| n + 1)
        } else {
            match ["'\"'", "'\\\"'", "'\\''", "'{'", "'}'"].iter().find(|quoted| rest.starts_with(**quoted)) {
                Some(quoted) => quoted.len(),
                None => 0,
            }
        };
        if skipped == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            out.push(' ');
            out.extend(rest[..skipped].matches('\n'));
            rest = &rest[skipped..];
        }
    }
    out
}

/// The number of `#` with which a raw string begins here.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.chars().take_while(|c| *c == '#').count();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// The text without the items behind `#[cfg(test)]`.
pub(super) fn without_tests(text: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        rest = &rest[at + MARK.len()..];
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, c)| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0 && (*c == '}' || *c == ';')) || depth < 0
        });
        rest = end.map_or("", |(n, _)| &rest[n + 1..]);
    }
    out + rest
}

/// Groups of nodes each of which reaches all others of its group.
fn circles(graph: &BTreeMap<String, BTreeMap<String, String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let mut seen: BTreeSet<&String> = BTreeSet::new();
        let mut open: Vec<&String> = graph.get(from).into_iter().flat_map(BTreeMap::keys).collect();
        while let Some(node) = open.pop() {
            if seen.insert(node) {
                open.extend(graph.get(node).into_iter().flat_map(BTreeMap::keys));
            }
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<&String>> = graph.keys().map(|node| (node, reached(node))).collect();
    let mut found: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (node, reach) in &all {
        if reach.contains(*node) {
            let back = |other: &&&String| all.get(**other).is_some_and(|r| r.contains(*node));
            found.insert(reach.iter().filter(back).map(|other| (*other).clone()).collect());
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        complaints("x", folder.path())
    }

    #[test]
    fn siblings_that_import_each_other_are_seen() {
        let lib = ("lib.rs", "mod a;\nmod b;\n");
        let a = ("a.rs", "use crate::b::{self, Two};\n");
        assert!(made(&[lib, a, ("b.rs", "")]).is_empty());
        for back in
            ["use super::a::One;", "fn f() { println!(\"{}\", crate::a::one()); }", "pub use crate::a as c;"]
        {
            assert_eq!(made(&[lib, a, ("b.rs", back)]).len(), 1, "{back}");
        }
        for innocent in
            ["// crate::a::One\n", "const X: &str = \"crate::a\";", "#[cfg(test)]\nuse crate::a;\n"]
        {
            assert!(made(&[lib, a, ("b.rs", innocent)]).is_empty(), "{innocent}");
        }
    }

    #[test]
    fn re_exports_are_followed_and_depth_counts() {
        let lib = ("lib.rs", "mod a;\nmod b;\npub use self::b::Two;\n");
        let b = ("b/mod.rs", "mod inner;\npub struct Two;\n");
        let inner = ("b/inner.rs", "use crate::a::One;\n");
        assert_eq!(made(&[lib, b, inner, ("a.rs", "use crate::Two;\n")]).len(), 1);
        assert!(made(&[lib, b, inner, ("a.rs", "use crate::c::Two;\n")]).is_empty());
    }

    #[test]
    fn parent_and_child_are_one_house() {
        let lib = ("lib.rs", "mod a;\n");
        let parent = ("a.rs", "mod inner;\nuse inner::Deep;\npub struct Own;\n");
        assert!(made(&[lib, parent, ("a/inner.rs", "use super::Own;\npub struct Deep;\n")]).is_empty());
    }
}
