//! First touches of a mapping that stays: the run makes one for each page, a window of it one in every repeat.
//!
//! A plan that touches pages is measured twice, as it is and with its pages touched before its time begins. Their mean has as large a part of
//! first touches as the run.

use std::collections::HashSet;

use iowhy_core::replay::{Action, Op, Plan};
use iowhy_diagnose::findings::Facts;

/// The plan with its pages touched before, and the share of the time that is that of the plan as it is, in this run. `None`: it touches no
/// mapping, or how often the run read each byte is not known.
pub(super) fn apart(facts: &Facts<'_>, plan: &Plan) -> Option<(Plan, f64)> {
    let touched = |file: u32| plan.any(|a| a.file == file && touches(a));
    let files = plan.files.iter().enumerate().filter(|(at, _)| touched(*at as u32));
    let used = files.filter_map(|(_, file)| facts.profile.files.iter().find(|used| used.path == file.path));
    let (distinct, all) =
        used.fold((0, 0), |(distinct, all), f| (distinct + f.reads.distinct_bytes, all + f.reads.bytes));
    if distinct == 0 || all == 0 {
        return None;
    }
    let share = distinct as f64 / all as f64 / first_part(plan)?;
    Some((Plan { touched_before: true, ..plan.clone() }, share.min(1.0)))
}

fn touches(action: &Action) -> bool {
    matches!(action.op, Op::TouchPages | Op::TouchLines)
}

/// The part of the bytes of one run that it touches for the first time.
fn first_part(plan: &Plan) -> Option<f64> {
    let mut pages = HashSet::new();
    let mut bytes = 0u64;
    let page_bytes = rustix::param::page_size() as u64;
    let passes = u64::from(plan.passes.max(1));
    for action in plan.actions().filter(|a| touches(a)) {
        let file = plan.files.get(action.file as usize)?;
        // Without a shift all passes touch the same pages.
        let others = if file.shift_bytes == 0 { 1 } else { passes };
        bytes += passes * action.bytes * u64::from(action.count);
        for (pass, i) in (0..others).flat_map(|pass| (0..action.count).map(move |i| (pass, i))) {
            let from = action.at(i).saturating_add(pass.saturating_mul(file.shift_bytes));
            let from = from % file.size_bytes.max(1);
            let until = from.saturating_add(action.bytes).min(file.size_bytes);
            pages.extend((from / page_bytes..until.div_ceil(page_bytes)).map(|page| (action.file, page)));
        }
    }
    (bytes > 0).then(|| ((pages.len() as u64 * page_bytes) as f64 / bytes as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use iowhy_core::profile::FileUse;
    use iowhy_core::replay::{PlanFile, Role};
    use iowhy_diagnose::findings::synthetic::Run;

    use super::*;

    fn toucher(passes: u32, shift_bytes: u64) -> Plan {
        let file = PlanFile { size_bytes: 1 << 20, shift_bytes, ..PlanFile::new("/data", Role::User) };
        let touch = Action { count: 32, stride: 4096, ..Action::one(Op::TouchLines, 0, 0, 4096, 0.0) };
        Plan { files: vec![file], threads: vec![vec![touch]], passes, ..Plan::default() }
    }

    #[test]
    fn first_touches_have_the_part_of_the_run() {
        let share = |times_read: u64, plan: &Plan| {
            let run = Run::new(1.0).with(|p| {
                let mut file = FileUse { path: "/data".into(), ..FileUse::default() };
                (file.reads.distinct_bytes, file.reads.bytes) = (1 << 20, times_read << 20);
                p.files.push(file);
            });
            run.facts(|facts| apart(facts, plan)).map(|(plan, share)| (plan.touched_before, share))
        };
        // 64 times over the file, and one run of the plan touches its pages four times.
        assert_eq!(share(64, &toucher(4, 0)), Some((true, 0.0625)));
        assert_eq!(share(64, &toucher(4, 32 * 4096)), Some((true, 1.0 / 64.0)), "other pages in each pass");
        assert_eq!(share(1, &toucher(1, 0)), Some((true, 1.0)));
        let mut reader = toucher(4, 0);
        reader.threads[0][0].op = Op::Read { fresh: false };
        assert_eq!(share(64, &reader), None);
    }
}
