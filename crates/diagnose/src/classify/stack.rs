//! The walk over a stack.
//!
//! Pure: the same stack means the same on every machine. What may not enter: a name of a kernel function.

use iowhy_core::layer::Layer;
use iowhy_core::profile::{Profile, StackTime, State};

use super::patterns::Patterns;
use super::table::{
    ByName, ByPathMeaning, LayerLine, Listed, Module, PathGroup, PathRule, Place, Role, Sleeper, Table,
};
use super::{Class, Operation, Wait};

/// A function of a stack.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    /// Without what compilers add.
    name: &'a str,
    /// Empty: the kernel itself.
    module: &'a str,
}

impl<'a> Frame<'a> {
    /// `name` or `name [module]`, as [`Symbol::frame`](iowhy_core::profile::Symbol::frame) writes it; without the blank too.
    fn parse(text: &'a str) -> Frame<'a> {
        let (name, module) = match text.split_once('[') {
            Some((name, module)) if !name.is_empty() => (name.trim_end(), module.trim_end_matches(']')),
            _ => (text, ""),
        };
        Frame { name: base_name(name), module }
    }
}

/// Gives stacks their meaning. Reading its table costs about a millisecond: make one and keep it.
#[derive(Clone, Debug)]
pub struct Classifier {
    table: Table,
}

impl Default for Classifier {
    fn default() -> Self {
        Classifier::new()
    }
}

impl Classifier {
    /// With the table that is part of this program.
    pub fn new() -> Classifier {
        Classifier { table: Table::embedded() }
    }

    /// The meaning of a kernel stack, innermost function first; a function of a module is `name [module]`.
    ///
    /// - No kernel function while running: the program's own code. Without a stack at all the caller must not ask.
    /// - Running below an interrupt: work that the thread did not ask for there and then ([`Operation::Interrupt`]).
    ///   The completion of block requests keeps its layer on the path (whose requests they were is not known); the rest
    ///   is stolen from the thread: [`Layer::Elsewhere`], busy. Two exceptions, of which the interrupt is only the
    ///   scene: a clock that became due while interrupts were off ticks where they are allowed again, which is at the
    ///   start of the soft interrupt; where a driver was interrupted at its device, that time is the driver's. And a
    ///   thread that comes back from the scheduler on its way out of an interrupt is in the call that was interrupted.
    /// - Running at a tracepoint that somebody listens to: [`Layer::Observer`], and the operation of the same name.
    /// - Queued: [`Layer::CpuQueue`] with the operation that was interrupted. A thread that lost its CPU on the way out
    ///   of a system call had nothing left to do in the kernel: [`Operation::User`].
    /// - Blocked: the wait decides the layer. A sleep that the table does not know has [`Wait::Unknown`] and the layer
    ///   of the function it slept below, or [`Layer::Unexplained`] where that is only the system call.
    ///
    /// A stack may be as thin as the function a thread sleeps in and its system call (`folio_wait_bit_common`,
    /// `__x64_sys_read`): then the most likely meaning is given. A locked page is data from the device (in fsync: data
    /// being written back), a synchronous bio in fsync is a cache flush, direct I/O goes where the call says.
    pub fn classify(&self, kernel: &[&str], state: State) -> Class {
        let frames: Vec<Frame<'_>> = kernel.iter().map(|text| Frame::parse(text)).collect();
        match state {
            State::Running => self.running(&frames),
            State::Queued => Class { operation: self.queued(&frames), layer: Layer::CpuQueue, wait: None },
            State::Blocked => self.blocked(&frames),
        }
    }

    /// Whether a thread asleep with this stack waits on the path between program and disk. A sleep that the table does
    /// not know counts when it is below a function of a file system, the page cache, memory, the block layer or a
    /// driver, and in a call that sleeps for nothing else: where only the call is known, an fsync waits for the disk.
    pub fn on_path(&self, kernel: &[&str]) -> bool {
        let class = self.classify(kernel, State::Blocked);
        match class.wait {
            Some(Wait::Unknown) | None => {
                matches!(
                    class.layer,
                    Layer::Filesystem | Layer::Cache | Layer::Memory | Layer::Block | Layer::Device
                ) || matches!(
                    class.operation,
                    Operation::Sync | Operation::Stat | Operation::Names | Operation::Fault
                )
            }
            Some(wait) => wait.on_path(),
        }
    }

    /// The operation of a system call by its name in the manual: `pread64` is [`Operation::Read`].
    pub fn operation_of_call(&self, name: &str) -> Operation {
        self.table.calls.get(name).copied().unwrap_or(Operation::Other)
    }

    /// The meaning of a stack of a profile that was seen; see [`Classifier::classify`].
    ///
    /// Between its entry and its work, a system call has no kernel function that tells which one it is. Then the
    /// function of the C library that it was made from tells, where the user frames show it: `__read`, `pread64`.
    pub fn classify_stack(&self, profile: &Profile, stack: &StackTime) -> Class {
        let kernel: Vec<_> = profile.kernel_frames(stack).collect();
        let kernel: Vec<&str> = kernel.iter().map(AsRef::as_ref).collect();
        let class = self.classify(&kernel, stack.state);
        let open = matches!(class.operation, Operation::Unknown | Operation::Other)
            && class.layer == Layer::Call
            && stack.state == State::Running;
        let caller = stack.user.first().and_then(|id| profile.symbols.get(*id as usize));
        match caller.and_then(|symbol| self.operation_of_function(&symbol.name)) {
            Some(operation) if open => Class { operation, ..class },
            _ => class,
        }
    }

    /// The operation of a function of the C library that is a system call and little else.
    fn operation_of_function(&self, name: &str) -> Option<Operation> {
        let name = base_name(name).trim_start_matches('_');
        let name = name.strip_prefix("libc_").or_else(|| name.strip_prefix("GI_")).unwrap_or(name);
        let name = name.strip_suffix("_nocancel").unwrap_or(name);
        self.table.calls.get(name).copied()
    }

    /// The names of the table, for tests against a running kernel.
    pub fn listed(&self) -> &[Listed] {
        &self.table.listed
    }

    /// The names with layers of `symbols.toml`.
    pub fn layer_lines(&self) -> &[LayerLine] {
        &self.table.layer_lines
    }

    /// What `symbols.toml` says about the layer of a function of this name.
    pub fn by_name(&self, function: &str) -> ByName<'_> {
        if let Some(Role::Transparent | Role::Sleep | Role::Observer) = self.table.roles.get(function) {
            return ByName::Helper;
        }
        let line = self.table.places.get(function).and_then(|place| place.line);
        line.and_then(|line| self.table.layer_lines.get(usize::from(line)))
            .map_or(ByName::Nothing, ByName::Line)
    }

    /// What a group of `paths.toml` says about the layer of its functions.
    pub fn meaning_of_group(&self, id: &str) -> Option<ByPathMeaning> {
        let group = self.table.path_groups.iter().find(|group| group.id == id && !group.none)?;
        Some(group.place.map_or(ByPathMeaning::Helper, |p| ByPathMeaning::Layer(p.layer, p.shared)))
    }

    /// The group of `paths.toml` of a function of this name, as `functions.txt` has it.
    pub fn group_by_path(&self, function: &str) -> Option<&str> {
        let group = self.table.path_groups.get(usize::from(self.table.by_path.get(function)?))?;
        (!group.none).then_some(group.id.as_str())
    }

    /// Whether functions would have the same layer without this line.
    pub fn is_redundant(&self, line: &LayerLine) -> bool {
        // No function has this name, so that only prefixes of source files meet it.
        let name = line.pattern.replace('*', "~");
        let by_path = self.group_by_path(&name).and_then(|id| self.meaning_of_group(id));
        if line.fallback && by_path.is_some() {
            return true;
        }
        let without =
            self.table.places.get_without(&line.pattern).filter(|place| !place.fallback || by_path.is_none());
        match without {
            Some(place) => {
                (place.layer, place.shared, place.fallback) == (line.layer, line.shared, line.fallback)
            }
            None => by_path == Some(ByPathMeaning::Layer(line.layer, line.shared)),
        }
    }

    /// The rules of `paths.toml`.
    pub fn path_rules(&self) -> &[PathRule] {
        &self.table.path_rules
    }

    fn running(&self, frames: &[Frame<'_>]) -> Class {
        if frames.is_empty() {
            return Class { operation: Operation::User, layer: Layer::Program, wait: None };
        }
        if let Some(first) = frames.iter().position(|f| self.is_interrupt(f)) {
            return self.below_interrupt(&frames[..first], frames);
        }
        let has = |role| frames.iter().any(|f| self.role(f) == Some(role));
        if has(Role::Observer) && !has(Role::Filter) {
            return Class { operation: Operation::Observer, layer: Layer::Observer, wait: None };
        }
        let layer = self.layer(frames).unwrap_or(Layer::Unexplained);
        Class { operation: self.operation(frames), layer, wait: None }
    }

    /// Time on a CPU with an interrupt in the stack; `inner` is what ran in the innermost of them.
    fn below_interrupt(&self, inner: &[Frame<'_>], frames: &[Frame<'_>]) -> Class {
        let last = frames.iter().rposition(|f| self.is_interrupt(f)).unwrap_or(0);
        let outer = frames.get(last + 1..).unwrap_or_default();
        let own = |layer| Class { operation: self.interrupted(frames), layer, wait: None };
        let skidded = inner.first().is_some_and(|f| self.role(f) == Some(Role::Unmasked));
        if skidded && self.layer(outer) == Some(Layer::Device) {
            return own(Layer::Device);
        }
        let place = |f: &Frame<'_>| self.place(f).map(|p| p.layer);
        let leaving = inner.last().is_some_and(|f| place(f) == Some(Layer::Call));
        if leaving && inner.iter().any(|f| self.role(f) == Some(Role::Sleep)) {
            return own(Layer::Call);
        }
        let on_path =
            |l: &Layer| matches!(l, Layer::Filesystem | Layer::Cache | Layer::Block | Layer::Device);
        let completes = inner.iter().any(|f| matches!(place(f), Some(Layer::Block | Layer::Device)));
        let layer = self.layer(inner).filter(|l| completes && on_path(l)).unwrap_or(Layer::Elsewhere);
        Class { operation: Operation::Interrupt, layer, wait: None }
    }

    fn blocked(&self, frames: &[Frame<'_>]) -> Class {
        let operation = self.interrupted(frames);
        let wait = self.wait(frames, operation);
        let own = operation == Operation::Sync
            || frames.iter().any(|f| self.table.own_writeback.get(f.name).is_some());
        let served_by = if own { wait.layer_of_own() } else { wait.layer() };
        let layer = served_by.unwrap_or_else(|| match self.layer(frames) {
            // The entry of a system call says nothing about what was waited for.
            Some(Layer::Call) | None => Layer::Unexplained,
            Some(layer) => layer,
        });
        Class { operation, layer, wait: Some(wait) }
    }

    /// The operation of a thread that is not running: what an interrupt put it off from, where there was one.
    fn interrupted(&self, frames: &[Frame<'_>]) -> Operation {
        match frames.iter().rposition(|f| self.role(f) == Some(Role::Interrupt)) {
            Some(last) if last + 1 == frames.len() => Operation::User,
            Some(last) => self.operation(&frames[last + 1..]),
            None => self.operation(frames),
        }
    }

    /// The operation of a thread that lost its CPU.
    fn queued(&self, frames: &[Frame<'_>]) -> Operation {
        let operation = self.interrupted(frames);
        let leaving = |f: &Frame<'_>| {
            self.role(f) == Some(Role::Entry) || self.place(f).is_some_and(|p| p.layer == Layer::Call)
        };
        if operation == Operation::Unknown && frames.iter().any(leaving) {
            Operation::User
        } else {
            operation
        }
    }

    fn is_interrupt(&self, frame: &Frame<'_>) -> bool {
        self.role(frame) == Some(Role::Interrupt)
    }

    fn role(&self, frame: &Frame<'_>) -> Option<Role> {
        let helps = || {
            let helper = self.path_group(frame).is_some_and(|group| group.place.is_none());
            let listed = self.table.places.get(frame.name).is_some_and(|place| !place.fallback);
            (helper && !listed).then_some(Role::Transparent)
        };
        self.table.roles.get(frame.name).or_else(helps)
    }

    /// The outermost system call or fault. Where tail calls left no frame of the call itself, the outermost function
    /// that only one operation uses. Some work has an operation of its own, whatever call it is done for.
    fn operation(&self, frames: &[Frame<'_>]) -> Operation {
        if let Some(instead) = frames.iter().find_map(|f| self.table.instead.get(f.name)) {
            return instead;
        }
        let mut entered = false;
        let mut worked = false;
        for frame in frames.iter().rev() {
            let entered_by = self.table.entry_call(frame.name);
            if let Some(operation) = entered_by.or_else(|| self.table.operations.get(frame.name)) {
                return operation;
            }
            match self.role(frame) {
                Some(Role::Fault) if entered => return Operation::Other,
                Some(Role::Fault) => return Operation::Fault,
                Some(Role::Entry) => entered = true,
                Some(_) => {}
                None => worked |= self.place(frame).is_none_or(|p| p.layer != Layer::Call),
            }
        }
        // Entry and exit alone could be those of any call.
        if entered && worked { Operation::Other } else { Operation::Unknown }
    }

    /// The layer of the innermost function that has one of its own.
    fn layer(&self, frames: &[Frame<'_>]) -> Option<Layer> {
        let mut shared = None;
        for frame in frames {
            let role = self.role(frame);
            if matches!(role, Some(Role::Transparent | Role::Sleep | Role::Observer)) {
                continue;
            }
            let Some(place) = self.place(frame) else { continue };
            if place.shared {
                shared.get_or_insert(place.layer);
            } else if role == Some(Role::Entry) || self.table.entry_call(frame.name).is_some() {
                return shared.or(Some(place.layer));
            } else {
                return Some(place.layer);
            }
        }
        shared
    }

    /// What a function says about layers: by its exact name, else by its module, else by a prefix, else by its source file,
    /// else by a prefix that leaves the source file to go first.
    fn place(&self, frame: &Frame<'_>) -> Option<Place> {
        if let Some(exact) = self.table.places.exact(frame.name) {
            return Some(exact);
        }
        if let Some(module) = self.module(frame) {
            return Some(Place { layer: module.layer, shared: false, fallback: false, line: None });
        }
        let prefix = self.table.places.get(frame.name);
        let by_path = || self.path_group(frame)?.place;
        prefix.filter(|place| !place.fallback).or_else(by_path).or(prefix)
    }

    /// What a function says about a sleep below it, in the same order.
    fn sleeper(&self, frame: &Frame<'_>) -> Option<&Sleeper> {
        let of_module = || self.module(frame).and_then(|m| m.sleeper);
        let exact = self.table.sleeper_of.exact(frame.name);
        let index = exact
            .or_else(of_module)
            .or_else(|| self.table.sleeper_of.get(frame.name))
            .or_else(|| self.path_group(frame)?.sleeper);
        self.table.sleepers.get(usize::from(index?))
    }

    fn module(&self, frame: &Frame<'_>) -> Option<Module> {
        if frame.module.is_empty() { None } else { self.table.modules.get(frame.module) }
    }

    /// What the source file of a function says; of modules that the table lists, the module says it.
    fn path_group(&self, frame: &Frame<'_>) -> Option<&PathGroup> {
        if self.module(frame).is_some() {
            return None;
        }
        let group = self.table.path_groups.get(usize::from(self.table.by_path.get(frame.name)?))?;
        (!group.none).then_some(group)
    }

    /// Whether a function belongs to a served file system.
    fn serves(&self, frame: &Frame<'_>) -> bool {
        match self.module(frame) {
            Some(module) => module.server,
            None => self.path_group(frame).is_some_and(|group| group.server),
        }
    }

    /// The innermost function that says what was waited for.
    fn wait(&self, frames: &[Frame<'_>], operation: Operation) -> Wait {
        let mut direct = true;
        let mut fallback = None;
        for (index, frame) in frames.iter().enumerate() {
            if let Some(sleeper) = self.sleeper(frame).filter(|s| direct || !s.direct)
                && let Some(wait) = self.meaning(sleeper, &frames[index + 1..], operation)
            {
                if !sleeper.fallback {
                    return wait;
                }
                fallback.get_or_insert(wait);
            }
            direct &= matches!(self.role(frame), Some(Role::Sleep | Role::Transparent | Role::Observer));
        }
        fallback.unwrap_or(Wait::Unknown)
    }

    /// What a sleep below a function waits for, given the functions further out.
    fn meaning(&self, sleeper: &Sleeper, outer: &[Frame<'_>], operation: Operation) -> Option<Wait> {
        let find = |patterns: &Patterns<Wait>| outer.iter().find_map(|f| patterns.get(f.name));
        let served = || sleeper.served && outer.iter().any(|f| self.serves(f));
        find(&sleeper.anywhere)
            .or_else(|| served().then_some(Wait::Server))
            .or_else(|| find(&sleeper.near))
            .or_else(|| sleeper.by_operation.iter().find(|(o, _)| *o == operation).map(|(_, w)| *w))
            .or(sleeper.kind)
    }
}

/// A name without what compilers add: `.isra.0`, `.constprop.0`, `.part.0`, `.cold`, `.llvm.123`.
fn base_name(name: &str) -> &str {
    match name.find('.') {
        Some(0) | None => name,
        Some(dot) => &name[..dot],
    }
}
