//! Each account from its facts; the wrong numbers that other tools print, with what we say beside each.

use super::*;
use crate::synthetic::{facts, totals};

const MIB: u64 = 1 << 20;

fn reads(method: Method, state: CacheState, block_bytes: u64) -> Workload {
    Workload::reads(method, state, block_bytes, 1024 * MIB)
}

fn with<'a>(facts: &'a TargetFacts) -> ReconcileContext<'a> {
    ReconcileContext { facts: Some(facts), read_ahead_bytes: Some(131_072) }
}

// The wrong numbers that other tools print without a warning, and what we say beside each.

#[test]
fn trap_a_never_written_file_read_directly_at_41_gb_per_second() {
    let unwritten = TargetFacts { unwritten_bytes: Some(1024 * MIB), ..facts(1024 * MIB) };
    let run = totals(reads(Method::Direct, CacheState::Direct, MIB), 1024 * MIB, Some(0));
    let found = reconcile(&run, &with(&unwritten));
    assert_eq!(found.account, Account::Unwritten { share: 1.0 });
    assert_eq!(
        found.sentence(),
        "claimed 1 GiB, the device moved 0 B: 100 % of the file is allocated but never written, and is answered \
         with zeros without the device"
    );
    assert_eq!(verdict(&run, &with(&unwritten)), Verdict::Mislabelled);
}

#[test]
fn trap_four_jobs_over_one_file_claim_four_times_what_the_device_read() {
    let mut w = reads(Method::Pread, CacheState::Cold, MIB);
    w.threads = 4;
    let run = totals(w, 4096 * MIB, Some(1024 * MIB));
    let found = reconcile(&run, &with(&facts(1024 * MIB)));
    assert_eq!(found.account, Account::SharedByJobs { threads: 4, factor: 4.0 });
    assert_eq!(
        found.sentence(),
        "claimed 4 GiB, the device moved 1 GiB: 4 threads read the same file, each byte left the device once \
         and was claimed 4.00 times"
    );
    assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::Mislabelled);
}

#[test]
fn trap_random_cached_reads_claim_355_mib_of_which_301_came_from_the_device() {
    let mut w = reads(Method::Pread, CacheState::Cold, 4096);
    w.pattern = Pattern::Random;
    let run = totals(w, 355 * MIB, Some(301 * MIB));
    let found = reconcile(&run, &with(&facts(1024 * MIB)));
    assert_eq!(found.sentence(), "claimed 355 MiB, the device moved 301 MiB: 15 % came from the page cache");
    assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::Mislabelled);
}

#[test]
fn trap_a_mapping_asked_to_be_direct_drops_nothing() {
    let mut run = totals(reads(Method::Mmap, CacheState::Direct, 4096), 1024 * MIB, Some(0));
    run.samples[0].resident_after = Some(1.0);
    let found = reconcile(&run, &with(&facts(1024 * MIB)));
    assert_eq!(found.account, Account::NotDirect { share: 1.0 });
    assert!(
        found.sentence().contains("although `direct` was requested; 100 % came from it"),
        "{}",
        found.sentence()
    );
    assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::Mislabelled);
}

#[test]
fn trap_kib_over_1000_called_mb_is_2_4_per_cent_low() {
    let run = totals(reads(Method::Direct, CacheState::Direct, MIB), 1000 * MIB, Some(1000 * MIB));
    assert_eq!(
        reconcile(&run, &with(&facts(1000 * MIB))).sentence(),
        "claimed 1000 MiB, the device moved 1000 MiB: they agree"
    );
}

#[test]
fn each_account_is_decided_by_its_fact() {
    let plain = facts(1024 * MIB);
    let holes = TargetFacts { hole_bytes: Some(512 * MIB), ..facts(1024 * MIB) };
    let encoded = TargetFacts { encoded_bytes: Some(1024 * MIB), ..facts(1024 * MIB) };
    let tmpfs = TargetFacts { memory_backed: true, ..facts(1024 * MIB) };
    let cold = |pattern| Workload { pattern, ..reads(Method::Pread, CacheState::Cold, 4096) };
    let write = |method| Workload { direction: Direction::Write, ..reads(method, CacheState::None, 4096) };
    let direct = reads(Method::Direct, CacheState::Direct, 4096);
    type Case<'a> = (&'a str, Workload, &'a TargetFacts, u64, Option<u64>, Verdict, &'a str);
    let cases: [Case<'_>; 14] = [
        ("cold agrees", cold(Pattern::Sequential), &plain, 100, Some(101), Verdict::Ok, "they agree"),
        (
            "warm",
            reads(Method::Pread, CacheState::Warm, 4096),
            &plain,
            100,
            Some(0),
            Verdict::Ok,
            "100 % came",
        ),
        (
            "warm, half",
            reads(Method::Pread, CacheState::Warm, 4096),
            &plain,
            100,
            Some(50),
            Verdict::Mislabelled,
            "50 % came",
        ),
        (
            "warm, not at all",
            reads(Method::Pread, CacheState::Warm, 4096),
            &plain,
            100,
            Some(100),
            Verdict::Mislabelled,
            "agree",
        ),
        ("holes", direct.clone(), &holes, 100, Some(50), Verdict::Mislabelled, "50 % of the file is holes"),
        ("encoded", direct.clone(), &encoded, 100, Some(40), Verdict::Ok, "compressed"),
        ("tmpfs", direct.clone(), &tmpfs, 100, Some(0), Verdict::Mislabelled, "live in memory"),
        (
            "direct, too little",
            direct.clone(),
            &plain,
            100,
            Some(60),
            Verdict::Inconclusive,
            "nothing known explains",
        ),
        ("direct, too much", direct.clone(), &plain, 100, Some(160), Verdict::Inconclusive, "60 MiB more"),
        ("no counters", direct, &plain, 100, None, Verdict::Inconclusive, "not checked"),
        ("random cold", cold(Pattern::Permuted), &plain, 100, Some(800), Verdict::Ok, "8.00 times"),
        (
            "cached write",
            write(Method::Pwrite),
            &plain,
            100,
            Some(20),
            Verdict::Ok,
            "80 MiB were still in memory",
        ),
        (
            "synced write",
            write(Method::PwriteFsync),
            &plain,
            100,
            Some(350),
            Verdict::Ok,
            "3.50 times the data",
        ),
        ("allocation", write(Method::Fallocate), &plain, 100, Some(0), Verdict::Ok, "no data was written"),
    ];
    for (name, workload, facts, claimed, device, wanted, words) in cases {
        let run = totals(workload, claimed * MIB, device.map(|d| d * MIB));
        let found = reconcile(&run, &with(facts));
        assert!(found.sentence().contains(words), "{name}: {}", found.sentence());
        assert_eq!(verdict(&run, &with(facts)), wanted, "{name}: {:?}", found.account);
    }
}

#[test]
fn sequential_reading_cannot_over_fetch_more_than_two_windows() {
    let w = reads(Method::Pread, CacheState::Cold, 4096);
    let context = with(&FACTS_SIZE);
    let slightly = totals(w.clone(), MIB, Some(MIB + 120 * 1024));
    assert!(matches!(reconcile(&slightly, &context).account, Account::ReadAhead { .. }));
    let two_windows = totals(w.clone(), MIB, Some(MIB + 2 * 131_072));
    assert!(matches!(reconcile(&two_windows, &context).account, Account::ReadAhead { .. }));
    let beyond = totals(w.clone(), MIB, Some(MIB + 2 * 131_072 + 1));
    assert!(matches!(reconcile(&beyond, &context).account, Account::AnotherProgram { .. }));
    let grossly = totals(w, MIB, Some(4 * MIB));
    assert_eq!(reconcile(&grossly, &context).account, Account::AnotherProgram { excess_bytes: 3 * MIB });
}

/// A cell of several rounds, each with its claimed and device bytes.
fn in_rounds(w: Workload, rounds: &[(u64, u64)]) -> CellRun {
    let mut run = totals(w, MIB, Some(0));
    let sample = run.samples[0].clone();
    run.samples = (0..)
        .zip(rounds)
        .map(|(round, &(claimed_bytes, device))| iowhy_core::cell::Sample {
            round,
            claimed_bytes,
            device_bytes: Some(device),
            ..sample.clone()
        })
        .collect();
    run
}

#[test]
fn large_read_ahead_left_under_way_in_every_round_is_no_other_program() {
    let context = ReconcileContext { facts: Some(&FACTS_SIZE), read_ahead_bytes: Some(8 * MIB) };
    let run = |device: u64| {
        in_rounds(reads(Method::Pread, CacheState::Cold, 131_072), &[(71 * MIB, device / 11); 11])
    };
    let found = reconcile(&run(904 * MIB), &context);
    assert_eq!(
        found.sentence(),
        "claimed 781 MiB, the device moved 904 MiB: read-ahead and whole pages fetched 1.16 times the bytes requested"
    );
    assert_eq!(verdict(&run(904 * MIB), &context), Verdict::Ok);
    assert_eq!(verdict(&run(1804 * MIB), &context), Verdict::Inconclusive);
}

#[test]
fn one_round_with_late_read_ahead_does_not_make_a_verified_warm_cell_a_liar() {
    let context = with(&FACTS_SIZE);
    let warm = || reads(Method::Pread, CacheState::Warm, 1024);
    let mut rounds = [(17_580_311, 0); 11];
    rounds[4].1 = 8 * MIB;
    let run = in_rounds(warm(), &rounds);
    assert_eq!(
        reconcile(&run, &context).sentence(),
        "claimed 184 MiB, the device moved 8 MiB: another program (or late read-ahead of another cell) used the \
         device in 1 of 11 rounds"
    );
    assert_eq!(verdict(&run, &context), Verdict::Ok);
    // More than the cell claims in all, and still in one round.
    rounds[4].1 = 400 * MIB;
    assert_eq!(verdict(&in_rounds(warm(), &rounds), &context), Verdict::Ok);
    // Not verified: nobody saw that the bytes were in the cache.
    let mut unseen = run;
    unseen.state_check = StateCheck::Inconclusive { reason: "no cachestat".into() };
    assert_eq!(verdict(&unseen, &context), Verdict::Mislabelled);
    // In every third round or more it is the cell's own reading.
    let mut often = [(17_580_311, 0); 11];
    often.iter_mut().step_by(3).for_each(|r| r.1 = 8 * MIB);
    assert_eq!(verdict(&in_rounds(warm(), &often), &context), Verdict::Mislabelled);
    // A trace of device traffic is worth no word.
    let quiet = in_rounds(warm(), &[(17_580_311, 4096); 11]);
    assert!(matches!(reconcile(&quiet, &context).account, Account::CacheHits { .. }));
}

/// Slices of a mapping with windows of 8 MiB: the lead of 16 MiB ends in the middle of a window.
#[test]
fn a_window_read_ahead_before_a_slice_is_no_cached_file() {
    let plain = facts(1024 * MIB);
    let mut run = totals(reads(Method::Mmap, CacheState::Cold, 65_536), 144 * MIB, Some(132 * MIB));
    run.samples[0].resident_after = Some(0.2);
    assert_eq!(verdict(&run, &with(&plain)), Verdict::Mislabelled, "without a lead");
    run.samples[0].lead_bytes = 5 * 16 * MIB;
    let found = reconcile(&run, &with(&plain));
    assert!(matches!(found.account, Account::ReadBefore { .. }), "{found:?}");
    assert_eq!(
        found.sentence(),
        "claimed 144 MiB, the device moved 132 MiB: 8.3 % had been read ahead when the slices began, which are \
         parts of a stream"
    );
    assert_eq!(verdict(&run, &with(&plain)), Verdict::Ok);
    // A window for each lead, no more.
    run.samples[0].device_bytes = Some(103 * MIB);
    assert_eq!(verdict(&run, &with(&plain)), Verdict::Mislabelled);
}

static FACTS_SIZE: std::sync::LazyLock<TargetFacts> = std::sync::LazyLock::new(|| facts(1024 * MIB));

#[test]
fn a_file_that_stayed_in_memory_is_not_to_blame_for_what_the_device_read() {
    let mut run = totals(reads(Method::Pread, CacheState::Warm, 4096), 100 * MIB, Some(50 * MIB));
    let plain = facts(1024 * MIB);
    assert_eq!(verdict(&run, &with(&plain)), Verdict::Mislabelled, "residency was not seen");
    run.samples[0].resident_before = Some(1.0);
    run.samples[0].resident_after = Some(1.0);
    let found = reconcile(&run, &with(&plain));
    assert_eq!(found.account, Account::AnotherProgram { excess_bytes: 50 * MIB });
    assert_eq!(verdict(&run, &with(&plain)), Verdict::Inconclusive);
}

#[test]
fn a_scripted_target_claims_no_device() {
    let scripted = TargetFacts { kind: TargetKind::Scripted, ..facts(1024 * MIB) };
    let run = totals(reads(Method::Direct, CacheState::Direct, 4096), 100 * MIB, None);
    assert_eq!(verdict(&run, &with(&scripted)), Verdict::Ok);
    assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::Inconclusive);
}

#[test]
fn failure_and_a_violated_state_come_before_the_bytes() {
    let mut run = totals(reads(Method::Pread, CacheState::Warm, 4096), 100 * MIB, Some(0));
    run.state_check = StateCheck::Inconclusive { reason: "no cachestat".into() };
    let context = ReconcileContext::default();
    assert_eq!(verdict(&run, &context).id(), "inconclusive");
    run.state_check = StateCheck::Violated { reason: "cold".into() };
    assert_eq!(verdict(&run, &context).id(), "mislabelled");
    run.failure = Some("EIO".into());
    assert_eq!(verdict(&run, &context).id(), "failed");
}
