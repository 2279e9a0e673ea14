//! Bounds what a replay writes to a third of the free space, so that nobody runs out of it. A plan that would write more is
//! refused: a shorter one would be another run.

use iowhy_core::replay::{Action, Op, Plan, Role, Room};
use iowhy_core::units::Bytes;

use super::baseline::Baseline;

/// Share of the free space for a replay: 1/N.
const PART: u64 = 3;
const BLOCK: u64 = 4096;

/// The baseline, if it stays within the free space beside each file.
///
/// # Errors
/// There is too little, as the end of a sentence.
pub(crate) fn within(baseline: Baseline, room: impl Fn(&str) -> Option<Room>) -> Result<Baseline, String> {
    let systems = systems(&baseline.plan, room);
    if fits(&baseline.plan, &systems) { Ok(baseline) } else { Err(too_little(&baseline, &systems)) }
}

/// Scratch files, by file system.
fn systems(plan: &Plan, room: impl Fn(&str) -> Option<Room>) -> Vec<(Room, Vec<u32>)> {
    let mut systems: Vec<(Room, Vec<u32>)> = Vec::new();
    for (at, file) in plan.files.iter().enumerate() {
        if !matches!(file.role, Role::ScratchEmpty | Role::ScratchFull) {
            continue;
        }
        let Some(room) = room(&file.path) else { continue };
        match systems.iter_mut().find(|(known, _)| known.file_system == room.file_system) {
            Some((_, files)) => files.push(at as u32),
            None => systems.push((room, vec![at as u32])),
        }
    }
    systems
}

fn fits(plan: &Plan, systems: &[(Room, Vec<u32>)]) -> bool {
    let needed = |files: &[u32]| files.iter().fold(0u64, |sum, f| sum.saturating_add(written(plan, *f)));
    systems.iter().all(|(room, files)| needed(files) <= room.free_bytes / PART / room.replays.max(1))
}

fn too_little(baseline: &Baseline, systems: &[(Room, Vec<u32>)]) -> String {
    let least = systems.iter().min_by_key(|(room, _)| room.free_bytes);
    let of = least
        .and_then(|(room, files)| Some((room, &baseline.plan.files.get(*files.first()? as usize)?.path)));
    match of {
        Some((room, path)) => format!(
            "the file system of `{path}` has {} free and {} at most a third of it: make room there",
            Bytes(room.free_bytes),
            match room.replays {
                0 | 1 => "a replay writes".to_owned(),
                several => format!("{several} replays together write"),
            }
        ),
        None => "there is too little free space for a replay".to_owned(),
    }
}

/// Largest size of a scratch file. Full files exist before the first call.
fn written(plan: &Plan, file: u32) -> u64 {
    let Some(planned) = plan.files.get(file as usize) else { return 0 };
    if planned.role == Role::ScratchFull {
        return planned.size_bytes;
    }
    let takes_room = |op: Op| matches!(op, Op::Write | Op::Allocate { .. });
    let writes = || plan.actions().filter(|a| a.file == file && takes_room(a.op));
    let passes = u64::from(plan.passes.max(1));
    let end =
        writes().map(|a| a.at(0).max(a.at(a.count.max(1) - 1)).saturating_add(a.bytes)).max().unwrap_or(0);
    let extent = end.saturating_add(planned.shift_bytes.saturating_mul(passes - 1));
    // Writes that leave holes take whole blocks; consecutive ones take at most what they span.
    let of = |a: &Action| (a.bytes.saturating_add(BLOCK)).saturating_mul(u64::from(a.count));
    let blocks = writes().fold(0u64, |sum, a| sum.saturating_add(of(a))).saturating_mul(passes);
    extent.min(blocks)
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::PlanFile;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn baseline(role: Role, count: u32, passes: u32) -> Baseline {
        let file = PlanFile {
            size_bytes: if role == Role::ScratchFull { 8 * MIB } else { 0 },
            shift_bytes: u64::from(count) * MIB,
            ..PlanFile::new("/small/out", role)
        };
        let write = Action {
            op: Op::Write,
            file: 0,
            offset: 0,
            bytes: MIB,
            count,
            stride: MIB as i64,
            think_ns: 1.0,
        };
        let plan =
            Plan { files: vec![file], threads: vec![vec![write]], passes, depth: 1, ..Plan::default() };
        Baseline {
            plan,
            scale: 2.0,
            program_io_ns: 1e9,
            recorded: None,
            recording: None,
            touching_ns: 0.0,
            goes_along_ns: 0.0,
            notes: Vec::new(),
        }
    }

    fn bound(baseline: Baseline, free_mib: u64) -> Result<Baseline, String> {
        within(baseline, |_| Some(Room { file_system: 1, free_bytes: free_mib * MIB, replays: 1 }))
    }

    #[test]
    fn what_fits_is_left_as_it_is_and_so_is_what_has_no_bound() {
        let plan = baseline(Role::ScratchEmpty, 10, 4);
        assert_eq!(bound(plan.clone(), 120), Ok(plan.clone()));
        assert_eq!(within(plan.clone(), |_| None), Ok(plan));
        let mut reads = baseline(Role::ScratchEmpty, 1000, 4);
        reads.plan.files[0].role = Role::User;
        assert_eq!(bound(reads.clone(), 0), Ok(reads), "what is only read takes no room");
    }

    #[test]
    fn too_little_room_is_told_with_the_place() {
        for (plan, free) in
            [(baseline(Role::ScratchEmpty, 10, 4), 95), (baseline(Role::ScratchFull, 1, 1), 20)]
        {
            let why = bound(plan, free).unwrap_err();
            assert!(why.contains("/small/out") && why.contains("third"), "{why}");
        }
    }

    #[test]
    fn small_writes_at_far_places_count_by_their_blocks() {
        let mut plan = baseline(Role::ScratchEmpty, 1000, 1);
        plan.plan.threads[0][0].bytes = 100;
        assert_eq!(written(&plan.plan, 0), 1000 * 4196);
    }
}
