//! What guests answered, looked up by boot and label: exit codes, words, figures of iowhy's records. Whatever is missing
//! is `None`, and a check of it fails.

use std::collections::BTreeMap;

use serde_json::Value;

use super::machine::BootResult;

/// The answers of all boots.
#[derive(Debug, Default)]
pub(super) struct Answers {
    boots: BTreeMap<String, BootResult>,
}

impl Answers {
    /// Adds what a boot told.
    pub(super) fn add(&mut self, boot: &str, told: BootResult) {
        self.boots.insert(boot.to_owned(), told);
    }

    /// What a boot told.
    pub(super) fn boots(&self) -> impl Iterator<Item = (&str, &BootResult)> {
        self.boots.iter().map(|(name, told)| (name.as_str(), told))
    }

    /// An answer.
    pub(super) fn get(&self, boot: &str, label: &str) -> Answer<'_> {
        let found = self
            .boots
            .get(boot)
            .and_then(|told| told.answers.iter().find(|answer| answer["label"].as_str() == Some(label)));
        Answer { value: found.unwrap_or(&Value::Null) }
    }
}

/// One answer; `null` where there is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    value: &'a Value,
}

impl<'a> Answer<'a> {
    /// A value by its keys.
    pub(super) fn at(self, pointer: &str) -> &'a Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// A number by its keys.
    pub(super) fn number(self, pointer: &str) -> Option<f64> {
        self.at(pointer).as_f64()
    }

    /// The exit code.
    pub(super) fn exit(self) -> Option<i64> {
        self.at("/exit").as_i64()
    }

    /// What was said on stderr.
    pub(super) fn stderr(self) -> &'a str {
        self.at("/stderr").as_str().unwrap_or("")
    }

    /// What was said on stdout.
    pub(super) fn stdout(self) -> &'a str {
        self.at("/stdout").as_str().unwrap_or("")
    }

    /// Cells of a record.
    pub(super) fn cells(self) -> &'a [Value] {
        self.at("/record/cells").as_array().map_or(&[], Vec::as_slice)
    }

    /// A cell of a record by a part of its key.
    pub(super) fn cell(self, key: &str) -> Cell<'a> {
        let cells = self.cells();
        let of = |cell: &&Value, same: &dyn Fn(&str) -> bool| cell["key"].as_str().is_some_and(same);
        let exact = cells.iter().find(|cell| of(cell, &|k| k == key));
        Cell {
            value: exact
                .or_else(|| cells.iter().find(|cell| of(cell, &|k| k.contains(key))))
                .unwrap_or(&Value::Null),
        }
    }
}

/// One cell of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell<'a> {
    value: &'a Value,
}

impl Cell<'_> {
    /// Time per request, ns.
    pub(super) fn time(self) -> Option<f64> {
        self.value.pointer("/time_per_request/value")?.as_f64()
    }

    /// Bytes per second.
    pub(super) fn throughput(self) -> Option<f64> {
        self.value.pointer("/throughput/value")?.as_f64()
    }

    /// The named key as text.
    pub(super) fn text(self, key: &str) -> String {
        self.value[key].as_str().unwrap_or("").to_owned()
    }

    /// Time of a layer, busy and waiting; 0 where the split has none of it, `None` where there is no split.
    pub(super) fn layer(self, id: &str) -> Option<f64> {
        let layers = self.value["layers"].as_array()?;
        Some(
            layers
                .iter()
                .filter(|l| l["id"] == id)
                .filter_map(|l| Some(l["busy_ns"].as_f64()? + l["wait_ns"].as_f64()?))
                .sum(),
        )
    }

    /// Sum over all layers.
    pub(super) fn sum(self) -> Option<f64> {
        let layers = self.value["layers"].as_array()?;
        Some(layers.iter().filter_map(|l| Some(l["busy_ns"].as_f64()? + l["wait_ns"].as_f64()?)).sum())
    }
}

/// Names of layers in a record.
pub(super) const LAYERS: [&str; 15] = [
    "program",
    "call",
    "filesystem",
    "cache",
    "copy",
    "memory",
    "block",
    "device",
    "journal",
    "writeback",
    "server",
    "lock",
    "cpu-queue",
    "elsewhere",
    "unexplained",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_found_and_what_is_missing_is_none() {
        let record = json!({"cells": [
            {"key": "pread-4096", "time_per_request": {"value": 5.0}},
            {"key": "pread-65536", "time_per_request": {"value": 7.0},
             "layers": [{"id": "copy", "busy_ns": 4.0, "wait_ns": 1.0}, {"id": "unexplained", "busy_ns": 2.0, "wait_ns": 0.0}]},
        ]});
        let told = BootResult {
            answers: vec![json!({"label": "run", "exit": 0, "stderr": "x", "record": record})],
            ..BootResult::default()
        };
        let mut answers = Answers::default();
        answers.add("boot", told);
        let run = answers.get("boot", "run");
        assert_eq!((run.exit(), run.stderr(), run.cells().len()), (Some(0), "x", 2));
        let cell = run.cell("65536");
        assert_eq!((cell.time(), cell.layer("copy"), cell.sum()), (Some(7.0), Some(5.0), Some(7.0)));
        assert_eq!((cell.layer("call"), run.cell("pread-4096").layer("call")), (Some(0.0), None));
        assert_eq!(answers.get("boot", "other").exit(), None);
        assert_eq!(answers.get("no", "run").cell("x").time(), None);
    }
}
