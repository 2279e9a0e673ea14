//! Threads that take turns: one sequence of calls that goes from thread to thread, as a goroutine does, or a task of a pool. Replayed as
//! threads of their own, its calls would run at the same time.
//! Invariant: the same calls in the same order, and between them the time in which no thread was in one.

use std::collections::HashMap;

use iowhy_core::profile::{Step, StepKind, Stretch};

/// Less than this share of the time in calls is beside calls of other threads: a call that returns while the next thread is woken.
const LITTLE: f64 = 0.05;

/// The part as calls of one thread, if its threads take turns, and what each of them does is not more in order than what all do: workers
/// that read files of their own stay apart, though one of them runs at a time. `overlap` as in [`CallPattern::overlap`];
/// `of_record`: it is of a record of every call.
///
/// [`CallPattern::overlap`]: iowhy_core::profile::CallPattern::overlap
pub(super) fn one_sequence(part: &Stretch, overlap: Option<f64>, of_record: bool) -> Option<Stretch> {
    let first = part.steps.first()?.thread;
    if overlap? > LITTLE || part.steps.iter().all(|step| step.thread == first) {
        return None;
    }
    let (mut in_all, mut in_each) = (Order::default(), HashMap::<u32, Order>::new());
    for step in &part.steps {
        in_all.follow(step);
        in_each.entry(step.thread).or_default().follow(step);
    }
    if in_all.went_on < in_each.values().map(|order| order.went_on).sum() {
        return None;
    }
    let mut moments = Moments::default();
    let mut steps: Vec<Step> = Vec::with_capacity(part.steps.len());
    for step in &part.steps {
        // A record of every call leaves out the time in calls that are no steps, in which a thread waits for its turn.
        let gap_ns = if of_record { step.gap_ns } else { moments.gap_ns(step) };
        steps.push(Step { thread: first, gap_ns, ..step.clone() });
    }
    let of = |time: fn(&Step) -> u64| steps.iter().map(|step| time(step) as f64).sum::<f64>();
    // Calls of a run stand together, though those of other threads are between them: all of it took no longer than it did.
    let between_ns = (part.length_ns as f64 - of(|step| step.time_ns)).max(0.0);
    let shorter = if of_record { 1.0 } else { (between_ns / of(|step| step.gap_ns).max(1.0)).min(1.0) };
    for step in &mut steps {
        step.gap_ns = (step.gap_ns as f64 * shorter) as u64;
    }
    Some(Stretch { length_ns: part.length_ns, steps })
}

/// When calls end that were put into one sequence, from its beginning. A thread's time before a call goes on while other threads are in
/// theirs: it waits for its turn.
#[derive(Default)]
struct Moments {
    now_ns: u64,
    of_threads: HashMap<u32, u64>,
}

impl Moments {
    /// The time between the call before in the sequence and this one. What a thread did before its first call may lie before the part, and
    /// counts as its wait for its turn.
    fn gap_ns(&mut self, step: &Step) -> u64 {
        let begins = self.of_threads.get(&step.thread).map(|end| end.saturating_add(step.gap_ns));
        let at_once = if self.of_threads.is_empty() { step.gap_ns } else { 0 };
        let gap_ns = begins.map_or(at_once, |begins| begins.saturating_sub(self.now_ns));
        self.now_ns = self.now_ns.saturating_add(gap_ns).saturating_add(step.time_ns);
        self.of_threads.insert(step.thread, self.now_ns);
        gap_ns
    }
}

/// Transfers that go on where the one before ended.
#[derive(Default)]
struct Order<'a> {
    before: Option<&'a Step>,
    went_on: u64,
}

impl<'a> Order<'a> {
    fn follow(&mut self, step: &'a Step) {
        if !matches!(step.kind, StepKind::Read | StepKind::Write) {
            return;
        }
        let goes_on = |before: &Step| {
            let last = before.place.map(|at| {
                at.saturating_add_signed(before.stride.saturating_mul(i64::from(before.count.max(1)) - 1))
            });
            let alike = (before.kind, before.file) == (step.kind, step.file);
            alike && last.map(|at| at.saturating_add(before.bytes)) == step.place
        };
        self.went_on += u64::from(self.before.is_some_and(goes_on));
        self.before = Some(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_a_thread_waits_for_its_turn_is_no_time_between_calls() {
        // Three threads in turn, each 100 ns in its call and 10 ns after the one before.
        let call = |(turn, thread): (u64, u32)| Step {
            kind: StepKind::Read,
            thread,
            place: Some(turn * 5000 % 977),
            bytes: 1,
            gap_ns: if turn < 3 { 1000 } else { 2 * 110 + 10 },
            time_ns: 100,
            ..Step::default()
        };
        let steps = (0..9).zip([1, 2, 3].into_iter().cycle()).map(call).collect();
        let part = Stretch { length_ns: 2000, steps };
        let one = one_sequence(&part, Some(0.0), false).unwrap();
        let gaps = |part: &Stretch| part.steps.iter().map(|step| step.gap_ns).collect::<Vec<u64>>();
        // The first calls of two threads begin at their turn: from then on the others are 10 ns apart, or follow at once.
        assert_eq!(gaps(&one), [1000, 0, 0, 30, 0, 0, 30, 0, 0]);
        // In a record of every call the waits are left out already.
        assert_eq!(gaps(&one_sequence(&part, Some(0.0), true).unwrap()), gaps(&part));
        // Calls of each thread in a row, which were between each other: 900 ns in calls, 100 ns between them.
        let run = |thread| Step { count: 4, gap_ns: 500, time_ns: 450, ..call((0, thread)) };
        let part = Stretch { length_ns: 1000, steps: vec![run(1), Step { place: Some(9), ..run(2) }] };
        assert_eq!(gaps(&one_sequence(&part, Some(0.0), false).unwrap()), [100, 0]);
    }

    fn of(steps: Vec<Step>, overlap: Option<f64>) -> Option<Vec<u32>> {
        let part = Stretch { length_ns: 1000, steps };
        one_sequence(&part, overlap, true).map(|one| one.steps.iter().map(|step| step.thread).collect())
    }

    /// Reads by turns of two threads.
    fn turns(file: impl Fn(u64) -> u32, place: impl Fn(u64) -> u64) -> Vec<Step> {
        let read = |n: u64| Step {
            thread: 7 + n as u32 % 2,
            file: Some(file(n)),
            place: Some(place(n)),
            bytes: 10,
            gap_ns: 5,
            time_ns: 100,
            count: 1,
            ..Step::default()
        };
        (0..20).map(read).collect()
    }

    #[test]
    fn calls_that_go_from_thread_to_thread_are_one_sequence() {
        let hopping = || turns(|_| 0, |n| n * n * 100);
        assert_eq!(of(hopping(), Some(0.01)), Some(vec![7; 20]));
        assert_eq!(of(hopping(), Some(0.5)), None, "at the same time");
        assert_eq!(of(hopping(), None), None, "not known");
        assert_eq!(of(hopping().into_iter().step_by(2).collect(), Some(0.0)), None, "one thread");
        assert_eq!(of(Vec::new(), Some(0.0)), None);
    }

    #[test]
    fn workers_with_an_order_of_their_own_stay_apart() {
        let one_at_a_time = |steps| of(steps, Some(0.0)).is_some();
        assert!(!one_at_a_time(turns(|n| n as u32 % 2, |n| n / 2 * 10)), "a file each");
        assert!(!one_at_a_time(turns(|_| 0, |n| n / 2 * 10 + n % 2 * 1000)), "a part of a file each");
        assert!(one_at_a_time(turns(|_| 0, |n| n * 10)), "a reader that changes threads");
    }
}
