//! A value with its interval a row, against a line that means "the same".

use super::scale::nothing;
use super::{Axis, Scale, element, fit, label, tip};

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What it is of.
    pub label: String,
    /// Value and the ends of its interval; `None` where there is none.
    pub value: Option<(f64, f64, f64)>,
    /// What stands to the right.
    pub words: String,
    /// Number of the colour.
    pub colour: usize,
    /// What its mark says.
    pub tip: String,
}

const ROW: f64 = 22.0;
const LABEL: f64 = 230.0;
const WORDS: f64 = 190.0;

/// The chart, over a logarithm; `same` is drawn through all rows.
pub fn chart(rows: &[Row], same: f64, words: &dyn Fn(f64) -> String, width: f64, alt: &str) -> String {
    let values = || rows.iter().filter_map(|row| row.value);
    if values().next().is_none() {
        return nothing(width, alt);
    }
    let (left, right, top) = (LABEL, width - WORDS, 6.0);
    let bottom = top + rows.len() as f64 * ROW;
    let ends = values().flat_map(|(value, low, high)| [value, low, high]);
    let x = Axis::new(Scale::Log10, ends.chain([same]), left, right);
    let mut text = x.below(top, bottom, 7, words);
    let line = x.at(same);
    text.push_str(&format!(
        "<line x1=\"{line:.1}\" y1=\"{top:.1}\" x2=\"{line:.1}\" y2=\"{bottom:.1}\" class=\"l7\" stroke-width=\"2\"/>"
    ));
    for (number, row) in rows.iter().enumerate() {
        let y = top + (number as f64 + 0.5) * ROW;
        text.push_str(&label(LABEL - 8.0, y + 4.0, "end", "", &fit(&row.label, LABEL - 12.0)));
        text.push_str(&label(right + 10.0, y + 4.0, "start", "dim", &fit(&row.words, WORDS - 10.0)));
        if let Some((value, low, high)) = row.value {
            let (value, low, high, colour) = (x.at(value), x.at(low), x.at(high), row.colour);
            text.push_str(&format!(
                "<g class=\"m\">{}<line class=\"arm l{colour}\" x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" \
                 y2=\"{y:.1}\"/><circle class=\"f{colour}\" cx=\"{value:.1}\" cy=\"{y:.1}\" r=\"4\"/></g>",
                tip(&row.tip)
            ));
        }
    }
    element(width, bottom + 24.0, "dots", alt, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_value_has_its_words_only() {
        let row =
            |label: &str, value| Row { label: label.into(), value, words: "n = 5".into(), ..Row::default() };
        let words = |v: f64| format!("{v}");
        let rows = [row("a", Some((0.5, 0.4, 0.6))), row("b", None)];
        let text = chart(&rows, 1.0, &words, 900.0, "ratios");
        assert_eq!((text.matches("<circle").count(), text.matches("n = 5").count()), (1, 2));
        assert!(chart(&rows[1..], 1.0, &words, 900.0, "none").contains("nothing to draw"));
    }
}
