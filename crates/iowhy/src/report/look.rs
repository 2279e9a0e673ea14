//! Looking into the JSON of records whose types are written only. A key that is absent is `None`, never a guess.

use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::units;
use serde_json::Value;

/// A text; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number.
pub(super) fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64().filter(|number| number.is_finite())
}

/// The entries of a list; none where there is no list.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Texts of a list.
pub(super) fn texts(value: &Value, key: &str) -> Vec<String> {
    list(value, key).iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
}

/// An estimate.
pub(super) fn estimate(value: &Value, key: &str) -> Option<Estimate> {
    serde_json::from_value(value.get(key)?.clone()).ok()
}

/// A bare figure in its unit.
pub(super) fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => units::time(value),
        Unit::BytesPerSecond => units::rate_bytes(value),
        Unit::PerSecond => units::count_rate(value),
        Unit::NanosecondsPerByte => format!("{value:.3} ns/B"),
        Unit::Ratio => format!("{value:.3}"),
    }
}

/// A value of any type on one line.
pub(super) fn any(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
