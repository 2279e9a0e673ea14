//! Reads the table of kernel functions (`symbols.toml`, `waits.toml`), modules (`modules.toml`) and source files
//! (`paths.toml`, with the generated `functions.txt`) into look-ups.
//!
//! The table is data; what its sections mean is said at their heads. Reading is total: an entry that cannot be
//! understood is left out and named in [`Table::faults`], and a test holds that list empty. What may not enter: a name
//! of a kernel function.

use std::collections::HashMap;

use iowhy_core::layer::Layer;
use serde::Deserialize;

use super::by_path::{ByPath, NONE};
use super::patterns::Patterns;
use super::{Operation, Wait};

/// The table that is part of this program.
const EMBEDDED: &str = concat!(
    include_str!("symbols.toml"),
    include_str!("waits.toml"),
    include_str!("modules.toml"),
    include_str!("paths.toml")
);
/// Functions by the source file that defines them.
const FUNCTIONS: &str = include_str!("functions.txt");

/// What a function is to the walk over a stack, whatever else it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// Helps others: looked through.
    Transparent,
    /// The scheduler and the primitives of sleeping: looked through, and what is further out waited.
    Sleep,
    /// The way into and out of the kernel for system calls.
    Entry,
    /// Entry of a page fault.
    Fault,
    /// Entry of an interrupt: what is further in is not the thread's own work.
    Interrupt,
    /// Counting and recording at a tracepoint: what is further in is a tracer's or profiler's work.
    Observer,
    /// Runs what the program, or who started it, has set up to judge its calls: what is further in is no tracer's work.
    Filter,
    /// Where an interrupt allows others for the first time: what was held back meanwhile arrives here.
    Unmasked,
}

/// How a function speaks about layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The layer.
    pub(crate) layer: Layer,
    /// A service of several layers: the caller's layer counts, this one only when no caller is in the table.
    pub(crate) shared: bool,
    /// The source file of a function goes first.
    pub(crate) fallback: bool,
    /// The line that says so, an index into [`Table::layer_lines`]; for modules and paths none.
    pub(crate) line: Option<u16>,
}

/// What a module of the kernel says about its functions that are not listed by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    /// Where CPU time in it belongs.
    pub(crate) layer: Layer,
    /// What a sleep in it waits for: an index into [`Table::sleepers`].
    pub(crate) sleeper: Option<u16>,
    /// It belongs to a served file system: what callers in it wait for is the server's answer.
    pub(crate) server: bool,
}

/// What it means to sleep below a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sleeper {
    /// Counts only where the function itself went to sleep: nothing but sleeping primitives further in.
    pub(crate) direct: bool,
    /// Counts only when no other function of the stack says what was waited for.
    pub(crate) fallback: bool,
    /// Below any function of a served file system it is a wait for the server.
    pub(crate) served: bool,
    /// Meanings by a function anywhere further out, before all others.
    pub(crate) anywhere: Patterns<Wait>,
    /// Meanings by a function further out; the nearest such function decides.
    pub(crate) near: Patterns<Wait>,
    /// Else by operation.
    pub(crate) by_operation: Vec<(Operation, Wait)>,
    /// Else this.
    pub(crate) kind: Option<Wait>,
}

/// What a group of source files says about its functions.
#[derive(Clone, Debug)]
pub(crate) struct PathGroup {
    /// Its name in `functions.txt`.
    pub(crate) id: String,
    /// Where CPU time in them belongs; `None`: they help others.
    pub(crate) place: Option<Place>,
    /// They have no meaning at all.
    pub(crate) none: bool,
    /// What a sleep in them waits for: an index into [`Table::sleepers`].
    pub(crate) sleeper: Option<u16>,
    /// They belong to a served file system.
    pub(crate) server: bool,
}

/// A line of `paths.toml`, for the generator of `functions.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    /// A file, or a folder that ends in `/`; the longest rule decides.
    pub path: String,
    /// The group in `functions.txt`.
    pub group: String,
}

/// A name with a layer of `symbols.toml`, for checks against the source files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerLine {
    /// The name, or a prefix that ends in `*`.
    pub pattern: String,
    /// Its layer.
    pub layer: Layer,
    /// Whether the layer of a caller goes first.
    pub shared: bool,
    /// Only for functions whose source file is not known.
    pub fallback: bool,
    /// Why the name is the better rule where the source file says another layer.
    pub reason: Option<String>,
}

/// What `symbols.toml` says about the layer of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByName<'a> {
    /// No line has it.
    Nothing,
    /// It helps others, and their layer counts.
    Helper,
    /// This line gives its layer.
    Line(&'a LayerLine),
}

/// What source files say about the layer of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ByPathMeaning {
    /// It helps others, and their layer counts.
    Helper,
    /// Its layer, and whether the layer of a caller goes first.
    Layer(Layer, bool),
}

/// A name of the table, for tests against a running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name, or a prefix that ends in `*`.
    pub pattern: String,
    /// The first kernel that has it, where that is known.
    pub since: Option<(u32, u32)>,
    /// The last kernel that has it, where that is known.
    pub until: Option<(u32, u32)>,
    /// The part of the kernel it belongs to, where that is often a module: names of kernels without that part are not
    /// expected. It is a prefix of that part's functions.
    pub part: Option<String>,
}

/// All look-ups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) roles: Patterns<Role>,
    pub(crate) places: Patterns<Place>,
    pub(crate) operations: Patterns<Operation>,
    /// Functions whose operation stands for that of the call.
    pub(crate) instead: Patterns<Operation>,
    pub(crate) calls: HashMap<String, Operation>,
    pub(crate) call_prefixes: Vec<String>,
    pub(crate) sleepers: Vec<Sleeper>,
    pub(crate) sleeper_of: Patterns<u16>,
    /// Functions that start a write-back and wait for it.
    pub(crate) own_writeback: Patterns<()>,
    pub(crate) modules: Patterns<Module>,
    pub(crate) layer_lines: Vec<LayerLine>,
    pub(crate) path_groups: Vec<PathGroup>,
    pub(crate) path_rules: Vec<PathRule>,
    pub(crate) by_path: ByPath,
    pub(crate) listed: Vec<Listed>,
    /// What could not be understood, in words.
    pub(crate) faults: Vec<String>,
}

/// The file as TOML has it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    call_prefixes: Vec<String>,
    #[serde(default)]
    own_writeback: String,
    #[serde(default)]
    sets: HashMap<String, String>,
    #[serde(default)]
    call: Vec<Call>,
    #[serde(default)]
    role: Vec<RoleGroup>,
    #[serde(default)]
    layer: Vec<LayerGroup>,
    #[serde(default)]
    operation: Vec<OperationGroup>,
    #[serde(default)]
    wait: Vec<WaitGroup>,
    #[serde(default)]
    module: Vec<ModuleGroup>,
    #[serde(default)]
    path: Vec<PathToml>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathToml {
    id: String,
    layer: Option<Layer>,
    #[serde(default)]
    shared: bool,
    paths: String,
    kind: Option<String>,
    #[serde(default)]
    by_operation: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModuleGroup {
    layer: Layer,
    names: String,
    kind: Option<String>,
    #[serde(default)]
    by_operation: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    id: String,
    names: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoleGroup {
    id: Role,
    names: String,
    since: Option<String>,
    until: Option<String>,
    part: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerGroup {
    id: Layer,
    names: String,
    #[serde(default)]
    shared: bool,
    #[serde(default)]
    fallback: bool,
    reason: Option<String>,
    since: Option<String>,
    until: Option<String>,
    part: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationGroup {
    id: String,
    #[serde(default)]
    instead: bool,
    names: String,
    since: Option<String>,
    until: Option<String>,
    part: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitGroup {
    names: String,
    kind: Option<String>,
    #[serde(default)]
    direct: bool,
    #[serde(default)]
    fallback: bool,
    #[serde(default)]
    near: HashMap<String, String>,
    #[serde(default)]
    anywhere: HashMap<String, String>,
    #[serde(default)]
    by_operation: HashMap<String, String>,
    since: Option<String>,
    until: Option<String>,
    part: Option<String>,
}

impl Table {
    /// The table that is part of this program.
    pub(crate) fn embedded() -> Table {
        Table::parse(EMBEDDED, FUNCTIONS)
    }

    /// Reads a table. Never fails: see [`Table::faults`].
    pub(crate) fn parse(text: &str, functions: &'static str) -> Table {
        let mut table = Table::default();
        let file: File = match toml::from_str(text) {
            Ok(file) => file,
            Err(error) => {
                table.faults.push(format!("not a table: {error}"));
                return table;
            }
        };
        table.call_prefixes = file.call_prefixes;
        // The longest first: `__x64_sys_` is tried before `sys_`.
        table.call_prefixes.sort_by_key(|p| std::cmp::Reverse(p.len()));
        for group in file.call {
            let operation = table.operation(&group.id);
            for name in group.names.split_whitespace() {
                if table.calls.insert(name.to_owned(), operation).is_some() {
                    table.faults.push(format!("system call {name} is listed twice"));
                }
            }
        }
        for g in file.role {
            table.list(&g.names, &g.since, &g.until, &g.part);
            for name in g.names.split_whitespace() {
                let before = table.roles.insert(name, g.id);
                table.conflict("role", name, before.is_some());
            }
        }
        for g in file.layer {
            table.layer_group(&g);
        }
        for g in file.operation {
            table.list(&g.names, &g.since, &g.until, &g.part);
            let operation = table.operation(&g.id);
            for name in g.names.split_whitespace() {
                let of = if g.instead { &mut table.instead } else { &mut table.operations };
                let before = of.insert(name, operation);
                table.conflict("operation", name, before.is_some());
            }
        }
        for name in file.own_writeback.split_whitespace() {
            let before = table.own_writeback.insert(name, ());
            table.conflict("line in own_writeback", name, before.is_some());
        }
        for g in file.wait {
            table.wait_group(&g, &file.sets);
        }
        for g in file.module {
            table.module_group(&g);
        }
        for g in file.path {
            table.path_group(&g);
        }
        let ids: Vec<&str> = table.path_groups.iter().map(|g| g.id.as_str()).collect();
        table.by_path = ByPath::parse(functions, &ids, &mut table.faults);
        table
    }

    fn layer_group(&mut self, g: &LayerGroup) {
        self.list(&g.names, &g.since, &g.until, &g.part);
        for name in g.names.split_whitespace() {
            let line = u16::try_from(self.layer_lines.len()).ok();
            self.layer_lines.push(LayerLine {
                pattern: name.to_owned(),
                layer: g.id,
                shared: g.shared,
                fallback: g.fallback,
                reason: g.reason.clone(),
            });
            let before =
                self.places.insert(name, Place { layer: g.id, shared: g.shared, fallback: g.fallback, line });
            self.conflict("layer", name, before.is_some());
        }
    }

    fn path_group(&mut self, g: &PathToml) {
        let kind = g.kind.as_deref().map(|id| self.wait(id));
        let by_operation = self.by_operation(&g.by_operation);
        let sleeper = kind.and_then(|_| self.sleeper(Sleeper { kind, by_operation, ..Sleeper::default() }));
        self.path_groups.push(PathGroup {
            id: g.id.clone(),
            place: g.layer.map(|layer| Place { layer, shared: g.shared, fallback: false, line: None }),
            none: g.id == NONE,
            sleeper,
            server: kind == Some(Wait::Server),
        });
        for path in g.paths.split_whitespace() {
            let twice = self.path_rules.iter().any(|rule| rule.path == path);
            self.conflict("group of paths", path, twice);
            self.path_rules.push(PathRule { path: path.to_owned(), group: g.id.clone() });
        }
    }

    fn wait_group(&mut self, g: &WaitGroup, sets: &HashMap<String, String>) {
        self.list(&g.names, &g.since, &g.until, &g.part);
        let mut sleeper = Sleeper { direct: g.direct, fallback: g.fallback, ..Sleeper::default() };
        sleeper.kind = g.kind.as_deref().map(|id| self.wait(id));
        sleeper.by_operation = self.by_operation(&g.by_operation);
        sleeper.near = self.neighbours(&g.near, sets);
        sleeper.anywhere = self.neighbours(&g.anywhere, sets);
        sleeper.served = g.anywhere.contains_key(Wait::Server.id());
        let Some(index) = self.sleeper(sleeper) else { return };
        for name in g.names.split_whitespace() {
            let before = self.sleeper_of.insert(name, index);
            self.conflict("wait", name, before.is_some());
        }
    }

    fn module_group(&mut self, g: &ModuleGroup) {
        let kind = g.kind.as_deref().map(|id| self.wait(id));
        let by_operation = self.by_operation(&g.by_operation);
        let sleeper = kind.and_then(|_| self.sleeper(Sleeper { kind, by_operation, ..Sleeper::default() }));
        for name in g.names.split_whitespace() {
            let module = Module { layer: g.layer, sleeper, server: kind == Some(Wait::Server) };
            let before = self.modules.insert(name, module);
            self.conflict("line for modules", name, before.is_some());
        }
    }

    fn by_operation(&mut self, lists: &HashMap<String, String>) -> Vec<(Operation, Wait)> {
        let mut all: Vec<(Operation, Wait)> = Vec::new();
        for (id, operations) in lists {
            let wait = self.wait(id);
            for operation in operations.split_whitespace() {
                let operation = self.operation(operation);
                let twice = all.iter().any(|(o, _)| *o == operation);
                self.conflict("wait by operation", operation.id(), twice);
                all.push((operation, wait));
            }
        }
        all
    }

    /// Numbers a kind of sleep.
    fn sleeper(&mut self, sleeper: Sleeper) -> Option<u16> {
        let Ok(index) = u16::try_from(self.sleepers.len()) else {
            self.faults.push("more kinds of wait than can be numbered".to_owned());
            return None;
        };
        self.sleepers.push(sleeper);
        Some(index)
    }

    fn neighbours(
        &mut self,
        lists: &HashMap<String, String>,
        sets: &HashMap<String, String>,
    ) -> Patterns<Wait> {
        let mut patterns = Patterns::default();
        for (id, names) in lists {
            let wait = self.wait(id);
            for name in names.split_whitespace() {
                let members = match name.strip_prefix('@') {
                    None => name,
                    Some(set) => sets.get(set).map(String::as_str).unwrap_or_else(|| {
                        self.faults.push(format!("no set is called {set}"));
                        ""
                    }),
                };
                for member in members.split_whitespace() {
                    let before = patterns.insert(member, wait);
                    self.conflict("neighbour", member, before.is_some_and(|b| b != wait));
                }
            }
        }
        patterns
    }

    /// The operation of a system call by the name of its entry function, `__x64_sys_read` or `ksys_read`; `None` for
    /// a function that is no such entry, or for a call that the table does not list unless its prefix is beyond doubt.
    pub(crate) fn entry_call(&self, function: &str) -> Option<Operation> {
        let (prefix, call) = self
            .call_prefixes
            .iter()
            .find_map(|p| function.strip_prefix(p.as_str()).map(|rest| (p, rest)))?;
        match self.calls.get(call) {
            Some(operation) => Some(*operation),
            None => prefix.starts_with("__").then_some(Operation::Other),
        }
    }

    fn list(&mut self, names: &str, since: &Option<String>, until: &Option<String>, part: &Option<String>) {
        let since = self.version(since);
        let until = self.version(until);
        for name in names.split_whitespace() {
            self.listed.push(Listed { pattern: name.to_owned(), since, until, part: part.clone() });
        }
    }

    fn version(&mut self, text: &Option<String>) -> Option<(u32, u32)> {
        let text = text.as_deref()?;
        let parsed = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        if parsed.is_none() {
            self.faults.push(format!("{text} is no kernel version"));
        }
        parsed
    }

    fn operation(&mut self, id: &str) -> Operation {
        Operation::from_id(id).unwrap_or_else(|| {
            self.faults.push(format!("no operation is called {id}"));
            Operation::Unknown
        })
    }

    fn wait(&mut self, id: &str) -> Wait {
        Wait::from_id(id).unwrap_or_else(|| {
            self.faults.push(format!("no wait is called {id}"));
            Wait::Unknown
        })
    }

    fn conflict(&mut self, what: &str, name: &str, is: bool) {
        if is {
            self.faults.push(format!("{name} has more than one {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_embedded_table_has_no_faults() {
        let table = Table::embedded();
        assert_eq!(table.faults, Vec::<String>::new());
        assert!(table.listed.len() > 1000, "{} names", table.listed.len());
    }

    #[test]
    fn faults_are_named_and_the_rest_is_kept() {
        let text = "call_prefixes = [\"__x64_sys_\"]\n[[call]]\nid = \"read\"\nnames = \"read\"\n\
                    [[call]]\nid = \"drink\"\nnames = \"read\"\n[[layer]]\nid = \"copy\"\nnames = \"a a\"\nsince = \"x\"\n";
        let table = Table::parse(text, "");
        assert_eq!(table.faults.len(), 4, "{:?}", table.faults);
        assert_eq!(table.places.get("a").map(|p| p.layer), Some(Layer::Copy));
        assert_eq!(Table::parse("[", "").faults.len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,200}") {
            let _ = Table::parse(&text, "");
        }
    }
}
