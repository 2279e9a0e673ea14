//! Ranks of one parallel job: the spread of their wall times and of the parts of it, and which of them are slower than the noise
//! among ranks explains.
//!
//! Non-goal: why. Invariant: a rank is summarised when it is added, in a few hundred bytes; what is kept grows with ranks times
//! parts, not with records.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::layer::Layer;
use iowhy_core::stats::{apart, median, quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Probability of naming any rank of a job in which none is slower but by noise.
pub const LEVEL: f64 = 0.05;

/// Ranks below which noise cannot be told from a slow one.
pub const MIN_RANKS: usize = 3;

/// A part of the wall time: what the program asked for, and the layer.
pub type PartOfRank = (String, Layer);

/// Summaries of ranks, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    wall_ns: Vec<f64>,
    parts: BTreeMap<PartOfRank, Vec<(usize, f64)>>,
}

/// A time over ranks. There is no interval: these are all ranks there are, not a sample of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SpreadOverRanks")]
pub struct Spread {
    /// Median over ranks.
    pub median_ns: f64,
    /// A quarter of the ranks is below.
    pub lower_quartile_ns: f64,
    /// A quarter of the ranks is above.
    pub upper_quartile_ns: f64,
    /// Least.
    pub min_ns: f64,
    /// Greatest.
    pub max_ns: f64,
    /// The rank with the greatest; of several the first.
    pub max_rank: u64,
}

/// What is made of all ranks. Ranks are indices, in the order in which they were added.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// Wall times.
    pub wall: Spread,
    /// The same by layer, greatest first.
    pub layers: Vec<(Layer, Spread)>,
    /// The same by operation and layer, greatest first.
    pub parts: Vec<(PartOfRank, Spread)>,
    /// Slow ranks, slowest first.
    pub stragglers: Vec<Straggler>,
}

/// A rank that is slower than noise explains: in all, or in a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Straggler {
    /// Which.
    pub index: usize,
    /// Its wall time beyond the median of the ranks that are none; may be negative where only a layer is slower.
    pub wall_excess_ns: f64,
    /// Whether the wall time stands apart; else only the layer does.
    pub by_wall: bool,
    /// The layer that exceeds the others' median most, on the I/O path, computing or waiting for a CPU.
    pub layer: Option<(Layer, f64)>,
    /// The operation that has most of that.
    pub operation: Option<(String, f64)>,
    /// Probability of naming it where no rank is slower.
    pub chance: f64,
}

impl Ranks {
    /// Adds a rank, with the parts of its wall time.
    pub fn add(&mut self, wall_ns: f64, parts: impl IntoIterator<Item = (PartOfRank, f64)>) {
        let index = self.wall_ns.len();
        self.wall_ns.push(wall_ns);
        for (part, ns) in parts.into_iter().filter(|(_, ns)| *ns != 0.0) {
            let times = self.parts.entry(part).or_default();
            match times.last_mut().filter(|(last, _)| *last == index) {
                Some((_, time)) => *time += ns,
                None => times.push((index, ns)),
            }
        }
    }

    /// The account over all ranks; `None` without any. `numbers` are the ranks by index. A rank is slow where it differs by `threshold`
    /// of the median wall time or more; layers are looked at only where `by_layer`.
    pub fn merged(&self, numbers: &[u64], threshold: f64, by_layer: bool) -> Option<Merged> {
        let wall = spread(&self.wall_ns, numbers)?;
        let layers = self.layers();
        let of_layers = layers.iter().filter_map(|(layer, times)| Some((*layer, spread(times, numbers)?)));
        let of_parts = self.parts.iter().filter_map(|(part, times)| {
            Some((part.clone(), spread(&filled(times, self.wall_ns.len()), numbers)?))
        });
        let mut merged = Merged {
            wall,
            layers: of_layers.collect(),
            parts: of_parts.collect(),
            stragglers: self.stragglers(&layers, threshold * wall.median_ns, by_layer),
        };
        merged.layers.sort_by(|a, b| b.1.max_ns.total_cmp(&a.1.max_ns));
        merged.parts.sort_by(|a, b| b.1.max_ns.total_cmp(&a.1.max_ns));
        Some(merged)
    }

    /// Time of each layer in every rank.
    fn layers(&self) -> BTreeMap<Layer, Vec<f64>> {
        let mut layers: BTreeMap<Layer, Vec<f64>> = BTreeMap::new();
        for ((_, layer), times) in &self.parts {
            let sums = layers.entry(*layer).or_insert_with(|| vec![0.0; self.wall_ns.len()]);
            times.iter().for_each(|(index, ns)| sums[*index] += ns);
        }
        layers
    }

    /// Ranks that stand apart, with whether their wall time does, and the probability.
    ///
    /// Half of the level goes to the wall time, half to all layers together (Bonferroni). Ranks that wait for each other end
    /// together: then only the layers tell. A layer names a rank where all end within less than what it has more of: the others
    /// spent that time otherwise. Waiting off the path is what they do meanwhile, and no sign of a slow rank; what the observer
    /// costs and what nothing explains are none either.
    fn apart(
        &self,
        layers: &BTreeMap<Layer, Vec<f64>>,
        least_ns: f64,
        by_layer: bool,
    ) -> BTreeMap<usize, (bool, f64)> {
        let tested: Vec<&Vec<f64>> = layers
            .iter()
            .filter(|(layer, _)| by_layer && !PASSIVE.contains(layer))
            .map(|(_, times)| times)
            .collect();
        let weight = if tested.is_empty() { 1.0 } else { 2.0 };
        let mut chances: BTreeMap<usize, (bool, f64)> = BTreeMap::new();
        let mut name = |times: &[f64], weight: f64, by_wall: bool, least_ns: f64| {
            let Some(found) = apart(times, LEVEL / weight) else { return };
            let mut order: Vec<usize> = (0..times.len()).collect();
            order.sort_by(|a, b| times[*b].total_cmp(&times[*a]));
            let usual: Vec<f64> = order[found.count..].iter().map(|index| times[*index]).collect();
            let usual = median(&usual).unwrap_or_default();
            for index in &order[..found.count] {
                if times[*index] - usual >= least_ns {
                    let chance = (found.chance * weight).min(1.0);
                    let known = chances.entry(*index).or_insert((by_wall, chance));
                    known.1 = known.1.min(chance);
                }
            }
        };
        name(&self.wall_ns, weight, true, least_ns);
        let ends = |pick: fn(f64, f64) -> f64| self.wall_ns.iter().copied().reduce(pick).unwrap_or_default();
        let together_ns = ends(f64::max) - ends(f64::min);
        for times in &tested {
            name(times, weight * tested.len() as f64, false, least_ns.max(together_ns));
        }
        chances
    }

    fn stragglers(
        &self,
        layers: &BTreeMap<Layer, Vec<f64>>,
        least_ns: f64,
        by_layer: bool,
    ) -> Vec<Straggler> {
        let chances = self.apart(layers, least_ns, by_layer);
        let slow: BTreeSet<usize> = chances.keys().copied().collect();
        let usual = |times: &[f64]| {
            let others = times.iter().enumerate().filter(|(index, _)| !slow.contains(index));
            median(&others.map(|(_, ns)| *ns).collect::<Vec<f64>>()).unwrap_or_default()
        };
        let wall = usual(&self.wall_ns);
        let usual_layers: Vec<(Layer, f64)> =
            layers.iter().map(|(layer, times)| (*layer, usual(times))).collect();
        let parts: Vec<(&PartOfRank, Vec<f64>, f64)> = self
            .parts
            .iter()
            .map(|(part, times)| {
                let times = filled(times, self.wall_ns.len());
                let usual = usual(&times);
                (part, times, usual)
            })
            .collect();
        let straggler = |(index, (by_wall, chance)): (usize, (bool, f64))| {
            // A rank that is slow may be so anywhere; one that is known by its layers, in one that was looked at.
            let may_be = |layer: &Layer| by_wall || !PASSIVE.contains(layer);
            let excess = usual_layers.iter().filter(|(layer, _)| may_be(layer));
            let excess = excess.map(|(layer, usual)| (*layer, layers[layer][index] - usual));
            let layer = greatest(excess).filter(|_| by_layer);
            let operation = layer.as_ref().and_then(|(layer, _)| {
                let parts = parts.iter().filter(|((_, of), ..)| of == layer);
                greatest(
                    parts.map(|((operation, _), times, usual)| (operation.clone(), times[index] - usual)),
                )
            });
            let wall_excess_ns = self.wall_ns[index] - wall;
            Straggler { index, wall_excess_ns, by_wall, layer, operation, chance }
        };
        let mut stragglers: Vec<Straggler> = chances.into_iter().map(straggler).collect();
        let size = |s: &Straggler| s.wall_excess_ns.max(s.layer.as_ref().map_or(0.0, |(_, ns)| *ns));
        stragglers.sort_by(|a, b| size(b).total_cmp(&size(a)));
        stragglers
    }
}

/// Layers by which no rank is told apart: a rank waits there for others, or nothing is known of them.
const PASSIVE: [Layer; 3] = [Layer::Elsewhere, Layer::Observer, Layer::Unexplained];

/// The entry with the greatest time, if that is above 0.
fn greatest<T>(entries: impl Iterator<Item = (T, f64)>) -> Option<(T, f64)> {
    entries.filter(|(_, ns)| *ns > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Times of all ranks; those without an entry have none of it.
fn filled(times: &[(usize, f64)], ranks: usize) -> Vec<f64> {
    let mut all = vec![0.0; ranks];
    times.iter().for_each(|(index, ns)| all[*index] = *ns);
    all
}

fn spread(times: &[f64], numbers: &[u64]) -> Option<Spread> {
    let max_ns = times.iter().copied().reduce(f64::max)?;
    let slowest = times.iter().zip(numbers).filter(|(ns, _)| **ns == max_ns).map(|(_, rank)| *rank).min();
    Some(Spread {
        median_ns: median(times)?,
        lower_quartile_ns: quantile(times, 0.25)?,
        upper_quartile_ns: quantile(times, 0.75)?,
        min_ns: times.iter().copied().reduce(f64::min)?,
        max_ns,
        max_rank: slowest?,
    })
}

#[cfg(test)]
mod tests {
    use iowhy_core::rng::Rng;

    use super::*;

    const MS: f64 = 1e6;

    /// Ranks that read from a device and wait for each other, each a little different.
    fn ranks(n: u64, seed: u64, change: impl Fn(u64, &mut [f64; 3])) -> Ranks {
        let mut rng = Rng::new(seed);
        let mut ranks = Ranks::default();
        for rank in 0..n {
            // Read from the device, own code, waiting for the others.
            let mut parts =
                [40.0, 50.0, 10.0].map(|ms| ms * MS * (1.0 + 0.02 * (rng.unit() + rng.unit() - 1.0)));
            change(rank, &mut parts);
            let named = [("read", Layer::Device), ("user", Layer::Program), ("poll", Layer::Elsewhere)];
            let parts = named
                .into_iter()
                .zip(parts)
                .map(|((operation, layer), ns)| ((operation.to_owned(), layer), ns));
            let parts: Vec<(PartOfRank, f64)> = parts.collect();
            ranks.add(parts.iter().map(|(_, ns)| ns).sum(), parts);
        }
        ranks
    }

    fn merged(ranks: &Ranks) -> Merged {
        let numbers: Vec<u64> = (0..ranks.wall_ns.len() as u64).collect();
        ranks.merged(&numbers, 0.05, true).unwrap()
    }

    #[test]
    fn parts_are_spread_over_ranks_and_the_slowest_is_named() {
        let told = merged(&ranks(9, 1, |rank, parts| {
            if rank == 4 {
                parts[0] += 80.0 * MS;
            }
        }));
        let (part, device) = &told.parts[0];
        assert_eq!((part.0.as_str(), part.1, device.max_rank), ("read", Layer::Device, 4));
        assert!((device.median_ns / MS - 40.0).abs() < 1.0 && device.max_ns > 115.0 * MS, "{device:?}");
        assert!(device.min_ns <= device.lower_quartile_ns && device.lower_quartile_ns <= device.median_ns);
        assert!(device.median_ns <= device.upper_quartile_ns && device.upper_quartile_ns <= device.max_ns);
        let sum: f64 = told.layers.iter().map(|(_, spread)| spread.median_ns).sum();
        assert!((sum / told.wall.median_ns - 1.0).abs() < 0.05);
        assert_eq!(told.layers[0].0, Layer::Device);
    }

    #[test]
    fn a_slow_rank_is_named_with_layer_and_operation() {
        let told = merged(&ranks(8, 2, |rank, parts| {
            if rank == 5 {
                parts[0] += 30.0 * MS;
            }
        }));
        assert_eq!(told.stragglers.len(), 1, "{:?}", told.stragglers);
        let slow = &told.stragglers[0];
        assert!(slow.by_wall && slow.index == 5 && slow.chance < LEVEL, "{slow:?}");
        assert!((slow.wall_excess_ns / MS - 30.0).abs() < 3.0, "{slow:?}");
        let (layer, excess) = slow.layer.unwrap();
        assert!(layer == Layer::Device && (excess / MS - 30.0).abs() < 2.0, "{slow:?}");
        assert_eq!(slow.operation.as_ref().unwrap().0, "read");
    }

    /// In a job with barriers all ranks end together, and the slow one is the one that the others wait for.
    #[test]
    fn ranks_that_end_together_are_told_apart_by_their_layers() {
        let told = merged(&ranks(8, 3, |rank, parts| {
            if rank == 2 {
                parts[0] += 60.0 * MS;
                parts[2] = 0.0;
            } else {
                parts[2] += 60.0 * MS;
            }
            let sum: f64 = parts.iter().sum();
            parts[2] += 170.0 * MS - sum;
        }));
        let slow: Vec<_> = told.stragglers.iter().map(|s| (s.index, s.by_wall, s.layer.unwrap().0)).collect();
        assert_eq!(slow, [(2, false, Layer::Device)], "{:?}", told.stragglers);
        // Where they do not end together, a layer alone is no reason to wait for a rank.
        let alone = ranks(8, 3, |rank, parts| {
            parts[1] += rank as f64 * 20.0 * MS;
            if rank == 2 {
                parts[0] += 60.0 * MS;
            }
        });
        assert_eq!(merged(&alone).stragglers, []);
        // One that waits longer than the others is none.
        let waits = ranks(8, 4, |rank, parts| {
            if rank == 2 {
                parts[0] -= 20.0 * MS;
                parts[2] += 20.0 * MS;
            }
        });
        assert_eq!(merged(&waits).stragglers, []);
    }

    #[test]
    fn equal_ranks_are_named_no_more_often_than_the_level_says() {
        const JOBS: u64 = 1000;
        for n in [4, 16, 64] {
            let named = (0..JOBS).filter(|seed| {
                let numbers: Vec<u64> = (0..n).collect();
                // Without a smallest size: what the test alone does.
                !ranks(n, seed * 7919 + n, |_, _| {})
                    .merged(&numbers, 0.0, true)
                    .unwrap()
                    .stragglers
                    .is_empty()
            });
            let share = named.count() as f64 / JOBS as f64;
            // Three standard errors beyond the level.
            assert!(share <= LEVEL + 3.0 * (LEVEL / JOBS as f64).sqrt(), "{n}: {share}");
        }
    }

    #[test]
    fn small_differences_and_single_ranks_are_not_named() {
        let small = ranks(8, 5, |rank, parts| {
            *parts = [40.0 * MS, 50.0 * MS, 10.0 * MS + rank as f64];
            if rank == 5 {
                parts[0] += 2.0 * MS;
            }
        });
        assert_eq!(merged(&small).stragglers, [], "2 % are less than the threshold");
        assert_eq!(merged(&ranks(1, 6, |_, _| {})).stragglers, []);
        assert_eq!(Ranks::default().merged(&[], 0.05, true), None);
        let by_wall = ranks(8, 2, |rank, parts| {
            if rank == 5 {
                parts[0] += 30.0 * MS;
            }
        });
        let told = by_wall.merged(&(0..8).collect::<Vec<_>>(), 0.05, false).unwrap();
        assert_eq!((told.stragglers.len(), told.stragglers[0].layer), (1, None));
    }
}
