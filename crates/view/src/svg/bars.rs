//! A stacked bar a row, all of one length: how a whole is split. The length is the whole, because what is compared is the
//! split; the whole itself stands beside it in figures.

use iowhy_core::layer::Ledger;
use iowhy_core::units;

use super::{WIDE, element, fit, label, tip};
use crate::document::{self, Table};

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

/// One piece.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// Its class in the style sheet: a layer's identifier, or `other`.
    pub class: String,
    /// Its name.
    pub name: String,
    /// Its size in any unit; what is not above 0 takes no room.
    pub size: f64,
    /// What its mark says.
    pub tip: String,
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
                piece.class
            ));
            if wide > 6.6 * piece.name.chars().count() as f64 + 6.0 {
                let dark = matches!(piece.class.as_str(), "elsewhere" | "unexplained" | "other");
                let class = if dark { "lab dark" } else { "lab" };
                text.push_str(&label(x + wide / 2.0, top + 14.0, "middle", class, &piece.name));
            }
            x += wide;
        }
    }
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for piece in bars.iter().flat_map(|bar| &bar.pieces).filter(|piece| piece.size > 0.0) {
        if !seen.iter().any(|(_, name)| *name == piece.name) {
            seen.push((&piece.class, &piece.name));
        }
    }
    let (key, below) = legend(&seen, bars.len() as f64 * ROW + 8.0, width);
    text.push_str(&key);
    element(width, below, "bars", alt, &text)
}

/// A ledger as pieces of a bar.
pub fn pieces(ledger: &Ledger) -> Vec<Piece> {
    let whole = ledger.total_ns();
    let piece = |entry: &iowhy_core::layer::LayerTime| Piece {
        class: entry.id.id().to_owned(),
        name: entry.id.id().to_owned(),
        size: entry.total_ns(),
        tip: format!(
            "{}\n{}, {:.1} %\nbusy {}, waiting {}",
            entry.id.id(),
            units::time(entry.total_ns()),
            entry.total_ns() / whole * 100.0,
            units::time(entry.busy_ns),
            units::time(entry.wait_ns)
        ),
    };
    ledger.entries().iter().map(piece).collect()
}

/// A table whose rows have bars, as a chart with the other columns as its figures.
pub fn from_table(title: &str, table: &Table) -> document::Chart {
    let most = |(label, _, ledger): (String, String, &Ledger)| {
        let most = ledger.entries().iter().max_by(|a, b| a.total_ns().total_cmp(&b.total_ns()))?;
        let whole: f64 = ledger.entries().iter().map(|e| e.total_ns().max(0.0)).sum();
        let share = most.total_ns() / whole * 100.0;
        Some(format!("{label}: most in `{}` ({share:.0} %)", most.id.id()))
    };
    let alt = table.bars().filter_map(most).collect::<Vec<_>>().join("; ");
    let bars: Vec<Bar> =
        table.bars().map(|(label, whole, ledger)| Bar { label, whole, pieces: pieces(ledger) }).collect();
    let svg = chart(&bars, WIDE, &alt);
    document::Chart { title: title.to_owned(), alt, svg, table: table.without_bars() }
}

/// One bar with its legend as figures.
pub fn from_split(split: &document::Split) -> document::Chart {
    let mut table = Table::new(["layer", "#share"]);
    split.legend.iter().for_each(|(_, name, share)| table.row([name.as_str(), share.as_str()]));
    let alt = split.legend.iter().map(|(_, name, share)| format!("{name} {share}"));
    let alt = alt.collect::<Vec<_>>().join(", ");
    let bar = Bar { label: split.label.clone(), whole: String::new(), pieces: pieces(&split.ledger) };
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
        let piece =
            |class: &str, size| Piece { class: class.into(), name: class.into(), size, tip: class.into() };
        let bar = Bar {
            label: "4 KiB".into(),
            whole: "3 µs".into(),
            pieces: vec![piece("call", 1.0), piece("copy", 3.0), piece("unexplained", -1.0)],
        };
        let text = chart(&[bar, Bar::default()], 720.0, "split");
        assert_eq!(text.matches("class=\"m\"").count(), 2, "what is below 0 takes no room");
        assert!(text.contains("x=\"190.00\" y=\"4.0\" width=\"100.00\""), "{text}");
        assert!(text.contains("x=\"290.00\" y=\"4.0\" width=\"300.00\""), "{text}");
    }
}
