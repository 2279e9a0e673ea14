//! Losses of a reader or a writer: counted by reason, with the position of the first.
//!
//! Invariant: nothing is dropped, guessed or cut without a count here. Reasons are fixed sentences, so their number is
//! bounded by the source code, not by the file.

use crate::error::Position;

/// One reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The loss and what was done instead: "size 0: left out".
    pub reason: &'static str,
    /// How often.
    pub count: u64,
    /// Position of the first, in traces with positions.
    pub first: Option<Position>,
}

/// All reasons so far, in the order in which they turned up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    list: Vec<Loss>,
}

impl Losses {
    /// Counts one.
    pub fn add(&mut self, reason: &'static str, place: Option<Position>) {
        self.add_many(reason, 1, place);
    }

    /// Counts several of one reason; the position is that of the first.
    pub fn add_many(&mut self, reason: &'static str, count: u64, place: Option<Position>) {
        if count == 0 {
            return;
        }
        match self.list.iter_mut().find(|loss| loss.reason == reason) {
            Some(loss) => loss.count = loss.count.saturating_add(count),
            None => self.list.push(Loss { reason, count, first: place }),
        }
    }

    /// Every reason.
    pub fn list(&self) -> &[Loss] {
        &self.list
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How often for this reason.
    pub fn count(&self, reason: &str) -> u64 {
        self.list.iter().find(|loss| loss.reason == reason).map_or(0, |loss| loss.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_add_up_and_keep_the_first_place() {
        let mut losses = Losses::default();
        losses.add("a", Some(Position::Line(3)));
        losses.add_many("b", 0, None);
        losses.add("a", Some(Position::Line(9)));
        losses.add_many("c", 4, None);
        assert_eq!(losses.list().len(), 2);
        assert_eq!(losses.list()[0], Loss { reason: "a", count: 2, first: Some(Position::Line(3)) });
        assert_eq!((losses.count("c"), losses.count("b")), (4, 0));
    }
}
