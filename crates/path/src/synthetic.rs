//! Cells with known contents, for the tests of this crate. Not compiled into the product.

use std::collections::BTreeMap;

use iowhy_core::cell::{CellRun, Sample, StateCheck};
use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::histogram::Histogram;
use iowhy_core::layer::Layer;
use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA, Part, StackModel};
use iowhy_core::rng::Rng;
use iowhy_core::workload::{CacheState, Method, Workload};

use crate::calibration::CalibrationCell;

/// Builds a cell whose every request costs the same, optionally with noise.
pub(crate) struct Rounds {
    workload: Workload,
    rounds: u32,
    busy_ns: f64,
    wait_ns: f64,
    run_delay_ns: f64,
    noise: f64,
    device: Option<(f64, f64, f64)>,
}

/// Requests in one round: a nanosecond of rounding is then a relative error below 1e-12.
const REQUESTS: u64 = 10_000_000_000;

impl Rounds {
    pub(crate) fn new(workload: Workload) -> Self {
        Rounds {
            workload,
            rounds: 9,
            busy_ns: 0.0,
            wait_ns: 0.0,
            run_delay_ns: 0.0,
            noise: 0.0,
            device: None,
        }
    }
    pub(crate) fn rounds(mut self, rounds: u32) -> Self {
        self.rounds = rounds;
        self
    }
    pub(crate) fn busy(mut self, ns: f64) -> Self {
        self.busy_ns = ns;
        self
    }
    pub(crate) fn wait(mut self, ns: f64) -> Self {
        self.wait_ns = ns;
        self
    }
    pub(crate) fn run_delay(mut self, ns: f64) -> Self {
        self.run_delay_ns = ns;
        self
    }
    /// Relative noise, uniform within plus and minus this share, independent for each round and cell.
    pub(crate) fn noise(mut self, share: f64) -> Self {
        self.noise = share;
        self
    }
    /// Requests, bytes and request time of the device for one request.
    pub(crate) fn device(mut self, requests: f64, bytes: f64, request_ns: f64) -> Self {
        self.device = Some((requests, bytes, request_ns));
        self
    }
    pub(crate) fn build(self) -> CellRun {
        let w = &self.workload;
        let key = format!("{}-{}-{}x{}x{}", w.method.id(), w.state.id(), w.block_bytes, w.threads, w.depth);
        let mut rng = Rng::new(w.seed ^ w.block_bytes.wrapping_mul(0x9e37) ^ u64::from(w.method as u8) << 40);
        let total = |per_request: f64| (per_request * REQUESTS as f64).round() as u64;
        let samples = (0..self.rounds)
            .map(|round| {
                let factor = 1.0 + self.noise * (2.0 * rng.unit() - 1.0);
                let (cpu, wait, delay) =
                    (total(self.busy_ns * factor), total(self.wait_ns * factor), total(self.run_delay_ns));
                let thread = cpu + wait + delay;
                Sample {
                    round,
                    requests: REQUESTS,
                    claimed_bytes: REQUESTS * w.block_bytes,
                    wall_ns: thread / w.threads.max(1) as u64,
                    first_done_ns: thread / w.threads.max(1) as u64,
                    thread_ns: thread,
                    cpu_ns: cpu,
                    run_delay_ns: delay,
                    device_requests: self.device.map(|d| total(d.0)),
                    device_bytes: self.device.map(|d| total(d.1)),
                    device_request_ns: self.device.map(|d| total(d.2)),
                    ..Sample::default()
                }
            })
            .collect();
        CellRun {
            workload: self.workload,
            key,
            samples,
            latency: Histogram::default(),
            state_check: StateCheck::Verified,
            dropped: Vec::new(),
            failure: None,
        }
    }
}

/// A cell over real byte totals: `claimed` and `device` bytes in one round of one request size.
pub(crate) fn totals(workload: Workload, claimed_bytes: u64, device_bytes: Option<u64>) -> CellRun {
    let mut run = Rounds::new(workload).rounds(1).busy(1000.0).build();
    let requests = claimed_bytes / run.workload.block_bytes.max(1);
    let sample = &mut run.samples[0];
    sample.requests = requests;
    sample.claimed_bytes = claimed_bytes;
    sample.device_bytes = device_bytes;
    sample.device_requests = device_bytes.map(|b| b.div_ceil(131_072));
    run
}

/// Facts of a plain, fully written file.
pub(crate) fn facts(size_bytes: u64) -> TargetFacts {
    TargetFacts {
        kind: TargetKind::File,
        name: "/data/big.bin".into(),
        size_bytes,
        hole_bytes: Some(0),
        unwritten_bytes: Some(0),
        shared_bytes: Some(0),
        encoded_bytes: Some(0),
        extents: Some(1),
        memory_backed: false,
        served_by: None,
        overwritten: None,
        direct_supported: Some(true),
        direct_alignment_bytes: Some(512),
        cache_visible: true,
        stripe: None,
    }
}

/// A model with plain costs: what the calibration is generated from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    pub(crate) call: f64,
    pub(crate) vfs: f64,
    pub(crate) file: f64,
    pub(crate) zero: f64,
    pub(crate) cache: (f64, f64),
    pub(crate) copy: f64,
    pub(crate) memory: (f64, f64),
    pub(crate) block: (f64, f64, f64),
    pub(crate) device: (f64, f64),
    /// In place of `call` in a ring with many requests.
    pub(crate) ring: f64,
    /// In place of `block` with many in flight: for each request, and for each batch.
    pub(crate) deep: (f64, f64),
}

impl Truth {
    pub(crate) const EXAMPLE: Truth = Truth {
        call: 90.0,
        vfs: 45.0,
        file: 30.0,
        zero: 0.02,
        cache: (55.0, 24.0),
        copy: 0.05,
        memory: (12.0, 210.0),
        block: (2500.0, 35.0, 0.01),
        device: (60_000.0, 0.4),
        ring: 70.0,
        deep: (1800.0, 30_000.0),
    };

    pub(crate) fn model(&self) -> StackModel {
        let cost = |c, p, b| LayerCost::exact(Cost { per_call_ns: c, per_page_ns: p, per_byte_ns: b });
        StackModel {
            schema: MODEL_SCHEMA,
            name: "truth".into(),
            page_bytes: 4096,
            device_parallelism: 1.0,
            read_ahead_bytes: 131_072,
            layers: BTreeMap::from([
                (Layer::Call, cost(self.call, 0.0, 0.0)),
                (Layer::Filesystem, cost(self.vfs + self.file, 0.0, 0.0)),
                (Layer::Cache, cost(self.cache.0, self.cache.1, 0.0)),
                (Layer::Copy, cost(0.0, 0.0, self.copy)),
                (Layer::Memory, cost(self.memory.0, self.memory.1, 0.0)),
                (Layer::Block, cost(self.block.0, self.block.1, self.block.2)),
                (Layer::Device, cost(self.device.0, 0.0, self.device.1)),
            ]),
            parts: BTreeMap::from([
                (Part::Vfs, cost(self.vfs, 0.0, 0.0)),
                (Part::Zero, cost(0.0, 0.0, self.zero)),
            ]),
        }
    }

    /// What a calibration cell costs by its definition: busy and waiting nanoseconds.
    pub(crate) fn cell_ns(&self, cell: CalibrationCell, block_bytes: u64) -> (f64, f64) {
        let (bytes, pages) = (block_bytes as f64, block_bytes.div_ceil(4096) as f64);
        let model = self.model();
        let of = |method, state| {
            model.predict(method, state, block_bytes).map_or((0.0, 0.0), |l| {
                l.entries().iter().fold((0.0, 0.0), |(b, w), e| (b + e.busy_ns, w + e.wait_ns))
            })
        };
        match cell {
            CalibrationCell::Syscall => (self.call, 0.0),
            CalibrationCell::NullDevice => (self.call + self.vfs, 0.0),
            CalibrationCell::EndOfFile => of(Method::PreadEnd, CacheState::Warm),
            CalibrationCell::ZeroDevice => (self.call + self.vfs + self.zero * bytes, 0.0),
            CalibrationCell::Memory => {
                (self.call + self.vfs + self.cache.0 + self.cache.1 * pages + self.copy * bytes, 0.0)
            }
            CalibrationCell::CachedFile => of(Method::Pread, CacheState::Warm),
            CalibrationCell::MappedFile => of(Method::Mmap, CacheState::Warm),
            CalibrationCell::DirectFile | CalibrationCell::RawDevice => {
                of(Method::Direct, CacheState::Direct)
            }
            CalibrationCell::ColdFile => of(Method::Pread, CacheState::Cold),
            CalibrationCell::RingMemory => {
                (of(Method::Pread, CacheState::Warm).0 - self.call + self.ring, 0.0)
            }
            CalibrationCell::DirectDeep => (self.deep_busy_ns(32), 0.0),
        }
    }

    /// CPU time of a direct page with `depth` in flight.
    pub(crate) fn deep_busy_ns(&self, depth: usize) -> f64 {
        self.ring + self.vfs + self.file + self.deep.0 + self.deep.1 / depth as f64
    }

    /// A direct page with `depth` in flight, on a device that is never idle.
    pub(crate) fn deep_cell(&self, depth: usize, noise: f64, seed: u64) -> CellRun {
        let mut workload = Workload::reads(Method::Uring, CacheState::Direct, 4096, 1 << 30);
        workload.depth = depth;
        workload.seed = seed.wrapping_add(depth as u64 * 7_000_003);
        let wait = 7000.0;
        Rounds::new(workload)
            .rounds(15)
            .busy(self.deep_busy_ns(depth))
            .wait(wait)
            .noise(noise)
            .device(1.0, 4096.0, wait * depth as f64)
            .build()
    }

    /// One cell of the calibration.
    pub(crate) fn cell(&self, cell: CalibrationCell, block_bytes: u64, noise: f64, seed: u64) -> CellRun {
        let (busy, wait) = self.cell_ns(cell, block_bytes);
        let (method, state) = match cell {
            CalibrationCell::Syscall => (Method::Syscall, CacheState::None),
            CalibrationCell::EndOfFile => (Method::PreadEnd, CacheState::Warm),
            CalibrationCell::RingMemory => (Method::Uring, CacheState::Warm),
            CalibrationCell::DirectDeep => return self.deep_cell(32, noise, seed),
            CalibrationCell::NullDevice | CalibrationCell::ZeroDevice => (Method::Pread, CacheState::None),
            CalibrationCell::Memory | CalibrationCell::CachedFile => (Method::Pread, CacheState::Warm),
            CalibrationCell::MappedFile => (Method::Mmap, CacheState::Warm),
            CalibrationCell::DirectFile | CalibrationCell::RawDevice => (Method::Direct, CacheState::Direct),
            CalibrationCell::ColdFile => (Method::Pread, CacheState::Cold),
        };
        let mut workload = Workload::reads(method, state, block_bytes, 1 << 30);
        workload.seed = seed.wrapping_add(cell as u64 * 1_000_003);
        if cell == CalibrationCell::RingMemory {
            workload.depth = 32;
        }
        let rounds = Rounds::new(workload).rounds(15).busy(busy).wait(wait).noise(noise);
        match cell {
            CalibrationCell::DirectFile | CalibrationCell::RawDevice => {
                rounds.device(1.0, block_bytes as f64, wait).build()
            }
            CalibrationCell::ColdFile => {
                let share = block_bytes as f64 / 131_072f64.max(block_bytes as f64);
                rounds.device(share, block_bytes as f64, wait).build()
            }
            _ => rounds.build(),
        }
    }
}
