//! Completes the baseline of a window: times without the cost of recording, and a number of passes that can be measured.
//!
//! Recording lengthens each call, by about the time of a short call. The mean call of the whole run does not contain that cost, so the
//! replay is compared with it.

use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role, State};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::Facts;
use iowhy_diagnose::repair::order;

use super::baseline::Baseline;
use super::duration::{Bounds, passes};
use super::earlier_reads;
use crate::parts::Parts;

/// Calls at random places that move this part of a file come to the same bytes again in half of this part of the cases: the mean number
/// of earlier calls, over the number of places.
const SPARSE: f64 = 0.1;

/// Kinds of calls that are counted, each with the operation of its time.
const KINDS: [(Op, Operation); 4] = [
    (Op::Read { fresh: false }, Operation::Read),
    (Op::Write, Operation::Write),
    (Op::Fsync { metadata: false }, Operation::Sync),
    (Op::Seek, Operation::Descriptor),
];

/// The baseline of a window, with times of the run, and as many passes as make a measurable time.
pub(super) fn settled(facts: &Facts<'_>, mut found: Baseline, bounds: &Bounds) -> Baseline {
    let mut calls = Parts::default();
    for action in found.plan.actions() {
        *calls.of(action.op) += f64::from(action.count.max(1));
    }
    let mut recorded = found.recorded.unwrap_or_default();
    for (op, operation) in KINDS {
        if let Some(mean_ns) = facts.mean_call_ns(operation) {
            *recorded.of(op) = mean_ns * *calls.of(op);
        }
    }
    let pass_ns = (recorded.sum_ns() + found.plan.think_ns()) / found.plan.threads.len().max(1) as f64;
    let wanted = passes(pass_ns, most_passes(&found.plan, bounds), bounds);
    append_each_pass(&mut found.plan);
    found.plan.passes = wanted;
    found.notes.extend(earlier_reads::cached(facts, &mut found.plan));
    recorded = recorded.times(f64::from(wanted));
    found.recorded = Some(recorded);
    found
}

/// The part of a window whose calls are as dense in cold scratch files, which may be smaller than the user's, as all of it is in those:
/// more of them would come to bytes that earlier ones brought into the cache. At least what does so seldom.
pub(super) fn part_with_room(plan: &Plan) -> f64 {
    let of = |(at, file): (usize, &PlanFile)| {
        if file.role != Role::ScratchFull || file.state != State::Cold {
            return 1.0;
        }
        let actions = on_file(plan, at as u32);
        let (low, high) = order::extent(&actions).unwrap_or((0, 0));
        let moved: f64 = actions.iter().map(|a| a.bytes as f64 * f64::from(a.count)).sum();
        let size = file.size_bytes as f64;
        (size / (high - low).max(1) as f64).max(SPARSE * size / moved.max(1.0))
    };
    plan.files.iter().enumerate().map(of).fold(1.0, f64::min)
}

/// The plan with `times` passes written out as one, so that a repair can combine calls of several. `None`: a pass cannot be repeated as
/// often.
pub(crate) fn unrolled(plan: &Plan, times: u32) -> Option<Plan> {
    let writes = plan.actions().filter(|a| a.op == Op::Write && plan.moves_data(a));
    let written: u64 =
        writes.map(|a| a.bytes.saturating_mul(u64::from(a.count))).fold(0, u64::saturating_add);
    let written = written.saturating_mul(u64::from(times));
    if f64::from(times) > most_passes(plan, &Bounds::CALIBRATION)
        || (times > 1 && written > Bounds::CALIBRATION.written_bytes)
    {
        return None;
    }
    let shifted = |action: &Action, pass: u32| {
        let shift = plan.files.get(action.file as usize).map_or(0, |file| file.shift_bytes);
        Action { offset: action.offset.saturating_add(u64::from(pass).saturating_mul(shift)), ..*action }
    };
    let all = |actions: &Vec<Action>| {
        (0..times).flat_map(|pass| actions.iter().map(move |a| shifted(a, pass))).collect()
    };
    let mut unrolled = Plan {
        threads: plan.threads.iter().map(all).collect(),
        passes: (plan.passes / times).max(1),
        ..plan.clone()
    };
    for file in unrolled.files.iter_mut() {
        file.shift_bytes = file.shift_bytes.saturating_mul(u64::from(times));
    }
    Some(unrolled)
}

/// Passes that find each cold byte cold, and make no more files that stay than a run may.
fn most_passes(plan: &Plan, bounds: &Bounds) -> f64 {
    let made: u64 =
        plan.actions().filter(|a| a.op == Op::MakeFile { stays: true }).map(|a| u64::from(a.count)).sum();
    let room = bounds.made_files.checked_div(made).map_or(f64::INFINITY, |passes| passes as f64);
    let of = |(at, file): (usize, &PlanFile)| {
        let cold = file.role != Role::Sink && file.state == State::Cold && !file.direct;
        let span = extent(plan, at as u32).max(1);
        match (cold, file.shift_bytes) {
            (false, _) => f64::INFINITY,
            (true, 0) => 1.0,
            (true, _) => (file.size_bytes as f64 / span as f64).floor(),
        }
    };
    plan.files.iter().enumerate().map(of).fold(room, f64::min)
}

/// What is appended to a file is appended in each pass.
fn append_each_pass(plan: &mut Plan) {
    for at in 0..plan.files.len() {
        let made_anew = plan.any(|a| a.op.makes_file() && a.file as usize == at);
        if plan.files[at].role == Role::ScratchEmpty && !made_anew {
            plan.files[at].shift_bytes = extent(plan, at as u32).max(allocated(plan, at as u32));
        }
    }
}

/// The end of what is allocated without data: the next pass begins behind it, for to allocate the same again takes no time.
fn allocated(plan: &Plan, file: u32) -> u64 {
    let of = plan.actions().filter(|a| a.file == file && matches!(a.op, Op::Allocate { .. }));
    of.map(|a| a.offset.saturating_add(a.bytes)).max().unwrap_or(0)
}

fn extent(plan: &Plan, file: u32) -> u64 {
    order::extent(&on_file(plan, file)).map_or(0, |(_, high)| high)
}

/// Calls on a file that have a place in it.
fn on_file(plan: &Plan, file: u32) -> Vec<&Action> {
    plan.actions().filter(|a| a.file == file && order::has_place(a.op)).collect()
}

#[cfg(test)]
mod tests {
    use iowhy_core::layer::Layer;
    use iowhy_diagnose::findings::synthetic::Run;

    use super::*;

    #[test]
    fn a_short_window_is_compared_with_the_mean_call_and_repeated() {
        let file = PlanFile { role: Role::ScratchEmpty, ..PlanFile::new("/data/log", Role::ScratchEmpty) };
        let write = Action { count: 10, stride: 100, ..Action::one(Op::Write, 0, 0, 100, 0.0) };
        let plan = Plan { files: vec![file], threads: vec![vec![write]], passes: 1, ..Plan::default() };
        let recorded = Some(Parts { writes_ns: 90_000.0, ..Parts::default() });
        let baseline = Baseline {
            plan,
            scale: 1.0,
            program_io_ns: 1.0,
            recorded,
            recording: None,
            touching_ns: 0.0,
            goes_along_ns: 0.0,
            notes: vec![],
        };
        // 100 writes in a tenth of a second: 1 ms each.
        let run = Run::new(1.0).busy(Operation::Write, Layer::Cache, 0.1).calls(&[("write", 100)]);
        let found = run.facts(|f| settled(f, baseline, &Bounds::CALIBRATION));
        // 10 ms a pass, and an arm of 50 ms.
        assert_eq!((found.plan.passes, found.plan.files[0].shift_bytes), (5, 1000));
        assert!((found.recorded.unwrap().writes_ns - 50e6).abs() < 1.0);
    }

    #[test]
    fn passes_that_are_written_out_are_the_same_calls() {
        let file = PlanFile { size_bytes: 1 << 20, shift_bytes: 8192, ..PlanFile::new("/d", Role::User) };
        let read = Action::one(Op::Read { fresh: false }, 0, 4096, 4096, 1.0);
        let plan = Plan { files: vec![file], threads: vec![vec![read]], passes: 6, ..Plan::default() };
        let all = unrolled(&plan, 3).unwrap();
        let offsets: Vec<u64> = all.actions().map(|a| a.offset).collect();
        assert_eq!((offsets, all.passes, all.files[0].shift_bytes), (vec![4096, 12_288, 20_480], 2, 24_576));
        assert_eq!(all.think_ns(), 3.0 * plan.think_ns());
        let thrown_away = Action::one(Op::Write, 1, 0, 1 << 30, 0.0);
        let dd = Plan {
            files: vec![plan.files[0].clone(), PlanFile::new("/dev/null", Role::Sink)],
            threads: vec![vec![read, thrown_away]],
            ..plan.clone()
        };
        assert!(unrolled(&dd, 3).is_some(), "no byte of it is written to a device");
        let cold = PlanFile { state: State::Cold, shift_bytes: 0, ..plan.files[0].clone() };
        assert!(unrolled(&Plan { files: vec![cold], ..plan }, 2).is_none(), "its bytes are cold once");
    }

    #[test]
    fn a_window_in_a_small_scratch_file_is_as_dense_as_in_the_users() {
        let part = |role, state, span: u64, calls: u32| {
            let file = PlanFile { size_bytes: 1 << 24, state, ..PlanFile::new("/d", role) };
            let write = |place, count| Action { count, ..Action::one(Op::Write, 0, place, 4096, 0.0) };
            // Far into the file: the lowest place does not count.
            let thread = vec![write(1 << 30, calls - 1), write((1 << 30) + span - 4096, 1)];
            part_with_room(&Plan { files: vec![file], threads: vec![thread], ..Plan::default() })
        };
        assert_eq!(part(Role::ScratchFull, State::Cold, 1 << 26, 4096), 0.25);
        assert_eq!(part(Role::ScratchFull, State::Cold, 1 << 24, 4096), 1.0);
        assert_eq!(part(Role::ScratchFull, State::Cold, 1 << 40, 4096), SPARSE, "410 of 4,096 places");
        assert_eq!(part(Role::ScratchFull, State::Cold, 1 << 40, 400), 1.0);
        assert_eq!(part(Role::ScratchFull, State::Warm, 1 << 26, 4096), 1.0, "nothing is read");
        assert_eq!(part(Role::ScratchEmpty, State::Cold, 1 << 30, 4096), 1.0, "nothing is in it");
    }

    #[test]
    fn cold_bytes_are_read_once() {
        let file = |shift_bytes| PlanFile {
            size_bytes: 1 << 20,
            state: State::Cold,
            shift_bytes,
            ..PlanFile::new("/d", Role::User)
        };
        let read = Action::one(Op::Read { fresh: false }, 0, 0, 1 << 18, 0.0);
        let most = |shift| {
            let plan = Plan { files: vec![file(shift)], threads: vec![vec![read]], ..Plan::default() };
            most_passes(&plan, &Bounds::PROOF)
        };
        assert_eq!((most(0), most(1 << 18)), (1.0, 4.0));
        let makes = |stays| {
            let made = Action { count: 30, ..Action::one(Op::MakeFile { stays }, 0, 0, 0, 0.0) };
            most_passes(&Plan { threads: vec![vec![made]], ..Plan::default() }, &Bounds::PROOF)
        };
        assert_eq!((makes(true), makes(false)), (13.0, f64::INFINITY), "400 files that stay");
    }
}
