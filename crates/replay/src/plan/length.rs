//! How often a repaired plan repeats its passes in one run.
//!
//! A good repair ends within milliseconds, and its start (cold CPU caches, an idle CPU) would weigh too much: the program
//! pays it once. So passes are repeated, at most as often as the program made them.

use iowhy_core::replay::{Op, Plan, Role, Room, State};

use super::duration::MAX_WRITTEN_BYTES;
use super::free_space;

/// Factor on the passes of a repaired plan: until it takes about as long as the baseline, bounded by what the program did
/// (`scale`), by new offsets and by free space. `was_ns` and `now_ns`: one run of the baseline and of the repair.
pub(crate) fn times(
    plan: &Plan,
    scale: f64,
    was_ns: f64,
    now_ns: f64,
    free: impl Fn(&str) -> Option<Room>,
) -> u32 {
    // With dropped cache, or in a control group, each run starts again.
    if plan.placed.is_some() || plan.any(|a| a.op == Op::FadviseDontNeed) || now_ns <= 0.0 {
        return 1;
    }
    let passes = u64::from(plan.passes.max(1));
    let new_offsets = |file: &iowhy_core::replay::PlanFile| match (file.role, file.state) {
        (Role::User | Role::ScratchFull, State::Cold) if file.shift_bytes == 0 => 1,
        (Role::User | Role::ScratchFull, State::Cold) => {
            file.size_bytes / file.shift_bytes.saturating_mul(passes).max(1)
        }
        _ => u64::MAX,
    };
    let offsets = plan.files.iter().map(new_offsets).min().unwrap_or(u64::MAX).max(1);
    let written = plan.bytes(|what| what == Op::Write).saturating_mul(passes).max(1);
    let most = scale.min(was_ns / now_ns).min(offsets as f64).min((MAX_WRITTEN_BYTES / written) as f64);
    let mut times = most.clamp(1.0, f64::from(u32::MAX / plan.passes.max(1))) as u32;
    let fits = |times: u32| free_space::allows(&lengthened(plan, times), &free);
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
    fn it_finds_new_offsets_and_room() {
        let cold = plan(Role::User, State::Cold, READ);
        assert_eq!(of(&cold, 50.0, 3e6), 8, "64 MiB hold 8 times 8 passes of 1 MiB");
        let updated = plan(Role::ScratchFull, State::Cold, READ);
        assert_eq!(of(&updated, 50.0, 3e6), 8, "as much as a user file");
        let written = plan(Role::ScratchEmpty, State::Warm, Op::Write);
        assert_eq!(of(&written, 1e9, 1e3), 64, "8 MiB each, 512 MiB at the most");
        let little = |free_bytes| move |_: &str| Some(Room { file_system: 1, free_bytes });
        assert_eq!(times(&written, 1e9, 3e8, 1e3, little(3 * (16 << 20))), 2);
        assert_eq!(times(&written, 1e9, 3e8, 1e3, little(1 << 20)), 1);
    }

    #[test]
    fn runs_that_start_again_are_not_repeated() {
        let mut forgets = plan(Role::User, State::Warm, READ);
        forgets.threads[0].push(Action::one(Op::FadviseDontNeed, 0, 0, 0, 0.0));
        assert_eq!(of(&forgets, 50.0, 3e6), 1);
        let placed = Plan { placed: Some(Placed::default()), ..plan(Role::User, State::Warm, READ) };
        assert_eq!(of(&placed, 50.0, 3e6), 1);
    }
}
