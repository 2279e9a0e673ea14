//! Conservation laws that every record obeys, whatever was measured: bytes, requests, layers, intervals.
//!
//! Called on each JSON that a test reads, so that a law broken in one corner is seen from all of them.

use serde_json::Value;

/// The cells of a record.
pub(crate) fn cells(record: &Value) -> &Vec<Value> {
    record["cells"].as_array().expect("cells[]")
}

/// The cell with this key.
pub(crate) fn cell<'a>(record: &'a Value, key: &str) -> &'a Value {
    cells(record).iter().find(|cell| cell["key"] == key).unwrap_or_else(|| panic!("no cell {key}"))
}

/// The only cell.
pub(crate) fn only_cell(record: &Value) -> &Value {
    match cells(record).as_slice() {
        [one] => one,
        many => panic!("{} cells instead of one", many.len()),
    }
}

/// A whole number.
pub(crate) fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// Any number.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A word or sentence.
pub(crate) fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no string"))
}

/// Whether two numbers are one but for rounding.
pub(crate) fn same(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs()).max(1e-9)
}

/// Asserts every law on every cell.
pub(crate) fn holds_together(record: &Value) {
    estimates(record, "record");
    for cell in cells(record) {
        requests_and_bytes(cell);
        layers(cell);
        verdict(cell);
    }
}

/// Totals are the sums of the raw rounds, and the histogram holds every request.
fn requests_and_bytes(cell: &Value) {
    let key = &cell["key"];
    let samples = cell["samples"].as_array().expect("samples[]");
    let sum = |name: &str| -> u64 { samples.iter().map(|s| whole(&s[name])).sum() };
    let requests = sum("requests");
    assert_eq!(whole(&cell["claimed_bytes"]), sum("claimed_bytes"), "{key}");
    if moves_whole_blocks(cell) {
        assert_eq!(sum("claimed_bytes"), requests * whole(&cell["block_bytes"]), "{key}");
    }
    let histogram = &cell["latency_ns"]["histogram"];
    assert_eq!(whole(&histogram["count"]), requests, "{key}");
    assert_eq!(whole(&cell["latency_ns"]["n"]), requests, "{key}");
    let in_buckets: u64 = histogram["buckets"].as_array().unwrap().iter().map(|b| whole(&b[1])).sum();
    assert_eq!(in_buckets, requests, "{key}");
    let known = samples.iter().filter(|s| !s["device_bytes"].is_null());
    if known.clone().count() > 0 {
        let device: u64 = known.map(|s| whole(&s["device_bytes"])).sum();
        assert_eq!(whole(&cell["device_bytes"]), device, "{key}");
    }
    for sample in samples {
        assert!(whole(&sample["first_done_ns"]) <= whole(&sample["wall_ns"]), "{key}");
        assert!(whole(&sample["cpu_user_ns"]) <= whole(&sample["cpu_ns"]), "{key}");
    }
}

/// A null device answers nothing, the cheapest calls move nothing, and requests from a list have sizes of their own.
fn moves_whole_blocks(cell: &Value) -> bool {
    cell["pattern"] != "listed"
        && !matches!(words(&cell["method"]), "syscall" | "pread-end" | "null")
        && !words(&cell["target"]).ends_with("/dev/null")
        && cell["key"] != "dev-null"
}

/// A ledger sums to the time per request.
fn layers(cell: &Value) {
    let Some(layers) = cell["layers"].as_array() else { return };
    let total: f64 = layers.iter().map(|l| number(&l["busy_ns"]) + number(&l["wait_ns"])).sum();
    let whole = number(&cell["time_per_request"]["value"]);
    assert!(same(total, whole, 1e-6), "{}: layers sum to {total}, a request takes {whole}", cell["key"]);
    // Each has its interval, over the rounds of the cell.
    let estimates = cell["layer_estimates"].as_array().expect("layer_estimates[]");
    assert_eq!(estimates.len(), layers.len(), "{}", cell["key"]);
    let rounds = cell["samples"].as_array().unwrap().iter().filter(|s| s["requests"] != 0).count();
    for (layer, estimate) in layers.iter().zip(estimates) {
        assert_eq!(layer["id"], estimate["id"]);
        for (part, value) in [("busy", "busy_ns"), ("wait", "wait_ns")] {
            assert!(
                same(number(&estimate[part]["value"]), number(&layer[value]), 1e-9),
                "{estimate} {layer}"
            );
        }
        assert_eq!(estimate["time"]["n"], rounds, "{estimate}");
    }
}

/// Verdict, failure and the check of the state tell one story.
fn verdict(cell: &Value) {
    let (key, verdict) = (&cell["key"], words(&cell["verdict"]));
    assert!(
        ["ok", "mislabelled", "inconclusive", "not-run", "failed"].contains(&verdict),
        "{key}: {verdict}"
    );
    if cell.get("failure").is_some() {
        assert_eq!(verdict, "failed", "{key}");
    }
    let result = words(&cell["state_check"]["result"]);
    assert_eq!(cell["state_verified"].as_bool(), Some(result == "verified"), "{key}");
    if result == "violated" {
        assert_ne!(verdict, "ok", "{key}");
    }
}

/// Every estimate, wherever it stands, has its interval around it, a unit and a count.
fn estimates(value: &Value, place: &str) {
    match value {
        Value::Object(map) if map.contains_key("low") && map.contains_key("n") => {
            let (low, high) = (number(&map["low"]), number(&map["high"]));
            let middle = number(&map["value"]);
            assert!(low <= middle && middle <= high, "{place}: {value}");
            assert!(!words(&map["unit"]).is_empty() && whole(&map["n"]) > 0, "{place}: {value}");
            assert_eq!(map.len(), 5, "{place}: {value}");
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, inner)| estimates(inner, &format!("{place}.{key}")));
        }
        Value::Array(list) => list.iter().for_each(|inner| estimates(inner, place)),
        _ => {}
    }
}
