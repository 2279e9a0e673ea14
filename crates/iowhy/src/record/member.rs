//! How a cell's work was spread over the members of a stripe, or over the devices under a volume.

use iowhy_core::cell::{CellRun, MemberTotals, Sample};
use iowhy_core::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One member's part of a cell, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberRecord {
    /// How the member was named, or the kernel's name of the device.
    pub name: String,
    /// Requests that were sent to it after splitting; null where the kernel splits them.
    pub requests: Option<u64>,
    /// Bytes of those.
    pub bytes: Option<u64>,
    /// Requests that its devices completed; null where they serve other members too, or do not count.
    pub device_requests: Option<u64>,
    /// Bytes of those.
    pub device_bytes: Option<u64>,
    /// Share of the cell's time in which its devices had a request in flight; above 1 where it has several devices.
    pub device_busy_share: Option<f64>,
}

impl MemberRecord {
    /// The members of a run, by name; empty where it has none.
    pub fn all_of(run: &CellRun, names: &[String]) -> Vec<MemberRecord> {
        let wall_ns = units::total(run.samples.iter().map(|sample| sample.wall_ns));
        let sum = |index: usize, of: fn(&MemberTotals) -> Option<u64>| {
            // A round in which it was not seen leaves the sum unknown.
            let each = |sample: &Sample| sample.members.get(index).and_then(of);
            run.samples.iter().map(each).try_fold(0u64, |sum, each| Some(sum.saturating_add(each?)))
        };
        let record = |(index, name): (usize, &String)| MemberRecord {
            name: name.clone(),
            requests: sum(index, |member| member.requests),
            bytes: sum(index, |member| member.bytes),
            device_requests: sum(index, |member| member.device_requests),
            device_bytes: sum(index, |member| member.device_bytes),
            device_busy_share: sum(index, |member| member.device_busy_ns)
                .filter(|_| wall_ns > 0)
                .map(|busy| busy as f64 / wall_ns as f64),
        };
        match run.samples.first() {
            Some(first) if !first.members.is_empty() => names.iter().enumerate().map(record).collect(),
            _ => Vec::new(),
        }
    }

    /// Bytes that it was asked for; where the kernel splits, those that its devices moved.
    pub fn moved(&self) -> Option<u64> {
        self.bytes.or(self.device_bytes)
    }
}

#[cfg(test)]
mod tests {
    use iowhy_core::cell::StateCheck;
    use iowhy_core::workload::{CacheState, Method, Workload};

    use super::*;

    #[test]
    fn rounds_are_summed_and_what_was_not_seen_in_one_is_not_known() {
        let member = |bytes, busy| MemberTotals {
            requests: Some(1),
            bytes: Some(bytes),
            device_busy_ns: busy,
            ..MemberTotals::default()
        };
        let round = |members| Sample { wall_ns: 100, members, ..Sample::default() };
        let mut run = CellRun {
            workload: Workload::reads(Method::Pread, CacheState::Cold, 4096, 1 << 20),
            key: "k".into(),
            samples: vec![
                round(vec![member(10, Some(50)), member(20, Some(9))]),
                round(vec![member(1, Some(100)), member(2, None)]),
            ],
            latency: Default::default(),
            state_check: StateCheck::Verified,
            dropped: Vec::new(),
            failure: None,
        };
        let names = ["a".to_owned(), "b".to_owned()];
        let records = MemberRecord::all_of(&run, &names);
        assert_eq!(records.iter().map(MemberRecord::moved).collect::<Vec<_>>(), [Some(11), Some(22)]);
        assert_eq!(records[0].device_busy_share, Some(0.75));
        assert_eq!((records[1].device_busy_share, records[1].device_bytes), (None, None));
        run.samples.clear();
        assert!(MemberRecord::all_of(&run, &names).is_empty());
    }
}
