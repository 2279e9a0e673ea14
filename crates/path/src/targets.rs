//! The targets that calibration cells read beside the target itself.

use iowhy_core::environment::TargetKind;
use iowhy_core::problem::Problem;
use iowhy_probe::target::{self, Needs, Target};

use crate::plan::CalibrationTargets;

/// The target that the cost of iowhy itself is measured on.
///
/// # Errors
/// Those of resolving it.
pub fn harness_target() -> Result<Target, Problem> {
    let needs = Needs { scratch_bytes: 0, write: false, destroy_data: None };
    target::resolve("null", &needs, &mut |_, _| {})
}

/// What the lower calibration cells read. A target that is not available is left out, and a note of the fit says what that
/// leaves unknown.
///
/// # Errors
/// Those of [`harness_target`].
pub fn calibration_targets(target: &Target) -> Result<CalibrationTargets, Problem> {
    let harness = harness_target()?;
    if let Some(script) = target.script() {
        use iowhy_probe::script::ScriptedTarget;
        let cell = |target| Some(Target::scripted(script.on_target(target)));
        return Ok(CalibrationTargets {
            null_device: cell(ScriptedTarget::NullDevice),
            zero_device: cell(ScriptedTarget::ZeroDevice),
            memory: cell(ScriptedTarget::Memory),
            raw_device: None,
            harness,
        });
    }
    let needs = Needs { scratch_bytes: MEMORY_BYTES, write: false, destroy_data: None };
    let have = |spec: &str| target::resolve(spec, &needs, &mut |_, _| {}).ok();
    Ok(CalibrationTargets {
        null_device: have("/dev/null"),
        zero_device: have("/dev/zero"),
        memory: have("memory"),
        raw_device: raw_device(target).and_then(|path| have(&path)),
        harness,
    })
}

/// Size of the memory file.
const MEMORY_BYTES: u64 = 16 << 20;

/// The block device under a file, when there is exactly one.
pub fn raw_device(target: &Target) -> Option<String> {
    match target.counted_devices() {
        [one] if target.facts.kind != TargetKind::BlockDevice => Some(format!("/dev/{one}")),
        _ => None,
    }
}
