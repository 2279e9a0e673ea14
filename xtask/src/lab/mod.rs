//! `cargo xtask lab`: iowhy in virtual machines with a stock kernel, disks of known cost and a clock that repeats to the
//! digit; its results are compared with the costs that were put in.
//!
//! Goal: relations and tolerances, never stored figures: those change with kernel, emulator and binary. Non-goal: what
//! unit tests can know. Nothing is installed and root is not needed; where the lab cannot run it says why.

mod answers;
mod apt;
mod boot;
mod check;
mod host;
mod initramfs;
mod kernel;
mod lean_elf;
mod machine;
mod modules;
mod packages;
mod phase;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use self::answers::Answers;
use self::boot::Boot;
use self::check::Checks;
use self::initramfs::Programs;
use self::machine::{BootResult, Machine};
use self::modules::Modules;
use self::packages::{Kernel, Packages, Series};
use crate::static_target::{self, TARGET};
use crate::steps::Ending;

/// The phases of `cargo xtask test`: costs put into one layer are found in that layer, settings are restored, and Debian's kernels
/// take the observer.
pub(crate) const SMOKE: [&str; 3] = ["layers", "settings", "kernels"];

/// Judges the answers that are kept instead of starting guests.
const AGAIN: &str = "--again";

/// Runs phases whose name holds one of the filters (all without one).
pub(crate) fn run(root: &Path, filters: &[&str]) -> ExitCode {
    let again = filters.contains(&AGAIN);
    let filters: Vec<&str> = filters.iter().copied().filter(|word| *word != AGAIN).collect();
    lab(root, &filters, again).exit_code()
}

/// The same as a step.
pub(crate) fn lab(root: &Path, filters: &[&str], again: bool) -> Ending {
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|word| name.contains(word));
    let phases: Vec<&phase::Phase> = phase::ALL.iter().filter(|phase| wanted(phase.name)).collect();
    if phases.is_empty() && !wanted(HOST) {
        let names: Vec<&str> = phase::ALL.iter().map(|phase| phase.name).collect();
        return Ending::Failed(format!("no phase is called so; there are {}, {HOST}", names.join(", ")));
    }
    if let Err(why) = static_target::ensure(root, TARGET) {
        return Ending::Skipped(why);
    }
    let target = crate::target(root);
    let cache = target.join("lab");
    let mut checks = Checks::default();
    let mut skipped = None;
    if again {
        let mut answers = Answers::default();
        for boot in phases.iter().flat_map(|phase| (phase.boots)()) {
            answers.add(boot.name, machine::kept(&runs(&target).join(boot.name)));
        }
        judge(&phases, &answers, &mut checks);
    } else if !phases.is_empty() {
        match Packages::get(&cache) {
            Ok(packages) => {
                println!("-- {}", packages.emulator_version);
                match guests(root, &target, &packages, &phases, &mut checks) {
                    Ok(missing) => skipped = missing,
                    Err(why) => return Ending::Failed(why),
                }
            }
            Err(why) => skipped = Some(format!("no guests: {why}")),
        }
    }
    if !again
        && wanted(HOST)
        && let Err(why) = on_the_host(root, &target, &mut checks)
    {
        return Ending::Failed(why);
    }
    print!("{}", checks.table());
    println!("-- {} checks, {} failed", checks.count(), checks.failed());
    match skipped {
        _ if checks.failed() > 0 => Ending::Failed(checks.failures()),
        Some(why) => Ending::Skipped(why),
        None => Ending::Passed,
    }
}

/// The part that needs no guest.
const HOST: &str = "host";

fn on_the_host(root: &Path, target: &Path, checks: &mut Checks) -> Result<(), String> {
    build(root)?;
    let folder = target.join("lab").join(HOST);
    std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    host::checks(&target.join(TARGET).join("debug/iowhy"), &folder, checks);
    Ok(())
}

/// Runs the guests and judges them; what is returned says which kernels could not be had.
fn guests(
    root: &Path,
    target: &Path,
    packages: &Packages,
    phases: &[&phase::Phase],
    checks: &mut Checks,
) -> Result<Option<String>, String> {
    build(root)?;
    let programs = Programs::read(&target.join(TARGET).join("debug"))?;
    let mut boots: Vec<Boot> = phases.iter().flat_map(|phase| (phase.boots)()).collect();
    let mut kernels = BTreeMap::new();
    let mut missing = Vec::new();
    for series in boots.iter().map(|boot| boot.kernel).collect::<BTreeSet<_>>() {
        match Kernel::get(&target.join("lab"), series) {
            Ok(kernel) => {
                println!("-- {}", kernel.version);
                let folder =
                    packages::modules_folder(&kernel.folder).ok_or("the kernel package has no modules")?;
                kernels.insert(series, (kernel::image(&kernel.folder)?, Modules::under(&folder)));
            }
            Err(why) => missing.push(why),
        }
    }
    boots.retain(|boot| kernels.contains_key(&boot.kernel));
    let lab = Lab { packages, programs: &programs, kernels: &kernels, runs: runs(target) };
    let answers = lab.run_all(&boots);
    judge(phases, &answers, checks);
    Ok((!missing.is_empty()).then(|| format!("no guests: {}", missing.join("; "))))
}

/// Each boot has a folder here, with its console and its answers, until the next run.
fn runs(target: &Path) -> PathBuf {
    target.join("lab/runs")
}

fn judge(phases: &[&phase::Phase], answers: &Answers, checks: &mut Checks) {
    for (name, told) in answers.boots() {
        if let Some(why) = &told.failure {
            checks.group(name);
            checks.holds("the guest follows its script", false, why.clone());
        }
    }
    for phase in phases {
        checks.group(phase.name);
        (phase.judge)(answers, checks);
    }
}

/// The programs for the guests, linked statically.
fn build(root: &Path) -> Result<(), String> {
    let built = static_target::build(root).status().map_err(|e| format!("cannot run cargo: {e}"))?;
    if built.success() { Ok(()) } else { Err(format!("the build for {TARGET} failed")) }
}

/// What every boot needs.
struct Lab<'a> {
    packages: &'a Packages,
    programs: &'a Programs,
    /// The image and the modules of each kernel.
    kernels: &'a BTreeMap<Series, (PathBuf, Modules)>,
    /// Each boot has a folder here, with its console and its answers, until the next run.
    runs: PathBuf,
}

impl Lab<'_> {
    /// Runs all boots, as many at once as there are CPUs: in a guest whose clock counts instructions a busy host changes
    /// nothing, and in the others no duration is checked.
    fn run_all(&self, boots: &[Boot]) -> Answers {
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        let queue = Mutex::new(boots.iter());
        let answers = Mutex::new(Answers::default());
        // A worker that panicked took a boot with it, which then has no answers; the lock's content is whole.
        fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
            mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let next = locked(&queue).next();
                        let Some(boot) = next else { break };
                        let begun = Instant::now();
                        let told = self.run_one(boot).unwrap_or_else(|why| BootResult {
                            failure: Some(why),
                            took: begun.elapsed(),
                            ..BootResult::default()
                        });
                        let how = if told.failure.is_none() { "done" } else { "failed" };
                        let [took, cpu] = [told.took, told.cpu].map(|time| time.as_secs_f64());
                        println!("-- {}: {how} in {took:.0} s, {cpu:.0} s of CPU", boot.name);
                        locked(&answers).add(boot.name, told);
                    }
                });
            }
        });
        answers.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn run_one(&self, boot: &Boot) -> Result<BootResult, String> {
        let folder = self.runs.join(boot.name);
        // It is there from the last run.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let (kernel, modules) = self.kernels.get(&boot.kernel).ok_or("its kernel could not be had")?;
        let initramfs = folder.join("initramfs.cpio");
        let archive = initramfs::build(boot, self.programs, modules, self.packages.tools.as_deref())?;
        std::fs::write(&initramfs, archive).map_err(|e| format!("cannot write the initramfs: {e}"))?;
        let machine = Machine {
            kernel,
            initramfs: &initramfs,
            time: boot.time,
            cpu: boot.cpu,
            memory_mib: boot.memory_mib,
            disks: &boot.disks,
            limit: boot.limit,
            folder: &folder,
        };
        let mut told = machine.run(self.packages);
        // Seen once, on a busy host: one of two emulated CPUs stays in the guest's kernel. What
        // iowhy would have done then is not known; a kernel that it locks up does so again.
        if told.locked_up {
            println!("-- {}: the guest's kernel locked up; it is started once more", boot.name);
            let kept = folder.with_extension("locked-up");
            let _ = std::fs::remove_dir_all(&kept);
            let _ = std::fs::create_dir_all(&kept);
            for file in [machine::CONSOLE, machine::ANSWERS] {
                let _ = std::fs::rename(folder.join(file), kept.join(file));
            }
            told = machine.run(self.packages);
        }
        // It was read; 20 MB a boot need not stay.
        let _ = std::fs::remove_file(&initramfs);
        Ok(told)
    }
}
