//! Loads that are carried out request by request: traces, small files, a file per reader, open loads. The simulated layout
//! gives the offsets, because the stripes of the proof hold no file system.
//!
//! Simplifications: a request is widened to the alignment of direct requests; one of more than 16 MiB is cut.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::service::DiskCurves;
use iowhy_core::units::{Bytes, counted};
use iowhy_core::warning::Warning;
use iowhy_core::workload::{CacheState, Direction, Method, Touch, Workload};
use iowhy_probe::access::Request;
use iowhy_probe::campaign::Cell;
use iowhy_probe::listed::RequestLists;
use iowhy_probe::runner::Bounds;
use iowhy_probe::target::{Target, stripe};
use iowhy_sim::requests::VolumeRequest;

use crate::load::Question;
use crate::simulate::{self, Point};

/// A request of more is cut.
const MAX_BYTES: u64 = 16 << 20;
/// Memory for all requests in flight of a stripe.
const MAX_MEMORY: u64 = 256 << 20;
/// Greatest queue depth of an open load.
const MAX_DEPTH: u64 = 256;
/// Requests of a slice at least.
const FEWEST: u64 = 16;
/// Read-only members carry writes out as reads, as the simulation does.
const WRITES_AS_READS: &str = "writes-as-reads";

/// Requests of a slice: those that the pick is expected to answer in its time.
pub(crate) fn requests_for(slice: Duration, pick: &Point, question: &Question<'_>) -> u64 {
    let least = FEWEST.max(4 * u64::from(question.load.clients().unwrap_or(1)));
    let expected = (pick.requests_per_second * slice.as_secs_f64()) as u64;
    expected.clamp(least, simulate::MAX_REQUESTS.max(least))
}

/// A cell for each stripe: the first requests of the load, at the offsets that the layout gives them on that stripe. With each
/// the expected rate in bytes a second: directories, inodes and whole blocks count.
///
/// # Errors
/// Loads whose requests are several steps each and come at their own times; what the layout refuses.
pub(crate) fn cells<'a>(
    question: &Question<'_>,
    stripes: &[(&Point, &'a Target)],
    first: u64,
    wall: Duration,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<(Cell<'a>, f64)>, Problem> {
    let (mut adjusted, mut cells) = (Adjusted::default(), Vec::new());
    let direct = all_direct(stripes);
    let writable = stripes.iter().all(|(_, target)| target.writable());
    for (point, target) in stripes {
        let curves: Vec<DiskCurves> = simulate::lineup(question.disks, &point.members);
        let machine = simulate::machine(&curves, question.settings, point.interleave_bytes)?;
        let placed = question.load.volume_requests(&machine, question.seed, first)?;
        let mut places = placed.to_volume;
        adjusted.remarks = placed.remarks;
        adjusted.as_reads = 0;
        if !writable {
            for place in places.iter_mut().filter(|place| place.write) {
                place.write = false;
                adjusted.as_reads += 1;
            }
        }
        if question.load.is_open() && places.len() as u64 > placed.requests {
            return Err(Problem::refused(
                "`--prove` cannot carry out this load: requests of several steps each, at their own times",
            )
            .hint("leave `layout.kind` out, or `rate`"));
        }
        let cell = cell(question, &places, target, direct, wall, &mut adjusted);
        let bytes = cell.listed.as_ref().map_or(0, |listed| listed.bytes());
        let each = bytes as f64 / placed.requests.max(1) as f64;
        cells.push((cell, each * point.requests_per_second));
    }
    warnings.extend(adjusted.said());
    Ok(cells)
}

/// What had to be adjusted, for the last stripe: all have the same requests.
#[derive(Default)]
struct Adjusted {
    widened: u64,
    cut: u64,
    as_reads: u64,
    remarks: Vec<String>,
    alignment: u64,
}

impl Adjusted {
    fn said(&self) -> Vec<Warning> {
        let mut said = Vec::new();
        let mut say = |code: &str, count: u64, one: &str, many: &str, rest: String| {
            if count > 0 {
                said.push(Warning::new(code, format!("{} {rest}", counted(count, one, many))));
            }
        };
        let (one, many) = ("request of the proof is", "requests of the proof are");
        let whole =
            format!("widened to whole blocks of {}, which direct requests must be", Bytes(self.alignment));
        say("requests-widened", self.widened, one, many, whole);
        say("requests-cut", self.cut, one, many, format!("cut to {}", Bytes(MAX_BYTES)));
        let (one, many) = ("write of the proof is", "writes of the proof are");
        say(
            WRITES_AS_READS,
            self.as_reads,
            one,
            many,
            "carried out as reads: the disks are only read".to_owned(),
        );
        said.extend(self.remarks.iter().map(|remark| Warning::new("places-bent", remark.clone())));
        said
    }
}

fn cell<'a>(
    question: &Question<'_>,
    places: &[VolumeRequest],
    target: &'a Target,
    direct: bool,
    wall: Duration,
    adjusted: &mut Adjusted,
) -> Cell<'a> {
    (adjusted.widened, adjusted.cut) = (0, 0);
    adjusted.alignment = target.facts.direct_alignment_bytes.unwrap_or(stripe::SECTOR_BYTES).max(1);
    let size = target.facts.size_bytes / adjusted.alignment * adjusted.alignment;
    let requests: Vec<Request> = places.iter().map(|place| request(place, size, adjusted)).collect();
    let most = requests.iter().map(|request| request.bytes as u64).max().unwrap_or(adjusted.alignment);
    let end = requests.iter().map(|r| r.offset + r.bytes as u64).max().unwrap_or(0);
    // A region is whole blocks; the last of them may be longer than what is left of the stripe.
    let region = end.div_ceil(most).saturating_mul(most).min(target.facts.size_bytes.max(most));
    let mut workload = Workload::reads(Method::Uring, state_of(target, direct), most, region);
    workload.touch = Touch::None;
    workload.seed = question.seed;
    if places.iter().any(|place| place.write) {
        workload.direction = Direction::Mixed(50);
    }
    let fits = (MAX_MEMORY / most.max(1)).max(1);
    let listed = match question.load.clients() {
        // A client that is answered takes the next request of the trace: one list, as deep as there are clients.
        Some(clients) if question.load.workload().is_none() => {
            workload.depth = u64::from(clients).clamp(1, fits) as usize;
            RequestLists::closed(vec![requests])
        }
        Some(_) => {
            let mut by_client: BTreeMap<u32, Vec<Request>> = BTreeMap::new();
            for (place, request) in places.iter().zip(requests) {
                by_client.entry(place.client).or_default().push(request);
            }
            workload.threads = by_client.len().max(1);
            RequestLists::closed(by_client.into_values().collect())
        }
        None => {
            workload.depth = MAX_DEPTH.min(fits) as usize;
            RequestLists::open(places.iter().map(|place| place.at_ns).zip(requests).collect())
        }
    };
    Cell {
        key: target.facts.name.clone(),
        arms: vec![(workload, target)],
        bounds: Bounds { wall, requests_per_thread: u64::MAX },
        listed: Some(Arc::new(listed)),
        group: None,
        request_bytes: None,
    }
}

/// The cache state of its reads: direct where that is supported, else cold; warm in memory.
pub(crate) fn state_of(target: &Target, direct: bool) -> CacheState {
    match (target.facts.memory_backed, direct) {
        (true, _) => CacheState::Warm,
        (false, true) => CacheState::Direct,
        (false, false) => CacheState::Cold,
    }
}

/// Whether all of them support direct reads: else none is read directly.
pub(crate) fn all_direct(stripes: &[(&Point, &Target)]) -> bool {
    stripes.iter().all(|(_, target)| target.facts.direct_supported != Some(false))
}

/// A request that can be made: whole blocks, inside the stripe.
fn request(place: &VolumeRequest, size: u64, adjusted: &mut Adjusted) -> Request {
    let grain = adjusted.alignment;
    let bytes = place.bytes.min(MAX_BYTES);
    adjusted.cut += u64::from(bytes < place.bytes);
    let start = place.offset / grain * grain;
    let end = place.offset.saturating_add(bytes).div_ceil(grain).saturating_mul(grain);
    let length = (end - start).min(size).max(grain.min(size));
    let start = start.min(size - length);
    adjusted.widened += u64::from(length > bytes);
    Request { offset: start, bytes: length as usize, write: place.write }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_whole_blocks_inside_the_stripe() {
        let mut adjusted = Adjusted { alignment: 4096, ..Adjusted::default() };
        let mut of = |start, bytes| {
            let made = request(
                &VolumeRequest {
                    client: 0,
                    at_ns: 0,
                    offset: start,
                    bytes,
                    write: false,
                    kind: iowhy_sim::layout::StepKind::Data,
                },
                1 << 20,
                &mut adjusted,
            );
            (made.offset, made.bytes)
        };
        assert_eq!(of(4096, 8192), (4096, 8192));
        assert_eq!(of(4095, 2), (0, 8192), "both blocks that it touches");
        assert_eq!(of((1 << 20) - 1, 1), ((1 << 20) - 4096, 4096));
        assert_eq!(of(0, 1 << 30), (0, 1 << 20), "no more than there is");
        assert_eq!((adjusted.widened, adjusted.cut), (2, 1));
    }
}
