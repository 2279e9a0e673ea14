//! Tables made by hand, whole and broken.

use proptest::prelude::*;

use super::*;

const FRAMES: u64 = 0x2000;
const INDEX: u64 = 0x3000;

fn entry(id: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    // DW_CFA_nop up to a whole number of words.
    body.resize((body.len() + 4).next_multiple_of(8) - 4, 0);
    [&(body.len() as u32 + 4).to_le_bytes()[..], &id.to_le_bytes(), &body].concat()
}

/// Functions of 0x100 bytes from 0x1000 on with these instructions; at the start of each the return address is on the stack.
fn tables(augmentation: &[u8], functions: &[&[u8]]) -> FrameTables {
    // Addresses are 8 absolute bytes (DW_EH_PE_udata8); CFA = rsp + 8, return address at CFA - 8.
    let common = [&[1][..], augmentation, &[0, 1, 0x78, 16, 1, 4, 0x0c, 7, 8, 0x90, 1]].concat();
    let mut frames = entry(0, &common);
    let mut index = vec![1, 4, 3, 4];
    index.extend(FRAMES.to_le_bytes());
    index.extend((functions.len() as u32).to_le_bytes());
    for (at, instructions) in functions.iter().enumerate() {
        let start = 0x1000 + 0x100 * at as u64;
        index.extend(start.to_le_bytes());
        index.extend((FRAMES + frames.len() as u64).to_le_bytes());
        let body = [&start.to_le_bytes()[..], &0x100u64.to_le_bytes(), &[0], instructions].concat();
        frames.extend(entry(frames.len() as u32 + 4, &body));
    }
    frames.extend([0; 4]);
    let placed = |address, bytes| Placed { address, bytes };
    FrameTables {
        loads: Vec::new(),
        frames: placed(FRAMES, frames),
        index: Index::InFile(placed(INDEX, index)),
    }
}

/// `push rbp; mov rbp, rsp`: one byte, then three.
const WITH_FRAME: &[u8] = &[0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6];
/// `sub rsp, 40` of four bytes.
const WITHOUT_FRAME: &[u8] = &[0x44, 0x0e, 48];

fn at(instruction: u64) -> Registers {
    Registers { instruction, pointer: 0x7000, frame: 0x7100, called: true }
}

/// A word of the stack is its address and a half.
fn word(address: u64) -> Option<u64> {
    (0x7000..0x8000).contains(&address).then_some(address | 1)
}

#[test]
fn each_place_in_a_function_has_its_rule() {
    let tables = tables(b"zR", &[WITH_FRAME, WITHOUT_FRAME]);
    let mut context = Context::new();
    let mut rule = |address| tables.rule(address, &mut context);
    let saved = |from_frame, distance, frame_at| Rule::Saved { from_frame, distance, frame_at };
    assert_eq!(rule(0x1000), saved(false, 8, None));
    assert_eq!(rule(0x1001), saved(false, 16, Some(-16)));
    assert_eq!(rule(0x1004), saved(true, 16, Some(-16)));
    assert_eq!(rule(0x1004), Rule::BY_FRAME_POINTER);
    assert_eq!((rule(0x1103), rule(0x1104)), (saved(false, 8, None), saved(false, 48, None)));
    assert_eq!(
        (rule(0xfff), rule(0x1200)),
        (Rule::Unknown, Rule::Unknown),
        "before and behind all functions"
    );
}

#[test]
fn a_rule_leads_to_the_caller_and_never_inwards() {
    let of = at(0x1004);
    let caller = Rule::Saved { from_frame: false, distance: 48, frame_at: None }.caller(of, &word).unwrap();
    let instruction = 0x7029;
    assert_eq!(caller, Registers { instruction, pointer: 0x7030, frame: 0x7100, called: true });
    let caller = Rule::BY_FRAME_POINTER.caller(of, &word).unwrap();
    assert_eq!((caller.instruction, caller.pointer, caller.frame), (0x7109, 0x7110, 0x7101));
    let inwards = Registers { frame: 0x6ff0, ..of };
    let any = |address| Some(address);
    assert_eq!(Rule::BY_FRAME_POINTER.caller(inwards, &any), None);
    let outside = Registers { frame: 0x9000, ..of };
    assert_eq!(Rule::BY_FRAME_POINTER.caller(outside, &word), None, "the copy ends before");
    assert_eq!((Rule::Outermost.caller(of, &word), Rule::Unknown.caller(of, &word)), (None, None));
}

#[test]
fn places_are_computed_and_the_outermost_function_says_so() {
    // CFA = [rsp + 24] (DW_OP_breg7, DW_OP_deref); a return address that is undefined; CFA of a loop without end (DW_OP_skip).
    let by_expression: &[u8] = &[0x0f, 3, 0x77, 24, 0x06];
    let (outermost, endless): (&[u8], &[u8]) = (&[0x07, 16], &[0x0f, 3, 0x2f, 0xfd, 0xff]);
    let mut context = Context::new();
    for (augmentation, called) in [(&b"zR"[..], true), (b"zRS", false)] {
        let tables = tables(augmentation, &[by_expression, outermost, endless]);
        assert_eq!(tables.rule(0x1000, &mut context), Rule::Computed);
        let caller = tables.computed(0x1000, at(0x1000), &|a| word(a).map(|w| w & !1 | 0x100), &mut context);
        let expected = Registers { instruction: 0x7110, pointer: 0x7118, frame: 0x7100, called };
        assert_eq!(caller, Some(expected), "a place that a signal interrupted is behind no call");
        assert_eq!(tables.rule(0x1100, &mut context), Rule::Outermost);
        assert_eq!(tables.rule(0x1200, &mut context), Rule::Computed);
        assert_eq!(tables.computed(0x1200, at(0x1200), &word, &mut context), None);
    }
}

#[test]
fn a_file_without_an_index_gets_one() {
    let with_index = tables(b"zR", &[WITH_FRAME, WITHOUT_FRAME]);
    let mut without = tables(b"zR", &[WITH_FRAME, WITHOUT_FRAME]);
    without.index = Index::Made(scanned(&without.frames));
    let mut context = Context::new();
    for address in (0xff0..0x1210).step_by(2) {
        let both = [&with_index, &without].map(|tables| tables.rule(address, &mut context));
        assert_eq!(both[0], both[1], "{address:x}");
    }
}

#[test]
fn the_kernels_code_in_a_process_has_tables() {
    if cfg!(target_arch = "x86_64") {
        assert!(FrameTables::of_vdso().unwrap().bytes() > 100);
    }
}

#[test]
fn this_program_has_tables() {
    let file = File::open(std::env::current_exe().unwrap()).unwrap();
    let tables = FrameTables::read(&file).unwrap();
    assert!(tables.bytes() > 10_000 && tables.bytes() as u64 <= 2 * MAX_SECTION_BYTES);
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("empty", &b""[..]), ("text", b"no ELF"), ("head", b"\x7fELF\x02\x01\x01")] {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        assert!(FrameTables::read(&File::open(path).unwrap()).is_none(), "{name}");
    }
}

proptest! {
    #[test]
    fn broken_tables_end_and_do_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        of_index in any::<bool>(),
        made in any::<bool>(),
    ) {
        let mut tables = tables(b"zRS", &[WITH_FRAME, WITHOUT_FRAME, &[0x0f, 3, 0x77, 24, 0x06]]);
        let bytes = match &mut tables.index {
            Index::InFile(index) if of_index => &mut index.bytes,
            _ => &mut tables.frames.bytes,
        };
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        bytes.truncate(cut.index(bytes.len() * 2).max(1));
        if made {
            tables.index = Index::Made(scanned(&tables.frames));
        }
        let mut context = Context::new();
        for address in (0xf00..0x1400).step_by(0x41) {
            let rule = tables.rule(address, &mut context);
            for caller in [rule.caller(at(address), &word), tables.computed(address, at(address), &word, &mut context)] {
                prop_assert!(caller.is_none_or(|c| c.pointer > 0x7000));
            }
        }
    }
}
