//! Where the ranks of a job meet: files in a private directory below the target. The first rank (number 0) lets the others in, answers each
//! meeting when all have come, and removes everything.
//!
//! Non-goal: what they meet for. Invariants: nothing is believed but complete messages of this run, written by this user under a name of
//! their own; a process that gives up tells the others why, and the directory goes with the run.

mod enter;
mod files;
mod message;
mod offset;
mod peer;
#[cfg(test)]
mod tests;
mod wait;

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::units::{count, counted, time};
use iowhy_linux::names::Dir;
use rustix::fs::OFlags;
use rustix::io::Errno;

use self::enter::{Entered, begin, follow, place};
use self::message::{End, Go, Hello, Member, Ready, Welcome};
pub(crate) use self::offset::Offset;
use self::peer::{Life, Peer, is_same_kernel, is_there, life_by_lock};
use self::wait::Wait;
pub(crate) use self::wait::{Real, World};
use crate::record::rank::RankRecord;

/// Another process may take this many times as long as this one did from one meeting to the next.
const MAX_RATIO: u64 = 10;
/// How long the last to leave waits for the others, and a reader for the rest of the message that ends the run.
const GRACE: Duration = Duration::from_secs(2);
/// From the answer to a meeting to what begins then, at first: ranks look every few milliseconds.
const LEAD: Duration = Duration::from_millis(15);
/// At most.
const MAX_LEAD: Duration = Duration::from_secs(4);

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

impl<'w> Rendezvous<'w> {
    /// Finds the other ranks below a directory. Returns for the first rank when all have come, for another when it is let in.
    ///
    /// # Errors
    /// Ranks that do not come, two of one number, other options, another run there, a directory that cannot be written.
    pub(crate) fn join(world: &'w dyn World, target: Dir, job: &Job<'_>) -> Result<Rendezvous<'w>, Problem> {
        let plan = format!("iowhy {} {}", env!("CARGO_PKG_VERSION"), job.plan);
        let me = Member { rank: job.own.clone(), pid: std::process::id(), plan };
        let wait = Wait::new(world, job.patience);
        let (dir, own, run, peers) = if job.own.rank > 0 {
            let Entered { dir, run, own, first } = follow(world, &target, &me, job.ranks, &wait)?;
            (dir, own, run, vec![first])
        } else {
            let (dir, own) = begin(world, &target, &me)?;
            (dir, own, iowhy_linux::host::random_id(), Vec::new())
        };
        let mut meeting = Rendezvous {
            world,
            target,
            dir,
            me,
            ranks: job.ranks,
            run,
            own,
            peers,
            meeting: 0,
            patience: job.patience,
            left_ns: world.monotonic_ns(),
            saw_unix_ns: world.unix_ns(),
            late_ns: 0,
            lead: LEAD,
            over: false,
        };
        if job.own.rank > 0 {
            return Ok(meeting);
        }
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
                same.words(),
                other.words()
            ))
            .hint("start each with a rank of its own: by mpirun, srun, or `--rank N --ranks=M`"));
        }
        if rank >= self.ranks {
            return Err(Problem::refused(format!(
                "{} is rank {rank}, and there are {} ranks, which count from 0",
                other.words(),
                self.ranks
            ))
            .hint("give all processes the same `--ranks=M`"));
        }
        if other.plan != self.me.plan {
            return Err(Problem::refused(format!(
                "rank {rank} ({}) was given other options, or is of another version, than rank 0: their figures are of different \
                 workloads",
                other.words()
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
        match enter::end(self.world, &self.dir) {
            None => Ok(()),
            Some(Some(End { rank, host, reason })) => {
                Err(Problem::failed(format!("rank {rank} on {host} ended the run: {reason}")))
            }
            Some(None) => {
                Err(Problem::failed("another rank ended the run; what it wrote to stderr says why"))
            }
        }
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
            Ok(()) => {
                Problem::failed(format!("rank {} ended: {}", peer.member.rank.rank, peer.member.words()))
            }
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
        // Who told them first waits for them, and removes what a rank that was killed left; so does one whose word does not reach them.
        let first = files::write(&self.dir, files::END, &end).err() != Some(Errno::EXIST);
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

fn silent(peer: &Peer, wait: &Wait<'_>) -> Problem {
    Problem::failed(format!(
        "rank {} ({}) gave no sign of life for {}: it ended, or cannot reach the directory",
        peer.member.rank.rank,
        peer.member.words(),
        time(wait.limit().as_nanos() as f64)
    ))
    .hint("what it wrote to stderr says why; to wait longer: `--rank-limit 5m`")
}
