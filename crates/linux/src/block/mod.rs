//! Block devices: their counters, what is under a file, what they did between two instants.

pub mod counters;
pub mod devices;
pub mod sysfs;
pub mod uses;
pub mod volume_log;
