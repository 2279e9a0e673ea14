//! Flags of open(2) on x86-64: records hold these, whatever they were made on.

pub(super) const O_CREAT: u32 = 0o100;
pub(super) const O_EXCL: u32 = 0o200;
pub(super) const O_TRUNC: u32 = 0o1000;
pub(super) const O_APPEND: u32 = 0o2000;
pub(super) const O_DSYNC: u32 = 0o10000;
pub(super) const O_DIRECT: u32 = 0o40000;
