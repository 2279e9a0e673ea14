//! A machine from a measured stack model. Parts that the model does not know are reported.

use iowhy_core::layer::Layer;
use iowhy_core::model::{Cost, Part};
use iowhy_core::saved_model::{Measured, SavedModel, SizedCost};

use super::{DeviceKind, Machine, ReadAheadKind, UNLIMITED};

/// Size of a device that a model says nothing about; only addresses wrap at it.
const DEVICE_BYTES: u64 = 1 << 40;

/// As large as a request of the simulator.
const MAX_READ_BYTES: u64 = 1 << 30;
/// Units of a device whose requests are as far apart as was measured: no more are ever in flight.
const ANY_UNITS: u64 = 1024;

impl From<&SavedModel> for Machine {
    fn from(model: &SavedModel) -> Machine {
        machine_of(model)
    }
}

pub(super) fn machine_of(saved: &SavedModel) -> Machine {
    let model = &saved.stack;
    let mut machine = Machine {
        name: model.name.clone(),
        about: "measured by `iowhy --save-model`".to_owned(),
        page_bytes: model.page_bytes.clamp(512, 1 << 30),
        call: model.cost(Layer::Call),
        filesystem: model.cost(Layer::Filesystem),
        lookup: model.cost(Layer::Cache),
        insert: model.part(Part::Insert),
        copy: model.cost(Layer::Copy),
        mapping: model.cost(Layer::Memory),
        block: model.cost(Layer::Block),
        ..Machine::default()
    };
    machine.cache.bytes = UNLIMITED;
    machine.cache.block_bytes = model.page_bytes.clamp(512, 1 << 30).next_power_of_two();
    machine.notes.push(
        "the model does not say how large the cache is: taken as unlimited; change it with `--set cache.bytes=...`"
            .to_owned(),
    );
    let device = model.cost(Layer::Device);
    if model.read_ahead_bytes > 0 {
        machine.read_ahead.kind = ReadAheadKind::Linux;
        machine.read_ahead.bytes = model.read_ahead_bytes;
        // What a call asks for goes out whole, also where it is more than is read ahead.
        machine.cache.io_bytes = MAX_READ_BYTES.max(model.read_ahead_bytes);
    }
    machine.device.kind = DeviceKind::Ssd;
    machine.device.bytes = DEVICE_BYTES;
    // A cost of a page is a cost of its bytes here: the device is asked for whole pages.
    let per_byte = device.per_byte_ns.max(0.0) + device.per_page_ns.max(0.0) / machine.page_bytes as f64;
    let ssd = &mut machine.device.ssd;
    ssd.read_ns = device.per_call_ns.max(0.0) as u64;
    ssd.write_ns = ssd.read_ns;
    ssd.unit_bytes_per_second = rate(per_byte);
    // NaN becomes 1.
    ssd.units = (model.device_parallelism as u64).clamp(1, 1024);
    machine.scheduler.depth = ssd.units.max(32);
    measured(&mut machine, &saved.measured);
    for cost in [
        &mut machine.call,
        &mut machine.filesystem,
        &mut machine.lookup,
        &mut machine.insert,
        &mut machine.copy,
        &mut machine.mapping,
        &mut machine.block,
    ] {
        // A fit may put a small negative cost where there is none.
        for part in [&mut cost.per_call_ns, &mut cost.per_page_ns, &mut cost.per_byte_ns] {
            *part = if part.is_finite() { part.clamp(0.0, 1e15) } else { 0.0 };
        }
    }
    machine
}

/// What was measured beside the costs.
fn measured(machine: &mut Machine, measured: &Measured) {
    let page = machine.page_bytes;
    let alone_ns: f64 = [&machine.call, &machine.filesystem, &machine.block]
        .map(|cost| cost.total_ns(1.0, page as f64))
        .iter()
        .sum();
    let ssd = &mut machine.device.ssd;
    let moving_ns = match ssd.unit_bytes_per_second {
        0 => 0.0,
        rate => page as f64 * 1e9 / rate as f64,
    };
    if measured.request_gap_ns > 0.0 {
        (ssd.units, ssd.iops) = (ANY_UNITS, 1e9 / measured.request_gap_ns);
        machine.scheduler.depth = ANY_UNITS;
        // A request that is alone waits for no other.
        let most = alone_ns + ssd.read_ns as f64 + moving_ns - measured.request_gap_ns;
        ssd.batch_ns = measured.batch_ns.min(most).max(0.0) as u64;
    }
    ssd.bytes_per_second = measured.sequential_bytes_per_second.max(0.0) as u64;
    if let Some(look_up) = measured.cached.first() {
        // The whole of it is in the table; what the first byte costs is the look-up.
        machine.lookup = Cost { per_call_ns: look_up.ns, ..Cost::default() };
        let beyond = |point: &SizedCost| SizedCost { ns: point.ns - look_up.ns, ..*point };
        machine.copy_by_size = measured.cached.iter().map(beyond).collect();
    }
    let note = match &measured.direct_write {
        Some(write) => {
            let mut device = machine.device.clone();
            device.ssd.read_ns = write.device.per_call_ns.max(0.0) as u64;
            device.ssd.write_ns = device.ssd.read_ns;
            device.ssd.unit_bytes_per_second = rate(write.device.per_byte_ns);
            (device.ssd.iops, device.ssd.batch_ns, device.ssd.bytes_per_second) = (0.0, 0, 0);
            machine.device.write = Some(Box::new(device));
            machine.write_block = Some(write.block);
            "the device is its measured cost of reads and of direct writes"
        }
        None => "the device is its measured read cost, also for writes",
    };
    machine.notes.push(format!("{note}; requests in flight are as far apart as was measured"));
}

/// Bytes a second; 0: no time.
fn rate(per_byte_ns: f64) -> u64 {
    if per_byte_ns > 0.0 { (1e9 / per_byte_ns) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iowhy_core::model::{LayerCost, MODEL_SCHEMA, StackModel};

    use super::*;

    #[test]
    fn a_saved_model_is_a_machine() {
        let cost = |c, p, b| LayerCost::exact(Cost { per_call_ns: c, per_page_ns: p, per_byte_ns: b });
        let model = StackModel {
            schema: MODEL_SCHEMA,
            name: "host".into(),
            page_bytes: 4096,
            device_parallelism: 4.0,
            read_ahead_bytes: 131_072,
            layers: BTreeMap::from([
                (Layer::Call, cost(100.0, 0.0, -0.5)),
                (Layer::Device, cost(60_000.0, 0.0, 0.5)),
            ]),
            parts: BTreeMap::new(),
        };
        let saved = SavedModel { stack: model, measured: Measured::default() };
        let machine = Machine::from_toml(&toml::to_string(&saved).unwrap(), "host.toml").unwrap();
        machine.check().unwrap();
        assert_eq!((machine.call.per_call_ns, machine.call.per_byte_ns), (100.0, 0.0));
        let ssd = &machine.device.ssd;
        assert_eq!((ssd.read_ns, ssd.unit_bytes_per_second, ssd.units), (60_000, 2_000_000_000, 4));
        assert_eq!(machine.read_ahead.bytes, 131_072);
        assert_eq!(machine.notes.len(), 2);
    }

    #[test]
    fn what_was_measured_of_requests_stands_beside_the_costs_until_they_are_set() {
        let per_byte = |ns| Cost { per_byte_ns: ns, ..Cost::default() };
        let saved = SavedModel {
            stack: StackModel {
                schema: MODEL_SCHEMA,
                name: "host".into(),
                page_bytes: 4096,
                device_parallelism: 4.0,
                read_ahead_bytes: 0,
                layers: BTreeMap::from([(
                    Layer::Device,
                    LayerCost::exact(Cost { per_call_ns: 40_000.0, ..Cost::default() }),
                )]),
                parts: BTreeMap::new(),
            },
            measured: Measured {
                request_gap_ns: 10_000.0,
                batch_ns: 50_000.0,
                sequential_bytes_per_second: 1e9,
                cached: [(1, 100.0), (4096, 300.0)].map(|(bytes, ns)| SizedCost { bytes, ns }).to_vec(),
                direct_write: Some(iowhy_core::saved_model::WriteCost {
                    block: per_byte(0.1),
                    device: per_byte(2.0),
                }),
            },
        };
        let mut machine = Machine::from_toml(&toml::to_string(&saved).unwrap(), "host.toml").unwrap();
        machine.check().unwrap();
        let ssd = &machine.device.ssd;
        assert_eq!((ssd.iops, ssd.bytes_per_second), (1e5, 1_000_000_000));
        assert_eq!(ssd.batch_ns, 30_000, "a request that is alone takes its own 40 us");
        assert_eq!((machine.lookup.per_call_ns, machine.copy_by_size[1].ns), (100.0, 200.0));
        let write = machine.device.write.as_ref().unwrap();
        assert_eq!((write.ssd.unit_bytes_per_second, write.ssd.iops), (500_000_000, 0.0));
        assert_eq!(machine.write_block, Some(per_byte(0.1)));
        for key in ["copy.per_byte_ns", "block.per_call_ns"] {
            machine.set(key, &crate::machine::Value::Int(1)).unwrap();
        }
        assert!(machine.copy_by_size.is_empty() && machine.write_block.is_none());
    }
}
