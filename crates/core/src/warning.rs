//! Things a reader of the result must know: cause, consequence, next command.
//!
//! Errors that end a command are in [`crate::problem`], verdicts in [`crate::limit`].

use schemars::JsonSchema;

use serde::{Deserialize, Serialize};

/// One warning. `code` is stable and machine-readable; the rest is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable identifier such as `unwritten-extents`.
    pub code: String,
    /// Cause and consequence in one or two sentences.
    pub message: String,
    /// The next command or setting, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Warning {
    /// A warning without a next step.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Warning { code: code.to_owned(), message: message.into(), next: None }
    }

    /// Adds the next command or setting.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
