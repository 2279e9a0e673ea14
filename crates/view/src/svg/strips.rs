//! Several quantities over one time: a strip each, one below the other, so that the eye finds what happened together.

use super::scale::nothing;
use super::{Axis, WIDE, element, fit, label, tip};

/// One quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strip {
    /// Its name.
    pub name: String,
    /// A value for each step, 0 or above.
    pub values: Vec<f64>,
    /// The value at its upper edge.
    pub top: f64,
}

/// A stretch of time that is marked in all strips.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Its beginning, as the ends of the steps.
    pub begin: f64,
    /// Its end.
    pub end: f64,
    /// What it says.
    pub tip: String,
}

/// Height of a strip, and of the room below it.
const HEIGHT: f64 = 40.0;
const ROOM: f64 = 10.0;
/// Columns with a tip: more of them would be narrower than a pointer's aim.
const TIPS: usize = 60;
/// Colours that the style sheet knows.
const COLOURS: usize = 8;

/// The chart. `ends`: the end of each step, from 0; `along`: words for a time; `words`: those for a value of a strip.
pub fn chart(
    strips: &[Strip],
    ends: &[f64],
    marks: &[Mark],
    along: &dyn Fn(f64) -> String,
    words: &dyn Fn(usize, f64) -> String,
    alt: &str,
) -> String {
    let Some(last) = ends.last().filter(|_| !strips.is_empty()) else { return nothing(WIDE, alt) };
    let (left, right, top) = (210.0, WIDE - 10.0, 8.0);
    let bottom = top + strips.len() as f64 * (HEIGHT + ROOM) - ROOM;
    let x = Axis::exact(*last, left, right);
    let mut text = x.below(top, bottom, 10, along);
    for (number, strip) in strips.iter().enumerate() {
        let upper = top + number as f64 * (HEIGHT + ROOM);
        text.push_str(&label(8.0, upper + 16.0, "start", "", &fit(&strip.name, left - 16.0)));
        text.push_str(&label(8.0, upper + 32.0, "start", "dim", &words(number, strip.top)));
        text.push_str(&area(strip, ends, &x, (upper, upper + HEIGHT), number % COLOURS));
    }
    for mark in marks {
        let (begin, end) = (x.at(mark.begin), x.at(mark.end));
        text.push_str(&format!(
            "<g class=\"m\">{}<rect class=\"paused\" x=\"{begin:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></g>",
            tip(&mark.tip),
            (end - begin).max(1.0),
            bottom - top
        ));
    }
    for (number, strip) in strips.iter().enumerate() {
        let upper = top + number as f64 * (HEIGHT + ROOM);
        text.push_str(&tips(strip, ends, &x, upper, &|from, to, value| {
            format!("{} to {}\n{}: {}", along(from), along(to), strip.name, words(number, value))
        }));
    }
    element(WIDE, bottom + 24.0, "strips", alt, &text)
}

/// Its values as steps over a base line.
fn area(strip: &Strip, ends: &[f64], x: &Axis, (upper, lower): (f64, f64), colour: usize) -> String {
    let y = Axis::exact(strip.top, lower, upper);
    let mut path = format!("M{:.1} {lower:.1}", x.at(0.0));
    let mut begin = 0.0;
    for (value, end) in strip.values.iter().zip(ends) {
        let height = y.at(*value);
        path.push_str(&format!("L{:.1} {height:.1}L{:.1} {height:.1}", x.at(begin), x.at(*end)));
        begin = *end;
    }
    path.push_str(&format!("L{:.1} {lower:.1}Z", x.at(begin)));
    format!("<path class=\"f{colour}\" fill-opacity=\"0.75\" d=\"{path}\"/>")
}

/// Unseen columns that tell the mean of the steps they cover.
fn tips(
    strip: &Strip,
    ends: &[f64],
    x: &Axis,
    upper: f64,
    words: &dyn Fn(f64, f64, f64) -> String,
) -> String {
    let each = strip.values.len().div_ceil(TIPS).max(1);
    let mut begin = 0.0;
    let mut text = String::new();
    for (values, ends) in strip.values.chunks(each).zip(ends.chunks(each)) {
        let Some(end) = ends.last() else { break };
        let mut from = begin;
        let mut sum = 0.0;
        for (value, end) in values.iter().zip(ends) {
            sum += value * (end - from);
            from = *end;
        }
        let mean = if *end > begin { sum / (end - begin) } else { 0.0 };
        text.push_str(&format!(
            "<g class=\"m\">{}<rect fill-opacity=\"0\" x=\"{:.1}\" y=\"{upper:.1}\" width=\"{:.1}\" height=\"{HEIGHT:.1}\"/></g>",
            tip(&words(begin, *end, mean)),
            x.at(begin),
            x.at(*end) - x.at(begin)
        ));
        begin = *end;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: Vec<f64>, top: f64) -> Strip {
        Strip { name: "read".to_owned(), values, top }
    }

    fn drawn(strips: &[Strip], ends: &[f64], marks: &[Mark]) -> String {
        chart(strips, ends, marks, &|s| format!("{s:.1} s"), &|_, v| format!("{v:.1}/s"), "over time")
    }

    #[test]
    fn the_highest_value_touches_the_upper_edge_and_tips_tell_means() {
        let text = drawn(&[of(vec![0.0, 5.0, 10.0], 10.0)], &[1.0, 2.0, 4.0], &[]);
        assert!(text.contains("d=\"M210.0 48.0L210.0 48.0L395.0 48.0L395.0 28.0L580.0 28.0L580.0 8.0L950.0 8.0L950.0 48.0Z\""), "{text}");
        assert!(text.contains("2.0 s to 4.0 s\nread: 10.0/s"), "{text}");
    }

    #[test]
    fn long_courses_have_few_tips_and_their_means_weigh_by_time() {
        let steps = 600;
        let ends: Vec<f64> = (1..=steps).map(f64::from).collect();
        let values: Vec<f64> = (0..steps).map(|n| f64::from(n % 10)).collect();
        let text = drawn(&[of(values, 9.0)], &ends, &[]);
        assert_eq!(text.matches("class=\"m\"").count(), TIPS);
        assert_eq!(text.matches("read: 4.5/s").count(), TIPS);
    }

    #[test]
    fn marks_lie_over_all_strips_and_nothing_is_no_chart() {
        let strips = [of(vec![1.0; 4], 1.0), of(vec![0.0; 4], 0.0)];
        let mark = Mark { begin: 1.0, end: 2.0, tip: "pause".to_owned() };
        let text = drawn(&strips, &[1.0, 2.0, 3.0, 4.0], &[mark]);
        assert!(
            text.contains("class=\"paused\" x=\"395.0\" y=\"8.0\" width=\"185.0\" height=\"90.0\""),
            "{text}"
        );
        assert!(!text.contains("NaN"));
        assert!(drawn(&[], &[1.0], &[]).contains("nothing to draw"));
    }
}
