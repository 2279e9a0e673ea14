//! Where the ranks of a job meet: files in a private directory below the target. The first rank (number 0) lets the others in, answers each
//! meeting when all have come, and removes everything.
//!
//! Non-goal: what they meet for. Invariants: nothing is believed but complete messages of this run, written by this user under a name of
//! their own; a process that gives up tells the others why, and the directory goes with the run.

mod files;
mod offset;
#[cfg(test)]
mod tests;
mod wait;

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::units::{count, counted, time};
use iowhy_linux::names::{Dir, owner};
use rustix::fs::{FlockOperation, OFlags, flock, fstat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

pub(crate) use self::offset::Offset;
use self::wait::Wait;
pub(crate) use self::wait::{Real, World};
use crate::record::rank::RankRecord;

/// Another process may take this many times as long as this one did from one meeting to the next.
const MAX_RATIO: u64 = 10;
/// How long the last to leave waits for the others.
const GRACE: Duration = Duration::from_secs(2);
/// From the answer to a meeting to what begins then, at first: ranks look every few milliseconds.
const LEAD: Duration = Duration::from_millis(15);
/// At most.
const MAX_LEAD: Duration = Duration::from_secs(4);

/// A process, as it shows itself to the others.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Member {
    rank: RankRecord,
    /// Its number in its own PID namespace: for messages.
    pid: u32,
    /// Version of iowhy, and the options that must be the same for all.
    plan: String,
}

/// Content of [`files::RUN`] and of requests to be let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Hello {
    member: Member,
    at_unix_ns: i64,
}

/// The first rank lets a process in.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Welcome {
    run: String,
    at_unix_ns: i64,
}

/// A rank has come to a meeting.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ready {
    run: String,
    at_unix_ns: i64,
    /// When it had read the message of the first rank before.
    saw_unix_ns: i64,
    /// How much after the start that was asked for it read of it.
    late_ns: u64,
    payload: String,
}

/// All ranks have come.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Go {
    run: String,
    at_unix_ns: i64,
    start_unix_ns: i64,
    /// Lead of each rank's clock, by rank.
    offsets_ns: Vec<i64>,
}

/// The run ended early.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct End {
    rank: u64,
    host: String,
    reason: String,
}

/// Another rank, as the first one knows it.
#[derive(Debug)]
struct Peer {
    member: Member,
    /// Its request, whose lock shows that it lives.
    name: CString,
    file: OwnedFd,
    same_kernel: bool,
    offset: Offset,
    /// When the last message to it was written.
    told_unix_ns: i64,
}

/// What is known of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Lives,
    Ended,
    /// Another kernel, or no locks.
    Unknown,
}

/// A place among the ranks of a run.
pub(crate) struct Rendezvous<'w> {
    world: &'w dyn World,
    target: Dir,
    dir: Dir,
    me: Member,
    ranks: u64,
    run: String,
    /// The file that stands for this process, locked while it is open.
    own: (CString, OwnedFd),
    /// The others, where this is the first rank; else the first.
    peers: Vec<Peer>,
    meeting: u64,
    patience: Duration,
    /// When the last meeting ended.
    left_ns: u64,
    /// When the last message of the first rank was read.
    saw_unix_ns: i64,
    late_ns: u64,
    lead: Duration,
    over: bool,
}

/// What a meeting brought.
pub(crate) struct Met {
    /// What each rank brought, by rank: for the first one only.
    pub(crate) payloads: Vec<String>,
    /// When all begin, by the clock of this process.
    start_unix_ns: i64,
}

/// Who takes part.
pub(crate) struct Job<'a> {
    /// This process.
    pub(crate) own: &'a RankRecord,
    /// How many there are.
    pub(crate) ranks: u64,
    /// What must be the same for all.
    pub(crate) plan: String,
    /// How long a process is waited for that shows no sign of life.
    pub(crate) patience: Duration,
}

/// The directory of a rendezvous. Users do not meet each other.
fn place() -> CString {
    CString::new(format!(".iowhy-ranks-{}", owner().as_raw())).unwrap_or_default()
}

impl<'w> Rendezvous<'w> {
    /// Finds the other ranks below a directory. Returns for the first rank when all have come, for another when it is let in.
    ///
    /// # Errors
    /// Ranks that do not come, two of one number, other options, another run there, a directory that cannot be written.
    pub(crate) fn join(world: &'w dyn World, target: Dir, job: &Job<'_>) -> Result<Rendezvous<'w>, Problem> {
        let plan = format!("iowhy {} {}", env!("CARGO_PKG_VERSION"), job.plan);
        let me = Member { rank: job.own.clone(), pid: std::process::id(), plan };
        let wait = Wait::new(world, job.patience);
        if job.own.rank > 0 {
            return follow(world, target, me, job, wait);
        }
        let (dir, own) = begin(world, &target, &me)?;
        let mut meeting = Rendezvous {
            world,
            target,
            dir,
            me,
            ranks: job.ranks,
            run: iowhy_linux::host::random_id(),
            own,
            peers: Vec::new(),
            meeting: 0,
            patience: job.patience,
            left_ns: world.monotonic_ns(),
            saw_unix_ns: 0,
            late_ns: 0,
            lead: LEAD,
            over: false,
        };
        match meeting.let_in(wait) {
            Ok(()) => Ok(meeting),
            Err(problem) => {
                meeting.give_up(&problem);
                Err(problem)
            }
        }
    }

    /// Waits for the other ranks, and lets them in.
    fn let_in(&mut self, wait: Wait<'w>) -> Result<(), Problem> {
        while (self.peers.len() as u64) + 1 < self.ranks {
            self.check()?;
            for entry in self.dir.entries().unwrap_or_default() {
                let known = || self.peers.iter().any(|peer| peer.name == entry.name);
                if files::nonce(&entry.name).is_some() && !known() {
                    self.let_one_in(&entry.name)?;
                }
            }
            if let Some(gone) = self.peers.iter().find(|peer| self.life(peer) == Life::Ended) {
                return Err(self.ended(gone));
            }
            if wait.is_over() {
                return Err(self.missing());
            }
            wait.sleep();
        }
        self.peers.sort_by_key(|peer| peer.member.rank.rank);
        Ok(())
    }

    fn let_one_in(&mut self, name: &CStr) -> Result<(), Problem> {
        let Some(file) = self.dir.open_ours(name, OFlags::RDONLY) else { return Ok(()) };
        let Some(Hello { member, at_unix_ns }) = file.try_clone().ok().and_then(files::read_open::<Hello>)
        else {
            return Ok(());
        };
        let same_kernel = is_same_kernel(&self.me.rank, &member.rank);
        let mut offset = if same_kernel { Offset::SAME } else { Offset::UNKNOWN };
        let now = self.world.unix_ns();
        if !same_kernel {
            offset.heard(at_unix_ns, now);
        }
        let peer = Peer { member, name: name.to_owned(), file, same_kernel, offset, told_unix_ns: now };
        if self.life(&peer) == Life::Ended {
            // Left by a run before this one, or gone already.
            let _ = self.dir.remove_file(name);
            return Ok(());
        }
        self.admit(&peer.member)?;
        let Some(nonce) = files::nonce(name) else { return Ok(()) };
        let welcome = Welcome { run: self.run.clone(), at_unix_ns: now };
        let answer = files::welcome(nonce);
        files::write(&self.dir, &answer, &welcome)
            .map_err(|errno| files::cannot_write(&self.dir, &answer, errno))?;
        self.peers.push(peer);
        Ok(())
    }

    /// Whether a process may take part.
    fn admit(&self, other: &Member) -> Result<(), Problem> {
        let rank = other.rank.rank;
        let mine = std::iter::once(&self.me).chain(self.peers.iter().map(|peer| &peer.member));
        if let Some(same) = mine.into_iter().find(|member| member.rank.rank == rank) {
            return Err(Problem::refused(format!(
                "two processes are rank {rank}: {} and {}",
                who(same),
                who(other)
            ))
            .hint("start each with a rank of its own: by mpirun, srun, or `--rank N --ranks=M`"));
        }
        if rank >= self.ranks {
            return Err(Problem::refused(format!(
                "{} is rank {rank}, and there are {} ranks, which count from 0",
                who(other),
                self.ranks
            ))
            .hint("give all processes the same `--ranks=M`"));
        }
        if other.plan != self.me.plan {
            return Err(Problem::refused(format!(
                "rank {rank} ({}) was given other options, or is of another version, than rank 0: their figures are of different \
                 workloads",
                who(other)
            ))
            .hint("start all ranks with the same command, by one version of iowhy"));
        }
        Ok(())
    }

    /// Ranks that have not come.
    fn missing(&self) -> Problem {
        let here = |rank: &u64| self.peers.iter().any(|peer| peer.member.rank.rank == *rank);
        let missing: Vec<u64> = (1..self.ranks).filter(|rank| !here(rank)).collect();
        let named = crate::screen::merge::named(&crate::screen::merge::ranges(&missing));
        Problem::failed(format!(
            "{named} of {} did not come within {}",
            counted(self.ranks, "rank", "ranks"),
            time(self.patience.as_nanos() as f64)
        ))
        .hint(format!(
            "start all {} with one target directory that their hosts share, or wait longer: `--rank-limit 5m`",
            count(self.ranks)
        ))
    }

    /// Returns when all ranks have called it as often. The first rank gets what each of them brought.
    ///
    /// # Errors
    /// A rank that ended, gave up, or shows no sign of life; an interrupt.
    pub(crate) fn meet(&mut self, payload: String) -> Result<Met, Problem> {
        let spent = self.world.monotonic_ns().saturating_sub(self.left_ns);
        let limit = self.patience + Duration::from_nanos(spent.saturating_mul(MAX_RATIO));
        let wait = Wait::new(self.world, limit);
        let met = match self.me.rank.rank {
            0 => self.answer(payload, wait),
            _ => self.ask(payload, wait),
        };
        match met {
            Ok(met) => {
                self.meeting += 1;
                self.left_ns = self.world.monotonic_ns();
                Ok(met)
            }
            Err(problem) => {
                self.give_up(&problem);
                Err(problem)
            }
        }
    }

    /// The first rank's side.
    fn answer(&mut self, payload: String, mut wait: Wait<'w>) -> Result<Met, Problem> {
        let mut payloads: Vec<Option<String>> = vec![None; self.peers.len()];
        let mut late_ns = std::mem::take(&mut self.late_ns);
        loop {
            for (peer, known) in self.peers.iter_mut().zip(&mut payloads).filter(|(_, known)| known.is_none())
            {
                let name = files::ready(self.meeting, peer.member.rank.rank);
                let Some(ready) = files::read::<Ready>(&self.dir, &name) else { continue };
                if ready.run != self.run {
                    continue;
                }
                if !peer.same_kernel {
                    peer.offset.heard(ready.at_unix_ns, self.world.unix_ns());
                    peer.offset.told(peer.told_unix_ns, ready.saw_unix_ns);
                }
                late_ns = late_ns.max(ready.late_ns);
                *known = Some(ready.payload);
            }
            let Some(at) = payloads.iter().position(Option::is_none) else { break };
            self.check()?;
            if wait.is_time_to_look() {
                for (peer, _) in self.peers.iter().zip(&payloads).filter(|(_, known)| known.is_none()) {
                    match self.life(peer) {
                        Life::Ended => return Err(self.ended(peer)),
                        Life::Unknown if wait.is_over() => return Err(silent(&self.peers[at], &wait)),
                        Life::Unknown | Life::Lives => {}
                    }
                }
            }
            wait.sleep();
        }
        // All have read the answer before.
        if let Some(before) = self.meeting.checked_sub(1) {
            let _ = self.dir.remove_file(&files::go(before));
        }
        if late_ns > 0 {
            self.lead = (self.lead * 2).min(MAX_LEAD);
        }
        let now = self.world.unix_ns();
        let start_unix_ns = now.saturating_add(self.lead.as_nanos() as i64);
        let offsets_ns =
            std::iter::once(0).chain(self.peers.iter().map(|peer| peer.offset.middle_ns())).collect();
        let go = Go { run: self.run.clone(), at_unix_ns: now, start_unix_ns, offsets_ns };
        let name = files::go(self.meeting);
        files::write(&self.dir, &name, &go).map_err(|errno| files::cannot_write(&self.dir, &name, errno))?;
        self.peers.iter_mut().for_each(|peer| peer.told_unix_ns = now);
        let payloads = std::iter::once(payload).chain(payloads.into_iter().flatten()).collect();
        Ok(Met { payloads, start_unix_ns })
    }

    /// The side of the others.
    fn ask(&mut self, payload: String, mut wait: Wait<'w>) -> Result<Met, Problem> {
        let rank = self.me.rank.rank;
        let ready = Ready {
            run: self.run.clone(),
            at_unix_ns: self.world.unix_ns(),
            saw_unix_ns: self.saw_unix_ns,
            late_ns: std::mem::take(&mut self.late_ns),
            payload,
        };
        let name = files::ready(self.meeting, rank);
        self.check()?;
        if let Err(errno) = files::write(&self.dir, &name, &ready) {
            // A directory that is gone takes no names.
            return Err(self.look().err().unwrap_or_else(|| files::cannot_write(&self.dir, &name, errno)));
        }
        let go = loop {
            let go = files::read::<Go>(&self.dir, &files::go(self.meeting));
            if let Some(go) = go.filter(|go| go.run == self.run) {
                break go;
            }
            self.check()?;
            if wait.is_time_to_look() {
                self.look()?;
                let first = &self.peers[0];
                match self.life(first) {
                    Life::Ended => return Err(self.ended(first)),
                    Life::Unknown if wait.is_over() => return Err(silent(first, &wait)),
                    Life::Unknown | Life::Lives => {}
                }
            }
            wait.sleep();
        };
        self.saw_unix_ns = self.world.unix_ns();
        let _ = self.dir.remove_file(&name);
        let own = go.offsets_ns.get(usize::try_from(rank).unwrap_or(usize::MAX)).copied().unwrap_or(0);
        Ok(Met { payloads: Vec::new(), start_unix_ns: go.start_unix_ns.saturating_add(own) })
    }

    /// Sleeps until all begin.
    pub(crate) fn wait_for_start(&mut self, met: &Met) {
        let left = met.start_unix_ns.saturating_sub(self.world.unix_ns());
        self.late_ns = u64::try_from(left.saturating_neg()).unwrap_or(0);
        if let Ok(left) = u64::try_from(left) {
            // A clock that was set must not make this a wait without end.
            self.world.sleep(Duration::from_nanos(left).min(2 * MAX_LEAD));
        }
    }

    /// The lead of each rank's clock over the first rank's, by rank.
    pub(crate) fn offsets(&self) -> Vec<Offset> {
        std::iter::once(Offset::SAME).chain(self.peers.iter().map(|peer| peer.offset)).collect()
    }

    /// An interrupt, or word of another rank that the run is over.
    fn check(&self) -> Result<(), Problem> {
        if self.world.interrupted() {
            return Err(Problem::failed("interrupted: the ranks have no result together")
                .hint("run it again and let it end"));
        }
        if self.dir.stat(files::END).is_err() {
            return Ok(());
        }
        let end: Option<End> = files::read(&self.dir, files::END);
        Err(match end {
            Some(End { rank, host, reason }) => {
                Problem::failed(format!("rank {rank} on {host} ended the run: {reason}"))
            }
            None => Problem::failed("another rank ended the run; what it wrote to stderr says why"),
        })
    }

    /// Whether this process still has its place.
    fn look(&self) -> Result<(), Problem> {
        self.check()?;
        match is_there(&self.dir, &self.own.0, &self.own.1) {
            true => Ok(()),
            false => Err(Problem::failed(format!(
                "`{}`, by which the ranks meet, was removed: the run is over for all ranks",
                self.dir.path().display()
            ))
            .hint("what the other ranks wrote to stderr says why")),
        }
    }

    fn life(&self, peer: &Peer) -> Life {
        if self.dir.stat(&peer.name).is_err_and(|errno| errno == Errno::NOENT) {
            return Life::Ended;
        }
        if peer.same_kernel { life_by_lock(&peer.file) } else { Life::Unknown }
    }

    fn ended(&self, peer: &Peer) -> Problem {
        let Problem { message, .. } = match self.check() {
            Err(said) => return said,
            Ok(()) => Problem::failed(format!("rank {} ended: {}", peer.member.rank.rank, who(&peer.member))),
        };
        Problem::failed(format!("{message}; without it the ranks have no result together"))
            .hint("what it wrote to stderr says why; a kill for lack of memory is in `dmesg`")
    }

    /// Tells the others that the run is over, and leaves.
    pub(crate) fn give_up(&mut self, problem: &Problem) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let end =
            End { rank: self.me.rank.rank, host: self.me.rank.host.clone(), reason: problem.message.clone() };
        // Who told them first waits for them, and removes what a rank that was killed left.
        let first = files::write(&self.dir, files::END, &end).is_ok();
        let _ = self.dir.remove_file(&files::ready(self.meeting, end.rank));
        let _ = self.dir.remove_file(&self.own.0);
        if first {
            self.clear_when_alone();
        }
    }

    /// Leaves after the last meeting.
    pub(crate) fn finish(mut self) {
        self.over = true;
        if self.me.rank.rank == 0 {
            self.clear_when_alone();
        } else {
            let _ = self.dir.remove_file(&self.own.0);
        }
    }

    /// Removes the directory, once all processes that live have left it, or after a while.
    fn clear_when_alone(&self) {
        let wait = Wait::new(self.world, GRACE);
        let lives = |name: &CStr| {
            let file = self.dir.open_ours(name, OFlags::RDONLY);
            name != self.own.0.as_c_str() && file.is_some_and(|file| life_by_lock(&file) != Life::Ended)
        };
        let others = || {
            let entries = self.dir.entries().unwrap_or_default();
            entries.iter().any(|entry| {
                (files::nonce(&entry.name).is_some() || entry.name.as_c_str() == files::RUN)
                    && lives(&entry.name)
            })
        };
        while !wait.is_over() && others() {
            wait.sleep();
        }
        // A name may be made between the two.
        for _ in 0..MAX_ATTEMPTS {
            files::clear(&self.dir);
            match self.target.remove_dir(&place(), &self.dir) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Ok(()) | Err(_) => return,
            }
        }
    }
}

impl Drop for Rendezvous<'_> {
    fn drop(&mut self) {
        self.give_up(&Problem::failed("it ended early"));
    }
}

/// Attempts to make or remove what other processes also make or remove.
const MAX_ATTEMPTS: usize = 10;
/// Between them.
const RETRY: Duration = Duration::from_millis(5);

/// Whether two processes run on one kernel, and so share locks and clock.
fn is_same_kernel(one: &RankRecord, other: &RankRecord) -> bool {
    one.boot_id.is_some() && one.boot_id == other.boot_id
}

/// Whether the process that made a file still has it locked.
fn life_by_lock(file: &OwnedFd) -> Life {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            let _ = flock(file, FlockOperation::Unlock);
            Life::Ended
        }
        Err(Errno::WOULDBLOCK) => Life::Lives,
        Err(_) => Life::Unknown,
    }
}

/// Whether a name still leads to an open file.
fn is_there(dir: &Dir, name: &CStr, file: &OwnedFd) -> bool {
    match (dir.stat(name), fstat(file)) {
        (Ok(named), Ok(held)) => (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino),
        _ => false,
    }
}

/// `process 4711 on node07`
fn who(member: &Member) -> String {
    format!("process {} on {}", member.pid, member.rank.host)
}

fn silent(peer: &Peer, wait: &Wait<'_>) -> Problem {
    Problem::failed(format!(
        "rank {} ({}) gave no sign of life for {}: it ended, or cannot reach the directory",
        peer.member.rank.rank,
        who(&peer.member),
        time(wait.limit().as_nanos() as f64)
    ))
    .hint("what it wrote to stderr says why; to wait longer: `--rank-limit 5m`")
}

/// Makes the directory, and the file of the first rank in it. What a killed run left is removed.
fn begin(world: &dyn World, target: &Dir, me: &Member) -> Result<(Dir, (CString, OwnedFd)), Problem> {
    let dir = match target.make_dir(&place()) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => private(target)?,
        made => made.map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            files::cannot_write(target, &place(), errno)
        })?,
    };
    let hello = Hello { member: me.clone(), at_unix_ns: world.unix_ns() };
    let mut in_use = None;
    for _ in 0..MAX_ATTEMPTS {
        // Held until the new file is there: of two that find one left, only one may remove it.
        let left = match dir.open_ours(files::RUN, OFlags::RDWR) {
            Some(left) => left,
            None => match files::write(&dir, files::RUN, &hello) {
                Ok(file) => return Ok((dir, (files::RUN.to_owned(), file))),
                Err(Errno::EXIST) => continue,
                Err(errno) => {
                    let problem = files::cannot_write(&dir, files::RUN, errno);
                    let _ = target.remove_dir(&place(), &dir);
                    return Err(problem);
                }
            },
        };
        let said: Option<Hello> = left.try_clone().ok().and_then(files::read_open);
        let owner = said.as_ref().map_or_else(|| "a process".to_owned(), |said| who(&said.member));
        match flock(&left, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if said.is_none_or(|said| is_same_kernel(&me.rank, &said.member.rank)) => {
                if is_there(&dir, files::RUN, &left) {
                    files::clear(&dir);
                }
            }
            Err(Errno::WOULDBLOCK) => {
                in_use = Some(Problem::refused(format!(
                    "{owner} is rank 0 of a run in `{}`: two processes have one rank, or another run measures there",
                    target.path().display()
                ))
                .hint("wait for it, or name another directory; or start each process with a rank of its own"));
                // Another rank may only be looking whether it is locked.
                world.sleep(RETRY);
            }
            _ => {
                return Err(Problem::refused(format!(
                    "{owner} began a run in `{}`, and whether it has ended cannot be seen from here",
                    target.path().display()
                ))
                .hint(format!("if it has: `rm -r {}`", dir.path().display())));
            }
        }
    }
    Err(in_use.unwrap_or_else(|| {
        Problem::failed(format!(
            "`{}` changes all the time: other processes begin runs there",
            dir.path().display()
        ))
    }))
}

/// The directory that is there, if it is ours alone.
fn private(target: &Dir) -> Result<Dir, Problem> {
    let dir = target.dir(&place()).ok().filter(|dir| dir.is_private().unwrap_or(false));
    dir.ok_or_else(|| {
        let path = target.path_of(&place());
        Problem::refused(format!(
            "`{}` is no directory of this user that others may not write to, and the ranks would meet there",
            path.display()
        ))
        .hint(format!("remove it, or name another directory: `ls -ld {}` shows whose it is", path.display()))
    })
}

/// The side of all ranks but the first: finds the run, asks to be let in, and waits for the answer.
fn follow<'w>(
    world: &'w dyn World,
    target: Dir,
    me: Member,
    job: &Job<'_>,
    wait: Wait<'w>,
) -> Result<Rendezvous<'w>, Problem> {
    let mut asked: Option<Asked> = None;
    let given_up = |asked: Option<Asked>, problem: Problem| {
        if let Some(asked) = asked {
            let _ = asked.dir.remove_file(&asked.name);
        }
        Err(problem)
    };
    let mut seen = "";
    loop {
        if world.interrupted() {
            return given_up(asked, Problem::failed("interrupted before all ranks had come"));
        }
        // What a run before this one left is removed by the first rank, with the request in it.
        asked = asked.filter(|asked| is_there(&asked.dir, &asked.name, &asked.file));
        if let Some(asked) = &mut asked {
            let welcome: Option<Welcome> = files::read(&asked.dir, &files::welcome(&asked.nonce));
            if let Some(Welcome { run, at_unix_ns }) = welcome {
                let answer = files::welcome(&asked.nonce);
                let _ = asked.dir.remove_file(&answer);
                return entered(world, target, me, job, asked, (run, at_unix_ns));
            }
            if asked.dir.stat(files::END).is_ok() {
                let said = files::read::<End>(&asked.dir, files::END);
                let said = said.map_or_else(String::new, |end| format!(": {}", end.reason));
                let _ = asked.dir.remove_file(&asked.name);
                return Err(Problem::failed(format!("the run ended before all ranks had come{said}")));
            }
        } else {
            match ask(world, &target, &me) {
                Ok(Found::Asked(new)) => asked = Some(*new),
                Ok(Found::Nothing(what)) => seen = what,
                Err(problem) => return Err(problem),
            }
        }
        if wait.is_over() {
            let answered = if asked.is_some() { "rank 0 does not answer" } else { "rank 0 did not come" };
            let problem = Problem::failed(format!(
                "{answered} within {}{seen}",
                time(job.patience.as_nanos() as f64)
            ))
            .hint(format!(
                "start all {} with one target directory that their hosts share, or wait longer: `--rank-limit 5m`",
                counted(job.ranks, "rank", "ranks")
            ));
            return given_up(asked, problem);
        }
        wait.sleep();
    }
}

/// A request to be let in.
struct Asked {
    dir: Dir,
    name: CString,
    nonce: String,
    file: OwnedFd,
    first: (Member, OwnedFd),
}

/// What a rank finds.
enum Found {
    Asked(Box<Asked>),
    /// No run yet; and what is there instead.
    Nothing(&'static str),
}

/// Asks to be let in, if there is a run of this job.
fn ask(world: &dyn World, target: &Dir, me: &Member) -> Result<Found, Problem> {
    let Ok(dir) = target.dir(&place()) else { return Ok(Found::Nothing("")) };
    if !dir.is_private().unwrap_or(false) {
        return private(target).map(|_| Found::Nothing(""));
    }
    let Some(run) = dir.open_ours(files::RUN, OFlags::RDONLY) else { return Ok(Found::Nothing("")) };
    let said: Option<Hello> = run.try_clone().ok().and_then(files::read_open);
    let Some(Hello { member: first, .. }) = said else { return Ok(Found::Nothing("")) };
    if first.rank.job != me.rank.job || first.rank.restarts != me.rank.restarts {
        return Ok(Found::Nothing("; a run of another job is there"));
    }
    if is_same_kernel(&me.rank, &first.rank) && life_by_lock(&run) == Life::Ended {
        return Ok(Found::Nothing("; a run that was killed is there"));
    }
    let nonce = iowhy_linux::host::random_id();
    let name = files::join(&nonce);
    let hello = Hello { member: me.clone(), at_unix_ns: world.unix_ns() };
    match files::write(&dir, &name, &hello) {
        Ok(file) => Ok(Found::Asked(Box::new(Asked { dir, name, nonce, file, first: (first, run) }))),
        // Removed meanwhile.
        Err(Errno::NOENT) => Ok(Found::Nothing("")),
        Err(errno) => Err(files::cannot_write(&dir, &name, errno)),
    }
}

/// The place of a rank that was let in.
fn entered<'w>(
    world: &'w dyn World,
    target: Dir,
    me: Member,
    job: &Job<'_>,
    asked: &mut Asked,
    (run, told_unix_ns): (String, i64),
) -> Result<Rendezvous<'w>, Problem> {
    let cannot = |error: std::io::Error| Problem::failed(format!("cannot meet the other ranks: {error}"));
    let (member, file) = (asked.first.0.clone(), asked.first.1.try_clone().map_err(cannot)?);
    let same_kernel = is_same_kernel(&me.rank, &member.rank);
    let first = Peer {
        member,
        name: files::RUN.to_owned(),
        file,
        same_kernel,
        offset: Offset::UNKNOWN,
        told_unix_ns,
    };
    Ok(Rendezvous {
        world,
        target,
        dir: asked.dir.try_clone().map_err(cannot)?,
        me,
        ranks: job.ranks,
        run,
        own: (asked.name.clone(), asked.file.try_clone().map_err(cannot)?),
        peers: vec![first],
        meeting: 0,
        patience: job.patience,
        left_ns: world.monotonic_ns(),
        saw_unix_ns: world.unix_ns(),
        late_ns: 0,
        lead: LEAD,
        over: false,
    })
}
