//! Facts about the machine and the block devices under a target, from procfs and sysfs.
use iowhy_core::environment::Environment;

use crate::target::Target;

/// Gathers what can be known without root; what cannot is `None`.
pub fn environment(_target: &Target) -> Environment {
    unimplemented!("helper: targets")
}
