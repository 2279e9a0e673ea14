//! Values over values: dots with their intervals, lines through them, a band for what a model says.

use super::bars::legend;
use super::scale::nothing;
use super::{Axis, SMALL, Scale, element, label, tip};

/// One curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its dots, in the order of the line.
    pub dots: Vec<Dot>,
    /// Whether a line joins them.
    pub joined: bool,
    /// Whether that line is dashed and the dots are left out: what was not measured.
    pub modelled: bool,
}

/// One value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    /// Place along the chart.
    pub x: f64,
    /// Height.
    pub y: f64,
    /// Ends of the interval.
    pub ends: Option<(f64, f64)>,
    /// What its mark says.
    pub tip: String,
}

/// What stands around the curves.
pub struct Frame<'a> {
    /// Along.
    pub x: (&'a str, Scale, &'a dyn Fn(f64) -> String),
    /// Upwards.
    pub y: (&'a str, Scale, &'a dyn Fn(f64) -> String),
    /// Size of the whole.
    pub width: f64,
    /// Height without the legend.
    pub height: f64,
    /// What is to be seen.
    pub alt: &'a str,
}

/// Colours that the style sheet knows.
const COLOURS: usize = 8;

/// The chart.
pub fn chart(series: &[Series], frame: &Frame<'_>) -> String {
    let dots = || series.iter().flat_map(|one| &one.dots);
    if dots().next().is_none() {
        return nothing(frame.width, frame.alt);
    }
    let (left, right, top, bottom) = (78.0, frame.width - 12.0, 22.0, frame.height - 38.0);
    let ends = dots().flat_map(|dot| {
        let (low, high) = dot.ends.unwrap_or((dot.y, dot.y));
        [dot.y, low, high]
    });
    let x = Axis::new(frame.x.1, dots().map(|dot| dot.x), left, right);
    let y = Axis::new(frame.y.1, ends, bottom, top);
    let most = if frame.width <= SMALL { 6 } else { 13 };
    let mut text = x.below(top, bottom, most, frame.x.2);
    text.push_str(&y.beside(left, right, 7, frame.y.2));
    text.push_str(&label(right, frame.height - 6.0, "end", "dim", frame.x.0));
    text.push_str(&label(8.0, 12.0, "start", "dim", frame.y.0));
    for (number, one) in series.iter().enumerate() {
        text.push_str(&curve(one, number % COLOURS, &x, &y));
    }
    let classes: Vec<String> = (0..series.len()).map(|number| format!("f{}", number % COLOURS)).collect();
    let entries: Vec<(&str, &str)> =
        classes.iter().map(String::as_str).zip(series.iter().map(|one| one.name.as_str())).collect();
    let (key, below) = if series.len() > 1 {
        legend(&entries, frame.height + 2.0, frame.width)
    } else {
        (String::new(), frame.height)
    };
    text.push_str(&key);
    element(frame.width, below, "lines", frame.alt, &text)
}

fn curve(one: &Series, colour: usize, x: &Axis, y: &Axis) -> String {
    let mut text = String::new();
    let place = |dot: &Dot, value: f64| format!("{:.1} {:.1}", x.at(dot.x), y.at(value));
    let path = |places: Vec<String>| places.join("L");
    if one.modelled {
        let ends: Vec<(&Dot, (f64, f64))> =
            one.dots.iter().filter_map(|dot| Some((dot, dot.ends?))).collect();
        if ends.len() > 1 {
            let up = ends.iter().map(|(dot, (_, high))| place(dot, *high));
            let down = ends.iter().rev().map(|(dot, (low, _))| place(dot, *low));
            let whole = path(up.chain(down).collect());
            text.push_str(&format!("<path class=\"band f{colour}\" d=\"M{whole}Z\"/>"));
        }
    }
    if one.joined && one.dots.len() > 1 {
        let dash = if one.modelled { " dash" } else { "" };
        let line = path(one.dots.iter().map(|dot| place(dot, dot.y)).collect());
        text.push_str(&format!("<path class=\"line l{colour}{dash}\" d=\"M{line}\"/>"));
    }
    if one.modelled {
        return text;
    }
    for dot in &one.dots {
        let (cx, cy) = (x.at(dot.x), y.at(dot.y));
        let arm = dot.ends.map(|(low, high)| {
            let (low, high) = (y.at(low), y.at(high));
            format!("<line class=\"arm l{colour}\" x1=\"{cx:.1}\" y1=\"{low:.1}\" x2=\"{cx:.1}\" y2=\"{high:.1}\"/>")
        });
        text.push_str(&format!(
            "<g class=\"m\">{}{}<circle class=\"f{colour}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.5\"/></g>",
            tip(&dot.tip),
            arm.unwrap_or_default()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_dot_is_a_mark_and_a_model_is_a_band() {
        let dot = |x, y| Dot { x, y, ends: Some((y * 0.9, y * 1.1)), tip: format!("{x}: {y}") };
        let dots = vec![dot(512.0, 1.0), dot(4096.0, 2.0), dot(65536.0, 9.0)];
        let measured = Series { name: "seen".into(), dots: dots.clone(), joined: true, modelled: false };
        let model = Series { name: "model".into(), dots, joined: true, modelled: true };
        let words = |v: f64| format!("{v}");
        let frame = Frame {
            x: ("size", Scale::Log2, &words),
            y: ("time", Scale::Log10, &words),
            width: 400.0,
            height: 240.0,
            alt: "grows",
        };
        let text = chart(&[measured, model], &frame);
        assert_eq!(text.matches("<circle").count(), 3);
        assert_eq!(text.matches("class=\"band").count(), 1);
        assert!(text.contains("aria-label=\"grows\"") && !text.contains("NaN"));
        assert!(chart(&[], &frame).contains("nothing to draw"));
    }
}
