//! A machine from TOML. Every key is looked up in the table of keys; an unknown one is refused with its line.

use iowhy_core::problem::Problem;
use iowhy_core::saved_model::SavedModel;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::Value;
use super::{Machine, model};

/// A file larger than this is no machine.
const MAX_BYTES: usize = 1 << 20;

impl Machine {
    /// Reads a machine, or a stack model that was measured; `source` names it in errors.
    ///
    /// # Errors
    /// Errors of TOML, an unknown key with the nearest known one, a value that a key cannot take, each with its line.
    pub fn from_toml(text: &str, source: &str) -> Result<Machine, Problem> {
        if text.len() > MAX_BYTES {
            return Err(Problem::refused(format!("`{source}` is too large to be a machine"))
                .hint("`iowhy sim --machine list` shows the ones that ship"));
        }
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            Problem::refused(format!("`{source}` line {line}: {}", error.message().trim_end()))
                .hint("a machine is TOML: `[layer]` and `key = value`")
        })?;
        if table.get_ref().iter().any(|(key, _)| key.get_ref() == "layers") {
            let model: SavedModel = toml::from_str(text).map_err(|error| {
                Problem::refused(format!("`{source}` is no stack model: {}", error.message()))
                    .hint("write one with `iowhy --save-model FILE`")
            })?;
            return Ok(model::machine_of(&model));
        }
        let mut settings = Vec::new();
        flatten(table.get_ref(), "", 0, &mut settings)
            .map_err(|(at, problem)| at_line(text, source, at, problem))?;
        // The model first: the other keys change it, wherever they are written.
        settings.sort_by_key(|(path, _, _)| path != "device.model");
        let mut machine = Machine { name: source.to_owned(), ..Machine::default() };
        for (path, value, at) in settings {
            machine.set(&path, &value).map_err(|problem| at_line(text, source, at, problem))?;
        }
        Ok(machine)
    }
}

type Setting = (String, Value, usize);

/// Deeper than any key is.
const MAX_DEPTH: usize = 4;

fn flatten(
    table: &DeTable<'_>,
    prefix: &str,
    depth: usize,
    out: &mut Vec<Setting>,
) -> Result<(), (usize, Problem)> {
    for (key, value) in table {
        let path =
            if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        let at = key.span().start;
        match value.get_ref() {
            DeValue::Table(inner) if depth < MAX_DEPTH => flatten(inner, &path, depth + 1, out)?,
            _ => {
                let value = scalar(value).ok_or_else(|| {
                    let problem = Problem::refused(format!("`{path}` has a value that no key takes")).hint(
                        "values are numbers, texts, true or false; zones are lists of four whole numbers",
                    );
                    (at, problem)
                })?;
                out.push((path, value, at));
            }
        }
    }
    Ok(())
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    Some(match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Integer(_) | DeValue::Float(_) => match integer(value.get_ref()) {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number(value.get_ref())?),
        },
        DeValue::Array(rows) => {
            let row = |row: &Spanned<DeValue<'_>>| match row.get_ref() {
                DeValue::Array(cells) => cells.iter().map(|cell| number(cell.get_ref())).collect(),
                _ => None,
            };
            Value::Rows(rows.iter().map(row).collect::<Option<Vec<Vec<f64>>>>()?)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

fn integer(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(whole) => u64::from_str_radix(whole.as_str(), whole.radix()).ok(),
        _ => None,
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::Integer(whole) => integer(value).map(|n| n as f64).or_else(|| whole.as_str().parse().ok()),
        _ => None,
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn at_line(text: &str, source: &str, at: usize, problem: Problem) -> Problem {
    Problem { message: format!("`{source}` line {}: {}", line_of(text, at), problem.message), ..problem }
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceKind, JoinKind, shipped};
    use super::*;

    #[test]
    fn keys_beside_a_model_change_it_wherever_they_stand() {
        let text = "[device]\ncount = 3\nrpm = 5400\nmodel = \"st32171w\"\n[volume]\nkind = \"stripe\"\n";
        let machine = Machine::from_toml(text, "x.toml").unwrap();
        assert_eq!((machine.device.count, machine.device.rotating.rpm), (3, 5400.0));
        assert_eq!((machine.device.kind, machine.volume.kind), (DeviceKind::Rotating, JoinKind::Stripe));
        assert_eq!(machine.device.rotating.heads, 5);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, message) in [
            ("[cache]\nbyte = 3\n", "`m.toml` line 2: there is no key `cache.byte`"),
            ("\n\n[cashe]\nbytes = 3\n", "`m.toml` line 4: there is no key `cashe.bytes`"),
            ("[cache]\nbytes = -3\n", "`m.toml` line 2: `cache.bytes` cannot be `-3`"),
            ("[cache]\nbytes = 99999999999999999999\n", "`m.toml` line 2: `cache.bytes` cannot be"),
            ("[cache\n", "`m.toml` line 1: "),
            ("[cache]\nbytes = 1979-05-27\n", "`m.toml` line 2: `cache.bytes` has a value that no key takes"),
        ] {
            let problem = Machine::from_toml(text, "m.toml").unwrap_err();
            assert!(problem.message.starts_with(message), "{problem}");
            assert!(problem.hint.is_some());
        }
    }

    #[test]
    fn all_that_ships_can_be_read_and_built() {
        for one in shipped() {
            let machine =
                Machine::from_toml(one.text, one.name).unwrap_or_else(|p| panic!("{}: {p}", one.name));
            machine.check().unwrap_or_else(|p| panic!("{}: {p}", one.name));
            assert!(!machine.about.is_empty(), "{}", one.name);
        }
        for one in super::super::shipped::models() {
            let machine =
                Machine::from_toml(one.text, one.name).unwrap_or_else(|p| panic!("{}: {p}", one.name));
            machine.check().unwrap_or_else(|p| panic!("{}: {p}", one.name));
            crate::device::new(&machine.device, 1).unwrap_or_else(|p| panic!("{}: {p}", one.name));
        }
    }
}
