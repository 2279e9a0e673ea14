//! Control groups that limited the program.

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// A control group that the program's processes were in, where a limit applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedGroup {
    /// Its directory, where processes can be moved to.
    pub directory: String,
    /// The limits, those that groups above it set included.
    pub limits: Vec<GroupLimit>,
}

/// What a limit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limited {
    /// Transfers to and from a block device.
    Disk,
    /// Time on CPUs.
    Cpu,
    /// Memory, page cache included.
    Memory,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupLimit {
    /// What it is about.
    #[serde(rename = "resource")]
    pub of: Limited,
    /// Directory of the group that sets it: the program's own, or one above it.
    pub set_by: String,
    /// The limit in words.
    pub words: String,
}

impl LimitedGroup {
    /// Whether it limits this.
    pub fn limits(&self, of: Limited) -> bool {
        self.limits.iter().any(|limit| limit.of == of)
    }
}
