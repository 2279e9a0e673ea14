//! The joint fit: all rungs and block sizes together give one `StackModel` with intervals, and predict the block
//! sizes that were held out of it.
//!
//! Goal: costs per call, page and byte that are identified by the experiment, and a plain note for each one that is
//! not. Non-goal: queueing, cache-size steps (the residual says how much the linear form misses).
//! Invariants: rows count by relative error (weight `1 / value`); busy time is CPU time and never thread time; a
//! cost the rungs cannot tell apart from another is fixed at zero and named in `notes`, not guessed.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::cell::{CellRun, StateCheck};
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::model::{Cost, LayerCost, MODEL_SCHEMA, Part, StackModel};
use iowhy_core::rng::Rng;
use iowhy_core::stats;

use crate::ladder::{Rung, RungRun};
use crate::ledger::block_busy_ns;
use crate::nnls;
use crate::per_request::{
    busy_ns, device_bytes, device_requests, estimate, mean_pages, rounds, undisturbed_ns, wait_ns,
};
use crate::rows::{Home, Side, Term, costs, equation, with_interval};

/// What the fit is told and cannot see in the cells.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Block sizes that are predicted instead of fitted.
    pub held_out: Vec<u64>,
    /// Page size of the machine.
    pub page_bytes: u64,
    /// Name of the model.
    pub name: String,
    /// Our own cost per request (measured on the `null` method), taken off every cell before fitting; 0 to leave it
    /// in.
    pub harness_ns: f64,
    /// Requests the device serves at once, for the model; 1 when not known.
    pub device_parallelism: f64,
    /// Bytes of one read-ahead request, for the model.
    pub read_ahead_bytes: u64,
    /// The bytes live in memory: direct rungs are not a device and are left out.
    pub memory_backed: bool,
    /// Bootstrap replicates.
    pub replicates: usize,
}

impl FitOptions {
    /// Nothing held out, no harness cost, 128 KiB of read-ahead (the kernel's default), 400 replicates.
    pub fn new(name: impl Into<String>, page_bytes: u64, seed: u64) -> Self {
        FitOptions {
            seed,
            held_out: Vec::new(),
            page_bytes,
            name: name.into(),
            harness_ns: 0.0,
            device_parallelism: 1.0,
            read_ahead_bytes: 131_072,
            memory_backed: false,
            replicates: 400,
        }
    }
}

/// A block size that the fit did not see.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// On which rung.
    pub rung: Rung,
    /// Size of one request.
    pub block_bytes: u64,
    /// Busy and waiting time of one request by the model.
    pub predicted_ns: f64,
    /// Thread time of one request less the time without a CPU and less our own cost.
    pub measured: Estimate,
    /// Predicted over measured, less one, in per cent.
    pub error_percent: f64,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The costs.
    pub model: StackModel,
    /// Predictions of what was held out, in the order of rungs and sizes.
    pub held_out: Vec<HeldOut>,
    /// Root mean square of the relative residuals of the fitted rows, in per cent.
    pub residual_percent: f64,
    /// What could not be separated, was left out, or was booked elsewhere, one sentence each.
    pub notes: Vec<String>,
}

/// Fits the model to the rungs. Works with any subset of them; what a missing rung costs in knowledge is noted.
///
/// The bootstrap draws whole rounds, the same for all cells, with replacement: what disturbed one round (clock
/// frequency, a neighbour) disturbed its cells together, and stays together. A cell without any drawn round keeps
/// its own median. Sizes below the page separate costs per page from costs per byte: they touch one page all the
/// same. Without such sizes the two are one, and the note says where it was booked.
pub fn fit(runs: &[RungRun<'_>], options: &FitOptions) -> Fit {
    let mut notes = Vec::new();
    let usable = usable(runs, options, &mut notes);
    let (held_out, fitted): (Vec<&RungRun<'_>>, Vec<&RungRun<'_>>) = usable
        .iter()
        .partition(|r| options.held_out.contains(&r.run.workload.block_bytes) && has_size(r.rung));
    let terms = identified(&fitted, options.page_bytes, &mut notes);
    let data = Data::gather(&fitted, options);
    let (terms, solution) = data.best_variant(&terms, &mut notes);
    let mut point = data.model_costs(&solution.solved, None, options);
    let mut replicates: Vec<BTreeMap<Home, Cost>> = Vec::with_capacity(options.replicates);
    let mut rng = Rng::new(options.seed);
    for _ in 0..options.replicates {
        let drawn: Vec<usize> =
            data.rounds.iter().map(|_| rng.below(data.rounds.len() as u64) as usize).collect();
        let solved = data.solve(&terms, Some(&drawn)).solved;
        replicates.push(data.model_costs(&solved, Some(&drawn), options));
    }
    if data.cold.iter().any(|c| c.device.is_none()) {
        notes.push(
            "cold reads: no device counters, block requests were counted from the read-ahead size".into(),
        );
    }
    let mut model = StackModel {
        schema: MODEL_SCHEMA,
        name: options.name.clone(),
        page_bytes: options.page_bytes,
        device_parallelism: options.device_parallelism,
        read_ahead_bytes: options.read_ahead_bytes,
        layers: BTreeMap::new(),
        parts: BTreeMap::new(),
    };
    while let Some((home, cost)) = point.pop_first() {
        let others: Vec<Cost> =
            replicates.iter().map(|r| r.get(&home).copied().unwrap_or_default()).collect();
        let cost: LayerCost = with_interval(cost, &others);
        match home {
            Home::Layer(layer) => model.layers.insert(layer, cost),
            Home::Part(part) => model.parts.insert(part, cost),
        };
    }
    let mut held_out: Vec<HeldOut> =
        held_out.iter().filter_map(|r| predict(r, &solution.solved, options)).collect();
    held_out.sort_by_key(|h| (h.rung, h.block_bytes));
    Fit { model, held_out, residual_percent: solution.residual * 100.0, notes }
}

/// The rungs whose cells may be believed, with a note for each one left out.
fn usable<'a>(runs: &[RungRun<'a>], options: &FitOptions, notes: &mut Vec<String>) -> Vec<RungRun<'a>> {
    let direct_file = runs.iter().any(|r| r.rung == Rung::DirectFile);
    runs.iter()
        .filter(|r| {
            let (rung, size) = (r.rung.id(), r.run.workload.block_bytes);
            let mut refuse = |why: &str| {
                let note = format!("{rung} at {size} bytes is not in the fit: {why}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
                false
            };
            if let StateCheck::Violated { reason } = &r.run.state_check {
                return refuse(reason);
            }
            if rounds(r.run).next().is_none() {
                return refuse(r.run.failure.as_deref().unwrap_or("nothing was completed"));
            }
            match r.rung {
                Rung::DirectFile | Rung::RawDevice if options.memory_backed => {
                    refuse("the bytes live in memory, there is no device to measure")
                }
                Rung::DirectFile | Rung::RawDevice if rounds(r.run).all(|s| s.device_bytes == Some(0)) => {
                    refuse("the device moved nothing")
                }
                // Both paths to the same device differ in code; the file's is the one that is explained.
                Rung::RawDevice => !direct_file,
                _ => true,
            }
        })
        .copied()
        .collect()
}

/// Whether the cost of a rung depends on the block size, so that holding a size out means something.
fn has_size(rung: Rung) -> bool {
    !matches!(rung, Rung::Syscall | Rung::NullDevice)
}

/// Which terms the measured rungs and sizes can tell apart. Notes what cannot be.
fn identified(runs: &[&RungRun<'_>], page_bytes: u64, notes: &mut Vec<String>) -> Vec<Term> {
    use Term::*;
    let sizes = |rungs: &[Rung]| -> BTreeSet<u64> {
        runs.iter().filter(|r| rungs.contains(&r.rung)).map(|r| r.run.workload.block_bytes).collect()
    };
    let has = |rung| runs.iter().any(|r| r.rung == rung);
    // Pages and bytes are proportional for every size: nothing tells the two costs apart.
    let proportional = |s: &BTreeSet<u64>| {
        s.iter().all(|&b| (mean_pages(b, page_bytes) * page_bytes as f64 - b as f64).abs() < 0.5)
    };
    let mut note = |text: &str| notes.push(text.to_owned());
    let mut terms = Vec::new();

    if has(Rung::Syscall) {
        terms.push(Call);
    } else {
        note("no bare system call was measured: `call` is booked under the next layer above the gap");
    }
    if has(Rung::NullDevice) || sizes(&[Rung::ZeroDevice]).len() > 1 {
        terms.push(Vfs);
    } else {
        note("no /dev/null rung: the VFS is not separated from `cache` and `block`");
    }
    if has(Rung::ZeroDevice) {
        terms.push(Zero);
    }

    let cached = sizes(&[Rung::Memory, Rung::CachedFile]);
    if !cached.is_empty() {
        terms.push(CacheCall);
        if cached.len() > 1 {
            terms.push(Copy);
        } else {
            note("one cached block size: `copy` is not separated from `cache`");
        }
        if cached.len() > 2 && !proportional(&cached) {
            terms.push(CachePage);
        } else if cached.len() > 1 && has(Rung::Copy) {
            terms.push(CachePage);
            note("no cached size below the page: `copy` is taken from a copy in user memory");
        } else if cached.len() > 1 {
            note("no cached size below the page: the cache's cost per page is booked under `copy`");
        }
    }
    match (has(Rung::Memory), has(Rung::CachedFile)) {
        (true, true) => {
            terms.push(FileCall);
            if sizes(&[Rung::CachedFile]).intersection(&sizes(&[Rung::Memory])).count() > 1 {
                terms.push(FilePage);
            }
        }
        (false, true) => note("no memory-file rung: the file system's own cost is booked under `cache`"),
        _ => {}
    }

    let mapped = sizes(&[Rung::MappedFile]);
    if !mapped.is_empty() {
        terms.push(MapPage);
        if mapped.len() > 1 {
            terms.push(MapCall);
        }
        if mapped.len() > 2 && !proportional(&mapped) {
            terms.push(MapByte);
        }
    }

    let direct = sizes(&[Rung::DirectFile, Rung::RawDevice]);
    if direct.is_empty() {
        note("no direct rung: `block` and `device` are not in the model");
    } else {
        terms.extend([BlockCall, DeviceCall]);
        if direct.len() > 1 {
            terms.extend([BlockPage, DeviceByte]);
        } else {
            note(
                "one direct block size: costs per page and byte of `block` and `device` are booked per call",
            );
        }
        if direct.len() > 2 && !proportional(&direct) {
            terms.push(BlockByte);
        } else if direct.len() > 1 {
            note("no direct size below the page: the block layer's cost per byte is booked per page");
        }
    }
    terms
}

/// One rung and size, with the per-round values of its busy or waiting time.
struct Observed {
    rung: Rung,
    side: Side,
    equation: Vec<(Term, f64)>,
    /// By index into [`Data::rounds`].
    values: Vec<Option<f64>>,
}

/// A cold cell: fitted after the rest.
struct Cold {
    block_bytes: u64,
    /// Block requests and bytes of the device for one request (medians).
    device: Option<(f64, f64)>,
    busy: Vec<Option<f64>>,
}

/// All observations of the fit.
struct Data {
    rounds: Vec<u32>,
    observed: Vec<Observed>,
    cold: Vec<Cold>,
}

/// Terms with their values.
struct Solved {
    solved: BTreeMap<Term, f64>,
    residual: f64,
}

impl Data {
    fn gather(runs: &[&RungRun<'_>], options: &FitOptions) -> Data {
        let ids: BTreeSet<u32> = runs.iter().flat_map(|r| rounds(r.run)).map(|s| s.round).collect();
        let ids: Vec<u32> = ids.into_iter().collect();
        let by_round =
            |run: &CellRun, quantity: &dyn Fn(&iowhy_core::cell::Sample) -> f64| -> Vec<Option<f64>> {
                ids.iter().map(|&id| rounds(run).find(|s| s.round == id).map(quantity)).collect()
            };
        let own = options.harness_ns;
        let mut observed = Vec::new();
        let mut cold = Vec::new();
        for r in runs {
            let block_bytes = r.run.workload.block_bytes;
            if r.rung == Rung::ColdFile {
                let device = rounds(r.run)
                    .map(|s| Some((device_requests(s)?, device_bytes(s)?)))
                    .collect::<Option<Vec<(f64, f64)>>>()
                    .and_then(|d| {
                        let of =
                            |f: fn(&(f64, f64)) -> f64| stats::median(&d.iter().map(f).collect::<Vec<f64>>());
                        Some((of(|d| d.0)?, of(|d| d.1)?))
                    });
                cold.push(Cold { block_bytes, device, busy: by_round(r.run, &|s| busy_ns(s) - own) });
                continue;
            }
            for side in [Side::Busy, Side::Wait] {
                let equation = equation(r.rung, side, block_bytes, options.page_bytes);
                if equation.is_empty() {
                    continue;
                }
                let values = match side {
                    Side::Busy => by_round(r.run, &|s| busy_ns(s) - own),
                    Side::Wait => by_round(r.run, &wait_ns),
                };
                observed.push(Observed { rung: r.rung, side, equation, values });
            }
        }
        Data { rounds: ids, observed, cold }
    }

    /// A memory file may cost less than the file system or more, in calls and in pages; costs are not negative, so
    /// the sign is found by trying. The file's side wins a tie.
    fn best_variant(&self, terms: &[Term], notes: &mut Vec<String>) -> (Vec<Term>, Solved) {
        let swaps = [(Term::FileCall, Term::MemoryFileCall), (Term::FilePage, Term::MemoryFilePage)];
        let mut best = (terms.to_vec(), self.solve(terms, None));
        for choice in 1..4usize {
            let mut variant = terms.to_vec();
            for (bit, (file, memory)) in swaps.iter().enumerate() {
                if choice >> bit & 1 == 1 {
                    variant.iter_mut().filter(|t| *t == file).for_each(|t| *t = *memory);
                }
            }
            if variant == terms {
                continue;
            }
            let solved = self.solve(&variant, None);
            if solved.residual < best.1.residual * 0.999 - 1e-9 {
                best = (variant, solved);
            }
        }
        for (term, what) in [(Term::MemoryFileCall, "call"), (Term::MemoryFilePage, "page")] {
            if let Some(ns) = best.1.solved.get(&term).filter(|&&ns| ns > 0.0) {
                notes.push(format!(
                    "a memory file costs {ns:.1} ns more per {what} than this file system; left out"
                ));
            }
        }
        best
    }

    fn solve(&self, terms: &[Term], drawn: Option<&[usize]>) -> Solved {
        let rows: Vec<nnls::Row> = self
            .observed
            .iter()
            .filter(|o| o.rung != Rung::Copy || self.needs_copy_rung(terms))
            .filter_map(|o| {
                let value = median_of(&o.values, drawn)?;
                // Nothing waits in less than a nanosecond: such a row is the difference of two clocks.
                if value < 1.0 && o.side == Side::Wait || value <= 0.0 {
                    return None;
                }
                let mut coefficients = vec![0.0; terms.len()];
                for &(term, count) in &o.equation {
                    if let Some(i) = terms.iter().position(|&t| t == term) {
                        coefficients[i] = count;
                    }
                }
                Some(nnls::Row { coefficients, value, weight: 1.0 / value })
            })
            .collect();
        let solution = nnls::solve(terms.len(), &rows);
        Solved { solved: terms.iter().copied().zip(solution.x).collect(), residual: solution.residual }
    }

    /// A copy in user memory is not the kernel's copy: it counts only where nothing else separates bytes from pages.
    fn needs_copy_rung(&self, terms: &[Term]) -> bool {
        let cached = || self.observed.iter().filter(|o| matches!(o.rung, Rung::Memory | Rung::CachedFile));
        let per_page = |o: &Observed| {
            let count = |term| o.equation.iter().find(|e| e.0 == term).map_or(0.0, |e| e.1);
            count(Term::Copy) / count(Term::CachePage)
        };
        let mut ratios = cached().map(per_page);
        let first = ratios.next();
        terms.contains(&Term::CachePage) && ratios.all(|r| first.is_some_and(|f| (r - f).abs() < 1e-6 * f))
    }

    /// The model's costs out of solved terms, with `Part::Insert` from the cold cells.
    fn model_costs(
        &self,
        solved: &BTreeMap<Term, f64>,
        drawn: Option<&[usize]>,
        options: &FitOptions,
    ) -> BTreeMap<Home, Cost> {
        let mut costs = costs(solved);
        let block = costs.get(&Home::Layer(iowhy_core::layer::Layer::Block)).copied();
        let rows: Vec<nnls::Row> = self
            .cold
            .iter()
            .filter_map(|c| {
                let busy = median_of(&c.busy, drawn).filter(|&b| b > 0.0)?;
                let warm: f64 = equation(Rung::CachedFile, Side::Busy, c.block_bytes, options.page_bytes)
                    .iter()
                    .map(|(term, count)| count * solved.get(term).copied().unwrap_or(0.0))
                    .sum();
                let (requests, bytes) = c.device.unwrap_or_else(|| {
                    let ahead = options.read_ahead_bytes.max(c.block_bytes) as f64;
                    (c.block_bytes as f64 / ahead, c.block_bytes as f64)
                });
                let block = block_busy_ns(&block?, requests, bytes, options.page_bytes);
                let inserted_pages = bytes / options.page_bytes as f64;
                Some(nnls::Row {
                    coefficients: vec![inserted_pages],
                    value: busy - warm - block,
                    weight: 1.0 / busy,
                })
            })
            .collect();
        if !rows.is_empty() {
            let per_page_ns = nnls::solve(1, &rows).x[0];
            costs.insert(Home::Part(Part::Insert), Cost { per_page_ns, ..Cost::default() });
        }
        costs
    }
}

/// Median over the drawn rounds; over all rounds when none is drawn, or the cell has none of those drawn.
fn median_of(values: &[Option<f64>], drawn: Option<&[usize]>) -> Option<f64> {
    let picked: Vec<f64> = match drawn {
        Some(drawn) => drawn.iter().filter_map(|&i| values.get(i).copied().flatten()).collect(),
        None => Vec::new(),
    };
    stats::median(&picked).or_else(|| stats::median(&values.iter().copied().flatten().collect::<Vec<f64>>()))
}

/// The prediction for a size that was held out; `None` where no term of the rung was fitted.
fn predict(run: &RungRun<'_>, solved: &BTreeMap<Term, f64>, options: &FitOptions) -> Option<HeldOut> {
    let block_bytes = run.run.workload.block_bytes;
    let known: Vec<f64> = [Side::Busy, Side::Wait]
        .into_iter()
        .flat_map(|side| equation(run.rung, side, block_bytes, options.page_bytes))
        .filter_map(|(term, count)| solved.get(&term).map(|ns| ns * count))
        .collect();
    if known.is_empty() {
        return None;
    }
    let predicted_ns: f64 = known.iter().sum();
    let measured = estimate(run.run, Unit::Nanoseconds, |s| undisturbed_ns(s) - options.harness_ns)?;
    Some(HeldOut {
        rung: run.rung,
        block_bytes,
        predicted_ns,
        measured,
        error_percent: (predicted_ns / measured.value - 1.0) * 100.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Truth;
    use iowhy_core::layer::Layer;
    use proptest::prelude::*;

    const SIZES: [u64; 8] = [512, 1024, 2048, 4096, 16_384, 65_536, 262_144, 1 << 20];
    const RUNGS: [Rung; 7] = [
        Rung::Syscall,
        Rung::NullDevice,
        Rung::ZeroDevice,
        Rung::Memory,
        Rung::CachedFile,
        Rung::MappedFile,
        Rung::DirectFile,
    ];

    fn ladder(truth: &Truth, rungs: &[Rung], sizes: &[u64], noise: f64, seed: u64) -> Vec<(Rung, CellRun)> {
        rungs.iter().flat_map(|&r| sizes.iter().map(move |&s| (r, truth.cell(r, s, noise, seed)))).collect()
    }

    fn fitted(cells: &[(Rung, CellRun)], options: &FitOptions) -> Fit {
        let runs: Vec<RungRun<'_>> = cells.iter().map(|(rung, run)| RungRun { rung: *rung, run }).collect();
        fit(&runs, options)
    }

    fn options(replicates: usize) -> FitOptions {
        FitOptions { replicates, ..FitOptions::new("test", 4096, 42) }
    }

    /// Every cost of the truth with the fitted one.
    fn pairs(truth: &Truth, fit: &Fit) -> Vec<(String, f64, LayerCost)> {
        let wanted = truth.model();
        let layers = wanted
            .layers
            .iter()
            .map(|(l, c)| (l.id().to_owned(), c.cost, fit.model.layers.get(l).copied().unwrap_or_default()));
        let parts = wanted
            .parts
            .iter()
            .map(|(p, c)| (format!("{p:?}"), c.cost, fit.model.parts.get(p).copied().unwrap_or_default()));
        let field = |cost: fn(&Cost) -> f64, c: &LayerCost| LayerCost {
            cost: Cost { per_call_ns: cost(&c.cost), ..Cost::default() },
            low: Cost { per_call_ns: cost(&c.low), ..Cost::default() },
            high: Cost { per_call_ns: cost(&c.high), ..Cost::default() },
        };
        let fields: [(&str, fn(&Cost) -> f64); 3] =
            [("call", |c| c.per_call_ns), ("page", |c| c.per_page_ns), ("byte", |c| c.per_byte_ns)];
        layers
            .chain(parts)
            .flat_map(|(name, wanted, found)| {
                fields.map(|(per, cost)| (format!("{name} per {per}"), cost(&wanted), field(cost, &found)))
            })
            .collect()
    }

    fn assert_recovered(truth: &Truth, fit: &Fit) {
        for (name, wanted, found) in pairs(truth, fit) {
            let found = found.cost.per_call_ns;
            assert!(
                (found - wanted).abs() <= 1e-6 * wanted + 1e-9,
                "{name}: {found} for {wanted}\n{:?}",
                fit.notes
            );
        }
    }

    #[test]
    fn an_exact_ladder_gives_back_every_cost() {
        let cells = ladder(&Truth::EXAMPLE, &RUNGS, &SIZES, 0.0, 1);
        let fit = fitted(&cells, &options(20));
        assert_recovered(&Truth::EXAMPLE, &fit);
        assert!(fit.residual_percent < 1e-6, "{}", fit.residual_percent);
        assert!(fit.notes.is_empty(), "{:?}", fit.notes);
    }

    #[test]
    fn held_out_sizes_are_predicted_and_do_not_steer_the_fit() {
        let mut cells = ladder(&Truth::EXAMPLE, &RUNGS, &SIZES, 0.0, 1);
        let options = FitOptions { held_out: vec![16_384], ..options(5) };
        let clean = fitted(&cells, &options);
        assert_eq!(
            clean.held_out.len(),
            5,
            "every rung whose cost depends on the size: {:?}",
            clean.held_out
        );
        assert!(clean.held_out.iter().all(|h| h.block_bytes == 16_384 && h.error_percent.abs() < 1e-4));
        // A held-out cell that doubles its time changes its own error and nothing else.
        let direct = cells.iter_mut().find(|c| c.0 == Rung::DirectFile && c.1.workload.block_bytes == 16_384);
        for s in &mut direct.unwrap().1.samples {
            s.thread_ns *= 2;
        }
        let bent = fitted(&cells, &options);
        assert_eq!(bent.model, clean.model);
        let error = bent.held_out.iter().find(|h| h.rung == Rung::DirectFile).unwrap().error_percent;
        assert!((error + 50.0).abs() < 1e-4, "{error}");
    }

    #[test]
    fn noise_of_two_per_cent_leaves_most_truths_inside_their_intervals() {
        let (mut inside, mut all) = (0, 0);
        for seed in 1..=6 {
            let cells = ladder(&Truth::EXAMPLE, &RUNGS, &SIZES, 0.02, seed * 7919);
            let fit = fitted(&cells, &FitOptions { seed, ..options(120) });
            assert!(fit.residual_percent < 4.0, "{}", fit.residual_percent);
            for (_, wanted, found) in pairs(&Truth::EXAMPLE, &fit).iter().filter(|p| p.1 > 0.0) {
                all += 1;
                let holds = found.low.per_call_ns <= *wanted && *wanted <= found.high.per_call_ns;
                inside += usize::from(holds);
                assert!(found.low.per_call_ns <= found.cost.per_call_ns);
                assert!(found.cost.per_call_ns <= found.high.per_call_ns);
            }
        }
        assert!(inside * 100 >= all * 80, "{inside} of {all}");
    }

    #[test]
    fn the_same_record_gives_the_same_model() {
        let cells = ladder(&Truth::EXAMPLE, &RUNGS, &SIZES, 0.05, 3);
        assert_eq!(fitted(&cells, &options(30)), fitted(&cells, &options(30)));
    }

    #[test]
    fn missing_rungs_are_noted_and_the_rest_still_predicts() {
        let cells = ladder(&Truth::EXAMPLE, &[Rung::Syscall, Rung::CachedFile], &SIZES, 0.0, 1);
        let fit = fitted(&cells, &FitOptions { held_out: vec![4096], ..options(5) });
        assert!(
            !fit.model.layers.contains_key(&Layer::Device) && !fit.model.layers.contains_key(&Layer::Block)
        );
        for needle in ["/dev/null", "memory-file", "no direct rung"] {
            assert!(fit.notes.iter().any(|n| n.contains(needle)), "{needle}: {:?}", fit.notes);
        }
        assert!(fit.held_out[0].error_percent.abs() < 1e-4, "{:?}", fit.held_out);
        let t = Truth::EXAMPLE;
        let cache = fit.model.cost(Layer::Cache).per_call_ns;
        assert!(
            (cache - (t.vfs + t.file + t.cache.0)).abs() < 1e-4,
            "the gap is booked under cache: {cache}"
        );
        let nothing = fitted(&[], &options(5));
        assert!(nothing.model.layers.is_empty() && nothing.held_out.is_empty());
    }

    #[test]
    fn direct_reads_that_no_device_answered_give_no_device_layer() {
        let mut cells = ladder(&Truth::EXAMPLE, &RUNGS, &SIZES, 0.0, 1);
        for (_, run) in cells.iter_mut().filter(|c| c.0 == Rung::DirectFile) {
            run.samples.iter_mut().for_each(|s| s.device_bytes = Some(0));
        }
        let unwritten = fitted(&cells, &options(5));
        assert!(!unwritten.model.layers.contains_key(&Layer::Device));
        assert!(
            unwritten.notes.iter().any(|n| n.contains("the device moved nothing")),
            "{:?}",
            unwritten.notes
        );
        let cells = ladder(&Truth::EXAMPLE, &RUNGS, &SIZES, 0.0, 1);
        let tmpfs = fitted(&cells, &FitOptions { memory_backed: true, ..options(5) });
        assert!(!tmpfs.model.layers.contains_key(&Layer::Device));
    }

    #[test]
    fn sizes_of_whole_pages_say_that_pages_and_bytes_are_one() {
        let sizes = [4096, 16_384, 65_536, 1 << 20];
        let cells = ladder(&Truth::EXAMPLE, &RUNGS, &sizes, 0.0, 1);
        let fit = fitted(&cells, &options(5));
        let t = Truth::EXAMPLE;
        let copy = fit.model.cost(Layer::Copy).per_byte_ns;
        assert!((copy - (t.copy + t.cache.1 / 4096.0)).abs() < 1e-8, "{copy}");
        let block = fit.model.cost(Layer::Block);
        assert!((block.per_page_ns - (t.block.1 + t.block.2 * 4096.0)).abs() < 1e-4, "{block:?}");
        assert!(fit.notes.iter().any(|n| n.contains("no cached size below the page")));

        let mut rungs = RUNGS.to_vec();
        rungs.push(Rung::Copy);
        let with_copy = fitted(&ladder(&t, &rungs, &sizes, 0.0, 1), &options(5));
        assert!((with_copy.model.cost(Layer::Copy).per_byte_ns - t.copy).abs() < 1e-8);
        assert!((with_copy.model.cost(Layer::Cache).per_page_ns - t.cache.1).abs() < 1e-4);
    }

    #[test]
    fn a_memory_file_dearer_than_the_file_system_does_not_bend_the_file() {
        let t = Truth::EXAMPLE;
        let mut cells = ladder(&t, &RUNGS, &SIZES, 0.0, 1);
        for (_, run) in cells.iter_mut().filter(|c| c.0 == Rung::Memory) {
            let pages = run.workload.block_bytes.div_ceil(4096);
            for s in &mut run.samples {
                s.cpu_ns += s.requests * 50 * pages;
                s.thread_ns += s.requests * 50 * pages;
            }
        }
        let fit = fitted(&cells, &options(5));
        assert!(fit.residual_percent < 1e-4, "{}", fit.residual_percent);
        assert!((fit.model.cost(Layer::Cache).per_page_ns - t.cache.1).abs() < 1e-4);
        assert!(fit.notes.iter().any(|n| n.contains("50.0 ns more per page")), "{:?}", fit.notes);
    }

    #[test]
    fn insertion_comes_from_cold_cells_with_the_device_counters() {
        let t = Truth::EXAMPLE;
        let mut rungs = RUNGS.to_vec();
        rungs.push(Rung::ColdFile);
        let mut cells = ladder(&t, &rungs, &SIZES, 0.0, 1);
        for (_, run) in cells.iter_mut().filter(|c| c.0 == Rung::ColdFile) {
            let insert = 130.0 * run.workload.block_bytes as f64 / 4096.0;
            for s in &mut run.samples {
                s.cpu_ns += (s.requests as f64 * insert) as u64;
            }
        }
        let fit = fitted(&cells, &options(5));
        // A cold read below the page shares its page's insertion with its neighbours.
        let insert = fit.model.part(Part::Insert).per_page_ns;
        assert!((insert - 130.0).abs() < 1e-3, "{insert}");
        assert_recovered(&t, &fit);
    }

    #[test]
    fn our_own_cost_is_taken_off_before_fitting() {
        let t = Truth::EXAMPLE;
        let mut cells = ladder(&t, &RUNGS, &SIZES, 0.0, 1);
        for s in cells.iter_mut().flat_map(|c| &mut c.1.samples) {
            s.cpu_ns += s.requests * 40;
            s.thread_ns += s.requests * 40;
        }
        assert_recovered(&t, &fitted(&cells, &FitOptions { harness_ns: 40.0, ..options(5) }));
    }

    #[test]
    fn a_violated_cell_is_left_out_by_name() {
        let mut cells = ladder(&Truth::EXAMPLE, &RUNGS, &SIZES, 0.0, 1);
        let bad = cells.iter_mut().find(|c| c.0 == Rung::CachedFile && c.1.workload.block_bytes == 65_536);
        let bad = &mut bad.unwrap().1;
        bad.state_check = StateCheck::Violated { reason: "31 % resident".into() };
        bad.samples.iter_mut().for_each(|s| s.cpu_ns *= 9);
        let fit = fitted(&cells, &options(5));
        assert_recovered(&Truth::EXAMPLE, &fit);
        assert!(fit.notes[0].contains("65536") && fit.notes[0].contains("31 % resident"), "{:?}", fit.notes);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn random_models_are_recovered(
            call in 20.0..500.0f64, vfs in 5.0..200.0f64, file in 0.0..300.0f64, zero in 0.005..0.2f64,
            cache in (5.0..200.0f64, 1.0..200.0f64), copy in 0.01..0.5f64, memory in (1.0..50.0f64, 20.0..900.0f64),
            block in (200.0..9000.0f64, 1.0..200.0f64, 0.0..0.1f64), device in (2e3..8e6f64, 0.05..20.0f64),
        ) {
            let truth = Truth { call, vfs, file, zero, cache, copy, memory, block, device };
            let fit = fitted(&ladder(&truth, &RUNGS, &SIZES, 0.0, 1), &options(2));
            for (name, wanted, found) in pairs(&truth, &fit) {
                let found = found.cost.per_call_ns;
                prop_assert!((found - wanted).abs() <= 1e-5 * wanted + 1e-7, "{name}: {found} for {wanted}");
            }
        }
    }
}
