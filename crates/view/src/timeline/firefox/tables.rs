//! The tables that all threads share: strings, functions, frames and stacks. Each entry is made once.

use std::collections::HashMap;

use serde::Serialize;

use super::schema::{KERNEL, of_layer};
use crate::timeline::{Frame, NOT_RECORDED, Request, Stack, Timeline, WAITING};
use iowhy_core::layer::Layer;

/// Stack node: no parent.
const ROOT: u32 = 0;
/// Resource of the kernel itself.
const THE_KERNEL: &str = "[kernel]";
const UNNAMED: &str = "[unknown]";
const NOT_SEEN: &str = "[stack not seen]";
/// `ResourceType.Library`.
const LIBRARY: u8 = 1;

/// Entries in the order in which they were met.
#[derive(Debug)]
struct Interner<T> {
    index: HashMap<T, u32>,
    list: Vec<T>,
}

impl<T: Clone + Eq + std::hash::Hash> Interner<T> {
    fn new() -> Interner<T> {
        Interner { index: HashMap::new(), list: Vec::new() }
    }

    fn id(&mut self, entry: T) -> u32 {
        let next = self.list.len() as u32;
        let list = &mut self.list;
        *self.index.entry(entry).or_insert_with_key(|entry| {
            list.push(entry.clone());
            next
        })
    }
}

/// The tables, complete: threads only look things up.
pub(super) struct Tables<'a> {
    strings: Interner<String>,
    /// Name of each, a string.
    resources: Interner<u32>,
    /// Name and resource of each.
    funcs: Interner<(u32, Option<u32>)>,
    /// Function and category of each.
    frames: Interner<(u32, usize)>,
    /// Parent and frame of each.
    stacks: Interner<(Option<u32>, u32)>,
    /// By number of [`Timeline::stacks`].
    of_stack: Vec<u32>,
    not_seen: u32,
    timeline: &'a Timeline,
}

/// The name of a request's marker.
pub(super) fn request_name(request: &Request) -> String {
    format!("{} ({})", request.operation, request.owner)
}

impl<'a> Tables<'a> {
    pub(super) fn new(timeline: &'a Timeline) -> Tables<'a> {
        let mut tables = Tables {
            strings: Interner::new(),
            resources: Interner::new(),
            funcs: Interner::new(),
            frames: Interner::new(),
            stacks: Interner::new(),
            of_stack: Vec::new(),
            not_seen: 0,
            timeline,
        };
        let frame = tables.frame(NOT_SEEN, None, of_layer(Layer::Unexplained));
        tables.not_seen = tables.stacks.id((None, frame));
        for stack in &timeline.stacks {
            let id = tables.stack(stack);
            tables.of_stack.push(id);
        }
        tables.name_markers();
        tables
    }

    /// Every name that a marker of [`super::columns`] may have.
    fn name_markers(&mut self) {
        let timeline = self.timeline;
        let mut name = |text: &str| {
            self.strings.id(text.to_owned());
        };
        name(NOT_RECORDED);
        name(WAITING);
        for stack in &timeline.stacks {
            name(stack.operation);
            stack.waits.iter().for_each(|waits| name(waits));
        }
        timeline.findings.iter().for_each(|finding| name(&finding.title));
        timeline.threads.iter().flat_map(|thread| &thread.calls).for_each(|call| name(call.name));
        for request in timeline.devices.iter().flat_map(|device| &device.requests) {
            name(&request_name(request));
            name(&request.owner);
        }
    }

    /// The number of a string; those of markers are all there.
    pub(super) fn string(&self, text: &str) -> u32 {
        self.strings.index.get(text).copied().unwrap_or_default()
    }

    /// The node of a stack.
    pub(super) fn of_stack(&self, stack: u32) -> u32 {
        self.of_stack.get(stack as usize).copied().unwrap_or(self.not_seen)
    }

    /// The node of time of which no stack was seen.
    pub(super) fn not_seen(&self) -> u32 {
        self.not_seen
    }

    fn frame(&mut self, name: &str, resource: Option<&str>, category: usize) -> u32 {
        let resource = resource.map(|name| {
            let name = self.strings.id(name.to_owned());
            self.resources.id(name)
        });
        let name = self.strings.id(if name.is_empty() { UNNAMED } else { name }.to_owned());
        let func = self.funcs.id((name, resource));
        self.frames.id((func, category))
    }

    /// Outermost frame first. The innermost one has the category of the layer in which the time is spent.
    fn stack(&mut self, stack: &Stack) -> u32 {
        let layer = of_layer(stack.layer);
        let last =
            |frames: &[Frame], at: usize| at + 1 == frames.len() && stack.waits.is_none() && stack.known;
        let mut frames = Vec::new();
        for (at, frame) in stack.user.iter().enumerate() {
            let spent = last(&stack.user, at) && stack.kernel.is_empty();
            let category = if spent { layer } else { of_layer(Layer::Program) };
            frames.push(self.frame(&frame.name, frame.object.as_deref(), category));
        }
        for (at, frame) in stack.kernel.iter().enumerate() {
            let category = if last(&stack.kernel, at) { layer } else { KERNEL };
            let resource = frame.object.as_deref().unwrap_or(THE_KERNEL);
            frames.push(self.frame(&frame.name, Some(resource), category));
        }
        if !stack.known || frames.is_empty() {
            frames.push(self.frame(NOT_SEEN, None, layer));
        }
        if let Some(waits) = &stack.waits {
            frames.push(self.frame(waits, None, layer));
        }
        let node = frames.into_iter().fold(None, |parent, frame| Some(self.stacks.id((parent, frame))));
        node.unwrap_or(self.not_seen)
    }

    pub(super) fn shared(&self) -> Shared<'_> {
        let frames = self.frames.list.len();
        let funcs = self.funcs.list.len();
        let resources = self.resources.list.len();
        let nodes = self.stacks.list.iter().zip(0..);
        Shared {
            stack_table: StackTable {
                frame: self.stacks.list.iter().map(|(_, frame)| *frame).collect(),
                prefix_offset: nodes
                    .map(|((parent, _), at)| parent.map_or(ROOT, |parent| at - parent))
                    .collect(),
                length: self.stacks.list.len(),
            },
            frame_table: FrameTable {
                address: vec![-1; frames],
                inline_depth: vec![0; frames],
                category: self.frames.list.iter().map(|(_, category)| *category).collect(),
                subcategory: vec![0; frames],
                func: self.frames.list.iter().map(|(func, _)| *func).collect(),
                native_symbol: vec![None; frames],
                inner_window_id: vec![None; frames],
                line: vec![None; frames],
                column: vec![None; frames],
                original_location: vec![None; frames],
                length: frames,
            },
            func_table: FuncTable {
                name: self.funcs.list.iter().map(|(name, _)| *name).collect(),
                is_js: vec![false; funcs],
                relevant_for_js: vec![false; funcs],
                resource: self.funcs.list.iter().map(|(_, of)| of.map_or(-1, i64::from)).collect(),
                source: vec![None; funcs],
                line_number: vec![None; funcs],
                column_number: vec![None; funcs],
                original_location: vec![None; funcs],
                length: funcs,
            },
            resource_table: ResourceTable {
                lib: vec![None; resources],
                name: &self.resources.list,
                host: vec![None; resources],
                kind: vec![LIBRARY; resources],
                length: resources,
            },
            native_symbols: NativeSymbols::default(),
            sources: Sources::default(),
            source_location_table: SourceLocations::default(),
            string_array: &self.strings.list,
        }
    }
}

/// A column without a value in any row.
type Empty = Vec<Option<u32>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared<'a> {
    stack_table: StackTable,
    frame_table: FrameTable,
    func_table: FuncTable,
    resource_table: ResourceTable<'a>,
    native_symbols: NativeSymbols,
    sources: Sources,
    source_location_table: SourceLocations,
    string_array: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StackTable {
    frame: Vec<u32>,
    prefix_offset: Vec<u32>,
    length: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FrameTable {
    address: Vec<i8>,
    inline_depth: Vec<u8>,
    category: Vec<usize>,
    subcategory: Vec<u8>,
    func: Vec<u32>,
    native_symbol: Empty,
    #[serde(rename = "innerWindowID")]
    inner_window_id: Empty,
    line: Empty,
    column: Empty,
    original_location: Empty,
    length: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FuncTable {
    name: Vec<u32>,
    #[serde(rename = "isJS")]
    is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    relevant_for_js: Vec<bool>,
    resource: Vec<i64>,
    source: Empty,
    line_number: Empty,
    column_number: Empty,
    original_location: Empty,
    length: usize,
}

#[derive(Serialize)]
struct ResourceTable<'a> {
    lib: Empty,
    name: &'a [u32],
    host: Empty,
    #[serde(rename = "type")]
    kind: Vec<u8>,
    length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeSymbols {
    lib_index: Empty,
    address: Empty,
    name: Empty,
    function_size: Empty,
    length: usize,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Sources {
    id: Empty,
    filename: Empty,
    start_line: Empty,
    start_column: Empty,
    #[serde(rename = "sourceMapURL")]
    source_map_url: Empty,
    content: Empty,
    length: usize,
}

#[derive(Default, Serialize)]
struct SourceLocations {
    source: Empty,
    line: Empty,
    column: Empty,
    length: usize,
}
