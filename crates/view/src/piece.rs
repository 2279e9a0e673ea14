//! Pieces of a bar: a letter on a screen, a colour everywhere. What a piece means is its maker's.

use iowhy_core::layer::{Layer, Ledger};
use iowhy_core::units;

/// A piece of a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Gives it its colour.
    pub layer: Layer,
    /// Stands for it in a bar of letters.
    pub letter: char,
    /// Its name in a legend.
    pub name: String,
    /// In any unit; what is not above 0 takes no room.
    pub size: f64,
    /// What its mark on a page says.
    pub tip: String,
}

impl Piece {
    /// A piece that is a layer.
    pub fn for_layer(layer: Layer, size: f64, tip: String) -> Piece {
        Piece { layer, letter: letter(layer), name: layer.id().to_owned(), size, tip }
    }

    /// The layers of a ledger.
    pub fn from_ledger(ledger: &Ledger) -> Vec<Piece> {
        let whole = ledger.total_ns();
        let entries = ledger.entries().iter();
        entries
            .map(|entry| {
                let tip = format!(
                    "{}\n{}, {:.1} %\nbusy {}, waiting {}",
                    entry.id.id(),
                    units::time(entry.total_ns()),
                    entry.total_ns() / whole * 100.0,
                    units::time(entry.busy_ns),
                    units::time(entry.wait_ns)
                );
                Piece::for_layer(entry.id, entry.total_ns(), tip)
            })
            .collect()
    }
}

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
        Layer::Journal => 'J',
        Layer::Writeback => 'W',
        Layer::Server => 'S',
        Layer::Lock => 'L',
        Layer::CpuQueue => 'q',
        Layer::Elsewhere => 'e',
        Layer::Observer => 'o',
        Layer::Unexplained => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_unique() {
        let mut letters: Vec<char> = Layer::ALL.iter().map(|&l| letter(l)).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), Layer::ALL.len());
    }
}
