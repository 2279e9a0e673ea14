//! `inode-lock`: each thread writes to a file of its own, over blocks that are there. The same bytes are written; who reads
//! them must look into several files.

use iowhy_core::replay::{Op, Plan, Role};

use crate::repair::{Repaired, RunFacts, done};

pub(super) fn repaired(plan: &Plan, _: &RunFacts) -> Result<Repaired, String> {
    let writes = |thread: &[iowhy_core::replay::Action], file: u32| {
        thread.iter().any(|a| a.file == file && a.op == Op::Write)
    };
    let shared = (0..plan.files.len() as u32)
        .filter(|file| plan.threads.iter().filter(|t| writes(t, *file)).count() > 1)
        .collect::<Vec<u32>>();
    if shared.is_empty() {
        return Err("no file is written by several threads".to_owned());
    }
    let mut repaired = plan.clone();
    for file in shared {
        for thread in 1..repaired.threads.len() {
            if !writes(&plan.threads[thread], file) {
                continue;
            }
            let own = repaired.files[file as usize].clone();
            repaired.files.push(own);
            let index = repaired.files.len() as u32 - 1;
            for action in repaired.threads[thread].iter_mut().filter(|a| a.file == file) {
                action.file = index;
            }
        }
    }
    // The blocks of a thread follow each other in its file.
    for thread in &mut repaired.threads {
        let mut end = 0;
        for action in thread.iter_mut().filter(|a| a.op == Op::Write) {
            action.offset = end;
            action.stride = i64::try_from(action.bytes).unwrap_or(0);
            end += action.bytes * u64::from(action.count);
        }
        for action in thread.iter().filter(|a| a.op == Op::Write) {
            let file = &mut repaired.files[action.file as usize];
            file.role = Role::ScratchFull;
            file.shift_bytes = end;
            let passes = u64::from(plan.passes.max(1));
            file.size_bytes = file.size_bytes.min(end * passes).max(end).next_multiple_of(4096);
        }
    }
    done(repaired, "one preallocated file per thread")
}
