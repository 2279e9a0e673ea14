//! Known answers: rates, ends and shares of ranks that are made up, and how often equal ranks are named.

use iowhy_core::rng::Rng;

use super::scale::{Scale, ScaleReason, ScaleVerdict};
use super::*;

const SECOND: u64 = 1_000_000_000;

/// A slice of a second that waits for `waits` of its time.
fn slice(rank: u64, round: u32, bytes: u64, waits: f64) -> RankSlice {
    RankSlice {
        rank,
        round,
        start_ns: i64::from(round) * 2 * SECOND as i64,
        wall_ns: SECOND,
        first_done_ns: SECOND / 2,
        requests: bytes / 4096,
        bytes,
        thread_ns: SECOND,
        cpu_ns: ((1.0 - waits) * 0.75 * SECOND as f64) as u64,
        run_delay_ns: ((1.0 - waits) * 0.25 * SECOND as f64) as u64,
    }
}

/// Twelve rounds of ranks whose rates are a function of rank and round.
fn step(ranks: u64, waits: f64, bytes: impl Fn(u64, u32) -> u64) -> Step {
    let slices = (0..12).flat_map(|round| {
        let bytes = &bytes;
        (0..ranks).map(move |rank| slice(rank, round, bytes(rank, round), waits))
    });
    Step::new(ranks, slices.collect::<Vec<_>>(), 1)
}

#[test]
fn ranks_are_summed_from_the_first_start_to_the_last_end() {
    let mut slices: Vec<RankSlice> =
        (0..3).flat_map(|round| [slice(0, round, 4_096_000, 0.5), slice(1, round, 4_096_000, 0.5)]).collect();
    // The second rank starts half a second late, so that the round takes a second and a half.
    slices.iter_mut().filter(|slice| slice.rank == 1).for_each(|slice| slice.start_ns += SECOND as i64 / 2);
    // A round that a rank is missing in does not count.
    slices.push(slice(0, 3, 1 << 40, 0.5));
    let step = Step::new(2, slices, 1);
    let value = |estimate: Option<Estimate>| estimate.unwrap().value;
    assert!((value(step.throughput) - 2.0 * 4_096_000.0 / 1.5).abs() < 1e-6);
    assert!((value(step.requests_per_second) - 2000.0 / 1.5).abs() < 1e-6);
    assert_eq!((value(step.first_done), value(step.last_done)), (0.5e9, 1.5e9));
    assert_eq!((step.started_within_ns, step.samples.len()), (SECOND / 2, 6));
    assert!((value(step.cpu) - 0.375).abs() < 1e-9 && (value(step.run_delay) - 0.125).abs() < 1e-9);
    assert!((value(step.waits) - 0.5).abs() < 1e-9);
    // A rank's own rate does not depend on when it started.
    assert_eq!(value(step.of_ranks[1].throughput), 4_096_000.0);
    assert_eq!(Step::new(2, [], 1).throughput, None);
}

#[test]
fn the_rank_that_is_slow_in_most_rounds_is_named() {
    let slow =
        step(4, 0.5, |rank, round| if rank == 2 { 1 << 20 } else { (4 << 20) + rank * 7 + u64::from(round) });
    let [only] = slow.slow.as_slice() else { panic!("{:?}", slow.slow) };
    assert_eq!((only.rank, only.rounds_slowest), (2, 12));
    assert!((only.of_others.value - 0.25).abs() < 0.01 && only.chance < 1e-6, "{only:?}");
    // Two of eight, in turn.
    let two = step(8, 0.5, |rank, round| match rank {
        3 => (1 << 20) + u64::from(round % 2),
        5 => (1 << 20) + u64::from((round + 1) % 2),
        _ => 4 << 20,
    });
    let mut named: Vec<u64> = two.slow.iter().map(|slow| slow.rank).collect();
    named.sort_unstable();
    assert_eq!(named, [3, 5]);
    // Slower in every round, and by too little to matter.
    let little = step(4, 0.5, |rank, _| if rank == 2 { 990 << 20 } else { (1000 << 20) + rank });
    assert!(little.slow.is_empty() && little.of_ranks[2].rounds_slowest == 12);
    // One rank has nobody beside it.
    let alone = step(1, 0.5, |_, _| 1 << 20);
    assert_eq!((alone.of_ranks[0].of_others, alone.slow.len()), (None, 0));
}

#[test]
fn equal_ranks_are_named_no_more_often_than_the_level_says() {
    const JOBS: u64 = 20_000;
    const ROUNDS: u64 = 12;
    let low = Estimate { value: 0.5, low: 0.4, high: 0.6, unit: Unit::Ratio, n: ROUNDS };
    for n in [2, 4, 16] {
        let named = (0..JOBS).filter(|job| {
            let mut rng = Rng::new(job * 31 + n);
            let mut slowest = vec![0; n as usize];
            (0..ROUNDS).for_each(|_| slowest[rng.below(n) as usize] += 1);
            let rank = |(rank, rounds_slowest): (usize, u64)| OfRank {
                rank: rank as u64,
                throughput: None,
                of_others: Some(low),
                rounds_slowest,
                cpu: None,
                waits: None,
            };
            let ranks: Vec<OfRank> = slowest.into_iter().enumerate().map(rank).collect();
            !slow(&ranks, ROUNDS).is_empty()
        });
        let share = named.count() as f64 / JOBS as f64;
        assert!(share <= LEVEL + 3.0 * (LEVEL / JOBS as f64).sqrt(), "{n}: {share}");
    }
}

#[test]
fn the_binomial_tail_is_exact() {
    assert_eq!(tail(0, 12, 0.25), 1.0);
    assert!((tail(12, 12, 0.5) - 0.5f64.powi(12)).abs() < 1e-12);
    assert!((tail(1, 3, 0.5) - 0.875).abs() < 1e-12 && (tail(2, 3, 0.5) - 0.5).abs() < 1e-12);
    assert_eq!(tail(1, 12, 1.0), 1.0, "one rank is always the slowest");
}

/// Steps of 1, 2 and 4 ranks whose throughput together is a function of their number.
fn scale(waits: f64, together: impl Fn(u64) -> u64) -> Scale {
    let steps: Vec<Step> =
        [1, 2, 4].into_iter().map(|ranks| step(ranks, waits, |_, _| together(ranks) / ranks)).collect();
    Scale::new(&steps, 1)
}

#[test]
fn the_limit_is_the_server_the_clients_or_undecided_with_a_reason() {
    use ScaleReason::*;
    use ScaleVerdict::*;
    let full = |_: u64| 400 << 20;
    let grows = |ranks: u64| ranks * (100 << 20);
    for (waits, together, verdict, reason) in [
        (0.9, &full as &dyn Fn(u64) -> u64, ServerBound, StoppedAndWaits),
        (0.9, &grows, Undecided, StillGrows),
        // Two CPUs of four are busy with two ranks, or each rank has a CPU of its own.
        (0.1, &full, ClientBound, Runs),
        (0.1, &grows, ClientBound, Runs),
        (0.5, &full, Undecided, WaitsUnsure),
        (0.9, &|ranks: u64| if ranks == 4 { 300 << 20 } else { 200 << 20 }, Undecided, GrowthUnsure),
    ] {
        let scale = scale(waits, together);
        assert_eq!((scale.verdict, scale.reason), (verdict, reason), "{waits}: {scale:?}");
    }
    let grown = scale(0.9, grows);
    let last = grown.growth[1];
    assert_eq!((last.fewer, last.more, last.factor.unwrap().value), (2, 4, 2.0));
    assert_eq!((last.efficiency.unwrap().value, grown.growth.len()), (1.0, 2));
    assert_eq!(Scale::new(&[step(4, 0.9, |_, _| 1)], 1).reason, OneStep);
    let short = [1, 2].map(|ranks| Step::new(ranks, (0..ranks).map(|rank| slice(rank, 0, 1 << 20, 0.9)), 1));
    assert_eq!(Scale::new(&short, 1).reason, TooFewRounds);
}
