//! `sync-per-write`: a batch of records is made durable by one fdatasync (group commit). All bytes are written in the same
//! order; each record is durable when its batch is.

use iowhy_core::replay::{Action, Do, Plan};

use super::{Repaired, done, each};

/// Records of a batch.
const BATCH: u64 = 100;

pub(super) fn repaired(plan: &Plan) -> Result<Repaired, String> {
    let durable = |file: u32| plan.files.get(file as usize).is_some_and(|f| f.durable);
    let syncs = |a: &Action| matches!(a.what, Do::Sync { .. }) || (a.what == Do::Write && durable(a.file));
    if !plan.any(syncs) {
        return Err("no sync was seen in the stretches that were traced".to_owned());
    }
    let mut repaired = plan.clone();
    repaired.files.iter_mut().for_each(|f| f.durable = false);
    let mut most = 0;
    for (actions, of) in repaired.threads.iter_mut().zip(&plan.threads) {
        // A pass ends with a sync, so a batch is a whole part of it.
        let records: u64 = of.iter().filter(|a| syncs(a)).map(|a| u64::from(a.count)).sum();
        let batches = records.div_ceil(BATCH).max(1);
        let batch = records.div_ceil(batches).max(1);
        most = most.max(batch);
        let mut pending = 0;
        let mut owed_ns = 0.0;
        actions.clear();
        for action in each(of) {
            if !matches!(action.what, Do::Sync { .. }) {
                actions.push(Action { think_ns: action.think_ns + std::mem::take(&mut owed_ns), ..action });
            } else {
                owed_ns += action.think_ns;
            }
            if syncs(&action) {
                pending += 1;
                if pending >= batch {
                    pending = 0;
                    let sync = Do::Sync { whole: false };
                    actions.push(Action::one(sync, action.file, 0, 0, std::mem::take(&mut owed_ns)));
                }
            }
        }
        if pending > 0
            && let Some(last) = of.iter().rev().find(|a| syncs(a))
        {
            actions.push(Action::one(Do::Sync { whole: false }, last.file, 0, 0, owed_ns));
        }
    }
    done(repaired, format!("one fdatasync for {most} records"))
}
