//! What differs around two records. Another machine makes times incomparable; another setting is what one compares for.

use std::path::Path;

use iowhy_core::environment::{Environment, TargetFacts};
use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;

use crate::machine;
use crate::record::Record;
use crate::record::compare::Difference;

/// All facts that differ, those that make another machine first.
pub(super) fn between(before: &Record, after: &Record) -> Vec<Difference> {
    let mut all = around(&before.environment, &after.environment);
    for (number, (one, two)) in before.targets.iter().zip(&after.targets).enumerate() {
        let name = if before.targets.len() > 1 { format!("target {}: ", number + 1) } else { String::new() };
        all.extend(target(&name, one, two));
    }
    all
}

/// What differs between two environments, what makes another machine first.
pub(super) fn around(before: &Environment, after: &Environment) -> Vec<Difference> {
    let mut all = machine::differences(before, after);
    all.extend(settings(before, after));
    all
}

/// Refuses records of two machines.
///
/// # Errors
/// A refusal that names the fact, unless forced.
pub(super) fn same_machine(
    differences: &[Difference],
    (before, after): (&Path, &Path),
    force: bool,
) -> Result<(), Problem> {
    match differences.iter().find(|d| d.other_machine).filter(|_| !force) {
        Some(other) => Err(Problem::refused(format!(
            "`{}` and `{}` are of two machines: {} {} and {}",
            before.display(),
            after.display(),
            other.fact,
            other.before,
            other.after
        ))
        .hint("measure both on one machine, or add `--force` to compare the machines themselves")),
        None => Ok(()),
    }
}

/// A fact that one of the records does not know is no difference: a run may have touched no file that tells the device.
fn settings(before: &Environment, after: &Environment) -> Vec<Difference> {
    let known = |fact: &str, get: fn(&Environment) -> Option<String>| {
        Difference::between(fact, get(before)?, get(after)?, false)
    };
    let bytes = |value: Option<u64>| value.map_or("none".to_owned(), |bytes| Bytes(bytes).to_string());
    [
        Difference::between("kernel", before.kernel.clone(), after.kernel.clone(), false),
        Difference::between(
            "memory limit",
            bytes(before.memory_limit_bytes),
            bytes(after.memory_limit_bytes),
            false,
        ),
        known("file system", |of| of.file_system.clone()),
        known("mount options", |of| of.mount_options.clone()),
        known("device", |of| of.device.clone()),
        known("device model", |of| of.device_model.clone()),
        known("members", |of| (!of.devices.is_empty()).then(|| of.devices.join(" "))),
        known("scheduler", |of| of.scheduler.clone()),
        known("read-ahead", |of| of.read_ahead_bytes.map(|bytes| Bytes(bytes).to_string())),
        known("queue requests", |of| of.queue_requests.map(|number| number.to_string())),
        // Where the device is known, no throttle is one that is not set.
        known("throttle", |of| {
            of.device.as_ref().map(|_| of.throttle.clone().unwrap_or_else(|| "none".to_owned()))
        }),
        Difference::between(
            "run as root",
            before.privileged.to_string(),
            after.privileged.to_string(),
            false,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn target(name: &str, before: &TargetFacts, after: &TargetFacts) -> Vec<Difference> {
    let kind = |facts: &TargetFacts| format!("{:?}", facts.kind);
    [
        Difference::between(&format!("{name}kind"), kind(before), kind(after), false),
        Difference::between(
            &format!("{name}size"),
            Bytes(before.size_bytes).to_string(),
            Bytes(after.size_bytes).to_string(),
            false,
        ),
        Difference::between(
            &format!("{name}in memory only"),
            before.memory_backed.to_string(),
            after.memory_backed.to_string(),
            false,
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
    fn another_cpu_is_another_machine_and_another_scheduler_is_not() {
        let before = Environment { cpu: "A".into(), memory_bytes: 1 << 34, ..Environment::default() };
        let before = Environment { scheduler: Some("mq-deadline".into()), ..before };
        let setting = Environment { scheduler: Some("none".into()), ..before.clone() };
        assert!(machine::differences(&before, &setting).is_empty());
        assert_eq!(settings(&before, &setting).len(), 1);
        let other = Environment { cpu: "B".into(), memory_bytes: (1 << 34) + 4096, ..before.clone() };
        let told = machine::differences(&before, &other);
        assert_eq!((told.len(), told[0].fact.as_str(), told[0].other_machine), (1, "CPU", true));
        assert!(between_nothing(&before));
    }

    #[test]
    fn what_one_record_does_not_know_is_no_difference_and_a_throttle_that_is_set_is() {
        let seen = Environment {
            device: Some("vda".into()),
            devices: vec!["vda".into()],
            file_system: Some("ext4".into()),
            mount_options: Some("rw".into()),
            scheduler: Some("none".into()),
            read_ahead_bytes: Some(131_072),
            queue_requests: Some(256),
            throttle: Some("10 MiB/s".into()),
            ..Environment::default()
        };
        assert_eq!(settings(&seen, &Environment::default()), []);
        let free = Environment { throttle: None, read_ahead_bytes: Some(4096), ..seen.clone() };
        let facts: Vec<String> = settings(&seen, &free).into_iter().map(|d| d.fact).collect();
        assert_eq!(facts, ["read-ahead", "throttle"]);
    }

    fn between_nothing(same: &Environment) -> bool {
        machine::differences(same, same).is_empty() && settings(same, same).is_empty()
    }
}
