//! A flame graph: frames as wide as their share of a whole, callers above, what they called below.

use std::collections::BTreeMap;

use super::{escape, tip};

/// A tree of frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Own and callees' size, in any unit.
    pub size: f64,
    /// Size by class of the style sheet, of the stacks that pass through it.
    classes: BTreeMap<String, f64>,
    children: BTreeMap<String, Node>,
}

impl Node {
    /// Adds one stack of a class, outermost frame first.
    pub fn add(&mut self, frames: &[String], class: &str, size: f64) {
        self.size += size;
        let mut node = self;
        for name in frames {
            node = node.children.entry(name.clone()).or_default();
            node.size += size;
            *node.classes.entry(class.to_owned()).or_default() += size;
        }
    }

    /// The class that most of it is of.
    fn class(&self) -> &str {
        let most = self.classes.iter().max_by(|a, b| a.1.total_cmp(b.1));
        most.map_or("other", |(class, _)| class)
    }

    /// Frames below this one.
    pub fn depth(&self) -> usize {
        self.children.values().map(|child| child.depth() + 1).max().unwrap_or(0)
    }
}

const ROW: f64 = 18.0;
/// Share below which a frame is not drawn: a pixel of a wide screen.
const MIN_SHARE: f64 = 0.0007;
/// Rows that are drawn.
const MAX_ROWS: usize = 60;

/// The chart. `words` says a size.
pub fn chart(root: &Node, name: &str, words: &dyn Fn(f64) -> String, alt: &str) -> String {
    let rows = (root.depth() + 1).min(MAX_ROWS);
    let mut text = String::new();
    push(&mut text, root, (name, "other"), (0.0, 0), root.size, words);
    let height = rows as f64 * ROW + 2.0;
    // Places are shares of the width, so that zooming needs no other arithmetic, and letters keep their size.
    format!(
        "<svg class=\"chart flame\" style=\"height:{height:.0}px\" role=\"img\" tabindex=\"0\" aria-label=\"{}\">{text}</svg>",
        escape(alt)
    )
}

fn push(
    text: &mut String,
    node: &Node,
    (name, class): (&str, &str),
    (from, row): (f64, usize),
    whole: f64,
    words: &dyn Fn(f64) -> String,
) {
    let share = node.size / whole;
    if share.is_nan() || share < MIN_SHARE || row >= MAX_ROWS {
        return;
    }
    let (x, wide) = (from * 100.0, share * 100.0);
    let says = format!("{name}\n{}, {:.1} %", words(node.size), wide);
    let dark = matches!(class, "elsewhere" | "unexplained" | "other");
    let written = if share > 0.015 {
        format!(
            "<text x=\"4\" y=\"13\" class=\"lab{}\">{}</text>",
            if dark { " dark" } else { "" },
            escape(name)
        )
    } else {
        String::new()
    };
    text.push_str(&format!(
        "<svg class=\"m\" data-x=\"{x:.3}\" data-w=\"{wide:.3}\" x=\"{x:.3}%\" y=\"{:.0}\" width=\"{wide:.3}%\" \
         height=\"{ROW:.0}\">{}<rect class=\"{class}\" width=\"100%\" height=\"100%\"/>{written}</svg>",
        row as f64 * ROW,
        tip(&says)
    ));
    let mut at = from;
    let mut children: Vec<(&String, &Node)> = node.children.iter().collect();
    children.sort_by(|a, b| b.1.size.total_cmp(&a.1.size));
    for (name, child) in children {
        push(text, child, (name, child.class()), (at, row + 1), whole, words);
        at += child.size / whole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_wide_as_their_share_and_children_lie_within() {
        let mut root = Node::default();
        let frames =
            |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        root.add(&frames(&["main", "a<b>"]), "call", 1.0);
        root.add(&frames(&["main", "read"]), "copy", 3.0);
        root.add(&frames(&["idle"]), "elsewhere", 4.0);
        let text = chart(&root, "all", &|size| format!("{size} s"), "where");
        assert!(text.contains("data-x=\"0.000\" data-w=\"100.000\""));
        assert!(text.contains("data-x=\"50.000\" data-w=\"37.500\""), "{text}");
        assert!(text.contains("a&lt;b&gt;\n1 s, 12.5 %"));
        assert_eq!(text.matches("class=\"m\"").count(), 5);
        assert_eq!(text.matches("rect class=\"copy\"").count(), 2, "a frame has the colour of most of it");
        assert!(text.contains("style=\"height:56px\""), "{text}");
    }

    #[test]
    fn what_is_thinner_than_a_pixel_is_left_out() {
        let mut root = Node::default();
        root.add(&["big".to_owned()], "call", 10_000.0);
        root.add(&["thin".to_owned()], "call", 1.0);
        let text = chart(&root, "all", &|size| format!("{size}"), "where");
        assert!(text.contains("big") && !text.contains("thin"));
    }
}
