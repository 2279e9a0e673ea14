//! Synchronous methods on a stripe: the calling thread does the first part of a request, a thread for each other member
//! does the rest meanwhile.
//!
//! A request within one turn wakes nobody. Helpers use CPU time of their own, which is added to the cell's; what waking
//! them costs is in the request's time. Bytes that will be touched are gathered by a copy, because each member's access has
//! memory of its own; without touching nothing is copied.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use iowhy_core::problem::Problem;
use iowhy_core::stripe::{Part, Stripe};
use iowhy_core::workload::{Method, Touch, Workload};

use super::{at_member, count, of_member};
use crate::access::{Access, Completion, Failure, Request, Sent};
use crate::clock::Clock;
use crate::counters::{self, ThreadUsage};
use crate::hot_loop::HotAccess;
use crate::method;
use crate::target::stripe;

/// A thread's access to all members.
pub(super) struct Striped {
    stripe: Arc<stripe::Striped>,
    map: Stripe,
    /// One for each member that has a part of the region.
    own: Vec<Option<Box<dyn HotAccess>>>,
    /// Likewise; empty where no request can be split.
    helpers: Vec<Option<Helper>>,
    /// Whether a request is one call whatever its length (the bare call, a read at the end): it goes to one member whole.
    undivided: bool,
    /// A read of nothing is normal and not the end of the file.
    empty_is_fine: bool,
    parts: Vec<Part>,
    sent: Vec<Sent>,
    /// The bytes of the last request that was split, in their order; unused unless they are touched.
    gathered: Vec<u8>,
    gathers: bool,
    /// Which member's memory holds the last request, when it was not split.
    last_whole: Option<usize>,
    last_bytes: usize,
    ended: Option<Completion>,
    dropped: Vec<String>,
    used: ThreadUsage,
    refused_by_helpers: u64,
}

impl Striped {
    pub(super) fn new(workload: &Workload, stripe: &Arc<stripe::Striped>) -> Result<Striped, Problem> {
        let map = stripe.map();
        let undivided = matches!(workload.method, Method::Syscall | Method::PreadEnd);
        let gathers = workload.touch != Touch::None;
        let splits = !undivided && map.splits(workload.region_offset, workload.block_bytes);
        let bytes = usize::try_from(workload.block_bytes).unwrap_or(usize::MAX);
        let mut own = Vec::with_capacity(map.members());
        let mut helpers = Vec::new();
        let mut dropped: Vec<String> = Vec::new();
        for (index, member) in stripe.members().iter().enumerate() {
            let Some(workload) = of_member(workload, stripe, index) else {
                own.push(None);
                helpers.push(None);
                continue;
            };
            let access = method::open(&workload, member, &Clock::real())?;
            for note in access.dropped() {
                if !dropped.contains(note) {
                    dropped.push(note.clone());
                }
            }
            own.push(Some(access));
            helpers.push(match splits {
                true => Some(Helper::start(workload, stripe, index, gathers)?),
                false => None,
            });
        }
        if splits && gathers {
            dropped.push(
                "one buffer: the parts of a split request are gathered by a copy before they are touched"
                    .into(),
            );
        }
        Ok(Striped {
            stripe: Arc::clone(stripe),
            map,
            own,
            helpers,
            undivided,
            empty_is_fine: undivided || workload.method == Method::Fallocate,
            parts: Vec::with_capacity(map.members()),
            sent: vec![Sent::default(); map.members()],
            gathered: if splits && gathers { vec![0; bytes] } else { Vec::new() },
            gathers,
            last_whole: None,
            last_bytes: 0,
            ended: None,
            dropped,
            used: ThreadUsage::default(),
            refused_by_helpers: 0,
        })
    }

    /// Carries out one part on the calling thread.
    fn own_part(&mut self, part: Part, write: bool) -> Result<usize, Failure> {
        let request = Request { offset: part.offset, bytes: part.bytes as usize, write };
        let access = self.own.get_mut(part.member).and_then(Option::as_mut).ok_or(Failure::HelperGone)?;
        let moved = access.perform(request).map_err(at_member(&self.stripe, part.member))?;
        self.judge(part, moved)
    }

    /// A part that brought nothing: the member has ended.
    fn judge(&self, part: Part, moved: usize) -> Result<usize, Failure> {
        if moved == 0 && part.bytes > 0 && !self.empty_is_fine {
            return Err(at_member(&self.stripe, part.member)(Failure::Ended { offset: part.offset }));
        }
        Ok(moved)
    }

    /// Sends all parts but the first, does the first, waits for the others. Waits for all also when one has failed: an
    /// answer must not be taken for that of the next request.
    fn split(&mut self, write: bool) -> Result<usize, Failure> {
        let parts = std::mem::take(&mut self.parts);
        let mut result = Ok(0usize);
        let mut note = |outcome: Result<usize, Failure>| match (&mut result, outcome) {
            (Ok(sum), Ok(moved)) => *sum += moved,
            (Ok(_), Err(failure)) => result = Err(failure),
            (Err(_), _) => {}
        };
        let mut asked = 1;
        for part in parts.iter().skip(1) {
            let request = Request { offset: part.offset, bytes: part.bytes as usize, write };
            match self.helper(part.member).map(|helper| helper.jobs.send(Job::Do(request))) {
                Some(Ok(())) => asked += 1,
                _ => {
                    note(Err(Failure::HelperGone));
                    break;
                }
            }
        }
        if let Some(first) = parts.first() {
            note(self.own_part(*first, write));
        }
        for part in parts.iter().take(asked).skip(1) {
            let answer = self.helper(part.member).and_then(|helper| helper.answers.recv().ok());
            note(match answer {
                Some(Answer::Done(Ok(moved))) => self.judge(*part, moved),
                Some(Answer::Done(Err(failure))) => Err(at_member(&self.stripe, part.member)(failure)),
                _ => Err(Failure::HelperGone),
            });
        }
        if self.gathers && !write && result.is_ok() {
            self.gather(&parts);
        }
        self.parts = parts;
        result
    }

    fn helper(&self, member: usize) -> Option<&Helper> {
        self.helpers.get(member)?.as_ref()
    }

    /// Copies the bytes of all parts to their places in the request.
    fn gather(&mut self, parts: &[Part]) {
        let Some(base) = parts.first().and_then(|first| self.map.position_of(first.member, first.offset))
        else {
            return;
        };
        let mut all = std::mem::take(&mut self.gathered);
        for (index, part) in parts.iter().enumerate() {
            match (index, self.helper(part.member)) {
                (0, _) | (_, None) => {
                    let access = self.own.get(part.member).and_then(Option::as_ref);
                    if let Some(data) = access.and_then(|access| access.data(0)) {
                        spread(&self.map, *part, data, base, &mut all);
                    }
                }
                (_, Some(helper)) => {
                    let data = helper.arrived.lock().unwrap_or_else(PoisonError::into_inner);
                    spread(&self.map, *part, &data, base, &mut all);
                }
            }
        }
        self.gathered = all;
    }

    /// Asks every helper and hands its answer on.
    fn ask_all(&mut self, job: fn() -> Job, mut hear: impl FnMut(Answer)) -> Result<(), Failure> {
        let mut gone = false;
        for helper in self.helpers.iter().flatten() {
            match helper.jobs.send(job()).ok().and_then(|()| helper.answers.recv().ok()) {
                Some(answer) => hear(answer),
                None => gone = true,
            }
        }
        if gone { Err(Failure::HelperGone) } else { Ok(()) }
    }
}

/// Copies what a member brought to where it belongs in a request that begins at `base`.
fn spread(map: &Stripe, part: Part, data: &[u8], base: u64, all: &mut [u8]) {
    let mut done = 0usize;
    let length = data.len().min(part.bytes as usize);
    while done < length {
        let offset = part.offset + done as u64;
        let turn = (map.interleave() - offset % map.interleave()).min((length - done) as u64) as usize;
        let place =
            map.position_of(part.member, offset).and_then(|at| usize::try_from(at.checked_sub(base)?).ok());
        if let Some(into) = place.and_then(|at| all.get_mut(at..at.checked_add(turn)?)) {
            into.copy_from_slice(&data[done..done + turn]);
        }
        done += turn;
    }
}

impl Access for Striped {
    fn capacity(&self) -> usize {
        1
    }

    fn submit(&mut self, slot: usize, request: Request) -> Result<(), Failure> {
        let bytes = self.perform(request)?;
        self.ended = Some(Completion { slot, bytes });
        Ok(())
    }

    fn reap(&mut self, _at_least: usize, done: &mut Vec<Completion>) -> Result<(), Failure> {
        done.extend(self.ended.take());
        Ok(())
    }

    fn perform(&mut self, request: Request) -> Result<usize, Failure> {
        self.parts.clear();
        let bytes = request.bytes as u64;
        if self.undivided {
            let member = self.map.member_of(request.offset);
            let offset = self.map.held_before(request.offset, member);
            self.parts.push(Part { member, offset, bytes });
        } else {
            self.parts.extend(self.map.parts(request.offset, bytes));
        }
        for part in &self.parts {
            count(&mut self.sent, part.member, part.bytes);
        }
        let moved = match self.parts.as_slice() {
            [one] => {
                let one = *one;
                self.last_whole = Some(one.member);
                self.own_part(one, request.write)?
            }
            _ => {
                self.last_whole = None;
                self.split(request.write)?
            }
        };
        self.last_bytes = moved;
        Ok(moved)
    }

    fn data(&self, slot: usize) -> Option<&[u8]> {
        match self.last_whole {
            Some(member) => self.own.get(member)?.as_ref()?.data(slot),
            None if self.gathers => self.gathered.get(..self.last_bytes.min(self.gathered.len())),
            None => None,
        }
    }

    fn begin(&mut self) {
        self.sent.fill(Sent::default());
        // A helper that is gone fails the first request it is needed for.
        let _ = self.ask_all(|| Job::Begin, |_| {});
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let (mut used, mut refused, mut failed) = (ThreadUsage::default(), 0, None);
        let asked = self.ask_all(
            || Job::Finish,
            |answer| {
                if let Answer::Finished { usage, refused: count, failure } = answer {
                    used = used + usage;
                    refused += count;
                    failed = failed.take().or(failure);
                }
            },
        );
        self.used = used;
        self.refused_by_helpers = refused;
        for access in self.own.iter_mut().flatten() {
            access.finish()?;
        }
        asked.and(failed.map_or(Ok(()), Err))
    }

    fn dropped(&self) -> &[String] {
        &self.dropped
    }

    fn refused(&self) -> u64 {
        let own: u64 = self.own.iter().flatten().map(|access| access.refused()).sum();
        own + self.refused_by_helpers
    }

    fn sent(&self) -> &[Sent] {
        &self.sent
    }

    fn helpers(&self) -> ThreadUsage {
        self.used
    }
}

/// A request to a helper.
enum Job {
    Begin,
    Do(Request),
    Finish,
}

/// The reply of a helper.
enum Answer {
    Opened(Result<(), Problem>),
    Begun,
    Done(Result<usize, Failure>),
    Finished { usage: ThreadUsage, refused: u64, failure: Option<Failure> },
}

/// A thread that does the parts of one member.
struct Helper {
    jobs: SyncSender<Job>,
    answers: Receiver<Answer>,
    /// What the last part brought, where it is gathered.
    arrived: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    /// Starts it and waits until its member is open.
    fn start(
        workload: Workload,
        stripe: &Arc<stripe::Striped>,
        member: usize,
        gathers: bool,
    ) -> Result<Helper, Problem> {
        // Room for one: neither side waits for the other to take it, and nothing is allocated on the way.
        let (jobs, to_do) = sync_channel(1);
        let (answering, answers) = sync_channel(1);
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let (stripe, shared) = (Arc::clone(stripe), Arc::clone(&arrived));
        let run = move || help(&workload, &stripe, member, gathers.then_some(&*shared), &to_do, &answering);
        let cannot = |why: String| {
            Problem::failed(format!("cannot start a thread for a member of the stripe: {why}"))
                .hint("use fewer `--threads`, or `--method uring`, which needs no helpers")
        };
        let thread = std::thread::Builder::new()
            .name("member".to_owned())
            .spawn(run)
            .map_err(|error| cannot(error.to_string()))?;
        let mut helper = Helper { jobs, answers, arrived, thread: Some(thread) };
        match helper.answers.recv() {
            Ok(Answer::Opened(Ok(()))) => Ok(helper),
            Ok(Answer::Opened(Err(problem))) => Err(problem),
            _ => {
                helper.thread = None;
                Err(cannot("it ended at once".to_owned()))
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // Without a sender the thread's next wait for a job ends it.
        let (nobody, _) = sync_channel(1);
        self.jobs = nobody;
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked over anything that matters here.
            let _ = thread.join();
        }
    }
}

/// A helper thread: opens its member and serves requests until the channel closes.
fn help(
    workload: &Workload,
    stripe: &stripe::Striped,
    member: usize,
    arrived: Option<&Mutex<Vec<u8>>>,
    jobs: &Receiver<Job>,
    answers: &SyncSender<Answer>,
) {
    let clock = Clock::real();
    let opened = match stripe.members().get(member) {
        Some(target) => method::open(workload, target, &clock),
        None => Err(Problem::failed("there is no such member")),
    };
    let mut access = match opened {
        Ok(access) => access,
        Err(problem) => {
            let _ = answers.send(Answer::Opened(Err(problem)));
            return;
        }
    };
    if let Some(arrived) = arrived {
        arrived.lock().unwrap_or_else(PoisonError::into_inner).reserve(workload.block_bytes as usize);
    }
    if answers.send(Answer::Opened(Ok(()))).is_err() {
        return;
    }
    let mut before = counters::thread_usage(&clock);
    while let Ok(job) = jobs.recv() {
        let answer = match job {
            Job::Begin => {
                before = counters::thread_usage(&clock);
                Answer::Begun
            }
            Job::Do(request) => {
                let moved = access.perform(request);
                if let (Some(arrived), Ok(bytes), Some(data)) = (arrived, &moved, access.data(0)) {
                    let mut arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
                    arrived.clear();
                    arrived.extend_from_slice(&data[..(*bytes).min(data.len())]);
                }
                Answer::Done(moved)
            }
            Job::Finish => Answer::Finished {
                failure: access.finish().err(),
                refused: access.refused(),
                usage: counters::thread_usage(&clock).since(&before),
            },
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}
