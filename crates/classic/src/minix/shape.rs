//! The rule of 1989, made automatic: a speed that stays flat as the request grows is the device's or the cache's; one
//! that grows with it is the call's. Pure arithmetic on pairs of size and speed.

/// How speed follows the size of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Hardly at all: the device, the driver or the cache is the limit.
    Flat,
    /// Almost in proportion: the cost of the call is the limit.
    Growing,
    /// In between: calls cost much at small sizes, something else is the limit at large ones.
    Both,
}

impl Shape {
    /// The stable name.
    pub fn id(self) -> &'static str {
        match self {
            Shape::Flat => "flat",
            Shape::Growing => "growing",
            Shape::Both => "both",
        }
    }

    /// What it means, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Shape::Flat => "flat: the device or the cache is the limit, not the call",
            Shape::Growing => "growing: the overhead of the call is the limit",
            Shape::Both => "between: the call at small sizes, the device or the copy at large ones",
        }
    }
}

/// Exponents below and above which a table counts as flat or growing. The post calls a gain of 1.85 for a factor of 32
/// flat (exponent 0.18), and /dev/null, 32 for 32, growing (exponent 1).
const FLAT_BELOW: f64 = 0.25;
const GROWING_FROM: f64 = 0.75;

/// How speed grows with size: the exponent of the line through the logarithms, from the first to the last point.
/// `None` with fewer than two sizes, or figures that are not above zero.
fn exponent(speeds: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (speeds.first()?, speeds.last()?);
    let exponent = (last.1 / first.1).ln() / (last.0 / first.0).ln();
    exponent.is_finite().then_some(exponent)
}

/// The verdict over pairs of size and speed, in the order of sizes.
pub fn shape(speeds: &[(f64, f64)]) -> Option<Shape> {
    Some(match exponent(speeds)? {
        e if e < FLAT_BELOW => Shape::Flat,
        e if e >= GROWING_FROM => Shape::Growing,
        _ => Shape::Both,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::load;

    #[test]
    fn the_verdicts_of_the_post_come_out_of_its_tables() {
        let minix = load("minix-1989").unwrap();
        for (id, expected) in [
            ("file", Shape::Flat),
            ("null", Shape::Growing),
            ("bnull", Shape::Growing),
            ("rhd2", Shape::Both),
            ("hd2", Shape::Flat),
            ("readahead", Shape::Flat),
        ] {
            assert_eq!(shape(&minix.table(id).unwrap().pairs("block", "speed")), Some(expected), "{id}");
        }
    }

    #[test]
    fn nothing_is_said_without_two_sizes() {
        assert_eq!(shape(&[]), None);
        assert_eq!(shape(&[(512.0, 1.0)]), None);
        assert_eq!(shape(&[(512.0, 0.0), (1024.0, 1.0)]), None);
    }
}
