//! The layers of functions by name, by hand, against those by source file: counts per kernel, and what contradicts.

use std::collections::{BTreeMap, BTreeSet};

use iowhy_core::layer::Layer;
use iowhy_diagnose::classify::{ByName, ByPathMeaning, Classifier, LayerLine};

use super::evidence::Evidence;

/// A row or column: what one of the two says about a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Said {
    /// A layer.
    Layer(Layer),
    /// The layer of the caller.
    Helper,
    /// Nothing.
    Nothing,
}

impl Said {
    pub(super) fn id(self) -> &'static str {
        match self {
            Said::Layer(layer) => layer.id(),
            Said::Helper => "helper",
            Said::Nothing => "-",
        }
    }
}

/// Functions by what the name and what the path says.
pub(super) type Matrix = BTreeMap<(Said, Said), usize>;

/// A line of `symbols.toml` that contradicts the path, with the layers by path and an example.
#[derive(Debug)]
pub(super) struct Contradiction<'a> {
    pub(super) line: &'a LayerLine,
    /// By kernel: functions that it contradicts.
    pub(super) counts: Vec<usize>,
    pub(super) by_path: BTreeSet<Said>,
    /// A function and its file.
    pub(super) example: (String, String),
}

/// What the comparison finds.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    /// One for each kernel.
    pub(super) matrices: Vec<Matrix>,
    /// For each kernel: functions that a fallback line matches, and those of them whose source file says another layer.
    pub(super) fallbacks: Vec<(usize, usize)>,
    pub(super) contradictions: Vec<Contradiction<'a>>,
}

/// Compares every function of the evidence that has a group.
pub(super) fn compare<'a>(
    classifier: &'a Classifier,
    evidence: &Evidence,
    group_of: impl Fn(&str) -> Option<String>,
) -> Comparison<'a> {
    let mut matrices = vec![Matrix::new(); evidence.kernels.len()];
    let mut fallbacks = vec![(0, 0); evidence.kernels.len()];
    let mut found: BTreeMap<&str, Contradiction<'a>> = BTreeMap::new();
    for ((path, name), kernels) in &evidence.functions {
        let Some(meaning) = group_of(path).and_then(|group| classifier.meaning_of_group(&group)) else {
            continue;
        };
        let by_path = match meaning {
            ByPathMeaning::Helper => Said::Helper,
            ByPathMeaning::Layer(layer, _) => Said::Layer(layer),
        };
        let (by_name, line) = match classifier.by_name(name) {
            ByName::Nothing => (Said::Nothing, None),
            ByName::Helper => (Said::Helper, None),
            ByName::Line(line) => (Said::Layer(line.layer), Some(line)),
        };
        let fallback = line.filter(|line| line.fallback);
        let (by_name, line) = if fallback.is_some() { (Said::Nothing, None) } else { (by_name, line) };
        let of_kernel = |index: usize| usize::from(kernels >> index & 1);
        for (index, matrix) in matrices.iter_mut().enumerate() {
            *matrix.entry((by_name, by_path)).or_default() += of_kernel(index);
        }
        for (index, (all, wrong)) in fallbacks.iter_mut().enumerate() {
            let Some(line) = fallback else { continue };
            *all += of_kernel(index);
            *wrong += if Said::Layer(line.layer) == by_path { 0 } else { of_kernel(index) };
        }
        if let Some(line) = line.filter(|_| by_name != by_path) {
            let entry = found.entry(&line.pattern).or_insert_with(|| Contradiction {
                line,
                counts: vec![0; evidence.kernels.len()],
                by_path: BTreeSet::new(),
                example: (name.clone(), path.clone()),
            });
            entry.by_path.insert(by_path);
            entry.counts.iter_mut().enumerate().for_each(|(index, n)| *n += of_kernel(index));
        }
    }
    Comparison { matrices, fallbacks, contradictions: found.into_values().collect() }
}

/// Lines that contradict without a reason, that have a reason and do not contradict, or say what the path says anyway.
pub(super) fn complaints(classifier: &Classifier, comparison: &Comparison<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    let contradicting: BTreeMap<&str, &Contradiction<'_>> =
        comparison.contradictions.iter().map(|c| (c.line.pattern.as_str(), c)).collect();
    for line in classifier.layer_lines() {
        let name = &line.pattern;
        let layer = line.layer.id();
        match (contradicting.get(name.as_str()), &line.reason) {
            (Some(c), None) => {
                let others: Vec<&str> = c.by_path.iter().map(|said| said.id()).collect();
                let (function, path) = &c.example;
                complaints.push(format!(
                    "{name} has the layer {layer}; by source file {} (`{function}` in {path}): give a reason, or take it out",
                    others.join(", ")
                ));
            }
            (None, Some(_)) => complaints.push(format!(
                "{name} ({layer}) has a reason, but contradicts no source file: it needs none"
            )),
            (Some(_), Some(_)) => {}
            (None, None) if line.fallback && !name.ends_with('*') => {
                complaints.push(format!("{name} ({layer}) is no prefix: it cannot be a fallback"));
            }
            (None, None) if classifier.is_redundant(line) => {
                complaints.push(format!("{name} ({layer}) says what its source file says: take it out"));
            }
            (None, None) => {}
        }
    }
    complaints
}
