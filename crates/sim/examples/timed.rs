//! Speed of the timed stack, in requests of simulated load a second of time on one CPU. `timed [ROUNDS [CASE]]`, cases from 1.

#[path = "common/on_cpu.rs"]
mod on_cpu;

use iowhy_sim::machine::{Machine, Value};
use iowhy_sim::workload::Workload;

/// Name, machine, settings, load.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const RAW_DISKS: &[(&str, &str)] = &[("layout.kind", "raw"), ("cache.bytes", "0")];

const CASES: &[Case] = &[
    (
        "cache, stripe, four SSDs; half of the blocks missing",
        "four-ssd",
        &[],
        "readers=64,requests=30000,size=128m,pattern=random",
    ),
    (
        "cache, stripe, four SSDs; zipf 1.0 over 1 GiB",
        "four-ssd",
        &[],
        "readers=64,requests=30000,size=1g,pattern=zipf:1.0",
    ),
    (
        "cache, stripe, four SSDs; nearly all missing",
        "four-ssd",
        &[],
        "readers=64,requests=30000,size=1g,pattern=random",
    ),
    (
        "stripe of three rotating disks, C-LOOK",
        "netbsd-1999",
        RAW_DISKS,
        "readers=32,requests=30000,size=1g,pattern=random,method=direct",
    ),
    ("news of 1999: FFS, cache, three rotating disks", "netbsd-1999", &[], "news-1999"),
];

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5).max(1);
    let only: Option<usize> = std::env::args().nth(2).and_then(|n| n.parse().ok());
    let cases = CASES.iter().enumerate().filter(|(index, _)| only.is_none_or(|only| only == index + 1));
    for (_, (name, machine, settings, load)) in cases {
        let Some(mut machine) = Machine::shipped(machine) else {
            eprintln!("no machine for: {name}");
            std::process::exit(1);
        };
        let mut rates: Vec<f64> = (0..rounds)
            .map(|round| {
                let set =
                    settings.iter().try_for_each(|(k, v)| machine.set(k, &Value::Text((*v).to_owned())));
                let run = set.and_then(|()| {
                    let load = Workload::parse(load)?.load(round as u64);
                    let (seconds, outcome) = on_cpu::timed(|| iowhy_sim::run(&machine, load, round as u64));
                    Ok(outcome?.requests as f64 / seconds)
                });
                run.unwrap_or_else(|problem| {
                    eprintln!("{name}: {problem}");
                    std::process::exit(1)
                })
            })
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        let million = |rate: f64| rate / 1e6;
        println!(
            "{name}: {:.2} M requests/s on a CPU [{:.2}, {:.2}], n = {rounds}",
            million(rates[rounds / 2]),
            million(rates[0]),
            million(rates[rounds - 1])
        );
    }
}
