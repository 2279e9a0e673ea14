//! The volume of a machine, and machines of disks with measured service curves.

use iowhy_core::problem::Problem;
use iowhy_core::service::{DiskCurves, ServiceCurve};

use super::{DeviceConfig, DeviceKind, JoinKind, Machine, MemberConfig, Order, SchedulerConfig, Zone};
use crate::volume::{Join, SECTOR_BYTES, Volume};

/// Usual RPM of a disk with an arm, where no measurement tells.
const USUAL_RPM: f64 = 7200.0;
/// Heads of one; only the size of a cylinder follows from them.
const USUAL_HEADS: u64 = 4;
/// Commands that a disk holds at once, where it serves them one by one.
const USUAL_DEPTH: u64 = 32;

impl Machine {
    /// Its volume over devices of `sectors` sectors each.
    ///
    /// # Errors
    /// No device, or devices too small for the volume.
    pub(crate) fn volume_of(&self, sectors: u64) -> Result<Volume, Problem> {
        let join = match self.volume.kind {
            JoinKind::Single | JoinKind::Concat => Join::Concat,
            JoinKind::Stripe => Join::Stripe { interleave: self.volume.interleave },
            JoinKind::Mirror => Join::Mirror,
        };
        Volume::new(join, self.device.count as u32, sectors, self.volume.merge)
    }

    /// A stripe of disks with these curves, without cache, read-ahead or CPU costs. The smallest disk limits all.
    pub fn from_disks(disks: &[DiskCurves], interleave: u64) -> Machine {
        let mut machine = Machine { name: "these disks".to_owned(), ..Machine::default() };
        machine.about = "the service curves that were measured".to_owned();
        machine.cache.bytes = 0;
        machine.volume.kind = if disks.len() > 1 { JoinKind::Stripe } else { JoinKind::Single };
        machine.volume.interleave = interleave;
        // Turns that follow one another on a disk go down as one command, as every striping driver does it.
        machine.volume.merge = true;
        let members: Vec<MemberConfig> = disks.iter().map(member).collect();
        if let Some(first) = members.first() {
            machine.device = first.device.clone();
            machine.scheduler = first.scheduler.clone();
            if members.iter().any(|other| other != first) {
                machine.members = members;
            }
        }
        machine.device.count = disks.len() as u64;
        machine
    }
}

/// One disk and the queue before it.
fn member(disk: &DiskCurves) -> MemberConfig {
    let mut member = one_way(&disk.read);
    if let Some(write) = &disk.write {
        let write = one_way(write);
        member.scheduler.depth = member.scheduler.depth.max(write.scheduler.depth);
        member.device.write = Some(Box::new(write.device));
    }
    member
}

fn one_way(curve: &ServiceCurve) -> MemberConfig {
    let Machine { mut device, mut scheduler, .. } = Machine::default();
    device.bytes = curve.size_bytes / SECTOR_BYTES * SECTOR_BYTES;
    if curve.positioning_ns > 0.0 {
        with_an_arm(&mut device, &mut scheduler, curve);
    } else if curve.burst_s > 0.0 {
        with_buckets(&mut device, &mut scheduler, curve);
    } else {
        without(&mut device, &mut scheduler, curve);
    }
    MemberConfig { device, scheduler }
}

fn without(device: &mut DeviceConfig, scheduler: &mut SchedulerConfig, curve: &ServiceCurve) {
    device.kind = DeviceKind::Ssd;
    let ssd = &mut device.ssd;
    ssd.read_ns = curve.access_ns.max(0.0) as u64;
    ssd.write_ns = ssd.read_ns;
    ssd.unit_bytes_per_second = if curve.per_byte_ns > 0.0 { (1e9 / curve.per_byte_ns) as u64 } else { 0 };
    ssd.units = curve.units.clamp(1, 1024);
    ssd.iops = curve.most_requests_per_second.max(0.0);
    ssd.bytes_per_second = curve.most_bytes_per_second.max(0.0) as u64;
    scheduler.depth = ssd.units.max(USUAL_DEPTH);
}

/// A volume whose limits are token buckets.
fn with_buckets(device: &mut DeviceConfig, scheduler: &mut SchedulerConfig, curve: &ServiceCurve) {
    device.kind = DeviceKind::Cloud;
    let cloud = &mut device.cloud;
    // A bucket holds one token at least: without depth it would let nothing through together.
    cloud.base_ns = curve.access_ns.max(0.0) as u64;
    cloud.iops = curve.most_requests_per_second.max(0.0);
    cloud.iops_burst = (cloud.iops * curve.burst_s).max(1.0);
    cloud.bytes_per_second = curve.most_bytes_per_second.max(0.0);
    cloud.bytes_burst = (cloud.bytes_per_second * curve.burst_s).max(1.0);
    cloud.units = curve.units.clamp(1, 1024);
    scheduler.depth = cloud.units.max(USUAL_DEPTH);
}

/// A disk that turns: half a turn of the positioning is rotation, the rest the arm, whatever the distance.
fn with_an_arm(device: &mut DeviceConfig, scheduler: &mut SchedulerConfig, curve: &ServiceCurve) {
    device.kind = DeviceKind::Rotating;
    scheduler.order = Order::Clook;
    scheduler.depth = 1;
    let turn_s = 60.0 / USUAL_RPM;
    let positioning_ms = curve.positioning_ns / 1e6;
    let rate = curve.media_bytes_per_second();
    // A track holds what passes in a turn; a disk whose bytes cost nothing has no tracks, which no measurement gives.
    let track = (rate.min(1e12) * turn_s / SECTOR_BYTES as f64).round().clamp(1.0, 1e6) as u64;
    let cylinder = track * USUAL_HEADS;
    let cylinders = (device.bytes / SECTOR_BYTES).div_ceil(cylinder).max(1);
    let rotating = &mut device.rotating;
    rotating.rpm = USUAL_RPM;
    rotating.heads = USUAL_HEADS;
    rotating.zones =
        vec![Zone { last_cylinder: cylinders - 1, sectors: track, track_skew: 0, cylinder_skew: 0 }];
    rotating.seek_a_ms = (positioning_ms - turn_s * 500.0).max(0.0);
    rotating.command_ms = ((curve.access_ns - curve.positioning_ns) / 1e6).max(0.0);
    rotating.hit_command_ms = rotating.command_ms;
    rotating.buffer_segments = 8;
    rotating.buffer_sectors = 512;
    rotating.buffer_read_ahead = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    fn time_s(machine: &Machine, workload: &str) -> f64 {
        let workload = Workload::parse(workload).unwrap();
        machine.check().unwrap();
        crate::run(machine, workload.load(1), 1).unwrap().time_ns as f64 / 1e9
    }

    fn equal(curve: ServiceCurve, disks: usize, interleave: u64) -> Machine {
        Machine::from_disks(&vec![DiskCurves { read: curve, write: None }; disks], interleave)
    }

    fn limits() -> ServiceCurve {
        ServiceCurve {
            access_ns: 0.0,
            per_byte_ns: 0.0,
            units: 256,
            most_requests_per_second: 200.0,
            most_bytes_per_second: 20e6,
            positioning_ns: 0.0,
            burst_s: 0.0,
            size_bytes: 1 << 30,
            residual_percent: 0.0,
        }
    }

    /// One reader of a megabyte is as fast as one disk where a request stays on one, and as three where it is on three.
    #[test]
    fn limited_disks_have_their_rates_alone_and_together() {
        let load = "readers=1,requests=60,bytes=3m,size=1g,pattern=permuted,method=direct";
        let alone = time_s(&equal(limits(), 3, 32_768), load);
        let together = time_s(&equal(limits(), 3, 128), load);
        let bytes = 60.0 * 3.0 * 1_048_576.0;
        assert!((alone / (bytes / 20e6) - 1.0).abs() < 0.05, "{alone}");
        assert!((together / (bytes / 60e6) - 1.0).abs() < 0.05, "{together}");
        // Requests by the limit of requests: three parts cost as much as three requests.
        let many = "readers=12,requests=200,bytes=48k,size=1g,pattern=permuted,method=direct";
        let whole = time_s(&equal(limits(), 3, 96), many);
        let split = time_s(&equal(limits(), 3, 32), many);
        assert!(split > 2.5 * whole, "{split} {whole}");
    }

    /// Buckets give the same rates in the long run, and more than strict pacing where few readers leave disks idle in turns.
    #[test]
    fn buckets_make_up_for_idle_moments() {
        let load = "readers=4,requests=2000,bytes=64k,size=1g,pattern=permuted,method=direct";
        let strict = time_s(&equal(limits(), 3, 1024), load);
        let lenient = time_s(&equal(ServiceCurve { burst_s: 0.1, ..limits() }, 3, 1024), load);
        let limit = 8000.0 / 600.0;
        assert!(lenient < 0.9 * strict && lenient > 0.95 * limit, "{lenient} {strict} {limit}");
    }

    /// A single disk takes for each request what its curve says.
    #[test]
    fn one_disk_is_its_curve() {
        let drive = ServiceCurve {
            access_ns: 80_000.0,
            per_byte_ns: 1.0,
            units: 4,
            most_requests_per_second: 0.0,
            most_bytes_per_second: 0.0,
            ..limits()
        };
        let time = time_s(
            &equal(drive, 1, 128),
            "readers=1,requests=100,bytes=64k,size=1g,pattern=permuted,method=direct",
        );
        assert!((time / (100.0 * drive.request_ns(65_536) / 1e9) - 1.0).abs() < 0.01, "{time}");
        let arm = ServiceCurve {
            access_ns: 13_500_000.0,
            positioning_ns: 13_500_000.0,
            per_byte_ns: 100.0,
            units: 1,
            ..drive
        };
        let by_chance = time_s(
            &equal(arm, 1, 128),
            "readers=1,requests=200,bytes=8k,size=1g,pattern=permuted,method=direct",
        );
        assert!((by_chance / (200.0 * arm.request_ns(8192) / 1e9) - 1.0).abs() < 0.1, "{by_chance}");
    }

    /// Requests that each stay on one disk, over disks one of which is half as fast: it has a third of the requests, and all
    /// wait for it in the end. Without it two thirds of the disks are faster.
    #[test]
    fn the_slowest_member_decides_and_two_without_it_are_faster() {
        let (fast, slow) = (
            limits(),
            ServiceCurve { most_requests_per_second: 50.0, most_bytes_per_second: 5e6, ..limits() },
        );
        let disk = |read| DiskCurves { read, write: None };
        let load = "readers=24,requests=150,bytes=64k,size=1g,pattern=permuted,method=direct";
        let machine = Machine::from_disks(&[disk(fast), disk(slow), disk(fast)], 128);
        assert_eq!(machine.members.len(), 3);
        let (mixed, without) = (time_s(&machine, load), time_s(&equal(fast, 2, 128), load));
        // 3600 requests: 1200 at 50 a second; 1800 of each of two at 200 a second.
        assert!((mixed / 24.0 - 1.0).abs() < 0.1, "{mixed}");
        assert!((without / 9.0 - 1.0).abs() < 0.1, "{without}");
        // A key of the device is one of all members.
        let mut same = machine.clone();
        same.set("device.iops", &crate::machine::Value::Int(200)).unwrap();
        same.set("device.bytes_per_second", &crate::machine::Value::Int(20_000_000)).unwrap();
        assert_eq!(time_s(&same, load), time_s(&equal(fast, 3, 128), load));
        same.device.count = 2;
        assert!(same.check().unwrap_err().message.contains("device.count"));
    }

    #[test]
    fn writes_go_by_their_own_curve() {
        let slow = ServiceCurve { most_requests_per_second: 50.0, ..limits() };
        let disk = DiskCurves { read: limits(), write: Some(slow) };
        let load = |write| {
            format!("readers=8,requests=100,bytes=4k,size=1g,pattern=permuted,method=direct,write={write}")
        };
        let machine = Machine::from_disks(&[disk], 128);
        let (reads, writes) = (time_s(&machine, &load(0)), time_s(&machine, &load(100)));
        assert!((reads / 4.0 - 1.0).abs() < 0.02 && (writes / 16.0 - 1.0).abs() < 0.02, "{reads} {writes}");
    }
}
