//! Values over time as a map: a column a slice of time, a row a class of values, the darker the more often.

use super::scale::nothing;
use super::{Axis, Scale, element, label, tip};

/// One field of the map.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Column, from 0.
    pub column: usize,
    /// Lower end of the class of values, above 0.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Its part of the column, 0 to 1.
    pub share: f64,
    /// What its mark says.
    pub tip: String,
}

/// The chart of `columns` columns.
pub fn chart(
    fields: &[Field],
    columns: usize,
    words: &dyn Fn(f64) -> String,
    (width, height): (f64, f64),
    (along, alt): (&str, &str),
) -> String {
    if fields.is_empty() || columns == 0 {
        return nothing(width, alt);
    }
    let (left, right, top, bottom) = (78.0, width - 10.0, 8.0, height - 22.0);
    let y = Axis::new(Scale::Log10, fields.iter().flat_map(|f| [f.low, f.high]), bottom, top);
    let mut text = y.beside(left, right, 6, words);
    let wide = (right - left) / columns as f64;
    for field in fields {
        let (upper, lower) = (y.at(field.high), y.at(field.low));
        // The eye tells a twentieth from nothing, so that rare values stay visible.
        let strength = 0.12 + 0.88 * field.share.clamp(0.0, 1.0).sqrt();
        text.push_str(&format!(
            "<g class=\"m\">{}<rect class=\"f0\" fill-opacity=\"{strength:.2}\" x=\"{:.2}\" y=\"{upper:.2}\" \
             width=\"{:.2}\" height=\"{:.2}\"/></g>",
            tip(&field.tip),
            left + field.column as f64 * wide,
            wide.max(0.5),
            (lower - upper).max(0.5)
        ));
    }
    text.push_str(&label(right, height - 6.0, "end", "dim", along));
    element(width, height, "heat", alt, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_side_by_side_and_the_frequent_is_darker() {
        let field = |column, low: f64, share| Field { column, low, high: low * 2.0, share, tip: "x".into() };
        let words = |v: f64| format!("{v}");
        let text = chart(
            &[field(0, 100.0, 1.0), field(1, 100.0, 0.25), field(1, 800.0, 0.75)],
            2,
            &words,
            (488.0, 200.0),
            ("rounds", "map"),
        );
        assert_eq!(text.matches("class=\"m\"").count(), 3);
        assert!(text.contains("x=\"78.00\"") && text.contains("x=\"278.00\""), "{text}");
        assert!(text.contains("fill-opacity=\"1.00\"") && text.contains("fill-opacity=\"0.56\""), "{text}");
    }
}
