//! How a process comes to a run: the first rank begins it, the others find it. What a killed run left is told from a living one.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::Duration;

use iowhy_core::problem::Problem;
use iowhy_core::units::{counted, time};
use iowhy_linux::host;
use iowhy_linux::names::{Dir, owner};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::message::{End, Hello, Member, Welcome};
use super::offset::Offset;
use super::peer::{Life, Peer, is_same_kernel, is_there, life_by_lock};
use super::wait::{Wait, World};
use super::{GRACE, files};

/// Attempts to begin a run where other processes also do.
const MAX_ATTEMPTS: usize = 10;
/// Between them.
const RETRY: Duration = Duration::from_millis(5);

/// The directory of a rendezvous. Users do not meet each other.
pub(super) fn place() -> CString {
    CString::new(format!(".iowhy-ranks-{}", owner().as_raw())).unwrap_or_default()
}

/// Makes the directory, and the file of the first rank in it. What a killed run left is removed.
pub(super) fn begin(
    world: &dyn World,
    target: &Dir,
    me: &Member,
) -> Result<(Dir, (CString, OwnedFd)), Problem> {
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
        let owner = said.as_ref().map_or_else(|| "a process".to_owned(), |said| said.member.words());
        match flock(&left, FlockOperation::NonBlockingLockExclusive) {
            // Locked while what was left is removed: of two that find it, the second finds another file under the name.
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

/// The place of a rank that was let in.
pub(super) struct Entered {
    pub(super) dir: Dir,
    /// The id of the run.
    pub(super) run: String,
    /// The request, which stands for this process.
    pub(super) own: (CString, OwnedFd),
    pub(super) first: Peer,
}

/// The side of all ranks but the first: finds the run, asks to be let in, and waits for the answer.
pub(super) fn follow(
    world: &dyn World,
    target: &Dir,
    me: &Member,
    ranks: u64,
    wait: &Wait<'_>,
) -> Result<Entered, Problem> {
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
        if let Some(some) = asked.take() {
            let answer = files::welcome(&some.nonce);
            if let Some(Welcome { run, at_unix_ns }) = files::read(&some.dir, &answer) {
                let _ = some.dir.remove_file(&answer);
                return Ok(some.entered(me, run, at_unix_ns));
            }
            let asked = asked.insert(some);
            if let Some(said) = end(world, &asked.dir) {
                let said = said.map_or_else(String::new, |end| format!(": {}", end.reason));
                let _ = asked.dir.remove_file(&asked.name);
                return Err(Problem::failed(format!("the run ended before all ranks had come{said}")));
            }
        } else {
            match ask(world, target, me) {
                Ok(Found::Asked(new)) => asked = Some(*new),
                Ok(Found::Nothing(what)) => seen = what,
                Err(problem) => return Err(problem),
            }
        }
        if wait.is_over() {
            let answered = if asked.is_some() { "rank 0 does not answer" } else { "rank 0 did not come" };
            let problem = Problem::failed(format!(
                "{answered} within {}{seen}",
                time(wait.limit().as_nanos() as f64)
            ))
            .hint(format!(
                "start all {} with one target directory that their hosts share, or wait longer: `--rank-limit 5m`",
                counted(ranks, "rank", "ranks")
            ));
            return given_up(asked, problem);
        }
        wait.sleep();
    }
}

/// Why the run ended. `None`: it has not. The name is there before the message in it is complete, so that this is waited for; `Some(None)`:
/// it did not come. The name goes again where the message cannot be written.
pub(super) fn end(world: &dyn World, dir: &Dir) -> Option<Option<End>> {
    let wait = Wait::new(world, GRACE);
    while dir.stat(files::END).is_ok() {
        let end = files::read(dir, files::END);
        if end.is_some() || wait.is_over() {
            return Some(end);
        }
        wait.sleep();
    }
    None
}

/// A request to be let in.
struct Asked {
    dir: Dir,
    name: CString,
    nonce: String,
    file: OwnedFd,
    first: (Member, OwnedFd),
}

impl Asked {
    fn entered(self, me: &Member, run: String, told_unix_ns: i64) -> Entered {
        let (member, file) = self.first;
        let same_kernel = is_same_kernel(&me.rank, &member.rank);
        let (name, offset) = (files::RUN.to_owned(), Offset::UNKNOWN);
        let first = Peer { member, name, file, same_kernel, offset, told_unix_ns };
        Entered { dir: self.dir, run, own: (self.name, self.file), first }
    }
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
    let nonce = host::random_id();
    let name = files::join(&nonce);
    let hello = Hello { member: me.clone(), at_unix_ns: world.unix_ns() };
    match files::write(&dir, &name, &hello) {
        Ok(file) => Ok(Found::Asked(Box::new(Asked { dir, name, nonce, file, first: (first, run) }))),
        // Removed meanwhile.
        Err(Errno::NOENT) => Ok(Found::Nothing("")),
        Err(errno) => Err(files::cannot_write(&dir, &name, errno)),
    }
}
