//! What limits the path: a verdict each for cached, sequential and random reads, and the headline; no advice.
//!
//! A ratio is over or under a threshold only when its whole interval is, and its value by [`CLEARANCE`]; else the limit is
//! unknown and the missing measurement is named. Where another program moved many of the bytes, nothing is said of the device.

mod fact;
mod rules;
mod sequential;
#[cfg(test)]
mod tests;
mod throttle;

use iowhy_core::cell::CellRun;
use iowhy_core::estimate::Estimate;
use iowhy_core::limit::{Limit, LimitId};
use iowhy_core::model::StackModel;

use crate::per_request::{bytes_per_second, median};
use crate::reconcile::ReconcileContext;

use self::fact::Fact;
pub use self::rules::CLEARANCE;
use self::rules::{Near, Ruling};
use self::sequential::Streams;

/// What was measured. Every cell is optional; a rule without its cells does not decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// CPUs this process may use.
    pub cpus: usize,
    /// A configured throttle in the environment's words.
    pub throttle: Option<&'a str>,
    /// What one thread copies in user memory, in bytes per second.
    pub memcpy: Option<Estimate>,
    /// What reconciles the bytes of cells with those of devices.
    pub bytes: ReconcileContext<'a>,
    /// The fitted model, for the share of the copy.
    pub model: Option<&'a StackModel>,
    /// Cached reads of 4 KiB, one thread.
    pub cached_small: Option<&'a CellRun>,
    /// The same with two threads.
    pub cached_small_threads: Option<&'a CellRun>,
    /// Cached reads of 1 MiB, one thread.
    pub cached_large: Option<&'a CellRun>,
    /// Sequential reads of a file that is not in the cache, one thread.
    pub cold_sequential: Option<&'a CellRun>,
    /// The same with two threads.
    pub cold_sequential_threads: Option<&'a CellRun>,
    /// Large direct sequential reads, depth 1.
    pub direct_sequential: Option<&'a CellRun>,
    /// The same, several in flight.
    pub direct_sequential_deep: Option<&'a CellRun>,
    /// Small direct random reads, depth 1, one thread.
    pub random_one: Option<&'a CellRun>,
    /// The same, 16 in flight.
    pub random_half: Option<&'a CellRun>,
    /// The same, 32 in flight.
    pub random_deep: Option<&'a CellRun>,
    /// The same, 64 in flight.
    pub random_full: Option<&'a CellRun>,
    /// 32 in flight on each of two threads.
    pub random_threads: Option<&'a CellRun>,
}

/// What a limit is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Reads from the page cache.
    Cached,
    /// Sequential reads from the device.
    Sequential,
    /// Small random reads from the device.
    Random,
}

impl Question {
    /// The stable identifier, as in the JSON output.
    pub fn id(self) -> &'static str {
        match self {
            Question::Cached => "cached",
            Question::Sequential => "sequential",
            Question::Random => "random",
        }
    }
}

/// The three questions and the headline.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// See [`limit`].
    pub headline: Limit,
    /// What limits reads from the page cache.
    pub cached: Limit,
    /// What limits sequential reads from the device.
    pub sequential: Limit,
    /// What limits small random reads from the device.
    pub random: Limit,
    /// Questions that narrower intervals can decide.
    pub open: Vec<Question>,
}

/// The headline: what an ordinary program, which keeps one request in flight, meets first. A throttle found by any
/// question comes before all else, because it caps every program. Otherwise it is the verdict of the question whose
/// depth-1 cell moves the fewest bytes per second, among those that were decided; of all when none was.
pub fn limit(evidence: &Evidence<'_>) -> Limit {
    limits(evidence).headline
}

/// All verdicts.
pub fn limits(evidence: &Evidence<'_>) -> Limits {
    let verdicts = [
        (Question::Cached, cached(evidence)),
        (Question::Sequential, sequential(evidence)),
        (Question::Random, random(evidence)),
    ];
    let open = verdicts.iter().filter(|(_, verdict)| verdict.open).map(|(question, _)| *question).collect();
    let [cached, sequential, random] = verdicts.map(|(_, verdict)| Limit::from(verdict));
    let rate =
        |cell: Option<&CellRun>| cell.and_then(|c| median(c, bytes_per_second)).unwrap_or(f64::INFINITY);
    let mut questions = [
        (rate(evidence.random_one), &random),
        (rate(evidence.cold_sequential.or(evidence.direct_sequential)), &sequential),
        (rate(evidence.cached_small.or(evidence.cached_large)), &cached),
    ];
    questions.sort_by(|a, b| a.0.total_cmp(&b.0));
    let throttled = questions.iter().find(|q| q.1.id == LimitId::Throttle);
    let decided = || questions.iter().find(|q| q.1.id != LimitId::Unknown);
    // Of questions that are all open the slowest speaks for itself: what others leave open is no evidence for it.
    let headline = throttled.or_else(decided).unwrap_or(&questions[0]).1.clone();
    Limits { headline, cached, sequential, random, open }
}

fn cached(e: &Evidence<'_>) -> Verdict {
    let question = "cached reads";
    let small = e.cached_small.or(e.cached_large);
    let cells = [small, e.cached_large, e.cached_small_threads];
    decide(
        question,
        rules::cpus_shared(&cells, e.cpus),
        vec![
            (LimitId::Cpu, rules::cpu(small, e.cpus)),
            // Where a second thread adds throughput, there is bandwidth left.
            (LimitId::OneThread, rules::one_thread_cached(small, e.cached_small_threads, e.cpus)),
            (LimitId::CopyBandwidth, rules::copy_bandwidth(e.cached_large, e.model, e.memcpy)),
        ],
    )
}

fn sequential(e: &Evidence<'_>) -> Verdict {
    let question = "sequential reads from the device";
    let streams = Streams {
        cold: e.cold_sequential,
        cold_threads: e.cold_sequential_threads,
        direct: e.direct_sequential,
        deep: e.direct_sequential_deep,
    };
    let base = streams.cold.or(streams.direct);
    let cells = [streams.cold, streams.cold_threads, streams.direct, streams.deep];
    if let Some(shared) = device_shared(question, &cells, e) {
        return shared;
    }
    let throttle = throttle::throttle(&[streams.deep, streams.direct, base], e.throttle);
    let mut found = decide(
        question,
        rules::cpus_shared(&cells, e.cpus),
        vec![
            (LimitId::Throttle, throttle),
            (LimitId::Cpu, rules::cpu(base, e.cpus)),
            (LimitId::OneThread, streams.one_thread()),
            (LimitId::Depth, streams.depth()),
            (LimitId::Device, streams.device()),
        ],
    );
    if found.id == LimitId::Depth && streams.cold.is_some() {
        found.sentence =
            format!("{question}: limited by queue depth (read-ahead keeps too few requests in flight).");
    }
    found
}

/// With one request in flight the depth comes before whatever limits a deep queue; that next limit is added to the
/// evidence.
fn random(e: &Evidence<'_>) -> Verdict {
    let question = "random reads from the device";
    let all = [e.random_one, e.random_half, e.random_deep, e.random_full, e.random_threads];
    if let Some(shared) = device_shared(question, &all, e) {
        return shared;
    }
    let beyond = [
        (LimitId::Cpu, rules::cpu(e.random_threads.or(e.random_deep), e.cpus)),
        (LimitId::OneThread, rules::one_thread(e.random_deep, e.random_threads)),
        (LimitId::Device, rules::device(e.random_half, e.random_full)),
    ];
    let cells = [e.random_one, e.random_deep, e.random_threads];
    let mut found = decide(
        question,
        rules::cpus_shared(&cells, e.cpus),
        vec![
            (LimitId::Throttle, throttle::throttle(&[e.random_deep, e.random_one], e.throttle)),
            (LimitId::Cpu, rules::cpu(e.random_one, e.cpus)),
            (LimitId::Depth, rules::depth(e.random_one, e.random_deep)),
            (LimitId::Device, rules::device(e.random_one, e.random_deep)),
            (LimitId::OneThread, rules::one_thread(e.random_deep, e.random_threads)),
        ],
    );
    let next = beyond.into_iter().find_map(|(id, ruling)| match ruling {
        Ruling::Holds(evidence) if found.id == LimitId::Depth => Some((id, evidence)),
        _ => None,
    });
    if let Some((id, evidence)) = next {
        found.evidence.push(Fact::new(format!("at a deeper queue the next limit is {}", id.id()), &[]));
        found.evidence.extend(evidence);
    }
    found
}

/// No verdict where another program moved a large part of a cell's bytes: what the device gave us is then not what it
/// can give, and whether more in flight would have helped depends on the other's requests.
fn device_shared(question: &str, cells: &[Option<&CellRun>], e: &Evidence<'_>) -> Option<Verdict> {
    let evidence = rules::device_shared(cells, &e.bytes);
    (!evidence.is_empty()).then(|| Verdict {
        id: LimitId::Unknown,
        sentence: format!("{question}: limit unknown: device contention."),
        evidence,
        open: false,
    })
}

/// A verdict whose evidence is not yet in lines.
struct Verdict {
    id: LimitId,
    sentence: String,
    evidence: Vec<Fact>,
    /// Whether narrower intervals can decide it.
    open: bool,
}

impl From<Verdict> for Limit {
    fn from(v: Verdict) -> Limit {
        Limit { id: v.id, sentence: v.sentence, evidence: fact::lines(v.evidence) }
    }
}

/// The first rule that holds; else `unknown` with what came near, what would decide it, and what was not measured. `shared`
/// says that other processes used the CPUs: then more rounds would not help.
fn decide(question: &str, shared: Option<Fact>, rulings: Vec<(LimitId, Ruling)>) -> Verdict {
    let mut near: Vec<(LimitId, Near)> = Vec::new();
    let mut missing = Vec::new();
    let mut failed: Vec<(Vec<&str>, Fact)> = Vec::new();
    for (id, ruling) in rulings {
        match ruling {
            Ruling::Holds(mut evidence) => {
                evidence.extend(near.into_iter().map(near_fact));
                return Verdict { id, sentence: sentence(question, id), evidence, open: false };
            }
            Ruling::Near(fact) => near.push((id, fact)),
            Ruling::Fails(fact) => {
                // Of what is ruled out the claim is enough.
                let fact = fact.short();
                match failed.iter_mut().find(|f| f.1 == fact) {
                    Some((ids, _)) => ids.push(id.id()),
                    None => failed.push((vec![id.id()], fact)),
                }
            }
            Ruling::Missing(what) => {
                missing.push(what.preceded_by(&format!("{} was not tested: measure ", id.id())));
            }
        }
    }
    let open = shared.is_none() && near.iter().any(|(_, near)| near.open);
    let why = match (near.first(), missing.is_empty()) {
        (None, false) => "a measurement is missing".to_owned(),
        _ if shared.is_some() => "CPU contention".to_owned(),
        (Some((id, near)), _) => format!("{} ({}), {}", near.fact.claim(), id.id(), near.needs),
        (None, true) => match failed.last() {
            Some((_, fact)) => format!("no known limit fits: {}", fact.claim()),
            None => "no known limit fits".to_owned(),
        },
    };
    let failed = failed.into_iter().map(|(ids, fact)| match ids.as_slice() {
        [id] => fact.preceded_by(&format!("not {id}: ")),
        ids => fact.preceded_by(&format!("neither {}: ", ids.join(" nor "))),
    });
    let near = near.into_iter().map(near_fact);
    let evidence = near.chain(shared).chain(missing).chain(failed).collect();
    Verdict { id: LimitId::Unknown, sentence: format!("{question}: limit unknown: {why}."), evidence, open }
}

fn near_fact((id, near): (LimitId, Near)) -> Fact {
    near.fact.preceded_by(&format!("near {}: ", id.id()))
}

fn sentence(question: &str, id: LimitId) -> String {
    let what = match id {
        LimitId::Cpu => "the CPUs (all that this process may use are busy)",
        LimitId::OneThread => "one thread's CPU (a second thread adds throughput)",
        LimitId::Depth => "queue depth (the device is faster with a deeper queue)",
        LimitId::CopyBandwidth => "copy bandwidth (bytes move from kernel to user memory)",
        LimitId::Device => "the device (a deeper queue adds nothing)",
        LimitId::Throttle => "a throttle (a configured or metered rate)",
        LimitId::Unknown => return format!("{question}: limit unknown."),
    };
    format!("{question}: limited by {what}.")
}
