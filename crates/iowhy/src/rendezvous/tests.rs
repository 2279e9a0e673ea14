//! Ranks as threads: each with a world of its own, whose clock may lead, hurry or ask to stop.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{FileType, Mode};

use super::*;

/// A process's view. Where it hurries, each pause is a second by its own monotonic clock.
#[derive(Default)]
struct TestWorld {
    lead_ns: i64,
    hurries: AtomicBool,
    ahead_ns: AtomicU64,
    interrupted: AtomicBool,
}

impl TestWorld {
    fn leads(lead_ns: i64) -> TestWorld {
        TestWorld { lead_ns, ..TestWorld::default() }
    }
}

impl World for TestWorld {
    fn unix_ns(&self) -> i64 {
        Real.unix_ns() + self.lead_ns
    }

    fn monotonic_ns(&self) -> u64 {
        Real.monotonic_ns() + self.ahead_ns.load(Ordering::Relaxed)
    }

    fn sleep(&self, time: Duration) {
        if self.hurries.load(Ordering::Relaxed) {
            self.ahead_ns.fetch_add(1_000_000_000, Ordering::Relaxed);
        }
        std::thread::sleep(time.min(Duration::from_millis(20)));
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// A rank on a kernel of this name.
fn rank(rank: u64, boot_id: &str) -> RankRecord {
    RankRecord {
        rank,
        host: format!("host-{boot_id}"),
        boot_id: Some(boot_id.to_owned()),
        ..RankRecord::default()
    }
}

fn join<'w>(
    world: &'w TestWorld,
    dir: &Path,
    own: &RankRecord,
    ranks: u64,
) -> Result<Rendezvous<'w>, Problem> {
    let job = Job { own, ranks, plan: "plan".to_owned(), patience: Duration::from_secs(60) };
    Rendezvous::join(world, Dir::open(dir).unwrap(), &job)
}

impl Rendezvous<'_> {
    /// As SIGKILL does it: locks are gone, files stay.
    fn kill(mut self) {
        self.over = true;
    }
}

fn names(dir: &Path) -> Vec<String> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn ranks_meet_as_often_as_each_calls_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let worlds: Vec<TestWorld> = (0..4).map(|_| TestWorld::default()).collect();
    std::thread::scope(|scope| {
        for (number, world) in worlds.iter().enumerate() {
            let path = dir.path();
            scope.spawn(move || {
                let mut meeting = join(world, path, &rank(number as u64, "a"), 4).unwrap();
                for turn in 0..20 {
                    let met = meeting.meet(format!("{number} in {turn}")).unwrap();
                    meeting.wait_for_start(&met);
                    if number == 0 {
                        let expected: Vec<String> = (0..4).map(|rank| format!("{rank} in {turn}")).collect();
                        assert_eq!(met.payloads, expected);
                        // Messages of meetings that are over are gone.
                        let messages = meeting.dir.entries().unwrap().len();
                        assert!(messages <= 1 + 3 + 4 + 2, "{messages}");
                    }
                }
                meeting.finish();
            });
        }
    });
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn clocks_of_other_hosts_are_bounded_by_the_messages() {
    let dir = tempfile::tempdir().unwrap();
    let leads = [0, 5_000_000_000, -3_000_000_000];
    let worlds = leads.map(TestWorld::leads);
    std::thread::scope(|scope| {
        for (number, world) in worlds.iter().enumerate() {
            let path = dir.path();
            scope.spawn(move || {
                let mut meeting = join(world, path, &rank(number as u64, &number.to_string()), 3).unwrap();
                for _ in 0..5 {
                    let met = meeting.meet(String::new()).unwrap();
                    // What rank 0 set is translated into the own clock, and is not seconds away.
                    let away = (met.start_unix_ns - world.unix_ns()).unsigned_abs();
                    assert!(away < 2_500_000_000, "rank {number}: {away} ns");
                }
                if number == 0 {
                    for (offset, lead) in meeting.offsets().into_iter().zip(leads) {
                        assert!(offset.low_ns <= lead && lead <= offset.high_ns, "{offset:?} of {lead}");
                        assert!(!offset.was_set);
                    }
                }
                meeting.finish();
            });
        }
    });
    assert_eq!(names(dir.path()), [""; 0]);
}

/// Rank 0 and rank 1, met once, and then what a test does to them. What each says in the end.
fn after_one_meeting(
    kernels: [&str; 2],
    worlds: &[TestWorld; 2],
    happens: impl Fn(Rendezvous<'_>) -> Option<Problem> + Sync,
) -> (Problem, Option<Problem>) {
    let dir = tempfile::tempdir().unwrap();
    let said = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut meeting = join(&worlds[1], dir.path(), &rank(1, kernels[1]), 2).unwrap();
            meeting.meet(String::new()).unwrap();
            happens(meeting)
        });
        let mut meeting = join(&worlds[0], dir.path(), &rank(0, kernels[0]), 2).unwrap();
        meeting.meet(String::new()).unwrap();
        let problem = meeting.meet(String::new()).err().unwrap();
        (problem, other.join().unwrap())
    });
    assert_eq!(names(dir.path()), [""; 0], "nothing is left");
    said
}

#[test]
fn a_rank_that_is_killed_is_named_at_once_and_its_files_go() {
    let (first, _) =
        after_one_meeting(["a", "a"], &[TestWorld::default(), TestWorld::default()], |meeting| {
            meeting.kill();
            None
        });
    assert!(
        first.message.contains("rank 1 ended: process") && first.message.contains("on host-a"),
        "{first}"
    );
    assert_eq!(first.exit_code(), 1);
}

#[test]
fn a_rank_of_another_host_is_waited_for_as_long_as_the_limit_says() {
    let worlds = [TestWorld::default(), TestWorld::default()];
    let (first, _) = after_one_meeting(["a", "b"], &worlds, |meeting| {
        meeting.kill();
        worlds[0].hurries.store(true, Ordering::Relaxed);
        None
    });
    assert!(
        first.message.contains("rank 1 (process") && first.message.contains("no sign of life"),
        "{first}"
    );
    assert!(first.hint.unwrap().contains("--rank-limit"));
    let waited = worlds[0].ahead_ns.load(Ordering::Relaxed);
    assert!(waited >= 55_000_000_000, "{waited} ns");
}

/// Ends a run as rank 1 does whose message is not complete for a while.
fn end_slowly(dir: &Dir, reason: &str) {
    let file = dir.create_new(files::END, OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let end = End { rank: 1, host: "host-a".to_owned(), reason: reason.to_owned() };
    let text = serde_json::to_string(&end).unwrap() + "\n";
    rustix::io::write(&file, text.as_bytes()).unwrap();
}

#[test]
fn a_rank_that_gives_up_tells_the_others_why() {
    let worlds = [TestWorld::default(), TestWorld::default()];
    let (first, own) = after_one_meeting(["a", "a"], &worlds, |mut meeting| {
        let problem = Problem::failed("no space left on device");
        meeting.give_up(&problem);
        Some(problem)
    });
    assert!(first.message.contains("rank 1 on host-a ended the run: no space left on device"), "{first}");
    assert!(own.is_some());
    // A signal does the same; and so does a rank that returns without a word.
    let worlds = [TestWorld::default(), TestWorld::default()];
    let (first, other) = after_one_meeting(["a", "a"], &worlds, |mut meeting| {
        worlds[1].interrupted.store(true, Ordering::Relaxed);
        meeting.meet(String::new()).err()
    });
    assert!(first.message.contains("rank 1 on host-a ended the run: interrupted"), "{first}");
    assert!(other.unwrap().message.starts_with("interrupted"));
    let (first, _) = after_one_meeting(["a", "a"], &[TestWorld::default(), TestWorld::default()], |_| None);
    assert!(first.message.contains("it ended early"), "{first}");
    // The message is waited for while it is written.
    let (first, _) =
        after_one_meeting(["a", "a"], &[TestWorld::default(), TestWorld::default()], |mut meeting| {
            end_slowly(&meeting.dir, "the disk left");
            meeting.over = true;
            let _ = meeting.dir.remove_file(&meeting.own.0);
            meeting.clear_when_alone();
            None
        });
    assert!(first.message.contains("rank 1 on host-a ended the run: the disk left"), "{first}");
}

#[test]
fn a_rank_that_is_not_let_in_waits_for_the_whole_reason() {
    let dir = tempfile::tempdir().unwrap();
    let worlds = [TestWorld::default(), TestWorld::default()];
    let (held, _own) = begin(&worlds[0], &Dir::open(dir.path()).unwrap(), &member(&rank(0, "a"))).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| join(&worlds[1], dir.path(), &rank(1, "a"), 2).err().unwrap());
        while !held.entries().unwrap().iter().any(|entry| files::nonce(&entry.name).is_some()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        end_slowly(&held, "the disk left");
        let told = other.join().unwrap();
        assert_eq!(told.message, "the run ended before all ranks had come: the disk left");
    });
}

#[test]
fn ranks_that_do_not_come_are_named_and_those_that_came_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let worlds = [TestWorld::default(), TestWorld::default()];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut meeting = join(&worlds[1], dir.path(), &rank(1, "a"), 5).unwrap();
            worlds[0].hurries.store(true, Ordering::Relaxed);
            let told = meeting.meet(String::new()).err().unwrap();
            assert!(told.message.contains("rank 0 on host-a ended the run: ranks 2-4 of 5 ranks"), "{told}");
        });
        let problem = join(&worlds[0], dir.path(), &rank(0, "a"), 5).err().unwrap();
        assert!(problem.message.contains("ranks 2-4 of 5 ranks did not come within 60.0 s"), "{problem}");
    });
    assert_eq!(names(dir.path()), [""; 0]);
    // Without rank 0 there is nothing to come to.
    let alone = TestWorld::default();
    alone.hurries.store(true, Ordering::Relaxed);
    let problem = join(&alone, dir.path(), &rank(1, "a"), 5).err().unwrap();
    assert!(problem.message.contains("rank 0 did not come within 60.0 s"), "{problem}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn two_processes_of_one_rank_end_the_run_with_both_named() {
    let dir = tempfile::tempdir().unwrap();
    let worlds = [TestWorld::default(), TestWorld::default(), TestWorld::default()];
    let said: Vec<String> = std::thread::scope(|scope| {
        let start = |(number, world)| {
            let path = dir.path();
            scope.spawn(move || {
                let joined = join(world, path, &rank(number, "a"), 3);
                let ended = joined.and_then(|mut meeting| meeting.meet(String::new()));
                ended.err().unwrap().message
            })
        };
        let all: Vec<_> = [0, 1, 1].into_iter().zip(&worlds).map(start).collect();
        all.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    for said in said {
        assert!(said.contains("two processes are rank 1: process"), "{said}");
    }
    assert_eq!(names(dir.path()), [""; 0]);
    // A second rank 0 is refused, and the first run goes on.
    let first = begin(&worlds[0], &Dir::open(dir.path()).unwrap(), &member(&rank(0, "a"))).unwrap();
    let second = join(&worlds[1], dir.path(), &rank(0, "a"), 2).err().unwrap();
    assert!(second.message.contains("is rank 0 of a run in") && second.exit_code() == 2, "{second}");
    assert!(is_there(&first.0, files::RUN, &first.1.1));
}

fn member(rank: &RankRecord) -> Member {
    Member { rank: rank.clone(), pid: std::process::id(), plan: "plan".to_owned() }
}

#[test]
fn other_options_and_a_rank_beyond_the_number_end_the_run() {
    for (plan, number, says) in
        [("other", 1, "was given other options"), ("plan", 7, "is rank 7, and there are 2")]
    {
        let dir = tempfile::tempdir().unwrap();
        let worlds = [TestWorld::default(), TestWorld::default()];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let own = rank(number, "a");
                let job =
                    Job { own: &own, ranks: 2, plan: plan.to_owned(), patience: Duration::from_secs(60) };
                let told = Rendezvous::join(&worlds[1], Dir::open(dir.path()).unwrap(), &job).err().unwrap();
                assert!(told.message.contains(says), "{told}");
            });
            let problem = join(&worlds[0], dir.path(), &rank(0, "a"), 2).err().unwrap();
            assert!(problem.message.contains(says) && problem.exit_code() == 2, "{problem}");
        });
        assert_eq!(names(dir.path()), [""; 0]);
    }
}

/// A run of one rank, killed.
fn left_over(dir: &Path, kernel: &str) {
    let world = TestWorld::default();
    let (held, own) = begin(&world, &Dir::open(dir).unwrap(), &member(&rank(0, kernel))).unwrap();
    let hello = Hello { member: member(&rank(1, kernel)), at_unix_ns: 0 };
    files::write(&held, &files::join("old"), &hello).unwrap();
    drop(own);
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    left_over(dir.path(), "a");
    let worlds = [TestWorld::default(), TestWorld::default()];
    std::thread::scope(|scope| {
        // The other rank comes first, and is not taken in by the old run.
        let other = scope.spawn(|| {
            let mut meeting = join(&worlds[1], dir.path(), &rank(1, "a"), 2).unwrap();
            meeting.meet("new".to_owned()).unwrap();
            meeting.finish();
        });
        let mut meeting = join(&worlds[0], dir.path(), &rank(0, "a"), 2).unwrap();
        assert_eq!(meeting.meet("first".to_owned()).unwrap().payloads, ["first", "new"]);
        meeting.finish();
        other.join().unwrap();
    });
    assert_eq!(names(dir.path()), [""; 0]);
    // Of another kernel nobody here can say whether it has ended.
    left_over(dir.path(), "b");
    let problem = join(&worlds[0], dir.path(), &rank(0, "a"), 2).err().unwrap();
    assert!(problem.message.contains("on host-b began a run"), "{problem}");
    assert!(problem.hint.unwrap().contains("rm -r"));
    assert_eq!(names(dir.path()).len(), 1, "it stays");
}

#[test]
fn runs_of_two_jobs_do_not_meet() {
    let dir = tempfile::tempdir().unwrap();
    let world = TestWorld::default();
    let job = |number, name: &str| RankRecord { job: Some(name.to_owned()), ..rank(number, "a") };
    let _first = begin(&world, &Dir::open(dir.path()).unwrap(), &member(&job(0, "one"))).unwrap();
    let hurried = TestWorld::default();
    hurried.hurries.store(true, Ordering::Relaxed);
    let problem = join(&hurried, dir.path(), &job(1, "two"), 2).err().unwrap();
    assert!(problem.message.contains("a run of another job is there"), "{problem}");
}

#[test]
fn only_a_private_directory_is_met_in() {
    let world = TestWorld::default();
    world.hurries.store(true, Ordering::Relaxed);
    let place = place().into_string().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("run"), "precious").unwrap();
    for others_may_write in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join(&place);
        if others_may_write {
            std::fs::create_dir(&at).unwrap();
            std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o777)).unwrap();
        } else {
            symlink(elsewhere.path(), &at).unwrap();
        }
        let first = join(&world, dir.path(), &rank(0, "a"), 2).err().unwrap();
        assert!(first.message.contains("no directory of this user") && first.exit_code() == 2, "{first}");
        let other = join(&world, dir.path(), &rank(1, "a"), 2).err().unwrap();
        assert!(
            other.message.contains("no directory of this user") || other.message.contains("did not come")
        );
        assert_eq!(names(dir.path()).len(), 1, "it stays");
    }
    assert_eq!(std::fs::read(elsewhere.path().join("run")).unwrap(), b"precious");
    assert_eq!(names(elsewhere.path()), ["run"]);
}

#[test]
fn only_complete_private_files_with_one_name_are_messages() {
    let dir = tempfile::tempdir().unwrap();
    let held = Dir::open(dir.path()).unwrap();
    let at = |name: &str| dir.path().join(name);
    let read = |name: &str| files::read::<u64>(&held, &CString::new(name).unwrap());
    files::write(&held, c"go-1", &7u64).unwrap();
    assert_eq!(read("go-1"), Some(7));
    assert_eq!(files::write(&held, c"go-1", &8u64).err(), Some(Errno::EXIST));
    assert_eq!(read("go-1"), Some(7), "a name that is taken stays what it is");
    std::fs::write(at("half"), "7").unwrap();
    std::fs::write(at("other"), "seven\n").unwrap();
    symlink("go-1", at("link")).unwrap();
    std::fs::write(at("two"), "7\n").unwrap();
    std::fs::hard_link(at("two"), at("names")).unwrap();
    std::fs::write(at("shared"), "7\n").unwrap();
    std::fs::set_permissions(at("shared"), std::fs::Permissions::from_mode(0o666)).unwrap();
    rustix::fs::mknodat(&held, "pipe", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for name in ["half", "other", "link", "two", "shared", "pipe", "none"] {
        assert_eq!(read(name), None, "{name}");
    }
    // What iowhy did not make stays.
    files::clear(&held);
    let mut left = names(dir.path());
    left.sort();
    assert_eq!(left, ["half", "link", "names", "other", "pipe", "shared", "two"]);
}
