//! Conservation: whatever the profile, no time is made or lost. And one known account.

use iowhy_core::profile::{FileUse, Profile, RequestTime, StackTime, State, Symbol, Thread};
use proptest::prelude::*;

use super::*;
use crate::classify::Classifier;

/// One stack of the profiles here: thread, state, kernel names, user names, known, time, part of it on the wall.
type Piece = (u32, State, Vec<&'static str>, Vec<&'static str>, bool, u32, f64);

/// A profile whose threads sum to their stacks.
fn profile(pieces: &[Piece], idle_wall_ns: u32) -> Profile {
    let mut p = Profile { idle_wall_ns: f64::from(idle_wall_ns), ..Profile::default() };
    let mut wall = p.idle_wall_ns;
    for (thread, state, kernel, user, known, time, on_wall) in pieces {
        while p.threads.len() <= *thread as usize {
            let tid = p.threads.len() as u32;
            p.threads.push(Thread { tid, count: 1, name: format!("t{}", tid % 2), ..Thread::default() });
        }
        let t = &mut p.threads[*thread as usize];
        let time = u64::from(*time);
        t.lifetime_ns += time;
        *match state {
            State::Running => &mut t.running_ns,
            State::Queued => &mut t.queued_ns,
            State::Blocked => &mut t.blocked_ns,
        } += time;
        let mut ids = |names: &[&str], object: Option<&str>| -> Vec<u32> {
            names
                .iter()
                .map(|name| {
                    let object = object.map(str::to_owned);
                    let known = p.symbols.iter().position(|s| s.name == *name && s.object == object);
                    let id = known.unwrap_or(p.symbols.len());
                    if known.is_none() {
                        p.symbols.push(Symbol { name: (*name).to_owned(), object, ..Symbol::default() });
                    }
                    id as u32
                })
                .collect()
        };
        let kernel = ids(kernel, None);
        let user = ids(user, Some("/usr/bin/program"));
        let wall_ns = time as f64 * on_wall;
        wall += wall_ns;
        let time_ns = time as f64;
        p.stacks.push(StackTime {
            thread: *thread,
            state: *state,
            kernel,
            user,
            known: *known,
            time_ns,
            wall_ns,
            events: 1,
            seen_ns: time_ns,
            requests: None,
        });
    }
    p.wall_ns = wall.round() as u64;
    p
}

const NAMES: [&str; 12] = [
    "schedule",
    "io_schedule",
    "folio_wait_bit_common",
    "filemap_read",
    "_copy_to_iter",
    "zzz_unheard_of",
    "asm_exc_page_fault",
    "__x64_sys_read",
    "__x64_sys_pwrite64",
    "__iomap_dio_rw",
    "anon_pipe_read",
    "ext4_zzz",
];

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let state = prop::sample::select(vec![State::Running, State::Queued, State::Blocked]);
    let names = || prop::collection::vec(prop::sample::select(NAMES.to_vec()), 0..5);
    let piece = (0u32..4, state, names(), names(), any::<bool>(), 0u32..1_000_000, 0.0..1.0f64);
    prop::collection::vec(piece, 0..30)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #[test]
    fn no_time_is_made_or_lost(
        pieces in pieces(),
        idle in 0u32..1_000_000,
        shares in (0.0..1.0f64, 0.0..1.0f64, 0.0..1.0f64),
        ring in prop::option::of(0.0..1.0f64),
    ) {
        let mut p = profile(&pieces, idle);
        for stack in p.stacks.iter_mut().filter(|s| s.state == State::Blocked) {
            stack.seen_ns *= shares.0;
            let (device_ns, queued_ns) = (stack.seen_ns * shares.1, stack.seen_ns * (1.0 - shares.1) * shares.2);
            let (behind_others_ns, beside_others_ns) = (queued_ns * shares.1, device_ns * shares.2);
            let ring_ns = ring.map(|share| stack.seen_ns * share);
            let requests = RequestTime { device_ns, queued_ns, behind_others_ns, beside_others_ns, ring_ns };
            stack.requests = Some(requests);
        }
        let a = account(&p, &Classifier::new());
        prop_assert!(near(a.layers.total_ns(), p.thread_ns() as f64));
        let all = a.sum(|_| true);
        prop_assert!(near(all.time_ns, a.thread_ns));
        prop_assert!((all.wall_ns + a.idle_wall_ns - a.wall_ns).abs() <= 1.0);
        prop_assert_eq!(all.events, p.stacks.len() as u64);
        let operations: f64 = a.operations().iter().map(|o| o.layers.total_ns()).sum();
        prop_assert!(near(operations, a.thread_ns));
        for t in a.threads() {
            prop_assert!(near(t.layers.total_ns(), p.threads[t.thread as usize].lifetime_ns as f64));
        }
        prop_assert!(a.entries.iter().all(|e| e.delay.behind_ns + e.delay.beside_ns <= e.time_ns * (1.0 + 1e-9)));
        prop_assert!(near(a.seen_share * a.thread_ns, p.stacks.iter().map(|s| s.seen_ns).sum()));
        let waits: f64 = a.waits().iter().map(|(_, sum)| sum.time_ns).sum();
        let blocked: u64 = p.threads.iter().map(|t| t.blocked_ns).sum();
        prop_assert!(near(waits, blocked as f64));
        let queued: u64 = p.threads.iter().map(|t| t.queued_ns).sum();
        prop_assert!(near(a.layers.get(Layer::CpuQueue).wait_ns, queued as f64));
        let unexplained = a.layers.get(Layer::Unexplained).total_ns();
        prop_assert!(near(unexplained, (a.unseen_share + a.unknown_symbols_share) * a.thread_ns));
        prop_assert!(a.unseen_share + a.unknown_symbols_share <= 1.0 + 1e-9);
        prop_assert!(a.entries.windows(2).all(|w| w[0].time_ns >= w[1].time_ns));
    }

    #[test]
    fn the_order_of_the_stacks_does_not_matter(pieces in pieces()) {
        let classifier = Classifier::new();
        let p = profile(&pieces, 0);
        let mut reversed = p.clone();
        reversed.stacks.reverse();
        let (a, b) = (account(&p, &classifier), account(&reversed, &classifier));
        prop_assert_eq!(a.entries.len(), b.entries.len());
        prop_assert_eq!(a.sites.len(), b.sites.len());
        prop_assert!(near(a.layers.total_ns(), b.layers.total_ns()));
    }
}

#[test]
fn a_known_profile_has_its_known_account() {
    use State::{Blocked, Queued, Running};
    let read = ["folio_wait_bit_common", "filemap_get_pages", "filemap_read", "vfs_read", "__x64_sys_read"];
    let pieces: Vec<Piece> = vec![
        (0, Running, vec![], vec!["main"], true, 100, 1.0),
        (0, Running, vec!["_copy_to_iter", "filemap_read", "__x64_sys_read"], vec!["load"], true, 50, 1.0),
        (0, Queued, vec![], vec![], false, 10, 1.0),
        (0, Blocked, read.to_vec(), vec!["load"], true, 400, 1.0),
        (1, Blocked, vec!["anon_pipe_read", "__x64_sys_read"], vec!["take"], true, 900, 0.0),
        (1, Running, vec!["zzz_unheard_of"], vec![], true, 40, 1.0),
        (1, Blocked, vec![], vec![], false, 60, 0.0),
    ];
    let mut p = profile(&pieces, 7);
    let classifier = Classifier::new();
    let a = account(&p, &classifier);
    assert_eq!((a.thread_ns, a.wall_ns, a.seen_share), (1560.0, 607.0, 1.0));
    let layer = |a: &Account, l| (a.layers.get(l).busy_ns, a.layers.get(l).wait_ns);
    assert_eq!(layer(&a, Layer::Program), (100.0, 0.0));
    assert_eq!(layer(&a, Layer::Copy), (50.0, 0.0));
    assert_eq!(layer(&a, Layer::CpuQueue), (0.0, 10.0));
    assert_eq!(layer(&a, Layer::Device), (0.0, 400.0));
    assert_eq!(layer(&a, Layer::Elsewhere), (0.0, 900.0));
    assert_eq!(layer(&a, Layer::Unexplained), (40.0, 60.0));
    assert!(near(a.unknown_symbols_share, 40.0 / 1560.0) && near(a.unseen_share, 60.0 / 1560.0));
    assert_eq!(a.waits()[0].0, Wait::Pipe);
    let operations: Vec<Operation> = a.operations().iter().map(|o| o.operation).collect();
    assert_eq!(operations, [Operation::Read, Operation::Unknown, Operation::User]);
    let sites: Vec<(&str, &str, f64)> =
        a.sites.iter().map(|s| (s.thread.as_str(), s.function.as_str(), s.sum.time_ns)).collect();
    assert_eq!(sites, [("t1", "take", 900.0), ("t0", "load", 450.0), ("t0", "main", 100.0)]);

    assert!(a.script_sites.is_empty());

    // Half of the reads was recorded; the same requests beside the pipe prove nothing.
    let requests = Some(RequestTime {
        device_ns: 150.0,
        queued_ns: 50.0,
        behind_others_ns: 20.0,
        beside_others_ns: 30.0,
        ring_ns: None,
    });
    for stack in p.stacks.iter_mut().filter(|s| s.state == State::Blocked && s.time_ns >= 400.0) {
        (stack.seen_ns, stack.requests) = (stack.time_ns / 2.0, requests);
    }
    let a = account(&p, &classifier);
    assert_eq!((layer(&a, Layer::Device), layer(&a, Layer::Block)), ((0.0, 300.0), (0.0, 100.0)));
    assert_eq!(layer(&a, Layer::Elsewhere), (0.0, 900.0));
    let reads = a.wait(Wait::DeviceRead);
    assert_eq!((reads.time_ns, reads.events), (400.0, 1));
    assert_eq!(a.sum(|_| true).delay, Delay { behind_ns: 40.0, beside_ns: 60.0 });
    assert!(near(a.seen_share, (1560.0 - 200.0 - 450.0) / 1560.0));
    assert!(near(a.seen_share + a.inferred_share(), 1.0));

    // The data lie on a volume: while nothing of them is queued or at a disk, the volume holds the request.
    let mut file = FileUse { volume: Some("dm-0".into()), ..FileUse::default() };
    file.reads.calls = 1;
    p.files = vec![file];
    let half = Some(RequestTime { device_ns: 60.0, queued_ns: 40.0, ..RequestTime::default() });
    p.stacks.iter_mut().filter(|s| s.requests.is_some()).for_each(|s| s.requests = half);
    let a = account(&p, &classifier);
    assert_eq!((layer(&a, Layer::Device), layer(&a, Layer::Block)), ((0.0, 120.0), (0.0, 280.0)));
}

#[test]
fn threads_that_their_stacks_do_not_cover_are_unexplained_with_the_sign() {
    let pieces: Vec<Piece> = vec![(0, State::Running, vec![], vec![], true, 100, 1.0)];
    let mut p = profile(&pieces, 0);
    p.threads[0].running_ns = 150;
    p.threads[0].lifetime_ns = 170;
    p.threads[0].blocked_ns = 20;
    let unexplained = account(&p, &Classifier::new()).layers.get(Layer::Unexplained);
    assert_eq!((unexplained.busy_ns, unexplained.wait_ns), (50.0, 20.0));
}

#[test]
fn a_profile_that_makes_no_sense_is_survived() {
    let mut p = profile(&[(0, State::Blocked, vec!["schedule"], vec!["f"], true, 5, 1.0)], 0);
    p.stacks[0].thread = 99;
    p.stacks[0].kernel = vec![77];
    p.stacks[0].user = vec![78];
    p.stacks[0].seen_ns = f64::NAN;
    p.stacks[0].requests =
        Some(RequestTime { device_ns: f64::NAN, queued_ns: -1.0, ..RequestTime::default() });
    let a = account(&p, &Classifier::new());
    assert_eq!(a.layers.get(Layer::Unexplained).wait_ns, 5.0);
    assert_eq!(account(&Profile::default(), &Classifier::new()), Account::default());
}

/// Sleeps for pages and for a ring, with this number of the program's own reads at block devices.
fn sleeps_beside(own_reads: u64, file_on: &str) -> Vec<Option<Wait>> {
    use iowhy_core::profile::{Access, BlockSample, FileUse, ServedMount};
    let symbol = |name: &str| Symbol { name: name.to_owned(), ..Symbol::default() };
    let stack = |kernel: Vec<u32>, time_ns| StackTime {
        thread: 0,
        state: State::Blocked,
        kernel,
        user: Vec::new(),
        known: true,
        time_ns,
        wall_ns: time_ns,
        events: 100,
        seen_ns: 0.0,
        requests: None,
    };
    let profile = Profile {
        wall_ns: 1_000,
        threads: vec![Thread { lifetime_ns: 1_000, count: 1, ..Thread::default() }],
        symbols: [
            "folio_wait_bit_common",
            "filemap_get_pages",
            "__x64_sys_read",
            "io_cqring_wait",
            "__x64_sys_io_uring_enter",
        ]
        .map(symbol)
        .to_vec(),
        stacks: vec![stack(vec![0, 1, 2], 600.0), stack(vec![3, 4], 400.0)],
        served: vec![ServedMount { point: "/mnt/slow".to_owned(), ..ServedMount::default() }],
        files: vec![FileUse {
            mount_point: Some(file_on.to_owned()),
            kind: "regular".to_owned(),
            reads: Access { calls: 100, time_ns: 100, ..Access::default() },
            ..FileUse::default()
        }],
        block: Some(BlockSample { own_reads, own_requests: own_reads, ..BlockSample::default() }),
        ..Profile::default()
    };
    account(&profile, &Classifier::new()).entries.iter().map(|e| e.class.wait).collect()
}

#[test]
fn sleeps_that_no_request_of_the_program_can_have_ended_are_not_for_a_disk() {
    assert_eq!(sleeps_beside(2, "/mnt/slow"), [Some(Wait::Server), Some(Wait::Poll)]);
    // Whatever else it asked the disk for, it did not read there.
    assert_eq!(sleeps_beside(90, "/mnt/slow"), [Some(Wait::Server), Some(Wait::Completion)]);
    assert_eq!(sleeps_beside(90, "/srv"), [Some(Wait::DeviceRead), Some(Wait::Completion)]);
    // Nothing else than a disk can have given pages of this file: others' write-back may have cleaned them.
    assert_eq!(sleeps_beside(2, "/srv"), [Some(Wait::DeviceRead), Some(Wait::Poll)]);
}

/// Where 1,000 ns of twenty sleeps for pages go: to the disk, and to a server; and what of it is inferred. A tenth of the time a request of
/// the program was at the device. `[local, served]`: time in reads of a file there.
fn pages_of_two(stack: &[&'static str], own_reads: u64, [local, served]: [u64; 2]) -> [f64; 3] {
    use iowhy_core::profile::{Access, BlockSample, ServedMount};
    let pieces: Vec<Piece> = vec![(0, State::Blocked, stack.to_vec(), vec!["load"], true, 1000, 1.0)];
    let mut p = profile(&pieces, 0);
    let at_device = RequestTime { device_ns: 100.0, ..RequestTime::default() };
    (p.stacks[0].events, p.stacks[0].seen_ns, p.stacks[0].requests) = (20, 1000.0, Some(at_device));
    p.block = Some(BlockSample { own_requests: own_reads, own_reads, ..Default::default() });
    p.served = vec![ServedMount { point: "/mnt/slow".to_owned(), ..ServedMount::default() }];
    let file = |point: &str, time_ns: u64| FileUse {
        kind: "regular".to_owned(),
        mount_point: Some(point.to_owned()),
        reads: Access { calls: time_ns, time_ns, ..Access::default() },
        mapped: true,
        ..FileUse::default()
    };
    p.files = vec![file("/", local), file("/mnt/slow", served)];
    let a = account(&p, &Classifier::new());
    assert!((a.sum(|_| true).time_ns - 1000.0).abs() < 1e-9);
    assert_eq!(a.entries.iter().map(|e| e.events).sum::<u64>(), 20);
    [a.wait(Wait::DeviceRead).time_ns, a.wait(Wait::Server).time_ns, a.inferred_share() * 1000.0]
}

#[test]
fn a_program_that_reads_its_disk_and_a_server_waits_for_both() {
    let near = |parts: [f64; 3], [disk, server]: [f64; 2]| {
        // What no request was seen beside, and may be the server's, is inferred.
        let known = [disk, server, server];
        assert!(parts.iter().zip(known).all(|(part, to)| (part - to).abs() < 1e-9), "{parts:?}: {known:?}");
    };
    let read = ["folio_wait_bit_common", "filemap_get_pages", "__x64_sys_read"];
    near(pages_of_two(&read, 20, [0, 500]), [100.0, 900.0]);
    near(pages_of_two(&read, 20, [100, 300]), [325.0, 675.0]);
    near(pages_of_two(&read, 1, [500, 0]), [1000.0, 0.0]);
    let fault = ["folio_wait_bit_common", "filemap_fault", "handle_mm_fault", "asm_exc_page_fault"];
    near(pages_of_two(&fault, 5, [0, 0]), [325.0, 675.0]);
    near(pages_of_two(&fault, 20, [0, 0]), [1000.0, 0.0]);
}

/// Waiting of one thread for a ring: for events, for the device, and elsewhere for a file.
fn ring_wait(requests: RequestTime) -> (f64, f64, f64) {
    completion_wait(&["io_cqring_wait", "__x64_sys_io_uring_enter"], 0, requests)
}

fn completion_wait(kernel: &[&'static str], own_requests: u64, requests: RequestTime) -> (f64, f64, f64) {
    let pieces: Vec<Piece> = vec![(0, State::Blocked, kernel.to_vec(), vec!["serve"], true, 1000, 1.0)];
    let mut p = profile(&pieces, 0);
    (p.stacks[0].seen_ns, p.stacks[0].requests) = (1000.0, Some(requests));
    p.block = Some(iowhy_core::profile::BlockSample { own_requests, ..Default::default() });
    let a = account(&p, &Classifier::new());
    assert_eq!(a.sum(|_| true).time_ns, 1000.0);
    let waits = a.layers.get(Layer::Device).wait_ns + a.layers.get(Layer::Block).wait_ns;
    (a.wait(Wait::Poll).time_ns, waits, a.layers.get(Layer::Filesystem).wait_ns)
}

#[test]
fn a_ring_waits_for_what_its_requests_wait_for() {
    let busy_disk = RequestTime { device_ns: 700.0, queued_ns: 100.0, ..RequestTime::default() };
    // The disk works for others; a read of the ring itself takes a tenth of the time.
    assert_eq!(ring_wait(RequestTime { ring_ns: Some(100.0), ..busy_disk }), (900.0, 100.0, 0.0));
    assert_eq!(ring_wait(RequestTime { ring_ns: Some(0.0), ..busy_disk }), (1000.0, 0.0, 0.0));
    // A worker copies from the cache, or a server answers.
    let no_disk = RequestTime { ring_ns: Some(400.0), ..RequestTime::default() };
    assert_eq!(ring_wait(no_disk), (600.0, 0.0, 400.0));
    // Not followed: without any request at a block device it is taken to be an event.
    assert_eq!(ring_wait(RequestTime::default()), (1000.0, 0.0, 0.0));
    // Compilers may leave no function for the wait. Requests of io_submit(2) are on no ring.
    let own = RequestTime { ring_ns: Some(900.0), ..busy_disk };
    let inlined = ["schedule_hrtimeout_range_clock", "__do_sys_io_uring_enter", "do_syscall_64"];
    let (event, disk, file) = completion_wait(&inlined, 0, own);
    assert!((event - 100.0).abs() < 1e-9 && (disk - 900.0).abs() < 1e-9 && file == 0.0);
    let aio = ["read_events", "do_io_getevents", "__x64_sys_io_getevents"];
    let none_on_a_ring = RequestTime { ring_ns: Some(0.0), ..busy_disk };
    assert_eq!(completion_wait(&aio, 10, none_on_a_ring), (0.0, 1000.0, 0.0));
}

#[test]
fn a_function_of_a_script_stands_for_what_interprets_it() {
    let read = vec!["filemap_read", "vfs_read", "__x64_sys_read"];
    let running = |user, time| (0, State::Running, read.clone(), user, true, time, 1.0);
    let mut p =
        profile(&[running(vec!["evaluate", "script", "main"], 100), running(vec!["load", "main"], 50)], 7);
    let named = |p: &Profile| {
        let a = account(p, &Classifier::new());
        let sites =
            |sites: Vec<Site>| sites.into_iter().map(|s| (s.function, s.sum.time_ns)).collect::<Vec<_>>();
        [sites(a.sites), sites(a.script_sites)]
    };
    let pair = |a: &str, b: &str| vec![(a.to_owned(), 100.0), (b.to_owned(), 50.0)];
    assert_eq!(named(&p), [pair("evaluate", "load"), vec![]]);
    p.symbols.iter_mut().filter(|s| s.name == "script").for_each(|s| s.made_at_run_time = true);
    assert_eq!(
        named(&p),
        [pair("evaluate", "load"), pair("script", "load")],
        "libraries are known by the first"
    );
}

#[test]
fn functions_of_standard_libraries_are_passed_over() {
    let read = vec!["filemap_read", "vfs_read", "__x64_sys_read"];
    let caller = |user: Vec<&'static str>| {
        let p = profile(&[(0, State::Running, read.clone(), user, true, 100, 1.0)], 7);
        account(&p, &Classifier::new()).sites.into_iter().map(|s| s.function).next().unwrap()
    };
    assert_eq!(
        caller(vec![
            "std::sys::fs::unix::File::read",
            "<std::fs::File as std::io::Read>::read",
            "app::load",
            "main"
        ]),
        "app::load"
    );
    assert_eq!(
        caller(vec!["syscall.Syscall", "os.(*File).Read", "main.load", "main.main", "runtime.goexit.abi0"]),
        "main.load"
    );
    assert_eq!(caller(vec!["syscall.pread", "main"]), "syscall.pread", "not of Go");
    assert_eq!(caller(vec!["runtime.read", "runtime.sysmon", "runtime.goexit.abi0"]), "runtime.read");
}

#[test]
fn the_callers_of_a_site_are_the_way_that_most_of_its_time_came() {
    let read = vec!["filemap_read", "vfs_read", "__x64_sys_read"];
    let site = |stacks: &[(&[&'static str], u32)]| {
        let running = |(user, time): &(&[&'static str], u32)| {
            (0, State::Running, read.clone(), user.to_vec(), true, *time, 1.0)
        };
        let p = profile(&stacks.iter().map(running).collect::<Vec<_>>(), 7);
        let sites = account(&p, &Classifier::new()).sites;
        assert_eq!(sites.len(), 1, "{sites:?}");
        let callers = sites[0].callers.iter().map(|c| c.function.clone()).collect::<Vec<_>>();
        (callers.join(" "), (sites[0].callers_share * 100.0).round())
    };
    assert_eq!(site(&[(&["load", "main", "_start"], 100)]), ("main".to_owned(), 100.0));
    assert_eq!(site(&[(&["load"], 100)]), (String::new(), 100.0));
    // Two ways of the same length of time: neither is that of more than half.
    let halves: &[(&[&'static str], u32)] = &[(&["load", "a", "main"], 50), (&["load", "b", "main"], 50)];
    assert_eq!(site(halves), (String::new(), 100.0));
    let most: &[(&[&'static str], u32)] = &[(&["load", "a", "main"], 70), (&["load", "b", "main"], 30)];
    assert_eq!(site(most), ("a main".to_owned(), 70.0));
    // Each step of most of what is left would not be enough: 0.7 x 0.7 is less than half.
    let less: &[(&[&'static str], u32)] =
        &[(&["load", "a", "c"], 49), (&["load", "a", "d"], 21), (&["load", "b"], 30)];
    assert_eq!(site(less), ("a".to_owned(), 70.0));
    // However deep it calls itself, and whatever has no name.
    let deep: &[(&[&'static str], u32)] = &[
        (&["load", "eval", "call", "eval", "call", "main"], 60),
        (&["load", "eval", "[app]", "call", "main"], 40),
    ];
    assert_eq!(site(deep), ("eval call main".to_owned(), 100.0));
}

#[test]
fn the_file_of_functions_without_a_name_is_told() {
    let read = vec!["filemap_read", "vfs_read", "__x64_sys_read"];
    let running = |user: Vec<&'static str>, time| (0, State::Running, read.clone(), user, true, time, 1.0);
    let mut p = profile(
        &[
            running(vec!["[libc.so.6]", "[git]", "main"], 60),
            running(vec!["[tool]", "load", "main"], 50),
            running(vec!["load", "[git]"], 900),
            running(vec!["[anonymous]", "main"], 900),
            running(vec!["[libc.so.6]"], 900),
        ],
        7,
    );
    // A function without a name belongs to no object.
    p.symbols.iter_mut().filter(|s| s.name.starts_with('[')).for_each(|s| s.object = None);
    assert_eq!(account(&p, &Classifier::new()).most_unnamed, Some(("git".to_owned(), 60.0)));
    p.symbols.iter_mut().filter(|s| s.name.starts_with('[')).for_each(|s| s.name = "[libc.so.6]".to_owned());
    assert_eq!(account(&p, &Classifier::new()).most_unnamed, None);
}
