//! What a file says about the frames of its functions: where the caller of each place in the code is found, whatever the code does with its
//! frame pointer. Compilers write it for exceptions, into nearly every file on x86-64.
//!
//! Format: Linux Standard Base Core Specification 5.0, 10.6 (`.eh_frame`, `.eh_frame_hdr`); registers: System V ABI for AMD64, 3.6.2. A file may
//! be made to do harm: what is read is bounded, and so is the work for one place.

use std::fs::File;
use std::os::unix::fs::FileExt;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult, Expression,
    LittleEndian, Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
    UnwindTableRow, Value,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::elf::{self, Load, Placed};

/// Most of a section that is read.
const MAX_SECTION_BYTES: u64 = 48 << 20;
/// Most functions of a file without an index, which then is made: 16 bytes each.
const MAX_SCANNED: usize = 1_000_000;
/// Most of the description of one function: the longest of gcc 12 (`cc1`) has 20 kB, of Node.js 20 3 kB.
const MAX_ENTRY_BYTES: usize = 64 << 10;
/// Most steps of a computed place.
const MAX_STEPS: u32 = 1000;

const FRAME: Register = gimli::X86_64::RBP;
const POINTER: Register = gimli::X86_64::RSP;
const INSTRUCTION: Register = gimli::X86_64::RA;
/// The return address is the last word before the caller's part of the stack.
const RETURN_ADDRESS: i64 = -8;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;
/// Working memory, kept for the next look.
pub(super) type Context = UnwindContext<usize>;

/// The registers of a frame that lead to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) instruction: u64,
    pub(super) pointer: u64,
    pub(super) frame: u64,
    /// The place in the code is that behind a call, not that of a signal.
    pub(super) called: bool,
}

/// How to come to the caller from some place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// There is none.
    Outermost,
    /// The caller's part of the stack begins at this distance from a register. The return address is right before it, and the caller's frame
    /// pointer at this place relative to it, or still in its register.
    Saved { from_frame: bool, distance: i64, frame_at: Option<i64> },
    /// It is computed: [`FrameTables::computed`].
    Computed,
    /// The file does not say.
    Unknown,
}

/// Reads a word of the stack by its address.
pub(super) type Word<'a> = dyn Fn(u64) -> Option<u64> + 'a;

impl Rule {
    /// The registers of the caller. `None`: there is none, or the copy of the stack ends, or it would not be further out.
    pub(super) fn caller(self, of: Registers, word: &Word<'_>) -> Option<Registers> {
        let Rule::Saved { from_frame, distance, frame_at } = self else { return None };
        let from = if from_frame { of.frame } else { of.pointer };
        let pointer = from.checked_add_signed(distance)?;
        let instruction = word(pointer.checked_add_signed(RETURN_ADDRESS)?)?;
        let frame = frame_at.map_or(Some(of.frame), |at| word(pointer.checked_add_signed(at)?))?;
        (pointer > of.pointer).then_some(Registers { instruction, pointer, frame, called: true })
    }

    /// That of code that keeps a frame pointer, between its first and its last instructions.
    pub(super) const BY_FRAME_POINTER: Rule =
        Rule::Saved { from_frame: true, distance: 16, frame_at: Some(-16) };
}

/// The descriptions of all functions of a file.
#[derive(Debug)]
pub(super) struct FrameTables {
    loads: Vec<Load>,
    frames: Placed,
    index: Index,
}

/// Where the description of a function is.
#[derive(Debug)]
enum Index {
    /// `.eh_frame_hdr`.
    InFile(Placed),
    /// First address and place of each description, sorted; of files without that section (programs that are linked statically).
    Made(Vec<(u64, usize)>),
}

impl FrameTables {
    /// Reads them. `None`: the file has none.
    pub(super) fn read(file: &File) -> Option<FrameTables> {
        let parts = elf::parts(file, [".eh_frame", ".eh_frame_hdr"], MAX_SECTION_BYTES)?;
        let [frames, index] = parts.sections;
        let frames = frames?;
        let index = index.map_or_else(|| Index::Made(scanned(&frames)), Index::InFile);
        Some(FrameTables { loads: parts.loads, frames, index })
    }

    /// The tables of the kernel's own code in every 64-bit process, which no file holds: read from ours.
    pub(super) fn of_vdso() -> Option<FrameTables> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let (start, end) =
            maps.lines().find(|line| line.ends_with("[vdso]"))?.split(' ').next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
        File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, start).ok()?;
        let file = File::from(memfd_create("iowhy-vdso", MemfdFlags::CLOEXEC).ok()?);
        file.write_all_at(&bytes, 0).ok()?;
        FrameTables::read(&file)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let index = match &self.index {
            Index::InFile(section) => section.bytes.len(),
            Index::Made(entries) => size_of_val(entries.as_slice()),
        };
        self.frames.bytes.len() + index
    }

    /// The address in the file of a file offset.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        elf::address(&self.loads, offset)
    }

    /// The rule at an address of the file.
    pub(super) fn rule(&self, address: u64, context: &mut Context) -> Rule {
        let rule_of = |row: &UnwindTableRow<usize>, _: &EhFrame<Bytes<'_>>, _: bool| {
            let returns = row.register(INSTRUCTION);
            if returns == Some(RegisterRule::Undefined) {
                return Some(Rule::Outermost);
            }
            let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
            let frame_at = match row.register(FRAME) {
                None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => None,
                Some(RegisterRule::Offset(at)) => Some(at),
                Some(_) => return None,
            };
            let plain = returns == Some(RegisterRule::Offset(RETURN_ADDRESS))
                && row.register(POINTER).is_none()
                && [FRAME, POINTER].contains(&register);
            plain.then_some(Rule::Saved { from_frame: register == FRAME, distance: offset, frame_at })
        };
        match self.with_row(address, context, rule_of) {
            Some(Some(rule)) => rule,
            Some(None) => Rule::Computed,
            None => Rule::Unknown,
        }
    }

    /// The registers of the caller where the file computes them.
    pub(super) fn computed(
        &self,
        address: u64,
        of: Registers,
        word: &Word<'_>,
        context: &mut Context,
    ) -> Option<Registers> {
        let caller = |row: &UnwindTableRow<usize>, section: &EhFrame<Bytes<'_>>, signal: bool| {
            let compute = |expression: &UnwindExpression<usize>, start| {
                computed(expression.get(section).ok()?, start, of, word)
            };
            let end = match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => {
                    of.get(*register)?.checked_add_signed(*offset)?
                }
                CfaRule::Expression(expression) => compute(expression, None)?,
            };
            let value = |register: Register, unsaid: Option<u64>| match row.register(register) {
                None | Some(RegisterRule::SameValue) => unsaid,
                Some(RegisterRule::Offset(at)) => word(end.checked_add_signed(at)?),
                Some(RegisterRule::ValOffset(at)) => end.checked_add_signed(at),
                Some(RegisterRule::Register(other)) => of.get(other),
                Some(RegisterRule::Expression(e)) => word(compute(&e, Some(end))?),
                Some(RegisterRule::ValExpression(e)) => compute(&e, Some(end)),
                Some(_) => None,
            };
            let pointer = value(POINTER, Some(end))?;
            let instruction = value(INSTRUCTION, None)?;
            let frame = value(FRAME, Some(of.frame)).unwrap_or(0);
            (pointer > of.pointer).then_some(Registers { instruction, pointer, frame, called: !signal })
        };
        self.with_row(address, context, caller)?
    }

    /// Looks at what is said about an address, and whether a signal interrupted the code there.
    fn with_row<T>(
        &self,
        address: u64,
        context: &mut Context,
        look: impl FnOnce(&UnwindTableRow<usize>, &EhFrame<Bytes<'_>>, bool) -> T,
    ) -> Option<T> {
        let offset = self.description(address).filter(|offset| *offset < self.frames.bytes.len())?;
        let (section, bases) = section(&self.frames);
        let entry = section.fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        if !entry.contains(address) || entry.entry_len() + entry.cie().entry_len() > MAX_ENTRY_BYTES {
            return None;
        }
        let row = entry.unwind_info_for_address(&section, &bases, context, address).ok()?;
        Some(look(row, &section, entry.is_signal_trampoline()))
    }

    /// Where the description is that may hold an address: of the last function that does not begin behind it.
    fn description(&self, address: u64) -> Option<usize> {
        match &self.index {
            Index::InFile(index) => {
                let bases = section(&self.frames).1.set_eh_frame_hdr(index.address);
                let table = EhFrameHdr::new(&index.bytes, LittleEndian).parse(&bases, 8).ok()?;
                let place = table.table()?.lookup(address, &bases).ok()?.direct().ok()?;
                usize::try_from(place.checked_sub(self.frames.address)?).ok()
            }
            Index::Made(entries) => {
                let behind = entries.partition_point(|(start, _)| *start <= address);
                Some(entries.get(behind.checked_sub(1)?)?.1)
            }
        }
    }
}

fn section(frames: &Placed) -> (EhFrame<Bytes<'_>>, BaseAddresses) {
    let mut section = EhFrame::new(&frames.bytes, LittleEndian);
    section.set_address_size(8);
    (section, BaseAddresses::default().set_eh_frame(frames.address))
}

/// Looks at all descriptions: their first addresses and places, sorted. A broken one ends it.
fn scanned(frames: &Placed) -> Vec<(u64, usize)> {
    let (section, bases) = section(frames);
    let mut entries = section.entries(&bases);
    let mut found = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(entry) = entry else { continue };
        let Ok(entry) = entry.parse(EhFrame::cie_from_offset) else { break };
        found.push((entry.initial_address(), entry.offset()));
        if found.len() >= MAX_SCANNED {
            break;
        }
    }
    found.sort_unstable();
    found
}

impl Registers {
    fn get(&self, register: Register) -> Option<u64> {
        match register {
            FRAME => Some(self.frame),
            POINTER => Some(self.pointer),
            INSTRUCTION => Some(self.instruction),
            _ => None,
        }
    }
}

/// The value of an expression, which begins with `start` on its stack.
fn computed(
    expression: Expression<Bytes<'_>>,
    start: Option<u64>,
    of: Registers,
    word: &Word<'_>,
) -> Option<u64> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(MAX_STEPS);
    if let Some(start) = start {
        evaluation.set_initial_value(start);
    }
    let mut state = evaluation.evaluate().ok()?;
    loop {
        state = match state {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register, .. } => {
                evaluation.resume_with_register(Value::Generic(of.get(register)?)).ok()?
            }
            EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                evaluation.resume_with_memory(Value::Generic(word(address)?)).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result().last()?.location {
        Location::Address { address } => Some(address),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
