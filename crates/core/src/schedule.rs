//! The order of cells over rounds: interleaved and seeded, so that drift does not look like effect.
//!
//! Each round measures every cell once. The orders are rows of a Williams square (E. J. Williams 1949): over a full
//! set of rows every cell is at every position equally often, and follows every other cell equally often, so that
//! neither the warming-up of a round nor what the cell before left behind (cache, write-back) favours anyone. A full
//! set takes as many rounds as there are cells, twice that for an odd number of cells; with fewer rounds still no
//! cell is twice at the same position. Seeded: which cell is which letter of the square, and the order of the rows.

use crate::rng::Rng;

/// The order of cells 0..`cells` in round `round`.
pub fn interleave(cells: usize, round: u32, seed: u64) -> Vec<usize> {
    if cells < 2 {
        return (0..cells).collect();
    }
    let rows = if cells.is_multiple_of(2) { cells } else { 2 * cells };
    let (set, place) = (round as usize / rows, round as usize % rows);
    let mut rng = Rng::new(Rng::new(seed).next_u64() ^ set as u64);
    let mut letters: Vec<usize> = (0..cells).collect();
    rng.shuffle(&mut letters);
    let row = row_at(cells, rows, place, &mut rng);
    let mut order: Vec<usize> =
        (0..cells).map(|column| letters[(zigzag(column, cells) + row) % cells]).collect();
    // An odd square balances adjacent cells only together with its mirror image.
    if row >= cells {
        order.reverse();
    }
    order
}

/// The row at a position in the set: shuffled within the square, the mirror image after it.
fn row_at(cells: usize, rows: usize, place: usize, rng: &mut Rng) -> usize {
    let mut order: Vec<usize> = (0..rows).collect();
    order.chunks_mut(cells).for_each(|half| rng.shuffle(half));
    order[place]
}

/// The first row of the square: 0, 1, n-1, 2, n-2, ... whose adjacent distances are all different.
fn zigzag(column: usize, cells: usize) -> usize {
    if column % 2 == 1 { column.div_ceil(2) } else { (cells - column / 2) % cells }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_round_holds_each_cell_once() {
        for cells in 0..20 {
            for round in 0..50 {
                let mut order = interleave(cells, round, 7);
                order.sort_unstable();
                assert!(order.into_iter().eq(0..cells));
            }
        }
    }

    #[test]
    fn a_full_set_balances_places_and_neighbours() {
        for cells in 2..14usize {
            let rows = if cells.is_multiple_of(2) { cells } else { 2 * cells };
            let mut places: HashMap<(usize, usize), usize> = HashMap::new();
            let mut neighbours: HashMap<(usize, usize), usize> = HashMap::new();
            // The second set: later ones must be as balanced as the first.
            for round in rows..2 * rows {
                let order = interleave(cells, round as u32, 3);
                order
                    .iter()
                    .enumerate()
                    .for_each(|(place, &cell)| *places.entry((place, cell)).or_default() += 1);
                order.windows(2).for_each(|w| *neighbours.entry((w[0], w[1])).or_default() += 1);
            }
            let each = rows / cells;
            assert!(
                places.len() == cells * cells && places.values().all(|n| *n == each),
                "{cells} cells: places"
            );
            let pairs = cells * (cells - 1);
            assert!(
                neighbours.len() == pairs && neighbours.values().all(|n| *n == each),
                "{cells} cells: pairs"
            );
        }
    }

    #[test]
    fn no_cell_is_twice_at_a_place_before_it_was_at_all() {
        for cells in [5u32, 8] {
            for place in 0..cells as usize {
                let mut seen: Vec<usize> =
                    (0..cells).map(|round| interleave(cells as usize, round, 2)[place]).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), cells as usize);
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| (0..6).map(|round| interleave(6, round, seed)).collect::<Vec<_>>();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
