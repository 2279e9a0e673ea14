//! The record of a watched program, and whether it is one that can be replayed here.

use std::path::Path;

use iowhy_core::environment::Environment;
use iowhy_core::problem::Problem;
use iowhy_core::units::Bytes;
use iowhy_core::warning::Warning;
use iowhy_probe::environment;

use crate::command::load;
use crate::record::Kind;
use crate::record::watch::WatchRecord;

const HINT: &str = "make a record with `iowhy --json RECORD -- CMD`";

/// Memory differs by less from start to start of one machine.
const SAME_MEMORY: f64 = 0.02;

/// Reads a record and holds its machine against this one.
///
/// # Errors
/// The file cannot be read, is cut off, is no record or one of another command, of a later format, or of another machine
/// (unless forced).
pub(super) fn record(path: &Path, force: bool) -> Result<(WatchRecord, Vec<Warning>), Problem> {
    let name = path.display();
    let (kind, value) = load::any(path, HINT)?;
    if kind != Kind::WatchedProgram {
        return Err(Problem::refused(format!(
            "`{name}` is a record of another command: it holds no watched program"
        ))
        .hint(HINT));
    }
    let record: WatchRecord = serde_json::from_value(value).map_err(|error| load::damaged(path, &error))?;
    let here =
        iowhy_path::targets::harness_target().map(|t| environment::environment(&t)).unwrap_or_default();
    let mut warnings = Vec::new();
    if let Some(difference) = other_machine(&record.environment, &here) {
        let message = format!("`{name}` is of another machine: {difference}");
        if !force {
            return Err(Problem::refused(message)
                .hint("prove it there, or add `--force` to learn what the repair would gain on this one"));
        }
        warnings.push(Warning::new("other-machine", message));
    }
    if record.environment.kernel != here.kernel {
        let message =
            format!("`{name}` was made with Linux {}; this is {}", record.environment.kernel, here.kernel);
        warnings.push(Warning::new("other-kernel", message));
    }
    Ok((record, warnings))
}

/// What tells two machines apart, in words.
fn other_machine(then: &Environment, here: &Environment) -> Option<String> {
    let memory = (then.memory_bytes as f64 / here.memory_bytes.max(1) as f64 - 1.0).abs();
    if then.cpu != here.cpu {
        Some(format!("its CPU is `{}`, here it is `{}`", then.cpu, here.cpu))
    } else if then.cpus != here.cpus {
        Some(format!("it has {} CPUs, here are {}", then.cpus, here.cpus))
    } else if memory > SAME_MEMORY {
        Some(format!("its memory is {}, here it is {}", Bytes(then.memory_bytes), Bytes(here.memory_bytes)))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart_by_cpu_number_and_memory() {
        let one = Environment { cpu: "a".into(), cpus: 2, memory_bytes: 1 << 30, ..Environment::default() };
        assert_eq!(other_machine(&one, &one), None);
        let close = Environment { memory_bytes: (1 << 30) + (1 << 20), ..one.clone() };
        assert_eq!(other_machine(&one, &close), None);
        for (other, word) in [
            (Environment { cpu: "b".into(), ..one.clone() }, "CPU is"),
            (Environment { cpus: 4, ..one.clone() }, "CPUs"),
            (Environment { memory_bytes: 2 << 30, ..one.clone() }, "memory"),
        ] {
            assert!(other_machine(&one, &other).unwrap().contains(word));
        }
    }
}
