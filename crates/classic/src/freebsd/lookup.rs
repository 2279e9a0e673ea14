//! Look-up structures: what the post's splay trees cost then, and what a splay tree, a hash table and a radix tree cost here.

use crate::published::Experiment;
use iowhy_core::estimate::{Estimate, Unit};
use iowhy_core::stats;
use iowhy_core::units;
use iowhy_probe::interrupt;
use iowhy_probe::lookup::{self, Structure};

use crate::lab::Lab;
use crate::report::{Report, Row};

/// What is looked up in the 400 MB of the post: the function that did it, what its keys are, and how many.
const TABLES: [(&str, &str, u64); 2] =
    [("buf_splay", "buffers of 16 KiB", 400 * 64), ("vm_page_splay", "pages of 4 KiB", 400 * 256)];
/// Rounds of 20000 look-ups.
const ROUNDS: usize = 11;

/// Times the structures.
pub(super) fn fill(lab: &Lab<'_>, record: &mut Report, experiment: &Experiment) {
    record.section("lookup", "To find one of the buffers or pages of 400 MB, in memory", "structure");
    let mut random_order: Vec<(Structure, Estimate)> = Vec::new();
    for (function, keys, count) in TABLES {
        for structure in Structure::ALL {
            for order in ["sequential", "random"] {
                if interrupt::requested() {
                    return;
                }
                lab.world.at(1.0, std::time::Duration::from_secs(1), "look-up structures");
                let times = lookup::measure(structure, count, order == "sequential", ROUNDS, lab.seed);
                let now = stats::bootstrap_median(&times, lab.seed, Unit::Nanoseconds);
                if let (Some(now), true) = (now, order == "random" && count == TABLES[0].2) {
                    random_order.push((structure, now));
                }
                let then =
                    (structure == Structure::Splay).then(|| published(experiment, order, function)).flatten();
                let label = format!("{}, {keys}, {order}", structure.id());
                record.row(
                    Row::new("lookup", label, "time of a look-up", Unit::Nanoseconds)
                        .key("structure", structure.id())
                        .key("keys", count)
                        .key("order", order)
                        .then(then)
                        .now(now)
                        .changed(),
                );
            }
        }
    }
    record.say(
        "published: buf_splay and vm_page_splay of the 4K profiles, a call. measured: small structures of our own, every node in a cache \
         line of its own at a random address. The post on hashing alone: 40 ns for a string of 16 bytes; on gbincore at its \
         best: 501 ns.",
    );
    let cost = |wanted: Structure| random_order.iter().find(|(s, _)| *s == wanted).map(|(_, e)| e);
    if let (Some(splay), Some(hash), Some(radix)) =
        (cost(Structure::Splay), cost(Structure::Hash), cost(Structure::Radix))
    {
        record.verdicts.push(format!(
            "Looking up one of 25600 buffers in random order: splay tree {}, hash table {}, radix tree {}.",
            units::estimate(splay),
            units::estimate(hash),
            units::estimate(radix)
        ));
    }
}

/// Time of a call in the 4K profile of an order.
fn published(experiment: &Experiment, order: &str, function: &str) -> Option<f64> {
    let table = experiment.table(&format!("profile-4k-{order}"))?;
    table.figure(table.row_of("function", function)?, "self-per-call")
}
