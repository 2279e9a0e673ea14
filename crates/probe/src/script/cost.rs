//! Cost of one request on a scripted machine: the model's own prediction where it has one, and the targets and
//! writes that it leaves out.

use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::model::{Cost, Part};
use iowhy_core::workload::{CacheState, Method};

use super::{Script, ScriptedTarget};
use crate::access::Request;

/// The cost of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// Time by layer. Waiting on [`Layer::Device`] is served by the device's servers, other waiting by nobody.
    pub ledger: Ledger,
    /// Whether its bytes come in read-ahead windows rather than in a device request of its own.
    pub read_ahead: bool,
}

impl Script {
    /// The cost of one request; `None` where the model has no opinion.
    ///
    /// Reads of a file cost what [`StackModel::predict`](iowhy_core::model::StackModel::predict) says. Reads on the
    /// other targets cost, with every method that copies:
    /// - `/dev/null`: `call` and [`Part::Vfs`];
    /// - `/dev/zero`: these and [`Part::Zero`];
    /// - memory: `call`, [`Part::Vfs`], `cache` and `copy`; mapped, what a warm file costs.
    ///
    /// Writes to a file have a cost when the model has a `writeback` layer, the wait for one flush:
    /// - cached: `call`, `filesystem`, `cache` and `copy`, as a warm read;
    /// - with a sync: these, `block`, the device's wait and the flush; fsync and fdatasync are a second `call`;
    /// - by a mapped store: `memory`, `copy`, `call` (msync), `block`, the device's wait and the flush;
    /// - direct: as a direct read.
    ///
    /// A write to `/dev/null` costs what a read of it does.
    pub fn charge(&self, method: Method, state: CacheState, request: Request) -> Option<Charge> {
        let bytes = request.bytes as u64;
        let read_ahead = !request.write && state == CacheState::Cold;
        let ledger = match (method, self.target) {
            (Method::Null | Method::Syscall, _) => self.model.predict(method, state, bytes),
            (_, ScriptedTarget::File) if request.write => self.write(method, state, bytes),
            (_, ScriptedTarget::File) => self.model.predict(method, state, bytes),
            (_, ScriptedTarget::Memory) if method.mapped() => {
                self.model.predict(method, CacheState::Warm, bytes)
            }
            (_, ScriptedTarget::Memory | ScriptedTarget::ZeroDevice) if request.write => None,
            _ if method.copies() => Some(self.other_target(bytes)),
            _ => None,
        }?;
        Some(Charge { ledger, read_ahead })
    }

    /// A copying read on a target other than a file.
    fn other_target(&self, bytes: u64) -> Ledger {
        let mut ledger = Ledger::default();
        self.busy(&mut ledger, &[Layer::Call], bytes);
        self.busy_for(&mut ledger, Layer::Filesystem, self.model.part(Part::Vfs), bytes);
        match self.target {
            ScriptedTarget::ZeroDevice => {
                self.busy_for(&mut ledger, Layer::Copy, self.model.part(Part::Zero), bytes)
            }
            ScriptedTarget::Memory => self.busy(&mut ledger, &[Layer::Cache, Layer::Copy], bytes),
            ScriptedTarget::NullDevice | ScriptedTarget::File => {}
        }
        ledger
    }

    /// A write to a file.
    fn write(&self, method: Method, state: CacheState, bytes: u64) -> Option<Ledger> {
        if !self.model.layers.contains_key(&Layer::Writeback) {
            return None;
        }
        let mut ledger = Ledger::default();
        let cached = [Layer::Call, Layer::Filesystem, Layer::Cache, Layer::Copy];
        match method {
            Method::Direct => return self.model.predict(Method::Direct, CacheState::Direct, bytes),
            Method::Uring if state == CacheState::Direct => {
                return self.model.predict(Method::Uring, state, bytes);
            }
            Method::Write | Method::Pwrite | Method::Uring => self.busy(&mut ledger, &cached, bytes),
            Method::PwriteDsync => {
                self.busy(&mut ledger, &cached, bytes);
                self.sync(&mut ledger, bytes);
            }
            Method::PwriteFsync | Method::PwriteFdatasync => {
                self.busy(&mut ledger, &cached, bytes);
                self.busy(&mut ledger, &[Layer::Call], bytes);
                self.sync(&mut ledger, bytes);
            }
            Method::MmapStore => {
                self.busy(&mut ledger, &[Layer::Memory, Layer::Copy, Layer::Call], bytes);
                self.sync(&mut ledger, bytes);
            }
            _ => return None,
        }
        Some(ledger)
    }

    /// Writing back and flushing.
    fn sync(&self, ledger: &mut Ledger, bytes: u64) {
        self.busy(ledger, &[Layer::Block], bytes);
        for layer in [Layer::Device, Layer::Writeback] {
            ledger.add(layer, 0.0, self.evaluate(self.model.cost(layer), bytes));
        }
    }

    fn busy(&self, ledger: &mut Ledger, layers: &[Layer], bytes: u64) {
        for &layer in layers {
            self.busy_for(ledger, layer, self.model.cost(layer), bytes);
        }
    }

    fn busy_for(&self, ledger: &mut Ledger, layer: Layer, cost: Cost, bytes: u64) {
        ledger.add(layer, self.evaluate(cost, bytes), 0.0);
    }

    /// The same count of pages as the model's own predictions have.
    fn evaluate(&self, cost: Cost, bytes: u64) -> f64 {
        cost.total_ns(bytes.div_ceil(self.model.page_bytes.max(1)).max(1) as f64, bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(script: &Script, method: Method, state: CacheState, bytes: usize, write: bool) -> Option<f64> {
        let charge = script.charge(method, state, Request { offset: 0, bytes, write })?;
        Some(charge.ledger.total_ns())
    }

    #[test]
    fn targets_of_the_example_cost_what_its_file_says() {
        let file = Script::example().unwrap();
        let read =
            |target, method, bytes| total(&file.on_target(target), method, CacheState::Warm, bytes, false);
        // call 150, vfs 60; zero 1/32 ns a byte; cache 80 + 20 a page, copy 1/16 ns a byte.
        assert_eq!(read(ScriptedTarget::NullDevice, Method::Pread, 8192), Some(210.0));
        assert_eq!(read(ScriptedTarget::ZeroDevice, Method::Pread, 8192), Some(210.0 + 256.0));
        assert_eq!(read(ScriptedTarget::Memory, Method::Pread, 8192), Some(210.0 + 120.0 + 512.0));
        assert_eq!(read(ScriptedTarget::File, Method::Pread, 8192), Some(290.0 + 120.0 + 512.0));
        assert_eq!(read(ScriptedTarget::Memory, Method::Mmap, 8192), Some(120.0));
        for target in [
            ScriptedTarget::File,
            ScriptedTarget::NullDevice,
            ScriptedTarget::ZeroDevice,
            ScriptedTarget::Memory,
        ] {
            assert_eq!(read(target, Method::Syscall, 8192), Some(150.0));
            assert_eq!(read(target, Method::Null, 8192), Some(0.0));
            assert_eq!(read(target, Method::Sendfile, 8192), None);
        }
        assert_eq!(read(ScriptedTarget::ZeroDevice, Method::Direct, 8192), None);
    }

    #[test]
    fn writes_need_a_writeback_layer_and_add_up_by_hand() {
        let mut script = Script::example().unwrap();
        let write = |script: &Script, method, state| total(script, method, state, 4096, true);
        let none = CacheState::None;
        // call 150, file system 140, cache 100, copy 256; block 2410, device 68192, flush 400000.
        let (cached, sync) = (646.0, 2410.0 + 68_192.0 + 400_000.0);
        assert_eq!(write(&script, Method::Pwrite, none), Some(cached));
        assert_eq!(write(&script, Method::PwriteDsync, none), Some(cached + sync));
        assert_eq!(write(&script, Method::PwriteFdatasync, none), Some(cached + 150.0 + sync));
        assert_eq!(write(&script, Method::MmapStore, none), Some(60.0 + 256.0 + 150.0 + sync));
        let direct = Some(290.0 + 2410.0 + 68_192.0);
        assert_eq!(write(&script, Method::Direct, none), direct);
        assert_eq!(write(&script, Method::Uring, CacheState::Direct), direct);
        assert_eq!(write(&script, Method::Uring, none), Some(cached));
        assert_eq!(write(&script, Method::Fallocate, none), None);
        assert_eq!(write(&script.on_target(ScriptedTarget::NullDevice), Method::Pwrite, none), Some(210.0));
        assert_eq!(write(&script.on_target(ScriptedTarget::Memory), Method::Pwrite, none), None);
        script.model.layers.remove(&Layer::Writeback);
        assert_eq!(write(&script, Method::Pwrite, none), None);
        assert_eq!(write(&script, Method::Direct, none), None);
    }

    #[test]
    fn only_cold_reads_come_in_read_ahead_windows() {
        let script = Script::example().unwrap();
        let ahead = |method, state, write| {
            script.charge(method, state, Request { offset: 0, bytes: 4096, write }).unwrap().read_ahead
        };
        assert!(ahead(Method::Pread, CacheState::Cold, false));
        assert!(!ahead(Method::Pread, CacheState::Warm, false));
        assert!(!ahead(Method::Direct, CacheState::Direct, false));
        assert!(!ahead(Method::PwriteFsync, CacheState::Cold, true));
    }
}
