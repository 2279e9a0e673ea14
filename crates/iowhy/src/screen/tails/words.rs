//! Sentences about slow calls.

use iowhy_core::tails::{Ended, SlowCall};
use iowhy_core::text::visible;
use iowhy_core::units::{self, counted};
use iowhy_diagnose::machine::Part as Share;
use iowhy_diagnose::tails::{CallAccount, Meanwhile, TailFinding};
use iowhy_view::document::Part;

use super::{NAMED, WORDS, accounts, device, named, percent_of, time_of_day, who};
use crate::record::tails::TailsRecord;

/// Others hardly cause a call where they cause less of it: without them it would be shorter by less than a fifth.
const HARDLY: f64 = 0.2;

/// `syncs`
pub(super) fn plural_of(operation: &str) -> String {
    match operation {
        "names" => "name calls".to_owned(),
        "descriptor" => "descriptor calls".to_owned(),
        "map" => "mapping calls".to_owned(),
        _ => format!("{operation}s"),
    }
}

/// The condition, how long was waited, and why that ended.
pub(super) fn about(record: &TailsRecord) -> String {
    let profile = &record.profile;
    let ended = match profile.ended {
        Ended::Events | Ended::Time => "",
        Ended::Process => ", the process ended",
        Ended::Interrupted => ", interrupted",
    };
    let limit = units::time(profile.limit_ns as f64);
    format!("{} > {limit}, {}{ended}", profile.operation, units::time(profile.wall_ns as f64))
}

/// The answer in one sentence.
pub(super) fn verdict(record: &TailsRecord) -> String {
    let profile = &record.profile;
    let all = profile.operations.iter().find(|of| of.operation == profile.operation);
    let (calls, most_ns) = all.map_or((0, 0), |of| (of.times.count(), of.times.max_ns()));
    let (many, limit) = (plural_of(&profile.operation), units::time(profile.limit_ns as f64));
    let one = many.strip_suffix('s').unwrap_or(&many);
    let Some((call, account)) = accounts(record).first().copied() else {
        let rest = match calls {
            0 => format!("no {one} was seen"),
            n => format!("the slowest of {} took {}", counted(n, one, &many), units::time(most_ns as f64)),
        };
        return format!("No {one} took longer than {limit}: {rest}");
    };
    let which = match (profile.over, calls) {
        (1, 1) => format!("A {one} took"),
        (1, n) => format!("1 of {} took longer than {limit}:", counted(n, one, &many)),
        (over, n) => format!("{over} of {} took longer than {limit}, the slowest", counted(n, one, &many)),
    };
    let time_ns = call.time_ns as f64;
    let main = account.parts.first().map(|part| {
        let at = part.device.map(|of| format!(" on {}", device(record, of))).unwrap_or_default();
        format!(", {} of it `{}`{at}", percent_of(part.time_ns / time_ns), part.part)
    });
    format!("{which} {}{}{}", units::time(time_ns), main.unwrap_or_default(), culprits(record, call, account))
}

/// Who caused a call, where other processes did. A thread of the kernel works for others, maybe for the caller itself.
fn culprits(record: &TailsRecord, call: &SlowCall, account: &CallAccount) -> String {
    let time_ns = call.time_ns as f64;
    let of_processes = account.caused_by.iter().filter(|part| !is_kernel(record, part.of));
    let parts: Vec<Share> = of_processes.copied().collect();
    let caused: f64 = parts.iter().map(|part| part.time_ns).sum();
    if caused < HARDLY * time_ns {
        return String::new();
    }
    let names = named(record, &parts, time_ns);
    format!("; others cause {} of it: {}", percent_of(caused / time_ns), names.join(", "))
}

fn is_kernel(record: &TailsRecord, subject: u32) -> bool {
    record.profile.subjects.get(subject as usize).is_some_and(|subject| subject.kernel)
}

/// What the slowest calls have in common.
pub(super) fn finding(record: &TailsRecord, finding: &TailFinding) -> Part {
    let (id, sentence) = match finding {
        TailFinding::SyncTail { calls, of, part, device: at } => {
            let at = at.map(|of| format!(" on {}", device(record, of))).unwrap_or_default();
            let sentence =
                format!("{calls} of the {of} slowest syncs spend most of their time in `{part}`{at}");
            ("sync-tail", sentence)
        }
        TailFinding::SharedJournal { calls, of, subject, journal } => {
            let (subject, journal) = (who(record, *subject), who(record, *journal));
            let sentence = format!(
                "{calls} of the {of} slowest syncs waited for a commit of {journal} that was writing data of {subject}"
            );
            ("shared-journal", sentence)
        }
    };
    Part::Lead(id.to_owned(), sentence)
}

/// Which call it was.
pub(super) fn call(record: &TailsRecord, call: &SlowCall) -> String {
    let file = call.file.as_ref().map(|file| format!(" on {}", visible(file))).unwrap_or_default();
    let failed = call.error.as_ref().map(|error| format!(", failed with {error}")).unwrap_or_default();
    format!(
        "{} took {} from {} UTC on: thread {} ({}) of {}{file}{failed}",
        call.call,
        units::time(call.time_ns as f64),
        time_of_day(call.began_unix_ns),
        visible(&call.thread),
        call.tid,
        who(record, call.subject)
    )
}

/// What threads of the kernel that it waited for did meanwhile.
pub(super) fn meanwhile(record: &TailsRecord, account: &CallAccount) -> Option<Part> {
    let mut lines = Vec::new();
    for part in account.parts.iter().filter(|part| part.by.is_some()) {
        let waits = part.meanwhile.iter().filter(|wait| wait.time_ns >= NAMED * part.time_ns).take(WORDS);
        let waits: Vec<String> = waits.map(|wait| waited(record, wait)).collect();
        if let Some(by) = part.by.filter(|_| !waits.is_empty()) {
            lines.push(format!("meanwhile {} waited {}", who(record, by), waits.join(", ")));
        }
    }
    (!lines.is_empty()).then_some(Part::Remarks(lines))
}

/// `40 ms for `device` vda (data of fio (123))`
fn waited(record: &TailsRecord, wait: &Meanwhile) -> String {
    let at = wait.device.map(|of| format!(" {}", device(record, of))).unwrap_or_default();
    let data = wait.data_of.map(|of| format!(" (data of {})", who(record, of))).unwrap_or_default();
    format!("{} for `{}`{at}{data}", units::time(wait.time_ns), wait.part)
}

/// What is exact, and what is inferred.
pub(super) fn trust(record: &TailsRecord) -> String {
    let calls: u64 = record.profile.operations.iter().map(|of| of.times.count()).sum();
    let mut causes =
        record.slowest.iter().chain(&record.events).flat_map(|account| &account.caused_by).peekable();
    let infers =
        if causes.peek().is_some() { "; `caused by` is inferred from requests at the device" } else { "" };
    let kernel = causes.any(|part| is_kernel(record, part.of));
    let kernel = if kernel { "; a thread of the kernel works for others: for whom is not known" } else { "" };
    format!(
        "{} timed, none sampled: percentiles are within 0.4 %, max is exact; iowhy itself used {} of a CPU (not what each call takes longer){infers}{kernel}",
        counted(calls, "call was", "calls were"),
        percent_of(record.profile.own_cpu_ns as f64 / record.profile.wall_ns.max(1) as f64)
    )
}

/// A round time that is no longer, as an option takes it: `10ms` of 14.9 ms.
fn round_below(ns: u64) -> String {
    let us = (ns / 1000).max(1);
    let round = us / 10_u64.pow(us.ilog10()) * 10_u64.pow(us.ilog10());
    if round >= 1000 { format!("{}ms", round / 1000) } else { format!("{round}us") }
}

/// Commands that say more.
pub(super) fn next(record: &TailsRecord) -> Vec<Part> {
    let pid = record.profile.pid;
    let mut parts: Vec<Part> = Vec::new();
    if record.profile.events.is_empty() {
        let all = record.profile.operations.iter().find(|of| of.operation == record.profile.operation);
        let seen_ns = all.map_or(record.profile.limit_ns / 10, |of| of.times.quantile(0.999));
        let limit = format!("{}>{}", record.profile.operation, round_below(seen_ns));
        parts.push(Part::Command(format!("sudo iowhy attach {pid} --when '{limit}'")));
    }
    if let Some(TailFinding::SharedJournal { .. }) = record.findings.first() {
        parts.push(Part::Command("iowhy explain shared-journal".to_owned()));
    }
    if record.profile.ended != Ended::Process {
        parts.push(Part::Command(format!("sudo iowhy attach {pid} --time 10s")));
    }
    parts.push(Part::Command("sudo iowhy --all --time 10s".to_owned()));
    parts
}
