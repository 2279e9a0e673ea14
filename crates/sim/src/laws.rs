//! Laws that every run must obey: conservation, Little's law, utilisation, a ledger that sums up.

use crate::outcome::Outcome;

/// Holds an outcome against its laws; the first one that it breaks, in words.
///
/// # Errors
/// A broken law: a fault of the simulator, never of its input.
pub fn check(outcome: &Outcome) -> Result<(), String> {
    let o = outcome;
    same("requests issued and completed", o.issued.into(), o.requests.into())?;
    same("requests and latencies", o.requests.into(), o.latency.count().into())?;
    same("requests with an open ledger and none", o.open_ledgers.into(), 0)?;
    same("the ledger and the time of the clients", o.ledger.total().into(), o.client_time_ns)?;
    let done: u64 = o.devices.iter().map(|device| device.bytes).sum();
    same("bytes requested from the volume and done by devices", o.volume_bytes.into(), done.into())?;
    for (index, device) in o.devices.iter().enumerate() {
        same(
            &format!("commands arrived and done at device {index}"),
            device.arrived.into(),
            device.done.into(),
        )?;
        // Little: the mean number present is the rate of arrival times the mean time of stay. Both sides times the run's length.
        let what = format!("the number present over time and the sum of stays at device {index}");
        same(&what, device.present_area_ns, device.resident_ns)?;
        if device.utilisation(o.settled_ns) > 1.0 + 1e-12 {
            return Err(format!("device {index} is busy for {} ns of {}", device.busy_ns, o.settled_ns));
        }
    }
    if o.bus_busy_ns > o.settled_ns {
        return Err(format!("the bus is busy for {} ns of {}", o.bus_busy_ns, o.settled_ns));
    }
    if let Some(cpus) = o.cpus
        && u128::from(o.cpu_busy_ns) > u128::from(o.settled_ns) * u128::from(cpus)
    {
        return Err(format!("{cpus} CPUs are busy for {} ns of {}", o.cpu_busy_ns, o.settled_ns));
    }
    if let Some(cache) = &o.cache
        && (cache.hits + cache.coming > cache.lookups || cache.pool_hits > cache.pool_lookups)
    {
        return Err(format!("more blocks were found than looked for: {cache:?}"));
    }
    Ok(())
}

fn same(what: &str, one: u128, other: u128) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{what} differ: {one} and {other}")) }
}
