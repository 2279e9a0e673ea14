//! Warnings that follow from what a target is, before anything was timed: each says the cause, the consequence for
//! the numbers, and the next command. Pure functions; finding the facts out is the probe's work.

use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::units::{Bytes, typed_size};
use iowhy_core::warning::Warning;

/// Shares of the file below this are not worth a warning.
const WORTH_SAYING: f64 = 0.01;

/// What a reader must know about a target. `memory_bytes` is the memory that the page cache can have: physical
/// memory, or the control group's limit when that is less.
pub fn facts_warnings(facts: &TargetFacts, memory_bytes: u64) -> Vec<Warning> {
    if matches!(facts.kind, TargetKind::Null | TargetKind::Scripted | TargetKind::CharDevice) {
        return Vec::new();
    }
    let rules = [unwritten, holes, shared, encoded, memory_backed, no_direct, cache_hidden];
    let mut warnings: Vec<Warning> = rules.iter().filter_map(|rule| rule(facts)).collect();
    warnings.extend(larger_than_memory(facts, memory_bytes));
    warnings.extend([uneven_members(facts), shared_devices(facts)].into_iter().flatten());
    warnings
}

/// Members of a stripe in user space that are longer than the shortest.
fn uneven_members(facts: &TargetFacts) -> Option<Warning> {
    let stripe = facts.stripe.as_ref()?;
    let sizes = || stripe.members.iter().map(|member| member.size_bytes);
    let (least, most) = (sizes().min()?, sizes().max()?);
    if least == most {
        return None;
    }
    let left: u64 = sizes().map(|bytes| bytes.saturating_sub(stripe.member_bytes)).sum();
    let message = format!(
        "the members of `{}` hold {} to {}: {} of each are used, whole turns of the smallest, and {} in all are not",
        facts.name,
        Bytes(least),
        Bytes(most),
        Bytes(stripe.member_bytes),
        Bytes(left)
    );
    Some(Warning::new("uneven-members", message))
}

/// Members of a stripe in user space on the same device: they cannot work side by side.
fn shared_devices(facts: &TargetFacts) -> Option<Warning> {
    let members = &facts.stripe.as_ref()?.members;
    let twice = members.iter().enumerate().find_map(|(index, member)| {
        let own = member
            .devices
            .iter()
            .find(|device| members[..index].iter().any(|before| before.devices.contains(device)))?;
        Some((own, member))
    });
    let (device, member) = twice?;
    let message = format!(
        "member `{}` of `{}` and one before it stand on the same device ({device}): they share its speed, so that the \
         stripe shows what splitting costs and not what more devices bring",
        member.name, facts.name
    );
    Some(Warning::new("members-share-device", message).next("name members on devices of their own"))
}

/// `63 % of NAME`, when the part is known and worth saying.
fn part(facts: &TargetFacts, bytes: Option<u64>) -> Option<String> {
    let share = bytes? as f64 / facts.size_bytes.max(1) as f64;
    (share >= WORTH_SAYING).then(|| format!("{:.0} % of `{}`", share * 100.0, facts.name))
}

fn unwritten(facts: &TargetFacts) -> Option<Warning> {
    let part = part(facts, facts.unwritten_bytes)?;
    let message = format!(
        "{part} is allocated but was never written: a direct or cold read of it never reaches the device, so its \
         speed is not the device's"
    );
    Some(
        Warning::new("unwritten-extents", message)
            .next("measure a file with data in it, or a directory: `iowhy DIR`"),
    )
}

fn holes(facts: &TargetFacts) -> Option<Warning> {
    let part = part(facts, facts.hole_bytes)?;
    let message = format!(
        "{part} is holes: a direct or cold read of them never reaches the device, so its speed is not the device's"
    );
    Some(Warning::new("holes", message).next("measure a file with data in it, or a directory: `iowhy DIR`"))
}

fn shared(facts: &TargetFacts) -> Option<Warning> {
    let part = part(facts, facts.shared_bytes)?;
    let message = format!(
        "{part} is shared with other files (reflinks or snapshots): another file's use can move or warm the same \
         blocks, and a write copies them first"
    );
    Some(
        Warning::new("shared-extents", message)
            .next("measure a scratch file in the same directory: `iowhy DIR`"),
    )
}

fn encoded(facts: &TargetFacts) -> Option<Warning> {
    let part = part(facts, facts.encoded_bytes)?;
    let message = format!(
        "{part} is stored compressed or encrypted: the device moves other bytes than are read, and decoding them \
         costs CPU time that counts as file system"
    );
    Some(
        Warning::new("encoded-extents", message)
            .next("compare with incompressible data in the same directory: `iowhy DIR`"),
    )
}

fn memory_backed(facts: &TargetFacts) -> Option<Warning> {
    // Who asks for memory knows that it is no device.
    if !facts.memory_backed || facts.kind == TargetKind::Memory {
        return None;
    }
    let direct = match facts.direct_supported {
        Some(true) => "O_DIRECT is accepted here, but it is not a device",
        _ => "there is no device to measure",
    };
    let message = format!("`{}` lives in memory (tmpfs or ramfs): {direct}; `cold` cannot exist", facts.name);
    Some(Warning::new("memory-backed", message).next("name a directory on a disk, such as `iowhy /var/tmp`"))
}

fn no_direct(facts: &TargetFacts) -> Option<Warning> {
    if facts.direct_supported != Some(false) || facts.memory_backed {
        return None;
    }
    if let (Some(stripe), Some(alignment)) = (&facts.stripe, facts.direct_alignment_bytes)
        && !stripe.interleave_bytes.is_multiple_of(alignment)
    {
        let message = format!(
            "turns of {} bytes are not a multiple of {alignment}, which direct requests to the members of `{}` must be: \
             cells that bypass the cache are left out",
            stripe.interleave_bytes, facts.name
        );
        return Some(
            Warning::new("direct-unsupported", message)
                .next(format!("use an interleave that is a multiple of {}", Bytes(alignment))),
        );
    }
    let message = format!(
        "the file system of `{}` does not support O_DIRECT: cells that bypass the cache are left out, and the \
         device's own time is seen only through the cache",
        facts.name
    );
    Some(
        Warning::new("direct-unsupported", message)
            .next("use `--state cold`, or name a target on another file system"),
    )
}

fn cache_hidden(facts: &TargetFacts) -> Option<Warning> {
    if facts.cache_visible || facts.memory_backed {
        return None;
    }
    let message = format!(
        "the page cache of `{}` is shown only to its owner and to those who may write it: cold and warm states \
         cannot be verified",
        facts.name
    );
    Some(
        Warning::new("cache-not-visible", message)
            .next(format!("`sudo iowhy {}` (it is only read)", facts.name)),
    )
}

fn larger_than_memory(facts: &TargetFacts, memory_bytes: u64) -> Option<Warning> {
    if facts.size_bytes <= memory_bytes || memory_bytes == 0 {
        return None;
    }
    let message = format!(
        "`{}` ({}) is larger than the memory its cache can have ({}): it cannot be warm as a whole",
        facts.name,
        Bytes(facts.size_bytes),
        Bytes(memory_bytes)
    );
    let fits = memory_bytes / 2 / 4096 * 4096;
    Some(
        Warning::new("larger-than-memory", message)
            .next(format!("for warm cells restrict the region: `--size {}`", typed_size(fits))),
    )
}

/// Whether a target is a SCSI generic device, which takes commands instead of reads.
pub fn is_scsi_generic(facts: &TargetFacts) -> bool {
    facts.kind == TargetKind::CharDevice
        && facts.name.rsplit('/').next().is_some_and(|name| {
            name.strip_prefix("sg").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
}

#[cfg(test)]
mod tests {
    use iowhy_core::environment::{MemberFacts, StripeFacts};

    use super::*;

    fn clean() -> TargetFacts {
        TargetFacts { name: "f".into(), ..crate::synthetic::facts(1000) }
    }

    fn codes(facts: &TargetFacts) -> Vec<String> {
        facts_warnings(facts, 1 << 30).into_iter().map(|w| w.code).collect()
    }

    #[test]
    fn uneven_members_shared_devices_and_turns_off_the_alignment_are_said() {
        let member = |name: &str, size_bytes, device: &str| MemberFacts {
            name: name.into(),
            kind: TargetKind::File,
            size_bytes,
            devices: vec![device.into()],
        };
        let stripe = |interleave_bytes, members| TargetFacts {
            kind: TargetKind::Stripe,
            stripe: Some(StripeFacts { interleave_bytes, member_bytes: 1 << 20, members }),
            ..clean()
        };
        let even = stripe(65_536, vec![member("a", 1 << 20, "sda"), member("b", 1 << 20, "sdb")]);
        assert!(codes(&even).is_empty());
        let uneven = stripe(65_536, vec![member("a", 1 << 20, "sda"), member("b", 3 << 20, "sdb")]);
        assert_eq!(codes(&uneven), ["uneven-members"]);
        assert!(facts_warnings(&uneven, 1 << 40)[0].message.contains("2 MiB in all are not"));
        let shared = stripe(65_536, vec![member("a", 1 << 20, "sda"), member("b", 1 << 20, "sda")]);
        assert_eq!(codes(&shared), ["members-share-device"]);
        let mut odd = stripe(63 * 1024, vec![member("a", 1 << 20, "sda"), member("b", 1 << 20, "sdb")]);
        odd.direct_supported = Some(false);
        odd.direct_alignment_bytes = Some(4096);
        assert!(facts_warnings(&odd, 1 << 40)[0].message.contains("not a multiple of 4096"));
    }

    #[test]
    fn a_plain_file_and_unknown_facts_raise_nothing() {
        assert!(codes(&clean()).is_empty());
        let unknown = TargetFacts {
            hole_bytes: None,
            unwritten_bytes: None,
            shared_bytes: None,
            encoded_bytes: None,
            direct_supported: None,
            ..clean()
        };
        assert!(codes(&unknown).is_empty());
    }

    #[test]
    fn each_trap_has_its_own_code_and_a_next_step() {
        let traps = [
            ("unwritten-extents", TargetFacts { unwritten_bytes: Some(1000), ..clean() }),
            ("holes", TargetFacts { hole_bytes: Some(500), ..clean() }),
            ("shared-extents", TargetFacts { shared_bytes: Some(10), ..clean() }),
            ("encoded-extents", TargetFacts { encoded_bytes: Some(999), ..clean() }),
            ("memory-backed", TargetFacts { memory_backed: true, ..clean() }),
            ("direct-unsupported", TargetFacts { direct_supported: Some(false), ..clean() }),
            ("cache-not-visible", TargetFacts { cache_visible: false, ..clean() }),
            ("larger-than-memory", TargetFacts { size_bytes: 1 << 31, ..clean() }),
        ];
        for (code, facts) in traps {
            assert_eq!(codes(&facts), [code]);
            let warning = &facts_warnings(&facts, 1 << 30)[0];
            assert!(warning.message.contains("`f`") && warning.next.is_some(), "{warning:?}");
        }
    }

    #[test]
    fn a_trace_of_a_trap_is_not_worth_a_warning_but_its_share_is_named() {
        assert!(codes(&TargetFacts { hole_bytes: Some(9), ..clean() }).is_empty());
        let half = facts_warnings(&TargetFacts { hole_bytes: Some(630), ..clean() }, 0);
        assert!(half[0].message.starts_with("63 % of `f` is holes"), "{}", half[0].message);
    }

    #[test]
    fn memory_asked_for_by_name_is_no_surprise() {
        let memory = TargetFacts { kind: TargetKind::Memory, memory_backed: true, ..clean() };
        assert!(codes(&memory).is_empty());
        let null = TargetFacts { kind: TargetKind::Null, cache_visible: false, ..clean() };
        assert!(codes(&null).is_empty());
    }
}
