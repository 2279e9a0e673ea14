//! A stacked bar a row, all of one length: how a whole is split. The length is the whole, because what is compared is the
//! split; the whole itself stands beside it in figures.

use iowhy_core::layer::Layer;

use super::{WIDE, element, fit, label, tip};
use crate::document::{self, Table};
use crate::piece::Piece;

/// One bar.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bar {
    /// What it is of.
    pub label: String,
    /// The whole, in words.
    pub whole: String,
    /// Its pieces, left to right.
    pub pieces: Vec<Piece>,
}

const ROW: f64 = 30.0;
const HIGH: f64 = 20.0;
const LABEL: f64 = 190.0;
const WHOLE: f64 = 130.0;

/// The chart, with a legend of the names that occur.
pub fn chart(bars: &[Bar], width: f64, alt: &str) -> String {
    let mut text = String::new();
    let (left, right) = (LABEL, width - WHOLE);
    for (number, bar) in bars.iter().enumerate() {
        let top = number as f64 * ROW + 4.0;
        text.push_str(&label(LABEL - 8.0, top + 14.5, "end", "", &fit(&bar.label, LABEL - 12.0)));
        text.push_str(&label(right + 8.0, top + 14.5, "start", "dim", &fit(&bar.whole, WHOLE - 8.0)));
        let whole: f64 = bar.pieces.iter().map(|piece| piece.size.max(0.0)).sum();
        if whole <= 0.0 {
            continue;
        }
        let mut x = left;
        for piece in bar.pieces.iter().filter(|piece| piece.size > 0.0) {
            let wide = piece.size / whole * (right - left);
            text.push_str(&format!(
                "<g class=\"m\">{}<rect class=\"{}\" x=\"{x:.2}\" y=\"{top:.1}\" width=\"{wide:.2}\" height=\"{HIGH}\"/></g>",
                tip(&piece.tip),
                piece.layer.id()
            ));
            if wide > 6.6 * piece.name.chars().count() as f64 + 6.0 {
                let dark = matches!(piece.layer, Layer::Elsewhere | Layer::Unexplained);
                let class = if dark { "lab dark" } else { "lab" };
                text.push_str(&label(x + wide / 2.0, top + 14.0, "middle", class, &piece.name));
            }
            x += wide;
        }
    }
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for piece in bars.iter().flat_map(|bar| &bar.pieces).filter(|piece| piece.size > 0.0) {
        if !seen.iter().any(|(_, name)| *name == piece.name) {
            seen.push((piece.layer.id(), &piece.name));
        }
    }
    let (key, below) = legend(&seen, bars.len() as f64 * ROW + 8.0, width);
    text.push_str(&key);
    element(width, below, "bars", alt, &text)
}

/// A table whose rows have bars, as a chart with the other columns as its figures.
pub fn from_table(title: &str, table: &Table) -> document::Chart {
    let most = |(label, _, pieces): (String, String, &[Piece])| {
        let most = pieces.iter().max_by(|a, b| a.size.total_cmp(&b.size))?;
        Some((label, most.name.clone(), share(most, pieces)))
    };
    let mosts: Vec<(String, String, f64)> = table.bars().filter_map(most).collect();
    let alt = match mosts.as_slice() {
        [(_, name, _), .., _]
            if mosts.len() > MAX_NAMED && mosts.iter().all(|(_, other, _)| other == name) =>
        {
            let least = mosts.iter().map(|most| most.2).fold(f64::INFINITY, f64::min);
            let greatest = mosts.iter().map(|most| most.2).fold(0.0, f64::max);
            format!("most in `{name}` in every row ({least:.0} to {greatest:.0} %)")
        }
        _ => {
            let each = |(label, name, share): &(String, String, f64)| {
                format!("{label}: most in `{name}` ({share:.0} %)")
            };
            mosts.iter().map(each).collect::<Vec<_>>().join("; ")
        }
    };
    let bar =
        |(label, whole, pieces): (String, String, &[Piece])| Bar { label, whole, pieces: pieces.to_vec() };
    let bars: Vec<Bar> = table.bars().map(bar).collect();
    let svg = chart(&bars, WIDE, &alt);
    document::Chart { title: title.to_owned(), alt, svg, table: table.without_bars() }
}

/// Rows up to this number are named one by one below a chart.
const MAX_NAMED: usize = 8;

/// A piece's share of its bar in per cent.
fn share(piece: &Piece, pieces: &[Piece]) -> f64 {
    piece.size / pieces.iter().map(|piece| piece.size.max(0.0)).sum::<f64>() * 100.0
}

/// One bar with its legend as figures.
pub fn from_split(split: &document::Split) -> document::Chart {
    let mut table = Table::new(["layer", "#share"]);
    split.legend.iter().for_each(|(_, name, share)| table.row([name.as_str(), share.as_str()]));
    let legend = split.legend.iter().map(|(_, name, share)| format!("{name} {share}"));
    // Without a legend, a table beside the bar has the figures.
    let pieces = split.pieces.iter().filter(|_| split.legend.is_empty());
    let pieces = pieces.map(|piece| format!("{} {:.1} %", piece.name, share(piece, &split.pieces)));
    let alt = legend.chain(pieces).collect::<Vec<_>>().join(", ");
    let bar = Bar { label: split.label.clone(), whole: String::new(), pieces: split.pieces.clone() };
    let svg = chart(&[bar], WIDE, &alt);
    document::Chart { title: split.label.clone(), alt, svg, table }
}

/// Colours with their names in as many lines as they need, from `top` on; also where they end.
pub(crate) fn legend(entries: &[(&str, &str)], top: f64, width: f64) -> (String, f64) {
    let mut text = String::new();
    let (mut x, mut y) = (8.0, top);
    for (class, name) in entries {
        let wide = name.chars().count() as f64 * 7.4 + 32.0;
        if x + wide > width && x > 8.0 {
            (x, y) = (8.0, y + 18.0);
        }
        text.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"11\" height=\"11\"/>"
        ));
        text.push_str(&label(x + 16.0, y + 10.0, "start", "dim", name));
        x += wide;
    }
    (text, if entries.is_empty() { top } else { y + 18.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fill_the_bar_in_proportion() {
        let piece = |layer, size| Piece::for_layer(layer, size, "tip".to_owned());
        let bar = Bar {
            label: "4 KiB".into(),
            whole: "3 µs".into(),
            pieces: vec![piece(Layer::Call, 1.0), piece(Layer::Copy, 3.0), piece(Layer::Unexplained, -1.0)],
        };
        let text = chart(&[bar, Bar::default()], 720.0, "split");
        assert_eq!(text.matches("class=\"m\"").count(), 2, "what is below 0 takes no room");
        assert!(text.contains("x=\"190.00\" y=\"4.0\" width=\"100.00\""), "{text}");
        assert!(text.contains("x=\"290.00\" y=\"4.0\" width=\"300.00\""), "{text}");
    }
}
