//! Joins the watcher's profile with the explainer: classes, account, findings, manual pages.
//!
//! The one place of the facade that knows where those come from; commands, record and screens use what is here.
//! What may not enter: arithmetic of its own, text of its own.

use iowhy_core::finding::{Finding, FindingId};
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::model::StackModel;
use iowhy_core::profile::{Profile, StackTime, State};
use iowhy_explain::account::{Account, Entry};
use iowhy_explain::classify::{Class, Operation, Wait};

/// What gives stacks their meaning.
#[derive(Debug, Default)]
pub struct Meaning {}

/// A profile, explained.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explained {
    /// Where the time went.
    pub account: Account,
    /// Why, most valuable first.
    pub findings: Vec<Finding>,
}

impl Meaning {
    /// Loads the table of kernel functions.
    pub fn new() -> Meaning {
        Meaning {}
    }

    /// Whether a thread asleep with these kernel functions (innermost first) waits on the I/O path.
    pub fn on_path(&self, kernel: &[&str]) -> bool {
        self.class(kernel, State::Blocked).wait.is_some_and(Wait::on_path)
    }

    /// What these kernel functions (innermost first) mean.
    pub fn class(&self, kernel: &[&str], state: State) -> Class {
        let (operation, layer, wait) = match state {
            State::Running if kernel.is_empty() => (Operation::User, Layer::Program, None),
            State::Running => (Operation::Unknown, Layer::Unexplained, None),
            State::Queued => (Operation::Unknown, Layer::CpuQueue, None),
            State::Blocked => (Operation::Unknown, Layer::Unexplained, Some(Wait::Unknown)),
        };
        Class { operation, layer, wait }
    }

    /// What a stack of the profile means; `None` for time whose stack was not seen.
    pub fn of_stack(&self, profile: &Profile, stack: &StackTime) -> Option<Class> {
        if !stack.known {
            return None;
        }
        let kernel: Vec<&str> = profile.kernel_names(stack).collect();
        Some(self.class(&kernel, stack.state))
    }

    /// Where the time of a run went, and why.
    pub fn explain(&self, profile: &Profile, model: Option<&StackModel>) -> Explained {
        let _ = model;
        let mut layers = Ledger::default();
        let mut entries = Vec::new();
        for stack in &profile.stacks {
            let class = self.of_stack(profile, stack).unwrap_or(Class {
                operation: Operation::Unknown,
                layer: Layer::Unexplained,
                wait: None,
            });
            let busy = stack.state == State::Running;
            let time_ns = stack.time_ns;
            layers.add(class.layer, if busy { time_ns } else { 0.0 }, if busy { 0.0 } else { time_ns });
            let (thread, wall_ns, events) = (stack.thread, stack.wall_ns, stack.events);
            entries.push(Entry { thread, class, busy, time_ns, wall_ns, events });
        }
        let account = Account {
            thread_ns: profile.thread_ns() as f64,
            wall_ns: profile.wall_ns as f64,
            idle_wall_ns: profile.idle_wall_ns,
            entries,
            layers,
            ..Account::default()
        };
        Explained { account, findings: Vec::new() }
    }
}

/// The stable identifier of an operation.
pub fn operation_id(operation: Operation) -> &'static str {
    match operation {
        Operation::User => "user",
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Sync => "sync",
        Operation::Open => "open",
        Operation::Close => "close",
        Operation::Stat => "stat",
        Operation::Names => "names",
        Operation::Descriptor => "descriptor",
        Operation::Map => "map",
        Operation::Fault => "fault",
        Operation::Ring => "ring",
        Operation::Aio => "aio",
        Operation::Process => "process",
        Operation::Futex => "futex",
        Operation::Poll => "poll",
        Operation::Socket => "socket",
        Operation::Sleep => "sleep",
        Operation::Other => "other",
        Operation::Interrupt => "interrupt",
        Operation::Unknown => "unknown",
    }
}

/// The stable identifier of a kind of wait.
pub fn wait_id(wait: Wait) -> &'static str {
    match wait {
        Wait::DeviceRead => "device-read",
        Wait::DeviceWrite => "device-write",
        Wait::DataWriteback => "data-writeback",
        Wait::CacheFlush => "cache-flush",
        Wait::Journal => "journal",
        Wait::JournalSpace => "journal-space",
        Wait::DirtyThrottle => "dirty-throttle",
        Wait::BlockThrottle => "block-throttle",
        Wait::Reclaim => "reclaim",
        Wait::InodeLock => "inode-lock",
        Wait::MmapLock => "mmap-lock",
        Wait::KernelLock => "kernel-lock",
        Wait::Pipe => "pipe",
        Wait::Socket => "socket",
        Wait::Timer => "timer",
        Wait::Futex => "futex",
        Wait::Child => "child",
        Wait::Poll => "poll",
        Wait::Terminal => "terminal",
        Wait::Completion => "completion",
        Wait::Server => "server",
        Wait::Unknown => "unknown",
    }
}

/// What is waited for, in words that fit after "waiting for".
pub fn wait_words(wait: Wait) -> &'static str {
    match wait {
        Wait::DeviceRead => "data from the device",
        Wait::DeviceWrite => "a direct write",
        Wait::DataWriteback => "data write-back",
        Wait::CacheFlush => "the device's cache flush",
        Wait::Journal => "a journal commit",
        Wait::JournalSpace => "room in the journal",
        Wait::DirtyThrottle => "the dirty throttle",
        Wait::BlockThrottle => "a limit of the block layer",
        Wait::Reclaim => "memory",
        Wait::InodeLock => "the lock of a file",
        Wait::MmapLock => "the lock of the address space",
        Wait::KernelLock => "a kernel lock",
        Wait::Pipe => "a pipe",
        Wait::Socket => "a socket",
        Wait::Timer => "a timer",
        Wait::Futex => "another thread",
        Wait::Child => "a child process",
        Wait::Poll => "events (poll)",
        Wait::Terminal => "the terminal",
        Wait::Completion => "completions",
        Wait::Server => "a file server",
        Wait::Unknown => "something unknown",
    }
}

/// The manual page of a finding, in Markdown.
pub fn manual(id: FindingId) -> Option<&'static str> {
    let _ = id;
    None
}
