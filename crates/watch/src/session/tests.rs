//! Whole watches of real programs, at every tier that this machine allows: they end as the program ends, the profile
//! keeps its laws, and nothing stays behind.

use std::ffi::OsString;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use iowhy_core::profile::{End, Profile, State, Tier};

use super::observer::EVENT_LOOP_NAME;
use super::*;

/// One watch at a time: orphans and signals belong to the whole process, and the machine is small.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

const TIERS: [Tier; 4] = [Tier::None, Tier::Stacks, Tier::Clock, Tier::Observer];

fn on_path(names: &[&str]) -> bool {
    names.iter().any(|n| n.contains("folio_wait") || n.contains("io_schedule") || n.contains("blk"))
}

fn options(tier: Tier) -> Options<'static> {
    Options {
        on_path: &on_path,
        tier,
        count_calls: true,
        record_calls: false,
        keep_events: true,
        begun: &|| {},
    }
}

fn command(words: &[&str]) -> Subject {
    Subject::Command {
        program: words[0].into(),
        arguments: words[1..].iter().map(OsString::from).collect(),
        identity: None,
    }
}

/// Watches, and holds the profile against its laws.
fn profile(words: &[&str], tier: Tier) -> Profile {
    let Watched { profile, events } = watch(&command(words), &options(tier)).unwrap();
    profile.check(1e-6).unwrap_or_else(|law| panic!("{words:?} {tier:?}: {law}\n{profile:#?}"));
    assert!(profile.sight.tier <= tier);
    // Intervals and samples are part of what the profile sums up.
    let events = events.unwrap();
    let recorded: u64 =
        events.intervals.iter().filter(|i| i.state.is_some()).map(|i| i.end_ns - i.begin_ns).sum();
    assert!(recorded <= profile.thread_ns() && events.full_ns.is_none(), "{words:?} {tier:?}: {recorded} ns");
    assert_eq!(events.samples.len() as u64, profile.threads.iter().map(|t| t.samples).sum::<u64>());
    profile
}

fn have(program: &str) -> bool {
    let found = crate::child::find(program.as_ref(), None).is_ok();
    if !found {
        eprintln!("skipped: there is no program `{program}`");
    }
    found
}

#[test]
fn programs_end_as_they_end_at_every_tier() {
    let _alone = alone();
    for tier in TIERS {
        assert_eq!(profile(&["true"], tier).end, End::Code(0));
        assert_eq!(profile(&["sh", "-c", "exit 7"], tier).end, End::Code(7));
        assert_eq!(profile(&["sh", "-c", "kill -SEGV $$"], tier).end, End::Signal(libc::SIGSEGV));
    }
}

#[test]
fn a_command_that_is_not_there_is_refused() {
    let _alone = alone();
    let refusal = watch(&command(&["no-such-command-at-all"]), &options(Tier::Observer)).unwrap_err();
    assert_eq!(refusal.code, 127);
    assert!(refusal.problem.message.contains("no-such-command-at-all"));
}

#[test]
fn counts_that_the_tier_does_not_allow_are_a_limitation() {
    let _alone = alone();
    let p = profile(&["true"], Tier::None);
    // Where the observer is refused, that says it already.
    let says = |id: &str| id == "call-counts" || id == "observer";
    assert!(p.sight.limitations.iter().any(|limitation| says(&limitation.id)), "{:?}", p.sight);
}

/// Whether calls were counted in the kernel; where not, says why.
fn counted(profile: &Profile) -> bool {
    let refused = profile.sight.limitations.iter().find(|limitation| limitation.id == "call-counts");
    if let Some(refused) = refused {
        eprintln!("skipped: system calls cannot be counted here: {}", refused.sentence);
    } else if profile.sight.tier < Tier::Observer {
        eprintln!(
            "skipped: tier observer is not allowed here, {} was used: no counts",
            profile.sight.tier.id()
        );
    }
    refused.is_none() && profile.sight.tier == Tier::Observer
}

#[test]
fn calls_of_a_command_are_those_that_it_made() {
    let _alone = alone();
    if !have("dd") {
        return;
    }
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=7", "count=20000", "status=none"];
    let p = profile(&dd, Tier::Observer);
    if !counted(&p) {
        return;
    }
    let file = |path: &str| p.files.iter().find(|file| file.path == path).unwrap();
    let (zero, null) = (file("/dev/zero"), file("/dev/null"));
    assert_eq!((zero.reads.calls, zero.reads.bytes, zero.opens), (20_000, 140_000, 1));
    assert_eq!((null.writes.calls, null.writes.bytes), (20_000, 140_000));
    let calls = p.calls.as_ref().unwrap();
    assert!(calls.complete, "{calls:?}");
    assert!(calls.calls.iter().all(|call| call.name != "execve"), "its own exec is ours: {calls:?}");
}

#[test]
fn children_that_live_for_a_moment_are_counted_to_the_last_call() {
    let _alone = alone();
    let script = "n=0; while [ $n -lt 200 ]; do /bin/true; n=$((n + 1)); done";
    let p = profile(&["sh", "-c", script], Tier::Observer);
    if !counted(&p) {
        return;
    }
    let calls = &p.calls.as_ref().unwrap().calls;
    let called = |names: &[&str]| -> u64 {
        calls.iter().filter(|call| names.contains(&call.name.as_str())).map(|call| call.calls).sum()
    };
    assert_eq!((called(&["execve"]), called(&["fork", "vfork", "clone", "clone3"])), (200, 200), "{calls:?}");
}

#[test]
fn each_process_has_what_it_did_itself_and_not_what_its_children_did() {
    let _alone = alone();
    if !have("dd") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).display().to_string();
    let script = format!(
        "dd if=/dev/zero bs=1000 count=50 status=none | dd of={} bs=1000 status=none; \
         dd if=/dev/zero of={} bs=7 count=1000 status=none; dd if=/dev/zero of=/dev/null bs=7 count=1000 status=none; true",
        file("from-a-pipe"),
        file("small")
    );
    let p = profile(&["sh", "-c", &script], Tier::Observer);
    if !counted(&p) {
        return;
    }
    let own = |process: &iowhy_core::profile::Process| process.own.unwrap();
    let written: Vec<u64> = p.processes.iter().map(|process| own(process).written_bytes).collect();
    let mut sorted = written.clone();
    sorted.sort_unstable();
    // What goes into a pipe or to a device such as /dev/null goes to no file.
    assert_eq!(sorted, [0, 0, 0, 7000, 50_000], "{:?}", p.processes);
    assert_eq!(written[0], 0, "the shell wrote nothing itself: {:?}", p.processes);
    let read: u64 = p.processes.iter().map(|process| own(process).read_bytes).sum();
    let of_files =
        p.kinds.iter().filter(|kind| ["regular", "directory", "block-device"].contains(&&*kind.kind));
    assert_eq!(read, of_files.map(|kind| kind.read_bytes).sum::<u64>(), "{:?}", p.kinds);
}

#[test]
fn syncs_are_those_of_the_process_that_asked() {
    let _alone = alone();
    if !have("dd") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data").display().to_string();
    let script = "dd if=/dev/zero of=\"$0\" bs=512 count=1 conv=fsync status=none; true";
    let p = profile(&["sh", "-c", script, &file], Tier::Observer);
    if !counted(&p) {
        return;
    }
    let syncs: Vec<u64> = p.processes.iter().map(|process| process.own.unwrap().syncs).collect();
    assert_eq!(syncs, [0, 1], "{:?}", p.processes);
    let regular = p.kinds.iter().find(|kind| kind.kind == "regular").unwrap();
    assert_eq!((regular.write_calls, regular.written_bytes), (1, 512), "{:?}", p.kinds);
}

#[test]
fn both_ends_of_a_pipe_are_seen() {
    let _alone = alone();
    let p = profile(&["sh", "-c", "sleep 0.2 | sleep 0.2"], Tier::Observer);
    let pipes: Vec<_> = p.processes.iter().flat_map(|process| &process.pipes).collect();
    let both = pipes
        .iter()
        .any(|end| end.writes && pipes.iter().any(|other| !other.writes && other.inode == end.inode));
    assert!(both, "{:?}", p.processes);
}

#[test]
fn a_sleeper_sleeps_and_nobody_is_active() {
    let _alone = alone();
    for tier in TIERS {
        let p = profile(&["sleep", "0.3"], tier);
        assert!(p.wall_ns >= 290_000_000, "{} {tier:?}", p.wall_ns);
        let thread = &p.threads[0];
        assert_eq!(p.threads.len(), 1, "{:#?}", p.threads);
        assert!(thread.blocked_ns > thread.running_ns, "{thread:?} {tier:?}");
        assert!(p.idle_wall_ns > 0.5 * p.wall_ns as f64, "{tier:?} {:#?}", p.stacks);
        let seen = p.stacks.iter().find(|s| s.state == State::Blocked && s.known);
        let names: Vec<&str> = seen.map(|s| p.kernel_names(s).collect()).unwrap_or_default();
        assert!(names.iter().any(|n| n.contains("nanosleep")), "{tier:?} {names:?} {:?}", p.sight);
    }
}

#[test]
fn a_spinner_runs() {
    let _alone = alone();
    for tier in TIERS {
        let p = profile(&["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], tier);
        let running: u64 = p.threads.iter().map(|t| t.running_ns + t.queued_ns).sum();
        assert!(running as f64 > 0.5 * p.wall_ns as f64, "{tier:?} {:#?}", p.threads);
    }
}

#[test]
fn a_thousand_children_are_all_counted() {
    let _alone = alone();
    let script = "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done";
    for tier in [Tier::None, Tier::Stacks, Tier::Observer] {
        // Its laws hold the threads' CPU time against what the kernel counted for all thousand.
        let p = profile(&["sh", "-c", script], tier);
        if tier == Tier::None {
            continue;
        }
        let processes: u64 = p.processes.iter().map(|p| p.count).sum();
        if p.sight.tier == Tier::None {
            eprintln!("skipped: without events processes are only counted as they are met");
            return;
        }
        assert_eq!(processes, 1001, "{:?} {:?}", p.sight, p.observer);
        let threads: u64 = p.threads.iter().map(|t| t.count).sum();
        assert_eq!(threads, 1001);
    }
}

#[test]
fn bytes_are_those_that_were_moved() {
    let _alone = alone();
    if !have("dd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = format!("of={}", folder.path().join("out").display());
    for tier in TIERS {
        let p = profile(&["dd", "if=/dev/zero", &out, "bs=64k", "count=200", "status=none"], tier);
        let (Some(read), Some(written)) = (p.io.read_bytes, p.io.written_bytes) else {
            eprintln!("skipped: the kernel keeps no I/O counters");
            return;
        };
        assert!(read >= 200 << 16, "{read}");
        assert!((200 << 16..=(200 << 16) + 4096).contains(&written), "{written}");
        assert!(p.io.user_ns.is_some() && p.io.peak_memory_bytes.is_some());
    }
}

/// Names the file that [`role_of_one_who_maps`] maps.
const MAPPED: &str = "IOWHY_TEST_MAPPED";
const TIMES: u64 = 300;

#[test]
fn role_of_one_who_maps() {
    let Ok(path) = std::env::var(MAPPED) else { return };
    let file = std::fs::File::open(path).unwrap();
    let (bytes, flags) = (65_536, rustix::mm::MapFlags::SHARED);
    for _ in 0..TIMES {
        // SAFETY: a new mapping, of which nothing is read, and which is given back whole.
        unsafe {
            let at =
                rustix::mm::mmap(std::ptr::null_mut(), bytes, rustix::mm::ProtFlags::READ, flags, &file, 0);
            rustix::mm::munmap(at.unwrap(), bytes).unwrap();
        }
    }
}

#[test]
fn each_mapping_of_a_file_is_counted() {
    let _alone = alone();
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(65_536).unwrap();
    let path = file.path().to_str().unwrap();
    let exe = std::env::current_exe().unwrap();
    let role = "session::tests::role_of_one_who_maps";
    let maps = format!("{MAPPED}={path}");
    for tier in TIERS {
        let p = profile(&["env", &maps, exe.to_str().unwrap(), "--exact", role], tier);
        assert_eq!(p.end, End::Code(0));
        let found =
            p.files.iter().find(|f| f.path == path).unwrap_or_else(|| panic!("{tier:?} {:#?}", p.files));
        assert_eq!((found.mapped, found.mappings), (true, TIMES), "{tier:?}");
    }
}

#[test]
fn pipes_that_switch_all_the_time_keep_the_laws() {
    let _alone = alone();
    if !have("dd") {
        return;
    }
    for tier in TIERS {
        let p = profile(
            &["sh", "-c", "dd if=/dev/zero bs=512 count=100000 2>&- | dd of=/dev/null bs=512 2>&-"],
            tier,
        );
        assert!(p.threads.iter().map(|t| t.count).sum::<u64>() >= 3, "{tier:?} {:#?}", p.threads);
        assert!((0.0..=1.0).contains(&p.observer.switch_duty));
    }
}

#[test]
fn an_orphan_outlives_the_command_and_is_told() {
    let _alone = alone();
    let start = Instant::now();
    let p = profile(&["sh", "-c", "sleep 20 > /dev/null 2>&1 & exit 4"], Tier::Observer);
    assert_eq!(p.end, End::Code(4));
    assert!(start.elapsed() < Duration::from_secs(15), "watching ends with the command");
    assert!(p.sight.limitations.iter().any(|l| l.id == "descendants-left"), "{:?}", p.sight);
    for child in our_children() {
        let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        if name.trim() == "sleep" {
            // SAFETY: kill(2) takes any numbers; this is our own adopted child.
            unsafe { libc::kill(child as i32, libc::SIGKILL) };
            let mut status = 0;
            // SAFETY: the status is a local.
            unsafe { libc::waitpid(child as i32, &mut status, 0) };
        }
    }
}

#[test]
fn nothing_is_left_behind() {
    let _alone = alone();
    profile(&["true"], Tier::Observer);
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    // Recordings are closed beside what follows, which takes the kernel a moment.
    let settled = |enough: &dyn Fn(usize) -> bool| {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut last = usize::MAX;
        loop {
            let now = open();
            if (now == last && enough(now)) || Instant::now() > deadline {
                return now;
            }
            last = now;
            std::thread::sleep(Duration::from_millis(300));
        }
    };
    let before = settled(&|_| true);
    for tier in TIERS {
        profile(&["sh", "-c", "true & true & wait"], tier);
        let _ = watch(&command(&["/nonexistent"]), &options(tier));
    }
    assert_eq!(settled(&|n| n == before), before, "descriptors");
    for child in our_children() {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        assert!(!(stat.contains("(true) Z") || stat.contains("(sh) Z")), "a zombie: {stat}");
    }
}

#[test]
fn attaching_sees_a_process_from_now_on() {
    let _alone = alone();
    for tier in TIERS {
        let script = "while true; do dd if=/dev/zero of=/dev/null bs=4k count=500 2>&-; sleep 0.01; done";
        let mut other = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let subject = Subject::Process { pid: other.id(), limit: Some(Duration::from_millis(300)) };
        let result = watch(&subject, &options(tier));
        other.kill().unwrap();
        other.wait().unwrap();
        let p = result.unwrap().profile;
        p.check(1e-6).unwrap_or_else(|law| panic!("{tier:?}: {law}\n{p:#?}"));
        assert_eq!(p.end, End::Running);
        assert!(p.wall_ns >= 290_000_000);
        assert!(p.threads.iter().any(|t| t.tid == other.id()), "{:#?}", p.threads);
    }
}

#[test]
fn attaching_ends_when_the_process_does() {
    let _alone = alone();
    let mut other = std::process::Command::new("sleep").arg("0.2").spawn().unwrap();
    let p =
        watch(&Subject::Process { pid: other.id(), limit: None }, &options(Tier::Observer)).unwrap().profile;
    other.wait().unwrap();
    p.check(1e-6).unwrap();
    assert_eq!(p.end, End::Gone);
}

#[test]
fn threads_of_our_own_are_watched_by_a_thread_that_is_not() {
    let _alone = alone();
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    for tier in TIERS {
        let observer = Observer::start(&[tid], tier, 2_000_000, on_path).unwrap();
        let worker = std::thread::spawn(|| std::thread::sleep(Duration::from_millis(50)));
        std::thread::sleep(Duration::from_millis(100));
        worker.join().unwrap();
        let p = observer.stop().unwrap();
        p.check(1e-6).unwrap_or_else(|law| panic!("{tier:?}: {law}\n{p:#?}"));
        assert!(p.threads.iter().any(|t| t.tid == tid), "{:#?}", p.threads);
        assert!(!p.threads.iter().any(|t| t.name == EVENT_LOOP_NAME), "{:#?}", p.threads);
        // The one that was named and, where births are recorded, the one that it started.
        let threads: u64 = p.threads.iter().map(|t| t.count).sum();
        assert!(threads <= 2, "{tier:?} {:#?}", p.threads);
        assert!(p.wall_ns >= 100_000_000);
        // Counters of threads that ended are lost: nothing is told rather than too little.
        let told = p.sight.limitations.iter().any(|l| l.id == "ended-threads");
        assert!(told == p.io.user_ns.is_none(), "{tier:?} {:?} {:?}", p.io, p.sight);
    }
}

#[test]
fn counters_of_our_own_threads_hold_cpu_time_and_faults() {
    let _alone = alone();
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let observer = Observer::start(&[tid], Tier::Observer, 2_000_000, on_path).unwrap();
    let end = Instant::now() + Duration::from_millis(200);
    let mut touched = 0usize;
    while Instant::now() < end {
        touched += vec![1u8; 1 << 20].iter().filter(|byte| **byte == 1).count();
    }
    let p = observer.stop().unwrap();
    assert!(touched > 0);
    let (Some(user), Some(system)) = (p.io.user_ns, p.io.system_ns) else {
        eprintln!("skipped: the kernel keeps no counters of threads");
        return;
    };
    // A loop that only computes: more than nothing, and no more than the time that passed.
    assert!(user + system > 0 && user + system <= p.wall_ns + 10_000_000, "{user} {system} {}", p.wall_ns);
    assert!(p.io.minor_faults.is_some());
}

#[test]
fn attaching_to_a_process_above_us_leaves_ourselves_out() {
    let _alone = alone();
    let said = said(in_another_process("", "exit 0"));
    assert!(said.contains("ended Code(0)"), "{said}");
    let ours = std::process::id();
    let mut reader = iowhy_linux::reader::Reader::new();
    let above = iowhy_linux::process::task::process_stat(&mut reader, ours).unwrap().parent;
    let family = iowhy_linux::process::tree::family(&mut reader, above);
    assert!(family.contains(&above) && !family.contains(&ours), "{family:?}");
}

const ROLE: &str = "IOWHY_TEST_WATCH";

/// The other side of [`in_another_process`]: watches what it is told, prints how that ended, and no more.
#[test]
fn role_of_a_watcher() {
    let Ok(script) = std::env::var(ROLE) else { return };
    match watch(&command(&["sh", "-c", &script]), &options(Tier::Observer)) {
        Ok(Watched { profile: p, .. }) => {
            let left = p.sight.limitations.iter().map(|l| l.id.as_str()).collect::<Vec<_>>().join(",");
            println!("ended {:?} law {:?} limitations {left};", p.end, p.check(1e-6));
        }
        Err(refusal) => println!("problem {};", refusal.problem),
    }
}

/// A watcher of a shell script in a process of its own, below a shell that does `before`.
fn in_another_process(before: &str, script: &str) -> std::process::Child {
    let exe = std::env::current_exe().unwrap();
    let test = "--exact session::tests::role_of_a_watcher --nocapture --test-threads 1";
    std::process::Command::new("sh")
        .args(["-c", &format!("{before} exec '{}' {test}", exe.display())])
        .env(ROLE, script)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

fn said(watcher: std::process::Child) -> String {
    String::from_utf8_lossy(&watcher.wait_with_output().unwrap().stdout).into_owned()
}

/// Waits until the script has made this file.
fn await_file(path: &std::path::Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < deadline, "the program does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_to_us_alone_reaches_the_command_and_the_report_still_comes() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("mark");
    let script = format!(
        "trap 'exit 9' TERM; touch {}; i=0; while [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done",
        mark.display()
    );
    let watcher = in_another_process("", &script);
    await_file(&mark);
    // SAFETY: kill(2) takes any numbers; the process is our child.
    unsafe { libc::kill(watcher.id() as i32, libc::SIGTERM) };
    let said = said(watcher);
    assert!(said.contains("ended Code(9) law Ok(())"), "{said}");
}

#[test]
fn a_second_signal_ends_the_watch_and_leaves_the_command() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (mark, last) = (folder.path().join("mark"), folder.path().join("last"));
    // It ignores what it is asked, and is alive afterwards; it ends when the folder goes.
    let script = format!(
        "exec > /dev/null; trap '' TERM; touch {0}; while [ -e {0} ]; do sleep 0.05; done; touch {1}",
        mark.display(),
        last.display()
    );
    let mut watcher = in_another_process("", &script);
    await_file(&mark);
    // The kernel keeps one signal of a kind for a process that is not scheduled: on a busy machine two may be one.
    for _ in 0..20 {
        // SAFETY: kill(2) takes any numbers; the process is our child.
        unsafe { libc::kill(watcher.id() as i32, libc::SIGTERM) };
        std::thread::sleep(Duration::from_millis(400));
        if watcher.try_wait().unwrap().is_some() {
            break;
        }
    }
    let said = said(watcher);
    assert!(said.contains("ended Running law Ok(())"), "{said}");
    std::fs::remove_file(&mark).unwrap();
    // Unharmed: it goes on to its end.
    await_file(&last);
}

#[test]
fn a_watcher_that_is_killed_leaves_the_program_unharmed() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (mark, last) = (folder.path().join("mark"), folder.path().join("last"));
    let script = format!("exec > /dev/null; touch {}; sleep 0.3; touch {}", mark.display(), last.display());
    let mut watcher = in_another_process("", &script);
    await_file(&mark);
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    await_file(&last);
}

#[test]
fn few_descriptors_make_a_poorer_profile_or_a_clear_refusal() {
    let _alone = alone();
    for limit in [6, 10, 16, 24, 40] {
        let said = said(in_another_process(&format!("ulimit -n {limit};"), "exit 3"));
        // At the lowest limits not even a test can start; what starts, ends in one of two ways.
        let good = said.contains("ended Code(3) law Ok(())") || said.contains("problem ");
        assert!(good || limit < 24, "{limit}: {said}");
    }
}

#[test]
fn an_ignored_sigchld_does_not_lose_the_exit_code() {
    let _alone = alone();
    let said = said(in_another_process("trap '' CHLD;", "exit 3"));
    assert!(said.contains("ended Code(3) law Ok(())"), "{said}");
}

fn our_children() -> Vec<u32> {
    let mut all = vec![];
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(text.split_whitespace().filter_map(|n| n.parse::<u32>().ok()));
    }
    all
}

#[test]
fn a_stop_is_followed_only_for_the_user_of_the_terminal() {
    // tty_nr 259 is 1:3, /dev/null, which belongs to root as a terminal of root's does.
    let on = |foreground: &str| Terminal::from_stat(&format!("12 (iowhy) S 1 77 70 259 {foreground} 0"));
    let ours = on("77");
    assert!(ours.is_some() && on("70").is_some());
    let meant = stop_is_meant_for_us;
    assert!(meant(libc::SIGTSTP, true, ours, None));
    assert!(!meant(libc::SIGTSTP, false, ours, None), "a group of its own");
    assert!(!meant(libc::SIGTSTP, true, on("70"), None), "in the background");
    assert!(!meant(libc::SIGTSTP, true, None, None), "no terminal");
    for signal in [libc::SIGTTIN, libc::SIGTTOU, libc::SIGSTOP] {
        assert!(!meant(signal, true, ours, None), "{signal}");
    }
    assert!(!meant(libc::SIGTSTP, true, ours, Some(65534)), "another user's command");
    if ours.unwrap().owner() == Some(0) {
        assert!(meant(libc::SIGTSTP, true, ours, Some(0)), "the terminal is that user's");
    } else {
        eprintln!("skipped: /dev/null or sysfs is not seen here");
    }
}
