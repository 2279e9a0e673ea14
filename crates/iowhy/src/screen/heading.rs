//! The target of a measurement, and the machine.

use iowhy_core::environment::{Environment, StripeFacts, TargetFacts, TargetKind};
use iowhy_core::text::visible;
use iowhy_core::units::{Bytes, counted};

/// A target in words.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its name.
    pub(crate) name: String,
    /// Kind and size.
    pub(crate) about: String,
    /// The path below it and the machine, a line each.
    pub(crate) facts: Vec<String>,
}

/// The target of a measurement on a machine.
pub(crate) fn target(facts: &TargetFacts, environment: &Environment) -> Target {
    let destroyed = facts.overwritten.is_some();
    let what = match facts.kind {
        TargetKind::Scratch => "scratch file, now removed",
        TargetKind::File if destroyed => "file, written over by this run: its data is lost",
        TargetKind::File => "file, read only",
        TargetKind::BlockDevice if destroyed => "block device, written over by this run: its data is lost",
        TargetKind::BlockDevice => "block device, read only",
        TargetKind::CharDevice => "character device",
        TargetKind::Memory => "anonymous memory",
        TargetKind::Null => "no I/O: measures the overhead of iowhy",
        TargetKind::Scripted => {
            "a scripted machine in virtual time: these are the model's numbers, not this machine's"
        }
        TargetKind::Stripe if destroyed => {
            "a stripe made by iowhy itself, written over by this run: the data of its members is lost"
        }
        TargetKind::Stripe => "a stripe made by iowhy itself",
    };
    let size = match facts.kind {
        TargetKind::CharDevice | TargetKind::Null => String::new(),
        _ => format!(", {}", Bytes(facts.size_bytes)),
    };
    let mut lines: Vec<String> = facts.stripe.iter().map(stripe).collect();
    lines.extend(machine(environment));
    if facts.kind == TargetKind::Scripted {
        // A scripted machine does not run on this one.
        lines.pop();
    }
    Target { name: visible(&facts.name).into_owned(), about: format!("{what}{size}"), facts: lines }
}

/// `3 members, interleave 64 KiB`
fn stripe(facts: &StripeFacts) -> String {
    let members = counted(facts.members.len() as u64, "member", "members");
    format!("{members}, interleave {}", Bytes(facts.interleave_bytes))
}

/// The path below the target, where there is one, and the machine, a line each.
pub(crate) fn machine(environment: &Environment) -> Vec<String> {
    let mut settings = Vec::new();
    if let Some(scheduler) = &environment.scheduler {
        settings.push(format!("scheduler {scheduler}"));
    }
    if let Some(bytes) = environment.read_ahead_bytes {
        settings.push(format!("read-ahead {}", Bytes(bytes)));
    }
    if let Some(throttle) = &environment.throttle {
        settings.push(format!("throttle {throttle}"));
    }
    let first = [path(environment), settings.join(", ")];
    let first: Vec<&String> = first.iter().filter(|s| !s.is_empty()).collect();
    let mut lines = Vec::new();
    if !first.is_empty() {
        lines.push(first.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", "));
    }
    let limit = environment
        .memory_limit_bytes
        .map(|bytes| format!(" (limited to {})", Bytes(bytes)))
        .unwrap_or_default();
    let virtualization = environment.virtualization.as_ref().map(|v| format!(", {v}")).unwrap_or_default();
    lines.push(format!(
        "Linux {}, {} x {}, {} memory{limit}{virtualization}",
        environment.kernel,
        environment.cpus,
        environment.cpu,
        Bytes(environment.memory_bytes / (1 << 20) * (1 << 20))
    ));
    lines
}

/// File system and device: `ext4 on vda (virtio_blk)`; may be empty.
fn path(environment: &Environment) -> String {
    let model = environment.device_model.as_ref().map(|m| format!(" ({m})")).unwrap_or_default();
    let device = environment.device.as_ref().map(|device| format!("on {device}{model}"));
    environment.file_system.iter().cloned().chain(device).collect::<Vec<_>>().join(" ")
}

/// What a reader must know of the path in a line: file system, device, read-ahead, throttle.
pub(crate) fn short(environment: &Environment) -> String {
    let read_ahead = environment.read_ahead_bytes.map(|bytes| format!("read-ahead {}", Bytes(bytes)));
    let throttle = environment.throttle.as_ref().map(|throttle| format!("throttle {throttle}"));
    let path = Some(path(environment)).filter(|path| !path.is_empty());
    path.into_iter().chain(read_ahead).chain(throttle).collect::<Vec<_>>().join(", ")
}
