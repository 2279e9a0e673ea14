//! Functions of a kernel or module with debug information: name and the source file that defines it.
//!
//! Only functions that have code of their own and can be on a stack after start-up. Functions that a header defines are
//! left out: they have as many paths as users, and what they do is not told by where they lie.

use std::collections::BTreeSet;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, RelocateReader, Unit,
};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// A function: name without what compilers add, and path of its source file from the kernel's root.
pub(super) type Function = (String, String);

/// The bytes of a section, and what the linker has not yet filled in: modules are relocatable.
#[derive(Debug, Default)]
struct Section<'data> {
    data: std::borrow::Cow<'data, [u8]>,
    relocations: Relocations,
}

#[derive(Debug, Default)]
struct Relocations(object::read::RelocationMap);

impl gimli::read::Relocate for &Relocations {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.0.relocate(offset as u64, value))
    }

    fn relocate_offset(&self, offset: usize, value: usize) -> gimli::Result<usize> {
        <usize as gimli::ReaderOffset>::from_u64(self.0.relocate(offset as u64, value as u64))
    }
}

type Reader<'a> = RelocateReader<EndianSlice<'a, LittleEndian>, &'a Relocations>;

/// All functions of an ELF file.
pub(super) fn functions(bytes: &[u8]) -> Result<BTreeSet<Function>, String> {
    let file = object::File::parse(bytes).map_err(|e| e.to_string())?;
    let present = present(&file);
    let load = |id: gimli::SectionId| -> Result<Section<'_>, object::Error> {
        match file.section_by_name(id.name()) {
            Some(section) => Ok(Section {
                data: section.uncompressed_data()?,
                relocations: Relocations(section.relocation_map()?),
            }),
            None => Ok(Section::default()),
        }
    };
    let sections = gimli::DwarfSections::load(load).map_err(|e| e.to_string())?;
    let dwarf =
        sections.borrow(|s| RelocateReader::new(EndianSlice::new(&s.data, LittleEndian), &s.relocations));
    let mut found = BTreeSet::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next().map_err(|e| e.to_string())? {
        let unit = dwarf.unit(header).map_err(|e| e.to_string())?;
        of_unit(&dwarf, &unit, &present, &mut found).map_err(|e| e.to_string())?;
    }
    Ok(found)
}

/// Names of functions that the kernel keeps after its start.
fn present(file: &object::File<'_>) -> BTreeSet<String> {
    let kept = |symbol: &object::Symbol<'_, '_>| {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        section.is_some_and(|s| s.name().is_ok_and(|n| !n.starts_with(".init") && !n.starts_with(".exit")))
    };
    file.symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && kept(symbol))
        .filter_map(|symbol| symbol.name().ok().map(|name| base_name(name).to_owned()))
        .collect()
}

fn of_unit(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    present: &BTreeSet<String>,
    found: &mut BTreeSet<Function>,
) -> gimli::Result<()> {
    let mut tree = unit.entries_tree(None)?;
    let mut children = tree.root()?.children();
    while let Some(child) = children.next()? {
        let entry = child.entry();
        let has_code = entry.attr(gimli::DW_AT_low_pc).is_some() || entry.attr(gimli::DW_AT_ranges).is_some();
        if entry.tag() != gimli::DW_TAG_subprogram || !has_code {
            continue;
        }
        if let (Some(name), Some(path)) = described(dwarf, unit, entry, 0)?
            && present.contains(base_name(&name))
            && path.ends_with(".c")
        {
            found.insert((base_name(&name).to_owned(), path));
        }
    }
    Ok(())
}

/// Name and defining file of a function; the copy that has code refers to the entry that describes it.
fn described(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    entry: &DebuggingInformationEntry<Reader<'_>>,
    depth: usize,
) -> gimli::Result<(Option<String>, Option<String>)> {
    let mut name = match entry.attr_value(gimli::DW_AT_name) {
        Some(value) => Some(text(&dwarf.attr_string(unit, value)?)?),
        None => None,
    };
    let mut path = match entry.attr_value(gimli::DW_AT_decl_file) {
        Some(AttributeValue::FileIndex(index)) => file_path(dwarf, unit, index)?,
        Some(value) => value.udata_value().map_or(Ok(None), |index| file_path(dwarf, unit, index))?,
        None => None,
    };
    let origin = entry
        .attr_value(gimli::DW_AT_abstract_origin)
        .or_else(|| entry.attr_value(gimli::DW_AT_specification));
    if let Some(AttributeValue::UnitRef(offset)) = origin
        && (name.is_none() || path.is_none())
        && depth < 4
    {
        let (of_origin, at_origin) = described(dwarf, unit, &unit.entry(offset)?, depth + 1)?;
        name = name.or(of_origin);
        path = path.or(at_origin);
    }
    Ok((name, path))
}

/// A file of the unit's list, as a path from the kernel's root.
fn file_path(
    dwarf: &Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    index: u64,
) -> gimli::Result<Option<String>> {
    let Some(header) = unit.line_program.as_ref().map(|program| program.header()) else { return Ok(None) };
    let Some(file) = header.file(index) else { return Ok(None) };
    let name = text(&dwarf.attr_string(unit, file.path_name())?)?;
    let directory = match file.directory(header) {
        Some(value) => text(&dwarf.attr_string(unit, value)?)?,
        None => String::new(),
    };
    Ok(Some(from_root(&directory, &name)))
}

fn text(value: &Reader<'_>) -> gimli::Result<String> {
    use gimli::Reader as _;
    Ok(value.to_string_lossy()?.into_owned())
}

/// Joins a folder and a file, without `.`, `..` and the folder of the build.
fn from_root(directory: &str, name: &str) -> String {
    let whole = if name.starts_with('/') || directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    // Debian builds in `debian/build/FLAVOUR`, and names sources from there or from the root.
    match parts.as_slice() {
        ["debian", "build", _, rest @ ..] => rest.join("/"),
        parts => parts.join("/"),
    }
}

/// A name without what compilers add: `.isra.0`, `.constprop.0`, `.part.0`, `.cold`.
fn base_name(name: &str) -> &str {
    match name.find('.') {
        Some(0) | None => name,
        Some(dot) => &name[..dot],
    }
}
