//! A record's cells as fio's `--output-format=json+` writes jobs: totals, percentiles and the classes of completion latency.

use std::collections::BTreeMap;

use iowhy_core::units;
use serde_json::{Map, Value, json as object};

use super::bins;
use crate::record::{CellRecord, Record};

/// Percentiles that fio prints.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The whole as one object. Latencies of mixed cells were not kept apart by direction and stand under `mixed`.
pub fn json(record: &Record) -> Value {
    let jobs: Vec<Value> = record.cells.iter().map(job).collect();
    object!({
        "fio version": format!("iowhy-{}", record.iowhy),
        "iowhy": {"command": record.command, "rounds": record.rounds, "schema": record.schema},
        "jobs": jobs,
    })
}

fn job(cell: &CellRecord) -> Value {
    let direction = match cell.direction.as_str() {
        "read" => "read",
        "write" => "write",
        _ => "mixed",
    };
    let mut job = object!({
        "jobname": cell.key,
        "error": i32::from(cell.failure.is_some()),
        "job options": {"bs": cell.block_bytes.to_string(), "iodepth": cell.depth.to_string(), "numjobs": cell.threads.to_string()},
    });
    if let Some(map) = job.as_object_mut() {
        map.insert(direction.to_owned(), totals(cell));
    }
    job
}

fn totals(cell: &CellRecord) -> Value {
    let requests = units::total(cell.samples.iter().map(|s| s.requests));
    let bytes = units::total(cell.samples.iter().map(|s| s.claimed_bytes));
    let wall_ns = units::total(cell.samples.iter().map(|s| s.wall_ns));
    let per_second = |n: u64| if wall_ns > 0 { n as f64 * 1e9 / wall_ns as f64 } else { 0.0 };
    object!({
        "io_bytes": bytes,
        "bw_bytes": per_second(bytes).round(),
        "iops": per_second(requests),
        "runtime": wall_ns / 1_000_000,
        "total_ios": requests,
        "clat_ns": latencies(cell),
    })
}

fn latencies(cell: &CellRecord) -> Value {
    let histogram = &cell.latency_ns.histogram;
    let n = histogram.count();
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut squares = 0.0;
    let mean = histogram.mean_ns();
    for bucket in histogram.buckets() {
        let high = bucket.high_ns.min(histogram.max_ns());
        let middle = bucket.low_ns + high.saturating_sub(bucket.low_ns) / 2;
        let count: &mut u64 = counts.entry(bins::value(bins::index(middle))).or_default();
        *count = count.saturating_add(bucket.count);
        squares += (middle as f64 - mean).powi(2) * bucket.count as f64;
    }
    // JSON has no order of keys; fio's readers sort them.
    let classes: Map<String, Value> =
        counts.iter().map(|(ns, count)| (ns.to_string(), (*count).into())).collect();
    let mut percentile = Map::new();
    for p in PERCENTILES.iter().filter(|_| n > 0) {
        percentile.insert(format!("{p:.6}"), histogram.quantile(p / 100.0).into());
    }
    object!({
        "min": histogram.min_ns(),
        "max": histogram.max_ns(),
        "mean": mean,
        "stddev": if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 },
        "N": n,
        "percentile": percentile,
        "bins": classes,
    })
}
