//! The kernel's types (BTF), reduced to those that the observer asks for: a kernel has 100,000 and more, which nobody needs to
//! take in to look up the offsets of 30. Where a type points to another, the other is left out: the place of a field does not depend on
//! what it points to.
//!
//! Format: Documentation/bpf/btf.rst of the kernel.

use std::collections::{HashMap, HashSet};

const MAGIC: u16 = 0xeb9f;
/// The header's first part, which all versions have.
const HEADER: usize = 24;
/// Name, kind and number of members, size or type: what each type begins with.
const FIXED: usize = 12;

/// Kinds of types, by their numbers.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// Types as the kernel shows them, and where each begins. Type 0 is `void`, which has no place.
struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    places: Vec<u32>,
}

/// One type.
#[derive(Clone, Copy)]
struct Type {
    at: usize,
    name: u32,
    info: u32,
    /// A size, or the number of another type.
    last: u32,
}

impl Type {
    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn members(self) -> usize {
        (self.info & 0xffff) as usize
    }

    /// Bytes of each member, and of all that follows the fixed part.
    fn rest(self) -> Option<(usize, usize)> {
        let each = match self.kind() {
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12,
            kind::ENUM | kind::FUNC_PROTO => 8,
            kind::INT | kind::VAR | kind::DECL_TAG => return Some((4, 4)),
            kind::ARRAY => return Some((12, 12)),
            // PTR to TYPE_TAG: there is nothing more.
            kind::PTR..=kind::TYPE_TAG => return Some((0, 0)),
            _ => return None,
        };
        Some((each, each * self.members()))
    }

    /// Whether the last word of the fixed part is the number of another type.
    fn names_a_type(self) -> bool {
        matches!(self.kind(), kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

impl<'a> Types<'a> {
    fn read(btf: &'a [u8]) -> Option<Types<'a>> {
        if u16::from_ne_bytes(btf.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let header = word(btf, 4)? as usize;
        let part = |offset: usize, length: usize| -> Option<&'a [u8]> {
            let begin = header.checked_add(word(btf, offset)? as usize)?;
            btf.get(begin..begin.checked_add(word(btf, length)? as usize)?)
        };
        let mut all = Types { types: part(8, 12)?, strings: part(16, 20)?, places: vec![0] };
        let mut at = 0;
        while at < all.types.len() {
            all.places.push(u32::try_from(at).ok()?);
            at += FIXED + all.at(at)?.rest()?.1;
        }
        Some(all)
    }

    fn at(&self, at: usize) -> Option<Type> {
        let [name, info, last] = [0, 4, 8].map(|offset| word(self.types, at + offset));
        Some(Type { at, name: name?, info: info?, last: last? })
    }

    fn get(&self, number: u32) -> Option<Type> {
        if number == 0 { None } else { self.at(*self.places.get(number as usize)? as usize) }
    }

    fn string(&self, at: u32) -> Option<&'a [u8]> {
        let from = self.strings.get(at as usize..)?;
        from.split(|byte| *byte == 0).next()
    }

    /// Types that stand inside of this one.
    fn inside(&self, of: Type) -> Option<Vec<u32>> {
        Some(match of.kind() {
            kind::STRUCT | kind::UNION => {
                let member = |n| word(self.types, of.at + FIXED + 12 * n + 4);
                (0..of.members()).map(member).collect::<Option<_>>()?
            }
            // The element, and what counts them.
            kind::ARRAY => {
                [0, 4].map(|o| word(self.types, of.at + FIXED + o)).into_iter().collect::<Option<_>>()?
            }
            _ if of.names_a_type() => vec![of.last],
            _ => Vec::new(),
        })
    }
}

/// The types with these names, and what stands inside of them, as BTF of their own. `None`: the bytes are no BTF of this
/// machine, or have kinds of types that are not known.
pub(super) fn reduced(btf: &[u8], names: &HashSet<&[u8]>) -> Option<Vec<u8>> {
    let all = Types::read(btf)?;
    let mut wanted: Vec<u32> = Vec::new();
    for (number, at) in all.places.iter().enumerate().skip(1) {
        let one = all.at(*at as usize)?;
        let may_be_asked_for = matches!(
            one.kind(),
            kind::INT | kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 | kind::TYPEDEF
        );
        if may_be_asked_for && one.name != 0 && names.contains(all.string(one.name)?) {
            wanted.push(number as u32);
        }
    }
    // The new number of each: in the order in which they are met.
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    let mut order = Vec::new();
    while let Some(number) = wanted.pop() {
        if number == 0 || numbers.contains_key(&number) {
            continue;
        }
        order.push(number);
        numbers.insert(number, order.len() as u32);
        wanted.extend(all.inside(all.get(number)?)?);
    }
    let mut out = Writer { types: Vec::new(), strings: vec![0], known: HashMap::new() };
    let new = |number: u32| numbers.get(&number).copied().unwrap_or(0);
    for number in order {
        let one = all.get(number)?;
        let kind = one.kind();
        let name = out.string(all.string(one.name)?);
        // A pointer points to `void`; a size stays.
        let last = if one.names_a_type() {
            new(one.last)
        } else if kind == kind::PTR {
            0
        } else {
            one.last
        };
        out.words([name, one.info, last]);
        let (each, whole) = one.rest()?;
        for at in (0..whole).step_by(each.max(1)) {
            let word = |offset| word(all.types, one.at + FIXED + at + offset);
            match kind {
                kind::STRUCT | kind::UNION => {
                    let name = out.string(all.string(word(0)?)?);
                    out.words([name, new(word(4)?), word(8)?]);
                }
                kind::ENUM => {
                    let name = out.string(all.string(word(0)?)?);
                    out.words([name, word(4)?]);
                }
                kind::ENUM64 => {
                    let name = out.string(all.string(word(0)?)?);
                    out.words([name, word(4)?, word(8)?]);
                }
                kind::ARRAY => out.words([new(word(0)?), new(word(4)?), word(8)?]),
                // INT: its bits.
                _ => out.words([word(0)?]),
            }
        }
    }
    Some(out.finish())
}

/// BTF in the making.
struct Writer<'a> {
    types: Vec<u8>,
    strings: Vec<u8>,
    known: HashMap<&'a [u8], u32>,
}

impl<'a> Writer<'a> {
    fn words<const N: usize>(&mut self, words: [u32; N]) {
        words.iter().for_each(|word| self.types.extend_from_slice(&word.to_ne_bytes()));
    }

    fn string(&mut self, text: &'a [u8]) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let strings = &mut self.strings;
        *self.known.entry(text).or_insert_with(|| {
            let at = strings.len() as u32;
            strings.extend_from_slice(text);
            strings.push(0);
            at
        })
    }

    fn finish(self) -> Vec<u8> {
        let [types, strings] = [self.types.len(), self.strings.len()].map(|length| length as u32);
        let mut btf = Vec::with_capacity(HEADER + self.types.len() + self.strings.len());
        btf.extend_from_slice(&MAGIC.to_ne_bytes());
        // Version 1, no flags.
        btf.extend_from_slice(&[1, 0]);
        for word in [HEADER as u32, 0, types, types, strings] {
            btf.extend_from_slice(&word.to_ne_bytes());
        }
        btf.extend_from_slice(&self.types);
        btf.extend_from_slice(&self.strings);
        btf
    }
}

/// Names of the types of another BTF: what an object may ask for. A name `x___y` asks for the type `x`.
pub(super) fn names(btf: &[u8]) -> HashSet<&[u8]> {
    let Some(all) = Types::read(btf) else { return HashSet::new() };
    let whole = |name: &'_ [u8]| name.windows(3).position(|part| part == b"___").unwrap_or(name.len());
    let name = |at: &u32| {
        let one = all.at(*at as usize)?;
        // Names of variables, functions and sections are not asked for, nor what stands for itself.
        let is_type = matches!(
            one.kind(),
            kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 | kind::TYPEDEF | kind::INT
        );
        let name = all.string(one.name).filter(|name| is_type && !name.is_empty())?;
        Some(&name[..whole(name)])
    };
    all.places.iter().skip(1).filter_map(name).collect()
}

/// Whether a type with this name is there.
pub(super) fn has(btf: &[u8], wanted: &[u8]) -> bool {
    names(btf).contains(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { struct inner in; struct other *to; u32 numbers[3]; }`, and types that nobody asks for.
    fn btf() -> Vec<u8> {
        let mut out = Writer { types: Vec::new(), strings: vec![0], known: HashMap::new() };
        let info = |kind: u32, members: u32| kind << 24 | members;
        let names = ["int", "other", "inner", "field", "outer", "in", "to", "numbers", "e", "A"];
        let n: Vec<u32> = names.iter().map(|name| out.string(name.as_bytes())).collect();
        out.words([n[0], info(kind::INT, 0), 4, 32]); // 1
        out.words([n[1], info(kind::STRUCT, 0), 64]); // 2
        out.words([0, info(kind::PTR, 0), 2]); // 3
        out.words([n[2], info(kind::STRUCT, 1), 4, n[3], 1, 0]); // 4
        out.words([0, info(kind::ARRAY, 0), 0, 1, 1, 3]); // 5
        out.words([n[4], info(kind::STRUCT, 3), 32, n[5], 4, 0, n[6], 3, 64, n[7], 5, 128]); // 6
        out.words([n[8], info(kind::ENUM, 1), 4, n[9], 7]); // 7
        out.finish()
    }

    #[test]
    fn what_is_asked_for_comes_with_what_stands_in_it_and_nothing_else() {
        let whole = btf();
        let small = reduced(&whole, &HashSet::from([b"outer".as_slice()])).unwrap();
        let expected = [b"int".as_slice(), b"inner", b"outer"];
        assert_eq!(names(&small), HashSet::from(expected));
        let types = Types::read(&small).unwrap();
        let find = |name: &[u8]| {
            let numbers = 1..types.places.len() as u32;
            numbers.filter_map(|n| types.get(n)).find(|t| types.string(t.name) == Some(name)).unwrap()
        };
        let outer = find(b"outer");
        let members: Vec<[u32; 2]> = (0..3)
            .map(|n| [4, 8].map(|o| word(types.types, outer.at + FIXED + 12 * n + o).unwrap()))
            .collect();
        assert_eq!((outer.last, members.iter().map(|m| m[1]).collect::<Vec<_>>()), (32, vec![0, 64, 128]));
        assert_eq!(types.get(members[0][0]).unwrap().at, find(b"inner").at);
        let pointer = types.get(members[1][0]).unwrap();
        assert_eq!((pointer.kind(), pointer.last), (kind::PTR, 0));
        let array = types.get(members[2][0]).unwrap();
        assert_eq!(types.get(types.inside(array).unwrap()[0]).unwrap().at, find(b"int").at);
    }

    #[test]
    fn enumerations_keep_their_values() {
        let small = reduced(&btf(), &HashSet::from([b"e".as_slice()])).unwrap();
        let types = Types::read(&small).unwrap();
        let one = types.get(1).unwrap();
        assert_eq!((one.kind(), word(types.types, one.at + FIXED + 4)), (kind::ENUM, Some(7)));
        assert!(has(&small, b"e") && !has(&small, b"int"));
    }

    #[test]
    fn damaged_types_are_refused_and_none_makes_it_panic() {
        let whole = btf();
        for cut in 0..whole.len() {
            let _ = reduced(&whole[..cut], &HashSet::from([b"outer".as_slice()]));
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = reduced(&damaged, &HashSet::from([b"outer".as_slice()]));
        }
        assert_eq!(reduced(b"", &HashSet::new()), None);
    }

    #[test]
    fn this_kernels_types_have_the_fields_that_the_whole_set_has() {
        let Ok(whole) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            println!("skipped: this machine: the kernel has no type information (/sys/kernel/btf/vmlinux)");
            return;
        };
        let small = reduced(&whole, &HashSet::from([b"task_struct".as_slice(), b"file"])).unwrap();
        assert!(small.len() < whole.len() / 10, "{} of {}", small.len(), whole.len());
        assert!(has(&small, b"task_struct") && has(&small, b"file") && has(&small, b"list_head"));
    }
}
