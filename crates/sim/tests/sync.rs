//! A sync ends when the device has all that was written before it, also what was on its way already.

use iowhy_core::request::{Marks, Op, Request};
use iowhy_sim::laws;
use iowhy_sim::machine::{Machine, Value};
use iowhy_sim::workload::Load;

const WRITE_NS: u64 = 10_000;

/// One unit, writes of a fixed time, and write-back from so many dirty bytes on.
fn time_ns(background: &str, requests: Vec<Request>) -> u64 {
    let mut machine = Machine::default();
    for (path, value) in [
        ("device.kind", "ssd"),
        ("device.write_ns", "10000"),
        ("device.bytes", "1g"),
        ("cache.bytes", "64m"),
        ("cache.background_bytes", background),
    ] {
        machine.set(path, &Value::Text(value.to_owned())).unwrap();
    }
    let outcome = iowhy_sim::run(&machine, Load::replay(requests.into_iter()).closed(1), 1).unwrap();
    laws::check(&outcome).unwrap();
    outcome.time_ns
}

fn write(block: u64) -> Request {
    // Apart, so that each is an output of its own.
    Request { op: Op::Write, offset: block * 8192, bytes: 4096, ..Request::default() }
}

fn sync() -> Request {
    Request { op: Op::Sync, ..Request::default() }
}

/// Whether write-back has begun before the sync or begins with it, each write takes its time once.
#[test]
fn a_sync_waits_for_what_is_on_its_way() {
    for background in ["0", "32m"] {
        assert_eq!(time_ns(background, vec![write(0), sync()]), WRITE_NS, "{background}");
        let several = [write(0), write(1), write(2), write(3), sync()];
        assert_eq!(time_ns(background, several.to_vec()), 4 * WRITE_NS, "{background}");
        let pairs = (0..10).flat_map(|block| [write(block), sync()]).collect();
        assert_eq!(time_ns(background, pairs), 10 * WRITE_NS, "{background}");
    }
}

#[test]
fn a_sync_with_nothing_to_wait_for_takes_no_time() {
    assert_eq!(time_ns("0", vec![sync(), sync()]), 0);
    assert_eq!(time_ns("0", vec![write(0), sync(), sync()]), WRITE_NS);
}

/// Metadata that is waited for takes its time at once, also where data is held back; data does not.
#[test]
fn synchronous_metadata_goes_through_and_data_does_not() {
    let waited_for = |block| Request { marks: Marks::SYNC.with(Marks::METADATA), ..write(block) };
    assert_eq!(time_ns("32m", vec![waited_for(0), waited_for(1), waited_for(1)]), 3 * WRITE_NS);
    assert_eq!(time_ns("32m", vec![write(0), write(1)]), 0);
    assert_eq!(time_ns("32m", vec![waited_for(0), write(1), waited_for(2)]), 2 * WRITE_NS);
    let marked = |marks| Request { marks, ..write(0) };
    assert_eq!(time_ns("32m", vec![marked(Marks::SYNC), marked(Marks::METADATA)]), 0, "both or neither");
}
