//! One pass over fixed lists of requests, one list per thread, with verified cache state: the same requests on every
//! target that is compared.
//!
//! Invariant: a pass that did not make every request says so.

use std::collections::BTreeSet;
use std::time::Duration;

use iowhy_core::cell::{Sample, StateCheck, StateEvidence};
use iowhy_core::histogram::Histogram;
use iowhy_core::problem::Problem;
use iowhy_core::workload::{CacheState, Workload};

use crate::access::Request;
use crate::arm::Arm;
use crate::campaign;
use crate::listed::RequestLists;
use crate::runner::{self, Bounds};
use crate::target::Target;

/// Result of one pass.
#[derive(Clone, Debug)]
pub struct PassResult {
    /// Its totals.
    pub sample: Sample,
    /// Latency of every request.
    pub latency: Histogram,
    /// Whether the cache was in the state that the workload claims.
    pub check: StateCheck,
    /// Whether every request was carried out: neither time nor patience ended first.
    pub complete: bool,
    /// Options the method did not get.
    pub dropped: Vec<String>,
    /// Why it ended early, if a request failed.
    pub failure: Option<String>,
}

/// Carries the lists out once, all threads side by side, within `patience`. The workload says how, from where to where, and
/// with how large a buffer; its pattern is not used.
///
/// # Errors
/// Lists for another number of threads, requests outside the region or larger than the buffer; what opening or preparing the
/// target says. A request that fails is [`PassResult::failure`].
pub fn run(
    workload: &Workload,
    target: &Target,
    lists: &[Vec<Request>],
    patience: Duration,
) -> Result<PassResult, Problem> {
    check(workload, lists)?;
    let before = campaign::prepare(workload, target)?;
    let bounds = Bounds { wall: patience, requests_per_thread: u64::MAX };
    let listed = RequestLists::closed(lists.to_vec());
    let slices =
        runner::run(&[Arm { workload, target, listed: Some(&listed), request_bytes: None }], bounds, None)?;
    let Some(mut slice) = slices.into_iter().next() else {
        return Err(Problem::failed("a pass over fixed requests came to nothing"));
    };
    campaign::write_back(workload, target)?;
    let check = match before {
        None => StateCheck::NotApplicable,
        Some(before) => {
            let after = campaign::look(workload, target);
            slice.sample.resident_before = before.as_ref().ok().copied();
            slice.sample.resident_after = after.as_ref().ok().copied();
            let evidence = StateEvidence {
                before: slice.sample.resident_before,
                after: slice.sample.resident_after,
                blind_reason: before.err().or(after.err()),
                region_bytes: workload.region_bytes,
                claimed_bytes: slice.sample.claimed_bytes,
                repeated: if workload.state == CacheState::Cold { repeated(lists) } else { 0.0 },
            };
            StateCheck::judge(workload.state, &evidence)
        }
    };
    let asked: usize = lists.iter().map(Vec::len).sum();
    Ok(PassResult {
        complete: slice.failure.is_none() && slice.sample.requests == asked as u64,
        sample: slice.sample,
        latency: slice.latency,
        check,
        dropped: slice.dropped,
        failure: slice.failure,
    })
}

fn check(workload: &Workload, lists: &[Vec<Request>]) -> Result<(), Problem> {
    if lists.len() != workload.threads {
        return Err(Problem::refused(format!(
            "{} lists of requests for {} threads",
            lists.len(),
            workload.threads
        )));
    }
    let end = workload.region_offset.saturating_add(workload.region_bytes);
    let fits = |request: &Request| {
        let bytes = request.bytes as u64;
        bytes > 0
            && bytes <= workload.block_bytes
            && request.offset >= workload.region_offset
            && request.offset.checked_add(bytes).is_some_and(|last| last <= end)
    };
    match lists.iter().flatten().find(|request| !fits(request)) {
        None => Ok(()),
        Some(request) => Err(Problem::refused(format!(
            "a request for {} bytes at {} does not fit a region that ends at {end} and a buffer of {} bytes",
            request.bytes, request.offset, workload.block_bytes
        ))),
    }
}

/// Share of the requests whose first page was requested before.
fn repeated(lists: &[Vec<Request>]) -> f64 {
    let page = rustix::param::page_size() as u64;
    let mut seen = BTreeSet::new();
    let all = lists.iter().flatten();
    let (mut requests, mut again) = (0u64, 0u64);
    for request in all {
        requests += 1;
        again += u64::from(!seen.insert(request.offset / page));
    }
    again as f64 / requests.max(1) as f64
}

#[cfg(test)]
mod tests {
    use iowhy_core::workload::Method;

    use super::*;
    use crate::target::{Needs, resolve, stripe};

    const MIB: u64 = 1 << 20;

    fn lists(threads: u64, each: u64) -> Vec<Vec<Request>> {
        let request = |thread: u64, at: u64| Request {
            offset: (thread * each + at) * 7168,
            bytes: [1024, 3072, 8192][(at % 3) as usize],
            write: false,
        };
        (0..threads).map(|thread| (0..each).map(|at| request(thread, at)).collect()).collect()
    }

    fn workload(target: &Target, method: Method, state: CacheState, threads: usize) -> Workload {
        Workload { threads, ..Workload::reads(method, state, 8192, target.facts.size_bytes / 8192 * 8192) }
    }

    fn members(names: &[&str], bytes: u64) -> Vec<std::sync::Arc<Target>> {
        let needs = Needs { scratch_bytes: bytes, write: false, destroy_data: None };
        let found = names.iter().map(|name| resolve(*name, &needs, &mut |_, _| {}).unwrap());
        found.map(std::sync::Arc::new).collect()
    }

    /// The members get the requests that the map says, whatever the interleave.
    #[test]
    fn every_request_is_carried_out_once_and_split_as_the_map_says() {
        let members = members(&["scripted"; 3], MIB);
        for interleave in [4096, 63 * 1024, MIB] {
            let target = stripe::join("s", interleave, members.clone()).unwrap();
            let (map, lists) = (target.stripe().unwrap().map(), lists(5, 40));
            let workload = workload(&target, Method::Direct, CacheState::Direct, 5);
            let told = run(&workload, &target, &lists, Duration::MAX).unwrap();
            assert!(told.complete && told.failure.is_none());
            assert_eq!(told.sample.requests, 200);
            let mut wanted = [(0u64, 0u64); 3];
            for request in lists.iter().flatten() {
                for part in map.parts(request.offset, request.bytes as u64) {
                    wanted[part.member].0 += 1;
                    wanted[part.member].1 += part.bytes;
                }
            }
            let sent: Vec<(u64, u64)> = told
                .sample
                .members
                .iter()
                .map(|member| (member.requests.unwrap(), member.bytes.unwrap()))
                .collect();
            assert_eq!(sent, wanted, "{interleave}");
            let again = run(&workload, &target, &lists, Duration::MAX).unwrap();
            assert_eq!(told.sample.wall_ns, again.sample.wall_ns, "virtual time");
        }
    }

    #[test]
    fn files_are_read_cold_or_past_the_cache_and_what_was_asked_for_is_what_came() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_str().unwrap();
        let members = members(&[place; 3], MIB);
        let target = stripe::join("s", 63 * 1024, members).unwrap();
        let lists = lists(6, 20);
        let bytes: u64 = lists.iter().flatten().map(|request| request.bytes as u64).sum();
        let direct = target.facts.direct_supported == Some(true)
            && target.facts.direct_alignment_bytes.is_none_or(|bytes| bytes <= 512);
        for (method, state) in [
            (Method::PreadRandom, CacheState::Cold),
            (Method::Direct, CacheState::Direct),
            (Method::Uring, CacheState::Direct),
        ] {
            if state == CacheState::Direct && !direct {
                eprintln!("skipped: direct requests of 512 bytes are not supported here");
                continue;
            }
            let workload = workload(&target, method, state, 6);
            let told = match run(&workload, &target, &lists, Duration::MAX) {
                Ok(told) => told,
                Err(problem) if method == Method::Uring => {
                    eprintln!("skipped: {problem}");
                    continue;
                }
                Err(problem) => panic!("{problem}"),
            };
            assert!(told.complete, "{:?}", told.failure);
            assert_eq!((told.sample.requests, told.sample.claimed_bytes), (120, bytes), "{method:?}");
        }
    }

    #[test]
    fn time_that_is_over_is_told_and_lists_that_do_not_fit_are_refused() {
        let members = members(&["scripted"; 3], MIB);
        let target = stripe::join("s", 4096, members).unwrap();
        let workload = workload(&target, Method::Direct, CacheState::Direct, 1);
        let told = run(&workload, &target, &lists(1, 1000), Duration::from_nanos(1)).unwrap();
        assert!(!told.complete && told.failure.is_none() && told.sample.requests < 1000);
        assert!(run(&workload, &target, &lists(2, 1), Duration::MAX).is_err(), "another number of threads");
        let large = vec![vec![Request { offset: 0, bytes: 8193, write: false }]];
        assert!(run(&workload, &target, &large, Duration::MAX).is_err());
        let far = vec![vec![Request { offset: u64::MAX - 5, bytes: 4096, write: false }]];
        assert!(run(&workload, &target, &far, Duration::MAX).is_err());
    }

    #[test]
    fn pages_that_are_asked_for_again_are_counted() {
        let at = |offset| Request { offset, bytes: 512, write: false };
        assert_eq!(repeated(&[vec![at(0), at(1 << 20)], vec![at(512), at(2 << 20)]]), 0.25);
        assert_eq!(repeated(&[]), 0.0);
    }
}
