//! Laws of all rules together: the manual is complete, ranking holds, innocent programs are left alone, and no profile
//! whatever makes a rule panic or promise the impossible.

use iowhy_core::finding::Gain;
use iowhy_core::layer::Layer;
use iowhy_core::profile::{BlockSample, CallCount, CallCounts, OtherUser};
use proptest::prelude::*;

use super::synthetic::{Run, access, bound_leaves, looked, model};
use super::*;
use crate::classify::{Operation, Wait};

#[test]
fn every_finding_has_one_rule_and_a_complete_page() {
    let ids: Vec<FindingId> = RULES.iter().map(|r| r.id).collect();
    assert_eq!(ids, FindingId::ALL);
    for rule in RULES {
        let page = manual(rule.id);
        assert!(page.starts_with(&format!("# {}\n", rule.id.id())), "{}", rule.id.id());
        for section in ["**Claim.**", "**Evidence.**", "**Advice.**", "**Limits.**", "**Example.**"] {
            assert_eq!(page.matches(section).count(), 1, "{section} in {}", rule.id.id());
        }
    }
}

#[test]
fn two_causes_are_ranked_by_what_they_save() {
    let run = |sync: f64, fault: f64| {
        Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, sync)
            .busy(Operation::Read, Layer::Memory, fault)
            .busy(Operation::User, Layer::Program, 1.0 - sync - fault)
            .io((1000, 1000 << 20), (1000, 100_000))
            .calls(&[("write", 1000), ("fdatasync", 1000)])
            .ids()
    };
    assert_eq!(run(0.5, 0.3), [FindingId::SyncPerWrite, FindingId::FreshBuffers]);
    assert_eq!(run(0.2, 0.6), [FindingId::FreshBuffers, FindingId::SyncPerWrite]);
}

#[test]
fn a_crowded_cpu_does_not_hide_what_the_program_itself_does() {
    // A second of syncing and a second of computing, stretched by others to ten.
    let run = |sync: f64| {
        Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, sync)
            .queued_in(Operation::Sync, 4.0 * sync)
            .busy(Operation::User, Layer::Program, 0.2 - sync)
            .queued(0.8 - 4.0 * sync)
            .io((0, 0), (1000, 100_000))
            .calls(&[("write", 1000), ("fdatasync", 1000)])
            .with(|p| p.pressure.others_cpu_share = Some(0.8))
    };
    let syncing = run(0.18).findings();
    assert_eq!(syncing[0].id, FindingId::SyncPerWrite, "{syncing:#?}");
    // By hand: nine tenths of the time, queueing included.
    bound_leaves(&syncing[0], 0.1);
    // Contention that costs clearly more is first; the small own cause stays.
    assert_eq!(run(0.02).ids(), [FindingId::NoisyNeighbour, FindingId::SyncPerWrite]);
    assert_eq!(run(0.0).ids(), [FindingId::NoisyNeighbour, FindingId::CpuBound]);
}

#[test]
fn reads_have_causes_of_their_own_beside_durable_writes() {
    let run = Run::new(10.0)
        .wait(Operation::Sync, Wait::CacheFlush, 0.5)
        .wait(Operation::Read, Wait::DeviceRead, 0.4)
        .busy(Operation::User, Layer::Program, 0.1)
        .io((1000, 4_096_000), (1000, 512_000))
        .file(1 << 30, |f| f.reads = access(1000, 4_096_000, 0))
        .device(0.9, 1.0, |d| (d.reads, d.read_bytes) = (1000, 4_096_000))
        .calls(&[("write", 1000), ("fdatasync", 1000)]);
    assert_eq!(run.ids(), [FindingId::SyncPerWrite, FindingId::QueueDepthOne]);
}

#[test]
fn innocent_programs_are_left_alone() {
    let compiler = Run::new(20.0)
        .busy(Operation::User, Layer::Program, 0.85)
        .busy(Operation::Open, Layer::Filesystem, 0.02)
        .busy(Operation::Fault, Layer::Memory, 0.06)
        .busy(Operation::Read, Layer::Copy, 0.02)
        .busy(Operation::Map, Layer::Memory, 0.02)
        .wait(Operation::Read, Wait::DeviceRead, 0.03)
        .io((200_000, 900_000_000), (5_000, 50_000_000))
        .with(|p| p.io.minor_faults = Some(400_000));
    assert_eq!(compiler.ids(), [FindingId::CpuBound]);
    let server = Run::new(60.0)
        .wait(Operation::Poll, Wait::Poll, 0.95)
        .busy(Operation::Socket, Layer::Elsewhere, 0.03)
        .busy(Operation::User, Layer::Program, 0.02)
        .io((1_000_000, 64_000_000), (1_000_000, 64_000_000));
    assert_eq!(server.ids(), [FindingId::WaitingElsewhere]);
    // A filter in a pipeline: half a million small reads, all from a pipe.
    let filter = Run::new(10.0)
        .busy(Operation::Read, Layer::Call, 0.3)
        .busy(Operation::User, Layer::Program, 0.5)
        .wait(Operation::Read, Wait::Pipe, 0.2)
        .io((500_000, 500_000 * 512), (0, 0))
        .with(|p| {
            p.files = vec![iowhy_core::profile::FileUse {
                kind: "pipe".into(),
                reads: access(1000, 512_000, 0),
                ..Default::default()
            }];
        });
    assert_eq!(filter.ids(), [FindingId::Healthy]);
}

#[test]
fn nothing_seen_is_not_called_healthy_and_no_panic() {
    assert_eq!(Run::new(0.0).ids(), [FindingId::Healthy]);
    let nothing = (Profile::default(), Account::default());
    let findings = judge(&Facts::new(&nothing.0, &nothing.1, None));
    assert_eq!(findings.len(), 1);
    assert!(findings[0].undecided && findings[0].sentence.starts_with("Run too short"), "{findings:?}");
}

#[test]
fn a_census_without_stacks_still_names_what_is_waited_for() {
    // Tier 0: waits by the function slept in, no samples, no traced calls, no files.
    let run = |flushes| {
        Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, 0.6)
            .busy_sampled(Operation::Unknown, Layer::Unexplained, 0.4, 0)
            .io((0, 0), (2000, 200_000))
            .device(0.8, 1.0, |d| d.flushes = flushes)
    };
    assert_eq!(run(2000).ids(), [FindingId::SyncPerWrite]);
    // Few syncs may take as long: without the device's count it cannot be told.
    let found = run(0).findings();
    assert!(found.len() == 1 && found[0].undecided, "{found:?}");
}

#[test]
fn a_weak_cause_does_not_stand_before_what_the_program_mostly_does() {
    let run = |sync: f64| {
        Run::new(10.0)
            .wait(Operation::Sync, Wait::CacheFlush, sync)
            .busy(Operation::User, Layer::Program, 1.0 - sync)
            .io((0, 0), (1000, 100_000))
            .calls(&[("write", 1000), ("fdatasync", 1000)])
            .ids()
    };
    assert_eq!(run(0.1), [FindingId::CpuBound, FindingId::SyncPerWrite]);
    assert_eq!(run(0.35), [FindingId::SyncPerWrite]);
}

fn any_operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    prop::sample::select(vec![
        O::User,
        O::Read,
        O::Read,
        O::Read,
        O::Fault,
        O::Write,
        O::Read,
        O::Write,
        O::Sync,
        O::Open,
        O::Close,
        O::Stat,
        O::Names,
        O::Descriptor,
        O::Map,
        O::Fault,
        O::Ring,
        O::Aio,
        O::Process,
        O::Futex,
        O::Poll,
        O::Socket,
        O::Sleep,
        O::Other,
        O::Interrupt,
        O::Unknown,
    ])
}

fn any_wait() -> impl Strategy<Value = Wait> {
    use Wait as W;
    prop::sample::select(vec![
        W::DeviceRead,
        W::DeviceWrite,
        W::DataWriteback,
        W::CacheFlush,
        W::Journal,
        W::JournalSpace,
        W::DirtyThrottle,
        W::BlockThrottle,
        W::Reclaim,
        W::InodeLock,
        W::MmapLock,
        W::FileLock,
        W::KernelLock,
        W::Pipe,
        W::Socket,
        W::Timer,
        W::Futex,
        W::Child,
        W::Poll,
        W::Terminal,
        W::Completion,
        W::Server,
        W::Unknown,
    ])
}

fn any_layer() -> impl Strategy<Value = Layer> {
    prop::sample::select(Layer::ALL.to_vec())
}

prop_compose! {
    /// A run that closes, with counters that need not make sense together.
    fn any_run()(
        busy in prop::collection::vec((any_operation(), any_layer(), 0.0..1.0f64, 0u64..2000), 0..4),
        waits in prop::collection::vec((any_operation(), any_wait(), 0.0..1.0f64), 0..4),
        threads in prop_oneof![3 => Just(1usize), 1 => 2usize..4],
        call_bytes in prop::collection::vec(prop_oneof![1u64..10_000, 1u64..1 << 24], 2),
        counters in prop::collection::vec(prop::option::of(prop_oneof![0u64..100, any::<u64>(), 0u64..1 << 40]), 12),
        numbers in prop::collection::vec(prop_oneof![0u64..100, 0u64..1 << 40], 24),
        flags in prop::collection::vec(any::<bool>(), 8),
        wall_s in prop_oneof![Just(0.0), 1e-6..1e5f64],
    ) -> Run {
        let whole: f64 = busy.iter().map(|b| b.2).chain(waits.iter().map(|w| w.2)).sum::<f64>().max(1e-9);
        let thread = |mut run: Run| {
            for (operation, layer, share, samples) in &busy {
                run = run.busy_sampled(*operation, *layer, share / whole, *samples);
            }
            for (operation, wait, share) in &waits {
                run = run.wait(*operation, *wait, share / whole);
            }
            run
        };
        let mut run = (1..threads).fold(thread(Run::new(wall_s)), |run, _| run.second_thread(thread));
        if flags[0] {
            run.model = Some(model());
        }
        let p = &mut run.profile;
        let io = &mut p.io;
        (io.read_calls, io.write_calls, io.read_bytes, io.written_bytes) =
            (counters[0], counters[1], counters[2], counters[3]);
        // Half of the time the bytes make sense beside the calls.
        if flags[1] {
            io.read_bytes = io.read_calls.map(|n| n.saturating_mul(call_bytes[0]));
            io.written_bytes = io.write_calls.map(|n| n.saturating_mul(call_bytes[1]));
        }
        (io.device_read_bytes, io.device_written_bytes) = (counters[4], counters[5]);
        (io.minor_faults, io.major_faults, io.user_ns, io.system_ns) =
            (counters[6], counters[7], counters[8], counters[9]);
        p.pressure.memory_bytes = counters[10];
        p.pressure.cpu_throttled_ns = counters[11];
        p.pressure.others_cpu_share = flags[1].then_some(numbers[0] as f64 % 1.0);
        if flags[2] {
            run = run.file(numbers[1], |f| {
                f.mapped = flags[3];
                f.recently_evicted_pages = Some(numbers[2]);
                f.reads = access(numbers[3], numbers[4], numbers[5].min(numbers[3]));
                f.reads.repeated = looked(numbers[6].min(numbers[3]), numbers[3]);
                f.reads.after_seek = looked(numbers[7].min(numbers[3]), numbers[3]);
                f.reads.direct = looked(numbers[8].min(numbers[3]), numbers[3]);
                f.writes = access(numbers[9], numbers[10], 0);
                f.writes.unaligned = looked(numbers[11].min(numbers[9]), numbers[9]);
                f.writes.synchronous = looked(numbers[12].min(numbers[9]), numbers[9]);
            });
        }
        if flags[4] {
            run = run.device(1.0, 1.0, |d| {
                (d.reads, d.read_bytes, d.read_ns) = (numbers[13], numbers[14], numbers[15]);
                d.throttle = flags[5].then(|| "a limit".to_owned());
                d.read_ahead_bytes = Some(numbers[16]);
            });
        }
        run.profile.block = flags[6].then(|| BlockSample {
            own_requests: numbers[17],
            own_reads: numbers[17],
            own_read_bytes: numbers[18],
            own_reads_adjacent: numbers[19].min(numbers[17]),
            own_read_ahead_bytes: numbers[20],
            in_flight: Some(numbers[21] as f64 / 16.0),
            others: vec![OtherUser {
                name: "x".into(),
                pid: 1,
                requests: numbers[22],
                bytes: numbers[23],
                behind_ns: Some(numbers[13]),
                beside_ns: Some(numbers[14]),
                ..OtherUser::default()
            }],
            ..BlockSample::default()
        });
        run.profile.calls = flags[7].then(|| CallCounts {
            complete: flags[5],
            calls: ["openat", "fsync", "mmap", "read"].map(|name| CallCount {
                name: name.into(),
                calls: numbers[22],
                ..CallCount::default()
            }).into(),
        });
        run
    }
}

proptest! {
    #[test]
    fn whatever_was_seen_the_findings_obey_their_laws(run in any_run()) {
        let findings = run.findings();
        prop_assert!(!findings.is_empty());
        let innocent = findings.iter().filter(|f| !f.id.is_repairable()).count();
        let own = findings.iter().filter(|f| f.id.is_repairable() && f.id != FindingId::NoisyNeighbour).count();
        // RunFacts causes of its own at most one, which then stands first.
        prop_assert!(innocent == usize::from(own == 0) || innocent == 1 && !findings[0].id.is_repairable(), "{:#?}", findings);
        let mut last = f64::INFINITY;
        for f in &findings {
            prop_assert!((0.0..=1.0).contains(&f.share), "{f:#?}");
            let words: Vec<&String> = f.evidence.iter().chain([&f.sentence, &f.advice]).collect();
            for text in words {
                prop_assert!(!text.is_empty() && !text.contains("NaN") && !text.contains("inf") , "{text}");
            }
            prop_assert!(!f.evidence.is_empty() || f.id == FindingId::Healthy, "{f:#?}");
            // The cause is worth naming, so that the bound is worth a change.
            let least = 1.0 / (1.0 - WORTH_SAVING) - 1e-9;
            prop_assert!(f.gain_rest_unchanged.is_none_or(|most| least <= most && most <= Gain::MAX), "{f:#?}");
            prop_assert!(f.gain.is_none(), "nothing was calibrated: {f:#?}");
            let weight = precedence::weight(f);
            if f.id.is_repairable() && f.id != FindingId::NoisyNeighbour {
                prop_assert!(weight <= last, "not ranked: {findings:#?}");
                last = weight;
            }
        }
    }
}
