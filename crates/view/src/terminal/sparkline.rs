//! Small pictures in a line of text: how often requests took how long, and how their time went from round to round.
//!
//! Invariants: what was met at all leaves a mark, and a column without one was never met; both ends are written beside a
//! picture, with their units; where there is nothing to see there is no picture.

use anstyle::Style;
use iowhy_core::histogram::Histogram;
use iowhy_core::stats;
use iowhy_core::units;

use crate::terminal::table::{Align, layout};
use crate::terminal::wrap::{cut, wrap};

/// Heights, the least first.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same for terminals that know no more than ASCII.
const LETTERS: [char; 8] = ['.', ':', '-', '=', '+', '*', '%', '#'];

/// What heights are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Blocks that rise.
    Blocks,
    /// Characters that get denser.
    Letters,
}

impl Marks {
    /// Those that a locale can show, by the variables that name it, the first that says something: LC_ALL, LC_CTYPE, LANG.
    pub fn of_locale<'a>(variables: impl IntoIterator<Item = Option<&'a str>>) -> Marks {
        let locale = variables.into_iter().flatten().find(|value| !value.is_empty()).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") { Marks::Blocks } else { Marks::Letters }
    }

    fn all(self) -> [char; 8] {
        match self {
            Marks::Blocks => BLOCKS,
            Marks::Letters => LETTERS,
        }
    }

    /// The mark of a height from 0 to 1: the least for all that is above 0.
    fn of(self, height: f64) -> char {
        let level = (height * 8.0).ceil().clamp(1.0, 8.0) as usize;
        self.all()[level - 1]
    }
}

/// Fewer requests than this are no distribution.
const MIN_REQUESTS: u64 = 20;
/// Requests that are as alike as this are all one.
const ALIKE: f64 = 1.25;
/// A column is at least as wide as this share of its values: a histogram of classes half as wide fills it without gaps.
const FINEST: f64 = 1.0 / 64.0;

/// How often requests took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The beginning: one request in a hundred was faster.
    pub low_ns: u64,
    /// The end: the slowest.
    pub high_ns: u64,
    /// Columns that each reach the same factor further.
    pub picture: String,
}

/// The distribution of latencies in at most `columns` columns; `None` where there are too few, or all are alike.
pub fn spread(histogram: &Histogram, columns: usize, marks: Marks) -> Option<Spread> {
    let from_ns = histogram.quantile(0.01);
    // The logarithm of nothing is nowhere.
    let (low_ns, high_ns) = (from_ns.max(1), histogram.max_ns());
    let (low, high) = (low_ns as f64, high_ns as f64);
    if histogram.count() < MIN_REQUESTS || high < low * ALIKE || columns == 0 {
        return None;
    }
    let span = (high / low).ln();
    let finest = (span / (1.0 + FINEST).ln()).floor() as usize;
    let columns = columns.min(finest.max(1));
    let mut counts = vec![0u64; columns];
    for bucket in histogram.buckets().filter(|bucket| bucket.high_ns >= from_ns) {
        let middle = (bucket.low_ns as f64).midpoint(bucket.high_ns as f64).clamp(low, high);
        let column = ((middle / low).ln() / span * columns as f64) as usize;
        let count = &mut counts[column.min(columns - 1)];
        *count = count.saturating_add(bucket.count);
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mark = |&count: &u64| if count == 0 { ' ' } else { marks.of(count as f64 / most) };
    Some(Spread { low_ns, high_ns, picture: counts.iter().map(mark).collect() })
}

/// Values in their order in at most `columns` columns, each the median of its share of them; the lowest is the least mark.
/// Empty where all are the same.
fn course(values: &[f64], columns: usize, marks: Marks) -> String {
    let size = values.len().div_ceil(columns.max(1)).max(1);
    let medians: Vec<f64> = values.chunks(size).filter_map(stats::median).collect();
    let low = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let high = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if high <= low || !(high - low).is_finite() {
        return String::new();
    }
    medians.iter().map(|value| marks.of((value - low) / (high - low))).collect()
}

const DIM: Style = Style::new().dimmed();
/// Columns of a picture, at least and at most.
const COLUMNS: (usize, usize) = (10, 32);
/// Names of rows are cut to this, without and with percentiles beside the picture.
const NAME: [usize; 2] = [44, 28];
const MIN_NAME: usize = 8;
/// Columns of a time and the gap beside it.
const TIME: usize = 10;

/// A table of pictures, a line each; empty where there is nothing to see. `percentiles` adds p50 and p99. On a narrow
/// terminal names are cut, then pictures give way.
pub fn table(rows: &[(String, &Histogram)], percentiles: bool, width: usize, marks: Marks) -> String {
    let times = 2 + TIME * if percentiles { 4 } else { 2 };
    let most = width.saturating_sub(times + COLUMNS.0).max(MIN_NAME);
    let room = NAME[usize::from(percentiles)].min(most);
    let narrow = width < times + COLUMNS.0 + MIN_NAME;
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).clamp(7, room);
    let columns = width.saturating_sub(widest + times).clamp(COLUMNS.0, COLUMNS.1);
    let mut shown: Vec<Vec<String>> = Vec::new();
    let mut counts: Vec<u64> = Vec::new();
    for (name, histogram) in rows {
        let Some(spread) = spread(histogram, columns, marks) else { continue };
        let n = histogram.count();
        let time = |ns: u64| units::time(ns as f64);
        let mut row = vec![cut(name, room)];
        if percentiles {
            let p99 = if n >= 100 { time(histogram.quantile(0.99)) } else { "-".to_owned() };
            row.extend([time(histogram.quantile(0.5)), p99]);
        }
        row.push(time(spread.low_ns));
        row.extend((!narrow).then_some(spread.picture));
        row.push(time(spread.high_ns));
        shown.push(row);
        counts.push(n);
    }
    let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max()) else { return String::new() };
    let mut header = vec!["latency"];
    let mut align = vec![Align::Left];
    if percentiles {
        header.extend(["p50", "p99"]);
        align.extend([Align::Right; 2]);
    }
    header.push("p1");
    align.push(Align::Right);
    if !narrow {
        header.push("histogram");
        align.push(Align::Left);
    }
    header.push("max");
    align.push(Align::Right);
    let n = if least == most {
        units::count(*least)
    } else {
        format!("{} to {}", units::count(*least), units::count(*most))
    };
    let [few, .., many] = marks.all();
    let legend = format!(
        "histogram: p1 to max, log scale, {few} at least one request, {many} the most; n = {n} requests"
    );
    let legend = wrap(&legend, width, "", "");
    format!("{}{DIM}{}{DIM:#}\n", layout(&header, &align, &shown), legend.trim_end())
}

/// Rounds in a line at most.
const ROUNDS: usize = 40;

/// The time per request from round to round, for a cell whose time drifted; empty where there is nothing to see.
pub fn rounds(times: &[f64], marks: Marks) -> String {
    let picture = course(times, ROUNDS, marks);
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return String::new() };
    if picture.is_empty() {
        return String::new();
    }
    format!("round by round: {} {picture} {}", units::time(*first), units::time(*last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::table::visible_width;

    fn of(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&(ns, n)| histogram.record_many(ns, n));
        histogram
    }

    fn picture(values: &[(u64, u64)], columns: usize) -> Option<String> {
        spread(&of(values), columns, Marks::Blocks).map(|spread| spread.picture)
    }

    #[test]
    fn where_there_is_nothing_to_see_there_is_no_picture() {
        assert_eq!(picture(&[], 16), None);
        assert_eq!(picture(&[(500, 1000)], 16), None, "all equal");
        assert_eq!(picture(&[(500, 1000), (510, 1000)], 16), None, "as good as equal");
        assert_eq!(picture(&[(500, 5), (5000, 5)], 16), None, "too few");
        assert_eq!(picture(&[(500, 100), (5000, 5)], 0), None);
        assert_eq!(table(&[], true, 80, Marks::Blocks), "");
    }

    #[test]
    fn two_kinds_of_requests_are_two_hills_and_a_rare_one_is_seen() {
        // Columns of a factor of 10 each: 1 to 10 µs, 10 to 100 µs, and so on.
        assert_eq!(picture(&[(1_000, 100), (200_000, 50), (10_000_000, 1)], 4).unwrap(), "█ ▄▁");
        assert_eq!(picture(&[(1_000, 1_000_000), (10_000_000, 1)], 4).unwrap(), "█  ▁", "one in a million");
        assert_eq!(picture(&[(1_000, 100), (10_000_000, 100)], 1).unwrap(), "█", "one class");
    }

    #[test]
    fn the_fastest_hundredth_is_left_out_and_both_ends_are_told() {
        let spread = spread(&of(&[(10, 5), (1_000, 994), (100_000, 1)]), 20, Marks::Blocks).unwrap();
        assert_eq!((spread.picture.chars().count(), spread.high_ns), (20, 100_000));
        assert!(spread.low_ns.abs_diff(1_000) <= 4, "{spread:?}");
    }

    #[test]
    fn an_extreme_spread_and_a_narrow_one_stay_in_their_columns() {
        let extreme = picture(&[(0, 100), (u64::MAX, 1)], 32).unwrap();
        assert_eq!((extreme.chars().count(), extreme.trim().chars().last()), (32, Some('▁')), "{extreme}");
        // A factor of 1.3 has no more columns than the histogram has classes for, and no gaps between them.
        let narrow: Vec<(u64, u64)> = (100_000..130_000).step_by(10).map(|ns| (ns, 1)).collect();
        let narrow = picture(&narrow, 100).unwrap();
        assert!(narrow.chars().count() <= 17 && !narrow.contains(' '), "{narrow}");
    }

    #[test]
    fn a_step_and_a_slope_look_like_themselves() {
        assert_eq!(course(&[1.0, 1.0, 1.0, 2.0, 2.0], 40, Marks::Blocks), "▁▁▁██");
        let slope: Vec<f64> = (0..16).map(f64::from).collect();
        assert_eq!(course(&slope, 8, Marks::Letters).len(), 8);
        assert!(
            course(&slope, 8, Marks::Blocks).starts_with("▁▂")
                && course(&slope, 8, Marks::Blocks).ends_with('█')
        );
        assert_eq!(course(&[3.0, 3.0, 3.0], 40, Marks::Blocks), "");
        assert_eq!(course(&[], 40, Marks::Blocks), "");
    }

    #[test]
    fn rounds_are_drawn_between_the_first_and_the_last() {
        let step = [100.0, 100.0, 400.0];
        assert_eq!(rounds(&step, Marks::Blocks), "round by round: 100 ns ▁▁█ 400 ns");
        assert_eq!(rounds(&step[..1], Marks::Blocks), "");
        assert_eq!(rounds(&[], Marks::Letters), "");
    }

    #[test]
    fn a_locale_without_utf_8_gets_letters() {
        let of = |all, ctype, lang| Marks::of_locale([all, ctype, lang]);
        assert_eq!(of(None, None, Some("en_GB.UTF-8")), Marks::Blocks);
        assert_eq!(of(None, Some("C.utf8"), Some("C")), Marks::Blocks);
        assert_eq!(of(Some("C"), None, Some("en_GB.UTF-8")), Marks::Letters, "LC_ALL overrules");
        assert_eq!(of(Some(""), None, Some("en_GB.UTF-8")), Marks::Blocks, "empty says nothing");
        assert_eq!(of(None, None, None), Marks::Letters);
        let letters = spread(&of_two(), 8, Marks::Letters).unwrap();
        assert!(letters.picture.is_ascii() && letters.picture.starts_with('#'), "{letters:?}");
    }

    fn of_two() -> Histogram {
        of(&[(1_000, 100), (200_000, 50)])
    }

    #[test]
    fn a_table_keeps_to_the_width_and_leaves_out_what_is_alike() {
        let (wide, alike) = (of_two(), of(&[(500, 1000)]));
        let rows = [("cold sequential, 128 KiB (!)".to_owned(), &wide), ("cached".to_owned(), &alike)];
        for (width, percentiles) in [(80, true), (80, false), (120, true)] {
            let text = table(&rows, percentiles, width, Marks::Blocks);
            assert!(text.lines().all(|line| visible_width(line) <= width), "{text}");
            assert!(!text.contains("cached") && text.contains("1.00 µs  █"), "{text}");
            assert!(text.contains("n = 150") && text.contains("200 µs"), "{text}");
        }
    }
}
