//! The account of a canonical request by calibration cells of its own pattern, pages and buffer, measured beside it. Cells of
//! other sizes predict its CPU time; cells that end higher in the path divide it over the layers.
//!
//! Invariants: the request itself is in no cost that explains it, so that `unexplained` is what was measured less what was
//! predicted; shares are computed within rounds, and their intervals from draws of rounds, all cells together.

use iowhy_core::cell::{CellRun, Sample};
use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::rng::Rng;
use iowhy_core::stats;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};

use crate::costs::Layers;
use crate::ledger::{self, LedgerContext, layer_estimates};
use crate::per_request::{busy_ns, device_request_ns, rounds, stack_request_ns};

/// What a calibration cell of one request measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalCell {
    /// One byte at the same offsets: a page is looked up, and next to nothing copied.
    LookUp,
    /// The same request, answered by the page cache: a read of cached pages that the CPU's caches do not hold, a write
    /// without fdatasync.
    Above,
    /// The same twice: the second time the pages are in the cache and dirty.
    AboveTwice,
    /// The same request in another size.
    Size,
}

/// A canonical request and the cells that explain it.
#[derive(Clone, Debug, Default)]
pub struct LocalCells<'a> {
    /// Cost of iowhy itself.
    pub harness: Option<&'a CellRun>,
    /// The cheapest system call.
    pub call: Option<&'a CellRun>,
    /// A read at the end of the file.
    pub end_of_file: Option<&'a CellRun>,
    /// One byte.
    pub look_up: Option<&'a CellRun>,
    /// See [`LocalCell::Above`].
    pub above: Option<&'a CellRun>,
    /// See [`LocalCell::AboveTwice`].
    pub above_twice: Option<&'a CellRun>,
    /// See [`LocalCell::Size`].
    pub sizes: Vec<&'a CellRun>,
}

/// Requests of the round that medians are put into: a nanosecond of rounding is then nothing.
const REQUESTS: u64 = 1 << 20;
/// Draws of rounds behind an interval.
const DRAWS: usize = 400;

/// Splits a request. `None` where cells are missing: without those of other sizes nothing predicts it.
pub fn layers(
    row: &CellRun,
    cells: &LocalCells<'_>,
    context: &LedgerContext<'_>,
    seed: u64,
) -> Option<Layers> {
    let table = Table::new(row, cells, context)?;
    let all: Vec<usize> = (0..table.rows.len()).collect();
    let (point, mut notes) = table.split(&all)?;
    let mut rng = Rng::new(seed);
    let draw = |_| {
        let drawn: Vec<usize> = all.iter().map(|_| rng.below(all.len() as u64) as usize).collect();
        Some(table.split(&drawn)?.0)
    };
    let draws: Vec<Ledger> = (0..DRAWS).filter_map(draw).collect();
    let estimates =
        if all.len() < stats::MIN_SAMPLES { Vec::new() } else { layer_estimates(&point, &draws, all.len()) };
    notes.extend(together(&row.workload).into_iter().map(str::to_owned));
    Some(Layers { ledger: Some(point), estimates, notes, draws, own_cells: true })
}

/// Which layers the cells of a request do not tell apart.
fn together(w: &Workload) -> Vec<&'static str> {
    match (w.direction, w.state) {
        (Direction::Read, CacheState::Cold) => vec![COPY, "block is block and page allocation together"],
        (Direction::Read, CacheState::Warm) if w.block_bytes > 4096 => vec![COPY],
        (Direction::Write, CacheState::None) if w.method == Method::PwriteFdatasync => {
            vec!["copy is copy and page allocation together", JOURNAL]
        }
        (Direction::Write, CacheState::None) => vec![JOURNAL],
        _ => Vec::new(),
    }
}

const JOURNAL: &str = "block is block and journal together";
const COPY: &str = "copy is copy and look-up of further pages together";

/// One round: shares of the request's time.
struct Round {
    time_ns: f64,
    busy: f64,
    harness: f64,
    call: f64,
    end_of_file: f64,
    look_up: Option<f64>,
    above: Option<f64>,
    above_twice: Option<f64>,
    /// Size and share of the cells of other sizes, and the size of the request itself.
    sizes: Vec<(f64, f64)>,
    size: f64,
    run_delay: f64,
    device: Option<f64>,
    stack: Option<f64>,
}

/// The rounds that all cells have.
struct Table<'a> {
    rows: Vec<Round>,
    row: &'a CellRun,
    context: &'a LedgerContext<'a>,
}

impl<'a> Table<'a> {
    fn new(row: &'a CellRun, cells: &LocalCells<'_>, context: &'a LedgerContext<'a>) -> Option<Table<'a>> {
        let mut rows = Vec::new();
        for sample in rounds(row) {
            let time_ns = sample.ns_per_request();
            // A cell that is not in the plan has no share; one that lacks this round leaves the round out.
            let share = |run: Option<&CellRun>| match run {
                None => Some(None),
                Some(run) => {
                    rounds(run).find(|s| s.round == sample.round).map(|s| Some(busy_ns(s) / time_ns))
                }
            };
            let sizes: Option<Vec<(f64, f64)>> = cells
                .sizes
                .iter()
                .map(|run| {
                    let of = rounds(run).find(|s| s.round == sample.round)?;
                    Some((size(of), busy_ns(of) / time_ns))
                })
                .collect();
            let shares = (|| {
                let harness = share(cells.harness)?;
                let call = share(cells.call)?;
                let end = share(cells.end_of_file)?;
                Some((
                    harness,
                    call,
                    end,
                    share(cells.look_up)?,
                    share(cells.above)?,
                    share(cells.above_twice)?,
                    sizes?,
                ))
            })();
            let Some((harness, call, end, look_up, above, above_twice, mut sizes)) = shares else { continue };
            let harness = harness.unwrap_or(0.0);
            let call = call.unwrap_or(harness);
            if row.workload.method.mapped() {
                // Loads make no call: a request of no bytes costs what iowhy itself does.
                sizes.push((0.0, harness));
            }
            rows.push(Round {
                time_ns,
                busy: busy_ns(sample) / time_ns,
                harness,
                call,
                end_of_file: end.unwrap_or(call),
                look_up,
                above,
                above_twice,
                sizes,
                size: size(sample),
                run_delay: sample.run_delay_ns as f64 / sample.requests as f64 / time_ns,
                device: device_request_ns(sample).map(|ns| ns / time_ns),
                stack: stack_request_ns(sample).map(|ns| ns / time_ns),
            });
        }
        (!rows.is_empty()).then_some(Table { rows, row, context })
    }

    /// The split over some rounds, which may stand there more than once: medians of shares, so that one bad round counts for
    /// little, times the median time. Shares of layers are differences of medians and sum to 1 with `unexplained`.
    fn split(&self, drawn: &[usize]) -> Option<(Ledger, Vec<String>)> {
        let median = |quantity: &dyn Fn(&Round) -> Option<f64>| {
            let values: Option<Vec<f64>> = drawn.iter().map(|&i| quantity(self.rows.get(i)?)).collect();
            stats::median(&values?)
        };
        let time_ns = median(&|r| Some(r.time_ns))?;
        let of = |quantity: fn(&Round) -> f64| median(&|r| Some(quantity(r)));
        let (harness, call, end) = (of(|r| r.harness)?, of(|r| r.call)?, of(|r| r.end_of_file)?);
        let busy = of(|r| r.busy)?;
        let points: Option<Vec<(f64, f64)>> = (0..self.rows.first()?.sizes.len())
            .map(|at| Some((median(&|r| Some(r.sizes.get(at)?.0))?, median(&|r| Some(r.sizes.get(at)?.1))?)))
            .collect();
        let predicted = on_the_line(&points?, of(|r| r.size)?)?;
        let look_up = median(&|r| r.look_up).unwrap_or(end);
        let mut ledger = Ledger::default();
        let mut add = |layer, busy: f64, wait: f64| ledger.add(layer, busy * time_ns, wait * time_ns);
        add(Layer::Program, harness, 0.0);
        let w = &self.row.workload;
        let in_cache = w.state == CacheState::Warm;
        let above = if in_cache { Some(predicted) } else { median(&|r| r.above) };
        if w.method.mapped() {
            add(Layer::Memory, predicted - harness, 0.0);
        } else {
            add(Layer::Call, call - harness, 0.0);
            add(Layer::Filesystem, end - call, 0.0);
            // The second pass over dirty pages allocates none.
            let again = median(&|r| Some(2.0 * r.above_twice? - r.above?)).or(above);
            if let (Some(above), Some(again)) = (above, again) {
                add(Layer::Cache, (look_up - end) + (above - again), 0.0);
                add(Layer::Copy, again - look_up, 0.0);
            }
            add(Layer::Block, predicted - above.unwrap_or(end), 0.0);
        }
        // A round of median shares, waiting booked as in any other: the device's counters are too coarse for one round.
        let whole = |share: f64| (share * time_ns * REQUESTS as f64).max(0.0) as u64;
        let middle = Sample {
            requests: REQUESTS,
            thread_ns: whole(1.0),
            cpu_ns: whole(busy),
            run_delay_ns: whole(of(|r| r.run_delay)?),
            device_request_ns: median(&|r| r.device).map(whole),
            stack_request_ns: median(&|r| r.stack).map(whole),
            ..Sample::default()
        };
        let (waits, notes) = ledger::waits(self.row, &middle, self.context);
        waits.entries().iter().for_each(|entry| ledger.add(entry.id, 0.0, entry.wait_ns));
        let waited = waits.total_ns() / time_ns;
        ledger.add(Layer::Unexplained, (busy - predicted) * time_ns, (1.0 - busy - waited) * time_ns);
        Some((ledger, notes))
    }
}

/// Bytes of a request.
fn size(sample: &Sample) -> f64 {
    sample.claimed_bytes as f64 / sample.requests as f64
}

/// The value at `at` of the line through the points (least squares); `None` where it has no slope.
fn on_the_line(points: &[(f64, f64)], at: f64) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (xx, xy) = points
        .iter()
        .fold((0.0, 0.0), |(xx, xy), p| (xx + (p.0 - x) * (p.0 - x), xy + (p.0 - x) * (p.1 - y)));
    (xx > 0.0).then(|| y + xy / xx * (at - x))
}
