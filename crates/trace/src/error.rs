//! Errors of a trace, with their position and their words for a user.

use std::fmt;

use iowhy_core::problem::Problem;

/// A position in a trace, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// A trace that cannot be read or written any further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The file as the user named it; empty until the layer that knows it has filled it in.
    pub name: String,
    /// Where it happened, where that is known.
    pub place: Option<Position>,
    /// The cause.
    pub what: String,
    /// The exact fix, when there is one.
    pub hint: Option<String>,
}

impl TraceError {
    /// An error without a position.
    pub fn new(what: impl Into<String>) -> TraceError {
        TraceError { name: String::new(), place: None, what: what.into(), hint: None }
    }

    /// Adds where it happened.
    #[must_use]
    pub fn at(mut self, place: Position) -> TraceError {
        self.place = Some(place);
        self
    }

    /// Adds the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> TraceError {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the file.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> TraceError {
        name.clone_into(&mut self.name);
        self
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "`{}`", self.name)?;
            if let Some(place) = self.place {
                write!(f, ", {place}")?;
            }
            f.write_str(": ")?;
        } else if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl From<TraceError> for Problem {
    /// A bad file is a failure, not a wrong command line.
    fn from(error: TraceError) -> Problem {
        let hint = error.hint.clone();
        let problem = Problem::failed(error.to_string());
        match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_place_and_fix() {
        let error = TraceError::new("not a number").at(Position::Line(7)).hint("mend it").in_file("a.csv");
        assert_eq!(error.to_string(), "`a.csv`, line 7: not a number");
        let problem = Problem::from(error);
        assert_eq!((problem.exit_code(), problem.hint.as_deref()), (1, Some("mend it")));
        assert_eq!(TraceError::new("x").at(Position::Byte(3)).to_string(), "byte 3: x");
    }
}
