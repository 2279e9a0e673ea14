//! The cells of `doctor --try`: the canonical requests that a setting can touch, and one that it cannot, as a control.

use std::collections::BTreeMap;

use iowhy_core::environment::TargetKind;
use iowhy_core::pattern::Pattern;
use iowhy_core::setting::Key;
use iowhy_core::workload::Method;
use iowhy_probe::campaign::Cell;
use iowhy_probe::target::Target;

use crate::plan::PathPlan;

/// A request of a trial.
#[derive(Debug)]
pub struct Request<'a> {
    /// What to measure.
    pub cell: Cell<'a>,
    /// Its name on the screen.
    pub label: &'static str,
    /// Whether the setting cannot touch it.
    pub control: bool,
}

/// Key and label of the request that leaves dirty pages behind; no canonical request does.
const STREAM: (&str, &str) = ("write-1m", "write 1 MiB, not synced");
/// The method of reading that waits for read-ahead too.
const MAPPED: (&str, &str) = ("cold-way-mmap", "cold sequential, mapped");

/// Keys of the requests that a setting can touch, and of those that it cannot, the best first.
fn touched(setting: Key) -> (&'static [&'static str], &'static [&'static str]) {
    const CACHED: &[&str] = &["cached-4k"];
    const DIRECT: &[&str] = &["direct-4k", "cached-4k"];
    match setting {
        Key::ReadAhead => (&["cold-seq-128k", MAPPED.0], DIRECT),
        Key::WritebackThrottle => (&["write-sync-4k", STREAM.0], CACHED),
        Key::NoReadWorkqueue => (&["cold-seq-128k", "direct-4k", "direct-4k-d32"], CACHED),
        Key::NoWriteWorkqueue | Key::SubmitFromCryptCpus => (&["write-sync-4k", STREAM.0], CACHED),
        Key::Thp => (&["cached-1m", "mapped-4k"], &["direct-4k"]),
        // A mapped file has its time of access changed once, when it is mapped.
        Key::AccessTime => (&["cached-4k", "direct-4k", "cold-seq-128k"], &["mapped-4k"]),
        Key::LazyTime => (&["write-sync-4k", STREAM.0], &["mapped-4k"]),
        // No request goes without a CPU.
        Key::Governor => (&["cached-4k", "direct-4k", "write-sync-4k"], &[]),
        Key::DirtyRatio | Key::DirtyBytes | Key::DirtyBackgroundRatio | Key::DirtyBackgroundBytes => {
            (&[STREAM.0], CACHED)
        }
        _ => (&["cold-seq-128k", "direct-4k", "direct-4k-d32", "write-sync-4k"], CACHED),
    }
}

/// The requests of a trial, out of the plan of the path report. What the target cannot do is left out; without a request
/// that the setting can touch there are none.
pub fn requests<'a>(setting: Key, target: &'a Target, plan: PathPlan<'a>) -> Vec<Request<'a>> {
    let (can, cannot) = touched(setting);
    // User files are opened with O_NOATIME.
    if setting == Key::AccessTime && target.facts.kind != TargetKind::Scratch {
        return Vec::new();
    }
    let labels: BTreeMap<String, &str> = plan
        .canonical()
        .into_iter()
        .chain([MAPPED, STREAM].map(|(key, label)| (key.to_owned(), label)))
        .collect();
    let mut all = plan.cells;
    all.extend(stream(target, &all));
    let control = cannot.iter().find(|key| all.iter().any(|cell| cell.key == **key));
    let requests = all.into_iter().filter_map(|cell| {
        let is_control = control.is_some_and(|key| *key == cell.key);
        if !is_control && !can.contains(&cell.key.as_str()) {
            return None;
        }
        let label = *labels.get(&cell.key)?;
        Some(Request { cell, label, control: is_control })
    });
    let requests: Vec<Request<'a>> = requests.collect();
    if requests.iter().all(|request| request.control) { Vec::new() } else { requests }
}

/// Unsynced writes, where the plan writes at all: only ever to a scratch file.
fn stream<'a>(target: &'a Target, all: &[Cell<'a>]) -> Option<Cell<'a>> {
    const BLOCK: u64 = 1 << 20;
    let synced = all.iter().find(|cell| cell.key == "write-sync-4k")?;
    let (workload, _) = synced.arms.first()?;
    let mut workload = workload.clone();
    workload.method = Method::Pwrite;
    workload.pattern = Pattern::Sequential;
    workload.block_bytes = BLOCK;
    workload.region_bytes = workload.region_bytes / BLOCK * BLOCK;
    (workload.blocks() > 0).then(|| Cell {
        key: STREAM.0.to_owned(),
        arms: vec![(workload, target)],
        bounds: synced.bounds,
        listed: None,
        group: None,
        request_bytes: None,
    })
}

#[cfg(test)]
mod tests {
    use iowhy_diagnose::setting::TRIED;

    use super::*;
    use crate::plan::{CalibrationTargets, plan};

    #[test]
    fn every_setting_has_requests_on_a_scratch_file_and_no_control_is_touched() {
        for key in TRIED {
            let (can, cannot) = touched(key);
            assert!(!can.is_empty(), "{}", key.id());
            assert_eq!(cannot.is_empty(), key == Key::Governor, "{}", key.id());
            assert!(cannot.iter().all(|control| !can.contains(control)), "{}", key.id());
        }
    }

    #[test]
    fn a_user_file_is_not_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, vec![7; 4 << 20]).unwrap();
        let needs = iowhy_probe::target::Needs { scratch_bytes: 0, write: false, destroy_data: None };
        let resolve =
            |spec: &std::path::Path| iowhy_probe::target::resolve(spec, &needs, &mut |_, _| {}).unwrap();
        let target = resolve(&file);
        let harness = resolve("null".as_ref());
        let cells = CalibrationTargets {
            null_device: None,
            zero_device: None,
            memory: None,
            raw_device: None,
            harness,
        };
        let of = |key| requests(key, &target, plan(&target, &cells, 4 << 20, 1));
        let writes = |request: &Request<'_>| request.cell.arms.iter().any(|(w, _)| w.direction.writes());
        assert!(TRIED.iter().all(|&key| !of(key).iter().any(writes)));
        assert!(of(Key::DirtyBytes).is_empty(), "nothing here leaves dirty pages behind");
        assert!(of(Key::AccessTime).is_empty(), "and the time of access of this file is left alone");
        let cached = of(Key::Thp).into_iter().filter(|request| !request.control).count();
        assert_eq!(cached, 2);
    }
}
