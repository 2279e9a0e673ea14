//! How the account closes against the kernel's own figures: what PSI counted, and how much of it the waits of tasks explain.

use iowhy_core::machine::{MachineProfile, Stalls};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of PSI's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Closure {
    /// `io some`
    pub figure: String,
    /// What PSI counted, as a share of the time; `null`: this kernel counts none.
    pub counted_share: Option<f64>,
    /// The same, computed from the waits of tasks.
    pub explained_share: f64,
    /// Explained over counted; `null`: less than a hundredth of the time was counted, so that the ratio means nothing.
    pub ratio: Option<f64>,
    /// Why the ratio is not near 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Below this share of the time a figure of PSI is not compared: it is added up in microseconds, but CPUs are weighed in ticks.
const COMPARED: f64 = 0.01;
/// A ratio within these bounds needs no reason.
const CLOSED: std::ops::RangeInclusive<f64> = 0.95..=1.05;

/// The figures of PSI, each with the reason where it does not close.
pub fn closure(profile: &MachineProfile) -> Vec<Closure> {
    type Figure = fn(&Stalls) -> f64;
    let figures: [(&str, Figure, &str); 5] = [
        ("io some", |s| s.io_some_ns, "waits that had begun before the watch are not seen until they end"),
        ("io full", |s| s.io_full_ns, "waits that had begun before the watch are not seen until they end"),
        (
            "memory some",
            |s| s.memory_some_ns,
            "of stalls for memory, sleeps and direct reclaim are seen; the rest of their CPU time is not",
        ),
        (
            "memory full",
            |s| s.memory_full_ns,
            "PSI counts CPU time in reclaim as well; only sleeps on idle CPUs are seen",
        ),
        (
            "cpu some",
            |s| s.cpu_some_ns,
            "tasks that moved to another CPU while they were queued are seen only there",
        ),
    ];
    let wall_ns = (profile.wall_ns as f64).max(1.0);
    let one = |(figure, of, reason): &(&str, Figure, &str)| {
        let counted_share = profile.counted.as_ref().map(|counted| of(counted) / wall_ns);
        let explained_share = of(&profile.computed) / wall_ns;
        let ratio = counted_share.filter(|share| *share >= COMPARED).map(|share| explained_share / share);
        let open = ratio.is_some_and(|ratio| !CLOSED.contains(&ratio));
        Closure {
            figure: (*figure).to_owned(),
            counted_share,
            explained_share,
            ratio,
            reason: open.then(|| (*reason).to_owned()),
        }
    };
    figures.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_compared_where_there_is_something_to_compare() {
        let stalls = |io_some_ns, memory_some_ns| Stalls { io_some_ns, memory_some_ns, ..Stalls::default() };
        let profile = MachineProfile {
            wall_ns: 1000,
            counted: Some(stalls(500.0, 5.0)),
            computed: stalls(490.0, 0.0),
            ..MachineProfile::default()
        };
        let closed = closure(&profile);
        assert_eq!((closed[0].ratio, &closed[0].reason), (Some(0.98), &None));
        assert_eq!((closed[2].ratio, closed[2].counted_share), (None, Some(0.005)));
        let half = MachineProfile { computed: stalls(250.0, 0.0), ..profile.clone() };
        assert!(closure(&half)[0].reason.is_some());
        let without = MachineProfile { counted: None, ..profile };
        assert_eq!((closure(&without)[0].ratio, closure(&without)[0].explained_share), (None, 0.49));
    }
}
