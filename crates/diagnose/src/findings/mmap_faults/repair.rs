//! One mapping that stays, or reads instead of windows.

pub(super) use crate::repair::kept_mapping::{others, repaired};
