//! Whether the observer may be loaded, found out by trying a program of one instruction.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use aya::programs::ProgramType;
use aya::sys::is_program_supported;

/// Types of the running kernel: offsets of fields come from here.
pub(super) const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// What the kernel keeps even from root; the words in brackets hold (kernel_lockdown(7)).
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Number of the first namespace of process numbers (PROC_PID_INIT_INO of `include/linux/proc_ns.h`).
const FIRST_NAMESPACE: u64 = 0xefff_fffc;

/// Why the observer may not be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The right is missing.
    NotPermitted,
    /// Nobody may read the kernel's memory.
    LockedDown,
    /// The kernel was built without types.
    NoTypes,
    /// The observer tells threads apart by numbers that we do not know.
    OtherNumbers,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NotPermitted => {
                f.write_str("bpf(2) is not permitted: it takes root, or CAP_BPF and CAP_PERFMON")
            }
            Refused::LockedDown => {
                write!(f, "lockdown=confidentiality forbids reading the kernel's memory ({LOCKDOWN})")
            }
            Refused::NoTypes => write!(f, "the kernel has no type information ({KERNEL_TYPES})"),
            Refused::OtherNumbers => {
                f.write_str("this container has process numbers of its own (a PID namespace)")
            }
        }
    }
}

/// Whether the observer may be loaded, as far as that can be told without doing it.
pub(crate) fn may_load() -> Result<(), Refused> {
    if !Path::new(KERNEL_TYPES).exists() {
        return Err(Refused::NoTypes);
    }
    if std::fs::read_to_string(LOCKDOWN).is_ok_and(|text| is_confidential(&text)) {
        return Err(Refused::LockedDown);
    }
    if !matches!(is_program_supported(ProgramType::RawTracePoint), Ok(true)) {
        return Err(Refused::NotPermitted);
    }
    // Where /proc does not say, it is most probably the machine's own.
    let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(FIRST_NAMESPACE, |file| file.ino());
    if namespace == FIRST_NAMESPACE { Ok(()) } else { Err(Refused::OtherNumbers) }
}

/// Of the three words the one in brackets holds.
fn is_confidential(lockdown: &str) -> bool {
    lockdown.split_ascii_whitespace().any(|word| word == "[confidentiality]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_only_protects_itself_may_be_read() {
        assert!(is_confidential("none integrity [confidentiality]\n"));
        assert!(
            !is_confidential("none [integrity] confidentiality\n") && !is_confidential("[none] integrity\n")
        );
    }
}
