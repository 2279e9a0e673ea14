//! The bar that splits a time over the layers: letters first, so that it reads without colour; colour on top.
//!
//! Invariant: a bar of width w has exactly w cells, divided by largest remainder, so that it never lies by rounding
//! every share up. A layer that explains less than nothing has no cells and is named in the text beside the bar.

use anstyle::{AnsiColor, Style};
use iowhy_core::layer::{Layer, Ledger};

/// Letter of a layer in bars.
pub fn letter(layer: Layer) -> char {
    match layer {
        Layer::Program => 'p',
        Layer::Call => 'c',
        Layer::Filesystem => 'f',
        Layer::Cache => 'k',
        Layer::Copy => 'y',
        Layer::Memory => 'm',
        Layer::Block => 'b',
        Layer::Device => 'D',
        Layer::Writeback => 'W',
        Layer::Lock => 'L',
        Layer::CpuQueue => 'q',
        Layer::Elsewhere => 'e',
        Layer::Unexplained => '?',
    }
}

fn colour(layer: Layer) -> Style {
    let colour = match layer {
        Layer::Program | Layer::Elsewhere => AnsiColor::White,
        Layer::Call => AnsiColor::Cyan,
        Layer::Filesystem => AnsiColor::Blue,
        Layer::Cache => AnsiColor::Green,
        Layer::Copy => AnsiColor::Yellow,
        Layer::Memory => AnsiColor::BrightGreen,
        Layer::Block => AnsiColor::Magenta,
        Layer::Device => AnsiColor::Red,
        Layer::Writeback => AnsiColor::BrightRed,
        Layer::Lock | Layer::CpuQueue => AnsiColor::BrightYellow,
        Layer::Unexplained => AnsiColor::BrightBlack,
    };
    Style::new().fg_color(Some(colour.into()))
}

/// Cells per layer, in the ledger's order; sums to `width` when anything is positive.
fn cells(ledger: &Ledger, width: usize) -> Vec<(Layer, usize)> {
    let shares: Vec<(Layer, f64)> =
        ledger.entries().iter().map(|e| (e.id, e.total_ns().max(0.0))).filter(|(_, ns)| *ns > 0.0).collect();
    let whole: f64 = shares.iter().map(|(_, ns)| ns).sum();
    if whole <= 0.0 {
        return Vec::new();
    }
    let exact: Vec<f64> = shares.iter().map(|(_, ns)| ns / whole * width as f64).collect();
    let mut given: Vec<usize> = exact.iter().map(|e| e.floor() as usize).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| (exact[b] - exact[b].floor()).total_cmp(&(exact[a] - exact[a].floor())));
    let missing = width - given.iter().sum::<usize>();
    for &i in order.iter().take(missing) {
        given[i] += 1;
    }
    shares.iter().zip(given).map(|((layer, _), n)| (*layer, n)).collect()
}

/// The bar, exactly `width` cells (blank when there is nothing to show).
pub fn bar(ledger: &Ledger, width: usize) -> String {
    let cells = cells(ledger, width);
    if cells.is_empty() {
        return " ".repeat(width);
    }
    let mut text = String::new();
    for (layer, n) in cells.into_iter().filter(|(_, n)| *n > 0) {
        let style = colour(layer);
        let run: String = std::iter::repeat_n(letter(layer), n).collect();
        text.push_str(&format!("{style}{run}{style:#}"));
    }
    text
}

/// The legend of the layers that occur, in order.
pub fn legend<'a>(ledgers: impl Iterator<Item = &'a Ledger>) -> String {
    let mut seen: Vec<Layer> = ledgers.flat_map(|l| l.entries().iter().map(|e| e.id)).collect();
    seen.sort();
    seen.dedup();
    seen.into_iter().map(key).collect::<Vec<_>>().join("  ")
}

/// A layer's entry in a legend: its letter in its colour, and its name.
pub fn key(layer: Layer) -> String {
    key_as(layer, layer.id())
}

/// The same under another name, where all of the layer's time is one thing.
pub fn key_as(layer: Layer, name: &str) -> String {
    let style = colour(layer);
    format!("{style}{}{style:#} {name}", letter(layer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(entries: &[(Layer, f64)]) -> Ledger {
        let mut ledger = Ledger::default();
        for &(layer, ns) in entries {
            ledger.add(layer, ns, 0.0);
        }
        ledger
    }

    #[test]
    fn a_bar_has_exactly_its_width_for_awkward_shares() {
        let l = ledger(&[(Layer::Call, 1.0), (Layer::Cache, 1.0), (Layer::Copy, 1.0)]);
        for width in [1, 7, 20, 31] {
            assert_eq!(cells(&l, width).iter().map(|c| c.1).sum::<usize>(), width);
        }
    }

    #[test]
    fn shares_come_out_in_proportion_and_negative_ones_take_no_room() {
        let l = ledger(&[(Layer::Call, 25.0), (Layer::Copy, 75.0), (Layer::Unexplained, -10.0)]);
        assert_eq!(cells(&l, 20), vec![(Layer::Call, 5), (Layer::Copy, 15)]);
    }

    #[test]
    fn an_empty_ledger_is_blank_of_the_same_width() {
        assert_eq!(bar(&Ledger::default(), 6), "      ");
    }

    #[test]
    fn letters_are_unique() {
        let mut letters: Vec<char> = Layer::ALL.iter().map(|&l| letter(l)).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), Layer::ALL.len());
    }
}
