//! `mmap-faults`: one mapping that stays, or reads instead of it.

pub(in crate::findings) use crate::repair::kept_mapping::{read_instead, repaired};
