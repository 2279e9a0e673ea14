//! Any machine and any workload: either refused with words, or run within the laws. Never a panic.

use iowhy_core::request::{Marks, Op, Request};
use iowhy_sim::laws;
use iowhy_sim::machine::{KEYS, Machine, Value};
use iowhy_sim::sweep::machine_at;
use iowhy_sim::workload::{Load, Workload};
use proptest::prelude::*;

/// A key and a value that is possible, and sometimes not.
fn setting() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop::sample::select(vec![
        ("cpu.count", "1"),
        ("cpu.count", "3"),
        ("call.per_call_ns", "700"),
        ("copy.per_byte_ns", "0.3"),
        ("lookup.per_page_ns", "20"),
        ("insert.per_page_ns", "90"),
        ("block.per_call_ns", "3000"),
        ("mapping.per_page_ns", "250"),
        ("cache.bytes", "0"),
        ("cache.bytes", "4k"),
        ("cache.bytes", "40k"),
        ("cache.bytes", "1m"),
        ("cache.bytes", "unlimited"),
        ("cache.block_bytes", "512"),
        ("cache.block_bytes", "8k"),
        ("cache.policy", "s3fifo"),
        ("cache.policy", "arc"),
        ("cache.policy", "clock"),
        ("cache.io_bytes", "1k"),
        ("cache.io_bytes", "1"),
        ("cache.write", "through"),
        ("cache.background_bytes", "64k"),
        ("cache.dirty_bytes", "1"),
        ("cache.dirty_bytes", "100k"),
        ("pool.buffers", "5"),
        ("readahead.kind", "linux"),
        ("readahead.kind", "bsd"),
        ("readahead.kind", "fixed"),
        ("readahead.kind", "driver"),
        ("readahead.bytes", "0"),
        ("readahead.bytes", "1m"),
        ("layout.kind", "ffs"),
        ("layout.kind", "extent"),
        ("layout.group_sectors", "2048"),
        ("layout.group_sectors", "19968"),
        ("volume.kind", "stripe"),
        ("volume.kind", "mirror"),
        ("volume.kind", "concat"),
        ("volume.interleave", "0"),
        ("volume.interleave", "1"),
        ("volume.interleave", "126"),
        ("volume.interleave", "18446744073709551615"),
        ("volume.merge", "yes"),
        ("scheduler.order", "clook"),
        ("scheduler.order", "deadline"),
        ("scheduler.depth", "8"),
        ("bus.bytes_per_second", "1m"),
        ("bus.command_ns", "1ms"),
        ("device.model", "st32171w"),
        ("device.model", "st225"),
        ("device.model", "nvme-tlc"),
        ("device.model", "gp3"),
        ("device.kind", "null"),
        ("device.kind", "ssd"),
        ("device.count", "3"),
        ("device.count", "0"),
        ("device.bytes", "1m"),
        ("device.bytes", "512"),
        ("device.units", "0"),
        ("device.units", "7"),
        ("device.iops", "1000"),
        ("device.iops", "0.000001"),
        ("device.iops", "0.0003"),
        ("device.spread", "exponential"),
        ("device.read_ns", "18446744073709551615"),
        ("device.heads", "0"),
        ("device.rpm", "0"),
        ("device.rpm", "1"),
        ("device.sector_interleave", "3"),
        ("device.seek_c_ms", "1000000000000000"),
        ("device.buffer_segments", "2"),
        ("device.buffer_sectors", "18446744073709551615"),
    ])
}

fn workload() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "readers=3,requests=60,bytes=5000,size=300k,pattern=random",
        "readers=3,requests=60,bytes=5000,size=300k,pattern=random,write=50",
        "readers=2,requests=40,bytes=512,size=64k,write=100",
        "readers=2,requests=20,bytes=100k,size=1m,own=yes",
        "readers=3,requests=30,bytes=5000,size=300k,method=mlock",
        "readers=3,requests=30,bytes=5000,size=300k,method=mapped,warm=yes",
        "readers=3,requests=30,bytes=5000,size=300k,method=direct,write=30,think=1ms",
        "readers=4,requests=30,bytes=4k,size=300k,lockstep=yes,pattern=zipf:1.0",
        "readers=2,requests=50,bytes=4k,size=300k,rate=100",
        "readers=2,requests=50,bytes=4k,size=300k,rate=100000,method=mlock",
        "readers=3,files=20,sizes=930:3030:6102,dirs=5,population=100",
        "readers=1,files=3,sizes=100k,dirs=1,population=5,warm=yes",
    ])
}

fn request() -> impl Strategy<Value = Request> {
    let size = prop_oneof![0u64..100_000, Just(u64::MAX), Just(1 << 21)];
    let place = prop_oneof![0u64..1_000_000, any::<u64>()];
    (0usize..Op::ALL.len(), 0u64..4, place, size, prop_oneof![0u64..1_000_000_000, any::<u64>()]).prop_map(
        |(op, object, offset, bytes, time_ns)| Request {
            time_ns,
            object,
            offset,
            bytes,
            op: Op::ALL[op],
            marks: Marks::default(),
            ..Request::default()
        },
    )
}

fn machine(settings: &[(&'static str, &'static str)]) -> Option<Machine> {
    let mut base = Machine::default();
    base.set("device.model", &Value::Text("nvme-tlc".to_owned())).unwrap();
    let settings: Vec<(String, Value)> =
        settings.iter().map(|(path, value)| ((*path).to_owned(), Value::Text((*value).to_owned()))).collect();
    match machine_at(&base, &settings) {
        Ok(machine) => Some(machine),
        Err(problem) => {
            assert!(!problem.message.is_empty());
            None
        }
    }
}

/// Bytes of a random request at the most.
const LARGEST_BYTES: u64 = 1 << 20;

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn any_machine_and_workload(settings in prop::collection::vec(setting(), 0..7), load in workload(), seed: u64) {
        let Some(machine) = machine(&settings) else { return Ok(()) };
        let workload = Workload::parse(load).unwrap();
        match iowhy_sim::run(&machine, workload.load(seed), seed) {
            Ok(outcome) => {
                prop_assert_eq!(laws::check(&outcome), Ok(()));
                prop_assert_eq!(outcome.requests, workload.requests());
                let again = iowhy_sim::run(&machine, workload.load(seed), seed).unwrap();
                prop_assert_eq!((outcome.time_ns, outcome.ledger), (again.time_ns, again.ledger));
            }
            Err(problem) => prop_assert!(problem.hint.is_some(), "{problem}"),
        }
    }

    #[test]
    fn any_machine_and_trace(
        settings in prop::collection::vec(setting(), 0..6),
        requests in prop::collection::vec(request(), 0..40),
        clients in prop::option::of(1u32..5),
    ) {
        let Some(machine) = machine(&settings) else { return Ok(()) };
        // A request of 1 GiB is 2 million blocks of 512 bytes: forty of them in each case would take hours.
        let requests: Vec<_> =
            requests.into_iter().map(|r| Request { bytes: r.bytes.min(LARGEST_BYTES), ..r }).collect();
        let count = requests.len() as u64;
        let mut load = Load::replay(requests.into_iter());
        if let Some(clients) = clients {
            load = load.closed(clients);
        }
        match iowhy_sim::run(&machine, load, 1) {
            Ok(outcome) => {
                prop_assert_eq!(laws::check(&outcome), Ok(()));
                prop_assert_eq!(outcome.requests, count);
            }
            Err(problem) => prop_assert!(problem.hint.is_some(), "{problem}"),
        }
    }

    #[test]
    fn any_text_is_a_machine_or_refused(text in "(\\[[a-z.]{0,9}\\]\n)?([a-z_.]{1,12} ?= ?[-0-9a-z.\"\\[\\]]{0,9}\n){0,4}") {
        match Machine::from_toml(&text, "x.toml") {
            Ok(_) => {}
            Err(problem) => prop_assert!(problem.message.contains("x.toml") && problem.hint.is_some(), "{problem}"),
        }
    }

    #[test]
    fn any_value_of_any_key(index in 0..KEYS.len(), value in prop_oneof![
        any::<u64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Float),
        "[a-z0-9.-]{0,12}".prop_map(Value::Text),
        any::<bool>().prop_map(Value::Flag),
        prop::collection::vec(prop::collection::vec(any::<f64>(), 0..5), 0..3).prop_map(Value::Rows),
    ]) {
        let mut machine = Machine::shipped("netbsd-1999").unwrap();
        if machine.set(KEYS[index].path, &value).is_ok() {
            let load = Workload::parse("readers=2,files=2,sizes=930:3030,dirs=2,population=20").unwrap();
            match iowhy_sim::run(&machine, load.load(1), 1) {
                Ok(outcome) => prop_assert_eq!(laws::check(&outcome), Ok(())),
                Err(problem) => prop_assert!(problem.hint.is_some(), "{problem}"),
            }
        }
    }
}

/// Found by `any_machine_and_workload`: sums of waiting times overflowed 64 bits.
#[test]
fn a_device_that_takes_days_for_a_request_is_refused() {
    let settings = [("device.iops", "0.000001"), ("volume.kind", "stripe"), ("volume.interleave", "1")];
    let machine = machine(&settings).unwrap();
    for load in [
        "readers=3,requests=60,bytes=5000,size=300k,pattern=random",
        "readers=2,requests=20,bytes=100k,size=1m,own=yes",
        "readers=2,requests=50,bytes=4k,size=300k,rate=100",
    ] {
        let problem = iowhy_sim::run(&machine, Workload::parse(load).unwrap().load(1), 1).unwrap_err();
        assert!(problem.message.contains("`device.iops` is 0.000001"), "{problem}");
    }
}

/// Each request is within bounds, and their waiting times add up to more than 64 bits hold.
#[test]
fn sums_beyond_the_clock_are_refused_and_not_wrong() {
    let machine = machine(&[("device.iops", "0.0003")]).unwrap();
    let run = |requests: u32| {
        let load = format!("readers=1,requests={requests},bytes=4k,size=300k,rate=100000,method=direct");
        iowhy_sim::run(&machine, Workload::parse(&load).unwrap().load(1), 1)
    };
    let few = run(100).unwrap();
    assert_eq!((laws::check(&few), few.requests), (Ok(()), 100));
    // 4000 requests wait 3333 s each for every one before them: 8 million times 3333 s.
    let problem = run(4000).unwrap_err();
    assert!(problem.message.contains("add up to more than 150 years"), "{problem}");
}

/// Without a fixed seed a fresh clone may fail by luck; `cargo xtask nightly` draws fresh ones.
#[test]
fn property_tests_have_a_seed() {
    let fixed = !matches!(ProptestConfig::default().rng_seed, proptest::test_runner::RngSeed::Random);
    // A test program that was started without cargo has no seed: its cases are random by choice.
    assert!(
        fixed || std::env::var_os("CARGO").is_none(),
        "PROPTEST_RNG_SEED is not set by .cargo/config.toml"
    );
}

#[test]
fn impossible_machines_are_refused_by_name() {
    for (settings, word) in [
        (&[("volume.kind", "stripe"), ("volume.interleave", "0")][..], "`volume.interleave` is 0"),
        (&[("cache.bytes", "1k")], "smaller than one block"),
        (&[("device.count", "0"), ("volume.kind", "stripe")], "no device"),
        (&[("device.kind", "missing")], "`missing`"),
        (&[("device.count", "2")], "`volume.kind` is `single`"),
        (&[("scheduler.depth", "0")], "`scheduler.depth`"),
        (&[("pool.buffers", "5")], "no cache"),
        (&[("device.model", "st225"), ("device.zones", "")], "zones"),
        (&[("device.bytes", "512"), ("cache.bytes", "4k")], "less than one block"),
    ] {
        let mut machine = Machine::default();
        machine.set("device.model", &Value::Text("nvme-tlc".to_owned())).unwrap();
        let mut refusal = None;
        for (path, value) in settings {
            refusal = refusal.or(machine.set(path, &Value::Text((*value).to_owned())).err());
        }
        let load = Workload::parse("requests=1,bytes=512,size=512").unwrap().load(1);
        let refusal = refusal.or_else(|| iowhy_sim::run(&machine, load, 1).err());
        let problem = refusal.unwrap_or_else(|| panic!("{settings:?} was taken"));
        assert!(problem.message.contains(word), "{problem}");
        assert!(problem.hint.is_some() && problem.exit_code() == 2);
    }
}
