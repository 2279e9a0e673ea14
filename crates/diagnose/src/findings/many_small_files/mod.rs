//! The rule `many-small-files`. Its page of the manual:
#![doc = include_str!("page.md")]

mod repair;
#[cfg(test)]
mod tests;

use iowhy_core::finding::{Finding, FindingId, Prediction};
use iowhy_core::layer::Layer;

use super::facts::{
    self, ATTRIBUTE_CHANGES, NAME_CALLS, NAME_CHANGES, OPEN_CALLS, OPEN_OR_NAME, PAGE_BYTES, Side,
};
use super::lookups::{self, Often};
use super::needless::Needless;
use super::removable::Removable;
use super::report::Draft;
use super::{Changed, Facts, Repairs, Rule, loops, say};
use crate::account::{Entry, Sum};
use crate::classify::Operation;

pub(super) const RULE: Rule = Rule {
    id: FindingId::ManySmallFiles,
    claim: "opening, examining and closing files costs more than their bytes",
    manual: include_str!("page.md"),
    judge,
    repairs: Repairs { changed: Changed::SmallFiles, ..Repairs::one(repair::repaired) },
};

/// Opens that the start of a process needs.
const OPENS_OF_A_START: f64 = 30.0;
/// Samples and sleeps in opening and examining files that make a habit where the calls were not counted.
const ENOUGH_SEEN: u64 = 20;
/// With more processes than this, their start may be what opens files.
const PROCESSES_OF_A_SCRIPT: f64 = 20.0;
/// Files with fewer bytes than this are small: finding one costs more than reading it.
const SMALL_BYTES: f64 = 65_536.0;
/// Where more of the calls fail, it is not files that they cost.
const MAX_FAILING: f64 = 0.5;
/// Part of the wall time of names that are counted, from which on they are a cause whatever else goes on.
const BESIDE_OTHERS: f64 = 0.15;
/// From so many looks for each open on, what is opened does not matter. Chosen: handling a file takes one to three (its name, its descriptor,
/// a failing one on the way).
const MANY_LOOKS: f64 = 10.0;
/// Part of the I/O time that names must take where nothing is known of the size of files.
const MUCH: f64 = 0.4;

fn judge(facts: &Facts<'_>) -> Option<Finding> {
    let files = Files::seen(facts)?;
    let cost = Cost::new(facts, &files);
    if !cost.weighs_enough(facts, &files) {
        return None;
    }
    let cost_ns = cost.names.wall_ns + cost.bytes.wall_ns;
    let share = say::percent(facts.wall_share(cost_ns));
    let mostly_waits = cost.waiting.wall_ns > cost.working.wall_ns;
    let (sentence, advice) = match look_ups(facts) {
        Some(look_ups) => {
            let often = lookups::often(facts);
            let cause = match often {
                Often::Again => "the same names are looked up again and again",
                Often::Seldom(_) | Often::Unknown => "looking at names is the cost, not what is in the files",
            };
            let (look_ups, opens) = (say::count(look_ups), say::count(files.opens.unwrap_or(0.0)));
            (
                format!("{look_ups} look-ups of names and {opens} opens take {share} of wall time: {cause}"),
                advice_on_lookups(often, mostly_waits),
            )
        }
        None => (
            format!(
                "{} take {share} of wall time: the number of files is the cost, not their bytes",
                subject(facts, files.opens)
            ),
            advice(mostly_waits),
        ),
    };
    Draft {
        id: FindingId::ManySmallFiles,
        cost_ns,
        removable: Some(removable(facts, &files)),
        sentence,
        evidence: evidence(facts, &files, &cost),
        advice,
    }
    .finding_by_account(facts, without_repeated_look_ups(facts))
}

/// The run without look-ups of names that were looked up before, where those are the cost.
fn without_repeated_look_ups(facts: &Facts<'_>) -> Option<Prediction> {
    look_ups(facts).filter(|_| lookups::often(facts) == Often::Again)?;
    let repeated = lookups::repeated_part(facts)?;
    let calls = &facts.profile.calls.as_ref()?.calls;
    let all: u64 = calls.iter().map(|call| call.calls).sum();
    let examine = calls.iter().filter(|call| facts::EXAMINE_CALLS.contains(&call.name.as_str()));
    let of_all = examine.map(|call| call.calls).sum::<u64>() as f64 / all.max(1) as f64;
    let needless = Needless {
        how: "each name looked up once",
        notes: vec!["at the short end their listings go as well".to_owned()],
        of_all_calls: repeated * of_all,
        of_own_code: of_all,
    };
    let looks = |e: &Entry| f64::from(e.class.operation == Operation::Stat);
    let lists = |e: &Entry| f64::from(e.class.operation == Operation::Names);
    needless.prediction(facts, |e| repeated * looks(e), |e| looks(e).max(lists(e)))
}

/// The files that the program opens and names.
struct Files {
    opens: Option<f64>,
    /// Bytes moved for each open.
    bytes_each: Option<f64>,
    /// Whether their calls were counted, and are more than those of a start.
    known: bool,
}

impl Files {
    /// `None` where the calls are those of something else, or too few.
    fn seen(facts: &Facts<'_>) -> Option<Files> {
        if is_something_else(facts) {
            return None;
        }
        let opens = facts.counted_calls(&OPEN_CALLS);
        // The start of a process opens as many; a sample or two in opening show no habit.
        let known = opens.is_some_and(|o| o >= 2.0 * OPENS_OF_A_START)
            || facts.counted_calls(&NAME_CALLS).is_some_and(|n| n >= 10.0 * OPENS_OF_A_START);
        if !known && facts.account.sum(names).events < ENOUGH_SEEN {
            return None;
        }
        let moved: f64 = Side::BOTH.iter().filter_map(|s| facts.bytes(*s)).sum();
        let bytes_each = opens.filter(|o| *o >= 1.0).map(|o| moved / o);
        Some(Files { opens, bytes_each, known })
    }

    fn are_small(&self) -> bool {
        self.bytes_each.is_some_and(|b| b <= SMALL_BYTES)
    }

    /// Bytes of small files are found and fetched file by file as well; their copying is not part of it.
    fn bytes(&self, e: &Entry) -> bool {
        self.are_small()
            && e.wall_ns > 0.0
            && matches!(e.class.operation, Operation::Read | Operation::Write)
            && e.class.layer != Layer::Copy
    }

    fn waits(&self, e: &Entry) -> bool {
        !e.busy && (names(e) || self.bytes(e))
    }

    fn work(&self, e: &Entry) -> bool {
        e.busy && (names(e) || self.bytes(e))
    }

    /// Copying a piece of less than a page costs about the same whatever its size.
    fn copying(&self, e: &Entry) -> bool {
        e.busy
            && e.class.layer == Layer::Copy
            && matches!(e.class.operation, Operation::Read | Operation::Write)
            && self.bytes_each.is_some_and(|b| b <= PAGE_BYTES)
    }
}

/// Look-ups of names, where they are so many that what is opened does not matter.
fn look_ups(facts: &Facts<'_>) -> Option<f64> {
    let look_ups = facts.counted_calls(&facts::EXAMINE_CALLS)?;
    let opens = facts.counted_calls(&OPEN_CALLS)?;
    (look_ups >= MANY_LOOKS * opens.max(OPENS_OF_A_START)).then_some(look_ups)
}

/// What they cost.
struct Cost {
    names: Sum,
    bytes: Sum,
    /// Waiting in them.
    fetching: Sum,
    /// All transfers, whatever the size of their files.
    transfer: Sum,
    waiting: Sum,
    working: Sum,
}

impl Cost {
    fn new(facts: &Facts<'_>, files: &Files) -> Cost {
        let transfers = |e: &Entry| {
            e.wall_ns > 0.0
                && matches!(e.class.operation, Operation::Read | Operation::Write | Operation::Sync)
        };
        Cost {
            names: facts.account.sum(names),
            bytes: facts.account.sum(|e| files.bytes(e)),
            fetching: facts.account.sum(|e| !e.busy && files.bytes(e)),
            transfer: facts.account.sum(transfers),
            waiting: facts.account.sum(|e| files.waits(e)),
            working: facts.account.sum(|e| files.work(e)),
        }
    }

    fn weighs_enough(&self, facts: &Facts<'_>, files: &Files) -> bool {
        let enough = if files.are_small() { 0.2 } else { MUCH };
        // Beside another cause that moves many bytes, names may weigh less and still be worth a change.
        let much_of_all = files.known && facts.wall_share(self.names.wall_ns) >= BESIDE_OTHERS;
        // Of small files each is fetched by itself: what reading them waits for is the number of files, as names are.
        let of_files = self.names.wall_ns + self.fetching.wall_ns;
        of_files >= enough * (self.names.wall_ns + self.transfer.wall_ns) || much_of_all
    }
}

/// The calls on files, and the samples in the functions of calls.
fn removable(facts: &Facts<'_>, files: &Files) -> Removable {
    let within_calls = loops::within_calls(facts);
    let around = |e: &Entry| if files.known { within_calls(e) } else { 0.0 };
    facts.removable(|e| {
        let of_files = files.work(e) || files.waits(e) || files.copying(e) || facts::entering(e);
        around(e).max(f64::from(of_files))
    })
}

fn evidence(facts: &Facts<'_>, files: &Files, cost: &Cost) -> Vec<String> {
    let share = |ns: f64| say::percent(facts.wall_share(ns));
    let of = |operation| share(facts.account.sum(|e| names(e) && e.class.operation == operation).wall_ns);
    let mut evidence = vec![format!(
        "open {}, close {}, stat {}, changing and listing names {} of wall time; read and write {}",
        of(Operation::Open),
        of(Operation::Close),
        of(Operation::Stat),
        of(Operation::Names),
        share(cost.transfer.wall_ns)
    )];
    if let (Some(opens), Some(each)) = (files.opens, files.bytes_each) {
        evidence.push(format!("{} opens; {} moved for each", say::count(opens), say::bytes(each)));
    }
    evidence.extend(look_ups(facts).and_then(|_| lookups::evidence(facts)));
    evidence.push(format!(
        "{} is CPU time, {} waiting",
        share(cost.working.wall_ns),
        share(cost.waiting.wall_ns)
    ));
    evidence
}

/// One file that is opened repeatedly, a search along a path, or the start of processes.
fn is_something_else(facts: &Facts<'_>) -> bool {
    let look_ups_are_repeated = || look_ups(facts).is_some() && lookups::often(facts) == Often::Again;
    let one_file = !facts.handles_many_files() && !look_ups_are_repeated();
    if one_file || facts.failed_part(&OPEN_OR_NAME).is_some_and(|part| part > MAX_FAILING) {
        return true;
    }
    let opens = facts.counted_calls(&OPEN_CALLS);
    let processes = facts.profile.processes.iter().map(|p| p.count.max(1)).sum::<u64>().max(1) as f64;
    let at_start = opens.is_some_and(|o| o < 2.0 * OPENS_OF_A_START * processes)
        && facts.counted_calls(&NAME_CALLS).is_none_or(|n| n < 10.0 * OPENS_OF_A_START * processes);
    // A script that starts many programs opens their libraries; without a count the two look the same.
    at_start || (opens.is_none() && processes > PROCESSES_OF_A_SCRIPT)
}

fn advice(mostly_waits: bool) -> String {
    let pack = "Pack small files into few large ones (an archive, SQLite, a key-value store), keep files open, and omit \
                unneeded calls (stat before open, access, realpath)";
    format!("{pack}; if they must stay separate, {}", apart(mostly_waits))
}

fn advice_on_lookups(often: Often, mostly_waits: bool) -> String {
    let again = "keep what a listing or stat returned in memory and follow changes (inotify, or your own), and keep a counter instead of \
                 testing which names are free";
    let once = format!(
        "use the types in the directory listing (d_type) instead of stat, or {}",
        apart(mostly_waits)
    );
    match often {
        Often::Again => format!("Do not look up again: {again}."),
        Often::Seldom(each) => format!("Each name is looked up {each:.1} times, on the average: {once}"),
        Often::Unknown => {
            format!(
                "If the same names are looked up again and again, {again}; if each is looked up once, {once}"
            )
        }
    }
}

fn apart(mostly_waits: bool) -> &'static str {
    if mostly_waits {
        "process 8 to 32 at once (threads, xargs -P) in the order of their inode numbers (sort the directory listing by d_ino)."
    } else {
        "spread them over several threads and directories."
    }
}

/// Work on names and descriptors, without the bytes, and without waits for blocks to be freed: those are longer for larger files.
fn names(e: &Entry) -> bool {
    let of_names = [Operation::Open, Operation::Close, Operation::Stat, Operation::Names];
    e.wall_ns > 0.0 && of_names.contains(&e.class.operation) && !facts::frees_blocks(e)
}

fn subject(facts: &Facts<'_>, opens: Option<f64>) -> String {
    let changes = facts.counted_calls(&NAME_CHANGES).zip(facts.counted_calls(&ATTRIBUTE_CHANGES));
    match (opens, changes.map(|(names, attributes)| names + attributes)) {
        (Some(opens), Some(changes)) if changes >= OPENS_OF_A_START && changes > opens => {
            format!(
                "{} changes of names and attributes, {} opens, and the closes and look-ups around them",
                say::count(changes),
                say::count(opens)
            )
        }
        (Some(opens), _) if opens >= OPENS_OF_A_START => {
            format!("{} opens with their closes and look-ups", say::count(opens))
        }
        _ => "Opening, examining and closing files".to_owned(),
    }
}
