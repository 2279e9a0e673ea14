//! This machine, and what tells another one apart.

use iowhy_core::environment::Environment;
use iowhy_core::units::Bytes;
use iowhy_probe::environment;

use crate::record::compare::Difference;

/// Memory may differ by this share on one machine: the kernel takes its part before it counts.
const SAME_MEMORY: f64 = 0.02;

/// The environment of this machine, without a path.
pub(crate) fn here() -> Environment {
    // The target `null` is on no device, so that only the facts of the machine are filled in.
    iowhy_path::targets::harness_target().map(|t| environment::environment(&t)).unwrap_or_default()
}

/// The facts that differ between two machines; none for one machine.
pub(crate) fn differences(before: &Environment, after: &Environment) -> Vec<Difference> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let (one, two) = (before.memory_bytes as f64, after.memory_bytes as f64);
    let memory = ((one - two).abs() > SAME_MEMORY * one.max(two))
        .then(|| {
            Difference::between(
                "memory",
                Bytes(before.memory_bytes).to_string(),
                Bytes(after.memory_bytes).to_string(),
                true,
            )
        })
        .flatten();
    [
        Difference::between("CPU", before.cpu.clone(), after.cpu.clone(), true),
        Difference::between("CPUs", before.cpus.to_string(), after.cpus.to_string(), true),
        memory,
        Difference::between(
            "virtual machine",
            text(&before.virtualization),
            text(&after.virtualization),
            true,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_differ_by_cpu_number_and_memory() {
        let one = Environment { cpu: "a".into(), cpus: 2, memory_bytes: 1 << 30, ..Environment::default() };
        assert_eq!(differences(&one, &one), []);
        let close = Environment { memory_bytes: (1 << 30) + (1 << 20), ..one.clone() };
        assert_eq!(differences(&one, &close), []);
        for (other, fact) in [
            (Environment { cpu: "b".into(), ..one.clone() }, "CPU"),
            (Environment { cpus: 4, ..one.clone() }, "CPUs"),
            (Environment { memory_bytes: 2 << 30, ..one.clone() }, "memory"),
            (Environment { virtualization: Some("kvm".into()), ..one.clone() }, "virtual machine"),
        ] {
            let facts: Vec<String> = differences(&one, &other).into_iter().map(|d| d.fact).collect();
            assert_eq!(facts, [fact]);
        }
    }
}
