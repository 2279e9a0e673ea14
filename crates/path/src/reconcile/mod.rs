//! Claimed bytes against the bytes the device moved, and what explains the difference, in words.
//!
//! Goal: one account for each cell, decided by facts (target, state, pattern, threads, direction, residency) and
//! never by the size of the mismatch alone. Non-goal: correcting the claimed rate. Invariant: a mismatch that no
//! fact explains is [`Account::AnotherProgram`] or [`Account::Unaccounted`], never the nearest likely story.

#[cfg(test)]
mod tests;

use iowhy_core::cell::{CellRun, Sample, StateCheck};
use iowhy_core::environment::{TargetFacts, TargetKind};
use iowhy_core::pattern::Pattern;
use iowhy_core::units::Bytes;
use iowhy_core::workload::{CacheState, Direction, Method, Workload};

use crate::ledger::waits_for_storage;
use iowhy_core::units::percent;

/// Claimed and device bytes that differ by no more than this share agree: metadata, partial pages at the ends.
const AGREEMENT_SHARE: f64 = 0.03;
/// Absolute slack beside [`AGREEMENT_SHARE`]: a log line of another process is not a mismatch.
const AGREEMENT_BYTES: u64 = 256 * 1024;
/// Rounds up to this share are few: a median over the rounds does not see them.
const FEW_ROUNDS_SHARE: f64 = 0.25;
/// Windows that a sequential reader may leave beyond its last byte: the marker that asks for the next window stands on
/// the first page of the present one, so a reader that stops there leaves the rest of both.
const WINDOWS_AHEAD: u64 = 2;
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
    /// This share had been read ahead by the uncounted requests before each slice of a stream.
    ReadBefore {
        /// 0 to 1.
        share: f64,
    },
    /// A warm cell whose state was verified in every round, and in a few rounds the device was used all the same.
    UsedMeanwhile {
        /// Rounds in which it was.
        rounds: usize,
        /// Rounds in all.
        of: usize,
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
                "the method reads through the page cache, although `direct` was requested; {} came from it",
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
                format!("read-ahead and whole pages fetched {factor:.2} times the bytes requested")
            }
            Account::ReadBefore { share } => {
                format!(
                    "{} had been read ahead when the slices began, which are parts of a stream",
                    percent(share)
                )
            }
            Account::UsedMeanwhile { rounds, of } => format!(
                "another program (or late read-ahead of another cell) used the device in {rounds} of {of} rounds"
            ),
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

/// Compares the bytes of a cell with those of the device.
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
            Some(_) if let Some(account) = used_meanwhile(run) => account,
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
    lead: u64,
    device: Option<u64>,
    requests: u64,
    rounds: u64,
    /// Whether any part of the region was in the cache before a round, or came to be during it.
    resident: bool,
}

impl Totals {
    fn of(run: &CellRun) -> Totals {
        let counted = run.samples.iter().any(|s| s.device_bytes.is_some());
        let mut totals = Totals {
            claimed: 0,
            lead: 0,
            device: counted.then_some(0),
            requests: 0,
            rounds: 0,
            resident: false,
        };
        for s in run.samples.iter().filter(|s| s.device_bytes.is_some() == counted) {
            totals.claimed = totals.claimed.saturating_add(s.claimed_bytes);
            totals.lead = totals.lead.saturating_add(s.lead_bytes);
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

/// A warm cell does not stop being warm because somebody else used the device in a few of its rounds: what it asks
/// for was seen in the cache before and after each of them, and reading it again and again would have brought the
/// device into every round. `None` where that is not so, and where the device moved next to nothing.
fn used_meanwhile(run: &CellRun) -> Option<Account> {
    let w = &run.workload;
    let verified_warm = w.state == CacheState::Warm && run.state_check == StateCheck::Verified;
    if !verified_warm || w.direction.writes() || !through_the_cache(w) {
        return None;
    }
    let counted: Vec<(u64, u64)> =
        run.samples.iter().filter_map(|s| Some((s.claimed_bytes, s.device_bytes?))).collect();
    let touched = |&&(claimed, device): &&(u64, u64)| device as f64 > claimed as f64 * AGREEMENT_SHARE;
    let rounds = counted.iter().filter(touched).count();
    let of = counted.len();
    (rounds > 0 && rounds as f64 <= of as f64 * FEW_ROUNDS_SHARE)
        .then_some(Account::UsedMeanwhile { rounds, of })
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
    // Of the two windows of a lead the second may have brought one more, which is there when the slice begins.
    if totals.claimed - device <= totals.lead / 2 {
        return Account::ReadBefore { share: missing };
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

/// The most that reading ahead and whole pages can add: in order, [`WINDOWS_AHEAD`] past the end for each thread and
/// round; out of order, one window (or the rest of a page) for each request.
fn over_fetch_bytes(w: &Workload, context: &ReconcileContext<'_>, totals: &Totals) -> u64 {
    let window = context.read_ahead_bytes.unwrap_or(DEFAULT_READ_AHEAD_BYTES).max(PAGE_BYTES);
    let starts = match w.pattern {
        Pattern::Sequential => totals.rounds.saturating_mul(w.threads.max(1) as u64 * WINDOWS_AHEAD),
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
    Mislabelled,
    /// It could not be checked, or the check did not decide.
    Inconclusive,
    /// It failed.
    Failed,
}

impl Verdict {
    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Mislabelled => "mislabelled",
            Verdict::Inconclusive => "inconclusive",
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
        return Verdict::Mislabelled;
    }
    let w = &run.workload;
    let claims_device = matches!(w.state, CacheState::Cold | CacheState::Direct) && !w.direction.writes();
    match reconcile(run, context).account {
        Account::NotDirect { .. } => Verdict::Mislabelled,
        Account::MemoryBacked if claims_device && !is_false(context.facts) => Verdict::Mislabelled,
        Account::Holes { .. } | Account::Unwritten { .. } if claims_device => Verdict::Mislabelled,
        Account::CacheHits { .. } | Account::SharedByJobs { .. } if claims_device => Verdict::Mislabelled,
        Account::CacheHits { share } if 1.0 - share > AGREEMENT_SHARE => Verdict::Mislabelled,
        // The device read what a warm cell claims to have found in memory.
        Account::Agrees if w.state == CacheState::Warm && claims_bytes(run) => Verdict::Mislabelled,
        Account::AnotherProgram { .. } if w.state == CacheState::Warm => Verdict::Inconclusive,
        Account::AnotherProgram { .. } | Account::Unaccounted { .. } => Verdict::Inconclusive,
        Account::NoCounters if claims_device && !is_false(context.facts) => Verdict::Inconclusive,
        _ if matches!(run.state_check, StateCheck::Inconclusive { .. }) => Verdict::Inconclusive,
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
