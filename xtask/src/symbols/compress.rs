//! The shortest list of names and prefixes that gives every function its group, and none to functions outside.
//!
//! A prefix is taken where it saves text, most functions below it are of its group, and none is outside; functions of
//! other groups below it have longer prefixes or lines of their own. So functions that later kernels add are met as well.

use std::collections::BTreeMap;

use super::evidence::beginnings;

/// A prefix needs as many functions of its group.
const MIN_FUNCTIONS: usize = 4;
/// Share of the functions below a prefix that must be of its group.
const MIN_SHARE: f64 = 0.75;

/// A function with its group; `None`: it has no meaning by itself. An outside name that ends in an underscore stands for
/// all that begin so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// A group of `paths.toml`, by its index.
    Group(usize),
    /// Of no group, or of more than one.
    None,
    /// Not in the files that were looked at.
    Outside,
}

#[derive(Default)]
struct Node<'a> {
    own: Option<Label>,
    children: BTreeMap<&'a str, Node<'a>>,
    /// Functions at and below this node, by group; the last is `None`.
    counts: Vec<usize>,
    outside: bool,
    /// The least text for this node and all below it, by inherited group, and the prefix's group where one is taken.
    best: Vec<(usize, Option<usize>)>,
}

/// Patterns by group; the last group is that of functions without a meaning.
pub(super) fn patterns(labels: &BTreeMap<&str, Label>, groups: usize) -> Vec<Vec<String>> {
    let mut root = Node::default();
    for (name, label) in labels {
        let mut node = &mut root;
        let steps = beginnings(name).chain(std::iter::once(*name));
        for step in steps {
            node = node.children.entry(step).or_default();
        }
        node.own = Some(*label);
    }
    weigh(&mut root, "", groups + 1);
    let mut patterns = vec![Vec::new(); groups + 1];
    choose(&root, "", groups, &mut patterns);
    for group in &mut patterns {
        group.sort();
    }
    patterns
}

/// Fills in counts and costs. Groups are numbered to `count - 1`, the last being that of no meaning.
fn weigh(node: &mut Node<'_>, prefix: &str, count: usize) {
    let none = count - 1;
    node.counts = vec![0; count];
    for (name, child) in &mut node.children {
        weigh(child, name, count);
        node.outside |= child.outside;
        node.counts.iter_mut().zip(&child.counts).for_each(|(sum, n)| *sum += n);
    }
    let own = own(node, none);
    match node.own {
        Some(Label::Outside) => node.outside = true,
        Some(_) => own.into_iter().for_each(|group| node.counts[group] += 1),
        None => {}
    }
    let all: usize = node.counts.iter().sum();
    let usable = prefix.ends_with('_') && !node.outside;
    let may = |group: &usize| {
        usable && node.counts[*group] >= MIN_FUNCTIONS && node.counts[*group] as f64 >= MIN_SHARE * all as f64
    };
    let kept: Vec<usize> = (0..count)
        .map(|inherited| {
            let below: usize = node.children.values().map(|child| child.best[inherited].0).sum();
            let line = if own.is_some_and(|group| group != inherited) { prefix.len() + 1 } else { 0 };
            below + line
        })
        .collect();
    node.best = (0..count)
        .map(|inherited| {
            let taken = (0..none).filter(|group| *group != inherited).filter(may);
            let best = taken.map(|group| (kept[group] + prefix.len() + 2, Some(group))).min();
            best.filter(|(cost, _)| *cost < kept[inherited]).unwrap_or((kept[inherited], None))
        })
        .collect();
}

/// The group of the function that has exactly this name. One outside needs no line: no prefix takes it in.
fn own(node: &Node<'_>, none: usize) -> Option<usize> {
    match node.own? {
        Label::Group(group) => Some(group),
        Label::None => Some(none),
        Label::Outside => None,
    }
}

fn choose(node: &Node<'_>, prefix: &str, inherited: usize, patterns: &mut [Vec<String>]) {
    let none = patterns.len() - 1;
    let group = node.best[inherited].1;
    if let Some(group) = group {
        patterns[group].push(format!("{prefix}*"));
    }
    let inherited = group.unwrap_or(inherited);
    if let Some(group) = own(node, none).filter(|group| *group != inherited) {
        patterns[group].push(prefix.to_owned());
    }
    for (name, child) in &node.children {
        choose(child, name, inherited, patterns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_take_in_their_own_and_nothing_outside() {
        let labels: BTreeMap<&str, Label> = [
            ("ext4_a", Label::Group(0)),
            ("ext4_b", Label::Group(0)),
            ("ext4_c", Label::Group(0)),
            ("ext4_d", Label::Group(0)),
            ("ext4_e", Label::Group(1)),
            ("get_a", Label::Group(0)),
            ("get_b", Label::Group(0)),
            ("get_c", Label::Group(0)),
            ("get_d", Label::Group(0)),
            ("get_", Label::Outside),
            ("one", Label::None),
        ]
        .into();
        let found = patterns(&labels, 2);
        assert_eq!(found[0], ["ext4_*", "get_a", "get_b", "get_c", "get_d"]);
        assert_eq!(found[1], ["ext4_e"]);
        assert_eq!(found[2], Vec::<String>::new());
    }
}
