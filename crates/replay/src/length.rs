//! How long a repaired run is carried out.
//!
//! A repair that works leaves little to do: a run of the plan that took 0.3 s is over in a few milliseconds, of which the
//! start (cold caches of the CPU, a CPU that was asleep) is a part that the program pays once in all its run. So the passes
//! are repeated, up to as much as the program did. What may not enter: what is done in a pass.

use iowhy_core::replay::{Op, Plan, Role, Room, State};

use super::{MOST_WRITTEN_BYTES, room};

/// How many times its passes a repaired plan is carried out in one run: so often that it takes about as long as the run as it
/// was, not more often than the program did (`scale`), nor than there is room and there are new places for. `was_ns`
/// and `now_ns`: what one run of each takes.
pub(crate) fn times(
    plan: &Plan,
    scale: f64,
    was_ns: f64,
    now_ns: f64,
    free: impl Fn(&str) -> Option<Room>,
) -> u32 {
    // What is dropped from the cache, or is in a control group, begins each run anew.
    if plan.placed.is_some() || plan.any(|a| a.op == Op::FadviseDontNeed) || now_ns <= 0.0 {
        return 1;
    }
    let passes = u64::from(plan.passes.max(1));
    let new_places = |file: &iowhy_core::replay::PlanFile| match (file.role, file.state) {
        (Role::User | Role::ScratchFull, State::Cold) if file.shift_bytes == 0 => 1,
        (Role::User | Role::ScratchFull, State::Cold) => {
            file.size_bytes / file.shift_bytes.saturating_mul(passes).max(1)
        }
        _ => u64::MAX,
    };
    let places = plan.files.iter().map(new_places).min().unwrap_or(u64::MAX).max(1);
    let written = plan.bytes(|what| what == Op::Write).saturating_mul(passes).max(1);
    let most = scale.min(was_ns / now_ns).min(places as f64).min((MOST_WRITTEN_BYTES / written) as f64);
    let mut times = most.clamp(1.0, f64::from(u32::MAX / plan.passes.max(1))) as u32;
    let fits = |times: u32| room::allows(&lengthened(plan, times), &free);
    while times > 1 && !fits(times) {
        times /= 2;
    }
    times.max(1)
}

fn lengthened(plan: &Plan, times: u32) -> Plan {
    Plan { passes: plan.passes.max(1).saturating_mul(times), ..plan.clone() }
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::{Action, Placed, PlanFile};

    use super::*;

    fn plan(role: Role, state: State, what: Op) -> Plan {
        let file =
            PlanFile { size_bytes: 64 << 20, state, shift_bytes: 1 << 20, ..PlanFile::new("/data", role) };
        let action = Action { count: 16, stride: 65_536, ..Action::one(what, 0, 0, 65_536, 0.0) };
        Plan { files: vec![file], threads: vec![vec![action]], passes: 8, depth: 1, ..Plan::default() }
    }

    const READ: Op = Op::Read { fresh: false };

    fn of(plan: &Plan, scale: f64, now_ns: f64) -> u32 {
        times(plan, scale, 3e8, now_ns, |_| None)
    }

    #[test]
    fn a_short_run_is_repeated_until_it_is_as_long_or_did_what_the_program_did() {
        let warm = plan(Role::User, State::Warm, READ);
        assert_eq!((of(&warm, 50.0, 3e7), of(&warm, 7.9, 3e7)), (10, 7));
        assert_eq!((of(&warm, 50.0, 2e8), of(&warm, 50.0, 5e8), of(&warm, 50.0, 0.0)), (1, 1, 1));
    }

    #[test]
    fn it_finds_new_places_and_room() {
        let cold = plan(Role::User, State::Cold, READ);
        assert_eq!(of(&cold, 50.0, 3e6), 8, "64 MiB hold 8 times 8 passes of 1 MiB");
        let updated = plan(Role::ScratchFull, State::Cold, READ);
        assert_eq!(of(&updated, 50.0, 3e6), 8, "as much as one of the user's");
        let written = plan(Role::ScratchEmpty, State::Warm, Op::Write);
        assert_eq!(of(&written, 1e9, 1e3), 64, "8 MiB each, 512 MiB at the most");
        let little = |free_bytes| move |_: &str| Some(Room { file_system: 1, free_bytes });
        assert_eq!(times(&written, 1e9, 3e8, 1e3, little(3 * (16 << 20))), 2);
        assert_eq!(times(&written, 1e9, 3e8, 1e3, little(1 << 20)), 1);
    }

    #[test]
    fn what_begins_anew_in_each_run_is_not_repeated() {
        let mut forgets = plan(Role::User, State::Warm, READ);
        forgets.threads[0].push(Action::one(Op::FadviseDontNeed, 0, 0, 0, 0.0));
        assert_eq!(of(&forgets, 50.0, 3e6), 1);
        let placed = Plan { placed: Some(Placed::default()), ..plan(Role::User, State::Warm, READ) };
        assert_eq!(of(&placed, 50.0, 3e6), 1);
    }
}
