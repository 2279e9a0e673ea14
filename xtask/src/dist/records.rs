//! `iowhy/records.py` of the wheel: a class for each kind of record and for each part, from the JSON schemas. An editor completes
//! keys and shows their meaning from it. It is made for each wheel and never committed, so that it cannot be out of date.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum;
use iowhy::record::{Kind, SCHEMA, schema};
use serde_json::Value;

const HEADER: &str = "\
\"\"\"Records as classes. Made from the JSON schemas of iowhy: `iowhy schema KIND`. Units are in the names of attributes.\"\"\"

from __future__ import annotations

from typing import Any, Literal, Union

from ._object import Object, Record
";

/// Parts of records by name.
struct Parts(BTreeMap<String, Value>);

/// A key of an object.
#[derive(Clone)]
struct Field {
    hint: String,
    about: String,
    optional: bool,
}

/// The module.
pub(crate) fn module() -> String {
    let mut parts = BTreeMap::new();
    let mut records = Vec::new();
    for kind in Kind::value_variants() {
        let schema = schema::schema(*kind);
        let inner = schema["$defs"].as_object().into_iter().flatten();
        parts.extend(inner.map(|(name, part)| (name.clone(), part.clone())));
        records.push((kind.id(), class_of(*kind), schema));
    }
    let parts = Parts(parts);
    let mut text = HEADER.to_owned();
    let _ = write!(text, "\nVERSION = \"{}\"\nSCHEMA = {SCHEMA}\n", env!("CARGO_PKG_VERSION"));
    for (name, part) in &parts.0 {
        text.push_str(&parts.definition(name, part, "Object"));
    }
    for (_, name, schema) in &records {
        text.push_str(&parts.definition(name, schema, "Record"));
    }
    text.push_str("\n\nKINDS: dict[str, type[Any]] = {\n");
    for (id, name, _) in &records {
        let _ = writeln!(text, "    \"{id}\": {name},");
    }
    let names: Vec<&str> = records.iter().map(|(_, name, _)| name.as_str()).collect();
    let _ = write!(text, "}}\n\nAnyRecord = Union[\n    {},\n]\n", names.join(",\n    "));
    text
}

/// `WatchedProgramResult`: some parts of records are called records, too.
fn class_of(kind: Kind) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    kind.id().split('-').map(word).collect::<String>() + "Result"
}

impl Parts {
    /// A class, or the name of a choice of words.
    fn definition(&self, name: &str, schema: &Value, base: &str) -> String {
        let about = literal(schema["description"].as_str().unwrap_or_default());
        let fields = self.fields(schema);
        if fields.is_empty() {
            return format!("\n\n{name} = {}\n{about}\n", self.hint(schema));
        }
        let mut text = format!("\n\nclass {name}({base}):\n    {about}\n");
        // Python has no name for the others; `vars()` has them.
        for (key, field) in fields.iter().filter(|(key, _)| !key.contains('-')) {
            let value = match (field.optional, field.hint.contains("None")) {
                (false, _) => "",
                (true, true) => " = None",
                (true, false) => " | None = None",
            };
            let _ = write!(text, "\n    {key}: {}{value}\n    {}\n", field.hint, literal(&field.about));
        }
        text
    }

    /// The keys of an object, of all its forms together.
    fn fields(&self, schema: &Value) -> BTreeMap<String, Field> {
        let mut all = BTreeMap::new();
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            let optional = !schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == key));
            let about = inner["description"].as_str().unwrap_or_default().to_owned();
            all.insert(key.clone(), Field { hint: self.hint(inner), about, optional });
        }
        let forms: Vec<_> = alternatives(schema).map(|form| self.fields(self.resolved(form))).collect();
        for (key, field) in forms.iter().flatten() {
            let everywhere = forms.iter().all(|form| form.get(key).is_some_and(|field| !field.optional));
            let known =
                all.entry(key.clone()).or_insert_with(|| Field { optional: !everywhere, ..field.clone() });
            if !known.hint.contains(&field.hint) {
                known.hint = format!("{} | {}", known.hint, field.hint);
            }
        }
        all
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        name_of(schema).and_then(|name| self.0.get(name)).unwrap_or(schema)
    }

    /// The annotation for a value.
    fn hint(&self, schema: &Value) -> String {
        if let Some(name) = name_of(schema) {
            let part = self.resolved(schema);
            // A word, or an object: the class has the name.
            let words = literals(part);
            let class = !self.fields(part).is_empty();
            return if class && !words.is_empty() { format!("{words} | {name}") } else { name.to_owned() };
        }
        let words = literals(schema);
        let others =
            alternatives(schema).filter(|form| constants(form).is_empty()).map(|form| self.hint(form));
        let types = match &schema["type"] {
            _ if !words.is_empty() => Vec::new(),
            Value::String(one) => vec![self.simple(one, schema)],
            Value::Array(all) => {
                all.iter().filter_map(Value::as_str).map(|t| self.simple(t, schema)).collect()
            }
            _ => Vec::new(),
        };
        let mut all: Vec<String> = Some(words).filter(|words| !words.is_empty()).into_iter().collect();
        all.extend(others.chain(types));
        all.dedup();
        if all.is_empty() { "Any".to_owned() } else { all.join(" | ") }
    }

    fn simple(&self, name: &str, schema: &Value) -> String {
        let inner = |key: &str| match &schema[key] {
            rule @ Value::Object(_) => self.hint(rule),
            _ => "Any".to_owned(),
        };
        match name {
            "integer" => "int".to_owned(),
            "number" => "float".to_owned(),
            "string" => "str".to_owned(),
            "boolean" => "bool".to_owned(),
            "null" => "None".to_owned(),
            "array" => format!("list[{}]", inner("items")),
            "object" if schema["properties"].is_object() => "Object".to_owned(),
            "object" => format!("dict[str, {}]", inner("additionalProperties")),
            _ => "Any".to_owned(),
        }
    }
}

fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().flat_map(|key| schema[key].as_array().into_iter().flatten())
}

/// The words that a value may be by itself.
fn constants(schema: &Value) -> Vec<String> {
    let all = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    all.map(|value| if value.is_null() { "None".to_owned() } else { value.to_string() }).collect()
}

/// The words that a value may be, itself or in one of its forms.
fn literals(schema: &Value) -> String {
    let mut words = constants(schema);
    words.extend(alternatives(schema).flat_map(constants));
    if words.is_empty() { String::new() } else { format!("Literal[{}]", words.join(", ")) }
}

/// A text as Python writes it: as JSON does.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_every_part_is_defined_once() {
        let text = module();
        let mut names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("class ").and_then(|line| line.split('(').next()))
            .collect();
        let (all, kinds) = (names.len(), Kind::value_variants().len());
        names.sort_unstable();
        names.dedup();
        assert!(names.len() == all && all > kinds, "{all} classes");
        for kind in Kind::value_variants() {
            let name = class_of(*kind);
            assert!(names.contains(&name.as_str()) && text.contains(&format!("\"{}\": {name},", kind.id())));
        }
    }

    /// A key that is a word of the language would make the whole module unreadable for Python.
    #[test]
    fn no_key_is_a_word_of_python() {
        const WORDS: &str = "and as assert async await break class continue def del elif else except finally for from global if import in \
                             is lambda nonlocal not or pass raise return try while with yield None True False";
        let text = module();
        let keys: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("    ")?.split_once(": ").map(|(key, _)| key))
            .collect();
        let bad: Vec<&&str> =
            keys.iter().filter(|key| WORDS.split_whitespace().any(|word| word == **key)).collect();
        assert!(keys.len() > 500 && bad.is_empty(), "{bad:?} of {}", keys.len());
    }

    #[test]
    fn the_forms_of_an_object_are_one_class_and_words_beside_it_stay() {
        let parts = Parts(BTreeMap::from([(
            "End".to_owned(),
            serde_json::json!({"oneOf": [
                {"const": "running"},
                {"properties": {"code": {"type": "integer"}}, "required": ["code"]},
                {"properties": {"signal": {"type": ["integer", "null"]}}, "required": ["signal"]},
            ]}),
        )]));
        let text = parts.definition("End", &parts.0["End"], "Object");
        assert!(text.contains("code: int | None = None\n") && text.contains("signal: int | None = None\n"));
        let list = serde_json::json!({"type": "array", "items": {"$ref": "#/$defs/End"}});
        assert_eq!(parts.hint(&list), "list[Literal[\"running\"] | End]");
        let map = serde_json::json!({"type": "object", "additionalProperties": {"type": "number"}});
        assert_eq!(parts.hint(&map), "dict[str, float]");
    }
}
