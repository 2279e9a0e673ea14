//! The curves as a picture of characters: sizes to the right by factor, miss ratio upwards, a letter a policy.

use iowhy_sim::curve::bank::Point;
use iowhy_sim::curve::keys::Unit;
use iowhy_sim::policy::PolicyId;

use super::room;

/// Lines of the picture.
const HEIGHT: usize = 14;
/// Columns of the picture at most, and of the scale beside it.
const MAX_WIDTH: usize = 84;
const SCALE: usize = 7;
/// Where more than one policy is.
const SEVERAL: char = '#';

/// Letter of a policy.
fn letter(policy: PolicyId) -> char {
    match policy {
        PolicyId::Fifo => 'F',
        PolicyId::Lru => 'L',
        PolicyId::Clock => 'C',
        PolicyId::Sieve => 'S',
        PolicyId::S3Fifo => '3',
        PolicyId::Arc => 'A',
        PolicyId::TwoQ => '2',
        PolicyId::Slru => 'G',
        PolicyId::Lfu => 'U',
        PolicyId::Belady => 'B',
    }
}

/// The picture; empty where there are too few sizes for one.
pub(super) fn plot(points: &[Point], policies: &[PolicyId], unit: Unit, width: usize) -> String {
    let sizes = || points.iter().map(|point| point.room);
    let (Some(least), Some(most)) = (sizes().min(), sizes().max()) else { return String::new() };
    let columns = width.saturating_sub(SCALE + 2).min(MAX_WIDTH);
    if most <= least || columns < 20 {
        return String::new();
    }
    let ratios = || points.iter().map(|point| point.miss_ratio);
    let top = ratios().fold(0.0, f64::max).max(0.01);
    let bottom = ratios().fold(f64::INFINITY, f64::min).min(top - 0.005).max(0.0);
    let span = (most as f64 / least as f64).ln();
    let column =
        |size: u64| ((size as f64 / least as f64).ln() / span * (columns - 1) as f64).round() as usize;
    let line = |ratio: f64| ((top - ratio) / (top - bottom) * (HEIGHT - 1) as f64).round() as usize;

    let mut cells = vec![vec![' '; columns]; HEIGHT];
    for policy in policies {
        let mut own: Vec<(usize, usize)> = points
            .iter()
            .filter(|point| point.policy == *policy)
            .map(|point| (column(point.room).min(columns - 1), line(point.miss_ratio).min(HEIGHT - 1)))
            .collect();
        own.dedup();
        for (x, y) in own {
            let cell = &mut cells[y][x];
            *cell = if *cell == ' ' { letter(*policy) } else { SEVERAL };
        }
    }
    let mut text = String::new();
    for (number, cells) in cells.iter().enumerate() {
        let ratio = top - (top - bottom) * number as f64 / (HEIGHT - 1) as f64;
        let scale = if number % 3 == 1 { format!("{ratio:.3}") } else { String::new() };
        let drawn: String = cells.iter().collect();
        text.push_str(format!("{scale:>SCALE$} |{drawn}").trim_end());
        text.push('\n');
    }
    text.push_str(&format!("{:>SCALE$} +{}\n", "", "-".repeat(columns)));
    let (first, last) = (room(least, unit), room(most, unit));
    let gap = columns.saturating_sub(first.chars().count() + last.chars().count());
    text.push_str(&format!("{:>SCALE$}  {first}{}{last}\n", "", " ".repeat(gap)));
    let names: Vec<String> = policies.iter().map(|policy| format!("{} {policy}", letter(*policy))).collect();
    let legend = format!("{}  {SEVERAL} several", names.join("  "));
    text.push_str(&iowhy_view::terminal::wrap::wrap(
        &legend,
        width,
        &" ".repeat(SCALE + 2),
        &" ".repeat(SCALE + 2),
    ));
    text
}

#[cfg(test)]
mod tests {
    use iowhy_sim::curve::bank::Basis;

    use super::*;

    fn point(policy: PolicyId, room: u64, miss_ratio: f64) -> Point {
        Point { policy, room, miss_ratio, byte_miss_ratio: None, basis: Basis::Exact }
    }

    #[test]
    fn curves_run_from_the_upper_left_to_the_lower_right() {
        let points: Vec<Point> =
            (0..10).map(|i| point(PolicyId::Lru, 1 << i, 1.0 - f64::from(i) / 10.0)).collect();
        let text = plot(&points, &[PolicyId::Lru], Unit::Blocks(4096), 60);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0].find('L'), Some(SCALE + 2));
        assert_eq!(rows[HEIGHT - 1].chars().count(), 60 - 2 + 2);
        assert!(rows[HEIGHT + 1].contains("4 KiB") && rows[HEIGHT + 1].contains("2 MiB"));
        assert!(rows.iter().all(|row| row.chars().count() <= 60), "{text}");
    }

    #[test]
    fn odd_inputs_draw_nothing_or_something_but_never_fail() {
        assert_eq!(plot(&[], &[], Unit::Objects, 80), "");
        assert_eq!(plot(&[point(PolicyId::Lru, 5, 0.5)], &[PolicyId::Lru], Unit::Objects, 80), "");
        for ratio in [0.0, 1.0] {
            let two = [point(PolicyId::Lru, 1, ratio), point(PolicyId::Lru, u64::MAX, ratio)];
            assert!(plot(&two, &[PolicyId::Lru], Unit::Objects, 80).contains('L'));
        }
    }

    #[test]
    fn letters_are_unique() {
        let mut letters: Vec<char> = PolicyId::ALL.iter().map(|policy| letter(*policy)).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), PolicyId::ALL.len());
    }
}
