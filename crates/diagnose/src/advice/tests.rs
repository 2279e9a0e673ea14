//! Tests of the table of programs: its files, and who is recognised by which facts.

use std::collections::BTreeSet;

use iowhy_core::layer::Layer;
use iowhy_core::profile::{CallCount, CallCounts, FileUse, Process, Profile, ServedMount, Thread};

use super::recognise::{fits, is_version_of};
use super::*;
use crate::account::{Entry, Site, Sum};
use crate::classify::{Class, Operation};

/// A run whose first process has all the time of an operation.
struct Made {
    profile: Profile,
    account: Account,
}

impl Made {
    fn new(program: &str, operation: Operation) -> Made {
        let mut made = Made {
            profile: Profile { wall_ns: 1_000_000_000, ..Profile::default() },
            account: Account::default(),
        };
        made.process(program, operation, 1e9);
        made
    }

    /// Another process of its own thread, with this time.
    fn process(&mut self, program: &str, operation: Operation, ns: f64) {
        let pid = 100 + self.profile.processes.len() as u32;
        let name = program.rsplit('/').next().unwrap_or(program).to_owned();
        let process =
            Process { pid, name, program: Some(program.to_owned()), count: 1, ..Process::default() };
        self.profile.processes.push(process);
        let thread = self.profile.threads.len() as u32;
        self.profile.threads.push(Thread { pid, tid: pid, count: 1, ..Thread::default() });
        self.account.entries.push(entry(thread, operation, ns));
    }

    /// The time of the first process was spent in calls of this function.
    fn called_by(mut self, object: &str, function: &str) -> Made {
        let entries = vec![self.account.entries[0]];
        let sum = Sum { time_ns: entries[0].time_ns, ..Sum::default() };
        self.account.sites.push(Site {
            thread: String::new(),
            function: function.to_owned(),
            object: object.to_owned(),
            callers: Vec::new(),
            callers_share: 1.0,
            operation: entries[0].class.operation,
            sum,
            entries,
        });
        self
    }

    fn file(mut self, path: &str, change: impl FnOnce(&mut FileUse)) -> Made {
        let mut file = FileUse { path: path.to_owned(), kind: "regular".to_owned(), ..FileUse::default() };
        change(&mut file);
        self.profile.files.push(file);
        self
    }

    fn written(self, path: &str) -> Made {
        self.file(path, |file| (file.writes.calls, file.syncs) = (100, 100))
    }

    fn calls(mut self, calls: &[(&str, u64)]) -> Made {
        let calls = calls.iter().map(|(name, calls)| CallCount {
            name: (*name).to_owned(),
            calls: *calls,
            ..CallCount::default()
        });
        self.profile.calls = Some(CallCounts { complete: true, calls: calls.collect() });
        self
    }

    fn advice(&self, id: FindingId) -> Option<ProgramAdvice> {
        for_finding(&self.profile, &self.account, id)
    }

    /// Name and fact of the program that is recognised.
    fn known(&self, id: FindingId) -> Option<(String, String)> {
        self.advice(id).map(|advice| (advice.program, advice.recognised_by))
    }

    fn is(&self, id: FindingId, program: &str, fact: &str) {
        assert_eq!(self.known(id), Some((program.to_owned(), fact.to_owned())));
    }
}

fn entry(thread: u32, operation: Operation, ns: f64) -> Entry {
    Entry {
        thread,
        class: Class { operation, layer: Layer::Device, wait: None },
        busy: false,
        time_ns: ns,
        wall_ns: ns,
        events: 100,
        delay: crate::account::Delay::default(),
    }
}

fn syncs(program: &str) -> Made {
    Made::new(program, Operation::Sync)
}

const SYNC: FindingId = FindingId::SyncPerWrite;

#[test]
fn each_file_of_the_table_is_understood_and_listed() {
    assert_eq!(table::faults(), Vec::<String>::new());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/advice/programs");
    let there: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let listed: BTreeSet<String> = table::file_names().into_iter().map(str::to_owned).collect();
    assert_eq!(there, listed);
}

#[test]
fn each_change_has_a_cost_a_source_and_one_short_line() {
    const MAX_LINE: usize = 215;
    for program in table::programs() {
        assert!(!program.recognised.words().is_empty(), "{}", program.name);
        for advice in &program.advice {
            let change = &advice.change;
            let line = change.line();
            assert!(
                !advice.findings.is_empty() && line.chars().count() <= MAX_LINE,
                "{}: {line}",
                line.len()
            );
            assert!(change.source_url.starts_with("http") && !change.source_title.is_empty(), "{line}");
            assert!(line.matches('`').count() % 2 == 0, "{line}");
            for text in [&change.change, &change.cost] {
                assert!(!text.is_empty() && !text.ends_with('.'), "`line` ends the sentence: {text}");
            }
            for text in change.power_failure.iter().chain(&change.note) {
                assert!(text.ends_with('.'), "{text}");
            }
            // Who gives up durability must know what.
            let durable = advice.findings.contains(&SYNC);
            assert!(!durable || change.power_failure.is_some(), "{line}");
            for id in &advice.findings {
                assert!(Work::for_finding(*id).is_some(), "{} has no calls: {line}", id.id());
            }
        }
    }
}

#[test]
fn changes_that_lose_nothing_come_first() {
    for program in table::programs() {
        let lossy = |advice: &&table::Advice| {
            advice.change.power_failure.as_ref().is_some_and(|lost| !lost.starts_with("Nothing"))
        };
        let syncing = program.advice.iter().filter(|advice| advice.findings.contains(&SYNC));
        let order: Vec<bool> = syncing.map(|advice| lossy(&advice)).collect();
        assert!(order.is_sorted(), "{}: {order:?}", program.name);
    }
}

#[test]
fn programs_are_recognised_by_their_executables() {
    for (path, id, operation, program) in [
        ("/usr/lib/postgresql/15/bin/postgres", SYNC, Operation::Sync, "PostgreSQL"),
        ("/usr/sbin/mariadbd", SYNC, Operation::Sync, "MariaDB/MySQL"),
        ("/usr/sbin/mysqld", SYNC, Operation::Sync, "MariaDB/MySQL"),
        ("/usr/bin/sqlite3", SYNC, Operation::Sync, "SQLite"),
        ("/usr/bin/etcd", SYNC, Operation::Sync, "etcd"),
        ("/usr/bin/mongod", SYNC, Operation::Sync, "MongoDB"),
        ("/usr/bin/rsync", SYNC, Operation::Sync, "rsync"),
        ("/usr/bin/dpkg", SYNC, Operation::Sync, "dpkg"),
        ("/usr/bin/tar", FindingId::SmallRequests, Operation::Write, "GNU tar"),
        ("/usr/bin/python3.11", FindingId::SmallRequests, Operation::Write, "Python"),
        ("/usr/bin/python3.11", FindingId::StdioSeek, Operation::Read, "Python"),
        ("/usr/bin/node", FindingId::ManySmallFiles, Operation::Open, "Node.js"),
        ("/usr/lib/jvm/java-17/bin/java", FindingId::SmallRequests, Operation::Write, "Java"),
    ] {
        let name = path.rsplit('/').next().unwrap();
        Made::new(path, operation).is(id, program, &format!("executable `{name}`"));
    }
}

#[test]
fn a_setting_of_git_is_named_where_it_acts() {
    // Objects that are added are opened too, and no cache of untracked files spares that.
    let git = |listings| {
        let calls = [("openat", 1423), ("getdents64", listings)];
        Made::new("/usr/bin/git", Operation::Open).calls(&calls).known(FindingId::ManySmallFiles)
    };
    assert_eq!(git(12), None);
    assert_eq!(git(2800).unwrap().0, "git");
    assert_eq!(Made::new("/usr/bin/git", Operation::Open).known(FindingId::ManySmallFiles), None);
    // Batches act on loose objects alone.
    assert_eq!(syncs("/usr/bin/git").written("/r/.git/objects/pack/pack-1.pack").known(SYNC), None);
    syncs("/usr/bin/git").written("/r/.git/objects/ab/tmp_obj_x").is(SYNC, "git", "executable `git`");
}

#[test]
fn the_name_of_the_process_counts_where_one_file_is_several_programs() {
    let mut redis = syncs("/usr/bin/multi-call").written("/var/lib/redis/appendonlydir/a.1.incr.aof");
    redis.profile.processes[0].name = "redis-server".to_owned();
    redis.is(SYNC, "Redis", "executable `redis-server`");
    // Without its log another file is synced, and the setting would not act.
    redis.profile.files.clear();
    assert_eq!(redis.known(SYNC), None);
}

#[test]
fn a_library_comes_before_the_program_that_calls_it() {
    let python = || syncs("/usr/bin/python3.11");
    assert_eq!(python().known(SYNC), None);
    let sqlite = python().called_by("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6", "0x1f00");
    sqlite.is(SYNC, "SQLite", "library `libsqlite3.so.0.8.6`");
    let inside = syncs("/opt/browser").called_by("/opt/browser", "sqlite3_step");
    inside.is(SYNC, "SQLite", "function `sqlite3_step`");
    for (library, program) in [("librocksdb.so.7.8", "RocksDB"), ("liblmdb.so.0.0.0", "LMDB")] {
        let made = syncs("/opt/service").called_by(&format!("/usr/lib/{library}"), "0x10");
        made.is(SYNC, program, &format!("library `{library}`"));
    }
    // A library with the smaller part of the time is not the cause.
    let mut both = sqlite;
    let mut other = both.account.sites[0].clone();
    (other.object, other.entries[0].time_ns) = ("/usr/bin/python3.11".to_owned(), 3e9);
    both.account.sites.push(other);
    assert_eq!(both.known(SYNC), None);
}

#[test]
fn a_run_time_system_is_asked_for_the_names_of_its_scripts() {
    let names = |program: &str| {
        let made = Made::new(program, Operation::Read);
        super::names_of_scripts(&made.profile, &made.account).map(str::to_owned)
    };
    assert_eq!(names("/usr/bin/node").as_deref(), Some("`node --perf-basic-prof`"));
    assert!(names("/usr/bin/python3.12").is_some_and(|how| how.contains("-X perf")));
    assert_eq!(names("/usr/bin/tar"), None);
    assert_eq!(names("/usr/bin/java"), None);
    let mut named = Made::new("/usr/bin/node", Operation::Read).called_by("node", "uv__fs_work");
    named.account.script_sites = named.account.sites.clone();
    assert_eq!(super::names_of_scripts(&named.profile, &named.account), None, "they have names");
}

#[test]
fn files_tell_what_a_run_time_system_runs() {
    let java = || syncs("/usr/lib/jvm/java-17/bin/java");
    assert_eq!(java().known(SYNC), None);
    java().written("/kafka/t-0/0001.timeindex").is(SYNC, "Apache Kafka", "file `0001.timeindex`");
    let lucene = java().written("/es/indices/x/0/translog/translog-7.tlog");
    lucene.is(SYNC, "Elasticsearch/OpenSearch", "file `translog-7.tlog`");
    // A file that was only read, or that another program wrote.
    let read = java().file("/kafka/t-0/0001.timeindex", |file| file.reads.calls = 100);
    assert_eq!(read.known(SYNC), None);
    assert_eq!(syncs("/usr/bin/cp").written("/kafka/t-0/0001.timeindex").known(SYNC), None);
    let python = |network| {
        Made::new("/usr/bin/python3.11", network).file("/m/a.safetensors", |file| file.mapped = true)
    };
    python(Operation::Fault).is(FindingId::MappedOverNetwork, "safetensors", "file `a.safetensors`");
}

#[test]
fn a_journal_beside_its_database_is_sqlite_and_decides_the_setting() {
    let app = |journal: &str| syncs("/opt/app").written("/d/a.db").written(&format!("/d/a.db{journal}"));
    app("-journal").is(SYNC, "SQLite", "file `a.db-journal`");
    let pragma = |made: Made| {
        let advice = made.advice(SYNC).unwrap();
        advice.changes.into_iter().find(|c| c.change.contains("PRAGMA")).unwrap().change
    };
    assert!(pragma(app("-journal")).contains("journal_mode=WAL"));
    assert!(!pragma(app("-wal")).contains("journal_mode"), "it is in WAL mode already");
    // A file of that name without a database is no database's journal.
    assert_eq!(syncs("/opt/app").written("/d/my-journal").known(SYNC), None);
}

#[test]
fn a_library_on_any_stack_tells_what_python_runs() {
    use iowhy_core::profile::{StackTime, State, Symbol};
    let mut torch = Made::new("/usr/bin/python3.11", Operation::Read);
    assert_eq!(torch.known(FindingId::QueueDepthOne), None);
    let object = Some("/x/torch/lib/libtorch_python.so".to_owned());
    torch.profile.symbols.push(Symbol { name: "f".to_owned(), object, ..Symbol::default() });
    torch.profile.stacks.push(StackTime {
        thread: 0,
        state: State::Running,
        kernel: Vec::new(),
        user: vec![0],
        known: true,
        time_ns: 1.0,
        wall_ns: 1.0,
        events: 1,
        seen_ns: 1.0,
        requests: None,
    });
    torch.is(FindingId::QueueDepthOne, "PyTorch", "library `libtorch_python.so`");
}

#[test]
fn a_file_system_that_serves_the_files_comes_before_the_program() {
    let mut git = Made::new("/usr/bin/git", Operation::Stat)
        .calls(&[("openat", 500), ("getdents64", 1000)])
        .file("/app/x", |file| file.mount_point = Some("/".to_owned()));
    git.profile.served.push(ServedMount {
        point: "/".to_owned(),
        file_system: "fuse.fuse-overlayfs".to_owned(),
        ..ServedMount::default()
    });
    let name = "fuse-overlayfs (Docker, Podman)";
    git.is(FindingId::RemoteMetadata, name, "file system `fuse.fuse-overlayfs`");
    // It has nothing for a finding that is git's own.
    git.is(FindingId::ManySmallFiles, "git", "executable `git`");
}

#[test]
fn a_name_that_contains_a_program_is_another_program() {
    for name in ["tartan", "gitea", "rsyncd", "mypostgres", "postgres_exporter", "sqlite3_analyzer"] {
        for id in FindingId::ALL {
            for operation in Operation::ALL {
                let made = Made::new(&format!("/usr/bin/{name}"), *operation);
                assert_eq!(made.known(*id), None, "{name}: {}", id.id());
            }
        }
    }
}

#[test]
fn the_process_with_most_of_the_time_is_the_program() {
    let mut run = syncs("/usr/bin/sh");
    run.process("/usr/bin/sqlite3", Operation::Sync, 3e9);
    run.is(SYNC, "SQLite", "executable `sqlite3`");
    // Many processes of one executable count together; the time of other calls does not count.
    let mut servers = syncs("/usr/bin/sh");
    servers.process("/usr/bin/tar", Operation::Read, 9e9);
    for _ in 0..3 {
        servers.process("/usr/lib/postgresql/15/bin/postgres", Operation::Sync, 0.9e9);
    }
    servers.is(SYNC, "PostgreSQL", "executable `postgres`");
    // Three programs with a third each: none of them is the cause.
    let mut mixed = syncs("/usr/bin/rsync");
    mixed.process("/usr/bin/git", Operation::Sync, 1e9);
    mixed.process("/usr/bin/dpkg", Operation::Sync, 1e9);
    assert_eq!(mixed.known(SYNC), None);
}

#[test]
fn where_no_calls_were_seen_one_executable_is_enough() {
    let mut run = syncs("/usr/bin/sqlite3");
    run.account.entries.clear();
    run.is(SYNC, "SQLite", "executable `sqlite3`");
    run.profile.processes.push(Process { pid: 7, name: "sh".to_owned(), ..Process::default() });
    assert_eq!(run.known(SYNC), None);
}

#[test]
fn a_change_for_reads_is_not_given_to_a_writer() {
    let postgres = |operation| Made::new("/usr/lib/postgresql/15/bin/postgres", operation);
    assert!(postgres(Operation::Read).advice(FindingId::QueueDepthOne).is_some());
    assert_eq!(postgres(Operation::Write).advice(FindingId::QueueDepthOne), None);
}

#[test]
fn names_are_compared_as_a_whole() {
    for (pattern, name, fit) in [
        ("*.aof", "a.1.incr.aof", true),
        ("*.aof", "a.aof.tmp", false),
        ("libsqlite3.so*", "libsqlite3.so.0", true),
        ("libsqlite3.so*", "mylibsqlite3.so", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("*", "", true),
    ] {
        assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
    }
    assert!(is_version_of("python3.11", "python") && is_version_of("python", "python"));
    assert!(!is_version_of("python3.11-dbg", "python") && !is_version_of("pythonista", "python"));
}
