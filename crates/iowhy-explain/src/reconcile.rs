//! Claimed bytes against the bytes the device moved, and what explains the difference, in words.
//!
//! Goal: one account for each cell, decided by facts (target, state, pattern, threads, direction, residency) and
//! never by the size of the mismatch alone. Non-goal: correcting the claimed rate. Invariant: a mismatch that no
//! fact explains is [`Account::AnotherProgram`] or [`Account::Unaccounted`], never the nearest likely story.

use iowhy_core::cell::{CellRun, Sample, StateCheck};
use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::pattern::Pattern;
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};

use crate::ledger::waits_for_storage;
use crate::words::percent;

/// Claimed and device bytes that differ by no more than this share agree: metadata, partial pages at the ends.
pub const AGREEMENT_SHARE: f64 = 0.03;
/// Absolute slack beside [`AGREEMENT_SHARE`]: a neighbour's log line is not a mismatch.
pub const AGREEMENT_BYTES: u64 = 256 * 1024;
/// Bytes beyond the data that a synchronous write may cause (journal, inode, bitmap) and still be its own.
const JOURNAL_BYTES_PER_REQUEST: u64 = 64 * 1024;
/// Read-ahead assumed where the device's setting is not known: the kernel's default.
const DEFAULT_READ_AHEAD_BYTES: u64 = 128 * 1024;
/// Granularity of the page cache assumed here; a smaller read brings in a whole page.
const PAGE_BYTES: u64 = 4096;

/// Why claimed and device bytes stand as they do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Account {
    /// They agree.
    Agrees,
    /// This share of the bytes came from the page cache.
    CacheHits {
        /// 0 to 1.
        share: f64,
    },
    /// O_DIRECT was claimed, but the method reads through the page cache.
    NotDirect {
        /// Share that came from the cache, 0 to 1.
        share: f64,
    },
    /// This share of the file has nothing behind it; reads of it are filled from nowhere.
    Holes {
        /// Holes over file size, 0 to 1.
        share: f64,
    },
    /// This share of the file is allocated but was never written; the file system answers with zeros.
    Unwritten {
        /// Unwritten bytes over file size, 0 to 1.
        share: f64,
    },
    /// The file is compressed or encrypted: fewer bytes are stored than read.
    Encoded,
    /// The device read more than was asked, within the read-ahead window or whole pages.
    ReadAhead {
        /// Device bytes over claimed bytes.
        factor: f64,
    },
    /// Several threads read one file: the first brings a page in, the others find it.
    SharedByJobs {
        /// How many.
        threads: usize,
        /// Claimed bytes over device bytes.
        factor: f64,
    },
    /// Written to memory and not yet to the device.
    WriteBackDebt {
        /// Bytes still owed when the cell ended.
        debt_bytes: u64,
    },
    /// A synchronous write moved journal and metadata beside the data.
    Journal {
        /// Device bytes over claimed bytes.
        factor: f64,
    },
    /// Space was allocated without data.
    NoData,
    /// The bytes live in memory; there is no device under them.
    MemoryBacked,
    /// The device moved more than this cell can have caused.
    AnotherProgram {
        /// Bytes beyond what the cell explains.
        excess_bytes: u64,
    },
    /// The device moved less than claimed, and no fact known here says why.
    Unaccounted {
        /// Share of the claimed bytes that is missing, 0 to 1.
        share: f64,
    },
    /// The device's counters could not be read.
    NoCounters,
}

/// Both totals of a cell and their account.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reconciliation {
    /// Bytes the requests claim, over the rounds whose device bytes are known (all rounds when none are).
    pub claimed_bytes: u64,
    /// Bytes the devices moved in the cell's direction in those rounds.
    pub device_bytes: Option<u64>,
    /// Why.
    pub account: Account,
}

impl Reconciliation {
    /// Both numbers and the reason, in one sentence.
    pub fn sentence(&self) -> String {
        let claimed = format!("claimed {}", Bytes(self.claimed_bytes));
        let both = match self.device_bytes {
            Some(moved) => format!("{claimed}, the device moved {}", Bytes(moved)),
            None => claimed,
        };
        let why = match self.account {
            Account::Agrees => "they agree".to_owned(),
            Account::CacheHits { share } => format!("{} came from the page cache", percent(share)),
            Account::NotDirect { share } => format!(
                "direct was asked of a method that reads through the page cache; {} came from it",
                percent(share)
            ),
            Account::Holes { share } => {
                format!(
                    "{} of the file is holes, which are answered with zeros without the device",
                    percent(share)
                )
            }
            Account::Unwritten { share } => format!(
                "{} of the file is allocated but never written, and is answered with zeros without the device",
                percent(share)
            ),
            Account::Encoded => "the file is stored compressed or encrypted".to_owned(),
            Account::ReadAhead { factor } => {
                format!("read-ahead and whole pages fetched {factor:.2} times what was asked")
            }
            Account::SharedByJobs { threads, factor } => format!(
                "{threads} threads read the same file, each byte left the device once and was claimed {factor:.2} times"
            ),
            Account::WriteBackDebt { debt_bytes } => {
                format!("{} were still in memory, to be written later", Bytes(debt_bytes))
            }
            Account::Journal { factor } => {
                format!("journal and metadata made it {factor:.2} times the data")
            }
            Account::NoData => "space was allocated, no data was written".to_owned(),
            Account::MemoryBacked => "the bytes live in memory, there is no device under them".to_owned(),
            Account::AnotherProgram { excess_bytes } => format!(
                "{} more than this cell can have caused; another program used the device",
                Bytes(excess_bytes)
            ),
            Account::Unaccounted { share } => {
                format!("{} did not come from the device and nothing known explains it", percent(share))
            }
            Account::NoCounters => {
                "the device's counters could not be read, so this is not checked".to_owned()
            }
        };
        format!("{both}: {why}")
    }
}

/// What the account is decided by, beside the cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReconcileContext<'a> {
    /// What was found on the target before timing.
    pub facts: Option<&'a TargetFacts>,
    /// Read-ahead window of the device; the kernel's default is assumed when it is not known.
    pub read_ahead_bytes: Option<u64>,
}

/// Holds the bytes of a cell against the device's.
pub fn reconcile(run: &CellRun, context: &ReconcileContext<'_>) -> Reconciliation {
    let totals = Totals::of(run);
    let account = if in_memory(context.facts) && totals.device.unwrap_or(0) <= AGREEMENT_BYTES {
        Account::MemoryBacked
    } else {
        match totals.device {
            None => Account::NoCounters,
            Some(device) if run.workload.method == Method::Fallocate && device <= totals.claimed => {
                Account::NoData
            }
            Some(device) if agree(totals.claimed, device) => Account::Agrees,
            Some(device) if device < totals.claimed => less(run, context, &totals, device),
            Some(device) => more(&run.workload, context, &totals, device),
        }
    };
    Reconciliation { claimed_bytes: totals.claimed, device_bytes: totals.device, account }
}

/// Sums over the rounds that can be compared.
struct Totals {
    claimed: u64,
    device: Option<u64>,
    requests: u64,
    rounds: u64,
    /// Whether any part of the region was in the cache before a round, or came to be during it.
    resident: bool,
}

impl Totals {
    fn of(run: &CellRun) -> Totals {
        let counted = run.samples.iter().any(|s| s.device_bytes.is_some());
        let mut totals =
            Totals { claimed: 0, device: counted.then_some(0), requests: 0, rounds: 0, resident: false };
        for s in run.samples.iter().filter(|s| s.device_bytes.is_some() == counted) {
            totals.claimed = totals.claimed.saturating_add(s.claimed_bytes);
            totals.device = totals.device.map(|d| d.saturating_add(s.device_bytes.unwrap_or(0)));
            totals.requests = totals.requests.saturating_add(s.requests);
            totals.rounds += 1;
            totals.resident |=
                s.resident_before.unwrap_or(0.0) > 0.0 || s.resident_after.unwrap_or(0.0) > 0.0;
        }
        totals
    }
}

fn in_memory(facts: Option<&TargetFacts>) -> bool {
    facts.is_some_and(|f| {
        let kinds = [TargetKind::CharDevice, TargetKind::Memory, TargetKind::Null];
        f.memory_backed || kinds.contains(&f.kind)
    })
}

fn agree(claimed: u64, device: u64) -> bool {
    let slack = ((claimed as f64 * AGREEMENT_SHARE) as u64).max(AGREEMENT_BYTES.min(claimed / 10));
    claimed.abs_diff(device) <= slack
}

/// Whether requests go through the page cache, whatever state was asked for.
fn through_the_cache(w: &Workload) -> bool {
    let direct = matches!(w.method, Method::Direct | Method::UringIopoll)
        || (matches!(w.method, Method::Uring | Method::UringSqpoll) && w.state == CacheState::Direct);
    !direct && !w.method.scsi()
}

/// The device moved less than was claimed.
fn less(run: &CellRun, context: &ReconcileContext<'_>, totals: &Totals, device: u64) -> Account {
    let w = &run.workload;
    let missing = 1.0 - device as f64 / totals.claimed.max(1) as f64;
    if w.direction.writes() {
        return if through_the_cache(w) && !waits_for_storage(w.method) {
            Account::WriteBackDebt { debt_bytes: totals.claimed - device }
        } else {
            Account::Unaccounted { share: missing }
        };
    }
    if through_the_cache(w) && w.state == CacheState::Direct {
        return Account::NotDirect { share: missing };
    }
    // A warm cell is meant to be answered from memory; what lies under the file does not matter to it.
    if through_the_cache(w) && w.state == CacheState::Warm {
        // All of it was seen in memory before and after every round: what the device read was not for this cell.
        let in_memory = |s: &Sample| s.resident_before == Some(1.0) && s.resident_after == Some(1.0);
        if 1.0 - missing > AGREEMENT_SHARE && run.samples.iter().all(in_memory) {
            return Account::AnotherProgram { excess_bytes: device };
        }
        return Account::CacheHits { share: missing };
    }
    if let Some(account) = nothing_behind(context.facts, missing) {
        return account;
    }
    if !through_the_cache(w) {
        return Account::Unaccounted { share: missing };
    }
    let factor = totals.claimed as f64 / device.max(1) as f64;
    if w.threads > 1 && factor <= w.threads as f64 * (1.0 + AGREEMENT_SHARE) {
        return Account::SharedByJobs { threads: w.threads, factor };
    }
    if totals.resident || repeats(w, totals) {
        Account::CacheHits { share: missing }
    } else {
        Account::Unaccounted { share: missing }
    }
}

/// Holes, unwritten and encoded extents, where they are large enough to explain what is missing. The region read
/// may hold more of them than the file at large: a few times the file's share still counts.
fn nothing_behind(facts: Option<&TargetFacts>, missing: f64) -> Option<Account> {
    let facts = facts?;
    let share = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 / facts.size_bytes.max(1) as f64;
    let (holes, unwritten) = (share(facts.hole_bytes), share(facts.unwritten_bytes));
    if holes + unwritten > 0.0 && missing <= (holes + unwritten) * 2.0 + AGREEMENT_SHARE {
        return Some(if unwritten >= holes {
            Account::Unwritten { share: unwritten }
        } else {
            Account::Holes { share: holes }
        });
    }
    (facts.encoded_bytes.unwrap_or(0) > 0).then_some(Account::Encoded)
}

/// Whether the pattern asks for the same block more than once, so that its second answer may come from memory.
fn repeats(w: &Workload, totals: &Totals) -> bool {
    let per_round = totals.claimed / totals.rounds.max(1);
    matches!(w.pattern, Pattern::Random | Pattern::Zipf(_))
        || per_round > w.region_bytes
        || w.block_bytes < PAGE_BYTES
}

/// The device moved more than was claimed.
fn more(w: &Workload, context: &ReconcileContext<'_>, totals: &Totals, device: u64) -> Account {
    let excess_bytes = device - totals.claimed;
    let factor = device as f64 / totals.claimed.max(1) as f64;
    if w.direction.writes() {
        let own = totals.requests.saturating_mul(JOURNAL_BYTES_PER_REQUEST);
        return if w.direction == Direction::Write && waits_for_storage(w.method) && excess_bytes <= own {
            Account::Journal { factor }
        } else {
            Account::AnotherProgram { excess_bytes }
        };
    }
    if through_the_cache(w)
        && w.state != CacheState::Warm
        && excess_bytes <= over_fetch_bytes(w, context, totals)
    {
        Account::ReadAhead { factor }
    } else {
        Account::AnotherProgram { excess_bytes }
    }
}

/// The most that reading ahead and whole pages can add: in order, one window past the end for each thread and
/// round; out of order, one window (or the rest of a page) for each request.
fn over_fetch_bytes(w: &Workload, context: &ReconcileContext<'_>, totals: &Totals) -> u64 {
    let window = context.read_ahead_bytes.unwrap_or(DEFAULT_READ_AHEAD_BYTES).max(PAGE_BYTES);
    let starts = match w.pattern {
        Pattern::Sequential => totals.rounds.saturating_mul(w.threads.max(1) as u64),
        _ => totals.requests,
    };
    starts.saturating_mul(window)
}

/// Whether a cell may be reported as what it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is what it claims.
    Ok,
    /// It measured something else.
    NotWhatItClaims,
    /// It could not be checked, or the check did not decide.
    CannotTell,
    /// It failed.
    Failed,
}

impl Verdict {
    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::NotWhatItClaims => "not-what-it-claims",
            Verdict::CannotTell => "cannot-tell",
            Verdict::Failed => "failed",
        }
    }
}

/// The verdict on a cell: its failure, then the check of its cache state, then its bytes.
///
/// Bytes from memory are what a warm cell claims and what a cold or direct one must not have. Read-ahead, journal,
/// write-back debt and sharing threads explain the device's number without touching the claim of the state.
pub fn verdict(run: &CellRun, context: &ReconcileContext<'_>) -> Verdict {
    if run.failure.is_some() || run.samples.iter().all(|s| s.requests == 0) {
        return Verdict::Failed;
    }
    if matches!(run.state_check, StateCheck::Violated { .. }) {
        return Verdict::NotWhatItClaims;
    }
    let w = &run.workload;
    let claims_device = matches!(w.state, CacheState::Cold | CacheState::Direct) && !w.direction.writes();
    match reconcile(run, context).account {
        Account::NotDirect { .. } => Verdict::NotWhatItClaims,
        Account::MemoryBacked if claims_device && !is_false(context.facts) => Verdict::NotWhatItClaims,
        Account::Holes { .. } | Account::Unwritten { .. } if claims_device => Verdict::NotWhatItClaims,
        Account::CacheHits { .. } | Account::SharedByJobs { .. } if claims_device => Verdict::NotWhatItClaims,
        Account::CacheHits { share } if 1.0 - share > AGREEMENT_SHARE => Verdict::NotWhatItClaims,
        // The device read what a warm cell claims to have found in memory.
        Account::Agrees if w.state == CacheState::Warm && claims_bytes(run) => Verdict::NotWhatItClaims,
        Account::AnotherProgram { .. } if w.state == CacheState::Warm => Verdict::CannotTell,
        Account::AnotherProgram { .. } | Account::Unaccounted { .. } => Verdict::CannotTell,
        Account::NoCounters if claims_device && !is_false(context.facts) => Verdict::CannotTell,
        _ if matches!(run.state_check, StateCheck::CannotTell { .. }) => Verdict::CannotTell,
        _ => Verdict::Ok,
    }
}

/// The false targets claim nothing about a device, whatever state their cells name.
fn is_false(facts: Option<&TargetFacts>) -> bool {
    facts.is_some_and(|f| matches!(f.kind, TargetKind::Null | TargetKind::Scripted))
}

fn claims_bytes(run: &CellRun) -> bool {
    run.samples.iter().any(|s| s.claimed_bytes > 0)
}

#[cfg(test)]
mod tests {
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
        assert_eq!(verdict(&run, &with(&unwritten)), Verdict::NotWhatItClaims);
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
        assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::NotWhatItClaims);
    }

    #[test]
    fn trap_random_cached_reads_claim_355_mib_of_which_301_came_from_the_device() {
        let mut w = reads(Method::Pread, CacheState::Cold, 4096);
        w.pattern = Pattern::Random;
        let run = totals(w, 355 * MIB, Some(301 * MIB));
        let found = reconcile(&run, &with(&facts(1024 * MIB)));
        assert_eq!(
            found.sentence(),
            "claimed 355 MiB, the device moved 301 MiB: 15 % came from the page cache"
        );
        assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::NotWhatItClaims);
    }

    #[test]
    fn trap_a_mapping_asked_to_be_direct_drops_nothing() {
        let mut run = totals(reads(Method::Mmap, CacheState::Direct, 4096), 1024 * MIB, Some(0));
        run.samples[0].resident_after = Some(1.0);
        let found = reconcile(&run, &with(&facts(1024 * MIB)));
        assert_eq!(found.account, Account::NotDirect { share: 1.0 });
        assert!(
            found.sentence().contains("reads through the page cache; 100 % came from it"),
            "{}",
            found.sentence()
        );
        assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::NotWhatItClaims);
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
        let write =
            |method| Workload { direction: Direction::Write, ..reads(method, CacheState::None, 4096) };
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
                Verdict::NotWhatItClaims,
                "50 % came",
            ),
            (
                "warm, not at all",
                reads(Method::Pread, CacheState::Warm, 4096),
                &plain,
                100,
                Some(100),
                Verdict::NotWhatItClaims,
                "agree",
            ),
            (
                "holes",
                direct.clone(),
                &holes,
                100,
                Some(50),
                Verdict::NotWhatItClaims,
                "50 % of the file is holes",
            ),
            ("encoded", direct.clone(), &encoded, 100, Some(40), Verdict::Ok, "compressed"),
            ("tmpfs", direct.clone(), &tmpfs, 100, Some(0), Verdict::NotWhatItClaims, "live in memory"),
            (
                "direct, too little",
                direct.clone(),
                &plain,
                100,
                Some(60),
                Verdict::CannotTell,
                "nothing known explains",
            ),
            ("direct, too much", direct.clone(), &plain, 100, Some(160), Verdict::CannotTell, "60 MiB more"),
            ("no counters", direct, &plain, 100, None, Verdict::CannotTell, "not checked"),
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
            (
                "allocation",
                write(Method::Fallocate),
                &plain,
                100,
                Some(0),
                Verdict::Ok,
                "no data was written",
            ),
        ];
        for (name, workload, facts, claimed, device, wanted, words) in cases {
            let run = totals(workload, claimed * MIB, device.map(|d| d * MIB));
            let found = reconcile(&run, &with(facts));
            assert!(found.sentence().contains(words), "{name}: {}", found.sentence());
            assert_eq!(verdict(&run, &with(facts)), wanted, "{name}: {:?}", found.account);
        }
    }

    #[test]
    fn sequential_reading_cannot_over_fetch_more_than_a_window() {
        let w = reads(Method::Pread, CacheState::Cold, 4096);
        let context = with(&FACTS_SIZE);
        let slightly = totals(w.clone(), MIB, Some(MIB + 120 * 1024));
        assert!(matches!(reconcile(&slightly, &context).account, Account::ReadAhead { .. }));
        let grossly = totals(w, MIB, Some(4 * MIB));
        assert_eq!(reconcile(&grossly, &context).account, Account::AnotherProgram { excess_bytes: 3 * MIB });
    }

    static FACTS_SIZE: std::sync::LazyLock<TargetFacts> = std::sync::LazyLock::new(|| facts(1024 * MIB));

    #[test]
    fn a_file_that_stayed_in_memory_is_not_to_blame_for_what_the_device_read() {
        let mut run = totals(reads(Method::Pread, CacheState::Warm, 4096), 100 * MIB, Some(50 * MIB));
        let plain = facts(1024 * MIB);
        assert_eq!(verdict(&run, &with(&plain)), Verdict::NotWhatItClaims, "residency was not seen");
        run.samples[0].resident_before = Some(1.0);
        run.samples[0].resident_after = Some(1.0);
        let found = reconcile(&run, &with(&plain));
        assert_eq!(found.account, Account::AnotherProgram { excess_bytes: 50 * MIB });
        assert_eq!(verdict(&run, &with(&plain)), Verdict::CannotTell);
    }

    #[test]
    fn a_scripted_target_claims_no_device() {
        let scripted = TargetFacts { kind: TargetKind::Scripted, ..facts(1024 * MIB) };
        let run = totals(reads(Method::Direct, CacheState::Direct, 4096), 100 * MIB, None);
        assert_eq!(verdict(&run, &with(&scripted)), Verdict::Ok);
        assert_eq!(verdict(&run, &with(&facts(1024 * MIB))), Verdict::CannotTell);
    }

    #[test]
    fn failure_and_a_violated_state_come_before_the_bytes() {
        let mut run = totals(reads(Method::Pread, CacheState::Warm, 4096), 100 * MIB, Some(0));
        run.state_check = StateCheck::CannotTell { reason: "no cachestat".into() };
        let context = ReconcileContext::default();
        assert_eq!(verdict(&run, &context).id(), "cannot-tell");
        run.state_check = StateCheck::Violated { reason: "cold".into() };
        assert_eq!(verdict(&run, &context).id(), "not-what-it-claims");
        run.failure = Some("EIO".into());
        assert_eq!(verdict(&run, &context).id(), "failed");
    }
}
