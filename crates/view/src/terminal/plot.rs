//! Curves as a picture of characters: to the right by factor, upwards by value, a letter a curve.

use super::wrap::wrap;
use crate::document::{Curve, Plot};

/// Lines of the picture.
const HEIGHT: usize = 14;
/// Columns of the picture at most, and of the scale beside it.
const MAX_WIDTH: usize = 84;
const SCALE: usize = 7;
/// Where more than one curve is.
const SEVERAL: char = '#';

/// The picture; empty where there are too few values for one.
pub(super) fn plot(plot: &Plot, width: usize) -> String {
    let dots = || plot.curves.iter().flat_map(|curve| &curve.dots);
    let least = dots().map(|dot| dot.0).fold(f64::INFINITY, f64::min);
    let most = dots().map(|dot| dot.0).fold(0.0, f64::max);
    let columns = width.saturating_sub(SCALE + 2).min(MAX_WIDTH);
    if most <= least || columns < 20 {
        return String::new();
    }
    let top = dots().map(|dot| dot.1).fold(0.0, f64::max).max(0.01);
    let bottom = dots().map(|dot| dot.1).fold(f64::INFINITY, f64::min).min(top - 0.005).max(0.0);
    let span = (most / least).ln();
    let column = |x: f64| ((x / least).ln() / span * (columns - 1) as f64).round() as usize;
    let line = |y: f64| ((top - y) / (top - bottom) * (HEIGHT - 1) as f64).round() as usize;

    let mut cells = vec![vec![' '; columns]; HEIGHT];
    for Curve { letter, dots, .. } in &plot.curves {
        let mut places: Vec<(usize, usize)> =
            dots.iter().map(|(x, y)| (column(*x).min(columns - 1), line(*y).min(HEIGHT - 1))).collect();
        places.dedup();
        for (x, y) in places {
            let cell = &mut cells[y][x];
            *cell = if *cell == ' ' { *letter } else { SEVERAL };
        }
    }
    let mut text = String::new();
    for (number, cells) in cells.iter().enumerate() {
        let value = top - (top - bottom) * number as f64 / (HEIGHT - 1) as f64;
        let scale = if number % 3 == 1 { format!("{value:.3}") } else { String::new() };
        let drawn: String = cells.iter().collect();
        text.push_str(format!("{scale:>SCALE$} |{drawn}").trim_end());
        text.push('\n');
    }
    text.push_str(&format!("{:>SCALE$} +{}\n", "", "-".repeat(columns)));
    let (first, last) = &plot.ends;
    let gap = columns.saturating_sub(first.chars().count() + last.chars().count());
    text.push_str(&format!("{:>SCALE$}  {first}{}{last}\n", "", " ".repeat(gap)));
    let names: Vec<String> =
        plot.curves.iter().map(|curve| format!("{} {}", curve.letter, curve.name)).collect();
    let indent = " ".repeat(SCALE + 2);
    text + &wrap(&format!("{}  {SEVERAL} several", names.join("  ")), width, &indent, &indent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(dots: Vec<(f64, f64)>, width: usize) -> String {
        let curves = vec![Curve { name: "lru".to_owned(), letter: 'L', dots }];
        plot(&Plot { curves, ends: ("4 KiB".to_owned(), "2 MiB".to_owned()), ..Plot::default() }, width)
    }

    #[test]
    fn curves_run_from_the_upper_left_to_the_lower_right() {
        let text = picture((0..10).map(|i| (f64::from(1 << i), 1.0 - f64::from(i) / 10.0)).collect(), 60);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0].find('L'), Some(SCALE + 2));
        assert_eq!(rows[HEIGHT - 1].chars().count(), 60 - 2 + 2);
        assert!(rows[HEIGHT + 1].contains("4 KiB") && rows[HEIGHT + 1].contains("2 MiB"));
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{text}");
    }

    #[test]
    fn odd_inputs_draw_nothing_or_something_but_never_fail() {
        assert_eq!(plot(&Plot::default(), 80), "");
        assert_eq!(picture(vec![(5.0, 0.5)], 80), "");
        for ratio in [0.0, 1.0] {
            assert!(picture(vec![(1.0, ratio), (u64::MAX as f64, ratio)], 80).contains('L'));
        }
    }
}
