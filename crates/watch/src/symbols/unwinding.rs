//! Callers from a copy of a user stack, by what the files say about the frames of their functions; through code without such words, by frame
//! pointers.
//!
//! Invariant: every address that is found lies in code of the process, and each frame is further out than the one before.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::frame_tables::{Context, FrameTables, Registers, Rule};
use crate::event::UserStack;

/// Most bytes of all tables together: further files have none.
pub(super) const MAX_BYTES: usize = 64 << 20;
/// Most frames of a stack.
const LONGEST: usize = 128;
/// Most places in code whose rule is remembered, and most chains of callers.
const MAX_RULES: usize = 65_536;
const MAX_CHAINS: usize = 16_384;
/// Looks into tables may take this long, and this part of the time since the first one: a file that was made to take long does not hold up its
/// watcher.
const MAX_LOOKING: Duration = Duration::from_secs(1);
const PART_FOR_LOOKING: u32 = 10;

/// Code at an address of a process.
pub(super) struct Code {
    /// The object that it belongs to, and its address in that file; `None` where nothing is said about its frames.
    pub(super) file: Option<(u32, u64, Rc<FrameTables>)>,
}

/// Finds callers, and remembers what it has found.
#[derive(Debug, Default)]
pub(super) struct Unwinding {
    rules: HashMap<(u32, u64), Rule>,
    context: Context,
    /// The last chain of callers with this generation, place in the code and stack pointer. (Code without frame pointers keeps anything in
    /// the third register.)
    chains: HashMap<(u64, u64, u64), Box<[u64]>>,
    looking: Looking,
}

/// Time that looks into tables took.
#[derive(Debug, Default)]
struct Looking {
    since: Option<Instant>,
    spent: Duration,
}

impl Looking {
    /// Looks, unless that took too long already.
    fn at<T>(&mut self, look: impl FnOnce() -> T) -> Option<T> {
        let begun = Instant::now();
        let since = begun - *self.since.get_or_insert(begun);
        if self.spent > MAX_LOOKING + since / PART_FOR_LOOKING {
            return None;
        }
        let found = look();
        self.spent += begun.elapsed();
        Some(found)
    }
}

impl Unwinding {
    /// The place in the code and its callers, innermost first, as far as they can be found. `code` says what is at an address of the process.
    ///
    /// Where only registers were told, those of the last stack that was copied with the same ones. That is inferred: another way of the same
    /// depth to the same place is not told apart.
    pub(super) fn callers(
        &mut self,
        generation: u64,
        stack: &UserStack<'_>,
        code: &mut dyn FnMut(u64) -> Option<Code>,
        found: &mut Vec<u64>,
    ) {
        found.clear();
        let registers = (generation, stack.instruction, stack.pointer);
        if stack.words.is_empty() {
            found.extend(self.chains.get(&registers).into_iter().flat_map(|chain| chain.iter()));
            return;
        }
        self.walk(stack, code, found);
        if self.chains.len() >= MAX_CHAINS {
            self.chains.clear();
        }
        if self.chains.get(&registers).is_none_or(|chain| **chain != **found) {
            self.chains.insert(registers, found.as_slice().into());
        }
    }

    fn walk(
        &mut self,
        stack: &UserStack<'_>,
        code: &mut dyn FnMut(u64) -> Option<Code>,
        found: &mut Vec<u64>,
    ) {
        let UserStack { instruction, pointer, frame, .. } = *stack;
        let word = |address| stack.word(address);
        let mut at = Some(Registers { instruction, pointer, frame, called: false });
        while let Some(registers) = at.filter(|_| found.len() < LONGEST) {
            // A return address points behind the call, which may be the next function already.
            let place = registers.instruction.saturating_sub(u64::from(registers.called));
            let Some(code) = code(place) else { break };
            found.push(registers.instruction);
            let Some((object, address, tables)) = code.file else {
                at = Rule::BY_FRAME_POINTER.caller(registers, &word);
                continue;
            };
            at = match self.rule(object, address, &tables) {
                Rule::Computed => {
                    let compute = || tables.computed(address, registers, &word, &mut self.context);
                    self.looking.at(compute).flatten()
                }
                Rule::Unknown => Rule::BY_FRAME_POINTER.caller(registers, &word),
                rule => rule.caller(registers, &word),
            };
        }
    }

    fn rule(&mut self, object: u32, address: u64, tables: &FrameTables) -> Rule {
        if let Some(rule) = self.rules.get(&(object, address)) {
            return *rule;
        }
        if self.rules.len() >= MAX_RULES {
            self.rules.clear();
        }
        let look = || tables.rule(address, &mut self.context);
        let Some(rule) = self.looking.at(look) else { return Rule::Unknown };
        self.rules.insert((object, address), rule);
        rule
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use std::arch::asm;

    use super::*;
    use crate::event::Chain;
    use crate::symbols::{Kernel, Symbols};

    /// The registers here, and the stack up to the end of its mapping or 64 KiB of it.
    #[inline(never)]
    fn innermost(maps: &str, look: &mut dyn FnMut(UserStack<'_>)) {
        let (instruction, pointer, frame): (u64, u64, u64);
        // SAFETY: registers are read, and nothing is changed.
        unsafe {
            asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) instruction, out(reg) pointer, out(reg) frame)
        };
        let end = maps.lines().find_map(|line| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            let [start, end] = [start, end].map(|n| u64::from_str_radix(n, 16).unwrap());
            (start..end).contains(&pointer).then_some(end)
        });
        let words = (end.unwrap() - pointer).min(64 << 10) / 8;
        // SAFETY: this thread's stack, which is mapped up to there. It may be written meanwhile, by nobody else.
        let read = |at: u64| unsafe {
            std::ptr::with_exposed_provenance::<u64>((pointer + at * 8) as usize).read_volatile()
        };
        let words: Vec<u64> = (0..words).map(read).collect();
        look(UserStack { instruction, pointer, frame, words: &words });
    }

    #[inline(never)]
    fn in_the_middle(maps: &str, look: &mut dyn FnMut(UserStack<'_>)) {
        innermost(maps, look);
        std::hint::black_box(maps);
    }

    #[inline(never)]
    fn outermost(maps: &str, look: &mut dyn FnMut(UserStack<'_>)) {
        in_the_middle(maps, look);
        std::hint::black_box(maps);
    }

    #[test]
    fn tables_that_take_long_are_not_looked_into_any_more() {
        let mut looking = Looking::default();
        assert_eq!(looking.at(|| 7), Some(7));
        looking.spent = MAX_LOOKING * 2;
        assert_eq!(looking.at(|| 7), None);
        // Long ago: that was a small part of the time.
        looking.since = Instant::now().checked_sub(MAX_LOOKING * 30);
        assert!(looking.since.is_none() || looking.at(|| 7) == Some(7));
    }

    #[test]
    fn the_callers_of_this_test_are_found_in_a_copy_of_its_stack() {
        let pid = std::process::id();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut symbols = Symbols::with_kernel(Kernel::default());
        symbols.add_maps(pid, &maps);
        let mut names = |stack: UserStack<'_>| {
            let mut found = Vec::new();
            let chain = Chain { user: &[stack.instruction], stack: Some(stack), ..Chain::default() };
            let callers = symbols.callers(pid, &chain, &mut found).to_vec();
            let ids: Vec<_> = callers.iter().map(|address| symbols.user(pid, address - 1)).collect();
            ids.into_iter()
                .map(|id| symbols.name(id).rsplit("::").next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let mut seen = Vec::new();
        outermost(&maps, &mut |stack| {
            seen.push(names(stack));
            // Only registers: the callers are those of the copy. Of another depth nothing is known.
            let words = &[][..];
            seen.push(names(UserStack { words, ..stack }));
            seen.push(names(UserStack { words, pointer: stack.pointer - 8, ..stack }));
            // The copy ends within the innermost frames.
            seen.push(names(UserStack { words: &stack.words[..1], ..stack }));
        });
        assert_eq!(seen[0][..3], ["innermost", "in_the_middle", "outermost"], "{:?}", seen[0]);
        assert!(seen[0].len() > 6, "up to the start of the thread: {:?}", seen[0]);
        assert_eq!((&seen[1], &seen[2][..]), (&seen[0], &["innermost".to_owned()][..]));
        assert_eq!(seen[3], ["innermost"]);
    }
}
