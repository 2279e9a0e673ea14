//! Charts as `<svg>` elements. A mark is an element of class `m` whose `<title>` says its figures: the page's script makes
//! tips of them, and a reader without it still gets them.
//!
//! What may not enter: what figures mean. A chart is given texts and numbers.

pub mod bars;
pub mod dots;
pub mod flame;
pub mod heat;
pub mod histogram;
pub mod lines;
mod scale;
pub mod strips;

pub use scale::{Axis, Scale};

use crate::escape::escape;

/// Width of a chart that takes the whole page, in its own units.
pub const WIDE: f64 = 960.0;
/// Width of one of several small ones.
pub const SMALL: f64 = 400.0;

/// A chart's element around its contents.
fn element(width: f64, height: f64, class: &str, alt: &str, contents: &str) -> String {
    format!(
        "<svg class=\"chart {class}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" tabindex=\"0\" \
         aria-label=\"{}\">{contents}</svg>",
        escape(alt)
    )
}

/// A text at a place.
fn label(x: f64, y: f64, anchor: &str, class: &str, words: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
        escape(words)
    )
}

/// What a mark says.
fn tip(words: &str) -> String {
    format!("<title>{}</title>", escape(words))
}

/// A text that fits into `width` units of 12-unit type, cut with an ellipsis where it must be.
fn fit(words: &str, width: f64) -> String {
    /// Mean width of a letter at that size; a little too much, so that texts rather end early.
    const LETTER: f64 = 6.6;
    let room = (width / LETTER).floor().max(0.0) as usize;
    if words.chars().count() <= room {
        return words.to_owned();
    }
    let kept: String = words.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}…")
}
