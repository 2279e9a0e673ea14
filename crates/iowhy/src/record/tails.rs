//! The record of `attach --when`: slow calls with their accounts, what the slowest have in common, the raw profile last.

use iowhy_core::environment::Environment;
use iowhy_core::tails::TailsProfile;
use iowhy_core::warning::Warning;
use iowhy_diagnose::classify::Classifier;
use iowhy_diagnose::tails::{CallAccount, TailFinding, account, findings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::watch::Invocation;
use super::{Kind, SCHEMA};

/// The calls of a program by their time, and where its slow calls spent theirs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TailsRecord {
    /// Version of this format.
    pub schema: u32,
    /// Which record it is.
    pub kind: Kind,
    /// Version of iowhy.
    pub iowhy: String,
    /// The command line.
    pub command: String,
    /// The process.
    pub subject: String,
    /// Machine.
    pub environment: Environment,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
    /// Where each event of the profile spent its time, in the same order.
    pub events: Vec<CallAccount>,
    /// The same of the slowest calls.
    pub slowest: Vec<CallAccount>,
    /// What the slowest calls have in common.
    pub findings: Vec<TailFinding>,
    /// What was seen.
    pub profile: TailsProfile,
}

impl TailsRecord {
    /// Puts it together.
    pub fn new(profile: TailsProfile, invocation: Invocation) -> TailsRecord {
        let classifier = Classifier::new();
        let of = |calls: &[_]| calls.iter().map(|call| account(&profile, call, &classifier)).collect();
        let (events, slowest): (_, Vec<CallAccount>) = (of(&profile.events), of(&profile.slowest));
        TailsRecord {
            schema: SCHEMA,
            kind: Kind::Tails,
            iowhy: env!("CARGO_PKG_VERSION").to_owned(),
            command: invocation.command,
            subject: invocation.subject,
            environment: invocation.environment,
            warnings: warnings(&profile),
            findings: findings(&profile, &slowest),
            events,
            slowest,
            profile,
        }
    }
}

fn warnings(profile: &TailsProfile) -> Vec<Warning> {
    let lost = &profile.lost;
    let mut messages: Vec<String> = profile.gaps.clone();
    let mut said = |n: u64, words: &str| {
        if n > 0 {
            messages.push(format!("{n} {words}"));
        }
    };
    said(lost.calls, "calls were not timed: the table of calls under way was full");
    said(lost.compat, "calls of 32-bit programs were not timed");
    said(lost.told, "slow calls were lost: the buffer was full");
    said(lost.waits, "waits were not followed: the tables or the buffer for them were full");
    said(lost.requests, "events of block requests were lost: the buffer was full");
    said(lost.stacks, "sleeps in calls have no stack: another stack had its place in the table");
    said(lost.pooled, "events are of processes that share an entry of their name: there were too many");
    messages.into_iter().map(|message| Warning { code: "not-seen".to_owned(), message, next: None }).collect()
}
