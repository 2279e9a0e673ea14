//! Schedulers: the order of commands at a device. One per file, all behind [`Scheduler`], without service times.

mod clook;
mod deadline;
mod fcfs;

use crate::machine::Order;

/// A waiting command: the caller's number and its sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The caller's number.
    pub id: u32,
    /// First sector.
    pub sector: u64,
    /// Whether it writes.
    pub write: bool,
}

/// An order of service.
pub trait Scheduler: std::fmt::Debug + Send {
    /// Something arrives.
    fn push(&mut self, now_ns: u64, waiting: Waiting);

    /// Who is served next, with the arm behind `sector`.
    fn pop(&mut self, now_ns: u64, sector: u64) -> Option<Waiting>;

    /// How many wait.
    fn len(&self) -> usize;

    /// Whether the queue is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The scheduler of this order.
pub fn new(order: Order) -> Box<dyn Scheduler> {
    match order {
        Order::Fcfs => Box::new(fcfs::Fcfs::default()),
        Order::Clook => Box::new(clook::Clook::default()),
        Order::Deadline => Box::new(deadline::Deadline::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(order: Order, sectors: &[u64], arm: u64) -> Vec<u64> {
        let mut scheduler = new(order);
        for (id, &sector) in sectors.iter().enumerate() {
            scheduler.push(0, Waiting { id: id as u32, sector, write: false });
        }
        let mut arm = arm;
        std::iter::from_fn(|| {
            let next = scheduler.pop(0, arm)?;
            arm = next.sector;
            Some(next.sector)
        })
        .collect()
    }

    #[test]
    fn each_order_serves_all_in_its_order() {
        let sectors = [50, 10, 90, 50, 20];
        assert_eq!(order_of(Order::Fcfs, &sectors, 40), [50, 10, 90, 50, 20]);
        assert_eq!(order_of(Order::Clook, &sectors, 40), [50, 50, 90, 10, 20]);
        assert_eq!(order_of(Order::Deadline, &sectors, 40), [50, 50, 90, 10, 20]);
    }

    #[test]
    fn the_same_place_is_served_in_the_order_of_arrival() {
        let mut scheduler = new(Order::Clook);
        for id in 0..3 {
            scheduler.push(0, Waiting { id, sector: 7, write: false });
        }
        let ids: Vec<u32> = std::iter::from_fn(|| scheduler.pop(0, 0)).map(|w| w.id).collect();
        assert_eq!(ids, [0, 1, 2]);
    }

    #[test]
    fn who_waited_past_the_deadline_goes_first() {
        let mut scheduler = new(Order::Deadline);
        scheduler.push(0, Waiting { id: 9, sector: 1, write: false });
        for id in 0..5 {
            scheduler.push(600_000_000, Waiting { id, sector: 1000 + u64::from(id), write: false });
        }
        assert_eq!(scheduler.pop(600_000_001, 500).map(|w| w.id), Some(9));
        assert_eq!(scheduler.len(), 5);
    }

    #[test]
    fn reads_go_before_writes_until_writes_have_waited_enough() {
        let mut scheduler = new(Order::Deadline);
        scheduler.push(0, Waiting { id: 0, sector: 10, write: true });
        scheduler.push(0, Waiting { id: 1, sector: 20, write: false });
        assert_eq!(scheduler.pop(1, 0).map(|w| w.id), Some(1));
        assert_eq!(scheduler.pop(1, 0).map(|w| w.id), Some(0));
        assert_eq!(scheduler.pop(1, 0), None);
    }
}
