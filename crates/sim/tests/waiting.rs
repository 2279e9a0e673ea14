//! What a request waits for and what it looks up, in counts and in whole nanoseconds.

use iowhy_core::request::{Op, Request};
use iowhy_sim::laws;
use iowhy_sim::ledger::Part;
use iowhy_sim::machine::{Machine, Value};
use iowhy_sim::outcome::Outcome;
use iowhy_sim::workload::{Load, Method};

const READ_NS: u64 = 80_000;

fn machine(settings: &[(&str, &str)]) -> Machine {
    let mut machine = Machine::default();
    let base =
        [("device.kind", "ssd"), ("device.read_ns", "80000"), ("device.bytes", "4g"), ("device.units", "8")];
    for (path, value) in base.iter().chain(settings) {
        machine.set(path, &Value::Text((*value).to_owned())).unwrap();
    }
    machine
}

fn run(machine: &Machine, requests: &[Request], method: Method) -> Outcome {
    let mut load = Load::replay(requests.iter().copied());
    load.method = method;
    let outcome = iowhy_sim::run(machine, load, 1).unwrap();
    laws::check(&outcome).unwrap();
    outcome
}

/// The second request finds its block on its way, and its own CPU time lasts longer than that: it goes on once, when that
/// time is over, and waited for nothing.
#[test]
fn what_comes_while_cpu_time_is_due_wakes_nobody_twice() {
    let settings = [("cache.bytes", "1m"), ("scheduler.depth", "8"), ("lookup.per_page_ns", "90000")];
    let requests = [0, 100_000].map(|time_ns| Request { time_ns, bytes: 4096, ..Request::default() });
    let outcome = run(&machine(&settings), &requests, Method::Read);
    let slowest = outcome.slowest.unwrap();
    assert_eq!(outcome.requests, 2);
    // The first pays for its look-up and then reads, until 170000; the second pays until 190000.
    assert_eq!((slowest.latency_ns(), slowest.parts.get(Part::Media)), (90_000 + READ_NS, READ_NS));
    assert_eq!((outcome.ledger.get(Part::Cache), outcome.ledger.get(Part::Media)), (180_000, READ_NS));
    assert_eq!((outcome.time_ns, outcome.latency_sum_ns), (190_000, 260_000));
}

/// However small the largest input is, a block is looked up once.
#[test]
fn a_request_is_looked_up_in_whole_blocks() {
    for io_bytes in ["1", "100", "512", "700"] {
        let machine =
            machine(&[("cache.bytes", "64k"), ("cache.block_bytes", "512"), ("cache.io_bytes", io_bytes)]);
        for op in [Op::Read, Op::Write] {
            let request = Request { bytes: 1 << 20, op, ..Request::default() };
            let cache = run(&machine, &[request], Method::Read).cache.unwrap();
            assert_eq!((cache.lookups, cache.hits), (2048, 0), "{op:?} {io_bytes}");
        }
    }
    // A fault brings in a page at least.
    let machine = machine(&[("cache.bytes", "64k"), ("mapping.fault_bytes", "1")]);
    let request = Request { bytes: 1 << 20, ..Request::default() };
    assert_eq!(run(&machine, &[request], Method::Mapped).cache.unwrap().lookups, 256);
}

/// Two readers of the same large range: the second waits for every input of the first, each met once.
#[test]
fn inputs_that_are_on_their_way_are_waited_for_once_each() {
    let settings = [
        ("cache.bytes", "64m"),
        ("cache.block_bytes", "512"),
        ("cache.io_bytes", "1k"),
        ("mapping.fault_bytes", "4m"),
    ];
    let requests = [0, 1].map(|time_ns| Request { time_ns, bytes: 4 << 20, ..Request::default() });
    let outcome = run(&machine(&settings), &requests, Method::Mapped);
    let cache = outcome.cache.unwrap();
    assert_eq!((cache.lookups, cache.fetched, cache.coming), (2 * 8192, 8192, 8192));
    assert_eq!(outcome.devices[0].done, 4096);
}
