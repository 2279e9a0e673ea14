//! Changes of `--what-if`, tried whether a finding advises them or not. A change keeps the bytes that the program reads, and
//! their order where it can.

use iowhy_core::replay::{Action, Op, Plan, Role};

use crate::run_facts;
use iowhy_core::finding::FindingId;
use iowhy_diagnose::findings::repaired;
use iowhy_diagnose::repair::{Repaired, Sizes, hinted_random, with_aligned_buffers};

/// Offsets and sizes of direct requests are multiples of this on nearly every device.
const ALIGNMENT: u64 = 4096;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// O_DIRECT for buffered reads.
    Direct,
    /// A higher queue depth.
    Deeper,
    /// Consecutive requests merged.
    Larger,
    /// One mapping of the file instead of reads.
    Mapped,
    /// A mapping for each read.
    Windows,
    /// The advice that access is random.
    Random,
    /// Page-aligned buffers.
    Aligned,
}

impl Change {
    /// All changes.
    pub const ALL: [Change; 7] = [
        Change::Direct,
        Change::Deeper,
        Change::Larger,
        Change::Mapped,
        Change::Windows,
        Change::Random,
        Change::Aligned,
    ];

    /// Its name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Change::Direct => "direct",
            Change::Deeper => "deeper",
            Change::Larger => "larger",
            Change::Mapped => "mapped",
            Change::Windows => "windows",
            Change::Random => "random",
            Change::Aligned => "aligned",
        }
    }

    /// Whether it removes calls, with the program's own time around them.
    pub(crate) fn removes_calls(self) -> bool {
        self == Change::Larger
    }
}

/// The plan with a change.
///
/// # Errors
/// Why it cannot be made, as the end of a sentence.
pub(crate) fn changed(change: Change, plan: &Plan, sizes: &Sizes) -> Result<Repaired, String> {
    if plan.tree.is_some() {
        return Err("the replay uses substitute files".to_owned());
    }
    let of = |id| repaired(id, plan, &run_facts::of_machine(plan, *sizes));
    match change {
        Change::Direct => direct(plan),
        Change::Deeper => of(FindingId::QueueDepthOne),
        Change::Larger => of(FindingId::SmallRequests),
        Change::Mapped => of(FindingId::CopyBound),
        Change::Windows => windows(plan),
        Change::Random => Ok(hinted_random(plan)),
        Change::Aligned => with_aligned_buffers(plan)
            .ok_or_else(|| "all buffers are page-aligned, or nothing is copied".to_owned()),
    }
}

fn reads(action: &Action) -> bool {
    matches!(action.op, Op::Read { .. })
}

fn of_user_file(plan: &Plan, action: &Action) -> bool {
    plan.files.get(action.file as usize).is_some_and(|f| f.role == Role::User)
}

fn direct(plan: &Plan) -> Result<Repaired, String> {
    let cached = |a: &Action| {
        reads(a) && of_user_file(plan, a) && plan.files.get(a.file as usize).is_some_and(|f| !f.direct)
    };
    if !plan.any(cached) {
        return Err("the program made no buffered read".to_owned());
    }
    let aligned = |n: u64| n.is_multiple_of(ALIGNMENT);
    let whole = |a: &Action| aligned(a.offset) && aligned(a.bytes) && aligned(a.stride.unsigned_abs());
    if !plan.actions().filter(|a| cached(a)).all(whole) {
        return Err(format!("direct reads need multiples of {ALIGNMENT} bytes, and these reads have others"));
    }
    let mut changed = plan.clone();
    for file in changed.files.iter_mut().filter(|f| f.role == Role::User) {
        file.direct = true;
        file.buffer_offset = 0;
        file.shift_bytes = file.shift_bytes.next_multiple_of(ALIGNMENT);
    }
    Ok(Repaired::new(changed, "the same reads with O_DIRECT"))
}

fn windows(plan: &Plan) -> Result<Repaired, String> {
    let mut changed = plan.clone();
    let mut found = false;
    for action in changed.threads.iter_mut().flatten() {
        if reads(action) && of_user_file(plan, action) && !plan.files[action.file as usize].direct {
            action.op = Op::MapReadUnmap { populate: false };
            found = true;
        }
    }
    if !found {
        return Err("the program made no buffered read".to_owned());
    }
    Ok(Repaired::new(changed, "mmap and munmap for each read"))
}

#[cfg(test)]
mod tests {
    use iowhy_core::replay::{Advice, PlanFile};

    use super::*;

    fn plan(what: Op, bytes: u64) -> Plan {
        let file = PlanFile {
            size_bytes: 1 << 30,
            shift_bytes: 100 * bytes,
            buffer_offset: 48,
            ..PlanFile::new("/data", Role::User)
        };
        let action = Action { count: 100, stride: bytes as i64, ..Action::one(what, 0, 0, bytes, 1.0) };
        Plan { files: vec![file], threads: vec![vec![action]], passes: 1, depth: 1, ..Plan::default() }
    }

    const READ: Op = Op::Read { fresh: false };

    fn of(change: Change, plan: &Plan) -> Result<Plan, String> {
        changed(change, plan, &Sizes::default()).map(|r| r.plan)
    }

    #[test]
    fn each_change_moves_the_same_bytes_another_way() {
        let was = plan(READ, 4096);
        assert!(of(Change::Direct, &was).unwrap().files[0].direct);
        assert_eq!(of(Change::Windows, &was).unwrap().threads[0][0].op, Op::MapReadUnmap { populate: false });
        assert_eq!(of(Change::Mapped, &was).unwrap().threads[0][0].op, Op::TouchPages);
        assert_eq!(of(Change::Deeper, &was).unwrap().threads.len(), 16);
        assert_eq!(of(Change::Larger, &was).unwrap().calls(), 7);
        assert_eq!(of(Change::Random, &was).unwrap().files[0].advice, Advice::Random);
        let offset = |change| of(change, &was).unwrap().files[0].buffer_offset;
        assert_eq!((offset(Change::Aligned), offset(Change::Direct), offset(Change::Larger)), (0, 0, 48));
        let long = Sizes { request_bytes: 1 << 18, ..Sizes::default() };
        let larger = changed(Change::Larger, &was, &long).unwrap().plan;
        assert_eq!(larger.files[0].buffer_offset, 16, "as malloc returns it");
        for change in Change::ALL {
            let moved = |p: &Plan| p.bytes(|_| true);
            assert_eq!(moved(&of(change, &was).unwrap()), moved(&was), "{}", change.id());
        }
    }

    #[test]
    fn a_change_that_cannot_be_made_says_why() {
        let small = plan(READ, 100);
        let aligned = of(Change::Aligned, &small).unwrap();
        assert!(of(Change::Aligned, &aligned).unwrap_err().contains("page-aligned"));
        assert!(of(Change::Direct, &small).unwrap_err().contains("multiples of 4096"));
        let writes = plan(Op::Write, 4096);
        for change in [Change::Direct, Change::Windows, Change::Mapped, Change::Deeper] {
            assert!(of(change, &writes).is_err(), "{}", change.id());
        }
    }
}
