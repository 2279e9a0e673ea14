//! Profiles that were never measured, with known stacks and counters: for tests of records and screens.
//! Accounts and findings are those of the rules.

use iowhy_core::profile::*;

use crate::analyzer::{Analyzer, Explained};

/// Puts a profile together, stack by stack, so that it closes.
pub(crate) struct Builder {
    /// The profile so far.
    pub(crate) profile: Profile,
    analyzer: Analyzer,
}

const MS: f64 = 1e6;

impl Builder {
    /// A program of this wall time that saw everything at tier 3.
    pub(crate) fn new(wall_ms: f64) -> Builder {
        let profile = Profile {
            wall_ns: (wall_ms * MS) as u64,
            idle_wall_ns: wall_ms * MS,
            end: End::Code(0),
            sight: Sight { tier: Tier::Observer, limitations: vec![] },
            observer: Observer { switch_duty: 1.0, ..Observer::default() },
            processes: vec![Process { pid: 100, name: "program".to_owned(), count: 1, ..Process::default() }],
            ..Profile::default()
        };
        Builder { profile, analyzer: Analyzer::new() }
    }

    /// Adds a thread; it lives as long as its stacks.
    pub(crate) fn thread(&mut self, name: &str) -> u32 {
        let index = self.profile.threads.len() as u32;
        let thread =
            Thread { name: name.to_owned(), pid: 100, tid: 100 + index, count: 1, ..Thread::default() };
        self.profile.threads.push(thread);
        index
    }

    fn symbols(&mut self, names: &[&str], object: Option<&str>) -> Vec<SymbolId> {
        let mut ids = Vec::new();
        for name in names {
            // The wrappers of system calls are the C library's.
            let wrapper = ["read", "write", "fdatasync"].contains(name);
            let object = object.map(|program| if wrapper { "/usr/lib/libc.so.6" } else { program });
            let symbol =
                Symbol { name: (*name).to_owned(), object: object.map(str::to_owned), ..Symbol::default() };
            let at = self.profile.symbols.iter().position(|s| *s == symbol).unwrap_or_else(|| {
                self.profile.symbols.push(symbol);
                self.profile.symbols.len() - 1
            });
            ids.push(at as SymbolId);
        }
        ids
    }

    /// Adds time: `ms` of a thread in one stack, on the wall clock unless it waits off the path. Without frames, the stack
    /// was not seen.
    pub(crate) fn time(
        &mut self,
        thread: u32,
        state: State,
        kernel: &[&str],
        user: &[&str],
        (ms, events): (f64, u64),
    ) {
        let on_wall = state != State::Blocked || self.analyzer.on_path(kernel);
        let (time_ns, wall_ns) = (ms * MS, if on_wall { ms * MS } else { 0.0 });
        let known = !(kernel.is_empty() && user.is_empty());
        let kernel = self.symbols(kernel, None);
        let user = self.symbols(user, Some("/usr/bin/program"));
        self.profile.stacks.push(StackTime {
            thread,
            state,
            kernel,
            user,
            known,
            time_ns,
            wall_ns,
            events,
            seen_ns: time_ns,
            requests: None,
        });
        let t = &mut self.profile.threads[thread as usize];
        t.lifetime_ns += time_ns as u64;
        match state {
            State::Running => t.running_ns += time_ns as u64,
            State::Queued => t.queued_ns += time_ns as u64,
            State::Blocked => t.blocked_ns += time_ns as u64,
        }
        self.profile.idle_wall_ns -= wall_ns;
    }

    /// The profile, closed, and what the rules say of it.
    pub(crate) fn done(mut self) -> (Profile, Explained) {
        self.profile.stacks.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
        assert_eq!(self.profile.check(1e-6), Ok(()), "a synthetic profile keeps the law");
        let explained = self.analyzer.explain(&self.profile, None);
        (self.profile, explained)
    }
}

/// One thread that writes records and makes each durable.
pub(crate) fn sync_loop() -> (Profile, Explained) {
    let mut b = Builder::new(1610.0);
    let t = b.thread("writer");
    let sync = ["fdatasync", "commit", "save_order", "main"];
    let kernel = |inner: &'static str| ["schedule", inner, "__x64_sys_fdatasync"];
    b.time(t, State::Blocked, &kernel("folio_wait_writeback"), &sync, (505.0, 3804));
    b.time(t, State::Blocked, &kernel("blkdev_issue_flush"), &sync, (470.0, 3803));
    b.time(t, State::Blocked, &kernel("jbd2_log_wait_commit"), &sync, (20.0, 32));
    b.time(t, State::Running, &["iowrite16", "__x64_sys_fdatasync"], &sync, (300.0, 299));
    b.time(t, State::Running, &["submit_bio", "__x64_sys_fdatasync"], &sync, (120.0, 121));
    b.time(t, State::Running, &["ext4_sync_file", "__x64_sys_fdatasync"], &sync, (80.0, 80));
    let write = ["write", "append", "main"];
    b.time(t, State::Running, &["vfs_write", "__x64_sys_write"], &write, (60.0, 58));
    b.time(t, State::Running, &["copy_folio_from_iter_atomic", "__x64_sys_write"], &write, (10.0, 11));
    b.time(t, State::Running, &[], &["encode", "main"], (31.0, 30));
    b.time(t, State::Queued, &["schedule", "__x64_sys_fdatasync"], &sync, (9.0, 40));
    b.time(t, State::Running, &[], &[], (5.0, 5));
    b.profile.io = IoCounters {
        read_calls: Some(12),
        write_calls: Some(3804),
        read_bytes: Some(0),
        written_bytes: Some(3804 * 4096),
        device_read_bytes: Some(0),
        device_written_bytes: Some(3804 * 4096),
        major_faults: Some(0),
        ..IoCounters::default()
    };
    let access = |calls: u64| Access { calls, bytes: calls * 4096, ..Access::default() };
    b.profile.files = vec![FileUse {
        path: "/srv/db/journal.log".to_owned(),
        kind: "regular".to_owned(),
        file_system: Some("ext4".to_owned()),
        device: Some("vda".to_owned()),
        size_bytes: Some(3804 * 4096),
        writes: access(3804),
        syncs: 3814,
        opens: 1,
        ..FileUse::default()
    }];
    b.profile.devices = vec![DeviceUse {
        name: "vda".to_owned(),
        writes: 7643,
        written_bytes: 38 << 20,
        flushes: 3836,
        busy_ns: 1_290_000_000,
        scheduler: Some("none".to_owned()),
        read_ahead_bytes: Some(128 << 10),
        ..DeviceUse::default()
    }];
    b.profile.calls = Some(CallCounts {
        complete: true,
        calls: vec![CallCount { name: "fdatasync".to_owned(), calls: 3814, ..CallCount::default() }],
    });
    b.profile.observer = Observer {
        own_cpu_ns: 21_000_000,
        in_program_ns: 13_900_000.0,
        events: 31_412,
        switch_duty: 1.0,
        ..Observer::default()
    };
    b.done()
}

/// Three threads; most time is spent asleep on pipes, the rest reading what the cache does not hold.
pub(crate) fn pipeline() -> (Profile, Explained) {
    let mut b = Builder::new(4000.0);
    let main = b.thread("collect");
    let worker = b.thread("reader-with-a-long-name");
    let third = b.thread("");
    let at = ["read", "next_block", "main"];
    let kernel = |inner: &'static str| [inner, "filemap_read", "__x64_sys_read"];
    b.time(worker, State::Blocked, &kernel("io_schedule"), &at, (700.0, 900));
    b.time(worker, State::Running, &kernel("_copy_to_iter"), &at, (60.0, 59));
    b.time(worker, State::Blocked, &["futex_do_wait", "__x64_sys_futex"], &at, (3240.0, 12));
    b.time(main, State::Blocked, &["pipe_read", "__x64_sys_read"], &["main"], (3900.0, 4000));
    b.time(main, State::Running, &[], &["main"], (100.0, 101));
    b.time(third, State::Blocked, &["do_epoll_wait", "__x64_sys_epoll_wait"], &[], (4000.0, 1));
    b.profile.end = End::Signal(15);
    b.profile.sight.tier = Tier::Stacks;
    b.profile.sight.limitations = vec![Limitation {
        id: "clock".to_owned(),
        sentence:
            "no clock on every CPU: kernel.perf_event_paranoid is 1, so that CPU time of threads that sleep \
                   often is split less surely"
                .to_owned(),
        fix: Some("sudo sysctl kernel.perf_event_paranoid=0".to_owned()),
    }];
    b.profile.observer.switch_duty = 0.25;
    b.profile.observer.lost = 7;
    b.profile.observer.events = 9000;
    b.done()
}

/// A program that did nothing at all, of which nothing was seen.
pub(crate) fn nothing() -> (Profile, Explained) {
    let profile = Profile { end: End::Gone, ..Profile::default() };
    let explained = Analyzer::new().explain(&profile, None);
    (profile, explained)
}
