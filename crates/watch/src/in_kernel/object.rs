//! A BPF object in the kernel: its maps, and its programs, loaded and attached one by one. Nothing here knows what they do.
//!
//! Not `aya`'s own loader, for two reasons: that takes in all types of the kernel, which takes longer than all the rest together;
//! and it cannot make maps as older kernels need them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::CString;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::thread::JoinHandle;

use aya::Endianness;
use aya::maps::{Map, MapData};
use aya_obj::btf::{Btf, BtfFeatures};
use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_map_type, bpf_prog_info, bpf_prog_type, bpf_stats_type};
use aya_obj::{EbpfSectionKind, Function, ProgramSection};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::file_bytes::FileBytes;
use super::rights::KERNEL_TYPES;
use super::{chain, types};

/// Allocated when an entry is made (BPF_F_NO_PREALLOC of `include/uapi/linux/bpf.h`).
const NO_PREALLOC: u32 = 1;
/// Older kernels allocate all entries of a map beforehand; each of the object's maps then takes no more than this.
const PREALLOCATED_BYTES: u32 = 8 << 20;
/// What an entry of a hash takes in the kernel beside its key and value: `struct htab_elem` and rounding.
const ENTRY_BYTES: u32 = 64;
/// The type that kernels have which allocate entries safely from any place (Linux 6.1). Older ones can do it, but warn.
const ALLOCATOR: &[u8] = b"bpf_mem_alloc";
/// The verifier's words on a program of a few thousand instructions.
const LOG_BYTES: usize = 16 << 20;

/// An object. Dropped, it is gone from the kernel.
pub(super) struct Object {
    maps: HashMap<String, Map>,
    programs: BTreeMap<String, Program>,
    license: CString,
    /// The object's own types, in the kernel: functions are verified by them.
    types: OwnedFd,
}

struct Program {
    kind: bpf_prog_type,
    function: Function,
    loaded: Option<OwnedFd>,
    /// It is being loaded.
    coming: Option<JoinHandle<Option<OwnedFd>>>,
    attached: Option<OwnedFd>,
}

impl Object {
    /// Makes the maps and fits the programs to this kernel; none is loaded yet. `globals` are constants by name, `sizes` what maps hold
    /// (entries, or bytes of a ring buffer) where it is not what the object says.
    ///
    /// # Errors
    /// Why the kernel refuses it, in words.
    pub(super) fn open(
        bytes: &[u8],
        globals: &[(&str, u32)],
        sizes: &[(&str, u32)],
    ) -> Result<Object, String> {
        let mut object = aya_obj::Object::parse(bytes).map_err(|e| chain(&e))?;
        for (name, size) in sizes {
            let map = object.maps.get_mut(*name).ok_or_else(|| format!("the object has no map {name}"))?;
            map.set_max_entries(*size);
        }
        let values: Vec<_> = globals.iter().map(|(name, value)| (*name, value.to_ne_bytes())).collect();
        let values = values.iter().map(|(name, value)| (*name, (value.as_slice(), true)));
        object.patch_map_data(values.collect()).map_err(|e| chain(&e))?;
        // What every kernel since 5.8 knows; no other kinds of types are in the object.
        let known = BtfFeatures::new(true, true, true, false, false, false, false, false);
        let own = object.fixup_and_sanitize_btf(&known).map_err(|e| chain(&e))?;
        let own = own.ok_or("the object has no types")?.to_bytes();
        let kernel = FileBytes::open(KERNEL_TYPES).map_err(|e| format!("{KERNEL_TYPES}: {e}"))?;
        let mut names = types::names(&own);
        names.insert(ALLOCATOR);
        let kernel =
            types::reduced(&kernel, &names).ok_or_else(|| format!("{KERNEL_TYPES} is not understood"))?;
        let allocates = types::has(&kernel, ALLOCATOR);
        let kernel = Btf::parse(&kernel, Endianness::default()).map_err(|e| chain(&e))?;
        object.relocate_btf(&kernel).map_err(|e| chain(&e))?;
        let types = load_types(&own)?;
        let made = MemoryLimit::lifted(|| {
            let made =
                object.maps.iter().map(|(name, map)| Ok((name.clone(), make(map, name, &types, allocates)?)));
            made.collect::<Result<HashMap<String, MapData>, Error>>()
        })
        .map_err(|e| super::refusal(&e))?;
        let code: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
        // The object's own maps, not those that were made: they know where the code refers to them.
        let maps: Vec<_> = object.maps.drain().collect();
        let places = maps
            .iter()
            .filter_map(|(name, map)| Some((name.as_str(), made.get(name)?.fd().as_fd().as_raw_fd(), map)));
        object.relocate_maps(places, &code).map_err(|e| chain(&e))?;
        object.relocate_calls(&code).map_err(|e| chain(&e))?;
        let mut programs = BTreeMap::new();
        for (name, program) in object.programs.drain() {
            let function = object.functions.get(&program.function_key()).cloned();
            let function = function.ok_or_else(|| format!("the object has no code of {name}"))?;
            let kind = match program.section {
                ProgramSection::PerfEvent => bpf_prog_type::BPF_PROG_TYPE_PERF_EVENT,
                _ => bpf_prog_type::BPF_PROG_TYPE_RAW_TRACEPOINT,
            };
            programs.insert(name, Program { kind, function, loaded: None, coming: None, attached: None });
        }
        let mut maps = HashMap::new();
        for (name, data) in made {
            maps.insert(name, Map::from_map_data(data).map_err(|e| chain(&e))?);
        }
        Ok(Object { maps, programs, license: object.license, types })
    }

    /// A map.
    pub(super) fn map_mut(&mut self, name: &str) -> Option<&mut Map> {
        self.maps.get_mut(name)
    }

    /// A map, to be kept by somebody else.
    pub(super) fn take_map(&mut self, name: &str) -> Option<Map> {
        self.maps.remove(name)
    }

    /// Loads a program, if it is not loaded yet.
    ///
    /// # Errors
    /// Why the kernel refuses it: the right is missing, or the verifier's reason.
    pub(super) fn load(&mut self, name: &str) -> Result<(), String> {
        let program = self.programs.get_mut(name).ok_or_else(|| format!("the object has no {name}"))?;
        if let Some(coming) = program.coming.take() {
            program.loaded = coming.join().ok().flatten();
        }
        if program.loaded.is_some() {
            return Ok(());
        }
        let (kind, function) = (program.kind, &program.function);
        let load = |log: &mut [u8]| load_program(name, kind, function, &self.license, &self.types, log);
        match load(&mut []) {
            Ok(loaded) => program.loaded = Some(loaded),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Err(super::refusal(&error)),
            Err(error) => {
                // Once more, to be told why. A verifier that takes it now has its second thoughts.
                let mut log = vec![0; LOG_BYTES];
                let loaded = load(&mut log);
                program.loaded = Some(loaded.map_err(|_| refused(name, &log, &error))?);
            }
        }
        Ok(())
    }

    /// Begins to load a program, beside all else that is to be done until it is asked for: the verifier may take longer for it than for all
    /// others together. What is refused is told then.
    pub(super) fn load_beside(&mut self, name: &str) {
        let Object { programs, license, types, .. } = self;
        let Some(program) = programs.get_mut(name).filter(|program| program.loaded.is_none()) else { return };
        let (name, kind) = (name.to_owned(), program.kind);
        let (function, license) = (program.function.clone(), license.clone());
        let Ok(types) = types.try_clone() else { return };
        let load = move || load_program(&name, kind, &function, &license, &types, &mut []).ok();
        program.coming = std::thread::Builder::new().spawn(load).ok();
    }

    /// A program in the kernel, for whoever runs it; it is loaded first.
    ///
    /// # Errors
    /// As [`Object::load`].
    pub(super) fn program(&mut self, name: &str) -> Result<&OwnedFd, String> {
        self.load(name)?;
        let loaded = self.programs.get(name).and_then(|program| program.loaded.as_ref());
        loaded.ok_or_else(|| format!("{name} is not loaded"))
    }

    /// Attaches a program to a raw tracepoint; it is loaded first.
    ///
    /// # Errors
    /// Why the kernel refuses it, in words.
    pub(super) fn attach(&mut self, name: &str, tracepoint: &str) -> Result<(), String> {
        self.load(name)?;
        let program = self.programs.get_mut(name).ok_or_else(|| format!("the object has no {name}"))?;
        let loaded = program.loaded.as_ref().ok_or_else(|| format!("{name} is not loaded"))?;
        let tracepoint_name = CString::new(tracepoint).map_err(|e| chain(&e))?;
        let mut request = empty();
        request.raw_tracepoint.name = tracepoint_name.as_ptr() as u64;
        request.raw_tracepoint.prog_fd = loaded.as_raw_fd() as u32;
        let attached = bpf(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &mut request);
        program.attached = Some(attached.map_err(|e| format!("{tracepoint}: {e}"))?);
        Ok(())
    }

    /// Time that all loaded programs have run, in nanoseconds: the kernel adds it up while it keeps [`Statistics`].
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(super) fn run_ns(&self) -> Result<u64, Error> {
        self.programs.values().filter_map(|program| program.loaded.as_ref()).map(run_ns).sum()
    }

    /// Detaches a program; it stays loaded.
    pub(super) fn detach(&mut self, name: &str) {
        if let Some(program) = self.programs.get_mut(name) {
            program.attached = None;
        }
    }
}

/// The kernel adds up the time that each BPF program of the machine runs, until this is dropped: two readings of a clock for each run.
pub(crate) struct Statistics {
    _held: OwnedFd,
}

impl Statistics {
    /// From now on.
    ///
    /// # Errors
    /// Linux before 5.8, or the right is missing (CAP_SYS_ADMIN).
    pub(crate) fn keep() -> Result<Statistics, String> {
        let mut request = empty();
        request.enable_stats.type_ = bpf_stats_type::BPF_STATS_RUN_TIME as u32;
        let held = bpf(bpf_cmd::BPF_ENABLE_STATS, &mut request);
        held.map(|held| Statistics { _held: held }).map_err(|e| e.to_string())
    }
}

fn run_ns(program: &OwnedFd) -> Result<u64, Error> {
    // SAFETY: numbers only, for which zero is a value: no array is asked for.
    let mut told: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut request = empty();
    request.info.bpf_fd = program.as_raw_fd() as u32;
    request.info.info_len = size_of::<bpf_prog_info>() as u32;
    request.info.info = (&raw mut told) as u64;
    done(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut request)?;
    Ok(told.run_time_ns)
}

/// The limit of locked memory, which counts maps before Linux 5.11.
struct MemoryLimit(Rlimit);

impl MemoryLimit {
    /// Does it; where memory was refused, once more without that limit. It holds again before any other program is started.
    fn lifted<T>(mut make: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        match make() {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                let before = MemoryLimit(getrlimit(Resource::Memlock));
                let none = Rlimit { current: None, maximum: None };
                // Without the right to do so the first answer stands.
                if setrlimit(Resource::Memlock, none).is_err() {
                    return Err(error);
                }
                let made = make();
                drop(before);
                made
            }
            made => made,
        }
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // What could be raised can be lowered.
        let _ = setrlimit(Resource::Memlock, self.0);
    }
}

/// Makes a map and fills it with the object's data.
fn make(map: &aya_obj::Map, name: &str, types: &OwnedFd, allocates: bool) -> Result<MapData, Error> {
    let is_hash = map.map_type() == bpf_map_type::BPF_MAP_TYPE_HASH as u32;
    let fitted = if is_hash && !allocates && map.map_flags() & NO_PREALLOC != 0 {
        let entry = map.key_size() + map.value_size() + ENTRY_BYTES;
        let entries = map.max_entries().min(PREALLOCATED_BYTES / entry);
        let flags = map.map_flags() & !NO_PREALLOC;
        aya_obj::Map::new_from_params(map.map_type(), map.key_size(), map.value_size(), entries, flags)
    } else {
        map.clone()
    };
    let made = MapData::create(fitted, name, Some(types.as_fd())).map_err(|e| cause(&e))?;
    let fd = made.fd().as_fd();
    if !map.data().is_empty() {
        let (key, value) = (0_u32, map.data().to_vec());
        let mut request = empty();
        // SAFETY: the member of the union that this command reads; its pointers live for the call.
        let element = unsafe { &mut request.__bindgen_anon_2 };
        element.map_fd = fd.as_raw_fd() as u32;
        element.key = (&raw const key) as u64;
        element.__bindgen_anon_1.value = value.as_ptr() as u64;
        done(bpf_cmd::BPF_MAP_UPDATE_ELEM, &mut request)?;
    }
    // Only what can change no more does the verifier take for constant.
    if map.section_kind() == EbpfSectionKind::Rodata {
        let mut request = empty();
        request.__bindgen_anon_2.map_fd = fd.as_raw_fd() as u32;
        done(bpf_cmd::BPF_MAP_FREEZE, &mut request)?;
    }
    Ok(made)
}

/// The kernel's answer within an error of the library.
fn cause(error: &(dyn std::error::Error + 'static)) -> Error {
    super::errno(error).map_or_else(|| Error::other(chain(error)), Error::from_raw_os_error)
}

fn load_types(own: &[u8]) -> Result<OwnedFd, String> {
    let mut request = empty();
    // SAFETY: the member of the union that this command reads; its pointer lives for the call.
    let types = unsafe { &mut request.__bindgen_anon_7 };
    types.btf = own.as_ptr() as u64;
    types.btf_size = own.len() as u32;
    bpf(bpf_cmd::BPF_BTF_LOAD, &mut request).map_err(|e| super::refusal(&e))
}

fn load_program(
    name: &str,
    kind: bpf_prog_type,
    function: &Function,
    license: &CString,
    types: &OwnedFd,
    log: &mut [u8],
) -> Result<OwnedFd, Error> {
    let (functions, lines) = (function.func_info.func_info_bytes(), function.line_info.line_info_bytes());
    let mut request = empty();
    // SAFETY: the member of the union that this command reads; its pointers live for the call.
    let program = unsafe { &mut request.__bindgen_anon_3 };
    // The kernel wants a zero at the end.
    for (to, from) in program.prog_name.iter_mut().take(15).zip(name.bytes()) {
        *to = from as std::ffi::c_char;
    }
    program.prog_type = kind as u32;
    program.insns = function.instructions.as_ptr() as u64;
    program.insn_cnt = function.instructions.len() as u32;
    program.license = license.as_ptr() as u64;
    program.prog_btf_fd = types.as_raw_fd() as u32;
    program.func_info = functions.as_ptr() as u64;
    program.func_info_cnt = function.func_info.len() as u32;
    program.func_info_rec_size = function.func_info_rec_size as u32;
    program.line_info = lines.as_ptr() as u64;
    program.line_info_cnt = function.line_info.len() as u32;
    program.line_info_rec_size = function.line_info_rec_size as u32;
    if !log.is_empty() {
        program.log_level = 1;
        program.log_buf = log.as_mut_ptr() as u64;
        program.log_size = log.len() as u32;
    }
    bpf(bpf_cmd::BPF_PROG_LOAD, &mut request)
}

/// Why a program is not taken: the verifier explains itself at length, and its reason comes last.
fn refused(name: &str, log: &[u8], error: &Error) -> String {
    const STATISTICS: [&str; 3] = ["verification time", "stack depth", "processed"];
    let said = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default());
    let mut lines = said.lines().rev().map(str::trim);
    let reason = lines.find(|line| !line.is_empty() && !STATISTICS.iter().any(|word| line.starts_with(word)));
    format!(
        "the kernel's verifier refuses {name}: {}",
        reason.map_or_else(|| error.to_string(), str::to_owned)
    )
}

/// A request with nothing in it.
pub(super) fn empty() -> bpf_attr {
    // SAFETY: numbers only, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

/// Makes something in the kernel.
pub(super) fn bpf(command: bpf_cmd, request: &mut bpf_attr) -> Result<OwnedFd, Error> {
    let fd = i32::try_from(call(command, request)?).map_err(Error::other)?;
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn done(command: bpf_cmd, request: &mut bpf_attr) -> Result<(), Error> {
    call(command, request).map(drop)
}

fn call(command: bpf_cmd, request: &mut bpf_attr) -> Result<i64, Error> {
    // SAFETY: a request of the size that is given; whoever filled it in answers for its pointers.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command as libc::c_long, request, size_of::<bpf_attr>()) };
    if answer < 0 { Err(Error::last_os_error()) } else { Ok(answer) }
}
