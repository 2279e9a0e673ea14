//! Stripes in user space: which interleave suits a file system (`lint`), and which suits these disks and this load
//! (`members` measured, `disks` fitted, stripes simulated, `pick`ed and proven).
//!
//! The load comes from the caller behind [`load::Load`]: this crate reads no trace and no option.
#![forbid(unsafe_code)]

pub mod curve;
pub mod described;
pub mod disks;
pub mod layout;
pub mod lint;
mod listed;
pub mod load;
pub mod members;
pub mod pick;
pub mod prove;
pub mod rules;
pub mod simulate;
pub mod split;
