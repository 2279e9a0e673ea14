//! The machine: processor, memory, virtualization.

use std::fs;
use std::path::Path;

use iowhy_linux::control_group::ControlGroups;
use iowhy_linux::meminfo;

/// Physical memory.
pub(crate) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit).saturating_mul(info.totalram)
}

/// The data caches of the first CPU, from the nearest on; empty where the kernel does not say.
pub fn cpu_caches() -> Vec<CpuCache> {
    caches_below(Path::new("/sys/devices/system/cpu/cpu0/cache"))
}

/// Memory that can be filled without swapping or hitting the control group's limit; `None` without /proc.
pub fn memory_available_bytes() -> Option<u64> {
    let available = system_available_bytes()?;
    Some(memory_limit_bytes(&ControlGroups::of_process(None), available).unwrap_or(available))
}

/// Whether a control group that we are in sets a limit of memory below what is available.
pub fn memory_is_limited() -> bool {
    system_available_bytes()
        .is_some_and(|available| memory_limit_bytes(&ControlGroups::of_process(None), available).is_some())
}

/// The memory limit of the groups; `None` when it leaves all of `memory_bytes`.
pub(crate) fn memory_limit_bytes(groups: &ControlGroups, memory_bytes: u64) -> Option<u64> {
    groups.memory_limit_bytes().filter(|limit| *limit < memory_bytes)
}

/// Memory that can be had without swapping, by the kernel's own estimate; `None` without /proc.
fn system_available_bytes() -> Option<u64> {
    meminfo::bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// CPUs this process may run on.
pub(crate) fn cpus() -> usize {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count().max(1) as usize)
}

/// The processor's name; its architecture where the kernel gives none.
pub(crate) fn cpu(cpuinfo: &str) -> String {
    let named = ["model name", "cpu model", "Model", "Processor", "cpu", "uarch"].into_iter();
    let name = named.filter_map(|key| cpuinfo_value(cpuinfo, key)).find(|name| !name.is_empty());
    name.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |name| name.split_whitespace().collect::<Vec<_>>().join(" "),
    )
}

fn cpuinfo_value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

/// A cache between a CPU and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCache {
    /// 1 is the nearest.
    pub level: u32,
    /// Its size.
    pub bytes: u64,
}

/// Data and unified caches below a directory of sysfs, from the nearest on.
fn caches_below(directory: &Path) -> Vec<CpuCache> {
    let mut caches: Vec<CpuCache> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let read = |name: &str| Some(fs::read_to_string(entry.path().join(name)).ok()?.trim().to_owned());
            if read("type")? == "Instruction" {
                return None;
            }
            let bytes = iowhy_core::units::parse_bytes("size", &read("size")?).ok()?;
            Some(CpuCache { level: read("level")?.parse().ok()?, bytes })
        })
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// The kind of virtual machine; `None` on what looks like bare metal.
pub(crate) fn virtualization(cpuinfo: &str) -> Option<String> {
    let read = |path: &str| fs::read_to_string(Path::new(path)).unwrap_or_default();
    let dmi = read("/sys/class/dmi/id/sys_vendor") + &read("/sys/class/dmi/id/product_name");
    let tables = fs::read("/sys/firmware/acpi/tables/FACP").unwrap_or_default();
    virtualization_from(&read("/sys/hypervisor/type"), &dmi, &tables, cpuinfo, &hypervisor_signature(cpuinfo))
}

fn virtualization_from(
    hypervisor: &str,
    dmi: &str,
    acpi_table: &[u8],
    cpuinfo: &str,
    signature: &str,
) -> Option<String> {
    const VENDORS: [(&str, &str); 9] = [
        ("Amazon EC2", "Amazon EC2"),
        ("Google", "Google Compute Engine"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("innotek", "VirtualBox"),
        ("Microsoft Corporation", "Hyper-V"),
        ("Parallels", "Parallels"),
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
    ];
    const SIGNATURES: [(&str, &str); 6] = [
        ("KVMKVMKVM", "KVM"),
        ("Microsoft Hv", "Hyper-V"),
        ("VMwareVMware", "VMware"),
        ("XenVMMXenVMM", "Xen"),
        ("bhyve bhyve ", "bhyve"),
        ("TCGTCGTCGTCG", "QEMU without KVM"),
    ];
    let flagged =
        cpuinfo_value(cpuinfo, "flags").is_some_and(|f| f.split(' ').any(|flag| flag == "hypervisor"));
    let by_signature =
        SIGNATURES.into_iter().find(|(mark, _)| signature.starts_with(mark)).map(|(_, kind)| kind);
    // Byte 10 of every ACPI table: the maker's six letters (ACPI 6.5, section 5.2.6).
    let firecracker = acpi_table.get(10..16) == Some(b"FIRECK");
    // Makers of real machines, such as Microsoft, stand in DMI too: there the processor's flag decides.
    let by_vendor = VENDORS.into_iter().find(|(mark, _)| dmi.contains(mark)).map(|(_, kind)| kind);
    let by_vendor = by_vendor.filter(|_| flagged || !cfg!(target_arch = "x86_64"));
    let kind = if firecracker { Some("Firecracker") } else { by_vendor.or(by_signature) };
    match (kind, hypervisor.trim()) {
        (Some(kind), _) => Some(kind.to_owned()),
        (None, "xen") => Some("Xen".to_owned()),
        (None, _) => flagged.then(|| "a hypervisor that does not say which".to_owned()),
    }
}

/// The twelve letters of CPUID leaf 0x40000000, where the processor says that a hypervisor runs it.
#[cfg(target_arch = "x86_64")]
fn hypervisor_signature(cpuinfo: &str) -> String {
    if !cpuinfo.contains(" hypervisor") {
        return String::new();
    }
    let leaf = core::arch::x86_64::__cpuid(0x4000_0000);
    let letters = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    String::from_utf8_lossy(&letters).trim_end_matches('\0').to_owned()
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_signature(_cpuinfo: &str) -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str =
        "processor\t: 0\nmodel\t\t: 207\nmodel name\t: Intel(R)  Xeon(R) CPU\nflags\t\t: fpu hypervisor lm\n";

    #[test]
    fn processor_and_memory_read_as_written() {
        assert_eq!(cpu(CPUINFO), "Intel(R) Xeon(R) CPU");
        assert_eq!(cpu("processor : 0\n"), std::env::consts::ARCH);
        assert!(memory_bytes() > 0 && cpus() > 0);
    }

    #[test]
    fn caches_for_data_are_listed_from_the_nearest_on() {
        let dir = tempfile::tempdir().unwrap();
        for (index, level, kind, size) in [
            (3, "3", "Unified", "266240K"),
            (0, "1", "Data", "48K"),
            (1, "1", "Instruction", "32K"),
            (2, "2", "Unified", "2048K"),
            (4, "4", "Unified", "many"),
        ] {
            let at = dir.path().join(format!("index{index}"));
            fs::create_dir(&at).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(at.join(name), format!("{text}\n")).unwrap();
            }
        }
        fs::write(dir.path().join("uevent"), "").unwrap();
        let of = |level, kib: u64| CpuCache { level, bytes: kib << 10 };
        assert_eq!(caches_below(dir.path()), [of(1, 48), of(2, 2048), of(3, 266_240)]);
        assert_eq!(caches_below(Path::new("/no/such/place")), []);
    }

    #[test]
    fn virtual_machines_are_named_by_what_they_say_of_themselves() {
        let bare = "flags : fpu lm\n";
        let acpi = [&[0; 10][..], b"FIRECK"].concat();
        for (expected, dmi, acpi, cpuinfo, signature) in [
            (Some("Firecracker"), "", &acpi[..], CPUINFO, "KVMKVMKVM"),
            (Some("KVM"), "", &[], CPUINFO, "KVMKVMKVM"),
            (Some("QEMU"), "QEMU\nStandard PC", &[], CPUINFO, "KVMKVMKVM"),
            (Some("Amazon EC2"), "Amazon EC2\nm5.large", &[], CPUINFO, "KVMKVMKVM"),
            (Some("a hypervisor that does not say which"), "", &[], CPUINFO, ""),
            (None, "", &[], bare, ""),
        ] {
            assert_eq!(virtualization_from("", dmi, acpi, cpuinfo, signature).as_deref(), expected);
        }
        assert_eq!(virtualization_from("xen\n", "", &[], bare, "").as_deref(), Some("Xen"));
        if cfg!(target_arch = "x86_64") {
            let laptop = virtualization_from("", "Microsoft Corporation\nSurface", &[], bare, "");
            assert_eq!(laptop, None, "a real machine of that maker");
        }
    }
}
