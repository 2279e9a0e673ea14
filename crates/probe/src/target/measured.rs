//! What a measurement needs to know of a target beside opening it: its counters, and whether the page cache is
//! between it and the program.

use std::sync::{Arc, OnceLock};

use iowhy_core::environment::TargetKind;

use super::{Place, Target, devices, inspect};
use crate::counters::{self, DeviceCounters};
use crate::script::Script;

impl Target {
    /// A target on a scripted machine.
    pub fn scripted(script: Script) -> Target {
        let facts = inspect::made_up(TargetKind::Scripted, "scripted", script.size_bytes);
        Target { facts, place: Place::Scripted(Arc::new(script)), status: None, under: OnceLock::new() }
    }

    /// The leaf devices whose counters are compared with claimed bytes; empty when there are none or they are not
    /// known.
    pub fn counted_devices(&self) -> &[String] {
        &self.under().leaves
    }

    fn under(&self) -> &iowhy_linux::block::devices::Devices {
        self.under.get_or_init(|| devices::under(self))
    }

    /// Counters of the stacked device (dm, md) of the target; `None` without one.
    pub(crate) fn stack_counters(&self) -> Option<DeviceCounters> {
        match &self.place {
            Place::Scripted(_) => None,
            _ => counters::stacked(self.under().stack.as_deref()?),
        }
    }

    /// Totals since boot of the devices under it, real or scripted.
    pub fn device_counters(&self) -> Option<DeviceCounters> {
        match &self.place {
            Place::Scripted(script) => Some(script.device_counters()),
            Place::Stripe(stripe) if self.script().is_some() => stripe
                .members()
                .iter()
                .map(|member| member.device_counters())
                .try_fold(DeviceCounters::default(), |sum, each| Some(sum + each?)),
            _ => counters::devices(self.counted_devices()),
        }
    }

    /// Names of the members of a stripe, or of the devices under the target where they are several, else none:
    /// in the order of [`Target::member_counters`].
    pub fn member_names(&self) -> Vec<String> {
        match self.stripe() {
            Some(stripe) => stripe.members().iter().map(|member| member.facts.name.clone()).collect(),
            None if self.counted_devices().len() > 1 => self.counted_devices().to_vec(),
            None => Vec::new(),
        }
    }

    /// Totals since boot of the devices under each member; `None` for a member whose devices serve another one too,
    /// or have no counters.
    pub fn member_counters(&self) -> Vec<Option<DeviceCounters>> {
        let Some(stripe) = self.stripe() else {
            let devices = self.counted_devices();
            return match devices.len() {
                0 | 1 => Vec::new(),
                _ => devices.iter().map(|name| counters::devices(std::slice::from_ref(name))).collect(),
            };
        };
        let members = stripe.members();
        let alone = |index: usize| {
            let own = members[index].counted_devices();
            let others = members.iter().enumerate().filter(|(other, _)| *other != index);
            others.flat_map(|(_, member)| member.counted_devices()).all(|device| !own.contains(device))
        };
        (0..members.len()).map(|index| members[index].device_counters().filter(|_| alone(index))).collect()
    }

    /// The members of a stripe, else itself: the targets that hold bytes.
    pub fn data_targets(&self) -> Vec<&Target> {
        match &self.place {
            Place::Stripe(stripe) => stripe.members().iter().map(Arc::as_ref).collect(),
            _ => vec![self],
        }
    }

    /// Targets that hold the bytes of a range, each with offset and length.
    pub(crate) fn ranges(&self, offset: u64, bytes: u64) -> Vec<(&Target, u64, u64)> {
        match &self.place {
            Place::Stripe(stripe) => stripe
                .map()
                .parts(offset, bytes)
                .filter_map(|part| {
                    Some((stripe.members().get(part.member)?.as_ref(), part.offset, part.bytes))
                })
                .collect(),
            _ => vec![(self, offset, bytes)],
        }
    }

    /// Whether iowhy made it, so that dirty pages in it may be written out.
    pub fn is_scratch(&self) -> bool {
        match &self.place {
            Place::Stripe(stripe) => stripe.members().iter().all(|member| member.is_scratch()),
            _ => matches!(self.facts.kind, TargetKind::Scratch | TargetKind::Memory),
        }
    }

    /// Whether reads of it can be answered by a page cache that we can set and see.
    pub fn has_page_cache(&self) -> bool {
        match &self.place {
            Place::Stripe(stripe) => stripe.members().iter().all(|member| member.has_page_cache()),
            _ => matches!(
                self.facts.kind,
                TargetKind::File | TargetKind::Scratch | TargetKind::BlockDevice | TargetKind::Memory
            ),
        }
    }
}
