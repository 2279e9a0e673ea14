//! What a measurement needs to know of a target beside opening it: its counters, and whether the page cache is
//! between it and the program.

use std::sync::{Arc, OnceLock};

use iowhy_core::environment::TargetKind;

use super::{Place, Target, devices, inspect};
use crate::counters::{self, DeviceCounters};
use crate::method::scripted::Script;

impl Target {
    /// A target on a scripted machine.
    pub fn scripted(script: Script) -> Target {
        let facts = inspect::made_up(TargetKind::Scripted, "scripted", script.size_bytes);
        Target { facts, place: Place::Scripted(Arc::new(script)), status: None, under: OnceLock::new() }
    }

    /// The leaf devices whose counters are held against claimed bytes; empty when there are none or they are not
    /// known.
    pub fn counted_devices(&self) -> &[String] {
        &self.under().leaves
    }

    fn under(&self) -> &devices::Devices {
        self.under.get_or_init(|| devices::under(self))
    }

    /// What passed a stacked device (dm, md) that the target names or stands on; `None` without one.
    pub(crate) fn stack_counters(&self) -> Option<DeviceCounters> {
        match &self.place {
            Place::Scripted(_) => None,
            _ => counters::stacked(self.under().stack.as_deref()?),
        }
    }

    /// What the devices under it (real or scripted) have moved since boot.
    pub fn device_counters(&self) -> Option<DeviceCounters> {
        match &self.place {
            Place::Scripted(script) => Some(script.device_counters()),
            _ => counters::devices(self.counted_devices()),
        }
    }

    /// Whether iowhy made it, so that dirty pages in it may be written out.
    pub fn is_ours(&self) -> bool {
        matches!(self.facts.kind, TargetKind::Scratch | TargetKind::Memory)
    }

    /// Whether reads of it can be answered by a page cache that we can set and see.
    pub fn has_page_cache(&self) -> bool {
        matches!(
            self.facts.kind,
            TargetKind::File | TargetKind::Scratch | TargetKind::BlockDevice | TargetKind::Memory
        )
    }
}
