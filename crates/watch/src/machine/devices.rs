//! Requests of all devices: how many, how long in the queue and at the device, by whom. A request is known by where the kernel holds it.
//! What is under way at a device by subject goes to the [`Ledger`].

use std::collections::HashMap;
use std::path::Path;

use iowhy_core::machine::{Device, DeviceUser};
use iowhy_core::tails::DeviceSecond;
use iowhy_linux::block::sysfs::Sysfs;
use iowhy_linux::mounts::{self, Mount};

use super::ledger::{Ledger, MAX_DEVICES};
use crate::block::BusyTime;
use crate::event::{BlockRequest, Operation, SECTOR, Step};

/// Requests under way that are remembered; more than that have been lost from sight.
const MAX_UNDER_WAY: usize = 65_536;
/// Threads whose last request is remembered.
const MAX_THREADS: usize = 65_536;
/// Subjects told apart at a device.
const MAX_USERS: usize = 256;
/// Subjects named of a device in a second.
const MAX_USERS_OF_A_SECOND: usize = 3;
/// Mount points named of a device.
const MAX_MOUNTS: usize = 3;

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    device: usize,
    subject: u32,
    tid: Option<u32>,
    operation: Operation,
    since_ns: u64,
    issued_ns: Option<u64>,
    sector: u64,
    left_bytes: u64,
}

/// Who makes a request: its subject; its thread, where that waits for it itself; whether it is charged for what the kernel writes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker {
    pub(super) subject: u32,
    pub(super) tid: Option<u32>,
    pub(super) charged: bool,
}

/// A request that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) device: usize,
    /// Whose it is: of a write-back, whose data it held.
    pub(super) subject: u32,
    since_ns: u64,
    issued_ns: Option<u64>,
    pub(super) at_ns: u64,
}

impl Served {
    /// The part of this stretch in which it was in the queue of its device.
    pub(super) fn queue_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let queued_to = self.issued_ns.unwrap_or(self.at_ns).min(to_ns);
        queued_to.saturating_sub(self.since_ns.max(from_ns))
    }
}

/// The devices.
#[derive(Debug, Default)]
pub(super) struct Devices {
    pub(super) all: Vec<Device>,
    busy: Vec<BusyTime>,
    /// Where the interval begins: of requests under way the time before it is told.
    from_ns: u64,
    mounts: Vec<Mount>,
    by_number: HashMap<(u32, u32), usize>,
    under_way: HashMap<u64, UnderWay>,
    /// The last request that a thread made itself.
    last: HashMap<u32, Served>,
    /// The last request that was done on each CPU.
    done_on: HashMap<u32, Served>,
    /// The counters of each device when the last second ended.
    before: Vec<Device>,
    lost: u32,
    /// Requests that there was no room to remember.
    pub(super) forgotten: u64,
}

impl Devices {
    /// The index of a device; `None`: beyond the bound.
    pub(super) fn index(&mut self, number: (u32, u32)) -> Option<usize> {
        if let Some(index) = self.by_number.get(&number) {
            return Some(*index);
        }
        if self.all.len() >= MAX_DEVICES {
            return None;
        }
        self.all.push(Device { number, ..Device::default() });
        self.busy.push(BusyTime::default());
        self.by_number.insert(number, self.all.len() - 1);
        Some(self.all.len() - 1)
    }

    /// The request that this thread made and that was done after that time.
    pub(super) fn served(&self, tid: u32, since_ns: u64) -> Option<&Served> {
        self.last.get(&tid).filter(|served| served.at_ns >= since_ns)
    }

    /// Where a request is that this thread made itself.
    pub(super) fn own_requests(&self) -> HashMap<u32, usize> {
        self.under_way.values().filter_map(|known| Some((known.tid?, known.device))).collect()
    }

    /// The request that was done on this CPU last.
    pub(super) fn done_on(&self, cpu: u32) -> Option<&Served> {
        self.done_on.get(&cpu)
    }

    /// What each device did since the last time that this was asked.
    pub(super) fn second(&mut self) -> Vec<DeviceSecond> {
        let mut seconds = Vec::new();
        for (index, now) in self.all.iter().enumerate() {
            let none = Device::default();
            let before = self.before.get(index).unwrap_or(&none);
            let done = |of: &Device| (of.reads + of.writes + of.others, of.read_bytes + of.written_bytes);
            let ((requests, bytes), (old_requests, old_bytes)) = (done(now), done(before));
            let mut users: Vec<(u32, u64)> = now
                .users
                .iter()
                .enumerate()
                .map(|(at, user)| {
                    (user.subject, user.requests - before.users.get(at).map_or(0, |u| u.requests))
                })
                .filter(|(_, requests)| *requests > 0)
                .collect();
            users.sort_by_key(|user| std::cmp::Reverse(user.1));
            users.truncate(MAX_USERS_OF_A_SECOND);
            if requests > old_requests || !users.is_empty() {
                seconds.push(DeviceSecond {
                    device: index as u32,
                    requests: requests - old_requests,
                    bytes: bytes - old_bytes,
                    queue_ns: now.queue_ns - before.queue_ns,
                    service_ns: now.service_ns - before.service_ns,
                    users,
                });
            }
        }
        self.before.clone_from(&self.all);
        seconds
    }

    /// A step of a request, told on this CPU.
    pub(super) fn request(
        &mut self,
        (at_ns, cpu): (u64, u32),
        request: &BlockRequest<'_>,
        by: Maker,
        ledger: &mut Ledger,
    ) {
        if request.lost != self.lost || self.under_way.len() >= MAX_UNDER_WAY {
            self.forgotten += if request.lost == self.lost { self.under_way.len() as u64 } else { 0 };
            self.lost = request.lost;
            self.under_way.clear();
            ledger.forget_loads(at_ns);
        }
        let Some(device) = self.index(request.device) else { return };
        let known = self.under_way.get(&request.address).copied();
        let comes = matches!(request.step, Step::Inserted | Step::Issued);
        let same = known.filter(|k| {
            (k.device, k.operation) == (device, request.operation)
                && (!comes || request.may_be(k.sector, k.left_bytes))
        });
        // Another one in the same memory: the end of the first was not seen.
        if let (Some(gone), None) = (known, same) {
            self.under_way.remove(&request.address);
            ledger.load(at_ns, gone.device, gone.subject, -1);
            self.forgotten += 1;
        }
        match request.step {
            Step::Inserted | Step::Issued => self.comes(at_ns, request, device, by, same, ledger),
            Step::Done => self.done((at_ns, cpu), request, ledger),
            Step::Merged => {
                if let Some(merged) = self.under_way.remove(&request.address) {
                    ledger.load(at_ns, merged.device, merged.subject, -1);
                }
            }
        }
    }

    /// Into the queue, or to the device. One that the driver handed back is queued again, and stays whose it was.
    fn comes(
        &mut self,
        at_ns: u64,
        request: &BlockRequest<'_>,
        device: usize,
        by: Maker,
        known: Option<UnderWay>,
        ledger: &mut Ledger,
    ) {
        let fresh = UnderWay {
            device,
            subject: by.subject,
            tid: by.tid,
            operation: request.operation,
            since_ns: at_ns,
            issued_ns: None,
            sector: request.sector,
            left_bytes: request.bytes,
        };
        if known.is_none() {
            ledger.load(at_ns, device, by.subject, 1);
            self.count(device, by, request.bytes);
        }
        let mut next = known.unwrap_or(fresh);
        (next.sector, next.left_bytes) = (request.sector, request.bytes);
        match request.step {
            Step::Issued => {
                self.all[device].queue_ns += at_ns.saturating_sub(next.since_ns);
                next.issued_ns = Some(at_ns);
            }
            _ => (next.since_ns, next.issued_ns) = (at_ns, None),
        }
        self.under_way.insert(request.address, next);
    }

    fn count(&mut self, device: usize, by: Maker, bytes: u64) {
        let users = &mut self.all[device].users;
        let at = users.iter().position(|user| user.subject == by.subject).or_else(|| {
            let room = users.len() < MAX_USERS;
            room.then(|| {
                users.push(DeviceUser { subject: by.subject, ..DeviceUser::default() });
                users.len() - 1
            })
        });
        if let Some(user) = at.map(|at| &mut users[at]) {
            user.requests += 1;
            user.bytes += bytes;
            user.written_back += u64::from(by.charged);
        }
    }

    fn done(&mut self, (at_ns, cpu): (u64, u32), request: &BlockRequest<'_>, ledger: &mut Ledger) {
        let Some(known) = self.under_way.get_mut(&request.address) else { return };
        // A device may do a request in parts.
        let left = known.left_bytes.saturating_sub(request.bytes);
        let device = &mut self.all[known.device];
        match known.operation {
            Operation::Read { .. } => device.read_bytes += request.bytes,
            Operation::Write => device.written_bytes += request.bytes,
            Operation::Flush | Operation::Discard | Operation::Other => {}
        }
        if left > 0 {
            (known.sector, known.left_bytes) = (known.sector.saturating_add(request.bytes / SECTOR), left);
            return;
        }
        let known = *known;
        self.under_way.remove(&request.address);
        ledger.load(at_ns, known.device, known.subject, -1);
        match known.operation {
            Operation::Read { .. } => device.reads += 1,
            Operation::Write => device.writes += 1,
            Operation::Flush | Operation::Discard | Operation::Other => device.others += 1,
        }
        if let Some(issued_ns) = known.issued_ns {
            device.service_ns += at_ns.saturating_sub(issued_ns);
            self.was_there(known.device, issued_ns, at_ns);
        }
        let UnderWay { device, subject, since_ns, issued_ns, .. } = known;
        let served = Served { device, subject, since_ns, issued_ns, at_ns };
        self.done_on.insert(cpu, served);
        if let Some(tid) = known.tid {
            if self.last.len() >= MAX_THREADS && !self.last.contains_key(&tid) {
                // Most are of threads that have ended long ago.
                self.last.clear();
            }
            self.last.insert(tid, served);
        }
    }

    /// A request was at the device; what lies before the interval belongs to the one before.
    fn was_there(&mut self, device: usize, issued_ns: u64, to_ns: u64) {
        let from_ns = issued_ns.max(self.from_ns);
        self.all[device].in_flight_ns += to_ns.saturating_sub(from_ns);
        self.busy[device].add(from_ns, to_ns);
    }

    /// What each device did in the interval that ends now, with names and mount points; the next interval begins.
    pub(super) fn take_interval(&mut self, now_ns: u64) -> Vec<Device> {
        let there: Vec<(usize, u64)> =
            self.under_way.values().filter_map(|known| Some((known.device, known.issued_ns?))).collect();
        for (device, issued_ns) in there {
            self.was_there(device, issued_ns, now_ns);
        }
        self.look_at_names();
        for (device, busy) in self.all.iter_mut().zip(&mut self.busy) {
            device.busy_ns = std::mem::take(busy).total_ns();
        }
        let fresh = |of: &Device| Device {
            number: of.number,
            name: of.name.clone(),
            mounts: of.mounts.clone(),
            ..Device::default()
        };
        let fresh = self.all.iter().map(fresh).collect();
        self.before.clear();
        let begun_ns = std::mem::replace(&mut self.from_ns, now_ns);
        self.last.retain(|_, served| served.at_ns >= begun_ns);
        std::mem::replace(&mut self.all, fresh)
    }

    /// Names and mount points, where they are not known yet or may have changed.
    fn look_at_names(&mut self) {
        let (sysfs, mounts) = (Sysfs::new(), mounts::read());
        let changed = mounts != self.mounts;
        for device in self.all.iter_mut().filter(|device| changed || device.name.is_empty()) {
            let number = format!("{}:{}", device.number.0, device.number.1);
            device.name = sysfs.name_of(&number).unwrap_or(number);
            let on_it = mounts.iter().filter(|mount| {
                let of_partition = || {
                    let directory = sysfs.device_of_number(mount.device)?;
                    Some(directory.parent()?.file_name()? == Path::new(&device.name).as_os_str())
                };
                mount.device == device.number || (mount.device.0 != 0 && of_partition() == Some(true))
            });
            let mut points: Vec<String> = on_it.map(|m| m.point.to_string_lossy().into_owned()).collect();
            points.sort_by_key(String::len);
            points.dedup();
            points.truncate(MAX_MOUNTS);
            device.mounts = points;
        }
        self.mounts = mounts;
    }

    /// Every subject that is held here for what is to come.
    pub(super) fn each_subject(&mut self, see: &mut dyn FnMut(&mut u32)) {
        self.under_way.values_mut().for_each(|known| see(&mut known.subject));
        self.last.values_mut().chain(self.done_on.values_mut()).for_each(|served| see(&mut served.subject));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(step: Step, address: u64, bytes: u64) -> BlockRequest<'static> {
        BlockRequest {
            step,
            address,
            device: (254, 0),
            sector: 8,
            bytes,
            operation: Operation::Read { ahead: false },
            by_kernel: false,
            metadata: false,
            task: "fio",
            lost: 0,
        }
    }

    const MAKER: Maker = Maker { subject: 3, tid: Some(70), charged: false };

    #[test]
    fn queue_and_device_are_told_apart_and_parts_of_a_request_are_one() {
        let (mut devices, mut ledger) = (Devices::default(), Ledger::new(0, 1));
        let mut step =
            |at, step, bytes| devices.request((at, 0), &request(step, 1, bytes), MAKER, &mut ledger);
        step(100, Step::Inserted, 8192);
        step(150, Step::Issued, 8192);
        // The driver has no room: back into the queue, and out again.
        step(160, Step::Inserted, 8192);
        step(200, Step::Issued, 8192);
        step(250, Step::Done, 4096);
        step(300, Step::Done, 4096);
        let device = devices.all[0].clone();
        assert_eq!((device.reads, device.read_bytes, device.queue_ns, device.service_ns), (1, 8192, 90, 100));
        assert_eq!(device.users, [DeviceUser { subject: 3, requests: 1, bytes: 8192, written_back: 0 }]);
        let served = devices.served(70, 260).copied().unwrap();
        assert_eq!((served.device, served.subject, devices.served(70, 301)), (0, 3, None));
        assert_eq!(devices.done_on(0), Some(&served));
        // In the queue from 160 to 200.
        assert_eq!(
            (served.queue_ns(0, 300), served.queue_ns(170, 190), served.queue_ns(250, 300)),
            (40, 20, 0)
        );
        let second = devices.second();
        assert_eq!(
            (second[0].requests, second[0].bytes, second[0].users.as_slice()),
            (1, 8192, &[(3, 1)][..])
        );
        assert!(devices.second().is_empty(), "nothing since");
        let device = devices.take_interval(400).remove(0);
        assert_eq!((device.busy_ns, device.in_flight_ns), (100, 100));
    }

    #[test]
    fn a_request_over_two_intervals_has_its_part_in_each_and_is_done_once() {
        let (mut devices, mut ledger) = (Devices::default(), Ledger::new(0, 1));
        let mut step = |devices: &mut Devices, at, step| {
            devices.request((at, 0), &request(step, 1, 4096), MAKER, &mut ledger);
        };
        step(&mut devices, 100, Step::Issued);
        let first = devices.take_interval(1000).remove(0);
        assert_eq!((first.reads, first.service_ns, first.busy_ns, first.in_flight_ns), (0, 0, 900, 900));
        assert_eq!(first.users[0].requests, 1, "it came in the first");
        step(&mut devices, 1300, Step::Done);
        let second = devices.take_interval(2000).remove(0);
        assert_eq!((second.reads, second.service_ns), (1, 1200), "it took as long as it took");
        assert_eq!((second.busy_ns, second.in_flight_ns, second.name), (300, 300, first.name));
        assert!(second.users.is_empty());
        let third = devices.take_interval(3000).remove(0);
        assert_eq!((third.reads, third.busy_ns, third.in_flight_ns), (0, 0, 0));
    }

    #[test]
    fn a_merged_request_is_no_more_and_lost_ones_are_forgotten() {
        let (mut devices, mut ledger) = (Devices::default(), Ledger::new(0, 1));
        devices.request((1, 0), &request(Step::Inserted, 1, 4096), MAKER, &mut ledger);
        devices.request((2, 0), &request(Step::Merged, 1, 4096), MAKER, &mut ledger);
        devices.request((3, 0), &request(Step::Inserted, 2, 4096), MAKER, &mut ledger);
        assert_eq!(devices.under_way.len(), 1);
        let late = BlockRequest { lost: 5, ..request(Step::Done, 2, 4096) };
        devices.request((4, 0), &late, MAKER, &mut ledger);
        assert_eq!((devices.under_way.len(), devices.all[0].reads), (0, 0));
    }

    #[test]
    fn a_request_whose_end_was_not_told_is_lost_when_another_one_takes_its_memory() {
        let (mut devices, mut ledger) = (Devices::default(), Ledger::new(0, 1));
        let mut step = |at, step, sector| {
            let request = BlockRequest { sector, ..request(step, 1, 4096) };
            devices.request((at, 0), &request, MAKER, &mut ledger);
        };
        step(100, Step::Inserted, 8);
        step(110, Step::Issued, 8);
        step(900, Step::Inserted, 16);
        step(910, Step::Issued, 16);
        step(950, Step::Done, 16);
        let device = &devices.all[0];
        assert_eq!((devices.forgotten, devices.under_way.len()), (1, 0));
        assert_eq!((device.reads, device.queue_ns, device.service_ns), (1, 20, 40));
        assert_eq!(device.users[0].requests, 2);
    }
}
