//! How often values were met, over their logarithm.

use super::scale::nothing;
use super::{Axis, Scale, element, label, tip};

/// One class: values from `low` to `high`.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Lower end, above 0.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How many.
    pub count: u64,
    /// What its mark says.
    pub tip: String,
}

/// The chart; `marks` are values with a name, such as percentiles.
pub fn chart(
    classes: &[Class],
    marks: &[(f64, String)],
    words: &dyn Fn(f64) -> String,
    (width, height): (f64, f64),
    alt: &str,
) -> String {
    let Some(most) = classes.iter().map(|class| class.count).max().filter(|most| *most > 0) else {
        return nothing(width, alt);
    };
    let (left, right, top, bottom) = (10.0, width - 10.0, 46.0, height - 24.0);
    let ends = classes.iter().flat_map(|class| [class.low, class.high]);
    let x = Axis::new(Scale::Log10, ends.chain(marks.iter().map(|mark| mark.0)), left, right);
    let mut text = x.below(top, bottom, 6, words);
    for class in classes.iter().filter(|class| class.count > 0) {
        let (from, to) = (x.at(class.low), x.at(class.high));
        // What was met at all is seen: a unit at least.
        let high = (class.count as f64 / most as f64 * (bottom - top)).max(1.0);
        text.push_str(&format!(
            "<g class=\"m\">{}<rect class=\"f0\" x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{high:.1}\"/></g>",
            tip(&class.tip),
            bottom - high,
            (to - from).max(0.6)
        ));
    }
    // Names of near percentiles take turns in three lines.
    for (number, (value, name)) in marks.iter().enumerate() {
        let at = x.at(*value);
        let line = 12.0 + (number % 3) as f64 * 13.0;
        text.push_str(&format!(
            "<line class=\"l1\" x1=\"{at:.1}\" y1=\"{:.1}\" x2=\"{at:.1}\" y2=\"{bottom:.1}\"/>",
            line + 3.0
        ));
        let anchor = if at > width * 0.75 { "end" } else { "start" };
        text.push_str(&label(at + if anchor == "end" { -3.0 } else { 3.0 }, line, anchor, "dim", name));
    }
    element(width, height, "histogram", alt, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_classes_are_seen_and_empty_ones_are_not() {
        let class = |low: f64, count| Class { low, high: low * 1.5, count, tip: format!("{count}") };
        let classes = [class(100.0, 1_000_000), class(200.0, 0), class(4000.0, 1)];
        let words = |v: f64| format!("{v}");
        let text = chart(&classes, &[(120.0, "p50".into())], &words, (400.0, 160.0), "times");
        assert_eq!(text.matches("class=\"m\"").count(), 2);
        assert!(text.contains("height=\"1.0\"") && text.contains("p50"));
        assert!(chart(&[], &[], &words, (400.0, 160.0), "none").contains("nothing to draw"));
    }
}
