//! The baseline of direct reads through a ring, which no call shows: number, size, queue depth and order as the device got
//! them. Offsets are unknown, and requests were split and merged by then.

use iowhy_core::profile::{FileIdentity, FileUse, Limited};
use iowhy_core::replay::{Action, Op, Plan, PlanFile, Role, State};
use iowhy_core::rng::Rng;

use super::baseline::Baseline;
use super::duration::{MAX_ARM_NS, wall_ns};
use iowhy_diagnose::classify::Operation;
use iowhy_diagnose::findings::{Facts, own_ns};

const PAGE: u64 = 4096;
/// So many requests make a shape.
const MIN_REQUESTS: u64 = 32;
/// Places that are drawn, and requests that are replayed, at the most.
const MAX_REQUESTS: u64 = 20_000;
/// Of direct reads so little stays in the page cache, and so little may be written by tasks that happen to issue for others.
const LITTLE: f64 = 0.05;
/// From this share of requests on that begin where the one before ended, the order is sequential.
const IN_ORDER: f64 = 0.7;
/// More in flight than this, and the ring itself is the limit.
const MAX_DEPTH: f64 = 128.0;
/// So many looks at a ring tell what is in flight there.
const MIN_SAMPLES: u64 = 5;
/// Seed of the places.
const SEED: u64 = 1999;

/// The plan.
pub(super) fn baseline(facts: &Facts<'_>) -> Result<Baseline, String> {
    let none =
        |why: &str| format!("single requests through io_uring or Linux AIO are not visible, and {why}");
    let profile = facts.profile;
    let Some(block) = &profile.block else {
        return Err(none("the requests of the device were not recorded"));
    };
    if block.own_reads < MIN_REQUESTS || block.own_written_bytes as f64 > LITTLE * block.own_read_bytes as f64
    {
        return Err(none("only reads that reached the device can be replayed"));
    }
    let (used, identity) = the_file(facts).ok_or_else(|| none("which file they went to is not known"))?;
    let grown = used.cached_after.unwrap_or(1.0) - used.cached_before.unwrap_or(0.0);
    let kept = grown * identity.size_bytes as f64;
    // The program itself is read ahead while it starts.
    let little = LITTLE * block.own_read_bytes as f64;
    if block.own_read_ahead_bytes as f64 > little || kept > little {
        return Err(none("they went through the page cache"));
    }
    let bytes = (block.own_read_bytes / block.own_reads).div_ceil(PAGE) * PAGE;
    let pages = identity.size_bytes / PAGE;
    if bytes == 0 || bytes > identity.size_bytes {
        return Err(none("their size is not known"));
    }
    let in_order = block.own_reads_adjacent as f64 >= IN_ORDER * block.own_reads as f64;
    // A limit holds requests back before the device sees them: the ring knows of all. Elsewhere the device knows better, for
    // on a ring may wait what is no request to a device.
    let held_back = profile.groups.iter().any(|group| group.limits(Limited::Disk));
    let on_rings =
        profile.rings.as_ref().filter(|r| held_back && r.looks >= MIN_SAMPLES).map(|r| r.in_flight);
    let depth = on_rings.or(block.in_flight).unwrap_or(1.0).round().clamp(1.0, MAX_DEPTH) as u32;
    let program_io_ns = wall_ns(facts, &[Operation::Ring, Operation::Aio]) + facts.entering_wall_ns();
    let own = own_ns(facts);
    let part = (MAX_ARM_NS / (program_io_ns + own).max(1.0)).min(1.0);
    let count = ((block.own_reads as f64 * part).ceil() as u64).clamp(1, MAX_REQUESTS);
    let think_ns = own / block.own_reads as f64;
    let read = |place, count| Action {
        op: Op::Read { fresh: false },
        file: 0,
        offset: place,
        bytes,
        count,
        stride: i64::try_from(bytes).unwrap_or(0),
        think_ns,
    };
    let actions = if in_order {
        vec![read(0, u32::try_from(count).unwrap_or(u32::MAX))]
    } else {
        let last = (pages * PAGE - bytes) / PAGE + 1;
        let mut rng = Rng::new(SEED);
        (0..count).map(|_| read(rng.below(last) * PAGE, 1)).collect()
    };
    let file = PlanFile {
        identity: Some(identity),
        size_bytes: identity.size_bytes,
        direct: true,
        state: State::Cold,
        ..PlanFile::new(used.path.clone(), Role::User)
    };
    let plan = Plan { files: vec![file], threads: vec![actions], passes: 1, depth, ..Plan::default() };
    let note = format!(
        "made of the shape that the device saw, because no call tells of requests on a ring: direct reads of {bytes} bytes, \
         {depth} in flight, {}",
        if in_order { "in order" } else { "at places drawn at random" }
    );
    // Requests that a limit held back are issued by the kernel's threads: the account of the tasks knows them all.
    let read = profile.io.device_read_bytes.map_or(0.0, |all| all as f64 / bytes as f64);
    let scale = read.max(block.own_reads as f64) / count as f64;
    Ok(Baseline { plan, scale, program_io_ns, overhead: 0.0, notes: vec![note] })
}

/// The one file that they can have gone to: of those whose calls were not seen, the largest, if it is much larger than all
/// others.
fn the_file<'a>(facts: &Facts<'a>) -> Option<(&'a FileUse, FileIdentity)> {
    let profile = facts.profile;
    let unseen = |f: &&FileUse| f.kind == "regular" && !f.mapped && f.reads.calls + f.writes.calls == 0;
    let mut files: Vec<&FileUse> = profile.files.iter().filter(unseen).collect();
    files.sort_by_key(|f| std::cmp::Reverse(f.size_bytes));
    let file = *files.first()?;
    let next = files.get(1).and_then(|f| f.size_bytes).unwrap_or(0);
    if file.size_bytes? < next.saturating_mul(4) {
        return None;
    }
    let identity = profile.pattern.files.iter().find(|p| p.path == file.path)?.identity?;
    Some((file, identity))
}
