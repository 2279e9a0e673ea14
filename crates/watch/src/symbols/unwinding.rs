//! Callers from a copy of a user stack, by the tables that compilers write for exceptions: they are in nearly every file, and hold for code
//! without frame pointers.
//!
//! Bounded: when the tables of all files are too large, further files have none, and frame pointers are followed through their code.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, Unwinder};

use super::elf::FrameTables;
use crate::event::UserStack;

/// Most bytes of all tables together.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// Most address spaces that are kept ready.
const MAX_SPACES: usize = 64;
/// The library numbers its modules with 16 bits and tells rules that it remembers apart by them.
const MODULES_OF_A_CACHE: usize = 30_000;
/// Most frames of a stack.
const LONGEST: usize = 128;
/// Most chains of callers that are remembered.
const MAX_CHAINS: usize = 16_384;

/// A mapped piece of a file with tables: its addresses in the process, and the address in the file of the first one.
pub(super) struct Piece {
    pub(super) range: Range<u64>,
    pub(super) in_file: u64,
    pub(super) tables: Rc<FrameTables>,
}

/// What finds callers in the address spaces of all processes.
#[derive(Default)]
pub(super) struct Unwinding {
    /// By generation.
    spaces: HashMap<u64, UnwinderX86_64<Arc<[u8]>>>,
    cache: CacheX86_64<MayAllocateDuringUnwind>,
    modules: usize,
    /// The last chain with these registers in this address space.
    chains: HashMap<Registers, Box<[u64]>>,
}

/// Generation, place in the code and stack pointer: code without frame pointers keeps anything in the third register.
type Registers = (u64, u64, u64);

impl std::fmt::Debug for Unwinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unwinding({} spaces)", self.spaces.len())
    }
}

impl Unwinding {
    /// Whether the address space of this generation is ready.
    pub(super) fn knows(&self, generation: u64) -> bool {
        self.spaces.contains_key(&generation)
    }

    /// Makes an address space ready.
    pub(super) fn add(&mut self, generation: u64, pieces: Vec<Piece>) {
        if self.spaces.len() >= MAX_SPACES {
            self.spaces.clear();
        }
        if self.modules + pieces.len() > MODULES_OF_A_CACHE {
            (self.cache, self.modules) = (CacheX86_64::default(), 0);
            self.spaces.clear();
        }
        self.modules += pieces.len();
        let mut unwinder = UnwinderX86_64::new();
        for piece in pieces {
            // Addresses in the file are those in the process less what the file was moved by.
            let Some(moved) = piece.range.start.checked_sub(piece.in_file) else { continue };
            let range = |(start, bytes): &(u64, Arc<[u8]>)| *start..start.saturating_add(bytes.len() as u64);
            let FrameTables { frames, index, .. } = piece.tables.as_ref();
            let sections = ExplicitModuleSectionInfo {
                eh_frame_svma: Some(range(frames)),
                eh_frame: Some(frames.1.clone()),
                eh_frame_hdr_svma: index.as_ref().map(range),
                eh_frame_hdr: index.as_ref().map(|(_, bytes)| bytes.clone()),
                ..Default::default()
            };
            unwinder.add_module(Module::new(String::new(), piece.range, moved, sections));
        }
        self.spaces.insert(generation, unwinder);
    }

    /// The place in the code and its callers, innermost first, as far as the copy and the tables lead. Nothing, if the address space is not
    /// ready.
    ///
    /// Where only registers were told, those of the last stack that was copied with the same ones: a thread that comes to the same place in the
    /// code with as deep a stack has nearly always come there the same way.
    pub(super) fn callers(&mut self, generation: u64, stack: &UserStack<'_>, found: &mut Vec<u64>) {
        found.clear();
        let registers = (generation, stack.instruction, stack.pointer);
        if stack.words.is_empty() {
            found.extend(self.chains.get(&registers).into_iter().flat_map(|chain| chain.iter()));
            return;
        }
        self.walk(generation, stack, found);
        if self.chains.len() >= MAX_CHAINS {
            self.chains.clear();
        }
        if self.chains.get(&registers).is_none_or(|chain| **chain != **found) {
            self.chains.insert(registers, found.as_slice().into());
        }
    }

    fn walk(&mut self, generation: u64, stack: &UserStack<'_>, found: &mut Vec<u64>) {
        let Some(unwinder) = self.spaces.get(&generation) else { return };
        let registers = UnwindRegsX86_64::new(stack.instruction, stack.pointer, stack.frame);
        let mut word = |address| stack.word(address).ok_or(());
        let mut frames = unwinder.iter_frames(stack.instruction, registers, &mut self.cache, &mut word);
        while found.len() < LONGEST {
            match frames.next() {
                Ok(Some(FrameAddress::InstructionPointer(address))) => found.push(address),
                Ok(Some(FrameAddress::ReturnAddress(address))) => found.push(address.get()),
                Ok(None) | Err(_) => break,
            }
        }
    }
}
