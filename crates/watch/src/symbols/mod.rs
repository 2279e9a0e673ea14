//! Names of functions, kernel and user, from addresses. Every name is kept once and has a [`SymbolId`]. An address without
//! a name gets the name of its object in brackets, so that a stack is never longer than what is known about it.

mod elf;
mod frame_tables;
mod kernel;
mod name;
mod run_time;
mod spaces;
#[cfg(test)]
mod tests;
mod unwinding;

pub use kernel::Kernel;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use iowhy_core::profile::{Symbol, SymbolId};
use iowhy_linux::names::Regular;
use rustix::fs::OFlags;

use elf::{BuildId, Functions};
use frame_tables::FrameTables;
use run_time::RunTime;
use spaces::{Mapping, Spaces};
use unwinding::{Code, Unwinding};

use crate::event::Chain;
use crate::in_kernel::Namer;

/// Most names. Beyond, functions share the name of their object.
const MAX_SYMBOLS: usize = 100_000;
/// Most objects (files) that are told apart.
const MAX_OBJECTS: usize = 4096;
/// Most files whose functions are kept. Each holds one descriptor open.
const MAX_TABLES: usize = 128;
/// Most functions of all files together: 16 bytes each.
const MAX_FUNCTIONS: usize = 1_500_000;

/// Where distributions put names of functions that were stripped (Debian: packages `...-dbgsym`; Fedora: `...-debuginfo`).
const NAMES_OF_BUILDS: &str = "/usr/lib/debug/.build-id";

/// Memory without a file.
const ANONYMOUS: &str = "[anonymous]";

/// Names of functions.
#[derive(Debug)]
pub struct Symbols {
    table: Vec<Symbol>,
    ids: HashMap<Symbol, SymbolId>,
    /// Read at the first kernel address that is asked for.
    kernel: Option<Kernel>,
    kernel_ids: HashMap<usize, SymbolId>,
    /// Asks the kernel instead, and what it answered by address.
    namer: Option<Namer>,
    by_address: HashMap<u64, SymbolId>,
    user_ids: HashMap<(u32, usize), SymbolId>,
    spaces: Spaces,
    run_time: RunTime,
    objects: Vec<Object>,
    by_path: HashMap<String, u32>,
    by_inode: HashMap<(u64, u64), Option<Rc<Functions>>>,
    functions: usize,
    /// `None` until the first stack, and while it looks at the rest of this.
    unwinding: Option<Box<Unwinding>>,
    /// Bytes of all tables for unwinding.
    table_bytes: usize,
}

/// Something that is mapped.
#[derive(Debug)]
struct Object {
    path: String,
    /// Last part of the path.
    name: String,
    /// `None`: not looked at yet. `Some(None)`: it has no names.
    functions: Option<Option<Rc<Functions>>>,
    /// The same of its tables for unwinding.
    frame_tables: Option<Option<Rc<FrameTables>>>,
}

impl Default for Symbols {
    fn default() -> Self {
        Symbols::of_this_machine()
    }
}

impl Symbols {
    /// Names of the running kernel (`/proc/kallsyms` is read at the first kernel address) and of files.
    pub fn of_this_machine() -> Symbols {
        Symbols {
            table: Vec::new(),
            ids: HashMap::new(),
            kernel: None,
            kernel_ids: HashMap::new(),
            namer: None,
            by_address: HashMap::new(),
            user_ids: HashMap::new(),
            spaces: Spaces::default(),
            run_time: RunTime::default(),
            objects: Vec::new(),
            by_path: HashMap::new(),
            by_inode: HashMap::new(),
            functions: 0,
            unwinding: None,
            table_bytes: 0,
        }
    }

    /// Names of a kernel that the caller has read.
    #[cfg(test)]
    pub(crate) fn with_kernel(kernel: Kernel) -> Symbols {
        Symbols { kernel: Some(kernel), ..Symbols::of_this_machine() }
    }

    /// Reads the kernel's table now, so that the first stack does not wait for it.
    pub fn prepare_kernel(&mut self) {
        self.kernel.get_or_insert_with(Kernel::of_this_machine);
    }

    /// Asks the kernel for the name of each address instead of reading its table.
    pub(crate) fn ask_kernel(&mut self, namer: Namer) {
        self.namer = Some(namer);
    }

    /// The kernel function at an address; `[kernel]` where it has no name.
    pub fn kernel(&mut self, address: u64) -> SymbolId {
        if let Some(namer) = &mut self.namer {
            if let Some(id) = self.by_address.get(&address) {
                return *id;
            }
            let id = match namer.name(address) {
                Some(name) => self.named(&name),
                None => self.plain("[kernel]"),
            };
            self.by_address.insert(address, id);
            return id;
        }
        let kernel = self.kernel.get_or_insert_with(Kernel::of_this_machine);
        let Some((index, name, module)) = kernel.find(address) else { return self.plain("[kernel]") };
        if let Some(id) = self.kernel_ids.get(&index) {
            return *id;
        }
        let symbol = Symbol { name: name.to_owned(), object: module.map(str::to_owned), ..Symbol::default() };
        let id = self.intern(symbol);
        self.kernel_ids.insert(index, id);
        id
    }

    /// The user function at an address of a process. `[libc.so.6]` where the object has no name for it, `[anonymous]`
    /// where no object is there: code made at run time, to which the process gives no name.
    pub fn user(&mut self, pid: u32, address: u64) -> SymbolId {
        let place = self.spaces.find(pid, address);
        let object = place.and_then(|(object, _)| self.objects.get(object as usize));
        if object.is_none_or(|object| object.path == ANONYMOUS)
            && self.table.len() < MAX_SYMBOLS
            && let Some(function) = self.run_time.function(pid, address)
        {
            return self.intern(function);
        }
        let Some((object, offset)) = place else { return self.plain(ANONYMOUS) };
        let functions = self.functions_of(object, pid);
        let Some((functions, index)) = functions.and_then(|f| f.find(offset).map(|i| (f, i))) else {
            return self.object_only(object);
        };
        if let Some(id) = self.user_ids.get(&(object, index)) {
            return *id;
        }
        let id = match functions.name(index) {
            Some(raw) if self.table.len() < MAX_SYMBOLS => {
                let object = self.objects.get(object as usize).map(|o| o.name.clone());
                self.intern(Symbol { name: name::readable(&raw), object, ..Symbol::default() })
            }
            _ => return self.object_only(object),
        };
        self.user_ids.insert((object, index), id);
        id
    }

    /// The user addresses of a chain: by the tables of the files where its stack was copied, else by frame pointers. `found` is where they
    /// are put.
    pub(crate) fn callers<'a>(&mut self, pid: u32, chain: &Chain<'a>, found: &'a mut Vec<u64>) -> &'a [u64] {
        let generation = self.spaces.generation(pid);
        let by_pointers = self.in_code(pid, chain.user);
        let Some(stack) = &chain.stack else { return by_pointers };
        let mut unwinding = self.unwinding.take().unwrap_or_default();
        unwinding.callers(generation, stack, &mut |address| self.code(pid, address), found);
        self.unwinding = Some(unwinding);
        // Where the copy ends, frame pointers may lead on: from the last caller that both found.
        let last = found.last().copied();
        if let Some(at) = by_pointers.iter().rposition(|address| Some(*address) == last) {
            found.extend(&by_pointers[at + 1..]);
        }
        // Nothing is known of it yet: it may keep frame pointers.
        if found.len() > 1 { found } else { by_pointers }
    }

    /// The part of a chain before the first caller that is no code of the process: what code without frame pointers keeps in that register is
    /// taken for one.
    fn in_code<'a>(&self, pid: u32, addresses: &'a [u64]) -> &'a [u64] {
        let is_none = |address: &u64| self.spaces.find(pid, *address).is_none();
        let end = addresses.iter().skip(1).position(is_none).filter(|_| self.spaces.generation(pid) > 0);
        &addresses[..end.map_or(addresses.len(), |at| at + 1)]
    }

    /// What is at an address of a process, if it is code.
    fn code(&mut self, pid: u32, address: u64) -> Option<Code> {
        let (object, offset) = self.spaces.find(pid, address)?;
        let tables = self.frame_tables_of(object, pid);
        Some(Code { file: tables.and_then(|t| Some((object, t.address(offset)?, t))) })
    }

    /// A kernel function that is known by name only (`/proc/PID/stack`, `wchan`), with its module where that is told:
    /// `xfs_log_force [xfs]`.
    pub fn named(&mut self, frame: &str) -> SymbolId {
        let (name, module) = frame.split_once(" [").unwrap_or((frame, ""));
        let object = module.strip_suffix(']').map(str::to_owned);
        self.intern(Symbol { name: name::strip(name).to_owned(), object, ..Symbol::default() })
    }

    /// A kernel function with its module: see [`Symbol::frame`].
    pub fn frame(&self, id: SymbolId) -> Cow<'_, str> {
        self.table.get(id as usize).map_or(Cow::Borrowed(""), Symbol::frame)
    }

    /// The name behind a number.
    pub fn name(&self, id: SymbolId) -> &str {
        self.table.get(id as usize).map_or("", |s| s.name.as_str())
    }

    /// A file, or something in brackets, appeared in a process's address space. Addresses and lengths in bytes.
    pub fn map(&mut self, pid: u32, start: u64, length: u64, offset: u64, path: &str) {
        let object = self.object(path);
        self.spaces.map(pid, Mapping { start, end: start.saturating_add(length), offset, object });
    }

    /// Takes over the executable mappings in a text with the format of `/proc/PID/maps`. Lines of another shape are
    /// passed over.
    pub fn add_maps(&mut self, pid: u32, text: &str) {
        for line in text.lines() {
            // The path is the sixth field and may hold spaces; the fields before it are padded with them.
            let mut rest = line;
            let mut fields = [""; 5];
            for f in &mut fields {
                let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
                *f = word;
                rest = after;
            }
            let [range, rights, offset, ..] = fields;
            let Some((start, end)) = range.split_once('-') else { continue };
            let hex = |s| u64::from_str_radix(s, 16).ok();
            let (Some(start), Some(end), Some(offset)) = (hex(start), hex(end), hex(offset)) else {
                continue;
            };
            if rights.contains('x') && end > start {
                self.map(pid, start, end - start, offset, rest.trim_start());
            }
        }
    }

    /// A child process begins with its parent's mappings.
    pub fn fork(&mut self, parent: u32, child: u32) {
        self.spaces.fork(parent, child);
    }

    /// The process executed another program, or is gone.
    pub fn clear(&mut self, pid: u32) {
        self.spaces.clear(pid);
        self.run_time.clear(pid);
    }

    /// A number that changes whenever addresses of the process may mean something else. Processes with equal numbers
    /// have equal mappings.
    pub fn generation(&self, pid: u32) -> u64 {
        self.spaces.generation(pid)
    }

    /// All names, in the order of their numbers.
    pub fn into_table(self) -> Vec<Symbol> {
        self.table
    }

    fn plain(&mut self, name: &str) -> SymbolId {
        self.intern(Symbol { name: name.to_owned(), ..Symbol::default() })
    }

    fn object_only(&mut self, object: u32) -> SymbolId {
        let name = self.objects.get(object as usize).map_or("anonymous", |o| o.name.as_str());
        let name = if name.starts_with('[') { name.to_owned() } else { format!("[{name}]") };
        self.plain(&name)
    }

    fn intern(&mut self, symbol: Symbol) -> SymbolId {
        if let Some(id) = self.ids.get(&symbol) {
            return *id;
        }
        // Room is kept for names in brackets, and those are few; past all room everything is one name.
        if self.table.len() >= MAX_SYMBOLS + 2 * MAX_OBJECTS {
            return (self.table.len() - 1) as SymbolId;
        }
        let id = self.table.len() as SymbolId;
        self.table.push(symbol.clone());
        self.ids.insert(symbol, id);
        id
    }

    fn object(&mut self, path: &str) -> u32 {
        // `//anon` and no path at all: memory without a file.
        let path = if path.is_empty() || path.starts_with("//anon") { ANONYMOUS } else { path };
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        if let Some(id) = self.by_path.get(path) {
            return *id;
        }
        if self.objects.len() >= MAX_OBJECTS {
            return 0;
        }
        let name = path.rsplit('/').next().filter(|n| !n.is_empty()).unwrap_or(path).to_owned();
        let id = self.objects.len() as u32;
        self.objects.push(Object { path: path.to_owned(), name, functions: None, frame_tables: None });
        self.by_path.insert(path.to_owned(), id);
        id
    }

    fn functions_of(&mut self, object: u32, pid: u32) -> Option<Rc<Functions>> {
        let known = self.objects.get(object as usize)?;
        if let Some(functions) = &known.functions {
            return functions.clone();
        }
        let path = known.path.clone();
        let functions = path.starts_with('/').then(|| self.load(&path, pid)).flatten();
        self.objects[object as usize].functions = Some(functions.clone());
        functions
    }

    fn frame_tables_of(&mut self, object: u32, pid: u32) -> Option<Rc<FrameTables>> {
        let known = self.objects.get(object as usize)?;
        if let Some(tables) = &known.frame_tables {
            return tables.clone();
        }
        let room = self.table_bytes < unwinding::MAX_BYTES;
        let path = Some(known.path.as_str()).filter(|path| room && path.starts_with('/'));
        let file = path.and_then(|path| open_of_process(path, pid));
        let tables = match known.path.as_str() {
            "[vdso]" => FrameTables::of_vdso(),
            _ => file.and_then(|(file, _)| FrameTables::read(&file)),
        };
        let tables = tables.map(Rc::new);
        self.table_bytes += tables.as_ref().map_or(0, |tables| tables.bytes());
        self.objects[object as usize].frame_tables = Some(tables.clone());
        tables
    }

    /// The functions of a file.
    fn load(&mut self, path: &str, pid: u32) -> Option<Rc<Functions>> {
        let (file, inode) = open_of_process(path, pid)?;
        if let Some(functions) = self.by_inode.get(&inode) {
            return functions.clone();
        }
        let room = MAX_FUNCTIONS.saturating_sub(self.functions);
        if room == 0 || self.by_inode.len() >= MAX_TABLES {
            return None;
        }
        let functions = Functions::read(file, room, |build| file_of_names(Path::new(NAMES_OF_BUILDS), build));
        let functions = functions.map(Rc::new);
        self.functions += functions.as_ref().map_or(0, |f| f.len());
        self.by_inode.insert(inode, functions.clone());
        functions
    }
}

/// Opens the file of names of a build, `FOLDER/NA/ME.debug`: the one that the machine's packages installed, not one of the process. Only
/// root's is believed.
fn file_of_names(folder: &Path, build: &BuildId) -> Option<File> {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (first, rest) = build.split_first()?;
    let path = folder.join(hexadecimal(&[*first])).join(hexadecimal(rest) + ".debug");
    let found = Regular::find(&path, OFlags::empty()).ok()?;
    (found.owner() == 0).then(|| found.open_quietly().ok()).flatten()
}

/// Opens a file as the process sees it (it may live in a container), else as we see it.
fn open_of_process(path: &str, pid: u32) -> Option<(File, (u64, u64))> {
    open_regular(&format!("/proc/{pid}/root{path}")).or_else(|| open_regular(path))
}

/// Opens a regular file and nothing else, without waiting; with its device and inode number.
fn open_regular(path: &str) -> Option<(File, (u64, u64))> {
    let found = Regular::find(Path::new(path), OFlags::empty()).ok()?;
    Some((found.open_quietly().ok()?, found.identity()))
}
