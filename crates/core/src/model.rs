//! The stack model: named layers with costs. Fitted from a measurement or written by hand for a historic
//! machine; consumed by the predictor, the scripted target and the simulator.
//!
//! A cost is linear in calls, pages and bytes. Effects that are not linear (cache-size steps, queueing at a
//! saturated device) are left to the simulator. How well it holds is not part of the model: predict sizes that were
//! left out of the fit.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

use crate::layer::{Layer, Ledger};
use crate::workload::{CacheState, Method};

/// Cost of one layer: linear in requests, pages touched and bytes moved, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cost {
    /// For each request.
    pub per_call_ns: f64,
    /// For each page of `page_bytes` that the request touches.
    pub per_page_ns: f64,
    /// For each byte.
    pub per_byte_ns: f64,
}

impl Cost {
    /// Evaluates the cost of one request.
    pub fn total_ns(&self, pages: f64, bytes: f64) -> f64 {
        self.per_call_ns + self.per_page_ns * pages + self.per_byte_ns * bytes
    }
}

/// A cost with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LayerCost {
    /// The fitted value.
    #[serde(flatten)]
    pub cost: Cost,
    /// Lower ends.
    pub low: Cost,
    /// Upper ends.
    pub high: Cost,
}

impl LayerCost {
    /// A cost known exactly, as in a hand-written model.
    pub fn exact(cost: Cost) -> Self {
        LayerCost { cost, low: cost, high: cost }
    }
}

/// Costs that are part of a layer but are known apart from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The part of `filesystem` that every descriptor pays, even `/dev/null`: dispatch through the VFS.
    Vfs,
    /// Bringing a page into the cache (allocation, insertion, read-ahead decisions): part of `cache`, cold only.
    Insert,
    /// Zeroing user memory (`/dev/zero`): the store half of a copy. Not part of a file read.
    Zero,
    /// Cost of `call` for a request that travels through io_uring in a batch of many. Zero where a registered
    /// buffer saves more copying than the ring costs.
    Ring,
    /// Cost of `block` per request of one page at a high queue depth; [`Part::Batch`] comes on top.
    Deep,
    /// Handing a batch of requests to the driver (the doorbell, in a virtual machine an exit), once for each batch:
    /// at depth `d` every request pays `Deep + Batch / d`.
    Batch,
    /// Cost of a file in anonymous memory above `call` and [`Part::Vfs`], where a file with other pages was fitted:
    /// in place of that file's `filesystem`, `cache` and `copy`.
    MemoryFile,
}

impl Part {
    /// The stable identifier, as in TOML and JSON.
    pub fn id(self) -> &'static str {
        match self {
            Part::Vfs => "vfs",
            Part::Insert => "insert",
            Part::Zero => "zero",
            Part::Ring => "ring",
            Part::Deep => "deep",
            Part::Batch => "batch",
            Part::MemoryFile => "memory-file",
        }
    }
}

/// Named layers with costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StackModel {
    /// Version of this format.
    pub schema: u32,
    /// The measured target, or the machine.
    pub name: String,
    /// Page size that `per_page_ns` counts.
    pub page_bytes: u64,
    /// Requests the device serves at once before they queue.
    pub device_parallelism: f64,
    /// Bytes of one read-ahead request to the device.
    pub read_ahead_bytes: u64,
    /// Cost by layer. `device` is waiting time, all others are busy time.
    pub layers: BTreeMap<Layer, LayerCost>,
    /// Parts of layers known apart.
    #[serde(default)]
    pub parts: BTreeMap<Part, LayerCost>,
}

/// The version written into [`StackModel::schema`].
pub const MODEL_SCHEMA: u32 = 1;

impl StackModel {
    /// The cost of a layer; zero when the model does not know it.
    pub fn cost(&self, layer: Layer) -> Cost {
        self.layers.get(&layer).map(|c| c.cost).unwrap_or_default()
    }

    /// The cost of a part; zero when the model does not know it.
    pub fn part(&self, part: Part) -> Cost {
        self.parts.get(&part).map(|c| c.cost).unwrap_or_default()
    }

    /// Cost of one request at depth 1 by layer; `None`: not modelled (writes,
    /// no-copy methods). The same type as a measured ledger, so that one comparison treats both alike.
    ///
    /// `cached` paths pay call, filesystem, cache and copy; mapped ones memory; direct ones call, filesystem,
    /// block and the device's wait. A cold read pays the cached path, `Part::Insert` for each page, and its
    /// share of a read-ahead request of `read_ahead_bytes`.
    pub fn predict(&self, method: Method, state: CacheState, block_bytes: u64) -> Option<Ledger> {
        let bytes = block_bytes as f64;
        let pages = block_bytes.div_ceil(self.page_bytes.max(1)).max(1) as f64;
        let mut ledger = Ledger::default();
        let busy =
            |ledger: &mut Ledger, layer| ledger.add(layer, self.cost(layer).total_ns(pages, bytes), 0.0);
        match (method, state) {
            (Method::Null, _) => {}
            (Method::Syscall, _) => busy(&mut ledger, Layer::Call),
            (Method::PreadEnd, _) => {
                busy(&mut ledger, Layer::Call);
                busy(&mut ledger, Layer::Filesystem);
            }
            (Method::Direct, _) | (Method::Uring, CacheState::Direct) => {
                for layer in [Layer::Call, Layer::Filesystem, Layer::Block] {
                    busy(&mut ledger, layer);
                }
                ledger.add(Layer::Device, 0.0, self.cost(Layer::Device).total_ns(pages, bytes));
            }
            (Method::Mmap | Method::MmapSequential | Method::MmapRandom, CacheState::Warm) => {
                busy(&mut ledger, Layer::Memory);
            }
            (m, CacheState::Warm | CacheState::Cold) if m.copies() && m.can_read() => {
                for layer in [Layer::Call, Layer::Filesystem, Layer::Cache, Layer::Copy] {
                    busy(&mut ledger, layer);
                }
                if state == CacheState::Cold {
                    // A page is brought in once, however many requests share it.
                    ledger.add(
                        Layer::Cache,
                        self.part(Part::Insert).total_ns(bytes / self.page_bytes.max(1) as f64, bytes),
                        0.0,
                    );
                    let ahead = self.read_ahead_bytes.max(block_bytes) as f64;
                    let share = bytes / ahead;
                    let ahead_pages = ahead / self.page_bytes.max(1) as f64;
                    ledger.add(
                        Layer::Block,
                        self.cost(Layer::Block).total_ns(ahead_pages, ahead) * share,
                        0.0,
                    );
                    ledger.add(
                        Layer::Device,
                        0.0,
                        self.cost(Layer::Device).total_ns(ahead_pages, ahead) * share,
                    );
                }
            }
            _ => return None,
        }
        Some(ledger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn example() -> StackModel {
        let cost = |c, p, b| LayerCost::exact(Cost { per_call_ns: c, per_page_ns: p, per_byte_ns: b });
        StackModel {
            schema: MODEL_SCHEMA,
            name: "example".into(),
            page_bytes: 4096,
            device_parallelism: 4.0,
            read_ahead_bytes: 131_072,
            layers: BTreeMap::from([
                (Layer::Call, cost(100.0, 0.0, 0.0)),
                (Layer::Filesystem, cost(80.0, 0.0, 0.0)),
                (Layer::Cache, cost(60.0, 20.0, 0.0)),
                (Layer::Copy, cost(0.0, 0.0, 0.05)),
                (Layer::Memory, cost(0.0, 250.0, 0.0)),
                (Layer::Block, cost(3000.0, 30.0, 0.0)),
                (Layer::Device, cost(60_000.0, 0.0, 0.5)),
            ]),
            parts: BTreeMap::from([(Part::Vfs, cost(50.0, 0.0, 0.0)), (Part::Insert, cost(0.0, 150.0, 0.0))]),
        }
    }

    #[test]
    fn prediction_adds_up_by_hand() {
        let m = example();
        let warm = m.predict(Method::Pread, CacheState::Warm, 8192).unwrap();
        assert!((warm.total_ns() - (100.0 + 80.0 + 60.0 + 40.0 + 8192.0 * 0.05)).abs() < 1e-9);
        let direct = m.predict(Method::Direct, CacheState::Direct, 4096).unwrap();
        assert!((direct.get(Layer::Device).wait_ns - (60_000.0 + 2048.0)).abs() < 1e-9);
        let end = m.predict(Method::PreadEnd, CacheState::Warm, 8192).unwrap();
        assert!((end.total_ns() - (100.0 + 80.0)).abs() < 1e-9, "no page, no byte: {end:?}");
        assert!(m.predict(Method::Sendfile, CacheState::Warm, 4096).is_none());
    }

    #[test]
    fn part_ids_are_what_files_say() {
        use Part::*;
        for part in [Vfs, Insert, Zero, Ring, Deep, Batch, MemoryFile] {
            assert_eq!(serde_json::to_string(&part).unwrap(), format!("\"{}\"", part.id()));
        }
    }

    #[test]
    fn toml_keeps_every_number() {
        let m = example();
        let text = toml::to_string(&m).unwrap();
        assert_eq!(toml::from_str::<StackModel>(&text).unwrap(), m);
    }
}
