//! Errors as data: the failure, its cause, and the exact fix. Printing and exiting belong to the binary.

use std::fmt;

/// How a problem ends the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Usage error or refusal: exit code 2.
    Refused,
    /// Something was measured, or was to be, and failed: exit code 1.
    Failed,
}

/// One problem in one line, with the fix in another. The message names the option or the path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// How it ends the command.
    pub severity: Severity,
    /// Cause and subject: "cannot open `/dev/sda` for direct reads: permission denied".
    pub message: String,
    /// The exact fix, when there is one.
    pub hint: Option<String>,
}

impl Problem {
    /// A usage error or refusal (exit code 2).
    pub fn refused(message: impl Into<String>) -> Self {
        Problem { severity: Severity::Refused, message: message.into(), hint: None }
    }

    /// A failure while measuring (exit code 1).
    pub fn failed(message: impl Into<String>) -> Self {
        Problem { severity: Severity::Failed, message: message.into(), hint: None }
    }

    /// Adds the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The exit code of the contract: 1 or 2.
    pub fn exit_code(&self) -> u8 {
        match self.severity {
            Severity::Refused => 2,
            Severity::Failed => 1,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
