//! `iowhy schema`: every golden record matches the schema of its kind, and docs/json.md shows these schemas.
//!
//! The check knows the keywords that the schemas use and panics on any other. It is stricter than JSON Schema: a key that the
//! schema does not name is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::common::iowhy;

/// Keywords that describe and do not constrain.
const DESCRIBING: [&str; 6] = ["$schema", "$defs", "title", "description", "format", "default"];

fn schema(kind: &str) -> Value {
    iowhy(&["schema", kind]).done().json()
}

fn kinds() -> Vec<(String, String)> {
    let listed = iowhy(&["schema", "--json", "-"]).done().json();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    listed["kinds"].as_array().unwrap().iter().map(|e| (text(e, "name"), text(e, "about"))).collect()
}

/// What is wrong with a value.
fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { root: schema, found: &mut found }.closed(schema, value, "record");
    found
}

struct Check<'a> {
    root: &'a Value,
    found: &'a mut Vec<String>,
}

impl Check<'_> {
    /// Checks a value, and that its keys are all named.
    fn closed(&mut self, schema: &Value, value: &Value, at: &str) {
        let named = self.open(schema, value, at);
        for key in value.as_object().into_iter().flat_map(Map::keys) {
            if !named.contains(key) {
                self.found.push(format!("{at}.{key} is not in the schema"));
            }
        }
    }

    /// Checks a value; the keys that the schema names.
    fn open(&mut self, schema: &Value, value: &Value, at: &str) -> BTreeSet<String> {
        let mut named = BTreeSet::new();
        let Some(schema) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                self.found.push(format!("{at} must be absent"));
            }
            named.extend(value.as_object().into_iter().flat_map(Map::keys).cloned());
            return named;
        };
        for (keyword, rule) in schema {
            match keyword.as_str() {
                "$ref" => {
                    let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                    let definition = self.root.pointer(pointer).unwrap_or_else(|| panic!("{at}: {pointer}"));
                    named.extend(self.open(definition, value, at));
                }
                "anyOf" | "oneOf" => named.extend(self.any(rule.as_array().unwrap(), value, at)),
                "properties" => {
                    for (key, inner) in rule.as_object().unwrap() {
                        named.insert(key.clone());
                        if let Some(value) = value.get(key) {
                            self.closed(inner, value, &format!("{at}.{key}"));
                        }
                    }
                }
                "additionalProperties" => {
                    for (key, inner) in value.as_object().into_iter().flatten() {
                        if schema.get("properties").is_none_or(|names| names.get(key).is_none()) {
                            named.insert(key.clone());
                            self.closed(rule, inner, &format!("{at}.{key}"));
                        }
                    }
                }
                "items" => {
                    for (number, inner) in value.as_array().into_iter().flatten().enumerate() {
                        self.closed(rule, inner, &format!("{at}[{number}]"));
                    }
                }
                "prefixItems" => {
                    let inner = value.as_array().into_iter().flatten();
                    for (rule, inner) in rule.as_array().unwrap().iter().zip(inner) {
                        self.closed(rule, inner, at);
                    }
                }
                _ => self.simple(keyword, rule, value, at),
            }
        }
        named
    }

    /// The first alternative that holds, or else the problems of the one that comes closest.
    fn any(&mut self, alternatives: &[Value], value: &Value, at: &str) -> BTreeSet<String> {
        let tried = alternatives.iter().map(|alternative| {
            let mut found = Vec::new();
            let named = Check { root: self.root, found: &mut found }.open(alternative, value, at);
            (found, named)
        });
        // An alternative of another type is no near miss.
        let other_type =
            |found: &[String]| found.iter().any(|problem| problem.starts_with(&format!("{at}: type")));
        let (found, named) = tried
            .min_by_key(|(found, named)| (other_type(found), found.len(), std::cmp::Reverse(named.len())))
            .unwrap();
        self.found.extend(found);
        named
    }

    fn simple(&mut self, keyword: &str, rule: &Value, value: &Value, at: &str) {
        let length = |holds: fn(f64, f64) -> bool| {
            value.as_array().is_none_or(|list| holds(list.len() as f64, rule.as_f64().unwrap()))
        };
        let holds = match keyword {
            "type" => match rule {
                Value::Array(names) => names.iter().any(|name| is(name, value)),
                name => is(name, value),
            },
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "required" => {
                rule.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
            }
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "minItems" => length(|length, limit| length >= limit),
            "maxItems" => length(|length, limit| length <= limit),
            _ => {
                assert!(DESCRIBING.contains(&keyword), "{at}: unknown keyword {keyword}");
                true
            }
        };
        if !holds {
            self.found.push(format!("{at}: {keyword} {rule} does not hold for {value:.60}"));
        }
    }
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/records/1")
}

#[test]
fn every_golden_record_matches_the_schema_of_its_kind() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        let record: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let found = problems(&schema(record["kind"].as_str().unwrap()), &record);
        wrong.extend(found.into_iter().map(|problem| format!("{}: {problem}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn records_of_this_version_match_their_schemas() {
    let golden = golden();
    let commands: [&[&str]; 7] = [
        &["explain"],
        &["schema"],
        &["trace", "formats"],
        &["sim", "--machine", "list"],
        &["sim", "--workload", "list"],
        &["classic", "list"],
        &["history", golden.to_str().unwrap()],
    ];
    for command in commands {
        let record = iowhy(&[command, &["--json", "-"]].concat()).done().json();
        let found = problems(&schema(record["kind"].as_str().unwrap()), &record);
        assert!(found.is_empty(), "{command:?}:\n{}", found.join("\n"));
    }
}

#[test]
fn a_schema_refuses_what_no_record_is() {
    let path = golden().join("watched.json");
    let good: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = schema("watched-program");
    let broken: [(&str, Value); 4] = [
        ("/wall_s", "one".into()),
        ("/kind", "trace".into()),
        ("/profile/threads/0/name", 1.into()),
        ("/findings/0/id", "no-such-finding".into()),
    ];
    for (pointer, value) in broken {
        let mut record = good.clone();
        *record.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        assert!(!problems(&schema, &record).is_empty(), "{pointer}");
    }
    let mut record = good;
    record["wall"] = 1.into();
    record.as_object_mut().unwrap().remove("wall_s");
    assert_eq!(problems(&schema, &record).len(), 2);
}

#[test]
fn an_unknown_kind_is_refused_with_the_nearest() {
    let ran = iowhy(&["schema", "proofs"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.stderr.contains("proof"), "{}", ran.stderr);
}

/// `docs/json.md`, the page of all keys.
fn page() -> String {
    let mut text = "\
# JSON records

Generated from the types of the records by `IOWHY_UPDATE=1 cargo test -p iowhy --test command -- schema`. `iowhy schema KIND` prints
the same as JSON Schema (2020-12), for validators and code generators. [Scripting](scripting.md) describes the rules of all records.

Units are in key names. A key marked \"optional\" may be absent. A value marked \"or null\" is null if it is unknown.

"
    .to_owned();
    let mut parts = BTreeMap::new();
    for (kind, about) in kinds() {
        let schema = schema(&kind);
        writeln!(text, "## `{kind}`\n\n{about}\n").unwrap();
        text.push_str(&table(&schema));
        for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
            let other = parts.insert(name.clone(), part.clone());
            assert!(other.is_none_or(|other| other == *part), "two parts are called {name}");
        }
    }
    text.push_str("# Parts of records\n\n");
    for (name, part) in parts {
        let about = part["description"].as_str().unwrap_or_default();
        writeln!(text, "## {name}\n\n{}\n", line(about)).unwrap();
        text.push_str(&table(&part));
    }
    text.trim_end().to_owned() + "\n"
}

/// The keys, or the values, of an object or a choice.
fn table(schema: &Value) -> String {
    let mut text = String::new();
    let required = schema["required"].as_array();
    let keys = schema["properties"].as_object();
    for (number, (key, inner)) in keys.into_iter().flatten().enumerate() {
        if number == 0 {
            text.push_str("| key | value | meaning |\n|---|---|---|\n");
        }
        let optional = required.is_none_or(|all| !all.iter().any(|name| name == key.as_str()));
        let optional = if optional { ", optional" } else { "" };
        let about = inner["description"].as_str().unwrap_or_default();
        writeln!(text, "| `{key}` | {}{optional} | {} |", type_of(inner), line(about)).unwrap();
    }
    if !text.is_empty() {
        text.push('\n');
    }
    for choice in schema["anyOf"].as_array().or(schema["oneOf"].as_array()).into_iter().flatten() {
        let about = line(choice["description"].as_str().unwrap_or_default());
        let inner = table(choice);
        match inner.is_empty() {
            true => writeln!(text, "- {}: {about}", type_of(choice)).unwrap(),
            false => write!(text, "{about}\n\n{inner}").unwrap(),
        }
    }
    if text.ends_with('\n') && !text.ends_with("\n\n") {
        text.push('\n');
    }
    text
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    let list = |all: &Vec<Value>| all.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    if let Some(all) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return list(all);
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", value.as_str().unwrap());
    }
    if let Some(all) = schema["enum"].as_array() {
        return all
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap_or("null")))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let named = |name: &str| match name {
        "array" => match (schema.get("items"), schema["prefixItems"].as_array()) {
            (_, Some(parts)) => {
                format!("list of {}", parts.iter().map(type_of).collect::<Vec<_>>().join(", "))
            }
            (Some(items), None) => format!("list of {}", type_of(items)),
            (None, None) => "list".to_owned(),
        },
        "object" => match schema.get("additionalProperties").filter(|rule| rule.is_object()) {
            Some(rule) => format!("object of {}", type_of(rule)),
            None => "object".to_owned(),
        },
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => named(name),
        Value::Array(names) => {
            names.iter().map(|name| named(name.as_str().unwrap())).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// One line of a table.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[test]
fn the_page_of_the_keys_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = page();
    if std::env::var_os("IOWHY_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "docs/json.md is old: IOWHY_UPDATE=1 rewrites it");
}
