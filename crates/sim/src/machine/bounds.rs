//! Bounds on the times of a machine: nothing takes longer than an hour a request, a page or a byte. A setting beyond that is
//! refused by name and value. Deliberately absent: sums over a run, which the engine checks when the run is over.

use iowhy_core::model::Cost;
use iowhy_core::problem::Problem;

use super::{DeviceConfig, DeviceKind, Machine};
use crate::volume::SECTOR_BYTES;

/// Longest time of one request on one part of the machine, in seconds.
const MAX_SECONDS: f64 = 3600.0;

/// Refuses times and rates that make one request longer than an hour.
///
/// # Errors
/// The first such key, its value, and the time it leads to.
pub(super) fn check(machine: &Machine) -> Result<(), Problem> {
    let costs: [(&str, &Cost); 7] = [
        ("call", &machine.call),
        ("filesystem", &machine.filesystem),
        ("lookup", &machine.lookup),
        ("insert", &machine.insert),
        ("copy", &machine.copy),
        ("mapping", &machine.mapping),
        ("block", &machine.block),
    ];
    for (layer, cost) in costs {
        for (name, unit, ns) in [
            ("per_call_ns", "a request", cost.per_call_ns),
            ("per_page_ns", "a page", cost.per_page_ns),
            ("per_byte_ns", "a byte", cost.per_byte_ns),
        ] {
            let key = format!("{layer}.{name}");
            time(machine, &key, ns, ns / 1e9, unit)?;
        }
    }
    let command_ns = machine.bus.command_ns as f64;
    time(machine, "bus.command_ns", command_ns, command_ns / 1e9, "a command")?;
    for index in 0..machine.members.len().max(1) {
        let (device, _) = machine.member(index);
        check_device(machine, device)?;
        device.write.as_deref().map_or(Ok(()), |write| check_device(machine, write))?;
    }
    Ok(())
}

fn check_device(machine: &Machine, device: &DeviceConfig) -> Result<(), Problem> {
    let ns = |key: &str, ns: u64| time(machine, key, ns as f64, ns as f64 / 1e9, "a request");
    let rate = |key: &str, a_second: f64, amount: f64, unit: &str| {
        // 0 stands for no limit.
        let seconds = if a_second > 0.0 { amount / a_second } else { 0.0 };
        time(machine, key, a_second, seconds, unit)
    };
    let sector = SECTOR_BYTES as f64;
    match device.kind {
        DeviceKind::Missing | DeviceKind::Null => Ok(()),
        // The disk itself refuses single times of more than 1000 s; a seek is a sum that grows with the distance.
        DeviceKind::Rotating => {
            let disk = &device.rotating;
            let cylinders = disk.zones.iter().map(|zone| zone.last_cylinder).max().unwrap_or(0) as f64;
            let seek = |ms: f64| ms / 1e3;
            let far = [
                ("device.seek_a_ms", disk.seek_a_ms, 1.0),
                ("device.seek_b_ms", disk.seek_b_ms, cylinders.sqrt()),
                ("device.seek_c_ms", disk.seek_c_ms, cylinders),
            ];
            far.into_iter()
                .try_for_each(|(key, ms, times)| time(machine, key, ms, seek(ms * times), "the longest seek"))
        }
        DeviceKind::Ssd => {
            let ssd = &device.ssd;
            ns("device.read_ns", ssd.read_ns)?;
            ns("device.write_ns", ssd.write_ns)?;
            ns("device.batch_ns", ssd.batch_ns)?;
            rate("device.iops", ssd.iops, 1.0, "a request")
        }
        DeviceKind::Cloud => {
            let cloud = &device.cloud;
            ns("device.base_ns", cloud.base_ns)?;
            rate("device.iops", cloud.iops, 1.0, "a request")?;
            rate("device.bytes_per_second", cloud.bytes_per_second, sector, "a sector")
        }
    }
}

/// Refuses `seconds` of more than an hour; `value` is what the key was set to.
fn time(machine: &Machine, key: &str, value: f64, seconds: f64, unit: &str) -> Result<(), Problem> {
    // Not a number is refused with the rest.
    if seconds <= MAX_SECONDS {
        return Ok(());
    }
    Err(Problem::refused(format!(
        "machine `{}`: `{key}` is {value}: {unit} would take {:.1} hours, and 1 hour is the most",
        machine.name,
        seconds / MAX_SECONDS
    ))
    .hint(format!(
        "`{key}` is probably off by some powers of ten; `iowhy sim --machine keys` lists the units"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Value;

    fn refusal(settings: &[(&str, &str)]) -> Option<Problem> {
        let mut machine = Machine::default();
        for (path, value) in settings {
            machine.set(path, &Value::Text((*value).to_owned())).unwrap();
        }
        machine.check().err()
    }

    #[test]
    fn a_request_of_more_than_an_hour_is_refused_by_name_and_value() {
        let ssd = ("device.kind", "ssd");
        let cloud = ("device.kind", "cloud");
        let disk = ("device.model", "st32171w");
        for (device, key, bad, good) in [
            (ssd, "device.iops", "0.000001", "0.001"),
            (cloud, "device.iops", "0.0002", "0.0003"),
            (cloud, "device.bytes_per_second", "0", "1"),
            (ssd, "device.read_ns", "18446744073709551615", "1s"),
            (ssd, "device.write_ns", "3601s", "3600s"),
            (cloud, "device.base_ns", "3601s", "3600s"),
            (ssd, "bus.command_ns", "3601s", "3600s"),
            (ssd, "call.per_call_ns", "1e15", "1e12"),
            (ssd, "copy.per_byte_ns", "1e13", "1"),
            (disk, "device.seek_c_ms", "1000000", "0.01"),
        ] {
            assert_eq!(refusal(&[device, (key, good)]), None, "{key} {good}");
            if bad == "0" {
                assert_eq!(refusal(&[device, (key, bad)]), None, "{key}: 0 is no limit");
                continue;
            }
            let problem = refusal(&[device, (key, bad)]).unwrap_or_else(|| panic!("{key} {bad} was taken"));
            assert!(problem.message.contains(key) && problem.message.contains("hour"), "{problem}");
            assert!(problem.hint.is_some() && problem.exit_code() == 2, "{problem}");
        }
        let problem = refusal(&[ssd, ("device.iops", "0.000001")]).unwrap();
        assert!(problem.message.contains("`device.iops` is 0.000001"), "{problem}");
    }
}
