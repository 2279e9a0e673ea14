//! Cumulative times against a count of each nanosecond.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const DISKS: [(u32, u32); 2] = [(8, 0), (8, 16)];
/// Steps of the random stories, and the nanoseconds of each. A story ends with a moment in which nothing happens.
const END: usize = 64;

/// What happens in one nanosecond of a story.
#[derive(Clone, Copy, Debug)]
enum Step {
    Nothing,
    Insert(usize),
    Issue(usize),
    Complete(usize),
    Sleep(u32),
    Wake(u32),
}

/// A request: its device, owner and submitting thread or program, and where it is.
#[derive(Clone, Copy, Debug)]
struct Request {
    disk: usize,
    by: Submitter,
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = (0usize..2, 0u8..4, 0u32..3).prop_map(|(disk, owner, number)| {
        let (owner, program) = match owner {
            0 | 1 => (Owner::Own, None),
            2 => (Owner::Kernel, None),
            _ => (Owner::Other, Some(number)),
        };
        Request { disk, by: Submitter { owner, tid: number, program } }
    });
    prop::collection::vec(request, 1..10)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Nothing),
        3 => (0usize..10).prop_map(Step::Insert),
        6 => (0usize..10).prop_map(Step::Issue),
        6 => (0usize..10).prop_map(Step::Complete),
        3 => (0u32..3).prop_map(Step::Sleep),
        4 => (0u32..3).prop_map(Step::Wake),
    ];
    prop::collection::vec(step, END)
}

/// Where each request is, nanosecond by nanosecond: `[time][request]`, 0 nowhere, 1 queued, 2 at the device.
type Picture = Vec<Vec<u8>>;

/// The parts of a sleep, counted.
fn counted(
    requests: &[Request],
    picture: &Picture,
    own: Option<usize>,
    used: [bool; 2],
    sleep: (usize, usize),
) -> Split {
    let mut split = Split::default();
    for now in &picture[sleep.0..sleep.1] {
        let meant = |disk: usize| used[disk] || !used.iter().any(|u| *u);
        let others = |disk: usize| {
            (0..requests.len())
                .any(|i| now[i] == 2 && requests[i].disk == disk && requests[i].by.owner == Owner::Other)
        };
        // The disks on which a request of the kind that is waited for is in this phase.
        let on = |phase: u8| -> Vec<usize> {
            (0..requests.len())
                .filter(|i| now[*i] == phase && own.is_none_or(|own| own == *i))
                .filter(|i| {
                    own.is_some() || (requests[*i].by.owner != Owner::Other && meant(requests[*i].disk))
                })
                .map(|i| requests[i].disk)
                .collect()
        };
        let (queued, at_device) = (on(1), on(2));
        if !at_device.is_empty() {
            split.device_ns += 1;
            split.beside_ns += u64::from(at_device.into_iter().any(others));
        } else if !queued.is_empty() {
            split.queued_ns += 1;
            split.behind_ns += u64::from(queued.into_iter().any(others));
        }
    }
    split
}

proptest! {
    #[test]
    fn a_sleep_is_what_a_count_of_each_nanosecond_says(requests in requests(), steps in steps(), used in any::<[bool; 2]>()) {
        let mut f = InFlight::default();
        // The disks that the program uses are decided before: it changes what counts from then on.
        for (disk, id) in DISKS.iter().enumerate() {
            let by = if used[disk] { Owner::Own } else { Owner::Kernel };
            let by = Submitter { owner: by, tid: 99, program: None };
            let ticket = f.issue(0, *id, by, None).unwrap();
            f.complete(0, &ticket);
        }
        let mut state = vec![0u8; requests.len()];
        let mut tickets: Vec<Option<Ticket>> = vec![None; requests.len()];
        let mut picture: Picture = Vec::new();
        let mut last: HashMap<u32, (usize, usize)> = HashMap::new();
        let mut asleep: HashMap<u32, (usize, Marks)> = HashMap::new();
        let mut delays = (0.0, 0.0);
        for (time, step) in steps.iter().enumerate() {
            let now = time as u64;
            match *step {
                Step::Insert(i) | Step::Issue(i) | Step::Complete(i) if i >= requests.len() => {}
                // A thread that sleeps submits nothing; what it submitted may go on.
                Step::Insert(i) | Step::Issue(i) if state[i] == 0 && requests[i].by.owner == Owner::Own
                    && (asleep.contains_key(&requests[i].by.tid) || !used[requests[i].disk]) => {}
                Step::Insert(i) if state[i] == 0 => {
                    state[i] = 1;
                    tickets[i] = f.insert(now, DISKS[requests[i].disk], requests[i].by);
                }
                Step::Issue(i) if state[i] < 2 => {
                    tickets[i] = f.issue(now, DISKS[requests[i].disk], requests[i].by, tickets[i].take());
                    state[i] = 2;
                }
                Step::Complete(i) if state[i] == 2 => {
                    f.complete(now, &tickets[i].take().unwrap());
                    state[i] = 0;
                    if requests[i].by.owner == Owner::Own {
                        last.insert(requests[i].by.tid, (i, time));
                    }
                }
                Step::Sleep(tid) => {
                    asleep.entry(tid).or_insert_with(|| {
                        let mut marks = Marks::default();
                        f.begin(now, &mut marks);
                        (time, marks)
                    });
                }
                Step::Wake(tid) => {
                    if let Some((since, marks)) = asleep.remove(&tid) {
                        let split = f.end(now, tid, &marks, true);
                        prop_assert!(split.device_ns + split.queued_ns <= (time - since) as u64);
                        let own = last.get(&tid).filter(|(_, end)| *end > since);
                        // Until it completed it was the request; it may be submitted again, by nobody who sleeps.
                        let until = own.map_or(time, |(_, end)| *end);
                        let expected = counted(&requests, &picture, own.map(|(i, _)| *i), used, (since, until));
                        prop_assert_eq!(split, expected, "{:?} slept from {} to {}, {:?}", tid, since, time, own);
                        delays.0 += split.behind_ns as f64;
                        delays.1 += split.beside_ns as f64;
                    }
                }
                _ => {}
            }
            picture.push(state.clone());
        }
        let charges = f.charges();
        let sum = |of: fn(&Charge) -> f64| charges.values().map(of).sum::<f64>();
        prop_assert!((sum(|c| c.behind_ns) - delays.0).abs() < 1e-6);
        prop_assert!((sum(|c| c.beside_ns) - delays.1).abs() < 1e-6);
    }
}

fn by(owner: Owner, tid: u32) -> Submitter {
    Submitter { owner, tid, program: (owner == Owner::Other).then_some(tid) }
}

#[test]
fn a_read_queued_behind_another_program_and_then_served_beside_it() {
    let mut f = InFlight::default();
    let own = f.insert(100, DISKS[0], by(Owner::Own, 1));
    let other = f.issue(110, DISKS[0], by(Owner::Other, 7), None).unwrap();
    let mut marks = Marks::default();
    f.begin(120, &mut marks);
    let own = f.issue(150, DISKS[0], by(Owner::Own, 1), own).unwrap();
    f.complete(170, &other);
    assert_eq!(f.complete(200, &own), Some((50, true)));
    let split = f.end(230, 1, &marks, true);
    assert_eq!(split, Split { device_ns: 50, queued_ns: 30, behind_ns: 30, beside_ns: 20, ring_ns: 0 });
    assert!(f.is_reliable());
    assert_eq!(f.charges()[&Some(7)], Charge { behind_ns: 30.0, beside_ns: 20.0 });
}

#[test]
fn another_disk_proves_nothing() {
    let mut f = InFlight::default();
    let mut marks = Marks::default();
    let own = f.issue(0, DISKS[0], by(Owner::Own, 1), None).unwrap();
    f.issue(0, DISKS[1], by(Owner::Other, 7), None);
    f.issue(0, DISKS[1], by(Owner::Kernel, 8), None);
    // A thread that submitted nothing, while the kernel writes to a disk that the program does not use.
    let mut marks_of_two = Marks::default();
    f.begin(10, &mut marks);
    f.complete(20, &own);
    f.begin(20, &mut marks_of_two);
    assert_eq!(f.end(30, 1, &marks, true), Split { device_ns: 10, ..Split::default() });
    assert_eq!(f.end(30, 2, &marks_of_two, true), Split::default());
}

#[test]
fn after_lost_records_nothing_is_under_way_and_no_time_is_relied_on() {
    let mut f = InFlight::default();
    let ticket = f.issue(0, DISKS[0], by(Owner::Own, 1), None).unwrap();
    f.records_lost(10);
    let mut marks = Marks::default();
    f.begin(10, &mut marks);
    assert_eq!(f.complete(20, &ticket), None);
    assert_eq!(f.end(30, 2, &marks, true), Split::default());
    assert!(!f.is_reliable());
}

#[test]
fn requests_that_never_end_make_times_unreliable() {
    let mut f = InFlight::default();
    for n in 0..20 {
        let ticket = f.issue(n, DISKS[0], by(Owner::Own, 1), None).unwrap();
        if n % 2 == 0 {
            f.complete(n, &ticket);
        }
    }
    assert!(!f.is_reliable());
}

#[test]
fn memory_is_bounded_by_devices_and_pairs() {
    let mut f = InFlight::default();
    for n in 0..1000 {
        f.issue(u64::from(n), (n % 40, 0), by(Owner::Other, n), None);
    }
    assert_eq!((f.devices.len(), f.pairs.len()), (MAX_DEVICES, MAX_PAIRS + MAX_DEVICES));
}

#[test]
fn what_was_not_booked_is_taken_off_evenly() {
    let split = Split { device_ns: 60, queued_ns: 20, behind_ns: 10, beside_ns: 30, ring_ns: 70 };
    assert_eq!(split.at_most(80), split);
    assert_eq!(
        split.at_most(40),
        Split { device_ns: 30, queued_ns: 10, behind_ns: 5, beside_ns: 15, ring_ns: 40 }
    );
    assert_eq!(split.at_most(0), Split::default());
}

#[test]
fn a_sleep_knows_how_long_a_request_on_a_file_was_under_way_on_a_ring() {
    let mut f = InFlight::default();
    let (mut early, mut late) = (Marks::default(), Marks::default());
    f.begin(10, &mut early);
    f.ring_files(20, true);
    f.begin(40, &mut late);
    f.ring_files(50, false);
    assert_eq!(f.end(60, 2, &late, true), Split { ring_ns: 10, ..Split::default() });
    assert_eq!(f.end(100, 1, &early, true), Split { ring_ns: 30, ..Split::default() });
    // Nothing was at a device: that is known.
    assert!(f.is_reliable());
}
