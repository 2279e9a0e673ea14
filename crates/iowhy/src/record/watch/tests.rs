//! Known answers: what stands in the record of a profile that is known, and the laws that it keeps.

use super::*;
use crate::analyzer::{Analyzer, Explained};
use crate::record::watch::io::cache_hit_share;

fn of((profile, explained): (Profile, Explained)) -> WatchRecord {
    let invocation =
        Invocation { command: "iowhy -- x".to_owned(), subject: "x".to_owned(), ..Invocation::default() };
    record(profile, explained, &Analyzer::new(), invocation)
}

#[test]
fn layers_sum_to_the_thread_time_and_operations_to_their_own() {
    for run in [synthetic::sync_loop(), synthetic::pipeline(), synthetic::nothing()] {
        let r = of(run);
        let sum = |layers: &[LayerShare]| layers.iter().map(|l| l.busy_s + l.wait_s).sum::<f64>();
        assert!((sum(&r.layers) - r.thread_s).abs() < 1e-9);
        assert!((r.operations.iter().map(|o| o.time_s).sum::<f64>() - r.thread_s).abs() < 1e-9);
        for operation in &r.operations {
            assert!((sum(&operation.layers) - operation.time_s).abs() < 1e-9);
        }
        for thread in &r.threads {
            assert!((sum(&thread.layers) - thread.lifetime_s).abs() < 1e-9);
        }
        for layer in &r.layers {
            assert!(layer.share_low <= layer.share && layer.share <= layer.share_high, "{layer:?}");
            assert!(layer.share_low >= 0.0);
        }
        assert!(r.operations.windows(2).all(|w| w[0].time_s >= w[1].time_s));
    }
}

#[test]
fn sleeps_that_were_all_seen_are_exact_and_cpu_time_never_is() {
    let r = of(synthetic::sync_loop());
    let layer = |id| *r.layers.iter().find(|l| l.id == id).unwrap();
    let journal = layer(Layer::Journal);
    assert_eq!((journal.share_low, journal.share_high), (journal.share, journal.share));
    let device = layer(Layer::Device);
    assert!(device.share_low < device.share && device.share < device.share_high);
    // Wilson's interval of 299 of 604 samples is 0.455 to 0.535 of the CPU time.
    let cpu = r.cpu_s / r.thread_s;
    assert!((device.share_high - device.share - (0.535 - 0.495) * cpu).abs() < 0.002, "{device:?}");
    // With a quarter of the sleeps seen, they are not exact either.
    let r = of(synthetic::pipeline());
    let device = r.layers.iter().find(|l| l.id == Layer::Device).unwrap();
    assert!(device.share_low < device.share);
}

#[test]
fn calls_of_an_operation_are_counted_or_absent() {
    use iowhy_core::profile::{CallCount, CallCounts};
    let syncs = |complete| {
        let (mut profile, explained) = synthetic::sync_loop();
        let count = |name: &str, calls| CallCount { name: name.to_owned(), calls, ..CallCount::default() };
        let calls = vec![count("write", 900), count("fdatasync", 300), count("fsync", 20)];
        profile.calls = Some(CallCounts { complete, calls });
        let r = of((profile, explained));
        r.operations.iter().find(|o| o.id == "sync").unwrap().calls
    };
    assert_eq!((syncs(true), syncs(false)), (Some(320), None));
}

#[test]
fn promised_keys_are_there() {
    let json = serde_json::to_value(of(synthetic::sync_loop())).unwrap();
    for key in [
        "schema",
        "iowhy",
        "command",
        "environment",
        "warnings",
        "wall_s",
        "thread_s",
        "exit",
        "tier",
        "observer",
        "io",
        "layers",
        "operations",
        "unexplained_share",
        "findings",
        "waits",
        "devices",
        "threads",
        "call_sites",
        "limitations",
        "profile",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(json["exit"], serde_json::json!({"code": 0}));
    assert_eq!(json["tier"], "observer");
    assert_eq!(json["findings"][0]["id"], "sync-per-write");
    assert_eq!(json["environment"]["device"], "vda");
    assert_eq!(json["io"]["calls"], 3816);
    let waits = json["operations"][0]["waits"].as_array().unwrap();
    assert_eq!((waits[0]["id"].as_str(), waits.len()), (Some("data-writeback"), 3));
    let back: WatchRecord = serde_json::from_value(json).unwrap();
    assert_eq!(
        serde_json::to_value(of(synthetic::sync_loop())).unwrap(),
        serde_json::to_value(back).unwrap()
    );
    let killed = serde_json::to_value(of(synthetic::pipeline())).unwrap();
    assert_eq!(killed["exit"], serde_json::json!({"signal": 15}));
    assert!(serde_json::to_value(of(synthetic::nothing())).unwrap()["exit"].is_null());
}

#[test]
fn the_cache_share_is_known_only_where_bytes_can_be_told_apart() {
    use iowhy_core::profile::{Access, CallCounts};
    let file = |kind: &str, bytes| FileUse {
        kind: kind.to_owned(),
        reads: Access { bytes, ..Access::default() },
        ..FileUse::default()
    };
    let mut p = Profile::default();
    assert_eq!(cache_hit_share(&p), None);
    p.io.read_bytes = Some(1000);
    p.io.device_read_bytes = Some(250);
    p.files = vec![file("regular", 500), file("pipe", 500)];
    assert_eq!(cache_hit_share(&p), None, "bytes of pipes are not told apart");
    p.calls = Some(CallCounts { complete: true, ..CallCounts::default() });
    assert_eq!(cache_hit_share(&p), Some(0.5));
    p.io.device_read_bytes = Some(4000);
    assert_eq!(cache_hit_share(&p), Some(0.0), "read-ahead fetched more than was read");
    p.files[0].mapped = true;
    assert_eq!(cache_hit_share(&p), None);
    p.io.device_read_bytes = Some(0);
    assert_eq!(cache_hit_share(&p), Some(1.0));
    p.files.remove(0);
    assert_eq!(cache_hit_share(&p), None, "a pipe is not cached");
}
