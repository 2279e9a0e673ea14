//! What the slowest calls have in common.

use iowhy_core::tails::{SlowCall, TailsProfile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallAccount, CallPart};

/// A part that makes a sentence true of a call, or of the slowest calls: most of it.
const MOST: f64 = 0.5;
/// Without the data of the other process a call would be shorter by a fifth at least.
const MATTERS: f64 = 0.2;
/// With fewer calls "most of the slowest" says nothing.
const MIN_CALLS: usize = 5;

/// What most of the slowest calls have in common, or several of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "kebab-case")]
pub enum TailFinding {
    /// Most of the slowest syncs spend most of their time in one part of the path.
    SyncTail {
        /// How many of them.
        calls: u64,
        /// Of so many.
        of: u64,
        /// The part, as in the account of a call.
        part: String,
        /// Index of the device; `null`: none, or not the same.
        device: Option<u32>,
    },
    /// Syncs wait for the commit of a journal that writes data of another process: the thread of the journal was seen to wait for requests
    /// with that data while the sync waited for the thread.
    SharedJournal {
        /// How many of the slowest syncs.
        calls: u64,
        /// Of so many.
        of: u64,
        /// Index of the process whose data the commit holds.
        subject: u32,
        /// Index of the thread of the journal.
        journal: u32,
    },
}

/// The findings over the slowest calls and their accounts, in the same order.
pub fn findings(profile: &TailsProfile, accounts: &[CallAccount]) -> Vec<TailFinding> {
    if profile.operation != "sync" || accounts.len() < MIN_CALLS {
        return Vec::new();
    }
    let of = accounts.len() as u64;
    let mut found: Vec<TailFinding> = Vec::new();
    let calls = || profile.slowest.iter().zip(accounts);
    let shared: Vec<(u32, u32)> =
        calls().filter_map(|(call, account)| shared_with(profile, call, account)).collect();
    if let Some(((subject, journal), calls)) = most_common(&shared) {
        found.push(TailFinding::SharedJournal { calls, of, subject, journal });
    }
    let mains: Vec<(&str, Option<u32>)> = calls()
        .filter_map(|(call, account)| main_part(call, account))
        .map(|part| (part.part.as_str(), part.device))
        .collect();
    let names: Vec<&str> = mains.iter().map(|main| main.0).collect();
    if let Some((part, calls)) = most_common(&names).filter(|(_, calls)| *calls as f64 >= MOST * of as f64) {
        let mut devices = mains.iter().filter(|main| main.0 == part).map(|main| main.1);
        let first = devices.next().flatten();
        let device = first.filter(|_| devices.all(|device| device == first));
        found.push(TailFinding::SyncTail { calls, of, part: part.to_owned(), device });
    }
    found
}

/// The part that a call spends most of its time in.
pub(super) fn main_part<'a>(call: &SlowCall, account: &'a CallAccount) -> Option<&'a CallPart> {
    account.parts.first().filter(|part| part.time_ns >= MOST * call.time_ns as f64)
}

/// The process whose data the journal wrote for a part of a call's time that matters, while the call waited for its commit; and the thread of the
/// journal.
fn shared_with(profile: &TailsProfile, call: &SlowCall, account: &CallAccount) -> Option<(u32, u32)> {
    let part = account.parts.iter().find(|part| part.part == "journal")?;
    let journal = part.by.filter(|by| profile.subjects.get(*by as usize).is_some_and(|s| s.kernel))?;
    let mut parts: Vec<(u32, f64)> = Vec::new();
    let of_others = part.meanwhile.iter().filter_map(|wait| Some((wait.data_of?, wait.time_ns)));
    for (subject, time_ns) in of_others.filter(|(subject, _)| *subject != call.subject) {
        match parts.iter_mut().find(|known| known.0 == subject) {
            Some(known) => known.1 += time_ns,
            None => parts.push((subject, time_ns)),
        }
    }
    let first = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (first.1 >= MATTERS * call.time_ns as f64).then_some((first.0, journal))
}

/// The value that most have, and how many.
fn most_common<T: Copy + PartialEq>(values: &[T]) -> Option<(T, u64)> {
    let count = |value: T| values.iter().filter(|other| **other == value).count() as u64;
    values.iter().map(|value| (*value, count(*value))).max_by_key(|(_, calls)| *calls)
}
