//! A machine from a measured stack model. Parts that the model does not know are reported.

use iowhy_core::layer::Layer;
use iowhy_core::model::{Part, StackModel};

use super::{DeviceKind, Machine, ReadAheadKind, UNLIMITED};

/// Size of a device that a model says nothing about; only addresses wrap at it.
const DEVICE_BYTES: u64 = 1 << 40;

impl From<&StackModel> for Machine {
    fn from(model: &StackModel) -> Machine {
        machine_of(model)
    }
}

pub(super) fn machine_of(model: &StackModel) -> Machine {
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
        machine.cache.io_bytes = model.read_ahead_bytes.max(machine.cache.block_bytes);
    }
    machine.device.kind = DeviceKind::Ssd;
    machine.device.bytes = DEVICE_BYTES;
    // A cost of a page is a cost of its bytes here: the device is asked for whole pages.
    let per_byte = device.per_byte_ns.max(0.0) + device.per_page_ns.max(0.0) / machine.page_bytes as f64;
    let ssd = &mut machine.device.ssd;
    ssd.read_ns = device.per_call_ns.max(0.0) as u64;
    ssd.write_ns = ssd.read_ns;
    ssd.unit_bytes_per_second = if per_byte > 0.0 { (1e9 / per_byte) as u64 } else { 0 };
    // NaN becomes 1.
    ssd.units = (model.device_parallelism as u64).clamp(1, 1024);
    machine.scheduler.depth = ssd.units.max(32);
    machine.notes.push(
        "the device is its measured read cost, also for writes, with as many side by side as were measured"
            .to_owned(),
    );
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA};

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
        let machine = Machine::from_toml(&toml::to_string(&model).unwrap(), "host.toml").unwrap();
        machine.check().unwrap();
        assert_eq!((machine.call.per_call_ns, machine.call.per_byte_ns), (100.0, 0.0));
        let ssd = &machine.device.ssd;
        assert_eq!((ssd.read_ns, ssd.unit_bytes_per_second, ssd.units), (60_000, 2_000_000_000, 4));
        assert_eq!(machine.read_ahead.bytes, 131_072);
        assert_eq!(machine.notes.len(), 2);
    }
}
