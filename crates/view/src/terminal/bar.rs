//! A bar that splits a whole: letters first, so that it reads without colour; colour on top.
//!
//! Invariant: a bar of width w has exactly w cells, divided by largest remainder, so that it never lies by rounding
//! every share up. A piece below nothing has no cells and is named in the text beside the bar.

use anstyle::{AnsiColor, Style};
use iowhy_core::layer::Layer;

use super::wrap::flow;
use crate::piece::{self, Piece};

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
        Layer::Journal => AnsiColor::BrightMagenta,
        Layer::Writeback => AnsiColor::BrightRed,
        Layer::Server => AnsiColor::BrightBlue,
        Layer::Lock | Layer::CpuQueue => AnsiColor::BrightYellow,
        Layer::Observer | Layer::Unexplained => AnsiColor::BrightBlack,
    };
    Style::new().fg_color(Some(colour.into()))
}

/// Cells per piece; sums to `width` when anything is positive.
fn cells(pieces: &[Piece], width: usize) -> Vec<(&Piece, usize)> {
    let shown: Vec<&Piece> = pieces.iter().filter(|piece| piece.size > 0.0).collect();
    let whole: f64 = shown.iter().map(|piece| piece.size).sum();
    if whole <= 0.0 {
        return Vec::new();
    }
    let exact: Vec<f64> = shown.iter().map(|piece| piece.size / whole * width as f64).collect();
    let mut given: Vec<usize> = exact.iter().map(|e| e.floor() as usize).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = width - given.iter().sum::<usize>();
    for &i in order.iter().take(missing) {
        given[i] += 1;
    }
    shown.into_iter().zip(given).collect()
}

/// The bar, exactly `width` cells (blank when there is nothing to show).
pub(super) fn bar(pieces: &[Piece], width: usize) -> String {
    let cells = cells(pieces, width);
    if cells.is_empty() {
        return " ".repeat(width);
    }
    let mut text = String::new();
    for (piece, n) in cells.into_iter().filter(|(_, n)| *n > 0) {
        let style = colour(piece.layer);
        let run: String = std::iter::repeat_n(piece.letter, n).collect();
        text.push_str(&format!("{style}{run}{style:#}"));
    }
    text
}

/// The legend of the pieces that occur, in the order of layers.
pub(super) fn legend<'a>(pieces: impl Iterator<Item = &'a Piece>, width: usize) -> String {
    let mut seen: Vec<&Piece> = Vec::new();
    for piece in pieces {
        if !seen.iter().any(|known| known.name == piece.name) {
            seen.push(piece);
        }
    }
    seen.sort_by_key(|piece| piece.layer);
    let keys: Vec<String> = seen.iter().map(|piece| key(piece.layer, piece.letter, &piece.name)).collect();
    flow(&keys, width, "")
}

/// A layer's entry in a legend: its letter in its colour, and its name there.
pub(super) fn layer_key(layer: Layer, name: &str) -> String {
    key(layer, piece::letter(layer), name)
}

fn key(layer: Layer, letter: char, name: &str) -> String {
    let style = colour(layer);
    format!("{style}{letter}{style:#} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(entries: &[(Layer, f64)]) -> Vec<Piece> {
        entries.iter().map(|&(layer, size)| Piece::for_layer(layer, size, String::new())).collect()
    }

    #[test]
    fn a_bar_has_exactly_its_width_for_awkward_shares() {
        let pieces = pieces(&[(Layer::Call, 1.0), (Layer::Cache, 1.0), (Layer::Copy, 1.0)]);
        for width in [1, 7, 20, 31] {
            assert_eq!(cells(&pieces, width).iter().map(|c| c.1).sum::<usize>(), width);
        }
    }

    #[test]
    fn shares_come_out_in_proportion_and_negative_ones_take_no_room() {
        let pieces = pieces(&[(Layer::Call, 25.0), (Layer::Copy, 75.0), (Layer::Unexplained, -10.0)]);
        let cells: Vec<(Layer, usize)> = cells(&pieces, 20).iter().map(|(p, n)| (p.layer, *n)).collect();
        assert_eq!(cells, vec![(Layer::Call, 5), (Layer::Copy, 15)]);
    }

    #[test]
    fn no_pieces_are_blank_of_the_same_width() {
        assert_eq!(bar(&[], 6), "      ");
    }
}
