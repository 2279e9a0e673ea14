//! Names of kernel functions, asked of the kernel one by one: a program of eleven instructions prints the name at an address
//! (`bpf_snprintf`, Linux 5.13) and is run for each. A watch meets some hundreds of addresses; all names of a kernel are
//! 120,000 and more, and reading them from `/proc/kallsyms` takes longer than a short program runs.

use std::io::Error;
use std::os::fd::{AsRawFd, OwnedFd};

use aya_obj::generated::{bpf_cmd, bpf_insn, bpf_map_type, bpf_prog_type};

use super::object::{bpf, done, empty};

/// The longest name with its module, and the zero behind it (KSYM_SYMBOL_LEN of `include/linux/kallsyms.h` is 566, for
/// names of generated code; of a longer one this is the beginning).
const NAME: usize = 248;
/// What the program works on: an address, then room for its name.
const WORKPLACE: usize = 8 + NAME;
/// Name, and the module in brackets if it is of one.
const FORMAT: &[u8; 8] = b"%ps\0\0\0\0\0";
/// `bpf_snprintf` of `include/uapi/linux/bpf.h`, for programs under the kernel's licence.
const SNPRINTF: i32 = 165;
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
/// BPF_F_RDONLY_PROG.
const CONSTANT: u32 = 1 << 7;

/// Asks the kernel for names. Dropped, its program is gone.
#[derive(Debug)]
pub(crate) struct Namer {
    program: OwnedFd,
    workplace: OwnedFd,
    // The program holds it too; so it lives as long as that.
    _format: OwnedFd,
}

impl Namer {
    /// Loads the program. `None`: the kernel does not take it, or is older than Linux 5.13.
    pub(crate) fn open() -> Option<Namer> {
        let workplace = array(WORKPLACE, 0).ok()?;
        let format = array(FORMAT.len(), CONSTANT).ok()?;
        write(&format, FORMAT).ok()?;
        let mut freeze = empty();
        freeze.__bindgen_anon_2.map_fd = format.as_raw_fd() as u32;
        done(bpf_cmd::BPF_MAP_FREEZE, &mut freeze).ok()?;
        let program = load(&workplace, &format).ok()?;
        let mut namer = Namer { program, workplace, _format: format };
        // The address of nothing has no name; that it can be asked for is what is tried.
        namer.ask(0).ok()?;
        Some(namer)
    }

    /// The function at an address, as `name` or `name [module]`. `None`: there is none.
    pub(crate) fn name(&mut self, address: u64) -> Option<String> {
        // What has no name is printed as a number.
        self.ask(address).ok().filter(|name| !name.is_empty() && !name.starts_with("0x"))
    }

    fn ask(&mut self, address: u64) -> Result<String, Error> {
        let mut place = [0; WORKPLACE];
        place[..8].copy_from_slice(&address.to_ne_bytes());
        write(&self.workplace, &place)?;
        let mut run = empty();
        run.test.prog_fd = self.program.as_raw_fd() as u32;
        done(bpf_cmd::BPF_PROG_TEST_RUN, &mut run)?;
        let mut read = empty();
        let key = 0_u32;
        // SAFETY: the member of the union that this command reads; its pointers live for the call.
        let element = unsafe { &mut read.__bindgen_anon_2 };
        element.map_fd = self.workplace.as_raw_fd() as u32;
        element.key = (&raw const key) as u64;
        element.__bindgen_anon_1.value = place.as_mut_ptr() as u64;
        done(bpf_cmd::BPF_MAP_LOOKUP_ELEM, &mut read)?;
        let name = place[8..].split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}

/// An array of one value.
fn array(bytes: usize, flags: u32) -> Result<OwnedFd, Error> {
    let mut request = empty();
    // SAFETY: the member of the union that this command reads; numbers only.
    let map = unsafe { &mut request.__bindgen_anon_1 };
    map.map_type = bpf_map_type::BPF_MAP_TYPE_ARRAY as u32;
    map.key_size = 4;
    map.value_size = bytes as u32;
    map.max_entries = 1;
    map.map_flags = flags;
    bpf(bpf_cmd::BPF_MAP_CREATE, &mut request)
}

fn write(map: &OwnedFd, bytes: &[u8]) -> Result<(), Error> {
    let (mut request, key) = (empty(), 0_u32);
    // SAFETY: the member of the union that this command reads; its pointers live for the call.
    let element = unsafe { &mut request.__bindgen_anon_2 };
    element.map_fd = map.as_raw_fd() as u32;
    element.key = (&raw const key) as u64;
    element.__bindgen_anon_1.value = bytes.as_ptr() as u64;
    done(bpf_cmd::BPF_MAP_UPDATE_ELEM, &mut request)
}

/// One instruction: code, destination, source, immediate value.
fn instruction(code: u8, to: u8, from: u8, value: i32) -> bpf_insn {
    let mut one = bpf_insn { code, imm: value, ..EMPTY };
    one.set_dst_reg(to);
    one.set_src_reg(from);
    one
}

const EMPTY: bpf_insn = bpf_insn {
    code: 0,
    _bitfield_align_1: [],
    _bitfield_1: aya_obj::generated::__BindgenBitfieldUnit::new([0]),
    off: 0,
    imm: 0,
};

fn load(workplace: &OwnedFd, format: &OwnedFd) -> Result<OwnedFd, Error> {
    /// Codes of `include/uapi/linux/bpf.h`: a value of 64 bits in two instructions, moves, an addition, a call, the end.
    const LOAD: u8 = 0x18;
    const MOVE: u8 = 0xb7;
    const COPY: u8 = 0xbf;
    const ADD: u8 = 0x07;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    /// The value of a map by its descriptor (BPF_PSEUDO_MAP_VALUE).
    const OF_MAP: u8 = 2;
    let code = [
        // snprintf(place + 8, NAME, format, place, 8)
        instruction(LOAD, 4, OF_MAP, workplace.as_raw_fd()),
        EMPTY,
        instruction(COPY, 1, 4, 0),
        instruction(ADD, 1, 0, 8),
        instruction(MOVE, 2, 0, NAME as i32),
        instruction(LOAD, 3, OF_MAP, format.as_raw_fd()),
        EMPTY,
        instruction(MOVE, 5, 0, 8),
        instruction(CALL, 0, 0, SNPRINTF),
        instruction(MOVE, 0, 0, 0),
        instruction(EXIT, 0, 0, 0),
    ];
    let mut request = empty();
    // SAFETY: the member of the union that this command reads; its pointers live for the call.
    let program = unsafe { &mut request.__bindgen_anon_3 };
    for (to, from) in program.prog_name.iter_mut().zip(b"iowhy_names") {
        *to = *from as std::ffi::c_char;
    }
    program.prog_type = bpf_prog_type::BPF_PROG_TYPE_RAW_TRACEPOINT as u32;
    program.insns = code.as_ptr() as u64;
    program.insn_cnt = code.len() as u32;
    program.license = LICENSE.as_ptr() as u64;
    bpf(bpf_cmd::BPF_PROG_LOAD, &mut request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_the_functions_that_its_table_has() {
        let Some(mut namer) = Namer::open() else {
            println!("skipped: only root can ask the kernel for names, from Linux 5.13 on");
            return;
        };
        let table = std::fs::read_to_string("/proc/kallsyms").unwrap();
        let words = |line: &'_ str| line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let of = |wanted: &str| {
            let line = table.lines().map(words).find(|line| line.get(2).is_some_and(|name| name == wanted));
            u64::from_str_radix(&line.unwrap()[0], 16).unwrap()
        };
        for name in ["vfs_read", "ksys_write", "schedule"] {
            assert_eq!(namer.name(of(name)).as_deref(), Some(name));
            assert_eq!(namer.name(of(name) + 1).as_deref(), Some(name), "inside of it");
        }
        assert_eq!(namer.name(0), None);
        assert_eq!(namer.name(0x1000), None);
    }
}
