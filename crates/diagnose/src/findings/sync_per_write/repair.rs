//! `sync-per-write`: a batch of records is made durable by one fdatasync (group commit). All bytes are written in the same
//! order; each record is durable when its batch is, and of each file that was made durable there is one fdatasync. What is
//! written to a journal stays as it was, at the same places of the one journal of a batch: how much of it a larger
//! transaction needs, nobody saw. At best it reads and writes each place once. Files that stay are all made; the write-back of each
//! begins where it was made durable, and the fdatasync of the last one waits for all of them.

use std::collections::HashSet;

use iowhy_core::replay::{Action, Op, Plan};

use crate::repair::{Repaired, RunFacts, Sizes, each, with_threads};

pub(super) const CHOICES: &[(&str, Sizes)] = &[
    ("10 records", Sizes { batch: 10, ..Sizes::USUAL }),
    ("100", Sizes { batch: 100, ..Sizes::USUAL }),
    ("1,000", Sizes { batch: 1000, ..Sizes::USUAL }),
];

pub(super) fn repaired(plan: &Plan, run_facts: &RunFacts) -> Result<Repaired, String> {
    let sizes = &run_facts.sizes;
    let durable = |file: u32| plan.files.get(file as usize).is_some_and(|f| f.durable);
    let syncs = |a: &Action| a.op.is_sync() || (a.op == Op::Write && durable(a.file));
    let stay: HashSet<u32> =
        plan.actions().filter(|a| a.op == Op::MakeFile { stays: true }).map(|a| a.file).collect();
    if !plan.any(syncs) {
        return Err("no sync is in the traced part of the run".to_owned());
    }
    let mut repaired = plan.clone();
    repaired.files.iter_mut().for_each(|f| f.durable = false);
    let wanted = sizes.batch.max(1);
    let mut most = 0;
    let mut of_several = false;
    for (actions, of) in repaired.threads.iter_mut().zip(&plan.threads) {
        let records: u64 = of.iter().filter(|a| syncs(a)).map(|a| u64::from(a.count)).sum();
        let batches = records.div_ceil(wanted).max(1);
        let batch = records.div_ceil(batches).max(1);
        most = most.max(batch);
        let mut pending = 0;
        // What the syncs of this batch were for, files and directories, in the order of their last ones.
        let mut owing: Vec<(Op, u32)> = Vec::new();
        let mut renewed = Vec::new();
        let mut owed_ns = 0.0;
        actions.clear();
        for action in each(of) {
            // A batch has one journal.
            let journal = action.op == Op::MakeFile { stays: false };
            let again = journal && renewed.contains(&action.file);
            if journal {
                renewed.push(action.file);
            }
            if !again && !action.op.is_sync() {
                actions.push(Action { think_ns: action.think_ns + std::mem::take(&mut owed_ns), ..action });
            } else {
                owed_ns += action.think_ns;
            }
            if syncs(&action) {
                pending += 1;
                let sync = match action.op {
                    Op::SyncDirectory => action.op,
                    _ => Op::Fsync { metadata: false },
                };
                if sync != Op::SyncDirectory && stay.contains(&action.file) {
                    let whole =
                        Action::one(Op::SyncFileRange, action.file, 0, 0, std::mem::take(&mut owed_ns));
                    actions.push(whole);
                }
                // Write-back of files that stay has begun: who waits for the last one waits for all.
                let stays = |file| sync != Op::SyncDirectory && stay.contains(&file);
                let both_stay = |file| stays(file) && stays(action.file);
                owing.retain(|&(owed, file)| owed != sync || (file != action.file && !both_stay(file)));
                owing.push((sync, action.file));
                of_several |= owing.len() > 1;
                if pending >= batch {
                    pending = 0;
                    renewed.clear();
                    for (sync, file) in owing.drain(..) {
                        actions.push(Action::one(sync, file, 0, 0, std::mem::take(&mut owed_ns)));
                    }
                }
            }
        }
        for (sync, file) in owing {
            actions.push(Action::one(sync, file, 0, 0, std::mem::take(&mut owed_ns)));
        }
    }
    let how = match wanted {
        Sizes::ALL if of_several => "one fdatasync of each file at the end".to_owned(),
        Sizes::ALL => "one fdatasync at the end".to_owned(),
        _ if of_several => format!("one fdatasync of each file for {most} syncs"),
        _ => format!("one fdatasync for {most} records"),
    };
    let once = with_threads(&repaired, each_place_once);
    if once.calls() == repaired.calls() {
        return Ok(Repaired::new(repaired, how));
    }
    let how = format!("{how}; at best, each place is read and written once in a batch");
    Ok(Repaired { at_best: Some(once), ..Repaired::new(repaired, how) })
}

/// Of the calls between two syncs, the last write of each place and the first read of it. What goes to the next file is at
/// another place.
fn each_place_once(actions: &[Action]) -> Vec<Action> {
    let mut kept = Vec::with_capacity(actions.len());
    let ends_batch = |a: &Action| a.op.is_sync() || a.op == Op::MakeFile { stays: true };
    for batch in actions.chunk_by(|a, b| !ends_batch(a) || b.op.is_sync()) {
        let place = |a: &Action| (a.file, a.offset, a.bytes);
        let (mut written, mut read) = (HashSet::new(), HashSet::new());
        let last = |a: &Action| a.op != Op::Write || written.insert(place(a));
        let mut writes_once: Vec<Action> = batch.iter().rev().copied().filter(last).collect();
        writes_once.reverse();
        let first = |a: &Action| !matches!(a.op, Op::Read { .. }) || read.insert(place(a));
        kept.extend(writes_once.into_iter().filter(first));
    }
    kept
}
